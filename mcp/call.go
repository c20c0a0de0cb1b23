package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/peer"
	"github.com/dragoman-go/dragoman/tool"
)

// waiting is the state of a call that waits for a human, as the run stores it. Servers of
// modern revisions continue in another process from it. Older ones do not: their call is in
// flight on a connection of this process, under Handle.
type waiting struct {
	Tool string `json:"tool"`
	// Definition is the fingerprint of the definition when the question was asked. If Changed
	// is set, the question was whether to accept it.
	Definition string `json:"definition"`
	Changed    bool   `json:"changed,omitempty"`

	Requests []peer.InputRequest `json:"requests,omitempty"`
	// RequestState is the raw JSON of the server, as a string, so that storing it changes no
	// byte.
	RequestState string `json:"request_state,omitempty"`
	TaskID       string `json:"task_id,omitempty"`
	Repeat       bool   `json:"repeat,omitempty"`
	Handle       string `json:"handle,omitempty"`
	// Tries counts the answers that did not fit the form. Answers are those of other
	// questions of the round, by key.
	Tries   int                        `json:"tries,omitempty"`
	Answers map[string]json.RawMessage `json:"answers,omitempty"`
}

// suspend returns the error that leaves the call pending.
func (w *waiting) suspend(asks []tool.InputRequest) error {
	state, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return &tool.Suspended{Asks: asks, State: state}
}

// call runs a call of the tool.
func (t *remoteTool) call(ctx context.Context, in tool.Input) (tool.Output, error) {
	args, err := t.arguments(in)
	if err != nil {
		return tool.Output{}, err
	}
	s := t.server
	if s.peer.Announced(peer.Tools) { // what runs must be what was accepted
		if err := s.read(ctx); err != nil {
			return tool.Output{}, t.explain(err)
		}
	}
	var w *waiting
	answers, asked := tool.Answers(ctx)
	if raw, ok := tool.Resumed(ctx); ok {
		w = &waiting{}
		if err := json.Unmarshal(raw, w); err != nil {
			return tool.Output{}, fmt.Errorf("the stored state of the call cannot be read: %w", err)
		}
		if !asked {
			return tool.Output{}, errors.New("the call was continued without an answer")
		}
	}
	if w != nil && w.Changed {
		a := answers["definition "+w.Definition]
		if a.Verdict != tool.Approved {
			return tool.Output{}, &serverError{text: fmt.Sprintf("%s did not run: its server changed its definition, which was not accepted.", t.def.Name)}
		}
		t.acceptDefinition(w.Definition)
		w, answers = nil, nil
	}
	question, current, err := t.permitted()
	switch {
	case err != nil:
		return tool.Output{}, t.explain(&serverError{err.Error(), err})
	case question != nil && w == nil:
		if _, ok := tool.InfoFrom(ctx); !ok {
			return tool.Output{}, fmt.Errorf("%w: the server %q changed its definition", ErrHeld, s.label)
		}
		return tool.Output{}, (&waiting{Tool: t.def.Name, Definition: current, Changed: true}).suspend([]tool.InputRequest{*question})
	case w != nil && w.Definition != current:
		return tool.Output{}, &serverError{text: fmt.Sprintf("%s was not continued: its server changed its definition while the call waited for an answer. It may have had an effect. Call it again.", t.def.Name)}
	}
	params := jsonwire.With([]byte("{}"), "name", jsonwire.Quote(t.def.Name))
	params = jsonwire.With(params, "arguments", args)
	return t.run(ctx, params, current, w, answers, 0)
}

// run sends the call, or continues one that has waited for answers. declined counts the rounds
// in a row that were declined without a human.
func (t *remoteTool) run(ctx context.Context, params json.RawMessage, current string, w *waiting, answers map[string]tool.Answer, declined int) (tool.Output, error) {
	o := peer.Options{
		Offer: t.server.all.offer(ctx),
		Safe:  t.repeatable(), Detach: true, TaskRequired: t.taskRequired(),
		Check: func() error {
			question, now, err := t.permitted()
			if err == nil && (question != nil || now != current) {
				err = fmt.Errorf("%w: its server changed its definition", ErrHeld)
			}
			return err
		},
	}
	var f *inFlight
	if w != nil {
		responses, again, err := t.responses(ctx, w, answers)
		if err != nil {
			return tool.Output{}, t.explain(err)
		}
		if len(again) > 0 {
			return tool.Output{}, w.suspend(again)
		}
		if w.Handle != "" {
			if f = t.server.all.takeParked(w.Handle); f == nil {
				return tool.Output{}, &serverError{text: fmt.Sprintf("%s was not continued: the server %q keeps such a call only on its connection, which has ended, or the answer came too late. The call may have had an effect: check before you repeat it.", t.def.Name, t.server.label)}
			}
			f.report(ctx)
			f.answer <- responses
		} else {
			o.Continue = &peer.Continuation{TaskID: w.TaskID, Repeat: w.Repeat, Responses: responses}
			if w.RequestState != "" {
				o.Continue.RequestState = json.RawMessage(w.RequestState)
			}
		}
	}
	if f == nil {
		f = t.begin(ctx, params, o)
	}
	return t.wait(ctx, f, current, declined)
}

