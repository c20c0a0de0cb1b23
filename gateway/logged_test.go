package gateway_test

import (
	"bytes"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// safeBuffer may be written and read concurrently.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *safeBuffer) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.Reset()
}

// logged returns the log so far.
func (w *world) logged() string { return w.log.String() }

// wantLog waits for a log line with all of want. The line is written after the response.
func (w *world) wantLog(t *testing.T, want ...string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		text, missing := w.logged(), ""
		for _, s := range want {
			if !strings.Contains(text, s) {
				missing = s
			}
		}
		if missing == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no %s in the log:\n%s", missing, text)
		}
	}
}
