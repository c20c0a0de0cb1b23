package provider

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/framing"
	"github.com/dragoman-go/dragoman/internal/modelcall"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/targets"
)

// Client is a model behind an HTTP API. The zero value uses OpenAI Chat at OpenAI, without a
// credential. A Client is safe for concurrent use; its fields must not be changed, nor the
// Client copied, once it is in use.
type Client struct {
	// Name identifies the provider of the model, such as "openai". Opaque state that the model
	// produces (signatures, encrypted reasoning) is sent back only to providers of the same
	// name. Empty means unknown, which matches every name.
	Name string
	// Server is the built-in provider whose server this is, such as "openai" or "deepseek". It
	// selects the extensions and the provider under which models are looked up; Name does
	// neither. Empty means unknown: models are looked up under the dialect's vendor.
	Server string
	// Codec is the codec of the dialect; nil means OpenAI Chat.
	Codec dialect.Codec
	// BaseURL is the base URL of the API; empty means that of the dialect's vendor. Providers
	// whose URL contains a region or project have no default.
	BaseURL string
	// Path is appended to BaseURL for complete responses, StreamPath for streams. Both may
	// contain a query, and "{model}" is replaced by the model. Empty means the dialect's path.
	// If only Path is set, it is used for streams too.
	Path, StreamPath string
	// Model is the model to call; empty means the model named in each request.
	Model string
	// Auth adds the credential to requests; nil sends none.
	Auth Auth
	// Header is sent with every request. Its values are redacted in logs and errors.
	Header http.Header

	// Capabilities returns the capabilities of a model; nil means those that the dialect and
	// Models list under its name.
	Capabilities func(model string) targets.Capabilities
	// Models is the table of model facts; nil means [models.Default].
	Models *models.Catalog
	// Override changes the capabilities of a model after extensions did; nil changes nothing.
	Override func(*targets.Capabilities)
	// Extensions adapt requests and responses; the zero value has none.
	Extensions Extensions
	// Contributions are added to the registry of every request, before those of extensions and
	// tools.
	Contributions []dragoman.Contribution
	// Abandon selects the calls without a result that are given up before a request is sent.
	// Empty means none: a request with such calls is refused.
	Abandon string
	// ReasoningAsText sends the visible thinking of other models as text. By default it is
	// omitted.
	ReasoningAsText bool
	// ThinkTags turns thinking that the server marks within its text into reasoning parts
	// (quirk G7): "marked" if it begins with <think>, "open" if the text begins within
	// thinking, because the model's template has opened it. Empty leaves the text unchanged.
	ThinkTags string
	// Chunks emits the raw bytes of a stream before their events. By default they are omitted,
	// unless an agent asks for them in a run.
	Chunks bool

	// Timeouts limit the phases of a request. See [Timeouts] for the defaults.
	Timeouts Timeouts
	// Retry controls retries. The zero value means two retries.
	Retry Retry
	// MaxRequestBytes limits the body of a request. MaxResponseBytes limits a complete response
	// and the stored part of a stream. 0 means 64 MiB each.
	MaxRequestBytes, MaxResponseBytes int
	// Strict refuses a request if encoding it loses something at least this severe. The
	// request is not sent. The error wraps [dragoman.ErrUnsupported] and contains a
	// [*dragoman.LossError]; a [Chain] continues with the next model. Nil sends every
	// request and reports its losses.
	Strict *dragoman.Severity

	// HTTP sends requests. If it is nil or has no Transport, all such clients share a copy
	// of [http.DefaultTransport] that keeps more idle connections. Redirects are never
	// followed, because they would send the credential to another server.
	HTTP *http.Client
	// Log gets a record for every request and, at debug level, requests, responses and losses,
	// without credentials. Nil disables logging.
	Log *slog.Logger

	// keyAdvice is the advice on how to set the credential, for errors of servers that require
	// one; empty means unknown.
	keyAdvice string
	schemas   interop.SchemaCache
	// cachedAddress caches the address of the last request, cachedScope its scope.
	cachedAddress atomic.Pointer[address]
	cachedScope   atomic.Pointer[scope]
	// cachedModel caches the facts about the last requested model.
	cachedModel atomic.Pointer[knownModel]

	// initialized holds the extensions that have been initialized.
	initMu      sync.Mutex
	initialized map[string]bool

	// transparent reports whether the client's own model is transparent. It is set by
	// transparentOnce.
	transparentOnce sync.Once
	transparent     bool

	testClock clock // nil means the system clock
}

