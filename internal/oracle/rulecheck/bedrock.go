package rulecheck

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	bedrockName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	bedrockID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	documentRe  = regexp.MustCompile(`^[a-zA-Z0-9\-()\[\]]+( [a-zA-Z0-9\-()\[\]]+)*$`)
)

// bedrock checks the rules of Converse.
func (c *checker) bedrock(req map[string]any) {
	messages := c.list("/messages", req["messages"])
	if len(messages) == 0 {
		c.bad("/messages", "an empty list")
	}
	w := bedrockWalk{checker: c, ids: map[string]bool{}, documents: map[string]bool{}}
	for i, v := range messages {
		w.message(i, at("/messages", i), c.object(at("/messages", i), v), i == len(messages)-1)
	}
	c.closeCalls(w.wait)
	if sys, ok := req["system"].([]any); ok {
		for i, v := range sys {
			if t, ok := c.object(at("/system", i), v)["text"].(string); ok && blank(t) {
				c.bad(at("/system", i), "a blank text")
			}
		}
	}
	if w.tools && !has(req, "toolConfig") {
		c.bad("/toolConfig", "calls in the history, but no tools")
	}
	if w.role == "assistant" && c.o.NoPrefill && !w.hosted {
		c.bad("/messages", "the conversation ends with the assistant")
	}
	c.bedrockTools(req)
	fields, _ := req["additionalModelRequestFields"].(map[string]any)
	c.budget(fields["thinking"], w.turns)
	thinking, _ := fields["thinking"].(map[string]any)
	config, _ := req["toolConfig"].(map[string]any)
	choice, _ := config["toolChoice"].(map[string]any)
	if str(thinking, "type") == "enabled" && (has(choice, "any") || has(choice, "tool")) {
		c.bad("/toolConfig/toolChoice", "a forced call together with a thinking budget")
	}
}

func (c *checker) bedrockTools(req map[string]any) {
	if !has(req, "toolConfig") {
		return
	}
	seen := map[string]bool{}
	tools := c.list("/toolConfig/tools", c.object("/toolConfig", req["toolConfig"])["tools"])
	if len(tools) == 0 {
		c.bad("/toolConfig/tools", "an empty list")
	}
	for i, v := range tools {
		path := at("/toolConfig/tools", i)
		t := c.object(path, v)
		if !has(t, "toolSpec") {
			continue
		}
		name := str(c.object(path, t["toolSpec"]), "name")
		c.match(path, "name", name, bedrockName, 64)
		if seen[name] {
			c.bad(path, "duplicate tool %q", name)
		}
		seen[name] = true
	}
}

type bedrockWalk struct {
	hosted bool // the last block is from a server tool, or unknown
	*checker
	role      string
	wait      *batch
	ids       map[string]bool
	documents map[string]bool
	tools     bool
	turns     []roleTurn
	images    int // number in the current message
	files     int
}

func (w *bedrockWalk) message(i int, path string, m map[string]any, last bool) {
	c := w.checker
	role := str(m, "role")
	switch {
	case role == "system" && c.o.MidSystem && i > 0:
		return
	case role != "user" && role != "assistant":
		c.bad(path, "role %q", role)
		return
	case i == 0 && role != "user":
		c.bad(path, "the first message is from the assistant")
	case role == w.role:
		c.bad(path, "two consecutive messages of role %s", role)
	}
	w.role = role
	if role == "assistant" {
		c.closeCalls(w.wait)
		w.wait = newBatch(path)
	}
	blocks := c.list(path+"/content", m["content"])
	if len(blocks) == 0 {
		c.bad(path, "a message without content")
	}
	w.images, w.files = 0, 0
	texts, documents, other := 0, 0, false
	thinks := slices.ContainsFunc(blocks, func(v any) bool { // a blank text may separate two reasoning blocks (D22)
		b, _ := v.(map[string]any)
		return has(b, "reasoningContent")
	})
	for j, v := range blocks {
		here := at(path+"/content", j)
		b := c.object(here, v)
		if len(b) != 1 {
			c.bad(here, "a block with %d fields", len(b))
		}
		if has(b, "text") {
			texts++
		}
		if has(b, "document") {
			documents++
		}
		if has(b, "toolResult") && other {
			c.bad(here, "a result after other content")
		}
		other = other || !has(b, "toolResult")
		w.turns = addBlock(w.turns, here, role, bedrockKind(b))
		w.block(here, role, b, thinks)
	}
	if documents > 0 && texts == 0 {
		c.bad(path, "a document in a message without text")
	}
	if w.files > 5 || w.images > 20 {
		c.bad(path, "%d documents and %d images", w.files, w.images)
	}
	if role == "user" {
		c.closeCalls(w.wait)
		w.wait = nil
	}
	if b, ok := lastOf(blocks).(map[string]any); ok && last && role == "assistant" {
		if t := str(b, "text"); strings.TrimRightFunc(t, unicode.IsSpace) != t {
			c.bad(path, "the last assistant text ends in white space")
		}
	}
}

