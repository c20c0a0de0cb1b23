package strictupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// The parts that most requests below have in common.
const (
	chatHello      = `"messages":[{"role":"user","content":"Hello"}]`
	chatTool       = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
	responsesHello = `"input":"Hello"`
	claudeHello    = `"max_tokens":4096,"messages":[{"role":"user","content":"Hello"}]`
	claudeTool     = `"tools":[{"name":"f","input_schema":{"type":"object"}}]`
	geminiHello    = `"contents":[{"role":"user","parts":[{"text":"Hello"}]}]`
	ollamaHello    = `"messages":[{"role":"user","content":"Hello"}]`
	bedrockHello   = `"messages":[{"role":"user","content":[{"text":"Hello"}]}]`
	bedrockTool    = `"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]`
)

// Schemas that some vendors refuse.
var (
	siblings     = `{"type":"object","$defs":{"d":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/d","description":"x"}},"required":["a"],"additionalProperties":false}`
	lookAround   = `{"type":"object","properties":{"a":{"type":"string","pattern":"^(?!x)"}},"required":["a"],"additionalProperties":false}`
	manyOptional = `{"type":"object","properties":{` + numbered(13, `{"type":"string"}`) + `},"additionalProperties":false}`
	manyUnions   = `{"type":"object","properties":{` + numbered(9, `{"type":["string","null"]}`) + `},"required":["p0","p1","p2","p3","p4","p5","p6","p7","p8"],"additionalProperties":false}`
)

