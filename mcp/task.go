package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/mcp/internal/catalog"
	"github.com/dragoman-go/dragoman/mcp/internal/peer"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
	"github.com/dragoman-go/dragoman/tool"
)

// minTicket is the shortest life of a ticket for a task, and defaultTicket that of a task whose
// server does not limit it. lastWord is the time before the end of a ticket in which it gets a
// text that says why it has no result.
const (
	minTicket     = time.Minute
	defaultTicket = 24 * time.Hour
	lastWord      = 5 * time.Second
)

// taskWork is what a ticket stores, so that another process can wait for its task.
type taskWork struct {
	Server string `json:"server"`
	// Identity is the command or URL of the server, as in a lock file.
	Identity string    `json:"identity"`
	Tool     string    `json:"tool"`
	Task     peer.Task `json:"task"`
}

// background lets a task continue after the call, if the run has a store for its ticket;
// otherwise the call waits for its end.
func (t *remoteTool) background(ctx context.Context, params json.RawMessage, task peer.Task, current string, declined int) (tool.Output, error) {
	s := t.server
	ttl := task.TTL
	if ttl <= 0 {
		ttl = defaultTicket
	}
	ticket, err := tool.Background(ctx, max(ttl, minTicket))
	if errors.Is(err, tool.ErrNoTicket) {
		_, pipeline := tool.InfoFrom(ctx)
		input := func(ctx context.Context, r peer.Round) (map[string]peer.Response, error) {
			if pipeline && !r.InFlight {
				return nil, peer.ErrPark
			}
			return s.answerWith(ctx, r, t.def.Name, nil), nil
		}
		raw, err := s.peer.Await(ctx, task, peer.Options{Input: input, MaxTime: s.cfg.MaxCallTime})
		return t.ended(ctx, params, raw, err, current, declined)
	}
	if err != nil {
		return tool.Output{}, err
	}
	work, err := json.Marshal(taskWork{Server: s.label, Identity: s.identity, Tool: t.def.Name, Task: task})
	if err == nil {
		err = ticket.SetWork(ctx, work)
	}
	if err != nil {
		s.all.log().Warn("a task of an MCP server cannot be continued by another process", "server", s.label, "tool", t.def.Name, "error", err)
	}
	if !t.follow(ticket, task) {
		return tool.Output{}, t.explain(peer.ErrClosed)
	}
	return tool.Output{Ticket: ticket}, nil
}

// continueWork waits for the task of a ticket that an earlier process opened.
func (t *remoteTool) continueWork(_ context.Context, ticket *tool.Ticket) error {
	work, err := readWork(ticket)
	if err != nil {
		return err
	}
	s := t.server
	switch {
	case work.Server != s.label || work.Tool != t.def.Name:
		return fmt.Errorf("it belongs to the tool %s of the server %q, which this tool is not", work.Tool, work.Server)
	case work.Identity != s.identity:
		return fmt.Errorf("the server %q is now another one than when the work began", s.label)
	}
	t.follow(ticket, work.Task)
	return nil
}

// readWork reads the task of a ticket.
func readWork(ticket *tool.Ticket) (w taskWork, err error) {
	if err := json.Unmarshal(ticket.Work, &w); err != nil || w.Server == "" || w.Task.ID == "" {
		return w, errors.New("its stored state is not that of a task of an MCP server")
	}
	return w, nil
}

// Continue waits for the tasks of a run that an earlier process began, and settles their
// tickets. Agents do that by themselves when they resume a run with the same tools. Questions
// of the tasks go to [Options.Approver]. Tickets of servers that are not configured fail.
// Continue does not wait for the tasks.
func (s *Servers) Continue(ctx context.Context, run string, tickets *tool.Tickets) error {
	if tickets == nil || tickets.Store == nil {
		return nil
	}
	open, err := tickets.Store.List(ctx, run)
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	var errs []error
	for _, stored := range open {
		ticket := stored.Ticket
		work, err := readWork(&ticket)
		if stored.State != "open" || err != nil {
			continue // settled, or of another kind of tool
		}
		reason := ""
		one, err := s.find(work.Server)
		switch {
		case err != nil:
			reason = fmt.Sprintf("the server %q, which ran it as a task, is no longer configured", work.Server)
		case work.Identity != one.identity:
			reason = fmt.Sprintf("the server %q is now another one than when the work began", work.Server)
		}
		if reason != "" {
			if err := tickets.Fail(ctx, ticket.ID, "The work was not continued: "+reason+". It may have had an effect."); err != nil && !errors.Is(err, tool.ErrTicketSettled) {
				errs = append(errs, fmt.Errorf("mcp: %w", err))
			}
			continue
		}
		t := &remoteTool{server: one, def: &catalog.Tool{Name: work.Tool}}
		t.followIn(&ticket, work.Task, func(ctx context.Context, out tool.Output) error { return tickets.Resolve(ctx, ticket.ID, out) })
	}
	return errors.Join(errs...)
}

