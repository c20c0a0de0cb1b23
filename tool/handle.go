package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/lazyctx"
)

var (
	errMismatch  = errors.New("middleware changed the arguments that were validated and approved")
	errCallEnded = errors.New("the call has ended")
)

// runTool runs the handler within its middleware, and then the post-hooks, which also see the
// failure of a handler. With a failure, out describes it for the model.
func (x *execution) runTool(ctx context.Context) (out Output, f *failure) {
	running := &runningCall{ref: x, agent: x.run.Agent, metadata: x.run.Metadata}
	if x.runner.Observe != nil {
		running.progress = func(parts []dragoman.Part) {
			x.emit(func() Event { return Progress{CallRef: x.ref(), Parts: x.redactor().parts(parts)} })
		}
	}
	if x.continued() {
		running.state, running.answers = x.resume.State, x.answers
	}
	defer func() { x.endTicket(ctx, running.end(), f) }()
	ctx = context.WithValue(ctx, contextKey{}, running)
	lasting := context.WithoutCancel(ctx)
	run := x.chain(ctx)
	all := x.postHooks(lasting, run.task)
	out, at, err := guardAll(x.runner, Output{}, all)
	run.ended.Store(true)
	if err != nil && at == 0 {
		if f = run.failure(ctx, err); f.kind == ErrorMismatch || suspended(f) != nil {
			return Output{}, f
		}
		failed := Output{Failed: true, Content: []dragoman.Part{&dragoman.Text{Text: f.message}}}
		out, _, err = guardAll(x.runner, failed, all[1:])
	}
	switch {
	case err != nil:
		return Output{}, x.hookFailure(lasting, "ran, but its output was rejected", err)
	case f == nil && out.Failed:
		f = &failure{kind: ErrorFailed}
	}
	return out, f
}

// endTicket withdraws the ticket of a call that failed, unless the call may continue later.
func (x *execution) endTicket(ctx context.Context, ticket string, f *failure) {
	if ticket == "" || f == nil || f.kind == ErrorCanceled || suspended(f) != nil {
		return
	}
	if err := x.runner.Tickets.withdraw(ctx, ticket); err != nil {
		x.logFailure("the ticket of a failed call could not be withdrawn", err)
	}
}

// chain runs the tool within the middleware of the toolbox and its own. The tool has its
// timeout, and each middleware may add its own.
type chain struct {
	*execution
	task task[Output]
	// tool is the timeout of the tool itself.
	tool time.Duration
	// ended reports that the call has its result: later results are discarded.
	mismatch, ran, ended atomic.Bool
	// waits is set once the tool is suspended. The tool does not run again and the call
	// waits, whatever middleware returns.
	waits atomic.Pointer[Suspended]
}

func (x *execution) chain(ctx context.Context) *chain {
	c := &chain{execution: x, tool: x.timeout()}
	c.task = task[Output]{ctx: ctx, limit: c.tool, f: c.call, immediate: x.entry.settings.Immediate}
	if outer, own := x.box.config.Hooks, x.entry.settings.Hooks; len(outer.Use)+len(own.Use) > 0 {
		whole := c.tool + time.Duration(len(outer.Use))*outer.timeout() + time.Duration(len(own.Use))*own.timeout()
		c.task.limit = max(whole, c.tool) // the largest of durations means no limit
		c.task.f = c.wrap(slices.Concat(outer.Use, own.Use))
		c.task.immediate = c.task.immediate && (outer.Immediate || len(outer.Use) == 0) && (own.Immediate || len(own.Use) == 0)
	}
	c.task.late = x.reportLate(c.task.limit)
	return c
}

// call runs a tool that has no middleware.
func (c *chain) call(ctx context.Context, out *Output) (err error) {
	*out, err = c.entry.tool.Call(ctx, c.final())
	return snapshot(err)
}

// wrap wraps the tool in middleware, the first outermost.
func (c *chain) wrap(use []Middleware) func(context.Context, *Output) error {
	return func(ctx context.Context, out *Output) (err error) {
		h := Handler(c.innermost)
		for _, m := range slices.Backward(use) {
			h = m(h)
		}
		*out, err = h(ctx, c.input.clone())
		c.ended.Store(true)
		switch waits := c.waits.Load(); {
		case c.mismatch.Load():
			return errMismatch
		case waits != nil:
			return snapshot(waits)
		default:
			return snapshot(err)
		}
	}
}

