// Package sessiontest tests implementations of [session.Store] against the contract of the
// interface. Call it in a test of your own store:
//
//	func TestStore(t *testing.T) {
//		sessiontest.Run(t, func(t *testing.T) session.Store { return openMine(t) })
//	}
package sessiontest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
)

// Run runs the suite. open returns an empty store; the suite closes it when the test ends.
func Run(t *testing.T, open func(t *testing.T) session.Store) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(t *testing.T, s session.Store)
	}{
		{"S1_entries round-trip", entriesRoundTrip},
		{"S1_a batch is atomic", appendIsAtomic},
		{"S1_readers never see a partial batch", readersSeeWholeAppends},
		{"S1_creating a session is atomic", createIsAtomic},
		{"S3_queries read the selected entries in order", queriesRead},
		{"S3_a log may grow while it is read", logsGrowWhileRead},
		{"S3_a loop that ends early holds no lock", readLoopsHoldNoLock},
		{"S4_a writer with an old head is refused", oldHeadsAreRefused},
		{"S4_one of several concurrent writers wins", oneWriterWins},
		{"sessions are listed by last change", sessionsAreListed},
		{"sessions are deleted", sessionsAreDeleted},
		{"invalid values are refused", invalidIsRefused},
		{"a missing session is ErrNotFound", absentIsNotFound},
		{"a canceled context is an error", canceledContextsFail},
		{"a closed store returns ErrClosed", closedStoresFail},
		{"S1_conversations and states round-trip", conversationsAreStored},
		{"S3_rewinds and branches", rewindsAndBranches},
		{"S3_sessions are exported, imported and copied", sessionsMove},
		{"L14_the journal records calls", journalReturnsEarlierAttempts},
		{"T8_long outputs are stored in the session", spillsOutputs},
		{"media is stored separately from messages", storesAttachments},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			c.test(t, s)
		})
	}
}

// begin returns the creation time of the suite's sessions.
func begin() time.Time { return time.Date(2026, 2, 3, 4, 5, 6, 789012000, time.UTC) }

func create(t *testing.T, s session.Store, id string) {
	t.Helper()
	if err := s.Create(t.Context(), session.Info{ID: id, Created: begin()}, nil); err != nil {
		t.Fatal(err)
	}
}

// numbered returns n distinct entries.
func numbered(from, n int) []session.Entry {
	out := make([]session.Entry, n)
	for i := range out {
		out[i] = session.Entry{Time: begin().Add(time.Duration(from+i) * time.Second), Kind: "test.n", Body: fmt.Appendf(nil, "%d", from+i)}
	}
	return out
}

func appendTo(t *testing.T, s session.Store, id string, head int64, entries ...session.Entry) {
	t.Helper()
	if err := s.Append(t.Context(), id, head, entries); err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, seq iter.Seq2[session.Entry, error]) (out []session.Entry) {
	t.Helper()
	for e, err := range seq {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e)
	}
	return out
}

// want compares entries, numbered from 1.
func want(t *testing.T, got, want []session.Entry) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range got {
		g, w := got[i], want[i]
		w.Seq = int64(i + 1)
		wantEntry(t, g, w)
	}
}

func wantEntry(t *testing.T, g, w session.Entry) {
	t.Helper()
	if g.Seq != w.Seq || !g.Time.Equal(w.Time) || g.Kind != w.Kind || g.Key != w.Key || !bytes.Equal(g.Body, w.Body) {
		t.Errorf("entry %d %v %s %q %.100s\nwant  %d %v %s %q %.100s", g.Seq, g.Time, g.Kind, g.Key, g.Body, w.Seq, w.Time, w.Kind, w.Key, w.Body)
	}
}

func wantErr(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: %v, want %v", what, err, target)
	}
}

