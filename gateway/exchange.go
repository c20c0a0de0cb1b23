package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/gateway/internal/recall"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/provider"
)

// exchange is one request of a client and the response to it. Except for its writer, it belongs
// to one goroutine.
type exchange struct {
	*Gateway
	setup *setup
	w     http.ResponseWriter
	r     *http.Request
	call  serving.Call
	codec dialect.Codec
	id    string
	body  []byte
	held  int64 // bytes reserved for the body in the gateway's buffers
	head  requestHead
	route *route
	lease *access.Lease
	// chain are the models of the route that may be called.
	chain *provider.Chain
	up    *upstream
	// hasFallback reports that the chain has a model to call after the current one.
	hasFallback bool
	out         *clientWriter
	entry       entry

	// history is the stored conversation that the request continues; nil if the gateway has none.
	history []dragoman.Message
	// threadSetting has the instructions and tools of a continued thread.
	threadSetting *dragoman.Request
	// req is the decoded request; nil until it is needed. own holds the content of the request
	// itself: its messages, and the fields that the response repeats.
	req *dragoman.Request
	own struct {
		messages   []dragoman.Message
		echoFields *dragoman.Extra
		// completed is when the response was complete.
		completed time.Time
	}
	// stateStored reports that the gateway stored the state of the response that clients may drop.
	stateStored bool
	// decodedPlain reports that req has no items that only the client's dialect has, and
	// hasToolSearch that a function stands in for the client's tool search.
	decodedPlain, hasToolSearch bool
	// hideUpstream suppresses the response headers that name upstreams.
	hideUpstream bool
	// calledUpstream is the upstream that got the last request. failedBefore counts the failures
	// before it.
	calledUpstream string
	failedBefore   int
	// notStored reports that the response should have been stored but could not be.
	notStored bool

	// input are the items of a Responses request, with references replaced by the stored
	// items, and conversationItems those of the conversation before them.
	input, conversationItems []inputItem
	// conversation is the id of the conversation that the request names, which the gateway
	// or perhaps the upstream stores.
	conversation struct{ id, upstream string }
	// bodies are the request with these items, for Responses upstreams and for others, if it
	// differs from the client's. expandLosses are the losses of the former.
	bodies struct {
		expanded                        bool
		hasStatefulUpstream, translated []byte
	}
	expandLosses []dragoman.Loss
}

// requestHead holds the fields of a request that the gateway needs before it decodes the request.
type requestHead struct {
	model string
	// clientModel is the model name as the client wrote it; the response repeats it.
	clientModel string
	stream      bool
	previous    string // the response that it continues
	thread      wire.Thread
	// input and conversation are the fields of these names, of a Responses request.
	input, conversation []byte
	// background reports that the client does not wait for the response, unstored that it must
	// not be stored.
	background, unstored bool
}

// readHead reads the requestHead of a body and skips the other fields.
func readHead(call serving.Call, body []byte) (requestHead, error) {
	a := requestHead{model: call.Model, stream: call.Stream}
	if call.InURL {
		return a, nil
	}
	w := wire.Of(call.Codec)
	a.stream = w.Body.StreamsByDefault
	r := jsonwire.NewReader(body)
	if r.Kind() != '{' {
		return a, serving.AsRequestError(errors.New("the body is not a JSON object"))
	}
	var seen [len(headFields)]bool
	for key := range r.Object() {
		if err := checkDuplicate(&seen, key); err != nil {
			return a, err
		}
		switch {
		case string(key) == "model" && r.Kind() == '"':
			a.model = r.String()
		case string(key) == "stream" && (r.Kind() == 't' || r.Kind() == 'f'):
			a.stream = r.Bool()
		case string(key) == "previous_response_id" && r.Kind() == '"':
			a.previous = r.String()
		case string(key) == "input":
			a.input = r.Raw()
		case string(key) == "conversation":
			a.conversation = r.Raw()
		case string(key) == "background": // any value that a server may treat as true
			a.background = r.Kind() != 'f' && r.Kind() != 'n'
			r.Skip()
		case string(key) == "store" && r.Kind() == 'f':
			a.unstored = true
			r.Skip()
		case w.State.Threads != nil && string(key) == w.State.Threads.Field:
			a.thread = w.State.Threads.Read(r)
			a.previous = a.thread.Previous
		default:
			r.Skip()
		}
	}
	if err := r.End(); err != nil {
		return a, serving.AsRequestError(fmt.Errorf("the body is not JSON: %w", err))
	}
	if a.model == "" {
		return a, &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: "model", Message: "the field model is missing"}
	}
	return a, nil
}

// headFields lists the fields that readHead reads.
var headFields = [...]string{"model", "stream", "previous_response_id", "thread", "background", "input", "conversation", "store"}

