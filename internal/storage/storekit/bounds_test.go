package storekit_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/session"
)

func put(t *testing.T, n session.Notes, key string, size int, expires time.Time) {
	t.Helper()
	if err := n.Put(t.Context(), key, make([]byte, size), expires); err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, what string, err error, want bool) {
	t.Helper()
	if errors.Is(err, session.ErrInvalid) != want || !want && err != nil {
		t.Errorf("%s: %v, want it refused: %t", what, err, want)
	}
}

func TestBoundsOfNotesAreExact(t *testing.T) {
	later := time.Now().Add(time.Hour)
	refused(t, "the largest note", storekit.CheckNote("k", make([]byte, storage.MaxNote), later), false)
	refused(t, "a larger note", storekit.CheckNote("k", make([]byte, storage.MaxNote+1), later), true)

	const note = 1 + 743 + 256 // the key, the value, and a little for each
	n := &storekit.Notes{MaxBytes: 2 * note}
	put(t, n, "a", 743, later)
	put(t, n, "b", 743, later)
	if !has(t, n, "a") || !has(t, n, "b") {
		t.Error("notes that fill the bound exactly are not kept")
	}
	put(t, n, "c", 744, later)
	if has(t, n, "a") || has(t, n, "b") || !has(t, n, "c") {
		t.Error("the bound is exceeded by one byte")
	}
	n = &storekit.Notes{MaxBytes: note}
	put(t, n, "a", 743, later)
	if !has(t, n, "a") {
		t.Error("a note that fills the bound alone is not kept")
	}
	if err := n.Put(t.Context(), "b", make([]byte, 744), later); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("a note of one byte more: %v", err)
	}
}

// Every SweepEvery puts, a put looks at the notes that were not used for the longest time.
// It looks at twice SweepEvery of them and leaves the others to Sweep.
func TestNotesAreSweptByPuts(t *testing.T) {
	const look = 2 * storage.SweepEvery
	clock := testkit.NewClock()
	n := &storekit.Notes{Now: clock.Now}
	soon, later := clock.Now().Add(time.Minute), clock.Now().Add(24*time.Hour)
	const old = look + 100
	for i := range old {
		put(t, n, fmt.Sprint("old", i), 1, soon)
	}
	clock.Move(time.Hour)
	expired := func() int {
		t.Helper()
		swept, err := n.Sweep(t.Context(), clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		return swept
	}
	puts := old
	for ; (puts+1)%storage.SweepEvery != 0; puts++ { // none of these sweeps
		put(t, n, fmt.Sprint("new", puts), 1, later)
	}
	put(t, n, "sweeps", 1, later)
	if got := expired(); got != old-look {
		t.Errorf("a put left %d expired notes, want %d", got, old-look)
	}

	n = &storekit.Notes{Now: clock.Now}
	put(t, n, "a", 1, clock.Now().Add(time.Minute))
	clock.Move(time.Hour)
	put(t, n, "b", 1, later)
	if got := expired(); got != 1 {
		t.Errorf("%d notes have expired, want 1: the second put sweeps", got)
	}
}
