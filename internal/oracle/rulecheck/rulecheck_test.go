package rulecheck

import (
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// sound holds valid requests, each with calls, results and text after them.
var sound = map[dragoman.Dialect]string{
	dialectname.OpenAIChat: `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"n\":1e400}"}},
			{"id":"b","type":"custom","custom":{"name":"g","input":"x"}}]},
		{"role":"tool","tool_call_id":"b","content":"1"},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"2"}]},
		{"role":"user","content":[{"type":"text","text":"more"}]}],
		"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto"}`,
	dialectname.OpenAIResponses: `{"model":"m","input":[{"role":"user","content":"q"},{"type":"reasoning","id":"rs_1","summary":[]},
		{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"custom_tool_call","call_id":"b","name":"g","input":""},
		{"role":"user","content":[{"type":"input_text","text":"hurry"}]},
		{"type":"custom_tool_call_output","call_id":"b","output":"1"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"2"}]},
		{"type":"message","role":"assistant","content":[{"type":"output_text","text":"done"}]}]}`,
	dialectname.Anthropic: `{"model":"m","max_tokens":1,"thinking":{"type":"enabled"},"messages":[{"role":"user","content":"q"},
		{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},{"type":"tool_use","id":"a","name":"f","input":{}},{"type":"tool_use","id":"b","name":"f","input":{}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"b"},{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"more"}]}],
		"tools":[{"name":"f","input_schema":{"type":"object"}}]}`,
	dialectname.Gemini: `{"contents":[{"role":"user","parts":[{"text":"q"}]},
		{"role":"model","parts":[{"functionCall":{"id":"a","name":"f","args":{}},"thoughtSignature":"c2k="},{"functionCall":{"id":"b","name":"f"}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":1}}},{"functionResponse":{"id":"b","name":"f","response":{"error":"no"}}},{"text":"more"}]}]}`,
	dialectname.Ollama: `{"model":"m","messages":[{"role":"user","content":"q"},
		{"role":"assistant","content":"","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}},{"function":{"name":"g","arguments":{}}}]},
		{"role":"tool","tool_name":"f","tool_call_id":"a","content":"1"},{"role":"tool","tool_name":"g","content":"2"},{"role":"user","content":"more"}]}`,
	dialectname.Bedrock: `{"additionalModelRequestFields":{"thinking":{"type":"enabled"}},"messages":[{"role":"user","content":[{"text":"q"},{"document":{"name":"a b","format":"pdf","source":{"bytes":""}}}]},
		{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},{"toolUse":{"toolUseId":"a","name":"f","input":{}}}]},
		{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"json":{}}],"status":"error"}},{"text":"more"}]}],
		"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{}}}}]}}`,
}

func TestValidRequestsBreakNoRule(t *testing.T) {
	for d, body := range sound {
		for _, v := range Request(d, []byte(body), Options{}) {
			t.Errorf("%s: %s", d, v)
		}
	}
}

func TestBrokenRulesAreFound(t *testing.T) {
	for _, tc := range []struct {
		dialect  dragoman.Dialect
		old, new string // the change that breaks the valid request
		want     string
	}{
		{dialectname.OpenAIChat, `"tool_call_id":"b"`, `"tool_call_id":"c"`, "not a call of the previous turn"},
		{dialectname.OpenAIChat, `{"role":"tool","tool_call_id":"b","content":"1"},`, ``, `"b" has no result`},
		{dialectname.OpenAIChat, `"tool_call_id":"b"`, `"tool_call_id":"a"`, `duplicate result of "a"`},
		{dialectname.OpenAIChat, `{"role":"tool","tool_call_id":"b","content":"1"},`, `{"role":"user","content":"x"},{"role":"tool","tool_call_id":"b","content":"1"},`, "without pending calls"},
		{dialectname.OpenAIChat, `"id":"b"`, `"id":"` + strings.Repeat("x", 41) + `"`, "at most 40"},
		{dialectname.OpenAIChat, `"id":"b"`, `"id":"a"`, "duplicate call id"},
		{dialectname.OpenAIChat, `"name":"f","arguments"`, `"name":"f.g","arguments"`, "does not match"},
		{dialectname.OpenAIChat, `"{\"n\":1e400}"`, `"{"`, "are not valid JSON"},
		{dialectname.OpenAIChat, `[{"type":"text","text":"2"}]`, `[{"type":"image_url"}]`, `role "tool"`},
		{dialectname.OpenAIChat, `[{"type":"text","text":"more"}]`, `[]`, "an empty list"},
		{dialectname.OpenAIChat, `"role":"system"`, `"role":"critic"`, "role"},
		{dialectname.OpenAIChat, `,
		"tools":[{"type":"function","function":{"name":"f"}}]`, ``, "a choice without tools"},

		{dialectname.OpenAIResponses, `{"type":"custom_tool_call_output","call_id":"b","output":"1"},`, ``, `"b" has no output`},
		{dialectname.OpenAIResponses, `{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},`, ``, "not an earlier call"},
		{dialectname.OpenAIResponses, `"type":"custom_tool_call_output"`, `"type":"function_call_output"`, "for a custom_tool_call"},
		{dialectname.OpenAIResponses, `"call_id":"b","name"`, `"call_id":"a","name"`, "duplicate call"},
		{dialectname.OpenAIResponses, `"id":"rs_1"`, `"id":"x"`, "does not begin with"},
		{dialectname.OpenAIResponses, `"output_text"`, `"input_text"`, "of role assistant"},
		{dialectname.OpenAIResponses, `{"type":"function_call","call_id":"a"`, `{"role":"user","content":"x"},{"type":"function_call","call_id":"a"`, "without the item that belongs to it"},
		{dialectname.OpenAIResponses, `"role":"assistant"`, `"role":"tool"`, "role"},

		{dialectname.Anthropic, `{"type":"tool_use","id":"a"`, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}},{"type":"tool_use","id":"a"`, `server tool call "s" without its result`},
		{dialectname.Anthropic, `{"type":"tool_result","tool_use_id":"b"},`, ``, `"b" has no result`},
		{dialectname.Anthropic, `{"type":"tool_result","tool_use_id":"b"},`, `{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"b"},`, "after other content"},
		{dialectname.Anthropic, `{"type":"tool_result","tool_use_id":"b"},`, `{"type":"tool_result","tool_use_id":"b"},{"type":"tool_result","tool_use_id":"b"},`, "duplicate result"},
		{dialectname.Anthropic, `"id":"b"`, `"id":"a.b"`, "does not match"},
		{dialectname.Anthropic, `"id":"b"`, `"id":"a"`, "duplicate call id"},
		{dialectname.Anthropic, `"input":{}},{"type":"tool_use"`, `"input":null},{"type":"tool_use"`, "want an object"},
		{dialectname.Anthropic, `"text":"more"`, `"text":" \n"`, "a blank text"},
		{dialectname.Anthropic, `"signature":"s"`, `"signature":""`, "without a signature"},
		{dialectname.Anthropic, `{"role":"user","content":"q"},`, ``, "first message is from the assistant"},
		{dialectname.Anthropic, `,
		"tools":[{"name":"f","input_schema":{"type":"object"}}]`, ``, "but no tools"},
		{dialectname.Anthropic, `"max_tokens":1,`, ``, "required"},
		{dialectname.Anthropic, `{"type":"text","text":"more"}]}`, `{"type":"text","text":"more"}]},{"role":"assistant","content":"x "}`, "white space"},
		{dialectname.Anthropic, `{"type":"text","text":"more"}]}`, `{"type":"text","text":"more"}]},{"role":"assistant","content":[]},{"role":"user","content":"x"}`, "without content"},
		{dialectname.Anthropic, `{"type":"text","text":"more"}]}`, `{"type":"text","text":"more"}]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]}`, "duplicate call id"},

		{dialectname.Anthropic, `"max_tokens":1,`, `"max_tokens":1,"tool_choice":{"type":"any"},`, "a forced call together with"},
		{dialectname.Anthropic, `{"type":"thinking","thinking":"","signature":"s"},`, ``, "no thinking before the calls"},
		{dialectname.Anthropic, `"name":"f","input_schema"`, `"input_schema"`, "without a name"},
		{dialectname.Anthropic, `{"type":"text","text":"more"}`, `{"type":"image","source":{"type":"url","url":"s3://b/k"}}`, "cannot be fetched"},
		{dialectname.Anthropic, `{"type":"text","text":"more"}`, `{"type":"image","source":{"type":"base64","media_type":"image/jpg","data":"aGk="}}`, "type"},
		{dialectname.Anthropic, `{"type":"text","text":"more"}`, `{"type":"document","source":{"type":"base64","media_type":"image/png","data":"aGk="}}`, "type"},
		{dialectname.Anthropic, `{"type":"text","text":"more"}`, `{"type":"document","source":{"type":"text","media_type":"text/html","data":"hi"}}`, "type"},
		{dialectname.OpenAIChat, `[{"type":"text","text":"more"}]`, `[{"type":"image_url","image_url":{"url":"gs://b/k"}}]`, "cannot be fetched"},
		{dialectname.OpenAIResponses, `{"type":"input_text","text":"hurry"}`, `{"type":"input_file","file_url":"https://generativelanguage.googleapis.com/v1beta/files/a"}`, "in the storage of Gemini"},
		{dialectname.OpenAIResponses, `{"type":"input_text","text":"2"}`, `{"type":"input_image","image_url":"s3://b/k"}`, "cannot be fetched"},
		{dialectname.Gemini, `{"text":"more"}`, `{"fileData":{"fileUri":"s3://b/k"}}`, "cannot be fetched"},
		{dialectname.Gemini, `"response":{"output":1}`, `"response":{"output":1},"parts":[{"inlineData":{"mimeType":"image/gif","data":""}}]`, "does not accept"},
		{dialectname.Gemini, `{"text":"more"}`, `{"inlineData":{"data":"aGk="}}`, "type"},
		{dialectname.Gemini, `{"text":"more"}`, `{"inlineData":{"mimeType":"image/svg+xml","data":"aGk="}}`, "type"},
		{dialectname.Gemini, `"response":{"output":1}`, `"response":{"output":1},"parts":[{"fileData":{"fileUri":"https://e/a.png"}}]`, "does not accept"},
		{dialectname.Bedrock, `{"toolResult":{"toolUseId":"a"`, `{"cachePoint":{"type":"default"}},{"toolResult":{"toolUseId":"a"`, "after other content"},
		{dialectname.Bedrock, `{"text":"more"}`, strings.Repeat(`{"image":{"format":"png","source":{"bytes":""}}},`, 21) + `{"text":"more"}`, "21 images"},
		{dialectname.Bedrock, `{"text":"more"}`, `{"image":{"format":"png","source":{"s3Location":{"uri":"https://e/a.png"}}}}`, "not an S3 location"},
		{dialectname.Bedrock, `"toolConfig":{`, `"toolConfig":{"toolChoice":{"any":{}},`, "a forced call together with"},
		{dialectname.Bedrock, `{"reasoningContent":{"reasoningText":{"text":"t","signature":"s"}}},`, ``, "no thinking before the calls"},

		{dialectname.Gemini, `{"functionResponse":{"id":"b","name":"f","response":{"error":"no"}}},`, ``, "no response directly after"},
		{dialectname.Gemini, `"id":"b","name":"f","response"`, `"id":"c","name":"f","response"`, "not a call of the previous turn"},
		{dialectname.Gemini, `"id":"b","name":"f","response"`, `"name":"f","response"`, "an id on one side only"},
		{dialectname.Gemini, `"thoughtSignature":"c2k="`, `"x":1`, "no thoughtSignature"},
		{dialectname.Gemini, `{"output":1}`, `[1]`, "want an object"},
		{dialectname.Gemini, `{"text":"more"}`, `{"text":""}`, "an empty text"},
		{dialectname.Gemini, `{"role":"user","parts":[{"text":"q"}]},`, ``, "first content is from the model"},
		{dialectname.Gemini, `{"role":"user","parts":[{"text":"q"}]},`, `{"role":"user","parts":[{"text":"q"}]},{"role":"user","parts":[{"text":"q"}]},`, "two consecutive"},
		{dialectname.Gemini, `{"functionResponse":{"id":"a"`, `{"text":"x"},{"functionResponse":{"id":"a"`, "after other content"},
		{dialectname.Gemini, `"id":"b","name":"f"}}`, `"id":"b","name":"9f"}}`, "does not match"},

		{dialectname.Ollama, `{"role":"tool","tool_name":"g","content":"2"},`, ``, `"g" has no result`},
		{dialectname.Ollama, `"tool_name":"f"`, `"tool_name":"g"`, "next pending call"},
		{dialectname.Ollama, `"tool_name":"g",`, ``, "without tool_name"},
		{dialectname.Ollama, `"content":"more"`, `"content":["more"]`, "want a string"},
		{dialectname.Ollama, `"name":"f","arguments":{}`, `"name":"f","arguments":"{}"`, "want an object"},
		{dialectname.Ollama, `"role":"user","content":"more"`, `"role":"developer","content":"more"`, "role"},

		{dialectname.Bedrock, `{"toolResult":{"toolUseId":"a"`, `{"text":"x"},{"toolResult":{"toolUseId":"a"`, "after other content"},
		{dialectname.Bedrock, `"toolResult":{"toolUseId":"a"`, `"toolResult":{"toolUseId":"b"`, "not a call of the previous turn"},
		{dialectname.Bedrock, `[{"json":{}}]`, `[]`, "without content"},
		{dialectname.Bedrock, `{"json":{}}]`, `{"json":[]}]`, "want an object"},
		{dialectname.Bedrock, `{"text":"more"}`, `{"text":" "}`, "a blank text"},
		{dialectname.Bedrock, `{"text":"q"},`, ``, "without text"},
		{dialectname.Bedrock, `"name":"a b"`, `"name":"a  b.pdf"`, "does not match"},
		{dialectname.Bedrock, `"signature":"s"`, `"x":"s"`, "without a signature"},
		{dialectname.Bedrock, `"status":"error"`, `"status":"incomplete"`, "status"},
		{dialectname.Bedrock, `,
		"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{}}}}]}`, ``, "but no tools"},
	} {
		body := strings.Replace(sound[tc.dialect], tc.old, tc.new, 1)
		if body == sound[tc.dialect] {
			t.Errorf("%s: %q is not in the request", tc.dialect, tc.old)
			continue
		}
		found := Request(tc.dialect, []byte(body), Options{})
		ok := false
		for _, v := range found {
			ok = ok || strings.Contains(v.Rule, tc.want)
		}
		if !ok {
			t.Errorf("%s, %s instead of %s: found %v, want %q", tc.dialect, tc.new, tc.old, found, tc.want)
		}
	}
}

func TestInvalidRequestIsViolation(t *testing.T) {
	for _, body := range []string{``, `[]`, `{}{}`, `{`} {
		for d := range sound {
			if Request(d, []byte(body), Options{}) == nil {
				t.Errorf("%s: %q breaks no rule", d, body)
			}
		}
	}
	if Request("nobody's", []byte(`{}`), Options{}) == nil {
		t.Error("an unknown dialect is accepted")
	}
}
