package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

func always(e tool.Effect) policyFunc {
	return func(context.Context, *tool.Question) (tool.Decision, error) {
		return tool.Decision{Effect: e, Rule: "r", Reason: "because"}, nil
	}
}

func answer(a tool.Answer) approverFunc {
	return func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) { return a, nil }
}

func TestP3_EveryDecisionIsAnEvent(t *testing.T) {
	ran := false
	box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) { ran = true; return "", nil }))
	for _, e := range []tool.Effect{tool.Allow, tool.Deny} {
		var events []tool.PolicyDecided
		r := &tool.Runner{Policy: always(e), Observe: func(ev tool.Event) {
			if d, ok := ev.(tool.PolicyDecided); ok {
				events = append(events, d)
			}
		}}
		ran = false
		res, rec := do(t, r, box, call("1", "a", ""))
		if len(events) != 1 || events[0].Decision.Effect != e || ran != (e == tool.Allow) || rec.Executed != ran {
			t.Errorf("%s: %v, ran %v", e, events, ran)
		}
		if e == tool.Deny && !strings.Contains(res.Text(), "because") {
			t.Errorf("the result lacks the reason: %s", res.Text())
		}
	}
}

func TestP5_FailingPolicyDenies(t *testing.T) {
	ran := false
	box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) { ran = true; return "", nil }))
	release := make(chan struct{})
	defer close(release)
	for name, p := range map[string]tool.Policy{
		"an error": policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
			return tool.Decision{Effect: tool.Allow}, errors.New("broken")
		}),
		"a panic": policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) { panic("no") }),
		"a hang": policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
			<-release
			return tool.Decision{Effect: tool.Allow}, nil
		}),
		"a hang of a policy that is not immediate": watchedPolicy{policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
			<-release
			return tool.Decision{Effect: tool.Allow}, nil
		})},
		"no decision":                 always(""),
		"an unknown decision":         always("maybe"),
		"input without a description": always(tool.AskInput),
		"a version that panics":       versionPanics{},
		"an edit of a value that is not an argument": policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
			return tool.Decision{Effect: tool.Allow, Edits: []tool.Edit{{Argument: "x", Value: json.RawMessage(`{`)}}}, nil
		}),
	} {
		_, rec := do(t, &tool.Runner{Policy: p, PolicyTimeout: time.Millisecond}, box, call("1", "a", ""))
		if rec.ErrorKind != tool.ErrorDenied || ran {
			t.Errorf("%s: %s, ran %v", name, rec.ErrorKind, ran)
		}
	}
}

// watchedPolicy reports that its decisions may take time.
type watchedPolicy struct{ policyFunc }

func (watchedPolicy) Immediate() bool { return false }

type versionPanics struct{}

func (versionPanics) Decide(context.Context, *tool.Question) (tool.Decision, error) {
	return tool.Decision{Effect: tool.Allow}, nil
}
func (versionPanics) Version() string { panic("no") }

func TestP3_PolicyEditsAreValidated(t *testing.T) {
	edit := func(v string) *tool.Runner {
		return &tool.Runner{Policy: policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
			return tool.Decision{Effect: tool.Allow, Edits: []tool.Edit{{"n", json.RawMessage(v)}, {"m", json.RawMessage(`"new"`)}}}, nil
		})}
	}
	box := mustBox(t, argumentsTool(`{"type":"object","properties":{"n":{"type":"integer"},"m":{"type":"string"},"z":{}}}`))
	res, rec := do(t, edit("5"), box, call("1", "f", `{"n":1,"z":0}`))
	if wantKind(t, res, rec, ""); res.Display != `{"n":5,"z":0,"m":"new"}` {
		t.Errorf("%s ran", res.Display)
	}
	res, rec = do(t, edit(`"x"`), box, call("1", "f", `{"n":1}`))
	wantKind(t, res, rec, tool.ErrorArguments)
}

