package tool

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// Ticket represents work that continues after its call has returned. A handler gets one from
// [Background] and returns it.
type Ticket struct {
	// ID is the same for the same call in every process.
	ID string
	CallRef
	// Expires is the time at which the work is abandoned.
	Expires time.Time
	// Note is the interim text for the model; empty means a line that announces the result.
	Note string
	// Work is data with which another process can continue the work: see [Ticket.SetWork].
	Work json.RawMessage `json:",omitempty"`

	tickets *Tickets
	ask     func(ctx context.Context, w *InputRequest) (Answer, error)
}

// SetWork stores data with the ticket with which the tool continues the work after this process
// has ended: Continue of [Settings] gets it.
func (t *Ticket) SetWork(ctx context.Context, work json.RawMessage) error {
	if t.tickets == nil || t.tickets.Store == nil {
		return fmt.Errorf("%w: %s", ErrNoTicket, t.ID)
	}
	err := t.tickets.Store.Update(ctx, t.ID, func(s *StoredTicket) error {
		if s.State != ticketOpen {
			return fmt.Errorf("%w: %s", ErrTicketSettled, t.ID)
		}
		s.Ticket.Work = work
		return nil
	})
	if err == nil {
		t.Work = work
	}
	return err
}

// Ask asks the approver of the run a question about the work, also after the call has returned.
// The answer is undecided if the run has no approver, or the approver leaves it so.
func (t *Ticket) Ask(ctx context.Context, question InputRequest) (Answer, error) {
	if t.ask == nil {
		return Answer{}, nil
	}
	return t.ask(ctx, &question)
}

// Resolve settles the ticket, as [Tickets.Resolve] does, in the store of the run that opened it.
// Only the value that [Background] returned has this store.
func (t *Ticket) Resolve(ctx context.Context, out Output) error {
	return t.tickets.Resolve(ctx, t.ID, out)
}

// The states of tickets.
const (
	ticketOpen     = "open"
	ticketResolved = "resolved"
	ticketFailed   = "failed"
	ticketExpired  = "expired"
)

// StoredTicket is a ticket with its outcome.
type StoredTicket struct {
	Ticket Ticket `json:"ticket"`
	// State is "open", "resolved", "failed" or "expired".
	State string `json:"state"`
	// Parts is the outcome, as encoded parts.
	Parts []json.RawMessage `json:"parts,omitempty"`
	// Delivered reports that the model got the outcome.
	Delivered bool `json:"delivered,omitempty"`
}

// TicketStore stores tickets: [MemoryTickets], or those of a session store
// (session/sqlite, session/postgres), which survive a restart and can be settled by any
// process. Package session/sessiontest has a conformance suite, RunTickets.
type TicketStore interface {
	// Update changes one ticket atomically. change gets the stored ticket, or the zero
	// value for an unknown id. What it leaves is stored, unless it fails or leaves State
	// empty. change must not use the store, and may be called again after a conflict.
	Update(ctx context.Context, id string, change func(*StoredTicket) error) error
	// List returns the tickets of a run that were not delivered, in the order in which they
	// were opened.
	List(ctx context.Context, run string) ([]StoredTicket, error)
}

// Errors of tickets.
var (
	ErrNoTicket = errors.New("tool: unknown ticket")
	// ErrTicketSettled reports that a ticket already has its outcome.
	ErrTicketSettled = errors.New("tool: the ticket is already settled")
)

// Tickets opens and settles tickets.
type Tickets struct {
	// Store stores the tickets; nil disables background work.
	Store TicketStore
	// Now is the clock; nil means the system's.
	Now func() time.Time
}

func (t *Tickets) now() time.Time {
	if t.Now != nil {
		return t.Now()
	}
	return time.Now()
}

