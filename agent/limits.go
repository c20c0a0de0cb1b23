package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/tool"
)

// Limits end runs that do not end by themselves. The limits of the agent that began a run
// apply to the whole run.
type Limits struct {
	// Turns limits the number of model calls; zero means 20. Retries and resumptions do
	// not count.
	Turns int
	// ToolCalls limits the number of calls that run; zero means no limit. Calls of a turn
	// that exceed it are answered with an error.
	ToolCalls int
	// Time bounds the duration of the run, without its interruptions; zero means 6 hours,
	// negative no limit. Models and tools that run when the time is over are canceled.
	Time time.Duration
	// Tokens limits the input and output tokens together; zero means no limit.
	Tokens int64
	// Cost limits the cost of the run, as computed by Agent.Price; zero means no limit.
	Cost float64

	// Repeats limits how often the same call may have the same result within the
	// last Window calls; zero means 5 within 10, negative means no limit.
	// Polling tools do not count.
	Repeats int
	Window  int
	// ErrorTurns ends the run after this many turns in a row in which every call
	// failed; zero means 5, negative never. Calls of a response that was cut off
	// count as failed.
	ErrorTurns int
	// EmptyResponses limits how often the model is called again after an empty response; zero
	// means 2, negative never.
	EmptyResponses int
	// Pauses limits how often in a row a model may pause for its own tools; zero
	// means 10.
	Pauses int
	// Corrections limits how often invalid structured output goes back to the model;
	// zero means 2, negative never.
	Corrections int
}

const (
	defaultTurns       = 20
	defaultTime        = 6 * time.Hour
	defaultRepeats     = 5
	defaultWindow      = 10
	defaultErrorTurns  = 5
	defaultBlanks      = 2
	defaultPauses      = 10
	defaultCorrections = 2
)

// orDefault returns n, the default if n is zero, or zero if n is negative.
func orDefault(n, zero int) int {
	switch {
	case n == 0:
		return zero
	case n < 0:
		return 0
	default:
		return n
	}
}

// time returns the bound on the duration of a run; zero or less means no limit.
func (l *Limits) time() time.Duration {
	if l.Time == 0 {
		return defaultTime
	}
	return l.Time
}

// checkLimits checks the limits before the next model call.
func (r *run) checkLimits() error {
	l, s := &r.agents.first.Limits, &r.state
	if most := orDefault(l.Turns, defaultTurns); s.Turn >= most {
		return &LimitError{"turns", fmt.Sprintf("at most %d", most)}
	}
	if l.ToolCalls > 0 && s.Calls >= l.ToolCalls {
		return &LimitError{"tool_calls", fmt.Sprintf("at most %d", l.ToolCalls)}
	}
	if most := l.time(); most > 0 && r.elapsed() >= most {
		return &LimitError{"time", fmt.Sprintf("at most %v", most)}
	}
	if used := s.Usage.Input.Or(0) + s.Usage.Output.Or(0); l.Tokens > 0 && used >= l.Tokens {
		return &LimitError{"tokens", fmt.Sprintf("at most %d, used %d", l.Tokens, used)}
	}
	if l.Cost > 0 && s.Cost >= l.Cost {
		return &LimitError{"cost", fmt.Sprintf("at most %g, spent %g", l.Cost, s.Cost)}
	}
	return nil
}

// elapsed returns the duration of the run, in this process and in earlier ones.
func (r *run) elapsed() time.Duration { return r.state.Elapsed + r.now().Sub(r.began) }

// addUsage adds two usages. Counts that are unknown in both stay unknown.
func addUsage(u, v dragoman.Usage) dragoman.Usage {
	sum := func(a, b dragoman.Count) dragoman.Count {
		if !a.Known && !b.Known {
			return a
		}
		return dragoman.Counted(a.Or(0) + b.Or(0))
	}
	return dragoman.Usage{
		Input: sum(u.Input, v.Input), CacheRead: sum(u.CacheRead, v.CacheRead), CacheWrite: sum(u.CacheWrite, v.CacheWrite),
		Output: sum(u.Output, v.Output), Reasoning: sum(u.Reasoning, v.Reasoning),
	}
}

