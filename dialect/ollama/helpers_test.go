package ollama_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/targets"
)

var codec ollama.Codec

// checked is the codec; its errors fail the test.
var checked = codectest.Codec{Codec: codec}

var (
	sameJSON       = codectest.SameJSON
	fn             = codectest.Function
	elements       = codectest.Elements
	encode         = checked.Fields
	decodeResponse = checked.ReportedResponse
	decodeRequest  = checked.ReportedRequest
	problem        = codectest.Problem
	decodeError    = codectest.DecodeError
	calls          = codectest.Calls
	lossless       = codectest.Lossless
)

// wholeResponse returns a whole response with the given message and trailing fields.
func wholeResponse(msg, end string) string {
	return `{"model":"m","created_at":"2026-11-15T10:00:00Z","message":` + msg + `,"done":true` + end + `}`
}

// line returns a stream line that is not the last.
func line(msg string) string {
	return `{"model":"m","created_at":"2026-11-15T10:00:00Z","message":` + msg + `,"done":false}` + "\n"
}

// last returns the last line of a stream.
func last(end string) string { return wholeResponse(`{"role":"assistant","content":""}`, end) + "\n" }

// object parses a JSON object and fails the test for duplicate fields at any depth.
func object(t testing.TB, b []byte) map[string]json.RawMessage {
	t.Helper()
	if err := jsonwire.Check(b); err != nil {
		t.Fatalf("invalid JSON: %v\n%s", err, b)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return m
}

// messages encodes a conversation and returns the elements of the messages list.
func messages(t testing.TB, target targets.Target, ms ...dragoman.Message) ([]string, dragoman.Report) {
	t.Helper()
	m, rep := encode(t, &dragoman.Request{Model: "m", Messages: ms}, dialect.EncodeOptions{Target: target})
	return elements(t, m["messages"]), rep
}

type decoded struct {
	events []dragoman.Event
	resp   *dragoman.Response
	rep    dragoman.Report
	err    error // from the collector
	feed   error // from the decoder
}

// decodeStream feeds chunks and collects the response. It checks the order of events, which every
// decoder guarantees.
func decodeStream(t testing.TB, o dialect.DecodeOptions, chunks ...string) decoded {
	t.Helper()
	var out decoded
	raw := make([][]byte, len(chunks))
	for i, p := range chunks {
		raw[i] = []byte(p)
	}
	out.events, out.rep, out.feed = codectest.DecodeStream(codec, o, raw...)
	if err := codectest.Order(out.events); err != nil {
		t.Error(err)
	}
	if err := codectest.OneMessage(out.events); err != nil {
		t.Error(err)
	}
	out.resp, out.err = codectest.Collect(out.events)
	return out
}

// streamed collects a stream that must be valid.
func streamed(t testing.TB, body string) decoded {
	t.Helper()
	d := decodeStream(t, dialect.DecodeOptions{}, body)
	if d.feed != nil || d.err != nil {
		t.Fatalf("stream: %v, %v\n%s", d.feed, d.err, body)
	}
	return d
}

// written encodes events and checks that every line is valid JSON.
func written(t testing.TB, o dialect.EncodeOptions, evs []dragoman.Event) ([]string, dragoman.Report) {
	t.Helper()
	out, rep := codectest.EncodeStream(t, codec, o, evs)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		t.Errorf("the last line has no line break: %q", out)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for _, l := range lines {
		object(t, []byte(l))
	}
	return lines, rep
}

func lost(t testing.TB, rep dragoman.Report, kind dragoman.LossKind, path, part string) dragoman.Loss {
	t.Helper()
	for _, l := range rep.Losses {
		if l.Kind == kind && strings.HasPrefix(l.Path, path) && strings.Contains(l.Detail, part) {
			return l
		}
	}
	t.Errorf("no %s loss at %s with %q in the report:\n%s", kind, path, part, rep)
	return dragoman.Loss{}
}

func text(s string) *dragoman.Text { return &dragoman.Text{Text: s} }

func ptr[T any](v T) *T { return &v }
