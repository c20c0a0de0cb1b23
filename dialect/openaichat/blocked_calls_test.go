package openaichat_test

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// blockingReasons maps problems of calls with valid arguments to the finish reason that must be
// written.
var blockingReasons = map[string]string{codes.ProblemStopped: "content_filter", codes.ProblemTruncated: "length"}

func TestBlockedCallChangesFinishReason(t *testing.T) {
	for code, want := range blockingReasons {
		for _, reason := range []dragoman.StopReason{dragoman.StopToolCalls, dragoman.StopEnd, dragoman.StopNone, dragoman.StopPause} {
			for _, origin := range []*dragoman.Origin{nil, {Dialect: dialectname.OpenAIChat}, {Dialect: dialectname.Anthropic}} {
				bad := &dragoman.ToolCall{ID: "a", Name: "rm", Arguments: "{}", Problem: &dragoman.CallProblem{Code: code, Message: "no", Offset: -1}}
				out := []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "b", Name: "ls", Arguments: "{}"}, bad}}}
				stop := dragoman.Stop{Reason: reason, Native: "tool_calls"}
				resp := &dragoman.Response{ID: "r", Model: "m", Origin: origin, Output: out, Stop: stop, Alternatives: []dragoman.Candidate{{Index: 1, Output: out, Stop: stop}}}
				body, rep := encodeResponse(t, resp, dialect.EncodeOptions{})
				if n := strings.Count(body, `"finish_reason":"`+want+`"`); n != 2 {
					t.Errorf("%s after %s: %s", code, reason, body)
				}
				if code == codes.ProblemStopped && !strings.Contains(rep.String(), "written as") {
					t.Errorf("not reported: %s", rep)
				}
				again, _ := decodeResponse(t, body)
				mustNotRun(t, again)

				streamed, _ := encodeStream(t, dialect.EncodeOptions{}, []dragoman.Event{
					&dragoman.ResponseStart{Response: dragoman.Response{ID: "r", Origin: origin}},
					&dragoman.PartStart{Part: &dragoman.ToolCall{ID: "a", Name: "rm"}, Header: &dragoman.Message{Role: dragoman.RoleAssistant}},
					&dragoman.PartDelta{Kind: codes.KindToolCall, Text: "{}"}, &dragoman.PartEnd{Part: bad},
					&dragoman.ResponseEnd{Stop: stop},
				})
				if !strings.Contains(streamed, `"finish_reason":"`+want+`"`) || strings.Contains(streamed, `"finish_reason":"tool_calls"`) {
					t.Errorf("%s after %s: %s", code, reason, streamed)
				}
			}
		}
	}
}

func TestCallBlockedAfterDecodingIsNotReplayed(t *testing.T) {
	for code, want := range blockingReasons {
		for _, word := range []string{`"tool_calls"`, `"stop"`, `null`} {
			resp, _ := message(t, `{"role":"assistant","tool_calls":[`+sampleCall+`]}`, word)
			resp.ToolCalls()[0].Problem = &dragoman.CallProblem{Code: code, Message: "a policy said no", Offset: -1}
			body, _ := encodeResponse(t, resp, dialect.EncodeOptions{})
			if !strings.Contains(body, `"finish_reason":"`+want+`"`) {
				t.Errorf("%s under %s: %s", code, word, body)
			}
		}
	}
}

// A call whose arguments are not a JSON object is sent with its text, and the finish reason is
// not one of a complete response.
func TestQuirkB9_InvalidArgumentsDoNotEndAsToolCalls(t *testing.T) {
	for _, args := range []string{`{`, `[1]`, `{\"city\": Oslo}`} {
		for _, word := range []string{`"tool_calls"`, `"stop"`, `null`} {
			resp, _ := message(t, `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"`+args+`"}}]}`, word)
			mustNotRun(t, resp)
			for _, rebuild := range []bool{true, false} {
				body, _ := encodeResponse(t, resp, dialect.EncodeOptions{Rebuild: rebuild})
				if !strings.Contains(body, `"finish_reason":"content_filter"`) || !strings.Contains(body, args) {
					t.Errorf("%s after %s: %s", args, word, body)
				}
			}
		}
	}
}

func TestCollectedStreamKeepsBlockedCalls(t *testing.T) {
	for name, body := range map[string]string{
		"renamed": stream(`"tool_calls"`, toolDeltas(
			`{"index":0,"id":"a","function":{"name":"rm","arguments":"{"}}`, `{"index":0,"function":{"name":"ls","arguments":"}"}}`)...),
		"broken off": sse(deltas(toolDeltas(sampleCall)...)...),
		"failed":     sse(append(deltas(toolDeltas(sampleCall)...), `{"error":{"message":"boom"}}`)...),
	} {
		t.Run(name, func(t *testing.T) {
			d := decodeStream(t, dialect.DecodeOptions{}, body)
			mustNotRun(t, d.resp)
			out, _ := encodeResponse(t, d.resp, dialect.EncodeOptions{})
			hasNot(t, out, `"finish_reason":"tool_calls"`)
			hasNot(t, out, `"finish_reason":"stop"`)
			again, _ := decodeResponse(t, out)
			if d.resp.Error != nil {
				if again.Error == nil || len(again.Output) > 0 {
					t.Errorf("a failed response is written as %s", out)
				}
				return
			}
			mustNotRun(t, again)
		})
	}
}

func TestFailedStreamKeepsUsageAndStop(t *testing.T) {
	body := sse(append(deltas(`{"content":"hi"}`), `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`, `{"error":{"message":"boom"}}`)...)
	d := decodeStream(t, dialect.DecodeOptions{}, body)
	if d.resp.Usage.Input.N != 7 || d.resp.Usage.Output.N != 3 || d.resp.Stop.Reason != dragoman.StopError || d.resp.Error == nil || d.resp.Text() != "hi" {
		t.Errorf("%+v", d.resp)
	}
}

// A client that does not know a finish reason may run the calls. The unknown value is kept if the
// calls are valid, because only the value forbids them. It is not kept next to a call whose
// arguments are ambiguous.
func TestQuirkB20_UnknownFinishReasonWithAmbiguousCall(t *testing.T) {
	valid := `{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"p\":1}"}}`
	ambiguous := `{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"p\":1,\"p\":2}"}}`
	const native, instead = `"finish_reason":"moon"`, `"finish_reason":"content_filter"`
	for _, tc := range []struct {
		name, call string
		rebuild    bool
		word       string
	}{
		{"valid", valid, false, native},
		{"valid, rebuilt", valid, true, native},
		{"ambiguous", ambiguous, false, instead},
		{"ambiguous, rebuilt", ambiguous, true, instead},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := dialect.EncodeOptions{Rebuild: tc.rebuild}
			resp, _ := message(t, `{"role":"assistant","tool_calls":[`+tc.call+`]}`, `"moon"`)
			mustNotRun(t, resp)
			whole, rep := encodeResponse(t, resp, o)
			d := decodeStream(t, dialect.DecodeOptions{}, stream(`"moon"`, toolDeltas(tc.call)...))
			mustNotRun(t, d.resp)
			streamed, streamRep := encodeStream(t, o, d.events)
			for _, out := range []string{whole, streamed} {
				if has(t, out, tc.word); tc.word != native {
					hasNot(t, out, native)
				}
			}
			if tc.word != native {
				lost(t, rep, dragoman.Lowered, "written as")
				lost(t, streamRep, dragoman.Lowered, "written as")
			}
		})
	}
}
