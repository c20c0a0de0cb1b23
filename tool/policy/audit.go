package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
)

// Audit writes decisions and calls to a log, one line of JSON for each (requirement P7).
// Arguments are logged as their hash, and outputs are not logged, but the errors of tools and the
// reasons of decisions are, and they may quote either. All texts are redacted.
//
// Each line is written with one Write, and lines never overlap. An Audit is safe for concurrent
// use. Do not change it while it is in use.
type Audit struct {
	// Redactor removes secrets; nil removes the common shapes of keys.
	Redactor *tool.Redactor
	// Sync makes each line durable before Observe returns, if the writer has a method Sync()
	// error, as files do.
	Sync bool
	// OnError is called for every line that could not be written; if nil, see Err.
	OnError func(error)
	// Now is the clock; nil means the system's.
	Now func() time.Time

	mu         sync.Mutex
	w          io.Writer
	err        error
	incomplete bool // the last line may be incomplete
}

// NewAudit returns an Audit that writes to w. Open a file for appending, as [OpenAudit] does.
func NewAudit(w io.Writer) *Audit { return &Audit{w: w} }

// OpenAudit returns an Audit that appends to a file. It creates a missing file, readable by its
// owner only. Close the returned closer when done.
func OpenAudit(name string) (*Audit, io.Closer, error) {
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("policy: opening the audit log: %w", err)
	}
	a := NewAudit(f)
	if info, err := f.Stat(); err == nil && info.Size() > 0 {
		a.incomplete = !endsLine(name, info.Size())
	}
	return a, f, nil
}

// endsLine reports whether a file ends with a complete line: a crash may have left a part of
// one.
func endsLine(name string, size int64) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close() //nolint:errcheck // only read
	var last [1]byte
	_, err = f.ReadAt(last[:], size-1)
	return err == nil && last[0] == '\n'
}

// Entry is a line of the log.
type Entry struct {
	Time time.Time `json:"time"`
	// Event is policy_decided, approval_requested, started, ended or late_return.
	Event string `json:"event"`
	Run   string `json:"run"`
	Turn  int    `json:"turn"`
	Call  string `json:"call"`
	// Subject is the kind of call, Model the model of a model call, and Target the agent of a
	// handoff.
	Subject string `json:"subject,omitempty"`
	Model   string `json:"model,omitempty"`
	Target  string `json:"target,omitempty"`
	// Tool is the qualified name, and Key the lookup key.
	Tool string   `json:"tool"`
	Key  tool.Key `json:"key"`
	// Arguments is the hash of the input.
	Arguments *tool.Hash `json:"arguments,omitempty"`

	Effect  tool.Effect `json:"effect,omitempty"`
	Rule    string      `json:"rule,omitempty"`
	Matches []string    `json:"matches,omitempty"`
	Reason  string      `json:"reason,omitempty"`
	// Edited lists the arguments that the policy set.
	Edited []string `json:"edited,omitempty"`
	// Failed is the reason if the policy failed, which denied the call.
	Failed string `json:"failed,omitempty"`
	Policy string `json:"policy,omitempty"`

	Agent     []string       `json:"agent,omitempty"`
	OK        *bool          `json:"ok,omitempty"`
	Executed  *bool          `json:"executed,omitempty"`
	Replayed  bool           `json:"replayed,omitempty"`
	Attempt   int            `json:"attempt,omitempty"`
	Verdict   tool.Verdict   `json:"verdict,omitempty"`
	ErrorKind tool.ErrorKind `json:"error_kind,omitempty"`
	Error     string         `json:"error,omitempty"`
	Latency   time.Duration  `json:"latency_ns,omitempty"`
}

// Observe writes an event; use it as [tool.Runner.Observe]. It does not write Progress events.
func (a *Audit) Observe(ev tool.Event) {
	e, ok := a.entry(ev)
	if !ok {
		return
	}
	if err := a.write(e); err != nil && a.OnError != nil {
		a.OnError(err)
	}
}

// Err returns the first error of the log, or nil if every line was written.
func (a *Audit) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Require returns a policy that denies every call once the log cannot be written, so that
// nothing runs unrecorded.
func (a *Audit) Require(p tool.Policy) tool.Policy { return requiringPolicy{a, p} }

type requiringPolicy struct {
	audit  *Audit
	policy tool.Policy
}

