package strictupstream

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

// maxBreakpoints bounds the cache breakpoints of a request to a Claude model.
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
