package gemini_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var codec gemini.Codec

// checked wraps the codec; its errors fail the test.
var checked = codectest.Codec{Codec: codec}

var (
	decodeResponse = checked.Response
	decode         = checked.Request
	drain          = checked.Drain
	result         = codectest.Result
	collect        = checked.CollectStream
	encodeEvents   = checked.Play
	newMessage     = codectest.Message
	call           = codectest.Call
)

var (
	// ownOrigin is the origin of messages of this dialect.
	ownOrigin = &dragoman.Origin{Dialect: dialectname.Gemini}
	// foreignOrigin is the origin of messages of another dialect.
	foreignOrigin = &dragoman.Origin{Dialect: dialectname.Anthropic, Provider: "anthropic"}
)

func requestOf(ms ...dragoman.Message) *dragoman.Request {
	return &dragoman.Request{Model: "gemini-3.8-flash", Messages: ms}
}

func from(o *dragoman.Origin, m dragoman.Message) dragoman.Message {
	m.Origin = o
	return m
}

func tool(name string) dragoman.ToolSpec {
	return dragoman.ToolSpec{Name: name, Parameters: json.RawMessage(`{"type":"object","properties":{"q":{"type":"string"}}}`)}
}

func encode(t testing.TB, req *dragoman.Request, o dialect.EncodeOptions) (string, dragoman.Report) {
	t.Helper()
	enc, err := codec.EncodeRequest(req, o)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	if !json.Valid(enc.Body) {
		t.Fatalf("not JSON: %s", enc.Body)
	}
	return string(enc.Body), enc.Report
}

// topField returns the JSON of a top-level field of a body.
func topField(t testing.TB, body, name string) string {
	t.Helper()
	var v map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	return string(v[name])
}

// contentsOf returns the encoded contents as text.
func contentsOf(t interface{ Fatalf(string, ...any) }, body string) []string {
	var v struct{ Contents []json.RawMessage }
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	out := make([]string, len(v.Contents))
	for i, m := range v.Contents {
		out[i] = string(m)
	}
	return out
}

// sseStream frames chunks as server-sent events, one per line.
func sseStream(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\r\n\r\n")
	}
	return b.String()
}

// chunk returns a chunk with one candidate and the given parts; finish may be
// empty.
func chunk(finish, parts string) string {
	if finish != "" {
		finish = `,"finishReason":"` + finish + `"`
	}
	return `{"candidates":[{"content":{"parts":[` + parts + `],"role":"model"}` + finish + `,"index":0}],"modelVersion":"gemini-3.8-flash","responseId":"r1"}`
}

// responseBody returns a complete response with the given parts.
func responseBody(finish, parts string) string { return chunk(finish, parts) }

// has fails the test unless rep has a loss of this kind at this path.
func has(t testing.TB, rep dragoman.Report, kind dragoman.LossKind, path string) {
	t.Helper()
	for _, l := range rep.Losses {
		if l.Kind == kind && l.Path == path {
			return
		}
	}
	t.Errorf("no loss %s at %s in:\n%s", kind, path, rep)
}

var ignoreSidecars = cmp.Options{
	cmpopts.IgnoreFields(dragoman.Response{}, "Native"),
	cmpopts.IgnoreFields(dragoman.Message{}, "Native"),
	cmp.Transformer("text", func(r json.RawMessage) string {
		var b bytes.Buffer
		if json.Compact(&b, r) != nil {
			return string(r)
		}
		return b.String()
	}),
}

// checkWire returns the reason why a strict client would refuse an encoded
// stream.
func checkWire(stream []byte) error { return emitcheck.Order(dialectname.Gemini, stream) }

func equalJSON(a, b any) bool { return cmp.Equal(a, b) }
