package anthropic_test

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
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden runs the files of testdata. Each starts with the rule it pins,
// then one input, then what must come of it:
//
//	in.request.json    decoded, and rebuilt from the canonical form
//	in.canonical.json  a canonical request, encoded
//	in.response.json   decoded, rebuilt, and written as a stream
//	in.stream.sse      decoded to events, rebuilt without its chunks
func TestGolden(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) == 0 {
		t.Fatal("no golden files")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rule, in, parts := parseArchive(string(data))
			got := rule + "-- " + in + " --\n" + parts[in] + golden(t, in, parts[in])
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != string(data) {
				t.Errorf("%s differs; run with -update and read the diff. Got:\n%s", file, got)
			}
		})
	}
}

// parseArchive splits a txtar archive: its comment, the name of its input, and
// its files.
func parseArchive(s string) (comment, in string, files map[string]string) {
	files = map[string]string{}
	name := ""
	for line := range strings.Lines(s) {
		if n, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(n, " --\n") {
			name = strings.TrimSuffix(n, " --\n")
			if strings.HasPrefix(name, "in.") {
				in = name
			}
			continue
		}
		if name == "" {
			comment += line
		} else {
			files[name] += line
		}
	}
	return comment, in, files
}

func section(name, content string) string {
	if content != "" && !strings.HasSuffix(content, "\n") {
		content += "\n"
	}
	return "-- " + name + " --\n" + content
}

func canonical(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func golden(t *testing.T, in, text string) string {
	t.Helper()
	bare := dialect.DecodeOptions{NoNative: true}
	switch in {
	case "in.request.json":
		req, rep, err := codec.DecodeRequest([]byte(text), bare)
		if err != nil {
			t.Fatal(err)
		}
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		rep.Merge("", enc.Report)
		return section("canonical.json", canonical(t, req)) + section("rebuilt.json", string(enc.Body)) + section("report.txt", rep.String())
	case "in.canonical.json":
		var req dragoman.Request
		if err := json.Unmarshal([]byte(text), &req); err != nil {
			t.Fatal(err)
		}
		enc, err := codec.EncodeRequest(&req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return section("request.json", string(enc.Body)) + section("report.txt", enc.Report.String())
	case "in.response.json":
		resp, rep, err := codec.DecodeResponse([]byte(text), bare)
		if err != nil {
			t.Fatal(err)
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		rep.Merge("", enc.Report)
		return section("canonical.json", canonical(t, resp)) + section("rebuilt.json", string(enc.Body)) + section("report.txt", rep.String())
	case "in.stream.sse":
		evs, err := drain(bare, []byte(text))
		var lines strings.Builder
		for _, ev := range evs {
			raw, err := dragoman.MarshalEvent(ev)
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(raw)
			lines.WriteByte('\n')
		}
		if err != nil {
			lines.WriteString("error: " + err.Error() + "\n")
		}
		out, rep := play(t, dialect.EncodeOptions{}, evs...)
		if err := checkWire([]byte(out)); err != nil {
			t.Error(err)
		}
		return section("events.jsonl", lines.String()) + section("rebuilt.sse", out) + section("report.txt", rep.String())
	default:
		t.Fatalf("no input in the file")
		return ""
	}
}
