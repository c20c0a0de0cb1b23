package tool

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Suspended is the error of a tool whose work waits for humans, such as an agent that runs as a
// tool and has calls to be approved. The call is then pending, without a result. When its turn
// is passed again with the [Pending], the tool is called again and gets State from [Resumed].
//
// A tool asks questions of its own with Asks. The approver of the call gets each of them as an
// [ApprovalRequest] with Wanted. Once all are answered, the tool is called again, at once or, if
// the approver leaves one undecided, when the turn is resumed. It gets State from [Resumed] and
// the answers from [Answers]:
//
//	answers, asked := tool.Answers(ctx)
//	if !asked {
//		return tool.Output{}, &tool.Suspended{
//			Asks:  []tool.InputRequest{{Name: "branch", Prompt: "Which branch?", Schema: schema}},
//			State: json.RawMessage(`{}`),
//		}
//	}
//	if a := answers["branch"]; a.Verdict == tool.Approved { … a.Value … }
//
// An answer is bound to its question, to State and to the input of the call. The value is not
// checked against the schema: the tool does that, and may ask again.
type Suspended struct {
	// Inner holds the calls that the work waits for.
	Inner []Pending
	// Asks holds questions of the tool itself, with different names.
	Asks []InputRequest
	// State is the data that the tool needs to continue. It must not be empty.
	State json.RawMessage
}

func (e *Suspended) Error() string {
	if len(e.Asks) > 0 {
		return fmt.Sprintf("the work waits for the answer to %s", textkit.Count(len(e.Asks), "question"))
	}
	return fmt.Sprintf("the work waits for the approval of %s", textkit.Count(len(e.Inner), "call"))
}

// Answers returns the answers to the questions that the tool asked with [Suspended], by their
// names, for the call of ctx. ok is false if it asked none.
func Answers(ctx context.Context) (answers map[string]Answer, ok bool) {
	c := callFrom(ctx)
	if c == nil || c.answers == nil {
		return nil, false
	}
	return maps.Clone(c.answers), true
}

// maxAskRounds limits how often a tool asks within one turn.
const maxAskRounds = 32

// askBinding returns the binding of a question: that of the call, with the hash of its input,
// the question and the state of the tool in place of the hash of the input.
func (x *execution) askBinding(w *InputRequest, state json.RawMessage) (Binding, error) {
	b := x.binding()
	question, err := json.Marshal(w)
	if err != nil {
		return b, err
	}
	if state, err = json.Marshal(state); err != nil { // as stores write it: compact, and escaped
		return b, err
	}
	h := sha256.New()
	h.Write([]byte("question\x00"))
	h.Write(b.Arguments[:])
	for _, part := range [...][]byte{question, state} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write(part)
	}
	h.Sum(b.Arguments[:0])
	return b, nil
}

// asks returns the questions of a suspended tool as pending calls.
func (x *execution) asks(s *Suspended) ([]Pending, error) {
	var out []Pending
	names := map[string]bool{}
	for i := range s.Asks {
		w := s.Asks[i]
		if w.Name == "" || names[w.Name] {
			return nil, fmt.Errorf("the tool asked a question whose name %.80q is missing or not unique", w.Name)
		}
		names[w.Name] = true
		b, err := x.askBinding(&w, s.State)
		if err != nil {
			return nil, err
		}
		reason := "the tool asks during its call"
		if w.From != "" {
			reason = w.From + " asks during the call"
		}
		out = append(out, Pending{Binding: b, Input: x.input, Reason: reason, Wanted: &w})
	}
	return out, nil
}

// ownQuestions returns the questions of the tool itself among the pending calls of a suspended
// call. A question that does not match its binding was changed in its store.
func (x *execution) ownQuestions(p *Pending) (own []Pending, err error) {
	for _, q := range p.Inner {
		if q.Wanted == nil || q.Wanted.Name == "" || q.Binding.Run != x.run.ID || q.Binding.CallID != x.call.ID {
			continue
		}
		b, err := x.askBinding(q.Wanted, p.State)
		if err != nil || b.Arguments != q.Binding.Arguments {
			return nil, errors.New("its stored question differs from the one that was asked")
		}
		own = append(own, q)
	}
	return own, nil
}

// answer asks the approver the questions of the tool. all reports whether every question has an
// answer; the tool then gets them.
func (x *execution) answer(ctx context.Context, questions []Pending) (all bool) {
	x.asking.Lock() // approvers get one question at a time
	defer x.asking.Unlock()
	answers := map[string]Answer{}
	for i := range questions {
		q := &questions[i]
		request := &ApprovalRequest{Binding: q.Binding, Spec: x.entry.spec, From: x.entry.settings.From, Input: x.input.clone(), Agent: x.run.Agent, Reason: q.Reason, Wanted: q.Wanted}
		a, err := x.ask(ctx, request)
		if err != nil {
			x.logFailure("an approver failed, so the call is pending", err)
			return false
		}
		if a.Verdict != Approved && a.Verdict != Rejected {
			return false
		}
		answers[q.Wanted.Name] = a
		x.steps = append(x.steps, Step{stepAnswer, fmt.Sprintf("%s: %s", q.Wanted.Name, a.Verdict)})
	}
	x.answers = answers
	return true
}

// Resumed returns the state that the tool left when it was suspended, for the call of ctx. ok
// is false if the call was not suspended.
func Resumed(ctx context.Context) (state json.RawMessage, ok bool) {
	c := callFrom(ctx)
	if c == nil || c.state == nil {
		return nil, false
	}
	return c.state, true
}

// suspended returns the Suspended error of a failure, or nil.
func suspended(f *failure) *Suspended {
	var s *Suspended
	if f == nil || !errors.As(f.err, &s) || len(s.State) == 0 {
		return nil
	}
	return s
}

// suspend leaves a call pending whose tool waits for humans.
func (x *execution) suspend(s *Suspended, questions []Pending) {
	b := x.binding()
	b.Arguments = x.hash
	x.pending = &Pending{Binding: b, Input: x.input, Reason: s.Error(), Inner: slices.Concat(s.Inner, questions), State: s.State, Attempt: x.attempt}
	*x.record = x.newRecord(nil)
	x.record.Pending, x.record.Executed = true, true
	x.emitApprovalRequested()
}

// checkStates refuses a turn with a call whose tool cannot continue from the state that it
// left.
func (b *batch) checkStates(ctx context.Context) error {
	for _, x := range b.calls {
		if x.settled() || !x.continued() {
			continue
		}
		e := b.box.find(x.key)
		if e == nil || e.settings.CheckState == nil {
			continue
		}
		_, err := guard(ctx, b.runner, b.runner.policyTimeout(), nil, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, e.settings.CheckState(ctx, x.resume.State)
		})
		if err != nil {
			return fmt.Errorf("tool: %s cannot continue: %w", x.key.QualifiedName(), err)
		}
	}
	return nil
}

// continued reports whether the call continues from a state that its tool left.
func (x *execution) continued() bool { return x.resume != nil && x.resume.State != nil }

// continues returns the attempt that the call continues; zero means none.
func (x *execution) continues() int {
	if !x.continued() {
		return 0
	}
	return max(1, x.resume.Attempt)
}

// plainText returns the text of parts, before they are fenced.
func plainText(parts []dragoman.Part) string {
	return (&dragoman.ToolResult{Content: parts}).Text()
}
