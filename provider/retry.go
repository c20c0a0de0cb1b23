package provider

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
)

// Retry says when a request is sent again, after an error that is [Retryable]
// and before the first event of a stream reached the caller.
type Retry struct {
	// Max is how many times it is sent again; 0 means 2, a negative number never.
	Max int
	// Base is the wait before the first time, where the server asks for none; it
	// doubles each time. 0 means half a second.
	Base time.Duration
	// Cap bounds that wait; 0 means 8 seconds.
	Cap time.Duration
	// Longest is the longest wait that a server may ask for: where it asks for
	// more, its error is returned. 0 means one minute.
	Longest time.Duration
	// Jitter shortens each wait that no server asked for, by up to half: it
	// returns numbers from 0 to 1. Nil means random ones.
	Jitter func() float64
}

func (r Retry) max() int {
	switch {
	case r.Max < 0:
		return 0
	case r.Max == 0:
		return 2
	default:
		return r.Max
	}
}

func (r Retry) longest() time.Duration {
	if r.Longest == 0 {
		return time.Minute
	}
	return r.Longest
}

// backoff is the wait before the n-th retry, from 1.
func (r Retry) backoff(n int) time.Duration {
	base, most := r.Base, r.Cap
	if base <= 0 {
		base = 500 * time.Millisecond
	}
	if most <= 0 {
		most = 8 * time.Second
	}
	d := min(base, most)
	for ; n > 1 && d < most; n-- {
		d = min(2*d, most)
	}
	jitter := rand.Float64
	if r.Jitter != nil {
		jitter = r.Jitter
	}
	return d - time.Duration(float64(d)/2*min(max(jitter(), 0), 1))
}

// asked is what the headers of an answer say of asking again, except for the wait, which
// is in the error.
type asked struct {
	// should is "true" or "false" where the server says it.
	should string
}

// again decides what comes after an attempt that failed: it waits and returns
// true, or returns false where the error is the last word. A request that the
// server refuses for what can be left out is sent without it, once.
func (x *exchange) again(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if x.cure(err) {
		x.logRetry(ctx, err, 0)
		return true
	}
	retry := x.client.Retry
	if x.tries == 0 || x.tries > retry.max()+x.cures() || !x.retryable(err) {
		return false
	}
	wait := time.Duration(0)
	if api := (*dragoman.APIError)(nil); errors.As(err, &api) { // of the headers, the body or the stream
		wait = api.RetryAfter
	}
	switch {
	case wait > retry.longest():
		return false
	case wait == 0:
		wait = retry.backoff(x.tries - x.cures())
	}
	if x.endsWithin(ctx, wait) { // the time is better spent on another model
		return false
	}
	x.logRetry(ctx, err, wait)
	return sleep(ctx, x.clock, wait) == nil
}

// endsWithin reports whether the caller's time is over before a wait is.
func (x *exchange) endsWithin(ctx context.Context, wait time.Duration) bool {
	if !x.ends.IsZero() && x.ends.Sub(x.clock.Now()) <= wait {
		return true
	}
	deadline, ok := ctx.Deadline()
	// A deadline is told by the system's clock.
	return ok && x.client.testClock == nil && time.Until(deadline) <= wait
}

// cures is how many attempts were no retries.
func (x *exchange) cures() int {
	if x.cured {
		return 1
	}
	return 0
}

func (x *exchange) retryable(err error) bool {
	switch x.asked.should {
	case "true":
		return true
	case "false":
		return false
	default:
		return Retryable(err)
	}
}

// told is an error as the caller sees it.
func (x *exchange) told(err error) error { return x.secrets.error(err) }

// readAsked reads what a server says of asking again, and completes the error
// with the wait where only who has a clock can tell it.
func (x *exchange) readAsked(h http.Header, e *dragoman.APIError) asked {
	now := x.clock.Now()
	if e.RetryAfter == 0 {
		if at, err := http.ParseTime(h.Get("Retry-After")); err == nil && at.After(now) {
			e.RetryAfter = at.Sub(now)
		}
	}
	if e.RetryAfter == 0 && e.Class == dragoman.ErrorRateLimit {
		e.RetryAfter = resetAfter(h, now)
	}
	return asked{should: strings.ToLower(strings.TrimSpace(h.Get("X-Should-Retry")))}
}

// limitHeaders returns the headers about limits: those of the dialects, and those that
// other servers send.
var limitHeaders = sync.OnceValue(func() (all []wire.RateLimit) {
	for _, codec := range dialects.All() {
		all = append(all, wire.Of(codec).Headers.RateLimits...)
	}
	return append(all,
		wire.RateLimit{Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset"},
		wire.RateLimit{Remaining: "Ratelimit-Remaining", Reset: "Ratelimit-Reset"})
})

// resetAfter is when the last of the limits that are used up begins anew.
func resetAfter(h http.Header, now time.Time) (wait time.Duration) {
	for _, l := range limitHeaders() {
		if left := strings.TrimSpace(h.Get(l.Remaining)); left == "0" {
			wait = max(wait, untilReset(strings.TrimSpace(h.Get(l.Reset)), now))
		}
	}
	return wait
}

// untilReset reads a reset: a duration ("6m0s"), a time, or a number, which is a
// time in seconds or milliseconds where it is too large for a wait.
func untilReset(s string, now time.Time) time.Duration {
	var at time.Time
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		switch {
		case n >= 1e11 && n < 1e14:
			at = time.UnixMilli(int64(n))
		case n >= 1e9 && n < 1e11:
			at = time.Unix(int64(n), 0)
		case n > 0 && n < 1e9:
			return time.Duration(n * float64(time.Second))
		default:
			return 0
		}
		return max(0, at.Sub(now))
	}
	if d, err := time.ParseDuration(s); err == nil {
		return max(0, d)
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
