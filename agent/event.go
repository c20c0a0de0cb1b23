package agent

import (
	"context"
	"iter"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/tool"
)

// Event is something that happens in a run. The set is sealed: [RunStart],
// [TurnStart], [ModelEvent], [Patched], [MessageAdded], [ToolCalled], [ToolEvent], [ToolReturned],
// [HandedOff], [GuardrailTripped], [Notice], [TurnEnd] and [RunEnd].
//
// A run begins with one RunStart and ends with one RunEnd. Each turn has, in this order: a
// TurnStart, the ModelEvents of the response as they arrive, with the Patched events of
// extensions among them, a MessageAdded for each message of the model, a ToolCalled for each
// call, the ToolEvents of the calls, a ToolReturned for each result in the order of the calls,
// and a TurnEnd. Messages that [Agent.Steer] or background work adds before a model call
// have a MessageAdded, too. The prompt has no MessageAdded, and results have a ToolReturned
// instead. A call that does not run, because its response was cut off or withheld, has a
// ToolCalled and a ToolReturned, but no ToolEvents.
//
// Events are pointers, but the [tool.Event] in a ToolEvent is a value:
//
//	switch ev := ev.(type) {
//	case *agent.ToolEvent:
//		if end, ok := ev.Event.(tool.CallEnded); ok { … }
//	}
type Event interface {
	// Type is the stable name of the event in JSON: "run_start", "turn_start", "model",
	// "patch", "message_added", "tool_call", "tool", "tool_result", "handoff",
	// "guardrail", "notice", "turn_end" or "run_end".
	Type() string
	event()
}

// The JSON names of the event types.
const (
	eventRunStart     = "run_start"
	eventTurnStart    = "turn_start"
	eventModel        = "model"
	eventPatched      = "patch"
	eventMessageAdded = "message_added"
	eventToolCalled   = "tool_call"
	eventTool         = "tool"
	eventToolReturned = "tool_result"
	eventHandedOff    = "handoff"
	eventGuarded      = "guardrail"
	eventNotice       = "notice"
	eventTurnEnd      = "turn_end"
	eventRunEnd       = "run_end"
)

// RunStart begins a run. Resumed is set if it continues an earlier one.
type RunStart struct {
	Run     string
	Agent   string
	Resumed bool
	// Session is the ID of the run's [Store], if the store has a method ID() string, as a
	// session has; otherwise it is empty.
	Session string
}

// TurnStart reports that a model is about to be called.
type TurnStart struct {
	Turn  int
	Agent string
}

// ModelEvent is one event of a model's response, for display. The complete content follows
// in MessageAdded and ToolCalled.
type ModelEvent struct {
	Turn  int
	Event dragoman.Event
}

// Text returns the text that the event adds to the response; it is empty for all other
// events, such as the arguments of a call.
func (e *ModelEvent) Text() string {
	if d, ok := e.Event.(*dragoman.PartDelta); ok && d.Kind == codes.KindText && d.Choice == 0 {
		return d.Text
	}
	return ""
}

// Patched is a value that an extension of the provider collected from a response while it
// streams, for display. Its Patch names the run, the turn and the message. The patches of a
// tool call are cumulative, those of reasoning are fragments. The complete message, in
// MessageAdded, supersedes them.
type Patched struct {
	Turn  int
	Patch extension.Patch
}

// MessageAdded reports a message that joined the conversation: from the model, from
// [Agent.Steer], or about background work that ended. The message is already stored. The
// prompt of the run and tool results have no MessageAdded.
type MessageAdded struct {
	Turn    int
	Message dragoman.Message
}

// ToolCalled reports a complete call by the model. If its arguments cannot be read, its Problem
// says why. There is one ToolCalled for each call, and each has its [ToolReturned], in this run or,
// if the call waits for a human, after it is resumed. A [ToolEvent] reports that it runs.
type ToolCalled struct {
	Turn int
	Call *dragoman.ToolCall
}

// ToolEvent reports what happens to calls. A [tool.PolicyDecided] on a model call comes between
// TurnStart and the ModelEvents of the response.
type ToolEvent struct {
	Turn  int
	Event tool.Event
}

