package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// Task is a call that the server continues in the background.
type Task struct {
	ID string `json:"id"`
	// Status is "working", "input_required", "completed", "failed" or "cancelled".
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
	// TTL is the time that the server keeps the task; zero means that it is unknown or
	// unlimited. Poll is the interval in which its state may be read.
	TTL  time.Duration `json:"ttl,omitempty"`
	Poll time.Duration `json:"poll,omitempty"`
	// Legacy says that it is a task of revision 2025-11-25.
	Legacy bool `json:"legacy,omitempty"`
	// Answered are the keys of its questions that were answered: the server may repeat them
	// until it has read the answers.
	Answered []string `json:"answered,omitempty"`
}

// TaskStarted is the error of a call with [Options.Detach] that has become a task. [Peer.Await]
// waits for its end.
type TaskStarted struct{ Task Task }

func (e *TaskStarted) Error() string { return "the server continues the call as task " + e.Task.ID }

// errSilent is the error of a request about a task that was not answered in time.
var errSilent = fmt.Errorf("%w: the request about the task was not answered in time", rpc.ErrLost)

// ErrTask reports a task that did not complete.
var ErrTask = errors.New("the task of the server did not complete")

const (
	firstPoll    = time.Second
	shortestPoll = 10 * time.Millisecond
	longestPoll  = time.Minute
	// maxSilent limits the requests about a task in a row that the server leaves unanswered.
	maxSilent   = 5
	cancelLimit = 10 * time.Second
)

// readTask reads the state of a task.
func readTask(raw json.RawMessage, old bool) (Task, error) {
	m := fields(raw)
	t := Task{ID: jsonwire.Unquote(m["taskId"]), Status: jsonwire.Unquote(m["status"]), Message: jsonwire.Unquote(m["statusMessage"]), Legacy: old}
	millis := func(names ...string) time.Duration {
		for _, n := range names {
			if f, err := strconv.ParseFloat(strings.TrimSpace(string(m[n])), 64); err == nil && f > 0 {
				return time.Duration(min(f, 1e12)) * time.Millisecond
			}
		}
		return 0
	}
	t.TTL, t.Poll = millis("ttlMs", "ttl"), millis("pollIntervalMs", "pollInterval")
	if t.Poll == 0 {
		t.Poll = firstPoll
	}
	t.Poll = min(max(t.Poll, shortestPoll), longestPoll)
	if t.ID == "" {
		return t, fmt.Errorf("%w: the task has no taskId", ErrResult)
	}
	return t, nil
}

// task waits for a task that a call has become, or reports it.
func (p *Peer) task(ctx context.Context, c *call, raw json.RawMessage, o *Options) (json.RawMessage, error) {
	if !p.cfg.Tasks {
		return nil, p.errorf("%s: %w: it is a task, which this client did not offer to handle", c.method, ErrResult)
	}
	t, err := readTask(raw, false)
	if err != nil {
		return nil, p.errorf("%w", err)
	}
	if o.Detach {
		return nil, &TaskStarted{t}
	}
	return p.await(ctx, c, t, nil)
}

// legacyTask waits for a task of revision 2025-11-25, or reports it.
func (p *Peer) legacyTask(ctx context.Context, c *call, l *link, raw json.RawMessage, o *Options) (json.RawMessage, error) {
	t, err := readTask(raw, true)
	if err != nil {
		return nil, p.errorf("%w", err)
	}
	if o.Detach {
		return nil, &TaskStarted{t}
	}
	return p.await(ctx, c, t, nil)
}

