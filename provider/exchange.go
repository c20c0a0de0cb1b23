package provider

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/all"
	"github.com/dragoman-go/dragoman/history"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/targets"
)

// exchange is one request and its response, with all state in between. It belongs to one call
// and is not safe for concurrent use.
type exchange struct {
	client *Client
	codec  dialect.Codec
	limits targets.Limits
	wire   *wire.Wire
	clock  clock
	// req is the caller's request, which is never changed. It is nil for bytes that are passed
	// through with the client's headers and query; clientParams holds the names of the query
	// parameters that are sent. stream reports that a stream is requested.
	req          *dragoman.Request
	clientHeader http.Header
	clientQuery  string
	clientParams []string
	// storedPath and method are set for a request that calls no model.
	storedPath, method string
	// countPath is the path of the token counter, for a request to count tokens.
	countPath string
	stream    bool
	model     string

	// The results of preparing the request: the target, the registry, which is not shared, the
	// native payload, and the losses. fixed reports that something was removed because the server
	// refused it.
	target   targets.Target
	registry *interop.Registry
	payload  []byte
	losses   dragoman.Report
	prepared bool
	fixed    bool
	// extended is the state of the exchange for extensions.
	extended *extension.Exchange
	// patches are waiting to be sent to patchesTo. deltas are the message deltas of a stream,
	// for the FromNative hook.
	patches   []extension.Patch
	patchesTo []func(extension.Patch)
	deltas    []json.RawMessage
	// opaque reports that the caller gets opaque chunks.
	opaque bool

	// attempts counts the attempts. retryAdvice holds the retry headers of the last response.
	attempts    int
	retryAdvice retryAdvice
	// deadline is the deadline of the whole exchange; zero means none.
	deadline time.Time
	// secrets are the texts to redact in logs and errors.
	secrets secrets
}

func newExchange(c *Client, req *dragoman.Request, stream bool) *exchange {
	x := &exchange{client: c, codec: c.codec(), clock: c.clock(), req: req, stream: stream, model: c.Model}
	x.limits, x.wire = x.codec.Limits(), wire.Of(x.codec)
	if x.model == "" && req != nil {
		x.model = req.Model
	}
	return x
}

