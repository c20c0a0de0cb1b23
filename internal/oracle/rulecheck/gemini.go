package rulecheck

import (
	"regexp"
	"strings"
)

var geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]*$`)

// geminiPart lists the fields of a part that are exclusive: a part has exactly one.
var geminiPart = []string{
	"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult", "toolCall", "toolResponse",
}

// gemini checks the rules of generateContent, in the spelling of our encoders: lowerCamelCase.
func (c *checker) gemini(req map[string]any) {
	if has(req, "systemInstruction") {
		sys := c.object("/systemInstruction", req["systemInstruction"])
		if len(c.list("/systemInstruction/parts", sys["parts"])) == 0 {
			c.bad("/systemInstruction", "no parts")
		}
	}
	contents := c.list("/contents", req["contents"])
	if len(contents) == 0 {
		c.bad("/contents", "an empty list")
	}
	w := geminiWalk{checker: c, cached: has(req, "cachedContent")}
	for i, v := range contents {
		w.content(i, at("/contents", i), c.object(at("/contents", i), v))
	}
	w.checkOpenCalls()
	if w.cached {
		for _, key := range []string{"tools", "toolConfig", "systemInstruction"} {
			if has(req, key) {
				c.bad("/"+key, "not allowed together with cached content")
			}
		}
	}
	c.geminiTools(req)
}

type geminiWalk struct {
	*checker
	cached bool
	role   string
	// path and calls are the pending calls of the previous model content.
	path  string
	calls []geminiCall
}

type geminiCall struct {
	id, name string
	done     bool
}

func (w *geminiWalk) content(i int, path string, m map[string]any) {
	c := w.checker
	role := str(m, "role")
	if role == "" {
		role = "user"
	}
	switch {
	case role != "user" && role != "model":
		c.bad(path, "role %q", role)
		return
	case i == 0 && role != "user" && !w.cached:
		c.bad(path, "the first content is from the model")
	case role == w.role:
		c.bad(path, "two consecutive contents of role %s", role)
	}
	w.role = role
	parts := c.list(path+"/parts", m["parts"])
	if len(parts) == 0 {
		c.bad(path, "no parts")
	}
	if role == "model" {
		w.checkOpenCalls()
		w.path, w.calls = path, nil
	}
	other, signed := false, false
	for j, v := range parts {
		p := c.object(at(path+"/parts", j), v)
		other, signed = w.part(at(path+"/parts", j), role, p, other, signed)
	}
	if role == "user" {
		w.checkOpenCalls()
		w.calls = nil
	}
}

func (w *geminiWalk) part(path, role string, p map[string]any, other, signed bool) (bool, bool) {
	c := w.checker
	kinds := 0
	for _, key := range geminiPart {
		if _, ok := p[key]; ok {
			kinds++
		}
	}
	if kinds > 1 {
		c.bad(path, "a part with %d kinds of data", kinds)
	}
	if has(p, "inlineData") {
		c.geminiType(path, str(c.object(path+"/inlineData", p["inlineData"]), "mimeType"))
	}
	signature := str(p, "thoughtSignature")
	switch {
	case has(p, "functionCall"):
		call := c.object(path+"/functionCall", p["functionCall"])
		c.match(path+"/functionCall/name", "name", str(call, "name"), geminiName, 128)
		if args, ok := call["args"]; ok {
			c.object(path+"/functionCall/args", args)
		}
		if role != "model" {
			c.bad(path, "a call from the user")
			return true, signed
		}
		if signature == "" && !signed && len(w.calls) == 0 && !c.o.NoSignatures {
			c.bad(path, "the first call of a turn has no thoughtSignature")
		}
		w.calls = append(w.calls, geminiCall{id: str(call, "id"), name: str(call, "name")})
		return true, true
	case has(p, "functionResponse"):
		if other {
			c.bad(path, "a response after other content")
		}
		w.response(path, role, c.object(path+"/functionResponse", p["functionResponse"]))
		return other, signed
	default:
		c.geminiFile(path, p)
		// White space counts as text; the empty string does not.
		if t, ok := p["text"].(string); ok && t == "" && signature == "" {
			c.bad(path, "an empty text")
		}
		return true, signed
	}
}

// geminiFile checks the URL of a file.
func (c *checker) geminiFile(path string, p map[string]any) {
	if has(p, "fileData") {
		f := c.object(path+"/fileData", p["fileData"])
		c.fetchable(path+"/fileData", str(f, "fileUri"), "gs://", "https://generativelanguage.googleapis.com/")
	}
}

// geminiType checks the media type of base64 content.
func (c *checker) geminiType(path, mime string) {
	kind, _, _ := strings.Cut(mime, "/")
	switch {
	case kind == "image" && mime != "image/jpg" && mime != "image/svg+xml", kind == "audio", kind == "video", kind == "text":
	case mime == "application/pdf", mime == "application/json", mime == "application/xml":
	default:
		c.bad(path+"/inlineData/mimeType", "type %.80q is not allowed", mime)
	}
}

// resultTypes lists the media types that a function response accepts.
var resultTypes = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/webp": true, "application/pdf": true, "text/plain": true,
}

// resultMedia checks the media of a response.
func (c *checker) resultMedia(path string, r map[string]any) {
	if !has(r, "parts") {
		return
	}
	for i, v := range c.list(path+"/parts", r["parts"]) {
		here := at(path+"/parts", i)
		p := c.object(here, v)
		c.geminiFile(here, p)
		for _, key := range []string{"inlineData", "fileData"} {
			if has(p, key) && !resultTypes[str(c.object(here, p[key]), "mimeType")] {
				c.bad(here, "a response does not accept %q", str(c.object(here, p[key]), "mimeType"))
			}
		}
	}
}

func (w *geminiWalk) response(path, role string, r map[string]any) {
	c := w.checker
	if role != "user" {
		c.bad(path, "a response from the model")
	}
	name, id := str(r, "name"), str(r, "id")
	if name == "" {
		c.bad(path, "a response without a name")
	}
	c.object(path+"/response", r["response"])
	c.resultMedia(path, r)
	for i := range w.calls {
		call := &w.calls[i]
		if call.done || call.name != name || id != "" && call.id != "" && call.id != id {
			continue
		}
		if (id == "") != (call.id == "") {
			c.bad(path, "an id on one side only")
		}
		call.done = true
		return
	}
	c.bad(path, "a response to %q %q, which is not a call of the previous turn", name, id)
}

func (w *geminiWalk) checkOpenCalls() {
	for _, call := range w.calls {
		if !call.done {
			w.bad(w.path, "the call of %q %q has no response directly after it", call.name, call.id)
		}
	}
	w.calls = nil
}

func (c *checker) geminiTools(req map[string]any) {
	if !has(req, "tools") {
		return
	}
	seen := map[string]bool{}
	for i, v := range c.list("/tools", req["tools"]) {
		t := c.object(at("/tools", i), v)
		if !has(t, "functionDeclarations") {
			continue
		}
		path := at("/tools", i) + "/functionDeclarations"
		for j, v := range c.list(path, t["functionDeclarations"]) {
			f := c.object(at(path, j), v)
			name := str(f, "name")
			c.match(at(path, j), "name", name, geminiName, 128)
			if seen[name] {
				c.bad(at(path, j), "duplicate function %q", name)
			}
			seen[name] = true
			if has(f, "parameters") && has(f, "parametersJsonSchema") {
				c.bad(at(path, j), "parameters in both forms")
			}
		}
	}
}
