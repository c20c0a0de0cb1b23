package access_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/access"
)

const secret = "sk-of-the-team-0123456789"

func key(name, secret string) access.Key {
	return access.Key{Name: name, Hash: access.HashOf(secret)}
}

func newKeys(t *testing.T, keys ...access.Key) *access.Keys {
	t.Helper()
	k, err := access.New(keys, access.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// admit requests a model with the team's key, and returns the reason of a refusal; "" if it is
// admitted.
func admit(t *testing.T, k *access.Keys) (*access.Lease, access.Reason, time.Duration) {
	t.Helper()
	lease, err := k.Admit(t.Context(), secret, "m", 0)
	if err == nil {
		return lease, "", 0
	}
	var refused *access.RefusedError
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if refused.Key != "team" {
		t.Errorf("the refusal is of the key %q", refused.Key)
	}
	return nil, refused.Reason, refused.RetryAfter
}

// spend makes a request that uses tokens.
func spend(t *testing.T, k *access.Keys, tokens int64) {
	t.Helper()
	lease, why, _ := admit(t, k)
	if why != "" {
		t.Fatalf("refused: %s", why)
	}
	lease.Spend(used(tokens))
	lease.Release()
}

func used(tokens int64) dragoman.Usage {
	return dragoman.Usage{Input: dragoman.Counted(tokens / 2), Output: dragoman.Counted(tokens - tokens/2)}
}

// want compares the refusal of a request.
func want(t *testing.T, k *access.Keys, reason access.Reason, after time.Duration) {
	t.Helper()
	lease, why, wait := admit(t, k)
	lease.Release()
	if why != reason || wait != after {
		t.Fatalf("refused with %q for %v, want %q for %v", why, wait, reason, after)
	}
}

func TestG3_OnlyKnownKeysAreAdmittedToTheirModels(t *testing.T) {
	one := key("one", "secret-one")
	one.Models = []string{"fast", "openai/*"}
	k := newKeys(t, one, key("two", "secret-two"))
	for _, tc := range []struct {
		presented, model string
		key              string
		reason           access.Reason
		class            dragoman.ErrorClass
		status           int
	}{
		{"secret-one", "fast", "one", "", "", 0},
		{"secret-one", "openai/a/b", "one", "", "", 0},
		{"secret-one", "faster", "", access.ModelNotAllowed, dragoman.ErrorPermission, 403},
		{"secret-one", "openai/" + strings.Repeat("x", 1024-len("openai/")), "one", "", "", 0},
		{"secret-one", "openai/" + strings.Repeat("x", 1025-len("openai/")), "", access.ModelNotAllowed, dragoman.ErrorPermission, 403},
		{"secret-two", "faster", "two", "", "", 0},
		{"secret-three", "fast", "", access.UnknownKey, dragoman.ErrorAuth, 401},
		{"secret-on", "fast", "", access.UnknownKey, dragoman.ErrorAuth, 401},
		{"", "fast", "", access.NoKey, dragoman.ErrorAuth, 401},
	} {
		lease, err := k.Admit(t.Context(), tc.presented, tc.model, 0)
		if tc.reason == "" {
			if err != nil || lease.Key() != tc.key {
				t.Errorf("%s for %s: %q, %v", tc.presented, tc.model, lease.Key(), err)
			}
			continue
		}
		var refused *access.RefusedError
		if !errors.As(err, &refused) || refused.Reason != tc.reason {
			t.Errorf("%s for %s: %v, want %s", tc.presented, tc.model, err, tc.reason)
			continue
		}
		api := refused.API()
		if api.Class != tc.class || api.Status != tc.status || !errors.Is(api, error(refused)) {
			t.Errorf("%s: %+v", tc.reason, api)
		}
		if tc.presented != "" && strings.Contains(api.Error()+err.Error(), tc.presented) {
			t.Errorf("the error tells the key: %v", api)
		}
		if tc.reason == access.ModelNotAllowed && !strings.Contains(api.Message, "allowed models are fast, openai/*") {
			t.Errorf("the error does not say what is allowed: %s", api.Message)
		}
	}
	if id, err := k.Identify("secret-one"); err != nil || id.Name != "one" || !id.Allows("fast") || id.Allows("slow") {
		t.Errorf("identified as %+v, %v", id, err)
	}
	if _, err := k.Identify("secret-three"); err == nil {
		t.Error("identified a stranger")
	}
}

// A refusal lists at most twenty of the models that a key may use, and counts the others.
func TestRefusalListsAtMostTwentyModels(t *testing.T) {
	for _, tc := range []struct {
		models int
		want   string
	}{
		{20, ", m20"},
		{21, ", m20 and 1 more"},
		{45, ", m20 and 25 more"},
	} {
		one := key("one", "secret-one")
		for i := range tc.models {
			one.Models = append(one.Models, fmt.Sprintf("m%d", i+1))
		}
		_, err := newKeys(t, one).Admit(t.Context(), "secret-one", "other", 0)
		if err == nil || !strings.HasSuffix(err.Error(), tc.want) {
			t.Errorf("%d models: %v, want an error that ends with %q", tc.models, err, tc.want)
		}
	}
}

// During a rotation the old and the new secret are one key with one account.
func TestG3_KeyHasTwoSecretsDuringRotation(t *testing.T) {
	one := key("one", "secret-old")
	one.Parallel = 1
	k := newKeys(t, one, key("two", "secret-two"))
	change := one
	change.Hash, change.MoreHashes = access.HashOf("secret-new"), [][32]byte{access.HashOf("secret-old")}
	lease, err := k.Admit(t.Context(), "secret-old", "m", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Replace([]access.Key{change, key("two", "secret-two")}); err != nil {
		t.Fatal(err)
	}
	for _, presented := range []string{"secret-old", "secret-new"} {
		if id, err := k.Identify(presented); err != nil || id.Name != "one" {
			t.Errorf("%s: %+v, %v", presented, id, err)
		}
		var refused *access.RefusedError
		if _, err := k.Admit(t.Context(), presented, "m", 0); !errors.As(err, &refused) || refused.Reason != access.TooManyAtOnce {
			t.Errorf("%s has an account of its own: %v", presented, err)
		}
	}
	lease.Release()
	if id, err := k.Identify("secret-two"); err != nil || id.Name != "two" {
		t.Errorf("%+v, %v", id, err)
	}
	change.MoreHashes = nil
	if err := k.Replace([]access.Key{change}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Identify("secret-old"); err == nil {
		t.Error("the old secret is still taken")
	}
	var bad *access.KeyError
	for _, also := range [][][32]byte{{{}}, {access.HashOf("")}, {change.Hash}, {access.HashOf("secret-two")}} {
		change.MoreHashes = also
		if err := k.Replace([]access.Key{key("two", "secret-two"), change}); !errors.As(err, &bad) || bad.Key != "one" {
			t.Errorf("%x: %v", also, err)
		}
	}
}

func TestWithoutKeysEveryClientIsAdmitted(t *testing.T) {
	k := newKeys(t)
	lease, err := k.Admit(t.Context(), "anything", "m", 0)
	if err != nil || lease.Key() != "" || !k.Open() {
		t.Fatalf("%+v, %v", lease, err)
	}
	lease.Spend(used(5))
	lease.Release()
	lease.Release()
	if id, err := k.Identify(""); err != nil || id.Name != "" || !id.Allows("m") {
		t.Errorf("%+v, %v", id, err)
	}
	if err := k.Replace([]access.Key{key("team", secret)}); err != nil || k.Open() {
		t.Fatal(err)
	}
	if _, err := k.Admit(t.Context(), "anything", "m", 0); err == nil {
		t.Error("a stranger was admitted once there were keys")
	}
}

func TestG3_RequestsPerMinuteRefillEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := key("team", secret)
		team.RequestsPerMinute = 3
		k := newKeys(t, team)
		for range 3 {
			want(t, k, "", 0)
		}
		for range 5 { // refused requests are not counted
			want(t, k, access.TooManyRequests, 20*time.Second)
		}
		time.Sleep(20 * time.Second)
		want(t, k, "", 0)
		want(t, k, access.TooManyRequests, 20*time.Second)
		time.Sleep(time.Hour)
		for range 3 {
			want(t, k, "", 0)
		}
		want(t, k, access.TooManyRequests, 20*time.Second)
	})
}

// Waiting for RetryAfter is enough, for all numbers.
func TestRetryAfterIsSufficient(t *testing.T) {
	for _, perMinute := range []int{1, 7, 59, 61, 1009} {
		synctest.Test(t, func(t *testing.T) {
			team := key("team", secret)
			team.RequestsPerMinute, team.TokensPerMinute = perMinute, perMinute
			k := newKeys(t, team)
			for i := range 50 {
				lease, why, wait := admit(t, k)
				if why != "" {
					time.Sleep(wait)
					if lease, why, wait = admit(t, k); why == access.TooManyTokens { // and then for the other
						t.Fatalf("%d per minute: refused again after the wait, for %v", perMinute, wait)
					} else if why != "" {
						time.Sleep(wait)
						if lease, why, wait = admit(t, k); why != "" {
							t.Fatalf("%d per minute: %s again, for %v", perMinute, why, wait)
						}
					}
				}
				lease.Spend(used(int64(i * 3)))
				lease.Release()
			}
		})
	}
}

func TestG3_TokenDebtBlocksUntilPaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := key("team", secret)
		team.TokensPerMinute = 600
		k := newKeys(t, team)
		spend(t, k, 100)
		spend(t, k, 2000) // of the 500 that are left
		want(t, k, access.TooManyTokens, 150100*time.Millisecond)
		time.Sleep(150 * time.Second)
		want(t, k, access.TooManyTokens, 100*time.Millisecond)
		time.Sleep(100 * time.Millisecond)
		want(t, k, "", 0)
	})
}

