package session

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/tool"
)

// watched is a store whose appends are counted, and held until they may continue.
type watched struct {
	Memory
	commits atomic.Int32
	gate    chan struct{} // nil holds nothing
	entered chan struct{} // receives a value for each append that is held
	before  func(ctx context.Context) error
	after   func() error
}

func (w *watched) Append(ctx context.Context, id string, head int64, entries []Entry) error {
	w.commits.Add(1)
	if w.gate != nil {
		w.entered <- struct{}{}
		select {
		case <-w.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if w.before != nil {
		if err := w.before(ctx); err != nil {
			return err
		}
	}
	err := w.Memory.Append(ctx, id, head, entries)
	if err == nil && w.after != nil {
		err = w.after()
	}
	return err
}

func watch(t *testing.T, w *watched) *Session {
	t.Helper()
	s, err := Create(t.Context(), w, Info{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func held() *watched {
	return &watched{gate: make(chan struct{}), entered: make(chan struct{})}
}

// queued waits until n callers are queued.
func (s *Session) queued(n int) {
	for {
		s.mu.Lock()
		have := len(s.queue)
		s.mu.Unlock()
		if have == n {
			return
		}
		runtime.Gosched()
	}
}

func texts(t *testing.T, s *Session) string {
	t.Helper()
	messages, _, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range messages {
		out = append(out, messages[i].Text())
	}
	return strings.Join(out, " ")
}

func save(ctx context.Context, s *Session, text string) error {
	return s.Save(ctx, []dragoman.Message{dragoman.UserText(text)}, nil)
}

func TestS1_ConcurrentWritesShareOneCommit(t *testing.T) {
	w := held()
	s := watch(t, w)
	var wg sync.WaitGroup
	do := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil {
				t.Error(err)
			}
		})
	}
	do(func() error { return save(t.Context(), s, "first") })
	<-w.entered
	const n = 100
	for i := range n {
		in := tool.Intent{CallRef: tool.CallRef{Run: "r", Turn: 1, CallID: fmt.Sprint(i)}}
		do(func() error { _, err := s.Begin(t.Context(), in); return err })
		do(func() error {
			other := in
			other.Turn++
			return s.End(t.Context(), other, &dragoman.ToolResult{CallID: in.CallID})
		})
		do(func() error { return save(t.Context(), s, "more") })
	}
	s.queued(3 * n)
	w.gate <- struct{}{}
	<-w.entered
	w.gate <- struct{}{}
	wg.Wait()
	if got := w.commits.Load(); got != 2 {
		t.Errorf("%d commits", got)
	}
	if s.Head() != 3*n+1 {
		t.Errorf("%d entries", s.Head())
	}
	if got := texts(t, s); got != "first"+strings.Repeat(" more", n) {
		t.Error(got)
	}
}

func TestCanceledQueuedWriteIsNotWritten(t *testing.T) {
	w := held()
	s := watch(t, w)
	results := make(chan error, 3)
	go func() { results <- save(t.Context(), s, "first") }()
	<-w.entered
	ctx, cancel := context.WithCancel(t.Context())
	go func() { results <- save(ctx, s, "left") }()
	s.queued(1)
	cancel()
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	s.queued(0)
	// Two are written together; the context of one of them ends.
	ctx, cancel = context.WithCancel(t.Context())
	go func() { results <- save(ctx, s, "gone") }()
	s.queued(1)
	go func() { results <- save(t.Context(), s, "stays") }()
	s.queued(2)
	w.gate <- struct{}{}
	if err := <-results; err != nil {
		t.Error(err)
	}
	<-w.entered
	cancel()
	if err := <-results; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "they may be") {
		t.Error(err)
	}
	w.gate <- struct{}{}
	if err := <-results; err != nil {
		t.Error(err)
	}
	if got := texts(t, s); got != "first gone stays" {
		t.Error(got)
	}
}

func TestAppendIsCanceledWhenAllCallersLeave(t *testing.T) {
	w := held()
	s := watch(t, w)
	results := make(chan error, 3)
	go func() { results <- save(t.Context(), s, "first") }()
	<-w.entered
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		go func() { results <- save(ctx, s, "left") }()
	}
	s.queued(2)
	w.gate <- struct{}{}
	<-results
	<-w.entered
	cancel()
	for range 2 {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	// The next write appends at once, or waits for the goroutine that is about to stop.
	go func() { results <- save(t.Context(), s, "last") }()
	<-w.entered
	w.gate <- struct{}{}
	if err := <-results; err != nil {
		t.Error(err)
	}
	if got := texts(t, s); got != "first last" {
		t.Error(got)
	}
}

func TestS4_ConflictFailsQueuedWrites(t *testing.T) {
	w := held()
	s := watch(t, w)
	results := make(chan error, 3)
	go func() { results <- save(t.Context(), s, "late") }()
	<-w.entered
	for range 2 {
		go func() { results <- save(t.Context(), s, "later") }()
	}
	s.queued(2)
	if err := w.Memory.Append(t.Context(), "s", 0, []Entry{{Time: toMicroseconds(s.created.Created), Kind: "x", Body: []byte(`1`)}}); err != nil {
		t.Fatal(err)
	}
	w.gate <- struct{}{}
	for range 3 {
		var conflict *storage.Conflict
		if err := <-results; !errors.As(err, &conflict) || conflict.Head != 0 || conflict.Actual != 1 {
			t.Error(err)
		}
	}
	if got := w.commits.Load(); got != 1 {
		t.Errorf("%d appends were tried", got)
	}
	for name, err := range map[string]error{
		"save": save(t.Context(), s, "x"), "nothing": s.Save(t.Context(), nil, nil), "metadata": s.SetMetadata(t.Context(), []byte(`{}`)),
		"append": s.Append(t.Context(), Entry{Kind: "x", Body: []byte(`1`)}),
		"last":   second(s.Last(t.Context(), 1)), "for": second(s.MessagesFor(t.Context(), dragoman.Origin{}, 0)),
		"branch": second(s.Branch(t.Context(), 0, Info{})), "metadata ": second(s.Metadata(t.Context())),
	} {
		if !errors.Is(err, ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// The next write finds the outcome of a write that was unknown.
func TestS4_UnknownWriteThatSucceededIsAConflict(t *testing.T) {
	broken := errors.New("the connection is gone")
	w := &watched{after: func() error { return broken }}
	s := watch(t, w)
	if err := save(t.Context(), s, "unseen"); !errors.Is(err, broken) {
		t.Error(err)
	}
	w.after = nil
	if err := save(t.Context(), s, "unseen"); !errors.Is(err, ErrConflict) {
		t.Error(err)
	}
	again, err := Open(t.Context(), w, "s")
	if err != nil {
		t.Fatal(err)
	}
	if got := texts(t, again); got != "unseen" {
		t.Error(got)
	}

	w.before = func(context.Context) error { return broken } // this time it does not arrive
	if err := save(t.Context(), again, "lost"); !errors.Is(err, broken) {
		t.Error(err)
	}
	w.before = nil
	if err := save(t.Context(), again, "second"); err != nil {
		t.Error(err)
	}
	if got := texts(t, again); got != "unseen second" {
		t.Error(got)
	}
}

func TestPanicOfStoreFailsQueuedWrites(t *testing.T) {
	w := held()
	s := watch(t, w)
	w.before = func(context.Context) error { panic("broken") }
	results := make(chan error, 3)
	go func() { results <- save(t.Context(), s, "x") }()
	<-w.entered
	go func() { results <- save(t.Context(), s, "y") }()
	s.queued(1)
	w.gate <- struct{}{}
	<-w.entered
	w.gate <- struct{}{}
	for range 2 {
		if err := <-results; err == nil || !strings.Contains(err.Error(), "panicked: broken") {
			t.Error(err)
		}
	}
}

func TestGroupsAreBounded(t *testing.T) {
	w := held()
	s := watch(t, w)
	var wg sync.WaitGroup
	wg.Go(func() { _ = save(t.Context(), s, "first") })
	<-w.entered
	big := strings.Repeat("x", maxGroupBytes/2+1)
	for range 3 {
		wg.Go(func() {
			if err := save(t.Context(), s, big); err != nil {
				t.Error(err)
			}
		})
	}
	s.queued(3)
	for range 3 {
		w.gate <- struct{}{}
		<-w.entered
	}
	w.gate <- struct{}{}
	wg.Wait()
	if got := w.commits.Load(); got != 4 {
		t.Errorf("%d commits", got)
	}
}

// grouped queues entries after a write of one entry that is held, each list as one write.
// It returns the head at the beginning of each later commit.
func grouped(t *testing.T, writes ...[]Entry) (heads []int64) {
	t.Helper()
	w := held()
	s := watch(t, w)
	results := make(chan error)
	go func() { results <- save(t.Context(), s, "first") }()
	<-w.entered
	for i, entries := range writes {
		go func() { results <- s.Append(t.Context(), entries...) }()
		s.queued(i + 1)
	}
	w.gate <- struct{}{}
	for left := len(writes) + 1; left > 0; {
		select {
		case err := <-results:
			if err != nil {
				t.Fatal(err)
			}
			left--
		case <-w.entered:
			heads = append(heads, s.Head())
			w.gate <- struct{}{}
		}
	}
	return heads
}

func TestS1_GroupLimitsAreExact(t *testing.T) {
	entries := func(n, size int) []Entry {
		out := make([]Entry, n)
		for i := range out {
			out[i] = Entry{Kind: "app", Body: []byte(`"` + strings.Repeat("x", size-2) + `"`)}
		}
		return out
	}
	const half = maxGroupBytes / 2
	for name, tc := range map[string]struct {
		writes [][]Entry
		want   []int64
	}{
		"as many entries as a group takes": {[][]Entry{entries(maxGroupEntries-4, 2), entries(4, 2), entries(1, 2)}, []int64{1, 1 + maxGroupEntries}},
		"one more entry":                   {[][]Entry{entries(maxGroupEntries-4, 2), entries(5, 2), entries(1, 2)}, []int64{1, 1 + maxGroupEntries - 4}},
		"as many bytes as a group takes":   {[][]Entry{entries(1, half), entries(1, half), entries(1, 2)}, []int64{1, 3}},
		"one more byte":                    {[][]Entry{entries(1, half), entries(1, half+1), entries(1, 2)}, []int64{1, 2}},
		"one write above the bound":        {[][]Entry{entries(1, maxGroupBytes+1), entries(1, 2)}, []int64{1, 2}},
	} {
		if got := grouped(t, tc.writes...); !slices.Equal(got, tc.want) {
			t.Errorf("%s: commits begin at the heads %v, want %v", name, got, tc.want)
		}
	}
}

// A rewind that is written in one commit with others has its own position in the log.
func TestS3_RewindInGroupHasItsPosition(t *testing.T) {
	w := held()
	s := watch(t, w)
	results := make(chan error, 4)
	go func() { results <- save(t.Context(), s, "first") }()
	<-w.entered
	for i, do := range []func() error{
		func() error { return save(t.Context(), s, "second") },
		func() error { return save(t.Context(), s, "third") },
		func() error { return s.write(t.Context(), []Entry{rewind{to: 1}.entry()}) },
	} {
		go func() { results <- do() }()
		s.queued(i + 1)
	}
	w.gate <- struct{}{}
	<-w.entered
	w.gate <- struct{}{}
	for range 4 {
		if err := <-results; err != nil {
			t.Fatal(err)
		}
	}
	if got := texts(t, s); got != "first" {
		t.Errorf("after the rewind the session has %q", got)
	}
	again, err := Open(t.Context(), w, s.ID())
	if err != nil || texts(t, again) != "first" {
		t.Errorf("opened again, the session has %q, %v", texts(t, again), err)
	}
}
