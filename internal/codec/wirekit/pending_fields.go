package wirekit

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// PendingFields are unknown fields of events that a stream encoder writes into its next
// chunks. The zero value is ready to use.
type PendingFields struct {
	waiting []dragoman.Field
	sent    map[string][]byte // by path, the last value that was written
}

// Any reports whether a field waits.
func (p *PendingFields) Any() bool { return len(p.waiting) > 0 }

// Has reports whether a field waits at a path.
func (p *PendingFields) Has(path string) bool {
	return slices.ContainsFunc(p.waiting, func(f dragoman.Field) bool { return f.Path == path })
}

// Add queues a field. No other field may wait at its path.
func (p *PendingFields) Add(f dragoman.Field) { p.waiting = append(p.waiting, f) }

// Write writes the waiting fields directly below path.
func (p *PendingFields) Write(w *jsonwire.Writer, path string) {
	if len(p.waiting) == 0 {
		return
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(f dragoman.Field) bool {
		rest, ok := strings.CutPrefix(f.Path, path+"/")
		if !ok || strings.Contains(rest, "/") {
			return false
		}
		w.QuotedKey(string(extra.Name(f.Path)))
		w.Raw(f.Value)
		if p.sent == nil {
			p.sent = map[string][]byte{}
		}
		p.sent[f.Path] = f.Value
		return true
	})
}

// WriteElem writes the waiting fields directly below a path of an element of a list. It makes
// the path only if a field waits, because encoders call it for each delta.
func (p *PendingFields) WriteElem(w *jsonwire.Writer, list string, index int, below string) {
	if len(p.waiting) > 0 {
		p.Write(w, list+"/"+strconv.Itoa(index)+below)
	}
}

// WriteRest writes all waiting fields into one object. Of fields with the same name it
// writes the first.
func (p *PendingFields) WriteRest(w *jsonwire.Writer) {
	written := map[string]bool{}
	for _, f := range p.waiting {
		if key := string(extra.Name(f.Path)); !written[key] {
			written[key] = true
			w.QuotedKey(key)
			w.Raw(f.Value)
		}
	}
	p.waiting = nil
}

// Known reports whether a field at the path waits or was written.
func (p *PendingFields) Known(path string) bool {
	_, sent := p.sent[path]
	return sent || p.Has(path)
}

// Written reports whether the latest value of a field was written.
func (p *PendingFields) Written(f dragoman.Field) bool {
	value, ok := p.sent[f.Path]
	return ok && bytes.Equal(value, f.Value)
}

// Unwritten returns an extra without the fields that were written.
func (p *PendingFields) Unwritten(e *dragoman.Extra, d dragoman.Dialect) *dragoman.Extra {
	if e == nil || e.Dialect != d || len(p.sent) == 0 {
		return e
	}
	return &dragoman.Extra{Dialect: d, Fields: slices.DeleteFunc(slices.Clone(e.Fields), p.Written)}
}
