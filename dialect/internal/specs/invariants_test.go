package specs_test

import (
	"encoding/base64"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// invariants returns the violations of API rules that no schema expresses, for
// example: every call has exactly one result in the right place, and names and
// ids are legal. The rules come from the wire references and share no code with
// the encoders.
func invariants(a traffic.Source, doc any) []string {
	var v pairing
	body := traffic.Object(doc)
	limits := a.Codec.Limits()
	var names []string
	switch limits.Dialect {
	case dialectname.OpenAIChat:
		names = v.chat(body)
	case dialectname.OpenAIResponses:
		names = v.responses(body)
	case dialectname.Anthropic:
		names = v.anthropic(body)
	case dialectname.Gemini:
		names = v.gemini(body)
	case dialectname.Ollama:
		names = v.ollama(body)
	}
	for _, n := range names {
		if !legalName(limits.Dialect, n) {
			v.complain("the tool name %q is not legal", n)
		}
	}
	for _, id := range v.ids {
		if !v.legalID(limits.Dialect, id) {
			v.complain("the call id %q is not legal", id)
		}
	}
	return v.complaints
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

// legalName reports whether a tool name is legal. Gemini also accepts dots and
// colons, and requires a leading letter or underscore; Ollama accepts any name.
func legalName(d dragoman.Dialect, name string) bool {
	switch d {
	case dialectname.Gemini:
		return legal(name, nameCharacters+".:", 1, 128) && !strings.ContainsAny(name[:1], "0123456789-.:")
	case dialectname.Ollama:
		return name != ""
	default:
		return legal(name, nameCharacters, 1, maxName(d))
	}
}

// maxName returns the longest tool name: 64 in Chat, 128 in Anthropic and
// Responses.
func maxName(d dragoman.Dialect) int {
	if d == dialectname.OpenAIChat {
		return 64
	}
	return 128
}

func legal(s, characters string, least, most int) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, characters) == ""
}

// pairing tracks the calls of a conversation.
type pairing struct {
	complaints []string
	ids        []string
}

func (p *pairing) complain(format string, args ...any) {
	p.complaints = append(p.complaints, fmt.Sprintf(format, args...))
}

func (p *pairing) legalID(d dragoman.Dialect, id string) bool {
	switch d {
	case dialectname.OpenAIChat:
		return len(id) >= 1 && len(id) <= 40
	case dialectname.OpenAIResponses:
		return len(id) >= 1 && len(id) <= 64
	case dialectname.Gemini, dialectname.Ollama: // any string
		return true
	default:
		return legal(id, nameCharacters, 1, 1<<10)
	}
}

// chat checks that the tool messages for an assistant message follow it directly,
// that each call has one, and that each tool message has a call.
func (p *pairing) chat(body map[string]any) (names []string) {
	open := map[string]bool{}
	for i, v := range traffic.List(body["messages"]) {
		m := traffic.Object(v)
		if m["role"] == "tool" {
			id := traffic.Text(m["tool_call_id"])
			if !open[id] {
				p.complain("message %d has a result of %q, which is not an open call", i, id)
			}
			delete(open, id)
			continue
		}
		for id := range open {
			p.complain("message %d precedes the result of call %q", i, id)
		}
		clear(open)
		if m["role"] != "assistant" && m["tool_calls"] != nil {
			p.complain("message %d has calls but is not an assistant message", i)
		}
		for _, c := range traffic.List(m["tool_calls"]) {
			call := traffic.Object(c)
			id := traffic.Text(call["id"])
			if open[id] {
				p.complain("message %d has a duplicate call %q", i, id)
			}
			open[id] = true
			p.ids = append(p.ids, id)
			f := traffic.Object(call[traffic.Text(call["type"])])
			names = append(names, traffic.Text(f["name"]))
			if call["type"] == "function" {
				if args := traffic.Text(f["arguments"]); args == "" {
					p.complain("call %q has empty arguments", id)
				}
			}
		}
		if m["role"] == "assistant" && m["content"] == nil && traffic.List(m["tool_calls"]) == nil && m["refusal"] == nil {
			p.complain("message %d is empty", i)
		}
	}
	for id := range open {
		p.complain("call %q has no result", id)
	}
	for _, v := range traffic.List(body["tools"]) {
		tool := traffic.Object(v)
		names = append(names, traffic.Text(traffic.Object(tool[traffic.Text(tool["type"])])["name"]))
	}
	if traffic.List(body["tools"]) == nil && (body["tool_choice"] != nil || body["parallel_tool_calls"] != nil) {
		p.complain("tool_choice or parallel_tool_calls without tools")
	}
	return names
}

