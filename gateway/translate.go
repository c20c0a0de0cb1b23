package gateway

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/contexts/callcontext"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/targets"
)

// translate sends the request in the dialect of the model and re-encodes the response in the
// client's.
func (x *exchange) translate(ctx context.Context, up *upstream) error {
	if err := x.decode(ctx, up); err != nil {
		return err
	}
	if x.up = up; x.req.PreviousResponseID != "" && !up.stateful() {
		return unknownResponse(x.req.PreviousResponseID)
	}
	if err := x.takeThread(); err != nil {
		return err
	}
	if err := x.unreadableFile(up); err != nil {
		return err
	}
	if err := x.strict(up); err != nil {
		return err
	}
	if up.dialect == x.codec.Dialect() { // the upstream gets the client's beta fields, too
		ctx = callcontext.WithBetas(ctx, x.r.Header)
	}
	ctx = wirekit.WithReencode(ctx, x.codec.Dialect())
	if x.asked.stream {
		return x.stream(ctx, up.model)
	}
	return x.whole(ctx, up.model)
}

// strict refuses a request whose decoding lost more than its provider allows. The provider's
// client refuses losses of the encoding.
func (x *exchange) strict(up *upstream) error {
	if up.client == nil || up.client.Strict == nil {
		return nil
	}
	limit := *up.client.Strict
	if err := (dragoman.Report{Losses: x.entry.losses}).Err(limit); err != nil {
		return fmt.Errorf("%w: the request was not sent to %s, because strict allows no loss of severity %s: %w", dragoman.ErrUnsupported, up.client, limit, err)
	}
	return nil
}

// asking returns the request for the model.
func (x *exchange) asking() *dragoman.Request {
	req := *x.req
	if x.wantsEncrypted() {
		reasoning := *req.Reasoning
		reasoning.Encrypted = new(true)
		req.Reasoning = &reasoning
	}
	if req.ParallelToolCalls == nil && x.up.wire().LegacyFunctions == nil && x.legacyFunctions() { // the client reads only one call
		req.ParallelToolCalls = new(false)
	}
	return &req
}

// wantsEncrypted reports whether to request encrypted reasoning from a Responses upstream that
// stores nothing. The gateway stores it for clients whose dialects cannot request it (quirk
// B17).
func (x *exchange) wantsEncrypted() bool {
	r := x.req.Reasoning
	return x.up.stateful() && !x.stateful() && !x.route.NoRecall &&
		r != nil && r.Encrypted == nil && r.Mode != codes.ReasoningOff && r.Effort != "none"
}

// reasoningField is the field for reasoning in Chat responses. The OpenAI API has no such
// field; most servers that return reasoning use this one.
const reasoningField = "reasoning_content"

// encoding returns the options for encoding the response.
func (x *exchange) encoding() dialect.EncodeOptions {
	o := dialect.EncodeOptions{
		Seed: x.id, Model: x.asked.named, StreamUsage: x.req.StreamUsage, LegacyFunctions: x.legacyFunctions(),
		Target: targets.Target{Caps: targets.Capabilities{ReasoningField: reasoningField}},
	}
	if x.stores() {
		o.ResponseID = x.responseID()
	}
	return o
}

// whole responds without streaming.
func (x *exchange) whole(ctx context.Context, model dragoman.Model) error {
	x.noteModelCall()
	resp, err := model.Generate(ctx, x.asking())
	switch {
	case err != nil:
		return err
	case x.another && stream.Empty(resp):
		return provider.ErrEmpty
	}
	x.entry.losses = append(x.entry.losses, resp.Losses.Losses...)
	x.entry.usage = resp.Usage
	x.own(ctx, resp.ID)
	encode := func() (dialect.Encoded, error) {
		told := x.told(*resp, true)
		return x.codec.EncodeResponse(&told, x.encoding())
	}
	enc, err := encode()
	if err != nil {
		return err
	}
	x.keep(ctx, resp, enc.Body)
	if x.unkept { // the response reports it
		if enc, err = encode(); err != nil {
			return err
		}
	}
	x.learn(ctx, enc.Body)
	x.entry.losses = append(x.entry.losses, x.lost(enc.Report.Losses)...)
	x.entry.pieces = int64(len(enc.Body)) / bytesPerToken
	x.entry.status = http.StatusOK
	x.out.begin(http.StatusOK, func(h http.Header) {
		serving.SetHeader(h, x.codec, "application/json", x.id)
		x.lossHeader(h)
		x.upstreamHeader(h, "")
	})
	return begun(x.out.write(enc.Body))
}