// Background opens a ticket for the call of ctx. The handler starts the work and returns the
// ticket; the worker settles it with [Tickets.Resolve] or [Tickets.Fail]. After ttl it expires.
//
// The ticket of a call that fails or is abandoned at its timeout is withdrawn: it is
// settled as failed, and no outcome is delivered. After the call has ended, Background
// returns an error that wraps [ErrNoTicket].
func Background(ctx context.Context, ttl time.Duration) (*Ticket, error) {
	c := callFrom(ctx)
	if c == nil || c.ref.runner.Tickets == nil || c.ref.runner.Tickets.Store == nil {
		return nil, fmt.Errorf("%w: the run has no store for background work", ErrNoTicket)
	}
	if ttl <= 0 {
		return nil, fmt.Errorf("%w: the ticket needs a positive time to live", ErrNoTicket)
	}
	tickets, of := c.ref.runner.Tickets, c.ref.ref()
	sum := sha256.Sum256([]byte(idempotencyKey(of)))
	t := &Ticket{ID: "ticket_" + hex.EncodeToString(sum[:8]), CallRef: of, Expires: tickets.now().Add(ttl)}
	if !c.setTicket(t.ID) {
		return nil, fmt.Errorf("%w: %w", ErrNoTicket, errCallEnded)
	}
	err := tickets.Store.Update(ctx, t.ID, func(s *StoredTicket) error {
		if s.State == "" || s.Delivered { // one of an attempt that failed was withdrawn
			*s = StoredTicket{Ticket: *t, State: ticketOpen}
			s.Ticket.tickets, s.Ticket.ask = nil, nil
		}
		*t = s.Ticket
		t.tickets = tickets
		t.ask = func(ctx context.Context, w *InputRequest) (Answer, error) { return c.ref.askAbout(ctx, t.ID, w) }
		return nil
	})
	if err == nil && !c.setTicket(t.ID) { // the call ended meanwhile
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrNoTicket, errCallEnded), tickets.withdraw(ctx, t.ID))
	}
	return t, err
}

// withdraw settles a ticket whose call failed: the model already got the error, so it gets no
// outcome.
func (t *Tickets) withdraw(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	return t.Store.Update(ctx, id, func(s *StoredTicket) error {
		if s.State != "" {
			s.State, s.Delivered = ticketFailed, true
		}
		return nil
	})
}

// Resolve settles a ticket with its outcome. Only out.Content and out.Failed are stored: the
// outcome becomes a message to the model, which has no display text and no native form.
// Post-hooks see it when it is delivered.
// Resolving a settled or expired ticket is an error.
func (t *Tickets) Resolve(ctx context.Context, id string, out Output) error {
	state := ticketResolved
	if out.Failed {
		state = ticketFailed
	}
	return t.settle(ctx, id, state, out.Content)
}

// Fail settles a ticket with an error.
func (t *Tickets) Fail(ctx context.Context, id, message string) error {
	return t.settle(ctx, id, ticketFailed, []dragoman.Part{&dragoman.Text{Text: message}})
}

func (t *Tickets) settle(ctx context.Context, id string, state string, parts []dragoman.Part) error {
	if t == nil || t.Store == nil {
		return fmt.Errorf("%w: %s", ErrNoTicket, id)
	}
	if err := checkParts(parts); err != nil {
		return fmt.Errorf("tool: the outcome of ticket %s %w", id, err)
	}
	stored := make([]json.RawMessage, 0, len(parts))
	for _, p := range parts {
		raw, err := dragoman.MarshalPart(p)
		if err != nil {
			return fmt.Errorf("tool: the outcome of ticket %s: %w", id, err)
		}
		stored = append(stored, raw)
	}
	now := t.now()
	return t.Store.Update(ctx, id, func(s *StoredTicket) error {
		switch {
		case s.State == "":
			return fmt.Errorf("%w: %s", ErrNoTicket, id)
		case s.State == ticketOpen && now.After(s.Ticket.Expires):
			return fmt.Errorf("%w: %s expired at %s", ErrTicketSettled, id, s.Ticket.Expires.Format(time.RFC3339))
		case s.State != ticketOpen:
			return fmt.Errorf("%w: %s is %s", ErrTicketSettled, id, s.State)
		}
		s.State, s.Parts = state, stored
		return nil
	})
}

// due returns the tickets of a run that have an outcome or are expired, and marks them as
// delivered, so that each is returned once.
func (r *Run) due(ctx context.Context, box *Box) ([]StoredTicket, error) {
	t := r.runner.Tickets
	if t == nil || t.Store == nil {
		return nil, nil
	}
	open, err := r.openTickets(ctx, box)
	if err != nil {
		return nil, err
	}
	var out []StoredTicket
	for _, s := range open {
		if s.State == ticketOpen && !t.now().After(s.Ticket.Expires) {
			continue
		}
		taken := false
		err := t.Store.Update(ctx, s.Ticket.ID, func(now *StoredTicket) error {
			if now.Delivered {
				return nil
			}
			if now.State == ticketOpen {
				now.State = ticketExpired
			}
			now.Delivered = true
			s, taken = *now, true
			return nil
		})
		if err != nil {
			return out, err
		}
		if taken {
			out = append(out, s)
		}
	}
	return out, nil
}

