package mcpgate

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// Config says what a gate serves, and to whom.
type Config struct {
	Servers []mcp.Server
	// Lock names the file with the accepted definitions; empty means that what a server lists
	// first is accepted.
	Lock string
	// Policy decides on every call, and KeyPolicies, by the names of keys, on those of a key.
	// Both must allow a call. They are bound to [Host].
	Policy      *policy.Policy
	KeyPolicies map[string]*policy.Policy
	// NoApprovals lets no client approve calls or answer questions of servers.
	NoApprovals bool
	// Fence marks results as data for models.
	Fence bool
	// Origins are the origins of web pages that may connect. Hosts are the names of the
	// gateway; "*" accepts all.
	Origins, Hosts []string
	// Shared lets all keys use the same connections to servers.
	Shared bool
	// Plain gives tools of the common endpoint the names that they have at their servers. Two
	// tools with one name are then an error.
	Plain bool
	// Keys holds, by the names of keys, what each may use: "server", or "server/tool", both
	// with * for any text. Nil means that there are no keys, and every client may use all.
	Keys map[string][]string
	// MaxResult limits the characters of a result, and MaxBody the bytes of a request; zero
	// means 4 Mi and 4 MiB.
	MaxResult int
	MaxBody   int64
	// Authorize returns what gets access tokens for a server; nil means none. Credentials holds
	// for each server what changes with its credentials.
	Authorize   func(s mcp.Server) (mcp.Authorizer, error)
	Credentials map[string]string
}

// Options connect a gate to its program.
type Options struct {
	// Name and Version are what clients are told.
	Name, Version string
	Log           *slog.Logger
	Now           func() time.Time
	// OnDecision receives every decision of a policy, and OnCall every call.
	OnDecision func(tool.PolicyDecided)
	OnCall     func(Call)
	// OnLoss receives each loss once for each server.
	OnLoss func(server string, l dragoman.Loss)
	// Enter admits a call of a key, or refuses it. It may be nil.
	Enter func(ctx context.Context, key string) (release func(), err error)
	// Journal and StateKey make approvals valid after a restart, each for one effect; nil means
	// that a restart voids open questions.
	Journal  tool.Journal
	StateKey []byte
	// Transport sends the requests to servers; nil means the default.
	Transport http.RoundTripper
	// StartWait limits how long a first list waits for servers that are starting; zero means
	// 10 seconds.
	StartWait time.Duration
}

// Call is one finished call of a client.
type Call struct {
	Key, Server, Tool, Client, Revision string
	// Method is the MCP method, such as "tools/call". Outcome is "ok", "error" or the kind of the error.
	Method, Outcome string
	Took            time.Duration
	Losses          []dragoman.Loss
	Err             string
	// Policy describes the decision of the policy, and Verdict that of the user.
	Policy, Verdict string
}

// Gate is a running gate. It is safe for concurrent use.
type Gate struct {
	opts Options

	mu     sync.Mutex
	config Config
	lock   *mcp.Lock
	fronts map[string]*front
	pool   map[place]*upstream
	closed bool
	work   sync.WaitGroup

	lossMu sync.Mutex
	losses map[string]bool // by server and feature
	byRun  map[string][]dragoman.Loss
}

// place identifies a connection: the label of its server and the key that it is for, which is
// empty if all keys share it.
type place struct{ label, key string }

// New returns a gate. It starts no server: [Gate.Start] and the first request do.
func New(c Config, o Options) (*Gate, error) {
	g := &Gate{opts: o, fronts: map[string]*front{}, pool: map[place]*upstream{}, losses: map[string]bool{}, byRun: map[string][]dragoman.Loss{}}
	g.opts.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	g.opts.StartWait = cmp.Or(o.StartWait, 10*time.Second)
	if g.opts.Now == nil {
		g.opts.Now = time.Now
	}
	lock, err := openLock(c.Lock)
	if err != nil {
		return nil, err
	}
	g.config, g.lock = normal(c), lock
	return g, nil
}

func openLock(path string) (*mcp.Lock, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // no lock accepts what servers list first
	}
	return mcp.OpenLock(path)
}

