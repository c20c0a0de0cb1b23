// Package codectest has the tests that all dialects share: golden files, helpers that
// decode, change and encode whole streams, the properties of any codec
// ([Deterministic], [CheckGrowth], [KeepsMeaning], [ReChunked]), and the guarantees for any
// input ([AnyRequest], [AnyResponse], [AnyStream], [AnyError]).
//
// A dialect with text streams runs its golden files with
//
//	func TestGolden(t *testing.T) { codectest.Golden(t, codectest.Wire(codec, nil)) }
package codectest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// Update reports whether golden files are rewritten (flag -update).
func Update() bool { return *update }

// Render returns the sections of a golden file that are expected for an input.
type Render func(t *testing.T, in txtar.File) []txtar.File

// Golden runs the golden files of a package, testdata/*.txtar. Each starts with the rule
// that it tests. The first section, and each section whose name starts with
// "in.", is an input; the other sections are the output of render. The flag -update
// rewrites the files.
func Golden(t *testing.T, render Render) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { golden(t, file, render) })
	}
}

func golden(t *testing.T, file string, render Render) {
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ar := txtar.Parse(want)
	if len(bytes.TrimSpace(ar.Comment)) == 0 {
		t.Error("the file does not start with the rule that it tests")
	}
	out := &txtar.Archive{Comment: ar.Comment}
	for i, f := range ar.Files {
		if i == 0 || strings.HasPrefix(f.Name, "in.") {
			out.Files = append(append(out.Files, f), render(t, f)...)
		}
	}
	got := txtar.Format(out)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got); run with -update and read the diff:\n%s", file, diff)
	}
}

// Section returns a section of a golden file.
func Section(name, text string) txtar.File { return txtar.File{Name: name, Data: []byte(text)} }

// Indented returns v as indented JSON, one field per line. v may already be JSON.
func Indented(t testing.TB, v any, indent string) string {
	t.Helper()
	raw, ok := v.([]byte)
	if !ok {
		var err error
		if raw, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := json.Indent(&out, raw, "", indent); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return out.String()
}

// JSON decodes a body for comparison; numbers keep their text.
func JSON[T any](t testing.TB, body []byte) T {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v T
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, body)
	}
	return v
}

// EventLines returns events in stored form, one per line.
func EventLines(t testing.TB, evs []dragoman.Event) string {
	t.Helper()
	var out strings.Builder
	for _, ev := range evs {
		line, err := dragoman.MarshalEvent(ev)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return out.String()
}

// Wire renders the results of a codec for its inputs:
//
//	in.canonical  a stored dragoman.Request, encoded to out.request
//	in.request    decoded, rebuilt to out.request
//	in.response   decoded, rebuilt to out.response
//	in.stream     decoded to out.events; re-encoded to out.stream
//	in.events     stored events, one per line, encoded to out.stream
//
// out.report is the report of the conversion. check, which may be nil, validates a
// stream encoded from in.events.
func Wire(c dialect.Codec, check func(stream []byte) error) Render {
	return func(t *testing.T, in txtar.File) []txtar.File {
		t.Helper()
		w := wire{t: t, codec: c, check: check}
		switch data := bytes.TrimSpace(in.Data); in.Name {
		case "in.canonical":
			w.canonical(data)
		case "in.request":
			w.request(data)
		case "in.response":
			w.response(data)
		case "in.stream":
			w.stream(in.Data)
		case "in.events":
			w.events(data)
		default:
			t.Fatalf("unknown input %s", in.Name)
		}
		if len(w.rep.Losses) > 0 {
			w.add("out.report", w.rep.String())
		}
		return w.out
	}
}

type wire struct {
	t     *testing.T
	codec dialect.Codec
	check func(stream []byte) error
	rep   dragoman.Report
	out   []txtar.File
}

func (w *wire) add(name, text string) {
	w.out = append(w.out, Section(name, strings.TrimRight(text, "\n")+"\n"))
}

// encoded adds a body and its report.
func (w *wire) encoded(name string, enc dialect.Encoded, err error) {
	w.t.Helper()
	w.must(err)
	w.rep.Merge("", enc.Report)
	w.add(name, Indented(w.t, enc.Body, "  "))
}

func (w *wire) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) canonical(data []byte) {
	req := new(dragoman.Request)
	w.must(json.Unmarshal(data, req))
	enc, err := w.codec.EncodeRequest(req, dialect.EncodeOptions{})
	w.encoded("out.request", enc, err)
}

func (w *wire) request(data []byte) {
	req, rep, err := w.codec.DecodeRequest(data, dialect.DecodeOptions{})
	w.must(err)
	w.rep.Merge("", rep)
	enc, err := w.codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
	w.encoded("out.request", enc, err)
}

func (w *wire) response(data []byte) {
	resp, rep, err := w.codec.DecodeResponse(data, dialect.DecodeOptions{})
	w.must(err)
	w.rep.Merge("", rep)
	enc, err := w.codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
	w.encoded("out.response", enc, err)
}

func (w *wire) stream(data []byte) {
	evs, rep, err := DecodeStream(w.codec, dialect.DecodeOptions{NoNative: true}, Pieces(data, 7)...)
	if !broken(err) {
		w.must(err)
	}
	w.rep.Merge("", rep)
	w.add("out.events", EventLines(w.t, evs))
	w.written(evs)
}

func (w *wire) events(data []byte) {
	var evs []dragoman.Event
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		ev, err := dragoman.UnmarshalEvent(line)
		w.must(err)
		evs = append(evs, ev)
	}
	stream := w.written(evs)
	if w.check == nil {
		return
	}
	if err := w.check(stream); err != nil {
		w.t.Error(err)
	}
}

func (w *wire) written(evs []dragoman.Event) []byte {
	stream, rep := EncodeStream(w.t, w.codec, dialect.EncodeOptions{Seed: "golden"}, evs)
	w.rep.Merge("", rep)
	w.add("out.stream", string(stream))
	return stream
}
