package extension

import (
	"context"
	"encoding/json"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
)

// run calls a hook of an extension.
func (x *Exchange) run(name string, hook func() error) (err error) {
	before := x.active
	x.active = name
	defer func() {
		x.active = before
		if v := recover(); v != nil {
			err = fmt.Errorf("panicked: %v", v)
		}
	}()
	return hook()
}

// Patch is a value that an extension collected from a response that is still streaming,
// for display.
type Patch struct {
	// Position is the run, the turn and the message of the response.
	Position
	// Extension is the name of the extension.
	Extension string
	// Path is the path of the value in the exchange's partial response.
	Path string
	// Value is the current value or, if Fragment is set, what to append to it.
	Value json.RawMessage
	// Fragment reports that Value is to be appended to earlier values. Tool calls are sent
	// complete each time, reasoning in fragments.
	Fragment bool
}

// Accumulator collects a value that arrives in pieces. It extracts a piece from a chunk, folds
// it into the sum, stores the sum in the exchange's partial response, and sends a [Patch] for
// display.
type Accumulator[T any] struct {
	// Path is the path of the sum in Partial, such as "/reasoning/text". A sum below
	// "/message" is a field of the native message: if the dialect does not know the field, the
	// streamed message gets the sum, and it is sent back to the provider.
	Path string
	// Extract returns the piece in a chunk; found is false if there is none.
	Extract func(chunk json.RawMessage) (piece T, found bool, err error)
	// Fold adds a piece to the sum, which it may change. For text that arrives in many pieces,
	// use [Text] with [Append].
	Fold func(sum, piece T) T
	// Fragments sends each piece as a patch. Otherwise each patch has the whole sum, which
	// suits short values.
	Fragments bool
	// Into maps the collected value into the message of the response, once that is
	// complete; nil leaves the message unchanged. See [Exchange.Change].
	Into func(m *dragoman.Message, sum T) error
}

// Text is text that grows by appending, without being copied each time. In JSON it is a string.
type Text []byte

// Append appends a piece to a text. Use it as Fold.
func Append(sum, piece Text) Text { return append(sum, piece...) }

// MarshalText returns the text, so that its JSON is a string.
func (t Text) MarshalText() ([]byte, error) { return t, nil }

// UnmarshalText sets the text.
func (t *Text) UnmarshalText(b []byte) error {
	*t = append(Text(nil), b...)
	return nil
}

// ReadChunk calls Read, so that an extension that embeds an accumulator has that hook.
func (a *Accumulator[T]) ReadChunk(_ context.Context, x *Exchange, chunk json.RawMessage) error {
	return a.Read(x, chunk)
}

// Read processes a chunk. Call it in a ReadChunk hook.
func (a *Accumulator[T]) Read(x *Exchange, chunk json.RawMessage) error {
	piece, found, err := a.Extract(chunk)
	if err != nil || !found {
		return err
	}
	_, again := x.values[a]
	total := a.Fold(a.Sum(x), piece)
	x.put(a, total)
	if !again {
		write := func() error { return x.partial.Set(a.Path, a.Sum(x)) }
		if err := write(); err != nil {
			return err
		}
		x.sums = append(x.sums, sum{x.active, write}) // write it when Partial is called
		x.gathered = append(x.gathered, a)
		if a.Into != nil {
			x.Change(func(m *dragoman.Message) error { return a.Into(m, a.Sum(x)) })
		}
	}
	if x.patches == nil {
		return nil
	}
	told := total
	if a.Fragments {
		told = piece
	}
	value, err := encode(told)
	if err != nil {
		return err
	}
	x.patches(Patch{Position: x.position, Extension: x.active, Path: a.Path, Value: value, Fragment: a.Fragments})
	return nil
}

// Sum returns the sum collected so far.
func (a *Accumulator[T]) Sum(x *Exchange) T {
	sum, _ := x.values[a].(T)
	return sum
}
