package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// pingLimit limits a ping, and maxPings is the number of pings in a row without an answer after
// which the connection counts as lost.
const (
	pingLimit = 10 * time.Second
	maxPings  = 2
)

var errNoPing = fmt.Errorf("%w: the server answers no pings", rpc.ErrLost)

// keepAlive pings an idle server of an older revision until the connection ends. A server that
// does not answer the first ping gets no other one.
func (p *Peer) keepAlive(l *link) {
	answers, silent := false, 0
	for sleep(l.ctx, p.cfg.KeepAlive) && !l.over() {
		if l.busy() > 0 {
			continue
		}
		ctx, cancel := context.WithTimeoutCause(l.ctx, min(pingLimit, p.cfg.KeepAlive), errNoPing)
		_, err := l.conn.Call(ctx, &rpc.Request{Method: "ping"})
		cancel()
		switch {
		case err == nil:
			answers, silent = true, 0
		case l.ctx.Err() != nil || l.over() || !answers:
			return
		case errors.As(err, new(*rpc.Error)):
			silent = 0 // also an answer
		default:
			if silent++; silent == maxPings {
				p.dropLink(l, err)
				return
			}
		}
	}
}

// pageOf returns the channel of a page.
func (l *link) pageOf(id string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pages == nil {
		l.pages = map[string]chan struct{}{}
	}
	if l.pages[id] == nil {
		l.pages[id] = make(chan struct{})
	}
	return l.pages[id]
}

// pageDone notes that the user has finished with a page, if a call waits for it.
func (l *link) pageDone(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done := l.pages[id]; done != nil {
		close(done)
		delete(l.pages, id)
	}
}

// forgetPages ends the waiting for pages.
func (l *link) forgetPages(pages map[string]chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range pages {
		delete(l.pages, id)
	}
}

// awaitPages waits until the user has finished with pages, or for PageTime: not every server says
// so. The limits of the call stop meanwhile.
func (p *Peer) awaitPages(ctx context.Context, c *call, l *link, pages map[string]chan struct{}) {
	c.timer.pause()
	defer c.timer.resume()
	t := time.NewTimer(p.cfg.PageTime)
	defer t.Stop()
	for _, done := range pages {
		select {
		case <-done:
		case <-t.C:
			return
		case <-ctx.Done():
			return
		case <-l.ctx.Done():
			return
		}
	}
}

// pagesOf returns the channels of the pages that questions name.
func (l *link) pagesOf(requests []InputRequest) map[string]chan struct{} {
	out := map[string]chan struct{}{}
	for _, q := range requests {
		if id := jsonwire.Unquote(fields(q.Params)["elicitationId"]); id != "" {
			out[id] = l.pageOf(id)
		}
	}
	return out
}

// watchTask notes that a task is being waited for. The channel gets a value when the server
// announces a change.
func (p *Peer) watchTask(id string) (changed <-chan struct{}, forget func()) {
	c := make(chan struct{}, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tasks[id] = c
	return c, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.tasks[id] == c {
			delete(p.tasks, id)
		}
	}
}

// taskChanged wakes who waits for a task.
func (p *Peer) taskChanged(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.tasks[id] <- struct{}{}: // nil if nothing waits for it
	default:
	}
}

// announceTasks asks a modern server to announce changes of tasks that are read rarely.
func (p *Peer) announceTasks(poll time.Duration) {
	p.mu.Lock()
	l := p.link
	p.mu.Unlock()
	if l != nil && l.modern() && poll >= firstPoll && l.hasTasks() {
		p.startListening(l)
	}
}

// hasTasks reports whether the server declares the tasks extension.
func (l *link) hasTasks() bool { return fields(l.capabilities["extensions"])[TasksExtension] != nil }

// shortestWait is the time between two requests about a task, however often the server announces
// changes.
const shortestWait = 100 * time.Millisecond

// pauseTask waits before the state of a task is read again.
func pauseTask(ctx context.Context, poll time.Duration, changed <-chan struct{}) bool {
	first := min(poll, shortestWait)
	if !sleep(ctx, first) {
		return false
	}
	t := time.NewTimer(poll - first)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}