// failure returns the failure of the run.
func (c *chain) failure(ctx context.Context, err error) *failure {
	switch {
	case !c.mismatch.Load():
		return c.toolFailure(ctx, c.task.limit, err)
	case c.ran.Load():
		f := failf(ErrorMismatch, "%s ran once; a second call with other arguments did not run: %v", c.key.QualifiedName(), errMismatch)
		f.ran = true
		return f
	default:
		return failf(ErrorMismatch, "%s did not run: %v", c.key.QualifiedName(), errMismatch)
	}
}

// final returns a copy of the input that the tool runs with. A tool with a decoded input needs
// only that.
func (x *execution) final() Input {
	if x.input.bound != nil {
		return Input{bound: x.input.bound}
	}
	return x.input.clone()
}

// innermost is the handler that middleware wraps: the tool itself. Only the approved input
// runs, whatever middleware passes: it is compared immediately before the tool is called, and a
// mismatch is recorded even if middleware drops the error. Middleware may call it concurrently.
func (c *chain) innermost(ctx context.Context, in Input) (Output, error) {
	switch {
	case c.ended.Load():
		return Output{}, errCallEnded
	case !in.same(c.input):
		c.mismatch.Store(true)
		return Output{}, errMismatch
	case c.waits.Load() != nil:
		return Output{}, c.waits.Load()
	}
	final := c.input.clone()
	if c.ran.Swap(true) {
		final.bound = nil // decode again: the previous attempt may have changed it
	}
	run := func(ctx context.Context) (Output, error) {
		out, err := c.entry.tool.Call(ctx, final)
		var s *Suspended
		if errors.As(err, &s) && len(s.State) > 0 {
			c.waits.Store(s)
		}
		return out, err
	}
	if c.entry.settings.Immediate {
		return run(ctx)
	}
	return guard(ctx, c.runner, c.tool, c.reportLate(c.tool), run)
}

// timeout returns the timeout of the call: of the turn, else the tool, else the toolbox, else
// the runner. The deadline of the context limits it.
func (x *execution) timeout() time.Duration {
	for _, d := range [...]time.Duration{x.turn.Timeout, x.entry.timeout(x.box), x.runner.Timeout} {
		if d > 0 {
			return d
		}
	}
	return defaultTimeout
}

// reportLate returns a function that emits [LateReturn] when an abandoned tool has returned.
func (x *execution) reportLate(limit time.Duration) func() {
	began := x.runner.now()
	return func() {
		after := x.runner.now().Sub(began)
		x.runner.log("a tool returned after it was abandoned; its result is discarded", "tool", x.key.QualifiedName(), "call", x.call.ID, "limit", limit, "after", after)
		x.emit(func() Event { return LateReturn{CallRef: x.ref(), After: after} })
	}
}

// toolFailure describes the failure of a tool for the model.
func (x *execution) toolFailure(ctx context.Context, limit time.Duration, err error) *failure {
	if err == nil {
		return nil
	}
	var panicked *PanicError
	name := x.key.QualifiedName()
	switch {
	case errors.As(err, &panicked):
		x.logFailure("a tool panicked", err)
		return &failure{kind: ErrorPanic, message: name + " failed with an internal error. The details are in the log.", err: err}
	case errors.Is(err, errTimeout):
		return &failure{kind: ErrorTimeout, message: fmt.Sprintf("%s took longer than %s and was abandoned. It may still have had an effect.", name, limit), err: err}
	case ctx.Err() != nil:
		return x.canceled(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{kind: ErrorTimeout, message: name + " exceeded its time limit.", err: err}
	case errors.Is(err, errOutput):
		return &failure{kind: ErrorOutput, message: fmt.Sprintf("%s ran, but %s", name, plainError(err)), err: err}
	default:
		return &failure{kind: ErrorFailed, message: plainError(err), err: err}
	}
}

// canceled returns the failure of a call that did not run, or not to its end, because the turn
// ended.
func (x *execution) canceled(ctx context.Context) *failure {
	why := "the run was cancelled"
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, ErrFailed):
		why = "another call of this turn failed"
	case errors.Is(cause, ErrConflict):
		why = "the turn was aborted"
	case errors.Is(cause, context.DeadlineExceeded):
		why = "the time limit of the run was reached"
	}
	effect := "It did not run."
	if x.begun || x.continued() {
		effect = "It had started, and may have had an effect."
	}
	return &failure{kind: ErrorCanceled, message: fmt.Sprintf("%s was cancelled: %s. %s", x.key.QualifiedName(), why, effect), ran: x.begun, err: cause}
}