// An upstream may report any count.
func TestTokenDebtLastsAtMostADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := key("team", secret)
		team.TokensPerMinute = 1
		k := newKeys(t, team)
		var leases []*access.Lease
		for range 3 {
			lease, _, _ := admit(t, k)
			leases = append(leases, lease)
		}
		for _, lease := range leases {
			lease.Spend(used(math.MaxInt64))
		}
		if _, why, wait := admit(t, k); why != access.TooManyTokens || wait > 24*time.Hour {
			t.Errorf("%s for %v", why, wait)
		}
		time.Sleep(24*time.Hour + 2*time.Minute)
		want(t, k, "", 0)
	})
}

func TestTooLargeNumbersSaturate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := key("team", secret)
		team.Budget = access.Budget{Tokens: math.MaxInt64, Per: access.Day}
		k := newKeys(t, team)
		lease, _, _ := admit(t, k)
		lease.Spend(dragoman.Usage{Input: dragoman.Counted(math.MaxInt64), Output: dragoman.Counted(math.MaxInt64)})
		want(t, k, access.BudgetSpent, 24*time.Hour)
	})
}

func TestUnknownTokensAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := key("team", secret)
		team.Budget = access.Budget{Tokens: 10, Per: access.Hour}
		k := newKeys(t, team)
		lease, _, _ := admit(t, k)
		time.Sleep(61 * time.Minute) // it ends in the next hour
		lease.Spend(used(10))
		want(t, k, access.BudgetSpent, 59*time.Minute)
	})
}

