package strictupstream

import (
	"regexp"
	"slices"
	"strings"
)

var (
	grokEfforts = regexp.MustCompile(`^grok-(3-mini|4\.3|4\.[56]|4\.20-multi-agent)`)
	grokPlain   = regexp.MustCompile(`non-reasoning|^grok-3(-fast)?$`)
	// grokAlways matches models that refuse the effort none.
	grokAlways = regexp.MustCompile(`^grok-4\.[56]`)
)

// grok applies the rules of xAI. Penalties are refused, even 0.
func (j *judge) grok(req map[string]any) *Refusal {
	refused := []string{"frequency_penalty", "presence_penalty"}
	if strings.HasPrefix(j.model, "grok-3") && grokPlain.MatchString(j.model) {
		refused = nil
	}
	if !grokPlain.MatchString(j.model) {
		refused = append(refused, "stop")
	}
	if !grokEfforts.MatchString(j.model) {
		refused = append(refused, "reasoning_effort")
	}
	for _, key := range refused {
		if set(req, key) {
			return j.bad("", "", "Model %s does not support parameter %s.", j.model, lowerCamel(key))
		}
	}
	if str(req, "reasoning_effort") == "none" && grokAlways.MatchString(j.model) {
		return j.bad("", "", "This model does not support `reasoning_effort` value `none`.")
	}
	return nil
}

// glm applies the rules of GLM at Z.ai.
func (j *judge) glm(req map[string]any) *Refusal {
	if set(req, "tool_choice") && str(req, "tool_choice") != "auto" {
		return j.bad("1210", "", "Tool choice must be auto")
	}
	if !strings.HasPrefix(j.model, "glm-5.3") {
		return nil
	}
	if str(obj(req, "thinking"), "type") == "disabled" {
		return j.bad("1210", "", "thinking cannot be disabled for this model")
	}
	if effort := str(req, "reasoning_effort"); effort != "" && !slices.Contains([]string{"low", "high", "max"}, effort) {
		return j.bad("1210", "", "invalid reasoning_effort: please use low, high, or max")
	}
	return nil
}

// miniMax refuses a temperature of 0.
func (j *judge) miniMax(req map[string]any) *Refusal {
	if n, ok := number(req, "temperature"); ok && (n < 0.01 || n > 1) {
		return j.bad("2013", "", "invalid params, temperature must be in (0, 1]")
	}
	return nil
}

// muse applies the rules of the Meta API.
func (j *judge) muse(req map[string]any) *Refusal {
	switch {
	case set(req, "tool_choice") && str(req, "tool_choice") != "auto":
		return j.bad("", "tool_choice", "tool_choice must be auto")
	case set(req, "temperature") && set(req, "top_p"):
		return j.bad("", "temperature", "temperature and top_p cannot both be specified")
	}
	return nil
}
