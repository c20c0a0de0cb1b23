package access

import (
	"math"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"golang.org/x/time/rate"
)

// account is what is counted of one key.
type account struct {
	mu sync.Mutex
	// key has the bounds that hold now.
	key Key
	// requests and tokens are nil where there is no bound.
	requests, tokens *rate.Limiter
	active           int
	// spent is what was used until renews.
	spent  int64
	renews time.Time
}

// set changes the bounds. What was counted stays: a budget that is made longer
// begins with what was spent of the shorter one.
func (a *account) set(key Key, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renew(now)
	a.requests = limiter(a.requests, key.RequestsPerMinute, now)
	a.tokens = limiter(a.tokens, key.TokensPerMinute, now)
	if a.key.Budget.Per != key.Budget.Per {
		a.renews = key.Budget.Per.end(now)
	}
	a.key = key
}

// limiter is one of so many per minute, made of the one there is.
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

// renew begins a new budget where the old one is over.
func (a *account) renew(now time.Time) {
	if !now.Before(a.renews) {
		a.spent, a.renews = 0, a.key.Budget.Per.end(now)
	}
}

// retryAtOnce is when to ask again where too many requests are under way: nobody
// knows when one will end.
const retryAtOnce = time.Second

// admit counts one more request, or says why not. What is refused is not counted.
func (a *account) admit(now time.Time) *RefusedError {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renew(now)
	switch b := a.key.Budget; {
	case b.Tokens > 0 && a.spent >= b.Tokens:
		return &RefusedError{Reason: BudgetSpent, Limit: b.Tokens, Per: b.Per, RetryAfter: roundUp(a.renews.Sub(now), time.Second)}
	case a.key.Parallel > 0 && a.active >= a.key.Parallel:
		return &RefusedError{Reason: TooManyAtOnce, Limit: int64(a.key.Parallel), RetryAfter: retryAtOnce}
	case a.tokens != nil && untilOne(a.tokens, now) > 0:
		return &RefusedError{Reason: TooManyTokens, Limit: int64(a.key.TokensPerMinute), RetryAfter: untilOne(a.tokens, now)}
	}
	if refused := a.request(now); refused != nil {
		return refused
	}
	a.active++
	return nil
}

// visit counts one more request that nothing but its minute bounds.
func (a *account) visit(now time.Time) *RefusedError {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.request(now)
}

// request takes one of the requests of this minute.
func (a *account) request(now time.Time) *RefusedError {
	if a.requests == nil || a.requests.AllowN(now, 1) {
		return nil
	}
	return &RefusedError{Reason: TooManyRequests, Limit: int64(a.key.RequestsPerMinute), RetryAfter: untilOne(a.requests, now)}
}

// untilOne is how long it takes until a bucket holds one.
func untilOne(l *rate.Limiter, now time.Time) time.Duration {
	missing := 1 - l.TokensAt(now)
	if missing <= 0 {
		return 0
	}
	seconds := min(missing/float64(l.Limit()), maxDebt*time.Minute.Seconds()) // where the bound was lowered since
	return roundUp(time.Duration(seconds*float64(time.Second)), time.Millisecond)
}

// roundUp rounds so that who waits for so long need not ask twice.
func roundUp(d, unit time.Duration) time.Duration {
	return (d + unit - 1).Truncate(unit)
}

// maxDebt is how many minutes a bucket may be in debt, at most: what an upstream says
// it counted must not lock a key out for years.
const maxDebt = 24 * 60

// spend takes tokens that were used.
func (a *account) spend(n int64, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.renew(now)
	a.spent = add(a.spent, n)
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

// release ends a request.
func (a *account) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active--
}

// tokensOf are those of a prompt and its answer, as far as they are known.
func tokensOf(u dragoman.Usage) int64 {
	return add(max(u.Input.Or(0), 0), max(u.Output.Or(0), 0))
}

// add adds two numbers that are not negative, up to the largest there is.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Lease is a request that was admitted. It is safe for concurrent use; a nil Lease
// does nothing.
type Lease struct {
	key     string
	account *account
	now     func() time.Time

	mu       sync.Mutex
	spent    int64
	released bool
}

// Key is the name of the key; empty where there are none.
func (l *Lease) Key() string {
	if l == nil {
		return ""
	}
	return l.key
}

// Spend says what the request used so far, all together: of what is said again, only
// what is more is taken. It may come after Release. What is unknown counts nothing.
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
	l.account.spend(total-l.spent, l.now())
	l.spent = total
}

// Release says that the request is over. It may be called more than once.
func (l *Lease) Release() {
	if l == nil || l.account == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.released {
		l.released = true
		l.account.release()
	}
}
