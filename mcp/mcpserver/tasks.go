package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

const (
	tasksExtension   = "io.modelcontextprotocol/tasks"
	methodTaskGet    = "tasks/get"
	methodTaskUpdate = "tasks/update"
	methodTaskCancel = "tasks/cancel"
)

// Background continues a call in the background: the handler of a tool returns its result, and
// work runs until it returns, is canceled, or ttl has passed. In work, [Ask] and [Require] work
// as in the tool, and ctx ends if the client cancels the task.
//
//	return mcpserver.Background(ctx, time.Hour, func(ctx context.Context) (tool.Output, error) { … })
//
// A client with the tasks extension gets a task at once; for others the call waits. The work
// ends with this process. Work of other processes uses [tool.Background].
func Background(ctx context.Context, ttl time.Duration, do func(ctx context.Context) (tool.Output, error)) (tool.Output, error) {
	c := callFrom(ctx)
	if c == nil || c.run == "" {
		return tool.Output{}, errNoCall
	}
	s := c.s
	principal := c.caller.Principal.ID
	if !s.tasks.take(principal) {
		return tool.Output{}, errors.New("too much work is in progress. Try again later")
	}
	t, err := tool.Background(ctx, ttl)
	if err != nil {
		s.tasks.free(principal)
		return tool.Output{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ttl)
	w := &work{id: t.ID, cancel: cancel, ended: make(chan struct{}), used: map[string]bool{}, open: map[string]*openQuestion{}}
	s.tasks.add(w)
	go func() {
		defer s.tasks.free(principal)
		defer s.tasks.remove(w)
		defer cancel()
		out, panicked, err := runWork(context.WithValue(ctx, workKey{}, w), do)
		if panicked {
			s.log.Error("mcpserver: background work panicked", "ticket", t.ID, "error", err)
		}
		s.settle(t.ID, out, panicked, err)
	}()
	return tool.Output{Ticket: t}, nil
}

func runWork(ctx context.Context, do func(context.Context) (tool.Output, error)) (out tool.Output, panicked bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			panicked, err = true, fmt.Errorf("%v\n%s", p, debug.Stack())
		}
	}()
	out, err = do(ctx)
	return out, false, err
}

// settleLimit limits storing the outcome of work.
const settleLimit = 30 * time.Second

func (s *Server) settle(id string, out tool.Output, panicked bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), settleLimit)
	defer cancel()
	var failed error
	switch {
	case panicked:
		failed = s.end(ctx, id, taskFailed, "the work failed with an internal error")
	case err != nil:
		failed = s.runner.Tickets.Fail(ctx, id, tool.ModelText(err))
	default:
		failed = s.runner.Tickets.Resolve(ctx, id, out)
	}
	if failed != nil && !errors.Is(failed, tool.ErrTicketSettled) {
		s.log.Error("mcpserver: the outcome of background work is lost", "ticket", id, "error", failed)
	}
}

