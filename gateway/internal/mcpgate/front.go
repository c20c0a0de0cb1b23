package mcpgate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp"
	"github.com/dragoman-go/dragoman/mcp/mcpserver"
	"github.com/dragoman-go/dragoman/tool"
)

// front is what one key sees. Its fields are guarded by the lock of the gate.
type front struct {
	gate      *Gate
	key       string
	endpoints map[string]*endpoint // by server; "" is the endpoint of all
}

// endpoint is an endpoint of a front.
type endpoint struct {
	front   *front
	label   string
	server  *mcpserver.Server
	handler http.Handler
	// streams ends when the streams of notifications must end.
	streams    context.Context //nolint:containedctx // the life of the endpoint
	endStreams context.CancelFunc
	// ambiguous is the error about two tools with one name; guarded by the lock of the gate.
	ambiguous error
	// owners are the servers of the tools, by the names in records.
	owners atomic.Pointer[map[string]owner]
	// listed are the tools of the servers that the endpoint has; guarded by the lock of the gate.
	listed []tool.Tool
}

// endpoint returns an endpoint, which it makes if there is none.
func (f *front) endpoint(label string) (*endpoint, error) {
	if e := f.endpoints[label]; e != nil {
		return e, nil
	}
	g := f.gate
	c := &g.config
	e := &endpoint{front: f, label: label}
	e.streams, e.endStreams = context.WithCancel(context.Background())
	box, err := e.box()
	if err != nil {
		return nil, err
	}
	o := mcpserver.Options{
		Name: g.opts.Name, Version: g.opts.Version, Box: box, Unfenced: !c.Fence, NoClientApprovals: c.NoApprovals,
		Runner: &tool.Runner{
			Policy: &keyPolicy{gate: g, key: f.key}, Journal: g.opts.Journal, Log: g.opts.Log, Now: g.opts.Now,
			Limits:  tool.Limits{Chars: c.MaxResult, Tokens: -1, Items: 10_000},
			Observe: e.observe,
		},
		ToolName: e.toolName, Provider: e, Admit: e.admit, OnRecord: e.record, OnLoss: e.loss,
		Identify: func(*http.Request) mcpserver.Principal {
			return mcpserver.Principal{ID: f.key, Metadata: map[string]string{"key": f.key}}
		},
		Origins: c.Origins, Hosts: c.Hosts, MaxBody: c.MaxBody, Log: g.opts.Log, Now: g.opts.Now,
	}
	if g.opts.Journal != nil {
		o.StateKey = g.opts.StateKey
	}
	if label != "" {
		o.Title = label
	}
	if e.server, err = mcpserver.New(o); err != nil {
		return nil, err
	}
	e.handler = e.server.Handler()
	f.endpoints[label] = e
	return e, nil
}

func (f *front) close() {
	for label, e := range f.endpoints {
		delete(f.endpoints, label)
		e.end()
	}
}

func (f *front) endStreams() {
	for _, e := range f.endpoints {
		e.endStreams()
	}
}

// end ends an endpoint. Calls in progress are not waited for.
func (e *endpoint) end() {
	e.endStreams()
	go func() { _ = e.server.Close() }()
}

// refresh brings the tools of all endpoints up to date, after the config has changed.
func (f *front) refresh() {
	for label, e := range f.endpoints {
		if _, ok := f.gate.config.find(f.key, label); !ok && label != "" {
			delete(f.endpoints, label)
			e.end()
			continue
		}
		e.refresh()
		e.server.ResourcesChanged()
		e.server.PromptsChanged()
	}
}

// followers returns the endpoints whose clients may follow the resources of a server.
func (f *front) followers(server string) (out []*endpoint) {
	if ok, _ := f.gate.config.allowed(f.key, server, ""); !ok {
		return nil
	}
	for label, e := range f.endpoints {
		if label == "" || label == server {
			out = append(out, e)
		}
	}
	return out
}

