package tool_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// asker returns a tool that asks one question and reports the answer, and the number of its
// calls.
func asker(t *testing.T) (*tool.Box, *int) {
	t.Helper()
	calls := new(int)
	box, err := tool.NewBox(tool.Raw("push", "Pushes.", json.RawMessage(`{"type":"object"}`), func(ctx context.Context, _ json.RawMessage) (any, error) {
		*calls++
		answers, asked := tool.Answers(ctx)
		if !asked {
			return nil, &tool.Suspended{
				Asks:  []tool.InputRequest{{Name: "branch", From: `server "git"`, Prompt: "Which branch?", Schema: json.RawMessage(`{"type":"object"}`)}},
				State: json.RawMessage(`{"at": "<1>"}`), // stores compact and escape it
			}
		}
		if state, ok := tool.Resumed(ctx); !ok || !strings.Contains(string(state), "at") {
			t.Errorf("state %s", state)
		}
		a := answers["branch"]
		return string(a.Verdict) + " " + string(a.Value), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return box, calls
}

func pushTurn() tool.Turn {
	return tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "c1", Name: "push", Arguments: `{}`}}}
}

func TestToolAsksTheApproverDuringItsCall(t *testing.T) {
	box, calls := asker(t)
	var shown *tool.ApprovalRequest
	runner := &tool.Runner{Approver: policy.ApproverFunc(func(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		shown = req
		return tool.Answer{Verdict: tool.Approved, Value: json.RawMessage(`{"b":"main"}`)}, nil
	})}
	b, err := runner.Start("r").Do(t.Context(), box, pushTurn())
	if err != nil || len(b.Pending) > 0 || !strings.Contains(b.Results[0].PlainText(), `approved {"b":"main"}`) || *calls != 2 {
		t.Fatalf("%+v, %v, %d calls", b, err, *calls)
	}
	if shown.Wanted.Prompt != "Which branch?" || shown.Binding.CallID != "c1" || !strings.Contains(shown.Reason, `"git"`) {
		t.Errorf("shown: %+v", shown)
	}
	if steps := b.Records[0].Steps; len(steps) != 1 || steps[0].Name != "answer" || steps[0].Detail != "branch: approved" {
		t.Errorf("steps %+v", steps)
	}
}

func TestToolGetsARejectionAsAnAnswer(t *testing.T) {
	box, _ := asker(t)
	runner := &tool.Runner{Approver: policy.ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
		return tool.Answer{Verdict: tool.Rejected}, nil
	})}
	b, err := runner.Start("r").Do(t.Context(), box, pushTurn())
	if err != nil || !strings.Contains(b.Results[0].PlainText(), "rejected") || !b.Records[0].OK {
		t.Fatalf("%+v, %v", b.Records, err)
	}
}

func TestUndecidedQuestionIsPendingAndContinuesInAnotherProcess(t *testing.T) {
	box, calls := asker(t)
	b, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, pushTurn())
	if err != nil || len(b.Pending) != 1 || len(b.Pending[0].Inner) != 1 || b.Results[0] != nil {
		t.Fatalf("%+v, %v", b, err)
	}
	stored, err := json.Marshal(b.Pending)
	if err != nil {
		t.Fatal(err)
	}
	var pending []tool.Pending
	if err := json.Unmarshal(stored, &pending); err != nil {
		t.Fatal(err)
	}
	question := pending[0].Inner[0]
	if question.Binding == pending[0].Binding {
		t.Fatal("an answer to the question would approve the call, too")
	}

	turn := pushTurn()
	turn.Resume = pending
	b, err = (&tool.Runner{}).Start("r").Do(t.Context(), box, turn) // no decision yet
	if err != nil || len(b.Pending) != 1 || *calls != 1 {
		t.Fatalf("%+v, %v, %d calls", b, err, *calls)
	}
	ledger := &policy.Ledger{}
	if err := ledger.Decide(question.Binding, tool.Answer{Verdict: tool.Approved, Value: json.RawMessage(`{"b":"x"}`)}); err != nil {
		t.Fatal(err)
	}
	b, err = (&tool.Runner{Approver: ledger}).Start("r").Do(t.Context(), box, turn)
	if err != nil || len(b.Pending) > 0 || !strings.Contains(b.Results[0].PlainText(), `approved {"b":"x"}`) || *calls != 2 {
		t.Fatalf("%+v, %v, %d calls", b, err, *calls)
	}
}

func TestAttack_ChangedQuestionIsNotAnswered(t *testing.T) {
	box, calls := asker(t)
	b, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, pushTurn())
	if err != nil {
		t.Fatal(err)
	}
	ledger := &policy.Ledger{}
	if err := ledger.Decide(b.Pending[0].Inner[0].Binding, tool.Answer{Verdict: tool.Approved, Value: json.RawMessage(`{}`)}); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p *tool.Pending){
		"state":  func(p *tool.Pending) { p.State = json.RawMessage(`{"at":2}`) },
		"prompt": func(p *tool.Pending) { p.Inner[0].Wanted.Prompt = "Another question" },
		"url":    func(p *tool.Pending) { p.Inner[0].Wanted.URL = "https://evil.example" },
	} {
		var p tool.Pending
		stored, _ := json.Marshal(b.Pending[0])
		if err := json.Unmarshal(stored, &p); err != nil {
			t.Fatal(err)
		}
		change(&p)
		turn := pushTurn()
		turn.Resume = []tool.Pending{p}
		got, err := (&tool.Runner{Approver: ledger}).Start("r").Do(t.Context(), box, turn)
		if err != nil || got.Records[0].ErrorKind != tool.ErrorMismatch || *calls != 1 {
			t.Errorf("%s: %+v, %v, %d calls", name, got.Records, err, *calls)
		}
	}
}

func TestStickyApprovalDoesNotAnswerQuestions(t *testing.T) {
	box, calls := asker(t)
	b, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, pushTurn())
	if err != nil {
		t.Fatal(err)
	}
	ledger := &policy.Ledger{}
	ledger.Always(b.Pending[0].Binding)
	turn := pushTurn()
	turn.Resume = b.Pending
	b, err = (&tool.Runner{Approver: ledger}).Start("r").Do(t.Context(), box, turn)
	if err != nil || len(b.Pending) != 1 || *calls != 1 {
		t.Fatalf("%+v, %v, %d calls", b, err, *calls)
	}
}

func TestEndlessQuestionsEndTheCall(t *testing.T) {
	box, err := tool.NewBox(tool.Raw("push", "Pushes.", json.RawMessage(`{"type":"object"}`), func(context.Context, json.RawMessage) (any, error) {
		return nil, &tool.Suspended{Asks: []tool.InputRequest{{Name: "again", Prompt: "Again?"}}, State: json.RawMessage(`{}`)}
	}))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	runner := &tool.Runner{Approver: policy.ApproverFunc(func(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
		asked++
		return tool.Answer{Verdict: tool.Approved}, nil
	})}
	b, err := runner.Start("r").Do(t.Context(), box, pushTurn())
	if err != nil || b.Records[0].OK || asked > 40 || !strings.Contains(b.Results[0].PlainText(), "asked more than") {
		t.Fatalf("asked %d times: %+v, %v", asked, b.Records, err)
	}
}