// normal returns a config whose servers name their tools with a prefix, so that policies and
// approvals see one name for each tool at every endpoint.
func normal(c Config) Config {
	c.Servers = slices.Clone(c.Servers)
	for i := range c.Servers {
		s := &c.Servers[i]
		s.Name, s.Prefix, s.Namespace, s.Deferred = s.Label(), true, "", false
	}
	c.MaxResult = cmp.Or(c.MaxResult, 4<<20)
	c.MaxBody = cmp.Or(c.MaxBody, 4<<20)
	return c
}

// Host describes a gate to policies.
func Host(servers []mcp.Server, noApprovals bool) policy.Host {
	h := policy.Host{Name: "the MCP gateway", Subjects: []string{"tool_call"}, Namespaces: []string{}, Agents: []string{}, Tags: []string{"forwarded"}, Unattended: noApprovals}
	for _, s := range servers {
		h.Tags = append(h.Tags, "mcp:"+s.Label())
	}
	return h
}

// Start connects to the servers that all keys share.
func (g *Gate) Start() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.config.Shared && g.config.Keys != nil {
		return
	}
	for _, s := range g.config.Servers {
		g.upstream(s, "")
	}
}

// Reload replaces the config. Servers whose settings did not change stay connected, and so do
// clients, unless a setting of their endpoint changed. On an error nothing changes.
func (g *Gate) Reload(c Config) error {
	lock, err := openLock(c.Lock)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	before, now := g.config, normal(c)
	sameLock := before.Lock == now.Lock && g.lock != nil
	if sameLock {
		if err := g.lock.Reload(); err != nil {
			return err
		}
	} else if before.Lock != now.Lock {
		g.lock = lock
	}
	g.config = now
	for at, u := range g.pool {
		i := slices.IndexFunc(now.Servers, func(s mcp.Server) bool { return s.Name == at.label })
		_, keyStays := now.Keys[at.key]
		switch {
		case i < 0, !reflect.DeepEqual(now.Servers[i], u.config), before.Lock != now.Lock, before.NoApprovals != now.NoApprovals,
			now.Shared != before.Shared, before.Credentials[at.label] != now.Credentials[at.label], at.key != "" && !keyStays:
			delete(g.pool, at)
			g.end(u)
		case sameLock:
			u.servers.Recheck()
		}
	}
	fixed := func(c Config) any {
		return []any{c.NoApprovals, c.Fence, c.Origins, c.Hosts, c.Plain, c.MaxResult, c.MaxBody, c.Keys == nil, c.Shared}
	}
	for key, f := range g.fronts {
		_, stays := now.Keys[key]
		if !stays && now.Keys != nil || !reflect.DeepEqual(fixed(before), fixed(now)) {
			delete(g.fronts, key)
			f.close()
			continue
		}
		f.refresh()
	}
	return nil
}

// Close ends all connections.
func (g *Gate) Close() error {
	g.mu.Lock()
	g.closed = true
	for at, u := range g.pool {
		delete(g.pool, at)
		g.end(u)
	}
	for key, f := range g.fronts {
		delete(g.fronts, key)
		f.close()
	}
	g.mu.Unlock()
	g.work.Wait()
	return nil
}

// EndStreams ends the streams of notifications and refuses new ones, before a shutdown. Calls in
// progress continue.
func (g *Gate) EndStreams() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, f := range g.fronts {
		f.endStreams()
	}
}

// end closes a connection in the background.
func (g *Gate) end(u *upstream) {
	g.work.Go(func() {
		if err := u.servers.Close(); err != nil {
			g.opts.Log.Warn("an MCP server did not end properly", "server", u.config.Name, "error", err)
		}
	})
}

// allowed reports whether a key may use a tool of a server; an empty tool means the whole server.
// part reports that it may use at least one tool.
func (c *Config) allowed(key, server, tool string) (ok, part bool) {
	if c.Keys == nil {
		return true, true
	}
	for _, p := range c.Keys[key] {
		at, name, limited := cutPattern(p)
		if !textkit.MatchStars(at, server) {
			continue
		}
		part = true
		if !limited || tool != "" && textkit.MatchStars(name, tool) {
			return true, true
		}
	}
	return false, part
}

// cutPattern splits "server/tool". The labels of servers have no slash there.
func cutPattern(p string) (server, tool string, limited bool) {
	for i := range len(p) {
		if p[i] == '/' {
			return p[:i], p[i+1:], true
		}
	}
	return p, "", false
}