func entriesRoundTrip(t *testing.T, s session.Store) {
	info := session.Info{ID: "A.b_c:d-1", Title: "Ünïcode ‘title’ 日本", Created: begin(), Parent: "p", ParentSeq: 7}
	if err := s.Create(t.Context(), info, nil); err != nil {
		t.Fatal(err)
	}
	now := begin()
	entries := []session.Entry{
		{Time: now, Kind: "message", Body: json.RawMessage(`{"a":1.0,"big":12345678901234567890,"e":1e400,"<&>":"\u003c\u0000\ud83d\ude00 日本 <>&"}`)},
		{Time: now, Kind: "x.y_2", Key: "key/with 'quotes\" and 日本", Body: json.RawMessage("\n [1 ,\t2]\r\n ")},
		{Time: now.Add(time.Microsecond), Kind: "state", Body: json.RawMessage(`null`)},
		{Time: now.Add(-time.Hour).In(time.FixedZone("", 3600)), Kind: "state", Body: json.RawMessage(`"` + strings.Repeat("long ", 1<<20) + `"`)},
		{Time: now, Kind: repeat("k", 64), Key: repeat("y", 256), Body: json.RawMessage(`{}`)},
	}
	appendTo(t, s, info.ID, 0, slices.Clone(entries[:3])...)
	appendTo(t, s, info.ID, 3, slices.Clone(entries[3:])...)
	want(t, all(t, s.Read(t.Context(), info.ID, session.Query{})), entries)
	got, err := s.Info(t.Context(), info.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != info.ID || got.Title != info.Title || !got.Created.Equal(info.Created) || got.Parent != "p" || got.ParentSeq != 7 || got.Head != 5 || !got.Updated.Equal(now) {
		t.Errorf("%+v", got)
	}

	// The caller may reuse its bytes afterwards.
	body := []byte(`"mine"`)
	appendTo(t, s, info.ID, 5, session.Entry{Time: now, Kind: "state", Body: body})
	copy(body, `"your"`)
	if got := all(t, s.Read(t.Context(), info.ID, session.Query{Last: 1})); string(got[0].Body) != `"mine"` {
		t.Errorf("a body became %s after the caller reused its bytes: store a copy", got[0].Body)
	}
}

func repeat(s string, n int) string { return strings.Repeat(s, n) }

func appendIsAtomic(t *testing.T, s session.Store) {
	create(t, s, "s")
	appendTo(t, s, "s", 0, numbered(0, 2)...)
	appendTo(t, s, "s", 2)
	bad := numbered(2, 3)
	bad[2].Body = json.RawMessage(`{"a":`)
	wantErr(t, "a batch with a broken entry", s.Append(t.Context(), "s", 2, bad), session.ErrInvalid)
	want(t, all(t, s.Read(t.Context(), "s", session.Query{})), numbered(0, 2))
	appendTo(t, s, "s", 2, numbered(2, 700)...) // more than stores read at a time
	want(t, all(t, s.Read(t.Context(), "s", session.Query{})), numbered(0, 702))
}

func readersSeeWholeAppends(t *testing.T, s session.Store) {
	create(t, s, "s")
	const batch, batches = 7, 30
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range batches {
			if err := s.Append(context.Background(), "s", int64(i*batch), numbered(i*batch, batch)); err != nil {
				t.Error(err)
			}
		}
	}()
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		got := all(t, s.Read(t.Context(), "s", session.Query{}))
		if len(got)%batch != 0 {
			t.Fatalf("%d entries are visible", len(got))
		}
		info, err := s.Info(t.Context(), "s")
		if err != nil || info.Head%batch != 0 || info.Head < int64(len(got)) {
			t.Fatalf("the head is %d after %d entries were read: %v", info.Head, len(got), err)
		}
	}
	want(t, all(t, s.Read(t.Context(), "s", session.Query{})), numbered(0, batch*batches))
}

