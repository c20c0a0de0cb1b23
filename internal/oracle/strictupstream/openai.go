package strictupstream

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// chatShape has the fields of OpenAI Chat Completions.
var chatShape = names(`audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata
	modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention
	reasoning_effort response_format safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools
	top_logprobs top_p user verbosity web_search_options`, map[string]*shape{
	"messages": union("role", map[string]*shape{
		"system": names("role content name", nil), "developer": names("role content name", nil),
		"user": names("role content name", map[string]*shape{"content": chatContent}), "tool": names("role content tool_call_id", nil), "function": names("role content name", nil),
		// The stream helpers of the vendor's SDK send parsed and parsed_arguments back.
		"assistant": names("role content refusal name audio tool_calls function_call annotations parsed", map[string]*shape{
			"tool_calls": names("id type function custom", map[string]*shape{"function": names("name arguments parsed_arguments", nil), "custom": names("name input", nil)}),
		}),
	}),
	"tools": names("type function custom", map[string]*shape{
		"function": names("name description parameters strict", nil), "custom": names("name description format", nil),
	}),
	"stream_options":  names("include_usage include_obfuscation", nil),
	"response_format": names("type json_schema", map[string]*shape{"json_schema": names("name description schema strict", nil)}),
})

// responsesContent has the parts of a message.
var responsesContent = closedUnion("type", nil, "input_text input_image input_file input_audio output_text refusal")

// chatContent has the parts of a message.
var chatContent = closedUnion("type", nil, "text image_url input_audio file refusal")

// responsesShape has the fields of OpenAI Responses, with those that the vendor's clients
// add: client_metadata of Codex, parsed_arguments of the SDK.
var responsesShape = names(`access_programs background client_metadata context_management conversation include input instructions max_output_tokens
	max_tool_calls metadata model moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
	prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools
	top_logprobs top_p truncation user`, map[string]*shape{
	"reasoning": names("effort summary context mode generate_summary", nil),
	"text":      names("format verbosity", nil),
	"input": closedUnion("type", map[string]*shape{
		"":                        names("role content phase id status type", map[string]*shape{"content": responsesContent}),
		"message":                 names("type role content phase id status", map[string]*shape{"content": responsesContent}),
		"function_call":           names("type id call_id name arguments namespace status caller async parsed_arguments", nil),
		"function_call_output":    names("type id call_id name output namespace status caller", nil),
		"custom_tool_call":        names("type id call_id name input namespace status caller async", nil),
		"custom_tool_call_output": names("type id call_id name output caller status", nil),
		"reasoning":               names("type id summary content encrypted_content status", nil),
		"item_reference":          names("type id", nil),
	}, `tool_search_call tool_search_output additional_tools configuration_update compaction compaction_trigger program program_output web_search_call
		file_search_call code_interpreter_call image_generation_call computer_call computer_call_output local_shell_call local_shell_call_output
		shell_call shell_call_output apply_patch_call apply_patch_call_output mcp_list_tools mcp_call mcp_approval_request mcp_approval_response agent_message multi_agent_call multi_agent_call_output`),
	"tools": union("type", map[string]*shape{
		"function": names("type name description parameters strict defer_loading async allowed_callers output_schema", nil),
		"custom":   names("type name description format defer_loading async allowed_callers", nil),
	}),
})

// mistralShape has the fields of Mistral's Chat, whose schema is closed. Newer models take
// reasoning_effort.
var mistralShape = names(`frequency_penalty max_tokens messages metadata model n parallel_tool_calls prediction presence_penalty prompt_mode
	random_seed reasoning_effort response_format safe_prompt stop stream temperature tool_choice tools top_p`, map[string]*shape{
	"messages": union("role", map[string]*shape{
		"system": names("role content", nil), "user": names("role content", nil), "tool": names("role content tool_call_id name", nil),
		"assistant": names("role content tool_calls prefix", map[string]*shape{
			"tool_calls": names("id type index function", map[string]*shape{"function": names("name arguments", nil)}),
		}),
	}),
	"tools": names("type function", map[string]*shape{"function": names("name description parameters strict", nil)}),
})

