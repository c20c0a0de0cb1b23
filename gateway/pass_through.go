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
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/provider"
)

// pass passes a request through, and the response back, byte for byte.
func (x *exchange) pass(ctx context.Context, up *upstream) (err error) {
	body, err := x.withUpstreamModel(up)
	if err != nil {
		return err
	}
	reading, hangUp := context.WithCancel(ctx)
	defer hangUp()
	passed, err := up.client.Pass(reading, modelcall.PassRequest{Model: x.head.model, Body: body, Stream: x.head.stream, Header: x.forwardedHeader(), Query: x.r.URL.RawQuery})
	if err != nil {
		return err
	}
	defer func() { _ = passed.Body.Close() }() // only read: a close error loses nothing
	if passed.Err != nil {
		return newPassedError(up.dialect, passed)
	}
	t := newTap(x.codec)
	t.model = x.head.clientModel
	if !x.head.stream {
		return x.passWhole(up, passed)
	}
	buf, err := readStart(passed.Body, wire.Of(x.codec).Stream.Framing)
	switch {
	case err != nil:
		return err
	case buf[0] == '{' && !wire.Of(x.codec).Stream.Framing.Begins('{'):
		return x.passUnstreamed(ctx, up, passed, io.MultiReader(bytes.NewReader(buf), passed.Body))
	}
	if x.hasFallback {
		if buf, err = x.readUntilContent(buf, passed); err != nil {
			return err
		}
	}
	x.entry.transparent = !x.addsConversation()
	guard := newCallGuard(x.codec, up)
	sent, err := x.copyStream(buf, passed, t, guard, hangUp)
	if !sent { // nothing was sent to the client
		x.entry.transparent = false
		return err
	}
	x.noteBlocked(guard)
	ended, usage := t.end()
	x.entry.usage, x.entry.events = usage, t.events
	switch {
	case ended && t.failed != nil: // the upstream reported the error itself
		x.entry.errorSent = true
		return markStarted(t.failed)
	case err == nil && !ended && !t.unreadable: // an unreadable stream is not reported as broken
		err = dragoman.ErrIncompleteStream
	case ended: // errors after the end do not matter; some clients disconnect at the end
		err, x.entry.complete = nil, true
	}
	if err != nil && (ctx.Err() == nil || isShutdown(ctx)) {
		x.entry.errorSent = true
		x.out.stopHeartbeat()
		_ = x.out.send(append(t.separator(), t.errorEvents(x.id, x.apiError(err))...)) // the client may have disconnected
	}
	return markStarted(err)
}

// withUpstreamModel returns the request with the upstream's name of the model.
func (x *exchange) withUpstreamModel(up *upstream) ([]byte, error) {
	name := up.client.Model
	if x.call.InURL || name == "" || name == x.head.model {
		return x.body, nil
	}
	body, err := jsonwire.ReplaceString(x.body, name, []string{"model"})
	if err != nil {
		return nil, serving.AsRequestError(err)
	}
	return body, nil
}

// readStart reads the first bytes of a stream, without leading white space. It returns an error if
// they cannot begin a stream or there are none; the client has received nothing then. The content
// type is ignored, because servers send streams with any type.
func readStart(body io.Reader, frames framing.Framing) ([]byte, error) {
	buf := make([]byte, 0, readBufferSize)
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
			buf = make([]byte, 0, readBufferSize)
		}
	}
}

// maxHeld bounds the bytes that are held back before the content of a stream. Some servers repeat
// the whole request before content.
const maxHeld = 4 << 20

// readUntilContent reads a stream until it has content, so that another model can be called if it
// fails or ends before that. It returns the bytes that it read.
func (x *exchange) readUntilContent(buf []byte, passed *modelcall.PassResponse) ([]byte, error) {
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
			return errStopDecoding
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
				_ = d.Close(see) // see gets the error as an event
			}
			open = false
		case err != nil:
			return nil, err
		}
	}
	switch {
	case failed:
		if e := firstError(x.codec, redactErrors(passed, buf)); e != nil {
			return nil, e
		}
		return nil, dragoman.ErrIncompleteStream
	case empty:
		return nil, provider.ErrEmpty
	default:
		return buf, nil
	}
}

// errStopDecoding stops the decoding of a stream once enough is known.
var errStopDecoding = errors.New("gateway: stop decoding")

