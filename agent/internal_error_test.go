package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/tool"
)

// defaultLog captures slog.Default for a test.
func defaultLog(t *testing.T) *bytes.Buffer {
	t.Helper()
	var buf bytes.Buffer
	before := slog.Default()
	t.Cleanup(func() { slog.SetDefault(before) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&buf, nil)))
	return &buf
}

// explodeHere gives the stack a function name to look for.
func explodeHere() { panic("kaboom") }

func exploding() tool.Tool {
	return tool.New("explode", "Panics.", func(context.Context, struct{}) (string, error) { explodeHere(); return "", nil })
}

func TestT7_PanicIsInRecordWithStack(t *testing.T) {
	logged := defaultLog(t)
	m := model(calls("a explode"), textResponse("sorry"))
	res := must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{exploding()}}.Run(t.Context(), "go"))
	var p *tool.PanicError
	if len(res.Records) != 1 || !errors.As(res.Records[0].Cause, &p) || p.Text != "kaboom" || !strings.Contains(string(p.Stack), "explodeHere") {
		t.Fatalf("cause %#v", res.Records)
	}
	if got := logged.String(); !strings.Contains(got, "kaboom") || !strings.Contains(got, "explodeHere") || !strings.Contains(got, "tool=explode") {
		t.Errorf("slog.Default got %q", got)
	}
	if text := m.asked[1].Messages[2].Parts[0].(*dragoman.ToolResult).Text(); strings.Contains(text, "kaboom") || strings.Contains(text, "explodeHere") {
		t.Errorf("the model reads %q", text)
	}
}

func TestT7_PanicTextAndStackAreNeverSerialized(t *testing.T) {
	defaultLog(t)
	store := &session.Memory{}
	s := must[*session.Session](t)(session.Create(t.Context(), store, session.Info{ID: "s"}))
	var did counted
	a := agent.Agent{
		Model: model(calls("a explode", "b ask"), textResponse("done")),
		Tools: []tool.Tool{exploding(), did.tool("ask", tool.NeedsApproval())},
	}
	var written bytes.Buffer
	var end *agent.Result
	collect := func(stream agent.Stream) {
		for ev, err := range stream {
			written.Write(must[[]byte](t)(agent.MarshalEvent(ev, err)))
			if e, ok := ev.(*agent.RunEnd); ok {
				end = e.Result
			}
		}
	}
	collect(a.Stream(t.Context(), "go", agent.In(s)))
	if len(end.Pending) != 1 || end.Records[0].Cause == nil {
		t.Fatalf("%+v", end)
	}
	collect(a.ResumeStream(t.Context(), nil, agent.In(s), agent.Approve(end.Pending[0])))
	if end.Output != "done" {
		t.Fatalf("%+v", end)
	}
	for _, v := range []any{end.State, end.Records, end.Messages} {
		written.Write(must[[]byte](t)(json.Marshal(v)))
	}
	if err := session.Export(t.Context(), store, "s", &written); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"kaboom", "explodeHere", "goroutine "} {
		if strings.Contains(written.String(), secret) {
			t.Errorf("%q is serialized", secret)
		}
	}
	if !strings.Contains(written.String(), "internal error") {
		t.Error("nothing was written")
	}
}

func TestT7_InternalErrorsAreLoggedByDefault(t *testing.T) {
	logged := defaultLog(t)
	broken := tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil },
		toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) { panic("hook bug") }))
	refusing := tool.New("refuse", "Refuses.", func(context.Context, struct{}) (string, error) { return "", nil },
		toolopt.Pre(func(_ context.Context, in tool.Input) (tool.Input, error) { return in, errors.New("not today") }))
	a := agent.Agent{Model: model(calls("a look", "b refuse"), textResponse("ok")), Tools: []tool.Tool{broken, refusing}}
	res := must[*agent.Result](t)(a.Run(t.Context(), "go"))
	var p *tool.PanicError
	if !errors.As(res.Records[0].Cause, &p) || p.Text != "hook bug" {
		t.Errorf("cause %v", res.Records[0].Cause)
	}
	if got := logged.String(); !strings.Contains(got, "hook bug") || strings.Contains(got, "not today") {
		t.Errorf("slog.Default got %q", got)
	}
	logged.Reset()
	a.Log = slog.New(slog.DiscardHandler)
	a.Model = model(calls("a look"), textResponse("ok"))
	must[*agent.Result](t)(a.Run(t.Context(), "go"))
	if logged.Len() > 0 {
		t.Errorf("an agent with its own Log wrote %q to slog.Default", logged)
	}
}

