package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/tool"
)

// MetaIdempotencyKey is the key in _meta under which a client may send a string that
// identifies a call. With a Journal, a call that repeats the string of an earlier one gets the
// result of the earlier one, also after a restart, and does not run again. The string belongs
// to the caller: other callers may use the same.
const MetaIdempotencyKey = "dragoman/idempotencyKey"

// call is one request of a client that may run tools, ask questions and report progress.
type call struct {
	s       *Server
	caller  Caller
	session *mcp.ServerSession
	// ctx is the context of the request in the SDK, which selects the response stream.
	ctx    context.Context //nolint:containedctx // the SDK finds the stream by it
	modern bool
	token  json.RawMessage
	detach func(time.Duration)
	// responses are the answers that came with the request, and granted the approvals.
	responses map[string]json.RawMessage

	run, id string

	mu       sync.Mutex
	granted  map[string]tool.Answer
	shown    map[string]shown
	rounds   []map[string]json.RawMessage
	round    int
	ticket   *tool.Ticket
	progress *progress
	// pages are the ids of the questions to open a page that the client was asked.
	pages []string
}

// opened notes that the client was asked to open a page.
func (c *call) opened(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pages = append(c.pages, id)
}

// completePages sends notifications/elicitation/complete for the pages that the user opened,
// because the call has its result.
func (c *call) completePages() {
	c.mu.Lock()
	pages := c.pages
	c.mu.Unlock()
	for _, id := range pages {
		_ = c.session.NotifyElicitationComplete(c.ctx, &mcp.ElicitationCompleteParams{ElicitationID: id})
	}
}

// newCall returns the call of a request.
func (s *Server) newCall(ctx context.Context, in *request) *call {
	c := &call{s: s, caller: in.caller, session: in.session, ctx: ctx, modern: in.modern, token: in.token, detach: in.detach, id: "call"}
	return c
}

// setEarly takes answers that came with a request that continues nothing. Answers to questions
// belong to the state, and never to a later question with the same key (pitfall K30).
func (c *call) setEarly(in *request) {
	if in.state == "" {
		c.responses = in.responses
	}
}

// maxRounds limits how often one request asks the client of an older revision. Clients of the
// modern revision limit it themselves.
const maxRounds = 16

// callTool answers tools/call.
func (s *Server) callTool(ctx context.Context, in *request) (mcp.Result, error) {
	cat := s.tools.Load()
	d := cat.byName[in.name]
	if d == nil || !s.shows(ctx, in.caller, d) {
		return nil, invalidParams(fmt.Sprintf("unknown tool %q", in.name))
	}
	args := in.arguments
	if len(args) == 0 {
		args = json.RawMessage(`{}`)
	}
	if args[0] != '{' {
		return nil, invalidParams("the arguments of a tool are an object")
	}
	if !in.counted {
		if !s.requests.take(in.caller.Principal.ID) {
			return errorResult(in.modern, d.name+" did not run: the server is busy. Try again later."), nil
		}
		defer s.requests.free(in.caller.Principal.ID)
	}
	c := s.newCall(ctx, in)
	c.setEarly(in)
	st, again, err := s.begin(ctx, in, args)
	if err != nil {
		return nil, err
	}
	c.run, c.id = st.Run, st.Call
	if _, busy := s.calls.LoadOrStore(c.run, c); busy {
		return nil, rpcError(jsonrpc.CodeInvalidRequest, "the same call is running: wait for its result")
	}
	defer s.calls.Delete(c.run)
	c.startProgress()
	defer c.stopProgress()
	defer c.completePages()
	ctx = context.WithValue(ctx, contextKey{}, c)

	run := s.runner.Start(st.Run)
	run.Metadata = metadata(in.caller)
	turn := tool.Turn{
		Number:     1,
		Calls:      []*dragoman.ToolCall{{ID: st.Call, Name: d.spec.Name, Namespace: d.key.CallNamespace(), Arguments: string(args)}},
		MayHaveRun: again,
	}
	for range maxRounds {
		if len(st.Open) > 0 { // questions that the client left open
			if res, done, err := s.askOpen(ctx, c, st); done {
				return res, err
			}
			continue
		}
		c.mu.Lock()
		c.granted, c.rounds, c.round, c.shown = maps.Clone(st.Granted), slices.Clone(st.Rounds), 0, nil
		c.mu.Unlock()
		if turn.Resume = nil; st.Pending != nil {
			turn.Resume = []tool.Pending{*st.Pending}
		}
		batch, err := run.Do(ctx, cat.box, turn)
		if len(batch.Pending) == 0 {
			return s.finish(ctx, c, d, run, batch, err)
		}
		st.Pending = &batch.Pending[0]
		if res, err := s.openQuestions(c, st); res != nil || err != nil {
			return res, err
		}
	}
	return errorResult(c.modern, fmt.Sprintf("%s did not finish: it asked too many questions.", in.name)), nil
}

