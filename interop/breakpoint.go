package interop

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readCache reads a member that marks a cache breakpoint in dialect d. It
// reports false, and reads nothing, where the member is any other.
func readCache(rd *jsonwire.Reader, d dragoman.Dialect, key []byte, hint **dragoman.CacheHint, e **dragoman.Extra) bool {
	switch string(key) {
	case "prompt_cache_breakpoint":
		if d != dragoman.OpenAIChat && d != dragoman.OpenAIResponses {
			return false
		}
		*hint = ttl(rd)
		return true
	case "cache_control":
		switch d {
		case dragoman.Anthropic:
			*hint = ttl(rd)
			return true
		case dragoman.OpenAIChat: // of a compatible server: understood, and its spelling kept
			raw := rd.Raw()
			extra.Add(e, d, "", key, raw)
			*hint = ttl(jsonwire.NewReader(raw))
			return true
		}
	}
	return false
}

// writeBreakpoint writes OpenAI's explicit cache breakpoint where the model
// takes one.
func (r *Registry) writeBreakpoint(w *jsonwire.Writer, h *dragoman.CacheHint, e *dragoman.Extra, d dragoman.Dialect, at extra.Path, rep *dragoman.Report) {
	if h == nil || hasMember(e, d, "/cache_control") {
		return
	}
	if !r.target.Caps.CacheBreakpoints {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the target caches by itself")
		return
	}
	if r.surplus > 0 {
		r.surplus--
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the API takes %d, and later ones cover more", r.breakpoints)
		return
	}
	ttl := h.TTL
	switch ttl {
	case "", "30m", "12h":
	case "5m":
		ttl = "30m"
	default:
		ttl = "12h"
	}
	if ttl != h.TTL {
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String(), "cache lifetime %q written as %q", h.TTL, ttl)
	}
	w.Key("prompt_cache_breakpoint")
	w.BeginObject()
	w.StringField("mode", "explicit")
	w.StringFieldIf("ttl", ttl)
	w.EndObject()
}

// refusesCache reports whether the target takes no breakpoint, and tells that one
// is left out (quirk D31).
func (r *Registry) refusesCache(at extra.Path, rep *dragoman.Report) bool {
	if r.target.Caps.NoCacheBreakpoints {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the target takes none")
	}
	return r.target.Caps.NoCacheBreakpoints
}

// ttl reads the value of a cache breakpoint; null is none.
func ttl(r *jsonwire.Reader) *dragoman.CacheHint {
	hint := &dragoman.CacheHint{}
	if r.Null() {
		return nil
	}
	for key := range r.Object() {
		if string(key) == "ttl" {
			hint.TTL = r.String()
		} else {
			r.Skip()
		}
	}
	return hint
}

// anthropicTTL is the lifetime Anthropic knows that is nearest to a hint's.
func anthropicTTL(h *dragoman.CacheHint) string {
	switch h.TTL {
	case "", "5m":
		return h.TTL
	case "1h", "12h", "24h", "30m":
		return "1h"
	default:
		return ""
	}
}

// WriteCacheControl writes Anthropic's cache marker for a hint.
func WriteCacheControl(w *jsonwire.Writer, h *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
	ttl := anthropicTTL(h)
	switch {
	case ttl == h.TTL:
	case ttl == "":
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String()+"/cache", "cache lifetime %.40q is unknown; left to the provider", h.TTL)
	default:
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String()+"/cache", "cache lifetime %q written as %q", h.TTL, ttl)
	}
	w.Key("cache_control")
	w.BeginObject()
	w.StringField("type", "ephemeral")
	w.StringFieldIf("ttl", ttl)
	w.EndObject()
}