// changed reacts to an event of a server.
func (f *front) changed(server string, ev mcp.Event) {
	for label, e := range f.endpoints {
		if label != "" && label != server {
			continue
		}
		switch ev.Kind {
		case "prompts":
			e.server.PromptsChanged()
		case "resources":
			e.server.ResourcesChanged()
		default:
			e.refresh()
		}
	}
}

// refresh brings the tools up to date.
func (e *endpoint) refresh() {
	box, err := e.box()
	if err == nil {
		err = e.server.SetBox(box)
	}
	if err != nil {
		e.front.gate.opts.Log.Error("the tools of an MCP endpoint could not be replaced", "key", e.front.key, "server", e.label, "error", err)
	}
}

// servers returns the servers behind the endpoint. The caller holds the lock of the gate.
func (e *endpoint) servers() []*upstream {
	g := e.front.gate
	var out []*upstream
	for _, s := range g.config.visible(e.front.key) {
		if e.label == "" || s.Name == e.label {
			if u := g.upstream(s, e.front.key); u != nil {
				out = append(out, u)
			}
		}
	}
	return out
}

// box returns the tools of the endpoint. The caller holds the lock of the gate.
func (e *endpoint) box() (*tool.Box, error) {
	g := e.front.gate
	var all, listed []tool.Tool
	taken := map[string]string{}
	owners := map[string]owner{}
	e.ambiguous = nil
	for _, u := range e.servers() {
		for _, t := range u.servers.Tools() {
			listed = append(listed, t)
			name := originalName(t.Spec())
			if ok, _ := g.config.allowed(e.front.key, u.config.Name, name); !ok {
				continue
			}
			if g.config.Plain && e.label == "" {
				if first, twice := taken[name]; twice {
					if e.ambiguous == nil {
						e.ambiguous = fmt.Errorf("the MCP servers %q and %q both have a tool named %q: the operator of the gateway must exclude one, or set names: prefixed; /mcp/%s and /mcp/%s have each of them", first, u.config.Name, name, first, u.config.Name)
						g.opts.Log.Error("two tools have one name", "key", e.front.key, "error", e.ambiguous)
					}
					continue
				}
				taken[name] = u.config.Name
			}
			owners[t.Spec().Name] = owner{u.config.Name, name}
			all = append(all, e.adapt(u.config.Name, t))
		}
	}
	e.owners.Store(&owners)
	e.listed = listed
	hooks := tool.Hooks{}
	if e.label == "" {
		hooks = tool.Hooks{Immediate: true, Post: []tool.PostHook{e.renameURIs}}
	}
	return tool.Config{Hooks: hooks}.Box(all...)
}

// originalName returns the name of a tool at its server.
func originalName(s *dragoman.ToolSpec) string {
	if s.Source == nil {
		return s.Name
	}
	return jsonwire.Unquote(fieldsOf(s.Source.JSON)["name"])
}

// fieldsOf returns the fields of an object; nil for any other value.
func fieldsOf(raw json.RawMessage) map[string]json.RawMessage {
	var out map[string]json.RawMessage
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// toolName returns the name of a tool for clients. At the endpoint of one server it is the one that
// the server gave it, because its user interfaces call it so (pitfall K22).
func (e *endpoint) toolName(s *dragoman.ToolSpec) string {
	if e.label != "" || e.front.gate.config.Plain { // a change makes a new endpoint
		return originalName(s)
	}
	return ""
}

// serverOf returns the label of the server of a tool.
func serverOf(tags []string) string {
	for _, t := range tags {
		if label, ok := strings.CutPrefix(t, "mcp:"); ok {
			return label
		}
	}
	return ""
}

// serve answers a request. Streams of notifications end with the endpoint.
func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet || strings.EqualFold(r.Header.Get("Mcp-Method"), "subscriptions/listen") {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		stop := context.AfterFunc(e.streams, cancel)
		defer stop()
		r = r.WithContext(ctx)
	}
	e.handler.ServeHTTP(w, r)
}