func lastOf(list []any) any {
	if len(list) == 0 {
		return nil
	}
	return list[len(list)-1]
}

// bedrockKind returns the kind of a block. A cache point does not count as content of the turn.
func bedrockKind(b map[string]any) byte {
	switch {
	case has(b, "reasoningContent"):
		return 't'
	case has(b, "toolUse"):
		return 'c'
	case has(b, "toolResult"), has(b, "cachePoint"):
		return 'r'
	default:
		return 'e'
	}
}

// media checks an image, document, video or audio block, and counts it.
func (w *bedrockWalk) media(path string, b map[string]any) {
	c := w.checker
	for _, key := range []string{"image", "document", "video", "audio"} {
		if !has(b, key) {
			continue
		}
		m := c.object(path+"/"+key, b[key])
		source := c.object(path+"/"+key+"/source", m["source"])
		if has(source, "s3Location") {
			uri := str(c.object(path, source["s3Location"]), "uri")
			if !strings.HasPrefix(uri, "s3://") {
				c.bad(path, "%.80q is not an S3 location", uri)
			}
		}
		switch key {
		case "image":
			w.images++
		case "document":
			w.files++
			name := str(m, "name")
			c.match(path+"/document/name", "name", name, documentRe, 200)
			if w.documents[name] {
				c.bad(path, "duplicate document %q", name)
			}
			w.documents[name] = true
		}
	}
}

func (w *bedrockWalk) block(path, role string, b map[string]any, thinks bool) {
	c := w.checker
	w.hosted = !slices.ContainsFunc([]string{"text", "image", "document", "video", "audio", "reasoningContent", "toolUse", "toolResult", "cachePoint"},
		func(key string) bool { return has(b, key) })
	if t, ok := b["text"].(string); ok && blank(t) && !thinks {
		c.bad(path, "a blank text")
	}
	for _, key := range []string{"image", "document", "video", "audio"} {
		if has(b, key) && role != "user" {
			c.bad(path, "%s from the assistant", key)
		}
	}
	w.media(path, b)
	switch {
	case has(b, "reasoningContent"):
		r := c.object(path, b["reasoningContent"])
		if role != "assistant" {
			c.bad(path, "reasoning from the user")
		}
		if has(r, "reasoningText") && str(c.object(path, r["reasoningText"]), "signature") == "" {
			c.bad(path, "reasoning without a signature")
		}
	case has(b, "toolUse"):
		w.tools = true
		u := c.object(path, b["toolUse"])
		id := str(u, "toolUseId")
		if role != "assistant" {
			c.bad(path, "a call from the user")
			return
		}
		c.match(path+"/toolUse/toolUseId", "id", id, bedrockID, 64)
		c.match(path+"/toolUse/name", "name", str(u, "name"), bedrockName, 64)
		c.object(path+"/toolUse/input", u["input"])
		if w.ids[id] {
			c.bad(path, "duplicate call id %.60q", id)
		}
		w.ids[id] = true
		c.openCalls(w.wait, path, id, str(u, "name"))
	case has(b, "toolResult"):
		w.tools = true
		r := c.object(path, b["toolResult"])
		if role != "user" {
			c.bad(path, "a result from the assistant")
			return
		}
		c.checkResults(w.wait, path, str(r, "toolUseId"))
		content := c.list(path+"/toolResult/content", r["content"])
		if len(content) == 0 {
			c.bad(path, "a result without content")
		}
		for i, v := range content {
			p := c.object(at(path+"/toolResult/content", i), v)
			w.media(at(path+"/toolResult/content", i), p)
			if j, ok := p["json"]; ok {
				c.object(at(path+"/toolResult/content", i)+"/json", j)
			}
		}
		switch str(r, "status") {
		case "", "success", "error":
		default:
			c.bad(path, "status %q", str(r, "status"))
		}
	}
}
