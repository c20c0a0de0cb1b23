package agent

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

// maxStoredRecords bounds the records in a state. A run rewrites its state in every turn,
// so this bounds what a long run writes; older records are rebuilt from the conversation.
// A recordStore stores all records, outside the state.
const maxStoredRecords = 200

// maxStoredError is the longest error text that a stored record repeats, in bytes.
const maxStoredError = 1000

// stripped returns a record without the texts that the conversation holds.
func stripped(r tool.Record) tool.Record {
	r.Run, r.Output, r.Plain, r.Raw, r.Cause = "", "", "", "", nil
	if len(r.Error) > maxStoredError {
		r.Error = ""
	}
	return r
}

// storedRecord is the record of a settled call in a state. It is encoded once, although the
// state is written in every turn.
type storedRecord struct {
	record *tool.Record
	once   sync.Once
	json   []byte
	err    error
}

// MarshalJSON writes the record.
func (s *storedRecord) MarshalJSON() ([]byte, error) {
	s.once.Do(func() { s.json, s.err = json.Marshal(stripped(*s.record)) })
	return s.json, s.err
}

// UnmarshalJSON reads the record.
func (s *storedRecord) UnmarshalJSON(b []byte) error {
	s.record = new(tool.Record)
	return json.Unmarshal(b, s.record)
}

// keepRecords adds the records of settled calls to the next save.
func (r *run) keepRecords(records []tool.Record) {
	_, apart := r.store.(recordStore)
	for i := range records {
		switch {
		case records[i].Pending:
			continue
		case apart:
			r.unsaved = append(r.unsaved, stripped(records[i]))
		default:
			r.state.Records = append(r.state.Records, &storedRecord{record: &records[i]})
		}
		r.state.Recorded++
	}
	if n := len(r.state.Records) - maxStoredRecords; n > 0 {
		r.state.Records = slices.Clone(r.state.Records[n:])
	}
}

// storedRecords returns the records of the state and of the store, in order.
func (r *run) storedRecords(ctx context.Context) ([]tool.Record, error) {
	out := make([]tool.Record, 0, len(r.state.Records))
	for _, s := range r.state.Records {
		out = append(out, stripped(*s.record))
	}
	s, ok := r.store.(recordStore)
	if !ok {
		return out, nil
	}
	more, err := s.Records(ctx, r.state.Run)
	if err != nil {
		return nil, errorf("loading the records of the run: %w", err)
	}
	return append(out, more...), nil
}

// settledCall is a call of the conversation with its result.
type settledCall struct {
	call   *dragoman.ToolCall
	result *dragoman.ToolResult
	// turn is the number of the turn, counted from the responses in the conversation.
	turn int
}

// settledCalls returns the calls of a run that have results, in order: those of the
// conversation, and those that the current turn has settled.
func (r *run) settledCalls() []settledCall {
	var out []settledCall
	ms := r.messages[min(r.state.Begun, len(r.messages)):]
	var open []*dragoman.ToolCall
	turn := 0
	for i := range ms {
		m := &ms[i]
		if m.Role == dragoman.RoleAssistant {
			if i == 0 || ms[i-1].Role != dragoman.RoleAssistant {
				turn, open = turn+1, nil
			}
			open = append(open, m.ToolCalls()...)
			continue
		}
		for _, p := range m.Parts {
			res, ok := p.(*dragoman.ToolResult)
			if !ok {
				continue
			}
			at := slices.IndexFunc(open, func(c *dragoman.ToolCall) bool { return c.ID == res.CallID && !c.Hosted })
			if at >= 0 {
				out = append(out, settledCall{open[at], res, turn})
				open = slices.Delete(slices.Clone(open), at, at+1)
			}
		}
	}
	for _, res := range r.state.Settled {
		at := slices.IndexFunc(open, func(c *dragoman.ToolCall) bool { return c.ID == res.CallID })
		if at >= 0 {
			out = append(out, settledCall{open[at], res, r.state.Turn})
		}
	}
	return out
}

// restoreRecords returns the records of the calls before the run was resumed. The records
// in the state and the store have no texts. Missing records are rebuilt from the
// conversation, without times and decisions.
func (r *run) restoreRecords(ctx context.Context) ([]tool.Record, error) {
	settled := r.settledCalls()
	stored, err := r.storedRecords(ctx)
	if err != nil {
		return nil, err
	}
	older := r.state.Recorded > len(stored) || r.state.Recorded == 0 && r.state.Calls > 0
	out := make([]tool.Record, 0, len(settled))
	// From the last to the first: ids may repeat in later turns.
	for _, s := range slices.Backward(settled) {
		var rec tool.Record
		switch n := len(stored); {
		case n > 0:
			if stored[n-1].CallID != s.call.ID {
				continue // answered by the loop: it has no record
			}
			rec, stored = stored[n-1], stored[:n-1]
		case older:
			rec = tool.Record{
				Key: tool.KeyOfCall(r.active.withToolKey(s.call)), Turn: s.turn, CallID: s.call.ID, Agent: slices.Clone(r.path),
				OK: s.result.Outcome != codes.OutcomeError, Replayed: true, Attempt: 1,
			}
			rec.Tool = rec.Key.QualifiedName()
			rec.Trace = rec.Key.TraceName("")
			if !rec.OK {
				rec.ErrorKind = tool.ErrorFailed
			}
		default:
			continue
		}
		rec.Run, rec.Output = r.state.Run, s.result.Text()
		rec.Plain = s.result.PlainText()
		rec.Raw = r.redact(s.call.Arguments)
		if !rec.OK && rec.Error == "" {
			rec.Error = rec.Plain
		}
		out = append(out, rec)
	}
	slices.Reverse(out)
	return out, nil
}

// redact removes secrets from a text, with the redactor of the current agent.
func (r *run) redact(text string) string {
	var redactor *tool.Redactor
	if r.active.Runner != nil {
		redactor = r.active.Runner.Redactor
	}
	return redactor.Redact(text)
}
