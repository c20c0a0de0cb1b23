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
	RequestState string   `json:"request_state,omitempty"`
	TaskID       string   `json:"task_id,omitempty"`
	Asked        []string `json:"asked,omitempty"`
	Repeat       bool     `json:"repeat,omitempty"`
	Handle       string   `json:"handle,omitempty"`
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
	if s.peer == nil {
		return tool.Output{}, errOffline
	}
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
			var number int
			if f, number = t.server.all.takeParked(w.Handle); f == nil {
				return tool.Output{}, &serverError{text: fmt.Sprintf("%s was not continued: the server %q keeps such a call only on its connection, which has ended, or the answer came too late. The call may have had an effect: check before you repeat it.", t.def.Name, t.server.label)}
			}
			f.report(ctx)
			f.give(ctx, number, responses)
		} else {
			o.Continue = &peer.Continuation{TaskID: w.TaskID, Asked: w.Asked, Repeat: w.Repeat, Responses: responses}
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
	round  chan numberedRound
	answer chan numberedAnswer
	done   chan struct{}
	cancel context.CancelCauseFunc
	// result and err are set when done is closed.
	result json.RawMessage
	err    error

	// asking is locked during a round: there is one at a time.
	asking sync.Mutex

	mu     sync.Mutex
	ctx    context.Context // of the call of the tool, for reports on progress
	rounds int
}

// numberedRound is a round with its number, and numberedAnswer its answer: the answer of a
// round that the server has withdrawn never reaches another one.
type numberedRound struct {
	number int
	peer.Round
}

type numberedAnswer struct {
	number    int
	responses map[string]peer.Response
}

// ask passes a round to the call of the tool and waits for the answer.
func (f *inFlight) ask(ctx context.Context, r peer.Round) (map[string]peer.Response, error) {
	f.asking.Lock()
	defer f.asking.Unlock()
	f.mu.Lock()
	f.rounds++
	n := f.rounds
	f.mu.Unlock()
	timer := time.NewTimer(parkTime)
	defer timer.Stop()
	select {
	case f.round <- numberedRound{n, r}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-timer.C:
		return nil, errParkExpired
	}
	for {
		select {
		case a := <-f.answer:
			if a.number == n {
				return a.responses, nil
			}
		case <-timer.C:
			f.server.all.log().Warn("a call was abandoned: its question was not answered in time", "server", f.server.label)
			f.cancel(errParkExpired)
			return nil, errParkExpired
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// give passes an answer to the round that waits for it.
func (f *inFlight) give(ctx context.Context, number int, responses map[string]peer.Response) {
	select {
	case f.answer <- numberedAnswer{number, responses}:
	case <-f.done:
	case <-ctx.Done():
	}
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
	f := &inFlight{server: s, params: params, round: make(chan numberedRound), answer: make(chan numberedAnswer, 1), done: make(chan struct{}), ctx: ctx}
	_, pipeline := tool.InfoFrom(ctx)
	o.Progress = f.progress
	o.Input = func(ctx context.Context, r peer.Round) (map[string]peer.Response, error) {
		switch {
		case !pipeline:
			return s.answerOutside(ctx, r)
		case !r.InFlight:
			return nil, peer.ErrPark
		}
		return f.ask(ctx, r)
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
	var r numberedRound
	select {
	case <-f.done:
	case r = <-f.round:
		w := &waiting{Tool: t.def.Name, Definition: current, Requests: r.Requests}
		if w.Handle = s.all.park(f, r.number); w.Handle == "" {
			f.give(ctx, r.number, nil) // too many wait: decline
			return t.wait(ctx, f, current, declined)
		}
		asks := t.questions(w)
		if len(asks) == 0 {
			s.all.takeParked(w.Handle)
			responses, _, _ := t.responses(ctx, w, nil)
			f.give(ctx, r.number, responses)
			return t.wait(ctx, f, current, declined)
		}
		return tool.Output{}, w.suspend(asks)
	case <-ctx.Done():
		f.cancel(context.Cause(ctx))
		<-f.done
		return tool.Output{}, context.Cause(ctx)
	}
	f.cancel(context.Canceled) // releases its context
	var started *peer.TaskStarted
	if errors.As(f.err, &started) {
		return t.background(ctx, f.params, started.Task, current, declined)
	}
	return t.ended(ctx, f.params, f.result, f.err, current, declined)
}

// ended returns the output of a call that has ended, or leaves it pending.
func (t *remoteTool) ended(ctx context.Context, params, result json.RawMessage, err error, current string, declined int) (tool.Output, error) {
	var parked *peer.Parked
	switch {
	case errors.As(err, &parked):
		w := &waiting{Tool: t.def.Name, Definition: current, Requests: parked.Requests, RequestState: string(parked.RequestState), TaskID: parked.TaskID, Asked: parked.Asked, Repeat: parked.Repeat}
		w.keep(parked.Answered)
		asks := t.questions(w)
		if len(asks) == 0 { // all of them are declined without a human
			if declined++; declined > maxTries {
				return tool.Output{}, t.explain(peer.ErrDeclined)
			}
			return t.run(ctx, params, current, w, nil, declined)
		}
		return tool.Output{}, w.suspend(asks)
	case err != nil:
		return tool.Output{}, t.explain(err)
	default:
		return t.output(result)
	}
}

// park stores a call in flight under a handle; "" if too many wait.
func (s *Servers) park(f *inFlight, number int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for h, other := range s.parked { // forget those that have ended
		select {
		case <-other.call.done:
			delete(s.parked, h)
		default:
		}
	}
	if s.closed || len(s.parked) >= maxParked {
		return ""
	}
	h := rand.Text()
	s.parked[h] = parkedRound{f, number}
	return h
}

// parkedRound is a round of a call in flight that waits for a human.
type parkedRound struct {
	call   *inFlight
	number int
}

// takeParked returns a call in flight and the number of its round, once; nil if it is unknown
// or has ended.
func (s *Servers) takeParked(handle string) (f *inFlight, number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.parked[handle]
	delete(s.parked, handle)
	if !ok {
		return nil, 0
	}
	select {
	case <-p.call.done:
		return nil, 0
	default:
		return p.call, p.number
	}
}
