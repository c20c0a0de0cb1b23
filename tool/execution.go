package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/lazyctx"
)

// execution is one call on its way through prepare, approve and execute. Each step does nothing
// once the call has its result or is pending.
type execution struct {
	*batch
	call   *dragoman.ToolCall
	key    Key
	seen   *seen
	resume *Pending

	entry *entry
	// input is the input that will run. Only copies of it leave the execution.
	input Input
	// hash is the hash of the input when it began to run.
	hash     Hash
	steps    []Step
	decision *Decision
	request  *ApprovalRequest
	verdict  Verdict
	version  string // of the policy that decided
	attempt  int
	started  time.Time
	begun    bool // the tool was called
	// internal is the last internal error that was logged, for the record.
	internal error
	// inJournal reports that the journal was asked about the call.
	inJournal bool

	// answers are the answers to the questions that the tool asked.
	answers map[string]Answer

	pending *Pending
	plain   string // the text of the output, as it was before it was fenced
	cut     *Cut   // the parts of the output that were left out
	result  *dragoman.ToolResult
	record  *Record // its place among the turn's
}

func (x *execution) settled() bool { return x.result != nil || x.pending != nil }

func (x *execution) ref() CallRef {
	return CallRef{Run: x.run.ID, Turn: x.turn.Number, CallID: x.call.ID, Key: x.key}
}

// replay uses the earlier result of the same call.
func (x *execution) replay(before *seen) {
	x.result, *x.record = before.result, *before.record
	x.record.Replayed, x.record.Executed = true, false
}

// useResult uses an existing result of the call. It returns the failure that the result reports, or
// nil.
func (x *execution) useResult(res *dragoman.ToolResult, kind ErrorKind) *failure {
	if x.started.IsZero() {
		x.started = x.runner.now()
	}
	x.result = res
	var f *failure
	if res.Outcome == codes.OutcomeError {
		f = &failure{kind: cmp.Or(kind, ErrorFailed), message: res.PlainText()}
	}
	*x.record = x.newRecord(f)
	x.record.Replayed, x.record.Executed = true, false
	return f
}

// useJournaled uses the result in the journal. It applies the failure policy, because the process
// that ran the call may have died before it did so.
func (x *execution) useJournaled(prior Prior) {
	f := x.useResult(prior.Result, cmp.Or(x.seen.kind, prior.ErrorKind))
	x.record.Attempt = prior.Attempts
	x.ended()
	x.applyFailure(f)
}

// step takes a step of the call unless it is settled. Host code without a time limit, such as a
// store, may panic or end its goroutine: the call gets a result anyway, and no later step
// treats this one as passed.
func (x *execution) step(ctx context.Context, step func(*execution, context.Context)) {
	if x.settled() {
		return
	}
	returned := false
	defer func() {
		if !returned && !x.settled() {
			x.settleUnfinished(errEnded)
		}
	}()
	_, err := withoutPanic(func() (struct{}, error) { step(x, ctx); return struct{}{}, nil })
	returned = true
	if err != nil {
		x.settleUnfinished(err)
	}
}

// settleUnfinished settles a call whose step did not finish.
func (x *execution) settleUnfinished(err error) {
	x.logFailure("a call broke off", err)
	f := failf(ErrorNotRun, "%s did not run because of an internal error. The details are in the log.", x.key.QualifiedName())
	if x.begun {
		f = failf(ErrorPanic, "%s failed with an internal error. The details are in the log. It may have had an effect.", x.key.QualifiedName())
	}
	f.err, f.internal = err, true
	x.pending = nil
	x.settle(x.call.Fail(f.message), f)
}

// prepare finds the tool, reads the input, and passes all checks except approval.
func (x *execution) prepare(ctx context.Context) {
	x.started = x.runner.now()
	if f := x.gate(ctx); f != nil {
		x.fail(ctx, f)
	}
}