// checkProgress returns an error if the same call has had the same result too often, or if every
// call failed for too many turns (quirk I1). A result that changes is progress. Calls
// without a record were refused before they reached a tool.
func (r *run) checkProgress(p *preparedAgent, calls []*dragoman.ToolCall, records []tool.Record, results []*dragoman.ToolResult) error {
	l, s := &r.agents.first.Limits, &r.state
	failed := len(results) > 0
	for i := range records {
		rec := &records[i]
		failed = failed && !rec.OK
		if most := orDefault(l.Repeats, defaultRepeats); most > 0 && !polls(p.box, rec.Key) {
			if times := s.repeated(digest(rec, calls, results), max(orDefault(l.Window, defaultWindow), most+1)); times > most {
				return &LoopError{Tool: rec.Tool, Times: times}
			}
		}
	}
	if !failed {
		s.Failures = 0
		return nil
	}
	return r.failedTurn()
}

// failedTurn counts a turn in which every call failed. It returns an error after too many
// such turns in a row.
func (r *run) failedTurn() error {
	s := &r.state
	s.Failures++
	if most := orDefault(r.agents.first.Limits.ErrorTurns, defaultErrorTurns); most > 0 && s.Failures >= most {
		return &LoopError{Times: s.Failures}
	}
	return nil
}

// repeated adds a call to the window and returns how often the window has it.
func (s *state) repeated(digest string, window int) (times int) {
	s.Recent = append(s.Recent, digest)
	if extra := len(s.Recent) - window; extra > 0 {
		s.Recent = s.Recent[extra:]
	}
	for _, d := range s.Recent {
		if d == digest {
			times++
		}
	}
	return times
}

func polls(box *tool.Box, k tool.Key) bool {
	t, ok := box.Find(k)
	if !ok {
		return false
	}
	s, ok := t.(interface{ Settings() tool.Settings })
	return ok && s.Settings().Polling
}

// digest identifies a call with its result, including content such as a screenshot. It uses
// the arguments of the call, because records hide secrets: two different ones look the same.
func digest(rec *tool.Record, calls []*dragoman.ToolCall, results []*dragoman.ToolResult) string {
	args := rec.Raw
	for _, c := range calls {
		if c.ID == rec.CallID {
			args = c.Arguments
		}
	}
	b := appendSized(make([]byte, 0, 512), rec.Key.String())
	b = appendSized(b, sameArguments(make([]byte, 0, 128), []byte(args)))
	b = appendSized(b, rec.ErrorKind)
	if rec.Cut != nil { // the text contains the name of the stored output, which differs for each call
		b = appendSized(b, rec.Cut.Whole[:])
	} else {
		b = appendSized(b, rec.Plain)
	}
	for _, res := range results {
		if res.CallID != rec.CallID {
			continue
		}
		if e := res.Envelope; e != nil {
			b = appendSized(appendSized(b, e.Format), e.JSON)
		}
		if rec.Cut != nil {
			continue // Cut.Whole covers the parts
		}
		for _, p := range res.Content {
			if _, text := p.(*dragoman.Text); text {
				continue // Plain has the text without its fence, which may differ
			}
			part, err := json.Marshal(p)
			b = fmt.Append(appendSized(b, part), err)
		}
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// appendSized appends a text after its length, so that adjacent texts cannot be confused.
func appendSized[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(append(strconv.AppendInt(b, int64(len(s)), 10), ':'), s...)
}

// sameArguments appends the same text for all equivalent arguments: whitespace and the order
// of fields do not matter, and the last of several fields with the same name counts. Input
// that is not a JSON object is appended unchanged.
func sameArguments(out, raw []byte) []byte {
	if !bytes.ContainsAny(raw, ", \t\r\n") {
		return append(out, raw...)
	}
	type member struct {
		name  string
		value []byte
	}
	var members []member
	r := jsonwire.Borrow(raw)
	defer r.Return()
	if r.Kind() != '{' {
		return append(out, raw...)
	}
	for name := range r.Object() {
		members = append(members, member{string(name), r.Raw()})
	}
	if r.End() != nil {
		return append(out, raw...)
	}
	slices.SortStableFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	out = append(out, '{')
	for i, m := range members {
		if i+1 < len(members) && members[i+1].name == m.name {
			continue
		}
		if out[len(out)-1] != '{' {
			out = append(out, ',')
		}
		out = append(strconv.AppendQuote(out, m.name), ':')
		out = sameArguments(out, m.value)
	}
	return append(out, '}')
}
