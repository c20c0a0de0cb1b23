package provider

import (
	"bytes"
	"context"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

// A server may ignore the request for a stream and send a complete response: proxies that
// buffer, models that cannot stream with tools, gateways that drop the flag. The response is
// valid, so it is converted to a stream.

// maxPeek limits what is read to detect whether a response is a stream.
const maxPeek = 512

// unstreamed reports whether the body, which begins with this byte, is one JSON object instead
// of the requested stream. The content type is not reliable: streams have any. A complete
// response that is a stream of one line needs no conversion.
func (a *attemptResponse) unstreamed(first byte) bool {
	return first == '{' && !a.x.wire.Stream.Framing.Begins(first)
}

// peek returns the first byte of the body that is not white space, or 0 if there is none. The
// bytes stay available to Read.
func (a *attemptResponse) peek() byte {
	head := make([]byte, 0, maxPeek)
	for a.headErr == nil && len(head) < cap(head) {
		n, err := a.read(head[len(head):cap(head)])
		head, a.headErr = head[:len(head)+n], err
		a.head = head
		if text := bytes.TrimLeft(head, " \t\r\n"); len(text) > 0 {
			return text[0]
		}
	}
	return 0
}

// streamUnstreamed reads the complete response and adds the events that a stream would have to out.
// A body that is not a response is left to the decoder of streams, which recognizes errors.
func (x *exchange) streamUnstreamed(ctx context.Context, a *attemptResponse, out *startBuffer) error {
	body, err := a.readBody(x.client.maxResponse())
	if err != nil {
		return brokenStreamError(err, nil)
	}
	resp, err := x.decodeWhole(ctx, a, body)
	switch {
	case resp == nil && ctx.Err() == nil && !isExtensionError(err):
		return x.decodeStream(ctx, a, bytes.NewReader(body), out)
	case resp == nil:
		return err
	}
	for ev := range stream.EventsOf(resp, x.allLosses(dragoman.Report{})) {
		if !out.add(ev) {
			return errCallerStopped
		}
	}
	if resp.Error != nil && !out.add(&dragoman.StreamError{Err: resp.Error, Usage: resp.Usage}) {
		return errCallerStopped
	}
	return err
}
