package openaichat

import (
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// choicePath is the path of a choice of a chunk. It has the index of the choice,
// wherever that stands in its list.
func choicePath(choice int) string { return "/choices/" + strconv.Itoa(choice) }

// choiceOf is the choice in the path of a field; 0 for a field of the chunk.
func choiceOf(path string) int {
	rest, _ := strings.CutPrefix(path, "/choices/")
	index, _, _ := strings.Cut(rest, "/")
	n, _ := strconv.Atoi(index)
	return n
}

// take takes the unknown fields of an event. One that waits at the same path, and
// content of an unknown type, go into a chunk of their own.
func (e *streamEncoder) take(dst []byte, fields *dragoman.Extra) []byte {
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

// messageFields writes unknown fields of a message that no event brought.
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
