package strictupstream

import (
	"encoding/json"
	"slices"
	"strings"
)

// Models of the Ollama library that do not think, and those that take no tools, by the name
// before the colon.
var (
	ollamaPlain   = []string{"llama3", "llama3.1", "llama3.2", "llama3.3", "qwen2.5", "qwen2.5-coder", "mistral", "mistral-nemo", "gemma2", "gemma3", "phi3", "phi4", "tinyllama"}
	ollamaNoTools = strings.Fields(`codellama codestral deepseek-coder-v2 deepseek-v3 gemma2 gemma3 gemma3n llama2 llama3 llama3.2-vision llava minicpm-v
		phi3 phi4 phi4-reasoning qwen2.5vl tinyllama`)
)

// ollama ignores unknown fields, as the server does.
func (j *judge) ollama(req map[string]any) *Refusal {
	name, _, _ := strings.Cut(j.model, ":")
	plain := slices.Contains(ollamaPlain, name)
	switch think := req["think"].(type) {
	case nil, bool:
		if think == true && plain {
			return j.bad("", "", "%q does not support thinking", j.model)
		}
	case string:
		switch {
		case !slices.Contains([]string{"low", "medium", "high", "max"}, think):
			return j.bad("", "", "invalid think value: %q (must be \"high\", \"medium\", \"low\", \"max\", true, or false)", think)
		case plain:
			return j.bad("", "", "think value %q is not supported for this model", think)
		}
	case json.Number:
		return j.bad("", "", "think must be a boolean or string (\"high\", \"medium\", \"low\", \"max\", true, or false)")
	}
	if r := j.ollamaLimits(req); r != nil {
		return r
	}
	if len(list(req, "tools")) > 0 && slices.Contains(ollamaNoTools, name) {
		return j.bad("", "", "registry.ollama.ai/library/%s does not support tools", j.model)
	}
	return nil
}
