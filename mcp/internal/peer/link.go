package peer

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// maxServing limits the requests of a server that are being answered.
const maxServing = 16

// link is one connection to the server, with what was negotiated on it. It handles what the
// server sends on its own account.
type link struct {
	peer   *Peer
	conn   rpc.Conn
	ctx    context.Context // ends with the connection
	cancel context.CancelCauseFunc
	ready  chan struct{} // closed when conn is set
	began  time.Time

	info         Info
	capabilities map[string]json.RawMessage
	// firstPage is the first page of the tools, which the probe has read.
	firstPage json.RawMessage

	mu    sync.Mutex
	calls map[string]*call // by progress token
	// asked holds the requests of the server that are being answered, to cancel them.
	asked   map[rpc.ID]context.CancelFunc
	serving chan struct{}
	listen  listener
	// idle is set once the connection is dropped, and closed when its last call has ended.
	idle chan struct{}

	once sync.Once
	err  error
}

func (l *link) modern() bool { return rpc.Modern(l.info.Revision) }

// has reports whether the server declared a capability, or an extension by its id.
func (l *link) has(capability string) bool {
	v, ok := l.capabilities[capability]
	if capability == SkillsExtension {
		v, ok = fields(l.capabilities["extensions"])[capability]
	}
	return ok && string(v) != "null"
}

// declares reports whether a capability of the server has a field that is true.
func (l *link) declares(capability, field string) bool {
	return string(fields(l.capabilities[capability])[field]) == "true"
}

// over reports whether the connection has ended.
func (l *link) over() bool {
	select {
	case <-l.conn.Done():
		return true
	default:
		return false
	}
}

// end closes the connection.
func (l *link) end() error {
	l.once.Do(func() {
		l.cancel(ErrClosed)
		l.err = l.conn.Close()
	})
	return l.err
}

// Notification handles a notification of the server.
func (l *link) Notification(in rpc.Incoming) {
	p := l.peer
	switch in.Method {
	case "notifications/progress":
		l.progress(in.Params)
	case "notifications/tools/list_changed":
		p.changed(l, Tools)
	case "notifications/prompts/list_changed":
		p.changed(l, Prompts)
	case "notifications/resources/list_changed":
		p.changed(l, Resources)
		p.changed(l, ResourceTemplates)
	case "notifications/resources/updated":
		if p.cfg.Updated != nil {
			p.cfg.Updated(jsonwire.Unquote(fields(in.Params)["uri"]))
		}
	case "notifications/message":
		if p.cfg.Log != nil {
			p.cfg.Log(jsonwire.Unquote(fields(in.Params)["level"]), in.Params)
		}
	case rpc.MethodCancelled:
		id := rpc.ID(fields(in.Params)["requestId"])
		l.mu.Lock()
		cancel := l.asked[id]
		l.mu.Unlock()
		if cancel != nil {
			cancel()
		}
	case "notifications/subscriptions/acknowledged":
		l.acknowledged(in.Params)
	}
}

// progress reports progress to its call and starts the call's time limit again (pitfall K17).
func (l *link) progress(params json.RawMessage) {
	m := fields(params)
	l.mu.Lock()
	c := l.calls[jsonwire.Unquote(m["progressToken"])]
	l.mu.Unlock()
	if c == nil {
		return // of a call that has ended
	}
	c.timer.restart()
	if c.progress == nil || !c.mayReport() {
		return
	}
	number := func(raw json.RawMessage) float64 {
		f, _ := strconv.ParseFloat(strings.TrimSpace(string(raw)), 64)
		return f
	}
	select {
	case c.progress <- Progress{Done: number(m["progress"]), Total: number(m["total"]), Message: jsonwire.Unquote(m["message"])}:
	default: // the reader is slow: a later report says more
	}
}

// A call may report maxReports times at once, and then reportsPerSecond.
const (
	maxReports       = 50
	reportsPerSecond = 10
)

// mayReport reports whether a report on progress may be passed on: a flood of them must not keep
// observers busy.
func (c *call) mayReport() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.reported.IsZero() {
		c.reports = maxReports
	} else {
		c.reports = min(maxReports, c.reports+now.Sub(c.reported).Seconds()*reportsPerSecond)
	}
	c.reported = now
	if c.reports < 1 {
		return false
	}
	c.reports--
	return true
}

// add registers a call on the connection.
func (l *link) add(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[c.token] = c
}

func (l *link) remove(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.calls, c.token)
	if len(l.calls) == 0 && l.idle != nil {
		close(l.idle)
		l.idle = nil
	}
}

// drainTime limits how long calls on a dropped connection are waited for.
const drainTime = 10 * time.Second

// drain closes a connection once its calls have ended: each of them learns by itself whether
// the server got it.
func (l *link) drain() {
	l.mu.Lock()
	var idle chan struct{}
	if len(l.calls) > 0 {
		idle = make(chan struct{})
		l.idle = idle
	}
	l.mu.Unlock()
	ended := func() {
		if idle != nil {
			t := time.NewTimer(drainTime)
			defer t.Stop()
			select {
			case <-idle:
			case <-t.C:
			case <-l.peer.ctx.Done():
			}
		}
		_ = l.end()
	}
	if !l.peer.start(ended) {
		_ = l.end()
	}
}

// attribute returns the call that a request of the server belongs to, or nil: the call on whose
// stream it arrived, that of the task that it names, or the only open call.
func (l *link) attribute(in rpc.Incoming) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	task := jsonwire.Unquote(fields(fields(fields(in.Params)["_meta"])[rpc.MetaRelatedTask])["taskId"])
	var only *call
	for _, c := range l.calls {
		if in.During != nil && c.current() == in.During || task != "" && c.taskID() == task {
			return c
		}
		only = c
	}
	if in.During == nil && task == "" && len(l.calls) == 1 {
		return only
	}
	return nil
}
