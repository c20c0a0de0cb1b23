package openaichat

import "github.com/dragoman-go/dragoman/internal/codec/wirekit"

// The fields of a stream that say which call runs, and whether it may.
var (
	chunkMembers    = []string{"choices", "error", "object", "id", "model", "created", "usage", "service_tier"}
	choiceMembers   = []string{"index", "delta", "finish_reason", "message", "native_finish_reason", "error"}
	callMembers     = []string{"index", "function", "id", "type", "custom"}
	functionMembers = []string{"arguments", "name"}
	customMembers   = []string{"input", "name"}
)

// again takes note of the field i of an object.
func (d *streamDecoder) again(seen *wirekit.Members, i int) {
	d.twice = seen.Again(i) || d.twice
}

// twin takes note of an unknown field: many readers take it for a known one if it
// differs only in case. Then it is not kept.
func (d *streamDecoder) twin(known []string, key []byte) bool {
	twin := wirekit.Folds(known, key)
	d.twice = d.twice || twin
	return twin
}
