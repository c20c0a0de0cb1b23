package mcpserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// Options configure a [Server]. The zero value serves nothing, with safe limits.
type Options struct {
	// Name and Version identify the server. Title is the name for people, and Instructions
	// explain to the client's model how to use the tools.
	Name, Version, Title, Instructions string

	// Tools are the tools to serve. Box, if set, is used instead: a toolbox with hooks and
	// limits of its own. Tools in a namespace get the name "namespace__tool"; deferred tools
	// are listed like the others; a tool that takes text takes {"input": "…"}.
	Tools []tool.Tool
	Box   *tool.Box
	// Runner configures how calls run: policy, pins, approver, journal, tickets, limits,
	// redaction and observer. Nil means the defaults: every valid call is allowed, and calls
	// that need approval ask the user of the client. The server copies it.
	Runner *tool.Runner
	// Show reports whether a caller sees a tool and may call it; nil shows all tools. It is
	// called for every request.
	Show func(ctx context.Context, caller Caller, spec *dragoman.ToolSpec) bool
	// ToolName returns the name of a tool for clients; nil, or an empty result, means the name
	// of its spec.
	ToolName func(spec *dragoman.ToolSpec) string
	// OnLoss receives what the client of a call does not get, because its revision has no form
	// for it. run is the id of the run in the record. It is called before OnRecord.
	OnLoss func(caller Caller, spec *dragoman.ToolSpec, run string, loss dragoman.Loss)
	// Admit is called before a request for a list, tool, resource, prompt or completion is
	// answered. An error refuses the request with its text; otherwise done is called when the
	// request ends. Nil admits all.
	Admit func(ctx context.Context, caller Caller, method string) (done func(), err error)
	// OnRecord receives the record of each call with its caller, for an audit log. It is
	// called before the response is sent and must return quickly.
	OnRecord func(caller Caller, record tool.Record)
	// Unfenced sends the output of untrusted tools without the fence around it. The fence
	// marks for a model where the output begins and ends, and that it is data. Leave it out only
	// for clients that are programs, or that mark tool output themselves.
	Unfenced bool

	// NoClientApprovals leaves all approvals to the Approver of the Runner. The client gets
	// an error for a call that stays undecided.
	NoClientApprovals bool
	// EditArguments lets the user who approves a call change its arguments. The changed
	// arguments are validated and judged by the policy again.
	EditArguments bool
	// ApprovalTTL is the time in which a question of the server must be answered; zero
	// means 10 minutes.
	ApprovalTTL time.Duration
	// StateKey seals the states that clients hold while a question is open, and the ids of
	// tasks. Processes with the same key accept each other's states, so they must share the
	// Journal in Runner, which makes each state work once. Nil means a random key, so that a restart
	// voids open questions. It must be secret and have at least 32 bytes.
	StateKey []byte
	// WaitForTasks limits how long a call waits for its background work if the client does
	// not support tasks; zero means 10 minutes.
	WaitForTasks time.Duration

	// Provider serves resources, prompts, completions and subscriptions that are known only
	// when a client asks. The fields below, up to Subscriptions, must then be empty.
	Provider  Provider
	Resources []Resource
	Templates []ResourceTemplate
	Prompts   []Prompt
	// Complete suggests values for an argument of a prompt or a template; nil suggests none.
	Complete func(ctx context.Context, q Completion) ([]string, error)
	// Subscriptions lets clients subscribe to changes of resources, which
	// [Server.ResourceUpdated] announces.
	Subscriptions bool
	// Skills are folders of instructions, for the extension io.modelcontextprotocol/skills.
	Skills Skills
	// Logging declares that tools send log messages with [Log]. The protocol deprecates it.
	Logging bool

	// Auth requires authorization over HTTP; nil requires none.
	Auth *Auth
	// Identify returns the principal of a request over HTTP that the host has authorized
	// itself; nil means no principal. It is not used with Auth.
	Identify func(r *http.Request) Principal
	// Origins lists the origins of web pages that may connect, such as
	// "https://app.example.com". Pages of other origins are refused.
	Origins []string
	// Hosts lists the names, with or without port, under which clients reach the server; "*"
	// accepts every name, for a host that checks it or whose clients need a key.
	// With an empty list every Host is accepted, except that a server on a loopback address
	// accepts only loopback names.
	Hosts []string
	// MaxBody limits the body of a request; zero means 4 MiB.
	MaxBody int64
	// MaxRequests limits the requests that are processed at the same time, MaxStreams the
	// open streams of notifications, and MaxSessions the sessions of clients of older
	// revisions. Zero means 256, 1,000 and 1,000. Clients beyond a limit get status 503. With
	// Auth one principal gets at most half of each, and of MaxTasks.
	MaxRequests, MaxStreams, MaxSessions int
	// SessionTimeout ends sessions without requests; zero means 30 minutes.
	SessionTimeout time.Duration
	// MaxTasks limits the background work that [Background] starts; zero means 100.
	MaxTasks int
	// PageSize is the number of elements of a page of a list; zero means 1,000.
	PageSize int

	// Log receives what clients must not see; nil means [slog.Default].
	Log *slog.Logger
	// Now is the clock; nil means the system's.
	Now func() time.Time
}

