package wirekit

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// RequestLists reads the lists of a request body. It keeps the first error; everything
// after it is only checked to be valid JSON.
type RequestLists struct {
	Err error
}

// Fail records err unless there is an earlier error. raw is the value that r has just
// read; at is its path in the body.
func (l *RequestLists) Fail(r *jsonwire.Reader, at extra.Path, raw []byte, err error) {
	if l.Err == nil {
		l.Err = jsonwire.PlaceAt(at.String(), r.Offset()-int64(len(raw)), err)
	}
}

// Each calls read for the elements of the list that r is at, until one fails.
func (l *RequestLists) Each(r *jsonwire.Reader, list string, read func(raw []byte, at extra.Path, i int) error) {
	for i := range r.Array() {
		raw := r.Raw()
		if r.Err() != nil || l.Err != nil {
			continue
		}
		at := extra.Elem(list, i)
		if err := read(raw, at, i); err != nil {
			l.Fail(r, at, raw, err)
		}
	}
}

// Tools appends the tool definitions at r to a request. An empty list is stored as a
// field of the dialect.
func (l *RequestLists) Tools(r *jsonwire.Reader, reg *interop.Registry, d dragoman.Dialect, req *dragoman.Request, rep *dragoman.Report) {
	empty := true
	l.Each(r, "/tools", func(raw []byte, at extra.Path, _ int) error {
		empty = false
		specs, err := reg.ReadTool(raw, at, rep)
		req.Tools = append(req.Tools, specs...)
		return err
	})
	if empty {
		extra.Add(&req.Extra, d, "", []byte("tools"), []byte("[]"))
	}
}
