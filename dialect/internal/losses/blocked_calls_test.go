package losses_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// A call that was blocked after decoding, for example by a policy, stays blocked for the client:
// in a whole response and in a stream, passed through and re-encoded. With valid arguments alone,
// the client would run the call.
func TestBlockedCallsStayBlockedWhenWritten(t *testing.T) {
	for _, code := range []string{
		codes.ProblemStopped, codes.ProblemTruncated, codes.ProblemNoName, codes.ProblemUnreadable,
		codes.ProblemInvalidJSON, codes.ProblemNotObject, codes.ProblemDuplicateKey, "added_later",
	} {
		for _, c := range crosstest.Codecs {
			sound := func() *dragoman.Response {
				return &dragoman.Response{
					ID: "r", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopToolCalls},
					Usage: dragoman.Usage{Input: dragoman.Counted(1), Output: dragoman.Counted(1)},
					Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
						&dragoman.ToolCall{ID: "call_1", Name: "f", Arguments: `{"a":1}`},
					}}},
				}
			}
			problem := &dragoman.CallProblem{Code: code, Message: "no", Offset: -1}
			runs := func(resp *dragoman.Response) bool {
				for _, call := range resp.ToolCalls() {
					// Ollama has no blocking stop reason: the codec wraps the arguments in an object.
					wrapped := c.Dialect() == dialectname.Ollama && strings.HasPrefix(call.Arguments, `{"_raw":`)
					if call.Problem == nil && resp.Stop.Reason.Runs() && !wrapped {
						return true
					}
				}
				return false
			}
			t.Run(string(c.Dialect())+"/"+code+"/whole", func(t *testing.T) {
				enc, err := c.EncodeResponse(sound(), dialect.EncodeOptions{})
				if err != nil {
					t.Fatal(err)
				}
				resp, _, err := c.DecodeResponse(enc.Body, dialect.DecodeOptions{})
				if err != nil || !runs(resp) {
					t.Fatalf("%v: the call must run before it is blocked", err)
				}
				resp.ToolCalls()[0].Problem = problem
				for _, rebuild := range []bool{false, true} {
					enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: rebuild})
					if err != nil {
						t.Fatal(err)
					}
					back, _, err := c.DecodeResponse(enc.Body, dialect.DecodeOptions{})
					if err != nil {
						t.Fatal(err)
					}
					if runs(back) {
						t.Errorf("rebuild %v: a client would run the call\n%s", rebuild, enc.Body)
					}
				}
			})
			t.Run(string(c.Dialect())+"/"+code+"/stream", func(t *testing.T) {
				call := &dragoman.ToolCall{ID: "call_1", Name: "f"}
				ended := &dragoman.ToolCall{ID: "call_1", Name: "f", Arguments: `{"a":1}`, Problem: problem}
				resp := sound()
				resp.Output = nil
				body, _, _ := crosstest.Streamed(c, []dragoman.Event{
					&dragoman.ResponseStart{Response: *resp},
					&dragoman.PartStart{Part: call, Header: &dragoman.Message{Role: dragoman.RoleAssistant}},
					&dragoman.PartDelta{Kind: codes.KindToolCall, Text: `{"a":1}`},
					&dragoman.PartEnd{Part: ended},
					&dragoman.ResponseEnd{Response: *resp, Stop: resp.Stop, Usage: resp.Usage},
				}, dialect.EncodeOptions{})
				var col dragoman.Collector
				d := c.NewStreamDecoder(dialect.DecodeOptions{})
				emit := func(ev dragoman.Event) error { col.Add(ev); return nil }
				_ = d.Feed(body, emit)
				_ = d.Close(emit)
				if back, err := col.Response(); err == nil && runs(back) {
					t.Errorf("a client would run the call\n%s", body)
				}
			})
		}
	}
}

// A stop reason that is lowered for one blocked call also keeps the valid calls of the response
// from running. That is reported, also if the target has a stop reason for it.
func TestR11_LoweredStopReasonIsReported(t *testing.T) {
	for _, c := range crosstest.Codecs {
		if c.Dialect() == dialectname.Ollama { // Ollama omits the call and reports it
			continue
		}
		for what, second := range map[string]*dragoman.ToolCall{
			"duplicate keys": {ID: "b", Name: "g", Arguments: `{"a":1,"a":2}`, Problem: dragoman.CheckArguments(`{"a":1,"a":2}`)},
			"cut":            {ID: "b", Name: "g", Arguments: `{"a":1}`, Problem: &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: "cut", Offset: -1}},
		} {
			if what == "cut" && c.Dialect() == dialectname.OpenAIResponses { // the item itself is marked incomplete (quirk C26)
				continue
			}
			resp := crosstest.FullResponse()
			resp.Output[0].Parts = []dragoman.Part{&dragoman.ToolCall{ID: "a", Name: "f", Arguments: `{"a":1}`}, second}
			resp.Stop.Reason = dragoman.StopToolCalls
			bothWays(t, c, resp, func(t *testing.T, body string, rep dragoman.Report) {
				t.Helper()
				if at := reported(rep, "/stop"); len(at) != 1 || at[0].Kind != dragoman.Lowered {
					t.Errorf("%s: %s\n%s", what, rep, body)
				}
			})
		}
	}
}
