package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// AfterTools decides whether the run is over after all calls of a turn are answered. If done
// is true, output is the answer of the run.
type AfterTools func(ctx context.Context, calls []ToolOutcome) (output string, done bool, err error)

// ToolOutcome is a call with its result.
type ToolOutcome struct {
	Call   *dragoman.ToolCall
	Result *dragoman.ToolResult
	Record tool.Record
	// added is set if the agent added the tool itself.
	added bool
}

// StopOnFirstTool ends the run with the result of its first call. Calls of tools that the
// agent adds do not end it: handoffs, the search for deferred tools, and the tool that
// reads long outputs.
func StopOnFirstTool(_ context.Context, calls []ToolOutcome) (string, bool, error) {
	for _, c := range calls {
		if !c.added {
			return c.Output(), true, nil
		}
	}
	return "", false, nil
}

// StopAtTools ends the run with the result of the first call of one of these tools,
// by qualified name. A call that failed does not end it: the model may try again.
func StopAtTools(names ...string) AfterTools {
	return func(_ context.Context, calls []ToolOutcome) (string, bool, error) {
		for _, c := range calls {
			if c.Record.OK && slices.Contains(names, c.Call.QualifiedName()) {
				return c.Output(), true, nil
			}
		}
		return "", false, nil
	}
}

// Output returns the output of the tool without the fence that models see, for use as the
// answer of a run.
func (f *ToolOutcome) Output() string { return f.Record.Plain }

// runner returns the tool runner of the current agent.
func (r *run) runner() *tool.Run {
	p := r.active
	if t := r.runners[p.name()]; t != nil {
		return t
	}
	base := p.base()
	base.Approver = r.decided.approver(base.Approver)
	if base.Journal == nil {
		base.Journal = r.runJournal()
	}
	if base.Now == nil {
		base.Now = p.Now
	}
	if base.Log == nil {
		base.Log = p.Log
	}
	if base.Go == nil {
		base.Go = r.agents.first.Go
	}
	base.Observe = r.observer(base.Observe)
	t := base.Start(r.state.Run)
	t.Agent = append(slices.Clone(r.path), p.name())
	t.Metadata = r.metadata
	for _, d := range r.state.Degraded {
		if d.Agent == p.name() {
			t.Degrade(d.Key)
		}
	}
	r.hideSecrets(t)
	r.runners[p.name()] = t
	return t
}

// hideSecrets hides secrets that one tool was given from the outputs of all other tools of
// the run and of the outer run (requirement T14).
func (r *run) hideSecrets(t *tool.Run) {
	if r.secrets == nil {
		r.secrets = t
	}
	t.HideSecretsOf(r.secrets)
}

// runJournal returns the journal of the run, or nil.
func (r *run) runJournal() tool.Journal {
	if r.store != nil {
		return r.store
	}
	return r.journal
}

// observer passes the events of tools from their goroutines to the one that reads the
// stream. Tools wait until it takes them.
func (r *run) observer(also func(tool.Event)) func(tool.Event) {
	if r.yield == nil {
		return also
	}
	return func(ev tool.Event) {
		if also != nil {
			also(ev)
		}
		select {
		case r.events <- ev:
		case <-r.eventsDone:
		}
	}
}

