package quirks_test

import (
	"fmt"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// clientRuns reports whether a client of the codec's API runs a call of the stream.
func clientRuns(c dialect.Codec, body []byte) bool {
	var col dragoman.Collector
	dec := c.NewStreamDecoder(dialect.DecodeOptions{})
	add := func(ev dragoman.Event) error { col.Add(ev); return nil }
	_ = dec.Feed(body, add)
	_ = dec.Close(add)
	resp, err := col.Response()
	if err != nil || !resp.Stop.Reason.Runs() {
		return false
	}
	for _, call := range resp.ToolCalls() {
		// Ollama has no blocking stop reason: the codec wraps the arguments in an object.
		wrapped := c.Dialect() == dialectname.Ollama && strings.HasPrefix(call.Arguments, `{"_raw":`)
		if call.Problem == nil && !wrapped {
			return true
		}
	}
	return false
}

func TestQuirkC28_UnreadableCallNeverRuns(t *testing.T) {
	for what, objects := range map[string][]string{
		"willContinue is text":     {`{"name":"delete_all","args":{"path":"/"},"willContinue":"true"}`},
		"willContinue is a number": {`{"name":"delete_all","args":{"path":"/"},"willContinue":1}`},
		"a later name is a number": {`{"name":"delete_all","willContinue":true}`, `{"name":5,"partialArgs":[{"jsonPath":"$.path","stringValue":"/"}]}`},
		"the start cannot be read": {
			`{"name":"delete_all","willContinue":"length"}`, `{"partialArgs":[{"jsonPath":"$.path","stringValue":"/"}]}`, `{}`,
		},
	} {
		wire := crosstest.GeminiCalls(objects...)
		resp := crosstest.Collect(t, gemini.Codec{}, wire, nil)
		if calls := resp.ToolCalls(); len(calls) != 1 || calls[0].Name != "delete_all" || calls[0].Arguments != `{"path":"/"}` ||
			calls[0].Problem == nil || calls[0].Problem.Code != codes.ProblemUnreadable {
			t.Errorf("%s: %d calls, the first is %+v", what, len(calls), *calls[0])
		}
		for _, out := range crosstest.Codecs {
			if body, _ := crosstest.ConvertStream(gemini.Codec{}, out, wire); clientRuns(out, body) {
				t.Errorf("%s: a %s client runs it\n%s", what, out.Dialect(), body)
			}
		}
		if len(objects) > 1 {
			continue
		}
		whole := fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":%s}]},"finishReason":"STOP"}],"modelVersion":"m","responseId":"r"}`, objects[0])
		resp, _, err := gemini.Codec{}.DecodeResponse([]byte(whole), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if p := resp.ToolCalls()[0].Problem; p == nil || p.Code != codes.ProblemUnreadable {
			t.Errorf("%s: the whole response has the problem %v", what, p)
		}
	}
}

// A call without a name gets a synthesized name, and the client may have a tool with that name.
func TestQuirkB24_NamelessCallNeverRuns(t *testing.T) {
	const wire = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"arguments":"{}"}}]},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	for _, out := range crosstest.Codecs {
		if body, _ := crosstest.ConvertStream(openaichat.Codec{}, out, []byte(wire)); out.Dialect() != dialectname.OpenAIChat && clientRuns(out, body) {
			t.Errorf("a %s client runs it\n%s", out.Dialect(), body)
		}
	}
}