func TestSpendCountsOnlyTheIncrease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := key("team", secret)
		team.Budget = access.Budget{Tokens: 100, Per: access.Hour}
		k := newKeys(t, team)
		lease, _, _ := admit(t, k)
		lease.Spend(dragoman.Usage{Input: dragoman.Counted(60)})
		lease.Spend(dragoman.Usage{Input: dragoman.Counted(60), Output: dragoman.Counted(10)})
		lease.Spend(dragoman.Usage{Input: dragoman.Counted(60), Output: dragoman.Counted(39)})
		lease.Spend(dragoman.Usage{Input: dragoman.Counted(-5)})
		lease.Spend(dragoman.Usage{})
		lease.Release()
		want(t, k, "", 0) // 99 of 100
		lease.Spend(dragoman.Usage{Input: dragoman.Counted(60), Output: dragoman.Counted(40)})
		want(t, k, access.BudgetSpent, time.Hour)
		lease.Spend(dragoman.Usage{Input: dragoman.Counted(math.MaxInt64), Output: dragoman.Counted(math.MaxInt64)})
		want(t, k, access.BudgetSpent, time.Hour)
	})
}

func TestG3_ParallelRequestsAreBounded(t *testing.T) {
	team := key("team", secret)
	team.Parallel = 2
	k := newKeys(t, team)
	first, _, _ := admit(t, k)
	_, _, _ = admit(t, k)
	want(t, k, access.TooManyAtOnce, time.Second)
	first.Release()
	first.Release() // frees one place only
	_, why, _ := admit(t, k)
	if why != "" {
		t.Fatalf("refused: %s", why)
	}
	want(t, k, access.TooManyAtOnce, time.Second)
}

