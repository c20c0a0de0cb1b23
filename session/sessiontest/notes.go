package sessiontest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
)

// clock is a clock that moves only when a test moves it.
type clock struct {
	mu sync.Mutex
	at time.Time
}

// newClock returns a clock at the creation time of the suite's sessions.
func newClock() *clock { return &clock{at: begin()} }

// Now returns the time.
func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Move advances the clock.
func (c *clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// RunNotes tests [session.Notes] against the contract of the interface. open returns empty
// notes whose clock is now.
func RunNotes(t *testing.T, open func(t *testing.T, now func() time.Time) session.Notes) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(t *testing.T, n session.Notes, clock *clock)
	}{
		{"G7_notes round-trip", notesRoundTrip},
		{"G7_notes expire", notesExpire},
		{"a later note replaces an earlier one", notesAreReplaced},
		{"PutNew keeps an earlier note", putNewKeepsEarlierNotes},
		{"one of several PutNew stores", onePutNewStores},
		{"notes are deleted", notesAreDeleted},
		{"many notes are read at once, in order", notesAreReadTogether},
		{"a sweep deletes only expired notes", sweepsAreExact},
		{"a sweep is bounded", sweepsAreBounded},
		{"Put sweeps now and then", notesAreSwept},
		{"invalid notes are refused", invalidNotesAreRefused},
		{"a canceled context is an error", notesRespectContexts},
		{"concurrent writes", concurrentNotes},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			clock := newClock()
			c.test(t, open(t, clock.Now), clock)
		})
	}
}

func put(t *testing.T, n session.Notes, key, value string, expires time.Time) {
	t.Helper()
	if err := n.Put(t.Context(), key, []byte(value), expires); err != nil {
		t.Fatal(err)
	}
}

// wantNote checks a note; nil means that it does not exist.
func wantNote(t *testing.T, n session.Notes, key string, want []byte) {
	t.Helper()
	got, found, err := n.Get(t.Context(), key)
	if err != nil || found != (want != nil) || !bytes.Equal(got, want) {
		t.Errorf("%q: %.60q %v %v, want %.60q", key, got, found, err, want)
	}
}

