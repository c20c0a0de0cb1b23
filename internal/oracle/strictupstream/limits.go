package strictupstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ranged is a number with bounds.
type ranged struct {
	name     string
	low, top float64
}

// outOfRange returns the name of the first number outside its bounds, or "".
func outOfRange(m map[string]any, all ...ranged) string {
	for _, r := range all {
		if n, ok := number(m, r.name); ok && (n < r.low || n > r.top) {
			return r.name
		}
	}
	return ""
}

// openAILimits checks the bounds that Chat and Responses share.
func (j *judge) openAILimits(req map[string]any) *Refusal {
	if name := outOfRange(req, ranged{"temperature", 0, 2}, ranged{"top_p", 0, 1}, ranged{"presence_penalty", -2, 2}, ranged{"frequency_penalty", -2, 2}, ranged{"top_logprobs", 0, 20}, ranged{"n", 1, 128}); name != "" {
		return j.bad("decimal_above_max_value", name, "Invalid '%s': the value is out of range.", name)
	}
	metadata := obj(req, "metadata")
	if len(metadata) > 16 {
		return j.bad("object_above_max_properties", "metadata", "Invalid 'metadata': too many properties. Expected an object with at most 16 properties.")
	}
	for key, value := range metadata {
		text, ok := value.(string)
		if !ok || len([]rune(key)) > 64 || len([]rune(text)) > 512 {
			return j.bad("string_above_max_length", "metadata", "Invalid 'metadata': keys have at most 64 characters, values are strings of at most 512.")
		}
	}
	if len(list(req, "stop")) > 4 {
		return j.bad("array_above_max_length", "stop", "Invalid 'stop': array too long. Expected an array with maximum length 4.")
	}
	if id := str(req, "safety_identifier"); len([]rune(id)) > 128 {
		return j.bad("string_above_max_length", "safety_identifier", "Invalid 'safety_identifier': string too long.")
	}
	return nil
}

// maxBreakpoints bounds the cache breakpoints of a request to Anthropic or Bedrock.
const maxBreakpoints = 4

// anthropicLimits checks the limits that Messages has for all models.
func (j *judge) anthropicLimits(req map[string]any) *Refusal {
	if name := outOfRange(req, ranged{"temperature", 0, 1}, ranged{"top_p", 0, 1}); name != "" {
		return j.bad("", "", "%s: range: 0..1", name)
	}
	marks, null := breakpoints(req)
	switch {
	case null:
		return j.bad("", "", "cache_control: Input should be an object")
	case marks > maxBreakpoints:
		return j.bad("", "", "A maximum of 4 blocks with cache_control may be provided. Found %d.", marks)
	}
	for i, t := range objects(req, "tools") {
		if t["defer_loading"] == true && set(t, cacheControl) {
			return j.bad("", "", "tools.%d: cache_control cannot be set on a tool with defer_loading", i)
		}
	}
	choice := obj(req, "tool_choice")
	if _, has := choice["disable_parallel_tool_use"]; has && str(choice, "type") == "none" {
		return j.bad("", "", "tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted")
	}
	return nil
}

// breakpoints counts the cache markers of a request and reports whether a marker within a
// block is null. It skips schemas and inputs, which may have fields of that name.
func breakpoints(v any) (n int, null bool) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			more, bad := breakpoints(e)
			n, null = n+more, null || bad
		}
	case map[string]any:
		for key, inner := range v {
			switch key {
			case cacheControl:
				if inner == nil {
					null = null || set(v, "type")
				} else {
					n++
				}
			case "input_schema", "input", "schema", "output_config":
			default:
				more, bad := breakpoints(inner)
				n, null = n+more, null || bad
			}
		}
	}
	return n, null
}

// geminiLimits checks combinations of fields.
func (j *judge) geminiLimits(g *geminiModel, req, config map[string]any) *Refusal {
	if name := outOfRange(config, ranged{"temperature", 0, 2}, ranged{"topP", 0, 1}); name != "" {
		return j.bad("", "", "Unable to submit request because it has a %s value out of range.", name)
	}
	calling := obj(camelObj(req, "toolConfig"), "functionCallingConfig")
	if mode := str(calling, "mode"); len(list(calling, "allowedFunctionNames")) > 0 && mode != "ANY" && mode != "VALIDATED" {
		return j.bad("", "", "Function calling config: allowed_function_names can only be set when mode is ANY or VALIDATED.")
	}
	if set(req, "cachedContent") {
		for _, name := range []string{"tools", "toolConfig", "systemInstruction"} {
			if set(req, name) {
				return j.bad("", "", "CachedContent can not be used with GenerateContent request setting system_instruction, tools or tool_config.")
			}
		}
	}
	for _, c := range objects(req, "contents") {
		for _, p := range objects(c, "parts") {
			if g.version < 30 && len(list(obj(p, "functionResponse"), "parts")) > 0 {
				return j.bad("", "", "functionResponse.parts is not supported by this model.")
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

// ollamaNumbers are the options with numeric values.
var ollamaNumbers = []string{"num_ctx", "num_predict", "temperature", "top_k", "top_p", "min_p", "seed", "repeat_penalty", "presence_penalty", "frequency_penalty"}

// ollamaLimits checks the types of options and of the arguments in the history.
func (j *judge) ollamaLimits(req map[string]any) *Refusal {
	options := obj(req, "options")
	if set(options, "typical_p") {
		return j.bad("", "", "option \"typical_p\" is not supported")
	}
	for _, name := range ollamaNumbers {
		if _, ok := options[name].(json.Number); set(options, name) && !ok {
			return j.bad("", "", "option %q must be of type number", name)
		}
	}
	for i, m := range objects(req, "messages") {
		for k, c := range objects(m, "tool_calls") {
			if _, ok := obj(c, "function")["arguments"].(map[string]any); !ok {
				return j.bad("", "", "%s", fmt.Sprintf("json: cannot unmarshal messages[%d].tool_calls[%d].function.arguments into an object", i, k))
			}
		}
	}
	return nil
}