var _ dragoman.Model = (*Client)(nil)

// Generate implements [dragoman.Model]. A failed response is returned with its error.
func (c *Client) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	x := newExchange(c, req, false)
	x.clientHeader = modelcall.Betas(ctx)
	ctx, done := x.startTimeout(ctx)
	defer done()
	for {
		resp, err := x.generate(ctx)
		if err == nil {
			x.sendPatches()
		}
		if err == nil || !x.waitToRetry(ctx, err) {
			return resp, x.redactError(err)
		}
	}
}

// Stream implements [dragoman.Model]. Events are decoded as the caller consumes them, so a slow
// caller slows down the server. Events are held back until there is content, reasoning or a
// call, so that a request that fails early can be retried.
func (c *Client) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	used := false
	return func(yield func(dragoman.Event, error) bool) {
		if used {
			yield(nil, errUsedStream)
			return
		}
		used = true
		out := startBuffer{yield: yield}
		err := c.stream(ctx, req, &out)
		if relay := modelcall.RelayOf(ctx); relay != nil {
			if err == nil && relay.RefuseEmpty && out.isEmpty() {
				err = ErrEmpty
			}
			if err != nil {
				out.drop()
			}
		}
		if more := out.flush(); more && err != nil {
			yield(nil, err)
		}
	}
}

// stream makes attempts to get the response as a stream, until one has content or none is left.
// Events of the last attempt before its content stay in out.
func (c *Client) stream(ctx context.Context, req *dragoman.Request, out *startBuffer) error {
	x := newExchange(c, req, true)
	x.clientHeader = modelcall.Betas(ctx)
	ctx, done := x.startTimeout(ctx)
	defer done()
	out.exchange = x
	for {
		err := x.streamEvents(ctx, out)
		if err == nil || out.stopped {
			return nil
		}
		if out.open || !x.waitToRetry(ctx, err) {
			return x.redactError(err)
		}
		out.drop()
	}
}

// errUsedStream reports that a stream was iterated twice.
var errUsedStream = errors.New("provider: a stream can be iterated only once")

// String returns the name of the model, without settings that may be secret.
func (c *Client) String() string {
	if c == nil {
		return "provider.Client(nil)"
	}
	return c.displayName(c.Model)
}

// GoString returns String: the fields may hold secrets.
func (c *Client) GoString() string { return c.String() }

// LogValue returns String: the fields may hold secrets.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Dialect returns the dialect of the client. [Client.Target] returns more details.
func (c *Client) Dialect() dragoman.Dialect { return c.codec().Dialect() }

// displayName returns the display name of a model.
func (c *Client) displayName(model string) string {
	name := c.Name
	if name == "" {
		name = string(c.codec().Dialect())
	}
	if model == "" {
		return name
	}
	return name + "/" + model
}

// Limits returns the limits of the dialect.
func (c *Client) Limits() targets.Limits { return c.codec().Limits() }

func (c *Client) codec() dialect.Codec {
	if c.Codec == nil {
		return dialects.Default()
	}
	return c.Codec
}

func (c *Client) clock() clock {
	if c.testClock == nil {
		return systemClock{}
	}
	return c.testClock
}

func (c *Client) maxRequest() int {
	if c.MaxRequestBytes > 0 {
		return c.MaxRequestBytes
	}
	return framing.DefaultMaxBody
}

func (c *Client) maxResponse() int {
	return dialect.DecodeOptions{MaxBytes: c.MaxResponseBytes}.Limit()
}
