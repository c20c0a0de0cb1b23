package storekit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sessiontest"
)

func TestG7_MemoryNotesPassTheStoreSuite(t *testing.T) {
	sessiontest.RunNotes(t, func(_ *testing.T, now func() time.Time) session.Notes {
		return &storekit.Notes{Now: now}
	})
}

func has(t *testing.T, n session.Notes, key string) bool {
	t.Helper()
	_, found, err := n.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestLeastRecentlyUsedNoteIsEvictedFirst(t *testing.T) {
	clock := testkit.NewClock()
	later := clock.Now().Add(time.Hour)
	for what, n := range map[string]*storekit.Notes{
		"entries": {MaxEntries: 3, Now: clock.Now},
		"bytes":   {MaxBytes: 3 * (1000 + 300), Now: clock.Now},
	} {
		for i := range 3 {
			if err := n.Put(t.Context(), fmt.Sprint("k", i), make([]byte, 1000), later); err != nil {
				t.Fatal(err)
			}
		}
		if !has(t, n, "k0") {
			t.Fatalf("%s: forgotten too early", what)
		}
		if err := n.Put(t.Context(), "k3", make([]byte, 1000), later); err != nil {
			t.Fatal(err)
		}
		for key, want := range map[string]bool{"k0": true, "k1": false, "k2": true, "k3": true} {
			if got := has(t, n, key); got != want {
				t.Errorf("%s: %s is there: %v", what, key, got)
			}
		}
	}
}

func TestTooLargeNoteIsRefused(t *testing.T) {
	n := &storekit.Notes{MaxBytes: 10_000}
	later := time.Now().Add(time.Hour)
	for _, key := range []string{"small", "large"} {
		if err := n.Put(t.Context(), key, []byte("x"), later); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		if err := n.Put(t.Context(), "large", []byte(strings.Repeat("x", 20_000)), later); !errors.Is(err, dragoman.ErrTooLarge) {
			t.Fatal(err)
		}
	}
	if has(t, n, "large") || !has(t, n, "small") {
		t.Error("the earlier notes are gone, or were not stored")
	}
}
