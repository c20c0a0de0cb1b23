package access

import (
	"math"
	"slices"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"golang.org/x/time/rate"
)

// account holds the counts of one key.
type account struct {
	mu sync.Mutex
	// key has the current limits.
	key Key
	// requests and tokens are nil if there is no limit.
	requests, tokens *rate.Limiter
	active           int
	// spent counts the tokens used in the current period, which ends at renews; reserved
	// counts those that requests under way may still use.
	spent, reserved int64
	renews          time.Time
}

// set changes the limits. Counts are unchanged: a longer budget begins with the tokens spent of
// the shorter one.
func (a *account) set(key Key, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renew(now)
	a.requests = limiter(a.requests, key.RequestsPerMinute, now)
	a.tokens = limiter(a.tokens, key.TokensPerMinute, now)
	if a.key.Budget.Per != key.Budget.Per {
		a.renews = periodEnd(key.Budget.Per, now)
	}
	a.key = key
}

// limiter returns a limiter of perMinute, derived from the existing one.
func limiter(l *rate.Limiter, perMinute int, now time.Time) *rate.Limiter {
	limit := rate.Limit(float64(perMinute) / time.Minute.Seconds())
	switch {
	case perMinute <= 0:
		return nil
	case l == nil:
		return rate.NewLimiter(limit, perMinute)
	default:
		l.SetLimitAt(now, limit)
		l.SetBurstAt(now, perMinute)
		return l
	}
}

// renew starts a new budget period if the old one is over.
func (a *account) renew(now time.Time) {
	if !now.Before(a.renews) {
		a.spent, a.renews = 0, periodEnd(a.key.Budget.Per, now)
	}
}

// retrySoon is the suggested wait if a request under way must end first; when that
// happens is unknown.
const retrySoon = time.Second

// enter takes a slot.
func (a *account) enter() *RefusedError {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.key.Parallel > 0 && a.active >= a.key.Parallel {
		return &RefusedError{Reason: TooManyAtOnce, Limit: int64(a.key.Parallel), RetryAfter: retrySoon}
	}
	a.active++
	return nil
}

// ready returns why a request would be refused now, or nil. It counts nothing.
func (a *account) ready(now time.Time) *RefusedError {
	a.mu.Lock()
	defer a.mu.Unlock()
	if refused := a.exhausted(now); refused != nil {
		return refused
	}
	if a.requests != nil && untilOne(a.requests, now) > 0 {
		return a.tooManyRequests(now)
	}
	return nil
}

// admit counts one more request and reserves tokens of the budget, or returns the reason
// for refusing it. Refused requests are not counted.
//
// A request is admitted as long as something of the budget is neither spent nor reserved,
// so the budget is exceeded by less than the estimate of the last request admitted.
//
// It returns how many tokens are reserved: fewer than the estimate where the sum of all
// reservations would overflow.
func (a *account) admit(estimate int64, now time.Time) (reserved int64, refused *RefusedError) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if refused := a.exhausted(now); refused != nil {
		return 0, refused
	}
	if refused := a.request(now); refused != nil {
		return 0, refused
	}
	reserved = min(estimate, math.MaxInt64-a.reserved)
	a.reserved += reserved
	return reserved, nil
}

// exhausted reports which limit of tokens is reached.
func (a *account) exhausted(now time.Time) *RefusedError {
	a.renew(now)
	switch b := a.key.Budget; {
	case b.Tokens > 0 && a.spent >= b.Tokens:
		return &RefusedError{Reason: BudgetSpent, Limit: b.Tokens, Per: b.Per, RetryAfter: roundUp(a.renews.Sub(now), time.Second)}
	case b.Tokens > 0 && add(a.spent, a.reserved) >= b.Tokens:
		return &RefusedError{Reason: BudgetReserved, Limit: b.Tokens, Per: b.Per, RetryAfter: retrySoon}
	case a.tokens != nil && untilOne(a.tokens, now) > 0:
		return &RefusedError{Reason: TooManyTokens, Limit: int64(a.key.TokensPerMinute), RetryAfter: untilOne(a.tokens, now)}
	default:
		return nil
	}
}

// countRequest counts a request that only the requests per minute limit.
func (a *account) countRequest(now time.Time) *RefusedError {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.request(now)
}

// request takes one of the requests of this minute.
func (a *account) request(now time.Time) *RefusedError {
	if a.requests == nil || a.requests.AllowN(now, 1) {
		return nil
	}
	return a.tooManyRequests(now)
}

