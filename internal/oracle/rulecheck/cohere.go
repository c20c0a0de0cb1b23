package rulecheck

import "regexp"

var cohereName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)

// cohere checks the rules of the Cohere v2 chat API.
func (c *checker) cohere(req map[string]any) {
	messages := c.list("/messages", req["messages"])
	if len(messages) == 0 {
		c.bad("/messages", "an empty list")
	}
	var wait *batch
	for i, v := range messages {
		path := at("/messages", i)
		m := c.object(path, v)
		role := str(m, "role")
		if role != "tool" {
			c.closeCalls(wait)
			wait = nil
		}
		switch role {
		case "system":
			c.chatContent(path, m, "text")
		case "user":
			c.chatContent(path, m, "text", "image_url")
		case "tool":
			c.checkResults(wait, path, str(m, "tool_call_id"))
			c.chatContent(path, m, "text", "document")
		case "assistant":
			wait = c.cohereAssistant(path, m)
		default:
			c.bad(path, "role %q", role)
		}
	}
	c.closeCalls(wait)
	c.cohereTools(req)
}

func (c *checker) cohereAssistant(path string, m map[string]any) *batch {
	if has(m, "content") {
		c.chatContent(path, m, "text", "thinking")
	} else if !has(m, "tool_calls") && !has(m, "tool_plan") {
		c.bad(path, "an assistant message with neither content nor calls")
	}
	if !has(m, "tool_calls") {
		return nil
	}
	wait := newBatch(path)
	for i, v := range c.list(path+"/tool_calls", m["tool_calls"]) {
		at := at(path+"/tool_calls", i)
		call := c.object(at, v)
		id := str(call, "id")
		if id == "" || str(call, "type") != "function" {
			c.bad(at, "a call needs an id and the type function")
		}
		inner := c.object(at, call["function"])
		name := str(inner, "name")
		c.match(at, "name", name, cohereName, 1<<20)
		c.jsonText(at, c.text(at, inner["arguments"]))
		c.openCalls(wait, at, id, name)
	}
	return wait
}

func (c *checker) cohereTools(req map[string]any) {
	switch choice := req["tool_choice"]; {
	case !has(req, "tool_choice"):
	case choice != "REQUIRED" && choice != "NONE":
		c.bad("/tool_choice", "%v", choice)
	case choice == "REQUIRED" && !has(req, "tools"):
		c.bad("/tool_choice", "a choice without tools")
	}
	if !has(req, "tools") {
		return
	}
	if has(req, "response_format") && str(c.object("/response_format", req["response_format"]), "type") != "text" {
		c.bad("/response_format", "an output format together with tools")
	}
	seen := map[string]bool{}
	for i, v := range c.list("/tools", req["tools"]) {
		at := at("/tools", i)
		t := c.object(at, v)
		f := c.object(at, t["function"])
		name := str(f, "name")
		c.match(at, "name", name, cohereName, 1<<20)
		if str(t, "type") != "function" || seen[name] || !has(f, "parameters") {
			c.bad(at, "a tool needs the type function, a unique name and parameters")
		}
		seen[name] = true
	}
}
