package provider

import (
	"bytes"
	"context"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
)

// A server may ignore that a stream was asked for and answer at once: proxies
// that gather, models that cannot stream beside tools, gateways that forget the
// flag. What it says is the answer all the same, so it is told as a stream.

// maxPeek bounds what is read to see whether an answer is a stream.
const maxPeek = 512

// unstreamed reports whether the body, which begins with a byte, is one JSON object
// where a stream was asked for. The content type is not believed: streams come under
// any. A whole response that is a stream of one line needs no help.
func (a *answer) unstreamed(first byte) bool {
	return first == '{' && !a.x.wire.Stream.Framing.Begins(first)
}

// peek is the first byte of the body that is no white space; 0 where there is
// none. What it reads is read again.
func (a *answer) peek() byte {
	head := make([]byte, 0, maxPeek)
	for a.after == nil && len(head) < cap(head) {
		n, err := a.read(head[len(head):cap(head)])
		head, a.after = head[:len(head)+n], err
		a.head = head
		if text := bytes.TrimLeft(head, " \t\r\n"); len(text) > 0 {
			return text[0]
		}
	}
	return 0
}

// streamWhole reads the whole response, and adds the events to out that a stream would have.
// A body that is not a response is left to the decoder of streams, which knows what errors
// look like.
func (x *exchange) streamWhole(ctx context.Context, a *answer, out *startBuffer) error {
	body, err := a.body(x.client.maxResponse())
	if err != nil {
		return broken(err, nil)
	}
	resp, err := x.understand(ctx, a, body)
	switch {
	case resp == nil && ctx.Err() == nil && !isExtensionError(err):
		return x.decode(ctx, a, bytes.NewReader(body), out)
	case resp == nil:
		return err
	}
	for ev := range stream.Told(resp, x.lost(dragoman.Report{})) {
		if !out.add(ev) {
			return errLeft
		}
	}
	if resp.Error != nil && !out.add(&dragoman.StreamError{Err: resp.Error, Usage: resp.Usage}) {
		return errLeft
	}
	return err
}