func TestG3_VisitIsLimitedByRequestsPerMinuteOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := key("team", secret)
		team.RequestsPerMinute, team.TokensPerMinute, team.Parallel, team.Budget = 4, 10, 1, access.Budget{Tokens: 10, Per: access.Day}
		k := newKeys(t, team)
		if _, why, _ := admit(t, k); why != "" { // in progress until the end
			t.Fatal(why)
		}
		want(t, k, access.TooManyAtOnce, time.Second)
		for range 3 {
			if err := k.Visit(secret); err != nil {
				t.Fatal(err)
			}
		}
		var refused *access.RefusedError
		if err := k.Visit(secret); !errors.As(err, &refused) || refused.Reason != access.TooManyRequests || refused.Key != "team" || refused.Limit != 4 || refused.RetryAfter != 15*time.Second {
			t.Errorf("%+v", err)
		}
		if err := k.Visit("another"); !errors.As(err, &refused) || refused.Reason != access.UnknownKey {
			t.Errorf("%+v", err)
		}
		time.Sleep(15 * time.Second)
		if err := k.Visit(secret); err != nil {
			t.Error(err)
		}
	})
	if err := newKeys(t).Visit(""); err != nil {
		t.Errorf("without keys: %v", err)
	}
}

func TestG3_BudgetsRenewWithTheCalendar(t *testing.T) {
	for _, tc := range []struct {
		per access.Period
		now string
		end string
	}{
		{access.Hour, "2026-12-31T23:59:59.5Z", "2027-01-01T00:00:00Z"},
		{access.Hour, "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z"},
		{access.Day, "2028-02-28T05:00:00Z", "2028-02-29T00:00:00Z"},
		{access.Day, "2026-06-01T23:30:00-05:00", "2026-06-03T00:00:00Z"},
		{access.Month, "2026-01-31T12:00:00Z", "2026-02-01T00:00:00Z"},
		{access.Month, "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
	} {
		parse := func(s string) time.Time {
			at, err := time.Parse(time.RFC3339Nano, s)
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
		now, end := parse(tc.now), parse(tc.end)
		team := key("team", secret)
		team.Budget = access.Budget{Tokens: 10, Per: tc.per}
		k, err := access.New([]access.Key{team}, access.Options{Now: func() time.Time { return now }})
		if err != nil {
			t.Fatal(err)
		}
		spend(t, k, 9)
		spend(t, k, 9)
		_, err = k.Admit(t.Context(), secret, "m", 0)
		var refused *access.RefusedError
		if !errors.As(err, &refused) || refused.Reason != access.BudgetSpent {
			t.Fatalf("%s: %v", tc.per, err)
		}
		if got := now.Add(refused.RetryAfter); got.Before(end) || got.Sub(end) >= time.Second {
			t.Errorf("per %s at %s: begins again at %v, want %s", tc.per, tc.now, got, tc.end)
		}
		// Clients wait for a rate limit, and stop at a quota.
		if api := refused.API(); api.Class != dragoman.ErrorQuota || api.Status != 429 || api.Retryable() || api.RetryAfter != refused.RetryAfter {
			t.Errorf("%+v", api)
		}
		now = end.Add(-time.Nanosecond)
		want(t, k, access.BudgetSpent, time.Second)
		now = end
		want(t, k, "", 0)
	}
}

func TestG4_ReplacedKeysKeepTheirCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team, other := key("team", secret), key("other", "secret-two")
		team.Budget = access.Budget{Tokens: 100, Per: access.Day}
		team.RequestsPerMinute, team.Parallel = 2, 1
		k := newKeys(t, team, other)
		lease, _, _ := admit(t, k)
		lease.Spend(used(99))

		rotated := team
		rotated.Hash = access.HashOf("secret-new")
		replace(t, k, rotated)
		if _, err := k.Admit(t.Context(), secret, "m", 0); err == nil {
			t.Fatal("the old secret is still good")
		}
		if _, err := k.Admit(t.Context(), "secret-two", "m", 0); err == nil {
			t.Fatal("a key that is gone is still good")
		}
		replace(t, k, team, other)
		want(t, k, access.TooManyAtOnce, time.Second) // the first is still under way
		lease.Release()
		want(t, k, "", 0)
		want(t, k, access.TooManyRequests, 30*time.Second)

		team.RequestsPerMinute = 0
		replace(t, k, team)
		want(t, k, "", 0)
		lease.Spend(used(100)) // of an earlier request
		want(t, k, access.BudgetSpent, 24*time.Hour)
		team.Budget.Per = access.Hour
		replace(t, k, team)
		want(t, k, access.BudgetSpent, time.Hour)
		team.Budget.Tokens = 101
		replace(t, k, team)
		want(t, k, "", 0)

		replace(t, k, other)
		replace(t, k, team)
		spend(t, k, 100) // the counts of a removed key are dropped
		want(t, k, "", 0)
	})
}

