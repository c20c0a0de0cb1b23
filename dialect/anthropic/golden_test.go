package anthropic_test

import (
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"golang.org/x/tools/txtar"
)

// TestGolden runs the files in testdata. Each starts with the rule it pins,
// then has one input, then the expected output:
//
//	in.request.json    decoded, and rebuilt from the canonical form
//	in.canonical.json  a canonical request, encoded
//	in.response.json   decoded, rebuilt, and written as a stream
//	in.stream.sse      decoded to events, rebuilt without its chunks
func TestGolden(t *testing.T) { codectest.Golden(t, golden) }

// sections takes alternating names and contents.
func sections(texts ...string) []txtar.File {
	var out []txtar.File
	for i := 0; i < len(texts); i += 2 {
		out = append(out, codectest.Section(texts[i], texts[i+1]))
	}
	return out
}

func golden(t *testing.T, in txtar.File) []txtar.File {
	t.Helper()
	bare := dialect.DecodeOptions{NoNative: true}
	text := in.Data
	switch in.Name {
	case "in.request.json":
		req, rep, err := codec.DecodeRequest(text, bare)
		if err != nil {
			t.Fatal(err)
		}
		enc, err := codec.EncodeRequest(req, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		rep.Merge("", enc.Report)
		return sections("canonical.json", codectest.Indented(t, req, "  "), "rebuilt.json", string(enc.Body), "report.txt", rep.String())
	case "in.canonical.json":
		var req dragoman.Request
		if err := json.Unmarshal(text, &req); err != nil {
			t.Fatal(err)
		}
		enc, err := codec.EncodeRequest(&req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return sections("request.json", string(enc.Body), "report.txt", enc.Report.String())
	case "in.response.json":
		resp, rep, err := codec.DecodeResponse(text, bare)
		if err != nil {
			t.Fatal(err)
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		rep.Merge("", enc.Report)
		return sections("canonical.json", codectest.Indented(t, resp, "  "), "rebuilt.json", string(enc.Body), "report.txt", rep.String())
	case "in.stream.sse":
		evs, err := drain(bare, text)
		lines := codectest.EventLines(t, evs)
		if err != nil {
			lines += "error: " + err.Error() + "\n"
		}
		out, rep := encodeEvents(t, dialect.EncodeOptions{}, evs...)
		if err := checkWire([]byte(out)); err != nil {
			t.Error(err)
		}
		return sections("events.jsonl", lines, "rebuilt.sse", out, "report.txt", rep.String())
	default:
		t.Fatalf("%s is not a known input", in.Name)
		return nil
	}
}