// repeatable reports whether a call whose outcome is unknown may be sent again (pitfall K14).
func (t *remoteTool) repeatable() bool {
	cfg := &t.server.cfg
	readOnly := t.def.Spec.Annotations.ReadOnly
	return cfg.Trusted && readOnly != nil && *readOnly ||
		slices.ContainsFunc(cfg.Retry, func(p string) bool { return textkit.MatchStars(p, t.def.Name) })
}

// taskRequired reports whether the tool runs only as a task of revision 2025-11-25.
func (t *remoteTool) taskRequired() bool {
	return jsonwire.Unquote(fieldsOf(t.def.Execution)["taskSupport"]) == "required"
}

// inFlight is a call that is being run by a peer, apart from the call of the tool, which may
// wait for a human in between.
type inFlight struct {
	server *server
	params json.RawMessage
	round  chan peer.Round
	answer chan map[string]peer.Response
	done   chan struct{}
	cancel context.CancelCauseFunc
	// result and err are set when done is closed.
	result json.RawMessage
	err    error

	mu  sync.Mutex
	ctx context.Context // of the call of the tool, for reports on progress
}

// report sets the call that gets reports on progress.
func (f *inFlight) report(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ctx = ctx
}

func (f *inFlight) progress(p peer.Progress) {
	f.mu.Lock()
	ctx := f.ctx
	f.mu.Unlock()
	if f.server.all.opts.Forward {
		tool.Report(ctx, numbers(p))
		return
	}
	text := p.Message
	if text == "" {
		text = fmt.Sprintf("%g", p.Done)
		if p.Total > 0 {
			text += fmt.Sprintf(" of %g", p.Total)
		}
	}
	tool.Report(ctx, &dragoman.Text{Text: cutText(text)})
}

// parkTime limits how long a call in flight waits for an answer, and maxParked how many do.
const (
	parkTime  = 10 * time.Minute
	maxParked = 64
)

var errParkExpired = errors.New("no answer came in time")