// metadata describes the caller to policies and handlers.
func metadata(c Caller) map[string]string {
	m := map[string]string{"mcp_principal": c.Principal.ID, "mcp_client": c.Client, "mcp_revision": c.Revision}
	for k, v := range c.Principal.Metadata {
		if _, taken := m[k]; !taken {
			m[k] = v
		}
	}
	return m
}

// begin returns the state of a new call or of one that the client continues. again reports that
// the call may have run before.
func (s *Server) begin(ctx context.Context, in *request, args json.RawMessage) (st *state, again bool, err error) {
	principal, params := in.caller.Principal.ID, hashParams(in.name, args)
	subject := in.method + " " + in.name
	if in.state != "" {
		if st, err = s.openState(principal, in.state, subject, params); err != nil {
			return nil, false, err
		}
		if err := s.spent.spend(ctx, st, in.responses); err != nil {
			return nil, false, s.internal("a requestState cannot be used", err)
		}
		st.answer(in.responses)
		return st, s.runner.Journal != nil, nil
	}
	st = &state{Subject: subject, Params: params, Run: "mcp_" + randomID(), Call: "call_1"}
	if in.idempotency != "" && s.runner.Journal != nil {
		h := sha256.New()
		fmt.Fprintf(h, "%q %q", principal, in.idempotency)
		st.Run = "mcp_key_" + hex.EncodeToString(h.Sum(nil))
		again = true
	}
	return st, again, nil
}

// internal returns an error for the client: protocol errors as they are, others without
// details, which go to the log.
func (s *Server) internal(what string, err error) error {
	if e := (*jsonrpc.Error)(nil); errors.As(err, &e) {
		return e
	}
	s.log.Error("mcpserver: "+what, "error", (*tool.Redactor)(nil).Redact(err.Error()))
	return rpcError(jsonrpc.CodeInternalError, what+" because of an internal error. The details are in the server's log")
}

// answer takes the answers of a client into the state: those that are missing or invalid stay
// open.
func (st *state) answer(responses map[string]json.RawMessage) {
	for _, key := range slices.Sorted(maps.Keys(st.Open)) {
		q := st.Open[key]
		a, ok := responses[key]
		if !ok || !q.accepts(a) {
			continue
		}
		if q.Binding != "" {
			var verdict tool.Answer
			ok := true
			if q.Own {
				verdict = q.decidePassed(a)
			} else {
				verdict, ok = q.decide(a)
			}
			if !ok {
				continue
			}
			if st.Granted == nil {
				st.Granted = map[string]tool.Answer{}
			}
			st.Granted[q.Binding] = verdict
		} else {
			if st.Got == nil {
				st.Got = map[string]json.RawMessage{}
			}
			st.Got[key] = a
		}
		delete(st.Open, key)
	}
	if len(st.Open) == 0 && st.Got != nil {
		st.Rounds = append(st.Rounds, st.Got)
		st.Got = nil
	}
}

