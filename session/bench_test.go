package session_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/codectest"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

// stores returns the stores that need no server.
func stores(t testing.TB) map[string]session.Store {
	t.Helper()
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return map[string]session.Store{"memory": &session.Memory{}, "sqlite": file}
}

// userMessage is a message of ordinary length.
func userMessage(i int) dragoman.Message {
	return dragoman.UserText(fmt.Sprintf("%d: %s", i, strings.Repeat("the quick brown fox ", 40)))
}

func fill(ctx context.Context, store session.Store, id string, n int) error {
	s, err := session.Create(ctx, store, session.Info{ID: id})
	for i := 0; err == nil && i < n; i += 100 {
		messages := make([]dragoman.Message, min(100, n-i))
		for j := range messages {
			messages[j] = userMessage(i + j)
		}
		err = s.Save(ctx, messages, nil)
	}
	return err
}

func TestLongSessionsTakeTimeInProportion(t *testing.T) {
	for name, store := range stores(t) {
		made := map[int]string{}
		id := func(n int) string {
			if made[n] == "" {
				made[n] = fmt.Sprint("of-", n)
				if err := fill(t.Context(), store, made[n], n); err != nil {
					t.Fatal(err)
				}
			}
			return made[n]
		}
		codectest.Linear(t, name+": loading", 10_000, func(n int) error {
			s, err := session.Open(t.Context(), store, id(n))
			if err != nil {
				return err
			}
			messages, _, err := s.Load(t.Context())
			if len(messages) != n {
				return fmt.Errorf("%d messages: %w", len(messages), err)
			}
			return err
		})
		round := 0
		codectest.Linear(t, name+": filling", 10_000, func(n int) error {
			round++
			return fill(t.Context(), store, fmt.Sprint("round-", round), n)
		})
		// Reading or appending at the end does not depend on what comes before.
		ends := func(n int) error {
			s, err := session.Open(t.Context(), store, id(n))
			for i := 0; err == nil && i < 200; i++ {
				if _, err = s.Last(t.Context(), 10); err == nil {
					err = s.Append(t.Context(), session.Entry{Kind: "x", Body: []byte(`1`)})
				}
			}
			return err
		}
		small, large := time.Hour, time.Hour
		for range 5 { // take the minimum: other load only adds time
			small, large = min(small, timeOf(t, ends, 100)), min(large, timeOf(t, ends, 10_000))
			if large <= 4*small {
				break
			}
		}
		if large > 4*small {
			t.Errorf("%s: the end of a long session takes %v, that of a short one %v", name, large, small)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	for name, store := range stores(b) {
		b.Run(name, func(b *testing.B) {
			s := created(b, store)
			messages := []dragoman.Message{userMessage(1)}
			b.ReportAllocs()
			for b.Loop() {
				if err := s.Save(b.Context(), messages, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkJournal(b *testing.B) {
	result := &dragoman.ToolResult{CallID: "1", Content: []dragoman.Part{&dragoman.Text{Text: "done"}}}
	for name, store := range stores(b) {
		b.Run(name, func(b *testing.B) {
			s := created(b, store)
			turn := 0
			b.ReportAllocs()
			for b.Loop() {
				turn++
				in := tool.Intent{CallRef: tool.CallRef{Run: "r", Turn: turn, CallID: "1", Key: toolopt.Bare("f")}}
				if _, err := s.Begin(b.Context(), in); err != nil {
					b.Fatal(err)
				}
				if err := s.End(b.Context(), in, result); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoad10000(b *testing.B) {
	for name, store := range stores(b) {
		b.Run(name, func(b *testing.B) {
			if err := fill(b.Context(), store, "s", 10_000); err != nil {
				b.Fatal(err)
			}
			s, err := session.Open(b.Context(), store, "s")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if messages, _, err := s.Load(b.Context()); err != nil || len(messages) != 10_000 {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLast50Of10000(b *testing.B) {
	for name, store := range stores(b) {
		b.Run(name, func(b *testing.B) {
			if err := fill(b.Context(), store, "s", 10_000); err != nil {
				b.Fatal(err)
			}
			s, err := session.Open(b.Context(), store, "s")
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if last, err := s.Last(b.Context(), 50); err != nil || len(last) != 50 {
					b.Fatal(err)
				}
			}
		})
	}
}

func timeOf(t *testing.T, do func(n int) error, n int) time.Duration {
	t.Helper()
	start := time.Now()
	if err := do(n); err != nil {
		t.Fatal(err)
	}
	return time.Since(start)
}
