package native_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/crosstest"
)

// Clients that ignore case, as Go's encoding/json does, must not find a call in passed-through bytes
// that nothing on our side could see.
func TestResponseWithCaseVariantFieldIsReencoded(t *testing.T) {
	for _, tc := range []struct {
		d    dragoman.Dialect
		body string
	}{
		{dialectname.OpenAIResponses, `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi"}]}],"Output":[{"type":"function_call","call_id":"c","name":"evil","arguments":"{}"}]}`},
		{dialectname.OpenAIResponses, `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"web_search_call","id":"w","status":"completed","Type":"function_call","call_id":"c","name":"evil","arguments":"{}"}]}`},
		{dialectname.Anthropic, `{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"hi"}],"Content":[{"type":"tool_use","id":"c","name":"evil","input":{}}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`},
		{dialectname.Anthropic, `{"id":"m","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"hi"}],"Stop_Reason":"evil","stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`},
		{dialectname.Gemini, `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"Candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"evil","args":{}}}]},"finishReason":"STOP"}]}`},
		{dialectname.Gemini, `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}],"Parts":[{"functionCall":{"name":"evil","args":{}}}]},"finishReason":"STOP"}]}`},
		{"cohere.chat", `{"id":"x","message":{"role":"assistant","content":[{"type":"text","text":"hi"}],"Tool_Calls":[{"id":"c","type":"function","function":{"name":"evil","arguments":"{}"}}]},"finish_reason":"COMPLETE"}`},
		{dialectname.Ollama, `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hi","Tool_Calls":[{"function":{"name":"evil","arguments":{}}}]},"done":true}`},
		{dialectname.Ollama, `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hi"},"Message":{"role":"assistant","tool_calls":[{"function":{"name":"evil","arguments":{}}}]},"done":true}`},
		{dialectname.Bedrock, `{"output":{"message":{"role":"assistant","content":[{"text":"hi"}],"Content":[{"toolUse":{"toolUseId":"c","name":"evil","input":{}}}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`},
		{dialectname.Bedrock, `{"output":{"message":{"role":"assistant","content":[{"text":"hi"}]}},"Output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"evil","input":{}}}]}},"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`},
	} {
		c := crosstest.CodecOf(tc.d)
		resp, rep, err := c.DecodeResponse([]byte(tc.body), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", tc.body, err)
			continue
		}
		if len(rep.Losses) == 0 {
			t.Errorf("nothing is reported for %s", tc.body)
		}
		for _, rebuild := range []bool{false, true} {
			enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{Rebuild: rebuild})
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(enc.Body, []byte("evil")) {
				t.Errorf("rebuild %v: %s\nis passed through as %s", rebuild, tc.body, enc.Body)
			}
		}
	}
}

func TestAmbiguousLegacyFunctionCallIsReencoded(t *testing.T) {
	for _, call := range []string{
		`{"name":"safe","arguments":"{}","Name":"evil","Arguments":"{\"x\":1}"}`,
		`{"name":"safe","arguments":"{}","ARGUMENTS":"evil"}`,
		`{"name":"safe","arguments":"{}","name":"evil"}`,
	} {
		body := `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"function_call":` + call + `},"finish_reason":"function_call"}]}`
		resp, rep, err := crosstest.CodecOf(dialectname.OpenAIChat).DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		calls := resp.ToolCalls()
		if len(calls) != 1 || calls[0].Problem == nil || calls[0].Problem.Code != codes.ProblemDuplicateKey {
			t.Errorf("%s is read as %+v", call, calls)
		}
		if resp.Native != nil || resp.Output[0].Native != nil || len(rep.Losses) == 0 {
			t.Errorf("%s keeps its native form, reporting %v", call, rep.Losses)
		}
	}
}

// Clients run a call whatever its type, unless the type marks it as run by the provider.
func TestOnlyBedrockServerToolsAreNotCalls(t *testing.T) {
	for typ, hosted := range map[string]bool{
		`"server_tool_use"`: true, `"tool_use"`: false, `"Server_Tool_Use"`: false, `""`: false, `0`: false, `null`: false, `{}`: false,
	} {
		body := `{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","type":` + typ + `,"name":"f","input":{"a":1}}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`
		resp, _, err := crosstest.CodecOf(dialectname.Bedrock).DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if (len(resp.ToolCalls()) == 0) != hosted {
			t.Errorf("type %s: calls %v", typ, resp.ToolCalls())
		}
	}
}

