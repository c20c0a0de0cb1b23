package gateway

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/gateway/internal/mcpgate"
	"github.com/dragoman-go/dragoman/gateway/internal/recall"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// Options configure a [Gateway] in addition to its [Config].
type Options struct {
	// Log gets a line for every request, and details that clients do not get; nil logs nothing.
	Log *slog.Logger
	// OnDecision receives every policy decision, allow included; nil means that decisions are only
	// logged. It is called concurrently. To write an audit log, use [policy.Audit]: func(d
	// tool.PolicyDecided) { audit.Observe(d) }.
	OnDecision func(tool.PolicyDecided)
	// Notes stores the state of the gateway; nil means in memory. If Config.State names a
	// database, pass the notes of its store, which the caller opens and closes.
	Notes session.Notes
	// Journal makes approvals of MCP calls survive a restart, each for at most one effect; nil
	// means that a restart voids open questions of MCP clients. A session of the same store as
	// Notes is a journal.
	Journal tool.Journal
	// Random is the source of ids. It is read concurrently. Nil, and a source that fails, mean
	// the system's source.
	Random io.Reader
	// Now is the clock of limits and expiry; nil means the system's.
	Now func() time.Time
}

// Gateway serves all dialects over any model. It is safe for concurrent use.
type Gateway struct {
	opts       Options
	mux        *http.ServeMux
	current    atomic.Pointer[setup]
	keys       *access.Keys
	recall     *recall.Recall
	ttl        time.Duration
	httpClient *http.Client
	// headerBytes bounds the headers of requests.
	headerBytes int
	metrics     metrics
	mcpMetrics  mcpMetrics
	buffers     buffers
	// mcp serves MCP servers; nil if the config has none.
	mcp atomic.Pointer[mcpgate.Gate]
	// conversations holds the locks of conversations that are changing.
	conversations conversationLocks
	// sealingKey is the secret that seals summaries of conversations; nil until it is first
	// needed.
	sealing    sync.Mutex
	sealingKey []byte
}

var _ http.Handler = (*Gateway)(nil)

// New returns a gateway. A nil config serves the models of the simulator. It is an error if
// [Config.Check] fails, or if the config names a database and Options.Notes is nil: New does
// not open databases.
func New(c *Config, o Options) (*Gateway, error) {
	if o.Random == nil {
		o.Random = rand.Reader
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if c == nil {
		c = &Config{}
	}
	if err := c.Check(); err != nil {
		return nil, err
	}
	if o.Notes == nil && (c.State.SQLite != "" || c.State.PostgresEnv != "") {
		return nil, &ConfigError{Setting: "state", Reason: "a Config with a database needs Options.Notes: open the store and pass its Notes"}
	}
	g := &Gateway{opts: o, httpClient: newHTTPClient()}
	keys, err := access.New(c.Keys, access.Options{Now: o.Now})
	if err != nil {
		return nil, err
	}
	g.keys = keys
	if g.opts.Notes == nil {
		g.opts.Notes = &storekit.Notes{MaxBytes: orElse(c.State.MaxBytes, defaultStateBytes), Now: o.Now}
	}
	g.headerBytes = orElse(c.Limits.HeaderBytes, defaultHeaderBytes)
	g.ttl = orElse(c.State.TTL, defaultStateTTL)
	if g.recall, err = recall.New(recall.Options{Notes: g.opts.Notes, TTL: g.ttl, Now: o.Now}); err != nil {
		return nil, err
	}
	s, err := newSetup(c, g.httpClient)
	if err != nil {
		return nil, err
	}
	g.current.Store(s)
	if err := g.setMCP(c); err != nil {
		return nil, err
	}
	g.mux = g.routes()
	return g, nil
}

// Reload replaces the config. Requests in progress keep the old one. On an error nothing
// changes. The listener and the place of the state do not change: they need a restart.
func (g *Gateway) Reload(c *Config) error {
	if c == nil {
		c = &Config{}
	}
	if err := c.Check(); err != nil {
		return err
	}
	s, err := newSetup(c, g.httpClient)
	if err != nil {
		return err
	}
	if err := g.setMCP(c); err != nil {
		return err
	}
	if err := g.keys.Replace(c.Keys); err != nil {
		return err
	}
	g.current.Store(s)
	return nil
}

func (g *Gateway) routes() *http.ServeMux {
	mux := http.NewServeMux()
	serving.Handle(mux, g.serve, serving.Gateway()...)
	mux.HandleFunc("POST /v1/responses/compact", func(w http.ResponseWriter, r *http.Request) {
		g.serve(w, r, serving.Call{Call: wire.Call{Codec: dialects.Stateful()}, Compact: true})
	})
	mux.HandleFunc("/mcp", g.serveMCP)
	mux.HandleFunc("/mcp/{server}", g.serveMCP)
	mux.HandleFunc("GET /healthz", g.serveHealth)
	mux.HandleFunc("GET /metrics", g.serveMetrics)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { // HEAD too: Claude Code sends it
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, "Dragoman is running.\n")
	})
	asides := http.NewServeMux()
	serving.Models{Allow: g.requireKey, List: g.listModels, Find: g.findModel, MaxBytes: maxAuxBody}.Handle(asides)
	asides.HandleFunc("GET /v1/responses/{id}", g.getResponse)
	asides.HandleFunc("DELETE /v1/responses/{id}", g.deleteResponse)
	asides.HandleFunc("POST /v1/responses/{id}/cancel", g.subresource("/cancel"))
	asides.HandleFunc("GET /v1/responses/{id}/input_items", g.serveInputItems)
	g.handleConversations(asides)
	asides.HandleFunc("/", serving.NotFound(mux, asides))
	mux.Handle("/", g.auxiliary(asides))
	for _, path := range serving.Roots(serving.Gateway()...) {
		mux.Handle("POST "+path, g.auxiliary(asides)) // otherwise net/http redirects to the paths below it
	}
	return mux
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			if err, ok := v.(error); ok && errors.Is(err, http.ErrAbortHandler) {
				panic(v)
			}
			if g.opts.Log != nil {
				g.opts.Log.ErrorContext(r.Context(), "a request handler panicked", "path", r.URL.Path, "panic", v)
			}
			panic(http.ErrAbortHandler) // closes the connection, so that the client does not take the response for complete
		}
	}()
	serving.BoundBody(w, r, g.current.Load().bodyTime)
	g.mux.ServeHTTP(w, r)
}

// newRequestID returns an id for a request.
func (g *Gateway) newRequestID() string {
	var b [16]byte
	if _, err := io.ReadFull(g.opts.Random, b[:]); err != nil { // two requests with one id would have one response
		_, _ = rand.Read(b[:]) // never fails
	}
	return "req_" + hex.EncodeToString(b[:])
}