// Server serves tools to MCP clients. It is safe for concurrent use.
type Server struct {
	o      Options
	runner *tool.Runner
	seal   *sealer
	log    *slog.Logger
	sdk    *mcp.Server

	mu     sync.Mutex // serializes changes of the catalog and the features
	tools  atomic.Pointer[catalog]
	static atomic.Pointer[features]
	// hasResources and hasPrompts report that the server declares them.
	hasResources, hasPrompts bool

	// calls holds the running calls by the id of their run, and tasks the background work of
	// this process by ticket.
	calls sync.Map
	tasks liveTasks
	spent spentStates
	// followed holds the subscriptions of sessions to resources of the provider.
	followed subscriptions

	requests, streams, sessions slots
	http                        httpSide
}

// New returns a server. The error names every problem with the tools.
func New(o Options) (*Server, error) {
	if o.Name == "" {
		return nil, errors.New("mcpserver: Options.Name is empty: clients show it to their users")
	}
	s := &Server{o: o, log: cmp.Or(o.Log, slog.Default())}
	s.o.ApprovalTTL = cmp.Or(o.ApprovalTTL, 10*time.Minute)
	s.o.WaitForTasks = cmp.Or(o.WaitForTasks, 10*time.Minute)
	s.o.PageSize = cmp.Or(max(o.PageSize, 0), 1000)
	s.o.MaxBody = cmp.Or(max(o.MaxBody, 0), 4<<20)
	for _, l := range []struct {
		of         *slots
		set, usual int
	}{{&s.requests, o.MaxRequests, 256}, {&s.streams, o.MaxStreams, 1000}, {&s.sessions, o.MaxSessions, 1000}, {&s.tasks.slots, o.MaxTasks, 100}} {
		l.of.limit = cmp.Or(max(l.set, 0), l.usual)
		if l.of.share = l.of.limit; o.Auth != nil || o.Identify != nil {
			l.of.share = max(1, (l.of.limit+1)/2)
		}
	}

	if o.Runner != nil {
		r := *o.Runner
		s.runner = &r
	} else {
		s.runner = &tool.Runner{}
	}
	if err := s.setUpRunner(o.Runner); err != nil {
		return nil, err
	}
	if o.Auth != nil {
		if err := o.Auth.check(); err != nil {
			return nil, err
		}
	}
	if o.Provider != nil && (len(o.Resources)+len(o.Templates)+len(o.Prompts) > 0 || o.Complete != nil || o.Subscriptions) {
		return nil, errors.New("mcpserver: with Options.Provider, set neither resources, templates, prompts, Complete nor Subscriptions")
	}
	s.static.Store(&features{resources: o.Resources, templates: o.Templates, prompts: o.Prompts})
	if err := s.static.Load().check(); err != nil {
		return nil, err
	}
	box := o.Box
	if box == nil {
		var err error
		if box, err = tool.NewBox(o.Tools...); err != nil {
			return nil, fmt.Errorf("mcpserver: %w", err)
		}
	} else if len(o.Tools) > 0 {
		return nil, errors.New("mcpserver: set either Options.Tools or Options.Box, not both")
	}
	s.setUpSDK()
	if err := s.setBox(box); err != nil {
		return nil, err
	}
	s.setUpHTTP()
	return s, nil
}

