package openairesponses

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// hostedTool identifies a tool that the API runs itself: by its type, and for MCP servers also by
// label.
type hostedTool struct{ typ, label string }

func readHosted(t *dragoman.ToolSpec) (h hostedTool) {
	if t.Source == nil {
		return h
	}
	r := jsonwire.NewReader(t.Source.JSON)
	if r.Kind() != '{' {
		return h
	}
	for key := range r.Object() {
		switch {
		case string(key) == "type" && r.Kind() == '"':
			h.typ = r.String()
		case string(key) == "server_label" && r.Kind() == '"':
			h.label = r.String()
		default:
			r.Skip()
		}
	}
	if h.typ != "mcp" {
		h.label = ""
	}
	return h
}

// sendsHosted reports whether this API runs a tool itself, and the tool has a type that a choice
// can name.
func sendsHosted(t *dragoman.ToolSpec) bool {
	if t == nil || t.Kind != codes.ToolHosted || t.Source == nil {
		return false
	}
	f := t.Source.Format
	return strings.HasPrefix(string(f), string(name)+".") && f != toolformat.ResponsesNamespace && readHosted(t).typ != ""
}

// toolKey identifies the tool of a reference.
type toolKey struct {
	hosted          bool
	namespace, name string
}

func keyOf(ref dragoman.ToolRef) toolKey {
	if ref.Kind == codes.ToolHosted {
		return toolKey{hosted: true, name: ref.Name}
	}
	return toolKey{namespace: ref.Namespace, name: ref.Name}
}

// keysOf returns the keys of a tool. A hosted tool can be referenced by its name, its type or the
// label of its server.
func keysOf(t *dragoman.ToolSpec) []toolKey {
	keys := []toolKey{{namespace: t.Namespace, name: t.Name}}
	if t.Kind == codes.ToolHosted {
		h := readHosted(t)
		for _, s := range []string{t.Name, h.typ, h.label} {
			if s != "" {
				keys = append(keys, toolKey{hosted: true, name: s})
			}
		}
	}
	return keys
}
