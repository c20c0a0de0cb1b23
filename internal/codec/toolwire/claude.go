package toolwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// claudeTTL returns the cache lifetime of the Claude APIs that is nearest to that of
// the hint, or "" if the hint's lifetime is unknown.
func claudeTTL(h *dragoman.CacheHint) string {
	switch h.TTL {
	case "", "5m":
		return h.TTL
	case "1h", "12h", "24h", "30m":
		return "1h"
	default:
		return ""
	}
}

// WriteClaudeCache writes the object of a cache marker, for APIs of Claude models: its
// type, and the lifetime that is nearest to the hint's.
func WriteClaudeCache(w *jsonwire.Writer, typ string, h *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
	ttl := claudeTTL(h)
	switch {
	case ttl == h.TTL:
	case ttl == "":
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String()+"/cache", "cache lifetime %.40q is unknown; left to the provider", h.TTL)
	default:
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String()+"/cache", "cache lifetime %q written as %q", h.TTL, ttl)
	}
	w.BeginObject()
	w.StringField("type", typ)
	w.StringFieldIf("ttl", ttl)
	w.EndObject()
}

// ClaudeStrictLimits returns the limits that Claude models have, on every server, for
// all strict schemas of a request together, including its output schema.
func ClaudeStrictLimits() StrictLimits {
	return StrictLimits{Tools: 20, Optional: 24, Unions: 16}
}