// MemoryTickets stores tickets in memory. The zero value is ready to use. It is safe for
// concurrent use.
type MemoryTickets struct {
	mu    sync.Mutex
	order []string
	byID  map[string]StoredTicket
}

// Update implements [TicketStore].
func (m *MemoryTickets) Update(_ context.Context, id string, change func(*StoredTicket) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.byID[id]
	if err := change(&s); err != nil || s.State == "" {
		return err
	}
	if !known {
		m.order = append(m.order, id)
	}
	if m.byID == nil {
		m.byID = map[string]StoredTicket{}
	}
	m.byID[id] = s
	return nil
}

// List implements [TicketStore].
func (m *MemoryTickets) List(_ context.Context, run string) ([]StoredTicket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []StoredTicket
	for _, id := range m.order {
		if s := m.byID[id]; s.Ticket.Run == run && !s.Delivered {
			s.Parts = slices.Clone(s.Parts)
			out = append(out, s)
		}
	}
	return out, nil
}

func (t *Ticket) note() string {
	if t.Note != "" {
		return t.Note
	}
	return fmt.Sprintf("The work continues in the background as %s. Its result will arrive in a later message; do not call the tool again for it.", t.ID)
}

// askAbout asks the approver a question about work in the background.
func (x *execution) askAbout(ctx context.Context, ticket string, w *InputRequest) (Answer, error) {
	state, err := json.Marshal(ticket)
	if err != nil {
		return Answer{}, err
	}
	b, err := x.askBinding(w, state)
	if err != nil {
		return Answer{}, err
	}
	reason := "the tool asks about its work in the background"
	if w.From != "" {
		reason = w.From + " asks about its work in the background"
	}
	x.asking.Lock() // approvers get one question at a time
	defer x.asking.Unlock()
	return x.ask(ctx, &ApprovalRequest{Binding: b, Spec: x.entry.spec, Input: x.input.clone(), Agent: x.run.Agent, Reason: reason, Wanted: w})
}

// continueWork lets tools continue work that an earlier process began. It reports whether a
// ticket was settled.
func (r *Run) continueWork(ctx context.Context, box *Box, open []StoredTicket) (settled bool) {
	for _, s := range open {
		t := s.Ticket
		if s.State != ticketOpen || len(t.Work) == 0 || r.runner.Tickets.now().After(t.Expires) {
			continue
		}
		e := box.find(t.Key)
		if e == nil || e.settings.Continue == nil {
			continue
		}
		x := &execution{
			batch: &batch{run: r, runner: r.runner, box: box, turn: Turn{Number: t.Turn}},
			call:  &dragoman.ToolCall{ID: t.CallID}, key: t.Key, entry: e, begun: true,
		}
		t.tickets = r.runner.Tickets
		t.ask = func(ctx context.Context, w *InputRequest) (Answer, error) { return x.askAbout(ctx, t.ID, w) }
		_, err := guard(ctx, r.runner, r.runner.policyTimeout(), nil, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, snapshot(e.settings.Continue(ctx, &t))
		})
		if err == nil || ctx.Err() != nil {
			continue
		}
		text := ModelText(err)
		if errors.As(err, new(*PanicError)) {
			r.runner.log("continuing background work panicked", "ticket", t.ID, "error", r.redactor().Redact(err.Error()))
			text = "an internal error happened"
		}
		err = r.runner.Tickets.Fail(ctx, t.ID, "The work was not continued: "+r.redactor().Redact(text))
		if err != nil {
			r.runner.log("a ticket could not be settled", "ticket", t.ID, "error", r.redactor().Redact(err.Error()))
			continue
		}
		settled = true
	}
	return settled
}

// openTickets returns the undelivered tickets of the run, after its tools have continued those
// of earlier processes.
func (r *Run) openTickets(ctx context.Context, box *Box) ([]StoredTicket, error) {
	store := r.runner.Tickets.Store
	open, err := store.List(ctx, r.ID)
	if err == nil && r.continueWork(ctx, box, open) {
		open, err = store.List(ctx, r.ID)
	}
	return open, err
}

// Deliver returns the undelivered outcomes of background work, each as a message for the model,
// and marks them as delivered. They are redacted, bounded and fenced like results of the tools
// of the box. Tools of the box continue open work that an earlier process began: see Continue of
// [Settings].
func (r *Run) Deliver(ctx context.Context, box *Box) ([]dragoman.Message, error) {
	due, err := r.due(ctx, box)
	var out []dragoman.Message
	for _, s := range due {
		out = append(out, r.delivery(ctx, box, s))
	}
	return out, err
}

