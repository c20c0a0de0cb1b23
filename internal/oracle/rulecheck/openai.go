package rulecheck

import (
	"regexp"
	"strings"
)

var (
	openAIName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anyID      = regexp.MustCompile(`(?s)^.+$`)
)

// chat checks the rules of Chat Completions.
func (c *checker) chat(req map[string]any) {
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
		case "system", "developer":
			c.chatContent(path, m, "text")
		case "user":
			c.chatContent(path, m, "text", "image_url", "input_audio", "file", "video_url")
		case "tool":
			c.checkResults(wait, path, str(m, "tool_call_id"))
			c.chatContent(path, m, "text")
		case "assistant":
			wait = c.chatAssistant(path, m)
		default:
			c.bad(path, "role %q", role)
		}
	}
	c.closeCalls(wait)
	c.chatTools(req)
}

func (c *checker) chatAssistant(path string, m map[string]any) *batch {
	if has(m, "content") {
		c.chatContent(path, m, "text", "refusal", "thinking")
	} else if !has(m, "tool_calls") && !has(m, "refusal") && !has(m, "audio") && !has(m, "function_call") &&
		!has(m, "reasoning") && !has(m, "reasoning_content") && !has(m, "reasoning_details") {
		c.bad(path, "an assistant message with neither content nor calls")
	}
	if !has(m, "tool_calls") {
		return nil
	}
	wait := newBatch(path)
	calls := c.list(path+"/tool_calls", m["tool_calls"])
	if len(calls) == 0 {
		c.bad(path+"/tool_calls", "an empty list")
	}
	for i, v := range calls {
		at := at(path+"/tool_calls", i)
		call := c.object(at, v)
		id, typ := str(call, "id"), str(call, "type")
		c.match(at+"/id", "id", id, anyID, 40)
		inner := c.object(at, call[typ])
		name := str(inner, "name")
		c.match(at, "name", name, openAIName, 64)
		switch typ {
		case "function":
			c.jsonText(at, c.text(at, inner["arguments"]))
		case "custom":
			c.text(at, inner["input"])
		default:
			c.bad(at, "type %q", typ)
		}
		c.openCalls(wait, at, id, name)
	}
	return wait
}

// chatContent checks content that is a string or a list of parts of the given types.
func (c *checker) chatContent(path string, m map[string]any, types ...string) {
	path += "/content"
	if _, ok := m["content"].(string); ok {
		return
	}
	parts := c.list(path, m["content"])
	if len(parts) == 0 {
		c.bad(path, "an empty list")
	}
	for i, v := range parts {
		part := c.object(at(path, i), v)
		typ := str(part, "type")
		if image, is := part["image_url"].(map[string]any); is {
			c.fetchable(at(path, i), str(image, "url"))
		}
		ok := false
		for _, t := range types {
			ok = ok || t == typ
		}
		if !ok {
			c.bad(at(path, i), "a part of type %q in a message of role %q", typ, str(m, "role"))
		}
	}
}

func (c *checker) chatTools(req map[string]any) {
	if !has(req, "tools") {
		if has(req, "tool_choice") || has(req, "parallel_tool_calls") {
			c.bad("/tool_choice", "a choice without tools")
		}
		return
	}
	tools := c.list("/tools", req["tools"])
	if len(tools) == 0 || len(tools) > 128 {
		c.bad("/tools", "%d tools", len(tools))
	}
	seen := map[string]bool{}
	for i, v := range tools {
		t := c.object(at("/tools", i), v)
		name := str(c.object(at("/tools", i), t[str(t, "type")]), "name")
		c.match(at("/tools", i), "name", name, openAIName, 64)
		if seen[name] {
			c.bad(at("/tools", i), "duplicate tool %q", name)
		}
		seen[name] = true
	}
}

// itemPrefixes lists the prefixes of item ids.
var itemPrefixes = map[string]string{
	"message": "msg_", "function_call": "fc_", "function_call_output": "fc", "custom_tool_call": "ctc_",
	"custom_tool_call_output": "ctco_", "reasoning": "rs_",
}

