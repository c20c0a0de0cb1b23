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
	"github.com/dragoman-go/dragoman/internal/contexts/callcontext"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/framing/bodies"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/models"
	"github.com/dragoman-go/dragoman/targets"
)

// Client is a model behind an HTTP API. The zero value speaks OpenAI Chat to
// OpenAI, without a credential. It is safe for concurrent use; its fields must
// not be changed, nor the Client copied, once it is in use.
type Client struct {
	// Name is who serves the model, such as "openai": what the model mints goes
	// back to providers of the same name only. Empty means unknown, which
	// matches every name.
	Name string
	// Server is the built-in provider whose server this is, such as "openai" or
	// "deepseek". It selects the extensions and the provider under which models are looked
	// up; Name does neither. Empty means unknown: models are looked up at the dialect's
	// vendor.
	Server string
	// Codec is the wire language; nil means OpenAI Chat.
	Codec dialect.Codec
	// BaseURL is where the API is; empty means that of the dialect's vendor.
	// Providers whose URL names a region or project have none.
	BaseURL string
	// Path is what stands behind BaseURL for whole answers, StreamPath for
	// streams; a query may follow, and "{model}" stands for the model. Empty
	// means the dialect's own; an empty StreamPath beside a Path means Path.
	Path, StreamPath string
	// Model is the model to ask; empty means the one that each request names.
	Model string
	// Auth puts the credential on requests; nil sends none.
	Auth Auth
	// Header is sent with every request; its values are taken for secrets.
	Header http.Header

	// Capabilities returns the capabilities of a model; nil means those that the dialect
	// and Models know by its name.
	Capabilities func(model string) targets.Capabilities
	// Models is the table of model facts; nil means [models.Default].
	Models *models.Catalog
	// Override changes the capabilities of a model, after extensions; nil changes nothing.
	Override func(*targets.Capabilities)
	// Extensions adapt requests and answers; the zero value has none.
	Extensions Extensions
	// Contributions to the registry of every request, before those of extensions
	// and tools.
	Contributions []dragoman.Contribution
	// Abandon says which calls without a result are given up before a request is
	// sent; zero means none, so that such a request is refused.
	Abandon string
	// ReasoningAsText sends the visible thinking of other models as text; zero
	// leaves it out.
	ReasoningAsText bool
	// ThinkTags makes reasoning parts of thinking that the server marks within its text
	// (quirk G7): "marked" if it begins with <think>, "open" if the text begins within
	// thinking, because the model's template has opened it. Empty leaves the text as it is.
	ThinkTags string
	// Chunks passes on the raw bytes of a stream before the events they mean; zero
	// leaves them out, unless an agent asks for them for a run.
	Chunks bool

	// Timeouts bound the phases of a request; each has its own zero value.
	Timeouts Timeouts
	// Retry says when to ask again; zero means twice more.
	Retry Retry
	// MaxRequestBytes bounds the body of a request, MaxResponseBytes that of a
	// whole answer and what is kept of a stream; 0 means 64 MiB each.
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
	// Log gets a line for every request and, at debug level, requests, responses and
	// losses, without credentials; nil logs nothing.
	Log *slog.Logger

	// setKey is the advice on how to set the credential, for errors of servers that require
	// one; empty means unknown.
	setKey  string
	schemas interop.SchemaCache
	// to is where the last request went, scoped what was last told apart.
	to     atomic.Pointer[address]
	scoped atomic.Pointer[scope]
	// facts are those of the last requested model.
	facts atomic.Pointer[knownModel]

	// initialized are the extensions that have been.
	begun       sync.Mutex
	initialized map[string]bool

	// through is whether the client's own model is transparent, once looked is done.
	looked  sync.Once
	through bool

	testClock clock // nil means the system clock
}

var _ dragoman.Model = (*Client)(nil)

// Generate implements [dragoman.Model]. A response that failed is returned with
// its error.
func (c *Client) Generate(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	x := newExchange(c, req, false)
	x.passed = callcontext.Betas(ctx)
	ctx, done := x.begin(ctx)
	defer done()
	for {
		resp, err := x.whole(ctx)
		if err == nil {
			x.sendPatches()
		}
		if err == nil || !x.again(ctx, err) {
			return resp, x.told(err)
		}
	}
}

// Stream implements [dragoman.Model]. Events are decoded as the caller takes
// them, so that a slow caller slows the server down. Until there is content,
// reasoning or a call they are held back, so that a request that fails early can
// be sent again.
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
		if relay := callcontext.RelayOf(ctx); relay != nil {
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

// stream makes attempts to get the response as a stream, until one has content or none is
// left. What the last attempt sent before its content stays in out.
func (c *Client) stream(ctx context.Context, req *dragoman.Request, out *startBuffer) error {
	x := newExchange(c, req, true)
	x.passed = callcontext.Betas(ctx)
	ctx, done := x.begin(ctx)
	defer done()
	out.exchange = x
	for {
		err := x.events(ctx, out)
		if err == nil || out.left {
			return nil
		}
		if out.open || !x.again(ctx, err) {
			return x.told(err)
		}
		out.drop()
	}
}

// errUsedStream says that a stream was ranged over twice.
var errUsedStream = errors.New("provider: a stream can be ranged over once")

// String names the model, without any setting that could hold a secret.
func (c *Client) String() string {
	if c == nil {
		return "provider.Client(nil)"
	}
	return c.label(c.Model)
}

// GoString is String: the fields may hold secrets.
func (c *Client) GoString() string { return c.String() }

// LogValue is String: the fields may hold secrets.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Dialect is the wire language that the client speaks. [Client.Target] tells more.
func (c *Client) Dialect() dragoman.Dialect { return c.codec().Dialect() }

// label names a model for people.
func (c *Client) label(model string) string {
	name := c.Name
	if name == "" {
		name = string(c.codec().Dialect())
	}
	if model == "" {
		return name
	}
	return name + "/" + model
}

// Limits are the rules of the wire, as data.
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
	return bodies.DefaultMax
}

func (c *Client) maxResponse() int {
	return dialect.DecodeOptions{MaxBytes: c.MaxResponseBytes}.Limit()
}