// gate makes all checks that may stop a call before a human is asked.
func (x *execution) gate(ctx context.Context) *failure {
	x.entry = x.box.find(x.key)
	switch {
	case x.entry == nil:
		f := x.box.unknown(x.key)
		// The model invented the name, and may have written a secret in it.
		x.key.Namespace, x.key.Name = x.redactor().Redact(x.key.Namespace), x.redactor().Redact(x.key.Name)
		return f
	case x.run.isDegraded(x.key):
		return failf(ErrorUnavailable, "%s is no longer available in this run, because it failed before. Continue without it.", x.key.QualifiedName())
	case x.call.Hosted:
		return failf(ErrorNotRun, "%s did not run: the provider runs this call", x.key.QualifiedName())
	case x.resume != nil && x.call.Problem != nil:
		return notRun(x.entry, x.call.Problem)
	}
	if x.resume != nil {
		if f := x.takeResumed(ctx); f != nil {
			return f
		}
	} else {
		var f *failure
		if x.input, x.steps, f = x.read(ctx); f != nil {
			return f
		}
	}
	if f := x.decide(ctx); f != nil {
		return f
	}
	if x.resume == nil {
		changed, f := x.preHooks(ctx)
		if f != nil {
			return f
		}
		if changed {
			if f := x.decide(ctx); f != nil {
				return f
			}
		}
	}
	return x.needsApproval(ctx)
}

// takeResumed uses the final input of a call that was pending. Hooks do not run again.
func (x *execution) takeResumed(ctx context.Context) *failure {
	x.input = x.resume.Input.clone()
	if x.input.Hash() != x.resume.Binding.Arguments {
		return failf(ErrorMismatch, "%s did not run: its stored arguments differ from those of the approval request", x.key.QualifiedName())
	}
	return x.check(ctx, &x.input, &x.steps)
}

func (x *execution) question() *Question {
	q := &Question{
		Subject: codes.SubjectToolCall, Key: x.key, Spec: x.entry.spec, Settings: &x.entry.settings, Input: x.input.clone(),
		Run: x.run.ID, Turn: x.turn.Number, CallID: x.call.ID, Agent: x.run.Agent, Metadata: x.run.Metadata,
	}
	if x.entry.settings.Source == codes.FromHandoff {
		q.Subject, q.Target = codes.SubjectHandoff, x.entry.settings.HandoffTo
	}
	return q
}

// decide asks the policy about the current input and applies its edits. A policy that fails
// denies.
func (x *execution) decide(ctx context.Context) *failure {
	p := x.runner.Policy
	if p == nil {
		return nil
	}
	q := x.question()
	d, version, err := x.runner.judge(ctx, p, q)
	x.version = version
	if err != nil {
		if ctx.Err() != nil {
			return x.canceled(ctx)
		}
		x.logFailure("a policy failed, so the call is denied", err)
	}
	x.decision = &d
	x.emit(func() Event {
		shown, failed := x.redactor().decided(&d, err)
		return PolicyDecided{CallRef: x.ref(), Subject: q.Subject, Agent: x.run.Agent, Target: q.Target, Input: q.Input, Decision: shown, Failed: failed}
	})
	if d.Effect == Deny {
		return x.denied(d)
	}
	return x.edit(ctx, d.Edits)
}

// judge asks a policy, and returns its decision and its version. An immediatePolicy
// policy is called directly; others run on another goroutine with a time limit. If the
// policy fails or its decision cannot be carried out, the decision is Deny.
func (r *Runner) judge(ctx context.Context, p Policy, q *Question) (d Decision, version string, err error) {
	type judged struct {
		Decision
		version string
	}
	ask := func(ctx context.Context) (judged, error) {
		d, err := p.Decide(ctx, q)
		return judged{d, p.Version()}, err
	}
	var j judged
	if immediate(p) {
		j, err = withoutPanic(func() (judged, error) { return ask(ctx) })
	} else {
		j, err = guardDecision(ctx, r, r.policyTimeout(), ask)
	}
	if err != nil {
		return Decision{Effect: Deny, Reason: "the policy failed"}, j.version, err
	}
	return j.valid(q), j.version, nil
}