func TestP4_RequestedValueIsSetAndValidated(t *testing.T) {
	policy := policyFunc(func(_ context.Context, q *tool.Question) (tool.Decision, error) {
		if strings.Contains(string(q.Input.Arguments), "pin") {
			return tool.Decision{Effect: tool.Allow}, nil
		}
		return tool.Decision{Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "pin", Prompt: "Your PIN"}}, nil
	})
	box := mustBox(t, argumentsTool(`{"type":"object","properties":{"pin":{"type":"string","pattern":"^[0-9]{4}$"}},"additionalProperties":false}`))
	for _, tc := range []struct {
		name string
		a    tool.Answer
		kind tool.ErrorKind
		ran  string
	}{
		{"a value", tool.Answer{Verdict: tool.Approved, Value: json.RawMessage(`"1234"`)}, "", `{"pin":"1234"}`},
		{"a refusal", tool.Answer{Verdict: tool.Rejected}, tool.ErrorRejected, ""},
		{"arguments instead of a value", tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(`{"pin":"5678"}`)}}, "", `{"pin":"5678"}`},
		{"arguments and a value", tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(`{"pin":"5678"}`)}, Value: json.RawMessage(`"1234"`)}, "", `{"pin":"1234"}`},
	} {
		res, rec := do(t, &tool.Runner{Policy: policy, Approver: answer(tc.a)}, box, call("1", "f", `{}`))
		if wantKind(t, res, rec, tc.kind); res.Display != tc.ran {
			t.Errorf("%s: %s", tc.name, res.Display)
		}
	}
}

// A human who gives an invalid value or edit reads why, and is asked again. The model learns nothing
// of it.
func TestA3_InvalidAnswersAreAskedForAgain(t *testing.T) {
	policy := policyFunc(func(_ context.Context, q *tool.Question) (tool.Decision, error) {
		if strings.Contains(string(q.Input.Arguments), "free") {
			return tool.Decision{Effect: tool.Ask}, nil
		}
		return tool.Decision{Effect: tool.AskInput, Input: &tool.InputRequest{Argument: "pin", Prompt: "Your PIN"}}, nil
	})
	box := mustBox(t, argumentsTool(`{"type":"object","properties":{"pin":{"type":"string","pattern":"^[0-9]{4}$"},"free":{"type":"boolean"}},"additionalProperties":false}`))
	value := func(v string) tool.Answer { return tool.Answer{Verdict: tool.Approved, Value: json.RawMessage(v)} }
	edit := func(args string) tool.Answer {
		return tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(args)}}
	}
	for _, tc := range []struct {
		name     string
		args     string
		answers  []tool.Answer // the last one repeats
		problems []string      // part of what the approver reads with each question
		ran      string        // empty if the call stays pending
	}{
		{"a value that does not fit", `{}`, []tool.Answer{value(`"x"`), value(`"1234"`)}, []string{"", "/pin: "}, `{"pin":"1234"}`},
		{"no value", `{}`, []tool.Answer{{Verdict: tool.Approved}, value(`"1234"`)}, []string{"", "a value for pin is missing"}, `{"pin":"1234"}`},
		{"a value that is not JSON", `{}`, []tool.Answer{value(`"`), value(`"1234"`)}, []string{"", "the value for pin cannot be set"}, `{"pin":"1234"}`},
		{"an edit that does not fit", `{"free":true}`, []tool.Answer{edit(`{"free":1}`), edit(`{"free":false}`)}, []string{"", "/free: must be boolean, is number"}, `{"free":false}`},
		{"an edit with a key twice", `{"free":true}`, []tool.Answer{edit(`{"free":true,"free":false}`), edit(`{}`)}, []string{"", "free"}, `{}`},
		{"an edit that is not an object", `{"free":true}`, []tool.Answer{edit(`[1]`), {Verdict: tool.Approved}}, []string{"", "must be object"}, `{"free":true}`},
		{"only invalid edits", `{"free":true}`, []tool.Answer{edit(`{"free":1}`)}, []string{"", "/free: ", "/free: "}, ""},
		{"a rejection after an invalid edit", `{"free":true}`, []tool.Answer{edit(`{"free":1}`), {Verdict: tool.Rejected, Message: "never mind"}}, []string{"", "/free: "}, "rejected"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var problems []string
			var events []tool.Event
			r := &tool.Runner{Policy: policy, Observe: func(ev tool.Event) { events = append(events, ev) }}
			r.Approver = approverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
				i := len(problems)
				problems = append(problems, req.Problem)
				if string(req.Input.Arguments) != tc.args {
					t.Errorf("question %d is about %s", i+1, req.Input.Arguments)
				}
				if i > 0 && (!req.Refused(tc.answers[i-1]) || req.Refused(tool.Answer{Verdict: tool.Rejected})) {
					t.Errorf("question %d does not know the answer that was refused", i+1)
				}
				if i+1 == len(tc.problems) && tc.ran == "" {
					return tc.answers[0], nil
				}
				if tc.ran == "" {
					tc.answers = append(tc.answers, tc.answers[0])
				}
				return tc.answers[i], nil
			})
			b, err := r.Start("run").Do(t.Context(), box, turn(1, call("1", "f", tc.args)))
			if err != nil || len(problems) != len(tc.problems) {
				t.Fatalf("%v, asked with %q", err, problems)
			}
			for i, want := range tc.problems {
				if !strings.Contains(problems[i], want) || (want == "") != (problems[i] == "") || strings.Contains(problems[i], "did not run") {
					t.Errorf("question %d has the problem %q, want %q", i+1, problems[i], want)
				}
			}
			rec := b.Records[0]
			switch tc.ran {
			case "":
				if len(b.Pending) != 1 || !strings.Contains(b.Pending[0].Problem, "/free: ") || string(b.Pending[0].Input.Arguments) != tc.args || rec.Verdict != tool.Undecided || len(rec.Steps) != 0 {
					t.Errorf("%+v, %+v", b.Pending, rec)
				}
				if asked, ok := events[len(events)-1].(tool.ApprovalRequested); !ok || asked.Pending.Problem != b.Pending[0].Problem {
					t.Errorf("%+v", events[len(events)-1])
				}
			case "rejected":
				wantKind(t, b.Results[0], rec, tool.ErrorRejected)
			default:
				if wantKind(t, b.Results[0], rec, ""); b.Results[0].Display != tc.ran {
					t.Errorf("%s ran", b.Results[0].Display)
				}
			}
		})
	}
}