func (s *Server) setUpRunner(given *tool.Runner) error {
	var hasJournal bool
	if given != nil {
		hasJournal = given.Journal != nil
	}
	key := s.o.StateKey
	switch {
	case key == nil:
		key = make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return fmt.Errorf("mcpserver: generating a key: %w", err)
		}
	case len(key) < 32:
		return fmt.Errorf("mcpserver: Options.StateKey has %d bytes: at least 32 are needed", len(key))
	case !hasJournal:
		return errors.New("mcpserver: Options.StateKey needs a Journal in Options.Runner: without one, a state could be used again after a restart")
	}
	seal, err := newSealer(key, s.now)
	if err != nil {
		return err
	}
	s.seal = seal
	s.spent.journal, s.spent.now = s.runner.Journal, s.now
	if s.runner.Log == nil {
		s.runner.Log = s.log
	}
	s.runner.Approver = &approver{s: s, next: s.runner.Approver}
	store, clock := tool.TicketStore(nil), s.o.Now
	if t := s.runner.Tickets; t != nil {
		store = t.Store
		if t.Now != nil {
			clock = t.Now
		}
	}
	if store == nil {
		store = &memoryTickets{now: s.now}
	}
	s.runner.Tickets = &tool.Tickets{Store: &watchedTickets{TicketStore: store, s: s}, Now: clock}
	observe := s.runner.Observe
	s.runner.Observe = func(e tool.Event) {
		if observe != nil {
			observe(e)
		}
		if p, ok := e.(tool.Progress); ok {
			if c, ok := s.calls.Load(p.Run); ok {
				c.(*call).report(p.Parts)
			}
		}
	}
	return nil
}

// setUpSDK makes the server of the SDK, which speaks the protocol: opening, sessions, streams
// and subscriptions. Everything about tools, resources and prompts is answered by receive.
func (s *Server) setUpSDK() {
	caps := &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{ListChanged: true}}
	caps.AddExtension(tasksExtension, nil)
	if s.o.Skills != nil {
		caps.AddExtension(skillsExtension, map[string]any{"directoryRead": true})
	}
	f := s.static.Load()
	follows := s.o.Subscriptions || s.o.Provider != nil
	if len(f.resources)+len(f.templates) > 0 || s.o.Skills != nil || follows {
		s.hasResources = true
		caps.Resources = &mcp.ResourceCapabilities{ListChanged: true, Subscribe: follows}
	}
	if len(f.prompts) > 0 || s.o.Provider != nil {
		s.hasPrompts = true
		caps.Prompts = &mcp.PromptCapabilities{ListChanged: true}
	}
	if s.o.Complete != nil || s.o.Provider != nil {
		caps.Completions = &mcp.CompletionCapabilities{}
	}
	if s.o.Logging {
		caps.Logging = &mcp.LoggingCapabilities{} //nolint:staticcheck // clients of older revisions use it
	}
	so := &mcp.ServerOptions{
		Instructions: s.o.Instructions,
		Capabilities: caps,
		Logger:       slog.New(quiet{s.log.Handler()}),
		SetCacheable: func(_ context.Context, _ mcp.Request, c *mcp.Cacheable) { c.CacheScope = "private" },
	}
	if follows {
		so.SubscribeHandler = func(ctx context.Context, r *mcp.SubscribeRequest) error {
			if set, _ := ctx.Value(followedKey{}).(map[string]bool); set[r.Params.URI] {
				return nil
			}
			return s.subscribe(ctx, r.Session, r.Params.URI)
		}
		so.UnsubscribeHandler = func(ctx context.Context, r *mcp.UnsubscribeRequest) error {
			if s.o.Provider != nil {
				s.unsubscribe(ctx, r.Session, r.Params.URI)
			}
			return nil
		}
	}
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: s.o.Name, Title: s.o.Title, Version: cmp.Or(s.o.Version, "0")}, so)
	for _, method := range []string{methodTaskGet, methodTaskUpdate, methodTaskCancel, methodSkillsList, methodSkillsGet, methodDirectory} {
		// The handler is never reached: receive answers these methods.
		err := mcp.AddReceivingCustomMethod(s.sdk, method, func(context.Context, *mcp.ServerSession, *extParams) (*rawResult, error) {
			return nil, notFound(method)
		})
		if err != nil {
			s.log.Error("mcpserver: a method cannot be served", "method", method, "error", err)
		}
	}
	s.sdk.AddReceivingMiddleware(s.receive)
}

// quiet lowers what the SDK logs to details: it reports mistakes of clients as errors.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, _ slog.Level) bool {
	return q.Handler.Enabled(ctx, slog.LevelDebug)
}

