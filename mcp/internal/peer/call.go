package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// Options configure a call.
type Options struct {
	// Progress receives the reports of the server on progress, one at a time. Reports that
	// arrive while it runs, and more than 10 in a second, may be dropped.
	Progress func(Progress)
	// Input answers requests of the server during the call; nil means [Config.Input].
	Input InputFunc
	// Timeout and MaxTime limit the call; zero means the configured limits.
	Timeout, MaxTime time.Duration
	// Safe says that the call may be sent again if the connection was lost and it is unknown
	// whether it ran. Reads are always safe.
	Safe bool
	// Check is called before a call is sent again over a new connection, and may refuse that:
	// the tool may have changed.
	Check func() error
	// Continue continues a call that ended with [*Parked].
	Continue *Continuation
	// Detach returns a task as [*TaskStarted] instead of waiting for its end.
	Detach bool
	// TaskRequired says that the tool runs only as a task of revision 2025-11-25.
	TaskRequired bool
	// Offer is what can be answered during this call; nil means everything that the
	// configuration offers. A question that is not offered ends the call with an
	// [*rpc.MissingCapability].
	Offer *Offer
}

// Offer is what a client can answer.
type Offer struct{ Form, URL, Sampling, Roots bool }

// refuses returns the capability that a question needs and that is not offered, or "".
func (o *Offer) refuses(q InputRequest) string {
	if o == nil {
		return ""
	}
	switch {
	case q.Method == MethodElicit && jsonwire.Unquote(fields(q.Params)["mode"]) == "url":
		if !o.URL {
			return "elicitation/url"
		}
	case q.Method == MethodElicit && !o.Form:
		return "elicitation"
	case q.Method == MethodSample && !o.Sampling:
		return "sampling"
	case q.Method == MethodRoots && !o.Roots:
		return "roots"
	}
	return ""
}

// Continuation is the answer to a [*Parked].
type Continuation struct {
	// RequestState is the raw JSON of the server; nil if it sent none.
	RequestState json.RawMessage
	// TaskID is set if a task asked, and Asked are then the keys of its earlier questions.
	TaskID string
	Asked  []string
	// Repeat has the meaning of the field of [Parked].
	Repeat    bool
	Responses map[string]Response
}

// Progress is a report on progress. Total is zero if it is unknown.
type Progress struct {
	Done, Total float64
	Message     string
}

// Parked is the error of a call whose [InputFunc] returned [ErrPark]: the call has ended, and
// continues with [Options.Continue], also in another process.
type Parked struct {
	// Requests are the questions for a human, and Answered the answers to the others, which
	// belong to the responses of the continuation.
	Requests     []InputRequest
	Answered     map[string]Response
	RequestState json.RawMessage
	TaskID       string
	Asked        []string
	// Repeat says that the call is sent again without the answers, if all of them accept: the
	// server asks for pages to be opened first.
	Repeat bool
}

func (e *Parked) Error() string { return "the server waits for an answer" }

// ErrPark is returned by an [InputFunc] to end the call until there is an answer. Only calls
// that are not in flight can be parked.
var ErrPark = errors.New("the call waits for an answer")

// Limits on the rounds of questions of one call.
const (
	maxRounds      = 10
	maxEmptyRounds = 20
	firstPause     = 500 * time.Millisecond
	longestPause   = 10 * time.Second
)

// call is a call in progress.
type call struct {
	method string
	token  string
	input  InputFunc
	timer  *timer
	// slot says that the call counts among those in progress.
	slot bool
	// progress is nil if no caller wants reports.
	progress chan Progress
	offer    *Offer
	// fail ends the call with an error.
	fail func(error)

	mu   sync.Mutex
	sent *rpc.Request
	task string
	// reports is the number of reports on progress that may be passed on, as of reported.
	reports  float64
	reported time.Time
	// remedies are the codes of errors for which a remedy was tried.
	remedies []int64
}

func (c *call) current() *rpc.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sent
}

func (c *call) taskID() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.task
}

func (c *call) set(r *rpc.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent = r
}

func (c *call) setTask(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.task = id
}

// Call sends a request and returns its result, whose resultType is "complete" or absent. It
// answers the server's questions during the call, and waits for the end of a task.
func (p *Peer) Call(ctx context.Context, method string, params json.RawMessage, o Options) (json.RawMessage, error) {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-p.ctx.Done():
		return nil, p.errorf("%w", ErrClosed)
	}
	or := func(d, def time.Duration) time.Duration {
		if d > 0 {
			return d
		}
		return def
	}
	ctx, t := limit(ctx, or(o.Timeout, p.cfg.CallTimeout), or(o.MaxTime, p.cfg.MaxCallTime))
	defer t.stop()
	stop := context.AfterFunc(p.ctx, func() { t.expired(ErrClosed) })
	defer stop()
	p.mu.Lock()
	p.tokens++
	c := &call{method: method, token: fmt.Sprintf("t%d", p.tokens), input: o.Input, timer: t, slot: true, offer: o.Offer, fail: t.expired}
	p.mu.Unlock()
	if c.input == nil {
		c.input = p.cfg.Input
	}
	if o.Progress != nil {
		c.progress = make(chan Progress, 16)
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			c.report(o.Progress, stop)
		}()
		defer func() {
			close(stop)
			<-done
		}()
	}
	raw, err := p.run(ctx, c, params, &o)
	if err == nil && errors.As(context.Cause(ctx), new(*rpc.MissingCapability)) { // the server went on without the answer
		err = context.Cause(ctx)
	}
	if err != nil && ctx.Err() != nil && !errors.As(err, new(*Parked)) {
		err = context.Cause(ctx)
	}
	if errors.Is(err, ErrTimeout) {
		err = p.errorf("%s: %w", method, err)
	}
	return raw, err
}

