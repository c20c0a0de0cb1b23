package rulecheck

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	anthropicID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// anthropic checks the rules of Messages.
func (c *checker) anthropic(req map[string]any) {
	if _, ok := req["max_tokens"].(json.Number); !ok {
		c.bad("/max_tokens", "required")
	}
	if sys, ok := req["system"].([]any); ok {
		for i, v := range sys {
			b := c.object(at("/system", i), v)
			if str(b, "type") != "text" || blank(str(b, "text")) {
				c.bad(at("/system", i), "a system block that is not text, or blank")
			}
		}
	}
	messages := c.list("/messages", req["messages"])
	if len(messages) == 0 {
		c.bad("/messages", "an empty list")
	}
	w := anthropicWalk{checker: c, ids: map[string]bool{}, hosts: map[string]string{}}
	for i, v := range messages {
		w.message(i, at("/messages", i), c.object(at("/messages", i), v), i == len(messages)-1)
	}
	c.closeCalls(w.wait)
	if w.tools && !has(req, "tools") {
		c.bad("/tools", "calls in the history, but no tools")
	}
	c.namedTools(req, anthropicName, 128)
	c.budget(req["thinking"], w.turns)
	thinking, _ := req["thinking"].(map[string]any)
	choice, _ := req["tool_choice"].(map[string]any)
	if typ := str(choice, "type"); str(thinking, "type") == "enabled" && (typ == "any" || typ == "tool") {
		c.bad("/tool_choice", "a forced call together with a thinking budget")
	}
	if w.role == "assistant" && c.o.NoPrefill && !w.hosted {
		c.bad("/messages", "the conversation ends with the assistant")
	}
}

// namedTools checks a list of tools with names.
func (c *checker) namedTools(req map[string]any, rule *regexp.Regexp, most int) {
	if !has(req, "tools") {
		if has(req, "tool_choice") {
			c.bad("/tool_choice", "a choice without tools")
		}
		return
	}
	tools := c.list("/tools", req["tools"])
	if len(tools) == 0 {
		c.bad("/tools", "an empty list")
	}
	seen := map[string]bool{}
	for i, v := range tools {
		t := c.object(at("/tools", i), v)
		name, ok := t["name"].(string)
		if !ok {
			// Toolsets of the provider have only a type.
			if typ := str(t, "type"); has(t, "name") || !strings.Contains(typ, "toolset") {
				c.bad(at("/tools", i), "a tool of type %q without a name", typ)
			}
			continue
		}
		c.match(at("/tools", i), "name", name, rule, most)
		if seen[name] {
			c.bad(at("/tools", i), "duplicate tool %q", name)
		}
		seen[name] = true
	}
}

// compacted reports whether a message begins with a block that only the server can have
// created, as a replacement for the messages before it.
func compacted(m map[string]any) bool {
	blocks, _ := m["content"].([]any)
	if len(blocks) == 0 {
		return false
	}
	b, _ := blocks[0].(map[string]any)
	switch typ := str(b, "type"); typ {
	case "", "text", "image", "document":
		return false
	default:
		return anthropicKind(typ) == 'e'
	}
}

type anthropicWalk struct {
	*checker
	role  string // role of the previous message
	wait  *batch
	ids   map[string]bool
	tools bool
	hosts map[string]string // the paths of server tool calls without a result, by id
	// hosted: the last block is from a server tool, or unknown.
	hosted bool
	run    bool // this message continues the previous turn
	turns  []roleTurn
}

func (w *anthropicWalk) message(i int, path string, m map[string]any, last bool) {
	c := w.checker
	role := str(m, "role")
	w.run = role == w.role
	switch {
	case role == "system":
		if i == 0 || !c.o.MidSystem {
			c.bad(path, "a system message inside the conversation")
		}
		return
	case role != "user" && role != "assistant":
		c.bad(path, "role %q", role)
		return
	case i == 0 && role != "user" && !compacted(m):
		c.bad(path, "the first message is from the assistant")
	}
	if role == "assistant" && !w.run {
		c.closeCalls(w.wait)
		w.wait = newBatch(path)
	}
	w.role = role
	var blocks []any
	if s, ok := m["content"].(string); ok {
		blocks = []any{map[string]any{"type": "text", "text": s}}
	} else {
		blocks = c.list(path+"/content", m["content"])
	}
	if len(blocks) == 0 && !(last && role == "assistant") {
		c.bad(path, "a message without content")
	}
	thinks := false
	for _, v := range blocks {
		b, _ := v.(map[string]any)
		thinks = thinks || strings.HasSuffix(str(b, "type"), "thinking")
	}
	other := w.run && role == "user" // the user turn already has other content
	for j, v := range blocks {
		other = w.block(at(path+"/content", j), role, c.object(at(path+"/content", j), v), thinks, other)
	}
	if role == "user" && !w.run {
		c.closeCalls(w.wait)
		w.wait = nil
	}
	if last && role == "assistant" && len(blocks) > 0 {
		b, _ := blocks[len(blocks)-1].(map[string]any)
		if t := str(b, "text"); str(b, "type") == "text" && strings.TrimRightFunc(t, unicode.IsSpace) != t {
			c.bad(path, "the last assistant text ends in white space")
		}
	}
}