// A request in the server's own dialect must not mean something else to a server that ignores case,
// as Ollama does: at no depth, neither passed through nor re-encoded.
func TestRequestWithCaseVariantFieldIsReencoded(t *testing.T) {
	tool := func(s string) string { return `{"type":"function","function":` + s + `}` }
	for _, tc := range []struct {
		d    dragoman.Dialect
		body string
	}{
		{dialectname.Ollama, `{"model":"m","messages":[{"role":"user","content":"safe"}],"Messages":[{"role":"user","content":"evil"}]}`},
		{dialectname.Ollama, `{"model":"m","Model":"evil","messages":[{"role":"user","content":"safe"}]}`},
		{dialectname.Ollama, `{"model":"m","messages":[{"role":"user","content":"safe"}],"Tools":[` + tool(`{"name":"evil","parameters":{}}`) + `]}`},
		{dialectname.Ollama, `{"model":"m","messages":[{"role":"user","content":"safe","Content":"evil"}]}`},
		{dialectname.Ollama, `{"model":"m","messages":[{"role":"user","content":"safe"}],"tools":[` + tool(`{"name":"f","Name":"evil","parameters":{}}`) + `]}`},
		{dialectname.Ollama, `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{},"Arguments":{"a":"evil"}}}]},{"role":"tool","tool_name":"f","content":"safe","CONTENT":"evil"}]}`},
		{dialectname.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"safe"}],"Messages":[{"role":"user","content":"evil"}]}`},
		{dialectname.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"safe","Text":"evil"}]}]}`},
		{dialectname.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"safe"},{"role":"assistant","function_call":{"name":"f","arguments":"{}","Name":"evil"}}]}`},
		{dialectname.OpenAIChat, `{"model":"m","messages":[{"role":"user","content":"safe"}],"functions":[{"name":"f","Name":"evil","parameters":{}}]}`},
		{dialectname.Anthropic, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"safe"}],"Messages":[{"role":"user","content":"evil"}]}`},
		{dialectname.Anthropic, `{"model":"m","max_tokens":5,"System":"evil","messages":[{"role":"user","content":[{"type":"text","text":"safe"}]}]}`},
		{dialectname.Anthropic, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"safe","TEXT":"evil"}],"Content":"evil"}]}]}`},
		{dialectname.Gemini, `{"contents":[{"role":"user","parts":[{"text":"safe"}]}],"Contents":[{"role":"user","parts":[{"text":"evil"}]}]}`},
		{dialectname.Gemini, `{"contents":[{"role":"user","parts":[{"text":"safe"}]}],"System_Instruction":{"parts":[{"text":"evil"}]}}`},
		{dialectname.Gemini, `{"contents":[{"role":"user","parts":[{"text":"safe"}],"Parts":[{"text":"evil"}]}],"systeminstruction":{"parts":[{"text":"evil"}]}}`},
		{dialectname.Gemini, `{"contents":[{"role":"model","parts":[{"function_call":{"name":"f","args":{},"Args":{"a":"evil"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"safe"},"Response":{"output":"evil"}}}]}]}`},
		{dialectname.Bedrock, `{"messages":[{"role":"user","content":[{"text":"safe"}]}],"Messages":[{"role":"user","content":[{"text":"evil"}]}]}`},
		{dialectname.Bedrock, `{"messages":[{"role":"user","content":[{"text":"safe","Text":"evil"}]}],"toolconfig":{"tools":[{"toolSpec":{"name":"evil","inputSchema":{"json":{}}}}]}}`},
		{dialectname.OpenAIResponses, `{"model":"m","input":"safe","Input":"evil"}`},
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"safe","Text":"evil"}],"Content":"evil"}],"Instructions":"evil"}`},
		{dialectname.OpenAIResponses, `{"model":"m","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}","Name":"evil"},{"type":"function_call_output","call_id":"c","output":"safe","OUTPUT":"evil"}]}`},
	} {
		c := crosstest.CodecOf(tc.d)
		req, rep, err := c.DecodeRequest([]byte(tc.body), dialect.DecodeOptions{})
		if err != nil {
			t.Errorf("%s: %v", tc.body, err)
			continue
		}
		if !slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool {
			return l.Kind == dragoman.Dropped && l.Severity >= dragoman.Warn
		}) {
			t.Errorf("for %s, only %v is reported", tc.body, rep.Losses)
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
				t.Errorf("rebuild %v: %s\nis passed through as %s", rebuild, tc.body, enc.Body)
			}
		}
	}
}

