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
	// Extension is whose it is.
	Extension string
	// Place is where it belongs in the exchange's partial answer.
	Place string
	// Value is what stands there now, or, where Fragment is set, only what came
	// to it.
	Value json.RawMessage
	// Fragment says that Value is to be put behind what was told before. Calls of
	// tools are told as a whole each time, reasoning in fragments.
	Fragment bool
}

// Accumulator gathers what arrives in pieces: it takes a piece out of a chunk, folds
// it into what is there, keeps the sum in the exchange's partial answer, and tells whoever
// shows the answer.
type Accumulator[T any] struct {
	// Place is where the sum stands in Partial, such as "/reasoning/text". A sum below
	// "/message" is a field of the native message: if the dialect does not know the field,
	// the message of a stream has the sum, and it is sent back to the provider.
	Place string
	// Extract takes the piece out of a chunk; false means that it has none.
	Extract func(chunk json.RawMessage) (piece T, found bool, err error)
	// Fold adds a piece to the sum, which it may change. Texts that arrive in many
	// pieces are [Text], with [Append].
	Fold func(sum, piece T) T
	// Fragments tells pieces to whoever shows the answer; otherwise the whole sum
	// is told each time, which is for what is short.
	Fragments bool
	// Into maps the collected value into the message of the response, once that is
	// complete; nil leaves the message unchanged. See [Exchange.Change].
	Into func(m *dragoman.Message, sum T) error
}

// Text is a text that grows by appending, without being copied each time. In JSON
// it is a string.
type Text []byte

// Append puts a piece behind a text. It is a Fold.
func Append(sum, piece Text) Text { return append(sum, piece...) }

// MarshalText lets JSON write a string.
func (t Text) MarshalText() ([]byte, error) { return t, nil }

// UnmarshalText reads one.
func (t *Text) UnmarshalText(b []byte) error {
	*t = append(Text(nil), b...)
	return nil
}

// ReadChunk is Read, so that an extension which embeds an accumulator has that hook.
func (a *Accumulator[T]) ReadChunk(_ context.Context, x *Exchange, chunk json.RawMessage) error {
	return a.Read(x, chunk)
}

// Read takes a chunk. A ReadChunk hook calls it.
func (a *Accumulator[T]) Read(x *Exchange, chunk json.RawMessage) error {
	piece, found, err := a.Extract(chunk)
	if err != nil || !found {
		return err
	}
	_, again := x.values[a]
	total := a.Fold(a.Sum(x), piece)
	x.put(a, total)
	if !again {
		write := func() error { return x.partial.Set(a.Place, a.Sum(x)) }
		if err := write(); err != nil {
			return err
		}
		x.sums = append(x.sums, sum{x.active, write}) // from now on when somebody looks
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
	x.patches(Patch{Position: x.position, Extension: x.active, Place: a.Place, Value: value, Fragment: a.Fragments})
	return nil
}

// Sum is what was gathered so far.
func (a *Accumulator[T]) Sum(x *Exchange) T {
	sum, _ := x.values[a].(T)
	return sum
}
