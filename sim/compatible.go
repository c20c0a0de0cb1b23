package sim

import (
	"cmp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// reasoningField returns the field in which a compatible server sends reasoning. It is empty
// for a server that behaves like OpenAI.
func (c Config) reasoningField(spec modelSpec) string {
	return cmp.Or(spec.reasoning, c.ReasoningField)
}

// asCompatible reads an OpenAI Chat request like a compatible server: usage is always sent in
// streams, and reasoning is controlled by the fields of several vendors.
func asCompatible(req *dragoman.Request, d dragoman.Dialect) {
	req.StreamUsage = true
	for _, f := range req.Extra.For(d) {
		tree, err := parseTree(f.Value)
		if err != nil {
			continue
		}
		switch f.Path {
		case "/reasoning": // OpenRouter
			effort, _ := at(tree, "effort").(string)
			think(req, effort != "none" && at(tree, "enabled") != false, effort)
		case "/thinking": // DeepSeek, Moonshot, Z.ai
			think(req, at(tree, "type") != "disabled", "")
		case "/enable_thinking": // DashScope
			think(req, tree == true, "")
		case "/chat_template_kwargs": // vLLM, llama.cpp
			if on, ok := at(tree, "enable_thinking").(bool); ok {
				think(req, on, "")
			}
		}
	}
}

// think turns reasoning on or off.
func think(req *dragoman.Request, on bool, effort string) {
	s := dragoman.ReasoningSettings{}
	if req.Reasoning != nil {
		s = *req.Reasoning
	}
	s.Effort = cmp.Or(effort, s.Effort)
	if !on {
		s.Mode = codes.ReasoningOff
	}
	req.Reasoning = &s
}
