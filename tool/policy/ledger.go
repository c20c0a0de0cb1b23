package policy

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// Ledger stores the decisions of humans. It is a [tool.Approver] that returns stored decisions
// and leaves other calls undecided.
//
// A decision on a call covers exactly its [tool.Binding]: run, turn, call, tool, arguments and
// policy (requirement A4, quirk I9). It takes precedence over sticky decisions; a later one on
// the same call replaces it.
//
// A sticky decision covers the calls of one tool, with its current definition, in one run under
// one policy. It is stored under the tool's canonical approval key, and never covers a tool
// with the same bare name, another run or a nested one.
//
// The zero value is ready to use. A Ledger is safe for concurrent use, and can be stored as
// JSON.
type Ledger struct {
	mu      sync.Mutex
	calls   map[tool.Binding]tool.Answer
	sticky  map[sticky]tool.Answer
	changed chan struct{} // closed at the next change
}

var _ tool.Approver = (*Ledger)(nil)

// sticky is the scope of a sticky decision.
type sticky struct {
	Run    string               `json:"run"`
	Key    string               `json:"key"`
	Tool   dragoman.Fingerprint `json:"tool"`
	Policy string               `json:"policy"`
}

func stickyOf(b tool.Binding) sticky {
	return sticky{Run: b.Run, Key: b.Key.ApprovalKey(), Tool: b.Tool, Policy: b.Policy}
}

// ErrDecision is wrapped by every error about an answer that cannot be recorded.
var ErrDecision = errors.New("policy: invalid decision")

// Decide records a decision on one call, which replaces an earlier one, and, if it is sticky,
// on the later calls of the tool. Undecided removes the decision.
func (l *Ledger) Decide(b tool.Binding, a tool.Answer) error {
	if err := checkAnswer(a); err != nil {
		return err
	}
	if a.Sticky {
		a.Sticky = false
		l.stick(b, tool.Answer{Verdict: a.Verdict, Message: a.Message})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.Verdict == tool.Undecided {
		delete(l.calls, b)
		return nil
	}
	if l.calls == nil {
		l.calls = map[tool.Binding]tool.Answer{}
	}
	l.calls[b] = copyAnswer(a)
	l.notify()
	return nil
}

// Always approves all calls of the binding's tool for the rest of its run.
func (l *Ledger) Always(b tool.Binding) { l.stick(b, tool.Answer{Verdict: tool.Approved}) }

// Never rejects all calls of the binding's tool for the rest of its run. The
// message is shown to the model.
func (l *Ledger) Never(b tool.Binding, message string) {
	l.stick(b, tool.Answer{Verdict: tool.Rejected, Message: message})
}

func (l *Ledger) stick(b tool.Binding, a tool.Answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sticky == nil {
		l.sticky = map[sticky]tool.Answer{}
	}
	l.sticky[stickyOf(b)] = a
	l.notify()
}

// Forget drops the decisions of a run that has ended.
func (l *Ledger) Forget(run string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for b := range l.calls {
		if b.Run == run {
			delete(l.calls, b)
		}
	}
	for s := range l.sticky {
		if s.Run == run {
			delete(l.sticky, s)
		}
	}
}

// notify wakes waiting approvers.
func (l *Ledger) notify() {
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// Approve returns the stored decision on this call, otherwise the sticky one. A call that needs
// a value gets no sticky approval, because that has no value. An answer that could not be used is
// not returned again.
func (l *Ledger) Approve(_ context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
	if l == nil || req == nil {
		return tool.Answer{}, nil
	}
	a, _ := l.lookup(req)
	return a, nil
}

// lookup returns the decision, and a channel that is closed when it may change.
func (l *Ledger) lookup(req *tool.ApprovalRequest) (tool.Answer, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a, ok := l.calls[req.Binding]; ok && !req.Refused(a) {
		return copyAnswer(a), nil
	}
	a, ok := l.sticky[stickyOf(req.Binding)]
	if ok && (req.Wanted == nil && req.Problem == "" || a.Verdict == tool.Rejected) {
		return a, nil
	}
	if l.changed == nil {
		l.changed = make(chan struct{})
	}
	return tool.Answer{}, l.changed
}

// checkAnswer refuses answers that contradict themselves.
func checkAnswer(a tool.Answer) error {
	switch a.Verdict {
	case tool.Approved, tool.Rejected, tool.Undecided:
	default:
		return fmt.Errorf("%w: unknown verdict %q", ErrDecision, a.Verdict)
	}
	switch {
	case a.Verdict != tool.Approved && (a.Edited != nil || a.Value != nil):
		return fmt.Errorf("%w: only an approval has an edited input or a value", ErrDecision)
	case a.Verdict == tool.Undecided && a.Sticky:
		return fmt.Errorf("%w: without a verdict, it cannot be sticky", ErrDecision)
	case a.Value != nil && !json.Valid(a.Value):
		return fmt.Errorf("%w: the value is not JSON", ErrDecision)
	case a.Edited != nil && a.Edited.Arguments != nil && !json.Valid(a.Edited.Arguments):
		return fmt.Errorf("%w: the edited arguments are not JSON", ErrDecision)
	}
	return nil
}

// copyAnswer returns a deep copy.
func copyAnswer(a tool.Answer) tool.Answer {
	a.Value = slices.Clone(a.Value)
	if a.Edited != nil {
		a.Edited = &tool.Input{Arguments: slices.Clone(a.Edited.Arguments), Text: a.Edited.Text}
	}
	return a
}

// ledgerVersion is the version of the stored form.
const ledgerVersion = 1

// errNewerVersion reports data that a newer version of this module stored.
var errNewerVersion = errors.New("policy: stored by a newer version")

type storedLedger struct {
	Version int            `json:"version"`
	Calls   []storedCall   `json:"calls,omitempty"`
	Sticky  []storedSticky `json:"sticky,omitempty"`
}

type storedCall struct {
	Binding tool.Binding `json:"binding"`
	Answer  tool.Answer  `json:"answer"`
}

type storedSticky struct {
	sticky
	Verdict tool.Verdict `json:"verdict"`
	Message string       `json:"message,omitempty"`
}

// IsZero reports whether the ledger has no decisions, so that it need not be stored.
func (l *Ledger) IsZero() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.calls) == 0 && len(l.sticky) == 0
}

