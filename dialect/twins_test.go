package dialect_test

import (
	"bytes"
	"slices"
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

// The request that is a server's own must not be another to a server that
// ignores case, as Ollama's does: nowhere in it, as it came or written anew.
func TestNoRequestIsPassedOnWithMembersThatOnlyDifferInCase(t *testing.T) {
	tool := func(s string) string { return `{"type":"function","function":` + s + `}` }
	for _, tc := range []struct {
		d    dragoman.Dialect
		body string
	}{
		{dragoman.Ollama, `{"model":"m","messages":[{"role":"user","content":"safe"}],"Messages":[{"role":"user","content":"evil"}]}`},
		{dragoman.Ollama, `{"model":"m","Model":"evil","messages":[{"role":"user","content":"safe"}]}`},
		{dragoman.Ollama, `{"model":"m","messages":[{"role":"user","content":"safe"}],"Tools":[` + tool(`{"name":"evil","parameters":{}}`) + `]}`},
		{dragoman.Ollama, `{"model":"m","messages":[{"role":"user","content":"safe","Content":"evil"}]}`},
		{dragoman.Ollama, `{"model":"m","messages":[{"role":"user","content":"safe"}],"tools":[` + tool(`{"name":"f","Name":"evil","parameters":{}}`) + `]}`},
		{dragoman.Ollama, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{},"Arguments":{"a":"evil"}}}]},{"role":"tool","tool_name":"f","content":"safe","CONTENT":"evil"}]}`},
		{dragoman.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"safe"}],"Messages":[{"role":"user","content":"evil"}]}`},
		{dragoman.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"safe","Text":"evil"}]}]}`},
		{dragoman.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"safe"},{"role":"assistant","function_call":{"name":"f","arguments":"{}","Name":"evil"}}]}`},
		{dragoman.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"safe"}],"functions":[{"name":"f","Name":"evil","parameters":{}}]}`},
		{dragoman.Anthropic, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"safe"}],"Messages":[{"role":"user","content":"evil"}]}`},
		{dragoman.Anthropic, `{"model":"m","max_tokens":5,"System":"evil","messages":[{"role":"user","content":[{"type":"text","text":"safe"}]}]}`},
		{dragoman.Anthropic, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"safe","TEXT":"evil"}],"Content":"evil"}]}]}`},
		{dragoman.Gemini, `{"contents":[{"role":"user","parts":[{"text":"safe"}]}],"Contents":[{"role":"user","parts":[{"text":"evil"}]}]}`},
		{dragoman.Gemini, `{"contents":[{"role":"user","parts":[{"text":"safe"}]}],"System_Instruction":{"parts":[{"text":"evil"}]}}`},
		{dragoman.Gemini, `{"contents":[{"role":"user","parts":[{"text":"safe"}],"Parts":[{"text":"evil"}]}],"systeminstruction":{"parts":[{"text":"evil"}]}}`},
		{dragoman.Gemini, `{"contents":[{"role":"model","parts":[{"function_call":{"name":"f","args":{},"Args":{"a":"evil"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"safe"},"Response":{"output":"evil"}}}]}]}`},
		{dragoman.Bedrock, `{"messages":[{"role":"user","content":[{"text":"safe"}]}],"Messages":[{"role":"user","content":[{"text":"evil"}]}]}`},
		{dragoman.Bedrock, `{"messages":[{"role":"user","content":[{"text":"safe","Text":"evil"}]}],"toolconfig":{"tools":[{"toolSpec":{"name":"evil","inputSchema":{"json":{}}}}]}}`},
		{dragoman.OpenAIResponses, `{"model":"m","input":"safe","Input":"evil"}`},
		{dragoman.OpenAIResponses, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"safe","Text":"evil"}],"Content":"evil"}],"Instructions":"evil"}`},
		{dragoman.OpenAIResponses, `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}","Name":"evil"},{"type":"function_call_output","call_id":"c","output":"safe","OUTPUT":"evil"}]}`},
	} {
		c := codecOf(tc.d)
		req, rep, err := c.DecodeRequest([]byte(tc.body), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", tc.body, err)
			continue
		}
		if !slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool {
			return l.Kind == dragoman.Dropped && l.Severity >= dragoman.Warn
		}) {
			t.Errorf("of %s only %v is reported", tc.body, rep.Losses)
		}
		if req.Native != nil {
			t.Errorf("the native form of %s is kept", tc.body)
		}
		for _, rebuild := range []bool{false, true} {
			enc, err := c.EncodeRequest(req, dialect.EncodeOptions{Rebuild: rebuild})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(enc.Body, []byte("safe")) && bytes.Contains([]byte(tc.body), []byte("safe")) || bytes.Contains(enc.Body, []byte("evil")) {
				t.Errorf("rebuild %v: %s\nis passed on as %s", rebuild, tc.body, enc.Body)
			}
		}
	}
}

// Names that are the client's own are not looked at.
func TestMembersThatAreAClientsOwnMayHaveAnyCase(t *testing.T) {
	for d, body := range map[dragoman.Dialect]string{
		dragoman.Ollama:          `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"Name":1,"Content":2}}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"Type":{"type":"string"}}}}}],"format":{"type":"object","properties":{"Model":{"type":"string"}}}}`,
		dragoman.OpenAIChat:      `{"model":"m","messages":[{"role":"user","content":"x"}],"metadata":{"Model":"x","User":"y"}}`,
		dragoman.OpenAIResponses: `{"model":"m","input":"x","metadata":{"Model":"x"},"tools":[{"type":"mcp","server_label":"l","headers":{"Name":"x","Type":"y"}}]}`,
		dragoman.Anthropic:       `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"Type":1,"Name":2}}]}]}`,
		dragoman.Gemini:          `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"labels":{"Contents":"x"},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{"Name":{"type":"string"}}}}]}]}`,
		dragoman.Bedrock:         `{"messages":[{"role":"user","content":[{"text":"x"}]}],"requestMetadata":{"Messages":"x"},"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{"Name":{"type":"string"}}}}}}]}}`,
	} {
		req, rep, err := codecOf(d).DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if req.Native == nil || slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool { return l.Kind == dragoman.Dropped }) {
			t.Errorf("%s: %v", body, rep.Losses)
		}
	}
}
