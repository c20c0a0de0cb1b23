package session_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// countingStore records the queries that it reads.
type countingStore struct {
	session.Store
	queries []session.Query
}

func (c *countingStore) Read(ctx context.Context, id string, q session.Query) iter.Seq2[session.Entry, error] {
	c.queries = append(c.queries, q)
	return c.Store.Read(ctx, id, q)
}

const spillChunk = 256 << 10

func TestT8_PagesOfAStoredOutputAreExact(t *testing.T) {
	store := &countingStore{Store: &session.Memory{}}
	p := created(t, store).Spill()
	// A character of three bytes lies across the end of the first chunk.
	content := strings.Repeat("a", spillChunk-1) + "€" + strings.Repeat("b", spillChunk) + "end"
	of := tool.CallRef{Run: "r", Turn: 1, CallID: "c"}
	name, err := p.Put(t.Context(), of, 0, content)
	if err != nil {
		t.Fatal(err)
	}
	at := spillChunk - 1 // of the euro sign, where the second chunk begins
	for _, c := range []struct {
		offset, n int
		want      string
	}{
		{0, 10, strings.Repeat("a", 10)},
		{at - 2, 10, "aa€bbbbb"},
		{at - 1, 4, "a€"},
		{at, 4, "€b"},
		{at + 1, 4, "€b"}, // within a character: it begins with the character
		{at + 2, 4, "€b"},
		{at + 3, 4, "bbbb"},
		{at + 4, 4, "bbbb"},
		{at + spillChunk, 10, "bbbend"}, // the beginning of the third chunk
		{at + spillChunk + 1, 10, "bbend"},
		{len(content) - 4, 10, "bend"},
		{len(content) - 1, 1, "d"},
		{len(content), 10, ""},
	} {
		got, size, err := p.Read(t.Context(), "r", name, c.offset, c.n)
		if err != nil || got != c.want || size != len(content) {
			t.Errorf("offset %d: %q of %d, %v, want %q", c.offset, got, size, err, c.want)
		}
	}
	for _, offset := range []int{-1, len(content) + 1} {
		if _, _, err := p.Read(t.Context(), "r", name, offset, 10); err == nil || !strings.Contains(err.Error(), "outside") {
			t.Errorf("offset %d: %v", offset, err)
		}
	}
	store.queries = nil
	if got, _, err := p.Read(t.Context(), "r", name, 0, at); err != nil || len(got) != at || len(store.queries) != 2 {
		t.Errorf("a page of one chunk: %d bytes by %d queries, %v", len(got), len(store.queries), err)
	}
	var whole strings.Builder
	for whole.Len() < len(content) {
		page, _, err := p.Read(t.Context(), "r", name, whole.Len(), 100_001)
		if err != nil || page == "" {
			t.Fatal(err)
		}
		whole.WriteString(page)
	}
	if whole.String() != content {
		t.Error("the pages are not the output")
	}
}

func TestT8_OutputsHaveABoundAndAreText(t *testing.T) {
	s := created(t, &session.Memory{})
	p := s.Spill()
	of := tool.CallRef{Run: "r", Turn: 1, CallID: "c"}
	if _, err := p.Put(t.Context(), of, 0, strings.Repeat("a", storage.MaxOutput+1)); !errors.Is(err, dragoman.ErrTooLarge) {
		t.Errorf("a larger output: %v", err)
	}
	if _, err := p.Put(t.Context(), of, 0, strings.Repeat("a", storage.MaxOutput)); err != nil {
		t.Errorf("the largest output: %v", err)
	}
	// Bytes that are not text must not cost more than text does.
	of.CallID = "binary"
	name, err := p.Put(t.Context(), of, 0, "x"+strings.Repeat("\x80", 4*spillChunk)+"y"+strings.Repeat("\xff\x80z", spillChunk))
	if err != nil {
		t.Fatal(err)
	}
	page, size, err := p.Read(t.Context(), "r", name, 0, 9)
	if want := "x\uFFFDy\uFFFDz"; err != nil || page != want || size != len("x\uFFFDy")+len("\uFFFDz")*spillChunk {
		t.Errorf("%q of %d, %v", page, size, err)
	}
}

// A session looks once whether its log has native histories.
func TestS5_NativeHistoriesAreReadOnce(t *testing.T) {
	for name, compacts := range map[string]bool{"without": false, "with": true} {
		store := &countingStore{Store: &session.Memory{}}
		s := created(t, store)
		w := compactable(t)
		save(t, s, append(pair("q1", "r1"), pair("q2", "r2")...)...)
		if compacts {
			if err := s.Act(t.Context(), w, session.Action{ID: "drop"}); err != nil {
				t.Fatal(err)
			}
		}
		s, err := session.Open(t.Context(), store, s.ID())
		if err != nil {
			t.Fatal(err)
		}
		messages, _, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		store.queries = nil
		for range 3 {
			if _, err := s.MessagesInPlaceOf(t.Context(), messages, w.w.Target.Origin(), w.w.Codec.Limits().Replay.Messages); err != nil {
				t.Fatal(err)
			}
		}
		looks := 0
		for _, q := range store.queries {
			if q.Key == "" && slices.Equal(q.Kinds, []string{"native"}) {
				looks++
			}
		}
		if looks != 1 {
			t.Errorf("%s native histories: looked %d times", name, looks)
		}
	}
}
