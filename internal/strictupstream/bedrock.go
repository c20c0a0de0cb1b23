package strictupstream

import "maps"

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

func (j *judge) bedrock(req map[string]any) *Refusal {
	if at := bedrockShape.unknown(req, false); at != nil {
		return j.bad("", "", "Unexpected field %s", brackets(at))
	}
	extras := obj(req, "additionalModelRequestFields")
	if claudeOf(j.model) == nil {
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