// postHooks appends the post-hooks of the tool and then of the toolbox to the run. They also
// run if it was canceled, because the tool has run; so ctx must outlast it.
func (x *execution) postHooks(ctx context.Context, run task[Output]) []task[Output] {
	sets := [...]*Hooks{&x.entry.settings.Hooks, {}}
	if x.box != nil {
		sets[1] = &x.box.config.Hooks
	}
	all := append(make([]task[Output], 0, 1+len(sets[0].Post)+len(sets[1].Post)), run)
	for _, set := range sets {
		for _, hook := range set.Post {
			all = append(all, task[Output]{ctx: ctx, limit: set.timeout(), immediate: set.Immediate, f: func(ctx context.Context, out *Output) (err error) {
				before, content := out.Envelope, enveloped(out)
				*out, err = hook(ctx, x.input.clone(), *out)
				if before != nil && out.Envelope == before && !bytes.Equal(enveloped(out), content) {
					out.Envelope = nil // it still has what the hook changed
				}
				return snapshot(err)
			}})
		}
	}
	return all
}

// enveloped returns the JSON of the content of an output that has a native form, to find changes;
// nil without one.
func enveloped(out *Output) (content []byte) {
	if out.Envelope == nil {
		return nil
	}
	content = strconv.AppendBool(content, out.Failed)
	for _, p := range out.Content {
		if isNilPart(p) {
			continue
		}
		b, err := dragoman.MarshalPart(p)
		if err != nil {
			return nil
		}
		content = append(append(content, '\n'), b...)
	}
	return content
}

// finish makes the result of a run: redacted, bounded, fenced and recorded in the journal.
func (x *execution) finish(ctx context.Context, out Output, f *failure) {
	keep := context.WithoutCancel(ctx) // record the result even if the caller is gone
	if x.runner.Journal != nil || x.runner.Spill != nil {
		var cancel context.CancelFunc
		keep, cancel = lazyctx.WithTimeout(keep, storeTimeout)
		defer cancel()
	}
	if f == nil {
		f = x.checkOutput(out)
	}
	if f == nil || f.kind == ErrorFailed && out.Failed {
		var err error
		if out, err = unwrapData(out, &x.entry.settings); err != nil {
			f = &failure{kind: ErrorOutput, message: fmt.Sprintf("%s ran, but %v", x.key.QualifiedName(), err), err: err}
		}
	}
	if f != nil && (f.kind == ErrorOutput || f.kind == ErrorMismatch || f.kind == ErrorHook) {
		out = Output{Failed: true, Content: []dragoman.Part{&dragoman.Text{Text: f.message}}}
	}
	ours := false // whether the text is written by this package
	if f == nil && out.Ticket != nil && len(out.Content) == 0 {
		ours = out.Ticket.Note == ""
		out.Content = []dragoman.Part{&dragoman.Text{Text: out.Ticket.note()}}
	}
	fenced := !ours && x.fenced(out, f)
	parts := x.redactor().parts(out.Content)
	plainData(parts, fenced)
	if fenced {
		plainLabels(parts)
	}
	b := bounder{limits: x.runner.limits(x.box, x.entry), count: x.runner.Count, store: x.runner.Spill, of: x.ref(), reader: x.box.outputReader()}
	parts = b.bound(keep, parts)
	if b.failed != nil {
		x.logFailure("storing the whole output failed", b.failed)
	}
	if b.cut != (Cut{}) {
		cut := b.cut // a copy, so that b is not allocated for every call
		x.cut = &cut
	}
	x.plain = plainText(parts)
	if fenced {
		if err := fence(x.runner.random(), x.key.QualifiedName(), parts); err != nil {
			x.logFailure("an output could not be fenced", err)
			f = failf(ErrorOutput, "%s ran, but its output could not be marked as data, so it is withheld", x.key.QualifiedName())
			parts = []dragoman.Part{&dragoman.Text{Text: f.message}}
		}
	}
	res := x.call.Result(parts...)
	res.Display = b.display(x.redactor().Redact(out.Display))
	if out.Envelope != nil && b.limits.fits(out.Envelope) && jsonwire.Check(out.Envelope.JSON) == nil {
		e := *out.Envelope
		e.JSON = x.redactor().json(e.JSON)
		res.Envelope = &e
	}
	if f != nil {
		res.Outcome = codes.OutcomeError
		if f.message == "" {
			f.message = res.Text()
		}
	}
	// A canceled call may have taken effect: the journal keeps the intent without a result.
	if j := x.runner.Journal; j != nil && (f == nil || f.kind != ErrorCanceled) {
		intent := x.intent()
		if f != nil {
			intent.ErrorKind = f.kind
		}
		if _, err := withoutPanic(func() (struct{}, error) { return struct{}{}, j.End(keep, intent, res) }); err != nil {
			x.logFailure("the journal failed after a tool ran", err)
			x.journalFailed(fmt.Errorf("%w: %s ran, but its result could not be recorded: %w", ErrJournal, x.key.QualifiedName(), err))
		}
	}
	x.settle(res, f)
}