// numbered returns n properties of one schema.
func numbered(n int, schema string) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"p%d":%s`, i, schema))
	}
	return strings.Join(all, ",")
}

func TestJudge(t *testing.T) {
	const (
		chat, responses = dialectname.OpenAIChat, dialectname.OpenAIResponses
		claude, gemini  = dialectname.Anthropic, dialectname.Gemini
		ollama, bedrock = dialectname.Ollama, dialectname.Bedrock
	)
	pendingClaude := func(thinking string) string {
		return `"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[` + thinking +
			`{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"}]}],` + claudeTool
	}
	chatMedia := func(typ string) string {
		value := map[string]string{"image_url": `{"url":"data:image/png;base64,AAAA"}`, "input_audio": `{"data":"AAAA","format":"wav"}`}[typ]
		return `"messages":[{"role":"user","content":[{"type":"text","text":"q"},{"type":"` + typ + `","` + typ + `":` + value + `}]}]`
	}
	pendingChat := func(field string) string {
		return `"messages":[{"role":"user","content":"q"},{"role":"assistant",` + field + `"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"1"}]`
	}
	pendingGemini := func(signature string) string {
		return `"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}` + signature +
			`}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":1}}}]}]`
	}
	for _, tc := range []struct {
		dialect dragoman.Dialect
		model   string
		body    string
		want    string // part of the message; empty: the request is accepted
	}{
		// OpenAI Chat: unknown fields.
		{chat, "gpt-4.1", chatHello, ""},
		{chat, "gpt-4.1", chatHello + `,"top_k":40`, "Unrecognized request argument supplied: top_k"},
		{chat, "gpt-4o-2024-08-06", `"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a","reasoning_content":"r"},{"role":"user","content":"q"}]`, "Unknown parameter: 'messages[1].reasoning_content'."},
		{chat, "gpt-4.1", chatHello + `,"tools":[{"type":"function","function":{"name":"f","cache_control":{}}}]`, "Unknown parameter: 'tools[0].function.cache_control'."},
		{chat, "llama-9b-instruct", chatHello + `,"top_k":40,"min_p":0.1`, ""},
		// Compatible servers.
		{chat, "deepseek-v4-pro", `"messages":[{"role":"developer","content":"q"}]`, "unknown variant `developer`"},
		{chat, "deepseek-v4-pro", chatHello + `,"tools":[{"type":"custom","custom":{"name":"f"}}]`, "unknown variant `custom`"},
		{chat, "deepseek-chat", chatHello + `,"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]`, "missing field `name`"},
		{chat, "deepseek-chat", chatHello + `,"tools":[{"type":"function","function":{"name":"f"}}]`, "Invalid schema for function 'f'"},
		{chat, "kimi-k2.6", chatHello + `,"tools":[{"type":"function","function":{"name":"f"}}]`, "Invalid schema for function 'f'"},
		{chat, "kimi-k2.6", chatHello + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}}}]`, "items must be an object"},
		{chat, "kimi-k2.6", chatHello + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"string"}]}}}}}]`, "'prefixItems' is not permitted"},
		{chat, "kimi-k2.6", chatHello + `,"top_p":0.5`, "invalid top_p: only 0.95 is allowed"},
		{chat, "kimi-k2.6", chatHello + `,"top_p":0.95,"temperature":1,"presence_penalty":0`, ""},
		{chat, "kimi-k3", chatHello + `,"n":2`, "invalid n: only 1 is allowed"},
		{chat, "kimi-k2.6", chatHello + `,"thinking":{"type":"disabled"},"temperature":1`, "invalid temperature: only 0.6 is allowed"},
		{chat, "kimi-k2.6", chatHello + `,"thinking":{"type":"disabled"},"temperature":0.6`, ""},
		{chat, "grok-4-fast", chatHello + `,"reasoning_effort":"low"`, "does not support parameter reasoningEffort"},
		{chat, "grok-4.6", chatHello + `,"reasoning_effort":"none"`, "`reasoning_effort` value `none`"},
		{chat, "grok-4.6", chatHello + `,"reasoning_effort":"low"`, ""},
		{chat, "grok-4.6", chatHello + `,"stop":"x"`, "does not support parameter stop"},
		{chat, "grok-4-fast-non-reasoning", chatHello + `,"stop":"x"`, ""},
		{chat, "glm-5", chatHello + `,` + chatTool + `,"tool_choice":"required"`, "Tool choice must be auto"},
		{chat, "glm-5", chatHello + `,` + chatTool + `,"tool_choice":"auto"`, ""},
		{chat, "glm-5.3", chatHello + `,"thinking":{"type":"disabled"}`, "thinking cannot be disabled"},
		{chat, "glm-5.3", chatHello + `,"reasoning_effort":"medium"`, "please use low, high, or max"},
		{chat, "minimax-m3", chatHello + `,"temperature":0`, "temperature must be in (0, 1]"},
		{chat, "muse-spark-1.1", chatHello + `,` + chatTool + `,"tool_choice":"required"`, "tool_choice must be auto"},
		{chat, "muse-spark-1.1", chatHello + `,"temperature":1,"top_p":1`, "cannot both be specified"},
		{chat, "qwen3-32b", chatHello, "enable_thinking must be set to false for non-streaming calls"},
		{chat, "qwen3-32b", chatHello + `,"enable_thinking":false`, ""},
		{chat, "qwen3-32b", chatHello + `,"stream":true`, ""},
		{chat, "gpt-4o-search-preview", chatHello + `,"temperature":0.5`, "Model incompatible request argument supplied: temperature"},
		{responses, "gpt-5-pro", responsesHello + `,"reasoning":{"effort":"medium"}`, "Supported values are: 'high'"},
		{responses, "gpt-5.4-pro", responsesHello + `,"reasoning":{"effort":"low"}`, "Supported values are: 'medium', 'high', 'xhigh'"},
		{claude, "claude-opus-4-7", claudeHello + `,"top_p":1`, "`top_p` is deprecated"},
		{ollama, "llava", ollamaHello + `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`, "does not support tools"},
		{bedrock, "us.deepseek.r1-v1:0", bedrockHello + `,"toolConfig":{` + bedrockTool + `}`, "doesn't support tool use"},
		{bedrock, "meta.llama3-3-70b-instruct-v1:0", `"messages":[{"role":"user","content":[{"text":"a"},{"cachePoint":{"type":"default"}}]}]`, "explicit prompt caching"},
		// OpenAI Chat: reasoning.
		{chat, "gpt-4.1", chatHello + `,"reasoning_effort":"low"`, "Unsupported parameter: 'reasoning_effort' is not supported with this model."},
		{chat, "gpt-4o-mini", chatHello + `,"reasoning_effort":"none"`, "Unsupported parameter: 'reasoning_effort'"},
		{chat, "gpt-4.1", chatHello + `,"temperature":0.2,"max_tokens":9,"stop":"x"`, ""},
		{chat, "o3", chatHello + `,"reasoning_effort":"high"`, ""},
		{chat, "o3", chatHello + `,"reasoning_effort":"minimal"`, "Unsupported value: 'minimal'"},
		{chat, "o4-mini", chatHello + `,"max_tokens":9`, "Use 'max_completion_tokens' instead."},
		{chat, "o4-mini", chatHello + `,"temperature":0.2`, "'temperature' does not support 0.2"},
		{chat, "o4-mini", chatHello + `,"temperature":1,"max_completion_tokens":99`, ""},
		{chat, "o3-mini", chatHello + `,"parallel_tool_calls":false,` + chatTool, "'parallel_tool_calls'"},
		{chat, "gpt-5", chatHello + `,"parallel_tool_calls":false,` + chatTool, ""},
		{chat, "gpt-5-mini-2025-08-07", chatHello + `,"reasoning_effort":"none"`, "Unsupported value: 'none'"},
		{chat, "gpt-5", chatHello + `,"presence_penalty":0.5`, "'presence_penalty'"},
		{chat, "gpt-5", chatHello + `,"top_p":0.5`, "'top_p'"},
		{chat, "gpt-5.1", chatHello + `,"top_p":0.5`, ""},
		{chat, "gpt-5.1", chatHello + `,"top_p":0.5,"reasoning_effort":"low"`, "'top_p'"},
		{chat, "gpt-5.1", chatHello + `,"reasoning_effort":"xhigh"`, "Unsupported value: 'xhigh'"},
		{chat, "gpt-5.4", chatHello + `,"reasoning_effort":"low",` + chatTool, "Please use /v1/responses"},
		{chat, "gpt-5.4", chatHello + `,` + chatTool, ""},
		{chat, "gpt-5.5", chatHello + `,` + chatTool, "Please use /v1/responses"},
		{chat, "gpt-5.5", chatHello + `,"reasoning_effort":"none",` + chatTool, ""},
		{chat, "gpt-6-sol", chatHello + `,"reasoning_effort":"max"`, ""},
		// OpenAI Chat: the conversation.
		{chat, "gpt-4.1", `"messages":[{"role":"tool","tool_call_id":"a","content":"1"}]`, "/messages/0"},
		{chat, "llama-9b-instruct", `"messages":[]`, "/messages"},
		{chat, "gpt-4.1", chatHello + `,"stream_options":{"include_usage":true}`, "only allowed when 'stream' is enabled"},
		// Media that a model cannot read.
		{chat, "gpt-4o", chatMedia("image_url"), ""},
		{chat, "gpt-4", chatMedia("image_url"), "image_url is only supported by certain models"},
		{chat, "o3-mini", chatMedia("image_url"), "image_url is only supported by certain models"},
		{chat, "gpt-4.1", chatMedia("input_audio"), "input_audio is only supported by certain models"},
		{chat, "gpt-audio", chatMedia("input_audio"), ""},
		{chat, "deepseek-v4-pro", chatMedia("image_url"), "unknown variant `image_url`, expected `text`"},
		{chat, "llava", chatMedia("image_url"), ""},
		{responses, "o3-mini", `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]`, "not supported with this model"},
		{responses, "gpt-4o", `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]`, ""},
		{ollama, "llama3.2:3b", `"messages":[{"role":"user","content":"q","images":["AAAA"]}]`, "missing data required for image input"},
		{ollama, "llama3.2-vision", `"messages":[{"role":"user","content":"q","images":["AAAA"]}]`, ""},
		{bedrock, "us.amazon.nova-micro-v1:0", `"messages":[{"role":"user","content":[{"text":"q"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]}]`, "doesn't support the image"},
		{bedrock, "us.amazon.nova-lite-v1:0", `"messages":[{"role":"user","content":[{"text":"q"},{"image":{"format":"png","source":{"bytes":"AAAA"}}}]}]`, ""},
		{chat, "gpt-4.1", `"messages":[{"role":"user","content":[{"type":"document","text":"q"}]}]`, "Invalid value: 'document'"},
		// OpenAI models without functions, without schemas, and not on Chat.
		{chat, "gpt-5-search-api", chatHello + `,` + chatTool, "'tools' is not supported"},
		{chat, "gpt-5-chat-latest", chatHello + `,` + chatTool, "'tools' is not supported"},
		{chat, "gpt-4-turbo", chatHello + `,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}`, "'json_schema' is not supported"},
		{chat, "gpt-5-codex", chatHello, "only supported in v1/responses"},
		{responses, "gpt-5-codex", responsesHello, ""},
		// DeepSeek and Kimi.
		{chat, "deepseek-v4-pro", chatHello + `,"tool_choice":"required",` + chatTool, "Thinking mode does not support this tool_choice"},
		{chat, "deepseek-v4-pro", chatHello + `,"tool_choice":{"type":"function","function":{"name":"f"}},` + chatTool, "Thinking mode does not support this tool_choice"},
		{chat, "deepseek-v4-pro", chatHello + `,"thinking":{"type":"disabled"},"tool_choice":"required",` + chatTool, ""},
		{chat, "deepseek-chat", chatHello + `,"tool_choice":"required",` + chatTool, ""},
		{chat, "deepseek-v4-flash", pendingChat(""), "`reasoning_content` in the thinking mode must be passed back"},
		{chat, "deepseek-v4-flash", pendingChat(`"reasoning_content":"",`), ""},
		{chat, "deepseek-v4-flash", chatHello + `,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}`, "response_format type is unavailable"},
		{chat, "kimi-k2.6", chatHello + `,"tool_choice":"required",` + chatTool, "incompatible with thinking enabled"},
		{chat, "kimi-k2.6", chatHello + `,"thinking":{"type":"disabled"},"tool_choice":"required",` + chatTool, ""},
		{chat, "kimi-k2-thinking", chatHello + `,"thinking":{"type":"disabled"}`, "cannot be disabled"},
		{chat, "kimi-k2-thinking", pendingChat(""), "reasoning_content is missing in assistant tool call message at index 1"},
		{chat, "kimi-k2-thinking", pendingChat(`"reasoning_content":"t",`), ""},
		{chat, "kimi-k2-0905-preview", pendingChat(""), ""},
		{chat, "kimi-k2.6", chatHello + `,"tools":[{"type":"function","function":{"name":"f","parameters":` + siblings + `}}]`, "$ref cannot have keywords {'description'}"},
		// Schemas.
		{chat, "gpt-4.1", chatHello + `,"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":` + siblings + `}}]`, "$ref cannot have keywords {'description'}"},
		{chat, "gpt-4.1", chatHello + `,"tools":[{"type":"function","function":{"name":"f","parameters":` + siblings + `}}]`, ""},
		{chat, "gpt-4.1", chatHello + `,"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":` + lookAround + `}}]`, "look-around"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"tools":[{"name":"f","strict":true,"input_schema":` + lookAround + `}]`, "look-around"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"tools":[{"name":"f","strict":true,"input_schema":` + manyOptional + `}]`, ""},
		{claude, "claude-sonnet-4-5", claudeHello + `,"tools":[{"name":"f","strict":true,"input_schema":` + manyOptional + `},{"name":"g","strict":true,"input_schema":` + manyOptional + `}]`, "too many optional parameters (26)"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"tools":[{"name":"f","strict":true,"input_schema":` + manyUnions + `},{"name":"g","strict":true,"input_schema":` + manyUnions + `}]`, "too many parameters with union types (18"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"tools":[{"name":"f","input_schema":` + manyOptional + `},{"name":"g","input_schema":` + manyOptional + `}]`, ""},
		{gemini, "gemini-2.5-flash", geminiHello + `,"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","$defs":{"d":{}},"properties":{"a":{"$ref":"#/$defs/d","title":"t"}}}}]}]`, "$ref cannot have keywords {'title'}"},
		{gemini, "gemini-2.5-flash", geminiHello + `,"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":` + siblings + `}]}]`, ""},
		{gemini, "gemini-2.5-flash", geminiHello + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string","properties":{"b":{"type":"string"}}}}}}]}]`, "properties: only allowed for OBJECT type"},
		// Groq and Qwen.
		{chat, "openai/gpt-oss-120b", chatHello + `,"reasoning_effort":"low","response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}`, ""},
		{chat, "openai/gpt-oss-120b", chatHello + `,"stream":true,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}`, "cannot be combined with stream"},
		{chat, "openai/gpt-oss-20b", chatHello + `,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}},` + chatTool, "cannot be combined with tool"},
		{chat, "llama-3.3-70b-versatile", chatHello + `,"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}`, "does not support response format"},
		{chat, "openai/gpt-oss-20b", chatHello + `,"reasoning_format":"parsed"`, "reasoning_format"},
		{chat, "openai/gpt-oss-20b", chatHello + `,"reasoning_effort":"none"`, "reasoning_effort"},
		{chat, "openai/gpt-oss-20b", chatHello + `,"n":2`, "'n'"},
		{chat, "openai/gpt-oss-20b", chatHello + `,"logprobs":true`, "logprobs"},
		{chat, "qwen-plus", `"messages":[{"role":"user","content":[{"type":"text","text":"q"},{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA"}}]}]`, "item type in content: file"},
		{chat, "qwen-plus", chatHello, ""},
		// Mistral and xAI.
		{chat, "mistral-large-latest", chatHello + `,"random_seed":1`, ""},
		{chat, "mistral-large-latest", chatHello + `,"seed":1`, "Extra inputs are not permitted"},
		{chat, "mistral-large-latest", chatHello + `,"stream":true,"stream_options":{"include_usage":true}`, "Extra inputs are not permitted"},
		{chat, "mistral-large-latest", chatHello + `,"max_completion_tokens":9`, "Extra inputs are not permitted"},
		{chat, "codestral-latest", `"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"1"}]`, "Tool call id was call_1"},
		{chat, "mistral-small-latest", `"messages":[{"role":"user","content":"q"},{"role":"assistant","tool_calls":[{"id":"abcdefghi","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"abcdefghi","content":"1"},{"role":"user","content":"q"}]`, "Unexpected role 'user' after role 'tool'"},
		{chat, "grok-4-fast", chatHello + `,"presence_penalty":0`, "does not support parameter presencePenalty"},

		// OpenAI Responses.
		{responses, "gpt-4.1", responsesHello + `,"store":false`, ""},
		{responses, "gpt-4.1", responsesHello + `,"reasoning":{"effort":"low"}`, "Unsupported parameter: 'reasoning.effort'"},
		{responses, "gpt-4.1", responsesHello + `,"reasoning":{"summary":"auto"}`, "Unsupported parameter: 'reasoning.summary'"},
		{responses, "gpt-4.1", responsesHello + `,"include":["reasoning.encrypted_content"]`, "Encrypted content is not supported"},
		{responses, "gpt-4.1", `"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"role":"user","content":"hi"}]`, "Reasoning input items can only be provided to a reasoning"},
		{responses, "gpt-5", `"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"},{"role":"assistant","content":"ok"},{"role":"user","content":"hi"}]`, ""},
		{responses, "gpt-4.1", responsesHello + `,"text":{"verbosity":"low"}`, "Supported values are: 'medium'"},
		{responses, "gpt-5", responsesHello + `,"reasoning":{"effort":"low","summary":"auto"},"include":["reasoning.encrypted_content"]`, ""},
		{responses, "gpt-5", responsesHello + `,"reasoning":{"effort":"default"}`, "Unsupported value: 'default'"},
		{responses, "gpt-5", responsesHello + `,"temperature":0`, "'temperature'"},
		{responses, "gpt-5.6-sol", responsesHello + `,"temperature":0,"reasoning":{"effort":"none"}`, ""},
		{responses, "gpt-5", responsesHello + `,"top_k":1`, "Unknown parameter: 'top_k'."},
		{responses, "gpt-5", responsesHello + `,"stop":["x"]`, "Unknown parameter: 'stop'."},
		{responses, "gpt-5", responsesHello + `,"max_output_tokens":5`, "Expected a value >= 16"},
		{responses, "gpt-5", `"input":[{"type":"function_call","role":"assistant","call_id":"a","name":"f","arguments":"{}"}]`, "Unknown parameter: 'input[0].role'."},
		{responses, "gpt-5", `"input":[{"role":"user","content":"q"},{"type":"function_call_output","call_id":"a","output":"1"}]`, "not an earlier call"},
		{responses, "gpt-5", responsesHello + `,"previous_response_id":"resp_1","conversation":"conv_1"`, "Mutually exclusive"},

		{responses, "gpt-5", `"input":[{"type":"tool_result","call_id":"a"}]`, "Invalid value: 'tool_result'"},
		{responses, "gpt-5", `"input":[{"role":"user","content":[{"type":"text","text":"q"}]}]`, "Invalid value: 'text'"},
		{responses, "gpt-5", `"input":[{"role":"user","content":"q"},{"type":"web_search_call","id":"ws_1","status":"completed"}]`, ""},

		// Anthropic: unknown fields.
		{claude, "claude-sonnet-4-5", claudeHello, ""},
		{claude, "claude-sonnet-4-5", claudeHello + `,"seed":1`, "seed: Extra inputs are not permitted"},
		{claude, "claude-sonnet-4-5", `"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"q","index":0}]}]`, "messages.0.content.0.index: Extra inputs"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"context_management":{}`, "context_management: Extra inputs"},
		{claude, "claude-sonnet-4-5", `"max_tokens":9,"messages":[{"role":"user","content":[{"type":"input_text","text":"q"}]}]`, "messages.0.content.0: Input tag 'input_text' found using 'type'"},
		{claude, "claude-sonnet-4-20250514", claudeHello + `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object","additionalProperties":false}}}`, "does not support output format"},
		// Anthropic: thinking.
		{claude, "claude-sonnet-4-5", claudeHello + `,"thinking":{"type":"enabled","budget_tokens":1024}`, ""},
		{claude, "claude-sonnet-4-5", claudeHello + `,"thinking":{"type":"enabled","budget_tokens":4096}`, "`max_tokens` must be greater"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"thinking":{"type":"enabled","budget_tokens":500}`, "greater than or equal to 1024"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"thinking":{"type":"adaptive"}`, "adaptive thinking is not supported"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"output_config":{"effort":"low"}`, "does not support the effort parameter"},
		{claude, "claude-opus-4-1", claudeHello + `,"output_config":{"effort":"low"}`, "does not support the effort parameter"},
		{claude, "claude-opus-4-5-20251101", claudeHello + `,"output_config":{"effort":"low"}`, ""},
		{claude, "claude-3-5-haiku-20241022", claudeHello + `,"thinking":{"type":"enabled","budget_tokens":1024}`, "does not support thinking"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"thinking":{"type":"enabled","budget_tokens":1024},"temperature":0.5`, "`temperature` may only be set to 1"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"thinking":{"type":"enabled","budget_tokens":1024},"top_k":5`, "`top_k` must be unset"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"thinking":{"type":"enabled","budget_tokens":1024},"tool_choice":{"type":"any"},` + claudeTool, "when tool_choice forces tool use"},
		{claude, "claude-sonnet-4-5", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":1024},` + pendingClaude(""), "no thinking before the calls"},
		{claude, "claude-sonnet-4-5", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":1024},` + pendingClaude(`{"type":"thinking","thinking":"t"},`), "without a signature"},
		{claude, "claude-sonnet-4-5", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":1024},` + pendingClaude(`{"type":"thinking","thinking":"t","signature":"s"},`), ""},
		{claude, "claude-opus-4-7", claudeHello + `,"thinking":{"type":"enabled","budget_tokens":1024}`, `"thinking.type.enabled" is not supported`},
		{claude, "claude-opus-4-7", claudeHello + `,"thinking":{"type":"disabled"},"output_config":{"effort":"max"}`, ""},
		{claude, "claude-opus-5", claudeHello + `,"thinking":{"type":"disabled"},"output_config":{"effort":"max"}`, "cannot be disabled"},
		{claude, "claude-opus-5-5", claudeHello + `,"thinking":{"type":"disabled"}`, `"thinking.type.disabled" is not supported`},
		{claude, "claude-opus-5-5", claudeHello + `,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`, ""},
		{claude, "claude-opus-5-5", claudeHello + `,"tool_choice":{"type":"tool","name":"f"},` + claudeTool, "forced tool use"},
		{claude, "claude-opus-5", claudeHello + `,"tool_choice":{"type":"tool","name":"f"},` + claudeTool, ""},
		// Anthropic: sampling and prefill.
		{claude, "claude-opus-4-7", claudeHello + `,"temperature":0.5`, "`temperature` is deprecated"},
		{claude, "claude-opus-4-7", claudeHello + `,"temperature":1`, ""},
		{claude, "claude-opus-5-5", claudeHello + `,"top_k":5`, "`top_k` is deprecated"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"temperature":0.5,"top_p":0.5`, "cannot both be specified"},
		{claude, "claude-sonnet-4-20250514", claudeHello + `,"temperature":0.5,"top_p":0.5`, ""},
		{claude, "claude-sonnet-4-6", `"max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]`, "assistant message prefill"},
		{claude, "claude-sonnet-4-5", `"max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]`, ""},

		// Gemini.
		{gemini, "gemini-3-flash-preview", geminiHello, ""},
		{gemini, "gemini-3-flash-preview", geminiHello + `,"parallel_tool_calls":true`, `Unknown name "parallel_tool_calls": Cannot find field.`},
		{gemini, "gemini-2.5-flash", geminiHello + `,"system_instruction":{"parts":[{"text":"s"}]}`, ""},
		{
			gemini, "gemini-2.5-flash", geminiHello + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string","const":"x"}}}}]}]`,
			`Unknown name "const" at 'tools[0].functionDeclarations[0].parameters.properties.a'`,
		},
		{gemini, "gemini-2.5-flash", geminiHello + `,"tools":[{"functionDeclarations":[{"name":"f","strict":true}]}]`, `Unknown name "strict"`},
		{gemini, "gemini-2.5-flash", geminiHello + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"low"}}`, "Thinking level is not supported"},
		{gemini, "gemini-2.5-pro", geminiHello + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}`, "only works in thinking mode"},
		{gemini, "gemini-2.5-flash", geminiHello + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":99999}}`, "Please choose a value between 1 and 24576"},
		{gemini, "gemini-2.5-flash", geminiHello + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":-1}}`, ""},
		{gemini, "gemini-2.0-flash", geminiHello + `,"generationConfig":{"thinkingConfig":{"includeThoughts":true}}`, "Thinking is not supported"},
		{gemini, "gemini-3.7-flash", geminiHello + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"MINIMAL"}}`, "Thinking level MINIMAL"},
		{gemini, "gemini-3.5-flash", geminiHello + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"minimal"}}`, ""},
		{gemini, "gemini-3.5-flash", geminiHello + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"low","thinkingBudget":100}}`, "only one of"},
		{gemini, "gemini-3.5-flash", geminiHello + `,"generationConfig":{"presencePenalty":0.5}`, "Penalty is not enabled"},
		{gemini, "gemini-2.5-flash", geminiHello + `,"generationConfig":{"responseMimeType":"application/json"},"tools":[{"functionDeclarations":[{"name":"f"}]}]`, "is unsupported"},
		{gemini, "gemini-3.5-flash", pendingGemini(""), "missing a thought_signature"},
		{gemini, "gemini-3.5-flash", pendingGemini(`,"thoughtSignature":"c2ln"`), ""},
		{gemini, "gemini-2.5-flash", pendingGemini(""), ""},
		{gemini, "gemini-3.5-flash", pendingGemini("")[:len(pendingGemini(""))-1] + `,{"role":"model","parts":[{"text":"done"}]},{"role":"user","parts":[{"text":"next"}]}]`, ""},
		{gemini, "gemini-3.5-flash", `"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"text":"a"}]}]`, "end with a user role"},

		{gemini, "gemini-2.5-flash", `"contents":[{"role":"user","parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"model","parts":[{"functionCall":{"name":"g"}},{"text":""}]},
			{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":1}}}]},{"role":"user","parts":[{"functionResponse":{"name":"g","response":{"output":1}}}]}]`, ""},

		// Ollama.
		{ollama, "llama3.2", `"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]},{"role":"tool","content":"1"}],"tool_choice":"auto"`, ""},
		{ollama, "llama3.2", ollamaHello + `,"unknown":1`, ""},
		{ollama, "llama3.2", ollamaHello + `,"think":true`, `"llama3.2" does not support thinking`},
		{ollama, "llama3.2:3b", ollamaHello + `,"think":"low"`, `think value "low" is not supported`},
		{ollama, "llama3.2", ollamaHello + `,"think":false`, ""},
		{ollama, "qwen3:8b", ollamaHello + `,"think":"low"`, ""},
		{ollama, "qwen3:8b", ollamaHello + `,"think":"xhigh"`, "invalid think value"},
		{ollama, "qwen3:8b", ollamaHello + `,"think":5`, "think must be"},
		{ollama, "gemma3", ollamaHello + `,` + chatTool, "does not support tools"},

		// Bedrock.
		{bedrock, "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", bedrockHello, ""},
		{bedrock, "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", bedrockHello + `,"model":"m"`, "Unexpected field model"},
		{bedrock, "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", bedrockHello + `,"additionalModelRequestFields":{"seed":1}`, "extraneous key [seed]"},
		{bedrock, "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", bedrockHello + `,"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":8000}}`, "`max_tokens` must be greater"},
		{bedrock, "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", bedrockHello + `,"inferenceConfig":{"maxTokens":9000,"temperature":0.5},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":8000}}`, "`temperature` may only"},
		{bedrock, "anthropic.claude-opus-4-7-v1:0", bedrockHello + `,"inferenceConfig":{"topP":0.5}`, "`top_p` is deprecated"},
		{bedrock, "anthropic.claude-opus-5-5", bedrockHello + `,"toolConfig":{` + bedrockTool + `,"toolChoice":{"any":{}}}`, "forced tool use"},
		{bedrock, "anthropic.claude-sonnet-4-5", bedrockHello + `,"outputConfig":{"effort":"low"}`, "does not support the effort parameter"},
		{bedrock, "us.amazon.nova-2-lite-v1:0", bedrockHello + `,"inferenceConfig":{"maxTokens":9},"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"low"}}`, ""},
		{bedrock, "us.amazon.nova-2-lite-v1:0", bedrockHello + `,"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"max"}}`, "not one of low, medium, high"},
		{bedrock, "us.amazon.nova-2-lite-v1:0", bedrockHello + `,"inferenceConfig":{"maxTokens":9},"additionalModelRequestFields":{"reasoningConfig":{"type":"enabled","maxReasoningEffort":"high"}}`, "maxTokens must be unset"},
		{bedrock, "us.amazon.nova-2-lite-v1:0", bedrockHello + `,"additionalModelRequestFields":{"thinking":{"type":"adaptive"}}`, "extraneous key [thinking]"},
		{bedrock, "us.amazon.nova-pro-v1:0", bedrockHello + `,"additionalModelRequestFields":{"reasoningConfig":{"type":"disabled"}}`, "support reasoning"},
		{bedrock, "us.amazon.nova-pro-v1:0", bedrockHello + `,"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object","properties":{},"additionalProperties":false}}}}]}`, "additionalProperties"},
		{bedrock, "openai.gpt-oss-20b-1:0", bedrockHello + `,"additionalModelRequestFields":{"reasoning_effort":"low"}`, ""},
		{bedrock, "openai.gpt-oss-20b-1:0", bedrockHello + `,"additionalModelRequestFields":{"reasoning_effort":"none"}`, "unknown variant `none`"},
		{bedrock, "openai.gpt-oss-20b-1:0", bedrockHello + `,"additionalModelRequestFields":{"reasoningConfig":{}}`, "unknown variant `reasoningConfig`"},
		{bedrock, "amazon.nova-pro-v1:0", bedrockHello + `,"additionalModelRequestFields":{"inferenceConfig":{"topK":1}}`, ""},
	} {
		body := `{` + tc.body + `}`
		if tc.dialect != gemini && tc.dialect != bedrock {
			body = `{"model":"` + tc.model + `",` + tc.body + `}`
		}
		if !json.Valid([]byte(body)) {
			t.Fatalf("not valid JSON: %s", body)
		}
		r := Judge(tc.dialect, tc.model, http.Header{}, []byte(body))
		switch {
		case r == nil && tc.want != "":
			t.Errorf("%s %s: accepted, want %q: %s", tc.dialect, tc.model, tc.want, body)
		case r != nil && (tc.want == "" || !strings.Contains(r.Message, tc.want)):
			t.Errorf("%s %s: %q, want %q: %s", tc.dialect, tc.model, r.Message, tc.want, body)
		}
	}
}

