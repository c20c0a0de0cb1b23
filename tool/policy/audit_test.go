package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

// entries reads a log and fails if a line is incomplete.
func entries(t *testing.T, log []byte) []Entry {
	t.Helper()
	var out []Entry
	for line := range bytes.Lines(log) {
		var e Entry
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&e); err != nil || line[len(line)-1] != '\n' {
			t.Fatalf("%q: %v", line, err)
		}
		out = append(out, e)
	}
	return out
}

func TestP7_LogHasDecisionsAndArgumentHashes(t *testing.T) {
	const secret = "sk-abcdefghijklmnop1234567890"
	var log bytes.Buffer
	audit := NewAudit(&log)
	audit.Now = func() time.Time { return time.Unix(1_800_000_000, 0) }
	rules := []Rule{
		{ID: "allow", Effect: tool.Allow, Priority: 1, When: When{Expression: `args.path == "a"`}},
		{ID: "deny", Effect: tool.Deny, Reason: "the key " + secret, When: When{Expression: `args.path == "` + secret + `"`}},
		{ID: "ask", Effect: tool.Ask, Reason: "look", When: When{Expression: `args.path == "c"`}},
		{ID: "fail", Effect: tool.Allow, Priority: -1, When: When{Expression: `args.path == "d" && args.x > 1`}},
	}
	p := mustNew(t, Config{Rules: rules})
	w := newFixture(t, p)
	w.runner.Observe = audit.Observe
	for _, path := range []string{"a", secret, "c", "d"} {
		w.do(`{"path":"` + path + `"}`)
	}
	if err := audit.Err(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(log.String(), secret) {
		t.Errorf("the log holds the secret:\n%s", &log)
	}
	hash := tool.Input{Arguments: json.RawMessage(`{"path":"a"}`)}.Hash()
	all := entries(t, log.Bytes())
	var events []string
	for _, e := range all {
		events = append(events, e.Event+" "+string(e.Effect)+" "+string(e.ErrorKind))
		if e.Run != "run" || e.Call != "c" || e.Tool != "delete" || e.Key != toolopt.Bare("delete") || !e.Time.Equal(time.Unix(1_800_000_000, 0)) || e.Arguments == nil {
			t.Errorf("%+v", e)
		}
		if e.Turn == 1 && *e.Arguments != hash {
			t.Errorf("%s: the hash is %v, want %v", e.Event, e.Arguments, hash)
		}
	}
	want := "policy_decided allow |started  |ended allow |" +
		"policy_decided deny |ended deny denied|" +
		"policy_decided ask |approval_requested  |" +
		"policy_decided deny |ended deny denied"
	if got := strings.Join(events, "|"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if e := all[0]; e.Rule != "allow" || len(e.Matches) != 1 {
		t.Errorf("%+v", e)
	}
	if e := all[2]; e.OK == nil || !*e.OK || e.Executed == nil || !*e.Executed {
		t.Errorf("%+v", e)
	}
	if e := all[4]; e.OK == nil || *e.OK || *e.Executed || e.Rule != "deny" {
		t.Errorf("%+v", e)
	}
	if e := all[6]; e.Policy != p.Version() || e.Reason != "look" {
		t.Errorf("%+v", e)
	}
	if e := all[7]; !strings.Contains(e.Failed, "no such key") {
		t.Errorf("%+v", e)
	}
}

func TestP7_DecisionsNameTheAgent(t *testing.T) {
	var log bytes.Buffer
	audit := NewAudit(&log)
	w := newFixture(t, mustNew(t, Config{Rules: []Rule{
		{ID: "allow", Effect: tool.Allow, When: When{Expression: `subject == "model_call" || args.path == "a"`}},
		{ID: "ask", Effect: tool.Ask, Reason: "look", When: When{Expression: `subject == "tool_call" && args.path == "c"`}},
	}}))
	w.runner.Observe = audit.Observe
	w.run.Agent = []string{"desk", "clerk"}
	if err := w.run.DecideModel(t.Context(), 1, "m"); err != nil {
		t.Fatal(err)
	}
	w.do(`{"path":"a"}`)
	w.do(`{"path":"c"}`)
	var events []string
	for _, e := range entries(t, log.Bytes()) {
		if e.Event == "started" {
			continue
		}
		events = append(events, e.Event)
		if strings.Join(e.Agent, "/") != "desk/clerk" {
			t.Errorf("%s %s names the agent %q, want desk/clerk", e.Event, e.Subject, e.Agent)
		}
	}
	if got := strings.Join(events, " "); got != "policy_decided policy_decided ended policy_decided approval_requested" {
		t.Error(got)
	}
}

func TestP7_AuditRedactorCoversEveryText(t *testing.T) {
	const secret = "hunter22-of-the-log"
	var log bytes.Buffer
	audit := NewAudit(&log)
	audit.Redactor = &tool.Redactor{Secrets: []string{secret}}
	ref := tool.CallRef{Run: "r", Turn: 1, CallID: "c", Key: toolopt.Bare("f")}
	decision := tool.Decision{Effect: tool.Deny, Reason: "reason " + secret, Edits: []tool.Edit{{Argument: "a", Value: json.RawMessage(`"` + secret + `"`)}}}
	for _, ev := range []tool.Event{
		tool.PolicyDecided{CallRef: ref, Decision: decision, Failed: errors.New("failed " + secret)},
		tool.ApprovalRequested{CallRef: ref, Pending: tool.Pending{Reason: "asked " + secret}},
		tool.CallStarted{CallRef: ref, Input: tool.Input{Text: secret}},
		tool.CallEnded{CallRef: ref, Record: tool.Record{Error: "error " + secret, Output: secret, Raw: secret, Decision: &decision}},
	} {
		audit.Observe(ev)
	}
	if n := len(entries(t, log.Bytes())); n != 4 || strings.Contains(log.String(), "hunter22") || strings.Count(log.String(), "[redacted]") != 5 {
		t.Errorf("%d lines:\n%s", n, &log)
	}
}

// A model may call a tool that does not exist. Its name and the id of the call are redacted and
// bounded like other texts, and the log stays readable.
func TestP7_NamesThatAModelInventsAreRedactedAndBounded(t *testing.T) {
	const secret = "hunter22-of-the-log"
	var log bytes.Buffer
	audit := NewAudit(&log)
	audit.Redactor = &tool.Redactor{Secrets: []string{secret}}
	box, err := tool.NewBox()
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("n", 1<<20)
	calls := []*dragoman.ToolCall{
		{ID: "1 " + secret, Name: "look_" + secret, Arguments: "{}"},
		{ID: "2", Name: "a", Namespace: secret, Arguments: "{}"},
		{ID: "3", Name: long, Arguments: "{}"},
		{ID: long, Name: "b", Arguments: "{}"},
	}
	if _, err := (&tool.Runner{Observe: audit.Observe}).Start("r").Do(t.Context(), box, tool.Turn{Number: 1, Calls: calls}); err != nil {
		t.Fatal(err)
	}
	all := entries(t, log.Bytes())
	if len(all) != len(calls) || strings.Contains(log.String(), "hunter22") || log.Len() > 20_000 {
		t.Errorf("%d lines, %d bytes:\n%.2000s", len(all), log.Len(), &log)
	}
	for _, e := range all {
		if e.Tool == "" || e.Key.Name == "" || e.Call == "" {
			t.Errorf("%+v", e)
		}
	}
}

// Secrets that only the run knows, configured or given to a tool, are not in the log.
func TestP7_SecretsOfTheRunAreNotInTheLog(t *testing.T) {
	const configured, given = "hunter22-configured", "hunter22-given"
	var log bytes.Buffer
	audit := NewAudit(&log)
	broken := errors.New("cannot judge " + configured + " and " + given)
	rules := policyFunc(func(_ context.Context, q *tool.Question) (tool.Decision, error) {
		d := tool.Decision{Effect: tool.Allow, Reason: "because of " + configured + " and " + given}
		switch {
		case strings.Contains(string(q.Input.Arguments), "deny"):
			d.Effect = tool.Deny
		case strings.Contains(string(q.Input.Arguments), "ask"):
			d.Effect = tool.Ask
		case strings.Contains(string(q.Input.Arguments), "fail"):
			return d, broken
		}
		return d, nil
	})
	var failed error
	var pending tool.Pending
	runner := &tool.Runner{
		Policy: rules, Redactor: &tool.Redactor{Secrets: []string{configured}},
		Secrets: func(context.Context, string) (string, error) { return given, nil },
		Observe: func(ev tool.Event) {
			audit.Observe(ev)
			if d, ok := ev.(tool.PolicyDecided); ok && d.Failed != nil {
				failed = d.Failed
			}
		},
	}
	box, err := tool.NewBox(tool.New("login", "Logs in.", func(ctx context.Context, _ fileArgs) (string, error) { return tool.Secret(ctx, "key") }))
	if err != nil {
		t.Fatal(err)
	}
	run := runner.Start("run")
	for i, path := range []string{"allow", "deny", "ask", "fail", "invent"} {
		c := &dragoman.ToolCall{ID: "c", Name: "login", Arguments: `{"path":"` + path + `"}`}
		if path == "invent" {
			c.Name, c.Namespace = "look_"+configured, given
		}
		b, err := run.Do(t.Context(), box, tool.Turn{Number: i, Calls: []*dragoman.ToolCall{c}})
		if err != nil {
			t.Fatal(err)
		}
		if res := b.Results[0]; path == "invent" && (res.Name != c.Name || res.Namespace != c.Namespace || b.Records[0].Tool != "[redacted].look_[redacted]") {
			t.Errorf("the result is of %s.%s, the record of %s", res.Namespace, res.Name, b.Records[0].Tool)
		}
		if len(b.Pending) > 0 {
			pending = b.Pending[0]
		}
	}
	if err := run.DecideModel(t.Context(), 9, "m"); err != nil {
		t.Fatal(err)
	}
	if text := log.String(); strings.Contains(text[strings.Index(text, `"turn":1`):], "hunter22") || strings.Contains(text, configured) || !strings.Contains(text, "[redacted] and [redacted]") {
		t.Errorf("the log:\n%s", text)
	}
	if !errors.Is(failed, broken) {
		t.Errorf("the event has the error %v, which does not wrap the policy's", failed)
	}
	if !strings.Contains(pending.Reason, configured) {
		t.Errorf("the human reads %q, not the whole reason", pending.Reason)
	}
}

// oneWrite counts the writes and notes those that overlap.
type oneWrite struct {
	busy     atomic.Bool
	overlaps atomic.Int32
	buf      bytes.Buffer
	writes   int
	synced   int
	broken   func(p []byte) (int, error)
}

func (w *oneWrite) Write(p []byte) (int, error) {
	if !w.busy.CompareAndSwap(false, true) {
		w.overlaps.Add(1)
		return len(p), nil
	}
	defer w.busy.Store(false)
	runtime.Gosched() // give concurrent writers a chance
	w.writes++
	if w.broken != nil {
		n, err := w.broken(p)
		w.buf.Write(p[:n])
		return n, err
	}
	return w.buf.Write(p)
}

func (w *oneWrite) Sync() error { w.synced++; return nil }

func TestP7_LinesAreNeverInterleaved(t *testing.T) {
	w := &oneWrite{}
	audit := NewAudit(w)
	audit.Sync = true
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				audit.Observe(tool.CallStarted{CallRef: tool.CallRef{Run: strings.Repeat("r", 500)}})
			}
		})
	}
	wg.Wait()
	if got := len(entries(t, w.buf.Bytes())); got != 400 || w.overlaps.Load() > 0 || w.writes != 400 || w.synced != 400 {
		t.Errorf("%d lines in %d writes, %d synced", got, w.writes, w.synced)
	}
	audit.Observe(tool.Progress{})
	if w.writes != 400 {
		t.Error("progress is in the log")
	}
}