func replace(t *testing.T, k *access.Keys, keys ...access.Key) {
	t.Helper()
	if err := k.Replace(keys); err != nil {
		t.Fatal(err)
	}
}

func TestLoweredLimitsApplyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := key("team", secret)
		team.RequestsPerMinute, team.TokensPerMinute = 1000, 1_000_000
		k := newKeys(t, team)
		spend(t, k, 1_000_000_000)
		team.RequestsPerMinute, team.TokensPerMinute = 1, 1
		replace(t, k, team)
		if _, why, wait := admit(t, k); why != access.TooManyTokens || wait <= 0 || wait > 24*time.Hour {
			t.Errorf("%s for %v", why, wait)
		}
		team.TokensPerMinute = 0
		replace(t, k, team)
		want(t, k, "", 0)
		want(t, k, access.TooManyRequests, time.Minute)
	})
}

func TestInvalidKeysAreRefused(t *testing.T) {
	good := key("team", secret)
	with := func(change func(*access.Key)) access.Key {
		k := key("other", "secret-two")
		change(&k)
		return k
	}
	k := newKeys(t, good)
	for reason, bad := range map[string]access.Key{
		"the name is missing":              with(func(k *access.Key) { k.Name = "" }),
		"the hash is missing":              with(func(k *access.Key) { k.Hash = [32]byte{} }),
		"hash of an empty key":             with(func(k *access.Key) { k.Hash = access.HashOf("") }),
		"same secret as the key team":      with(func(k *access.Key) { k.Hash = good.Hash }),
		"the name is used twice":           with(func(k *access.Key) { k.Name = "team" }),
		"limit is negative":                with(func(k *access.Key) { k.Parallel = -1 }),
		`per "week"; want hour, day or`:    with(func(k *access.Key) { k.Budget = access.Budget{Tokens: 1, Per: "week"} }),
		"list of models is empty":          with(func(k *access.Key) { k.Models = []string{"a", ""} }),
		`per ""; want hour, day or month`:  with(func(k *access.Key) { k.Budget.Tokens = 1 }),
		`key "other": a limit is negative`: with(func(k *access.Key) { k.Budget.Tokens = -1 }),
	} {
		err := k.Replace([]access.Key{good, bad})
		var wrong *access.KeyError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%v, want %s", err, reason)
		}
	}
	want(t, k, "", 0) // existing counts stay
}

