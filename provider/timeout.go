package provider

import (
	"context"
	"fmt"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// Timeouts limit the phases of a request. A negative value means no limit.
//
// FirstByte and Idle ignore heartbeats: comments and pings of a stream, events without content,
// and white space in a JSON body.
type Timeouts struct {
	// Connect limits the time to connect; 0 means 30 seconds.
	Connect time.Duration
	// FirstByte limits the time from the connection to the first content; 0 means 10 minutes.
	// Models that reason may send nothing for minutes.
	FirstByte time.Duration
	// Idle limits a pause of the response after content, or after its first byte if FirstByte
	// is negative; 0 means 5 minutes. The time that the caller takes between two events does
	// not count.
	Idle time.Duration
	// Total limits the whole request, including retries and the caller's own time between
	// events; 0 means one hour.
	Total time.Duration
}

// The phases of a request.
const (
	phaseConnect   = "connect"
	phaseFirstByte = "first byte"
	phaseIdle      = "idle"
	phaseTotal     = "total"
)

func (t Timeouts) of(p string) time.Duration {
	or := func(d, zero time.Duration) time.Duration {
		if d == 0 {
			return zero
		}
		return d
	}
	switch p {
	case phaseConnect:
		return or(t.Connect, 30*time.Second)
	case phaseFirstByte:
		return or(t.FirstByte, 10*time.Minute)
	case phaseIdle:
		return or(t.Idle, 5*time.Minute)
	default:
		return or(t.Total, time.Hour)
	}
}

// TimeoutError reports that a phase took longer than its limit. A retry may help, except after
// the total timeout.
type TimeoutError struct {
	// Phase is "connect", "first byte", "idle" or "total".
	Phase string
	After time.Duration
}

func (e *TimeoutError) Error() string {
	words := map[string]string{
		phaseConnect:   "no connection to the server within %v",
		phaseFirstByte: "the server sent no response within %v",
		phaseIdle:      "the stream sent nothing for more than %v",
		phaseTotal:     "the response was not complete within %v",
	}
	format := words[e.Phase]
	if format == "" {
		format = e.Phase + " took more than %v"
	}
	return "provider: " + fmt.Sprintf(format, e.After)
}

// Timeout returns true, like timeouts of package net.
func (e *TimeoutError) Timeout() bool { return true }

// Is reports whether target is context.DeadlineExceeded.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// watch cancels an attempt whose phase takes too long.
type watch struct {
	limits Timeouts
	clock  clock
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	timer   timer
	phase   string
	limit   time.Duration
	stopped bool

	// since is the start of the current wait for the server, in nanoseconds after started; 0 means
	// that there is no wait. quiet is the time of earlier waits in this phase without content.
	// They change with every chunk of a stream, and are atomic. Counting from started makes them
	// independent of changes to the clock.
	since, quiet atomic.Int64
	started      time.Time
}

// newWatch returns a watch that has not started.
func newWatch(clock clock, limits Timeouts, cancel context.CancelCauseFunc) *watch {
	return &watch{limits: limits, clock: clock, cancel: cancel}
}

// begin starts the watch in the phase that waits for the first byte.
func (w *watch) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started = w.clock.Now().Add(-1) // so that no phase begins at 0
	w.phase, w.limit = phaseFirstByte, w.limits.of(phaseFirstByte)
	w.beginWait()
	w.timer = w.clock.AfterFunc(w.next(), w.fire)
}

// next returns the time until the next check of a phase that begins now. A phase without a
// limit is checked too, because the phase may change.
func (w *watch) next() time.Duration {
	if w.limit > 0 {
		return w.limit
	}
	return time.Hour
}

// enter starts a phase.
func (w *watch) enter(p string) { w.enterWithLimit(p, w.limits.of(p)) }

// enterWithLimit starts a phase with its own limit.
func (w *watch) enterWithLimit(p string, limit time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil { // an Auth asks for its token before the watch begins
		return
	}
	w.quiet.Store(0)
	w.beginWait()
	if !w.stopped && (w.phase != p || w.limit != limit) {
		w.phase, w.limit = p, limit
		w.timer.Reset(w.next())
	}
}

// beginWait begins a wait for the server in the current phase; endWait ends it and returns its
// duration. Neither touches the timer, which reads since and quiet when it fires.
func (w *watch) beginWait() { w.since.Store(int64(w.clock.Now().Sub(w.started))) }

func (w *watch) endWait() time.Duration {
	since := w.since.Swap(0)
	if since == 0 {
		return 0
	}
	waited := max(0, int64(w.clock.Now().Sub(w.started))-since)
	w.quiet.Add(waited)
	return time.Duration(waited)
}

// progress records that content has arrived.
func (w *watch) progress() { w.quiet.Store(0) }

// bytesWithoutContent records that bytes without content have arrived. If the wait for content has
// no limit, the limit on pauses applies from then on.
func (w *watch) bytesWithoutContent() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.phase == phaseFirstByte && w.limit <= 0 {
		w.phase, w.limit = phaseIdle, w.limits.of(phaseIdle)
		w.quiet.Store(0)
		if !w.stopped {
			w.timer.Reset(w.next())
		}
	}
}

// currentLimit returns the bound of the current phase; zero or less means none.
func (w *watch) currentLimit() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit
}

// checkQuiet ends the attempt if the waits without content exceed the bound of the phase.
func (w *watch) checkQuiet() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if quiet := time.Duration(w.quiet.Load()); !w.stopped && w.limit > 0 && quiet >= w.limit {
		w.cancel(&TimeoutError{Phase: w.phase, After: w.limit})
	}
}

// fire cancels the attempt, or waits for the rest of the phase's time.
func (w *watch) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	since, now := w.since.Load(), int64(w.clock.Now().Sub(w.started))
	if since > now { // the clock went backwards: restart the phase
		w.since.CompareAndSwap(since, now)
		since = now
	}
	switch left := time.Duration(since-now-w.quiet.Load()) + w.limit; {
	case w.stopped:
	case w.limit <= 0 || since == 0:
		w.timer.Reset(w.next()) // overdue checks waits that end earlier
	case left > 0:
		w.timer.Reset(left)
	default:
		w.cancel(&TimeoutError{Phase: w.phase, After: w.limit})
	}
}

func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// trace lets the transport report when it connects. A transport that does not report it is
// limited only by the timeout for the first byte.
func (w *watch) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { w.enter(phaseConnect) },
		GotConn: func(httptrace.GotConnInfo) { w.enter(phaseFirstByte) },
	})
}
