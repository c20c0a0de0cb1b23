package dialect

import (
	"errors"
	"io"
	"iter"

	dragoman "github.com/dragoman-go/dragoman"
)

// Events reads a stream to its end and returns a sequence of its events. If r fails or the stream
// is broken, the last pair holds the error, after the events that arrived before. The sequence
// can be ranged over once.
//
//	for ev, err := range dialect.Events(codec.NewStreamDecoder(o), resp.Body) {
//		if err != nil {
//			return err
//		}
//		if d, ok := ev.(*dragoman.PartDelta); ok && d.Kind == "text" {
//			fmt.Print(d.Text)
//		}
//	}
//
// [dragoman.Collect] folds the same sequence into a response.
func Events(d StreamDecoder, r io.Reader) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		emit := func(ev dragoman.Event) error {
			if !yield(ev, nil) {
				return errStopped
			}
			return nil
		}
		err := pump(d, r, emit)
		if err != nil && !errors.Is(err, errStopped) {
			yield(nil, err)
		}
	}
}

// errStopped reports that the caller left the loop over the events.
var errStopped = errors.New("dialect: event loop stopped")

// pump feeds a decoder from r and closes it. An error of the decoder comes before an error of r,
// because it describes the bytes. If r fails, the stream is incomplete and the error contains
// both.
func pump(d StreamDecoder, r io.Reader, emit func(dragoman.Event) error) error {
	buf := make([]byte, minBuffer)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := d.Feed(buf[:n], emit); err != nil {
				if errors.Is(err, errStopped) {
					return err
				}
				return errors.Join(err, closeError(d.Close(emit)))
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return d.Close(emit)
		case err != nil:
			return errors.Join(err, closeError(d.Close(emit)))
		case n == len(buf) && n < maxBuffer: // Feed does not retain the buffer
			buf = make([]byte, 2*n)
		}
	}
}

// Sizes of the read buffer. It grows while reads fill it; idle streams keep a small one, because
// a server may hold thousands of them.
const (
	minBuffer = 2 << 10
	maxBuffer = 32 << 10
)

// closeError shortens the error of Close for a stream that is already known to be broken.
func closeError(err error) error {
	if errors.Is(err, dragoman.ErrIncompleteStream) {
		return dragoman.ErrIncompleteStream
	}
	return err
}

// Translate reads a stream in one dialect and writes it in another, event by event. After each
// write it calls Flush on w if w has such a method, like the http.ResponseWriter of a server. A
// broken stream ends with an error in the dialect of to, and Translate returns the error as well.
// The reports of from and to list the losses.
func Translate(w io.Writer, to StreamEncoder, from StreamDecoder, r io.Reader) error {
	flusher, _ := w.(interface{ Flush() })
	var buf []byte
	flush := func() error {
		if len(buf) == 0 {
			return nil
		}
		_, err := w.Write(buf)
		buf = buf[:0]
		if err == nil && flusher != nil {
			flusher.Flush()
		}
		return err
	}
	broken := pump(from, r, func(ev dragoman.Event) error {
		var err error
		if buf, err = to.Encode(buf, ev); err != nil {
			return err
		}
		return flush()
	})
	var err error
	buf, err = to.Close(buf)
	return errors.Join(broken, err, flush())
}