// reached reports whether the tool ran before the failure.
func (f *failure) reached() bool {
	return f == nil || f.ran || f.kind.executed()
}

// raises reports whether [Runner.RaiseOnError] returns a failure as an error: code failed,
// rather than the model making a mistake or a policy or human refusing the call.
func (f *failure) raises() bool {
	if f == nil {
		return false
	}
	switch f.kind {
	case ErrorHook, ErrorMismatch, ErrorJournal:
		return true
	default:
		return f.kind.executed() || f.internal
	}
}

// checkOutput refuses parts that no result can have, and validates structured output against
// its schema.
func (x *execution) checkOutput(out Output) *failure {
	if err := checkParts(out.Content); err != nil {
		return failf(ErrorOutput, "%s ran, but its output %v", x.key.QualifiedName(), err)
	}
	if x.entry.output == nil || out.Failed || out.Ticket != nil {
		return nil
	}
	bad := func(why string) *failure {
		return &failure{kind: ErrorOutput, message: fmt.Sprintf("%s ran, but its output does not match its output schema: %s", x.key.QualifiedName(), why)}
	}
	if len(out.Content) != 1 {
		return bad(fmt.Sprintf("%d parts, want one JSON value", len(out.Content)))
	}
	d, ok := out.Content[0].(*dragoman.Data)
	if !ok {
		return bad("it is not a JSON value")
	}
	if err := x.entry.output.Validate(d.JSON); err != nil {
		return bad(err.Error())
	}
	return nil
}

// checkParts returns an error about a part that no result can have: every request with it would
// be refused.
func checkParts(parts []dragoman.Part) error {
	for _, p := range parts {
		if isNilPart(p) {
			continue
		}
		switch p := p.(type) {
		case *dragoman.Text, *dragoman.Data:
		case *dragoman.Media:
			switch p.Media {
			case codes.MediaImage, codes.MediaAudio, codes.MediaVideo, codes.MediaFile:
			default:
				return fmt.Errorf("has media of the unknown kind %.40q: use image, audio, video or file", p.Media)
			}
		default:
			return fmt.Errorf("contains a %T, which is not allowed in a result", p)
		}
	}
	return nil
}

// fenced reports whether the texts of an output come from an untrusted tool. Texts of this
// package and output that was validated against its schema are not fenced.
func (x *execution) fenced(out Output, f *failure) bool {
	switch {
	case x.entry.settings.Trusted:
		return false
	case f == nil:
		return !x.entry.settings.Structured || out.Ticket != nil || !isData(out.Content)
	default:
		return f.kind == ErrorFailed || f.kind == ErrorHook || f.kind == ErrorOutput
	}
}

// isData reports whether parts are a single JSON value.
func isData(parts []dragoman.Part) bool {
	if len(parts) != 1 {
		return false
	}
	_, ok := parts[0].(*dragoman.Data)
	return ok
}

// limits returns the output limits of a tool.
func (r *Runner) limits(box *Box, e *entry) Limits {
	l := e.settings.Limits
	if box != nil {
		l = l.withWider(box.config.Limits)
	}
	return l.withWider(r.Limits).withWider(Limits{Chars: defaultChars, Tokens: -1, Binary: defaultBinary, Items: defaultItems})
}

// fail settles a call that did not run, or whose run was interrupted.
func (x *execution) fail(ctx context.Context, f *failure) {
	if x.settleFromJournal(ctx) {
		return
	}
	f.message = shortened(x.redactor().Redact(f.message))
	x.settle(x.call.Fail(f.message), f)
}

// settle sets the result and the record of the call, and applies the failure policy.
func (x *execution) settle(res *dragoman.ToolResult, f *failure) {
	x.result = res
	*x.record = x.newRecord(f)
	x.ended()
	x.applyFailure(f)
}

// applyFailure applies the failure policy of the tool or the runner to the run. A nil failure
// changes nothing.
func (x *execution) applyFailure(f *failure) {
	raise := x.runner.RaiseOnError && f.raises()
	if f == nil || !f.kind.executed() && !f.tripped && !raise {
		return
	}
	policy := x.runner.Failure
	if x.entry != nil && x.entry.settings.Failure != codes.FailureDefault {
		policy = x.entry.settings.Failure
	}
	if raise {
		policy = codes.FailureFail
	}
	switch policy {
	case codes.FailureDegrade:
		x.run.Degrade(x.key)
	case codes.FailureFail:
		x.mu.Lock()
		if x.failed == nil {
			x.failed = x
		}
		x.mu.Unlock()
		x.cancel(ErrFailed)
	}
}

