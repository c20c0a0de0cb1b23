package bedrock_test

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
//	in.stream.jsonl    framed, decoded to events, rebuilt without its chunks
//
// A stream is shown as its events, one per line, each {"type of event":
// payload}.
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
	switch in.Name {
	case "in.request.json":
		req, rep, err := codec.DecodeRequest(in.Data, bare)
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
		if err := json.Unmarshal(in.Data, &req); err != nil {
			t.Fatal(err)
		}
		enc, err := codec.EncodeRequest(&req, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return sections("request.json", codectest.Indented(t, enc.Body, " "), "report.txt", enc.Report.String())
	case "in.response.json":
		resp, rep, err := codec.DecodeResponse(in.Data, bare)
		if err != nil {
			t.Fatal(err)
		}
		enc, err := codec.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: true})
		if err != nil {
			t.Fatal(err)
		}
		rep.Merge("", enc.Report)
		return sections("canonical.json", codectest.Indented(t, resp, "  "), "rebuilt.json", string(enc.Body), "report.txt", rep.String())
	case "in.stream.jsonl":
		evs, err := drain(bare, binary(string(in.Data)))
		events := codectest.EventLines(t, evs)
		if err != nil {
			events += "error: " + err.Error() + "\n"
		}
		out, rep := encodeEvents(t, dialect.EncodeOptions{}, evs...)
		if err := checkWire(out); err != nil {
			t.Error(err)
		}
		return sections("events.jsonl", events, "rebuilt.jsonl", lines(t, out), "report.txt", rep.String())
	default:
		t.Fatalf("%s is not a known input", in.Name)
		return nil
	}
}