// passUnstreamed re-encodes as a stream a response that the upstream sent complete although a
// stream was requested.
func (x *exchange) passUnstreamed(ctx context.Context, up *upstream, passed *modelcall.PassResponse, body io.Reader) error {
	all, err := readWhole(up, body)
	if err != nil {
		return err
	}
	_, resp, rep, err := x.decodeRedacted(passed, all, dialect.DecodeOptions{MaxBytes: up.client.MaxResponseBytes})
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
			return markStarted(err)
		}
	}
	return markStarted(s.end())
}

// readWhole reads a response that is not streamed, up to the limit of its upstream.
func readWhole(up *upstream, body io.Reader) ([]byte, error) {
	limit := dialect.DecodeOptions{MaxBytes: up.client.MaxResponseBytes}.Limit()
	all, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if err == nil && len(all) > limit {
		err = fmt.Errorf("gateway: a response of more than %d bytes: %w", limit, dragoman.ErrTooLarge)
	}
	return all, err
}

// decodeRedacted decodes a response that is not streamed. Servers may repeat credentials in their
// errors, so they are removed from an error.
func (x *exchange) decodeRedacted(passed *modelcall.PassResponse, body []byte, o dialect.DecodeOptions) ([]byte, *dragoman.Response, dragoman.Report, error) {
	resp, rep, err := x.codec.DecodeResponse(body, o)
	if err == nil && resp.Error != nil {
		body = passed.Redact(body)
		resp, rep, err = x.codec.DecodeResponse(body, o)
	}
	return body, resp, rep, err
}

// setPassedHeader sets the headers of the upstream and, for a stream, headers that turn off
// buffering and caching on the way (quirk J2).
func (x *exchange) setPassedHeader(h http.Header, passed *modelcall.PassResponse) {
	copyHeader(h, passed.Header)
	x.setLossHeader(h)
	if x.head.stream {
		h.Set("X-Accel-Buffering", "no")
		h.Set("Cache-Control", "no-cache") // the server's own header is not passed through
	}
	x.setUpstreamHeader(h, "")
	x.entry.status = passed.Status
}

// passWhole passes a complete response through, once all of it has arrived. A truncated or invalid
// response fails like any other, and so does an error with a success status.
func (x *exchange) passWhole(up *upstream, passed *modelcall.PassResponse) error {
	body, err := readWhole(up, passed.Body)
	if err != nil {
		return err
	}
	body, resp, _, err := x.decodeRedacted(passed, body, dialect.DecodeOptions{NoNative: true, MaxBytes: up.client.MaxResponseBytes})
	if err != nil {
		return err
	}
	if resp.Error != nil && resp.ID == "" && len(resp.Output) == 0 {
		status, _, _ := x.codec.EncodeError(resp.Error)
		header := passed.Header.Clone()
		header.Set("Content-Type", "application/json") // replaces the type of the upstream
		return &passedError{dialect: up.dialect, status: status, header: header, body: body, err: resp.Error}
	}
	unfinished := slices.Contains(wire.Of(x.codec).State.Unfinished, resp.Stop.Native) // a background response that is still running
	switch empty := x.hasFallback && stream.Empty(resp) && !unfinished; {
	case empty && resp.Error != nil:
		return resp.Error
	case empty:
		return provider.ErrEmpty
	}
	x.entry.usage, x.entry.events = resp.Usage, int64(len(body))/bytesPerToken
	x.entry.transparent = true
	if x.addsConversation() {
		body, x.entry.transparent = x.withConversation(body), false
	}
	if len(resp.ToolCalls()) > 0 || len(resp.Alternatives) > 0 {
		guard := newCallGuard(x.codec, up)
		body = guard.Response(body)
		x.noteBlocked(guard)
	}
	x.recordResponseOwner(x.r.Context(), resp.ID)
	x.recordItems(x.r.Context(), body)
	x.out.begin(passed.Status, func(h http.Header) { x.setPassedHeader(h, passed) })
	err = x.out.write(body)
	if err == nil && resp.Error != nil { // the error is in the response, which is passed through
		err = resp.Error
	}
	return markStarted(err)
}

// forwardedHeader returns the headers of the client to pass through. The client's request ids are
// unique only within its key: two clients of one account may use the same id.
func (x *exchange) forwardedHeader() http.Header {
	h := x.r.Header
	for _, name := range [...]string{"Idempotency-Key", "X-Idempotency-Key"} {
		if seen := h.Values(name); len(seen) > 0 && x.entry.key != "" {
			h = h.Clone()
			sum := sha256.Sum256(fmt.Appendf(nil, "%d %s %s", len(x.entry.key), x.entry.key, strings.Join(seen, ", ")))
			h.Set(name, hex.EncodeToString(sum[:]))
		}
	}
	return h
}

