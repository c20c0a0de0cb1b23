package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

// State is a stopped run as versioned JSON. Store it, and pass it to [Agent.Resume] in any
// process that has the same agents and tools. It holds the conversation and the decisions of
// humans: protect it like the conversation, and do not accept a state from an untrusted
// source.
//
// Resume a state once. Without a store nothing detects that the run has continued, and its
// approved calls run again; with one, Resume returns [ErrState].
//
// The JSON does not include long tool outputs that a run without a store holds in memory.
// In a run that is resumed from JSON, the tool "read_tool_output" reports that they are
// gone.
type State struct {
	s      state
	memory *tool.MemorySpill
}

// stateVersion is the version of the JSON. Older versions are read, newer ones are refused.
const stateVersion = 1

// phase is the next step of a run.
type phase string

const (
	// asking: the model is called next.
	asking phase = "asking"
	// calling: the last response has calls that are not all answered.
	calling phase = "calling"
	// finished: the run is over.
	finished phase = "finished"
)

// state is the state of a run apart from its conversation.
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
	// Chosen is set once the model has followed a forced tool choice.
	Chosen bool `json:"chosen,omitempty"`
	// Paused is set if the last response paused: the model continues it next.
	Paused bool `json:"paused,omitempty"`
	// Corrected counts the corrections of structured output.
	Corrected int `json:"corrected,omitempty"`
	// Recent and Failures are the memory of the loop detection.
	Recent   []string `json:"recent,omitempty"`
	Failures int      `json:"failures,omitempty"`
	// After a handoff with a filter, Seen replaces the messages before Offset for this
	// agent.
	Seen   []dragoman.Message `json:"seen,omitempty"`
	Offset int                `json:"offset,omitempty"`

	// Waiting are earlier runs of the same conversation whose tools may still work in
	// the background; Background is set if tools of this run may.
	Waiting    []string `json:"waiting,omitempty"`
	Background bool     `json:"background,omitempty"`
	// Partial is the text of a response that broke off. Resuming the run calls the model
	// again; new input keeps the text as an assistant message.
	Partial string `json:"partial,omitempty"`
	// Output is the answer of the run if it came from AfterTools instead of a model.
	Output string `json:"output,omitempty"`
	// Failed is the reason why a finished run has no usable answer.
	Failed *failedRun `json:"failed,omitempty"`

	// Stopped is the stop of a guardrail while the tools of the turn ran.
	Stopped *storedStop `json:"stopped,omitempty"`
	// Pending are the calls of the turn that wait for humans, and Settled the results of
	// the others.
	Pending []tool.Pending         `json:"pending,omitempty"`
	Settled []*dragoman.ToolResult `json:"settled,omitempty"`
	// Done are the records of the finished calls, with their output without the fence.
	Done []doneCall `json:"done,omitempty"`
	// Records are the records of the last settled calls of the run, unless its store has
	// them. Recorded counts all settled calls.
	Records  []*storedRecord `json:"records,omitempty"`
	Recorded int             `json:"recorded,omitempty"`
	// Degraded are the tools that failures removed from the run.
	Degraded []degradedTool `json:"degraded,omitempty"`
	Ledger   *policy.Ledger `json:"ledger,omitzero"`

	// Messages are the conversation, if no store has it; Begun is the number of messages
	// before the run.
	Messages []dragoman.Message `json:"messages,omitempty"`
	Begun    int                `json:"begun,omitempty"`
}

// failedRun is the stored error of a finished run.
type failedRun struct {
	Guardrail bool   `json:"guardrail,omitempty"`
	Text      string `json:"text"`
}

// fail ends the run with an error and stores the error in the state.
func (r *run) fail(err error) error {
	r.state.Phase = finished
	r.state.Failed = &failedRun{Guardrail: errors.Is(err, ErrGuardrail), Text: tool.ModelText(err)}
	return err
}

// failure returns the error of a finished run, or nil.
func (s *state) failure() error {
	switch {
	case s.Phase != finished || s.Failed == nil:
		return nil
	case s.Failed.Guardrail:
		return inStoredRun(ErrGuardrail, s.Failed.Text)
	default:
		return inStoredRun(ErrResponse, s.Failed.Text)
	}
}

