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

// checked is the codec, whose errors fail the test.
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

// answer is a whole response with a message and how it ended.
func answer(msg, end string) string {
	return `{"model":"m","created_at":"2026-11-15T10:00:00Z","message":` + msg + `,"done":true` + end + `}`
}

// line is a line of a stream that is not the last.
func line(msg string) string {
	return `{"model":"m","created_at":"2026-11-15T10:00:00Z","message":` + msg + `,"done":false}` + "\n"
}

// last is the line that ends a stream.
func last(end string) string { return answer(`{"role":"assistant","content":""}`, end) + "\n" }

// object checks that a body is JSON without a repeated member anywhere.
func object(t testing.TB, b []byte) map[string]json.RawMessage {
	t.Helper()
	if err := jsonwire.Check(b); err != nil {
		t.Fatalf("unsound JSON: %v\n%s", err, b)
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return m
}

// messages encodes a conversation and returns the elements of its list.
func messages(t testing.TB, target targets.Target, ms ...dragoman.Message) ([]string, dragoman.Report) {
	t.Helper()
	m, rep := encode(t, &dragoman.Request{Model: "m", Messages: ms}, dialect.EncodeOptions{Target: target})
	return elements(t, m["messages"]), rep
}

type decoded struct {
	events []dragoman.Event
	resp   *dragoman.Response
	rep    dragoman.Report
	err    error // the collector's
	feed   error // the decoder's
}

// decodeStream feeds pieces and collects. It checks what every decoder
// promises about the order of events.
func decodeStream(t testing.TB, o dialect.DecodeOptions, pieces ...string) decoded {
	t.Helper()
	var out decoded
	raw := make([][]byte, len(pieces))
	for i, p := range pieces {
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

// streamed collects a stream that must be sound.
func streamed(t testing.TB, body string) decoded {
	t.Helper()
	d := decodeStream(t, dialect.DecodeOptions{}, body)
	if d.feed != nil || d.err != nil {
		t.Fatalf("stream: %v, %v\n%s", d.feed, d.err, body)
	}
	return d
}

// written writes events; every line is checked to be sound.
func written(t testing.TB, o dialect.EncodeOptions, evs []dragoman.Event) ([]string, dragoman.Report) {
	t.Helper()
	out, rep := codectest.EncodeStream(t, codec, o, evs)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		t.Errorf("the last line has no end: %q", out)
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