// Await waits for the end of a task and returns the result of its call. If ctx ends, the task
// is canceled; if the peer is closed, it is not, so that another process can wait for it. MaxTime
// of the options limits the waiting; zero means no limit.
func (p *Peer) Await(ctx context.Context, t Task, o Options) (json.RawMessage, error) {
	whole := o.MaxTime
	if whole <= 0 {
		whole = 100 * 365 * 24 * time.Hour
	}
	ctx, timer := limit(ctx, whole, whole)
	defer timer.stop()
	stop := context.AfterFunc(p.ctx, func() { timer.expired(ErrClosed) })
	defer stop()
	p.mu.Lock()
	p.tokens++
	c := &call{method: "tools/call", token: fmt.Sprintf("t%d", p.tokens), input: o.Input, timer: timer, offer: o.Offer, fail: timer.expired}
	p.mu.Unlock()
	if c.input == nil {
		c.input = p.cfg.Input
	}
	return p.await(ctx, c, t, nil)
}

// continueTask continues a parked call whose question came from a task.
func (p *Peer) continueTask(ctx context.Context, c *call, k *Continuation, o *Options) (json.RawMessage, error) {
	t := Task{ID: k.TaskID, Poll: firstPoll, Answered: slices.Concat(k.Asked, slices.Sorted(maps.Keys(k.Responses)))}
	if o.Detach {
		if err := p.update(ctx, c, t, k.Responses); err != nil {
			return nil, err
		}
		return nil, &TaskStarted{t}
	}
	return p.await(ctx, c, t, k)
}

// await reads the state of a task until it ends. k holds answers to send first.
func (p *Peer) await(ctx context.Context, c *call, t Task, k *Continuation) (_ json.RawMessage, err error) {
	c.setTask(t.ID)
	defer func() {
		if err != nil && ctx.Err() != nil {
			if err = context.Cause(ctx); !errors.Is(err, ErrClosed) {
				p.cancelTask(t)
			}
		}
	}()
	if t.Poll = min(max(t.Poll, shortestPoll), longestPoll); t.ID == "" {
		return nil, p.errorf("%w: the task has no taskId", ErrResult)
	}
	params := jsonwire.With([]byte("{}"), "taskId", jsonwire.Quote(t.ID))
	answered := map[string]bool{}
	for _, key := range t.Answered {
		answered[key] = true
	}
	if k != nil {
		if err := p.update(ctx, c, t, k.Responses); err != nil {
			return nil, err
		}
	}
	silent := 0
	for first := true; ; first = false {
		if t.Status == "" || !first {
			limit, cancel := context.WithTimeoutCause(ctx, p.cfg.CallTimeout, errSilent)
			raw, err := p.taskCall(limit, c, "tasks/get", params)
			unanswered := limit.Err() != nil && ctx.Err() == nil
			cancel()
			switch {
			case err != nil && unanswered && silent < maxSilent:
				silent++
				continue
			case err != nil:
				return nil, p.callError("tasks/get", err)
			}
			silent = 0
			id, poll := t.ID, t.Poll
			if t, err = readTask(raw, t.Legacy); err != nil {
				return nil, p.errorf("tasks/get: %w", err)
			}
			if t.ID != id {
				return nil, p.errorf("tasks/get: %w: it describes the task %.60q instead of %.60q", ErrResult, t.ID, id)
			}
			if len(fields(raw)["pollIntervalMs"])+len(fields(raw)["pollInterval"]) == 0 {
				t.Poll = poll
			}
			c.timer.restart()
			done, result, err := p.taskState(ctx, c, t, raw, answered)
			if done || err != nil {
				return result, err
			}
		}
		if !sleep(ctx, t.Poll) {
			return nil, context.Cause(ctx)
		}
	}
}