// responses checks that every call has exactly one output after it, and that every
// output has its call before it. Items between them do not matter.
func (p *pairing) responses(body map[string]any) (names []string) {
	calls, outputs := map[string]string{}, map[string]int{}
	chained := body["previous_response_id"] != nil || body["conversation"] != nil
	for i, v := range traffic.List(body["input"]) {
		item := traffic.Object(v)
		id := traffic.Text(item["call_id"])
		switch typ := traffic.Text(item["type"]); typ {
		case "function_call", "custom_tool_call":
			if calls[id] != "" && outputs[id] == 0 {
				p.complain("item %d is a duplicate of the open call %q", i, id)
			}
			calls[id], outputs[id] = typ, 0
			p.ids = append(p.ids, id)
			names = append(names, traffic.Text(item["name"]))
			if ns := traffic.Text(item["namespace"]); ns != "" {
				names = append(names, ns)
			}
		case "function_call_output", "custom_tool_call_output":
			if calls[id] == "" && !chained {
				p.complain("item %d is a result of %q, which is not a call", i, id)
			}
			if calls[id] != "" && calls[id]+"_output" != typ {
				p.complain("item %d is a %s for a %s", i, typ, calls[id])
			}
			if outputs[id]++; outputs[id] > 1 {
				p.complain("item %d is a duplicate result of %q", i, id)
			}
		}
	}
	for id := range calls {
		if outputs[id] == 0 {
			p.complain("call %q has no result", id)
		}
	}
	var walk func(tools []any)
	walk = func(tools []any) {
		for _, v := range tools {
			tool := traffic.Object(v)
			switch traffic.Text(tool["type"]) {
			case "function":
				names = append(names, traffic.Text(tool["name"]))
				if _, set := tool["strict"]; !set {
					p.complain("the function %q does not set strict, whose default is not false", tool["name"])
				}
			case "custom", "namespace":
				names = append(names, traffic.Text(tool["name"]))
			}
			walk(traffic.List(tool["tools"]))
		}
	}
	walk(traffic.List(body["tools"]))
	return names
}

// anthropic checks that a message with calls is followed by a user message whose
// first blocks are the results of exactly these calls, and that there are no
// other results.
func (p *pairing) anthropic(body map[string]any) (names []string) {
	var open map[string]bool
	last := ""
	for i, v := range traffic.List(body["messages"]) {
		m := traffic.Object(v)
		role := traffic.Text(m["role"])
		if role == last && role != "system" {
			p.complain("message %d is a second %s message in a row", i, role)
		}
		last = role
		calls := map[string]bool{}
		other := false
		for j, b := range traffic.List(m["content"]) {
			block := traffic.Object(b)
			switch typ := traffic.Text(block["type"]); typ {
			case "tool_use":
				id := traffic.Text(block["id"])
				if role != "assistant" {
					p.complain("message %d, block %d: a call in a %s message", i, j, role)
				}
				if calls[id] {
					p.complain("message %d has a duplicate call %q", i, id)
				}
				calls[id] = true
				p.ids = append(p.ids, id)
				names = append(names, traffic.Text(block["name"]))
			case "tool_result":
				id := traffic.Text(block["tool_use_id"])
				if other {
					p.complain("message %d, block %d: a result after other content", i, j)
				}
				if !open[id] {
					p.complain("message %d, block %d is a result of %q, which is not an open call", i, j, id)
				}
				delete(open, id)
			default:
				other = true
				if len(calls) > 0 {
					p.complain("message %d, block %d: a %s block after a call", i, j, typ)
				}
				if typ == "text" && strings.TrimSpace(traffic.Text(block["text"])) == "" {
					p.complain("message %d, block %d: a blank text block", i, j)
				}
			}
		}
		for id := range open {
			p.complain("message %d has no result of call %q", i, id)
		}
		open = calls
	}
	for id := range open {
		p.complain("call %q has no result", id)
	}
	for _, v := range traffic.List(body["tools"]) {
		tool := traffic.Object(v)
		if typ := traffic.Text(tool["type"]); typ == "" || typ == "custom" {
			names = append(names, traffic.Text(tool["name"]))
		}
	}
	if n := strings.Count(traffic.JSONText(body), `"cache_control":{"type":"ephemeral"`); n > 4 {
		p.complain("%d cache breakpoints, the API takes 4", n)
	}
	return names
}