// The client's own names, such as schema properties, are not compared.
func TestClientNamesMayDifferInCase(t *testing.T) {
	for d, body := range map[dragoman.Dialect]string{
		dialectname.Ollama:          `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"Name":1,"Content":2}}}]}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"Type":{"type":"string"}}}}}],"format":{"type":"object","properties":{"Model":{"type":"string"}}}}`,
		dialectname.OpenAIChat:      `{"model":"m","messages":[{"role":"user","content":"x"}],"metadata":{"Model":"x","User":"y"}}`,
		dialectname.OpenAIResponses: `{"model":"m","input":"x","metadata":{"Model":"x"},"tools":[{"type":"mcp","server_label":"l","headers":{"Name":"x","Type":"y"}}]}`,
		dialectname.Anthropic:       `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"Type":1,"Name":2}}]}]}`,
		dialectname.Gemini:          `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"labels":{"Contents":"x"},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{"Name":{"type":"string"}}}}]}]}`,
		dialectname.Bedrock:         `{"messages":[{"role":"user","content":[{"text":"x"}]}],"requestMetadata":{"Messages":"x"},"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{"Name":{"type":"string"}}}}}}]}}`,
	} {
		req, rep, err := crosstest.CodecOf(d).DecodeRequest([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if req.Native == nil || slices.ContainsFunc(rep.Losses, func(l dragoman.Loss) bool { return l.Kind == dragoman.Dropped }) {
			t.Errorf("%s: %v", body, rep.Losses)
		}
	}
}

// To our side, calls that share an id are either one call or calls with different ids. Clients must
// get the same.
func TestQuirkB11_ResponseWithSharedCallIDIsReencoded(t *testing.T) {
	for _, tc := range []struct {
		d          dragoman.Dialect
		head, tail string
		call       func(tool string) string
	}{
		{
			dialectname.OpenAIChat, `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[`, `]},"finish_reason":"tool_calls"}]}`,
			func(tool string) string {
				return `{"id":"same","type":"function","function":{"name":"` + tool + `","arguments":"{}"}}`
			},
		},
		{
			dialectname.Anthropic, `{"id":"m","type":"message","role":"assistant","model":"x","content":[`, `],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
			func(tool string) string { return `{"type":"tool_use","id":"same","name":"` + tool + `","input":{}}` },
		},
		{
			dialectname.OpenAIResponses, `{"id":"r","object":"response","created_at":1,"status":"completed","model":"m","output":[`, `]}`,
			func(tool string) string {
				return `{"type":"function_call","id":"` + tool + `","call_id":"same","name":"` + tool + `","arguments":"{}","status":"completed"}`
			},
		},
		{
			dialectname.Gemini, `{"candidates":[{"content":{"role":"model","parts":[`, `]},"finishReason":"STOP","index":0}],"modelVersion":"m","responseId":"r"}`,
			func(tool string) string { return `{"functionCall":{"id":"same","name":"` + tool + `","args":{}}}` },
		},
		{
			"cohere.chat", `{"id":"x","message":{"role":"assistant","tool_calls":[`, `]},"finish_reason":"TOOL_CALL"}`,
			func(tool string) string {
				return `{"id":"same","type":"function","function":{"name":"` + tool + `","arguments":"{}"}}`
			},
		},
		{
			dialectname.Ollama, `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":[`, `]},"done":true,"done_reason":"stop"}`,
			func(tool string) string { return `{"id":"same","function":{"name":"` + tool + `","arguments":{}}}` },
		},
		{
			dialectname.Bedrock, `{"output":{"message":{"role":"assistant","content":[`, `]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`,
			func(tool string) string { return `{"toolUse":{"toolUseId":"same","name":"` + tool + `","input":{}}}` },
		},
	} {
		for _, second := range []string{"first", "second"} {
			c, body := crosstest.CodecOf(tc.d), tc.head+tc.call("first")+","+tc.call(second)+tc.tail
			resp, _, err := c.DecodeResponse([]byte(body), dialect.DecodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(enc.Body, []byte(`"same"`)); n != 1 {
				t.Errorf("%s: the id occurs %d times: %s", tc.d, n, enc.Body)
			}
			again, _, err := c.DecodeResponse(enc.Body, dialect.DecodeOptions{})
			if err != nil || len(again.ToolCalls()) != len(resp.ToolCalls()) || again.Native == nil {
				t.Errorf("%s: %s decodes to other calls than %s (%v)", tc.d, enc.Body, body, err)
			}
		}
		body := tc.head + tc.call("first") + tc.tail
		if resp, _, err := crosstest.CodecOf(tc.d).DecodeResponse([]byte(body), dialect.DecodeOptions{}); err != nil || resp.Native == nil {
			t.Errorf("%s: %s does not pass through (%v)", tc.d, body, err)
		}
	}
}

func TestUnreadableCallIsReencoded(t *testing.T) {
	c := crosstest.CodecOf(dialectname.OpenAIChat)
	body := `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":0,"function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":"tool_calls"}]}`
	resp, _, err := c.DecodeResponse([]byte(body), dialect.DecodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if p := resp.ToolCalls()[0].Problem; p == nil || p.Code != codes.ProblemUnreadable {
		t.Errorf("the call has the problem %v", p)
	}
	if resp.Native != nil || resp.Output[0].Native != nil {
		t.Error("its native form is kept")
	}
	enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
	if err != nil || bytes.Contains(enc.Body, []byte(`"{\"a\":1}"`)) {
		t.Errorf("a client would run %s (%v)", enc.Body, err)
	}
}

// Most clients take the first choice in the list, whatever its index.
func TestUnorderedChoicesAreReencoded(t *testing.T) {
	c := crosstest.CodecOf(dialectname.OpenAIChat)
	for _, indexes := range [][2]string{{"1", "0"}, {"0", "0"}, {"0", "1"}} {
		body := `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":` + indexes[0] + `,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"},{"index":` + indexes[1] + `,"message":{"role":"assistant","content":"b"},"finish_reason":"stop"}]}`
		resp, rep, err := c.DecodeResponse([]byte(body), dialect.DecodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		inOrder := indexes == [2]string{"0", "1"}
		if (resp.Native != nil) != inOrder || (len(rep.Losses) == 0) != inOrder {
			t.Errorf("%v: native %v, reported %v", indexes, resp.Native, rep.Losses)
		}
		enc, err := c.EncodeResponse(resp, dialect.EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		first := []byte(`"content":"` + resp.Text() + `"`)
		if i := bytes.Index(enc.Body, first); i < 0 || i > bytes.Index(enc.Body, []byte(`"index":1`)) {
			t.Errorf("%v: %q is not the first choice of %s", indexes, resp.Text(), enc.Body)
		}
	}
}

// A request whose conversation is in a field with the wrong case is not a request without messages:
// strict servers refuse it, servers that ignore case read it.
func TestRequestWithMiscasedConversationIsRefused(t *testing.T) {
	for _, tc := range []struct {
		d             dragoman.Dialect
		body, pointer string
	}{
		{dialectname.OpenAIChat, `{"model":"m","Messages":[{"role":"user","content":"hi"}]}`, "/Messages"},
		{dialectname.OpenAIResponses, `{"model":"m","INPUT":"hi"}`, "/INPUT"},
		{dialectname.Anthropic, `{"model":"m","max_tokens":5,"mEssages":[{"role":"user","content":"hi"}]}`, "/mEssages"},
		{dialectname.Gemini, `{"Contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, "/Contents"},
		{dialectname.Ollama, `{"model":"m","Messages":[{"role":"user","content":"hi"}]}`, "/Messages"},
		{dialectname.Bedrock, `{"Messages":[{"role":"user","content":[{"text":"hi"}]}]}`, "/Messages"},
	} {
		_, _, err := crosstest.CodecOf(tc.d).DecodeRequest([]byte(tc.body), dialect.DecodeOptions{})
		var de *dragoman.DecodeError
		if !errors.As(err, &de) || de.Pointer != tc.pointer {
			t.Errorf("%s: %v, want an error at %s", tc.body, err, tc.pointer)
		}
	}
}