// taskState reacts to the state of a task.
func (p *Peer) taskState(ctx context.Context, c *call, t Task, raw json.RawMessage, answered map[string]bool) (done bool, _ json.RawMessage, _ error) {
	m := fields(raw)
	switch t.Status {
	case "working":
		return false, nil, nil
	case "input_required":
		if t.Legacy { // its questions arrive while the result is awaited
			raw, err := p.taskResult(ctx, c, t)
			return true, raw, err
		}
		all, err := readInputRequests(m["inputRequests"])
		if err != nil {
			return true, nil, p.errorf("tasks/get: %w", err)
		}
		var requests []InputRequest
		for _, q := range all {
			if !answered[q.Key] {
				requests = append(requests, q)
			}
		}
		if len(requests) == 0 {
			return false, nil, nil
		}
		if len(answered)+len(requests) > maxRounds*maxRequests {
			return true, nil, p.errorf("tasks/get: %w: it asked for input too often", ErrResult)
		}
		answers, err := p.ask(ctx, c, Round{Requests: requests, Call: c.method})
		if parked := (*Parked)(nil); errors.As(err, &parked) {
			parked.TaskID, parked.Asked = t.ID, slices.Sorted(maps.Keys(answered))
		}
		if err != nil {
			return true, nil, err
		}
		if err := p.update(ctx, c, t, answers); err != nil {
			return true, nil, err
		}
		for _, q := range requests {
			answered[q.Key] = true
		}
		return false, nil, nil
	case "completed":
		if t.Legacy {
			raw, err := p.taskResult(ctx, c, t)
			return true, raw, err
		}
		if !isObject(m["result"]) {
			return true, nil, p.errorf("tasks/get: %w: the completed task has no result", ErrResult)
		}
		return true, m["result"], nil
	case "failed":
		if t.Legacy {
			raw, err := p.taskResult(ctx, c, t)
			return true, raw, err
		}
		failed := &rpc.Error{Code: rpc.CodeInternal, Message: t.Message}
		if e := fields(m["error"]); e != nil {
			failed.Code, _ = strconv.ParseInt(string(e["code"]), 10, 64)
			failed.Message, failed.Data = jsonwire.Unquote(e["message"]), e["data"]
		}
		return true, nil, p.errorf("%w: %w", ErrTask, failed)
	case "cancelled":
		return true, nil, p.errorf("%w: it was canceled", ErrTask)
	default:
		return true, nil, p.errorf("tasks/get: %w: the state %.60q is unknown to this client", ErrResult, t.Status)
	}
}

// taskResult waits for the result of a task of revision 2025-11-25.
func (p *Peer) taskResult(ctx context.Context, c *call, t Task) (json.RawMessage, error) {
	raw, err := p.taskCall(ctx, c, "tasks/result", jsonwire.With([]byte("{}"), "taskId", jsonwire.Quote(t.ID)))
	if err != nil {
		return nil, p.callError("tasks/result", err)
	}
	return raw, nil
}

// update sends answers to a task.
func (p *Peer) update(ctx context.Context, c *call, t Task, answers map[string]Response) error {
	responses, err := encodeResponses(answers)
	if err != nil {
		return p.errorf("tasks/update: %w", err)
	}
	params := jsonwire.With([]byte("{}"), "taskId", jsonwire.Quote(t.ID))
	if _, err = p.taskCall(ctx, c, "tasks/update", jsonwire.With(params, "inputResponses", responses)); err != nil {
		return p.callError("tasks/update", err)
	}
	return nil
}

// taskCall sends a request about a task. Questions of the server meanwhile belong to its call.
func (p *Peer) taskCall(ctx context.Context, c *call, method string, params json.RawMessage) (json.RawMessage, error) {
	p.mu.Lock()
	p.tokens++
	about := &call{method: method, token: fmt.Sprintf("t%d", p.tokens), input: c.input, timer: c.timer, slot: c.slot, task: c.taskID(), offer: c.offer, fail: c.fail}
	p.mu.Unlock()
	raw, _, err := p.send(ctx, about, params, &Options{})
	return raw, err
}

// cancelTask asks the server to end a task, after its call was canceled.
func (p *Peer) cancelTask(t Task) {
	p.start(func() {
		ctx, cancel := context.WithTimeout(p.ctx, cancelLimit)
		defer cancel()
		_, timer := limit(ctx, cancelLimit, cancelLimit)
		defer timer.stop()
		_, _ = p.taskCall(ctx, &call{timer: timer}, "tasks/cancel", jsonwire.With([]byte("{}"), "taskId", jsonwire.Quote(t.ID)))
	})
}
