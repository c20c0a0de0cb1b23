package provider

import (
	"errors"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// Health remembers which models failed, so that they are left alone for a while.
// The zero value is ready. It is safe for concurrent use, and must not be copied.
type Health struct {
	// After is how many failures in a row bench a model; 0 means 3.
	After int
	// Bench is how long it is left alone then; it doubles with each failure that
	// follows, and begins anew after a success. 0 means 30 seconds.
	Bench time.Duration
	// Cap is the longest time; 0 means 10 minutes.
	Cap time.Duration

	testClock clock // nil means the system clock
	mu        sync.Mutex
	models    map[string]condition
}

// condition is how a model does.
type condition struct {
	failures int
	until    time.Time
}

// Benched reports whether a model is left alone, and until when.
func (h *Health) Benched(name string) (until time.Time, benched bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until = h.models[name].until
	// A time that is further off than any was made by a clock that was set back.
	left := until.Sub(h.now())
	return until, left > 0 && left <= h.cap()
}

// Succeeded says that a model answered, which makes up for everything.
func (h *Health) Succeeded(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.models, name)
}

// Failed says that a model did not. Where its server asks for a wait, it is left
// alone for that time at once.
func (h *Health) Failed(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.models[name]
	c.failures++
	wait := h.bench(c.failures)
	var api *dragoman.APIError
	if errors.As(err, &api) {
		wait = max(wait, min(api.RetryAfter, h.cap()))
	}
	if wait > 0 {
		c.until = h.now().Add(wait)
	}
	if h.models == nil || len(h.models) >= maxModels {
		h.forget()
	}
	h.models[name] = c
}

// maxModels is how many models are remembered: names may come from anybody.
const maxModels = 10_000

// forget leaves those that are benched, or nobody where those are too many.
func (h *Health) forget() {
	now, benched := h.now(), map[string]condition{}
	for name, c := range h.models {
		if c.until.After(now) {
			benched[name] = c
		}
	}
	if len(benched) >= maxModels {
		clear(benched)
	}
	h.models = benched
}

// bench is how long so many failures are worth.
func (h *Health) bench(failures int) time.Duration {
	after, d := h.After, h.Bench
	if after <= 0 {
		after = 3
	}
	if d <= 0 {
		d = 30 * time.Second
	}
	if failures < after {
		return 0
	}
	most := h.cap()
	for ; failures > after && d < most; failures-- {
		d *= 2
	}
	return min(d, most)
}

func (h *Health) cap() time.Duration {
	if h.Cap <= 0 {
		return 10 * time.Minute
	}
	return h.Cap
}

func (h *Health) now() time.Time {
	if h.testClock == nil {
		return time.Now()
	}
	return h.testClock.Now()
}
