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
	"github.com/dragoman-go/dragoman/internal/modelcall"
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
	if err := x.adoptThread(); err != nil {
		return err
	}
	if err := x.checkFileReferences(up); err != nil {
		return err
	}
	if err := x.checkStrict(up); err != nil {
		return err
	}
	if up.dialect == x.codec.Dialect() { // the upstream gets the client's beta fields, too
		ctx = modelcall.WithBetas(ctx, x.r.Header)
	}
	ctx = wirekit.WithReencode(ctx, x.codec.Dialect())
	if x.head.stream {
		return x.respondStream(ctx, up.model)
	}
	return x.respondWhole(ctx, up.model)
}

// checkStrict refuses a request whose decoding lost more than its provider allows. The provider's
// client refuses losses of the encoding.
func (x *exchange) checkStrict(up *upstream) error {
	if up.client == nil || up.client.Strict == nil {
		return nil
	}
	limit := *up.client.Strict
	if err := (dragoman.Report{Losses: x.entry.losses}).Err(limit); err != nil {
		return fmt.Errorf("%w: the request was not sent to %s, because strict allows no loss of severity %s: %w", dragoman.ErrUnsupported, up.client, limit, err)
	}
	return nil
}

// modelRequest returns the request for the model.
func (x *exchange) modelRequest() *dragoman.Request {
	req := *x.req
	if x.wantsEncrypted() {
		reasoning := *req.Reasoning
		reasoning.Encrypted = new(true)
		req.Reasoning = &reasoning
	}
	if req.ParallelToolCalls == nil && x.up.wire().LegacyFunctions == nil && x.usesLegacyFunctions() { // the client reads only one call
		req.ParallelToolCalls = new(false)
	}
	return &req
}

// wantsEncrypted reports whether to request encrypted reasoning from a Responses upstream that
// stores nothing. The gateway stores it for clients whose dialects cannot request it (quirk
// B17).
func (x *exchange) wantsEncrypted() bool {
	r := x.req.Reasoning
	return x.up.stateful() && !x.stateful() && !x.route.NoStoredReasoning &&
		r != nil && r.Encrypted == nil && r.Mode != codes.ReasoningOff && r.Effort != "none"
}

// reasoningField is the field for reasoning in Chat responses. The OpenAI API has no such
// field; most servers that return reasoning use this one.
const reasoningField = "reasoning_content"

// encodeOptions returns the options for encoding the response.
func (x *exchange) encodeOptions() dialect.EncodeOptions {
	o := dialect.EncodeOptions{
		Seed: x.id, Model: x.head.clientModel, StreamUsage: x.req.StreamUsage, LegacyFunctions: x.usesLegacyFunctions(),
		Target: targets.Target{Caps: targets.Capabilities{ReasoningField: reasoningField}},
	}
	if x.storesResponse() {
		o.ResponseID = x.responseID()
	}
	return o
}

// respondWhole responds without streaming.
func (x *exchange) respondWhole(ctx context.Context, model dragoman.Model) error {
	x.noteModelCall()
	resp, err := model.Generate(ctx, x.modelRequest())
	switch {
	case err != nil:
		return err
	case x.hasFallback && stream.Empty(resp):
		return provider.ErrEmpty
	}
	x.entry.losses = append(x.entry.losses, resp.Losses.Losses...)
	x.entry.usage = resp.Usage
	x.recordResponseOwner(ctx, resp.ID)
	encode := func() (dialect.Encoded, error) {
		out := x.clientResponse(*resp, true)
		return x.codec.EncodeResponse(&out, x.encodeOptions())
	}
	enc, err := encode()
	if err != nil {
		return err
	}
	x.storeState(ctx, resp, enc.Body)
	if x.notStored { // the response reports it
		if enc, err = encode(); err != nil {
			return err
		}
	}
	x.recordItems(ctx, enc.Body)
	x.entry.losses = append(x.entry.losses, x.realLosses(enc.Report.Losses)...)
	x.entry.events = int64(len(enc.Body)) / bytesPerToken
	x.entry.status = http.StatusOK
	x.out.begin(http.StatusOK, func(h http.Header) {
		serving.SetHeader(h, x.codec, "application/json", x.id)
		x.setLossHeader(h)
		x.setUpstreamHeader(h, "")
	})
	return markStarted(x.out.write(enc.Body))
}

// markStarted marks an error as one after the first byte.
func markStarted(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", provider.ErrStreamStarted, err)
}

// streamHeader returns a function that sets the headers of a stream, with the losses known now. A
// heartbeat may call it at any time, also while more losses are recorded.
func (x *exchange) streamHeader() func(http.Header) {
	losses := lossSummary(x.entry.losses)
	return func(h http.Header) {
		serving.SetHeader(h, x.codec, serving.StreamType(x.codec), x.id)
		if losses != "" {
			h.Set(lossHeader, losses)
		}
		x.entry.status = http.StatusOK // otherwise set only under the writer's lock, or after its end
	}
}

// respondStream responds event by event. A stream that fails before its first event is an error with a
// status, and the next model of the route may be called.
func (x *exchange) respondStream(ctx context.Context, model dragoman.Model) error {
	s := x.newClientStream()
	s.summaries.on = x.sendsSummaries()
	if x.storesAnything() {
		s.collector = new(dragoman.Collector)
	}
	if x.up.client != nil {
		s.batches = true
		ctx = modelcall.WithRelay(ctx, &modelcall.Relay{Waiting: s.flushBeforeWait, RefuseEmpty: x.hasFallback})
	}
	x.noteModelCall()
	for ev, err := range model.Stream(ctx, x.modelRequest()) {
		switch {
		case err != nil && !s.ended && !s.started: // as if the model had not been called
			return err
		case err != nil && !s.ended:
			return markStarted(s.handleBreak(ctx, err))
		case err == nil:
			if err := s.add(ctx, ev); err != nil {
				return markStarted(err)
			}
		}
	}
	return markStarted(s.end())
}

// appendNewLosses adds the losses that are not in the list yet: the end of a stream repeats those of
// its start.
func appendNewLosses(have, all []dragoman.Loss) []dragoman.Loss {
	for _, l := range all {
		if !slices.Contains(have, l) {
			have = append(have, l)
		}
	}
	return have
}

// setLossHeader is the response header that reports the losses of the request, and of a response
// that is not streamed: their number, and their kinds and places. A change of form with the
// same meaning is not a loss.
const lossHeader = "X-Dragoman-Losses"

// setLossHeader sets the header to the losses so far.
func (x *exchange) setLossHeader(h http.Header) {
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
		if one := "; " + headerText(string(l.Kind)+" "+l.Path); left > 0 || b.Len()+len(one) > maxSummary {
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

// headerText returns a text that is valid in a header.
func headerText(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == ';' {
			return '_'
		}
		return r
	}, s)
}

// usesLegacyFunctions reports whether the client reads a single call, as a function_call.
func (x *exchange) usesLegacyFunctions() bool {
	legacy := wire.Of(x.codec).LegacyFunctions
	return legacy != nil && legacy(x.req)
}
