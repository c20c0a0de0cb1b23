package wirekit

import (
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// StreamReading is the state of a stream decoder.
type StreamReading struct {
	// Failed is why the stream cannot be read further: it is not valid, or the caller's
	// emit function failed. It is nil while the stream can be read.
	Failed error
	// Closing means that the current event may be incomplete.
	Closing bool
	// Ended means that a ResponseEnd or a StreamError was sent.
	Ended bool
}

// Drain reads what the parser still holds at the end of the stream. After an error it
// reads nothing, because the result must not depend on how much was fed after the
// error. It returns only errors of the caller's emit function; the error of an invalid
// stream is in Failed.
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

// Cut returns the error for a stream without an end. unit names one unit of the
// framing, such as "an event"; missing names the end, for a stream that is valid so
// far.
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