func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return q.Handler.Handle(ctx, r)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }
func (q quiet) WithGroup(n string) slog.Handler      { return quiet{q.Handler.WithGroup(n)} }

func (s *Server) now() time.Time {
	if s.o.Now != nil {
		return s.o.Now()
	}
	return time.Now()
}

// SetTools replaces the tools and notifies the clients. Calls in progress
// continue with the earlier tools. If the tools have a problem, nothing changes.
func (s *Server) SetTools(tools ...tool.Tool) error {
	box, err := tool.NewBox(tools...)
	if err != nil {
		return fmt.Errorf("mcpserver: %w", err)
	}
	return s.SetBox(box)
}

// SetBox is [Server.SetTools] for a toolbox.
func (s *Server) SetBox(box *tool.Box) error { return s.setBox(box) }

func (s *Server) setBox(box *tool.Box) error {
	next, err := newCatalog(box, &s.o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.tools.Load()
	// The SDK needs the definitions to check the headers Mcp-Param-*, and it announces changes.
	probe := mcp.NewServer(&mcp.Implementation{Name: "probe"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	var wrong []error
	for _, d := range next.list {
		err := addTool(probe, d)
		if err != nil && d.remote { // one bad tool of another server takes nothing else down
			d.input = json.RawMessage(`{"type":"object"}`)
			err = addTool(probe, d)
		}
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	if len(wrong) > 0 {
		return errors.Join(wrong...)
	}
	s.tools.Store(next)
	var gone []string
	if old != nil {
		for _, d := range old.list {
			if next.byName[d.name] == nil {
				gone = append(gone, d.name)
			}
		}
	}
	if len(gone) > 0 {
		s.sdk.RemoveTools(gone...)
	}
	for _, d := range next.list {
		if old != nil {
			if before := old.byName[d.name]; before != nil && string(before.modern) == string(d.modern) {
				continue
			}
		}
		if err := addTool(s.sdk, d); err != nil {
			return err
		}
	}
	return nil
}

// addTool adds a definition to a server of the SDK, which panics if it cannot serve it.
func addTool(to *mcp.Server, d *definition) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("mcpserver: the tool %q cannot be served: %v", d.name, p)
		}
	}()
	to.AddTool(&mcp.Tool{Name: d.name, InputSchema: d.input}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, notFound("tools/call")
	})
	return nil
}

// SetResources replaces the resources and templates and notifies the clients. A server without resources and templates in [Options] does not declare them.
func (s *Server) SetResources(resources []Resource, templates []ResourceTemplate) error {
	err := s.setFeatures(func(f *features) { f.resources, f.templates = resources, templates })
	if err != nil {
		return err
	}
	s.ResourcesChanged()
	return nil
}

// SetPrompts replaces the prompts and notifies the clients. A server without
// prompts in [Options] does not declare them.
func (s *Server) SetPrompts(prompts ...Prompt) error {
	if err := s.setFeatures(func(f *features) { f.prompts = prompts }); err != nil {
		return err
	}
	s.PromptsChanged()
	return nil
}

func (s *Server) setFeatures(change func(*features)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := *s.static.Load()
	change(&f)
	if err := f.check(); err != nil {
		return err
	}
	s.static.Store(&f)
	return nil
}

// ResourceUpdated notifies the clients that subscribed to a resource of its change.
func (s *Server) ResourceUpdated(ctx context.Context, uri string) error {
	return s.sdk.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: uri})
}

// Close ends all sessions and cancels the background work of this process.
func (s *Server) Close() error {
	s.tasks.cancelAll()
	var errs []error
	for _, ss := range slices.Collect(s.sdk.Sessions()) {
		errs = append(errs, ss.Close())
	}
	return errors.Join(errs...)
}

// slots counts what is in use, up to a limit, also for each principal.
type slots struct {
	limit, share int

	mu   sync.Mutex
	used int
	by   map[string]int
}

// take reserves a slot for a principal; free releases it.
func (l *slots) take(principal string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.used >= l.limit || l.by[principal] >= l.share {
		return false
	}
	if l.by == nil {
		l.by = map[string]int{}
	}
	l.used++
	l.by[principal]++
	return true
}

func (l *slots) free(principal string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used--
	if l.by[principal]--; l.by[principal] == 0 {
		delete(l.by, principal)
	}
}
