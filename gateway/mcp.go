package gateway

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/access"
	admission "github.com/dragoman-go/dragoman/gateway/internal/access"
	"github.com/dragoman-go/dragoman/gateway/internal/mcpgate"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/oauth"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// MCP configures the MCP servers that a gateway serves at /mcp, all together, and at /mcp/NAME,
// each alone.
type MCP struct {
	// Servers are the servers. Their Prefix, Namespace and Deferred have no effect: policies,
	// approvals and records name a tool mcp_SERVER__TOOL.
	Servers []mcp.Server
	// Lock is the file with the accepted definitions of tools: only these are listed and
	// called. Empty accepts what a server lists first.
	Lock string
	// Keys holds, by the names of keys, the servers and tools that each may use: "files" or
	// "issues/get_*", in which * matches any text. A key that is not listed may use none.
	// Without keys in the config every client may use all.
	Keys map[string][]string
	// Policy decides on every MCP call, and KeyPolicies, by the names of keys, on those of a
	// key. A call must be allowed by both.
	Policy      *policy.Policy
	KeyPolicies map[string]*policy.Policy
	// NoApprovals lets no client approve calls or answer questions of servers. Calls that need
	// approval then fail, unless a rule of the policy allows them.
	NoApprovals bool
	// Fence marks results as data for models, as agents of this module do. Most MCP clients
	// mark results themselves or are programs, and it removes structured values.
	Fence bool
	// AllowedOrigins are origins of web pages that may connect.
	AllowedOrigins []string
	// PlainNames gives the tools at /mcp the names that they have at their servers. Two tools
	// with one name are then an error for the key that sees both.
	PlainNames bool
	// SharedSessions lets all keys use one connection to each server. Without it each key has
	// its own, so that state of a server does not pass from one key to another.
	SharedSessions bool
	// ResultChars limits the characters of a result; zero means 4 Mi.
	ResultChars int
	// TokenStore is the folder with the logins of [oauth.FileStore] for servers that need
	// one, and Auth has OAuth clients by the names of servers.
	TokenStore string
	Auth       map[string]MCPAuth
	// Authorize, if set, is used instead of TokenStore and Auth.
	Authorize func(s mcp.Server) (mcp.Authorizer, error)
}

// MCPAuth is an OAuth client with which the gateway gets its own tokens for a server.
type MCPAuth struct {
	ClientID string
	// ClientSecretEnv is the environment variable with the secret.
	ClientSecretEnv string
	// Issuer is the authorization server that gets the secret; empty trusts the one that the
	// server names first.
	Issuer string
	Scopes []string
}

