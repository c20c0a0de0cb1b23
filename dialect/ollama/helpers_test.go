package ollama_test

import (
	"encoding/json"
	"errors"
	"reflect"
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

func decodeRequest(t testing.TB, body string) (*dragoman.Request, dragoman.Report) {
	t.Helper()
	req, rep, err := codec.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatalf("DecodeRequest: %v\n%s", err, body)
	}
	return req, rep
}

func decodeResponse(t testing.TB, body string) (*dragoman.Response, dragoman.Report) {
	t.Helper()
	resp, rep, err := codec.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatalf("DecodeResponse: %v\n%s", err, body)
	}
	return resp, rep
}

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

// encode writes a request anew.
func encode(t testing.TB, req *dragoman.Request, o dialect.EncodeOptions) (map[string]json.RawMessage, dragoman.Report) {
	t.Helper()
	enc, err := codec.EncodeRequest(req, o)
	if err != nil {
		t.Fatalf("EncodeRequest: %v", err)
	}
	return object(t, enc.Body), enc.Report
}

// elements are those of an encoded list, byte for byte.
func elements(t testing.TB, list json.RawMessage) []string {
	t.Helper()
	var raw []json.RawMessage
	if err := json.Unmarshal(list, &raw); err != nil {
		t.Fatalf("%v\n%s", err, list)
	}
	out := make([]string, len(raw))
	for i, r := range raw {
		out[i] = string(r)
	}
	return out
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

func calls(r *dragoman.Response) []dragoman.ToolCall {
	var out []dragoman.ToolCall
	for _, c := range r.ToolCalls() {
		out = append(out, *c)
	}
	return out
}

func sameJSON(t testing.TB, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("got no JSON: %v\n%s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("want no JSON: %v\n%s", err, want)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
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

func lossless(t testing.TB, rep dragoman.Report) {
	t.Helper()
	if len(rep.Losses) > 0 {
		t.Errorf("unexpected losses:\n%s", rep)
	}
}

func problem(t testing.TB, c dragoman.ToolCall, code string) {
	t.Helper()
	if c.Problem == nil || c.Problem.Code != code {
		t.Errorf("call %s(%s) has problem %v, want %s", c.Name, c.Arguments, c.Problem, code)
	}
}

func decodeError(t testing.TB, err error) *dragoman.DecodeError {
	t.Helper()
	var de *dragoman.DecodeError
	if !errors.As(err, &de) {
		t.Fatalf("%v is no DecodeError", err)
	}
	return de
}

func fn(name string) dragoman.ToolSpec {
	return dragoman.ToolSpec{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
}

func text(s string) *dragoman.Text { return &dragoman.Text{Text: s} }

func ptr[T any](v T) *T { return &v }
