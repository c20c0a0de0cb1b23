package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/catalog"
	"github.com/dragoman-go/dragoman/mcp/internal/peer"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
	"github.com/dragoman-go/dragoman/tool"
)

// Options configure [Connect]. The zero value is safe.
type Options struct {
	// Lock has the accepted definitions: models see and call only these. Nil accepts what the
	// servers list at first, except for tools whose texts look like an attack; a definition
	// that changes later needs a new approval.
	Lock *Lock
	// Wait limits how long Connect waits; zero waits for every server, at most for its
	// ConnectTimeout. Servers that need longer join later: see [Servers.Source].
	Wait time.Duration
	// Roots are the folders that servers may work in, for those that ask; nil offers none.
	Roots []string
	// Sampling is the model that servers may use, each time with the approval of a human; nil
	// offers none.
	Sampling dragoman.Model
	// NoElicitation does not offer servers to ask a human during a call.
	NoElicitation bool
	// Approver answers questions of servers outside of tool calls, such as when a prompt is
	// read. Nil declines them. Questions during a call go to the approver of the run.
	Approver tool.Approver
	// PreferStructured sends the structured value of a result to the model instead of its
	// text, if it has both.
	PreferStructured bool
	// StrictOutput makes structured results that violate the schema of their tool errors.
	StrictOutput bool
	// LogLevel asks servers for their log messages from this level on, such as "warning";
	// empty asks for none.
	LogLevel string
	// Authorize returns what gets access tokens for a server that speaks HTTP, such as an
	// Authorizer of package mcp/oauth; nil means no authorization beyond the headers of the
	// server. It may return nil.
	Authorize func(s Server) (Authorizer, error)
	// Transport sends the requests to servers that speak HTTP; nil means the default.
	Transport http.RoundTripper
	// Trace receives every message that is exchanged with servers, for a person who looks for
	// a problem. It is called concurrently. Values may be secrets.
	Trace func(Exchange)
	// Forward is for programs that serve the tools to MCP clients again, such as a gateway with
	// package mcpserver. Results keep their raw JSON in the envelope of the output, with the
	// format "mcp", and reports on progress their numbers. Questions of servers go to the
	// approver in the form of the protocol ([tool.InputRequest.Request]), also those for a
	// model and for folders. Tools that only the user interface of a server calls are included.
	// The tools have the tag "forwarded".
	Forward bool
	// Offers returns which questions can be answered during a call, with Forward: those that
	// the client of the call supports. A call whose server asks another one fails. Nil means
	// all of them.
	Offers func(ctx context.Context) Offers
	// Name and Version identify this program to servers; empty means "dragoman".
	Name, Version string
	// Observe receives events of the servers, one at a time. Events are dropped if more than
	// 1,000 wait for it.
	Observe func(Event)
	// Log gets warnings, such as about questions that could not be answered; nil means
	// [slog.Default].
	Log *slog.Logger

	// dialer replaces the transport, in tests.
	dialer func(Server) (rpc.Dialer, error)
	// backoff is the first pause before a failed server is tried again, and debounce the
	// pause before a changed list is read; zero means the defaults.
	backoff, debounce, probe time.Duration
}

// Offers are the questions that a client can answer: forms, pages to open, requests for a model,
// and requests for folders.
type Offers struct{ Form, URL, Sampling, Roots bool }

// Event is something that a server did on its own account.
type Event struct {
	Server string
	// Kind is "connected", "ready" (its tools are known), "lost", "failed", "tools", "prompts"
	// or "resources" (the list changed), "resource" (a subscribed resource changed), or "log".
	Kind string
	// URI is the resource, and Text the message of a log.
	URI, Text string
	// Level is the level of a log.
	Level string
	Err   error

	// done is called when the event has left the queue.
	done func()
}

// Servers are the connected servers. It is safe for concurrent use.
type Servers struct {
	opts Options
	list []*server

	mu      sync.Mutex
	parked  map[string]parkedRound
	closed  bool
	ctx     context.Context
	stop    context.CancelFunc
	waiting sync.WaitGroup
	events  chan Event
	// working are the tickets whose tasks this process waits for.
	working map[string]bool
	// owners maps the public names of tools to the server that had it first.
	owners map[string]*server
}

