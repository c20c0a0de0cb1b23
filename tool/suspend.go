package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Suspended is the error of a tool whose work waits for humans, such as an agent that runs as a
// tool and has calls to be approved. The call is then pending, without a result. When its turn
// is passed again with the [Pending], the tool is called again and gets State from [Resumed].
type Suspended struct {
	// Inner holds the calls that the work waits for.
	Inner []Pending
	// State is the data that the tool needs to continue.
	State json.RawMessage
}

func (e *Suspended) Error() string {
	return fmt.Sprintf("the work waits for the approval of %s", textkit.Count(len(e.Inner), "call"))
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
func (x *execution) suspend(s *Suspended) {
	b := x.binding()
	b.Arguments = x.hash
	x.pending = &Pending{Binding: b, Input: x.input, Reason: s.Error(), Inner: s.Inner, State: s.State, Attempt: x.attempt}
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
