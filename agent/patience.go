package agent

import (
	"context"
	"sync"
	"time"
)

// patience is a context that ends after a time, whatever becomes of the one around
// it. Its timer is set when somebody waits for the end: a store in memory never does,
// and a run is stored twice in each turn.
type patience struct {
	context.Context // the one around it, of which only the values are heard
	ends            time.Time

	mu    sync.Mutex
	timed context.Context // that somebody waits for; nil: nobody does
	stop  context.CancelFunc
	over  bool
}

// withPatience is context.WithTimeout without the end of ctx.
func withPatience(ctx context.Context, limit time.Duration) *patience {
	return &patience{Context: context.WithoutCancel(ctx), ends: time.Now().Add(limit)}
}

// cancel ends the context. It must be called.
func (p *patience) cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if p.stop != nil {
		p.stop()
	}
}

func (p *patience) Deadline() (time.Time, bool) { return p.ends, true }

func (p *patience) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		p.timed, p.stop = context.WithDeadline(p.Context, p.ends)
		if p.over {
			p.stop()
		}
	}
	return p.timed.Done()
}

func (p *patience) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.timed != nil:
		return p.timed.Err()
	case p.over:
		return context.Canceled
	case !time.Now().Before(p.ends):
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Value finds the timer, too: contexts that are made of this one then need no
// goroutine to follow it.
func (p *patience) Value(key any) any {
	p.mu.Lock()
	timed := p.timed
	p.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return p.Context.Value(key)
}
