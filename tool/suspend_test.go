package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// A6: a tool whose work waits for humans leaves its call pending, and goes on with
// what it left.
func TestA6_AToolThatIsSuspendedIsPendingAndGoesOnWithItsState(t *testing.T) {
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

// What a state says does not stand for a human's word: a tool that needs approval
// needs it also to go on.
func TestA6_AStateIsNoApproval(t *testing.T) {
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

// A call that was suspended was begun, and is not uncertain for that.
func TestL14_ASuspendedCallIsNotUncertain(t *testing.T) {
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
		t.Errorf("begun, and nobody knows how it ended: %+v", batch.Records)
	}
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
