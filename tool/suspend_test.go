package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// A6: a tool whose work waits for humans leaves its call pending and resumes with its state.
func TestA6_SuspendedToolResumesWithItsState(t *testing.T) {
	begun, resumed := 0, 0
	waits := tool.New("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		state, ok := tool.Resumed(ctx)
		if !ok {
			begun++
			return "", &tool.Suspended{State: json.RawMessage(`{"at":1}`), Inner: []tool.Pending{{Reason: "inner"}}}
		}
		resumed++
		return "went on with " + string(state), nil
	})
	box, err := tool.NewBox(waits)
	if err != nil {
		t.Fatal(err)
	}
	call := &dragoman.ToolCall{ID: "a", Name: "wait", Arguments: "{}"}
	batch, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call}})
	if err != nil || len(batch.Pending) != 1 || batch.Results[0] != nil || batch.Pending[0].Inner[0].Reason != "inner" || !batch.Records[0].Pending {
		t.Fatalf("%v %+v", err, batch)
	}
	b, err := json.Marshal(batch.Pending)
	if err != nil {
		t.Fatal(err)
	}
	var back []tool.Pending
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	batch, err = (&tool.Runner{}).Start("r").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call}, Resume: back})
	if err != nil || len(batch.Pending) != 0 || batch.Records[0].Plain != `went on with {"at":1}` || begun != 1 || resumed != 1 {
		t.Fatalf("%v %+v, begun %d, resumed %d", err, batch, begun, resumed)
	}
}

// A turn with a call that cannot continue is refused before another of its calls runs, even if
// the check panics.
func TestL13_RefusedStateStopsTheTurn(t *testing.T) {
	refused := errors.New("of a newer version")
	for name, check := range map[string]func(json.RawMessage) error{
		"error": func(state json.RawMessage) error {
			if string(state) != `{"at":1}` {
				t.Errorf("the check gets %s", state)
			}
			return refused
		},
		"panic": func(json.RawMessage) error { panic("broken") },
	} {
		ran := 0
		effect := tool.New("effect", "Acts.", func(context.Context, struct{}) (string, error) { ran++; return "", nil })
		waits := tool.New("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
			if _, ok := tool.Resumed(ctx); ok {
				ran++
			}
			return "", &tool.Suspended{State: json.RawMessage(`{"at":1}`)}
		}, tool.Set(func(s *tool.Settings) {
			s.CheckState = func(_ context.Context, state json.RawMessage) error { return check(state) }
		}))
		box := mustBox(t, effect, waits)
		turn := tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call("a", "wait", "")}}
		batch, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, turn)
		if err != nil || len(batch.Pending) != 1 {
			t.Fatalf("%v %+v", err, batch)
		}
		turn.Calls, turn.Resume = append(turn.Calls, call("b", "effect", "")), batch.Pending
		batch, err = (&tool.Runner{}).Start("r").Do(t.Context(), box, turn)
		if panicked := new(*tool.PanicError); !errors.Is(err, refused) && !errors.As(err, panicked) || len(batch.Results) != 0 || ran != 0 {
			t.Errorf("%s: %v, %d results, %d runs", name, err, len(batch.Results), ran)
		}
	}
}

// A state is not an approval: a tool that needs approval also needs it to continue.
func TestA6_StateDoesNotReplaceApproval(t *testing.T) {
	ran := false
	pay := tool.New("pay", "Pays.", func(context.Context, struct{}) (string, error) { ran = true; return "", nil }, tool.NeedsApproval())
	box, err := tool.NewBox(pay)
	if err != nil {
		t.Fatal(err)
	}
	call := &dragoman.ToolCall{ID: "a", Name: "pay", Arguments: "{}"}
	turn := tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call}}
	batch, _ := (&tool.Runner{}).Start("r").Do(t.Context(), box, turn)
	forged := batch.Pending[0]
	forged.State = json.RawMessage(`{}`)
	turn.Resume = []tool.Pending{forged}
	batch, err = (&tool.Runner{}).Start("r").Do(t.Context(), box, turn)
	if err != nil || ran || len(batch.Pending) != 1 {
		t.Errorf("%v, ran %v: %+v", err, ran, batch)
	}
}

