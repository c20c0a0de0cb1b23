package strictupstream

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

var bedrockShape = names(`additionalModelRequestFields additionalModelResponseFieldPaths guardrailConfig inferenceConfig messages outputConfig
	performanceConfig promptVariables requestMetadata serviceTier system toolConfig`, map[string]*shape{
	"inferenceConfig": names("maxTokens temperature topP stopSequences", nil),
	"outputConfig":    names("effort textFormat", nil),
	"messages":        names("role content", nil),
	"toolConfig":      names("tools toolChoice", nil),
})

// claudeExtras has the fields that Claude accepts in additionalModelRequestFields.
var claudeExtras = names("thinking top_k tool_choice anthropic_beta output_config anthropic_version context_management", map[string]*shape{
	"thinking": names("type budget_tokens display", nil), "output_config": names("effort format", nil),
})

// bedrockNoTools matches models that take no tools.
var bedrockNoTools = regexp.MustCompile(`google\.gemma-3-12b|deepseek\.r1|amazon\.titan|meta\.llama3-(8b|70b)|mistral\.mi[sx]tral-[78]`)

func (j *judge) bedrock(req map[string]any) *Refusal {
	if at := bedrockShape.unknown(req, false); at != nil {
		return j.bad("", "", "Unexpected field %s", brackets(at))
	}
	if r := j.bedrockLimits(req); r != nil {
		return r
	}
	if bedrockNoTools.MatchString(j.model) && set(req, "toolConfig") {
		return j.bad("", "", "This model doesn't support tool use.")
	}
	extras := obj(req, "additionalModelRequestFields")
	switch {
	case strings.Contains(j.model, "amazon.nova"):
		return j.nova(req, extras)
	case strings.Contains(j.model, "openai.gpt-oss"):
		return j.bedrockOSS(extras)
	case claudeOf(j.model) == nil:
		return nil
	}
	if at := claudeExtras.unknown(extras, false); at != nil {
		return j.bad("", "", "Malformed input request: #: extraneous key [%s] is not permitted, please reformat your input and try again.", brackets(at))
	}
	config := obj(req, "inferenceConfig")
	a := settings{thinking: obj(extras, "thinking"), effort: str(obj(req, "outputConfig"), "effort"), sampling: map[string]any{}}
	if a.effort == "" {
		a.effort = str(obj(extras, "output_config"), "effort")
	}
	a.maxTokens, _ = number(config, "maxTokens")
	if a.maxTokens == 0 {
		a.maxTokens = 4096 // Converse has a default
	}
	for theirs, ours := range map[string]string{"temperature": "temperature", "topP": "top_p"} {
		if set(config, theirs) {
			a.sampling[ours] = config[theirs]
		}
	}
	if set(extras, "top_k") {
		maps.Copy(a.sampling, map[string]any{"top_k": extras["top_k"]})
	}
	choice := obj(obj(req, "toolConfig"), "toolChoice")
	a.forced = set(choice, "any") || set(choice, "tool")
	if messages := objects(req, "messages"); len(messages) > 0 {
		a.prefill = str(messages[len(messages)-1], "role") == "assistant"
	}
	return j.claude(a)
}

// novaExtras has the fields that Amazon Nova accepts in additionalModelRequestFields.
var novaExtras = names("inferenceConfig reasoningConfig", map[string]*shape{
	"inferenceConfig": names("topK", nil), "reasoningConfig": names("type maxReasoningEffort", nil),
})

// novaSchema is the root of a tool schema.
var novaSchema = names("type properties required", nil)

func (j *judge) nova(req, extras map[string]any) *Refusal {
	if at := novaExtras.unknown(extras, false); at != nil {
		return j.bad("", "", "Malformed input request: extraneous key [%s] is not permitted, please reformat your input and try again.", brackets(at))
	}
	for _, t := range objects(obj(req, "toolConfig"), "tools") {
		root := obj(obj(obj(t, "toolSpec"), "inputSchema"), "json")
		if at := novaSchema.unknown(root, false); at != nil {
			return j.bad("", "", "The JSON schema of the tool has an unsupported field: %s", brackets(at))
		}
	}
	reasoning := obj(extras, "reasoningConfig")
	if len(reasoning) == 0 {
		return nil
	}
	effort, typ := str(reasoning, "maxReasoningEffort"), str(reasoning, "type")
	switch {
	case !strings.Contains(j.model, "nova-2"):
		return j.bad("", "", "This model doesn't support reasoning.")
	case typ != "enabled" && typ != "disabled":
		return j.bad("", "", "reasoningConfig.type %q is not one of enabled, disabled", typ)
	case typ == "enabled" && !slices.Contains([]string{"low", "medium", "high"}, effort):
		return j.bad("", "", "reasoningConfig.maxReasoningEffort %q is not one of low, medium, high", effort)
	}
	config := obj(req, "inferenceConfig")
	for _, key := range []string{"maxTokens", "temperature", "topP"} {
		if typ == "enabled" && effort == "high" && set(config, key) {
			return j.bad("", "", "%s must be unset when maxReasoningEffort is high.", key)
		}
	}
	return nil
}

