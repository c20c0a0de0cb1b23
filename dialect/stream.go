package dialect

import (
	"errors"
	"io"
	"iter"

	dragoman "github.com/dragoman-go/dragoman"
)

// Events reads a stream to its end and ranges over its events. What ends the
// loop early, an error of r or a stream that breaks, comes as the last pair,
// after the events that had arrived. The sequence is good for one loop.
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

// errStopped says that the loop over the events was left.
var errStopped = errors.New("dialect: loop left")

// pump feeds a decoder from r and closes it. An error of the decoder beats one
// of r, because it says what the bytes were; a stream that r cut short is
// incomplete, and says both.
func pump(d StreamDecoder, r io.Reader, emit func(dragoman.Event) error) error {
	buf := make([]byte, leastRoom)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := d.Feed(buf[:n], emit); err != nil {
				if errors.Is(err, errStopped) {
					return err
				}
				return errors.Join(err, ended(d.Close(emit)))
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return d.Close(emit)
		case err != nil:
			return errors.Join(err, ended(d.Close(emit)))
		case n == len(buf) && n < mostRoom: // Feed keeps nothing of it
			buf = make([]byte, 2*n)
		}
	}
}

// What is read at once, the more the quicker it comes: a server waits with thousands
// of streams.
const (
	leastRoom = 2 << 10
	mostRoom  = 32 << 10
)

// ended drops what Close says of a stream that is known to be broken.
func ended(err error) error {
	if errors.Is(err, dragoman.ErrIncompleteStream) {
		return dragoman.ErrIncompleteStream
	}
	return err
}

// Translate reads a stream in one dialect and writes it in another, event by
// event. After each piece it calls Flush on w where w has such a method, as
// an http.ResponseWriter of a server does. A stream that breaks is ended in the
// words of to's dialect, and the error is returned as well. Losses are in the
// reports of both.
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
