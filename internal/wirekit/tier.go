package wirekit

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// KnownTier reports whether OpenAI has a service tier of this name. Other words
// are those of one server, and go back only to its dialect.
func KnownTier(tier string) bool {
	switch tier {
	case "auto", "default", "flex", "scale", "priority", "fast", "ultrafast":
		return true
	default:
		return false
	}
}

// OpenAITier is the service tier to write for OpenAI.
func OpenAITier(tier string, rep *dragoman.Report) string {
	if tier == "standard_only" { // Anthropic's word
		rep.Add(dragoman.Lowered, dragoman.Info, "/service_tier", `"standard_only" written as "default"`)
		return "default"
	}
	return tier
}

// WriteMetadata writes metadata as an object. Of a key that comes twice the
// last value counts: an object names every member once.
func WriteMetadata(w *jsonwire.Writer, metadata []dragoman.KeyValue, rep *dragoman.Report) {
	w.BeginObject()
	for i, kv := range metadata {
		if slices.ContainsFunc(metadata[i+1:], func(later dragoman.KeyValue) bool { return later.Key == kv.Key }) {
			rep.Addf(dragoman.Dropped, dragoman.Warn, "/metadata", "the key %.40q comes again; its last value is written", kv.Key)
			continue
		}
		w.QuotedKey(kv.Key)
		w.String(kv.Value)
	}
	w.EndObject()
}
