package sessiontest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// The tests here use the methods of a session.

func createSession(t *testing.T, s session.Store, id string) *session.Session {
	t.Helper()
	out, err := session.Create(t.Context(), s, session.Info{ID: id, Created: begin()})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func openSession(t *testing.T, s session.Store, id string) *session.Session {
	t.Helper()
	out, err := session.Open(t.Context(), s, id)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// saveTexts saves user messages, and a state if it is not empty.
func saveTexts(t *testing.T, s *session.Session, state string, texts ...string) {
	t.Helper()
	var messages []dragoman.Message
	for _, text := range texts {
		messages = append(messages, dragoman.UserText(text))
	}
	var raw []byte
	if state != "" {
		raw = []byte(state)
	}
	if err := s.Save(t.Context(), messages, raw); err != nil {
		t.Fatal(err)
	}
}

// loadMessages returns the texts of the conversation and its state.
func loadMessages(t *testing.T, s *session.Session) string {
	t.Helper()
	messages, state, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for i := range messages {
		out = append(out, messages[i].Text())
	}
	return strings.Join(append(out, string(state)), " ")
}

// wantLoaded checks an open session, and the same session opened again.
func wantLoaded(t *testing.T, store session.Store, s *session.Session, want string) {
	t.Helper()
	if got := loadMessages(t, s); got != want {
		t.Errorf("loaded %q, want %q", got, want)
	}
	if got := loadMessages(t, openSession(t, store, s.ID())); got != want {
		t.Errorf("opened again: %q, want %q", got, want)
	}
}

func conversationsAreStored(t *testing.T, store session.Store) {
	s := createSession(t, store, "s")
	wantLoaded(t, store, s, "")
	saveTexts(t, s, "", "a")
	wantLoaded(t, store, s, "a ")
	saveTexts(t, s, `{"turn":1}`, "b", "c")
	saveTexts(t, s, "", "d")
	wantLoaded(t, store, s, `a b c d {"turn":1}`)
	saveTexts(t, s, `{"turn":2}`)
	wantLoaded(t, store, s, `a b c d {"turn":2}`)

	origin := dragoman.Origin{Dialect: dialectname.Anthropic, Provider: "anthropic", Scope: "x", Model: "m"}
	m := dragoman.Message{Role: dragoman.RoleAssistant, Origin: &origin, Parts: []dragoman.Part{
		&dragoman.Reasoning{Text: "hm", Signature: "sig"},
		&dragoman.ToolCall{ID: "1", Name: "f", Arguments: `{"x": 1.0}`},
	}}
	m.Native = &dragoman.Sidecar{Dialect: dialectname.Anthropic, Raw: []byte(`{ "role":"assistant",  "odd":1e2 }`), Mirror: m.Fingerprint()}
	if err := s.Save(t.Context(), []dragoman.Message{m}, nil); err != nil {
		t.Fatal(err)
	}
	messages, _, err := openSession(t, store, "s").Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := messages[len(messages)-1]
	if got.Fingerprint() != m.Fingerprint() || *got.Origin != origin || !bytes.Equal(got.Native.Raw, m.Native.Raw) || got.Native.Mirror != m.Native.Mirror {
		t.Errorf("%+v", got)
	}
	wantErr(t, "a state that is not valid JSON", s.Save(t.Context(), nil, []byte(`{`)), session.ErrInvalid)

	last, err := s.Last(t.Context(), 2)
	if err != nil || len(last) != 2 || last[0].Message.Text() != "d" || last[0].Seq != 5 || last[1].Seq != s.Head() {
		t.Errorf("%+v %v", last, err)
	}
}

func rewindsAndBranches(t *testing.T, store session.Store) {
	s := createSession(t, store, "s")
	saveTexts(t, s, `1`, "a")
	at := s.Head()
	saveTexts(t, s, `2`, "b", "c")
	later := s.Head()
	if err := s.Rewind(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	wantLoaded(t, store, s, "a 1")
	saveTexts(t, s, "", "d", "e")
	wantLoaded(t, store, s, "a d e 1")
	last, err := s.Last(t.Context(), 3)
	if err != nil || len(last) != 3 || last[0].Message.Text() != "a" {
		t.Errorf("%+v %v", last, err)
	}
	if last, err = s.Last(t.Context(), 2); err != nil || len(last) != 2 || last[0].Message.Text() != "d" {
		t.Errorf("%+v %v", last, err)
	}

	branch, err := s.Branch(t.Context(), later, session.Info{ID: "branch"})
	if err != nil {
		t.Fatal(err)
	}
	wantLoaded(t, store, branch, "a b c 2")
	saveTexts(t, branch, "", "x")
	wantLoaded(t, store, branch, "a b c x 2")
	wantLoaded(t, store, s, "a d e 1")
	if info, err := store.Info(t.Context(), "branch"); err != nil || info.Parent != "s" || info.ParentSeq != later {
		t.Errorf("%+v %v", info, err)
	}
	whole, err := s.Branch(t.Context(), s.Head(), session.Info{ID: "whole"})
	if err != nil {
		t.Fatal(err)
	}
	wantLoaded(t, store, whole, "a d e 1")

	// A rewind can be undone.
	if err := s.Rewind(t.Context(), later); err != nil {
		t.Fatal(err)
	}
	wantLoaded(t, store, s, "a b c 2")
	if err := s.Rewind(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	wantLoaded(t, store, s, "")
	saveTexts(t, s, "", "z")
	wantLoaded(t, store, s, "z ")
	for _, to := range []int64{-1, s.Head() + 1} {
		wantErr(t, "rewinding too far", s.Rewind(t.Context(), to), session.ErrInvalid)
		_, err := s.Branch(t.Context(), to, session.Info{ID: "no"})
		wantErr(t, "branching too far", err, session.ErrInvalid)
	}
	_, err = s.Branch(t.Context(), 0, session.Info{ID: "branch"})
	wantErr(t, "branching to an id that is in use", err, session.ErrExists)
}

func sessionsMove(t *testing.T, store session.Store) {
	s := createSession(t, store, "s")
	for i := range 300 {
		saveTexts(t, s, fmt.Sprint(i), fmt.Sprint("<", i, ">"))
	}
	if err := s.Rewind(t.Context(), 590); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), session.Entry{Kind: "note", Key: "k", Body: []byte("{\n \"a\": \"line\\nbreak\"\n}")}); err != nil {
		t.Fatal(err)
	}
	want := loadMessages(t, s)
	var first, second bytes.Buffer
	if err := session.Export(t.Context(), store, "s", &first); err != nil {
		t.Fatal(err)
	}
	_, err := session.Import(t.Context(), store, bytes.NewReader(first.Bytes()), "")
	wantErr(t, "importing an existing session", err, session.ErrExists)
	info, err := session.Import(t.Context(), store, bytes.NewReader(first.Bytes()), "again")
	if err != nil || info.ID != "again" || info.Head != s.Head() {
		t.Fatalf("%+v %v", info, err)
	}
	if got := loadMessages(t, openSession(t, store, "again")); got != want {
		t.Errorf("imported %.200s", got)
	}
	if err := session.Export(t.Context(), store, "again", &second); err != nil {
		t.Fatal(err)
	}
	if one, two := first.String(), strings.Replace(second.String(), `"again"`, `"s"`, 1); one != two {
		t.Error("the imported session is exported differently")
	}
	// A missing line, at either end or within.
	lines := strings.SplitAfter(first.String(), "\n")
	for _, cut := range []int{1, 300, len(lines) - 2} {
		broken := strings.Join(lines[:cut], "") + strings.Join(lines[cut+1:], "")
		_, err = session.Import(t.Context(), store, strings.NewReader(broken), "broken")
		wantErr(t, fmt.Sprint("without line ", cut), err, session.ErrInvalid)
	}
	_, err = store.Info(t.Context(), "broken")
	wantErr(t, "a session that was not imported", err, session.ErrNotFound)

	memory := &session.Memory{}
	if err := session.Copy(t.Context(), store, "s", memory); err != nil {
		t.Fatal(err)
	}
	if got := loadMessages(t, openSession(t, memory, "s")); got != want {
		t.Errorf("copied %.200s", got)
	}
	if err := store.Delete(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if err := session.Copy(t.Context(), memory, "s", store); err != nil {
		t.Fatal(err)
	}
	if got := loadMessages(t, openSession(t, store, "s")); got != want {
		t.Errorf("copied back %.200s", got)
	}
	wantErr(t, "copying an existing session", session.Copy(t.Context(), memory, "s", store), session.ErrExists)
}

func intent(run string, turn int, call, input string) tool.Intent {
	return tool.Intent{CallRef: tool.CallRef{Run: run, Turn: turn, CallID: call, Key: tool.Key{Kind: codes.KeyBare, Name: "f"}}, Arguments: sha256.Sum256([]byte(input))}
}

func journalReturnsEarlierAttempts(t *testing.T, store session.Store) {
	s := createSession(t, store, "s")
	begin := func(s *session.Session, in tool.Intent, attempts int, result string) {
		t.Helper()
		prior, err := s.Begin(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if prior.Result != nil {
			got = prior.Result.Text()
		}
		if prior.Attempts != attempts || got != result {
			t.Errorf("%d attempts, %q; want %d, %q", prior.Attempts, got, attempts, result)
		}
	}
	in := intent("run", 1, "call\x00 \xff", "{}")
	begin(s, in, 0, "")
	head := s.Head()
	begin(openSession(t, store, "s"), in, 1, "") // begun, with an unknown outcome
	if s.Head() != head || openSession(t, store, "s").Head() != head {
		t.Error("an intent was written for a call that may not run again")
	}
	result := &dragoman.ToolResult{CallID: in.CallID, Name: "f", Content: []dragoman.Part{&dragoman.Text{Text: "done"}}, Display: "shown"}
	if err := s.End(t.Context(), in, result); err != nil {
		t.Fatal(err)
	}
	if err := s.Rewind(t.Context(), 0); err != nil { // a rewind undoes no effect
		t.Fatal(err)
	}
	for _, s := range []*session.Session{s, openSession(t, store, "s")} {
		begin(s, in, 1, "done")
		begin(s, intent("run", 1, in.CallID, "other"), 1, "done") // the caller compares the hashes
		prior, err := s.Begin(t.Context(), in)
		if err != nil || prior.Arguments != in.Arguments || prior.Result.Display != "shown" {
			t.Errorf("%+v %v", prior, err)
		}
	}

	// Similar ids are different calls.
	s = openSession(t, store, "s")
	for _, other := range []tool.Intent{intent("run", 2, in.CallID, "{}"), intent("ru", 1, in.CallID, "{}"), intent("run", 1, "call", "{}"), intent("run1", 1, in.CallID, "{}")} {
		begin(s, other, 0, "")
	}

	// Idempotent calls begin again, and the attempts are counted.
	again := intent("run", 9, "again", "{}")
	again.Idempotent = true
	for n := range 3 {
		begin(s, again, n, "")
	}
	if err := s.End(t.Context(), again, result); err != nil {
		t.Fatal(err)
	}
	begin(s, again, 3, "done")
	wantErr(t, "a call without a result", s.End(t.Context(), in, nil), session.ErrInvalid)

	// A writer that lost the session to another runs nothing.
	zombie, heir := openSession(t, store, "s"), openSession(t, store, "s")
	saveTexts(t, heir, "", "mine")
	_, err := zombie.Begin(t.Context(), intent("run", 10, "late", "{}"))
	wantErr(t, "begin", err, session.ErrConflict)
	_, _, err = zombie.Load(t.Context())
	wantErr(t, "load", err, session.ErrConflict)
	wantErr(t, "end", zombie.End(t.Context(), in, result), session.ErrConflict)
	wantErr(t, "save", zombie.Save(t.Context(), nil, nil), session.ErrConflict)
	wantErr(t, "rewind", zombie.Rewind(t.Context(), 0), session.ErrConflict)
	begin(heir, intent("run", 10, "late", "{}"), 0, "")

	// If one call is begun concurrently, exactly one attempt is the first.
	var wg sync.WaitGroup
	attempts := make([]int, 8)
	for i := range attempts {
		wg.Go(func() {
			prior, err := heir.Begin(context.Background(), intent("run", 11, "twice", "{}"))
			if err != nil {
				t.Error(err)
			}
			attempts[i] = prior.Attempts
		})
	}
	wg.Wait()
	first := 0
	for _, n := range attempts {
		if n == 0 {
			first++
		}
	}
	if first != 1 {
		t.Errorf("%d of %d may run", first, len(attempts))
	}
}
