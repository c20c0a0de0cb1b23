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

// Retry controls when a request is sent again: after an error that is [Retryable], and before
// the first event of a stream reached the caller.
type Retry struct {
	// Max is the number of retries; 0 means 2, a negative number means none.
	Max int
	// Base is the delay before the first retry if the server asks for none. It doubles each
	// time. 0 means half a second.
	Base time.Duration
	// Cap limits that delay; 0 means 8 seconds.
	Cap time.Duration
	// MaxRetryAfter is the longest delay that a server may ask for. If it asks for more, its error is
	// returned. 0 means one minute.
	MaxRetryAfter time.Duration
	// Jitter returns numbers from 0 to 1 that shorten each delay by up to half, unless the
	// server asked for the delay. Nil means random numbers.
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

func (r Retry) maxRetryAfter() time.Duration {
	if r.MaxRetryAfter == 0 {
		return time.Minute
	}
	return r.MaxRetryAfter
}

// backoff returns the delay before the n-th retry, starting at 1.
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

// retryAdvice holds what the response headers say about a retry, except for the delay, which is in
// the error.
type retryAdvice struct {
	// should is "true" or "false" if the server sent it, otherwise empty.
	should string
}

// waitToRetry decides what to do after a failed attempt: it waits and returns true, or returns
// false if the error is final. If the server refuses something that can be left out, waitToRetry
// removes it from the request, once.
func (x *exchange) waitToRetry(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if x.fixRequest(err) {
		x.logRetry(ctx, err, 0)
		return true
	}
	retry := x.client.Retry
	if x.attempts == 0 || x.attempts > retry.max()+x.fixes() || !x.retryable(err) {
		return false
	}
	wait := time.Duration(0)
	if api := (*dragoman.APIError)(nil); errors.As(err, &api) { // from the headers, the body or the stream
		wait = api.RetryAfter
	}
	switch {
	case wait > retry.maxRetryAfter():
		return false
	case wait == 0:
		wait = retry.backoff(x.attempts - x.fixes())
	}
	if x.endsWithin(ctx, wait) { // the time is better spent on another model
		return false
	}
	x.logRetry(ctx, err, wait)
	return sleep(ctx, x.clock, wait) == nil
}

// endsWithin reports whether the caller's deadline comes before the end of a wait.
func (x *exchange) endsWithin(ctx context.Context, wait time.Duration) bool {
	if !x.deadline.IsZero() && x.deadline.Sub(x.clock.Now()) <= wait {
		return true
	}
	deadline, ok := ctx.Deadline()
	// Context deadlines use the system clock.
	return ok && x.client.testClock == nil && time.Until(deadline) <= wait
}

// fixes returns the number of attempts that do not count as retries.
func (x *exchange) fixes() int {
	if x.fixed {
		return 1
	}
	return 0
}

func (x *exchange) retryable(err error) bool {
	switch x.retryAdvice.should {
	case "true":
		return true
	case "false":
		return false
	default:
		return Retryable(err)
	}
}

// redactError returns an error without secrets, for the caller.
func (x *exchange) redactError(err error) error { return x.secrets.error(err) }

// readRetryAdvice reads what the server says about a retry. It completes the error with the delay if
// that depends on the current time.
func (x *exchange) readRetryAdvice(h http.Header, e *dragoman.APIError) retryAdvice {
	now := x.clock.Now()
	if e.RetryAfter == 0 {
		if at, err := http.ParseTime(h.Get("Retry-After")); err == nil && at.After(now) {
			e.RetryAfter = at.Sub(now)
		}
	}
	if e.RetryAfter == 0 && e.Class == dragoman.ErrorRateLimit {
		e.RetryAfter = resetAfter(h, now)
	}
	return retryAdvice{should: strings.ToLower(strings.TrimSpace(h.Get("X-Should-Retry")))}
}

// limitHeaders returns the rate limit headers of the dialects and of other servers.
var limitHeaders = sync.OnceValue(func() (all []wire.RateLimit) {
	for _, codec := range dialects.All() {
		all = append(all, wire.Of(codec).Headers.RateLimits...)
	}
	return append(all,
		wire.RateLimit{Remaining: "X-Ratelimit-Remaining", Reset: "X-Ratelimit-Reset"},
		wire.RateLimit{Remaining: "Ratelimit-Remaining", Reset: "Ratelimit-Reset"})
})

// resetAfter returns the time until the last of the exhausted limits is reset.
func resetAfter(h http.Header, now time.Time) (wait time.Duration) {
	for _, l := range limitHeaders() {
		if left := strings.TrimSpace(h.Get(l.Remaining)); left == "0" {
			wait = max(wait, untilReset(strings.TrimSpace(h.Get(l.Reset)), now))
		}
	}
	return wait
}

// untilReset parses a reset: a duration ("6m0s"), a time, or a number. A number that is too
// large for a delay is a time in seconds or milliseconds.
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
