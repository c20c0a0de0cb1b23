package recorded_test

import (
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// What follows spells recorded requests of the dialects with whole
// objects as a rebuilt one does, and counts why. What is left after that must
// be equal.

// geminiWritten does so for Gemini.
func geminiWritten(req map[string]any, why map[string]int) {
	for _, tool := range traffic.List(req["tools"]) {
		for k, v := range traffic.Object(tool) {
			if v == nil {
				delete(traffic.Object(tool), k)
				why["a tool that is null is left out"]++
			}
		}
	}
	if c := traffic.Object(traffic.Object(req["toolConfig"])["functionCallingConfig"]); c != nil {
		if names, ok := c["allowed_function_names"]; ok {
			delete(c, "allowed_function_names")
			c["allowedFunctionNames"] = names
			why["snake_case is written in camelCase"]++
		}
	}
	config := traffic.Object(req["generationConfig"])
	if s, ok := config["responseSchema"]; ok {
		delete(config, "responseSchema")
		config["responseJsonSchema"] = smallTypes(s)
		why["responseSchema is written as responseJsonSchema"]++
	}
	inCapitals(traffic.Object(config["thinkingConfig"]), "thinkingLevel", why)
	var asked []string
	for _, c := range traffic.List(req["contents"]) {
		asked = resultsInOrder(traffic.Object(c), asked, why)
		for _, p := range traffic.List(traffic.Object(c)["parts"]) {
			geminiWrittenPart(traffic.Object(p), why)
		}
	}
	if contents, ok := req["contents"].([]any); ok {
		req["contents"] = joinedRoles(contents, "parts", why)
	}
}

func geminiWrittenPart(p map[string]any, why map[string]int) {
	if p["thoughtSignature"] != nil && len(p) == 1 {
		p["text"] = ""
		why["a signature alone gets an empty text"]++
	}
	if f := traffic.Object(p["functionCall"]); f != nil && f["args"] == nil {
		f["args"] = map[string]any{}
		why["no arguments are written as {}"]++
	}
	if f := traffic.Object(p["functionResponse"]); f != nil && f["response"] == nil {
		f["response"] = map[string]any{"output": ""}
		why["no response is written as an empty output"]++
	}
}

func inCapitals(m map[string]any, member string, why map[string]int) {
	if word := traffic.Text(m[member]); word != strings.ToUpper(word) {
		m[member] = strings.ToUpper(word)
		why["a "+member+" is written in capitals"]++
	}
}

// joinedRoles joins neighbours of one role.
func joinedRoles(ms []any, member string, why map[string]int) []any {
	out := []any{}
	for _, m := range ms {
		if n := len(out); n > 0 {
			if last := traffic.Object(out[n-1]); last["role"] == traffic.Object(m)["role"] {
				last[member] = append(traffic.List(last[member]), traffic.List(traffic.Object(m)[member])...)
				why["neighbours of one role are joined"]++
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// resultsInOrder puts the results of a content in the order of the calls before
// it, and returns the names of those that it makes itself.
func resultsInOrder(content map[string]any, asked []string, why map[string]int) (calls []string) {
	parts := traffic.List(content["parts"])
	rank := func(p any) int {
		res := traffic.Object(traffic.Object(p)["functionResponse"])
		if res == nil || res["id"] != nil {
			return 0
		}
		return slices.Index(asked, traffic.Text(res["name"]))
	}
	byRank := func(a, b any) int { return rank(a) - rank(b) }
	if !slices.IsSortedFunc(parts, byRank) {
		slices.SortStableFunc(parts, byRank)
		why["results stand in the order of the calls"]++
	}
	for _, p := range parts {
		if c := traffic.Object(traffic.Object(p)["functionCall"]); c != nil {
			calls = append(calls, traffic.Text(c["name"]))
		}
	}
	return calls
}

// smallTypes is a closed schema as JSON Schema, for what was recorded.
func smallTypes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && k == "type" {
				v[k] = strings.ToLower(s)
				continue
			}
			v[k] = smallTypes(x)
		}
	case []any:
		for i, x := range v {
			v[i] = smallTypes(x)
		}
	}
	return v
}

// ollamaWritten does so for Ollama: defaults, and what a client left to the
// order of messages.
func ollamaWritten(req map[string]any, why map[string]int) {
	if _, said := req["stream"]; !said {
		req["stream"] = true
		why["stream:true is written out"]++
	}
	var called []string
	for _, v := range traffic.List(req["messages"]) {
		m := traffic.Object(v)
		for _, c := range traffic.List(m["tool_calls"]) {
			called = append(called, traffic.Text(traffic.Object(traffic.Object(c)["function"])["name"]))
		}
		if m["role"] != "tool" {
			continue
		}
		if _, named := m["tool_name"]; !named && len(called) > 0 {
			m["tool_name"] = called[0]
			why["tool_name is written out"]++
		}
		called = called[min(1, len(called)):]
	}
}

// bedrockWritten does so for Bedrock.
func bedrockWritten(req map[string]any, why map[string]int) {
	for _, m := range traffic.List(req["messages"]) {
		for _, b := range traffic.List(traffic.Object(m)["content"]) {
			if d := traffic.Object(traffic.Object(b)["document"]); strings.Contains(traffic.Text(d["name"]), "_") {
				d["name"] = strings.ReplaceAll(traffic.Text(d["name"]), "_", "-")
				why["the name of a document, which the recorder made an illegal one, is legal again"]++
			}
		}
	}
	req["messages"] = joinedRoles(traffic.List(req["messages"]), "content", why)
}