// inStoredRun returns the stored error of a run, whose text may begin with that of sentinel.
func inStoredRun(sentinel error, text string) error {
	return fmt.Errorf("%w (loaded from the stored run): %s", sentinel, strings.TrimPrefix(text, sentinel.Error()+": "))
}

// degradedTool is a tool that a failure removed from a run.
type degradedTool struct {
	Agent string   `json:"agent"`
	Key   tool.Key `json:"key"`
}

// doneCall is the record of a finished call in an unfinished turn.
type doneCall struct {
	Record tool.Record `json:"record"`
	Plain  string      `json:"plain,omitempty"`
}

// MarshalJSON writes the state.
func (s State) MarshalJSON() ([]byte, error) { return s.s.encode() }

// encode returns the same JSON as encoding/json, but without reflection: a stored run writes
// its state twice in each turn.
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

// stateWriter writes JSON fields. Most methods omit zero values.
type stateWriter struct {
	jsonwire.Writer
	err error
}

// value writes a field of a type that is rare or has its own MarshalJSON.
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

// UnmarshalJSON reads a state. It refuses a state of a newer version.
func (s *State) UnmarshalJSON(b []byte) error {
	var head struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return fmt.Errorf("%w: %w", ErrState, err)
	}
	switch {
	case head.V <= 0:
		return fmt.Errorf("%w: the JSON has no version, so it is not a run state", ErrState)
	case head.V > stateVersion:
		return fmt.Errorf("%w: the state has version %d, but this program supports up to %d; update the program", ErrState, head.V, stateVersion)
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

// check refuses a state that no run can have written.
func (s *state) check() error {
	switch {
	case s.Run == "":
		return fmt.Errorf("%w: the state has no run id", ErrState)
	case s.Turn < 0, s.Begun < 0, s.Offset < 0, s.Elapsed < 0, s.Calls < 0, s.Recorded < 0, s.Cost < 0:
		return fmt.Errorf("%w: the state has a negative number", ErrState)
	case slices.Contains(s.Settled, nil):
		return fmt.Errorf("%w: a settled result is null", ErrState)
	case slices.Contains(s.Records, nil):
		return fmt.Errorf("%w: a record is null", ErrState)
	}
	switch s.Phase {
	case asking, calling, finished:
		return nil
	default:
		return fmt.Errorf("%w: unknown phase %.40q", ErrState, s.Phase)
	}
}

// copyForRun returns a copy for a run that continues from s: additions and decisions of that run do
// not change s.
func (s state) copyForRun() (state, error) {
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

// LoadState returns the state of the last run in a store, or nil if there is none. The methods
// of a nil State report a run that is done. To resume the run, pass the state, [In] with the
// same store, and decisions on its pending calls to [Agent.Resume].
func LoadState(ctx context.Context, s Store) (*State, error) {
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

// fields returns the fields of the state; those of a nil State are those of a finished run.
func (s *State) fields() state {
	if s == nil {
		return state{Phase: finished}
	}
	return s.s
}

// Run returns the id of the run.
func (s *State) Run() string { return s.fields().Run }

// Done reports whether the run is over, so that there is nothing to resume.
func (s *State) Done() bool { return s.fields().Phase == finished }

// Partial returns the text of a response that broke off, such as one that was
// canceled. It is not part of the conversation yet: new input in the same store
// appends it as an assistant message first, and [Agent.Resume] calls the model again
// and drops it. It is empty if the agent has output guardrails.
func (s *State) Partial() string { return s.fields().Partial }

// Pending returns the calls that wait for a human decision.
func (s *State) Pending() []tool.Pending { return leaves(s.fields().Pending) }

// leaves returns the calls that humans decide on. A pending call of an agent that runs as a
// tool is replaced by the pending calls of that agent.
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

// snapshot returns the current state of the run for Result.State.
func (r *run) snapshot() *State { return &State{r.current(), r.memory} }

// current returns the current state of the run, with its conversation if no store has it.
func (r *run) current() state {
	s := r.state
	s.Elapsed, s.Ledger = r.elapsed(), r.decided.ledger
	if r.store == nil {
		s.Messages = r.messages
	}
	return s
}
