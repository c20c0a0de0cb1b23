package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// askingPolicy is a policy that makes every call wait for a human.
func askingPolicy(t *testing.T) *Policy {
	return mustNew(t, Config{Default: defaultAsk})
}

func approved() tool.Answer { return tool.Answer{Verdict: tool.Approved} }

func binding() tool.Binding {
	return tool.Binding{
		Run: "run", Turn: 1, CallID: "c", Key: toolopt.Bare("delete"), Tool: dragoman.Fingerprint{1},
		Arguments: tool.Hash{2}, Policy: "p",
	}
}

// bindings returns variants of b that differ in one field.
func bindings(b tool.Binding) map[string]tool.Binding {
	out := map[string]tool.Binding{}
	for name, change := range map[string]func(*tool.Binding){
		"run": func(b *tool.Binding) { b.Run = "run2" }, "turn": func(b *tool.Binding) { b.Turn = 2 },
		"call": func(b *tool.Binding) { b.CallID = "d" }, "tool": func(b *tool.Binding) { b.Key = toolopt.Namespaced("fs", "delete") },
		"definition": func(b *tool.Binding) { b.Tool[0] = 9 }, "arguments": func(b *tool.Binding) { b.Arguments[0] = 9 },
		"policy": func(b *tool.Binding) { b.Policy = "q" },
	} {
		other := b
		change(&other)
		out[name] = other
	}
	return out
}

func lookup(l tool.Approver, b tool.Binding) tool.Verdict {
	a, err := l.Approve(context.Background(), &tool.ApprovalRequest{Binding: b})
	if err != nil {
		return "error"
	}
	return a.Verdict
}

func TestA1_InvalidArgumentsAreNeverAskedAbout(t *testing.T) {
	asked := 0
	count := ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
		asked++
		return approved(), nil
	})
	for name, w := range map[string]*fixture{
		"policy": newFixture(t, askingPolicy(t)),
		"flag":   newFixture(t, nil, tool.NeedsApproval()),
		"function": newFixture(t, nil, toolopt.NeedsApprovalFor(func(_ context.Context, in tool.Input) (bool, error) {
			return strings.Contains(string(in.Arguments), "secret"), nil
		})),
		"failing function": newFixture(t, nil, toolopt.NeedsApprovalFor(func(context.Context, tool.Input) (bool, error) { panic("no") })),
	} {
		asked = 0
		w.runner.Approver = count
		if r := w.do(`{"path":7}`); asked != 0 || r.ErrorKind != tool.ErrorArguments {
			t.Errorf("%s: invalid arguments got to a human: %+v", name, r)
		}
		if w.do(`{"path":"secret"}`); asked != 1 || w.ran != 1 {
			t.Errorf("%s: asked %d times, ran %d times", name, asked, w.ran)
		}
	}
}

func TestA2_PendingCallsAreListedAndOthersRun(t *testing.T) {
	ran := map[string]bool{}
	one := func(name string, opts ...tool.Option) tool.Tool {
		return tool.New(name, "Does something.", func(context.Context, struct{}) (string, error) { ran[name] = true; return "ok", nil }, opts...)
	}
	box, err := tool.NewBox(one("a", tool.Destructive()), one("b", tool.ReadOnly()), one("c"))
	if err != nil {
		t.Fatal(err)
	}
	l := &Ledger{}
	runner := &tool.Runner{Policy: mustNew(t, Config{Default: defaultAskDestructive}), Approver: l, Parallel: 1}
	turn := tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "1", Name: "a"}, {ID: "2", Name: "b"}, {ID: "3", Name: "c"}}}
	batch, err := runner.Start("r").Do(context.Background(), box, turn)
	if err != nil || len(batch.Pending) != 2 || len(batch.Settled()) != 1 || !ran["b"] {
		t.Fatalf("%+v, %v", batch, err)
	}
	// In another process, with the stored state, one of the two calls is decided (A3).
	stored, err := json.Marshal(batch.Pending)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stored, &turn.Resume); err != nil {
		t.Fatal(err)
	}
	if err := l.Decide(turn.Resume[1].Binding, approved()); err != nil {
		t.Fatal(err)
	}
	turn.Calls = []*dragoman.ToolCall{turn.Calls[0], turn.Calls[2]}
	batch, err = runner.Start("r").Do(context.Background(), box, turn)
	if err != nil || !ran["c"] || ran["a"] || len(batch.Pending) != 1 || batch.Pending[0].Binding.CallID != "1" {
		t.Errorf("ran %v; %+v, %v", ran, batch, err)
	}
}