func TestDisconnectedClientIsNotCounted(t *testing.T) {
	team := key("team", secret)
	team.RequestsPerMinute = 1
	k := newKeys(t, team)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := k.Admit(ctx, secret, "m", 0); !errors.Is(err, gone) {
		t.Fatal(err)
	}
	want(t, k, "", 0)
}

func TestConcurrentUseLosesNoCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const workers, each = 8, 50
		team := key("team", secret)
		team.Parallel = workers
		team.TokensPerMinute = 1_000_000
		team.Budget = access.Budget{Tokens: workers*each*2 + 1, Per: access.Day}
		k := newKeys(t, team)
		var all sync.WaitGroup
		for range workers {
			all.Go(func() {
				for range each {
					lease, err := k.Admit(t.Context(), secret, "m", 0)
					if err != nil {
						t.Error(err)
						return
					}
					var both sync.WaitGroup
					both.Go(func() { lease.Spend(used(1)) })
					both.Go(func() { lease.Spend(used(2)) })
					both.Wait()
					both.Go(lease.Release)
					lease.Release()
					both.Wait()
				}
			})
		}
		all.Go(func() {
			for range each {
				if err := k.Replace([]access.Key{team}); err != nil {
					t.Error(err)
				}
			}
		})
		all.Wait()
		spend(t, k, 1) // the last one of the budget
		want(t, k, access.BudgetSpent, 24*time.Hour)
	})
}

func TestFromRequestReadsEveryPlace(t *testing.T) {
	for _, tc := range []struct {
		target string
		header []string
		want   string
	}{
		{"/", nil, ""},
		{"/", []string{"Authorization", "Bearer abc"}, "abc"},
		{"/", []string{"authorization", "  bearer   abc "}, "abc"},
		{"/", []string{"Authorization", "Basic abc"}, ""},
		{"/", []string{"Authorization", "Bearerabc"}, ""},
		{"/", []string{"X-Api-Key", "abc"}, "abc"},
		{"/", []string{"X-Goog-Api-Key", "abc"}, "abc"},
		{"/", []string{"Api-Key", "abc"}, "abc"},
		{"/m:generateContent?alt=sse&key=a%2Bc", nil, "a+c"},
		{"/?monkey=abc", nil, ""},
		// Several keys: the first in this order that is not empty.
		{"/?key=4", []string{"Api-Key", "3", "X-Goog-Api-Key", "2", "X-Api-Key", "1", "Authorization", "Bearer 0"}, "0"},
		{"/?key=4", []string{"Api-Key", "3", "X-Goog-Api-Key", "2", "X-Api-Key", "1", "Authorization", "Bearer "}, "1"},
		{"/?key=4", []string{"Api-Key", "3", "X-Goog-Api-Key", "2"}, "2"},
		{"/?key=4", []string{"Api-Key", "3"}, "3"},
		{"/?key=4", []string{"Api-Key", " "}, "4"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, tc.target, nil)
		for i := 0; i < len(tc.header); i += 2 {
			r.Header.Set(tc.header[i], tc.header[i+1])
		}
		if got := access.FromRequest(r); got != tc.want {
			t.Errorf("%s %v: %q, want %q", tc.target, tc.header, got, tc.want)
		}
	}
}

