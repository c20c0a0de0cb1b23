package session_test

import (
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sessiontest"
	"github.com/dragoman-go/dragoman/tool"
)

func TestS2_MemoryConforms(t *testing.T) {
	sessiontest.Run(t, func(*testing.T) session.Store { return &session.Memory{} })
}

func TestSessionWritesPassEntryCheck(t *testing.T) {
	ctx := t.Context()
	s, err := session.Create(ctx, &session.Memory{}, session.Info{})
	if err != nil {
		t.Fatal(err)
	}
	said := dragoman.Message{
		Role: dragoman.RoleAssistant, Parts: []dragoman.Part{
			&dragoman.ToolCall{ID: "c\xff", Name: "look", Arguments: `{"no JSON`},
			&dragoman.Opaque{Dialect: "d", Type: "t", JSON: []byte("\xff{")},
		},
		Native: &dragoman.Sidecar{Dialect: "d", Raw: []byte("\x00not JSON")},
		Extra:  &dragoman.Extra{Dialect: "d", Fields: []dragoman.Field{{Path: "/p", Value: []byte("{")}}},
	}
	call := tool.Intent{CallRef: tool.CallRef{Run: "r\xff", Turn: 1, CallID: "c\""}}
	_, begun := s.Begin(ctx, call)
	if err := errors.Join(
		s.Save(ctx, []dragoman.Message{said}, []byte(`{"v":1}`)), begun,
		s.End(ctx, call, &dragoman.ToolResult{CallID: "c", Content: []dragoman.Part{&dragoman.Text{Text: "a\xff"}}}),
		s.SetMetadata(ctx, []byte(`{"a":1}`)), s.Rewind(ctx, 1),
	); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for e, err := range s.Entries(ctx, session.Query{}) {
		if err = errors.Join(err, e.Check()); err != nil {
			t.Errorf("%s: %v: %s", e.Kind, err, e.Body)
		}
		seen++
	}
	if seen != 6 {
		t.Error(seen)
	}
	if err := s.Save(ctx, nil, []byte(`{`)); !errors.Is(err, session.ErrInvalid) {
		t.Error(err)
	}
}

func TestAppendCopiesBodies(t *testing.T) {
	ctx := t.Context()
	s, err := session.Create(ctx, &session.Memory{}, session.Info{})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`"first"`)
	if err := s.Append(ctx, session.Entry{Kind: "x", Body: body}); err != nil {
		t.Fatal(err)
	}
	copy(body, `"other"`)
	for e, err := range s.Entries(ctx, session.Query{}) {
		if err != nil || string(e.Body) != `"first"` {
			t.Errorf("%s, %v", e.Body, err)
		}
	}
}

func TestT13_MemoryTicketsConform(t *testing.T) {
	sessiontest.RunTickets(t, func(*testing.T) func(*testing.T) tool.TicketStore {
		store := &session.Memory{}
		return func(*testing.T) tool.TicketStore { return store.Tickets() }
	})
}

func TestOpenOrCreateGivesEveryCallerTheSession(t *testing.T) {
	store := &session.Memory{}
	first, err := session.OpenOrCreate(t.Context(), store, "trip")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.SetMetadata(t.Context(), []byte(`{"a":1}`)); err != nil {
		t.Fatal(err)
	}
	again, err := session.OpenOrCreate(t.Context(), store, "trip")
	if err != nil || again.Head() != first.Head() {
		t.Errorf("%v: head %d, want %d", err, again.Head(), first.Head())
	}
	if _, err := session.OpenOrCreate(t.Context(), store, "../x"); err == nil {
		t.Error("an invalid id was accepted")
	}
}