// call runs the calls of the current turn that have no results yet, and collects their
// results.
func (r *run) call(ctx context.Context) error {
	calls := openCalls(r.messages)
	if len(calls) == 0 {
		if n := len(r.messages); n > 0 && hasResults(&r.messages[n-1]) {
			return fmt.Errorf("%w: the conversation has the results of the calls that the state waits for, so the state is older: rewind the session to the state that was saved after them, or begin a new run", ErrState)
		}
		return fmt.Errorf("%w: the state has pending calls that the conversation does not contain: pass agent.In with the store of the run", ErrState)
	}
	run, answered := r.splitCalls(calls)
	run, over := r.splitAtLimit(run)
	answered = append(answered, over...)
	pending := r.state.Pending
	if r.guarded.err() != nil { // stopped in an earlier process: nothing runs, and the journal has the calls that ran
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		cancel(r.guarded.err())
	}
	batch, err := r.do(ctx, tool.Turn{Number: r.state.Turn, Calls: run, Resume: pending, MayHaveRun: r.mayHaveBegun})
	r.mayHaveBegun = false
	r.guarded.abandon(ctx.Err() == nil && !errors.Is(err, tool.ErrFailed))
	r.reloadFound(batch.Records)
	r.collect()
	if len(batch.Results) != len(run) { // nothing ran
		return errorf("%w", err)
	}
	r.recorded = append(r.recorded, batch.Records)
	r.keepRecords(batch.Records)
	r.noteDegraded(batch)
	r.state.Calls += executed(batch)
	r.state.Pending = batch.Pending
	r.keepApprovals(batch)
	r.state.Settled = append(append(r.state.Settled, answered...), renamed(calls, batch.Settled())...)
	if len(batch.Pending) > 0 && (err == nil || ctx.Err() != nil || errors.Is(err, tool.ErrJournal)) && r.guarded.err() == nil {
		r.storeRecords(batch)
		if saved := r.save(ctx); saved != nil {
			return saved
		}
		return errors.Join(ErrInterrupted, err)
	}
	return r.finish(ctx, calls, r.records(calls, batch), err)
}

// keepApprovals stores the approvals of calls whose tools are suspended, such as agents
// that run as tools. Such a call continues when the run is resumed, without another
// question (requirement A6).
func (r *run) keepApprovals(batch *tool.Batch) {
	for _, p := range batch.Pending {
		if p.State == nil {
			continue
		}
		for i := range batch.Records {
			if rec := &batch.Records[i]; rec.CallID == p.Binding.CallID && rec.Verdict == tool.Approved {
				r.decided.approve(p.Binding)
			}
		}
	}
}

// noteDegraded records the tools that failures of the batch removed from the run.
func (r *run) noteDegraded(batch *tool.Batch) {
	if len(batch.Records) == 0 {
		return
	}
	agent := r.active.name()
	for _, k := range r.runner().Degraded() {
		lost := degradedTool{agent, k}
		if slices.Contains(r.state.Degraded, lost) {
			continue
		}
		r.state.Degraded = append(r.state.Degraded, lost)
		r.emit(&Notice{r.state.Turn, "degraded", k.QualifiedName() + " failed and is not available for the rest of the run"})
	}
}

// storeRecords stores the records of finished calls in the state until all calls of the turn are
// finished. The next step is decided then, possibly in another process.
func (r *run) storeRecords(batch *tool.Batch) {
	for i := range batch.Records {
		if rec := batch.Records[i]; !rec.Pending {
			r.state.Done = append(r.state.Done, doneCall{rec, rec.Plain})
		}
	}
}

// records returns the records of the turn, in the order of its calls. batch is its last batch.
func (r *run) records(calls []*dragoman.ToolCall, batch *tool.Batch) []tool.Record {
	if len(r.state.Done) == 0 && ordered(batch.Records, calls) {
		return batch.Records
	}
	r.storeRecords(batch)
	return r.state.records(calls)
}

// ordered reports whether all records are of finished calls, in the order of the calls.
func ordered(records []tool.Record, calls []*dragoman.ToolCall) bool {
	for i := range records {
		for len(calls) > 0 && calls[0].ID != records[i].CallID {
			calls = calls[1:]
		}
		if len(calls) == 0 || records[i].Pending {
			return false
		}
		calls = calls[1:]
	}
	return true
}

// records returns the records of finished calls, in the order of the turn's calls.
func (s *state) records(calls []*dragoman.ToolCall) []tool.Record {
	out := make([]tool.Record, 0, len(s.Done))
	for _, c := range calls {
		for i := range s.Done {
			if rec := s.Done[i].Record; rec.CallID == c.ID {
				rec.Plain = s.Done[i].Plain
				out = append(out, rec)
				break
			}
		}
	}
	return out
}

// splitAtLimit returns the calls that the limit allows, in order, and error results for the
// others. Pending calls are always allowed.
func (r *run) splitAtLimit(calls []*dragoman.ToolCall) (run []*dragoman.ToolCall, over []*dragoman.ToolResult) {
	most := r.agents.first.Limits.ToolCalls
	if most <= 0 {
		return calls, nil
	}
	waits := func(p tool.Pending) bool { return p.Binding.CallID == calls[0].ID }
	for ; len(calls) > 0; calls = calls[1:] {
		c := calls[0]
		if len(run) < most-r.state.Calls || slices.ContainsFunc(r.state.Pending, waits) {
			run = append(run, c)
			continue
		}
		over = append(over, c.Fail(c.QualifiedName()+" did not run: the limit of tool calls is reached."))
	}
	return run, over
}