// gemini checks that contents alternate between user and model and start with the
// user, that a content with calls is followed by one response for each call, in
// order and with matching names, that no text is blank, and which parts may be
// combined.
func (p *pairing) gemini(body map[string]any) (names []string) {
	var open []map[string]any
	last := "model"
	for i, v := range traffic.List(body["contents"]) {
		content := traffic.Object(v)
		role := traffic.Text(content["role"])
		if role == last || role != "user" && role != "model" {
			p.complain("content %d has role %q after %q", i, role, last)
		}
		last = role
		if len(traffic.List(content["parts"])) == 0 {
			p.complain("content %d has no parts", i)
		}
		var calls []map[string]any
		for j, v := range traffic.List(content["parts"]) {
			part := traffic.Object(v)
			call, response := traffic.Object(part["functionCall"]), traffic.Object(part["functionResponse"])
			switch {
			case call != nil:
				if len(calls) == 0 && traffic.Text(part["thoughtSignature"]) == "" {
					p.complain("content %d, part %d: the first call has no signature", i, j)
				}
				if role != "model" {
					p.complain("content %d, part %d: a call in user content", i, j)
				}
				calls = append(calls, call)
				names = append(names, traffic.Text(call["name"]))
			case response != nil:
				if len(open) == 0 || response["id"] != open[0]["id"] || response["name"] != open[0]["name"] {
					p.complain("content %d, part %d is a result of %v, which is not the next open call", i, j, response["name"])
				} else {
					open = open[1:]
				}
			default:
				if len(open) > 0 {
					p.complain("content %d, part %d precedes the response for %v", i, j, open[0]["name"])
				}
				if text, ok := part["text"].(string); ok && strings.TrimSpace(text) == "" && part["thoughtSignature"] == nil {
					p.complain("content %d, part %d: a blank text", i, j)
				}
			}
		}
		if len(open) > 0 {
			p.complain("content %d has no result of %d calls", i, len(open))
		}
		open = calls
	}
	if len(open) > 0 {
		p.complain("%d calls have no result", len(open))
	}
	return append(names, p.geminiSettings(body)...)
}

// geminiSettings checks that a calling config has functions, that allowed names have
// a mode that accepts them, and that at most one of two alternative schema or
// thinking settings is set.
func (p *pairing) geminiSettings(body map[string]any) (names []string) {
	declared := map[any]bool{}
	for _, v := range traffic.List(body["tools"]) {
		for _, f := range traffic.List(traffic.Object(v)["functionDeclarations"]) {
			function := traffic.Object(f)
			names = append(names, traffic.Text(function["name"]))
			if declared[function["name"]] {
				p.complain("duplicate function %q", function["name"])
			}
			declared[function["name"]] = true
			p.atMostOne(function, "parameters", "parametersJsonSchema")
		}
	}
	if calling := traffic.Object(traffic.Object(body["toolConfig"])["functionCallingConfig"]); calling != nil {
		if len(declared) == 0 {
			p.complain("a function calling config without functions")
		}
		allowed := traffic.List(calling["allowedFunctionNames"])
		if mode := calling["mode"]; len(allowed) > 0 && mode != "ANY" && mode != "VALIDATED" {
			p.complain("allowed names with the mode %v", mode)
		}
		for _, name := range allowed {
			if !declared[name] {
				p.complain("%v is allowed but not declared", name)
			}
		}
	}
	config := traffic.Object(body["generationConfig"])
	p.atMostOne(config, "responseSchema", "responseJsonSchema")
	p.atMostOne(traffic.Object(config["thinkingConfig"]), "thinkingBudget", "thinkingLevel")
	if (config["responseSchema"] != nil || config["responseJsonSchema"] != nil) && config["responseMimeType"] != "application/json" {
		p.complain("an output schema for %v", config["responseMimeType"])
	}
	return names
}

func (p *pairing) atMostOne(m map[string]any, a, b string) {
	if m[a] != nil && m[b] != nil {
		p.complain("%s together with %s", a, b)
	}
}

// ollama checks that the tool messages after a message with calls match the calls in
// order and by tool name, and occur nowhere else; that images are Base64; and that
// stream is set, because its default is true.
func (p *pairing) ollama(body map[string]any) (names []string) {
	var open []map[string]any
	for i, v := range traffic.List(body["messages"]) {
		m := traffic.Object(v)
		for _, image := range traffic.List(m["images"]) {
			if _, err := base64.StdEncoding.DecodeString(traffic.Text(image)); err != nil {
				p.complain("message %d: an image that is not Base64: %.40v", i, image)
			}
		}
		if m["role"] == "tool" {
			if len(open) == 0 || m["tool_name"] != open[0]["name"] {
				p.complain("message %d is a result of %v, which is not the next open call", i, m["tool_name"])
			} else {
				open = open[1:]
			}
			continue
		}
		if len(open) > 0 {
			p.complain("message %d has no result of %d calls", i, len(open))
		}
		open = nil
		for _, c := range traffic.List(m["tool_calls"]) {
			f := traffic.Object(traffic.Object(c)["function"])
			open = append(open, f)
			names = append(names, traffic.Text(f["name"]))
		}
		if m["role"] != "assistant" && len(open) > 0 {
			p.complain("message %d has calls but is not an assistant message", i)
		}
	}
	if len(open) > 0 {
		p.complain("%d calls have no result", len(open))
	}
	for _, v := range traffic.List(body["tools"]) {
		names = append(names, traffic.Text(traffic.Object(traffic.Object(v)["function"])["name"]))
	}
	if body["stream"] == nil {
		p.complain("stream is not set")
	}
	return names
}
