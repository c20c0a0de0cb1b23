package ollama

import (
	"bytes"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/framing/ndjson"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// linePlace is how far a stream was read, so that an error can say where in it
// it is. The zero value is its beginning.
type linePlace struct {
	line  int   // the number of the line at hand, counted from 1
	start int64 // its first byte
	next  int64 // the first byte behind it
}

// enter takes the next line.
func (p *linePlace) enter(l ndjson.Line) {
	p.line++
	p.start = p.next
	p.next += int64(len(l.Raw))
}

// error is what was wrong with the line at hand. The offset of err counts from
// the line's value, that of the result from the beginning of the stream.
func (p *linePlace) error(l ndjson.Line, err error) error {
	e := &dragoman.DecodeError{Dialect: name, What: "stream", Offset: p.start}
	var at *jsonwire.Error
	if errors.As(err, &at) {
		e.Pointer, err = at.Pointer, at.Err
		if at.Offset >= 0 {
			e.Offset += int64(max(bytes.Index(l.Raw, l.Data), 0)) + at.Offset
		}
	}
	e.Err = fmt.Errorf("line %d: %w", p.line, err)
	return e
}

// beyond is what was wrong with the line after the one at hand, which was never
// read.
func (p *linePlace) beyond(err error) error {
	return &dragoman.DecodeError{Dialect: name, What: "stream", Offset: p.next, Err: fmt.Errorf("line %d: %w", p.line+1, err)}
}