func TestA3_KindsOfDecision(t *testing.T) {
	setup := func() (*fixture, *Ledger) {
		w, l := newFixture(t, askingPolicy(t)), &Ledger{}
		w.runner.Approver = l
		if w.do(`{"path":"a"}`); len(w.batch.Pending) != 1 {
			t.Fatal("it does not wait")
		}
		return w, l
	}
	pending := func(w *fixture) tool.Binding { return w.batch.Pending[0].Binding }

	w, l := setup()
	l.Decide(pending(w), approved())
	if r := w.again(`{"path":"a"}`); !r.OK || w.ran != 1 {
		t.Errorf("approved: %+v", r)
	}

	w, l = setup()
	l.Decide(pending(w), tool.Answer{Verdict: tool.Rejected, Message: "not on Fridays"})
	if r := w.again(`{"path":"a"}`); r.ErrorKind != tool.ErrorRejected || w.ran != 0 || !strings.Contains(w.batch.Results[0].Text(), "not on Fridays") {
		t.Errorf("rejected: %+v", r)
	}

	w, l = setup()
	l.Decide(pending(w), tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(`{"path":"b"}`)}})
	if r := w.again(`{"path":"a"}`); !r.OK || fmt.Sprint(w.with) != "[bfalse]" {
		t.Errorf("edited: %+v, ran with %v", r, w.with)
	}

	w, l = setup()
	l.Decide(pending(w), tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(`{"path":7}`)}})
	if r := w.again(`{"path":"a"}`); r.OK || w.ran != 0 {
		t.Errorf("edited to what does not validate: %+v", r)
	}

	w, l = setup()
	l.Always(pending(w))
	w.again(`{"path":"a"}`)
	if w.do(`{"path":"b"}`); w.ran != 2 {
		t.Errorf("always: ran %d times", w.ran)
	}

	w, l = setup()
	l.Never(pending(w), "stop")
	w.again(`{"path":"a"}`)
	if r := w.do(`{"path":"b"}`); w.ran != 0 || r.ErrorKind != tool.ErrorRejected {
		t.Errorf("never: ran %d times", w.ran)
	}

	// An undecided call is asked about again, as is a call whose decision was removed.
	w, l = setup()
	l.Decide(pending(w), approved())
	l.Decide(pending(w), tool.Answer{})
	if w.again(`{"path":"a"}`); w.ran != 0 || len(w.batch.Pending) != 1 {
		t.Errorf("undecided: ran %d times", w.ran)
	}
}

// If some calls of a turn are decided, the others stay pending and interrupt again until all
// are decided.
func TestA3_UndecidedCallsInterruptAgain(t *testing.T) {
	w, l := newFixture(t, askingPolicy(t)), &Ledger{}
	w.runner.Approver = l
	turn := tool.Turn{Number: 1}
	for i := range 4 {
		turn.Calls = append(turn.Calls, &dragoman.ToolCall{ID: fmt.Sprint(i), Name: "delete", Arguments: fmt.Sprintf(`{"path":"p%d"}`, i)})
	}
	decisions := []tool.Answer{
		{},
		{Verdict: tool.Approved},
		{Verdict: tool.Rejected, Message: "keep it"},
		{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(`{"path":"edited"}`)}},
	}
	for round, want := range []struct {
		pending int
		ran     string
	}{{4, "[]"}, {3, "[p1false]"}, {2, "[p1false]"}, {1, "[p1false editedfalse]"}} {
		for _, p := range turn.Resume {
			if p.Binding.CallID != fmt.Sprint(round) {
				continue
			}
			if err := l.Decide(p.Binding, decisions[round]); err != nil {
				t.Fatal(err)
			}
		}
		batch, err := w.run.Do(context.Background(), w.box, turn)
		if err != nil || len(batch.Pending) != want.pending || fmt.Sprint(w.with) != want.ran {
			t.Fatalf("round %d: %d are pending, ran with %v, %v; want %+v", round, len(batch.Pending), w.with, err, want)
		}
		turn.Resume = batch.Pending
	}
	if turn.Resume[0].Binding.CallID != "0" {
		t.Errorf("%+v waits", turn.Resume)
	}
}

