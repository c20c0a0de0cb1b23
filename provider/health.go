package provider

import (
	"errors"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// Health records which models failed, so that chains skip them for a while. The zero value is
// ready to use. A Health is safe for concurrent use and must not be copied.
type Health struct {
	// After is the number of failures in a row after which a model is benched; 0 means 3.
	After int
	// Bench is how long a model is skipped. It doubles with each further failure and is reset
	// by a success. 0 means 30 seconds.
	Bench time.Duration
	// Cap limits Bench; 0 means 10 minutes.
	Cap time.Duration

	testClock clock // nil means the system clock
	mu        sync.Mutex
	models    map[string]condition
}

// condition is the recorded state of a model.
type condition struct {
	failures int
	until    time.Time
}

// Benched reports whether a model is to be skipped, and until when.
func (h *Health) Benched(name string) (until time.Time, benched bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until = h.models[name].until
	// A time further away than the longest bench means that the clock was set back.
	left := until.Sub(h.now())
	return until, left > 0 && left <= h.cap()
}

// Succeeded records that a model responded. It clears all failures.
func (h *Health) Succeeded(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.models, name)
}

// Failed records that a model failed. If its server asked for a delay, the model is benched for
// that time at once.
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

// maxModels limits the number of recorded models, because names may come from clients.
const maxModels = 10_000

// forget removes the models that are not benched, or all of them if too many are benched.
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

// bench returns the bench time after this many failures.
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
