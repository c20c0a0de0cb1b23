package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// State is a run that has stopped, as versioned JSON: store it, and give it to
// [Agent.Resume], in any process that has the same agents and tools. It holds what
// was said and what humans decided: keep it where the conversation may be kept,
// and take none from strangers.
//
// Resume a state once. Without a store nothing notices that the run went on, and its
// approved calls run again; with one, Resume returns [ErrState].
//
// The JSON does not include long tool outputs that a run without a store holds in memory.
// In a run that is resumed from JSON, the tool "read_tool_output" reports that they are
// gone.
type State struct {
	s      state
	memory *tool.MemorySpill
}

// stateVersion is that of the JSON. Older ones are read, newer ones refused.
const stateVersion = 1

// Phase is where a run stands.
type phase string

const (
	// asking: the model is to be asked next.
	asking phase = "asking"
	// calling: the last answer has calls that are not all answered.
	calling phase = "calling"
	// finished: the run is over.
	finished phase = "finished"
)

// state is what a run knows, beside its conversation.
type state struct {
	V     int    `json:"v"`
	Run   string `json:"run"`
	Agent string `json:"agent"`
	Turn  int    `json:"turn"`
	Phase phase  `json:"phase"`

	Usage   dragoman.Usage `json:"usage"`
	Cost    float64        `json:"cost,omitempty"`
	Calls   int            `json:"calls,omitempty"`
	Elapsed time.Duration  `json:"elapsed,omitempty"`

	// Found are the deferred tools that a search found.
	Found []tool.Key `json:"found,omitempty"`
	// Chosen says that a forced tool choice was obeyed.
	Chosen bool `json:"chosen,omitempty"`
	// Paused says that the last response paused: the model continues it next.
	Paused bool `json:"paused,omitempty"`
	// Corrected counts the corrections of structured output.
	Corrected int `json:"corrected,omitempty"`
	// Recent and Failures are what the loop breakers remember.
	Recent   []string `json:"recent,omitempty"`
	Failures int      `json:"failures,omitempty"`
	// Offset is where the part of the conversation begins that this agent sees,
	// after a handoff that filtered it; Seen is what it sees instead.
	Seen   []dragoman.Message `json:"seen,omitempty"`
	Offset int                `json:"offset,omitempty"`

	// Waiting are earlier runs of the same conversation whose tools may still work in
	// the background; Background says that those of this one may.
	Waiting    []string `json:"waiting,omitempty"`
	Background bool     `json:"background,omitempty"`
	// Partial is the text of a response that broke off. When the run is resumed, the model
	// is asked again; with new input, the text stays as the assistant's message.
	Partial string `json:"partial,omitempty"`
	// Output is the answer of a run that no model gave it.
	Output string `json:"output,omitempty"`
	// Failed is why a run that is over has no answer that counts.
	Failed *failedRun `json:"failed,omitempty"`

	// Stopped is the stop of a guardrail while the tools of the turn ran.
	Stopped *storedStop `json:"stopped,omitempty"`
	// Pending are the calls of the turn that wait, Settled the results of the
	// others.
	Pending []tool.Pending         `json:"pending,omitempty"`
	Settled []*dragoman.ToolResult `json:"settled,omitempty"`
	// Done are the records of those that have run, with what they said unfenced.
	Done []doneCall `json:"done,omitempty"`
	// Records are the records of the last settled calls of the run, unless its store has
	// them. Recorded counts all settled calls.
	Records  []*storedRecord `json:"records,omitempty"`
	Recorded int             `json:"recorded,omitempty"`
	// Degraded are the tools that failures removed from the run.
	Degraded []degradedTool `json:"degraded,omitempty"`
	Ledger   *policy.Ledger `json:"ledger,omitzero"`

	// Messages are the conversation, where no store keeps it; Begun is how many of
	// them were there before the run.
	Messages []dragoman.Message `json:"messages,omitempty"`
	Begun    int                `json:"begun,omitempty"`
}

// failedRun is the error that a run ended with, as it is stored.
type failedRun struct {
	Guardrail bool   `json:"guardrail,omitempty"`
	Text      string `json:"text"`
}

// fail ends the run with an error, for those too who look at it later.
func (r *run) fail(err error) error {
	r.state.Phase = finished
	r.state.Failed = &failedRun{Guardrail: errors.Is(err, ErrGuardrail), Text: tool.ModelText(err)}
	return err
}