// A suspended call has begun, but its outcome is not uncertain.
func TestL14_SuspendedCallIsNotUncertain(t *testing.T) {
	j := &onceJournal{}
	waits := tool.New("wait", "Waits.", func(ctx context.Context, _ struct{}) (string, error) {
		if _, ok := tool.Resumed(ctx); !ok {
			return "", &tool.Suspended{State: json.RawMessage(`1`)}
		}
		return "ok", nil
	})
	box, err := tool.NewBox(waits)
	if err != nil {
		t.Fatal(err)
	}
	turn := tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "a", Name: "wait", Arguments: "{}"}}}
	r := &tool.Runner{Journal: j}
	batch, _ := r.Start("r").Do(t.Context(), box, turn)
	turn.Resume = batch.Pending
	batch, err = r.Start("r").Do(t.Context(), box, turn)
	if err != nil || !batch.Records[0].OK || batch.Records[0].Attempt != 2 {
		t.Errorf("%v %+v", err, batch.Records)
	}
	turn.Resume = nil
	j.prior.Result = nil
	if batch, _ = r.Start("r").Do(t.Context(), box, turn); batch.Records[0].ErrorKind != tool.ErrorUncertain {
		t.Errorf("begun, with an unknown end: %+v", batch.Records)
	}
}

// A suspended call has begun. A run that ends before the call continues, or after a process
// that continued it died, must not report that nothing happened.
func TestL14_CanceledSuspendedCallHasBegun(t *testing.T) {
	waits := tool.New("wait", "Waits.", func(context.Context, struct{}) (string, error) {
		return "", &tool.Suspended{State: json.RawMessage(`1`)}
	})
	box := mustBox(t, waits)
	for attempts, want := range map[int]tool.ErrorKind{1: tool.ErrorCanceled, 2: tool.ErrorUncertain} {
		j := &recallingJournal{}
		r := &tool.Runner{Journal: j}
		turn := tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "a", Name: "wait", Arguments: "{}"}}}
		batch, _ := r.Start("r").Do(t.Context(), box, turn)
		turn.Resume, turn.MayHaveRun = batch.Pending, true
		j.prior.Attempts = attempts
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		batch, _ = r.Start("r").Do(ctx, box, turn)
		got := batch.Results[0].Text()
		if batch.Records[0].ErrorKind != want || strings.Contains(got, "did not run") || !strings.Contains(got, "effect") {
			t.Errorf("begun %d times: %q %s", attempts, batch.Records[0].ErrorKind, got)
		}
	}
}

// A journal that cannot be written may still be readable: a call that ran before must not be
// reported as one that did not run.
func TestL14_FailedIntentChecksTheJournal(t *testing.T) {
	args := tool.Input{Arguments: json.RawMessage("{}")}.Hash()
	done := call("1", "a", "{}").ResultText("from before")
	for _, tc := range []struct {
		prior tool.Prior
		kind  tool.ErrorKind
	}{
		{tool.Prior{}, tool.ErrorJournal},
		{tool.Prior{Attempts: 1, Arguments: args}, tool.ErrorUncertain},
		{tool.Prior{Attempts: 1, Arguments: args, Result: done}, ""},
	} {
		j := &recallingJournal{onceJournal: onceJournal{prior: tc.prior}, full: true}
		ran := false
		box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) { ran = true; return "", nil }))
		b, err := (&tool.Runner{Journal: j}).Start("r").Do(t.Context(), box, tool.Turn{MayHaveRun: true, Calls: []*dragoman.ToolCall{call("1", "a", "{}")}})
		if err != nil || ran || b.Records[0].ErrorKind != tc.kind {
			t.Errorf("%+v: %v, ran %v, %q: %s", tc.prior, err, ran, b.Records[0].ErrorKind, b.Results[0].Text())
		}
	}
}

// The journal is asked about a rejected call only if the turn may have run before, and only if
// the journal can tell without beginning the call.
func TestL14_RejectionNeedsNoJournalInANewTurn(t *testing.T) {
	for name, tc := range map[string]struct {
		journal tool.Journal
		again   bool
		kind    tool.ErrorKind
	}{
		"a new turn":                       {&conflictingJournal{fails: errors.New("disk")}, false, tool.ErrorRejected},
		"a turn that may have run":         {&conflictingJournal{}, true, tool.ErrorRejected},
		"the journal cannot be read":       {&conflictingJournal{fails: errors.New("disk")}, true, tool.ErrorUncertain},
		"a journal without Recall":         {&onceJournal{}, true, tool.ErrorRejected},
		"a journal without Recall, before": {&onceJournal{}, false, tool.ErrorRejected},
	} {
		r := &tool.Runner{Journal: tc.journal, Approver: answer(tool.Answer{Verdict: tool.Rejected})}
		box := mustBox(t, echo("a", tool.NeedsApproval()))
		b, err := r.Start("r").Do(t.Context(), box, tool.Turn{MayHaveRun: tc.again, Calls: []*dragoman.ToolCall{call("1", "a", "{}")}})
		if err != nil || b.Records[0].ErrorKind != tc.kind {
			t.Errorf("%s: %v, %q: %s", name, err, b.Records[0].ErrorKind, b.Results[0].Text())
		}
	}
}

