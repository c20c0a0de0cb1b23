package gateway

import (
	"context"
	"errors"
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

// translate has a model answer in its own dialect, and tells its answer in the
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

// strict refuses a request that lost more when it was read than its provider allows. The
// provider's client refuses what is lost when the request is written.
func (x *exchange) strict(up *upstream) error {
	if up.client == nil || up.client.Strict == nil {
		return nil
	}
	limit := *up.client.Strict
	if err := (dragoman.Report{Losses: x.entry.losses}).Err(limit); err != nil {
		return fmt.Errorf("%w: the request is not sent to %s, because strict allows no loss of the severity %s: %w", dragoman.ErrUnsupported, up.client, limit, err)
	}
	return nil
}

// asking is the request as the model is asked.
func (x *exchange) asking() *dragoman.Request {
	req := *x.req
	if x.wantsEncrypted() {
		reasoning := *req.Reasoning
		reasoning.Encrypted = new(true)
		req.Reasoning = &reasoning
	}
	if req.ParallelToolCalls == nil && x.up.wire().LegacyFunctions == nil && x.legacyFunctions() { // whose client is told of one call
		req.ParallelToolCalls = new(false)
	}
	return &req
}

// wantsEncrypted reports whether a server of Responses that stores nothing is to be asked for
// reasoning that it takes back, which the gateway keeps for clients whose dialects cannot ask
// for it (quirk B17).
func (x *exchange) wantsEncrypted() bool {
	r := x.req.Reasoning
	return x.up.stateful() && !x.stateful() && !x.route.NoRecall &&
		r != nil && r.Encrypted == nil && r.Mode != dragoman.ReasoningOff && r.Effort != "none"
}

// reasoningField is where clients of Chat find reasoning, which OpenAI's own API does
// not tell: where most servers that tell it have it.
const reasoningField = "reasoning_content"

// encoding is how the answer is written.
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

// whole answers at once.
func (x *exchange) whole(ctx context.Context, model dragoman.Model) error {
	x.noteModelCall()
	resp, err := model.Generate(ctx, x.asking())
	if err != nil {
		return err
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
	if x.unkept { // the response says so
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

// begun marks an error as one behind the first byte.
func begun(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", provider.ErrBegun, err)
}

// heading sets the headers of a stream, with the losses that are known now: a heartbeat may
// begin it at any time, also while there are more.
func (x *exchange) heading() func(http.Header) {
	losses := lossSummary(x.entry.losses)
	return func(h http.Header) {
		serving.SetHeader(h, x.codec, serving.StreamType(x.codec), x.id)
		if losses != "" {
			h.Set(lossHeader, losses)
		}
		x.entry.status = http.StatusOK // which nobody else sets but behind the sink's lock, or its end
	}
}

// stream answers event by event. What fails before one is told is an answer with a
// status, and may be left to the next model of the route.
func (x *exchange) stream(ctx context.Context, model dragoman.Model) error {
	t := &telling{exchange: x, enc: x.codec.NewStreamEncoder(x.encoding()), summaries: summaries{on: x.summarises()}}
	if x.keeps() {
		t.sum = new(dragoman.Collector)
	}
	if x.up.client != nil {
		t.held = true
		ctx = callcontext.WithWaiting(ctx, t.waiting)
	}
	x.noteModelCall()
	losses, usage := x.entry.losses, x.entry.usage
	for ev, err := range model.Stream(ctx, x.asking()) {
		switch {
		case err != nil && !t.ended && !t.said: // as if it had not been asked
			x.entry.losses, x.entry.usage = losses, usage
			return err
		case err != nil && !t.ended:
			return begun(t.broken(ctx, err))
		case err == nil:
			if err := t.tell(ctx, ev); err != nil {
				return begun(err)
			}
		}
	}
	return begun(t.end())
}

// telling is a stream that is being told.
type telling struct {
	*exchange
	enc dialect.StreamEncoder
	// sum is the answer, where it is kept; nil: it is not.
	sum       *dragoman.Collector
	summaries summaries
	buf       []byte
	// watch collects the items of a Responses stream.
	watch   itemWatch
	learned bool
	// held says that events which come together are sent together: the model says
	// when it waits.
	held bool
	// first says that an event has come, said that one which is to be told: that an answer
	// begins is not told before more is known, as what fails at once has not begun. begun
	// says that the client has been told, ended that the last one has come.
	first, said, begun, ended bool
	// calls are those that are complete; cut says that one is not. open are the ends of
	// those of which that is known when it is known how the stream ends.
	calls int
	cut   bool
	open  []*dragoman.PartEnd
	// searching are the parts that are calls of the client's search for tools.
	searching []place
}

// tell tells an event, when it is known what it means.
func (t *telling) tell(ctx context.Context, ev dragoman.Event) error {
	switch e := ev.(type) {
	case *dragoman.StreamError:
		return t.failed(ctx, e)
	case *dragoman.PartEnd:
		if t.doubtful(e) {
			t.open = append(t.open, e)
			return nil
		}
	}
	if err := t.tellOpen(ctx); err != nil {
		return err
	}
	return t.say(ctx, ev)
}

// say writes an event in the client's words, and takes note of it.
func (t *telling) say(ctx context.Context, ev dragoman.Event) (err error) {
	if t.sum != nil {
		t.sum.Add(ev)
	}
	t.said = t.said || stream.HasContent(ev)
	switch e := ev.(type) {
	case *dragoman.ResponseStart:
		t.first = true
		t.own(ctx, e.Response.ID)
		ev = &dragoman.ResponseStart{Response: t.told(e.Response, false)}
		t.entry.losses = append(t.entry.losses, e.Response.Losses.Losses...)
		t.entry.usage = t.entry.usage.Merge(e.Response.Usage)
	case *dragoman.PartDelta:
		if e.Text != "" {
			t.entry.pieces++
		}
	case *dragoman.PartEnd:
		if call, ok := e.Part.(*dragoman.ToolCall); ok {
			t.calls++
			t.cut = t.cut || call.Problem != nil
		}
	case *dragoman.ResponseEnd:
		t.ended = true
		end := *e
		end.Response = t.told(e.Response, true)
		t.entry.usage = t.entry.usage.Merge(e.Usage)
		t.entry.losses = newLosses(t.entry.losses, e.Response.Losses.Losses)
		return t.finishResponse(ctx, &end)
	}
	return t.put(ctx, ev)
}

// finishResponse writes the end of a response. Before it is sent, the response is stored
// as the client will see it: clients may continue with it at once, and some disconnect.
func (t *telling) finishResponse(ctx context.Context, end *dragoman.ResponseEnd) error {
	start := len(t.buf)
	if err := t.write(end); err != nil {
		return err
	}
	events := t.buf[start:]
	if t.stateful() {
		t.watch.see(events)
	}
	t.remember(ctx, t.watch.final)
	if t.unkept {
		t.buf = append(t.buf[:start:start], notStored(events)...)
	}
	t.learnEnd(ctx)
	return t.flushHeld()
}

// put writes an event, and sends it unless more may come with it.
func (t *telling) put(ctx context.Context, ev dragoman.Event) error {
	start := len(t.buf)
	if err := t.write(ev); err != nil {
		return err
	}
	if t.stateful() {
		t.watch.see(t.buf[start:])
		t.learnEnd(ctx)
	}
	return t.flushHeld()
}

// learnEnd notes the items of a stream, once its last event is there.
func (t *telling) learnEnd(ctx context.Context) {
	if t.watch.final != nil && !t.learned {
		t.learned = true
		t.learnItems(ctx, &t.watch)
	}
}

// write encodes an event.
func (t *telling) write(ev dragoman.Event) (err error) {
	if t.searches {
		if ev = t.tellSearch(ev); ev == nil {
			return nil
		}
	}
	t.buf, err = t.enc.Encode(t.buf, t.summaries.tell(ev))
	return err
}

// flushHeld sends what is encoded, unless more may come with it.
func (t *telling) flushHeld() error {
	if !t.first { // an opaque event comes before the response
		return nil
	}
	if t.held && len(t.buf) < maxTogether {
		return nil
	}
	return t.sent()
}

// remember keeps what the client may forget, before it is told that the answer has
// ended: then it may go on at once, and clients of Responses hang up.
//
// body is the response object of a Responses client.
func (t *telling) remember(ctx context.Context, body []byte) {
	if t.sum == nil {
		return
	}
	if resp, err := t.sum.Response(); err == nil {
		t.keep(ctx, resp, body)
	} else if t.stores() {
		t.unstored(err)
	}
	t.sum = nil
}

// maxTogether bounds what is sent together, with the event that reaches it.
const maxTogether = 16 << 10

// waiting sends what is held: nothing more may come for long.
func (t *telling) waiting() {
	if t.first {
		_ = t.sent() // the sink remembers who has gone, and tells with the next event
	}
}

// begin begins the answer, once.
func (t *telling) begin() {
	if t.said = true; !t.begun {
		t.begun = true
		heading := t.heading()
		t.out.begin(http.StatusOK, func(h http.Header) {
			heading(h)
			t.upstreamHeader(h, "")
		})
	}
}

// sent sends what is to be said.
func (t *telling) sent() error {
	if len(t.buf) > 0 {
		t.begin()
	}
	if t.ended { // no beat comes behind it
		t.out.hush()
	}
	if t.namesConversation() { // the events lack the conversation
		t.buf = t.eventsInConversation(t.buf)
	}
	err := t.out.send(t.buf)
	t.buf = t.buf[:0]
	t.entry.whole = t.entry.whole || t.ended && err == nil
	return err
}

// doubtful reports whether a call would be complete if its stream had not just ended, where
// that may be as good as an end.
func (t *telling) doubtful(e *dragoman.PartEnd) bool {
	c, ok := e.Part.(*dragoman.ToolCall)
	return ok && t.route.Unfinished == unfinishedEnd && c.Problem != nil && (c.Problem.Code == codes.ProblemTruncated || c.Problem.Code == codes.ProblemStopped)
}

// tellOpen tells the ends of calls that were held back.
func (t *telling) tellOpen(ctx context.Context) error {
	open := t.open
	t.open = nil
	for _, e := range open {
		if err := t.say(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// cutOff reports whether one of the calls that were held back is not complete.
func (t *telling) cutOff() bool {
	return slices.ContainsFunc(t.open, func(e *dragoman.PartEnd) bool {
		c, _ := e.Part.(*dragoman.ToolCall)
		return isTruncated(c) && (!strings.HasPrefix(c.Arguments, "{") || dragoman.CheckArguments(c.Arguments) != nil)
	})
}

// isTruncated reports whether nobody has said that a call is complete.
func isTruncated(c *dragoman.ToolCall) bool { return c.Problem.Code == codes.ProblemTruncated }

// completeOpen tells the calls that were held back as complete ones.
func (t *telling) completeOpen(ctx context.Context) (err error) {
	open := t.open
	t.open = nil
	for _, e := range open {
		c, _ := e.Part.(*dragoman.ToolCall)
		call, end := *c, *e
		call.Problem, end.Part = nil, &call
		err = errors.Join(err, t.say(ctx, &end))
	}
	return err
}

// broken tells how a stream ends that broke behind its first event.
func (t *telling) broken(ctx context.Context, err error) error {
	if t.unfinished(err) && !t.cutOff() {
		return t.finish(ctx)
	}
	if !t.entry.told {
		t.entry.told = true
		err = errors.Join(err, t.tellOpen(ctx), t.put(ctx, &dragoman.StreamError{Err: t.apiError(err), Usage: t.entry.usage}))
	}
	return errors.Join(err, t.end())
}

// failed tells what the model's server says that went wrong, unless nothing was told before.
// Where it says nothing, why it ended comes behind.
func (t *telling) failed(ctx context.Context, e *dragoman.StreamError) error {
	t.entry.usage = t.entry.usage.Merge(e.Usage)
	if !t.said || e.Err == nil || errors.Is(e.Err, dragoman.ErrIncompleteStream) {
		return nil
	}
	t.entry.told = true
	return errors.Join(t.tellOpen(ctx), t.put(ctx, &dragoman.StreamError{Err: t.apiError(e.Err), Usage: e.Usage}))
}

// unfinished reports whether a stream only lacks its end, and gets one as the route says
// so (quirks C13, J11). One whose connection broke lacks more, as does one with a call
// that is cut off.
func (t *telling) unfinished(err error) bool {
	var transport *provider.TransportError
	return t.route.Unfinished == unfinishedEnd && !t.cut && errors.Is(err, dragoman.ErrIncompleteStream) && !errors.As(err, &transport)
}

// finish writes the end that a stream lacks.
func (t *telling) finish(ctx context.Context) error {
	t.entry.losses = append(t.entry.losses, dragoman.Loss{
		Kind: dragoman.Synthesized, Severity: dragoman.Warn, Path: "/stop", Detail: "the stream ended without its end",
	})
	err := t.completeOpen(ctx)
	stop := dragoman.Stop{Reason: dragoman.StopEnd}
	if t.calls > 0 {
		stop.Reason = dragoman.StopToolCalls
	}
	stop.Native = wire.Of(t.codec).StopWords[stop.Reason]
	return errors.Join(err, t.say(ctx, &dragoman.ResponseEnd{Stop: stop, Usage: t.entry.usage}), t.end())
}

// end tells what the dialect demands at the end.
func (t *telling) end() (err error) {
	t.buf, err = t.enc.Close(t.buf)
	t.entry.losses = append(t.entry.losses, t.lost(t.enc.Report().Losses)...)
	if err != nil {
		return err
	}
	t.begin()
	t.out.hush()
	if err := t.sent(); !t.entry.whole {
		return err
	}
	return nil // some clients hang up when they have heard the end
}

// newLosses adds the losses that are not there yet: the end of a stream tells again
// what its start told.
func newLosses(have, all []dragoman.Loss) []dragoman.Loss {
	for _, l := range all {
		if !slices.Contains(have, l) {
			have = append(have, l)
		}
	}
	return have
}

// lossHeader is the header in which a client is told what of its request, and of a
// whole answer, could not be kept: how many losses, and what and where they are. A change
// of form that means the same is none.
const lossHeader = "X-Dragoman-Losses"

// lossHeader tells the losses so far.
func (x *exchange) lossHeader(h http.Header) {
	if s := lossSummary(x.entry.losses); s != "" {
		h.Set(lossHeader, s)
	}
}

// maxSummary bounds the header.
const maxSummary = 1 << 10

// isLoss reports whether something of weight is lost: where a call lacks the signature that
// its model wants, the gateway has not kept it (quirk B16).
func isLoss(l *dragoman.Loss) bool {
	return l.Severity >= dragoman.Warn || extra.IsUnsigned(l)
}

// lossSummary is "2; dropped /tools/0/strict; lowered …", and empty where nothing of
// weight was lost.
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

// printable is a text as a header can carry it.
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