// ended records the end of the call.
func (x *execution) ended() {
	if x.box != nil {
		x.box.addRecord(*x.record)
	}
	x.emit(func() Event { return CallEnded{CallRef: x.ref(), Record: *x.record} })
}

// newRecord returns the record of the call so far.
func (x *execution) newRecord(f *failure) Record {
	r := Record{
		Tool: x.key.QualifiedName(), Key: x.key, Trace: x.key.TraceName(""),
		Run: x.run.ID, Turn: x.turn.Number, CallID: x.call.ID, Agent: x.run.Agent,
		OK: f == nil && x.result != nil, Executed: x.result != nil && f.reached(), Attempt: max(x.attempt, 1),
		Started: x.started, Latency: x.runner.now().Sub(x.started),
		Decision: x.redactor().decision(x.decision), Verdict: x.verdict, Raw: x.redactor().Redact(x.call.Arguments), Steps: slices.Clone(x.steps),
	}
	for i := range r.Steps {
		r.Steps[i].Detail = x.redactor().Redact(r.Steps[i].Detail)
	}
	if x.entry != nil {
		r.Trace = x.key.TraceName(x.entry.settings.TraceName)
		if r.Arguments = x.hash; r.Arguments == (Hash{}) {
			r.Arguments = x.input.Hash()
		}
	}
	if x.result != nil {
		r.Output, r.Cut = x.result.Text(), x.cut
		if r.Plain = x.plain; r.Plain == "" {
			r.Plain = x.result.PlainText()
		}
	}
	if f != nil {
		r.ErrorKind, r.Error = f.kind, shortened(x.redactor().Redact(f.message))
	}
	switch {
	case f != nil && f.err != nil && (f.kind.executed() || x.internal == nil):
		r.Cause = cause(f.err, x.redactor().Redact)
	case x.internal != nil:
		r.Cause = cause(x.internal, x.redactor().Redact)
	}
	return r
}

func (x *execution) redactor() *Redactor { return x.run.redactor() }

// logFailure logs the cause of an internal error, which the model must not see but a
// developer must find. Without a log in the runner it uses [slog.Default].
func (x *execution) logFailure(msg string, err error) {
	x.internal = err
	args := []any{"tool", x.key.QualifiedName(), "run", x.run.ID, "turn", x.turn.Number, "call", x.call.ID, "error", x.redactor().Redact(err.Error())}
	var p *PanicError
	if errors.As(err, &p) {
		args = append(args, "stack", x.redactor().Redact(string(p.Stack)))
	}
	logWith(cmp.Or(x.runner.Log, slog.Default()), msg, args...)
}

// plainError returns the text of an error for the model, without panic values and the causes
// of call errors.
func plainError(err error) string {
	var p *PanicError
	if errors.As(err, &p) {
		return "panicked"
	}
	if t, ok := err.(*snapshotError); ok { //nolint:errorlint // snapshots are not wrapped
		return t.forModel
	}
	return ModelText(err)
}

func (r *Run) isDegraded(k Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.degraded, k)
}

// Degraded lists the tools that the failure policy "degrade" removed from the run, in the order in
// which they failed.
func (r *Run) Degraded() []Key {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.degraded)
}

// Degrade removes tools from the run, as the failure policy "degrade" does after a failure. Use it to
// restore the removed tools of a run that is resumed in another process.
func (r *Run) Degrade(keys ...Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range keys {
		if !slices.Contains(r.degraded, k) {
			r.degraded = append(r.degraded, k)
		}
	}
}

// edited sets top-level arguments. Existing arguments keep their position.
func edited(in Input, edits []Edit) (Input, error) {
	if in.Arguments == nil {
		return Input{}, errors.New("the tool takes text, so no argument can be set")
	}
	r := jsonwire.NewReader(in.Arguments)
	var w jsonwire.Writer
	w.BeginObject()
	set := make([]bool, len(edits))
	for key := range r.Object() {
		w.QuotedKey(string(key))
		i := slices.IndexFunc(edits, func(e Edit) bool { return e.Argument == string(key) })
		if i < 0 {
			w.Raw(r.Raw())
			continue
		}
		r.Skip()
		set[i] = true
		w.Raw(edits[i].Value)
	}
	for i, e := range edits {
		if !set[i] {
			w.QuotedKey(e.Argument)
			w.Raw(e.Value)
		}
	}
	w.EndObject()
	if err := errors.Join(r.End(), w.Err()); err != nil {
		return Input{}, err
	}
	return Input{Arguments: json.RawMessage(w.Buf)}, nil
}
