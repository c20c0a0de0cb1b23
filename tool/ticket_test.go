package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// failingTickets fails every update after the first.
type failingTickets struct {
	tool.MemoryTickets
	updates int
}

func (s *failingTickets) Update(ctx context.Context, id string, change func(*tool.StoredTicket) error) error {
	if s.updates++; s.updates > 1 {
		return errors.New("the disk is full")
	}
	return s.MemoryTickets.Update(ctx, id, change)
}

// A ticket ends with its call, unless the call may continue: then its outcome is still
// delivered.
func TestT13_TicketOfACallThatFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		fail func(cancel func()) error
		open int
	}{
		"a failure withdraws it":    {func(func()) error { return errors.New("no worker") }, 0},
		"a cancellation keeps it":   {func(cancel func()) error { cancel(); return context.Canceled }, 1},
		"a suspended call keeps it": {func(func()) error { return &tool.Suspended{State: json.RawMessage(`1`)} }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			store := &tool.MemoryTickets{}
			box := mustBox(t, tool.New("build", "", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
				if _, err := tool.Background(ctx, time.Hour); err != nil {
					t.Error(err)
				}
				return nil, tc.fail(cancel)
			}))
			run := (&tool.Runner{Tickets: &tool.Tickets{Store: store}}).Start("run")
			_, _ = run.Do(ctx, box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call("1", "build", "{}")}})
			if left, err := store.List(t.Context(), "run"); err != nil || len(left) != tc.open {
				t.Errorf("%d open tickets, %v", len(left), err)
			}
		})
	}
}

func TestT13_TicketThatCannotBeWithdrawnIsLogged(t *testing.T) {
	var log bytes.Buffer
	box := mustBox(t, tool.New("build", "", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
		_, err := tool.Background(ctx, time.Hour)
		return nil, errors.Join(err, errors.New("no worker"))
	}))
	for want, store := range map[bool]tool.TicketStore{true: &failingTickets{}, false: &tool.MemoryTickets{}} {
		log.Reset()
		r := &tool.Runner{Tickets: &tool.Tickets{Store: store}, Log: slog.New(slog.NewTextHandler(&log, nil))}
		res, rec := do(t, r, box, call("1", "build", "{}"))
		wantKind(t, res, rec, tool.ErrorFailed)
		if got := strings.Contains(log.String(), "could not be withdrawn"); got != want {
			t.Errorf("%T: logged %s", store, log.String())
		}
	}
}

// slowTickets opens a ticket only when the call has ended.
type slowTickets struct {
	tool.MemoryTickets
	opening, ended chan struct{}
}

func (s *slowTickets) Update(ctx context.Context, id string, change func(*tool.StoredTicket) error) error {
	select {
	case <-s.ended: // it is withdrawn
	default:
		close(s.opening)
		<-s.ended
	}
	return s.MemoryTickets.Update(context.WithoutCancel(ctx), id, change)
}

func TestT13_TicketOpenedAfterTheCallEndedIsWithdrawn(t *testing.T) {
	store := &slowTickets{opening: make(chan struct{}), ended: make(chan struct{})}
	opened := make(chan error, 1)
	box := mustBox(t, tool.New("build", "", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
		ticket, err := tool.Background(ctx, time.Hour)
		opened <- err
		return ticket, err
	}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-store.opening
		cancel()
	}()
	run := (&tool.Runner{Tickets: &tool.Tickets{Store: store}}).Start("run")
	_, _ = run.Do(ctx, box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call("1", "build", "{}")}})
	close(store.ended)
	if err := <-opened; !errors.Is(err, tool.ErrNoTicket) {
		t.Errorf("the handler got %v", err)
	}
	if left, err := store.List(t.Context(), "run"); err != nil || len(left) != 0 {
		t.Errorf("%d open tickets, %v", len(left), err)
	}
}

func TestT13_TicketsWithoutAStoreAreUnknown(t *testing.T) {
	for name, tickets := range map[string]*tool.Tickets{"nil": nil, "no store": {}} {
		if err := tickets.Resolve(t.Context(), "t", tool.Output{}); !errors.Is(err, tool.ErrNoTicket) {
			t.Errorf("%s: Resolve: %v", name, err)
		}
		if err := tickets.Fail(t.Context(), "t", "no"); !errors.Is(err, tool.ErrNoTicket) {
			t.Errorf("%s: Fail: %v", name, err)
		}
	}
}