func TestDecision137_RaiseOnErrorReturnsToolError(t *testing.T) {
	defaultLog(t)
	opening := tool.New("open", "Opens.", func(context.Context, struct{}) (string, error) {
		return "", &fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}
	}, tool.Set(func(s *tool.Settings) { s.Failure = codes.FailureContinue }))
	script := func() *scripted { return model(calls("a open"), textResponse("went on")) }
	a := agent.Agent{Model: script(), Tools: []tool.Tool{opening, exploding()}}
	if res := must[*agent.Result](t)(a.Run(t.Context(), "go")); res.Output != "went on" || !errors.Is(res.Records[0].Cause, fs.ErrNotExist) {
		t.Errorf("by default a failure is a result: %+v", res)
	}
	a.Runner = &tool.Runner{RaiseOnError: true}
	a.Model = script()
	res, err := a.Run(t.Context(), "go")
	var failed *tool.CallError
	var path *fs.PathError
	if !errors.As(err, &failed) || failed.Record.Tool != "open" || !errors.As(err, &path) || !errors.Is(err, tool.ErrFailed) || len(res.Records) != 1 {
		t.Errorf("%v, %+v", err, res)
	}
	a.Model = model(calls("a explode"))
	_, err = a.Run(t.Context(), "go")
	var p *tool.PanicError
	if !errors.As(err, &p) || p.Text != "kaboom" || !strings.Contains(err.Error(), "panicked: kaboom") {
		t.Errorf("%v", err)
	}
	// Mistakes of the model are still results.
	a.Model = model(calls("a nosuch"), calls("b open {\"x\":"), textResponse("fine"))
	if res, err := a.Run(t.Context(), "go"); err != nil || res.Output != "fine" {
		t.Errorf("%v, %+v", err, res)
	}
}

// fullJournal fails to record the begin of a call.
type fullJournal struct{ tool.Journal }

func (fullJournal) Begin(context.Context, tool.Intent) (tool.Prior, error) {
	return tool.Prior{}, errors.New("disk /dev/sdb1 is full")
}

// The error of a run includes the cause. Events, records and the text for the model of an outer
// agent do not, however the developer wraps the error.
func TestDecision106_ModelsDoNotReadTheCauseOfAnError(t *testing.T) {
	defaultLog(t)
	look := tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) { return "seen", nil })
	for name, tc := range map[string]struct {
		tool   tool.Tool
		runner tool.Runner
		cause  string
	}{
		"panic":   {exploding(), tool.Runner{}, "kaboom"},
		"journal": {look, tool.Runner{Journal: fullJournal{}}, "/dev/sdb1"},
	} {
		tc.runner.RaiseOnError = true
		inner := agent.Agent{Name: "inner", Description: "Works.", Tools: []tool.Tool{tc.tool}, Runner: &tc.runner}
		call := calls("a " + tc.tool.Spec().Name)
		inner.Model = model(call)
		var printed error
		for ev, err := range inner.Stream(t.Context(), "go") {
			if written := must[[]byte](t)(agent.MarshalEvent(ev, err)); strings.Contains(string(written), tc.cause) {
				t.Errorf("%s: an event has the cause: %s", name, written)
			}
			printed = err
		}
		var failed *tool.CallError
		if printed == nil || !strings.Contains(printed.Error(), tc.cause) || !errors.As(printed, &failed) || failed.Record.Cause == nil || strings.Contains(tool.ModelText(failed), tc.cause) {
			t.Errorf("%s: the run's error is %v", name, printed)
		}
		for how, wrap := range map[string]func(error) error{
			"as tool": nil,
			"itself":  func(err error) error { return err },
			"wrapped": func(err error) error { return fmt.Errorf("asking inner: %w", err) },
			"quoted":  func(err error) error { return quotingError{err} },
			"joined":  func(err error) error { return errors.Join(errors.New("first"), err) },
		} {
			inner.Model = model(call)
			asks := inner.AsTool()
			if wrap != nil {
				asks = tool.New("inner", "Works.", func(ctx context.Context, _ struct{}) (string, error) {
					_, err := inner.Run(ctx, "go")
					return "", wrap(err)
				})
			}
			m := model(calls(`b inner {"task":"x"}`), textResponse("done"))
			outer := agent.Agent{Name: "outer", Model: m, Tools: []tool.Tool{asks}}
			if how != "as tool" {
				m = model(calls(`b inner`), textResponse("done"))
				outer.Model = m
			}
			res := must[*agent.Result](t)(outer.Run(t.Context(), "go"))
			text := m.asked[1].Messages[2].Parts[0].(*dragoman.ToolResult).Text()
			if strings.Contains(text, tc.cause) || !strings.Contains(text, "inner") {
				t.Errorf("%s, %s: the model reads %q", name, how, text)
			}
			if b := must[[]byte](t)(json.Marshal(res.Records)); strings.Contains(string(b), tc.cause) {
				t.Errorf("%s, %s: the record is written with the cause: %s", name, how, b)
			}
			if c := res.Records[0].Cause; c == nil || !strings.Contains(c.Error(), tc.cause) || res.Records[0].Error == "" {
				t.Errorf("%s, %s: the record is %q, its cause %v", name, how, res.Records[0].Error, c)
			}
		}
	}
}

// quotingError wraps an error and quotes its text.
type quotingError struct{ err error }

func (q quotingError) Error() string { return fmt.Sprintf("inner said %q", q.err.Error()) }
func (q quotingError) Unwrap() error { return q.err }