// openQuestions puts the questions of the pending call into the state. A result means that the
// call cannot continue.
func (s *Server) openQuestions(c *call, st *state) (mcp.Result, error) {
	p := st.Pending
	if questions := passedQuestions(p); len(questions) > 0 {
		return s.openPassed(c, st, questions)
	}
	var mine askState
	c.mu.Lock()
	_, approval := c.shown[bindingKey(p.Binding)]
	c.mu.Unlock()
	if !approval && len(p.Inner) == 0 && p.State != nil && json.Unmarshal(p.State, &mine) == nil && len(mine.Asking) > 0 {
		c.mu.Lock()
		st.Rounds = slices.Clone(c.rounds)
		c.mu.Unlock()
		st.Open = map[string]asked{}
		for key, q := range mine.Asking {
			st.Open[key] = asked{Question: q}
		}
		return nil, nil
	}
	waiting := leaves(*p)
	if approval || p.State == nil {
		waiting = []tool.Pending{*p}
	}
	if len(waiting) == 0 {
		return errorResult(c.modern, p.Tool()+" waits for something that this client cannot give."), nil
	}
	if s.o.NoClientApprovals {
		return errorResult(c.modern, p.Tool()+" did not run: it needs approval ("+p.Reason+"), which only the operator of this server can give. It was not given."), nil
	}
	if !c.caller.Can(CapElicitation) {
		return errorResult(c.modern, p.Tool()+" did not run: it needs approval ("+p.Reason+"). The user of this client could give it, but the client does not support forms (elicitation). Use a client that does, or let the operator of this server allow the tool."), nil
	}
	st.Open = map[string]asked{}
	for i := range waiting {
		key := "approval"
		if len(waiting) > 1 {
			key = fmt.Sprintf("approval_%d", i+1)
		}
		if _, given := st.Granted[bindingKey(waiting[i].Binding)]; given && waiting[i].Problem == "" {
			continue
		}
		st.Open[key] = s.approvalForm(c, &waiting[i])
	}
	if len(st.Open) == 0 {
		return errorResult(c.modern, p.Tool()+" did not run: its approval could not be used."), nil
	}
	return nil, nil
}

// leaves returns the calls below a pending call that wait for approval.
func leaves(p tool.Pending) []tool.Pending {
	if len(p.Inner) == 0 {
		if p.State == nil {
			return []tool.Pending{p}
		}
		return nil
	}
	var out []tool.Pending
	for _, inner := range p.Inner {
		out = append(out, leaves(inner)...)
	}
	return out
}

// askOpen asks the open questions: a modern client with a result, which ends the request, and an
// older one with requests. done reports that the request ends with the result or the error.
func (s *Server) askOpen(ctx context.Context, c *call, st *state) (res mcp.Result, done bool, err error) {
	open := make(map[string]Question, len(st.Open))
	for key, q := range st.Open {
		open[key] = q.Question
	}
	if c.modern {
		res, err := s.inputRequired(c.caller.Principal.ID, st, open)
		return res, true, err
	}
	waiting, cancel := context.WithTimeout(c.ctx, s.o.ApprovalTTL)
	defer cancel()
	answers, err := askNow(waiting, c.session, open, c.opened)
	if err != nil {
		if ctx.Err() != nil {
			return nil, true, context.Cause(ctx)
		}
		s.log.Warn("mcpserver: a client did not answer a question", "client", c.caller.Client, "error", err)
		res, err := c.stopped("The request did not continue: " + err.Error())
		return res, true, err
	}
	before := len(st.Open)
	st.answer(answers)
	if len(st.Open) == before {
		res, err := c.stopped("The request did not continue: the answer of the client does not fit the question.")
		return res, true, err
	}
	return nil, false, nil
}

// stopped is the response to a request whose questions were not answered: a result that the
// client's model reads for a tool, an error for others.
func (c *call) stopped(text string) (mcp.Result, error) {
	if c.run == "" {
		return nil, rpcError(jsonrpc.CodeInternalError, text)
	}
	return errorResult(c.modern, text), nil
}