func BenchmarkAdmitOneOfAThousand(b *testing.B) {
	var list []access.Key
	for i := range 1000 {
		k := key(fmt.Sprint("key-", i), fmt.Sprint("secret-", i))
		k.Budget = access.Budget{Tokens: math.MaxInt64, Per: access.Day}
		list = append(list, k)
	}
	k, err := access.New(list, access.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		lease, err := k.Admit(b.Context(), "secret-500", "m", 0)
		if err != nil {
			b.Fatal(err)
		}
		lease.Spend(used(10))
		lease.Release()
	}
}

func TestG3_WholeHashIsCompared(t *testing.T) {
	const secret = "the-secret-of-this-test"
	for i := range 32 {
		hash := access.HashOf(secret)
		hash[i] ^= 1
		keys, err := access.New([]access.Key{{Name: "near", Hash: hash}}, access.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Identify(secret); err == nil {
			t.Errorf("byte %d does not count", i)
		}
	}
}

func TestG3_BudgetIsReservedUntilRequestsEnd(t *testing.T) {
	team := key("team", secret)
	team.Budget = access.Budget{Tokens: 100, Per: access.Day}
	k := newKeys(t, team)
	admit := func(estimate int64) (*access.Lease, *access.RefusedError) {
		lease, err := k.Admit(t.Context(), secret, "m", estimate)
		var refused *access.RefusedError
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		return lease, refused
	}
	one, _ := admit(60)
	two, refused := admit(60) // 40 are left
	if refused != nil {
		t.Fatal(refused)
	}
	_, refused = admit(0)
	if refused == nil || refused.Reason != access.BudgetReserved || refused.RetryAfter != time.Second || refused.API().Class != dragoman.ErrorRateLimit {
		t.Errorf("%+v", refused)
	}
	one.Spend(used(10)) // the rest of its estimate stays reserved
	if _, refused = admit(0); refused == nil || refused.Reason != access.BudgetReserved {
		t.Errorf("%+v", refused)
	}
	one.Release()
	one.Release()
	three, refused := admit(30) // 10 are spent, 60 reserved
	if refused != nil {
		t.Fatal(refused)
	}
	if _, refused = admit(1); refused == nil {
		t.Error("100 tokens are spent or reserved, and another request is admitted")
	}
	two.Spend(used(70)) // more than it reserved
	two.Release()
	three.Spend(used(25))
	three.Release()
	three.Spend(used(30)) // which becomes known late
	if _, refused = admit(0); refused == nil || refused.Reason != access.BudgetSpent || refused.Limit != 100 {
		t.Errorf("10, 70 and 30 of 100 tokens are spent: %+v", refused)
	}
}

func TestG3_ReservationSurvivesNewPeriodAndNewLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		team := key("team", secret)
		team.Budget = access.Budget{Tokens: 100, Per: access.Hour}
		k := newKeys(t, team)
		lease, err := k.Admit(t.Context(), secret, "m", 100)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		want(t, k, access.BudgetReserved, time.Second)
		if err := k.Replace([]access.Key{team}); err != nil {
			t.Fatal(err)
		}
		want(t, k, access.BudgetReserved, time.Second)
		lease.Release()
		want(t, k, "", 0)
	})
}

func TestG3_BudgetIsExceededByLessThanOneEstimate(t *testing.T) {
	team := key("team", secret)
	team.Budget = access.Budget{Tokens: 10_000, Per: access.Month}
	k := newKeys(t, team)
	var spent atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for n := range 200 {
				estimate := int64(1 + (i*7+n*13)%97)
				lease, err := k.Admit(t.Context(), secret, "m", estimate)
				if err != nil {
					continue
				}
				spent.Add(estimate)
				lease.Spend(used(estimate / 2))
				lease.Spend(used(estimate))
				lease.Release()
			}
		})
	}
	wg.Wait()
	if n := spent.Load(); n < 10_000 || n >= 10_000+97 {
		t.Errorf("%d tokens of 10000 are spent", n)
	}
	if _, why, _ := admit(t, k); why != access.BudgetSpent {
		t.Errorf("another one: %q", why)
	}
}

