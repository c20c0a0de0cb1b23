package wirekit

import (
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/interop"
)

// CheckEncode refuses options that belong to another dialect: the output would mix two
// dialects.
func CheckEncode(d dragoman.Dialect, o dialect.EncodeOptions) error {
	if t := o.Target.Dialect; t != "" && t != d {
		return fmt.Errorf("%s: %w: the options are for a target with dialect %s", d, dragoman.ErrInvalid, t)
	}
	return checkRegistry(d, o.Registry)
}

// CheckDecode is like CheckEncode, for decoding.
func CheckDecode(d dragoman.Dialect, o dialect.DecodeOptions) error {
	return checkRegistry(d, o.Registry)
}

func checkRegistry(d dragoman.Dialect, reg *interop.Registry) error {
	if reg == nil {
		return nil
	}
	if t := reg.Target().Dialect; t != "" && t != d {
		return fmt.Errorf("%s: %w: the registry belongs to a request in %s: use a separate registry for each request", d, dragoman.ErrInvalid, t)
	}
	return nil
}

// Refused is a stream decoder or encoder that fails on first use. It reports invalid
// options, because the constructors of streams return no error.
type Refused struct{ Err error }

// Feed implements [dialect.StreamDecoder].
func (r Refused) Feed([]byte, func(dragoman.Event) error) error { return r.Err }

// Encode implements [dialect.StreamEncoder].
func (r Refused) Encode(dst []byte, _ dragoman.Event) ([]byte, error) { return dst, r.Err }

// Report returns an empty report.
func (Refused) Report() dragoman.Report { return dragoman.Report{} }

// RefusedDecoder is [Refused] as a stream decoder.
type RefusedDecoder struct{ Refused }

// Close implements [dialect.StreamDecoder].
func (r RefusedDecoder) Close(func(dragoman.Event) error) error { return r.Err }

// RefusedEncoder is [Refused] as a stream encoder.
type RefusedEncoder struct{ Refused }

// Close implements [dialect.StreamEncoder].
func (r RefusedEncoder) Close(dst []byte) ([]byte, error) { return dst, r.Err }
