package interop

import (
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
)

// wire returns the traits of the target's dialect.
func (r *Registry) wire() (*toolwire.Traits, error) {
	if r.ownCodec == nil {
		return nil, fmt.Errorf("interop: the registry has no codec for dialect %q: compose it with all.Registry of package dialect/all", r.target.Dialect)
	}
	return r.ownCodec.Traits(), nil
}

// codecOf returns the codec that owns a format, or nil. The target's comes first.
func (r *Registry) codecOf(f dragoman.Format, owns func(*toolwire.Traits, dragoman.Format) bool) toolwire.Codec {
	if r.ownCodec != nil && owns(r.ownCodec.Traits(), f) {
		return r.ownCodec
	}
	for _, c := range r.codecs {
		if owns(c.Traits(), f) {
			return c
		}
	}
	return nil
}

func (r *Registry) toolCodec(f dragoman.Format) toolwire.Codec {
	return r.codecOf(f, (*toolwire.Traits).OwnsTool)
}

func (r *Registry) callCodec(f dragoman.Format) toolwire.Codec {
	return r.codecOf(f, (*toolwire.Traits).OwnsCall)
}

func (r *Registry) resultCodec(f dragoman.Format) toolwire.Codec {
	return r.codecOf(f, (*toolwire.Traits).OwnsResult)
}

// hostCodec returns the codec of the dialect that a format is named after, or nil.
func (r *Registry) hostCodec(f dragoman.Format) toolwire.Codec {
	return r.codecOf(f, (*toolwire.Traits).Hosts)
}

// builtIn reports whether a format belongs to a known dialect, or is one of ours. A tool of
// such a format that no codec reads is a provider's own tool.
func (r *Registry) builtIn(f dragoman.Format) bool {
	return f == toolformat.MCPTool || r.hostCodec(f) != nil
}

// notSendable returns why a provider's tool cannot be sent to another provider.
func (r *Registry) notSendable(f dragoman.Format) string {
	if c := r.hostCodec(f); c != nil {
		for _, prefix := range c.Traits().ClientRun {
			if strings.HasPrefix(string(f), prefix) {
				return "run by the client, but defined by its own provider alone"
			}
		}
	}
	return "run by its own provider"
}

// builtIns lists the formats of the registry's codecs.
func (r *Registry) builtIns() []Entry {
	var es []Entry
	add := func(what string, formats ...dragoman.Format) {
		for _, f := range formats {
			if f != "" {
				es = append(es, Entry{What: what, From: f}, Entry{What: what + " adapter", To: f})
			}
		}
	}
	for _, c := range r.codecs {
		t := c.Traits()
		add("schema", t.Function, t.Freeform, t.Namespace)
	}
	add("schema", toolformat.MCPTool)
	for _, c := range r.codecs {
		t := c.Traits()
		add("call", t.Call, t.TextCall)
	}
	for _, c := range r.codecs {
		add("result", c.Traits().Result)
	}
	return es
}

// readsBuiltIn reports whether a codec reads tool definitions of a format.
func (r *Registry) readsBuiltIn(f dragoman.Format) bool {
	if f == toolformat.MCPTool {
		return true
	}
	c := r.toolCodec(f)
	return c != nil && f != c.Traits().ToolList
}