// openAIModel describes the parameters that an OpenAI model accepts.
type openAIModel struct {
	// efforts are the accepted efforts; nil means that the model does not reason.
	efforts []string
	// reasons says whether it reasons when no effort is set.
	reasons bool
	// modern models refuse max_tokens on Chat, penalties, logit_bias and stop.
	modern bool
	// noParallel models refuse parallel_tool_calls.
	noParallel bool
	// noTools models have no function calls. responsesOnly models are not served on Chat.
	// noSchema models accept no output schema.
	noTools, responsesOnly, noSchema bool
	// toolsOrReasoning models accept no tools on Chat while they reason.
	toolsOrReasoning bool
}

var (
	gptName = regexp.MustCompile(`^gpt-(\d+)(?:\.(\d+))?(o?)(?:-|$)`)
	oName   = regexp.MustCompile(`^o(\d)(?:-|$)`)
)

var (
	withoutTools   = regexp.MustCompile(`-search-api|^gpt-5-chat-latest|^o1-(mini|preview)`)
	onResponses    = regexp.MustCompile(`^gpt-5.*-(codex|pro)|-deep-research|^o[13]-pro`)
	withoutSchemas = regexp.MustCompile(`^(gpt-3\.5|gpt-4(-turbo|-\d{4}|$)|gpt-4o-2024-05-13|gpt-audio|o1-(mini|preview))`)
)

// openAIModelOf returns the facts about an OpenAI model; nil for other names.
func openAIModelOf(name string) *openAIModel {
	m := openAIVersion(name)
	if m != nil {
		m.noTools, m.responsesOnly, m.noSchema = withoutTools.MatchString(name), onResponses.MatchString(name), withoutSchemas.MatchString(name)
	}
	return m
}

