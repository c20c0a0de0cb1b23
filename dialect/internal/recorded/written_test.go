package recorded_test

import (
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/testkit/traffic"
)

// The functions below rewrite recorded requests, of the dialects whose objects are
// rebuilt whole, to the form of a rebuilt request, and count the reasons. The
// result must equal the rebuilt request.

// geminiWritten rewrites a Gemini request.
func geminiWritten(req map[string]any, why map[string]int) {
	for _, tool := range traffic.List(req["tools"]) {
		for k, v := range traffic.Object(tool) {
			if v == nil {
				delete(traffic.Object(tool), k)
				why["a null tool is omitted"]++
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
		config["responseJsonSchema"] = lowerTypes(s)
		why["responseSchema is written as responseJsonSchema"]++
	}
	upperCase(traffic.Object(config["thinkingConfig"]), "thinkingLevel", why)
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
		why["a lone signature gets an empty text"]++
	}
	if f := traffic.Object(p["functionCall"]); f != nil && f["args"] == nil {
		f["args"] = map[string]any{}
		why["absent arguments are written as {}"]++
	}
	if f := traffic.Object(p["functionResponse"]); f != nil && f["response"] == nil {
		f["response"] = map[string]any{"output": ""}
		why["an absent response is written as an empty output"]++
	}
}

func upperCase(m map[string]any, member string, why map[string]int) {
	if word := traffic.Text(m[member]); word != strings.ToUpper(word) {
		m[member] = strings.ToUpper(word)
		why["a "+member+" is written in upper case"]++
	}
}

// joinedRoles joins consecutive messages of one role.
func joinedRoles(ms []any, member string, why map[string]int) []any {
	out := []any{}
	for _, m := range ms {
		if n := len(out); n > 0 {
			if last := traffic.Object(out[n-1]); last["role"] == traffic.Object(m)["role"] {
				last[member] = append(traffic.List(last[member]), traffic.List(traffic.Object(m)[member])...)
				why["consecutive messages of one role are joined"]++
				continue
			}
		}
		out = append(out, m)
	}
	return out
}

// resultsInOrder puts the results of a content in the order of the calls before
// it, and returns the names of the content's own calls.
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
		why["results follow the order of the calls"]++
	}
	for _, p := range parts {
		if c := traffic.Object(traffic.Object(p)["functionCall"]); c != nil {
			calls = append(calls, traffic.Text(c["name"]))
		}
	}
	return calls
}

// lowerTypes writes the types of a recorded closed schema in lower case, as in JSON Schema.
func lowerTypes(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			if s, ok := x.(string); ok && k == "type" {
				v[k] = strings.ToLower(s)
				continue
			}
			v[k] = lowerTypes(x)
		}
	case []any:
		for i, x := range v {
			v[i] = lowerTypes(x)
		}
	}
	return v
}

// ollamaWritten rewrites an Ollama request: it adds defaults and the tool names
// that a client left to the order of messages.
func ollamaWritten(req map[string]any, why map[string]int) {
	if _, set := req["stream"]; !set {
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

// bedrockWritten rewrites a Bedrock request.
func bedrockWritten(req map[string]any, why map[string]int) {
	for _, m := range traffic.List(req["messages"]) {
		for _, b := range traffic.List(traffic.Object(m)["content"]) {
			if d := traffic.Object(traffic.Object(b)["document"]); strings.Contains(traffic.Text(d["name"]), "_") {
				d["name"] = strings.ReplaceAll(traffic.Text(d["name"]), "_", "-")
				why["a document name that the recorder made illegal is legal again"]++
			}
		}
	}
	req["messages"] = joinedRoles(traffic.List(req["messages"]), "content", why)
}
