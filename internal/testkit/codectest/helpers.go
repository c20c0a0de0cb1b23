package codectest

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// Function returns the definition of a tool without parameters.
func Function(name string) dragoman.ToolSpec {
	return dragoman.ToolSpec{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}
}

// Message returns a message.
func Message(role dragoman.Role, parts ...dragoman.Part) dragoman.Message {
	return dragoman.Message{Role: role, Parts: parts}
}

// Call returns a call.
func Call(id, name, args string) *dragoman.ToolCall {
	return &dragoman.ToolCall{ID: id, Name: name, Arguments: args}
}

// Result returns a result with one text.
func Result(id, text string) *dragoman.ToolResult {
	return &dragoman.ToolResult{CallID: id, Content: []dragoman.Part{&dragoman.Text{Text: text}}}
}

// Calls returns the calls of a response by value.
func Calls(r *dragoman.Response) []dragoman.ToolCall {
	var out []dragoman.ToolCall
	for _, c := range r.ToolCalls() {
		out = append(out, *c)
	}
	return out
}

// SameJSON compares two JSON texts by their values.
func SameJSON(t testing.TB, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("got is not valid JSON: %v\n%s", err, got)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("want is not valid JSON: %v\n%s", err, want)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Elements returns the elements of a JSON list as raw text.
func Elements(t testing.TB, list json.RawMessage) []string {
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

// Messages returns the elements of the field "messages" of a request as raw text.
func Messages(t testing.TB, body []byte) []string {
	t.Helper()
	var v struct{ Messages json.RawMessage }
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return Elements(t, v.Messages)
}

// Problem checks the code of a call's problem.
func Problem(t testing.TB, c dragoman.ToolCall, code string) {
	t.Helper()
	if c.Problem == nil || c.Problem.Code != code {
		t.Errorf("call %s(%s) has problem %v, want %s", c.Name, c.Arguments, c.Problem, code)
	}
}

// DecodeError returns err as a [*dragoman.DecodeError], or fails the test.
func DecodeError(t testing.TB, err error) *dragoman.DecodeError {
	t.Helper()
	var de *dragoman.DecodeError
	if !errors.As(err, &de) {
		t.Fatalf("%v is not a DecodeError", err)
	}
	return de
}

// Lossless checks that a report has no losses.
func Lossless(t testing.TB, rep dragoman.Report) {
	t.Helper()
	if len(rep.Losses) > 0 {
		t.Errorf("unexpected losses:\n%s", rep)
	}
}

// HasLoss checks that a report has a loss of a kind at a pointer.
func HasLoss(t testing.TB, rep dragoman.Report, kind dragoman.LossKind, path string) {
	t.Helper()
	for _, l := range rep.Losses {
		if l.Kind == kind && l.Path == path {
			return
		}
	}
	t.Errorf("the report lacks %s at %s:\n%s", kind, path, rep)
}

// Codec is a codec whose errors fail the test. A test package takes the functions that it
// needs: decode := codectest.Codec{Codec: codec}.Request.
type Codec struct{ dialect.Codec }

// Request decodes a request.
func (c Codec) Request(t testing.TB, body string) *dragoman.Request {
	t.Helper()
	req, _ := c.ReportedRequest(t, body)
	return req
}

// ReportedRequest decodes a request and returns the report as well.
func (c Codec) ReportedRequest(t testing.TB, body string) (*dragoman.Request, dragoman.Report) {
	t.Helper()
	req, rep, err := c.DecodeRequest([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatalf("DecodeRequest: %v\n%s", err, body)
	}
	return req, rep
}

// Response decodes a response.
func (c Codec) Response(t testing.TB, body string) *dragoman.Response {
	t.Helper()
	resp, _ := c.ReportedResponse(t, body)
	return resp
}

// ReportedResponse decodes a response and returns the report as well.
func (c Codec) ReportedResponse(t testing.TB, body string) (*dragoman.Response, dragoman.Report) {
	t.Helper()
	resp, rep, err := c.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatalf("DecodeResponse: %v\n%s", err, body)
	}
	return resp, rep
}

// Fields encodes a request and returns its fields as raw text.
func (c Codec) Fields(t testing.TB, req *dragoman.Request, o dialect.EncodeOptions) (map[string]json.RawMessage, dragoman.Report) {
	t.Helper()
	enc, err := c.EncodeRequest(req, o)
	if err != nil {
		t.Fatalf("EncodeRequest: %v", err)
	}
	return JSON[map[string]json.RawMessage](t, enc.Body), enc.Report
}

// Values encodes a request and returns its decoded body; numbers keep their text.
func (c Codec) Values(t testing.TB, req *dragoman.Request, o dialect.EncodeOptions) (map[string]any, dialect.Encoded) {
	t.Helper()
	enc, err := c.EncodeRequest(req, o)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(enc.Body))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, enc.Body)
	}
	return v, enc
}

// Drain decodes a stream that is split into chunks of the given sizes.
func (c Codec) Drain(o dialect.DecodeOptions, stream []byte, sizes ...int) ([]dragoman.Event, error) {
	evs, _, err := DecodeStream(c.Codec, o, Cut(stream, sizes...)...)
	return evs, err
}

// CollectStream decodes a stream into a response.
func (c Codec) CollectStream(t testing.TB, stream string) *dragoman.Response {
	t.Helper()
	evs, err := c.Drain(dialect.DecodeOptions{NoNative: true}, []byte(stream))
	if err != nil {
		t.Fatalf("stream: %v", err)
	}
	resp, err := Collect(evs)
	if err != nil {
		t.Fatalf("collect: %v", err)
	}
	return resp
}

// Play encodes events as a stream.
func (c Codec) Play(t testing.TB, o dialect.EncodeOptions, evs ...dragoman.Event) (string, dragoman.Report) {
	t.Helper()
	out, rep := EncodeStream(t, c.Codec, o, evs)
	return string(out), rep
}