func notesRoundTrip(t *testing.T, n session.Notes, clock *clock) {
	later := clock.Now().Add(time.Hour)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	for key, value := range map[string][]byte{
		"a": []byte("text"), "every byte": every, "empty": {}, "key/with 'quotes\" and 日本": []byte("x"),
		strings.Repeat("k", 256): []byte("long key"), "large": bytes.Repeat([]byte("0123456789"), 200_000),
	} {
		if err := n.Put(t.Context(), key, value, later); err != nil {
			t.Fatal(err)
		}
		wantNote(t, n, key, value)
	}
	if err := n.Put(t.Context(), "nil", nil, later); err != nil {
		t.Fatal(err)
	}
	wantNote(t, n, "nil", []byte{})
	wantNote(t, n, "A", nil)
	wantNote(t, n, "absent", nil)

	// Either side may reuse its bytes afterwards.
	mine := []byte("mine")
	if err := n.Put(t.Context(), "mine", mine, later); err != nil {
		t.Fatal(err)
	}
	copy(mine, "your")
	got, _, err := n.Get(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	copy(got, "our ")
	wantNote(t, n, "mine", []byte("mine"))
}

func notesExpire(t *testing.T, n session.Notes, clock *clock) {
	put(t, n, "soon", "1", clock.Now().Add(time.Minute))
	put(t, n, "later", "2", clock.Now().Add(time.Hour))
	clock.Move(time.Minute - time.Microsecond)
	wantNote(t, n, "soon", []byte("1"))
	clock.Move(time.Microsecond)
	wantNote(t, n, "soon", nil)
	wantNote(t, n, "later", []byte("2"))
	if got, err := n.GetAll(t.Context(), []string{"soon", "later"}); err != nil || got[0] != nil || string(got[1]) != "2" {
		t.Errorf("%q %v", got, err)
	}
	put(t, n, "later", "past", clock.Now())
	wantNote(t, n, "later", nil)
}

func notesAreReplaced(t *testing.T, n session.Notes, clock *clock) {
	put(t, n, "k", "first", clock.Now().Add(time.Minute))
	put(t, n, "k", "second", clock.Now().Add(time.Hour))
	clock.Move(2 * time.Minute)
	wantNote(t, n, "k", []byte("second"))
	put(t, n, "k", "third", clock.Now().Add(time.Second))
	clock.Move(time.Second)
	wantNote(t, n, "k", nil)
	put(t, n, "k", "fourth", clock.Now().Add(time.Second))
	wantNote(t, n, "k", []byte("fourth"))
}

// wantNew puts a note only if it is new, and checks whether it was stored.
func wantNew(t *testing.T, n session.Notes, key, value string, expires time.Time, want bool) {
	t.Helper()
	if stored, err := n.PutNew(t.Context(), key, []byte(value), expires); err != nil || stored != want {
		t.Errorf("%q as %q: stored %v, %v, want %v", value, key, stored, err, want)
	}
}

func putNewKeepsEarlierNotes(t *testing.T, n session.Notes, clock *clock) {
	wantNew(t, n, "k", "first", clock.Now().Add(time.Minute), true)
	wantNew(t, n, "k", "second", clock.Now().Add(time.Hour), false)
	wantNew(t, n, "other", "other", clock.Now().Add(time.Hour), true)
	wantNote(t, n, "k", []byte("first"))
	clock.Move(time.Minute - time.Microsecond)
	wantNew(t, n, "k", "third", clock.Now().Add(time.Hour), false)
	clock.Move(time.Microsecond)
	wantNew(t, n, "k", "fourth", clock.Now(), false) // it has expired itself
	wantNote(t, n, "k", nil)
	wantNew(t, n, "k", "fifth", clock.Now().Add(time.Minute), true)
	wantNote(t, n, "k", []byte("fifth"))
	clock.Move(time.Minute)
	wantNote(t, n, "k", nil)
	put(t, n, "k", "put", clock.Now().Add(time.Minute))
	wantNew(t, n, "k", "sixth", clock.Now().Add(time.Minute), false)
	if err := n.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	if stored, err := n.PutNew(t.Context(), "k", nil, clock.Now().Add(time.Minute)); err != nil || !stored {
		t.Error(stored, err)
	}
	wantNote(t, n, "k", []byte{})
}

func onePutNewStores(t *testing.T, n session.Notes, clock *clock) {
	later := clock.Now().Add(time.Hour)
	for round := range 10 {
		key := fmt.Sprint("k", round)
		var stored [8]bool
		var wg sync.WaitGroup
		for w := range stored {
			wg.Go(func() {
				var err error
				if stored[w], err = n.PutNew(t.Context(), key, []byte(fmt.Sprint(w)), later); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		first := slices.Index(stored[:], true)
		if first < 0 || slices.Contains(stored[first+1:], true) {
			t.Fatalf("%s was stored by %v, want one", key, stored)
		}
		wantNote(t, n, key, []byte(fmt.Sprint(first)))
	}
}

func notesAreDeleted(t *testing.T, n session.Notes, clock *clock) {
	put(t, n, "a", "1", clock.Now().Add(time.Hour))
	put(t, n, "b", "2", clock.Now().Add(time.Hour))
	for range 2 {
		if err := n.Delete(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
	}
	wantNote(t, n, "a", nil)
	wantNote(t, n, "b", []byte("2"))
}

func notesAreReadTogether(t *testing.T, n session.Notes, clock *clock) {
	const many = 600
	keys := make([]string, 0, 2*many)
	for i := range many {
		key := fmt.Sprint("k", i)
		put(t, n, key, key, clock.Now().Add(time.Hour))
		keys = append(keys, "not "+key, key)
	}
	keys = append(keys, "k0")
	got, err := n.GetAll(t.Context(), keys)
	if err != nil || len(got) != len(keys) {
		t.Fatal(len(got), err)
	}
	for i, k := range keys {
		if want := !strings.HasPrefix(k, "not "); want != (got[i] != nil) || want && string(got[i]) != k {
			t.Fatalf("%s: %q", k, got[i])
		}
	}
	if got, err := n.GetAll(t.Context(), nil); err != nil || len(got) != 0 {
		t.Error(got, err)
	}
}

func sweepsAreExact(t *testing.T, n session.Notes, clock *clock) {
	at := clock.Now().Add(time.Hour)
	put(t, n, "before", "1", at.Add(-time.Microsecond))
	put(t, n, "at", "2", at)
	put(t, n, "after", "3", at.Add(time.Microsecond))
	for _, want := range []int{2, 0} {
		if swept, err := n.Sweep(t.Context(), at); err != nil || swept != want {
			t.Errorf("%d swept, %v, want %d", swept, err, want)
		}
	}
	wantNote(t, n, "at", nil) // although it has not expired yet
	wantNote(t, n, "after", []byte("3"))
}

func sweepsAreBounded(t *testing.T, n session.Notes, clock *clock) {
	const rest = 3
	at := clock.Now().Add(time.Hour)
	for i := range storage.SweepMost + rest {
		put(t, n, fmt.Sprint("k", i), "", at)
	}
	for _, want := range []int{storage.SweepMost, rest, 0} {
		if swept, err := n.Sweep(t.Context(), at); err != nil || swept != want {
			t.Errorf("%d swept, %v, want %d", swept, err, want)
		}
	}
}

func notesAreSwept(t *testing.T, n session.Notes, clock *clock) {
	put(t, n, "old", "x", clock.Now().Add(time.Minute))
	clock.Move(time.Hour)
	for i := range storage.SweepEvery {
		put(t, n, fmt.Sprint("k", i), "", clock.Now().Add(time.Hour))
	}
	wantSwept(t, n, clock)
	put(t, n, "old", "x", clock.Now().Add(time.Minute))
	clock.Move(2 * time.Minute)
	for i := range storage.SweepEvery {
		wantNew(t, n, fmt.Sprint("new", i), "", clock.Now().Add(time.Hour), true)
	}
	wantSwept(t, n, clock)
}

// wantSwept checks that no expired notes are left.
func wantSwept(t *testing.T, n session.Notes, clock *clock) {
	t.Helper()
	if swept, err := n.Sweep(t.Context(), clock.Now()); err != nil || swept != 0 {
		t.Errorf("%d were left to sweep: %v", swept, err)
	}
}

func invalidNotesAreRefused(t *testing.T, n session.Notes, clock *clock) {
	later := clock.Now().Add(time.Hour)
	for _, key := range []string{"", strings.Repeat("k", 257), "a\x00b", "a\nb", "\xff"} {
		wantErr(t, fmt.Sprintf("%.20q", key), n.Put(t.Context(), key, nil, later), session.ErrInvalid)
	}
	wantErr(t, "a value that is too large", n.Put(t.Context(), "k", make([]byte, storage.MaxNote+1), later), session.ErrInvalid)
	wantErr(t, "no time", n.Put(t.Context(), "k", nil, time.Time{}), session.ErrInvalid)
	_, err := n.PutNew(t.Context(), "a\nb", nil, later)
	wantErr(t, "PutNew", err, session.ErrInvalid)
}

func notesRespectContexts(t *testing.T, n session.Notes, clock *clock) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "Put", n.Put(ctx, "k", nil, clock.Now().Add(time.Hour)), context.Canceled)
	_, err := n.PutNew(ctx, "k", nil, clock.Now().Add(time.Hour))
	wantErr(t, "PutNew", err, context.Canceled)
	_, _, err = n.Get(ctx, "k")
	wantErr(t, "Get", err, context.Canceled)
	_, err = n.GetAll(ctx, []string{"k"})
	wantErr(t, "GetAll", err, context.Canceled)
	wantErr(t, "Delete", n.Delete(ctx, "k"), context.Canceled)
	_, err = n.Sweep(ctx, clock.Now())
	wantErr(t, "Sweep", err, context.Canceled)
}

func concurrentNotes(t *testing.T, n session.Notes, clock *clock) {
	later := clock.Now().Add(time.Hour)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 20 {
				value := fmt.Sprint(w, " ", i)
				if err := n.Put(t.Context(), "shared", []byte(value), later); err != nil {
					t.Error(err)
				}
				if err := n.Put(t.Context(), fmt.Sprint("own", w), []byte(value), later); err != nil {
					t.Error(err)
				}
				if got, found, err := n.Get(t.Context(), "shared"); err != nil || !found || !bytes.Contains(got, []byte(" ")) {
					t.Errorf("%q %v %v", got, found, err)
				}
			}
		})
	}
	wg.Wait()
	for w := range 8 {
		wantNote(t, n, fmt.Sprint("own", w), []byte(fmt.Sprint(w, " ", 19)))
	}
}
