package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/internal/serving/passthrough"
	"github.com/dragoman-go/dragoman/provider"
)

// pass passes a request through, and the response back, byte for byte.
func (x *exchange) pass(ctx context.Context, up *upstream) (err error) {
	body, err := x.renamed(up)
	if err != nil {
		return err
	}
	reading, hangUp := context.WithCancel(ctx)
	defer hangUp()
	passed, err := up.client.Pass(reading, passthrough.Request{Model: x.asked.model, Body: body, Stream: x.asked.stream, Header: x.passedOn(), Query: x.r.URL.RawQuery})
	if err != nil {
		return err
	}
	defer func() { _ = passed.Body.Close() }() // as much as needed was read
	if passed.Err != nil {
		return newPassedError(up.dialect, passed)
	}
	t := newTap(x.codec)
	t.model = x.asked.named
	if !x.asked.stream {
		return x.passWhole(up, passed)
	}
	buf, err := begins(passed.Body, wire.Of(x.codec).Stream.Framing)
	switch {
	case err != nil:
		return err
	case buf[0] == '{' && !wire.Of(x.codec).Stream.Framing.Begins('{'):
		return x.passUnstreamed(ctx, up, passed, io.MultiReader(bytes.NewReader(buf), passed.Body))
	}
	if x.another {
		if buf, err = x.untilContent(buf, passed); err != nil {
			return err
		}
	}
	x.entry.transparent = !x.namesConversation()
	guard := newCallGuard(x.codec, up)
	sent, err := x.copy(buf, passed, t, guard, hangUp)
	if !sent { // nothing was sent to the client
		x.entry.transparent = false
		return err
	}
	x.blocked(guard)
	ended, usage := t.end()
	x.entry.usage, x.entry.pieces = usage, t.pieces
	switch {
	case ended && t.failed != nil: // the upstream reported the error itself
		x.entry.told = true
		return begun(t.failed)
	case err == nil && !ended && !t.unsure: // what cannot be judged is not called broken
		err = dragoman.ErrIncompleteStream
	case ended: // errors after the end do not matter; some clients disconnect at the end
		err, x.entry.whole = nil, true
	}
	if err != nil && (ctx.Err() == nil || isShutdown(ctx)) {
		x.entry.told = true
		x.out.hush()
		_ = x.out.send(append(t.gap(), t.broken(x.id, x.apiError(err))...)) // the client may have disconnected
	}
	return begun(err)
}

// renamed returns the request with the upstream's name of the model.
func (x *exchange) renamed(up *upstream) ([]byte, error) {
	name := up.client.Model
	if x.call.InURL || name == "" || name == x.asked.model {
		return x.body, nil
	}
	body, err := jsonwire.ReplaceString(x.body, name, []string{"model"})
	if err != nil {
		return nil, serving.AsRequestError(err)
	}
	return body, nil
}

// begins reads the first bytes of a stream, without leading blanks. If they cannot begin a
// stream, or there are none, it returns an error; the client has not seen anything yet. The
// content type is ignored, because servers send streams with any type.
func begins(body io.Reader, frames framing.Framing) ([]byte, error) {
	buf := make([]byte, 0, room)
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = bytes.TrimLeft(buf[:len(buf)+n], "\ufeff \t\r\n")
		switch {
		case len(buf) > 0 && (buf[0] == '{' || frames.Begins(buf[0])):
			return buf, nil
		case len(buf) > 0:
			return nil, fmt.Errorf("%w: the response is not a stream of this dialect", dragoman.ErrIncompleteStream)
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: the response is empty", dragoman.ErrIncompleteStream)
		case err != nil:
			return nil, err
		case cap(buf) == 0:
			buf = make([]byte, 0, room)
		}
	}
}

// maxHeld bounds the bytes before the content of a stream that are held back. Some servers
// repeat the whole request before content.
const maxHeld = 4 << 20