// checkMCP returns the first error of the settings for MCP.
func (c *Config) checkMCP() error {
	m := c.MCP
	if m == nil {
		return nil
	}
	bad := func(setting, format string, args ...any) error {
		return &ConfigError{Setting: setting, Reason: fmt.Sprintf(format, args...)}
	}
	if len(m.Servers) == 0 {
		return bad("mcp", "there are no servers")
	}
	labels := map[string]bool{}
	for _, s := range m.Servers {
		label := s.Label()
		switch {
		case !mcpLabel.MatchString(label):
			return bad("mcp.servers", "%.80q is not a name of letters, digits and _ . -", label)
		case labels[label]:
			return bad("mcp.servers", "two servers have the name %s", label)
		}
		labels[label] = true
	}
	isKey := func(name string) bool {
		return slices.ContainsFunc(c.Keys, func(k access.Key) bool { return k.Name == name })
	}
	for _, name := range slices.Sorted(maps.Keys(m.Keys)) {
		if !isKey(name) {
			return bad("mcp.keys", "unknown key %s", name)
		}
		for _, p := range m.Keys[name] {
			if reason := mcpgate.CheckPattern(p, m.Servers); reason != "" {
				return bad("keys."+name+".mcp", "%.80q can never match: %s", p, reason)
			}
		}
	}
	host := mcpgate.Host(m.Servers, m.NoApprovals)
	if m.Policy != nil {
		if _, err := m.Policy.For(host); err != nil {
			return bad("mcp.policy", "%v", err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.KeyPolicies)) {
		if !isKey(name) {
			return bad("keys."+name+".mcp_policy", "unknown key")
		}
		if p := m.KeyPolicies[name]; p != nil {
			if _, err := p.For(host); err != nil {
				return bad("keys."+name+".mcp_policy", "%v", err)
			}
		}
	}
	for _, o := range m.AllowedOrigins {
		if reason := badOrigin(o); reason != "" {
			return bad("mcp.allowed_origins", "%.200q: %s", o, reason)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Auth)) {
		if !labels[name] {
			return bad("mcp.auth", "there is no server %s", name)
		}
	}
	if m.ResultChars < 0 {
		return bad("mcp.result_chars", "must not be negative")
	}
	return nil
}

// badOrigin returns why an origin is invalid, or "".
func badOrigin(origin string) string {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || u.Path != "" || u.RawQuery != "" || strings.Contains(u.Host, "*") {
		return "want an origin such as https://app.example.com, without a path"
	}
	return ""
}

// gateConfig returns the config of the gate.
func (c *Config) gateConfig() mcpgate.Config {
	m := c.MCP
	out := mcpgate.Config{
		Servers: m.Servers, Lock: m.Lock, NoApprovals: m.NoApprovals, Fence: m.Fence, Origins: m.AllowedOrigins, Hosts: c.Hosts,
		Shared: m.SharedSessions, Plain: m.PlainNames, MaxResult: m.ResultChars, MaxBody: int64(orElse(c.Limits.BodyBytes, 0)),
		KeyPolicies: map[string]*policy.Policy{}, Authorize: m.authorizer(), Credentials: map[string]string{},
	}
	for _, s := range m.Servers {
		a := m.Auth[s.Label()]
		out.Credentials[s.Label()] = fmt.Sprintf("%q %q %x", m.TokenStore, a, sha256.Sum256([]byte(os.Getenv(a.ClientSecretEnv))))
	}
	host := mcpgate.Host(m.Servers, m.NoApprovals)
	if m.Policy != nil {
		out.Policy, _ = m.Policy.For(host) // checked
	}
	for name, p := range m.KeyPolicies {
		if p != nil {
			out.KeyPolicies[name], _ = p.For(host)
		}
	}
	if len(c.Keys) > 0 {
		out.Hosts = []string{"*"} // pages of other sites have no key
		out.Keys = map[string][]string{}
		for _, k := range c.Keys {
			out.Keys[k.Name] = m.Keys[k.Name]
		}
	}
	return out
}

// setMCP applies the settings for MCP.
func (g *Gateway) setMCP(c *Config) error {
	gate := g.mcp.Load()
	switch {
	case c.MCP == nil && gate == nil:
		return nil
	case c.MCP == nil:
		g.mcp.Store(nil)
		go func() { _ = gate.Close() }()
		return nil
	case gate != nil:
		return gate.Reload(c.gateConfig())
	}
	o := mcpgate.Options{
		Name: "dragoman", Log: g.opts.Log, Now: g.opts.Now, OnDecision: g.opts.OnDecision, OnCall: g.noteMCPCall, OnLoss: g.mcpMetrics.loss,
		Enter: func(_ context.Context, key string) (func(), error) {
			release, err := g.keys.Use(key)
			if refused := (*admission.RefusedError)(nil); errors.As(err, &refused) {
				return nil, refused.API()
			}
			return release, err
		},
	}
	if g.opts.Journal != nil {
		secret, err := g.secret(context.Background())
		if err != nil {
			return fmt.Errorf("gateway: the secret for MCP clients: %w", err)
		}
		sum := sha256.Sum256(append([]byte("mcp states\x00"), secret...))
		o.Journal, o.StateKey = g.opts.Journal, sum[:]
	}
	gate, err := mcpgate.New(c.gateConfig(), o)
	if err != nil {
		return fmt.Errorf("gateway: %w", err)
	}
	g.mcp.Store(gate)
	return nil
}

// authorizer returns the function that makes the authorizers of servers.
func (m *MCP) authorizer() func(s mcp.Server) (mcp.Authorizer, error) {
	if m.Authorize != nil || m.TokenStore == "" && len(m.Auth) == 0 {
		return m.Authorize
	}
	var mu sync.Mutex
	var store oauth.Store
	return func(s mcp.Server) (mcp.Authorizer, error) {
		o := oauth.Options{Server: s.URL}
		a, has := m.Auth[s.Label()]
		if has {
			o.Client = oauth.Client{ID: a.ClientID, Secret: os.Getenv(a.ClientSecretEnv), Issuer: a.Issuer}
			o.Grant, o.Scopes = oauth.ClientCredentials{}, a.Scopes
		}
		if !has && m.TokenStore == "" || hasAuthorization(s.Headers) {
			return nil, nil //nolint:nilnil // the headers of the server are its authorization
		}
		if m.TokenStore != "" {
			mu.Lock()
			defer mu.Unlock()
			if store == nil {
				opened, err := oauth.NewFileStore(m.TokenStore, nil)
				if err != nil {
					return nil, err
				}
				store = opened
			}
			o.Store = store
		}
		return oauth.New(o)
	}
}

func hasAuthorization(headers map[string]string) bool {
	for name := range headers {
		if strings.EqualFold(name, "Authorization") {
			return true
		}
	}
	return false
}

// startMCP connects to the MCP servers.
func (g *Gateway) startMCP() {
	if gate := g.mcp.Load(); gate != nil {
		gate.Start()
	}
}

// endMCPStreams ends what would keep a shutdown waiting although nothing is in progress.
func (g *Gateway) endMCPStreams() {
	if gate := g.mcp.Load(); gate != nil {
		gate.EndStreams()
	}
}

// Close ends the connections to MCP servers, and the programs that were started for them. Call it
// after [Gateway.Serve], or when the handler is no longer used.
func (g *Gateway) Close() error {
	if gate := g.mcp.Load(); gate != nil {
		return gate.Close()
	}
	return nil
}

// serveMCP answers requests of MCP clients.
func (g *Gateway) serveMCP(w http.ResponseWriter, r *http.Request) {
	gate := g.mcp.Load()
	if gate == nil {
		g.refuseMCP(w, r, http.StatusNotFound, "this gateway has no MCP servers: add gateway.mcp to its config file")
		return
	}
	if r.Method == http.MethodOptions && r.Header.Get("Origin") != "" {
		g.preflightMCP(w, r)
		return
	}
	plain := *r.URL
	plain.RawQuery = "" // keys in URLs end up in logs
	key, err := g.keys.Identify(admission.FromRequest(&http.Request{Header: r.Header, URL: &plain}))
	if err != nil {
		challenge := `Bearer realm="dragoman"`
		if refused := (*admission.RefusedError)(nil); errors.As(err, &refused) && refused.Reason == admission.UnknownKey {
			challenge += `, error="invalid_token"`
		}
		w.Header().Set("WWW-Authenticate", challenge)
		g.refuseMCP(w, r, http.StatusUnauthorized, "the key of this gateway is missing or unknown: send it as Authorization: Bearer …")
		return
	}
	if !gate.Serve(w, r, key.Name, r.PathValue("server")) {
		g.refuseMCP(w, r, http.StatusNotFound, "there is no such MCP endpoint for this key")
	}
}

// preflightMCP answers the question of a browser whether a page may send a request. It has no key.
func (g *Gateway) preflightMCP(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	c := g.current.Load().mcpOrigins
	if !slices.Contains(c, origin) {
		g.refuseMCP(w, r, http.StatusForbidden, "pages of this origin may not use this gateway: add it to gateway.mcp.allowed_origins")
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Methods", "POST, GET, DELETE")
	allowed := "Content-Type, Accept, Authorization, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID"
	for name := range strings.SplitSeq(r.Header.Get("Access-Control-Request-Headers"), ",") {
		if name = strings.TrimSpace(name); len(name) < 100 && strings.HasPrefix(strings.ToLower(name), "mcp-param-") && len(allowed) < 4096 {
			allowed += ", " + name
		}
	}
	h.Set("Access-Control-Allow-Headers", allowed)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// refuseMCP answers a request that reaches no endpoint, and logs it.
func (g *Gateway) refuseMCP(w http.ResponseWriter, r *http.Request, status int, text string) {
	g.auxiliary(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = auxEntry(r).fail(&dragoman.APIError{Status: status, Message: text})
		http.Error(w, text, status)
	})).ServeHTTP(w, r)
}

// noteMCPCall logs and counts a call.
func (g *Gateway) noteMCPCall(c mcpgate.Call) {
	g.mcpMetrics.add(&c)
	if g.opts.Log == nil {
		return
	}
	attrs := []slog.Attr{
		slog.String("key", c.Key), slog.String("server", c.Server), slog.String("method", c.Method), slog.String("tool", truncate(c.Tool)),
		slog.String("outcome", c.Outcome), slog.Duration("took", c.Took), slog.String("client", truncate(c.Client)), slog.String("revision", truncate(c.Revision)),
	}
	if c.Policy != "" {
		attrs = append(attrs, slog.String("policy", c.Policy))
	}
	if c.Verdict != "" {
		attrs = append(attrs, slog.String("verdict", c.Verdict))
	}
	if s := lossSummary(c.Losses); s != "" {
		attrs = append(attrs, slog.String("losses", s))
	}
	level := slog.LevelInfo
	if c.Outcome != "ok" {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", truncate(c.Err)))
	}
	g.opts.Log.LogAttrs(context.Background(), level, "mcp call", attrs...)
}

// mcpMetrics counts MCP calls, for Prometheus. The zero value is ready.
type mcpMetrics struct {
	mu     sync.Mutex
	series map[mcpLabels]*mcpSeries
	losses map[[2]string]int64 // by server and kind
}

type mcpLabels struct{ key, server, method, outcome string }

type mcpSeries struct {
	calls   int64
	seconds histogram
}

func (m *mcpMetrics) add(c *mcpgate.Call) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := mcpLabels{c.Key, c.Server, c.Method, c.Outcome}
	s := m.series[l]
	if s == nil {
		if m.series == nil {
			m.series = map[mcpLabels]*mcpSeries{}
		}
		s = new(mcpSeries)
		m.series[l] = s
	}
	s.calls++
	s.seconds.add(c.Took)
}