// The states of a server.
const (
	StateConnecting = "connecting"
	StateReady      = "ready"
	StateLost       = "lost"
	StateFailed     = "failed"
	StateDisabled   = "disabled"
)

// Status describes a server.
type Status struct {
	Server string
	// State is "connecting", "ready", "lost" (it is being connected again), "failed" or
	// "disabled". Err says why.
	State string
	Err   error
	// Revision is the revision that it speaks. Name, Version and Instructions are what it
	// says about itself: untrusted text, for display.
	Revision, Name, Version, Instructions string
	// Capabilities is the object with which the server says what it supports.
	Capabilities json.RawMessage
	// Tools are the public names of its usable tools. Held are tools that are not listed, or
	// whose definition changed, until they are accepted.
	Tools []string
	Held  []ToolStatus
	// Notes describe tools that were dropped, repaired or shortened, and other problems.
	Notes []string
}

// Connect connects to servers, all at the same time, and lists their tools. A server that fails
// is reported by [Servers.Status] and tried again in the background; the others work. The
// error is about the configuration, or about two servers with the same tool name. ctx limits
// only Connect.
func Connect(ctx context.Context, o Options, servers ...Server) (*Servers, error) {
	s := &Servers{opts: o, parked: map[string]parkedRound{}, working: map[string]bool{}, owners: map[string]*server{}}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if o.Observe != nil {
		s.events = make(chan Event, maxEvents)
		go s.report()
	}
	var errs []error
	labels := map[string]bool{}
	for i, cfg := range servers {
		label := cfg.Label()
		switch {
		case label == "":
			errs = append(errs, fmt.Errorf("mcp: server %d has neither a name nor a command or URL to derive one from", i))
			continue
		case labels[label]:
			errs = append(errs, fmt.Errorf("mcp: two servers have the name %q: set Name", label))
		}
		labels[label] = true
		one, err := s.newServer(cfg.clone(), label)
		errs = append(errs, err)
		s.list = append(s.list, one)
	}
	if err := errors.Join(errs...); err != nil {
		s.stop()
		return nil, err
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for _, one := range s.list {
		if one.cfg.Disabled {
			continue
		}
		wg.Add(1)
		s.waiting.Add(1)
		go func() {
			defer s.waiting.Done()
			one.supervise(wg.Done)
		}()
	}
	go func() { wg.Wait(); close(done) }()
	var late <-chan time.Time
	if o.Wait > 0 {
		t := time.NewTimer(o.Wait)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-done:
	case <-late:
	case <-ctx.Done():
		_ = s.Close()
		return nil, fmt.Errorf("mcp: connecting: %w", context.Cause(ctx))
	}
	if err := s.collisions(); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// collisions returns the error about tool names that two servers have.
func (s *Servers) collisions() error {
	var results []*catalog.Result
	for _, one := range s.list {
		one.mu.Lock()
		res := &catalog.Result{Label: one.label}
		for i := range one.imported.Tools { // a tool that is held must not stop the others
			t := &one.imported.Tools[i]
			if !slices.ContainsFunc(one.held, func(st ToolStatus) bool { return st.Tool == t.Name }) {
				res.Tools = append(res.Tools, *t)
			}
		}
		results = append(results, res)
		one.mu.Unlock()
	}
	var errs []error
	for i, c := range catalog.Collisions(results...) {
		if i == 10 {
			errs = append(errs, errors.New("mcp: … and more"))
			break
		}
		errs = append(errs, fmt.Errorf("mcp: %w: set Prefix for one of the servers, or exclude one of the tools", c))
	}
	return errors.Join(errs...)
}

// Close ends all connections and the programs that were started. Calls in progress fail.
func (s *Servers) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.stop()
	errs := make([]error, len(s.list))
	var wg sync.WaitGroup
	for i, one := range s.list {
		if one.peer != nil {
			wg.Go(func() { errs[i] = one.peer.Close() })
		}
	}
	wg.Wait()
	s.waiting.Wait()
	return errors.Join(errs...)
}

// Status describes the servers, in the order of the configuration.
func (s *Servers) Status() []Status {
	out := make([]Status, len(s.list))
	for i, one := range s.list {
		out[i] = one.status()
	}
	return out
}

// Tools returns the tools of all servers that are ready now, in the order of the configuration.
// For tools that follow the servers, set [Servers.Source] as the ToolSource of an agent instead.
func (s *Servers) Tools() []tool.Tool {
	var out []tool.Tool
	for _, one := range s.list {
		out = append(out, one.tools()...)
	}
	return out
}

// sourceTime limits how long Source waits for a list that changed.
const sourceTime = 5 * time.Second

// Source returns the tools of the servers that are ready, after reading lists again that
// changed. It has the type of ToolSource of package agent:
//
//	a := agent.Agent{Model: model, ToolSource: servers.Source}
//
// Servers that became ready since the last turn have joined, and tools of servers that failed
// are gone. It does not fail: the status of the servers says what is missing.
func (s *Servers) Source(ctx context.Context) ([]tool.Tool, error) {
	ctx, cancel := context.WithTimeout(ctx, sourceTime)
	defer cancel()
	var wg sync.WaitGroup
	for _, one := range s.list {
		wg.Go(func() { one.refresh(ctx) })
	}
	wg.Wait()
	return s.Tools(), nil
}

// Accept accepts the current definitions of tools of a server, or of all its tools without
// names. With a Lock, save that afterwards to keep the decision.
func (s *Servers) Accept(server string, tools ...string) error {
	one, err := s.find(server)
	if err != nil {
		return err
	}
	if l := s.opts.Lock; l != nil {
		if len(tools) > 0 {
			err = l.Accept(server, tools...)
		} else {
			_, err = l.AcceptAll(server)
		}
		if err != nil {
			return err
		}
	}
	return one.accept(tools)
}

// find returns the server with a label.
func (s *Servers) find(label string) (*server, error) {
	var labels []string
	for _, one := range s.list {
		if one.label == label {
			if one.cfg.Disabled {
				return nil, fmt.Errorf("mcp: server %q is disabled", label)
			}
			return one, nil
		}
		labels = append(labels, one.label)
	}
	return nil, fmt.Errorf("mcp: unknown server %q%s", label, textkit.Suggest(label, labels))
}

// maxEvents limits the events that wait for the observer, and maxOwnEvents those among them that
// one server can cause at will: it cannot displace those of others.
const (
	maxEvents    = 1000
	maxOwnEvents = 100
)

// observe passes on an event that the server can cause at will.
func (s *server) observe(e Event) {
	if s.all.events == nil {
		return
	}
	if s.events.Add(1) > maxOwnEvents || len(s.all.events) > maxEvents/2 {
		s.events.Add(-1)
		return
	}
	e.done = func() { s.events.Add(-1) }
	if !s.all.observe(e) {
		e.done()
	}
}

// observe passes an event to the observer, which may be slow: connections do not wait for it.
func (s *Servers) observe(e Event) bool {
	select {
	case s.events <- e: // nil without an observer
		return true
	default:
		return false
	}
}

// report calls the observer until Close.
func (s *Servers) report() {
	for {
		select {
		case e := <-s.events:
			if e.done != nil {
				e.done()
				e.done = nil
			}
			s.opts.Observe(e)
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *Servers) log() *slog.Logger { return cmp.Or(s.opts.Log, slog.Default()) }

// server is one configured server.
type server struct {
	all      *Servers
	cfg      Server
	label    string
	identity string
	peer     *peer.Peer
	// events counts the events in the queue that the server caused at will.
	events atomic.Int32
	// lost wakes the supervisor after a connection has ended.
	lost chan struct{}

	mu    sync.Mutex
	state string
	err   error
	// told says that the observer knows that the server is ready.
	told bool
	// raw is the list that imported was made of.
	raw      []json.RawMessage
	dropped  []peer.Dropped
	cut      string
	imported catalog.Result
	// current are the imported tools by their names at the server, accepted the definitions
	// that may be used without a lock, and held what waits for a decision.
	current  map[string]*catalog.Tool
	accepted map[string]json.RawMessage
	held     []ToolStatus
	// asked are the times of recent questions outside of calls.
	asked []time.Time
	// usable are the tools for models, in order.
	usable []*remoteTool
	notes  []string
}

// newServer checks the configuration of a server. It does not connect.
func (s *Servers) newServer(cfg Server, label string) (*server, error) {
	one := &server{all: s, cfg: cfg, label: label, identity: cfg.identity(), state: StateConnecting, lost: make(chan struct{}, 1), accepted: map[string]json.RawMessage{}}
	if cfg.Disabled {
		one.state = StateDisabled
		return one, nil
	}
	for pattern, v := range cfg.Approval {
		if v != "always" && v != "never" {
			return one, fmt.Errorf("mcp: server %q: the approval of %q is %q: use always or never", label, pattern, v)
		}
	}
	dial := s.opts.dialerOf
	if s.opts.dialer != nil {
		dial = s.opts.dialer
	}
	dialer, err := dial(cfg)
	if err != nil {
		return one, fmt.Errorf("mcp: server %q: %w", label, err)
	}
	if s.opts.Trace != nil {
		dialer = &traceDialer{Dialer: dialer, server: label, trace: s.opts.Trace}
	}
	info, err := json.Marshal(map[string]string{"name": cmp.Or(s.opts.Name, "dragoman"), "version": cmp.Or(s.opts.Version, "0")})
	if err != nil {
		return one, err
	}
	roots, err := rootsOf(s.opts.Roots)
	if err != nil {
		return one, fmt.Errorf("mcp: %w", err)
	}
	one.peer = peer.New(peer.Config{
		Label: label, Dialer: dialer, HTTP: cfg.URL != "", Revision: cfg.Revision, ClientInfo: info,
		Elicitation: !s.opts.NoElicitation, Sampling: s.opts.Sampling != nil || s.opts.asks(), Tasks: true, Roots: roots, LogLevel: s.opts.LogLevel,
		AskRoots:    s.opts.asks() && roots == nil,
		Input:       one.answerOutside,
		ListChanged: one.listChanged,
		Updated: func(uri string) {
			if len(uri) <= maxPrompt {
				one.observe(Event{Server: label, Kind: "resource", URI: uri})
			}
		},
		Log: func(level string, params json.RawMessage) {
			one.observe(Event{Server: label, Kind: "log", Level: cutText(level), Text: cutText(string(params))})
		},
		Lost:           one.connectionLost,
		Connected:      one.connected,
		ConnectTimeout: cfg.ConnectTimeout, CallTimeout: cfg.CallTimeout, MaxCallTime: cfg.MaxCallTime, Parallel: cfg.Parallel,
		Backoff: s.opts.backoff, Debounce: s.opts.debounce, ProbeTimeout: s.opts.probe,
	})
	return one, nil
}

// rootsOf returns folders as roots.
func rootsOf(folders []string) ([]peer.Root, error) {
	if folders == nil {
		return nil, nil
	}
	out := []peer.Root{}
	for _, f := range folders {
		abs, err := filepath.Abs(f)
		if err != nil {
			return nil, err
		}
		out = append(out, peer.Root{URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String(), Name: filepath.Base(abs)})
	}
	return out, nil
}

// The pauses between attempts to connect.
const (
	firstBackoff   = time.Second
	longestBackoff = time.Minute
)

// supervise connects the server, and connects it again after it was lost. first is called after
// the first attempt.
func (s *server) supervise(first func()) {
	failures := 0
	for {
		err := s.open()
		if first != nil {
			first()
			first = nil
		}
		switch {
		case s.all.ctx.Err() != nil:
			return
		case err == nil:
			failures = 0
			select {
			case <-s.lost:
				continue
			case <-s.all.ctx.Done():
				return
			}
		}
		failures++
		s.all.observe(Event{Server: s.label, Kind: "failed", Err: err})
		if permanent(err) {
			select {
			case <-s.lost: // it was connected by other means
				continue
			case <-s.all.ctx.Done():
				return
			}
		}
		pause := min(longestBackoff, s.all.backoff()<<min(failures-1, 6))
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-s.all.ctx.Done():
			t.Stop()
			return
		}
	}
}

// permanent reports whether trying again cannot help.
func permanent(err error) bool {
	var e *rpc.HTTPError
	return errors.As(err, &e) && (e.Status == 401 || e.Status == 403)
}

// open connects and lists the tools, within the limit of the server.
func (s *server) open() error {
	ctx, cancel := context.WithTimeoutCause(s.all.ctx, cmp.Or(s.cfg.ConnectTimeout, 30*time.Second), fmt.Errorf("MCP server %q was not ready within %v", s.label, cmp.Or(s.cfg.ConnectTimeout, 30*time.Second)))
	defer cancel()
	err := s.peer.Open(ctx)
	if err == nil {
		err = s.read(ctx)
	}
	if err != nil {
		s.setState(StateFailed, err)
		return err
	}
	s.setState(StateReady, nil)
	s.mu.Lock()
	told := s.told
	s.told = true
	s.mu.Unlock()
	if !told {
		s.all.observe(Event{Server: s.label, Kind: "ready"})
	}
	return nil
}

// setState changes the state, and with it which tools are listed (quirk H6).
func (s *server) setState(state string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.err = state, err
	if state != StateReady {
		s.told = false
	}
}

// connectionLost notes the end of a connection. Calls connect again by themselves; so does the
// supervisor.
func (s *server) connectionLost(err error) {
	s.setState(StateLost, err)
	s.all.observe(Event{Server: s.label, Kind: "lost", Err: err})
	s.wake()
}

// wake wakes the supervisor.
func (s *server) wake() {
	select {
	case s.lost <- struct{}{}:
	default:
	}
}

// connected takes the tools of a new connection, before any call continues on it.
func (s *server) connected(_ context.Context, info peer.Info) error {
	if _, ok := s.peer.Stored(peer.Tools); ok {
		s.take()
	}
	s.mu.Lock()
	failed := s.state == StateFailed
	if failed || s.state == StateLost {
		s.state, s.err = StateReady, nil
	}
	s.mu.Unlock()
	if failed {
		s.wake()
	}
	s.all.observe(Event{Server: s.label, Kind: "connected", Text: info.Revision})
	return nil
}

// refresh reads the tools again if their list changed.
func (s *server) refresh(ctx context.Context) {
	s.mu.Lock()
	ready := s.state == StateReady
	s.mu.Unlock()
	if ready && s.peer.Changed(peer.Tools) {
		_ = s.read(ctx)
	}
}

// read lists the tools and imports them.
func (s *server) read(ctx context.Context) error {
	if _, err := s.peer.List(ctx, peer.Tools); err != nil && !errors.Is(err, peer.ErrUnsupported) {
		return err
	}
	s.take()
	return nil
}

// listChanged handles a changed list.
func (s *server) listChanged(list peer.List) {
	kind := map[peer.List]string{peer.Tools: "tools", peer.Prompts: "prompts"}[list]
	if list == peer.Tools {
		ctx, cancel := context.WithTimeout(s.all.ctx, sourceTime)
		defer cancel()
		_ = s.read(ctx)
	}
	s.observe(Event{Server: s.label, Kind: cmp.Or(kind, "resources")})
}

// status describes the server.
func (s *server) status() Status {
	out := Status{Server: s.label}
	if s.peer != nil {
		if info, ok := s.peer.Info(); ok {
			out.Revision, out.Instructions, out.Capabilities = info.Revision, info.Instructions, info.Capabilities
			var named struct{ Name, Version string }
			if json.Unmarshal(info.Server, &named) == nil {
				out.Name, out.Version = named.Name, named.Version
			}
			if info.Stalled {
				out.Notes = append(out.Notes, "it answered server/discover, but not tools/list, so an older revision is used")
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	out.State, out.Err = s.state, s.err
	for _, t := range s.usable {
		out.Tools = append(out.Tools, t.public())
	}
	out.Held, out.Notes = slices.Clone(s.held), append(out.Notes, s.notes...)
	return out
}

// backoff returns the first pause before something that failed is tried again.
func (s *Servers) backoff() time.Duration { return cmp.Or(s.opts.backoff, firstBackoff) }
