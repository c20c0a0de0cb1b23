package tooltest

import (
	"context"
	"sync/atomic"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// watchedTool is a tool whose calls are watched until they return, also after the runner
// abandoned them.
type watchedTool struct {
	tool.Tool
	settings tool.Settings
	// began and ended count the calls, and left wakes whoever waits for the end of one.
	began, ended atomic.Int32
	left         chan struct{}
	// enter is called before the tool is; nil means nothing.
	enter func()
}

func (c *checker) watch(enter func()) *watchedTool {
	w := &watchedTool{Tool: c.Tool, settings: c.settings, left: make(chan struct{}, 1), enter: enter}
	w.settings.Breaker = tool.Breaker{}
	return w
}

// Settings returns the settings of the tool, without its circuit breaker.
func (w *watchedTool) Settings() tool.Settings { return w.settings }

// Contribution returns the contribution of the tool.
func (w *watchedTool) Contribution() dragoman.Contribution {
	if c, ok := w.Tool.(interface{ Contribution() dragoman.Contribution }); ok {
		return c.Contribution()
	}
	return dragoman.Contribution{}
}

// Call calls the tool.
func (w *watchedTool) Call(ctx context.Context, in tool.Input) (tool.Output, error) {
	w.began.Add(1)
	defer func() {
		w.ended.Add(1)
		select {
		case w.left <- struct{}{}:
		default:
		}
	}()
	if w.enter != nil {
		w.enter()
	}
	return w.Tool.Call(ctx, in)
}

// returned waits until all calls have returned, and reports whether they did in time.
func (w *watchedTool) returned(within time.Duration) bool {
	limit := time.NewTimer(within)
	defer limit.Stop()
	for w.ended.Load() < w.began.Load() {
		select {
		case <-w.left:
		case <-limit.C:
			return false
		}
	}
	return true
}

// cancel calls each case with a context that ends as soon as the tool is called, and
// those that block with one that ends a moment later.
func (c *checker) cancel() string {
	if len(c.Cases) == 0 {
		return "the suite has no cases"
	}
	for i := range c.Cases {
		p := &c.Cases[i]
		if err := c.reset(); err != nil {
			c.addf(p.name(), "%v", err)
			return ""
		}
		ctx, cancel := context.WithCancel(c.ctx)
		enter := cancel
		if p.Blocks {
			enter = func() { time.AfterFunc(blockedFor, cancel) }
		}
		w := c.watch(enter)
		k := c.run(ctx, stage{tool: w, timeout: max(c.Within, 20*blockedFor)}, p.Arguments)[0]
		early := p.Blocks && k.err == nil && ctx.Err() == nil
		cancel()
		switch {
		case k.err != nil:
			c.addf(p.name(), "%v", k.err)
		case early:
			c.addf(p.name(), "the case says Blocks, and the call returned before its context ended: %s", k.failure())
		case !w.returned(c.Within):
			c.hung[i] = true
			c.addf(p.name(), "the tool still runs %s after its context was canceled", c.Within)
		}
	}
	return ""
}

// timeout lets the calls that block run out of time.
func (c *checker) timeout() string {
	skip := "no case blocks: set Case.Blocks on a call that does not end by itself"
	for i := range c.Cases {
		p := &c.Cases[i]
		if !p.Blocks {
			continue
		}
		skip = ""
		if c.settings.Immediate {
			c.addf(p.name(), "the tool is immediate, so nothing ends a call of it that blocks: do not set Settings.Immediate")
			continue
		}
		if c.hung[i] { // it ignores its context, which cancel reports
			continue
		}
		if err := c.reset(); err != nil {
			c.addf(p.name(), "%v", err)
			return ""
		}
		w := c.watch(nil)
		k := c.run(c.ctx, stage{tool: w, timeout: blockedFor}, p.Arguments)[0]
		switch {
		case k.err != nil:
			c.addf(p.name(), "%v", k.err)
		case k.record.OK:
			c.addf(p.name(), "the call reports success after its time was over: return the error of the context: %s", k.failure())
		case !w.returned(c.Within):
			c.addf(p.name(), "the tool still runs %s after its time limit: it does not stop when its context ends", c.Within)
		}
	}
	return skip
}