// Outcomes is like [Run.Deliver] for callers that store the messages first: the outcomes count
// as delivered when taken is called, and are returned again if it is not.
func (r *Run) Outcomes(ctx context.Context, box *Box) (ms []dragoman.Message, taken func(ctx context.Context) error, err error) {
	t := r.runner.Tickets
	var ids []string
	taken = func(ctx context.Context) error { return t.deliver(ctx, ids) }
	if t == nil || t.Store == nil {
		return nil, taken, nil
	}
	open, err := r.openTickets(ctx, box)
	if err != nil {
		return nil, taken, err
	}
	for _, s := range open {
		if s.State == ticketOpen {
			if !t.now().After(s.Ticket.Expires) {
				continue
			}
			s.State = ticketExpired
		}
		ids = append(ids, s.Ticket.ID)
		ms = append(ms, r.delivery(ctx, box, s))
	}
	return ms, taken, nil
}

// deliver marks tickets as delivered.
func (t *Tickets) deliver(ctx context.Context, ids []string) error {
	for _, id := range ids {
		err := t.Store.Update(ctx, id, func(s *StoredTicket) error {
			if s.State == ticketOpen {
				s.State = ticketExpired
			}
			s.Delivered = true
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// delivery returns the message with the outcome of a ticket.
func (r *Run) delivery(ctx context.Context, box *Box, s StoredTicket) dragoman.Message {
	name := s.Ticket.Key.QualifiedName()
	head := fmt.Sprintf("The background work %s of %s (call %s) is %s.", s.Ticket.ID, name, s.Ticket.CallID, s.State)
	m := dragoman.UserText(head)
	var parts []dragoman.Part
	for _, raw := range s.Parts {
		p, err := dragoman.UnmarshalPart(raw)
		if err == nil {
			err = checkParts([]dragoman.Part{p})
		}
		if err != nil {
			r.runner.log("the outcome of a ticket cannot be read", "ticket", s.Ticket.ID, "error", r.redactor().Redact(err.Error()))
			continue
		}
		parts = append(parts, p)
	}
	e := box.find(s.Ticket.Key)
	if e == nil {
		e = &entry{key: s.Ticket.Key} // the tool is gone: use the strict defaults
	}
	parts = r.redactor().parts(r.hookOutcome(ctx, box, e, &s, parts))
	plainData(parts, !e.settings.Trusted)
	if !e.settings.Trusted {
		plainLabels(parts)
	}
	b := bounder{limits: r.runner.limits(box, e), count: r.runner.Count, store: r.runner.Spill, of: s.Ticket.CallRef, part: 1, reader: box.outputReader()} // part 0 is the call's own
	parts = b.bound(ctx, parts)
	if b.failed != nil {
		r.runner.log("storing the whole output failed", "ticket", s.Ticket.ID, "error", r.redactor().Redact(b.failed.Error()))
	}
	if !e.settings.Trusted {
		if err := fence(r.runner.random(), name, parts); err != nil {
			r.runner.log("an output could not be fenced", "error", err)
			return m
		}
	}
	m.Parts = append(m.Parts, parts...)
	return m
}

// hookOutcome passes the outcome of a ticket through the post-hooks of its tool and toolbox: the
// model reads nothing of a tool that they have not seen.
func (r *Run) hookOutcome(ctx context.Context, box *Box, e *entry, s *StoredTicket, parts []dragoman.Part) []dragoman.Part {
	if len(parts) == 0 {
		return nil
	}
	x := &execution{
		batch: &batch{run: r, runner: r.runner, box: box, turn: Turn{Number: s.Ticket.Turn}},
		call:  &dragoman.ToolCall{ID: s.Ticket.CallID}, key: s.Ticket.Key, entry: e, begun: true,
	}
	ctx = context.WithValue(context.WithoutCancel(ctx), contextKey{}, &runningCall{ref: x, agent: r.Agent, metadata: r.Metadata, ended: true})
	hooks := x.postHooks(ctx, task[Output]{})[1:]
	if len(hooks) == 0 {
		return parts
	}
	out, _, err := guardAll(r.runner, Output{Content: parts, Failed: s.State != ticketResolved}, hooks)
	if err == nil {
		err = checkParts(out.Content)
	}
	if err != nil {
		f := x.hookFailure(ctx, "ended, but its outcome was rejected", err)
		return []dragoman.Part{&dragoman.Text{Text: f.message}}
	}
	return out.Content
}
