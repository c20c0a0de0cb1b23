package rulecheck

// ollama checks the rules of /api/chat.
func (c *checker) ollama(req map[string]any) {
	// The pending calls, in order: a result belongs to a call by position.
	type call struct{ id, name string }
	var calls []call
	path := ""
	closes := func() {
		for _, w := range calls {
			c.bad(path, "the call of %q has no result directly after it", w.name)
		}
		calls = nil
	}
	for i, v := range c.list("/messages", req["messages"]) {
		here := at("/messages", i)
		m := c.object(here, v)
		role := str(m, "role")
		if _, ok := m["content"].(string); !ok {
			c.bad(here+"/content", "want a string, have %T", m["content"])
		}
		if role != "tool" {
			closes()
		}
		switch role {
		case "system", "user":
		case "assistant":
			path = here
			if !has(m, "tool_calls") {
				continue
			}
			for j, v := range c.list(here+"/tool_calls", m["tool_calls"]) {
				at := at(here+"/tool_calls", j)
				t := c.object(at, v)
				f := c.object(at+"/function", t["function"])
				c.object(at+"/function/arguments", f["arguments"])
				if str(f, "name") == "" {
					c.bad(at, "a call without a name")
				}
				calls = append(calls, call{str(t, "id"), str(f, "name")})
			}
		case "tool":
			name, id := str(m, "tool_name"), str(m, "tool_call_id")
			switch {
			case len(calls) == 0:
				c.bad(here, "a result without a pending call")
				continue
			case name == "":
				c.bad(here, "a result without tool_name")
			case name != calls[0].name || id != "" && calls[0].id != "" && id != calls[0].id:
				c.bad(here, "a result of %q %q, but the next pending call is %q %q", name, id, calls[0].name, calls[0].id)
			}
			calls = calls[1:]
		default:
			c.bad(here, "role %q", role)
		}
		if images, ok := m["images"].([]any); ok {
			for j, v := range images {
				c.text(at(here+"/images", j), v)
			}
		}
	}
	closes()
	for _, key := range []string{"tool_choice", "parallel_tool_calls"} {
		if has(req, key) {
			c.bad("/"+key, "unknown field")
		}
	}
}
