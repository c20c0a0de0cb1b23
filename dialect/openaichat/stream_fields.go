package openaichat

import (
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// choicePath returns the path of a choice in a chunk. It contains the index of the choice, not
// its position in the list.
func choicePath(choice int) string { return "/choices/" + strconv.Itoa(choice) }

// choiceOf returns the choice in the path of a field; 0 for a field of the chunk.
func choiceOf(path string) int {
	rest, _ := strings.CutPrefix(path, "/choices/")
	index, _, _ := strings.Cut(rest, "/")
	n, _ := strconv.Atoi(index)
	return n
}

// queueFields queues the unknown fields of an event. If a field with the same path is already queued,
// the queued fields get their own chunk first. Content of an unknown type also gets its own
// chunk.
func (e *streamEncoder) queueFields(dst []byte, fields *dragoman.Extra) []byte {
	for _, f := range fields.For(name) {
		if e.fields.Has(f.Path) {
			dst = e.write(dst, choiceOf(f.Path), "", nil)
		}
		e.fields.Add(f)
		if strings.HasSuffix(f.Path, "/delta/content") {
			dst = e.write(dst, choiceOf(f.Path), "", nil)
		}
	}
	return dst
}

// messageFields writes unknown message fields that no event carried.
func (e *streamEncoder) messageFields(dst []byte, choice int, fields []dragoman.Field) []byte {
	fresh := false
	for _, f := range fields {
		f.Path = choicePath(choice) + "/delta" + f.Path
		if !e.fields.Known(f.Path) {
			e.fields.Add(f)
			fresh = true
		}
	}
	if !fresh {
		return dst
	}
	return e.write(dst, choice, "", nil)
}