// report passes reports on progress to f until the call ends, and then those that arrived before.
func (c *call) report(f func(Progress), stop <-chan struct{}) {
	for {
		select {
		case r := <-c.progress:
			f(r)
			continue
		case <-stop:
		}
		for {
			select {
			case r := <-c.progress:
				f(r)
			default:
				return
			}
		}
	}
}

// run sends the request and reacts to its results until one is complete (pitfall K29: the
// resultType decides first).
func (p *Peer) run(ctx context.Context, c *call, params json.RawMessage, o *Options) (json.RawMessage, error) {
	var responses, state json.RawMessage
	if k := o.Continue; k != nil {
		if k.TaskID != "" {
			return p.continueTask(ctx, c, k, o)
		}
		var err error
		switch responses, err = k.responses(); {
		case err != nil:
			return nil, p.errorf("%w", err)
		case k.Repeat && !k.accepted():
			return nil, p.errorf("%s: %w", c.method, ErrDeclined)
		case k.Repeat:
			responses = nil
		}
		state = k.RequestState
	}
	pause, empty := firstPause, 0
	for round := 0; ; round++ {
		raw, l, err := p.send(ctx, c, withAnswers(params, responses, state), o)
		if err != nil {
			if again, failed := p.afterError(ctx, c, l, err); failed != nil {
				return nil, failed
			} else if again && round < maxRounds {
				continue
			}
			return nil, p.callError(c.method, err)
		}
		if !isObject(raw) {
			return nil, p.errorf("%s: %w: it is not an object", c.method, ErrResult)
		}
		m := fields(raw)
		kind := jsonwire.Unquote(m["resultType"])
		switch {
		case !l.modern():
			if task := m["task"]; o.TaskRequired && isObject(task) {
				return p.legacyTask(ctx, c, l, task, o)
			}
			return raw, nil
		case kind == "" && len(m["resultType"]) == 0, kind == "complete": // required, but not by every server
			return raw, nil
		case kind == "task" && c.method == "tools/call":
			return p.task(ctx, c, raw, o)
		case kind != "input_required":
			return nil, p.errorf("%s: %w: its resultType %.60s is unknown to this client", c.method, ErrResult, string(m["resultType"]))
		case c.method != "tools/call" && c.method != "prompts/get" && c.method != "resources/read":
			return nil, p.errorf("%s: %w: this method must not ask for input", c.method, ErrResult)
		}
		requests, err := readInputRequests(m["inputRequests"])
		state = slices.Clone(m["requestState"])
		switch {
		case err != nil:
			return nil, p.errorf("%s: %w", c.method, err)
		case len(state) > maxState:
			return nil, p.errorf("%s: %w: its requestState is larger than %d bytes", c.method, ErrResult, maxState)
		case round >= maxRounds && len(requests) > 0:
			return nil, p.errorf("%s: %w: it asked for input more than %d times", c.method, ErrResult, maxRounds)
		case len(requests) == 0 && len(state) == 0:
			return nil, p.errorf("%s: %w: it asks for input without a request and without a state", c.method, ErrResult)
		case len(requests) == 0: // only a state: the server is not ready
			if empty++; empty > maxEmptyRounds {
				return nil, p.errorf("%s: the server asked %d times to try again later", c.method, maxEmptyRounds)
			}
			if !sleep(ctx, pause) {
				return nil, context.Cause(ctx)
			}
			pause, responses = min(2*pause, longestPause), nil
			continue
		}
		responses, err = p.answer(ctx, c, requests)
		if parked := (*Parked)(nil); errors.As(err, &parked) {
			parked.RequestState = state
		}
		if err != nil {
			return nil, err
		}
	}
}