// CheckPattern returns why a pattern of a key can never match, or "".
func CheckPattern(p string, servers []mcp.Server) string {
	at, name, limited := cutPattern(p)
	if at == "" || limited && name == "" {
		return "want SERVER or SERVER/TOOL, in which * is any text"
	}
	var labels []string
	disabled := false
	for _, s := range servers {
		labels = append(labels, s.Label())
		if !textkit.MatchStars(at, s.Label()) {
			continue
		}
		if s.Disabled {
			disabled = true
			continue
		}
		if !limited || mayList(s, name) {
			return ""
		}
		return "the server " + s.Label() + " is configured without the tools that it matches"
	}
	if disabled {
		return "the server is disabled"
	}
	return "there is no such server" + textkit.Suggest(at, labels)
}

// mayList reports whether a server may list a tool that a pattern matches.
func mayList(s mcp.Server, pattern string) bool {
	in := len(s.Include) == 0 || slices.ContainsFunc(s.Include, func(p string) bool { return textkit.GlobsOverlap(p, pattern) })
	return in && !slices.ContainsFunc(s.Exclude, func(p string) bool {
		return textkit.MatchStars(p, pattern)
	})
}

// find returns the server with a label that a key may use.
func (c *Config) find(key, label string) (mcp.Server, bool) {
	for _, s := range c.Servers {
		if s.Name == label && !s.Disabled {
			_, part := c.allowed(key, label, "")
			return s, part
		}
	}
	return mcp.Server{}, false
}

// visible returns the servers that a key may use, in the order of the config.
func (c *Config) visible(key string) (out []mcp.Server) {
	for _, s := range c.Servers {
		if _, part := c.allowed(key, s.Name, ""); part && !s.Disabled {
			out = append(out, s)
		}
	}
	return out
}

var errClosed = errors.New("the gateway is shutting down")

// Serve answers a request of a key that is authorized, at the endpoint of a server, or of all
// servers if the label is empty. It reports false if the key has no such endpoint.
func (g *Gate) Serve(w http.ResponseWriter, r *http.Request, key, label string) bool {
	e, err := g.endpoint(key, label)
	switch {
	case err != nil:
		g.opts.Log.Error("an MCP endpoint cannot be served", "key", key, "server", label, "error", err)
		http.Error(w, "the endpoint cannot be served; the details are in the log of the gateway", http.StatusServiceUnavailable)
		return true
	case e == nil:
		return false
	}
	e.serve(w, r)
	return true
}

// endpoint returns an endpoint, which is made for its first request; nil if the key has none.
func (g *Gate) endpoint(key, label string) (*endpoint, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, errClosed
	}
	if label != "" {
		if _, ok := g.config.find(key, label); !ok {
			return nil, nil //nolint:nilnil // the caller reports it
		}
	} else if g.config.Keys != nil && len(g.config.Keys[key]) == 0 {
		return nil, nil //nolint:nilnil // the same
	}
	f := g.fronts[key]
	if f == nil {
		f = &front{gate: g, key: key, endpoints: map[string]*endpoint{}}
		g.fronts[key] = f
	}
	return f.endpoint(label)
}

// Status describes the servers that are connected, or being connected.
func (g *Gate) Status() []mcp.Status {
	g.mu.Lock()
	var all []*upstream
	for _, u := range g.pool {
		all = append(all, u)
	}
	g.mu.Unlock()
	var out []mcp.Status
	for _, u := range all {
		out = append(out, u.servers.Status()...)
	}
	slices.SortStableFunc(out, func(a, b mcp.Status) int { return cmp.Compare(a.Server, b.Server) })
	return out
}

// lost reports a loss, once for each server and feature.
func (g *Gate) lost(server string, l dragoman.Loss) {
	g.lossMu.Lock()
	name := server + "\x00" + string(l.Kind) + l.Path + l.Detail
	seen := g.losses[name]
	if len(g.losses) < 10_000 {
		g.losses[name] = true
	}
	g.lossMu.Unlock()
	if seen {
		return
	}
	g.opts.Log.Info("a feature of an MCP server does not reach every client", "server", server, "loss", l.String())
	if g.opts.OnLoss != nil {
		g.opts.OnLoss(server, l)
	}
}
