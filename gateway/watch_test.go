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

// watchTest is a file with a watcher in a bubble, and the calls of the watcher.
type watchTest struct {
	*gateway.Watcher
	t       *testing.T
	mu      sync.Mutex
	changes []string
	errs    []string
	refuse  error
}

// watch runs f with a watcher of a file that listens on one:1.
func watch(t *testing.T, f func(w *watchTest)) {
	file := filepath.Join(t.TempDir(), "gateway.yaml") // outside of the bubble, as it is removed there
	synctest.Test(t, func(t *testing.T) {
		w := &watchTest{t: t}
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

func (w *watchTest) changed(c *gateway.Config) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, c.Listen)
	return w.refuse
}

func (w *watchTest) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err.Error())
}

// write writes a config that listens at listen.
func (w *watchTest) write(listen string) {
	w.t.Helper()
	if err := os.WriteFile(w.File, []byte("version: 1\ngateway: {listen: \""+listen+"\"}\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// poll lets the watcher read the file n times.
func (w *watchTest) poll(n int) {
	for range n {
		time.Sleep(time.Second)
		synctest.Wait()
	}
}

// wantChanges compares the calls since its last call: the changes, and a part of each error.
func (w *watchTest) wantChanges(changes string, errs ...string) {
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
	watch(t, func(w *watchTest) {
		w.poll(5)
		w.wantChanges("")
		old, err := os.Stat(w.File)
		if err != nil {
			t.Fatal(err)
		}
		w.write("two:2") // same length, same modification time
		if err := os.Chtimes(w.File, old.ModTime(), old.ModTime()); err != nil {
			t.Fatal(err)
		}
		w.poll(2)
		w.wantChanges("two:2")
		w.poll(5)
		w.wantChanges("")
		w.write("two:2") // touched
		w.poll(5)
		w.wantChanges("")
	})
}

func TestG4_PartlyWrittenFileIsNotApplied(t *testing.T) {
	watch(t, func(w *watchTest) {
		for _, part := range []string{"a:1", "a:12", "a:123"} {
			w.write(part)
			w.poll(1)
		}
		w.wantChanges("")
		w.poll(1)
		w.wantChanges("a:123")
		w.write("b:1") // and back again
		w.poll(1)
		w.write("a:123")
		w.poll(3)
		w.wantChanges("")
	})
}

func TestG4_BrokenFileIsReportedOnce(t *testing.T) {
	watch(t, func(w *watchTest) {
		w.write("broken")
		w.poll(5)
		w.wantChanges("", "gateway.yaml:2:19: listen: want host:port")
		w.write("broken too")
		w.poll(5)
		w.wantChanges("", "gateway.yaml:2:19: listen: want host:port")
		w.write("two:2")
		w.poll(5)
		w.wantChanges("two:2")
		if err := os.Remove(w.File); err != nil {
			t.Fatal(err)
		}
		w.poll(5)
		w.wantChanges("", "no such file")
		w.write("two:2")
		w.poll(5)
		w.wantChanges("two:2")
	})
}

func TestRefusedConfigIsReported(t *testing.T) {
	watch(t, func(w *watchTest) {
		w.refuse = errors.New("no keys")
		w.write("two:2")
		w.poll(5)
		w.wantChanges("two:2", "no keys")
		w.refuse = nil
		w.poll(5)
		w.wantChanges("")
		w.Poll() // as after a SIGHUP
		w.wantChanges("two:2")
		w.Poll()
		w.wantChanges("")
	})
}

func TestPollAppliesAChangeAtOnce(t *testing.T) {
	watch(t, func(w *watchTest) {
		w.Poll()
		w.wantChanges("")
		w.write("two:2")
		w.Poll()
		w.wantChanges("two:2")
		w.write("broken")
		w.Poll()
		w.wantChanges("", "want host:port")
		w.Poll()
		w.wantChanges("", "want host:port")
		w.poll(5)
		w.wantChanges("")
	})
}

func TestWatcherWithoutLoadAppliesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gateway.yaml")
	w := &watchTest{t: t}
	w.Watcher = &gateway.Watcher{File: file, OnChange: w.changed}
	if _, err := w.Load(); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	w.write("broken")
	if _, err := w.Load(); err == nil {
		t.Fatal("a broken file was loaded")
	}
	w.Poll() // there are no callbacks
	w.write("one:1")
	w.Poll()
	w.wantChanges("one:1")
}