// responses checks the rules of Responses.
func (c *checker) responses(req map[string]any) {
	stored := has(req, "previous_response_id") || has(req, "conversation")
	if !has(req, "input") {
		if !stored && !has(req, "prompt") {
			c.bad("/input", "missing: the request has nothing to respond to")
		}
		return
	}
	if _, ok := req["input"].(string); ok {
		return
	}
	items := c.list("/input", req["input"])
	type call struct {
		path, typ string
		waits     bool
	}
	calls, answered, ids := map[string]call{}, map[string]bool{}, map[string]bool{}
	var order []string
	for i, v := range items {
		path := at("/input", i)
		item := c.object(path, v)
		typ := str(item, "type")
		if typ == "" && has(item, "role") {
			typ = "message"
		}
		c.itemID(path, typ, item, ids)
		switch typ {
		case "message":
			c.responsesMessage(path, item)
		case "function_call", "custom_tool_call":
			id := str(item, "call_id")
			c.match(path+"/call_id", "call_id", id, anyID, 64)
			c.match(path+"/name", "name", str(item, "name"), openAIName, 128)
			if typ == "function_call" {
				c.jsonText(path, c.text(path+"/arguments", item["arguments"]))
			} else {
				c.text(path+"/input", item["input"])
			}
			if _, dup := calls[id]; dup {
				c.bad(path, "duplicate call %.60q", id)
			}
			async, _ := item["async"].(bool)
			calls[id] = call{path, typ, !async}
			order = append(order, id)
		case "function_call_output", "custom_tool_call_output":
			c.responsesOutput(path, item)
			id, labelled := item["call_id"].(string)
			if !labelled && typ == "function_call_output" {
				continue // belongs to no call
			}
			call, ok := calls[id]
			switch {
			case !ok && !stored:
				c.bad(path, "output of %.60q, which is not an earlier call", id)
			case ok && call.typ+"_output" != typ:
				c.bad(path, "%s for a %s", typ, call.typ)
			case answered[id]:
				c.bad(path, "duplicate output of %.60q", id)
			}
			answered[id] = true
		case "reasoning":
			c.reasoningItem(path, item, items[i+1:])
		}
	}
	for _, id := range order {
		if calls[id].waits && !answered[id] {
			c.bad(calls[id].path, "call %.60q has no output", id)
		}
	}
}

func (c *checker) itemID(path, typ string, item map[string]any, ids map[string]bool) {
	id := str(item, "id")
	if id == "" {
		return
	}
	if prefix := itemPrefixes[typ]; !strings.HasPrefix(id, prefix) {
		c.bad(path+"/id", "id %.60q does not begin with %q", id, prefix)
	}
	if ids[id] && typ != "item_reference" {
		c.bad(path+"/id", "duplicate item id %.60q", id)
	}
	ids[id] = true
}

func (c *checker) responsesMessage(path string, item map[string]any) {
	role := str(item, "role")
	switch role {
	case "user", "assistant", "system", "developer":
	default:
		c.bad(path, "role %q", role)
	}
	if _, ok := item["content"].(string); ok {
		return
	}
	for i, v := range c.list(path+"/content", item["content"]) {
		part := c.object(at(path+"/content", i), v)
		c.responsesURLs(at(path+"/content", i), part)
		typ := str(part, "type")
		switch typ {
		case "output_text", "refusal":
			if role != "assistant" {
				c.bad(at(path+"/content", i), "%s in a message of role %s", typ, role)
			}
		case "input_text", "input_image", "input_file":
			if role == "assistant" {
				c.bad(at(path+"/content", i), "%s in a message of role %s", typ, role)
			}
		}
	}
}

// responsesURLs checks the URLs of images and files.
func (c *checker) responsesURLs(path string, part map[string]any) {
	for _, key := range []string{"image_url", "file_url"} {
		if url := str(part, key); url != "" {
			c.fetchable(path+"/"+key, url)
		}
	}
}

func (c *checker) responsesOutput(path string, item map[string]any) {
	if _, ok := item["output"].(string); ok {
		return
	}
	for i, v := range c.list(path+"/output", item["output"]) {
		part := c.object(at(path+"/output", i), v)
		c.responsesURLs(at(path+"/output", i), part)
		switch typ := str(part, "type"); typ {
		case "output_text", "refusal", "":
			c.bad(at(path+"/output", i), "%q in an output", typ)
		}
	}
}

// reasoningItem checks that the item that belongs to the reasoning follows it.
func (c *checker) reasoningItem(path string, item map[string]any, rest []any) {
	c.list(path+"/summary", item["summary"])
	for _, v := range rest {
		next, _ := v.(map[string]any)
		switch typ := str(next, "type"); {
		case typ == "reasoning":
			continue
		case typ == "function_call", typ == "custom_tool_call", strings.HasSuffix(typ, "_call"), str(next, "role") == "assistant":
			return
		case strings.HasSuffix(typ, "_output"), str(next, "role") != "":
			c.bad(path, "reasoning without the item that belongs to it")
			return
		default:
			return // an unknown item
		}
	}
	c.bad(path, "reasoning at the end of the input")
}