func TestG3_EnterTakesASlot(t *testing.T) {
	team := key("team", secret)
	team.Parallel, team.RequestsPerMinute, team.Models = 1, 2, []string{"m"}
	k := newKeys(t, team)
	enter := func() (*access.Lease, access.Reason) {
		lease, err := k.Enter(t.Context(), secret)
		var refused *access.RefusedError
		if errors.As(err, &refused) {
			return nil, refused.Reason
		}
		return lease, ""
	}
	one, _ := enter()
	if _, why := enter(); why != access.TooManyAtOnce {
		t.Errorf("a second one: %q", why)
	}
	if err := one.Admit("other", 0); err == nil || one.Key() != "team" {
		t.Errorf("another model: %v", err)
	}
	for range 3 { // a second Admit counts nothing
		if err := errors.Join(one.Ready(), one.Admit("m", 0)); err != nil {
			t.Error(err)
		}
	}
	one.Release()
	two, why := enter()
	if err := two.Admit("m", 0); err != nil || why != "" {
		t.Error(err, why)
	}
	two.Release()
	three, why := enter()
	if err := three.Ready(); err == nil || why != "" {
		t.Errorf("a third request in a minute is ready: %v", err)
	}
	three.Release()
	if _, err := k.Enter(t.Context(), "another"); err == nil {
		t.Error("an unknown key enters")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Enter(ctx, secret); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestKeyWithModelsMayUseOnlyListedFields(t *testing.T) {
	for _, tc := range []struct {
		key  access.Key
		want bool
	}{
		{access.Key{}, true},
		{access.Key{Models: []string{"m"}}, false},
		{access.Key{Models: []string{"m"}, Fields: []string{"models"}}, false},
		{access.Key{Models: []string{"m"}, Fields: []string{"provider"}}, true},
		{access.Key{Models: []string{"m"}, Fields: []string{"*"}}, true},
	} {
		if got := tc.key.AllowsField("provider"); got != tc.want {
			t.Errorf("%+v: %v", tc.key, got)
		}
	}
}

// A request may state the largest possible maximum. Its reservation is released exactly.
func TestG3_HugeEstimateIsReleasedExactly(t *testing.T) {
	team := key("team", secret)
	team.Budget = access.Budget{Tokens: 100, Per: access.Day}
	k := newKeys(t, team)
	one, err := k.Admit(t.Context(), secret, "m", 10)
	if err != nil {
		t.Fatal(err)
	}
	endless, err := k.Admit(t.Context(), secret, "m", math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	endless.Release()
	one.Release()
	for range 10 { // neither locked out nor admitted for free
		lease, err := k.Admit(t.Context(), secret, "m", 10)
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Release()
	}
	if _, err := k.Admit(t.Context(), secret, "m", 10); err == nil {
		t.Error("100 tokens are reserved, and another request is admitted")
	}
}

func TestRefusedModelSuggestsASimilarName(t *testing.T) {
	e := &access.RefusedError{Reason: access.ModelNotAllowed, Key: "team", Model: "fats", Allowed: []string{"fast"}}
	const want = `the key team may not use the model "fats": allowed models are fast`
	if got := e.API().Message; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	e.Suggestion = "fast"
	if got := e.API().Message; got != want+"; did you mean fast?" {
		t.Errorf("%q", got)
	}
}

func TestLimitsOfOneAreSingular(t *testing.T) {
	for reason, want := range map[access.Reason]string{
		access.TooManyRequests: "the key team has reached its limit of 1 request per minute; try again in 2s",
		access.TooManyTokens:   "the key team has reached its limit of 1 token per minute; try again in 2s",
		access.TooManyAtOnce:   "the key team has 1 request running, which is its limit; wait for one to end",
	} {
		e := &access.RefusedError{Reason: reason, Key: "team", Limit: 1, RetryAfter: 2 * time.Second}
		if got := e.API().Message; got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}