func TestP4_ValueThatWasNotRequestedIsIgnored(t *testing.T) {
	r := &tool.Runner{Approver: answer(tool.Answer{Verdict: tool.Approved, Value: json.RawMessage(`"1234"`)})}
	res, rec := do(t, r, mustBox(t, argumentsTool(`{}`, tool.NeedsApproval())), call("1", "f", `{"n":1}`))
	if wantKind(t, res, rec, ""); res.Display != `{"n":1}` {
		t.Errorf("%s ran", res.Display)
	}
}

func TestA1_WhenApprovalIsNeeded(t *testing.T) { synctest.Test(t, testWhenApprovalIsNeeded) }

func testWhenApprovalIsNeeded(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	by := func(f func(context.Context, tool.Input) (bool, error)) tool.Option {
		return toolopt.NeedsApprovalFor(f)
	}
	remote := func(params string) tool.Tool {
		return tool.Remote(dragoman.ToolSpec{Name: "f", Parameters: json.RawMessage(params)}, func(context.Context, tool.Input) (tool.Output, error) {
			return tool.Output{}, nil
		})
	}
	for _, tc := range []struct {
		name   string
		tool   tool.Tool
		policy tool.Policy
		needed bool
	}{
		{"nothing asks", argumentsTool(`{}`), nil, false},
		{"the flag", argumentsTool(`{}`, tool.NeedsApproval()), nil, true},
		{"the function says no", argumentsTool(`{}`, by(func(context.Context, tool.Input) (bool, error) { return false, nil })), nil, false},
		{"the function says yes", argumentsTool(`{}`, by(func(_ context.Context, in tool.Input) (bool, error) { return string(in.Arguments) == "{}", nil })), nil, true},
		{"the function fails", argumentsTool(`{}`, by(func(context.Context, tool.Input) (bool, error) { return false, errors.New("no") })), nil, true},
		{"the function panics", argumentsTool(`{}`, by(func(context.Context, tool.Input) (bool, error) { panic("no") })), nil, true},
		{"the function hangs", argumentsTool(`{}`, by(func(context.Context, tool.Input) (bool, error) { <-release; return false, nil })), nil, true},
		{"the policy asks", argumentsTool(`{}`), always(tool.Ask), true},
		{"a rule allows, and settles the flag", argumentsTool(`{}`, tool.NeedsApproval()), always(tool.Allow), false},
		{"a rule allows, and settles the function", argumentsTool(`{}`, by(func(context.Context, tool.Input) (bool, error) { return true, nil })), always(tool.Allow), false},
		{"a default of allow does not waive the flag", argumentsTool(`{}`, tool.NeedsApproval()), policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
			return tool.Decision{Effect: tool.Allow}, nil
		}), true},
		{"the arguments cannot be validated", remote(""), nil, true},
		{"they cannot be validated, and a rule allows the call", remote(""), always(tool.Allow), false},
		{"they can be checked", remote(`{"type":"object"}`), nil, false},
		{"a setting from the future", argumentsTool(`{}`, tool.Set(func(s *tool.Settings) { s.Approval = "sometimes" })), nil, true},
	} {
		r := &tool.Runner{Policy: tc.policy}
		b, err := r.Start("r").Do(t.Context(), mustBox(t, tc.tool), tool.Turn{Calls: []*dragoman.ToolCall{call("1", "f", `{}`)}})
		if err != nil || (len(b.Pending) == 1) != tc.needed || (b.Results[0] == nil) != tc.needed {
			t.Errorf("%s: %v, %d pending", tc.name, err, len(b.Pending))
		}
	}
	// Invalid arguments never reach the approver.
	asked := false
	r := &tool.Runner{Approver: approverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
		asked = true
		return tool.Answer{Verdict: tool.Approved}, nil
	}), Policy: policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
		asked = true
		return tool.Decision{Effect: tool.Ask}, nil
	})}
	res, rec := do(t, r, mustBox(t, argumentsTool(`{"required":["n"]}`, toolopt.NeedsApprovalFor(func(context.Context, tool.Input) (bool, error) { asked = true; return true, nil }))), call("1", "f", `{}`))
	if wantKind(t, res, rec, tool.ErrorArguments); asked {
		t.Error("a human was asked about invalid arguments")
	}
}