// checkDuplicate refuses a field of headFields that is duplicated, or spelled with different case.
// Some servers, such as those written in Go (Ollama), treat these as the same field, so the
// upstream could use another value than the one that the gateway checked.
func checkDuplicate(seen *[len(headFields)]bool, key []byte) error {
	for i, name := range headFields {
		if len(key) > 2*len(name) || !strings.EqualFold(string(key), name) { // no case variant of these letters has more than two bytes
			continue
		}
		if seen[i] || string(key) != name {
			return serving.AsRequestError(fmt.Errorf("duplicate field %s, or one that differs only in case: %.80q", name, key))
		}
		seen[i] = true
	}
	return nil
}

// serve responds to a call.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, call serving.Call) {
	x := &exchange{Gateway: g, setup: g.current.Load(), w: w, r: r, call: call, codec: call.Codec, id: g.newRequestID(), out: newClientWriter(w)}
	x.entry = entry{started: time.Now(), created: g.opts.Now(), id: x.id, dialect: x.codec.Dialect(), path: r.URL.Path}
	g.metrics.begin()
	defer x.end()
	w.Header().Set(serving.RequestIDHeader(x.codec), x.id)
	if err := x.handle(r.Context()); err != nil {
		x.fail(r.Context(), err)
	}
}

// end settles the accounting of an exchange, also if the client disconnected.
func (x *exchange) end() {
	x.out.end()
	if x.out.beganWithHeartbeat { // the headers were sent before the upstream was known
		x.setUpstreamHeader(x.w.Header(), http.TrailerPrefix)
	}
	x.lease.Spend(x.usageToCharge())
	x.lease.Release()
	x.buffers.free(x.entry.key, x.held)
	x.entry.took, x.entry.bytes = time.Since(x.entry.started), x.out.bytes
	if !x.out.firstByte.IsZero() {
		x.entry.first = x.out.firstByte.Sub(x.entry.started)
	}
	shutdown := isShutdown(x.r.Context())
	x.entry.clientLeft = x.r.Context().Err() != nil && !x.entry.complete && !shutdown && !bodyTimedOut(x.entry.err)
	if x.entry.err != nil && shutdown {
		x.metrics.cutOff.Add(1)
	}
	x.metrics.end(&x.entry)
	x.entry.log(x.r.Context(), x.opts.Log)
}

// bytesPerToken is the estimated size of a token if no server counts.
const bytesPerToken = 4

// usageToCharge returns the usage to charge for a request. Usage that no upstream reported is
// estimated, so that a key with a budget cannot use models for free: the upstream does not report
// it, was not asked to (OpenAI streams report it on request), or the client disconnected before.
func (x *exchange) usageToCharge() dragoman.Usage {
	if x.call.Count { // counting is free
		return dragoman.Usage{}
	}
	u := x.entry.usage
	left := x.r.Context().Err() != nil && x.entry.upstream != ""
	if x.entry.events == 0 && !left { // no response arrived
		return u
	}
	if !u.Input.Known {
		u.Input = dragoman.Counted(int64(len(x.body)) / bytesPerToken)
	}
	if !u.Output.Known || x.entry.err != nil {
		u.Output = dragoman.Counted(max(u.Output.N, x.entry.events))
	}
	return u
}

// handle authenticates and reads the request, and calls models until one responds.
func (x *exchange) handle(ctx context.Context) (err error) {
	x.entry.key = "?"
	presented := access.FromRequest(x.r)
	key, err := x.keys.Identify(presented)
	if err != nil { // before the body is read
		return refusal(err)
	}
	x.entry.key, x.hideUpstream = key.Name, key.HideUpstream
	if err := x.checkCapacity(x.setup.streams); err != nil {
		return err
	}
	if err := x.enter(ctx, presented); err != nil {
		return err
	}
	if x.body, err = serving.ReadBody(x.w, x.r, serving.BodyLimits{Bytes: x.setup.maxBody, Time: x.setup.bodyTime, Hold: x.hold}); err != nil {
		return err
	}
	if x.head, err = readHead(x.call, x.body); err != nil {
		return err
	}
	x.head.clientModel = x.head.model
	x.head.model = x.setup.routes.withoutDefaultTag(x.head.model, x.codec)
	x.entry.model, x.entry.stream = x.head.model, x.head.stream
	if !key.Allows(x.head.model) { // before a model is opened
		return x.setup.notAllowed(&key, x.head.model)
	}
	if err := x.checkFields(&key); err != nil {
		return err
	}
	if x.route, err = x.setup.find(x.head.model, key.Allows); err != nil {
		return err
	}
	x.entry.route = x.route.Pattern
	ctx = modelcall.WithCalled(x.withPolicyGate(ctx), x.noteCall)
	if x.call.Count {
		return x.count(ctx)
	}
	if reason, ok := x.isPreload(); ok && (x.call.IsVariant() || !x.route.hasDialect(x.codec.Dialect())) {
		return x.writeLoaded(reason)
	}
	if err := x.checkBackground(&key); err != nil {
		return err
	}
	if err := x.loadHistory(ctx); err != nil {
		return err
	}
	if err := x.lease.Admit(x.head.model, x.estimate(&key)); err != nil { // the estimate includes the conversation
		return refusal(err)
	}
	if x.call.Compact {
		x.head.stream, x.entry.stream = false, false
		return x.chain.Walk(ctx, x.compact)
	}
	if x.head.stream {
		x.out.startHeartbeat(wire.Of(x.codec).Stream.Heartbeat, x.setup.heartbeat, x.streamHeader())
	}
	return x.chain.Walk(ctx, x.tryLink)
}

