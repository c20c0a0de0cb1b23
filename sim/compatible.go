package sim

import (
	"cmp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// reasoningField is the member in which a compatible server tells reasoning; empty
// for one that is like OpenAI's.
func (c Config) reasoningField(spec modelSpec) string {
	return cmp.Or(spec.reasoning, c.ReasoningField)
}

// asCompatible reads a request to OpenAI Chat as a compatible server does: usage is
// told unasked, and thinking is asked for in the words of whoever serves.
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
			if on, said := at(tree, "enable_thinking").(bool); said {
				think(req, on, "")
			}
		}
	}
}

// think asks for reasoning, or for none.
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