func TestA2_PendingCallsAreReturnedTogetherAndOthersRun(t *testing.T) {
	box := mustBox(t, echo("a", tool.NeedsApproval()), echo("b"))
	run := (&tool.Runner{}).Start("r")
	calls := []*dragoman.ToolCall{call("1", "a", `{"text":"x"}`), call("2", "b", ""), call("3", "a", `{"text":"y"}`)}
	b, err := run.Do(t.Context(), box, tool.Turn{Number: 1, Calls: calls})
	if err != nil || len(b.Pending) != 2 || b.Pending[0].Binding.CallID != "1" || b.Pending[1].Binding.CallID != "3" || len(b.Settled()) != 1 || !b.Records[0].Pending {
		t.Fatalf("%v: %+v", err, b)
	}
	// Another process resumes from the stored calls.
	raw, err := json.Marshal(b.Pending)
	if err != nil {
		t.Fatal(err)
	}
	var stored []tool.Pending
	if err := json.Unmarshal(raw, &stored); err != nil {
		t.Fatal(err)
	}
	later := (&tool.Runner{Approver: approverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		if req.Binding == b.Pending[0].Binding {
			return tool.Answer{Verdict: tool.Approved}, nil
		}
		return tool.Answer{}, nil // still undecided
	})}).Start("r")
	b2, err := later.Do(t.Context(), box, tool.Turn{Number: 1, Calls: calls, Resume: stored, Results: b.Settled()})
	if err != nil || b2.Results[0] == nil || withoutFence(t, b2.Results[0].Text()) != "x" || b2.Results[2] != nil || len(b2.Pending) != 1 {
		t.Errorf("%v: %+v", err, b2)
	}
	if b2.Results[1] != b.Results[1] || !b2.Records[1].Replayed || b2.Records[1].Executed {
		t.Errorf("the call that had its result: %+v", b2.Records[1])
	}
	if _, err := later.Do(t.Context(), box, tool.Turn{Number: 2, Calls: calls[:1], Results: b.Settled()}); !errors.Is(err, tool.ErrConflict) {
		t.Errorf("a result of no call: %v", err)
	}
}