// failure is the error of a run that is over.
func (s *state) failure() error {
	switch {
	case s.Phase != finished || s.Failed == nil:
		return nil
	case s.Failed.Guardrail:
		return fmt.Errorf("%w, when it ran: %s", ErrGuardrail, s.Failed.Text)
	default:
		return fmt.Errorf("%w, when it ran: %s", ErrAnswer, s.Failed.Text)
	}
}

// degradedTool is a tool that a failure removed from a run.
type degradedTool struct {
	Agent string   `json:"agent"`
	Key   tool.Key `json:"key"`
}

// doneCall is the record of a call of a turn that is not over.
type doneCall struct {
	Record tool.Record `json:"record"`
	Plain  string      `json:"plain,omitempty"`
}

// MarshalJSON writes the state.
func (s State) MarshalJSON() ([]byte, error) { return s.s.encode() }

// encode is what encoding/json makes of the fields, without looking for them: a run
// that is stored writes its state twice in each turn.
func (s *state) encode() ([]byte, error) {
	usage, err := s.Usage.MarshalJSON()
	size := 176 + len(s.Run) + len(s.Agent) + len(usage) + 36*len(s.Recent) + len(s.Partial) + len(s.Output)
	w := stateWriter{Writer: jsonwire.Writer{Buf: make([]byte, 0, size)}}
	w.BeginObject()
	w.IntField("v", int64(s.V))
	w.StringField("run", s.Run)
	w.StringField("agent", s.Agent)
	w.IntField("turn", int64(s.Turn))
	w.StringField("phase", string(s.Phase))
	w.encoded("usage", usage, err)
	if s.Cost != 0 {
		w.value("cost", s.Cost)
	}
	w.count("calls", int64(s.Calls))
	w.count("elapsed", int64(s.Elapsed))
	w.list("found", s.Found, len(s.Found))
	w.flag("chosen", s.Chosen)
	w.flag("paused", s.Paused)
	w.count("corrected", int64(s.Corrected))
	w.texts("recent", s.Recent)
	w.count("failures", int64(s.Failures))
	w.list("seen", s.Seen, len(s.Seen))
	w.count("offset", int64(s.Offset))
	w.texts("waiting", s.Waiting)
	w.flag("background", s.Background)
	w.StringFieldIf("partial", s.Partial)
	w.StringFieldIf("output", s.Output)
	if s.Failed != nil {
		w.value("failed", s.Failed)
	}
	if s.Stopped != nil {
		w.value("stopped", s.Stopped)
	}
	w.list("pending", s.Pending, len(s.Pending))
	w.list("settled", s.Settled, len(s.Settled))
	w.list("done", s.Done, len(s.Done))
	w.list("records", s.Records, len(s.Records))
	w.count("recorded", int64(s.Recorded))
	w.list("degraded", s.Degraded, len(s.Degraded))
	if s.Ledger != nil && !s.Ledger.IsZero() {
		w.value("ledger", s.Ledger)
	}
	w.list("messages", s.Messages, len(s.Messages))
	w.count("begun", int64(s.Begun))
	w.EndObject()
	return w.Buf, errors.Join(w.err, w.Err())
}

// stateWriter writes members, most of them unless they are zero.
type stateWriter struct {
	jsonwire.Writer
	err error
}

// value writes what has a form of its own, or is seldom there.
func (w *stateWriter) value(name string, v any) {
	m, ok := v.(json.Marshaler)
	var b []byte
	var err error
	if ok {
		b, err = m.MarshalJSON()
	} else {
		b, err = json.Marshal(v)
	}
	w.encoded(name, b, err)
}

// encoded writes a value as JSON, or records the error of encoding it.
func (w *stateWriter) encoded(name string, b []byte, err error) {
	if err != nil {
		w.err, b = errors.Join(w.err, err), []byte("null")
	}
	w.RawField(name, b)
}

func (w *stateWriter) list(name string, v any, n int) {
	if n > 0 {
		w.value(name, v)
	}
}

func (w *stateWriter) texts(name string, list []string) {
	if len(list) == 0 {
		return
	}
	w.Key(name)
	w.BeginArray()
	for _, s := range list {
		w.String(s)
	}
	w.EndArray()
}