// enter takes a slot of the key before the body is read, and refuses a key whose rate or budget
// is exhausted. Counting tokens is free.
func (x *exchange) enter(ctx context.Context, presented string) (err error) {
	if x.lease, err = x.keys.Enter(ctx, presented); err == nil && !x.call.Count {
		err = x.lease.Ready()
	}
	return refusal(err)
}

// isPreload reports whether the request only loads or unloads its model, and returns which.
func (x *exchange) isPreload() (reason string, ok bool) {
	empty := wire.Of(x.codec).Body.Empty
	if empty == nil {
		return "", false
	}
	return empty(x.body)
}

// stateful reports whether clients of the dialect refer to stored responses and items.
func (x *exchange) stateful() bool { return wire.Of(x.codec).State.Responses }

// writeLoaded responds to a request that loads or unloads a model, which some clients send before
// and after a conversation. There is nothing to load: upstreams of other dialects have their
// models ready.
func (x *exchange) writeLoaded(reason string) error {
	body := wire.Of(x.codec).Body.Prepared(x.head.clientModel, x.opts.Now().UTC().Format(time.RFC3339Nano), reason)
	x.entry.status = http.StatusOK
	contentType := "application/json"
	if x.head.stream {
		body, contentType = append(body, '\n'), serving.StreamType(x.codec)
	}
	x.out.begin(http.StatusOK, func(h http.Header) { serving.SetHeader(h, x.codec, contentType, x.id) })
	return markStarted(x.out.write(body))
}

// checkBackground refuses background responses for a key with a token limit: their cost is known
// only after the request has ended, so it could not be charged.
func (x *exchange) checkBackground(key *access.Key) error {
	if !x.head.background || !x.stateful() || key.Budget.Tokens == 0 && key.TokensPerMinute == 0 {
		return nil
	}
	for _, up := range x.route.upstreams {
		if up.stateful() {
			return &ownError{&dragoman.APIError{
				Class: dragoman.ErrorBadRequest, Param: "background",
				Message: "background: this key has a token limit, and the tokens of background responses cannot be counted; send the request without background",
			}}
		}
	}
	return nil
}

// tryLink calls one model of the route.
func (x *exchange) tryLink(ctx context.Context, link provider.Link) error {
	x.entry.upstream, x.entry.series = link.Name, x.route.metricName(link.Name)
	up := x.route.upstreams[link.Name]
	x.up, x.body, x.hasFallback = up, x.bodyFor(up), hasLinkAfter(x.chain, link)
	if err := x.checkResolved(up); err != nil {
		return err
	}
	if up.stateful() {
		x.entry.losses = appendNewLosses(x.entry.losses, x.expandLosses)
	}
	send := x.translate
	if x.transparent(ctx, up) {
		send = x.pass
	}
	err := send(ctx, up)
	x.noteFailure(ctx, link, err)
	return err
}

// noteFailure records why a model of the route failed, unless the client is gone.
func (x *exchange) noteFailure(ctx context.Context, link provider.Link, err error) {
	if err != nil && ctx.Err() == nil {
		x.entry.failures = append(x.entry.failures, failure{upstream: link.Name, series: x.entry.series, err: err})
	}
}

// refusal returns the error for a client whose key is not admitted.
func refusal(err error) error {
	var refused *access.RefusedError
	if errors.As(err, &refused) {
		return &ownError{refused.API()}
	}
	return err
}