func TestBetaFieldsNeedTheirHeader(t *testing.T) {
	body := []byte(`{"model":"claude-sonnet-4-5",` + claudeHello + `,"context_management":{"edits":[]}}`)
	if r := Judge(dialectname.Anthropic, "claude-sonnet-4-5", http.Header{"Anthropic-Beta": {"a,context-management-2025-06-27"}}, body); r != nil {
		t.Error(r)
	}
}

func TestModelNameExcludesSettings(t *testing.T) {
	body := []byte(`{"model":"gpt-4.1?fault=429",` + chatHello + `,"reasoning_effort":"low"}`)
	if r := Judge(dialectname.OpenAIChat, "gpt-4.1?fault=429", nil, body); r == nil {
		t.Error("accepted")
	}
}

func TestRefusalBodiesAreTheVendors(t *testing.T) {
	for _, tc := range []struct {
		refusal Refusal
		want    string
	}{
		{Refusal{Dialect: dialectname.OpenAIChat, Message: "m", Code: "unsupported_parameter", Param: "p"}, `{"error":{"code":"unsupported_parameter","message":"m","param":"p","type":"invalid_request_error"}}`},
		{Refusal{Dialect: dialectname.OpenAIResponses, Message: "m"}, `{"error":{"code":null,"message":"m","param":null,"type":"invalid_request_error"}}`},
		{Refusal{Dialect: dialectname.OpenAIChat, Message: "Extra inputs are not permitted", loc: []any{"body", "seed"}}, `{"detail":[{"input":null,"loc":["body","seed"],"msg":"Extra inputs are not permitted","type":"extra_forbidden"}]}`},
		{Refusal{Dialect: dialectname.Anthropic, Message: "m"}, `{"error":{"message":"m","type":"invalid_request_error"},"request_id":"req_strict","type":"error"}`},
		{Refusal{Dialect: dialectname.Gemini, Status: 400, Message: "m"}, `{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}`},
		{Refusal{Dialect: dialectname.Ollama, Message: "m"}, `{"error":"m"}`},
		{Refusal{Dialect: dialectname.Bedrock, Message: "m"}, `{"__type":"ValidationException","message":"m"}`},
	} {
		if got := string(tc.refusal.Body()); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.refusal.Dialect, got, tc.want)
		}
	}
}