// collect takes the tools that searches of the turn found, and reports the verdicts of its
// guardrails.
func (r *run) collect() {
	r.guarded.mu.Lock()
	r.state.Found = append(r.state.Found, r.newlyFound...)
	verdicts := r.guarded.verdicts
	r.newlyFound, r.guarded.verdicts = nil, nil
	r.guarded.mu.Unlock()
	for i := range verdicts {
		r.emit(&verdicts[i])
	}
}

// finish stores the results of a turn and decides the next step.
func (r *run) finish(ctx context.Context, calls []*dragoman.ToolCall, records []tool.Record, failed error) error {
	p := r.active
	results := make([]*dragoman.ToolResult, len(calls))
	for i, c := range calls {
		if results[i] = r.state.settled(c.ID); results[i] == nil { // the run ends before this call could run
			results[i] = c.Fail(c.QualifiedName() + " did not run: the run was ended.")
		}
	}
	r.messages = append(r.messages, dragoman.ToolResults(results...))
	r.state.Pending, r.state.Settled, r.state.Done, r.state.Stopped, r.state.Phase = nil, nil, nil, nil, asking
	if forced(p.Settings.ToolChoice) {
		r.state.Chosen = true
	}
	to, err := r.decideNext(ctx, calls, results, records, failed)
	if saved := r.save(ctx); saved != nil {
		return errors.Join(saved, err)
	}
	if r.noReader() {
		return err
	}
	for _, res := range results {
		r.emit(&ToolReturned{r.state.Turn, res})
	}
	if to != "" {
		r.emit(&HandedOff{r.state.Turn, p.name(), to})
	}
	r.emit(&TurnEnd{r.state.Turn, r.state.Usage})
	return err
}

// settled returns the result of a call of the current turn, or nil.
func (s *state) settled(call string) *dragoman.ToolResult {
	for _, res := range s.Settled {
		if res.CallID == call {
			return res
		}
	}
	return nil
}

// decideNext decides the next step after calls were answered: the run ends, with or without an
// error, another agent takes over, or the current agent continues.
func (r *run) decideNext(ctx context.Context, calls []*dragoman.ToolCall, results []*dragoman.ToolResult, records []tool.Record, failed error) (to string, err error) {
	switch stopped := r.guarded.err(); {
	case stopped != nil:
		return "", r.fail(stopped) // resuming the run must not bypass the guardrail
	case failed != nil:
		return "", errorf("%w", failed)
	case ctx.Err() != nil:
		return "", ctx.Err()
	}
	if err := r.checkProgress(r.active, calls, records, results); err != nil {
		return "", err
	}
	over, err := r.callAfterTools(ctx, calls, results, records)
	if over || err != nil {
		return "", err
	}
	return r.handOver(records)
}

// callAfterTools calls AfterTools, which decides whether the run is over.
func (r *run) callAfterTools(ctx context.Context, calls []*dragoman.ToolCall, results []*dragoman.ToolResult, records []tool.Record) (over bool, err error) {
	if r.active.AfterTools == nil {
		return false, nil
	}
	done := make([]ToolOutcome, 0, len(records))
	for _, rec := range records {
		for i, c := range calls {
			if c.ID == rec.CallID {
				done = append(done, ToolOutcome{c, results[i], rec, r.active.adds(rec.Key)})
			}
		}
	}
	var output string
	err = callback("AfterTools", func() (err error) { output, over, err = r.active.AfterTools(ctx, done); return err })
	if err != nil {
		return false, err
	}
	if !over {
		return false, nil
	}
	r.state.Phase = finished
	return true, r.outcome(ctx, output)
}

// adds reports whether a key belongs to a tool that the agent added itself.
func (p *preparedAgent) adds(k tool.Key) bool {
	is := func(t tool.Tool) bool { return t != nil && tool.KeyOf(t.Spec()) == k }
	return p.handoffs[k] != nil || is(p.searchTool) || is(p.outputReader)
}

