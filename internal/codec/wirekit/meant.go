package wirekit

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/interop"
)

// CheckEncode refuses options that were meant for another dialect: whatever was
// written with them would be in two languages.
func CheckEncode(d dragoman.Dialect, o dialect.EncodeOptions) error {
	if t := o.Target.Dialect; t != "" && t != d {
		return fmt.Errorf("%s: %w: the options are for a target that speaks %s", d, dragoman.ErrInvalid, t)
	}
	return checkRegistry(d, o.Registry)
}

// CheckDecode is CheckEncode for decoding.
func CheckDecode(d dragoman.Dialect, o dialect.DecodeOptions) error {
	return checkRegistry(d, o.Registry)
}

func checkRegistry(d dragoman.Dialect, reg *interop.Registry) error {
	if reg == nil {
		return nil
	}
	if t := reg.Target().Dialect; t != "" && t != d {
		return fmt.Errorf("%s: %w: the registry is that of a request in %s; each request has its own", d, dragoman.ErrInvalid, t)
	}
	return nil
}

// Refused is a stream, decoded or encoded, that ends before it begins: there is
// nobody else to tell of options that make no sense.
type Refused struct{ Err error }

// Feed implements [dialect.StreamDecoder].
func (r Refused) Feed([]byte, func(dragoman.Event) error) error { return r.Err }

// Encode implements [dialect.StreamEncoder].
func (r Refused) Encode(dst []byte, _ dragoman.Event) ([]byte, error) { return dst, r.Err }

// Report has nothing to tell.
func (Refused) Report() dragoman.Report { return dragoman.Report{} }

// RefusedDecoder is Refused as a decoder.
type RefusedDecoder struct{ Refused }

// Close implements [dialect.StreamDecoder].
func (r RefusedDecoder) Close(func(dragoman.Event) error) error { return r.Err }

// RefusedEncoder is Refused as an encoder.
type RefusedEncoder struct{ Refused }

// Close implements [dialect.StreamEncoder].
func (r RefusedEncoder) Close(dst []byte) ([]byte, error) { return dst, r.Err }