func TestA3_AHumanRejectsEditsAndApproves(t *testing.T) {
	denySix := policyFunc(func(_ context.Context, q *tool.Question) (tool.Decision, error) {
		if string(q.Input.Arguments) == `{"n":6}` {
			return tool.Decision{Effect: tool.Deny, Reason: "not six"}, nil
		}
		return tool.Decision{Effect: tool.Ask}, nil
	})
	edit := func(args string) tool.Answer {
		return tool.Answer{Verdict: tool.Approved, Edited: &tool.Input{Arguments: json.RawMessage(args)}}
	}
	for _, tc := range []struct {
		name string
		a    tool.Answer
		kind tool.ErrorKind
		ran  string
	}{
		{"approved", tool.Answer{Verdict: tool.Approved}, "", `{"n":1}`},
		{"rejected with a message", tool.Answer{Verdict: tool.Rejected, Message: "ask me tomorrow"}, tool.ErrorRejected, ""},
		{"edited", edit(`{"n":5}`), "", `{"n":5}`},
		{"edited to what is denied", edit(`{"n":6}`), tool.ErrorDenied, ""},
	} {
		hooked := 0
		box := mustBox(t, argumentsTool(`{"type":"object","properties":{"n":{"type":"integer"}}}`, toolopt.Pre(func(_ context.Context, in tool.Input) (tool.Input, error) {
			hooked++
			return in, nil
		})))
		res, rec := do(t, &tool.Runner{Policy: denySix, Approver: answer(tc.a)}, box, call("1", "f", `{"n":1}`))
		wantKind(t, res, rec, tc.kind)
		if res.Display != tc.ran || hooked != 1 || !strings.Contains(res.Text(), tc.a.Message) || rec.Verdict != tc.a.Verdict {
			t.Errorf("%s: %s ran, hooks %d times: %s", tc.name, res.Display, hooked, res.Text())
		}
	}
}

func TestA4_ApprovalCoversExactlyTheFinalInput(t *testing.T) {
	box := mustBox(t, argumentsTool(`{"type":"object"}`, tool.NeedsApproval()))
	var asked tool.Binding
	var input tool.Input
	r := &tool.Runner{Policy: always(tool.Ask), Approver: approverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		asked, input = req.Binding, req.Input
		return tool.Answer{}, nil
	})}
	run := r.Start("run7")
	b, err := run.Do(t.Context(), box, tool.Turn{Number: 3, Calls: []*dragoman.ToolCall{call("c", "f", `{"n":1}`)}})
	if err != nil {
		t.Fatal(err)
	}
	want := tool.Binding{
		Run: "run7", Turn: 3, CallID: "c", Key: toolopt.Bare("f"), Tool: box.List()[0].Fingerprint,
		Arguments: tool.Input{Arguments: json.RawMessage(`{"n":1}`)}.Hash(), Policy: "v1",
	}
	if asked != want || input.Hash() != want.Arguments || b.Pending[0].Binding != want {
		t.Errorf("%+v, want %+v", asked, want)
	}
	// Stored arguments that differ from the approved ones do not run.
	p := b.Pending[0]
	p.Input.Arguments = json.RawMessage(`{"n":2}`)
	yes := (&tool.Runner{Policy: always(tool.Ask), Approver: answer(tool.Answer{Verdict: tool.Approved})}).Start("run7")
	b, err = yes.Do(t.Context(), box, tool.Turn{Number: 3, Calls: []*dragoman.ToolCall{call("c", "f", `{"n":1}`)}, Resume: []tool.Pending{p}})
	if err != nil || b.Records[0].ErrorKind != tool.ErrorMismatch || b.Results[0].Display != "" {
		t.Errorf("%v: %s ran", err, b.Results[0].Display)
	}
	// A stored input runs only with an answer on exactly this input, whatever the policy
	// allows and even if its hash matches.
	forged := p
	forged.Binding.Arguments = forged.Input.Hash()
	open := (&tool.Runner{Policy: always(tool.Allow)}).Start("run7")
	free := mustBox(t, argumentsTool(`{"type":"object"}`))
	if b, err := open.Do(t.Context(), free, tool.Turn{Number: 3, Calls: []*dragoman.ToolCall{call("c", "f", `{"n":1}`)}, Resume: []tool.Pending{forged}}); err != nil || len(b.Pending) != 1 {
		t.Errorf("a forged input: %v, %+v", err, b)
	}
	cut := call("c", "f", `{"n":1}`)
	cut.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: "cut off", Offset: -1}
	if b, err := (&tool.Runner{Approver: answer(tool.Answer{Verdict: tool.Approved})}).Start("run7").Do(t.Context(), free, tool.Turn{Number: 3, Calls: []*dragoman.ToolCall{cut}, Resume: []tool.Pending{forged}}); err != nil || b.Records[0].ErrorKind != tool.ErrorNotRun {
		t.Errorf("a call that must not run: %v, %+v", err, b.Records)
	}
	// If the tool has changed, approval is requested again, because the binding differs.
	swapped := mustBox(t, argumentsTool(`{"type":"object","description":"another"}`, tool.NeedsApproval()))
	p.Input.Arguments = json.RawMessage(`{"n":1}`)
	var now tool.Binding
	again := (&tool.Runner{Policy: always(tool.Ask), Approver: approverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		now = req.Binding
		return tool.Answer{}, nil
	})}).Start("run7")
	if _, err := again.Do(t.Context(), swapped, tool.Turn{Number: 3, Calls: []*dragoman.ToolCall{call("c", "f", `{"n":1}`)}, Resume: []tool.Pending{p}}); err != nil || now.Tool == want.Tool {
		t.Errorf("%v: %v", err, now)
	}
	// A resumed call must be the call of this run and turn.
	for name, change := range map[string]func(*tool.Binding){
		"another run":  func(b *tool.Binding) { b.Run = "run8" },
		"another turn": func(b *tool.Binding) { b.Turn = 2 },
		"another tool": func(b *tool.Binding) { b.Key = toolopt.Bare("g") },
	} {
		q := p
		change(&q.Binding)
		if _, err := again.Do(t.Context(), box, tool.Turn{Number: 3, Calls: []*dragoman.ToolCall{call("c", "f", `{"n":1}`)}, Resume: []tool.Pending{q}}); !errors.Is(err, tool.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := again.Do(t.Context(), box, tool.Turn{Number: 4, Calls: []*dragoman.ToolCall{call("d", "f", `{}`)}, Resume: []tool.Pending{p}}); !errors.Is(err, tool.ErrConflict) {
		t.Errorf("%v", err)
	}
}

func TestA4_MiddlewareCannotHideChangedInput(t *testing.T) {
	for name, m := range map[string]tool.Middleware{
		"passes other arguments": func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, _ tool.Input) (tool.Output, error) {
				return next(ctx, tool.Input{Arguments: json.RawMessage(`{"n":666}`)})
			}
		},
		"and hides the error": func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, _ tool.Input) (tool.Output, error) {
				_, _ = next(ctx, tool.Input{Arguments: json.RawMessage(`{"n":666}`)})
				return tool.Output{Display: "all is well"}, nil
			}
		},
		"writes into the bytes": func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, in tool.Input) (tool.Output, error) {
				in.Arguments[5] = '6'
				return next(ctx, in)
			}
		},
	} {
		ran := ""
		box := mustBox(t, tool.Raw("f", "", json.RawMessage(`{"type":"object"}`), func(_ context.Context, args json.RawMessage) (any, error) {
			ran = string(args)
			return nil, nil
		}, tool.NeedsApproval(), toolopt.Use(m)))
		res, rec := do(t, &tool.Runner{Approver: answer(tool.Answer{Verdict: tool.Approved})}, box, call("1", "f", `{"n":1}`))
		if ran != "" || rec.ErrorKind != tool.ErrorMismatch || rec.Executed || res.Display != "" {
			t.Errorf("%s: %q ran, %s, %q", name, ran, rec.ErrorKind, res.Display)
		}
	}
}

