package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// WriteMetadata writes metadata as an object. If a key occurs more than once, the last
// value counts, because an object must not have duplicate fields.
func WriteMetadata(w *jsonwire.Writer, metadata []dragoman.KeyValue, rep *dragoman.Report) {
	last := make(map[string]int, len(metadata)) // by key
	for i, kv := range metadata {
		last[kv.Key] = i
	}
	w.BeginObject()
	for i, kv := range metadata {
		if last[kv.Key] != i {
			rep.Addf(dragoman.Dropped, dragoman.Warn, "/metadata", "duplicate key %.40q; the last value is written", kv.Key)
			continue
		}
		w.QuotedKey(kv.Key)
		w.String(kv.Value)
	}
	w.EndObject()
}
