package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/internal/testkit"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sessiontest"
	"github.com/dragoman-go/dragoman/session/sqlite"
	"github.com/dragoman-go/dragoman/tool"
)

func TestT13_SQLiteTicketsConform(t *testing.T) {
	sessiontest.RunTickets(t, func(t *testing.T) func(t *testing.T) tool.TicketStore {
		path := filepath.Join(t.TempDir(), "t.db")
		return func(t *testing.T) tool.TicketStore {
			return open(t, path, sqlite.Options{Relaxed: true}).Tickets()
		}
	})
}

func TestT13_DeliveredTicketsAreDeletedAfterTheirRetention(t *testing.T) {
	clock := testkit.NewClock()
	s := open(t, filepath.Join(t.TempDir(), "t.db"), sqlite.Options{Relaxed: true, Now: clock.Now})
	put := func(id string) (known bool) {
		err := s.Tickets().Update(t.Context(), id, func(st *tool.StoredTicket) error {
			known = st.State != ""
			*st = tool.StoredTicket{Ticket: tool.Ticket{ID: id, Expires: clock.Now()}, State: "open", Delivered: true}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return known
	}
	put("old")
	clock.Move(storage.TicketRetention - time.Hour)
	put("b")
	if !put("old") {
		t.Error("a ticket was deleted before its retention ended")
	}
	clock.Move(storage.TicketRetention + time.Hour)
	put("c")
	if put("old") {
		t.Error("a ticket still exists after its retention")
	}
}

func TestTicketsOfAClosedStoreFail(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "t.db"), sqlite.Options{})
	k := s.Tickets()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := k.List(context.Background(), "run"); !errors.Is(err, session.ErrClosed) {
		t.Error(err)
	}
	if err := k.Update(context.Background(), "a", func(*tool.StoredTicket) error { return nil }); !errors.Is(err, session.ErrClosed) {
		t.Error(err)
	}
}