// MarshalJSON encodes the decisions in a stable order.
func (l *Ledger) MarshalJSON() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := storedLedger{Version: ledgerVersion}
	for b, a := range l.calls {
		out.Calls = append(out.Calls, storedCall{b, a})
	}
	for s, a := range l.sticky {
		out.Sticky = append(out.Sticky, storedSticky{s, a.Verdict, a.Message})
	}
	slices.SortFunc(out.Calls, func(a, b storedCall) int { return compareBindings(a.Binding, b.Binding) })
	slices.SortFunc(out.Sticky, func(a, b storedSticky) int {
		return cmp.Or(strings.Compare(a.Run, b.Run), strings.Compare(a.Key, b.Key),
			bytes.Compare(a.Tool[:], b.Tool[:]), strings.Compare(a.Policy, b.Policy))
	})
	return json.Marshal(out)
}

func compareBindings(a, b tool.Binding) int {
	return cmp.Or(
		strings.Compare(a.Run, b.Run), cmp.Compare(a.Turn, b.Turn), strings.Compare(a.CallID, b.CallID),
		strings.Compare(a.Key.String(), b.Key.String()), bytes.Compare(a.Tool[:], b.Tool[:]),
		bytes.Compare(a.Arguments[:], b.Arguments[:]), strings.Compare(a.Policy, b.Policy),
	)
}

// UnmarshalJSON replaces the decisions with stored ones. It returns an error for data of a
// newer version and for unknown fields.
func (l *Ledger) UnmarshalJSON(data []byte) error {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return fmt.Errorf("policy: reading the ledger: %w", err)
	}
	if version.Version > ledgerVersion {
		return fmt.Errorf("%w: the ledger has version %d, but this program supports versions up to %d", errNewerVersion, version.Version, ledgerVersion)
	}
	if version.Version < 1 {
		return errors.New("policy: the ledger has no version")
	}
	var in storedLedger
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("policy: reading the ledger: %w", err)
	}
	calls, sticky := map[tool.Binding]tool.Answer{}, map[sticky]tool.Answer{}
	for _, c := range in.Calls {
		if err := checkAnswer(c.Answer); err != nil || c.Answer.Verdict == tool.Undecided {
			return fmt.Errorf("policy: reading the ledger: %w: %q", ErrDecision, c.Answer.Verdict)
		}
		calls[c.Binding] = c.Answer
	}
	for _, s := range in.Sticky {
		if s.Verdict != tool.Approved && s.Verdict != tool.Rejected {
			return fmt.Errorf("policy: reading the ledger: %w: %q", ErrDecision, s.Verdict)
		}
		sticky[s.sticky] = tool.Answer{Verdict: s.Verdict, Message: s.Message}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls, l.sticky = calls, sticky
	l.notify()
	return nil
}
