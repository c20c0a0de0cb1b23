package openaichat_test

import (
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/targets"
)

var codec openaichat.Codec

// checked is the codec; its errors fail the test.
var checked = codectest.Codec{Codec: codec}

var (
	sameJSON       = codectest.SameJSON
	fn             = codectest.Function
	elements       = codectest.Elements
	encodeRequest  = checked.Fields
	decodeResponse = checked.ReportedResponse
	decodeRequest  = checked.ReportedRequest
	problem        = codectest.Problem
	decodeError    = codectest.DecodeError
	calls          = codectest.Calls
	lossless       = codectest.Lossless
)

// message decodes a response with one choice that has the given message.
func message(t testing.TB, msg, finish string) (*dragoman.Response, dragoman.Report) {
	t.Helper()
	return decodeResponse(t, `{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":`+msg+`,"finish_reason":`+finish+`}]}`)
}

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
	m, rep := encodeRequest(t, &dragoman.Request{Model: "m", Messages: ms}, dialect.EncodeOptions{Target: target})
	return elements(t, m["messages"]), rep
}

func caps(c targets.Capabilities) targets.Target { return targets.Target{Caps: c} }

// sse frames chunks as events.
func sse(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}

// deltas returns chunks of choice 0.
func deltas(ds ...string) []string {
	out := make([]string, len(ds))
	for i, d := range ds {
		out[i] = `{"id":"r","model":"m","choices":[{"index":0,"delta":` + d + `}]}`
	}
	return out
}

func finish(word string) string {
	return `{"id":"r","model":"m","choices":[{"index":0,"delta":{},"finish_reason":` + word + `}]}`
}

// stream frames deltas, a finish reason and the terminal marker.
func stream(word string, ds ...string) string {
	return sse(append(deltas(ds...), finish(word), "[DONE]")...)
}

// toolDeltas wraps elements of tool_calls, one delta each.
func toolDeltas(calls ...string) []string {
	out := make([]string, len(calls))
	for i, c := range calls {
		out[i] = `{"tool_calls":[` + c + `]}`
	}
	return out
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
	checkOrder(t, out.events)
	out.resp, out.err = codectest.Collect(out.events)
	return out
}

func streamed(t testing.TB, body string) *dragoman.Response {
	t.Helper()
	d := decodeStream(t, dialect.DecodeOptions{}, body)
	if d.feed != nil || d.err != nil {
		t.Fatalf("stream: %v, %v\n%s", d.feed, d.err, body)
	}
	return d.resp
}

// checkOrder checks the guarantees of every decoder, and those of this one.
func checkOrder(t testing.TB, evs []dragoman.Event) {
	t.Helper()
	if err := codectest.Order(evs); err != nil {
		t.Error(err)
	}
	if err := codectest.OneMessage(evs); err != nil {
		t.Error(err)
	}
}

// encodeStream encodes events and checks that every chunk is valid.
func encodeStream(t testing.TB, o dialect.EncodeOptions, events []dragoman.Event) (string, dragoman.Report) {
	t.Helper()
	out, rep := codectest.EncodeStream(t, codec, o, events)
	return string(out), rep
}

// chunksOf returns the data of each event of a stream.
func chunksOf(t testing.TB, body string) []string {
	t.Helper()
	var out []string
	for _, ev := range strings.Split(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(ev, "data: ")
		if !ok {
			t.Fatalf("not a data event: %q", ev)
		}
		out = append(out, data)
	}
	return out
}

// sameCalls compares id, name, payload and arguments of calls.
func sameCalls(t testing.TB, got []dragoman.ToolCall, want ...dragoman.ToolCall) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d calls, want %d: %+v", len(got), len(want), got)
	}
	for i := range got {
		g, w := got[i], want[i]
		if g.ID != w.ID || g.Name != w.Name || g.Payload != w.Payload || g.Arguments != w.Arguments {
			t.Errorf("call %d is %q %s(%s), want %q %s(%s)", i, g.ID, g.Name, g.Arguments, w.ID, w.Name, w.Arguments)
		}
	}
}

func call(id, name, args string) dragoman.ToolCall {
	return dragoman.ToolCall{ID: id, Name: name, Arguments: args}
}

func lost(t testing.TB, rep dragoman.Report, kind dragoman.LossKind, part string) dragoman.Loss {
	t.Helper()
	for _, l := range rep.Losses {
		if l.Kind == kind && strings.Contains(l.Detail, part) {
			return l
		}
	}
	t.Errorf("no %s loss with %q in the report:\n%s", kind, part, rep)
	return dragoman.Loss{}
}

func has(t testing.TB, s, part string) {
	t.Helper()
	if !strings.Contains(s, part) {
		t.Errorf("no %q in\n%s", part, s)
	}
}

func hasNot(t testing.TB, s, part string) {
	t.Helper()
	if strings.Contains(s, part) {
		t.Errorf("%q occurs in\n%s", part, s)
	}
}

func text(s string) *dragoman.Text { return &dragoman.Text{Text: s} }

func ptr[T any](v T) *T { return &v }
