package recall_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/gateway/internal/recall"
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

// userAndAssistant returns a user message of the given size and a response.
func userAndAssistant(n, size int) []dragoman.Message {
	return []dragoman.Message{
		dragoman.UserText(fmt.Sprint(n, " ", strings.Repeat("x", size))),
		signedResponse(sigA, fmt.Sprint("answer ", n)).Output[0],
	}
}

func saveResponse(t *testing.T, r *recall.Recall, key, id, parent string, messages []dragoman.Message) {
	t.Helper()
	if err := r.SaveResponse(t.Context(), key, id, parent, messages); err != nil {
		t.Fatal(err)
	}
}

func wantSaved(t *testing.T, r *recall.Recall, key, id string, want []dragoman.Message) {
	t.Helper()
	got, err := r.LoadResponse(t.Context(), key, id)
	if err != nil {
		t.Fatalf("%s: %v", id, err)
	}
	if diff := gen.Diff(want, got); diff != "" {
		t.Errorf("%s: %.500s", id, diff)
	}
}

func TestG7_AnyResponseCanBeContinued(t *testing.T) {
	for _, size := range []int{1, 20_000, 100_000} {
		r, _ := newRecall(t)
		var all [][]dragoman.Message
		var whole []dragoman.Message
		parent := ""
		for n := range 20 {
			id := fmt.Sprint("resp_", n)
			messages := userAndAssistant(n, size)
			saveResponse(t, r, "k", id, parent, messages)
			whole = append(whole, messages...)
			all = append(all, append([]dragoman.Message{}, whole...))
			parent = id
		}
		for n, want := range all {
			wantSaved(t, r, "k", fmt.Sprint("resp_", n), want)
		}
		// A second response to the fifth is a branch.
		saveResponse(t, r, "k", "branch", "resp_4", userAndAssistant(99, size))
		wantSaved(t, r, "k", "branch", append(append([]dragoman.Message{}, all[4]...), userAndAssistant(99, size)...))
		wantSaved(t, r, "k", "resp_19", all[19])
	}
}

func TestG7_ResponseIsFoundOnlyByItsKey(t *testing.T) {
	r, _ := newRecall(t)
	saveResponse(t, r, "k", "resp_1", "", userAndAssistant(1, 1))
	for _, at := range [][2]string{{"other", "resp_1"}, {"k", "resp_2"}, {"kresp", "_1"}, {"", "resp_1"}} {
		if _, err := r.LoadResponse(t.Context(), at[0], at[1]); !errors.Is(err, recall.ErrNotFound) {
			t.Errorf("%v: %v", at, err)
		}
		if err := r.SaveResponse(t.Context(), at[0], "new", at[1], userAndAssistant(2, 1)); !errors.Is(err, recall.ErrNotFound) {
			t.Errorf("%v: %v", at, err)
		}
		if err := r.DeleteResponse(t.Context(), at[0], at[1]); !errors.Is(err, recall.ErrNotFound) {
			t.Errorf("%v: %v", at, err)
		}
	}
	if err := r.DeleteResponse(t.Context(), "k", "resp_1"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.LoadResponse(t.Context(), "k", "resp_1"); !errors.Is(err, recall.ErrNotFound) {
		t.Error(err)
	}
}

func TestG7_StoredBytesGrowLinearly(t *testing.T) {
	stored := func(turns int) int {
		notes := &countingNotes{Notes: &storekit.Notes{}}
		r, err := recall.New(recall.Options{Notes: notes})
		if err != nil {
			t.Fatal(err)
		}
		parent := ""
		for n := range turns {
			id := fmt.Sprint("resp_", n)
			saveResponse(t, r, "k", id, parent, userAndAssistant(n, 20_000))
			parent = id
		}
		before := notes.reads
		if _, err := r.LoadResponse(t.Context(), "k", parent); err != nil {
			t.Fatal(err)
		}
		if reads := notes.reads - before; reads > turns {
			t.Errorf("%d reads for %d turns", reads, turns)
		}
		return notes.bytes
	}
	if some, many := stored(50), stored(200); many > 5*some {
		t.Errorf("%d bytes for 50 turns, %d for 200", some, many)
	}
}

func TestG7_TooLargeConversationIsRefusedWithAdvice(t *testing.T) {
	r, err := recall.New(recall.Options{Notes: &storekit.Notes{}, MaxSaved: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	refused := func(err error) bool {
		return errors.Is(err, recall.ErrTooLarge) && strings.Contains(err.Error(), "send the whole conversation")
	}
	if err := r.SaveResponse(t.Context(), "k", "resp", "", userAndAssistant(1, 100_000)); !refused(err) {
		t.Error(err)
	}
	parent := ""
	for n := range 100 {
		id := fmt.Sprint("resp_", n)
		if err = r.SaveResponse(t.Context(), "k", id, parent, userAndAssistant(n, 80_000)); err != nil {
			break
		}
		parent = id
	}
	if !refused(err) || parent == "" {
		t.Errorf("after %s: %v", parent, err)
	}
	if _, err := r.LoadResponse(t.Context(), "k", parent); err != nil {
		t.Error(err)
	}
}

func TestG7_ContinuedConversationDoesNotExpire(t *testing.T) {
	r, clock := newRecall(t)
	saveResponse(t, r, "k", "resp_0", "", userAndAssistant(0, 100_000))
	for n := 1; n < 10; n++ {
		clock.Move(40 * time.Minute) // of the hour that is has
		if _, err := r.LoadResponse(t.Context(), "k", fmt.Sprint("resp_", n-1)); err != nil {
			t.Fatal(n, err)
		}
		saveResponse(t, r, "k", fmt.Sprint("resp_", n), fmt.Sprint("resp_", n-1), userAndAssistant(n, 100_000))
	}
	clock.Move(time.Hour)
	if _, err := r.LoadResponse(t.Context(), "k", "resp_9"); !errors.Is(err, recall.ErrNotFound) {
		t.Error(err)
	}
}

func TestG7_GatewaysShareStoredConversations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.db")
	var both []*recall.Recall
	for range 2 {
		store, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		r, err := recall.New(recall.Options{Notes: store.Notes()})
		if err != nil {
			t.Fatal(err)
		}
		both = append(both, r)
	}
	saveResponse(t, both[0], "k", "resp_1", "", userAndAssistant(1, 1))
	wantSaved(t, both[1], "k", "resp_1", userAndAssistant(1, 1))
	storeState(t, both[0], scope, newRequest(hi), signedResponse(sigA, "one"))
	if got, _ := signatures(t, both[1], scope, newRequest(hi, assistantTurn("one"), hi)); strings.Join(got, " ") != sigA {
		t.Errorf("%q", got)
	}
}
