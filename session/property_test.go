package session_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/gen"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"pgregory.net/rapid"
)

// point is a conversation at some entry of a log, in the simplest form: complete copies,
// nothing shared.
type point struct {
	messages []string
	state    string
}

// model is one session: its conversation at each entry.
type model struct {
	at []point // by Seq; the first is the beginning
}

func (m *model) now() point { return m.at[len(m.at)-1] }

func (m *model) add(p point) { m.at = append(m.at, p) }

func (m *model) addText(text string) {
	p := m.now()
	m.add(point{append(slices.Clone(p.messages), text), p.state})
}

func (m *model) set(state string) { m.add(point{m.now().messages, state}) }

func (m *model) copy(at int64) *model { return &model{slices.Clone(m.at[:at+1])} }

// machine applies the same operations to sessions of a store and to their models.
type machine struct {
	store    session.Store
	ids      []string
	sessions map[string]*session.Session
	models   map[string]*model
	texts    int // texts that were made
}

func (m *machine) pick(t *rapid.T) (string, *session.Session, *model) {
	id := rapid.SampledFrom(m.ids).Draw(t, "session")
	return id, m.sessions[id], m.models[id]
}

func (m *machine) begin(t *rapid.T, s *session.Session, err error, as *model) {
	if err != nil {
		t.Fatal(err)
	}
	m.ids = append(m.ids, s.ID())
	m.sessions[s.ID()], m.models[s.ID()] = s, as
}

func (m *machine) create(t *rapid.T) {
	s, err := session.Create(t.Context(), m.store, session.Info{})
	m.begin(t, s, err, &model{at: []point{{}}})
}

func (m *machine) save(t *rapid.T) {
	_, s, mod := m.pick(t)
	var messages []dragoman.Message
	for range rapid.IntRange(0, 4).Draw(t, "messages") {
		m.texts++
		text := fmt.Sprint(m.texts)
		messages = append(messages, dragoman.UserText(text))
		mod.addText(text)
	}
	var state []byte
	if rapid.Bool().Draw(t, "with a state") {
		m.texts++
		state = fmt.Append(nil, m.texts)
		mod.set(string(state))
	}
	if err := s.Save(t.Context(), messages, state); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) other(t *rapid.T) {
	_, s, mod := m.pick(t)
	if err := s.Append(t.Context(), session.Entry{Kind: "x", Key: "k", Body: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	mod.add(mod.now())
}

func (m *machine) rewind(t *rapid.T) {
	_, s, mod := m.pick(t)
	to := rapid.IntRange(0, len(mod.at)-1).Draw(t, "to")
	if err := s.Rewind(t.Context(), int64(to)); err != nil {
		t.Fatal(err)
	}
	mod.add(mod.at[to])
}

func (m *machine) branch(t *rapid.T) {
	_, s, mod := m.pick(t)
	at := int64(rapid.IntRange(0, len(mod.at)-1).Draw(t, "at"))
	b, err := s.Branch(t.Context(), at, session.Info{})
	m.begin(t, b, err, mod.copy(at))
}

func (m *machine) reopen(t *rapid.T) {
	id, _, _ := m.pick(t)
	s, err := session.Open(t.Context(), m.store, id)
	if err != nil {
		t.Fatal(err)
	}
	m.sessions[id] = s
}

func (m *machine) exportAndImport(t *rapid.T) {
	id, _, mod := m.pick(t)
	var b bytes.Buffer
	if err := session.Export(t.Context(), m.store, id, &b); err != nil {
		t.Fatal(err)
	}
	as := fmt.Sprint(m.ids[0], "-", len(m.ids))
	if _, err := session.Import(t.Context(), m.store, &b, as); err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), m.store, as)
	m.begin(t, s, err, mod.copy(int64(len(mod.at)-1)))
}

// twoWriters lets another writer append first.
func (m *machine) twoWriters(t *rapid.T) {
	id, s, mod := m.pick(t)
	other, err := session.Open(t.Context(), m.store, id)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Save(t.Context(), nil, []byte(`"theirs"`)); err != nil {
		t.Fatal(err)
	}
	mod.set(`"theirs"`)
	for range 2 {
		if err := s.Save(t.Context(), []dragoman.Message{dragoman.UserText("lost")}, nil); !errors.Is(err, session.ErrConflict) {
			t.Fatalf("a lost race: %v", err)
		}
	}
	m.sessions[id] = other
}

// check checks one session after a step; over all runs it covers every session and step.
func (m *machine) check(t *rapid.T) {
	id, s, mod := m.pick(t)
	messages, state, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range messages {
		got = append(got, messages[i].Text())
	}
	want := mod.now()
	if !slices.Equal(got, want.messages) || string(state) != want.state || s.Head() != int64(len(mod.at)-1) {
		t.Fatalf("%s: %v %s at %d, want %v %s at %d", id, got, state, s.Head(), want.messages, want.state, len(mod.at)-1)
	}
	n := rapid.IntRange(1, 6).Draw(t, "n")
	last, err := s.Last(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	want.messages = want.messages[max(0, len(want.messages)-n):]
	if len(last) != len(want.messages) {
		t.Fatalf("the last %d are %d", n, len(last))
	}
	for i := range last {
		if last[i].Message.Text() != want.messages[i] {
			t.Fatalf("the last %d: %v, want %v", n, last, want.messages)
		}
	}
}

func TestS3_SessionsMatchModel(t *testing.T) {
	for name, open := range map[string]func() session.Store{
		"memory": func() session.Store { return &session.Memory{} },
		"sqlite": func() session.Store {
			s, err := sqlite.Open(context.Background(), filepath.Join(t.TempDir(), "s.db"), sqlite.Options{Relaxed: true})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := open()
			defer store.Close()
			runs, failed := 0, false
			rapid.Check(t, func(t *rapid.T) {
				// Files are slow: run fewer cases, unless a failed case is being
				// minimized.
				if runs++; runs > 30 && name == "sqlite" && !failed {
					return
				}
				defer func() { failed = failed || t.Failed() }()
				m := &machine{store: store, sessions: map[string]*session.Session{}, models: map[string]*model{}}
				m.create(t)
				t.Repeat(map[string]func(*rapid.T){
					"create": m.create, "save": m.save, "save again": m.save, "append": m.other, "rewind": m.rewind, "branch": m.branch,
					"reopen": m.reopen, "move": m.exportAndImport, "race": m.twoWriters, "": m.check,
				})
			})
		})
	}
}

// Every part of a message survives: parts, sidecars, origins, raw bytes.
func TestS5_MessagesRoundTrip(t *testing.T) {
	store := &session.Memory{}
	rapid.Check(t, func(t *rapid.T) {
		messages := gen.Options{}.Messages().Draw(t, "messages")
		s, err := session.Create(t.Context(), store, session.Info{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Save(t.Context(), messages, nil); err != nil {
			t.Fatal(err)
		}
		got, _, err := s.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d := gen.Diff(messages, got); d != "" {
			t.Fatal(d)
		}
	})
}
