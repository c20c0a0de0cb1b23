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
	// After is the number of failures in a row after which a model is skipped; 0 means 3.
	After int
	// Cooldown is the time for which a model is skipped. It doubles with each further failure; a
	// success resets it. 0 means 30 seconds.
	Cooldown time.Duration
	// MaxCooldown limits Cooldown; 0 means 10 minutes.
	MaxCooldown time.Duration

	testClock clock // nil means the system clock
	mu        sync.Mutex
	models    map[string]modelHealth
}

// modelHealth is the recorded state of a model.
type modelHealth struct {
	failures int
	until    time.Time
}

// SkippedUntil reports whether a model is to be skipped, and until when.
func (h *Health) SkippedUntil(name string) (until time.Time, skipped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	until = h.models[name].until
	// A time further away than the longest cooldown means that the clock was set back.
	left := until.Sub(h.now())
	return until, left > 0 && left <= h.maxCooldown()
}

// Succeeded records that a model responded. It clears all failures.
func (h *Health) Succeeded(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.models, name)
}

// Failed records that a model failed. If its server asked for a delay, the model is skipped for
// that time at once.
func (h *Health) Failed(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.models[name]
	c.failures++
	wait := h.cooldown(c.failures)
	var api *dragoman.APIError
	if errors.As(err, &api) {
		wait = max(wait, min(api.RetryAfter, h.maxCooldown()))
	}
	if wait > 0 {
		c.until = h.now().Add(wait)
	}
	if h.models == nil || len(h.models) >= maxModels {
		h.prune()
	}
	h.models[name] = c
}

// maxModels limits the number of recorded models, because names may come from clients.
const maxModels = 10_000

// prune removes the models that are not skipped, or all of them if too many are skipped.
func (h *Health) prune() {
	now, skipped := h.now(), map[string]modelHealth{}
	for name, c := range h.models {
		if c.until.After(now) {
			skipped[name] = c
		}
	}
	if len(skipped) >= maxModels {
		clear(skipped)
	}
	h.models = skipped
}

// cooldown returns the cooldown after this many failures.
func (h *Health) cooldown(failures int) time.Duration {
	after, d := h.After, h.Cooldown
	if after <= 0 {
		after = 3
	}
	if d <= 0 {
		d = 30 * time.Second
	}
	if failures < after {
		return 0
	}
	most := h.maxCooldown()
	for ; failures > after && d < most; failures-- {
		d *= 2
	}
	return min(d, most)
}

func (h *Health) maxCooldown() time.Duration {
	if h.MaxCooldown <= 0 {
		return 10 * time.Minute
	}
	return h.MaxCooldown
}

func (h *Health) now() time.Time {
	if h.testClock == nil {
		return time.Now()
	}
	return h.testClock.Now()
}