// Each rule for schemas and limits is refused with the error text of the vendor.
func TestJudgeSchemasAndLimits(t *testing.T) {
	const (
		chat, responses = dialectname.OpenAIChat, dialectname.OpenAIResponses
		claude, gemini  = dialectname.Anthropic, dialectname.Gemini
		ollama, bedrock = dialectname.Ollama, dialectname.Bedrock
	)
	chatSchema := func(schema, strict string) string {
		return chatHello + `,"tools":[{"type":"function","function":{"name":"f","strict":` + strict + `,"parameters":` + schema + `}}]`
	}
	responsesSchema := func(schema, strict string) string {
		return responsesHello + `,"tools":[{"type":"function","name":"f","strict":` + strict + `,"parameters":` + schema + `}]`
	}
	claudeSchema := func(schema, strict string) string {
		return claudeHello + `,"tools":[{"name":"f","strict":` + strict + `,"input_schema":` + schema + `}]`
	}
	geminiParameters := func(schema string) string {
		return geminiHello + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":` + schema + `}]}]`
	}
	const open = `{"type":"object","properties":{"a":{"type":"string"}}}`
	const closed = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`
	object := func(property string) string {
		return `{"type":"object","properties":{"a":` + property + `},"required":["a"],"additionalProperties":false}`
	}
	cached := func(n int) string {
		block := `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
		return `"max_tokens":9,"messages":[{"role":"user","content":[` + strings.Repeat(block+",", n-1) + block + `]}]`
	}
	for _, tc := range []struct {
		dialect     dragoman.Dialect
		model, body string
		want        string // part of the message; empty: the request is accepted
	}{
		{chat, "gpt-4.1", chatSchema(open, "false"), ""},
		{chat, "gpt-4.1", chatSchema(`{"type":"string"}`, "false"), "schema must be a JSON Schema of 'type: \"object\"'"},
		{chat, "gpt-4.1", chatSchema(object(`{"type":"array"}`), "false"), "array schema missing items"},
		{chat, "gpt-4.1", chatSchema(closed, "true"), ""},
		{chat, "gpt-4.1", chatSchema(open, "true"), "'additionalProperties' is required to be supplied and to be false"},
		{chat, "gpt-4.1", chatSchema(strings.Replace(closed, `["a"]`, `[]`, 1), "true"), "Missing 'a'"},
		{chat, "gpt-4.1", chatSchema(object(`{"oneOf":[{"type":"string"}]}`), "true"), "'oneOf' is not permitted"},
		{chat, "gpt-4.1", chatSchema(object(`{"anyOf":[{"type":"object"}]}`), "true"), "In context=().properties.a.anyOf.0"},
		{chat, "gpt-4.1", chatSchema(object(`{"type":"string","format":"uri"}`), "true"), "'uri' is not a valid format"},
		{chat, "gpt-4.1", chatHello + `,"response_format":{"type":"json_schema","json_schema":{"name":"r","strict":true,"schema":` + open + `}}`, "Invalid schema for response_format 'r'"},
		{chat, "gpt-4.1", chatHello + `,"temperature":2.5`, "Invalid 'temperature'"},
		{chat, "gpt-4.1", chatHello + `,"stop":["a","b","c","d","e"]`, "Invalid 'stop': array too long"},
		{chat, "gpt-4.1", chatHello + `,"metadata":{"a":1}`, "Invalid 'metadata'"},
		{chat, "gpt-4.1", chatHello + `,"metadata":{"a":"` + strings.Repeat("x", 513) + `"}`, "Invalid 'metadata'"},
		{chat, "gpt-4.1", chatHello + `,"top_logprobs":2`, "only allowed when 'logprobs' is enabled"},
		{chat, "gpt-4.1", chatHello + `,"safety_identifier":"` + strings.Repeat("x", 129) + `"`, "Invalid 'safety_identifier'"},
		{responses, "gpt-4.1", responsesSchema(closed, "true"), ""},
		{responses, "gpt-4.1", responsesSchema(open, "true"), "'additionalProperties' is required"},
		{responses, "gpt-4.1", responsesHello + `,"text":{"format":{"type":"json_schema","name":"r","strict":true,"schema":` + open + `}}`, "Invalid schema for response_format 'r'"},
		{claude, "claude-sonnet-4-5", claudeSchema(open, "false"), ""},
		{claude, "claude-sonnet-4-5", claudeSchema(`{"properties":{}}`, "false"), "input_schema.type: Field required"},
		{claude, "claude-sonnet-4-5", claudeSchema(open, "true"), "'additionalProperties' is required"},
		{claude, "claude-sonnet-4-5", claudeSchema(object(`{"type":"integer","minimum":1}`), "true"), "'minimum' is not permitted"},
		{claude, "claude-sonnet-4-5", claudeSchema(object(`{"type":"string","format":"uri"}`), "true"), ""},
		{claude, "claude-sonnet-4-5", claudeHello + `,"output_config":{"format":{"type":"json_schema","schema":` + open + `}}`, "output_config.format.schema"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"temperature":1.5`, "temperature: range: 0..1"},
		{claude, "claude-sonnet-4-5", cached(4), ""},
		{claude, "claude-sonnet-4-5", cached(5), "A maximum of 4 blocks with cache_control"},
		{claude, "claude-sonnet-4-5", `"max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":null}]}]`, "cache_control: Input should be an object"},
		{claude, "claude-sonnet-4-5", claudeHello + `,` + claudeTool + `,"tool_choice":{"type":"none","disable_parallel_tool_use":true}`, "disable_parallel_tool_use"},
		{claude, "claude-sonnet-4-5", claudeHello + `,"tools":[{"name":"f","input_schema":{"type":"object"},"defer_loading":true,"cache_control":{"type":"ephemeral"}}]`, "defer_loading"},
		{gemini, "gemini-2.5-flash", geminiParameters(open), ""},
		{gemini, "gemini-2.5-flash", geminiParameters(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`), "cannot start list"},
		{gemini, "gemini-2.5-flash", geminiParameters(`{"type":"object","properties":{"a":{"type":"string","enum":[""]}}}`), "enum: cannot be empty"},
		{gemini, "gemini-2.5-flash", geminiParameters(`{"type":"object","properties":{"a":{"type":"ARRAY"}}}`), "missing items"},
		{gemini, "gemini-2.5-flash", geminiParameters(`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`), "property is not defined: b"},
		{gemini, "gemini-2.5-flash", geminiHello + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["f"]}}`, "allowed_function_names"},
		{gemini, "gemini-2.5-flash", geminiHello + `,"cachedContent":"cachedContents/1","systemInstruction":{"parts":[{"text":"x"}]}`, "CachedContent can not be used"},
		{gemini, "gemini-2.5-flash", geminiHello + `,"generationConfig":{"temperature":2.5}`, "temperature value out of range"},
		{ollama, "qwen3", ollamaHello + `,"options":{"num_ctx":"1"}`, `option "num_ctx" must be of type number`},
		{ollama, "qwen3", `"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]`, "arguments into an object"},
		{bedrock, "anthropic.claude-3-haiku", bedrockHello + `,"toolConfig":{"tools":[{"toolSpec":{"name":"f","description":"","inputSchema":{"json":{"type":"object"}}}}]}`, "toolSpec.description"},
		{bedrock, "anthropic.claude-3-haiku", bedrockHello + `,"inferenceConfig":{"temperature":1.5}`, "inferenceConfig.temperature"},
		{bedrock, "anthropic.claude-3-haiku", `"messages":[{"role":"user","content":[{"text":"a"}` + strings.Repeat(`,{"cachePoint":{"type":"default"}}`, 5) + `]}]`, "at most 4 cachePoint"},
	} {
		r := Judge(tc.dialect, tc.model, http.Header{}, []byte("{"+tc.body+"}"))
		switch {
		case tc.want == "" && r != nil:
			t.Errorf("%s, %s: refused: %s", tc.model, tc.body, r.Message)
		case tc.want != "" && (r == nil || !strings.Contains(r.Message, tc.want)):
			t.Errorf("%s, %s: got %v, want %q", tc.model, tc.body, r, tc.want)
		}
	}
}
