package wirekit

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

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