// admit waits for servers that are starting before the first list, and admits calls by the limits
// of the key.
func (e *endpoint) admit(ctx context.Context, _ mcpserver.Caller, method string) (func(), error) {
	g := e.front.gate
	g.mu.Lock()
	ups, ambiguous := e.servers(), e.ambiguous
	g.mu.Unlock()
	wait, cancel := context.WithTimeout(ctx, g.opts.StartWait)
	defer cancel()
	for _, u := range ups {
		u.wait(wait)
	}
	if e.label != "" && len(ups) == 1 { // with one server there is nothing else to serve (pitfall K20)
		if err := ups[0].unavailable(); err != nil {
			g.opts.Log.WarnContext(ctx, "an MCP server is not available", "server", e.label, "key", e.front.key, "error", errors.Unwrap(err))
			return nil, err
		}
	}
	if method == "tools/list" {
		e.revalidate(ctx, ups)
	}
	switch method {
	case "tools/list", "tools/call":
		if ambiguous != nil {
			return nil, ambiguous
		}
	}
	switch method {
	case "tools/call", "resources/read", "prompts/get", "completion/complete":
		if g.opts.Enter != nil {
			return g.opts.Enter(ctx, e.front.key)
		}
	}
	return func() {}, nil
}

// revalidateTime limits how long a list waits for servers whose list is no longer valid.
const revalidateTime = 2 * time.Second

// revalidate reads the lists of servers again that are no longer valid, such as those of servers
// that do not announce changes (pitfall K34).
func (e *endpoint) revalidate(ctx context.Context, ups []*upstream) {
	ctx, cancel := context.WithTimeout(ctx, revalidateTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, u := range ups {
		wg.Go(func() { _, _ = u.servers.Source(ctx) }) // the list of before stays
	}
	wg.Wait()
	e.front.gate.mu.Lock()
	defer e.front.gate.mu.Unlock()
	var now []tool.Tool
	for _, u := range e.servers() {
		now = append(now, u.servers.Tools()...)
	}
	if !slices.Equal(now, e.listed) {
		e.refresh()
	}
}

// observe passes decisions of policies on.
func (e *endpoint) observe(ev tool.Event) {
	if d, ok := ev.(tool.PolicyDecided); ok && e.front.gate.opts.OnDecision != nil {
		e.front.gate.opts.OnDecision(d)
	}
}

// loss notes a loss of a call.
func (e *endpoint) loss(_ mcpserver.Caller, spec *dragoman.ToolSpec, run string, l dragoman.Loss) {
	g := e.front.gate
	server := e.label
	if o, ok := e.owner(spec.Name); ok {
		server = o.server
	}
	g.lost(server, l)
	if run == "" {
		return
	}
	g.lossMu.Lock()
	defer g.lossMu.Unlock()
	if list := g.byRun[run]; len(g.byRun) < 10_000 && len(list) < 20 && !slices.Contains(list, l) {
		g.byRun[run] = append(list, l)
	}
}

// record reports a finished call.
func (e *endpoint) record(c mcpserver.Caller, r tool.Record) {
	g := e.front.gate
	call := Call{Key: e.front.key, Server: e.label, Tool: r.Tool, Client: c.Client, Revision: c.Revision, Method: "tools/call", Outcome: "ok", Took: r.Latency, Err: r.Error, Verdict: string(r.Verdict)}
	if !r.OK {
		call.Outcome = "error"
		if r.ErrorKind != "" {
			call.Outcome = string(r.ErrorKind)
		}
	}
	if d := r.Decision; d != nil {
		call.Policy = string(d.Effect) + " by " + d.Rule
		if d.Rule == "" {
			call.Policy = string(d.Effect) + " by default"
		}
	}
	if o, ok := e.owner(r.Key.Name); ok {
		call.Server, call.Tool = o.server, o.tool
	}
	g.lossMu.Lock()
	call.Losses = g.byRun[r.Run]
	delete(g.byRun, r.Run)
	g.lossMu.Unlock()
	if g.opts.OnCall != nil {
		g.opts.OnCall(call)
	}
}