// begin starts a call at the peer.
func (t *remoteTool) begin(ctx context.Context, params json.RawMessage, o peer.Options) *inFlight {
	s := t.server
	f := &inFlight{server: s, params: params, round: make(chan peer.Round), answer: make(chan map[string]peer.Response, 1), done: make(chan struct{}), ctx: ctx}
	_, pipeline := tool.InfoFrom(ctx)
	o.Progress = f.progress
	o.Input = func(ctx context.Context, r peer.Round) (map[string]peer.Response, error) {
		switch {
		case !pipeline:
			return s.answerOutside(ctx, r)
		case !r.InFlight:
			return nil, peer.ErrPark
		}
		timer := time.NewTimer(parkTime)
		defer timer.Stop()
		select {
		case f.round <- r:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		select {
		case a := <-f.answer:
			return a, nil
		case <-timer.C:
			s.all.log().Warn("a call was abandoned: its question was not answered in time", "server", s.label, "tool", t.def.Name)
			f.cancel(errParkExpired)
			return nil, errParkExpired
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	f.cancel = cancel
	go func() {
		defer close(f.done)
		f.result, f.err = s.peer.Call(own, "tools/call", params, o)
	}()
	return f
}

// wait waits for the result of a call, or for a question of the server.
func (t *remoteTool) wait(ctx context.Context, f *inFlight, current string, declined int) (tool.Output, error) {
	s := t.server
	var r peer.Round
	select {
	case <-f.done:
	case r = <-f.round:
		w := &waiting{Tool: t.def.Name, Definition: current, Requests: r.Requests}
		if w.Handle = s.all.park(f); w.Handle == "" {
			f.answer <- nil // too many wait: decline
			return t.wait(ctx, f, current, declined)
		}
		asks := t.questions(w)
		if len(asks) == 0 {
			s.all.takeParked(w.Handle)
			responses, _, _ := t.responses(ctx, w, nil)
			f.answer <- responses
			return t.wait(ctx, f, current, declined)
		}
		return tool.Output{}, w.suspend(asks)
	case <-ctx.Done():
		f.cancel(context.Cause(ctx))
		<-f.done
		return tool.Output{}, context.Cause(ctx)
	}
	f.cancel(context.Canceled) // releases its context
	var parked *peer.Parked
	var started *peer.TaskStarted
	switch {
	case errors.As(f.err, &parked):
		w := &waiting{Tool: t.def.Name, Definition: current, Requests: parked.Requests, RequestState: string(parked.RequestState), TaskID: parked.TaskID, Repeat: parked.Repeat}
		w.keep(parked.Answered)
		asks := t.questions(w)
		if len(asks) == 0 { // all of them are declined without a human
			if declined++; declined > maxTries {
				return tool.Output{}, t.explain(peer.ErrDeclined)
			}
			return t.run(ctx, f.params, current, w, nil, declined)
		}
		return tool.Output{}, w.suspend(asks)
	case errors.As(f.err, &started):
		return t.background(ctx, started.Task)
	case f.err != nil:
		return tool.Output{}, t.explain(f.err)
	default:
		return t.output(f.result)
	}
}

// park stores a call in flight under a handle; "" if too many wait.
func (s *Servers) park(f *inFlight) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, other := range s.parked { // forget those that have ended
		select {
		case <-other.done:
			delete(s.parked, h)
		default:
		}
	}
	if s.closed || len(s.parked) >= maxParked {
		return ""
	}
	h := rand.Text()
	s.parked[h] = f
	return h
}

// takeParked returns a call in flight, once; nil if it is unknown or has ended.
func (s *Servers) takeParked(handle string) *inFlight {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.parked[handle]
	delete(s.parked, handle)
	if f == nil {
		return nil
	}
	select {
	case <-f.done:
		return nil
	default:
		return f
	}
}

// minTicket is the shortest life of a ticket for a task, and defaultTicket that of a task whose
// server does not limit it.
const (
	minTicket     = time.Minute
	defaultTicket = 24 * time.Hour
)

// background lets a task continue after the call, if the run has a store for its ticket;
// otherwise the call waits for its end.
func (t *remoteTool) background(ctx context.Context, task peer.Task) (tool.Output, error) {
	s := t.server
	ttl := task.TTL
	if ttl <= 0 {
		ttl = defaultTicket
	}
	ticket, err := tool.Background(ctx, max(ttl, minTicket))
	if errors.Is(err, tool.ErrNoTicket) {
		raw, err := s.peer.Await(ctx, task, peer.Options{Input: s.answerOutside, MaxTime: s.cfg.MaxCallTime})
		if err != nil {
			return tool.Output{}, t.explain(err)
		}
		return t.output(raw)
	}
	if err != nil {
		return tool.Output{}, err
	}
	s.all.mu.Lock()
	if s.all.closed {
		s.all.mu.Unlock()
		return tool.Output{}, t.explain(peer.ErrClosed)
	}
	s.all.waiting.Add(1)
	s.all.mu.Unlock()
	go func() {
		defer s.all.waiting.Done()
		raw, err := s.peer.Await(s.all.ctx, task, peer.Options{Input: s.answerOutside, MaxTime: max(ttl, minTicket)})
		out := tool.Output{}
		if err == nil {
			out, err = t.output(raw)
		}
		if err == nil && s.all.opts.Forward { // outcomes of tickets have no envelope
			out = tool.Output{Failed: out.Failed, Content: []dragoman.Part{&dragoman.Data{JSON: jsonwire.With([]byte("{}"), "dragoman/mcp_result", raw)}}}
		}
		if err != nil {
			out = tool.Output{Failed: true, Content: []dragoman.Part{&dragoman.Text{Text: t.explain(err).Error()}}}
		}
		keep, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if err := ticket.Resolve(keep, out); err != nil {
			s.all.log().Warn("the outcome of a task could not be stored", "server", s.label, "tool", t.def.Name, "error", err)
		}
	}()
	return tool.Output{Ticket: ticket}, nil
}