func (p requiringPolicy) Decide(ctx context.Context, q *tool.Question) (tool.Decision, error) {
	if err := p.audit.Err(); err != nil {
		return tool.Decision{}, err
	}
	return p.policy.Decide(ctx, q)
}

func (p requiringPolicy) Version() string { return p.policy.Version() }

func (a *Audit) entry(ev tool.Event) (Entry, bool) {
	switch ev := ev.(type) {
	case tool.PolicyDecided:
		e := a.describe("policy_decided", ev.CallRef)
		e.Subject, e.Agent, e.Model, e.Target = ev.Subject, ev.Agent, ev.Model, ev.Target
		if ev.Subject != codes.SubjectModelCall {
			e.Arguments = new(ev.Input.Hash())
		}
		a.decision(&e, &ev.Decision)
		if ev.Failed != nil {
			e.Failed = a.text(ev.Failed.Error())
		}
		return e, true
	case tool.ApprovalRequested:
		e := a.describe("approval_requested", ev.CallRef)
		e.Agent, e.Arguments = ev.Agent, new(ev.Pending.Binding.Arguments)
		e.Policy, e.Reason = ev.Pending.Binding.Policy, a.text(ev.Pending.Reason)
		return e, true
	case tool.CallStarted:
		e := a.describe("started", ev.CallRef)
		e.Arguments = new(ev.Input.Hash())
		return e, true
	case tool.CallEnded:
		return a.ended(ev), true
	case tool.LateReturn:
		e := a.describe("late_return", ev.CallRef)
		e.Latency = ev.After
		return e, true
	default:
		return Entry{}, false
	}
}

func (a *Audit) describe(event string, ref tool.CallRef) Entry {
	key := ref.Key // a model may call a tool that does not exist, by any name
	key.Namespace, key.Name = a.text(key.Namespace), a.text(key.Name)
	return Entry{
		Time: now(a.Now).UTC(), Event: event, Run: ref.Run, Turn: ref.Turn, Call: a.text(ref.CallID),
		Tool: key.QualifiedName(), Key: key,
	}
}

// text returns a text as the log may hold it: redacted and bounded.
func (a *Audit) text(s string) string { return clipText(a.Redactor.Redact(s)) }

func (a *Audit) decision(e *Entry, d *tool.Decision) {
	e.Effect, e.Rule, e.Matches, e.Reason = d.Effect, d.Rule, d.Matches, a.text(d.Reason)
	for _, edit := range d.Edits {
		e.Edited = append(e.Edited, edit.Argument)
	}
}

func (a *Audit) ended(ev tool.CallEnded) Entry {
	e := a.describe("ended", ev.CallRef)
	r := &ev.Record
	if r.Arguments != (tool.Hash{}) {
		e.Arguments = new(r.Arguments)
	}
	if r.Decision != nil {
		a.decision(&e, r.Decision)
	}
	e.Agent, e.OK, e.Executed, e.Replayed, e.Attempt = r.Agent, new(r.OK), new(r.Executed), r.Replayed, r.Attempt
	e.Verdict, e.ErrorKind, e.Error, e.Latency = r.Verdict, r.ErrorKind, a.text(r.Error), r.Latency
	return e
}

// maxError bounds an error or another text in the log, in bytes.
const maxError = 1000

func clipText(s string) string {
	if len(s) <= maxError {
		return s
	}
	cut := maxError
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}

// errShortWrite reports that a writer wrote a part of a line without an error.
var errShortWrite = errors.New("only a part of a line was written")

// write writes one line. Err keeps the first error.
func (a *Audit) write(e Entry) error {
	line, err := json.Marshal(e)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		err = a.append(append(line, '\n'))
	}
	if err != nil {
		err = fmt.Errorf("policy: writing the audit log: %w", err)
		if a.err == nil {
			a.err = err
		}
	}
	return err
}

// append writes after a complete line: it ends an incomplete one first.
func (a *Audit) append(line []byte) error {
	if a.incomplete {
		line = append([]byte{'\n'}, line...)
	}
	n, err := a.w.Write(line)
	if err == nil && n < len(line) {
		err = errShortWrite
	}
	a.incomplete = err != nil && (n > 0 || a.incomplete)
	if err != nil {
		return err
	}
	if s, ok := a.w.(interface{ Sync() error }); ok && a.Sync {
		return s.Sync()
	}
	return nil
}
