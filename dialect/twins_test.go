package dialect_test

import (
	"bytes"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
)

// A client that ignores case, as Go's own JSON does, must not find a call in
// what we pass on that nobody who looked at the answer could see.
func TestNoAnswerIsPassedOnWithMembersThatOnlyDifferInCase(t *testing.T) {
	for _, tc := range []struct {
		d    dragoman.Dialect
		body string
	}{
		{dragoman.OpenAIResponses, `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi"}]}],"Output":[{"type":"function_call","call_id":"c","name":"evil","arguments":"{}"}]}`},
		{dragoman.OpenAIResponses, `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"web_search_call","id":"w","status":"completed","Type":"function_call","call_id":"c","name":"evil","arguments":"{}"}]}`},
		{dragoman.Anthropic, `{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"hi"}],"Content":[{"type":"tool_use","id":"c","name":"evil","input":{}}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`},
		{dragoman.Anthropic, `{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"hi"}],"Stop_Reason":"evil","stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`},
		{dragoman.Gemini, `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"Candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"evil","args":{}}}]},"finishReason":"STOP"}]}`},
		{dragoman.Gemini, `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}],"Parts":[{"functionCall":{"name":"evil","args":{}}}]},"finishReason":"STOP"}]}`},
		{dragoman.Ollama, `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hi","Tool_Calls":[{"function":{"name":"evil","arguments":{}}}]},"done":true}`},
		{dragoman.Ollama, `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hi"},"Message":{"role":"assistant","tool_calls":[{"function":{"name":"evil","arguments":{}}}]},"done":true}`},
		{dragoman.Bedrock, `{"output":{"message":{"role":"assistant","content":[{"text":"hi"}],"Content":[{"toolUse":{"toolUseId":"c","name":"evil","input":{}}}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`},
		{dragoman.Bedrock, `{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"Output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"evil","input":{}}}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`},
	} {
		c := codecOf(tc.d)
		resp, rep, err := c.DecodeResponse([]byte(tc.body), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", tc.body, err)
			continue
		}
		if len(rep.Losses) == 0 {
			t.Errorf("nothing is reported of %s", tc.body)
		}
		for _, rebuild := range []bool{false, true} {
			enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: rebuild})
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(enc.Body, []byte("evil")) {
				t.Errorf("rebuild %v: %s\nis passed on as %s", rebuild, tc.body, enc.Body)
			}
		}
	}
}

func TestALegacyFunctionCallThatReadsInTwoWaysIsNotPassedOn(t *testing.T) {
	for _, call := range []string{
		`{"name":"safe","arguments":"{}","Name":"evil","Arguments":"{\"x\":1}"}`,
		`{"name":"safe","arguments":"{}","ARGUMENTS":"evil"}`,
		`{"name":"safe","arguments":"{}","name":"evil"}`,
	} {
		body := `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"function_call":` + call + `},"finish_reason":"function_call"}]}`
		resp, rep, err := codecOf(dragoman.OpenAIChat).DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		calls := resp.ToolCalls()
		if len(calls) != 1 || calls[0].Problem == nil || calls[0].Problem.Code != dragoman.ProblemDuplicateKey {
			t.Errorf("%s is read as %+v", call, calls)
		}
		if resp.Native != nil || resp.Output[0].Native != nil || len(rep.Losses) == 0 {
			t.Errorf("%s keeps its native form, reporting %v", call, rep.Losses)
		}
	}
}

// Clients run a call whatever its type says, unless it says that the provider
// does.
func TestOnlyWhatBedrockRunsItselfIsNoCall(t *testing.T) {
	for typ, hosted := range map[string]bool{
		`"server_tool_use"`: true, `"tool_use"`: false, `"Server_Tool_Use"`: false, `""`: false, `0`: false, `null`: false, `{}`: false,
	} {
		body := `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","type":` + typ + `,"name":"f","input":{"a":1}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`
		resp, _, err := codecOf(dragoman.Bedrock).DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if (len(resp.ToolCalls()) == 0) != hosted {
			t.Errorf("type %s: calls %v", typ, resp.ToolCalls())
		}
	}
}
