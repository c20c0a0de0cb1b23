package ollama

import (
	"bytes"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/framing/ndjson"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// linePosition tracks the position in a stream, for error messages. The zero value is the start
// of the stream.
type linePosition struct {
	line  int   // the number of the current line, from 1
	start int64 // offset of its first byte
	next  int64 // offset of the first byte after it
}

// enter moves to the next line.
func (p *linePosition) enter(l ndjson.Line) {
	p.line++
	p.start = p.next
	p.next += int64(len(l.Raw))
}

// error wraps an error of the current line. The offset in err is relative to the JSON value of
// the line; the offset of the result is relative to the start of the stream.
func (p *linePosition) error(l ndjson.Line, err error) error {
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

// nextLineError wraps an error of the line after the current one, which was not read.
func (p *linePosition) nextLineError(err error) error {
	return &dragoman.DecodeError{Dialect: name, What: "stream", Offset: p.next, Err: fmt.Errorf("line %d: %w", p.line+1, err)}
}
