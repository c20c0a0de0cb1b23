package peer

import (
	"context"
	"sync"
	"time"
)

// timer limits a call: the time since the last progress, and the whole time. It stops while a
// human is asked.
type timer struct {
	mu      sync.Mutex
	idle    time.Duration // limit without progress
	left    time.Duration // of the whole time, when it last started to run
	since   time.Time
	paused  int
	ended   bool
	short   *time.Timer
	long    *time.Timer
	expired context.CancelCauseFunc
}

// limit returns a context that ends with ErrTimeout.
func limit(ctx context.Context, idle, whole time.Duration) (context.Context, *timer) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := &timer{idle: min(idle, whole), left: whole, expired: cancel}
	t.run()
	return ctx, t
}

// run starts both limits; the caller holds t.mu or owns t.
func (t *timer) run() {
	t.since = time.Now()
	t.short = time.AfterFunc(t.idle, func() { t.expired(ErrTimeout) })
	t.long = time.AfterFunc(t.left, func() { t.expired(ErrTimeout) })
}

// restart begins the limit without progress again.
func (t *timer) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused == 0 && !t.ended {
		t.short.Reset(t.idle)
	}
}

// pause stops both limits until resume. It reports whether they ran.
func (t *timer) pause() (first bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused++
	if t.paused == 1 && !t.ended {
		t.short.Stop()
		t.long.Stop()
		t.left = max(0, t.left-time.Since(t.since))
	}
	return t.paused == 1
}

// resume ends a pause, and reports whether it was the last one.
func (t *timer) resume() (last bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused--
	if t.paused == 0 && !t.ended {
		t.run()
	}
	return t.paused == 0
}

// stop ends the limits and the context.
func (t *timer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	t.short.Stop()
	t.long.Stop()
	t.expired(context.Canceled)
}