// valid returns the decision, or a denial if it cannot be carried out.
func (d Decision) valid(q *Question) Decision {
	deny := func(format string, args ...any) Decision {
		return Decision{Effect: Deny, Rule: d.Rule, Matches: d.Matches, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case d.Effect != Allow && d.Effect != Ask && d.Effect != Deny && d.Effect != AskInput:
		return deny("the policy returned the unknown effect %q", d.Effect)
	case d.Effect == AskInput && (d.Input == nil || d.Input.Argument == ""):
		return deny("the policy asks for input without naming an argument")
	case d.Effect == AskInput && q.Spec != nil && q.Spec.Kind == codes.ToolFreeform:
		return deny("the policy asks for input, but the tool takes text, which has no arguments to set")
	case d.Effect == AskInput && q.Spec != nil && lacksArgument(q.Spec.Parameters, d.Input.Argument):
		return deny("the policy asks for a value for %q, but the tool has no such argument", d.Input.Argument)
	case q.Subject == codes.SubjectModelCall && (d.Effect == Ask || d.Effect == AskInput):
		return deny("the policy asks for approval, but a model call cannot wait for it")
	case q.Subject == codes.SubjectModelCall && len(d.Edits) > 0:
		return deny("the policy edits arguments, but a model call has no arguments")
	}
	return d
}

// lacksArgument reports whether a schema is known to allow no argument of this name.
func lacksArgument(parameters json.RawMessage, name string) bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Patterns   json.RawMessage            `json:"patternProperties"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	if json.Unmarshal(parameters, &s) != nil || s.Patterns != nil {
		return false
	}
	_, has := s.Properties[name]
	return !has && string(bytes.TrimSpace(s.Additional)) == "false"
}

// DeniedError reports that a policy denied a model call.
type DeniedError struct {
	// Model is the model that was not called.
	Model    string
	Decision Decision
}

func (e *DeniedError) Error() string {
	by := "by its default"
	if e.Decision.Rule != "" {
		by = fmt.Sprintf("by rule %q", e.Decision.Rule)
	}
	msg := "the policy denies calling the model"
	if e.Model != "" {
		msg += fmt.Sprintf(" %q", e.Model)
	}
	if msg += ", " + by; e.Decision.Reason != "" {
		msg += ": " + e.Decision.Reason
	}
	return msg
}

// DecideModel asks the policy whether a model may be called in a turn, and reports the
// decision to the observer. The error is a [*DeniedError], or the cause of ctx. Without
// a policy it returns nil.
func (r *Run) DecideModel(ctx context.Context, turn int, model string) error {
	p := r.runner.Policy
	if p == nil {
		return nil
	}
	q := &Question{Subject: codes.SubjectModelCall, Model: model, Run: r.ID, Turn: turn, Agent: r.Agent, Metadata: r.Metadata}
	d, _, err := r.runner.judge(ctx, p, q)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.runner.log("a policy failed, so the call is denied", "model", model, "error", r.redactor().Redact(err.Error()))
	}
	b := &batch{run: r, runner: r.runner}
	b.emit(func() Event {
		shown, failed := r.redactor().decided(&d, err)
		return PolicyDecided{CallRef: CallRef{Run: r.ID, Turn: turn}, Subject: q.Subject, Agent: r.Agent, Model: model, Decision: shown, Failed: failed}
	})
	if d.Effect == Allow {
		return nil
	}
	return &DeniedError{Model: model, Decision: d}
}

// immediate reports whether a policy is an immediatePolicy that reports true.
func immediate(p Policy) bool {
	q, ok := p.(immediatePolicy)
	if !ok {
		return false
	}
	at, err := withoutPanic(func() (bool, error) { return q.Immediate(), nil })
	return at && err == nil
}

func (x *execution) denied(d Decision) *failure {
	msg := x.key.QualifiedName() + " did not run: it was denied by policy."
	if d.Reason != "" {
		msg = fmt.Sprintf("%s did not run: it was denied by policy: %s", x.key.QualifiedName(), d.Reason)
	}
	return &failure{kind: ErrorDenied, message: msg}
}

// edit sets arguments and validates the result.
func (x *execution) edit(ctx context.Context, edits []Edit) *failure {
	if len(edits) == 0 {
		return nil
	}
	in, err := edited(x.input, edits)
	if err != nil {
		return failf(ErrorDenied, "%s did not run: the policy changed its arguments to invalid ones: %v", x.key.QualifiedName(), err)
	}
	for _, e := range edits {
		x.steps = append(x.steps, Step{stepPolicy, e.Argument + " is set"})
	}
	x.input = in
	return x.recheck(ctx, "a policy")
}

// preHooks runs the pre-hooks of the toolbox and then of the tool.
func (x *execution) preHooks(ctx context.Context) (changed bool, f *failure) {
	var hooks []task[Input]
	for _, set := range [...]*Hooks{&x.box.config.Hooks, &x.entry.settings.Hooks} {
		for _, hook := range set.Pre {
			hooks = append(hooks, task[Input]{ctx: ctx, limit: set.timeout(), f: hook.transform, immediate: set.Immediate})
		}
	}
	if len(hooks) > 0 { // which are about this call, not about one around it
		ctx := context.WithValue(ctx, contextKey{}, &runningCall{ref: x, agent: x.run.Agent, metadata: x.run.Metadata})
		for i := range hooks {
			hooks[i].ctx = ctx
		}
	}
	in, _, err := guardAll(x.runner, x.input, hooks)
	switch {
	case err != nil:
		return false, x.hookFailure(ctx, "did not run", err)
	case in.same(x.input): // as it was bound
		return false, nil
	}
	x.input = in
	x.steps = append(x.steps, Step{stepHook, "a hook changed the arguments"})
	return true, x.recheck(ctx, "a hook")
}

// transform replaces an input with the result of the hook. Each hook gets its own copy.
func (h PreHook) transform(ctx context.Context, in *Input) error {
	out, err := h(ctx, in.clone())
	if err == nil && !out.same(*in) {
		*in = out.clone()
	}
	return snapshot(err)
}

// hookFailure returns the failure of a hook, or the refusal of a pre-hook. message is the text for
// a failed hook.
func (x *execution) hookFailure(ctx context.Context, message string, err error) *failure {
	if ctx.Err() != nil {
		return x.canceled(ctx)
	}
	kind, why, event := ErrorHook, plainError(err), "a hook failed"
	var panicked *PanicError
	switch {
	case errors.As(err, &panicked) || errors.Is(err, errTimeout) || errors.Is(err, errEnded): // not an error of the hook itself
		why = event + ": it " + why
	case !x.begun && !errors.Is(err, context.DeadlineExceeded):
		kind, event = ErrorDenied, "a hook refused the call"
	}
	if kind == ErrorHook || x.runner.Log != nil { // a refusal is not an internal error
		x.logFailure(event, err)
	}
	return &failure{kind: kind, message: fmt.Sprintf("%s %s: %s", x.key.QualifiedName(), message, x.redactor().Redact(why)), ran: x.begun, err: err}
}

// needsApproval determines whether a human must be asked, and prepares the question. If it
// cannot be determined, a human is asked.
func (x *execution) needsApproval(ctx context.Context) *failure {
	s := &x.entry.settings
	reason := ""
	switch {
	case x.decision != nil && x.decision.Effect == AskInput:
		reason = "a value from you is required"
	case x.resume != nil && !x.continued():
		// The input comes from a store, not from the model: it runs only with an answer on
		// exactly this input.
		reason = cmp.Or(x.resume.Reason, "it waits for approval")
	case x.decision != nil && x.decision.Effect == Ask:
		reason = "required by the policy"
	case x.decision != nil && x.decision.Rule != "": // the rule allows this call
	case s.Unvalidated:
		reason = "its arguments cannot be validated here"
	case s.ApprovalFor != nil:
		reason = x.askTool(ctx)
		if ctx.Err() != nil {
			return x.canceled(ctx)
		}
	case s.Approval == approvalAlways:
		reason = "required by the tool"
	case s.Approval != approvalNever:
		reason = fmt.Sprintf("the tool's setting %q is unknown", s.Approval)
	}
	if reason != "" && x.decision != nil && x.decision.Reason != "" {
		reason = x.decision.Reason
	}
	changed := x.changedWhilePending()
	reason = addReason(changed, reason)
	if x.runner.Pins != nil && !x.continued() {
		if c := x.runner.Pins.check(x.entry); c != nil {
			changed, reason = c, addReason(c, reason)
		}
	}
	if reason == "" {
		return nil
	}
	x.request = &ApprovalRequest{
		Binding: x.binding(), Spec: x.entry.spec, From: s.From, Input: x.input.clone(), Agent: x.run.Agent, Reason: reason, Decision: x.decision, Changed: changed,
	}
	if x.resume != nil {
		x.request.Problem = x.resume.Problem
	}
	if x.decision != nil && x.decision.Effect == AskInput && !x.continued() { // a continued call has its value
		x.request.Wanted = x.decision.Input
	}
	if preview := s.Preview; preview != nil {
		in := x.request.Input
		x.request.Preview = func(ctx context.Context) (string, error) {
			return guard(ctx, x.runner, x.runner.policyTimeout(), nil, func(ctx context.Context) (string, error) {
				text, err := preview(ctx, in.clone())
				return text, snapshot(err)
			})
		}
	}
	return nil
}

// changedWhilePending describes how the tool changed after approval was requested, which makes
// an approval of the earlier definition invalid. If the call is pending again, the next
// request for approval repeats the description.
func (x *execution) changedWhilePending() *PinChange {
	switch {
	case x.resume == nil || x.continued():
		return nil
	case x.resume.Binding.Tool != x.entry.fingerprint:
		c := &PinChange{Tool: x.key.ApprovalKey(), Kind: codes.ChangedWhilePending}
		if x.resume.Definition != nil {
			c.Fields = difference(x.resume.Definition, x.entry.pin())
		}
		return c
	case x.resume.Changed != nil && x.resume.Changed.Kind == codes.ChangedWhilePending:
		return x.resume.Changed
	default:
		return nil
	}
}

// addReason adds a change to the reasons for an approval request, unless they contain it.
func addReason(c *PinChange, reason string) string {
	if c == nil || strings.Contains(reason, c.String()) {
		return reason
	}
	return strings.TrimSuffix(c.String()+"; "+reason, "; ")
}

// askTool asks the tool's own ApprovalFor function.
func (x *execution) askTool(ctx context.Context) (reason string) {
	if x.entry.spec.Kind == codes.ToolFreeform && strings.TrimSpace(x.input.Text) == "" {
		return "its input is blank"
	}
	needed, err := guardDecision(ctx, x.runner, x.runner.policyTimeout(), func(ctx context.Context) (bool, error) {
		needed, err := x.entry.settings.ApprovalFor(ctx, x.input.clone())
		return needed, snapshot(err)
	})
	switch {
	case err != nil:
		x.logFailure("a tool's approval function failed, so approval is needed", err)
		return "the tool could not decide whether approval is needed"
	case needed:
		return "required by the tool for these arguments"
	default:
		return ""
	}
}

func (x *execution) binding() Binding {
	return Binding{
		Run: x.run.ID, Turn: x.turn.Number, CallID: x.call.ID, Key: x.key,
		Tool: x.entry.fingerprint, Arguments: x.input.Hash(), Policy: x.version,
	}
}

// maxAnswers limits how often the approver is asked about one call.
const maxAnswers = 3

// approve asks the human, if approval is needed. An answer that cannot be used is not an error of
// the model: the human is asked again, and then the call stays pending.
func (x *execution) approve(ctx context.Context) {
	for try := 1; x.request != nil && !x.settled(); try++ {
		problem, refused := x.askOnce(ctx)
		if problem == "" {
			return
		}
		again := *x.request
		again.Problem, again.refused = x.redactor().Redact(problem), refused
		x.request = &again
		if try == maxAnswers {
			x.leaveUndecided(ctx)
			return
		}
	}
}

// leaveUndecided leaves a call pending.
func (x *execution) leaveUndecided(ctx context.Context) {
	x.verdict = Undecided
	if !x.settleFromJournal(ctx) { // a call that already ran needs no approval
		x.leavePending()
	}
}

// askOnce asks the human once. If the answer cannot be used, it returns the problem and the
// answer.
func (x *execution) askOnce(ctx context.Context) (problem string, refused *Answer) {
	answer, err := x.ask(ctx, x.request)
	if err != nil {
		if panicked := new(*PanicError); ctx.Err() != nil && !errors.As(err, panicked) {
			x.internal = err // the run was canceled during the question; the approver did not fail
		} else {
			x.logFailure("an approver failed, so the call is pending", err)
		}
		answer = Answer{}
	}
	x.verdict = answer.Verdict
	switch answer.Verdict {
	case Approved:
		problem, f := x.approved(ctx, answer)
		if problem != "" {
			return problem, &answer
		}
		if f != nil {
			x.fail(ctx, f)
		}
	case Rejected:
		x.fail(ctx, &failure{kind: ErrorRejected, message: x.rejection(answer)})
	default:
		x.leaveUndecided(ctx)
	}
	return "", nil
}

// rejection returns the message to the model about a rejected call.
func (x *execution) rejection(a Answer) string {
	name := x.key.QualifiedName()
	switch {
	case a.NoApprover && a.Message != "":
		return fmt.Sprintf("%s did not run: it needs approval, and no approver is attached: %s", name, a.Message)
	case a.NoApprover:
		return fmt.Sprintf("%s did not run: it needs approval (%s), and no approver is attached to this run", name, x.request.Reason)
	case a.Message != "":
		return fmt.Sprintf("%s did not run: the user rejected it: %s", name, a.Message)
	default:
		return fmt.Sprintf("%s did not run: the user rejected it. Approval was needed: %s", name, x.request.Reason)
	}
}

func (x *execution) ask(ctx context.Context, req *ApprovalRequest) (Answer, error) {
	a := x.runner.Approver
	if a == nil {
		return Answer{}, nil
	}
	f := func(ctx context.Context) (Answer, error) {
		answer, err := a.Approve(ctx, req)
		return answer, snapshot(err)
	}
	limit := x.runner.ApproverTimeout
	if limit <= 0 {
		limit = noLimit
	}
	return guardDecision(ctx, x.runner, limit, f)
}

// noLimit is longer than any wait.
const noLimit = 100 * 365 * 24 * time.Hour

// approved applies the changes of the human. They are validated and judged by the policy again,
// without hooks. Ask counts as answered; Deny still denies. problem says why the changes cannot be
// used; the call then has the input that the human was asked about.
func (x *execution) approved(ctx context.Context, a Answer) (problem string, f *failure) {
	wanted := x.request.Wanted
	asked, steps := x.input, slices.Clip(x.steps)
	defer func() {
		if problem != "" {
			x.input, x.steps = asked, steps
		}
	}()
	if a.Edited != nil {
		x.input = a.Edited.clone()
		x.steps = append(x.steps, Step{stepEdit, "by the user"})
	}
	switch {
	case wanted.wantsValue() && len(a.Value) == 0 && a.Edited == nil:
		return "a value for " + wanted.Argument + " is missing", nil
	case wanted != nil && len(a.Value) > 0:
		in, err := edited(x.input, []Edit{{wanted.Argument, a.Value}})
		if err != nil {
			return fmt.Sprintf("the value for %s cannot be set: %v", wanted.Argument, err), nil
		}
		x.input = in
		x.steps = append(x.steps, Step{stepEdit, wanted.Argument + ", by the user"})
	case a.Edited == nil:
		return "", nil
	}
	if f := x.completeAndCheck(ctx, &x.input, &x.steps); f != nil {
		switch {
		case f.kind != ErrorArguments:
			return "", f
		case f.err != nil:
			return f.err.Error(), nil
		default:
			return f.message, nil
		}
	}
	return "", x.decide(ctx)
}

func (x *execution) leavePending() {
	p := Pending{Binding: x.request.Binding, Input: x.input, Reason: x.request.Reason, Wanted: x.request.Wanted, Problem: x.request.Problem, Changed: x.request.Changed, Definition: maps.Clone(x.entry.pin())}
	if x.continued() { // its work has begun and must not restart after the approval
		p.State, p.Attempt = x.resume.State, x.resume.Attempt
	}
	x.pending = &p
	*x.record = x.newRecord(nil)
	x.record.Pending = true
	x.emitApprovalRequested()
}

// emitApprovalRequested reports that the call is pending. The reason may quote arguments, so the event
// has it redacted; the caller gets the original in the batch.
func (x *execution) emitApprovalRequested() {
	x.emit(func() Event {
		p := *x.pending
		p.Reason = x.redactor().Redact(p.Reason)
		return ApprovalRequested{CallRef: x.ref(), Agent: x.run.Agent, Pending: p}
	})
}

// execute runs the tool and settles the call.
func (x *execution) execute(ctx context.Context) {
	if ctx.Err() != nil {
		x.fail(ctx, x.canceled(ctx))
		return
	}
	x.hash = x.input.Hash()
	if x.continued() {
		questions, err := x.ownQuestions(x.resume)
		if err != nil {
			x.fail(ctx, failf(ErrorMismatch, "%s was not continued: %v", x.key.QualifiedName(), err))
			return
		}
		if len(questions) > 0 && !x.answer(ctx, questions) {
			x.leaveWaiting(ctx)
			return
		}
	}
	for round := 1; ; round++ {
		out, f, ran := x.attemptCall(ctx)
		if !ran {
			return
		}
		s := suspended(f)
		if s == nil {
			x.entry.breaker.settle(f)
			x.finish(ctx, out, f)
			return
		}
		x.entry.breaker.release()
		questions, err := x.asks(s)
		switch {
		case err != nil || round == maxAskRounds && len(questions) > 0:
			if err == nil {
				err = fmt.Errorf("it asked more than %d times", maxAskRounds)
			}
			x.logFailure("a tool asked a question that cannot be asked", err)
			msg := fmt.Sprintf("%s was ended: %v", x.key.QualifiedName(), err)
			x.finish(ctx, Output{Failed: true, Content: []dragoman.Part{&dragoman.Text{Text: msg}}}, &failure{kind: ErrorFailed, message: msg, ran: true, err: err})
			return
		case len(questions) == 0 || len(s.Inner) > 0 || !x.answer(ctx, questions):
			x.suspend(s, questions)
			return
		}
		x.resume = &Pending{Binding: x.binding(), Input: x.input, State: s.State, Attempt: x.attempt}
	}
}

// leaveWaiting leaves a call pending whose questions are still not answered.
func (x *execution) leaveWaiting(ctx context.Context) {
	if x.settleFromJournal(ctx) { // another process got the answers and continued
		return
	}
	p := *x.resume
	x.attempt = x.resume.Attempt
	x.pending = &p
	*x.record = x.newRecord(nil)
	x.record.Pending, x.record.Executed = true, true
	x.emitApprovalRequested()
}

// attemptCall calls the tool once. ran is false if the call was settled without that.
func (x *execution) attemptCall(ctx context.Context) (out Output, f *failure, ran bool) {
	if !x.entry.breaker.admit() {
		f := failf(ErrorUnavailable, "%s is not available at the moment, because it failed too often. Continue without it, or try again later.", x.key.QualifiedName())
		f.tripped = true
		x.fail(ctx, f)
		return out, nil, false
	}
	done, f := x.journalBegin(ctx)
	if f != nil || done {
		x.entry.breaker.release()
		if f != nil {
			x.fail(ctx, f)
		}
		return out, nil, false
	}
	x.begun = true
	x.emit(func() Event { return CallStarted{CallRef: x.ref(), Input: x.input.clone()} })
	out, f = x.runTool(ctx)
	return out, f, true
}

// journalBegin records the intent. done reports that the call was settled from the journal.
func (x *execution) journalBegin(ctx context.Context) (done bool, f *failure) {
	x.attempt = 1
	j := x.runner.Journal
	if j == nil {
		return false, nil
	}
	x.inJournal = true
	intent := x.intent()
	prior, err := withoutPanic(func() (Prior, error) {
		ctx, cancel := lazyctx.WithTimeout(ctx, storeTimeout)
		defer cancel()
		return j.Begin(ctx, intent)
	})
	switch {
	case err != nil:
		x.logFailure("the journal failed", err)
		x.inJournal = false // the earlier attempts are still unknown
		return false, &failure{kind: ErrorJournal, message: x.key.QualifiedName() + " did not run, because the start of the call could not be recorded", err: err}
	case prior.Attempts == 0:
		return false, nil
	case prior.Arguments != intent.Arguments && !(x.turn.MayHaveRun && x.verdict == Approved):
		x.abortTurn(x.otherArguments())
		return false, failf(ErrorUncertain, "%s was started before with other arguments, and may have had its effect. It was not run again.", x.key.QualifiedName())
	case prior.Result != nil:
		x.useJournaled(prior)
		return true, nil
	case prior.Arguments != intent.Arguments, // a human changed them after the call began
		!intent.Idempotent && prior.Attempts > intent.Continues:
		return false, failf(ErrorUncertain, "%s was started before, and it is unknown whether it had its effect. It was not run again. Check before you repeat it.", x.key.QualifiedName())
	default:
		x.attempt = prior.Attempts + 1
		return false, nil
	}
}

func (x *execution) intent() Intent {
	a := x.entry.spec.Annotations
	return Intent{
		CallRef: x.ref(), Arguments: x.hash, Continues: x.continues(),
		Idempotent: a.Idempotent != nil && *a.Idempotent || a.ReadOnly != nil && *a.ReadOnly,
	}
}

// journalFailed makes a failed write of the journal the error of the turn. Other calls are not
// affected: running calls continue, and calls that wait for a human stay pending.
func (x *execution) journalFailed(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken == nil {
		x.broken = err
	}
}

func (x *execution) abortTurn(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.broken == nil {
		x.broken = err
	}
	x.cancel(err)
}