func TestA7_FailingApproverLeavesTheCallPending(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	for name, a := range map[string]approverFunc{
		"an error": func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
			return tool.Answer{Verdict: tool.Approved}, errors.New("no")
		},
		"a panic": func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) { panic("no") },
		"a hang": func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
			<-release
			return tool.Answer{Verdict: tool.Approved}, nil
		},
		"a word that is not a verdict": answer(tool.Answer{Verdict: "yes"}),
	} {
		r := &tool.Runner{Approver: a, ApproverTimeout: time.Millisecond}
		b, err := r.Start("r").Do(t.Context(), mustBox(t, echo("a", tool.NeedsApproval())), tool.Turn{Calls: []*dragoman.ToolCall{call("1", "a", "")}})
		if err != nil || len(b.Pending) != 1 || b.Results[0] != nil {
			t.Errorf("%s: %v, %+v", name, err, b)
		}
	}
}

func TestA2_StoredInputRoundTripsByteForByte(t *testing.T) {
	for _, in := range []tool.Input{
		{},
		{Text: "<text>\n"},
		{Arguments: json.RawMessage(`{}`)},
		{Arguments: json.RawMessage("{ \"a\" : \"<&>\u2028\",\n\"b\":1.0e2 }")},
	} {
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		var back tool.Input
		if err := json.Unmarshal(raw, &back); err != nil || back.Hash() != in.Hash() || (back.Arguments == nil) != (in.Arguments == nil) {
			t.Errorf("%s: %v, %s", raw, err, back.Arguments)
		}
	}
}