// openAIVersion returns the facts that follow from the version of an OpenAI model; nil for
// other names.
func openAIVersion(name string) *openAIModel {
	words := func(s string) []string { return strings.Fields(s) }
	if oName.MatchString(name) {
		return &openAIModel{efforts: words("low medium high"), reasons: true, modern: true, noParallel: true}
	}
	if strings.HasPrefix(name, "chatgpt-4o") {
		return &openAIModel{}
	}
	m := gptName.FindStringSubmatch(name)
	if m == nil {
		return nil
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	version := major*100 + minor
	switch {
	case major < 5:
		return &openAIModel{}
	case strings.Contains(name, "-chat-latest"):
		return &openAIModel{efforts: words("medium"), reasons: true, modern: true}
	case strings.HasPrefix(name, "gpt-5-pro"):
		return &openAIModel{efforts: words("high"), reasons: true, modern: true}
	case strings.Contains(name, "-pro"):
		return &openAIModel{efforts: words("medium high xhigh"), reasons: true, modern: true}
	case strings.Contains(name, "-codex"):
		return &openAIModel{efforts: words("low medium high xhigh"), reasons: true, modern: true}
	case version == 500:
		return &openAIModel{efforts: words("minimal low medium high"), reasons: true, modern: true}
	case version == 501:
		return &openAIModel{efforts: words("none low medium high"), modern: true}
	case version < 504:
		return &openAIModel{efforts: words("none low medium high xhigh"), modern: true}
	case version == 504:
		return &openAIModel{efforts: words("none low medium high xhigh"), modern: true, toolsOrReasoning: true}
	case version == 505:
		return &openAIModel{efforts: words("none low medium high xhigh"), reasons: true, modern: true, toolsOrReasoning: true}
	default:
		return &openAIModel{efforts: words("none low medium high xhigh max"), reasons: true, modern: true, toolsOrReasoning: true}
	}
}

var mistralNames = []string{"mistral", "ministral", "codestral", "devstral", "magistral", "pixtral", "open-mistral"}

func isMistral(name string) bool {
	return slices.ContainsFunc(mistralNames, func(f string) bool { return strings.HasPrefix(name, f+"-") })
}

func (j *judge) chat(req map[string]any) *Refusal {
	switch m := openAIModelOf(j.model); {
	case isMistral(j.model):
		return j.mistral(req)
	case strings.HasPrefix(j.model, "grok-"):
		return j.grok(req)
	case strings.HasPrefix(j.model, "glm-"):
		return j.glm(req)
	case strings.HasPrefix(strings.ToLower(j.model), "minimax-"):
		return j.miniMax(req)
	case strings.HasPrefix(j.model, "muse-"):
		return j.muse(req)
	case isGroq(j.model):
		return j.groq(req)
	case strings.HasPrefix(j.model, "qwen"), strings.HasPrefix(j.model, "qwq"):
		return j.qwen(req)
	case strings.HasPrefix(j.model, "deepseek-"):
		return j.deepSeek(req)
	case strings.HasPrefix(j.model, "kimi-"):
		return j.kimi(req)
	case m != nil:
		return j.openAIChat(req, m)
	default:
		return nil // a compatible server, which ignores what it does not know
	}
}

func (j *judge) openAIChat(req map[string]any, m *openAIModel) *Refusal {
	if at := chatShape.unknown(req, false); len(at) == 1 {
		return j.bad("", "", "Unrecognized request argument supplied: %s", at[0])
	} else if at != nil {
		return j.bad("unknown_parameter", brackets(at), "Unknown parameter: '%s'.", brackets(at))
	}
	if at, tag := chatShape.unknownTag(req, nil); at != nil {
		return j.bad("invalid_value", brackets(at), "Invalid value: '%s'. Supported values are: 'text', 'image_url', 'input_audio', 'refusal', 'audio', and 'file'.", tag)
	}
	if r := j.openAILimits(req); r != nil {
		return r
	}
	if m.noTools {
		for _, key := range []string{"tools", "tool_choice", "parallel_tool_calls"} {
			if set(req, key) {
				return j.unsupported(key)
			}
		}
	}
	if strings.Contains(j.model, "-search-preview") {
		for _, key := range []string{"temperature", "top_p", "presence_penalty", "frequency_penalty", "n"} {
			if set(req, key) {
				return j.bad("", "", "Model incompatible request argument supplied: %s", key)
			}
		}
	}
	if m.responsesOnly {
		r := j.bad("", "model", "This model is only supported in v1/responses and not in v1/chat/completions.")
		r.Status = http.StatusNotFound
		return r
	}
	if m.noSchema && str(obj(req, "response_format"), "type") == "json_schema" {
		return j.bad("", "response_format", "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.")
	}
	var functions []map[string]any
	for _, t := range objects(req, "tools") {
		functions = append(functions, obj(t, "function"))
	}
	if r := j.openAISchemas(functions, obj(obj(req, "response_format"), "json_schema")); r != nil {
		return r
	}
	if set(req, "top_logprobs") && req["logprobs"] != true {
		return j.bad("", "top_logprobs", "The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.")
	}
	effort, _ := req["reasoning_effort"].(string)
	if r := j.effort(m, "reasoning_effort", effort); r != nil {
		return r
	}
	if m.modern {
		if set(req, "max_tokens") {
			return j.bad("unsupported_parameter", "max_tokens", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
		}
		for _, key := range []string{"presence_penalty", "frequency_penalty", "logit_bias", "stop"} {
			if n, isNumber := number(req, key); set(req, key) && (!isNumber || n != 0) {
				return j.unsupported(key)
			}
		}
	}
	if m.noParallel && set(req, "parallel_tool_calls") {
		return j.unsupported("parallel_tool_calls")
	}
	reasons := m.reasoning(effort)
	if reasons && m.toolsOrReasoning && len(list(req, "tools")) > 0 {
		return j.bad("", "reasoning_effort", "Function tools with reasoning_effort are not supported for %s in /v1/chat/completions. Please use /v1/responses instead, or set reasoning_effort to 'none'.", j.model)
	}
	if set(req, "stream_options") && req["stream"] != true {
		return j.bad("", "stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	return j.sampling(req, reasons)
}

// reasoning reports whether a model reasons at an effort; empty: none is set.
func (m *openAIModel) reasoning(effort string) bool {
	if effort == "" {
		return m.reasons
	}
	return effort != "none"
}

func (j *judge) unsupported(param string) *Refusal {
	return j.bad("unsupported_parameter", param, "Unsupported parameter: '%s' is not supported with this model.", param)
}

func (j *judge) effort(m *openAIModel, param, effort string) *Refusal {
	switch {
	case effort == "":
		return nil
	case m.efforts == nil:
		return j.unsupported(param)
	case !slices.Contains(m.efforts, effort):
		return j.bad("unsupported_value", param, "Unsupported value: '%s' is not supported with the '%s' model. Supported values are: '%s'.", effort, j.model, strings.Join(m.efforts, "', '"))
	}
	return nil
}

// sampling checks the parameters that a model refuses while it reasons.
func (j *judge) sampling(req map[string]any, reasons bool) *Refusal {
	if !reasons {
		return nil
	}
	if n, ok := number(req, "temperature"); ok && n != 1 {
		return j.bad("unsupported_value", "temperature", "Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", n)
	}
	for _, key := range []string{"top_p", "logprobs", "top_logprobs"} {
		if n, isNumber := number(req, key); set(req, key) && req[key] != false && (!isNumber || key == "top_p" && n != 1 || key == "top_logprobs" && n != 0) {
			return j.unsupported(key)
		}
	}
	return nil
}

func (j *judge) mistral(req map[string]any) *Refusal {
	if at := mistralShape.unknown(req, false); at != nil {
		r := j.bad("", "", "Extra inputs are not permitted")
		r.Status, r.loc = http.StatusUnprocessableEntity, append([]any{"body"}, at...)
		return r
	}
	after := ""
	for _, m := range objects(req, "messages") {
		if role := str(m, "role"); role == "user" && after == "tool" {
			return j.bad("", "", "Unexpected role 'user' after role 'tool'")
		}
		after = str(m, "role")
		for _, c := range objects(m, "tool_calls") {
			if id := str(c, "id"); !mistralID.MatchString(id) {
				return j.bad("", "", "Tool call id was %s but must be a-z, A-Z, 0-9, with a length of 9.", id)
			}
		}
	}
	return nil
}

var mistralID = regexp.MustCompile(`^[a-zA-Z0-9]{9}$`)

func (j *judge) responses(req map[string]any) *Refusal {
	m := openAIModelOf(j.model)
	if m == nil {
		return nil
	}
	if at := responsesShape.unknown(req, false); at != nil {
		return j.bad("unknown_parameter", brackets(at), "Unknown parameter: '%s'.", brackets(at))
	}
	if at, tag := responsesShape.unknownTag(req, nil); at != nil {
		return j.bad("invalid_value", brackets(at), "Invalid value: '%s'.", tag)
	}
	if r := j.openAILimits(req); r != nil {
		return r
	}
	if m.noSchema && str(obj(obj(req, "text"), "format"), "type") == "json_schema" {
		return j.bad("", "text.format", "Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model.")
	}
	var functions []map[string]any
	for _, t := range objects(req, "tools") {
		if str(t, "type") == "function" {
			functions = append(functions, t)
		}
	}
	if r := j.openAISchemas(functions, obj(obj(req, "text"), "format")); r != nil {
		return r
	}
	reasoning := obj(req, "reasoning")
	if m.efforts == nil {
		for _, key := range []string{"effort", "summary", "generate_summary", "context", "mode"} {
			if set(reasoning, key) {
				return j.unsupported("reasoning." + key)
			}
		}
		if slices.Contains(list(req, "include"), any("reasoning.encrypted_content")) {
			return j.bad("", "include", "Encrypted content is not supported with this model.")
		}
		if slices.ContainsFunc(objects(req, "input"), func(item map[string]any) bool { return str(item, "type") == "reasoning" }) {
			return j.bad("", "input", "Reasoning input items can only be provided to a reasoning or computer use model. Remove reasoning items from your input and try again.")
		}
		if v := str(obj(req, "text"), "verbosity"); v != "" && v != "medium" {
			return j.bad("unsupported_value", "text.verbosity", "Unsupported value: '%s' is not supported with the '%s' model. Supported values are: 'medium'.", v, j.model)
		}
	}
	if r := j.effort(m, "reasoning.effort", str(reasoning, "effort")); r != nil {
		return r
	}
	if n, ok := number(req, "max_output_tokens"); ok && n < 16 {
		return j.bad("integer_below_min_value", "max_output_tokens", "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %v instead.", n)
	}
	if set(req, "previous_response_id") && set(req, "conversation") {
		return j.bad("mutually_exclusive_parameters", "", "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.")
	}
	return j.sampling(req, m.reasoning(str(reasoning, "effort")))
}

// groqSchemas are the models on Groq that take a JSON Schema for their response.
var groqSchemas = []string{
	"openai/gpt-oss-", "meta-llama/llama-4-", "moonshotai/kimi-k2-instruct-0905",
}

// isGroq reports whether a name is one that Groq uses.
func isGroq(name string) bool {
	return groqTakesSchemas(name) || name == "llama-3.1-8b-instant" || name == "llama-3.3-70b-versatile"
}

func groqTakesSchemas(name string) bool {
	return slices.ContainsFunc(groqSchemas, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

func (j *judge) groq(req map[string]any) *Refusal {
	for _, key := range []string{"logprobs", "logit_bias", "top_logprobs"} {
		if set(req, key) {
			return j.bad("", key, "property '%s' is unsupported", key)
		}
	}
	if n, ok := number(req, "n"); ok && n != 1 {
		return j.bad("", "n", "'n' : number must be at most 1")
	}
	oss := strings.HasPrefix(j.model, "openai/gpt-oss-")
	if set(req, "reasoning_format") && oss {
		return j.bad("", "reasoning_format", "reasoning_format is not supported with this model")
	}
	if effort, _ := req["reasoning_effort"].(string); effort != "" && (!oss || !slices.Contains([]string{"low", "medium", "high"}, effort)) {
		return j.bad("", "reasoning_effort", "`reasoning_effort` %q is not supported with this model", effort)
	}
	switch str(obj(req, "response_format"), "type") {
	case "json_schema":
		switch {
		case !groqTakesSchemas(j.model):
			return j.bad("", "response_format", "This model does not support response format `json_schema`.")
		case req["stream"] == true:
			return j.bad("", "response_format", "response format `json_schema` cannot be combined with stream")
		case len(list(req, "tools")) > 0:
			return j.bad("", "response_format", "json mode cannot be combined with tool/function calling")
		}
	case "json_object":
		if len(list(req, "tools")) > 0 {
			return j.bad("", "response_format", "json mode cannot be combined with tool/function calling")
		}
	}
	return nil
}

// qwenStreams matches the open models that think only in streams.
var qwenStreams = regexp.MustCompile(`^(qwen3-\d+b(-a\d+b)?$|qwq|qvq)`)

// qwen applies the rules of Qwen on DashScope, which has no file parts.
func (j *judge) qwen(req map[string]any) *Refusal {
	if qwenStreams.MatchString(j.model) && req["stream"] != true && req["enable_thinking"] != false {
		return j.bad("invalid_parameter_error", "", "parameter.enable_thinking must be set to false for non-streaming calls")
	}
	for _, m := range objects(req, "messages") {
		for _, part := range objects(m, "content") {
			if str(part, "type") == "file" {
				return j.bad("invalid_parameter_error", "", "Unexpected item type in content: file")
			}
		}
	}
	return nil
}

// chatTextOnly and responsesTextOnly match models that read text only.
var (
	chatTextOnly = regexp.MustCompile(`^(gpt-3\.5|gpt-4(-0613)?$|o1-mini|o1-preview|o3-mini|gpt-audio|deepseek-(chat|reasoner|v4)|kimi-k2-|moonshot-v1-\d+k$|` +
		`codestral-|open-mi[sx]tral|mistral-large-24|devstral-(small|medium)-25|llama-3\.|openai/gpt-oss|qwen-(plus|max|flash|turbo)|qwen3-(max|coder|\d+b)|glm-(4\.[567]|5)(-|$))`)
	responsesTextOnly = regexp.MustCompile(`^(gpt-3\.5|gpt-4(-0613)?$|o1-mini|o1-preview|o3-mini)`)
)

type chatVendor struct{ defaultRules }

func (chatVendor) dialect() dragoman.Dialect { return dialectname.OpenAIChat }

func (chatVendor) call(r *http.Request) (call, bool) { return call{}, at(r, "/v1/chat/completions") }

func (chatVendor) fields(j *judge, req map[string]any) *Refusal { return j.chat(req) }

func (chatVendor) media(j *judge, req map[string]any) *Refusal {
	return j.chatMedia(req, chatTextOnly.MatchString(j.model))
}

type responsesVendor struct{ defaultRules }

func (responsesVendor) dialect() dragoman.Dialect { return dialectname.OpenAIResponses }

func (responsesVendor) call(r *http.Request) (call, bool) {
	c := call{compact: at(r, "/v1/responses/compact"), count: at(r, "/v1/responses/input_tokens")}
	return c, c.compact || c.count || at(r, "/v1/responses")
}

func (responsesVendor) fields(j *judge, req map[string]any) *Refusal { return j.responses(req) }

func (responsesVendor) media(j *judge, req map[string]any) *Refusal {
	if responsesTextOnly.MatchString(j.model) && anyType(list(req, "input"), "input_image", "input_file") {
		return j.bad("invalid_value", "input", "Invalid value: image and file inputs are not supported with this model.")
	}
	return nil
}

func (responsesVendor) conversation(req map[string]any, body []byte) ([]byte, bool) {
	return body, slices.ContainsFunc(objects(req, "input"), isReference)
}

func (responsesVendor) resolve(s *state, j *judge, req map[string]any, body []byte) ([]byte, *Refusal) {
	return s.references(j, req, body)
}

// isReference reports whether an input item is a reference. The type may be absent.
func isReference(item map[string]any) bool {
	typ := str(item, "type")
	return typ == "item_reference" || typ == "" && set(item, "id") && !set(item, "role")
}

func (j *judge) chatMedia(req map[string]any, blind bool) *Refusal {
	openAI := openAIModelOf(j.model) != nil
	deaf := blind && !strings.Contains(j.model, "audio") || openAI && !strings.Contains(j.model, "audio")
	for i, m := range objects(req, "messages") {
		for _, p := range objects(m, "content") {
			switch typ := str(p, "type"); {
			case strings.HasPrefix(j.model, "deepseek-") && typ != "text":
				return j.bad("invalid_request_error", "", "Failed to deserialize the JSON body into the target type: messages[%d]: unknown variant `%s`, expected `text`", i, typ)
			case blind && (typ == "image_url" || typ == "video_url"), deaf && typ == "input_audio", openAI && typ == "video_url":
				return j.bad("", "", "Invalid content type. %s is only supported by certain models.", typ)
			}
		}
	}
	return nil
}

// anyType reports whether an object anywhere in a value has one of the types.
func anyType(v any, types ...string) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return anyType(e, types...) })
	case map[string]any:
		if slices.Contains(types, str(v, "type")) {
			return true
		}
		return anyType(v["content"], types...) || anyType(v["output"], types...)
	}
	return false
}
