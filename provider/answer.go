package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/contexts/callcontext"
)

// whole makes one attempt to get a response that is not streamed.
func (x *exchange) whole(ctx context.Context) (*dragoman.Response, error) {
	a, err := x.send(ctx)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	body, err := a.body(x.client.maxResponse())
	if err != nil {
		return nil, err
	}
	return x.understand(ctx, a, body)
}

// understand decodes a response that is not streamed. A failed response is returned with its
// error.
func (x *exchange) understand(ctx context.Context, a *answer, body []byte) (*dragoman.Response, error) {
	x.restart()
	resp, back, err := x.codec.DecodeResponse(body, x.decoding(ctx))
	switch {
	case err != nil && !isJSON(body):
		return nil, a.unanswered("the upstream response is not JSON", body, err)
	case err != nil:
		return nil, err
	}
	thinkTags(x.client.ThinkTags).splitResponse(resp)
	unwrapResponse(x.registry, resp)
	if err := x.extended.ReadChunk(ctx, body); err != nil {
		return nil, err
	}
	if err := x.finish(ctx, resp, func(*dragoman.Response) ([]json.RawMessage, error) { return x.nativeOf(body), nil }); err != nil {
		return nil, err
	}
	resp.Losses = x.lost(back)
	x.logAnswer(a, resp.Stop, resp.Usage, resp.Losses)
	if resp.Error != nil {
		resp.Error = x.secrets.apiError(resp.Error)
		return resp, resp.Error
	}
	return resp, nil
}

// drain is how long to wait for the end of the body after the last event of a stream. Only a
// body that was read to its end frees its connection for reuse.
const drain = time.Second

// errLeft reports that the caller left the loop.
var errLeft = errors.New("provider: the caller left the loop")

// events makes one attempt to get the response as a stream, and adds its events to out. It
// returns nil only after a ResponseEnd, errLeft if the caller wants no more, and otherwise
// the error; the StreamError that reports it is among the events.
func (x *exchange) events(ctx context.Context, out *startBuffer) error {
	a, err := x.send(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	if relay := callcontext.RelayOf(ctx); relay != nil {
		a.waiting = relay.Waiting
	}
	switch first := a.peek(); {
	case a.noStream(first):
		return a.page()
	case a.unstreamed(first):
		return x.streamWhole(ctx, a, out)
	}
	return x.decode(ctx, a, a, out)
}

// decode reads a stream from r, and adds its events to out.
func (x *exchange) decode(ctx context.Context, a *answer, r io.Reader, out *startBuffer) error {
	decoder := x.codec.NewStreamDecoder(x.decoding(ctx))
	x.opaque = wirekit.ReencodedIn(ctx) == x.limits.Dialect
	chunks := x.chunks(ctx)
	var failed error // the error that the stream itself reports
	ended := false
	x.restart()
	finish := x.newFinisher()
	for ev, err := range unwrapEvents(x.registry, thinkTags(x.client.ThinkTags).split(dialect.Events(decoder, r))) {
		switch {
		case ended: // ignore everything after the end
			if err != nil {
				return nil
			}
			continue
		case err != nil:
			return broken(err, failed)
		}
		switch ev := ev.(type) {
		case *dragoman.Chunk:
			if err := x.readChunk(ctx, ev.Raw); err != nil {
				return err
			}
			// A chunk that only extensions understand has no events, so its patches are sent here.
			sent := out.open && x.sendPatches()
			if !chunks && !(ev.Opaque && x.opaque) {
				if sent && callcontext.Patches(ctx) != nil && !out.add(&dragoman.Chunk{}) {
					return errLeft
				}
				continue
			}
			if bytes.Contains(ev.Raw, []byte("error")) { // servers repeat credentials in errors
				ev.Raw = x.secrets.bytes(ev.Raw)
			}
		case *dragoman.ResponseStart: // servers report losses before the first byte
			ev.Response.Losses = x.lost(dragoman.Report{})
		case *dragoman.StreamError:
			if ev.Err != nil {
				ev.Err = x.secrets.apiError(ev.Err)
				failed = ev.Err
			}
		case *dragoman.ResponseEnd:
			ended = true
			added, err := finish.finish(ctx, ev)
			if err != nil {
				return err
			}
			for _, more := range added {
				if !out.add(more) {
					return errLeft
				}
			}
			ev.Response.Losses = x.lost(decoder.Report())
			x.logAnswer(a, ev.Stop, ev.Usage, ev.Response.Losses)
			a.last = drain
		}
		if finish.on {
			finish.see(ev)
		}
		if !out.add(ev) {
			return errLeft
		}
	}
	switch {
	case ended:
		return nil
	case failed != nil:
		return failed
	default:
		return dragoman.ErrIncompleteStream
	}
}

// broken returns the error for a stream that was cut off: the cause if it is known.
func broken(err, failed error) error {
	var timeout *TimeoutError
	var transport *TransportError
	var api *dragoman.APIError
	switch {
	case errors.As(err, &timeout):
		return timeout
	case errors.As(err, &transport):
		return &TransportError{Host: transport.Host, Err: fmt.Errorf("%w: %w", dragoman.ErrIncompleteStream, transport.Err)}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(failed, &api) && !errors.Is(failed, dragoman.ErrIncompleteStream):
		return failed
	default:
		return err
	}
}
