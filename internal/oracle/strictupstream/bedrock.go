package strictupstream

import (
	"maps"
	"regexp"
	"slices"
	"strings"
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
	a := asked{thinking: obj(extras, "thinking"), effort: str(obj(req, "outputConfig"), "effort"), sampling: map[string]any{}}
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