// decode decodes the request, once for models with the client's dialect and once for the
// others.
func (x *exchange) decode(ctx context.Context, up *upstream) error {
	plain := x.stateful() && !up.stateful()
	if x.req != nil && x.decodedPlain == plain {
		return nil
	}
	x.decodedPlain, x.hasToolSearch = plain, false
	req, rep, err := x.call.Decode(x.body, dialect.DecodeOptions{MaxBytes: x.setup.maxBody, LiftErrors: x.route.LiftErrors})
	if err != nil {
		return err
	}
	x.entry.losses = rep.Losses
	if up.stateful() {
		x.entry.losses = appendNewLosses(x.entry.losses, x.expandLosses)
	}
	x.route.Set.Apply(req)
	if up.dialect != x.codec.Dialect() {
		if err := checkRoles(&wire.Of(x.codec).Body, req, x.body); err != nil {
			return err
		}
	}
	x.prependHistory(req)
	if up.dialect != x.codec.Dialect() && isEmptyRequest(req) { // an upstream with the client's dialect reports it itself
		return noMessagesError(x.codec)
	}
	if plain {
		x.hasToolSearch = x.convertSearch(req)
	}
	if !x.route.NoStoredReasoning {
		rep, err := x.recall.RestoreState(ctx, x.recallScope(), req)
		if err != nil {
			x.warn(ctx, "the stored reasoning could not be read", err)
		}
		x.entry.losses = append(x.entry.losses, rep.Losses...)
	}
	x.req = req
	x.out.setHeader(x.streamHeader())
	return nil
}

// isEmptyRequest reports whether a request has no content that a model could respond to. Such a
// request is refused: the repair of conversations would add a text, which would be charged.
func isEmptyRequest(req *dragoman.Request) bool {
	return req.PreviousResponseID == "" && len(req.Messages) == 0
}

// noMessagesError returns the error for a request without messages.
func noMessagesError(codec dialect.Codec) error {
	field := wire.Of(codec).Body.Messages
	return &dragoman.APIError{Class: dragoman.ErrorBadRequest, Param: field, Message: wirekit.NoMessage(field)}
}

func (x *exchange) recallScope() recall.Scope {
	return recall.Scope{Key: x.entry.key, Route: x.route.Pattern}
}

// fail reports an error: before the first byte as a response with a status, after it within the
// response.
func (x *exchange) fail(ctx context.Context, err error) {
	x.entry.err = err
	if ctx.Err() != nil && !isShutdown(ctx) && !bodyTimedOut(err) {
		return // the client disconnected
	}
	e := x.apiError(err)
	if x.out.end() { // a heartbeat must not begin a stream while an error is written
		if x.head.stream && !x.entry.errorSent {
			x.entry.errorSent = true
			x.writeStreamError(e)
		}
		return
	}
	status, body := x.errorResponse(err, e)
	x.entry.status = status
	x.out.begin(status, func(h http.Header) {
		x.setLossHeader(h)
		x.setUpstreamHeader(h, "")
	})
	_ = x.out.write(body) // the client may have disconnected
}

// bodyTimedOut reports whether the client took too long to send its body. net/http cancels
// the request's context then, as it does when a client disconnects.
func bodyTimedOut(err error) bool {
	var e *dragoman.APIError
	return errors.As(err, &e) && e.Status == http.StatusRequestTimeout && errors.Is(err, os.ErrDeadlineExceeded)
}

// errorResponse returns the error response: that of the upstream, unchanged, if it has the
// client's dialect and concerns the client, otherwise e.
func (x *exchange) errorResponse(err error, e *dragoman.APIError) (status int, body []byte) {
	var own *passedError
	if errors.As(lastAttemptError(err), &own) && own.dialect == x.codec.Dialect() && upstreamError(own.err) == own.err {
		copyHeader(x.w.Header(), own.header)
		return own.status, own.body
	}
	status, body = serving.Error(x.w.Header(), x.codec, withoutID(e))
	x.w.Header().Set(serving.RequestIDHeader(x.codec), x.id)
	return status, body
}

// apiError converts an error for the client.
func (x *exchange) apiError(err error) *dragoman.APIError {
	if isShutdown(x.r.Context()) {
		return &dragoman.APIError{Class: dragoman.ErrorOverloaded, Message: "the gateway is shutting down; try again", Err: err}
	}
	if d := denialOf(err); d != nil {
		return x.deniedError(d)
	}
	if e := wirekit.ClientError(lastAttemptError(err), wire.Of(x.codec).Body.Messages, x.head.clientModel); e != nil {
		return e
	}
	return apiError(err)
}

// withoutID returns an error without a request id: the client gets the gateway's.
func withoutID(e *dragoman.APIError) *dragoman.APIError {
	c := *e
	c.RequestID = ""
	return &c
}

// writeStreamError ends a stream with an error event of its dialect (quirk J3).
func (x *exchange) writeStreamError(e *dragoman.APIError) {
	enc := x.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: x.id, Model: x.head.clientModel})
	b, err := enc.Encode(nil, &dragoman.StreamError{Err: e})
	if err == nil {
		b, _ = enc.Close(b)
	}
	_ = x.out.send(b) // the client may have disconnected
}

// warn logs a detail that the client does not get.
func (x *exchange) warn(ctx context.Context, what string, err error) {
	if x.opts.Log != nil {
		x.opts.Log.WarnContext(ctx, what, "request", x.id, "route", x.entry.route, "upstream", x.entry.upstream, "error", truncate(err.Error()))
	}
}