func (s *Server) inputRequired(principal string, st *state, open map[string]Question) (mcp.Result, error) {
	sealed, err := s.sealState(principal, st)
	if err != nil {
		return nil, s.internal("a question cannot be asked", err)
	}
	r := &rawResult{}
	r.set("resultType", "input_required").set("inputRequests", open).set("requestState", sealed)
	return r, nil
}

// finish returns the response of a call that has its result.
func (s *Server) finish(ctx context.Context, c *call, d *definition, run *tool.Run, batch *tool.Batch, err error) (mcp.Result, error) {
	if len(batch.Records) > 0 && s.o.OnRecord != nil {
		defer func() { s.o.OnRecord(c.caller, batch.Records[0]) }() // after the losses
	}
	var failed *tool.CallError
	switch {
	case err == nil || errors.As(err, &failed):
	case errors.Is(err, tool.ErrConflict):
		return nil, invalidParams("another call with other arguments used the same idempotency key")
	default:
		s.log.Error("mcpserver: a call failed", "tool", d.name, "error", (*tool.Redactor)(nil).Redact(err.Error()))
	}
	if ctx.Err() != nil {
		s.abandon(ctx, c)
		return nil, context.Cause(ctx)
	}
	if len(batch.Results) == 0 || batch.Results[0] == nil {
		return errorResult(c.modern, d.name+" did not run because of an internal error of the server."), nil
	}
	res, record := batch.Results[0], batch.Records[0]
	var missing *missingCapability
	if d.remote && res.Outcome == codes.OutcomeError {
		if missing := missingFor(record.Cause); missing != nil {
			if c.modern {
				return nil, missing.rpc()
			}
			return errorResult(false, d.name+" did not run: "+missing.Error()+"."), nil
		}
		if wire := forwardedError(c.modern, record.Cause); wire != nil {
			return nil, wire
		}
	}
	if res.Outcome == codes.OutcomeError && errors.As(record.Cause, &missing) {
		if c.modern {
			return nil, missing.rpc()
		}
		return errorResult(false, d.name+" did not run: "+missing.Error()+"."), nil
	}
	c.mu.Lock()
	ticket := c.ticket
	c.mu.Unlock()
	if ticket != nil && res.Outcome != codes.OutcomeError {
		return s.background(ctx, c, d, run, ticket)
	}
	if passed := s.forwarded(c, d, res, &record); passed != nil {
		return passed, nil
	}
	return s.toolResult(c, d, res.Content, res.Outcome == codes.OutcomeError), nil
}

// shows reports whether a caller may see a tool.
func (s *Server) shows(ctx context.Context, caller Caller, d *definition) bool {
	return s.o.Show == nil || s.o.Show(ctx, caller, d.spec)
}

// listTools answers tools/list.
func (s *Server) listTools(ctx context.Context, in *request) (mcp.Result, error) {
	list := s.tools.Load().list
	if s.o.Show != nil {
		list = slices.DeleteFunc(slices.Clone(list), func(d *definition) bool { return !s.o.Show(ctx, in.caller, d.spec) })
	}
	part, next, err := page(list, in.cursor, s.o.PageSize)
	if err != nil {
		return nil, err
	}
	w := jsonwire.Writer{}
	w.BeginArray()
	for _, d := range part {
		if in.modern {
			w.Known(d.modern)
		} else {
			w.Known(d.legacy)
			if d.lowered {
				s.lost(&call{caller: in.caller}, d, dragoman.Loss{Kind: dragoman.Dropped, Severity: dragoman.Warn, Path: "/outputSchema", Detail: "clients before 2026-07-28 accept only schemas of objects"})
			}
		}
	}
	w.EndArray()
	return listResult(in.modern, "tools", w.Buf, next), nil
}

// listResult returns one page of a list.
func listResult(modern bool, name string, elements json.RawMessage, next string) *rawResult {
	r := newResult(modern)
	r.add(name, elements)
	if next != "" {
		r.set("nextCursor", next)
	}
	return r.private(modern)
}