// untilContent reads a stream until it has content, so that another model can be called if it
// fails or ends before that. It returns the bytes that it read.
func (x *exchange) untilContent(buf []byte, passed *passthrough.Response) ([]byte, error) {
	open, failed, empty := true, false, false
	see := func(ev dragoman.Event) error {
		switch ev := ev.(type) {
		case *dragoman.StreamError:
			failed = true
		case *dragoman.ResponseEnd:
			open, empty = false, stream.Unexplained(ev.Stop.Reason)
		}
		if stream.HasContent(ev) {
			open = false
		}
		if !open || failed {
			return errSeen
		}
		return nil
	}
	d := x.codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, DeltasOnly: true})
	for fed := 0; open && !failed && len(buf) < maxHeld; {
		if err := d.Feed(buf[fed:], see); err != nil {
			break
		}
		fed = len(buf)
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
		n, err := passed.Body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			if d.Feed(buf[fed:], see) == nil {
				_ = d.Close(see) // see has its error
			}
			open = false
		case err != nil:
			return nil, err
		}
	}
	switch {
	case failed:
		if e := refused(x.codec, redacted(passed, buf)); e != nil {
			return nil, e
		}
		return nil, dragoman.ErrIncompleteStream
	case empty:
		return nil, provider.ErrEmpty
	default:
		return buf, nil
	}
}

// errSeen stops the decoding of a stream once enough is known.
var errSeen = errors.New("gateway: stop decoding")

// passUnstreamed re-encodes as a stream a response that the upstream sent at once although a
// stream was requested.
func (x *exchange) passUnstreamed(ctx context.Context, up *upstream, passed *passthrough.Response, body io.Reader) error {
	all, err := answerOf(up, body)
	if err != nil {
		return err
	}
	_, resp, rep, err := x.understood(passed, all, dialect.DecodeOptions{MaxBytes: up.client.MaxResponseBytes})
	switch {
	case err != nil:
		return err
	case resp.Error != nil:
		return resp.Error
	}
	if err := x.decode(ctx, up); err != nil {
		return err
	}
	x.up, x.entry.transparent = up, false
	resp.Losses = rep
	s := x.newClientStream()
	for ev := range stream.EventsOf(resp, dragoman.Report{}) {
		if err := s.add(ctx, ev); err != nil {
			return begun(err)
		}
	}
	return begun(s.end())
}

// answerOf reads a response that is not streamed, up to the limit of its upstream.
func answerOf(up *upstream, body io.Reader) ([]byte, error) {
	limit := dialect.DecodeOptions{MaxBytes: up.client.MaxResponseBytes}.Limit()
	all, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if err == nil && len(all) > limit {
		err = fmt.Errorf("gateway: a response of more than %d bytes: %w", limit, dragoman.ErrTooLarge)
	}
	return all, err
}

// understood decodes a response that is not streamed. Servers may repeat credentials in their
// errors, so they are removed from an error.
func (x *exchange) understood(passed *passthrough.Response, body []byte, o dialect.DecodeOptions) ([]byte, *dragoman.Response, dragoman.Report, error) {
	resp, rep, err := x.codec.DecodeResponse(body, o)
	if err == nil && resp.Error != nil {
		body = passed.Redact(body)
		resp, rep, err = x.codec.DecodeResponse(body, o)
	}
	return body, resp, rep, err
}

// passHeader sets the passed-through headers of the upstream and, for a stream, headers that
// turn off buffering and caching on the way (quirk J2).
func (x *exchange) passHeader(h http.Header, passed *passthrough.Response) {
	copyHeader(h, passed.Header)
	x.lossHeader(h)
	if x.asked.stream {
		h.Set("X-Accel-Buffering", "no")
		h.Set("Cache-Control", "no-cache") // the server's own header is not passed through
	}
	x.upstreamHeader(h, "")
	x.entry.status = passed.Status
}