// outcome makes a text that AfterTools returned the answer of the run. Guardrails and the
// requested output format apply to it as to any answer, but no model can correct it.
func (r *run) outcome(ctx context.Context, output string) error {
	said, err := r.guardOutput(ctx, []dragoman.Message{dragoman.AssistantText(output)})
	switch {
	case err != nil && !errors.Is(err, ErrGuardrail): // canceled
		r.state.Phase = asking
		return err
	case err != nil:
		return r.fail(err)
	}
	r.state.Output = textOf(said)
	r.result.Output = r.state.Output
	if r.check == nil {
		return nil
	}
	if wrong := r.check(r.state.Output); wrong != "" {
		return r.fail(&OutputError{Output: r.state.Output, Problem: wrong})
	}
	return nil
}

func executed(b *tool.Batch) (n int) {
	for i := range b.Records {
		if b.Records[i].Executed && !b.Records[i].Pending { // a pending call has not finished
			n++
		}
	}
	return n
}

// do runs the calls of a turn, and meanwhile emits the events of their tools.
func (r *run) do(ctx context.Context, turn tool.Turn) (*tool.Batch, error) {
	if len(turn.Calls) == 0 {
		return &tool.Batch{}, nil
	}
	t, box := r.runner(), r.active.box
	ctx = r.withRun(ctx)
	if r.yield == nil {
		return t.Do(ctx, box, turn)
	}
	var batch *tool.Batch
	var err error
	r.relay(func() { batch, err = t.Do(ctx, box, turn) })
	return batch, err
}

// relay runs f on another goroutine, and meanwhile emits the events of tools on this one.
func (r *run) relay(f func()) {
	finished := make(chan struct{})
	r.start(func() {
		defer close(finished)
		f()
	})
	for {
		select {
		case ev := <-r.events:
			r.emit(&ToolEvent{r.state.Turn, ev})
		case <-finished:
			return
		}
	}
}

// start starts a goroutine.
func (r *run) start(f func()) {
	if g := r.agents.first.Go; g != nil {
		g(f)
		return
	}
	go f()
}

// splitCalls separates the calls that run from those that are answered at once: a second
// handoff, and deferred tools that no search has found. Calls that have results are in
// neither list. The calls that run have the name under which their tool is looked up.
func (r *run) splitCalls(calls []*dragoman.ToolCall) (run []*dragoman.ToolCall, answered []*dragoman.ToolResult) {
	first := "" // the first handoff, which takes effect
	for _, c := range calls {
		named := r.active.withToolKey(c)
		key := tool.KeyOfCall(named)
		handoff := r.active.handoffs[key] != nil
		switch {
		case r.state.settled(c.ID) != nil:
		case handoff && first != "":
			answered = append(answered, c.Fail(fmt.Sprintf("Not handed over: %s was called first, and a turn can have only one handoff.", first)))
		case r.active.removed[c.QualifiedName()]:
			answered = append(answered, c.Fail(fmt.Sprintf("%s is unavailable: its server no longer offers it. Continue without it.", c.QualifiedName())))
		case r.active.isHidden(key) && !r.found(key):
			answered = append(answered, c.Fail(fmt.Sprintf("%s is not loaded. Find it with %s first.", c.QualifiedName(), r.active.searchTool.Spec().Name)))
		default:
			if r.active.isHidden(key) && !slices.Contains(r.state.Found, key) {
				// The provider's search found the tool. It stays found with another
				// provider.
				r.state.Found = append(r.state.Found, key)
			}
			run = append(run, named)
		}
		if handoff && first == "" {
			first = c.QualifiedName()
		}
	}
	return run, answered
}

// renamed gives results the names of the model's calls, because a deferred tool is looked up
// by another name.
func renamed(calls []*dragoman.ToolCall, results []*dragoman.ToolResult) []*dragoman.ToolResult {
	for i, res := range results {
		for _, c := range calls {
			if c.ID == res.CallID && res.Namespace != c.Namespace {
				out := *res
				out.Namespace = c.Namespace
				results[i] = &out
			}
		}
	}
	return results
}