// newResult returns a result with the fields that every result has.
func newResult(modern bool) *rawResult {
	r := &rawResult{}
	if modern {
		r.set("resultType", "complete")
	}
	return r
}

// private adds the fields for caches: nothing is stored for longer, or for others.
func (r *rawResult) private(modern bool) *rawResult {
	if modern {
		r.set("ttlMs", 0).set("cacheScope", "private")
	}
	return r
}

// errorResult is a result from which the client's model learns of a failure.
func errorResult(modern bool, text string) *rawResult {
	r := newResult(modern)
	r.set("content", []map[string]string{{"type": "text", "text": text}})
	return r.set("isError", true)
}

// Detach closes the response stream of a call, if the client speaks revision 2025-11-25 over
// HTTP: the client polls for the result, the first time after retry. Other clients keep their
// stream.
func Detach(ctx context.Context, retry time.Duration) {
	if c := callFrom(ctx); c != nil && c.detach != nil {
		c.detach(retry)
	}
}

// progress sends the progress of a call to its client. Reports that the client does not read in
// time are dropped.
type progress struct {
	reports chan report
	done    chan struct{}
	ended   chan struct{}
}

type report struct {
	done, total float64
	message     string
	numbers     bool
}

const (
	progressQueue = 32
	// heartbeat keeps clients waiting that end a call without progress (pitfall K17).
	heartbeat = 15 * time.Second
	// flushLimit limits how long a result waits for the reports before it.
	flushLimit = time.Second
)

func (c *call) startProgress() {
	if len(c.token) == 0 || c.session == nil {
		return
	}
	p := &progress{reports: make(chan report, progressQueue), done: make(chan struct{}), ended: make(chan struct{})}
	c.progress = p
	go c.sendProgress(p)
}

func (c *call) sendProgress(p *progress) {
	defer close(p.ended)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	last, first := 0.0, true
	send := func(r report) {
		if !r.numbers {
			r.done = last
			if r.message != "" {
				r.done++
			}
		}
		if !first && r.done <= last { // it must grow
			if r.numbers {
				return
			}
			r.done = last + 1e-6*max(1, last)
		}
		first, last = false, r.done
		_ = c.session.NotifyProgress(c.ctx, &mcp.ProgressNotificationParams{
			ProgressToken: c.token, Progress: r.done, Total: r.total, Message: r.message,
		})
	}
	for {
		select {
		case r := <-p.reports:
			send(r)
		case <-tick.C:
			send(report{})
		case <-p.done:
			for {
				select {
				case r := <-p.reports:
					send(r)
				default:
					return
				}
			}
		}
	}
}

func (c *call) stopProgress() {
	if c.progress == nil {
		return
	}
	close(c.progress.done)
	limit := time.NewTimer(flushLimit)
	defer limit.Stop()
	select {
	case <-c.progress.ended:
	case <-limit.C:
	}
}

func (c *call) push(r report) {
	if c.progress == nil {
		return
	}
	select {
	case c.progress.reports <- r:
	default:
	}
}

// report sends what a tool reported with [tool.Report]. A data part with the numbers of MCP
// keeps them.
func (c *call) report(parts []dragoman.Part) {
	var texts []string
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			texts = append(texts, p.Text)
		case *dragoman.Data:
			var n struct {
				Progress *float64 `json:"progress"`
				Total    float64  `json:"total"`
				Message  string   `json:"message"`
			}
			if json.Unmarshal(p.JSON, &n) == nil && n.Progress != nil {
				c.push(report{done: *n.Progress, total: n.Total, message: n.Message, numbers: true})
				return
			}
			texts = append(texts, string(p.JSON))
		}
	}
	c.push(report{message: strings.Join(texts, "\n")})
}

func (c *call) reportNumbers(done, total float64, message string) {
	c.push(report{done: done, total: total, message: (*tool.Redactor)(nil).Redact(message), numbers: true})
}