func (m *mcpMetrics) loss(server string, l dragoman.Loss) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.losses == nil {
		m.losses = map[[2]string]int64{}
	}
	m.losses[[2]string{server, string(l.Kind)}]++
}

// text returns the metrics; empty without MCP servers.
func (m *mcpMetrics) text(gate *mcpgate.Gate) string {
	if gate == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(m.series), func(a, b mcpLabels) int {
		return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.server, b.server), cmp.Compare(a.method, b.method), cmp.Compare(a.outcome, b.outcome))
	})
	label := func(l mcpLabels) string {
		return fmt.Sprintf("key=%q,server=%q,method=%q,outcome=%q", l.key, l.server, l.method, l.outcome)
	}
	var b strings.Builder
	fmt.Fprint(&b, "# HELP dragoman_mcp_calls_total Completed calls of MCP clients.\n# TYPE dragoman_mcp_calls_total counter\n")
	for _, k := range keys {
		fmt.Fprintf(&b, "dragoman_mcp_calls_total{%s} %d\n", label(k), m.series[k].calls)
	}
	fmt.Fprint(&b, "# HELP dragoman_mcp_call_seconds Duration of calls of MCP clients.\n# TYPE dragoman_mcp_call_seconds histogram\n")
	for _, k := range keys {
		m.series[k].seconds.write(&b, "dragoman_mcp_call_seconds", label(k))
	}
	fmt.Fprint(&b, "# HELP dragoman_mcp_losses_total Features of MCP servers that did not reach every client.\n# TYPE dragoman_mcp_losses_total counter\n")
	for _, k := range slices.SortedFunc(maps.Keys(m.losses), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		fmt.Fprintf(&b, "dragoman_mcp_losses_total{server=%q,kind=%q} %d\n", k[0], k[1], m.losses[k])
	}
	states := map[[2]string]int{}
	for _, s := range gate.Status() {
		states[[2]string{s.Server, s.State}]++
	}
	fmt.Fprint(&b, "# HELP dragoman_mcp_connections Connections to MCP servers.\n# TYPE dragoman_mcp_connections gauge\n")
	for _, k := range slices.SortedFunc(maps.Keys(states), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		fmt.Fprintf(&b, "dragoman_mcp_connections{server=%q,state=%q} %d\n", k[0], k[1], states[k])
	}
	return b.String()
}
