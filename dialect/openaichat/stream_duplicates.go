package openaichat

import "github.com/dragoman-go/dragoman/internal/codec/wirekit"

// The fields of a stream that determine which call runs, and whether it may.
var (
	chunkKeys    = []string{"choices", "error", "object", "id", "model", "created", "usage", "service_tier"}
	choiceKeys   = []string{"index", "delta", "finish_reason", "message", "native_finish_reason", "error"}
	callKeys     = []string{"index", "function", "id", "type", "custom"}
	functionKeys = []string{"arguments", "name"}
	customKeys   = []string{"input", "name"}
)

// markSeen records field i of an object, and whether it is a duplicate.
func (d *streamDecoder) markSeen(seen *wirekit.KnownFields, i int) {
	d.duplicate = seen.IsRepeatedAt(i) || d.duplicate
}

// caseVariant reports whether an unknown field differs only in case from a known one, so that
// many readers would confuse them. The caller drops such a field.
func (d *streamDecoder) caseVariant(known []string, key []byte) bool {
	variant := wirekit.Folds(known, key)
	d.duplicate = d.duplicate || variant
	return variant
}