// begun marks an error as one after the first byte.
func begun(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", provider.ErrStreamStarted, err)
}

// heading sets the headers of a stream, with the losses known now: a heartbeat may begin it at
// any time, also while there are more.
func (x *exchange) heading() func(http.Header) {
	losses := lossSummary(x.entry.losses)
	return func(h http.Header) {
		serving.SetHeader(h, x.codec, serving.StreamType(x.codec), x.id)
		if losses != "" {
			h.Set(lossHeader, losses)
		}
		x.entry.status = http.StatusOK // otherwise set only under the sink's lock, or after its end
	}
}

// stream responds event by event. A stream that fails before its first event is an error with a
// status, and the next model of the route may be called.
func (x *exchange) stream(ctx context.Context, model dragoman.Model) error {
	s := x.newClientStream()
	s.summaries.on = x.summarises()
	if x.keeps() {
		s.sum = new(dragoman.Collector)
	}
	if x.up.client != nil {
		s.joins = true
		ctx = callcontext.WithRelay(ctx, &callcontext.Relay{Waiting: s.waiting, RefuseEmpty: x.another})
	}
	x.noteModelCall()
	for ev, err := range model.Stream(ctx, x.asking()) {
		switch {
		case err != nil && !s.ended && !s.begun: // as if the model had not been called
			return err
		case err != nil && !s.ended:
			return begun(s.broken(ctx, err))
		case err == nil:
			if err := s.add(ctx, ev); err != nil {
				return begun(err)
			}
		}
	}
	return begun(s.end())
}

// newLosses adds the losses that are not in the list yet: the end of a stream repeats those of
// its start.
func newLosses(have, all []dragoman.Loss) []dragoman.Loss {
	for _, l := range all {
		if !slices.Contains(have, l) {
			have = append(have, l)
		}
	}
	return have
}

// lossHeader is the response header that reports the losses of the request, and of a response
// that is not streamed: their number, and their kinds and places. A change of form with the
// same meaning is not a loss.
const lossHeader = "X-Dragoman-Losses"

// lossHeader sets the header to the losses so far.
func (x *exchange) lossHeader(h http.Header) {
	if s := lossSummary(x.entry.losses); s != "" {
		h.Set(lossHeader, s)
	}
}

// maxSummary limits the header.
const maxSummary = 1 << 10

// isLoss reports whether a loss is significant. A missing signature that the model requires is
// one: the gateway has not stored it (quirk B16).
func isLoss(l *dragoman.Loss) bool {
	return l.Severity >= dragoman.Warn || extra.IsUnsigned(l)
}

// lossSummary returns "2; dropped /tools/0/strict; lowered …", or "" if no loss is significant.
func lossSummary(all []dragoman.Loss) string {
	var b strings.Builder
	n, left := 0, 0
	for _, l := range all {
		if !isLoss(&l) {
			continue
		}
		n++
		if one := "; " + printable(string(l.Kind)+" "+l.Path); left > 0 || b.Len()+len(one) > maxSummary {
			left++
		} else {
			b.WriteString(one)
		}
	}
	switch {
	case n == 0:
		return ""
	case left > 0:
		fmt.Fprintf(&b, "; and %d more", left)
	}
	return strconv.Itoa(n) + b.String()
}

// printable returns a text that is valid in a header.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == ';' {
			return '_'
		}
		return r
	}, s)
}

// legacyFunctions reports whether the client reads one call, as a function_call.
func (x *exchange) legacyFunctions() bool {
	legacy := wire.Of(x.codec).LegacyFunctions
	return legacy != nil && legacy(x.req)
}
