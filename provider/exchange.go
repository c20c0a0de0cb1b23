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

// exchange is one request and its answer: all that is known of them on their
// way. It belongs to one call and is not safe for concurrent use.
type exchange struct {
	client *Client
	codec  dialect.Codec
	limits targets.Limits
	wire   *wire.Wire
	clock  clock
	// req is the request as it was given, which is never changed; nil where native
	// bytes are passed on, with the headers and the query of who sent them, whose names
	// that are sent are in params. stream says that the answer is asked for as a stream.
	req    *dragoman.Request
	passed http.Header
	query  string
	params []string
	// kept and method are those of a request that asks no model.
	kept, method string
	// count is where tokens are counted, of a request that asks for that.
	count  string
	stream bool
	model  string

	// What preparing made of it: the target, the registry, which nobody else
	// shares, the native payload, and what was lost. cured says that content was
	// removed which the server refused.
	target   targets.Target
	registry *interop.Registry
	payload  []byte
	losses   dragoman.Report
	prepared bool
	cured    bool
	// extended is the exchange for extensions.
	extended *extension.Exchange
	// patches are to be sent to patchesTo. deltas are the message deltas of a stream, for
	// FromNative hook.
	patches   []extension.Patch
	patchesTo []func(extension.Patch)
	deltas    []json.RawMessage
	// opaque says that the caller gets opaque chunks.
	opaque bool

	// tries counts the attempts, asked is what the last answer's headers say of
	// another one.
	tries int
	asked asked
	// ends is when the time for the whole is over; zero where it has no bound.
	ends time.Time
	// secrets are what must not be told to anybody.
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

// begin bounds the whole of the exchange. done must be called at its end.
func (x *exchange) begin(ctx context.Context) (bounded context.Context, done func()) {
	limit := x.client.Timeouts.of(phaseTotal)
	if limit <= 0 {
		return ctx, func() {}
	}
	x.ends = x.clock.Now().Add(limit)
	ctx, cancel := context.WithCancelCause(ctx)
	timer := x.clock.AfterFunc(limit, func() { cancel(&TimeoutError{Phase: phaseTotal, After: limit}) })
	return ctx, func() {
		timer.Stop()
		cancel(nil)
	}
}

// prepare makes the payload, once: an attempt that is made again sends the same
// bytes.
func (x *exchange) prepare(ctx context.Context) error {
	if x.prepared {
		return nil
	}
	if x.req == nil {
		return x.req.Validate()
	}
	x.aim(ctx)
	if err := x.extend(ctx); err != nil {
		return cmp.Or(x.req.Validate(), err) // the extension may have failed on an invalid request
	}
	losses := x.losses // of a cure
	tools, asked := x.injectedTools(), x.addressed()
	tools.request(asked, &x.extended.Report)
	// Normalize validates the request, the only time on its way.
	req, rep, err := history.Normalize(asked, history.Options{
		Target: x.target, Limits: x.limits, Abandon: x.client.Abandon, ReasoningAsText: x.client.ReasoningAsText,
	})
	if err != nil {
		return err
	}
	if err := x.compose(req); err != nil {
		return err
	}
	enc, err := wirekit.EncodeNormalized(x.codec, req, dialect.EncodeOptions{Target: x.target, Registry: x.registry})
	if err != nil {
		return err
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
	if payload, err = x.withoutTools(body, payload); err != nil {
		return err
	}
	x.losses = dragoman.Report{Losses: slices.Concat(losses.Losses, tools.losses(rep.Losses), tools.losses(enc.Report.Losses), x.extended.Report.Losses)}
	if err := x.strict(); err != nil {
		return err
	}
	return x.load(payload)
}

// strict refuses a request that loses more than the client allows.
func (x *exchange) strict() error {
	if x.client.Strict == nil {
		return nil
	}
	if err := x.losses.Err(*x.client.Strict); err != nil {
		return fmt.Errorf("provider: %w: the request is not sent to %s, because strict allows no loss of the severity %s: %w", dragoman.ErrUnsupported, x.model, *x.client.Strict, err)
	}
	return nil
}

// load takes the bytes that are sent.
func (x *exchange) load(payload []byte) error {
	if most := x.client.maxRequest(); len(payload) > most {
		return &RequestTooLargeError{Bytes: len(payload), Max: most}
	}
	x.payload, x.prepared = payload, true
	return nil
}

// aim says what the request is encoded for.
func (x *exchange) aim(ctx context.Context) {
	x.target = targets.Target{
		Dialect: x.limits.Dialect, Provider: x.client.Name, Scope: x.client.scope(ctx), Model: x.model,
		Caps: x.client.capabilities(x.model),
	}
}

// addressed is the request for this model and manner of answer. What stands in
// the URL is left out of it, so that it is not told as lost.
func (x *exchange) addressed() *dragoman.Request {
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

// compose makes the registry of this request. The earlier contribution wins:
// those of the configuration, then those of extensions, then those of the tools.
func (x *exchange) compose(req *dragoman.Request) error {
	extensions, err := x.extended.Contributions()
	x.registry = all.Registry(interop.Options{
		Target: x.target, Limits: x.limits, Tools: req.Tools,
		Contributions: slices.Concat(x.client.Contributions, extensions, wirekit.ToolContributions(req)),
		Schemas:       &x.client.schemas,
	})
	return err
}

// decoding is how the answer is read.
func (x *exchange) decoding(ctx context.Context) dialect.DecodeOptions {
	sum := sha256.Sum256(x.payload)
	to := wirekit.ReencodedIn(ctx)
	return dialect.DecodeOptions{
		Registry: x.registry,
		Origin:   x.target.Origin(),
		// A conversation that has grown is another one, so that calls without an
		// id get ids that no earlier turn has.
		Seed:     hex.EncodeToString(sum[:8]),
		MaxBytes: x.client.maxResponse(),
		NoNative: to != "" && to != x.limits.Dialect && !x.chunks(ctx) && !x.extended.ReadsChunks() && !x.extended.ReadsNative(),
	}
}

// chunks reports whether the caller gets the native bytes of a stream.
func (x *exchange) chunks(ctx context.Context) bool {
	return x.client.Chunks || wirekit.ChunksIn(ctx)
}

// lost is what was lost on the way there, and back. What was lost may be told in
// the server's words, and those are without the secrets, too.
func (x *exchange) lost(back dragoman.Report) dragoman.Report {
	all := slices.Concat(x.losses.Losses, back.Losses)
	for i := range all {
		all[i].Detail = x.secrets.text(all[i].Detail)
	}
	return dragoman.Report{Losses: all}
}