func TestP7_FailedWriteIsReportedAndCanDeny(t *testing.T) {
	w := &oneWrite{}
	audit := NewAudit(w)
	var reported []error
	audit.OnError = func(err error) { reported = append(reported, err) }
	world := newFixture(t, audit.Require(mustNew(t, Config{})))
	world.runner.Observe = audit.Observe
	if world.do(`{"path":"a"}`); world.ran != 1 {
		t.Fatal("it did not run")
	}
	w.broken = func(p []byte) (int, error) { return len(p) / 2, io.ErrShortWrite }
	audit.Observe(tool.CallStarted{})
	if !errors.Is(audit.Err(), io.ErrShortWrite) || len(reported) != 1 {
		t.Errorf("%v, reported %v", audit.Err(), reported)
	}
	w.broken = nil
	if r := world.do(`{"path":"b"}`); world.ran != 1 || r.ErrorKind != tool.ErrorDenied {
		t.Errorf("what cannot be recorded ran: %+v", r)
	}
	// An incomplete line must not spoil the next one.
	lines := strings.Split(strings.TrimSuffix(w.buf.String(), "\n"), "\n")
	broken := 0
	for _, l := range lines {
		if !json.Valid([]byte(l)) {
			broken++
		}
	}
	if broken != 1 {
		t.Errorf("%d of %d lines are broken", broken, len(lines))
	}
	w.broken = func(p []byte) (int, error) { return len(p) - 1, nil } // the writer returns no error
	audit.err = nil
	if audit.Observe(tool.CallStarted{}); audit.Err() == nil {
		t.Error("a short write passed")
	}
}

