package wirekit

import (
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// StreamReading is how far a stream decoder got.
type StreamReading struct {
	// Failed is why the stream cannot be read any further: it is not valid, or the
	// caller's emit function failed. Nil while it can.
	Failed error
	// Closing says that the event at hand may be incomplete.
	Closing bool
	// Ended says that a ResponseEnd or a StreamError was sent.
	Ended bool
}

// Drain reads what the parser still holds at the end of the stream. After an error it reads
// nothing: how much was fed beyond the error must not matter. It returns only errors of the
// caller's emit function; an invalid stream is in Failed.
func (s *StreamReading) Drain(closeParser func() error) error {
	if s.Failed == nil {
		s.Closing = true
		s.Failed = closeParser()
		var invalid *dragoman.DecodeError
		if s.Failed != nil && !errors.As(s.Failed, &invalid) {
			return s.Failed
		}
	}
	return nil
}

// Cut returns the error of a stream without an end. unit names one unit of the framing,
// such as "an event"; missing names the end, for a stream that is valid so far.
func (s *StreamReading) Cut(unit, missing string) *dragoman.APIError {
	e := &dragoman.APIError{Class: dragoman.ErrorServer, Err: dragoman.ErrIncompleteStream}
	switch {
	case s.Failed == nil:
		e.Message = "the stream ended before " + missing
		return e
	case s.Closing:
		e.Message = "the stream was cut in the middle of " + unit + ": " + s.Failed.Error()
	default:
		e.Message = "the stream broke: " + s.Failed.Error()
	}
	e.Err = fmt.Errorf("%w: %w", dragoman.ErrIncompleteStream, s.Failed)
	return e
}