// bedrockOSS applies the rules of OpenAI models on Converse, whose additional fields are
// Chat Completions fields.
func (j *judge) bedrockOSS(extras map[string]any) *Refusal {
	if at := chatShape.unknown(extras, false); at != nil {
		return j.bad("", "", "Failed to deserialize the JSON body into the target type: unknown variant `%s`", brackets(at))
	}
	if effort := str(extras, "reasoning_effort"); set(extras, "reasoning_effort") && !slices.Contains([]string{"low", "medium", "high"}, effort) {
		return j.bad("", "", "reasoning_effort: unknown variant `%s`, expected one of `low`, `medium`, `high`", effort)
	}
	return nil
}

// bedrockTextOnly matches models that read text only.
var bedrockTextOnly = regexp.MustCompile(`(amazon\.nova-micro|openai\.gpt-oss|deepseek\.|meta\.llama3-[13]-|qwen\.qwen3-(32b|235b|coder|next))`)

type converseVendor struct{ defaultRules }

func (converseVendor) dialect() dragoman.Dialect { return dialectname.Bedrock }

func (converseVendor) call(r *http.Request) (call, bool) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/model/")
	if !ok {
		return call{}, false
	}
	for _, method := range []string{"/converse", "/converse-stream"} {
		if model, ok := strings.CutSuffix(rest, method); ok {
			return call{model: model, inPath: true, before: "/model/", after: method}, true
		}
	}
	return call{}, false
}

func (converseVendor) fields(j *judge, req map[string]any) *Refusal { return j.bedrock(req) }

func (converseVendor) media(j *judge, req map[string]any) *Refusal {
	for _, m := range objects(req, "messages") {
		if bedrockTextOnly.MatchString(j.model) && holds(m["content"], "image", "video", "audio") {
			return j.bad("", "", "This model doesn't support the image content block that you provided. Remove it and try again.")
		}
	}
	return nil
}

func (converseVendor) resolve(s *state, j *judge, req map[string]any, body []byte) ([]byte, *Refusal) {
	if claudeOf(j.model) == nil {
		return body, nil
	}
	return body, s.bedrockSignatures(j, req)
}

func (converseVendor) errorBody(r *Refusal) any {
	return map[string]any{"__type": "ValidationException", "message": r.Message}
}

func (converseVendor) errorHeader() (name, value string) {
	return "X-Amzn-Errortype", "ValidationException"
}

func (converseVendor) namesModel() bool { return false }

func (s *state) bedrockSignatures(j *judge, req map[string]any) *Refusal {
	for i, m := range objects(req, "messages") {
		for k, b := range objects(m, "content") {
			r := obj(b, "reasoningContent")
			text := obj(r, "reasoningText")
			if text != nil && !s.opaque[str(text, "signature")] || set(r, "redactedContent") && !s.opaque[str(r, "redactedContent")] {
				return j.bad("", "", "The model returned the following errors: messages.%d.content.%d: Invalid `signature` in `thinking` block", i, k)
			}
		}
	}
	return nil
}

// bedrockLimits checks the blocks of Converse.
func (j *judge) bedrockLimits(req map[string]any) *Refusal {
	if name := outOfRange(obj(req, "inferenceConfig"), ranged{"temperature", 0, 1}, ranged{"topP", 0, 1}); name != "" {
		return j.bad("", "", "1 validation error detected: Value at 'inferenceConfig.%s' failed to satisfy constraint", name)
	}
	points := 0
	for i, t := range objects(obj(req, "toolConfig"), "tools") {
		if set(t, "cachePoint") {
			points++
		}
		if description, has := obj(t, "toolSpec")["description"]; has && description == "" {
			return j.bad("", "", "Value at 'toolConfig.tools.%d.member.toolSpec.description' failed to satisfy constraint: Member must have length greater than or equal to 1", i+1)
		}
	}
	for _, b := range objects(req, "system") {
		if set(b, "cachePoint") {
			points++
		}
	}
	for _, m := range objects(req, "messages") {
		for _, b := range objects(m, "content") {
			if set(b, "cachePoint") {
				points++
			}
			if slices.ContainsFunc(objects(obj(b, "toolResult"), "content"), func(c map[string]any) bool { return set(c, "cachePoint") }) {
				return j.bad("", "", "A cachePoint is not allowed in a toolResult.")
			}
		}
	}
	if points > 0 && claudeOf(j.model) == nil && !strings.Contains(j.model, "amazon.nova") {
		return j.bad("", "", "You do not have access to explicit prompt caching")
	}
	if points > maxBreakpoints {
		return j.bad("", "", "You can provide at most 4 cachePoint blocks, got %d.", points)
	}
	return nil
}

// holds reports whether a list of blocks, or of the results in them, has one of the
// blocks.
func holds(v any, keys ...string) bool {
	blocks, _ := v.([]any)
	return slices.ContainsFunc(blocks, func(e any) bool {
		b, _ := e.(map[string]any)
		return slices.ContainsFunc(keys, func(k string) bool { return set(b, k) }) || holds(obj(b, "toolResult")["content"], keys...)
	})
}
