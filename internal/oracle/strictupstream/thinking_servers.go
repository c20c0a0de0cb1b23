package strictupstream

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	deepSeekThinks = regexp.MustCompile(`^deepseek-(v4|reasoner)`)
	kimiThinks     = regexp.MustCompile(`^kimi-(k2-thinking|k2\.[5-9]|k[3-9])`)
	// kimiFixed matches models with fixed sampling values.
	kimiFixed  = regexp.MustCompile(`^kimi-(k2\.[5-9]|k[3-9])`)
	kimiAlways = regexp.MustCompile(`^kimi-(k2-thinking|k2\.7-code)`)
)

// deepSeek applies the rules of DeepSeek. Its models think unless the request switches
// thinking off.
func (j *judge) deepSeek(req map[string]any) *Refusal {
	for i, m := range objects(req, "messages") {
		if role := str(m, "role"); !slices.Contains([]string{"system", "user", "assistant", "tool"}, role) {
			return j.bad("invalid_request_error", "", "Failed to deserialize the JSON body into the target type: messages[%d].role: unknown variant `%s`, expected one of `system`, `user`, `assistant`, `tool`", i, role)
		}
	}
	if r := j.plainFunctions(req); r != nil {
		return r
	}
	if typ := str(obj(req, "response_format"), "type"); typ == "json_schema" {
		return j.bad("invalid_request_error", "", "This response_format type is unavailable now")
	}
	if n := len(list(req, "tools")); n > 128 {
		return j.bad("invalid_request_error", "", "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", n)
	}
	switch mode := str(obj(req, "thinking"), "type"); {
	case mode != "" && !slices.Contains([]string{"enabled", "disabled", "adaptive"}, mode):
		return j.bad("invalid_request_error", "", "thinking.type: unknown variant `%s`, expected one of `enabled`, `disabled`, `adaptive`", mode)
	case mode == "disabled", mode == "" && !deepSeekThinks.MatchString(j.model):
		return nil
	}
	if forcesCall(req) {
		return j.bad("invalid_request_error", "", "Thinking mode does not support this tool_choice")
	}
	if bareCallTurn(req) >= 0 {
		return j.bad("invalid_request_error", "", "The `reasoning_content` in the thinking mode must be passed back to the API.")
	}
	return nil
}

// kimi applies the rules of Kimi at Moonshot.
func (j *judge) kimi(req map[string]any) *Refusal {
	if r := j.plainFunctions(req); r != nil {
		return r
	}
	for i, t := range objects(req, "tools") {
		if why := moonshotSchema.check(obj(obj(t, "function"), "parameters"), "parameters"); why != "" {
			return j.bad("", "", "Invalid request: tools.%d.function.parameters is not a valid moonshot flavored json schema, details: <%s>", i, why)
		}
	}
	if !kimiThinks.MatchString(j.model) {
		return nil
	}
	off := str(obj(req, "thinking"), "type") == "disabled"
	if kimiFixed.MatchString(j.model) {
		if r := j.kimiSampling(req, off); r != nil {
			return r
		}
	}
	if off {
		if kimiAlways.MatchString(j.model) {
			return j.bad("", "", "thinking cannot be disabled for this model")
		}
		return nil
	}
	if forcesCall(req) && strings.HasPrefix(j.model, "kimi-k2") {
		return j.bad("", "", "tool_choice 'specified' is incompatible with thinking enabled")
	}
	if i := bareCallTurn(req); i >= 0 {
		return j.bad("", "", "thinking is enabled but reasoning_content is missing in assistant tool call message at index %d", i)
	}
	return nil
}

// kimiSampling refuses sampling values other than the fixed ones of the mode.
func (j *judge) kimiSampling(req map[string]any, off bool) *Refusal {
	fixed := map[string]float64{"temperature": 1, "top_p": 0.95, "n": 1, "presence_penalty": 0, "frequency_penalty": 0}
	if off {
		fixed["temperature"] = 0.6
	}
	for _, key := range slices.Sorted(maps.Keys(fixed)) {
		if n, ok := number(req, key); ok && n != fixed[key] {
			return j.bad("", "", "invalid %s: only %v is allowed for this model", key, fixed[key])
		}
	}
	return nil
}

// plainFunctions refuses tools that are not functions whose parameters are an object
// (quirks A20, A43).
func (j *judge) plainFunctions(req map[string]any) *Refusal {
	for i, t := range objects(req, "tools") {
		f := obj(t, "function")
		switch typ := str(t, "type"); {
		case typ != "function":
			return j.bad("invalid_request_error", "", "tools[%d].type: unknown variant `%s`, expected `function`", i, typ)
		case str(f, "name") == "":
			return j.bad("invalid_request_error", "", "tools[%d]: missing field `name`", i)
		case str(obj(f, "parameters"), "type") != "object":
			return j.bad("invalid_request_error", "", "Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: null'.", str(f, "name"))
		}
	}
	return nil
}

// forcesCall reports whether the tool choice of a Chat request forces a call.
func forcesCall(req map[string]any) bool {
	return str(req, "tool_choice") == "required" || obj(req, "tool_choice") != nil
}

// bareCallTurn returns the index of the first assistant message that has calls and no
// reasoning_content, which may be empty (quirks G3, G4); -1 if there is none.
func bareCallTurn(req map[string]any) int {
	return slices.IndexFunc(objects(req, "messages"), func(m map[string]any) bool {
		return len(list(m, "tool_calls")) > 0 && !set(m, "reasoning_content")
	})
}