// copyHeader copies headers of the upstream. A header that is already set, such as the request id,
// gets the prefix X-Upstream.
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

// readBufferSize is the initial read buffer of a response: thousands of waiting streams have one
// each. A faster stream gets more, up to maxReadBuffer.
const (
	readBufferSize = 2 << 10
	maxReadBuffer  = 32 << 10
)

// closeWait is the time that a server has to close a stream after its end. The connection can be
// reused only then.
const closeWait = time.Second

// maxEvent limits an event that is held back until it is complete: the last event of Responses
// has the whole response, with its images.
const maxEvent = 16 << 20

// copyStream passes the stream through in complete events: if the upstream is cut off within one, the
// client gets an error instead of half of it. It reports whether anything was sent: a stream
// that begins with an error, or breaks before it has begun, is a failure that the client has
// not seen. copy does not wait for a server that keeps the connection open after the end.
func (x *exchange) copyStream(buf []byte, passed *modelcall.PassResponse, t *tap, guard wire.CallGuard, hangUp func()) (sent bool, _ error) {
	noted := !x.recordsOwner()
	var items itemCollector
	learned := false
	var held []byte
	for first := true; ; first = false {
		var err error
		looked := 0 // bytes of buf that were searched for the end of an event
		if !first {
			var n int
			looked = max(0, len(buf)-len("\r\n\r"))
			n, err = passed.Body.Read(buf[len(buf):cap(buf)])
			buf = buf[:len(buf)+n]
		}
		whole := t.wholeEvents(buf[looked:])
		if whole > 0 {
			whole += looked
		}
		switch {
		case err == nil && len(buf) >= maxEvent && whole == 0:
			if guard.Blocked() {
				return sent, errUncheckedEvent
			}
			held = bytes.Clone(guard.Close())
			guard, whole, t.unreadable = noGuard{}, len(buf), true
		case err != nil && t.complete(buf[whole:]):
			whole = len(buf)
		case errors.Is(err, io.EOF):
			err = fmt.Errorf("%w: the stream ends inside an event", dragoman.ErrIncompleteStream)
		}
		events := guardEvents(guard, held, redactErrors(passed, buf[:whole]), err != nil)
		held = nil
		if x.addsConversation() {
			events = x.eventsWithConversation(events)
		}
		if len(events) > 0 {
			if !sent {
				if e := firstError(x.codec, events); e != nil {
					return false, e
				}
				x.out.begin(passed.Status, func(h http.Header) { x.setPassedHeader(h, passed) })
				sent = true
			}
			t.read(events)
			if !noted { // an event may have it, or a comment may come first
				id := t.id()
				x.recordResponseOwner(x.r.Context(), id)
				noted = id != ""
			}
			if x.stateful() {
				if items.read(events); t.ended && !learned { // bytes may follow the end
					learned = true
					x.recordItemOwners(x.r.Context(), &items)
				}
			}
			last := t.ended && x.out.stopHeartbeat() // no heartbeat after it
			if err := x.out.send(events); err != nil {
				return sent, err
			}
			if last {
				defer time.AfterFunc(closeWait, hangUp).Stop()
			}
		}
		if whole > 0 {
			full := len(buf) == cap(buf) && cap(buf) < maxReadBuffer
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

// guardEvents passes events through a guard and returns the bytes to send, after held. If last
// is set, it closes the guard.
func guardEvents(guard wire.CallGuard, held, events []byte, last bool) []byte {
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

// redactErrors removes the credential that a server may repeat in its errors from events.
func redactErrors(passed *modelcall.PassResponse, events []byte) []byte {
	if !bytes.Contains(events, []byte("error")) { // the common case
		return events
	}
	return passed.Redact(events)
}

// firstError returns the error in the first events of a stream, before any content; nil if there
// is no such error.
func firstError(codec dialect.Codec, events []byte) (failed *dragoman.APIError) {
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

func newPassedError(d dragoman.Dialect, p *modelcall.PassResponse) error {
	body, err := io.ReadAll(p.Body)
	if err != nil {
		return p.Err
	}
	return &passedError{dialect: d, status: p.Status, header: p.Header, body: body, err: p.Err}
}

func (e *passedError) Error() string { return e.err.Error() }
func (e *passedError) Unwrap() error { return e.err }