func TestA3_ContradictoryAnswerIsRefused(t *testing.T) {
	for _, a := range []tool.Answer{
		{Verdict: "perhaps"},
		{Verdict: tool.Rejected, Edited: &tool.Input{}},
		{Verdict: tool.Undecided, Value: json.RawMessage("1")},
		{Verdict: tool.Undecided, Sticky: true},
		{Verdict: tool.Approved, Value: json.RawMessage("{")},
		{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage("{")}},
	} {
		if err := new(Ledger).Decide(binding(), a); !errors.Is(err, ErrDecision) {
			t.Errorf("%+v: %v", a, err)
		}
	}
}

func TestQuirkI9_DecisionCoversOnlyItsBinding(t *testing.T) {
	l := &Ledger{}
	l.Decide(binding(), approved())
	if lookup(l, binding()) != tool.Approved {
		t.Error("the call itself is not covered")
	}
	for field, other := range bindings(binding()) {
		if v := lookup(l, other); v != tool.Undecided {
			t.Errorf("another %s is %s", field, v)
		}
	}
}

func TestA4_ChangedArgumentsNeedNewApproval(t *testing.T) {
	w, l := newFixture(t, askingPolicy(t)), &Ledger{}
	w.runner.Approver = l
	w.do(`{"path":"a"}`)
	p := w.batch.Pending[0]
	l.Decide(p.Binding, approved())

	// The stored arguments are replaced.
	forged := p
	forged.Input = tool.Input{Arguments: json.RawMessage(`{"path":"/etc"}`)}
	w.batch.Pending = []tool.Pending{forged}
	if r := w.again(`{"path":"a"}`); w.ran != 0 || r.OK {
		t.Errorf("exchanged arguments ran: %+v", r)
	}
	// With the binding replaced too, it is another call, which was never approved.
	w.run = w.runner.Start("run")
	forged.Binding.Arguments = forged.Input.Hash()
	w.batch = &tool.Batch{Pending: []tool.Pending{forged}}
	if w.again(`{"path":"a"}`); w.ran != 0 || len(w.batch.Pending) != 1 {
		t.Errorf("ran %d times", w.ran)
	}
	// Middleware that changes the approved arguments.
	w = newFixture(t, askingPolicy(t), toolopt.Use(func(next tool.Handler) tool.Handler {
		return func(ctx context.Context, _ tool.Input) (tool.Output, error) {
			return next(ctx, tool.Input{Arguments: json.RawMessage(`{"path":"/etc"}`)})
		}
	}))
	w.runner.Approver = ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) { return approved(), nil })
	if r := w.do(`{"path":"a"}`); w.ran != 0 || r.ErrorKind != tool.ErrorMismatch {
		t.Errorf("middleware changed what was approved: ran %d times, %+v", w.ran, r)
	}
}

func TestA4_ReplacedToolNeedsNewApproval(t *testing.T) {
	w, l := newFixture(t, askingPolicy(t)), &Ledger{}
	w.runner.Approver = l
	w.do(`{"path":"a"}`)
	l.Decide(w.batch.Pending[0].Binding, approved())
	l.Always(w.batch.Pending[0].Binding)
	w.box = w.boxOf("Deletes everything.") // the same name and schema
	if w.again(`{"path":"a"}`); w.ran != 0 || len(w.batch.Pending) != 1 {
		t.Errorf("the other tool ran %d times", w.ran)
	}
}