// withAnswers returns the parameters of a further round. The original ones are never changed
// (pitfall K30).
func withAnswers(params, responses, state json.RawMessage) json.RawMessage {
	if len(responses) == 0 && len(state) == 0 {
		return params
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if len(responses) > 0 {
		params = jsonwire.With(params, "inputResponses", responses)
	}
	if len(state) > 0 {
		params = jsonwire.With(params, "requestState", state)
	}
	return params
}

// responses returns the object of the answers.
func (k *Continuation) responses() (json.RawMessage, error) {
	if len(k.Responses) == 0 {
		return nil, nil
	}
	return encodeResponses(k.Responses)
}

// accepted reports whether all answers accept.
func (k *Continuation) accepted() bool {
	for _, a := range k.Responses {
		if jsonwire.Unquote(fields(a.Result)["action"]) != "accept" {
			return false
		}
	}
	return true
}

// safeMethods may be sent again: they have no effect.
var safeMethods = []string{"server/discover", "tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list", "prompts/get", "completion/complete", "tasks/get", "skills/list", "skills/get", "resources/directory/read"}

// send sends a request, and sends it once more over a new connection if the connection was lost
// and that is safe (requirement M4, pitfalls K8 and K14).
func (p *Peer) send(ctx context.Context, c *call, params json.RawMessage, o *Options) (json.RawMessage, *link, error) {
	for try := 0; ; try++ {
		l, err := p.connected(ctx)
		if err != nil {
			return nil, nil, err
		}
		if err := p.supports(l, c.method); err != nil {
			return nil, l, err
		}
		if try > 0 && o.Check != nil {
			if err := o.Check(); err != nil {
				return nil, l, err
			}
		}
		sent := params
		if o.TaskRequired && !l.modern() && fields(l.capabilities["tasks"]) != nil {
			sent = jsonwire.With(params, "task", []byte(`{}`))
		}
		r := l.request(c.method, sent, c.token, c.offer)
		var notDelivered atomic.Bool
		r.NotDelivered = func() { notDelivered.Store(true) }
		c.set(r)
		l.add(c)
		raw, err := l.conn.Call(ctx, r)
		l.remove(c)
		if err == nil {
			return raw, l, nil
		}
		var coded *rpc.Error
		if ctx.Err() != nil || errors.As(err, &coded) || unauthorized(err) {
			return nil, l, err
		}
		lost := l.over() || errors.Is(err, rpc.ErrLost) || errors.Is(err, rpc.ErrSessionLost)
		if l.over() {
			p.dropLink(l, l.conn.Err())
		}
		safe := notDelivered.Load() || o.Safe || slices.Contains(safeMethods, c.method)
		switch {
		case try == 0 && safe:
		case lost && !notDelivered.Load():
			return nil, l, p.errorf("%w: %w", ErrOutcomeUnknown, err)
		default:
			return nil, l, p.errorf("%s: %w", c.method, err)
		}
	}
}

// afterError reacts to errors of the server that have a remedy. again says to send the request
// once more.
func (p *Peer) afterError(ctx context.Context, c *call, l *link, err error) (again bool, failed error) {
	var coded *rpc.Error
	if l == nil || !errors.As(err, &coded) {
		return false, nil
	}
	switch {
	case coded.Code == rpc.CodeHeaderMismatch && c.method == "tools/call" && p.cfg.HTTP:
		if c.remedied(rpc.CodeHeaderMismatch) {
			return false, nil
		}
		_, err := p.refresh(ctx, l, Tools)
		return err == nil, nil
	case coded.Code == rpc.CodeUnsupportedRevision && l.modern():
		if c.remedied(rpc.CodeUnsupportedRevision) {
			return false, nil
		}
		p.mu.Lock()
		p.era = ""
		p.mu.Unlock()
		p.dropLink(l, err)
		return true, nil
	case coded.Code == rpc.CodeURLElicitation && !l.modern():
		return p.urlElicitations(ctx, c, coded)
	default:
		return false, nil
	}
}

// remedied reports whether the remedy for a code was tried before.
func (c *call) remedied(code int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if slices.Contains(c.remedies, code) {
		return true
	}
	c.remedies = append(c.remedies, code)
	return false
}

// callError adds the label of the server to an error that the server sent.
func (p *Peer) callError(method string, err error) error {
	var coded *rpc.Error
	if errors.As(err, &coded) {
		if coded.Code == rpc.CodeMethodNotFound && method != "tools/call" {
			p.mu.Lock()
			p.unsupported[method] = true
			p.mu.Unlock()
			return p.errorf("%s: %w: %w", method, ErrUnsupported, err)
		}
		return p.errorf("%s: %w", method, err)
	}
	return err
}

// capabilityOf returns the capability that a method needs.
func capabilityOf(method string) string {
	switch method {
	case "tools/list", "tools/call":
		return "tools"
	case "resources/list", "resources/templates/list", "resources/read", "resources/subscribe", "resources/unsubscribe", "resources/directory/read":
		return "resources"
	case "prompts/list", "prompts/get":
		return "prompts"
	case "completion/complete":
		return "completions"
	case "logging/setLevel":
		return "logging"
	case "skills/list", "skills/get":
		return SkillsExtension
	default:
		return ""
	}
}

// supports refuses methods that the server did not declare or has refused before (quirk H18,
// pitfall K37).
func (p *Peer) supports(l *link, method string) error {
	p.mu.Lock()
	refused := p.unsupported[method]
	p.mu.Unlock()
	need := capabilityOf(method)
	if refused || need != "" && !l.has(need) && !(need == "completions" && l.info.Revision < rpc.Revision20250326) {
		return p.errorf("%s: %w", method, ErrUnsupported)
	}
	return nil
}

// Supports reports whether the connected server has a method. It is false without a
// connection.
func (p *Peer) Supports(method string) bool {
	p.mu.Lock()
	l := p.link
	p.mu.Unlock()
	return l != nil && p.supports(l, method) == nil
}