// follow waits for a task and settles its ticket, unless this process does so already. It
// reports false after Close.
func (t *remoteTool) follow(ticket *tool.Ticket, task peer.Task) bool {
	return t.followIn(ticket, task, ticket.Resolve)
}

func (t *remoteTool) followIn(ticket *tool.Ticket, task peer.Task, resolve func(context.Context, tool.Output) error) bool {
	s := t.server
	all := s.all
	all.mu.Lock()
	defer all.mu.Unlock()
	switch {
	case all.closed:
		return false
	case all.working[ticket.ID]:
		return true
	}
	all.working[ticket.ID] = true
	all.waiting.Add(1)
	go func() {
		defer all.waiting.Done()
		defer func() {
			all.mu.Lock()
			defer all.mu.Unlock()
			delete(all.working, ticket.ID)
		}()
		out, settled := t.await(ticket, task)
		if !settled {
			return // another process waits for it
		}
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := resolve(ctx, out); err != nil && !errors.Is(err, tool.ErrTicketSettled) {
			all.log().Warn("the outcome of a task could not be stored", "server", s.label, "tool", t.def.Name, "error", err)
		}
	}()
	return true
}

// await waits for the end of a task, also while its server cannot be reached. settled is false
// if the servers were closed before.
func (t *remoteTool) await(ticket *tool.Ticket, task peer.Task) (out tool.Output, settled bool) {
	s := t.server
	input := func(ctx context.Context, r peer.Round) (map[string]peer.Response, error) {
		return s.answerWith(ctx, r, t.def.Name, ticket.Ask), nil
	}
	for failures := 0; ; failures++ {
		left := time.Until(ticket.Expires) - lastWord
		raw, err := s.peer.Await(context.Background(), task, peer.Options{Input: input, MaxTime: max(left, time.Millisecond)})
		left = time.Until(ticket.Expires) - lastWord
		switch {
		case s.all.ctx.Err() != nil && err != nil, errors.Is(err, peer.ErrClosed):
			return out, false
		case err != nil && passing(err) && left > 0:
			pause := min(longestBackoff, s.all.backoff()<<min(failures, 6), left)
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-s.all.ctx.Done():
				timer.Stop()
				return out, false
			}
			continue
		case err == nil:
			out, err = t.output(raw)
			if err == nil && s.all.opts.Forward { // outcomes of tickets have no envelope
				out = tool.Output{Failed: out.Failed, Content: []dragoman.Part{&dragoman.Data{JSON: jsonwire.With([]byte("{}"), "dragoman/mcp_result", raw)}}}
			}
		}
		if err != nil {
			text := t.explain(err).Error()
			if errors.Is(err, peer.ErrTimeout) {
				text = fmt.Sprintf("The server %q did not end the task in time, so it was canceled. It may have had an effect.", s.label)
			}
			out = tool.Output{Failed: true, Content: []dragoman.Part{&dragoman.Text{Text: text}}}
		}
		return out, true
	}
}

// passing reports whether an error says nothing about the task, only that the server cannot be
// reached now.
func passing(err error) bool {
	var coded *rpc.Error
	for _, final := range []error{peer.ErrTask, peer.ErrResult, peer.ErrDeclined, peer.ErrUnsupported, peer.ErrTimeout} {
		if errors.Is(err, final) {
			return false
		}
	}
	return !errors.As(err, &coded)
}