// A journal without Recall works for turns that may have run before.
func TestL14_JournalWithoutRecallBeginsTheCallsOfATurn(t *testing.T) {
	for _, again := range []bool{false, true} {
		b, err := (&tool.Runner{Journal: &onceJournal{}}).Start("r").Do(t.Context(), mustBox(t, echo("a")), tool.Turn{MayHaveRun: again, Calls: []*dragoman.ToolCall{call("1", "a", `{"text":"x"}`)}})
		if err != nil || !b.Records[0].Executed {
			t.Errorf("again %v: %v %+v", again, err, b.Records)
		}
	}
}

// recallingJournal has the method Recall and may be full.
type recallingJournal struct {
	onceJournal
	full bool
}

func (j *recallingJournal) Begin(ctx context.Context, in tool.Intent) (tool.Prior, error) {
	if j.full {
		return tool.Prior{}, errors.New("disk full")
	}
	return j.onceJournal.Begin(ctx, in)
}

func (j *recallingJournal) Recall(context.Context, tool.CallRef) (tool.Prior, error) {
	return j.prior, nil
}

type onceJournal struct{ prior tool.Prior }

func (j *onceJournal) Begin(_ context.Context, in tool.Intent) (tool.Prior, error) {
	before := j.prior
	j.prior.Attempts++
	j.prior.Arguments = in.Arguments
	return before, nil
}

func (j *onceJournal) End(_ context.Context, _ tool.Intent, res *dragoman.ToolResult) error {
	if res == nil {
		return errors.New("no result")
	}
	j.prior.Result = res
	return nil
}

// A turn that is passed again must be the same, except that a human may have changed the
// arguments of an approved call.
func TestL14_TurnWithOtherArgumentsIsRefused(t *testing.T) {
	before := tool.Input{Arguments: json.RawMessage(`{"text":"before"}`)}.Hash()
	for name, tc := range map[string]struct {
		prior    tool.Prior
		fails    error
		approves bool
		newTurn  bool
		conflict bool
	}{
		"begun with other arguments":               {prior: tool.Prior{Attempts: 1, Arguments: before}, conflict: true},
		"not begun":                                {},
		"a turn that did not run before":           {prior: tool.Prior{Attempts: 1, Arguments: before}, newTurn: true},
		"a journal that cannot be read":            {prior: tool.Prior{Attempts: 1, Arguments: before}, fails: errors.New("disk")},
		"approved, and begun with other arguments": {prior: tool.Prior{Attempts: 1, Arguments: before}, approves: true},
	} {
		t.Run(name, func(t *testing.T) {
			j := &conflictingJournal{prior: tc.prior, fails: tc.fails}
			r := &tool.Runner{Journal: j}
			var opts []tool.Option
			if tc.approves {
				opts = append(opts, tool.NeedsApproval())
				r.Approver = approverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
					return tool.Answer{Verdict: tool.Approved}, nil
				})
			}
			box := mustBox(t, echo("a", opts...))
			_, err := r.Start("r").Do(t.Context(), box, tool.Turn{MayHaveRun: !tc.newTurn, Calls: []*dragoman.ToolCall{call("1", "a", `{"text":"now"}`)}})
			if errors.Is(err, tool.ErrConflict) != tc.conflict || (j.begun == 0) != tc.conflict {
				t.Errorf("%v, begun %d times", err, j.begun)
			}
		})
	}
}

// conflictingJournal returns the same prior attempts for every call that it is asked about.
type conflictingJournal struct {
	prior tool.Prior
	fails error
	begun int
}

func (j *conflictingJournal) Recall(context.Context, tool.CallRef) (tool.Prior, error) {
	return j.prior, j.fails
}

func (j *conflictingJournal) Begin(context.Context, tool.Intent) (tool.Prior, error) {
	j.begun++
	return tool.Prior{}, nil
}

func (j *conflictingJournal) End(context.Context, tool.Intent, *dragoman.ToolResult) error {
	return nil
}

func TestT14_PolicyErrorsAreRedactedInEvents(t *testing.T) {
	const key = "ghp_0123456789012345678901234567890123"
	for text, redacted := range map[string]bool{"the server refused " + key: true, "the server is down": false} {
		broken := errors.New(text)
		var failed error
		r := &tool.Runner{
			Policy: policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) { return tool.Decision{}, broken }),
			Observe: func(ev tool.Event) {
				if d, ok := ev.(tool.PolicyDecided); ok {
					failed = d.Failed
				}
			},
		}
		do(t, r, mustBox(t, echo("a")), call("1", "a", "{}"))
		if failed == nil {
			t.Fatal("the event has no error")
		}
		if got := failed.Error(); strings.Contains(got, key) || !redacted && !strings.Contains(got, text) {
			t.Errorf("the event has the error %q", got)
		}
	}
}