func TestA4_NewPolicyNeedsNewApproval(t *testing.T) {
	w, l := newFixture(t, askingPolicy(t)), &Ledger{}
	w.runner.Approver = l
	w.do(`{"path":"a"}`)
	l.Decide(w.batch.Pending[0].Binding, approved())
	l.Always(w.batch.Pending[0].Binding)
	w.runner.Policy = mustNew(t, Config{Rules: []Rule{{ID: "new", Effect: tool.Ask}}})
	if w.again(`{"path":"a"}`); w.ran != 0 || len(w.batch.Pending) != 1 {
		t.Errorf("ran %d times", w.ran)
	}
}

func TestA5_CallDecisionOverridesStickyDecision(t *testing.T) {
	l, b := &Ledger{}, binding()
	l.Always(b)
	l.Decide(b, tool.Answer{Verdict: tool.Rejected})
	if lookup(l, b) != tool.Rejected {
		t.Error("the sticky decision beats the one on this call")
	}
	l.Never(b, "")
	l.Decide(b, tool.Answer{Verdict: tool.Rejected})
	l.Decide(b, approved())
	if lookup(l, b) != tool.Approved {
		t.Error("the latest does not win")
	}
}

func TestA5_StickyDecisionCoversOneToolAndRun(t *testing.T) {
	l, b := &Ledger{}, binding()
	l.Always(b)
	others := bindings(b)
	for _, covered := range []string{"turn", "call", "arguments"} {
		if v := lookup(l, others[covered]); v != tool.Approved {
			t.Errorf("another %s is %q", covered, v)
		}
		delete(others, covered)
	}
	deferred := b
	deferred.Key = toolopt.Deferred("delete")
	others["deferred sibling"] = deferred
	nested := b
	nested.Run = b.Run + "/nested"
	others["nested run"] = nested
	for field, other := range others {
		if v := lookup(l, other); v != tool.Undecided {
			t.Errorf("another %s is %q", field, v)
		}
	}
	// A call that wants a value can be rejected for the rest of the run, but not approved.
	want := &tool.ApprovalRequest{Binding: b, Wanted: &tool.InputRequest{Argument: "x"}}
	if a, _ := l.Approve(context.Background(), want); a.Verdict != tool.Undecided {
		t.Errorf("approved without a value: %+v", a)
	}
	l.Never(b, "no")
	if a, _ := l.Approve(context.Background(), want); a.Verdict != tool.Rejected {
		t.Errorf("not rejected: %+v", a)
	}
	l.Forget(b.Run)
	if lookup(l, b) != tool.Undecided {
		t.Error("a forgotten run is remembered")
	}
}