func TestP7_AppendContinuesAfterAnIncompleteLine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "audit.jsonl")
	for range 2 {
		audit, closer, err := OpenAudit(file)
		if err != nil {
			t.Fatal(err)
		}
		audit.Sync = true
		audit.Observe(tool.CallStarted{})
		if err := errors.Join(audit.Err(), closer.Close()); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(file)
	if err != nil || len(entries(t, whole)) != 2 {
		t.Fatalf("%s, %v", whole, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(file, append(whole, `{"time":`...), 0o600); err != nil { // as after a crash
		t.Fatal(err)
	}
	audit, closer, err := OpenAudit(file)
	if err != nil {
		t.Fatal(err)
	}
	audit.Observe(tool.CallStarted{})
	closer.Close()
	after, err := os.ReadFile(file)
	if err != nil || !bytes.HasPrefix(after, whole) {
		t.Fatalf("the old lines are gone: %s, %v", after, err)
	}
	rest := strings.Split(string(after[len(whole):]), "\n")
	if len(rest) != 3 || rest[0] != `{"time":` || !json.Valid([]byte(rest[1])) {
		t.Errorf("%q", rest)
	}
	if _, _, err := OpenAudit(filepath.Join(file, "x")); err == nil {
		t.Error("opened inside of a file")
	}
}
