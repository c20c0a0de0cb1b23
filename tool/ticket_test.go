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
	"github.com/dragoman-go/dragoman/tool/policy"
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

// The outcome of background work passes the post-hooks of its tool and toolbox, like the output
// of a call. A hook that fails withholds it.
func TestT13_OutcomesPassThePostHooks(t *testing.T) {
	hook := func(suffix string) tool.PostHook {
		return func(ctx context.Context, in tool.Input, out tool.Output) (tool.Output, error) {
			if info, ok := tool.InfoFrom(ctx); !ok || info.CallID != "1" || info.Turn != 3 || info.Key.Name != "f" {
				t.Errorf("%+v", info)
			}
			if out.Ticket != nil {
				return out, nil
			}
			if in.Arguments != nil || in.Text != "" {
				t.Errorf("the input of an outcome is %+v", in)
			}
			text := out.Content[0].(*dragoman.Text).Text
			switch text {
			case "fail":
				return out, errors.New("no")
			case "panic":
				panic("no")
			case "invalid, by tool":
				return tool.Output{Content: []dragoman.Part{&dragoman.Reasoning{Text: "no"}}}, nil
			}
			if _, err := tool.Background(ctx, time.Hour); err == nil {
				t.Error("a hook of an outcome opens a ticket")
			}
			return tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: text + suffix}}}, nil
		}
	}
	for outcome, want := range map[string]string{"ready": "ready, by tool, by box", "fail": "f ended, but its outcome was rejected: no", "panic": "a hook failed", "invalid": "not allowed in a result"} {
		tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
		var id string
		box, err := tool.Config{Hooks: tool.Hooks{Post: []tool.PostHook{hook(", by box")}}}.Box(tool.New("f", "F.", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
			ticket, err := tool.Background(ctx, time.Hour)
			if err == nil {
				id = ticket.ID
			}
			return ticket, err
		}, tool.Set(func(s *tool.Settings) { s.Hooks.Post = []tool.PostHook{hook(", by tool")} })))
		if err != nil {
			t.Fatal(err)
		}
		run := (&tool.Runner{Tickets: tickets}).Start("run")
		if _, err := run.Do(t.Context(), box, tool.Turn{Number: 3, Calls: []*dragoman.ToolCall{call("1", "f", "")}}); err != nil {
			t.Fatal(err)
		}
		if err := tickets.Resolve(t.Context(), id, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: outcome}}}); err != nil {
			t.Fatal(err)
		}
		ms, err := run.Deliver(t.Context(), box)
		if err != nil || len(ms) != 1 || !strings.Contains(ms[0].Text(), want) || !strings.Contains(ms[0].Text(), "<<<") {
			t.Errorf("%s: %v, %s", outcome, err, mustJSON(ms))
		}
	}
}

// Parts that no result can have are refused where they come from. Stored, they would make every
// later request of the conversation invalid.
func TestT13_OutcomeWithAnInvalidPartIsRefused(t *testing.T) {
	for name, part := range map[string]dragoman.Part{
		"a call": &dragoman.ToolCall{ID: "1", Name: "f"}, "reasoning": &dragoman.Reasoning{Text: "so"}, "opaque": &dragoman.Opaque{Type: "text"},
		"media of no kind": &dragoman.Media{MIME: "image/png", Base64: "AAAA"}, "media of an unknown kind": &dragoman.Media{Media: "picture", Base64: "AAAA"},
	} {
		store := &tool.MemoryTickets{}
		tickets := &tool.Tickets{Store: store}
		open := func(s *tool.StoredTicket) error {
			*s = tool.StoredTicket{State: "open", Ticket: tool.Ticket{ID: "t", CallRef: tool.CallRef{Run: "run"}, Expires: time.Now().Add(time.Hour)}}
			return nil
		}
		if err := store.Update(t.Context(), "t", open); err != nil {
			t.Fatal(err)
		}
		if err := tickets.Resolve(t.Context(), "t", tool.Output{Content: []dragoman.Part{part}}); err == nil {
			t.Errorf("%s: the outcome is stored", name)
		}
		if err := tickets.Resolve(t.Context(), "t", tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "x"}}}); err != nil {
			t.Errorf("%s: the ticket is settled by a refused outcome: %v", name, err)
		}
		box := mustBox(t, returnTool(part))
		res, rec := do(t, &tool.Runner{}, box, call("1", "f", ""))
		wantKind(t, res, rec, tool.ErrorOutput)
		req := &dragoman.Request{Messages: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{call("1", "f", "{}")}}, dragoman.ToolResults(res)}}
		if err := req.Validate(); err != nil {
			t.Errorf("%s: the result makes requests invalid: %v", name, err)
		}
	}
}

// Another process continues work from what its ticket stores; what cannot be continued fails.
func TestT13_WorkIsContinuedByTheNextProcess(t *testing.T) {
	var asked []tool.Answer
	define := func(cont func(ctx context.Context, t *tool.Ticket) error) *tool.Box {
		return mustBox(t, tool.New("build", "", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
			ticket, err := tool.Background(ctx, time.Hour)
			if err != nil {
				return nil, err
			}
			return ticket, ticket.SetWork(ctx, json.RawMessage(`{"job":7}`))
		}, tool.Set(func(s *tool.Settings) { s.Continue = cont })))
	}
	for name, tc := range map[string]struct {
		cont func(ctx context.Context, t *tool.Ticket) error
		want string
	}{
		"continued": {func(ctx context.Context, k *tool.Ticket) error {
			if string(k.Work) != `{"job":7}` {
				t.Errorf("work %s", k.Work)
			}
			a, err := k.Ask(ctx, tool.InputRequest{Name: "q", Prompt: "Which?"})
			asked = append(asked, a)
			return errors.Join(err, k.Resolve(ctx, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "built"}}}))
		}, "resolved"},
		"refused":       {func(context.Context, *tool.Ticket) error { return errors.New("the builder is gone") }, "the builder is gone"},
		"panics":        {func(context.Context, *tool.Ticket) error { panic("secret") }, "failed"},
		"not continued": {nil, ""},
	} {
		store := &tool.MemoryTickets{}
		runner := &tool.Runner{Tickets: &tool.Tickets{Store: store}, Approver: policy.ApproverFunc(func(_ context.Context, r *tool.ApprovalRequest) (tool.Answer, error) {
			return tool.Answer{Verdict: tool.Approved, Message: r.Wanted.Prompt}, nil
		})}
		_, _ = do(t, runner, define(nil), call("1", "build", "{}"))
		box := define(tc.cont)
		next := runner.Start("run")
		var text string
		for range 2 { // a ticket that was settled on the way may come with the next delivery
			ms, err := next.Deliver(t.Context(), box)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range ms {
				text += m.Text()
			}
		}
		if !strings.Contains(text, tc.want) || strings.Contains(text, "secret") || tc.want == "" && text != "" {
			t.Errorf("%s: %q", name, text)
		}
	}
	if len(asked) != 1 || asked[0].Message != "Which?" {
		t.Errorf("asked %+v", asked)
	}
	if a, err := (&tool.Ticket{}).Ask(t.Context(), tool.InputRequest{}); err != nil || a.Verdict != tool.Undecided {
		t.Errorf("%+v, %v", a, err)
	}
	if err := (&tool.Ticket{}).SetWork(t.Context(), nil); !errors.Is(err, tool.ErrNoTicket) {
		t.Error(err)
	}
}