// The states of tasks.
const (
	taskWorking   = "working"
	taskInput     = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// taskNote is the part of a stored ticket about its task, in the Note of the ticket.
type taskNote struct {
	Created time.Time `json:"created,omitzero"`
	Updated time.Time `json:"updated,omitzero"`
	// Status is the status if the state of the ticket does not determine it.
	Status string `json:"status,omitempty"`
}

func noteOf(t *tool.StoredTicket) (n taskNote) {
	_ = json.Unmarshal([]byte(t.Ticket.Note), &n)
	return n
}

// The states of tickets that package tool writes.
const (
	ticketOpen   = "open"
	ticketFailed = "failed"
)

// end settles a ticket with a status that tickets do not have. A settled ticket does not change.
func (s *Server) end(ctx context.Context, id, status, message string) error {
	part, err := dragoman.MarshalPart(&dragoman.Text{Text: message})
	if err != nil {
		return err
	}
	return s.runner.Tickets.Store.Update(ctx, id, func(t *tool.StoredTicket) error {
		if t.State != ticketOpen {
			return nil
		}
		n := noteOf(t)
		n.Status, n.Updated = status, s.now()
		t.Ticket.Note, t.State, t.Parts = string(encode(n)), ticketFailed, []json.RawMessage{part}
		return nil
	})
}

// errRead ends an Update that only reads.
var errRead = errors.New("read")

func (s *Server) ticket(ctx context.Context, id string) (tool.StoredTicket, error) {
	var got tool.StoredTicket
	err := s.runner.Tickets.Store.Update(ctx, id, func(t *tool.StoredTicket) error {
		got = *t
		return errRead
	})
	if err != nil && !errors.Is(err, errRead) {
		return got, err
	}
	if got.State == "" {
		return got, tool.ErrNoTicket
	}
	return got, nil
}

// background responds to a call whose work continues.
func (s *Server) background(ctx context.Context, c *call, d *definition, run *tool.Run, t *tool.Ticket) (mcp.Result, error) {
	now := s.now()
	err := s.runner.Tickets.Store.Update(ctx, t.ID, func(st *tool.StoredTicket) error {
		if n := noteOf(st); st.State != "" && n.Created.IsZero() {
			n.Created = now
			if n.Updated.IsZero() {
				n.Updated = now
			}
			st.Ticket.Note = string(encode(n))
		}
		return nil
	})
	if err != nil {
		return nil, s.internal("the task cannot be stored", err)
	}
	if !c.modern || !c.caller.Can(CapTasks) {
		return s.wait(ctx, c, d, t.ID)
	}
	id, err := s.taskID(c.caller.Principal.ID, t.ID, d.name)
	if err != nil {
		return nil, s.internal("the task cannot be named", err)
	}
	st, err := s.ticket(ctx, t.ID)
	if err != nil {
		return nil, s.internal("the task cannot be read", err)
	}
	r := &rawResult{}
	r.set("resultType", "task")
	// A task that ended already still begins as working, because this form has no outcome.
	return s.taskFields(r, id, taskWorking, &st), nil
}

// taskRef is the content of the sealed id of a task. Only this server can make the id, and only for
// its caller.
type taskRef struct {
	Ticket string `json:"t"`
	Tool   string `json:"n"`
}

const sealTask = "task"

func (s *Server) taskID(principal, ticket, name string) (string, error) {
	return s.seal.seal(sealTask, principal, taskRef{ticket, name})
}

func (s *Server) taskFields(r *rawResult, id, status string, t *tool.StoredTicket) *rawResult {
	n := noteOf(t)
	created := n.Created
	if created.IsZero() {
		created = s.now()
	}
	updated := n.Updated
	if updated.IsZero() {
		updated = created
	}
	r.set("taskId", id).set("status", status)
	r.set("createdAt", created.UTC().Format(time.RFC3339Nano)).set("lastUpdatedAt", updated.UTC().Format(time.RFC3339Nano))
	r.set("ttlMs", max(t.Ticket.Expires.Sub(created), 0).Milliseconds())
	return r.set("pollIntervalMs", 500)
}

// taskMethod answers tasks/get, tasks/update and tasks/cancel.
func (s *Server) taskMethod(ctx context.Context, in *request) (mcp.Result, error) {
	if !in.modern {
		return nil, notFound(in.method)
	}
	if !in.caller.Can(CapTasks) {
		return nil, (&missingCapability{need: []string{CapTasks}}).rpc()
	}
	var ref taskRef
	unknown := invalidParams("unknown task")
	if s.seal.open(sealTask, in.caller.Principal.ID, in.name, &ref) != nil {
		return nil, unknown
	}
	t, err := s.ticket(ctx, ref.Ticket)
	switch {
	case errors.Is(err, tool.ErrNoTicket):
		return nil, unknown
	case err != nil:
		return nil, s.internal("the task cannot be read", err)
	}
	w := s.tasks.find(ref.Ticket)
	switch in.method {
	case methodTaskUpdate:
		if in.responses == nil {
			return nil, invalidParams("tasks/update needs inputResponses")
		}
		if w != nil && t.State == ticketOpen {
			w.answer(in.responses)
		}
		return newResult(true), nil
	case methodTaskCancel:
		if err := s.end(ctx, ref.Ticket, taskCancelled, "the task was canceled"); err != nil {
			return nil, s.internal("the task cannot be canceled", err)
		}
		if w != nil {
			w.cancel()
		}
		return newResult(true), nil
	}
	return s.getTask(ctx, in, ref, &t, w)
}

func (s *Server) getTask(ctx context.Context, in *request, ref taskRef, t *tool.StoredTicket, w *work) (mcp.Result, error) {
	n := noteOf(t)
	expired := t.State == ticketOpen && s.now().After(t.Ticket.Expires)
	if t.State != ticketOpen && n.Updated.Equal(n.Created) { // nothing recorded when it ended
		now := s.now()
		_ = s.runner.Tickets.Store.Update(ctx, ref.Ticket, func(st *tool.StoredTicket) error {
			if m := noteOf(st); st.State != "" {
				m.Updated = now
				st.Ticket.Note = string(encode(m))
			}
			*t = *st
			return nil
		})
	}
	r := newResult(true)
	switch {
	case expired:
		s.taskFields(r, in.name, taskFailed, t)
		return r.set("error", rpcError(jsonrpc.CodeInternalError, "the task expired before it ended")), nil
	case t.State == ticketOpen:
		if open := w.questions(); len(open) > 0 {
			s.taskFields(r, in.name, taskInput, t)
			return r.set("inputRequests", open), nil
		}
		return s.taskFields(r, in.name, taskWorking, t), nil
	case n.Status == taskCancelled:
		return s.taskFields(r, in.name, taskCancelled, t), nil
	case n.Status == taskFailed:
		s.taskFields(r, in.name, taskFailed, t)
		return r.set("error", rpcError(jsonrpc.CodeInternalError, "the work failed with an internal error. The details are in the server's log")), nil
	}
	s.taskFields(r, in.name, taskCompleted, t)
	c := s.newCall(ctx, in)
	c.run = t.Ticket.Run
	res, err := s.outcome(ctx, c, ref.Tool, t)
	if err != nil {
		return nil, s.internal("the outcome of the task cannot be read", err)
	}
	return r.set("result", res), nil
}

// outcome returns the result of settled work: redacted, bounded and fenced like any other.
func (s *Server) outcome(ctx context.Context, c *call, name string, t *tool.StoredTicket) (*rawResult, error) {
	cat := s.tools.Load()
	ms, _, err := s.runner.Start(t.Ticket.Run).Outcomes(ctx, cat.box)
	if err != nil {
		return nil, err
	}
	d := cat.byName[name]
	for _, m := range ms {
		if len(m.Parts) == 0 || !aboutTicket(m.Parts[0], t.Ticket.ID) {
			continue
		}
		if d == nil {
			d = &definition{}
		}
		res := s.forwardedOutcome(c, d, m.Parts[1:])
		if res == nil {
			res = s.toolResult(c, d, m.Parts[1:], t.State != "resolved").(*rawResult)
		}
		if c.modern && res.fields[0].name == "resultType" { // the result of a task has none of its own
			res.fields = slices.DeleteFunc(res.fields, func(f field) bool { return f.name == "resultType" })
		}
		return res, nil
	}
	return nil, fmt.Errorf("%w: %s has no outcome", tool.ErrNoTicket, t.Ticket.ID)
}

// aboutTicket reports whether a part is the first line of the message about a ticket.
func aboutTicket(p dragoman.Part, id string) bool {
	text, ok := p.(*dragoman.Text)
	return ok && strings.HasPrefix(text.Text, "The background work "+id+" ")
}

// wait waits for the outcome of work, for a client without tasks.
func (s *Server) wait(ctx context.Context, c *call, d *definition, id string) (mcp.Result, error) {
	limit := time.NewTimer(s.o.WaitForTasks)
	defer limit.Stop()
	pause := 20 * time.Millisecond
	for {
		t, err := s.ticket(ctx, id)
		if err != nil {
			return nil, s.internal("the outcome of the work cannot be read", err)
		}
		n := noteOf(&t)
		switch {
		case t.State == ticketOpen && s.now().After(t.Ticket.Expires):
			return errorResult(c.modern, d.name+" did not end in time. Its result is lost."), nil
		case t.State == ticketOpen:
		case n.Status == taskFailed:
			return errorResult(c.modern, d.name+" failed with an internal error. It may have had an effect."), nil
		case n.Status == taskCancelled:
			return errorResult(c.modern, d.name+" was canceled."), nil
		default:
			res, err := s.outcome(ctx, c, d.name, &t)
			if err != nil {
				return nil, s.internal("the outcome of the work cannot be read", err)
			}
			if c.modern {
				res.fields = append([]field{{"resultType", encode("complete")}}, res.fields...)
			}
			return res, nil
		}
		var ended <-chan struct{}
		if w := s.tasks.find(id); w != nil {
			ended = w.ended
		}
		timer := time.NewTimer(pause)
		select {
		case <-ended:
		case <-timer.C:
			pause = min(2*pause, time.Second)
		case <-limit.C:
			timer.Stop()
			return errorResult(c.modern, d.name+" continues in the background, but this client does not support tasks, so its result will not arrive. Do not call it again for the same work."), nil
		case <-ctx.Done():
			timer.Stop()
			s.abandon(ctx, c)
			return nil, context.Cause(ctx)
		}
		timer.Stop()
	}
}

// abandon cancels the work of a call that was canceled before the client knew of a task. Work of
// other processes goes on.
func (s *Server) abandon(ctx context.Context, c *call) {
	c.mu.Lock()
	t := c.ticket
	c.mu.Unlock()
	if t == nil {
		return
	}
	w := s.tasks.find(t.ID)
	if w == nil {
		return
	}
	if err := s.end(context.WithoutCancel(ctx), t.ID, taskCancelled, "the call was canceled"); err != nil {
		s.log.Error("mcpserver: the end of background work cannot be stored", "ticket", t.ID, "error", err)
	}
	w.cancel()
}

// work is background work of this process.
type work struct {
	id     string
	cancel context.CancelFunc
	ended  chan struct{}

	mu   sync.Mutex
	used map[string]bool // keys are never used again
	open map[string]*openQuestion
}

type openQuestion struct {
	Question
	answer chan json.RawMessage
}

// ask waits for the answers of the client.
func (w *work) ask(ctx context.Context, c *call, questions map[string]Question) (map[string]json.RawMessage, error) {
	var need []string
	for _, key := range slices.Sorted(maps.Keys(questions)) {
		if n := questions[key].needs(); !c.caller.Can(n) && !slices.Contains(need, n) {
			need = append(need, n)
		}
	}
	if c.modern && !c.caller.Can(CapTasks) {
		need = append(need, CapTasks)
	}
	if need != nil {
		return nil, &missingCapability{need: need}
	}
	if !c.modern { // the call waits for the work, so its stream is open
		return askNow(c.ctx, c.session, questions, c.opened)
	}
	waiting := map[string]*openQuestion{}
	w.mu.Lock()
	for key, q := range questions {
		wire := key
		for n := 2; w.used[wire]; n++ {
			wire = fmt.Sprintf("%s_%d", key, n)
		}
		o := &openQuestion{q, make(chan json.RawMessage, 1)}
		w.used[wire], w.open[wire], waiting[key] = true, o, o
	}
	w.mu.Unlock()
	out := make(map[string]json.RawMessage, len(questions))
	for key, o := range waiting {
		select {
		case out[key] = <-o.answer:
		case <-ctx.Done():
			w.mu.Lock()
			clear(w.open)
			w.mu.Unlock()
			return nil, context.Cause(ctx)
		}
	}
	return out, nil
}

// questions returns the open questions: no questions for a nil work.
func (w *work) questions() map[string]Question {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make(map[string]Question, len(w.open))
	for key, o := range w.open {
		out[key] = o.Question
	}
	return out
}

// answer takes answers. Unknown keys and invalid answers are ignored.
func (w *work) answer(responses map[string]json.RawMessage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, a := range responses {
		if o := w.open[key]; o != nil && o.accepts(a) {
			delete(w.open, key)
			o.answer <- a
		}
	}
}

// liveTasks is the background work of this process.
type liveTasks struct {
	slots

	mu   sync.Mutex
	byID map[string]*work
}

func (l *liveTasks) add(w *work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byID == nil {
		l.byID = map[string]*work{}
	}
	l.byID[w.id] = w
}

func (l *liveTasks) remove(w *work) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(w.ended)
	if l.byID[w.id] == w {
		delete(l.byID, w.id)
	}
}

