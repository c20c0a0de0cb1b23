package strictupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
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

// ollamaTextOnly matches models that read text only.
var ollamaTextOnly = regexp.MustCompile(`^(llama[23]|llama3\.[123]|qwen2|qwen2\.5|qwen2\.5-coder|qwen3|qwen3-coder|gpt-oss|mistral|mistral-nemo|phi[34]|gemma2|deepseek-r1)(:|$)`)

type ollamaVendor struct{ defaultRules }

func (ollamaVendor) dialect() dragoman.Dialect { return dialectname.Ollama }

func (ollamaVendor) call(r *http.Request) (call, bool) { return call{}, at(r, "/api/chat") }

func (ollamaVendor) fields(j *judge, req map[string]any) *Refusal { return j.ollama(req) }

func (ollamaVendor) media(j *judge, req map[string]any) *Refusal {
	for _, m := range objects(req, "messages") {
		if ollamaTextOnly.MatchString(j.model) && len(list(m, "images")) > 0 {
			return j.bad("", "", "this model is missing data required for image input")
		}
	}
	return nil
}

// accepts: the server ignores unknown fields, and does not need the name of a result's tool.
func (ollamaVendor) accepts(rule string) bool {
	return rule == "unknown field" || rule == "a result without tool_name"
}

func (ollamaVendor) errorBody(r *Refusal) any { return map[string]any{"error": r.Message} }

// ollamaNumbers are the options with numeric values.
var ollamaNumbers = []string{"num_ctx", "num_predict", "temperature", "top_k", "top_p", "min_p", "seed", "repeat_penalty", "presence_penalty", "frequency_penalty"}

// ollamaLimits checks the types of options and of the arguments in the history.
func (j *judge) ollamaLimits(req map[string]any) *Refusal {
	options := obj(req, "options")
	if set(options, "typical_p") {
		return j.bad("", "", "option \"typical_p\" is not supported")
	}
	for _, name := range ollamaNumbers {
		if _, ok := options[name].(json.Number); set(options, name) && !ok {
			return j.bad("", "", "option %q must be of type number", name)
		}
	}
	for i, m := range objects(req, "messages") {
		for k, c := range objects(m, "tool_calls") {
			if _, ok := obj(c, "function")["arguments"].(map[string]any); !ok {
				return j.bad("", "", "%s", fmt.Sprintf("json: cannot unmarshal messages[%d].tool_calls[%d].function.arguments into an object", i, k))
			}
		}
	}
	return nil
}