func (w *stateWriter) count(name string, n int64) {
	if n != 0 {
		w.IntField(name, n)
	}
}

func (w *stateWriter) flag(name string, on bool) {
	if on {
		w.BoolField(name, true)
	}
}

// UnmarshalJSON reads a state. One of a newer version is refused.
func (s *State) UnmarshalJSON(b []byte) error {
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	switch {
	case head.V <= 0:
		return fmt.Errorf("%w: it has no version: it is no state of a run", ErrState)
	case head.V > stateVersion:
		return fmt.Errorf("%w: it is of version %d, and this program knows %d; update it", ErrState, head.V, stateVersion)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	var in state
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	if err := in.check(); err != nil {
		return err
	}
	*s = State{s: in}
	return nil
}

// check refuses what cannot be a state.
func (s *state) check() error {
	switch {
	case s.Run == "":
		return fmt.Errorf("%w: it names no run", ErrState)
	case s.Turn < 0, s.Begun < 0, s.Offset < 0, s.Elapsed < 0, s.Calls < 0, s.Recorded < 0, s.Cost < 0:
		return fmt.Errorf("%w: it has a negative number", ErrState)
	case slices.Contains(s.Settled, nil):
		return fmt.Errorf("%w: a settled result is null", ErrState)
	case slices.Contains(s.Records, nil):
		return fmt.Errorf("%w: a record is null", ErrState)
	}
	switch s.Phase {
	case asking, calling, finished:
		return nil
	default:
		return fmt.Errorf("%w: it stands at %.40q, which is no phase", ErrState, s.Phase)
	}
}

// own is the state for a run that goes on from it: what that adds, and what humans
// decide there, is not in this one.
func (s state) own() (state, error) {
	s.Settled, s.Done = slices.Clip(s.Settled), slices.Clip(s.Done)
	s.Records, s.Degraded = slices.Clip(s.Records), slices.Clip(s.Degraded)
	s.Found, s.Recent, s.Waiting = slices.Clip(s.Found), slices.Clip(s.Recent), slices.Clip(s.Waiting)
	if s.Ledger == nil {
		return s, nil
	}
	b, err := s.Ledger.MarshalJSON()
	if err != nil {
		return s, fmt.Errorf("%w: %w", ErrState, err)
	}
	s.Ledger = &policy.Ledger{}
	if err := s.Ledger.UnmarshalJSON(b); err != nil {
		return s, fmt.Errorf("%w: %w", ErrState, err)
	}
	return s, nil
}

// Stored is the state that a store has of its last run; nil: it has none. Its pending
// calls are what [Agent.Resume] waits for decisions on.
func Stored(ctx context.Context, s Store) (*State, error) {
	_, stored, err := s.Load(ctx)
	if err != nil || stored == nil {
		return nil, err
	}
	var state State
	if err := json.Unmarshal(stored, &state); err != nil {
		return nil, err
	}
	return &state, nil
}

// Run names the run.
func (s *State) Run() string { return s.s.Run }

// Done reports whether the run is over: there is nothing to resume.
func (s *State) Done() bool { return s.s.Phase == finished }

// Partial returns the text of a response that broke off, such as one that was
// canceled. It is not part of the conversation yet: new input in the same store
// appends it as an assistant message first, and [Agent.Resume] asks the model again
// and drops it. It is empty if the agent has output guardrails.
func (s *State) Partial() string { return s.s.Partial }

// Pending are the calls that wait for humans.
func (s *State) Pending() []tool.Pending { return leaves(s.s.Pending) }

// leaves are the calls that humans are asked about: those of agents that run as
// tools stand for them.
func leaves(pending []tool.Pending) []tool.Pending {
	var out []tool.Pending
	for _, p := range pending {
		if len(p.Inner) > 0 {
			out = append(out, leaves(p.Inner)...)
			continue
		}
		out = append(out, p)
	}
	return out
}

// snapshot is the state of a run now, for who goes on with it.
func (r *run) snapshot() *State { return &State{r.current(), r.memory} }

// current is the state of a run now, with its conversation where nobody else keeps
// it.
func (r *run) current() state {
	s := r.state
	s.Elapsed, s.Ledger = r.elapsed(), r.decided.ledger
	if r.store == nil {
		s.Messages = r.messages
	}
	return s
}
