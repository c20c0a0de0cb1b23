package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/storage"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// RunTickets tests a [tool.TicketStore] against the contract of the interface. open creates
// an empty place for tickets and returns a function that opens that place each time it is
// called, as another process would; for a store that ends with its process, the function
// returns the same store.
func RunTickets(t *testing.T, open func(t *testing.T) (again func(t *testing.T) tool.TicketStore)) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(t *testing.T, open func(t *testing.T) tool.TicketStore)
	}{
		{"T13_tickets are listed in order until they are delivered", ticketsAreListed},
		{"T13_tickets survive a restart and are settled from outside", ticketsSurvive},
		{"T13_tickets expire", ticketsExpire},
		{"T13_only one caller settles a ticket", ticketSettlesOnce},
		{"a failed change stores nothing", failedChangesStoreNothing},
		{"canceled contexts are errors", ticketContexts},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) { c.test(t, open(t)) })
	}
}

// openTicket stores an open ticket of a run.
func openTicket(t *testing.T, s tool.TicketStore, id, run string, expires time.Time) {
	t.Helper()
	ref := tool.CallRef{Run: run, Turn: 3, CallID: "call " + id, Key: tool.Key{Kind: codes.KeyBare, Name: "build"}}
	err := s.Update(t.Context(), id, func(st *tool.StoredTicket) error {
		if st.State != "" {
			return fmt.Errorf("ticket %s has state %s", id, st.State)
		}
		*st = tool.StoredTicket{Ticket: tool.Ticket{ID: id, CallRef: ref, Expires: expires, Note: "wait"}, State: "open"}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func listed(t *testing.T, s tool.TicketStore, run, want string) {
	t.Helper()
	all, err := s.List(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range all {
		got = append(got, all[i].Ticket.ID+" "+all[i].State)
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("tickets of %s: %q, want %q", run, got, want)
	}
}

func ticketsAreListed(t *testing.T, open func(t *testing.T) tool.TicketStore) {
	s := open(t)
	for _, id := range []string{"b", "a", "c"} {
		openTicket(t, s, id, "run", begin())
	}
	openTicket(t, s, "d", "other", begin())
	listed(t, s, "run", "b open, a open, c open")
	err := s.Update(t.Context(), "a", func(st *tool.StoredTicket) error {
		if st.Ticket.CallID != "call a" || st.Ticket.Note != "wait" || st.Ticket.Turn != 3 || st.Ticket.Key.Name != "build" || !st.Ticket.Expires.Equal(begin()) {
			t.Errorf("%+v", st)
		}
		st.Delivered = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	listed(t, s, "run", "b open, c open")
	listed(t, s, "nobody", "")
}

func ticketsSurvive(t *testing.T, open func(t *testing.T) tool.TicketStore) {
	openTicket(t, open(t), "a", "run", time.Now().Add(time.Hour))
	openTicket(t, open(t), "b", "run", time.Now().Add(time.Hour))
	outside := &tool.Tickets{Store: open(t)}
	if err := outside.Resolve(t.Context(), "a", tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "built \x00 é"}}}); err != nil {
		t.Fatal(err)
	}
	if err := outside.Fail(t.Context(), "b", "broken"); err != nil {
		t.Fatal(err)
	}
	all, err := open(t).List(t.Context(), "run")
	if err != nil || len(all) != 2 || all[0].State != "resolved" || all[1].State != "failed" {
		t.Fatalf("%+v %v", all, err)
	}
	p, err := dragoman.UnmarshalPart(all[0].Parts[0])
	if text, ok := p.(*dragoman.Text); err != nil || !ok || text.Text != "built \x00 é" {
		t.Errorf("%+v %v", p, err)
	}
	wantErr(t, "settling again", outside.Fail(t.Context(), "a", "no"), tool.ErrTicketSettled)
	wantErr(t, "settling an unknown ticket", outside.Fail(t.Context(), "x", "no"), tool.ErrNoTicket)
}

func ticketsExpire(t *testing.T, open func(t *testing.T) tool.TicketStore) {
	clock := newClock()
	openTicket(t, open(t), "a", "run", clock.Now().Add(time.Minute))
	tickets := &tool.Tickets{Store: open(t), Now: clock.Now}
	box, err := tool.Config{}.Box()
	if err != nil {
		t.Fatal(err)
	}
	deliver := func() string {
		ms, err := (&tool.Runner{Tickets: tickets}).Start("run").Deliver(t.Context(), box)
		if err != nil {
			t.Fatal(err)
		}
		var text []string
		for i := range ms {
			text = append(text, ms[i].Text())
		}
		return strings.Join(text, "\n")
	}
	if got := deliver(); got != "" {
		t.Errorf("before it expires: %q", got)
	}
	clock.Move(time.Hour)
	wantErr(t, "resolving an expired ticket", tickets.Resolve(t.Context(), "a", tool.Output{}), tool.ErrTicketSettled)
	if got := deliver(); !strings.Contains(got, "is expired") {
		t.Errorf("after it expired: %q", got)
	}
	if got := deliver(); got != "" {
		t.Errorf("delivered again: %q", got)
	}
}

func ticketSettlesOnce(t *testing.T, open func(t *testing.T) tool.TicketStore) {
	openTicket(t, open(t), "a", "run", time.Now().Add(time.Hour))
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		tickets := &tool.Tickets{Store: open(t)}
		wg.Go(func() { errs[i] = tickets.Fail(t.Context(), "a", fmt.Sprint(i)) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
			continue
		}
		wantErr(t, "a lost race", err, tool.ErrTicketSettled)
	}
	if won != 1 {
		t.Errorf("%d callers settled one ticket, want 1", won)
	}
}

func failedChangesStoreNothing(t *testing.T, open func(t *testing.T) tool.TicketStore) {
	s := open(t)
	no := errors.New("no")
	wantErr(t, "a failed change", s.Update(t.Context(), "a", func(st *tool.StoredTicket) error {
		st.State, st.Ticket.Run = "open", "run"
		return no
	}), no)
	if err := s.Update(t.Context(), "b", func(st *tool.StoredTicket) error { return nil }); err != nil {
		t.Error(err)
	}
	listed(t, s, "run", "")
	listed(t, s, "", "")
}

func ticketContexts(t *testing.T, open func(t *testing.T) tool.TicketStore) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, memory := s.(*tool.MemoryTickets); memory {
		t.Skip("a store in memory never waits")
	}
	wantErr(t, "Update", s.Update(ctx, "a", func(st *tool.StoredTicket) error { st.State = "open"; return nil }), context.Canceled)
	_, err := s.List(ctx, "run")
	wantErr(t, "List", err, context.Canceled)
}

// spillsOutputs checks the outputs that a session of the store holds.
func spillsOutputs(t *testing.T, store session.Store) {
	s, err := session.Create(t.Context(), store, session.Info{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	content := strings.Repeat("aé日😀\x00\n", 120_000) // several chunks
	of := tool.CallRef{Run: "run", Turn: 2, CallID: "c"}
	name, err := s.Spill().Put(t.Context(), of, 0, content)
	if err != nil {
		t.Fatal(err)
	}
	head := s.Head()
	if again, err := s.Spill().Put(t.Context(), of, 0, content); err != nil || again != name || s.Head() != head {
		t.Errorf("stored again as %q, %v, %d entries", again, err, s.Head()-head)
	}
	if other, err := s.Spill().Put(t.Context(), of, 1, "other"); err != nil || other == name {
		t.Errorf("%q %v", other, err)
	}
	reopened, err := session.Open(t.Context(), store, "s") // as another process does
	if err != nil {
		t.Fatal(err)
	}
	branch, err := reopened.Branch(t.Context(), reopened.Head(), session.Info{ID: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*session.Session{reopened, branch} {
		var got strings.Builder
		for got.Len() < len(content) {
			page, total, err := s.Spill().Read(t.Context(), "another run", name, got.Len(), 100_003)
			if err != nil || total != len(content) || page == "" || len(page) > 100_003 {
				t.Fatalf("at %d: %d bytes of %d, %v", got.Len(), len(page), total, err)
			}
			got.WriteString(page)
		}
		if got.String() != content {
			t.Errorf("session %s: the pages are not the output", s.ID())
		}
		if page, _, err := s.Spill().Read(t.Context(), "run", name, 2, 3); err != nil || !strings.HasPrefix(page, "é") {
			t.Errorf("inside a character: %q %v", page, err)
		}
		if _, _, err := s.Spill().Read(t.Context(), "run", name, len(content)+1, 3); err == nil {
			t.Error("a page after the end was read")
		}
		_, _, err := s.Spill().Read(t.Context(), "run", "out_unknown", 0, 3)
		wantErr(t, "an unknown name", err, tool.ErrNoSpill)
	}
	if messages, _, err := reopened.Load(t.Context()); err != nil || len(messages) != 0 {
		t.Errorf("%d messages, %v", len(messages), err)
	}
	_, err = s.Spill().Put(t.Context(), of, 2, strings.Repeat("x", storage.MaxOutput+1))
	wantErr(t, "an output that is too long", err, dragoman.ErrTooLarge)
}

// storesAttachments checks that the store has the content of media separate from messages.
func storesAttachments(t *testing.T, store session.Store) {
	s, err := session.Create(t.Context(), store, session.Info{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	image := dragoman.Image("image/png", []byte(strings.Repeat("\x00\xff picture", 10_000)))
	for range 2 {
		if err := s.Save(t.Context(), []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{image}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s.Head() != 3 { // two messages, one attachment
		t.Errorf("%d entries", s.Head())
	}
	reopened, err := session.Open(t.Context(), store, "s")
	if err != nil {
		t.Fatal(err)
	}
	messages, _, err := reopened.Load(t.Context())
	if err != nil || len(messages) != 2 {
		t.Fatalf("%d messages, %v", len(messages), err)
	}
	if m := messages[1].Parts[0].(*dragoman.Media); m.Attachment == "" || m.Base64 != "" {
		t.Errorf("the message has the content: %+.100v", m)
	}
	expanded, err := reopened.Expand(t.Context(), messages)
	if err != nil {
		t.Fatal(err)
	}
	for i := range expanded {
		if m := expanded[i].Parts[0].(*dragoman.Media); m.Base64 != image.Base64 || m.Attachment != "" {
			t.Errorf("message %d has other content", i)
		}
	}
	_, err = reopened.Expand(t.Context(), []dragoman.Message{{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Media{Attachment: "att_gone"}}}})
	wantErr(t, "an unknown attachment", err, dragoman.ErrAttachment)
}