// ToolReturned is the result of a call as the model reads it, with a fence around the output of
// the tool. To show it to people, use [dragoman.ToolResult.PlainText].
type ToolReturned struct {
	Turn   int
	Result *dragoman.ToolResult
}

// HandedOff reports that another agent has taken over.
type HandedOff struct {
	Turn     int
	From, To string
}

// GuardrailTripped reports a guardrail that stopped the run or replaced content.
type GuardrailTripped struct {
	Turn int
	Name string
	// Stage is "input", "output", "tool_input" or "tool_output".
	Stage   string
	Verdict Verdict
}

// Notice reports something that is not an error of the run. Its codes are
//   - "blank": the response of the model was empty, and the model is called again
//   - "correction": the answer does not match the requested format and goes back to the model
//   - "failover": a model of a chain failed, and another one responded
//   - "degraded": a tool failed and is removed for the rest of the run
//   - "tools": the tools of ToolSource changed, or could not be updated
//   - "action": an action of an extension before saving failed; the run is saved anyway
type Notice struct {
	Turn int
	// Code is a stable identifier, and Text a sentence for people.
	Code, Text string
}

// TurnEnd ends a turn. Usage is the usage of the run so far.
type TurnEnd struct {
	Turn  int
	Usage dragoman.Usage
}

// RunEnd ends the run, also if it failed: the sequence yields it together with the error.
// Result is never nil; its Run is empty if no run began.
type RunEnd struct {
	Result *Result
}

func (*RunStart) Type() string         { return eventRunStart }
func (*TurnStart) Type() string        { return eventTurnStart }
func (*ModelEvent) Type() string       { return eventModel }
func (*Patched) Type() string          { return eventPatched }
func (*MessageAdded) Type() string     { return eventMessageAdded }
func (*ToolCalled) Type() string       { return eventToolCalled }
func (*ToolEvent) Type() string        { return eventTool }
func (*ToolReturned) Type() string     { return eventToolReturned }
func (*HandedOff) Type() string        { return eventHandedOff }
func (*GuardrailTripped) Type() string { return eventGuarded }
func (*Notice) Type() string           { return eventNotice }
func (*TurnEnd) Type() string          { return eventTurnEnd }
func (*RunEnd) Type() string           { return eventRunEnd }

func (*RunStart) event()         {}
func (*TurnStart) event()        {}
func (*ModelEvent) event()       {}
func (*Patched) event()          {}
func (*MessageAdded) event()     {}
func (*ToolCalled) event()       {}
func (*ToolEvent) event()        {}
func (*ToolReturned) event()     {}
func (*HandedOff) event()        {}
func (*GuardrailTripped) event() {}
func (*Notice) event()           {}
func (*TurnEnd) event()          {}
func (*RunEnd) event()           {}

// Stream is a run that reports events. The run starts when the stream is ranged over, which
// is possible once:
//
//	for ev, err := range a.Stream(ctx, "…") {
//		…
//	}
//
// The last pair is a [RunEnd] with the error of the run. The run waits for the loop: a slow
// reader slows it down, and events are not buffered. Leaving the loop cancels the run:
// unanswered calls get an error result, and the stored run can be resumed.
type Stream iter.Seq2[Event, error]

// Collect reads the stream to its end and returns the result.
func (s Stream) Collect() (*Result, error) {
	for ev, err := range s {
		if end, ok := ev.(*RunEnd); ok {
			return end.Result, err
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, errStreamUsed
}

// errStreamUsed means that a stream was already used.
var errStreamUsed = errorf("the stream was already ranged over")

// streamOf returns the stream of a run that has not begun yet.
func streamOf(ctx context.Context, begin func() (*run, error)) Stream {
	used := false
	return func(yield func(Event, error) bool) {
		if used {
			yield(nil, errStreamUsed)
			return
		}
		used = true
		r, err := begin()
		if err != nil {
			yield(&RunEnd{Result: &Result{}}, err)
			return
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		r.startEvents(yield, cancel)
		res, err := r.run(ctx)
		if !r.callerLeft {
			yield(&RunEnd{Result: res}, err)
		}
	}
}