// block checks one block, and reports whether a result may no longer follow it.
func (w *anthropicWalk) block(path, role string, b map[string]any, thinks, other bool) bool {
	c := w.checker
	w.turns = addBlock(w.turns, path, role, anthropicKind(str(b, "type")))
	w.hosted = !slices.Contains([]string{"text", "image", "document", "thinking", "redacted_thinking", "tool_use", "tool_result"}, str(b, "type"))
	switch typ := str(b, "type"); {
	case role == "assistant" && (typ == "server_tool_use" || typ == "mcp_tool_use"):
		if id := str(b, "id"); id != "" {
			w.hosts[id] = path
		}
	case role == "assistant" && typ != "tool_result" && strings.HasSuffix(typ, "_tool_result"):
		delete(w.hosts, str(b, "tool_use_id"))
	case role == "user" && typ != "tool_result":
		for id, at := range w.hosts {
			c.bad(at, "server tool call %.60q without its result", id)
		}
		clear(w.hosts)
	}
	switch typ := str(b, "type"); typ {
	case "text":
		if blank(str(b, "text")) && !thinks {
			c.bad(path, "a blank text")
		}
	case "image", "document":
		if role != "user" {
			c.bad(path, "an %s from the assistant", typ)
		}
		c.anthropicSource(path, b)
	case "thinking":
		if str(b, "signature") == "" || role != "assistant" {
			c.bad(path, "thinking without a signature, or outside the assistant's turn")
		}
	case "redacted_thinking":
		if str(b, "data") == "" || role != "assistant" {
			c.bad(path, "redacted thinking without its data, or outside the assistant's turn")
		}
	case "tool_use":
		w.tools = true
		id := str(b, "id")
		if role != "assistant" {
			c.bad(path, "a call from the user")
			return true
		}
		c.match(path+"/id", "id", id, anthropicID, 0)
		c.match(path+"/name", "name", str(b, "name"), anthropicName, 128)
		c.object(path+"/input", b["input"])
		if w.ids[id] {
			c.bad(path, "duplicate call id %.60q", id)
		}
		w.ids[id] = true
		c.openCalls(w.wait, path, id, str(b, "name"))
	case "tool_result":
		w.tools = true
		if role != "user" {
			c.bad(path, "a result from the assistant")
			return true
		}
		if other {
			c.bad(path, "a result after other content")
		}
		c.match(path+"/tool_use_id", "id", str(b, "tool_use_id"), anthropicID, 0)
		c.checkResults(w.wait, path, str(b, "tool_use_id"))
		c.anthropicResult(path, b)
		return other
	}
	return true
}

func anthropicKind(typ string) byte {
	switch typ {
	case "thinking", "redacted_thinking":
		return 't'
	case "tool_use":
		return 'c'
	case "tool_result":
		return 'r'
	default:
		return 'e'
	}
}

// anthropicTypes lists the media types of base64 content, each after its block type.
var anthropicTypes = map[string]bool{
	"image image/png": true, "image image/jpeg": true, "image image/gif": true, "image image/webp": true, "document application/pdf": true,
}

// anthropicSource checks the source of an image or a document.
func (c *checker) anthropicSource(path string, b map[string]any) {
	source := c.object(path+"/source", b["source"])
	switch typ, mime := str(b, "type"), str(source, "media_type"); str(source, "type") {
	case "url":
		c.fetchable(path+"/source/url", str(source, "url"))
	case "base64":
		if !anthropicTypes[typ+" "+mime] {
			c.bad(path+"/source/media_type", "%s does not allow type %.80q", typ, mime)
		}
	case "text":
		if typ != "document" || mime != "text/plain" {
			c.bad(path+"/source/media_type", "text source in a %s block of type %.80q", typ, mime)
		}
	}
}

func (c *checker) anthropicResult(path string, b map[string]any) {
	parts, ok := b["content"].([]any)
	if !ok {
		return
	}
	for i, v := range parts {
		p := c.object(at(path+"/content", i), v)
		switch str(p, "type") {
		case "text":
			if blank(str(p, "text")) {
				c.bad(at(path+"/content", i), "a blank text")
			}
		case "image", "document":
			c.anthropicSource(at(path+"/content", i), p)
		}
	}
}
