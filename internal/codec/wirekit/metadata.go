package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// WriteMetadata writes metadata as an object. Of a key that comes twice the
// last value counts: an object names every member once.
func WriteMetadata(w *jsonwire.Writer, metadata []dragoman.KeyValue, rep *dragoman.Report) {
	last := make(map[string]int, len(metadata)) // by key
	for i, kv := range metadata {
		last[kv.Key] = i
	}
	w.BeginObject()
	for i, kv := range metadata {
		if last[kv.Key] != i {
			rep.Addf(dragoman.Dropped, dragoman.Warn, "/metadata", "the key %.40q comes again; its last value is written", kv.Key)
			continue
		}
		w.QuotedKey(kv.Key)
		w.String(kv.Value)
	}
	w.EndObject()
}
