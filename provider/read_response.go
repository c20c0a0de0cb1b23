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
	"github.com/dragoman-go/dragoman/internal/modelcall"
)

// generate makes one attempt to get a response that is not streamed.
func (x *exchange) generate(ctx context.Context) (*dragoman.Response, error) {
	a, err := x.send(ctx)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	body, err := a.readBody(x.client.maxResponse())
	if err != nil {
		return nil, err
	}
	return x.decodeWhole(ctx, a, body)
}

// decodeWhole decodes a response that is not streamed. A failed response is returned with its
// error.
func (x *exchange) decodeWhole(ctx context.Context, a *attemptResponse, body []byte) (*dragoman.Response, error) {
	x.restart()
	resp, back, err := x.codec.DecodeResponse(body, x.decodeOptions(ctx))
	switch {
	case err != nil && !isJSON(body):
		return nil, a.invalidResponse("the upstream response is not JSON", body, err)
	case err != nil:
		return nil, err
	}
	thinkTags(x.client.ThinkTags).splitResponse(resp)
	unwrapResponse(x.registry, resp)
	if err := x.extended.ReadChunk(ctx, body); err != nil {
		return nil, err
	}
	if err := x.finish(ctx, resp, func(*dragoman.Response) ([]json.RawMessage, error) { return x.nativeMessages(body), nil }); err != nil {
		return nil, err
	}
	resp.Losses = x.allLosses(back)
	x.logResponse(a, resp.Stop, resp.Usage, resp.Losses)
	if resp.Error != nil {
		resp.Error = x.secrets.apiError(resp.Error)
		return resp, resp.Error
	}
	return resp, nil
}

// drainTime limits the wait for the end of the body after the last event of a stream. Only a body
// that was read to its end frees its connection for reuse.
const drainTime = time.Second

// errCallerStopped reports that the caller left the loop.
var errCallerStopped = errors.New("provider: the caller left the loop")

// streamEvents makes one attempt to get the response as a stream, and adds its events to out. It
// returns nil only after a ResponseEnd, errCallerStopped if the caller wants no more events, and
// otherwise the error; the StreamError that reports it is among the events.
func (x *exchange) streamEvents(ctx context.Context, out *startBuffer) error {
	a, err := x.send(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	if relay := modelcall.RelayOf(ctx); relay != nil {
		a.beforeRead = relay.Waiting
	}
	switch first := a.peek(); {
	case a.isNotStream(first):
		return a.pageError()
	case a.unstreamed(first):
		return x.streamUnstreamed(ctx, a, out)
	}
	return x.decodeStream(ctx, a, a, out)
}

// decodeStream reads a stream from r, and adds its events to out.
func (x *exchange) decodeStream(ctx context.Context, a *attemptResponse, r io.Reader, out *startBuffer) error {
	decoder := x.codec.NewStreamDecoder(x.decodeOptions(ctx))
	x.opaque = wirekit.ReencodedIn(ctx) == x.limits.Dialect
	chunks := x.wantsChunks(ctx)
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
			return brokenStreamError(err, failed)
		}
		switch ev := ev.(type) {
		case *dragoman.Chunk:
			if err := x.readChunk(ctx, ev.Raw); err != nil {
				return err
			}
			// A chunk that only extensions understand has no events, so its patches are sent here.
			sent := out.open && x.sendPatches()
			if !chunks && !(ev.Opaque && x.opaque) {
				if sent && modelcall.Patches(ctx) != nil && !out.add(&dragoman.Chunk{}) {
					return errCallerStopped
				}
				continue
			}
			if bytes.Contains(ev.Raw, []byte("error")) { // servers repeat credentials in errors
				ev.Raw = x.secrets.bytes(ev.Raw)
			}
		case *dragoman.ResponseStart: // servers report losses before the first byte
			ev.Response.Losses = x.allLosses(dragoman.Report{})
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
					return errCallerStopped
				}
			}
			ev.Response.Losses = x.allLosses(decoder.Report())
			x.logResponse(a, ev.Stop, ev.Usage, ev.Response.Losses)
			a.drainLimit = drainTime
		}
		if finish.on {
			finish.record(ev)
		}
		if !out.add(ev) {
			return errCallerStopped
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

// brokenStreamError returns the error for a stream that was cut off: the cause if it is known.
func brokenStreamError(err, failed error) error {
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
