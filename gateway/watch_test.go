package gateway_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-go/dragoman/gateway"
)

// itemEventNames is a file with a watcher in a time of its own, and what that said.
type itemEventNames struct {
	*gateway.Watcher
	t       *testing.T
	mu      sync.Mutex
	changes []string
	errs    []string
	refuse  error
}

// watch runs f beside a watcher of a file that listens on one:1.
func watch(t *testing.T, f func(w *itemEventNames)) {
	file := filepath.Join(t.TempDir(), "gateway.yaml") // outside of the bubble, as it is removed there
	synctest.Test(t, func(t *testing.T) {
		w := &itemEventNames{t: t}
		w.Watcher = &gateway.Watcher{File: file, Interval: time.Second, OnChange: w.changed, OnError: w.failed}
		w.write("one:1")
		c, err := w.Load()
		if err != nil || c.Listen != "one:1" {
			t.Fatalf("%+v, %v", c, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		f(w)
		over := errors.New("over")
		cancel(over)
		if err := <-done; !errors.Is(err, over) {
			t.Errorf("Run returned %v", err)
		}
	})
}

func (w *itemEventNames) changed(c *gateway.Config) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, c.Listen)
	return w.refuse
}

func (w *itemEventNames) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err.Error())
}

// write makes the file say where to listen.
func (w *itemEventNames) write(listen string) {
	w.t.Helper()
	if err := os.WriteFile(w.File, []byte("version: 1\ngateway: {listen: \""+listen+"\"}\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// looks lets the watcher look n times.
func (w *itemEventNames) looks(n int) {
	for range n {
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

// said holds what was said since the last time against what should have been: the
// changes, and a part of each error.
func (w *itemEventNames) said(changes string, errs ...string) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := strings.Join(w.changes, " "); got != changes {
		w.t.Errorf("changed to %q, want %q", got, changes)
	}
	if len(w.errs) != len(errs) {
		w.t.Errorf("errors %q, want %q", w.errs, errs)
	} else {
		for i, e := range errs {
			if !strings.Contains(w.errs[i], e) {
				w.t.Errorf("error %q, want %q", w.errs[i], e)
			}
		}
	}
	w.changes, w.errs = nil, nil
}

func TestG4_ChangedFileIsAppliedOnce(t *testing.T) {
	watch(t, func(w *itemEventNames) {
		w.looks(5)
		w.said("")
		old, err := os.Stat(w.File)
		if err != nil {
			t.Fatal(err)
		}
		w.write("two:2") // as long as before, and as old
		if err := os.Chtimes(w.File, old.ModTime(), old.ModTime()); err != nil {
			t.Fatal(err)
		}
		w.looks(2)
		w.said("two:2")
		w.looks(5)
		w.said("")
		w.write("two:2") // touched
		w.looks(5)
		w.said("")
	})
}

func TestG4_PartlyWrittenFileIsNotApplied(t *testing.T) {
	watch(t, func(w *itemEventNames) {
		for _, part := range []string{"a:1", "a:12", "a:123"} {
			w.write(part)
			w.looks(1)
		}
		w.said("")
		w.looks(1)
		w.said("a:123")
		w.write("b:1") // and back again
		w.looks(1)
		w.write("a:123")
		w.looks(3)
		w.said("")
	})
}

func TestG4_BrokenFileIsReportedOnce(t *testing.T) {
	watch(t, func(w *itemEventNames) {
		w.write("broken")
		w.looks(5)
		w.said("", "gateway.yaml:2:19: listen: want host:port")
		w.write("broken too")
		w.looks(5)
		w.said("", "gateway.yaml:2:19: listen: want host:port")
		w.write("two:2")
		w.looks(5)
		w.said("two:2")
		if err := os.Remove(w.File); err != nil {
			t.Fatal(err)
		}
		w.looks(5)
		w.said("", "no such file")
		w.write("two:2")
		w.looks(5)
		w.said("two:2")
	})
}

func TestRefusedConfigIsReported(t *testing.T) {
	watch(t, func(w *itemEventNames) {
		w.refuse = errors.New("no keys")
		w.write("two:2")
		w.looks(5)
		w.said("two:2", "no keys")
		w.refuse = nil
		w.looks(5)
		w.said("")
		w.Poll() // a human wants to know
		w.said("two:2")
		w.Poll()
		w.said("")
	})
}

func TestPollAppliesAChangeAtOnce(t *testing.T) {
	watch(t, func(w *itemEventNames) {
		w.Poll()
		w.said("")
		w.write("two:2")
		w.Poll()
		w.said("two:2")
		w.write("broken")
		w.Poll()
		w.said("", "want host:port")
		w.Poll()
		w.said("", "want host:port")
		w.looks(5)
		w.said("")
	})
}

func TestWatcherWithoutLoadAppliesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	w := &itemEventNames{t: t}
	w.Watcher = &gateway.Watcher{File: file, OnChange: w.changed}
	if _, err := w.Load(); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	w.write("broken")
	if _, err := w.Load(); err == nil {
		t.Fatal("a broken file was loaded")
	}
	w.Poll() // there is nobody to tell
	w.write("one:1")
	w.Poll()
	w.said("one:1")
}