// memoryJournal is a journal that logs the calls of its methods.
type memoryJournal struct {
	prior  map[string]tool.Prior
	log    []string
	failAt string
}

func (j *memoryJournal) Begin(_ context.Context, in tool.Intent) (tool.Prior, error) {
	j.log = append(j.log, "begin "+in.CallID)
	if j.failAt == "begin" {
		return tool.Prior{}, errors.New("disk full")
	}
	p := j.prior[in.CallID]
	if j.prior == nil {
		j.prior = map[string]tool.Prior{}
	}
	next := p
	next.Attempts++
	if p.Attempts == 0 {
		next.Arguments = in.Arguments
	}
	j.prior[in.CallID] = next
	return p, nil
}

func (j *memoryJournal) End(ctx context.Context, in tool.Intent, res *dragoman.ToolResult) error {
	j.log = append(j.log, "end "+in.CallID)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if j.failAt == "end" {
		return errors.New("disk full")
	}
	p := j.prior[in.CallID]
	p.Result = res
	j.prior[in.CallID] = p
	return nil
}

func TestJournalMakesEffectsHappenOnce(t *testing.T) {
	args := tool.Input{Arguments: json.RawMessage("{}")}.Hash()
	done := call("1", "a", "{}").ResultText("from before")
	for _, tc := range []struct {
		name    string
		prior   tool.Prior
		opts    []tool.Option
		failAt  string
		kind    tool.ErrorKind
		ran     bool
		attempt int
		err     bool
	}{
		{name: "the first time", ran: true, attempt: 1},
		{name: "it has ended before", prior: tool.Prior{Attempts: 1, Result: done, Arguments: args}, attempt: 1},
		{name: "it has begun before", prior: tool.Prior{Attempts: 1, Arguments: args}, kind: tool.ErrorUncertain, attempt: 1},
		{name: "it has begun before and may run again", prior: tool.Prior{Attempts: 1, Arguments: args}, opts: []tool.Option{tool.Idempotent()}, ran: true, attempt: 2},
		{name: "it has begun before and changes nothing", prior: tool.Prior{Attempts: 2, Arguments: args}, opts: []tool.Option{tool.ReadOnly()}, ran: true, attempt: 3},
		{name: "it has begun with other arguments", prior: tool.Prior{Attempts: 1, Result: done}, kind: tool.ErrorUncertain, attempt: 1, err: true},
		{name: "the intent cannot be written", failAt: "begin", kind: tool.ErrorJournal, attempt: 1},
		{name: "the result cannot be written", failAt: "end", ran: true, attempt: 1, err: true},
	} {
		ran := false
		j := &memoryJournal{prior: map[string]tool.Prior{"1": tc.prior}, failAt: tc.failAt}
		box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) {
			ran = true
			if !slices.Equal(j.log, []string{"begin 1"}) {
				t.Errorf("%s: %q before it runs", tc.name, j.log)
			}
			return "now", nil
		}, tc.opts...))
		b, err := (&tool.Runner{Journal: j}).Start("r").Do(t.Context(), box, tool.Turn{Calls: []*dragoman.ToolCall{call("1", "a", "{}")}})
		rec := b.Records[0]
		if (err != nil) != tc.err || ran != tc.ran || rec.ErrorKind != tc.kind || rec.Attempt != tc.attempt || b.Results[0] == nil {
			t.Errorf("%s: %v, ran %v, %q, attempt %d", tc.name, err, ran, rec.ErrorKind, rec.Attempt)
		}
		if replayed := tc.prior.Result != nil && !tc.err; rec.Replayed != replayed || replayed && b.Results[0] != done {
			t.Errorf("%s: replayed %v", tc.name, rec.Replayed)
		}
	}
}

func TestP3_RejectionHasTheMessageOfTheHumanOrTheReason(t *testing.T) {
	asks := policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
		return tool.Decision{Effect: tool.Ask, Reason: "it costs money"}, nil
	})
	for message, want := range map[string]string{"": "it costs money", "not today": "not today"} {
		no := approverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
			return tool.Answer{Verdict: tool.Rejected, Message: message}, nil
		})
		res, rec := do(t, &tool.Runner{Policy: asks, Approver: no}, mustBox(t, echo("f")), call("1", "f", ""))
		if wantKind(t, res, rec, tool.ErrorRejected); !strings.Contains(res.Text(), want) || rec.Executed {
			t.Errorf("%q: %s", message, res.Text())
		}
	}
}