// passWhole passes a response through that is not streamed, once it is complete. A truncated or
// invalid response is a failure like any other, and so is an error with a success status.
func (x *exchange) passWhole(up *upstream, passed *passthrough.Response) error {
	body, err := answerOf(up, passed.Body)
	if err != nil {
		return err
	}
	body, resp, _, err := x.understood(passed, body, dialect.DecodeOptions{NoNative: true, MaxBytes: up.client.MaxResponseBytes})
	if err != nil {
		return err
	}
	if resp.Error != nil && resp.ID == "" && len(resp.Output) == 0 {
		status, _, _ := x.codec.EncodeError(resp.Error)
		header := passed.Header.Clone()
		header.Set("Content-Type", "application/json") // whatever type it had
		return &passedError{dialect: up.dialect, status: status, header: header, body: body, err: resp.Error}
	}
	unfinished := slices.Contains(wire.Of(x.codec).State.Unfinished, resp.Stop.Native) // it runs in the background
	switch empty := x.another && stream.Empty(resp) && !unfinished; {
	case empty && resp.Error != nil:
		return resp.Error
	case empty:
		return provider.ErrEmpty
	}
	x.entry.usage, x.entry.pieces = resp.Usage, int64(len(body))/bytesPerToken
	x.entry.transparent = true
	if x.namesConversation() {
		body, x.entry.transparent = x.inConversation(body), false
	}
	if len(resp.ToolCalls()) > 0 || len(resp.Alternatives) > 0 {
		guard := newCallGuard(x.codec, up)
		body = guard.Response(body)
		x.blocked(guard)
	}
	x.own(x.r.Context(), resp.ID)
	x.learn(x.r.Context(), body)
	x.out.begin(passed.Status, func(h http.Header) { x.passHeader(h, passed) })
	err = x.out.write(body)
	if err == nil && resp.Error != nil { // the error is in the response, which is passed through
		err = resp.Error
	}
	return begun(err)
}

// passedOn returns the headers of the client to pass through. The client's request ids are
// unique only within its key: two clients of one account may use the same id.
func (x *exchange) passedOn() http.Header {
	h := x.r.Header
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if said := h.Values(name); len(said) > 0 && x.entry.key != "" {
			h = h.Clone()
			sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(x.entry.key), x.entry.key, strings.Join(said, ", ")))
			h.Set(name, hex.EncodeToString(sum[:]))
		}
	}
	return h
}

// copyHeader copies headers of the upstream. Its request id is added to the gateway's, and
// replaces an id from a server behind it.
func copyHeader(to, from http.Header) {
	theirs := http.Header{}
	for name, values := range from {
		if to.Get(name) != "" {
			theirs["X-Upstream-"+strings.TrimPrefix(name, "X-")] = values
		} else {
			to[name] = values
		}
	}
	maps.Copy(to, theirs)
}

// room is the initial read buffer of a response: thousands of streams wait with one each. A
// faster stream gets more, up to mostRoom.
const (
	room     = 2 << 10
	mostRoom = 32 << 10
)

// lastWait is how long a server may take to close a stream after its end. The connection can be
// reused only then.
const lastWait = time.Second

// maxEvent limits an event that is held back until it is complete: the last event of Responses
// has the whole response, with its images.
const maxEvent = 16 << 20