func (l *liveTasks) find(id string) *work {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byID[id]
}

func (l *liveTasks) cancelAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.byID {
		w.cancel()
	}
}

// watchedTickets passes the tickets of running calls to them.
type watchedTickets struct {
	tool.TicketStore
	s *Server
}

// Update implements [tool.TicketStore].
func (w *watchedTickets) Update(ctx context.Context, id string, change func(*tool.StoredTicket) error) error {
	var got tool.StoredTicket
	err := w.TicketStore.Update(ctx, id, func(t *tool.StoredTicket) error {
		err := change(t)
		got = *t
		return err
	})
	if err != nil || got.State == "" {
		return err
	}
	if c, ok := w.s.calls.Load(got.Ticket.Run); ok && got.State == ticketOpen {
		c := c.(*call)
		c.mu.Lock()
		c.ticket = &got.Ticket
		c.mu.Unlock()
	}
	if got.State == ticketFailed && got.Delivered { // withdrawn: the call failed
		if live := w.s.tasks.find(id); live != nil {
			live.cancel()
		}
	}
	return nil
}

// memoryTickets stores tickets in memory until some time after they expire.
type memoryTickets struct {
	now func() time.Time

	mu    sync.Mutex
	order []string
	byID  map[string]tool.StoredTicket
}