func (a *account) tooManyRequests(now time.Time) *RefusedError {
	return &RefusedError{Reason: TooManyRequests, Limit: int64(a.key.RequestsPerMinute), RetryAfter: untilOne(a.requests, now)}
}

// untilOne returns the time until a bucket has one token.
func untilOne(l *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - l.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	seconds := min(missing/float64(l.Limit()), maxDebt*time.Minute.Seconds()) // if the limit was lowered since
	return roundUp(time.Duration(seconds*float64(time.Second)), time.Millisecond)
}

// roundUp rounds up, so that a client that waits this long need not retry twice.
func roundUp(d, unit time.Duration) time.Duration {
	return (d + unit - 1).Truncate(unit)
}

// maxDebt is the maximum debt of a bucket in minutes: the count of an upstream must not lock
// out a key for years.
const maxDebt = 24 * 60

// spend counts used tokens, of which some were reserved.
func (a *account) spend(n, reserved int64, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renew(now)
	a.spent = add(a.spent, n)
	a.reserved -= reserved
	if a.tokens == nil {
		return
	}
	most := int64(a.tokens.Burst())
	for range maxDebt { // a limiter gives no more at once than it can hold
		part := min(n, most)
		if n -= part; part <= 0 || a.tokens.TokensAt(now) < -maxDebt*float64(most) {
			return
		}
		a.tokens.ReserveN(now, int(part))
	}
}

// release ends a request and gives its reservation back.
func (a *account) release(reserved int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active--
	a.reserved -= reserved
}

// tokensOf returns the known tokens of a prompt and its response.
func tokensOf(u dragoman.Usage) int64 {
	return add(max(u.Input.Or(0), 0), max(u.Output.Or(0), 0))
}

// add adds two non-negative numbers, up to the maximum.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Lease is a request of a key: it holds a Parallel slot and, once admitted, a reservation
// of the key's budget, until it is released. It is safe for concurrent use; a nil Lease
// does nothing.
type Lease struct {
	key     *Key // nil where there are no keys
	account *account
	now     func() time.Time

	mu sync.Mutex
	// reserved is the rest of the reservation, spent the tokens used so far.
	reserved, spent    int64
	admitted, released bool
}

// Key returns the name of the key; empty if there are no keys.
func (l *Lease) Key() string {
	if l == nil || l.key == nil {
		return ""
	}
	return l.key.Name
}

// Ready reports whether Admit would refuse every model now, because of a rate or the
// budget. It counts nothing. The error is a [*RefusedError].
func (l *Lease) Ready() error {
	if l == nil || l.account == nil {
		return nil
	}
	return l.refused(l.account.ready(l.now()))
}

// Admit lets the request use a model, or returns a [*RefusedError]. It counts one of the
// requests per minute and reserves estimate tokens of the budget, which [Lease.Spend] and
// [Lease.Release] give back. An estimate of zero, for a request that uses no tokens,
// reserves nothing. Refused requests are not counted. A lease is admitted once; a second
// call changes nothing.
func (l *Lease) Admit(model string, estimate int64) error {
	if l == nil || l.account == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.admitted || l.released {
		return nil
	}
	if !l.key.Allows(model) {
		return &RefusedError{Reason: ModelNotAllowed, Key: l.key.Name, Model: model, Allowed: slices.Clone(l.key.Models)}
	}
	reserved, refused := l.account.admit(max(estimate, 0), l.now())
	if refused != nil {
		return l.refused(refused)
	}
	l.admitted, l.reserved = true, reserved
	return nil
}

// refused returns a refusal with the name of the key; nil for nil.
func (l *Lease) refused(e *RefusedError) error {
	if e == nil {
		return nil
	}
	e.Key = l.key.Name
	return e
}

// Spend records the total usage of the request so far; only the increase over earlier calls
// is counted. Used tokens replace the reservation until it is used up. Spend may be called
// after Release. It ignores unknown counts.
func (l *Lease) Spend(usage dragoman.Usage) {
	if l == nil || l.account == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	total := tokensOf(usage)
	if total <= l.spent {
		return
	}
	more := total - l.spent
	reserved := min(more, l.reserved)
	l.account.spend(more, reserved, l.now())
	l.spent, l.reserved = total, l.reserved-reserved
}

// Release ends the request: its slot and what is left of its reservation are free again.
// It may be called more than once.
func (l *Lease) Release() {
	if l == nil || l.account == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.released {
		l.released = true
		l.account.release(l.reserved)
		l.reserved = 0
	}
}