// copy passes the stream through in complete events: if the upstream is cut off within one, the
// client gets an error instead of half of it. It reports whether anything was sent: a stream
// that begins with an error, or breaks before it has begun, is a failure that the client has
// not seen. copy does not wait for a server that keeps the connection open after the end.
func (x *exchange) copy(buf []byte, passed *passthrough.Response, t *tap, guard wire.CallGuard, hangUp func()) (sent bool, _ error) {
	noted := !x.keptElsewhere()
	var items itemWatch
	learned := false
	var held []byte
	for first := true; ; first = false {
		var err error
		looked := 0 // of buf, for the end of an event
		if !first {
			var n int
			looked = max(0, len(buf)-len("\r\n\r"))
			n, err = passed.Body.Read(buf[len(buf):cap(buf)])
			buf = buf[:len(buf)+n]
		}
		whole := t.whole(buf[looked:])
		if whole > 0 {
			whole += looked
		}
		switch {
		case err == nil && len(buf) >= maxEvent && whole == 0:
			if guard.Blocked() {
				return sent, errUncheckedEvent
			}
			held = bytes.Clone(guard.Close())
			guard, whole, t.unsure = noGuard{}, len(buf), true
		case err != nil && t.complete(buf[whole:]):
			whole = len(buf)
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("%w: the stream ends inside an event", dragoman.ErrIncompleteStream)
		}
		events := guarded(guard, held, redacted(passed, buf[:whole]), err != nil)
		held = nil
		if x.namesConversation() {
			events = x.eventsInConversation(events)
		}
		if len(events) > 0 {
			if !sent {
				if e := refused(x.codec, events); e != nil {
					return false, e
				}
				x.out.begin(passed.Status, func(h http.Header) { x.passHeader(h, passed) })
				sent = true
			}
			t.see(events)
			if !noted { // an event may have it, or a comment may come first
				id := t.id()
				x.own(x.r.Context(), id)
				noted = id != ""
			}
			if x.stateful() {
				if items.see(events); t.over && !learned { // bytes may follow the end
					learned = true
					x.learnItems(x.r.Context(), &items)
				}
			}
			last := t.over && x.out.hush() // no heartbeat after it
			if err := x.out.send(events); err != nil {
				return sent, err
			}
			if last {
				defer time.AfterFunc(lastWait, hangUp).Stop()
			}
		}
		if whole > 0 {
			full := len(buf) == cap(buf) && cap(buf) < mostRoom
			rest := buf[whole:]
			if buf = buf[:0]; full {
				buf = make([]byte, 0, 2*cap(buf))
			}
			buf = append(buf, rest...)
		}
		switch {
		case errors.Is(err, io.EOF):
			return sent, nil
		case err != nil:
			return sent, err
		case len(buf) == cap(buf):
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// guarded passes events through a guard and returns the bytes to send, after held. If last
// is set, it closes the guard.
func guarded(guard wire.CallGuard, held, events []byte, last bool) []byte {
	events = guard.Pass(events)
	if len(held) > 0 {
		events = slices.Concat(held, events)
	}
	if last {
		events = bytes.Clone(events)
		events = append(events, guard.Close()...)
	}
	return events
}

// redacted removes the credential that a server may repeat in its errors from events.
func redacted(passed *passthrough.Response, events []byte) []byte {
	if !bytes.Contains(events, []byte("error")) { // nearly all of them
		return events
	}
	return passed.Redact(events)
}

// refused returns the error in the first events of a stream, before any content; nil if there
// is none.
func refused(codec dialect.Codec, events []byte) (failed *dragoman.APIError) {
	if !bytes.Contains(events, []byte("error")) {
		return nil
	}
	content := false
	d := codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, DeltasOnly: true})
	see := func(ev dragoman.Event) error {
		if e, ok := ev.(*dragoman.StreamError); ok && !content {
			failed = e.Err
		}
		content = content || stream.HasContent(ev)
		return nil
	}
	for _, p := range [][]byte{events, []byte("\n\n")} { // the last event may be incomplete
		if d.Feed(p, see) != nil {
			return nil // unreadable events are passed through
		}
	}
	return failed
}

// passedError is an error of an upstream with the client's dialect, in its own bytes.
type passedError struct {
	dialect dragoman.Dialect
	status  int
	header  http.Header
	body    []byte
	err     *dragoman.APIError
}

func newPassedError(d dragoman.Dialect, p *passthrough.Response) error {
	body, err := io.ReadAll(p.Body)
	if err != nil {
		return p.Err
	}
	return &passedError{dialect: d, status: p.Status, header: p.Header, body: body, err: p.Err}
}

func (e *passedError) Error() string { return e.err.Error() }
func (e *passedError) Unwrap() error { return e.err }