// startTimeout applies the total timeout. The caller must call done at the end of the exchange.
func (x *exchange) startTimeout(ctx context.Context) (bounded context.Context, done func()) {
	limit := x.client.Timeouts.of(phaseTotal)
	if limit <= 0 {
		return ctx, func() {}
	}
	x.deadline = x.clock.Now().Add(limit)
	ctx, cancel := context.WithCancelCause(ctx)
	timer := x.clock.AfterFunc(limit, func() { cancel(&TimeoutError{Phase: phaseTotal, After: limit}) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// prepare builds the payload once: every attempt sends the same bytes.
func (x *exchange) prepare(ctx context.Context) error {
	if x.prepared {
		return nil
	}
	if x.req == nil {
		return x.req.Validate()
	}
	x.setTarget(ctx)
	if err := x.prepareExtensions(ctx); err != nil {
		return cmp.Or(x.req.Validate(), err) // the extension may have failed on an invalid request
	}
	losses := x.losses // losses of fixRequest
	tools, called := x.injectedTools(), x.requestWithModel()
	tools.adaptRequest(called, &x.extended.Report)
	// Normalize validates the request; nothing else on this path does.
	req, rep, err := history.Normalize(called, history.Options{
		Target: x.target, Limits: x.limits, Abandon: x.client.Abandon, ReasoningAsText: x.client.ReasoningAsText,
	})
	if err != nil {
		return err
	}
	if err := x.buildRegistry(req); err != nil {
		return err
	}
	enc, err := wirekit.EncodeNormalized(x.codec, req, dialect.EncodeOptions{Target: x.target, Registry: x.registry})
	if err != nil {
		return wirekit.NameDropped(err, rep)
	}
	x.registry = enc.Registry
	x.extended.Registry = enc.Registry
	body, err := x.toNative(req.Messages, enc.Body)
	if err != nil {
		return err
	}
	payload, err := x.extended.Decorate(ctx, body)
	if err != nil {
		return err
	}
	if payload, err = x.dropToolSettings(body, payload); err != nil {
		return err
	}
	x.losses = dragoman.Report{Losses: slices.Concat(losses.Losses, tools.filterLosses(rep.Losses), tools.filterLosses(enc.Report.Losses), x.extended.Report.Losses)}
	if err := x.checkStrict(); err != nil {
		return err
	}
	return x.setPayload(payload)
}

// checkStrict rejects a request that loses more than the client allows.
func (x *exchange) checkStrict() error {
	if x.client.Strict == nil {
		return nil
	}
	if err := x.losses.Err(*x.client.Strict); err != nil {
		return fmt.Errorf("provider: %w: the request was not sent to %s, because strict allows no loss of severity %s: %w", dragoman.ErrUnsupported, x.model, *x.client.Strict, err)
	}
	return nil
}

// setPayload sets the bytes to send.
func (x *exchange) setPayload(payload []byte) error {
	if most := x.client.maxRequest(); len(payload) > most {
		return &RequestTooLargeError{Bytes: len(payload), Max: most}
	}
	x.payload, x.prepared = payload, true
	return nil
}

// setTarget sets the target that the request is encoded for.
func (x *exchange) setTarget(ctx context.Context) {
	x.target = targets.Target{
		Dialect: x.limits.Dialect, Provider: x.client.Name, Scope: x.client.scope(ctx), Model: x.model,
		Caps: x.client.capabilities(x.model),
	}
}

// requestWithModel returns the request with the model and the stream flag of this exchange. What the
// URL contains is left out, so that it is not reported as lost.
func (x *exchange) requestWithModel() *dragoman.Request {
	req := *x.req
	req.Model = x.model
	req.Stream, req.StreamUsage = x.stream, x.stream || req.StreamUsage
	if x.limits.ModelInURL {
		req.Stream, req.StreamUsage = false, false
		if req.Extra.For(x.limits.Dialect) == nil {
			req.Model = ""
		}
	}
	return &req
}

// buildRegistry builds the registry of this request. The earlier contribution wins: those of the
// configuration, then those of extensions, then those of the tools.
func (x *exchange) buildRegistry(req *dragoman.Request) error {
	extensions, err := x.extended.Contributions()
	x.registry = all.Registry(interop.Options{
		Target: x.target, Limits: x.limits, Tools: req.Tools,
		Contributions: slices.Concat(x.client.Contributions, extensions, wirekit.ToolContributions(req)),
		Schemas:       &x.client.schemas,
	})
	return err
}

// decodeOptions returns the options for decoding the response.
func (x *exchange) decodeOptions(ctx context.Context) dialect.DecodeOptions {
	sum := sha256.Sum256(x.payload)
	to := wirekit.ReencodedIn(ctx)
	return dialect.DecodeOptions{
		Registry: x.registry,
		Origin:   x.target.Origin(),
		// The seed depends on the whole conversation, so that calls without an id get ids that
		// no earlier turn has.
		Seed:     hex.EncodeToString(sum[:8]),
		MaxBytes: x.client.maxResponse(),
		NoNative: to != "" && to != x.limits.Dialect && !x.wantsChunks(ctx) && !x.extended.ReadsChunks() && !x.extended.ReadsNative(),
	}
}

// wantsChunks reports whether the caller gets the native bytes of a stream.
func (x *exchange) wantsChunks(ctx context.Context) bool {
	return x.client.Chunks || wirekit.ChunksIn(ctx)
}

// allLosses returns the losses of encoding the request and of decoding the response. The details may
// quote the server, so secrets are removed from them too.
func (x *exchange) allLosses(back dragoman.Report) dragoman.Report {
	all := slices.Concat(x.losses.Losses, back.Losses)
	for i := range all {
		all[i].Detail = x.secrets.text(all[i].Detail)
	}
	return dragoman.Report{Losses: all}
}
