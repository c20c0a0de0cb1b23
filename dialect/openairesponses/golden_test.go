package openairesponses

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

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGoldenWireFiles runs testdata/*.txtar. What a file holds says what is
// done with it:
//
//	in.canonical  a stored dragoman.Request, encoded to out.request
//	in.request    decoded, rebuilt to out.request
//	in.response   decoded, rebuilt to out.response
//	in.stream     decoded to out.events; written anew to out.stream
//	in.events     stored events, one a line, written to out.stream
//
// out.report is what the conversion reports.
func TestGoldenWireFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(bytes.TrimSpace(a.Comment)) == 0 {
				t.Error("a golden file names the rule it pins")
			}
			var got []txtar.File
			for _, f := range a.Files {
				if strings.HasPrefix(f.Name, "in.") {
					got = append(got, f)
					got = append(got, golden(t, f)...)
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(&txtar.Archive{Comment: a.Comment, Files: got}), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(a)), string(txtar.Format(&txtar.Archive{Comment: a.Comment, Files: got}))); diff != "" {
				t.Errorf("golden file differs (-want +got); run with -update and read the diff:\n%s", diff)
			}
		})
	}
}

func golden(t *testing.T, in txtar.File) []txtar.File {
	t.Helper()
	var rep dragoman.Report
	merge := func(r dragoman.Report) { rep.Merge("", r) }
	var out []txtar.File
	add := func(name string, data []byte) {
		out = append(out, txtar.File{Name: name, Data: append(bytes.TrimRight(data, "\n"), '\n')})
	}
	fail := func(err error) {
		if err != nil {
			t.Fatalf("%s: %v", in.Name, err)
		}
	}
	data := bytes.TrimSpace(in.Data)
	switch in.Name {
	case "in.canonical":
		req := new(dragoman.Request)
		fail(json.Unmarshal(data, req))
		enc, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{})
		fail(err)
		merge(enc.Report)
		add("out.request", indent(t, enc.Body))
	case "in.request":
		req, r, err := Codec{}.DecodeRequest(data, dialect.DecodeOptions{})
		fail(err)
		merge(r)
		enc, err := Codec{}.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		fail(err)
		merge(enc.Report)
		add("out.request", indent(t, enc.Body))
	case "in.response":
		resp, r, err := Codec{}.DecodeResponse(data, dialect.DecodeOptions{})
		fail(err)
		merge(r)
		enc, err := Codec{}.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		fail(err)
		merge(enc.Report)
		add("out.response", indent(t, enc.Body))
	case "in.stream":
		evs, r, err := decodeStream(in.Data, 7, dialect.DecodeOptions{NoNative: true})
		fail(err)
		merge(r)
		add("out.events", eventLines(t, evs))
		stream, r := encodeStream(t, evs, dialect.EncodeOptions{Seed: "golden"})
		merge(r)
		add("out.stream", stream)
	case "in.events":
		var evs []dragoman.Event
		for _, line := range bytes.Split(data, []byte("\n")) {
			ev, err := dragoman.UnmarshalEvent(line)
			fail(err)
			evs = append(evs, ev)
		}
		stream, r := encodeStream(t, evs, dialect.EncodeOptions{Seed: "golden"})
		merge(r)
		if err := checkOrder(stream, true); err != nil {
			t.Error(err)
		}
		add("out.stream", stream)
	default:
		t.Fatalf("unknown input %s", in.Name)
	}
	if len(rep.Losses) > 0 {
		add("out.report", []byte(rep.String()))
	}
	return out
}

func encodeStream(t testing.TB, evs []dragoman.Event, o dialect.EncodeOptions) ([]byte, dragoman.Report) {
	t.Helper()
	e := Codec{}.NewStreamEncoder(o)
	var out []byte
	var err error
	for _, ev := range evs {
		if out, err = e.Encode(out, ev); err != nil {
			t.Fatal(err)
		}
	}
	if out, err = e.Close(out); err != nil {
		t.Fatal(err)
	}
	return out, e.Report()
}

func indent(t *testing.T, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return b.Bytes()
}

func eventLines(t *testing.T, evs []dragoman.Event) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, ev := range evs {
		line, err := dragoman.MarshalEvent(ev)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(line, '\n'))
	}
	return b.Bytes()
}