func seqOf(entries []session.Entry, then error) iter.Seq2[session.Entry, error] {
	return func(yield func(session.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
		if then != nil {
			yield(session.Entry{}, then)
		}
	}
}

func createIsAtomic(t *testing.T, s session.Store) {
	broken := errors.New("broken")
	info := session.Info{ID: "s", Created: begin()}
	wantErr(t, "entries that fail", s.Create(t.Context(), info, seqOf(numbered(0, 300), broken)), broken)
	bad := numbered(0, 3)
	bad[2].Kind = "No Kind"
	wantErr(t, "an invalid entry", s.Create(t.Context(), info, seqOf(bad, nil)), session.ErrInvalid)
	_, err := s.Info(t.Context(), "s")
	wantErr(t, "a session that was not created", err, session.ErrNotFound)
	if err := s.Create(t.Context(), info, seqOf(numbered(0, 300), nil)); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "creating it again", s.Create(t.Context(), info, seqOf(numbered(0, 1), nil)), session.ErrExists)
	want(t, all(t, s.Read(t.Context(), "s", session.Query{})), numbered(0, 300))
	if got, err := s.Info(t.Context(), "s"); err != nil || got.Head != 300 || !got.Updated.Equal(begin().Add(299*time.Second)) {
		t.Errorf("%+v %v", got, err)
	}
	appendTo(t, s, "s", 300, numbered(300, 1)...)
	if err := s.Create(t.Context(), session.Info{ID: "none", Created: begin()}, seqOf(nil, nil)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Info(t.Context(), "none"); err != nil || got.Head != 0 || !got.Updated.Equal(begin()) {
		t.Errorf("%+v %v", got, err)
	}
}

func queriesRead(t *testing.T, s session.Store) {
	create(t, s, "s")
	create(t, s, "other")
	var entries []session.Entry
	for i := range 600 {
		e := session.Entry{Seq: int64(i + 1), Time: begin(), Kind: []string{"a", "b", "c"}[i%3], Body: fmt.Appendf(nil, "%d", i)}
		if i%7 == 0 {
			e.Key = fmt.Sprint("k", i%5)
		}
		entries = append(entries, e)
	}
	appendTo(t, s, "s", 0, entries...)
	appendTo(t, s, "other", 0, entries...)
	kinds := [][]string{nil, {"a"}, {"b", "c"}, {"nobody"}}
	for _, after := range []int64{0, 5, 299, 600, 1000} {
		for _, until := range []int64{0, -1, 5, 300, 600, 1000} {
			for _, kinds := range kinds {
				for _, key := range []string{"", "k0", "k3", "no"} {
					for _, last := range []int{0, 1, 5, 257, 10000} {
						q := session.Query{After: after, Until: until, Kinds: kinds, Key: key, Last: last}
						var wanted []session.Entry
						for _, e := range entries {
							if q.Has(&e) {
								wanted = append(wanted, e)
							}
						}
						if last > 0 {
							wanted = wanted[max(0, len(wanted)-last):]
						}
						got := all(t, s.Read(t.Context(), "s", q))
						if len(got) != len(wanted) {
							t.Fatalf("%+v: %d entries, want %d", q, len(got), len(wanted))
						}
						for i := range got {
							wantEntry(t, got[i], wanted[i])
						}
					}
				}
			}
		}
	}
}

func logsGrowWhileRead(t *testing.T, s session.Store) {
	create(t, s, "s")
	appendTo(t, s, "s", 0, numbered(0, 600)...)
	head, n := int64(600), 0
	for e, err := range s.Read(t.Context(), "s", session.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq%100 == 0 {
			appendTo(t, s, "s", head, numbered(int(head), 1)...)
			head++
		}
		n++
	}
	if n != 600 {
		t.Errorf("%d entries were read of 600", n)
	}
	want(t, all(t, s.Read(t.Context(), "s", session.Query{})), numbered(0, 606))
}

func readLoopsHoldNoLock(t *testing.T, s session.Store) {
	create(t, s, "s")
	appendTo(t, s, "s", 0, numbered(0, 600)...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 100 {
		for _, err := range s.Read(ctx, "s", session.Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		for _, err := range s.List(ctx) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	// Nested loops, more than the number of connections in any pool.
	var nest func(depth int)
	nest = func(depth int) {
		read := 0
		for _, err := range s.Read(ctx, "s", session.Query{Last: 1}) {
			if err != nil {
				t.Fatal(err)
			}
			if read++; read > 1 {
				t.Fatal("Read yields more than the last entry")
			}
			if depth > 0 {
				nest(depth - 1)
			}
		}
	}
	nest(100)
}

func oldHeadsAreRefused(t *testing.T, s session.Store) {
	create(t, s, "s")
	appendTo(t, s, "s", 0, numbered(0, 3)...)
	for _, head := range []int64{0, 2, 4, -1} {
		err := s.Append(t.Context(), "s", head, numbered(3, 1))
		if !errors.Is(err, session.ErrConflict) {
			t.Errorf("after %d: %v", head, err)
		}
	}
	want(t, all(t, s.Read(t.Context(), "s", session.Query{})), numbered(0, 3))
}

func oneWriterWins(t *testing.T, s session.Store) {
	create(t, s, "s")
	const writers, rounds = 8, 10
	for round := range rounds {
		head := int64(round * 2)
		errs := make([]error, writers)
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() { errs[w] = s.Append(context.Background(), "s", head, numbered(round*2, 2)) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, session.ErrConflict) {
				t.Error(err)
			}
		}
		if won != 1 {
			t.Fatalf("%d writers won", won)
		}
	}
	want(t, all(t, s.Read(t.Context(), "s", session.Query{})), numbered(0, rounds*2))
}

func ids(t *testing.T, s session.Store) string {
	t.Helper()
	var out []string
	for i, err := range s.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, i.ID)
	}
	return strings.Join(out, " ")
}

func sessionsAreListed(t *testing.T, s session.Store) {
	if got := ids(t, s); got != "" {
		t.Errorf("an empty store lists %s", got)
	}
	for _, id := range []string{"b", "a", "c"} {
		create(t, s, id)
	}
	if got := ids(t, s); got != "a b c" {
		t.Error(got)
	}
	appendTo(t, s, "b", 0, numbered(1, 1)...)
	appendTo(t, s, "c", 0, numbered(2, 1)...)
	if got := ids(t, s); got != "c b a" {
		t.Error(got)
	}
	for i, err := range s.List(t.Context()) {
		if err != nil || i.ID != "c" || i.Head != 1 || !i.Updated.Equal(begin().Add(2*time.Second)) || !i.Created.Equal(begin()) {
			t.Errorf("%+v %v", i, err)
		}
		break
	}
}

func sessionsAreDeleted(t *testing.T, s session.Store) {
	create(t, s, "s")
	create(t, s, "other")
	appendTo(t, s, "s", 0, numbered(0, 3)...)
	appendTo(t, s, "other", 0, numbered(0, 3)...)
	if err := s.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Info(t.Context(), "s")
	wantErr(t, "a deleted session", err, session.ErrNotFound)
	create(t, s, "s")
	if got := all(t, s.Read(t.Context(), "s", session.Query{})); len(got) != 0 {
		t.Errorf("a new session of the same id has %d entries", len(got))
	}
	want(t, all(t, s.Read(t.Context(), "other", session.Query{})), numbered(0, 3))
}

func invalidIsRefused(t *testing.T, s session.Store) {
	create(t, s, "s")
	now := begin()
	for _, id := range []string{"", "a b", "../x", "-x", ".x", "é", "a\x00", strings.Repeat("x", 129), "a/b", "a'b"} {
		wantErr(t, fmt.Sprintf("the id %q", id), s.Create(t.Context(), session.Info{ID: id, Created: now}, nil), session.ErrInvalid)
	}
	for _, info := range []session.Info{
		{ID: "x"},
		{ID: "x", Created: now, Title: "two\nlines"},
		{ID: "x", Created: now, Title: "\xff"},
		{ID: "x", Created: now, Title: strings.Repeat("x", 2000)},
		{ID: "x", Created: now, Parent: "a b"},
		{ID: "x", Created: now, ParentSeq: 3},
		{ID: "x", Created: now, Parent: "p", ParentSeq: -1},
	} {
		wantErr(t, fmt.Sprintf("%+v", info), s.Create(t.Context(), info, nil), session.ErrInvalid)
	}
	for _, e := range []session.Entry{
		{Time: now, Body: json.RawMessage(`1`)},
		{Time: now, Kind: "A", Body: json.RawMessage(`1`)},
		{Time: now, Kind: repeat("k", 65), Body: json.RawMessage(`1`)},
		{Time: now, Kind: "a", Key: "a\x00b", Body: json.RawMessage(`1`)},
		{Time: now, Kind: "a", Key: "\xff", Body: json.RawMessage(`1`)},
		{Time: now, Kind: "a", Key: strings.Repeat("x", 257), Body: json.RawMessage(`1`)},
		{Kind: "a", Body: json.RawMessage(`1`)},
		{Time: now, Kind: "a"},
		{Time: now, Kind: "a", Body: json.RawMessage(`1 2`)},
		{Time: now, Kind: "a", Body: json.RawMessage("\"\xff\"")},
		{Time: now, Kind: "a", Body: json.RawMessage(`{"a":1,"a":2}`)},
		{Time: now, Kind: "a", Body: make([]byte, storage.MaxBody+1)},
	} {
		wantErr(t, fmt.Sprintf("an entry of kind %q, key %q, body %.20s", e.Kind, e.Key, e.Body[:min(len(e.Body), 20)]), s.Append(t.Context(), "s", 0, []session.Entry{e}), session.ErrInvalid)
	}
	if got := all(t, s.Read(t.Context(), "s", session.Query{})); len(got) != 0 {
		t.Errorf("%d entries were written", len(got))
	}
}

func absentIsNotFound(t *testing.T, s session.Store) {
	_, err := s.Info(t.Context(), "no")
	wantErr(t, "info", err, session.ErrNotFound)
	wantErr(t, "append", s.Append(t.Context(), "no", 0, numbered(0, 1)), session.ErrNotFound)
	wantErr(t, "delete", s.Delete(t.Context(), "no"), session.ErrNotFound)
	n := 0
	for _, err := range s.Read(t.Context(), "no", session.Query{}) {
		wantErr(t, "read", err, session.ErrNotFound)
		n++
	}
	if n != 1 {
		t.Errorf("Read yielded %d pairs, want 1", n)
	}
	_, err = session.Open(t.Context(), s, "no")
	wantErr(t, "open", err, session.ErrNotFound)
}

func canceledContextsFail(t *testing.T, s session.Store) {
	create(t, s, "s")
	appendTo(t, s, "s", 0, numbered(0, 600)...)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	wantErr(t, "create", s.Create(over, session.Info{ID: "x", Created: begin()}, nil), context.Canceled)
	_, err := s.Info(over, "s")
	wantErr(t, "info", err, context.Canceled)
	wantErr(t, "append", s.Append(over, "s", 600, numbered(0, 1)), context.Canceled)
	wantErr(t, "delete", s.Delete(over, "s"), context.Canceled)
	for _, err := range s.Read(over, "s", session.Query{}) {
		wantErr(t, "read", err, context.Canceled)
	}
	for _, err := range s.List(over) {
		wantErr(t, "list", err, context.Canceled)
	}
	midway, cancel := context.WithCancel(t.Context())
	defer cancel()
	n, failed := 0, false
	for _, err := range s.Read(midway, "s", session.Query{}) {
		if err != nil {
			wantErr(t, "a read that is canceled midway", err, context.Canceled)
			failed = true
			continue
		}
		if n++; n == 1 {
			cancel()
		}
	}
	if !failed {
		t.Error("a read continues after it was canceled midway")
	}
	want(t, all(t, s.Read(t.Context(), "s", session.Query{})), numbered(0, 600))
	if got := ids(t, s); got != "s" {
		t.Error(got)
	}
}

func closedStoresFail(t *testing.T, s session.Store) {
	create(t, s, "s")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "create", s.Create(t.Context(), session.Info{ID: "x", Created: begin()}, nil), session.ErrClosed)
	_, err := s.Info(t.Context(), "s")
	wantErr(t, "info", err, session.ErrClosed)
	wantErr(t, "append", s.Append(t.Context(), "s", 0, numbered(0, 1)), session.ErrClosed)
	wantErr(t, "delete", s.Delete(t.Context(), "s"), session.ErrClosed)
	for _, err := range s.Read(t.Context(), "s", session.Query{}) {
		wantErr(t, "read", err, session.ErrClosed)
	}
	for _, err := range s.List(t.Context()) {
		wantErr(t, "list", err, session.ErrClosed)
	}
}
