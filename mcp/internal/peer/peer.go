package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// Config describes a server and what this client offers to it. A zero duration means the
// default in its comment.
type Config struct {
	// Label names the server in errors.
	Label  string
	Dialer rpc.Dialer
	// HTTP says that the server speaks HTTP: tools whose header annotations are invalid are
	// dropped, and arguments are repeated in headers.
	HTTP bool
	// Revision fixes the revision; empty negotiates.
	Revision string
	// ClientInfo is the object that identifies this client.
	ClientInfo json.RawMessage

	// Elicitation, Sampling and Tasks declare these capabilities. Roots are the folders for
	// servers that ask for them; nil declares no roots.
	Elicitation, Sampling, Tasks bool
	Roots                        []Root
	// AskRoots declares roots and gets the folders of each call from its InputFunc.
	AskRoots bool
	// LogLevel asks the server for its log messages from this level on; empty asks for none.
	LogLevel string

	// Input answers requests of the server that belong to no call, or to a call without a
	// function of its own; nil declines them.
	Input InputFunc
	// ListChanged is called after a list has changed, and Updated when a resource has
	// changed. Log receives the server's log messages. They must return soon.
	ListChanged func(list List)
	Updated     func(uri string)
	Log         func(level string, params json.RawMessage)
	// Lost is called when the connection is lost, and Connected when one is ready, before any
	// waiting call continues. An error of Connected ends the new connection.
	Lost      func(err error)
	Connected func(ctx context.Context, info Info) error

	// ProbeTimeout limits the question which revision the server speaks: 5 s over standard
	// input and output, 10 s over HTTP.
	ProbeTimeout time.Duration
	// ConnectTimeout limits a whole connection attempt: 30 s.
	ConnectTimeout time.Duration
	// CallTimeout limits a call without progress: one minute. MaxCallTime limits it with
	// progress: 10 minutes. Time in which a human is asked does not count.
	CallTimeout, MaxCallTime time.Duration
	// Parallel limits the calls in progress: 16.
	Parallel int
	// Debounce is the time to wait for further notifications before a list is read again:
	// 300 ms. Backoff is the first pause before a subscription is opened again and before a
	// server that dies repeatedly is started again: one second.
	Debounce, Backoff time.Duration
}

// Root is a folder that the server may work in.
type Root struct {
	URI  string `json:"uri"`
	Name string `json:"name,omitempty"`
}

// Info describes a connected server.
type Info struct {
	Revision string
	// Server is the object with which the server identifies itself; display only.
	Server       json.RawMessage
	Instructions string
	// Capabilities is the object of the server.
	Capabilities json.RawMessage
	// Stalled says that the server answered the question for its revision in the modern way,
	// but not the request for its tools, so that the older revision is used.
	Stalled bool
}

// Errors of this package. Errors of the server are [*rpc.Error].
var (
	// ErrClosed reports that the peer was closed.
	ErrClosed = errors.New("the connection to the server was closed")
	// ErrUnsupported reports a method that the server does not have.
	ErrUnsupported = errors.New("the server does not support this method")
	// ErrOutcomeUnknown reports a call whose connection was lost: it may or may not have run.
	ErrOutcomeUnknown = errors.New("the connection to the server was lost during the call, which may or may not have run")
	// ErrTimeout reports a call that took too long and was canceled.
	ErrTimeout = errors.New("the server did not answer in time")
	// ErrResult reports a result that this client cannot handle.
	ErrResult = errors.New("the result of the server is invalid")
	// ErrDeclined reports that the server needs an answer that this client does not give.
	ErrDeclined = errors.New("the server needs an answer that was not given")
)

// Peer is one server. It is safe for concurrent use.
type Peer struct {
	cfg   Config
	ctx   context.Context // ends with Close
	stop  context.CancelCauseFunc
	slots chan struct{}
	work  sync.WaitGroup

	mu      sync.Mutex
	link    *link
	attempt *attempt
	// era is the revision found earlier: empty, a modern one, or "legacy".
	era    string
	closed bool
	// deaths counts connections in a row that ended soon after they began; notBefore is the
	// time before which no new one is opened.
	deaths    int
	notBefore time.Time
	lastErr   error
	tokens    int64

	unsupported map[string]bool
	lists       map[List]*listing
	watched     map[string]int
	headers     map[string][]headerArgument
}

// attempt is one connection attempt, which all callers share.
type attempt struct {
	done chan struct{}
	link *link
	err  error
}

// New returns a peer that is not connected. Call [Peer.Open], or any request.
func New(cfg Config) *Peer {
	set := func(d *time.Duration, to time.Duration) {
		if *d <= 0 {
			*d = to
		}
	}
	if cfg.HTTP {
		set(&cfg.ProbeTimeout, 10*time.Second)
	}
	set(&cfg.ProbeTimeout, 5*time.Second)
	set(&cfg.ConnectTimeout, 30*time.Second)
	set(&cfg.CallTimeout, time.Minute)
	set(&cfg.MaxCallTime, 10*time.Minute)
	set(&cfg.Debounce, 300*time.Millisecond)
	set(&cfg.Backoff, time.Second)
	if cfg.Parallel <= 0 {
		cfg.Parallel = 16
	}
	if len(cfg.ClientInfo) == 0 {
		cfg.ClientInfo = json.RawMessage(`{"name":"dragoman","version":"0"}`)
	}
	p := &Peer{
		cfg: cfg, slots: make(chan struct{}, cfg.Parallel),
		unsupported: map[string]bool{}, lists: map[List]*listing{}, watched: map[string]int{},
	}
	p.ctx, p.stop = context.WithCancelCause(context.Background())
	for _, l := range allLists {
		p.lists[l] = &listing{}
	}
	return p
}

// Open connects to the server unless it is connected.
func (p *Peer) Open(ctx context.Context) error {
	_, err := p.connected(ctx)
	return err
}

// Info describes the server of the current connection; ok is false without one.
func (p *Peer) Info() (info Info, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == nil {
		return Info{}, false
	}
	return p.link.info, true
}

// Close ends the connection, and all calls with [ErrClosed].
func (p *Peer) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	l := p.link
	p.link = nil
	p.mu.Unlock()
	p.stop(ErrClosed)
	var err error
	if l != nil {
		err = l.end()
	}
	p.work.Wait()
	return err
}

// errorf adds the label of the server.
func (p *Peer) errorf(format string, args ...any) error {
	return fmt.Errorf("MCP server %q: "+format, append([]any{p.cfg.Label}, args...)...)
}

// start runs f on a goroutine that Close waits for. It reports false after Close.
func (p *Peer) start(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.work.Add(1)
	go func() {
		defer p.work.Done()
		f()
	}()
	return true
}

// sleep waits, and reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