func TestA3_LedgerIsVersionedJSON(t *testing.T) {
	l := &Ledger{}
	l.Decide(binding(), tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(`{"a":1}`)}})
	l.Never(binding(), "no")
	stored, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"version":1,"calls":[{"binding":{"run":"run","turn":1,"call_id":"c","key":"bare:delete","tool":"01000000000000000000000000000000",` +
		`"arguments":"0200000000000000000000000000000000000000000000000000000000000000","policy":"p"},` +
		`"answer":{"verdict":"approved","edited":{"arguments":"{\"a\":1}"}}}],` +
		`"sticky":[{"run":"run","key":"delete","tool":"01000000000000000000000000000000","policy":"p","verdict":"rejected","message":"no"}]}`
	if string(stored) != want {
		t.Errorf("%s\nwant\n%s", stored, want)
	}
	var back Ledger
	if err := json.Unmarshal(stored, &back); err != nil || !reflect.DeepEqual(back.calls, l.calls) || !reflect.DeepEqual(back.sticky, l.sticky) {
		t.Errorf("%+v, %v", &back, err)
	}
	if err := json.Unmarshal([]byte(`{"version":2}`), &back); !errors.Is(err, errNewerVersion) {
		t.Errorf("a newer one: %v", err)
	}
	for _, bad := range []string{`{}`, `[]`, `{"version":1,"new":1}`, `{"version":1,"calls":[{"answer":{"verdict":""}}]}`, `{"version":1,"sticky":[{"verdict":"yes"}]}`} {
		if json.Unmarshal([]byte(bad), &back) == nil {
			t.Errorf("%s was taken", bad)
		}
	}
	if lookup(&back, binding()) != tool.Approved {
		t.Error("a failed read changed the ledger")
	}
}

// Approvers that answer at once and approvers that answer later share one interface.
func TestA7_ImmediateAndDeferredApproversShareOneInterface(t *testing.T) {
	signer, err := NewSigner(key("k1"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, byToken := &Ledger{}, &Ledger{}
	yes := ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) { return approved(), nil })
	for name, approver := range map[string]tool.Approver{
		"a prompt":   NewPrompt(strings.NewReader("y\n"), io.Discard),
		"a callback": yes,
		"waits for a decision": elsewhere.Wait(Waiting{Timeout: time.Minute, Announce: func(_ context.Context, req *tool.ApprovalRequest) error {
			go elsewhere.Decide(req.Binding, approved())
			return nil
		}}),
		"waiting, until a fallback decides": new(Ledger).Wait(Waiting{Timeout: time.Nanosecond, Fallback: yes}),
		"a token": First(byToken, ApproverFunc(func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
			token, err := signer.Sign(Grant{Binding: req.Binding, Answer: approved()})
			if err == nil {
				err = signer.RedeemInto(ctx, byToken, token, tool.Pending{Binding: req.Binding}, nil)
			}
			return tool.Answer{}, err
		}), byToken),
		"several in a row": First(&Ledger{}, NewPrompt(strings.NewReader(""), io.Discard), yes),
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, askingPolicy(t))
			w.runner.Approver = approver
			if r := w.do(`{"path":"a"}`); !r.OK || w.ran != 1 {
				t.Errorf("ran %d times, %+v", w.ran, r)
			}
		})
	}
}

func TestA7_FirstTriesApproversInOrder(t *testing.T) {
	l := &Ledger{}
	asked := 0
	human := ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
		asked++
		return approved(), nil
	})
	row := First(nil, l, human)
	if lookup(row, binding()) != tool.Approved || asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	l.Decide(binding(), tool.Answer{Verdict: tool.Rejected})
	if lookup(row, binding()) != tool.Rejected || asked != 1 {
		t.Errorf("asked %d times about what was decided", asked)
	}
	failing := ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) { return tool.Answer{}, io.EOF })
	if lookup(First(failing, human), binding()) != "error" {
		t.Error("a failing approver was skipped")
	}
	if lookup(First(), binding()) != tool.Undecided {
		t.Error("no decision was recorded")
	}
}

func TestA7_WaitEndsAtTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &Ledger{}
		announced := make(chan tool.Binding, 1)
		wait := l.Wait(Waiting{
			Timeout:  time.Minute,
			Announce: func(_ context.Context, req *tool.ApprovalRequest) error { announced <- req.Binding; return nil },
			Fallback: ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
				return tool.Answer{Verdict: tool.Rejected, Message: "no answer in time"}, nil
			}),
		})
		go func() {
			b := <-announced
			time.Sleep(30 * time.Second)
			other := b
			other.CallID = "other"
			l.Decide(other, approved()) // an announcement of another call
			time.Sleep(20 * time.Second)
			l.Decide(b, approved())
		}()
		begun := time.Now()
		if v := lookup(wait, binding()); v != tool.Approved || time.Since(begun) != 50*time.Second {
			t.Errorf("%q after %v", v, time.Since(begun))
		}
		if v := lookup(wait, binding()); v != tool.Approved { // recorded by now
			t.Errorf("%q", v)
		}
		begun = time.Now()
		if v := lookup(wait, bindings(binding())["run"]); v != tool.Rejected || time.Since(begun) != time.Minute {
			t.Errorf("%q after %v", v, time.Since(begun))
		}
		<-announced
		if v := lookup(l.Wait(Waiting{Timeout: time.Second}), bindings(binding())["run"]); v != tool.Undecided {
			t.Errorf("without a fallback: %q", v)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if _, err := l.Wait(Waiting{}).Approve(ctx, &tool.ApprovalRequest{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestA7_PromptReadsAnswers(t *testing.T) {
	req := func() *tool.ApprovalRequest {
		return &tool.ApprovalRequest{Binding: binding(), Input: tool.Input{Arguments: json.RawMessage(`{"path":"a"}`)}}
	}
	for _, tc := range []struct {
		typed string
		want  tool.Answer
	}{
		{"y\n", approved()},
		{"YES\n", approved()},
		{"n\n", tool.Answer{Verdict: tool.Rejected}},
		{"no because it is late\n", tool.Answer{Verdict: tool.Rejected, Message: "it is late"}},
		{"\nwhat?\ny\n", approved()},
		{"yes please\nyep\ny n\n", tool.Answer{}}, // three tries
		{"e {\"path\":\"b\"}\n", tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(`{"path":"b"}`)}}},
		{"e [1]\nn\n", tool.Answer{Verdict: tool.Rejected}},
		{"y", approved()}, // the end of the input also ends the line
		{"", tool.Answer{}},
		{"always\nn\n", tool.Answer{Verdict: tool.Rejected}}, // not offered without a ledger
	} {
		var out bytes.Buffer
		got, err := NewPrompt(strings.NewReader(tc.typed), &out).Approve(context.Background(), req())
		if err != nil || !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%q: %+v, %v; want %+v\n%s", tc.typed, got, err, tc.want, &out)
		}
	}
	p := NewPrompt(strings.NewReader("always\nnever again\n"), io.Discard)
	p.Ledger = &Ledger{}
	if lookup(p, binding()) != tool.Approved || lookup(p.Ledger, bindings(binding())["call"]) != tool.Approved {
		t.Error("always is not remembered")
	}
	if a, _ := p.Approve(context.Background(), req()); a.Verdict != tool.Rejected || lookup(p.Ledger, bindings(binding())["call"]) != tool.Rejected {
		t.Error("never is not remembered")
	}
	for range 2 { // the input has ended and stays ended
		if lookup(p, binding()) != tool.Undecided {
			t.Error("there is an answer without input")
		}
	}
}

func TestP4_PromptReadsValuesBySchema(t *testing.T) {
	for typed, want := range map[string]string{"= 12\n": `"12"`, "=T-1 x\n": `"T-1 x"`, "y\n= a\n": `"a"`} {
		req := &tool.ApprovalRequest{
			Binding: binding(), Wanted: &tool.InputRequest{Argument: "ticket"},
			Spec: &dragoman.ToolSpec{Parameters: json.RawMessage(`{"properties":{"ticket":{"type":"string"}}}`)},
		}
		a, err := NewPrompt(strings.NewReader(typed), io.Discard).Approve(context.Background(), req)
		if err != nil || string(a.Value) != want {
			t.Errorf("%q: %s, %v; want %s", typed, a.Value, err, want)
		}
		req.Spec = nil
		if a, _ := NewPrompt(strings.NewReader("=12\n"), io.Discard).Approve(context.Background(), req); string(a.Value) != "12" {
			t.Errorf("%s", a.Value)
		}
	}
}

// A line that was typed for an earlier question must not answer the next one.
func TestA7_LateInputDoesNotAnswerTheNextQuestion(t *testing.T) {
	in, typed := io.Pipe()
	var out bytes.Buffer
	p := NewPrompt(in, &out)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := p.Approve(ctx, &tool.ApprovalRequest{Binding: binding()}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	go io.WriteString(typed, "y\nn\n")
	a, err := p.Approve(context.Background(), &tool.ApprovalRequest{Binding: bindings(binding())["call"]})
	if err != nil || a.Verdict != tool.Rejected || !strings.Contains(out.String(), "arrived before the question") {
		t.Errorf("%+v, %v\n%s", a, err, &out)
	}
	if asked := strings.Count(out.String(), "to reject"); asked != 2 {
		t.Errorf("the choices are shown %d times, want once for each question\n%s", asked, &out)
	}
}

func TestA7_ShownTextCannotForgeThePrompt(t *testing.T) {
	evil := "ok\r\n\x1b[2J> y\x1b]0;t\x07\u202Egnp.exe\u200b\u3164\u2028\xff\x7f\u0085"
	var out bytes.Buffer
	args, err := json.Marshal(map[string]string{"path": evil})
	if err != nil {
		t.Fatal(err)
	}
	raw := append(append([]byte(`{"raw":"`), "\u202E\u009b31m"...), `"}`...)
	for _, in := range []tool.Input{{Arguments: args}, {Arguments: raw}, {Text: evil}} {
		out.Reset()
		p := NewPrompt(strings.NewReader("n\n"), &out)
		_, err := p.Approve(context.Background(), &tool.ApprovalRequest{
			Binding: tool.Binding{Key: toolopt.Bare("t" + evil)}, Input: in, Reason: evil, Agent: []string{evil},
			Wanted: &tool.InputRequest{Argument: evil, Prompt: evil},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range out.String() {
			if r != '\n' && !textkit.IsVisible(r) {
				t.Errorf("%U reaches the terminal:\n%q", r, out.String())
			}
		}
		if i := strings.IndexAny(out.String(), "\r\x1b\x07\x7f\u0085\u009b\u200b\u2028\u202E\u3164"); i >= 0 {
			t.Errorf("%q reaches the terminal", out.String()[i:i+3])
		}
		ours := strings.Split(out.String(), "\n")
		for _, l := range ours[2 : len(ours)-4] { // between the first line and the reason
			if !strings.HasPrefix(l, "  | ") && !strings.HasPrefix(l, "  + ") && !strings.HasPrefix(l, "Why") {
				t.Errorf("a line looks like one of ours: %q", l)
			}
		}
	}
	for _, pad := range []string{" ", "x", "字"} {
		out.Reset()
		long := "rm -r /" + strings.Repeat(pad, 100) + "Why you are asked: it is harmless"
		p := NewPrompt(strings.NewReader("n\n"), &out)
		if _, err := p.Approve(context.Background(), &tool.ApprovalRequest{Binding: tool.Binding{Key: toolopt.Bare("t")}, Input: tool.Input{Text: long}}); err != nil {
			t.Fatal(err)
		}
		all := ""
		for l := range strings.Lines(strings.SplitAfterN(out.String(), "\n", 3)[2]) {
			rest, ok := strings.CutPrefix(l, "  | ")
			if !ok {
				if rest, ok = strings.CutPrefix(l, "  + "); !ok {
					break
				}
			}
			if all += strings.TrimSuffix(rest, "\n"); utf8.RuneCountInString(l)+strings.Count(l, "字") > 80 {
				t.Errorf("a terminal wraps %q", l)
			}
		}
		if all != long {
			t.Errorf("it shows %q", all)
		}
	}
	if textkit.Visible("plain text, ü, 日本") != "plain text, ü, 日本" {
		t.Error("ordinary text is escaped")
	}
}

// Arguments that became invalid through a policy or a hook are not the model's to correct: the
// result says who changed them.
func TestP4_InvalidChangesNameWhoMadeThem(t *testing.T) {
	type count struct {
		N int `json:"n" jsonschema:"maximum=10"`
	}
	run := func(rule Rule, hooks tool.Hooks) string {
		t.Helper()
		p, err := New(Config{Rules: []Rule{rule}})
		if err != nil {
			t.Fatal(err)
		}
		box, err := tool.Config{Hooks: hooks}.Box(tool.New("f", "Counts.", func(context.Context, count) (string, error) { return "ran", nil }))
		if err != nil {
			t.Fatal(err)
		}
		b, err := (&tool.Runner{Policy: p}).Start("r").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "1", Name: "f", Arguments: `{"n":1}`}}})
		if err != nil {
			t.Fatal(err)
		}
		return b.Results[0].Text()
	}
	tooBig := func(_ context.Context, in tool.Input) (tool.Input, error) {
		in.Arguments = json.RawMessage(`{"n":30}`)
		return in, nil
	}
	for who, got := range map[string]string{
		"a policy": run(Rule{ID: "a", Effect: tool.Allow, Edits: []tool.Edit{{Argument: "n", Value: json.RawMessage("30")}}}, tool.Hooks{}),
		"a hook":   run(Rule{ID: "a", Effect: tool.Allow}, tool.Hooks{Pre: []tool.PreHook{tooBig}}),
	} {
		if !strings.Contains(got, "/n: must be at most 10, is 30") || !strings.HasSuffix(got, "Your arguments were valid: "+who+" changed them.") || strings.Contains(got, "call the tool again") {
			t.Errorf("%s: %s", who, got)
		}
	}
}

// A stored answer that cannot be used is not given again: the next approver is asked, or the call
// waits. A sticky approval does not run the input that the human wanted to change.
func TestA3_LedgerDoesNotRepeatAnAnswerThatCannotBeUsed(t *testing.T) {
	bad := tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(`{"path":7}`)}}
	for _, sticky := range []bool{false, true} {
		w := newFixture(t, nil, tool.NeedsApproval())
		ledger := &Ledger{}
		w.runner.Approver = ledger
		w.do(`{"path":"a"}`)
		b := w.batch.Pending[0].Binding
		if err := ledger.Decide(b, bad); err != nil {
			t.Fatal(err)
		}
		if sticky {
			ledger.Always(b)
		}
		if w.again(`{"path":"a"}`); w.ran != 0 || len(w.batch.Pending) != 1 || !strings.Contains(w.batch.Pending[0].Problem, "/path: must be string, is number") {
			t.Fatalf("sticky %v: %+v", sticky, w.batch)
		}
		// A human at a terminal reads the problem.
		var shown bytes.Buffer
		w.runner.Approver = First(ledger, NewPrompt(strings.NewReader("e {\"path\":\"b\"}\n"), &shown))
		if w.again(`{"path":"a"}`); fmt.Sprint(w.with) != "[bfalse]" {
			t.Errorf("sticky %v: ran %v, %+v", sticky, w.with, w.batch)
		}
		if !strings.Contains(shown.String(), "The last answer could not be used:\n  | /path: must be string, is number\n") {
			t.Errorf("the prompt shows\n%s", &shown)
		}
	}
	// A human elsewhere replaces the answer, and a waiting call continues.
	synctest.Test(t, func(t *testing.T) {
		w := newFixture(t, nil, tool.NeedsApproval())
		ledger := &Ledger{}
		var problems []string
		w.runner.Approver = ledger.Wait(Waiting{Announce: func(_ context.Context, req *tool.ApprovalRequest) error {
			problems = append(problems, req.Problem)
			answer := bad
			if req.Problem != "" {
				answer = tool.Answer{Verdict: tool.Approved}
			}
			go func() {
				time.Sleep(time.Second)
				if err := ledger.Decide(req.Binding, answer); err != nil {
					t.Error(err)
				}
			}()
			return nil
		}})
		if w.do(`{"path":"a"}`); fmt.Sprint(w.with) != "[afalse]" || len(problems) != 2 || problems[0] != "" || problems[1] == "" {
			t.Errorf("ran %v, asked with %q", w.with, problems)
		}
	})
}