const (
	// maxTickets bounds the memory; the oldest settled tickets go first.
	maxTickets = 10_000
	// keepTickets is the time for which the outcome of a task can be fetched after it expired.
	keepTickets = 10 * time.Minute
)

// Update implements [tool.TicketStore].
func (m *memoryTickets) Update(_ context.Context, id string, change func(*tool.StoredTicket) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, known := m.byID[id]
	if err := change(&t); err != nil || t.State == "" {
		return err
	}
	if !known {
		m.sweep()
		if len(m.order) >= maxTickets {
			return errors.New("mcpserver: too many tasks are stored in memory: set Tickets in Options.Runner")
		}
		m.order = append(m.order, id)
	}
	if m.byID == nil {
		m.byID = map[string]tool.StoredTicket{}
	}
	m.byID[id] = t
	return nil
}

func (m *memoryTickets) sweep() {
	now := m.now()
	m.order = slices.DeleteFunc(m.order, func(id string) bool {
		t := m.byID[id]
		old := now.After(t.Ticket.Expires.Add(keepTickets)) || t.Delivered
		if old {
			delete(m.byID, id)
		}
		return old
	})
}

// List implements [tool.TicketStore].
func (m *memoryTickets) List(_ context.Context, run string) ([]tool.StoredTicket, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []tool.StoredTicket
	for _, id := range m.order {
		if t := m.byID[id]; t.Ticket.Run == run && !t.Delivered {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b tool.StoredTicket) int { return cmp.Compare(a.Ticket.ID, b.Ticket.ID) })
	return out, nil
}
