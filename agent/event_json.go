package agent

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// eventVersion is the version of the JSON of events.
const eventVersion = 2

// eventJSON is an event as JSON. Fields that an event does not have are omitted.
type eventJSON struct {
	V       int               `json:"v"`
	Type    string            `json:"type"`
	Run     string            `json:"run,omitempty"`
	Turn    int               `json:"turn,omitempty"`
	Agent   string            `json:"agent,omitempty"`
	Resumed bool              `json:"resumed,omitempty"`
	Session string            `json:"session,omitempty"`
	Event   json.RawMessage   `json:"event,omitempty"`
	Message *dragoman.Message `json:"message,omitempty"`
	Patch   *patchJSON        `json:"patch,omitempty"`
	Call    dragoman.Part     `json:"call,omitempty"`
	Result  dragoman.Part     `json:"result,omitempty"`
	Tool    *toolEventJSON    `json:"tool,omitempty"`
	From    string            `json:"from,omitempty"`
	To      string            `json:"to,omitempty"`
	Name    string            `json:"name,omitempty"`
	Stage   string            `json:"stage,omitempty"`
	Verdict *Verdict          `json:"verdict,omitempty"`
	Code    string            `json:"code,omitempty"`
	Text    string            `json:"text,omitempty"`
	Usage   *dragoman.Usage   `json:"usage,omitempty"`
	End     *endJSON          `json:"end,omitempty"`
	Error   string            `json:"error,omitempty"`
}

// patchJSON is a value that an extension collected. Message is the index of the message in
// the conversation.
type patchJSON struct {
	Extension string          `json:"extension"`
	Message   int             `json:"message"`
	Path      string          `json:"path"`
	Value     json.RawMessage `json:"value"`
	Fragment  bool            `json:"fragment,omitempty"`
}

// toolEventJSON is an event of a call.
type toolEventJSON struct {
	Type     string            `json:"type"`
	CallID   string            `json:"call_id"`
	Tool     string            `json:"tool"`
	Input    *tool.Input       `json:"input,omitempty"`
	Parts    []json.RawMessage `json:"parts,omitempty"`
	Subject  string            `json:"subject,omitempty"`
	Model    string            `json:"model,omitempty"`
	Target   string            `json:"target,omitempty"`
	Decision *tool.Decision    `json:"decision,omitempty"`
	Pending  *tool.Pending     `json:"pending,omitempty"`
	Record   *tool.Record      `json:"record,omitempty"`
}

// endJSON is the result of a run, without what earlier events contain.
type endJSON struct {
	Run    string `json:"run"`
	Agent  string `json:"agent"`
	Output string `json:"output"`
	Model  string `json:"model,omitempty"`
	// Failovers are the models of a chain that failed.
	Failovers []failoverJSON `json:"failovers,omitempty"`
	Turns     int            `json:"turns"`
	Usage     dragoman.Usage `json:"usage"`
	Stop      dragoman.Stop  `json:"stop"`
	Pending   []tool.Pending `json:"pending,omitempty"`
	// Degraded are the tools that failures removed from the run.
	Degraded []string `json:"degraded,omitempty"`
	Losses   []string `json:"losses,omitempty"`
	Done     bool     `json:"done"`
}

type failoverJSON struct {
	Turn  int    `json:"turn"`
	Model string `json:"model"`
	Error string `json:"error"`
}

// MarshalEvent encodes a pair of a [Stream] as one JSON object: the version of the format,
// the type, the content of the event, and the error. The format is stable, for programs in
// other languages.
func MarshalEvent(ev Event, err error) ([]byte, error) {
	out := eventJSON{V: eventVersion}
	if ev != nil {
		out.Type = ev.Type()
	}
	if err != nil {
		out.Error = tool.ModelText(err)
	}
	switch ev := ev.(type) {
	case *RunStart:
		out.Run, out.Agent, out.Resumed, out.Session = ev.Run, ev.Agent, ev.Resumed, ev.Session
	case *TurnStart:
		out.Turn, out.Agent = ev.Turn, ev.Agent
	case *ModelEvent:
		b, err := dragoman.MarshalEvent(ev.Event)
		if err != nil {
			return nil, err
		}
		out.Turn, out.Event = ev.Turn, b
	case *Patched:
		p := &ev.Patch
		out.Run, out.Turn = p.Run, ev.Turn
		out.Patch = &patchJSON{Extension: p.Extension, Message: p.Message, Path: p.Path, Value: p.Value, Fragment: p.Fragment}
	case *MessageAdded:
		out.Turn, out.Message = ev.Turn, &ev.Message
	case *ToolCalled:
		out.Turn, out.Call = ev.Turn, ev.Call
	case *ToolEvent:
		t, err := toolEvent(ev.Event)
		if err != nil {
			return nil, err
		}
		out.Turn, out.Tool = ev.Turn, t
	case *ToolReturned:
		out.Turn, out.Result = ev.Turn, ev.Result
	case *HandedOff:
		out.Turn, out.From, out.To = ev.Turn, ev.From, ev.To
	case *GuardrailTripped:
		out.Turn, out.Name, out.Stage, out.Verdict = ev.Turn, ev.Name, ev.Stage, &ev.Verdict
	case *Notice:
		out.Turn, out.Code, out.Text = ev.Turn, ev.Code, ev.Text
	case *TurnEnd:
		out.Turn, out.Usage = ev.Turn, &ev.Usage
	case *RunEnd:
		out.End = endOf(ev.Result)
	}
	return json.Marshal(out)
}

func endOf(r *Result) *endJSON {
	if r == nil || r.Run == "" { // no run began
		return nil
	}
	end := &endJSON{
		Run: r.Run, Agent: r.Agent, Output: r.Output, Turns: r.Turns, Usage: r.Usage, Stop: r.Stop, Pending: r.Pending, Degraded: r.Degraded,
		Done: r.State != nil && r.State.Done(),
	}
	end.Model = r.Model
	for _, f := range r.Failovers {
		end.Failovers = append(end.Failovers, failoverJSON{f.Turn, f.Model, f.Err.Error()})
	}
	for _, l := range r.Losses.Losses {
		end.Losses = append(end.Losses, l.String())
	}
	return end
}

func toolEvent(ev tool.Event) (*toolEventJSON, error) {
	of := func(typ string, c tool.CallRef) *toolEventJSON {
		return &toolEventJSON{Type: typ, CallID: c.CallID, Tool: c.Key.QualifiedName()}
	}
	var out *toolEventJSON
	switch ev := ev.(type) {
	case tool.CallStarted:
		out = of("started", ev.CallRef)
		out.Input = &ev.Input
	case tool.Progress:
		out = of("progress", ev.CallRef)
		for _, p := range ev.Parts {
			b, err := dragoman.MarshalPart(p)
			if err != nil {
				return nil, err
			}
			out.Parts = append(out.Parts, b)
		}
	case tool.PolicyDecided:
		out = of("policy_decided", ev.CallRef)
		out.Subject, out.Model, out.Target, out.Decision = ev.Subject, ev.Model, ev.Target, &ev.Decision
	case tool.ApprovalRequested:
		out = of("approval_requested", ev.CallRef)
		out.Pending = &ev.Pending
	case tool.CallEnded:
		out = of("ended", ev.CallRef)
		out.Record = &ev.Record
	case tool.LateReturn:
		out = of("late_return", ev.CallRef)
	}
	return out, nil
}
