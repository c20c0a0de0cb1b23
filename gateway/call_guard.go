package gateway

import (
	"bytes"
	"fmt"
	"io"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// errUncheckedEvent ends a stream if an event after a blocked call is too long to be
// checked: the event may complete the call.
var errUncheckedEvent = fmt.Errorf("gateway: an event of more than %d bytes follows a call with invalid arguments: %w", maxEvent, dragoman.ErrTooLarge)

// newCallGuard returns a guard for a response in the dialect of codec.
func newCallGuard(codec dialect.Codec, up *upstream) wire.CallGuard {
	guard := wire.Of(codec).CallGuard
	if guard == nil {
		return noGuard{}
	}
	return guard(dialect.DecodeOptions{MaxBytes: up.client.MaxResponseBytes})
}

// noGuard passes everything through.
type noGuard struct{}

func (noGuard) Response(body []byte) []byte { return body }
func (noGuard) Pass(events []byte) []byte   { return events }
func (noGuard) Close() []byte               { return nil }
func (noGuard) Blocked() bool               { return false }

// noteBlocked records that a guard changed the response.
func (x *exchange) noteBlocked(guard wire.CallGuard) {
	if !guard.Blocked() {
		return
	}
	x.entry.transparent = false
	x.entry.losses = append(x.entry.losses, dragoman.Loss{
		Kind: dragoman.Lowered, Severity: dragoman.Warn, Path: "/stop", Detail: "a call has arguments that are not valid JSON; the response ends as incomplete",
	})
}

// guardedBody passes a response of a Responses upstream, whole or streamed, through a
// guard.
type guardedBody struct {
	up    *upstream
	from  io.Reader
	guard wire.CallGuard
	tap   *tap
	// in holds bytes read from the upstream, out bytes to return.
	in, out []byte
	// begun is set after the first read of a stream.
	begun bool
	// unchecked is set once an event is too long to be checked.
	unchecked bool
	err       error
}

func newGuardedBody(up *upstream, from io.Reader) *guardedBody {
	codec := dialects.Stateful()
	return &guardedBody{up: up, from: from, guard: newCallGuard(codec, up), tap: newTap(codec)}
}

// Read implements [io.Reader].
func (b *guardedBody) Read(p []byte) (int, error) {
	for len(b.out) == 0 && b.err == nil {
		b.fill()
	}
	n := copy(p, b.out)
	b.out = b.out[n:]
	if len(b.out) > 0 {
		return n, nil
	}
	return n, b.err
}

// fill reads until there are whole events to return, or the whole response.
func (b *guardedBody) fill() {
	buf := make([]byte, readBufferSize)
	n, err := b.from.Read(buf)
	b.err = err
	if b.unchecked {
		b.out = buf[:n]
		return
	}
	seen := max(0, len(b.in)-len("\r\n\r"))
	if b.in = append(b.in, buf[:n]...); !b.begun && len(b.in) > 0 && b.in[0] == '{' {
		all, err := readWhole(b.up, io.MultiReader(bytes.NewReader(b.in), b.from))
		if b.err = err; err == nil {
			b.out, b.err = b.guard.Response(all), io.EOF
		}
		return
	}
	whole := b.tap.wholeEvents(b.in[seen:])
	if whole > 0 {
		whole += seen
	}
	b.begun = b.begun || len(b.in) > 0
	switch {
	case err != nil:
		whole = len(b.in)
	case whole == 0 && len(b.in) >= maxEvent && b.guard.Blocked():
		b.err = errUncheckedEvent
		return
	case whole == 0 && len(b.in) >= maxEvent:
		b.unchecked = true
		b.out = append(bytes.Clone(b.guard.Close()), b.in...)
		b.in = nil
		return
	}
	b.out = bytes.Clone(b.guard.Pass(b.in[:whole]))
	b.in = append(b.in[:0], b.in[whole:]...)
	if err != nil {
		b.out = append(b.out, b.guard.Close()...)
	}
}
