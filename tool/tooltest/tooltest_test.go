package tooltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/tooltest"
)

type note struct {
	Text string `json:"text"`
	Size int    `json:"size,omitempty" jsonschema:"minimum=1"`
}

type reply struct {
	Length int `json:"length"`
}

func named(f func(context.Context, note) (string, error), opts ...tool.Option) tool.Tool {
	return tool.New("note", "Takes a note.", f, opts...)
}

func echo(_ context.Context, n note) (string, error) { return "noted: " + n.Text, nil }

var (
	one     = tooltest.Case{Name: "one", Arguments: `{"text":"a"}`}
	blocked = tooltest.Case{Name: "blocked", Arguments: `{"text":"a"}`, Blocks: true}
)

func TestZ4_CorrectToolsConform(t *testing.T) {
	state := "empty"
	for name, s := range map[string]tooltest.Suite{
		"typed": {
			Tool: named(echo, tool.ReadOnly(), tool.Idempotent(), toolopt.Example(json.RawMessage(`{"text":"x","size":2}`))),
			Cases: []tooltest.Case{
				{Arguments: `{"text":"a","size":3}`, Want: "noted: a"}, {Arguments: `{"text":"b"}`, Want: "noted: b"},
			},
			Invalid: []string{`{"text":"a","size":0}`, `not JSON`},
			State:   func(context.Context) (string, error) { return state, nil },
		},
		"structured": {
			Tool: tool.New("measure", "Measures a text.", func(_ context.Context, n note) (reply, error) { return reply{len(n.Text)}, nil },
				toolopt.Structured(), toolopt.Immediately()),
			Cases: []tooltest.Case{one},
		},
		"freeform, needs approval": {
			Tool: tool.Freeform("digits", "Takes digits.", &dragoman.Grammar{Syntax: "regex", Definition: `[0-9]+`},
				func(_ context.Context, s string) (any, error) { return s, nil }, tool.NeedsApproval()),
			Cases:   []tooltest.Case{{Arguments: "42", Want: "42"}},
			Invalid: []string{"x"},
		},
		"waits for its context": {
			Tool: named(func(ctx context.Context, _ note) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			}),
			Cases: []tooltest.Case{blocked},
		},
		"changes the state once": {
			Tool: named(func(context.Context, note) (string, error) {
				if state == "full" {
					return "", errors.New("it is full")
				}
				state = "full"
				return "stored", nil
			}, tool.InNamespace("store", "A store."), tool.Deferred(), tool.Set(func(s *tool.Settings) { s.Exclusive = true; s.Failure = codes.FailureFail })),
			Cases: []tooltest.Case{one},
			Reset: func(context.Context) error { state = "empty"; return nil },
			State: func(context.Context) (string, error) { return state, nil },
		},
		"long and different each time": {
			Tool: named(func(context.Context, note) (string, error) {
				return time.Now().String() + strings.Repeat("x", 60_000), nil
			}, tool.Idempotent()),
			Cases: []tooltest.Case{{Arguments: `{"text":"a"}`, Varies: true, Long: true}},
		},
	} {
		t.Run(name, func(t *testing.T) { tooltest.Run(t, s) })
	}
}

// changingTool is a tool whose definition changes between calls of Spec.
type changingTool struct {
	tool.Tool
	spec func() *dragoman.ToolSpec
}

func (s changingTool) Spec() *dragoman.ToolSpec { return s.spec() }

func counting() tool.Tool {
	var n atomic.Int64
	return changingTool{named(echo), func() *dragoman.ToolSpec {
		return &dragoman.ToolSpec{Name: "note", Description: fmt.Sprintf("Version %d.", n.Add(1))}
	}}
}

// selfEditingTool changes its definition when it is called.
func selfEditingTool() tool.Tool {
	spec := dragoman.ToolSpec{Name: "note", Description: "Takes a note."}
	return tool.Tool(called{&spec})
}

type called struct{ spec *dragoman.ToolSpec }

func (c called) Spec() *dragoman.ToolSpec { return c.spec }
func (c called) Settings() tool.Settings  { return tool.Settings{Exclusive: true} }
func (c called) Call(context.Context, tool.Input) (tool.Output, error) {
	c.spec.Description = "Took a note."
	return tool.Output{}, nil
}

func TestZ4_IncorrectToolsAreFound(t *testing.T) {
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	calls, state := 0, 0
	var inside, single atomic.Int32
	meet := make(chan struct{})
	met := sync.OnceFunc(func() { close(meet) })
	number := func(ctx context.Context) (string, error) { return fmt.Sprint(state), ctx.Err() }
	for name, c := range map[string]struct {
		suite tooltest.Suite
		want  string
		text  string
	}{
		"no tool":         {tooltest.Suite{}, "spec", "nil"},
		"no name":         {tooltest.Suite{Tool: tool.New("", "Nameless.", echo)}, "spec", "name"},
		"no schema":       {tooltest.Suite{Tool: tool.Raw("raw", "Raw.", json.RawMessage(`{"type":"nothing"}`), nil)}, "spec", "function"},
		"panicking spec":  {tooltest.Suite{Tool: changingTool{spec: func() *dragoman.ToolSpec { panic("no spec") }}}, "spec", "no spec"},
		"unknown keyword": {tooltest.Suite{Tool: raw(`{"type":"object","properties":{"a":{"type":"nothing"}}}`)}, "spec", "schema"},

		"array of arguments": {tooltest.Suite{Tool: raw(`{"type":"array"}`)}, "targets", "openai.chat_completions, "},

		"example of another tool": {tooltest.Suite{Tool: named(echo, toolopt.Example(json.RawMessage(`{"txt":"x"}`)))}, "examples", "example 0"},

		"open schema": {tooltest.Suite{Tool: raw(`{"type":"object"}`), Invalid: []string{`{}`}}, "arguments", "{}"},
		"refusal by hook": {tooltest.Suite{Tool: raw(`{"type":"object"}`, toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) {
			return tool.Input{}, errors.New("no")
		})), Invalid: []string{`{}`}}, "arguments", "denied"},

		"misfit":         {tooltest.Suite{Tool: named(echo), Cases: []tooltest.Case{{Arguments: `{"note":"a"}`}}}, "cases", "missing property"},
		"misfit as case": {tooltest.Suite{Tool: named(echo), Cases: []tooltest.Case{{Arguments: `{}`, Fails: true}}}, "cases", "Suite.Invalid"},
		"fails": {tooltest.Suite{
			Tool:  named(func(context.Context, note) (string, error) { return "", errors.New("out of ink") }),
			Cases: []tooltest.Case{one},
		}, "cases", "out of ink"},
		"succeeds":     {tooltest.Suite{Tool: named(echo), Cases: []tooltest.Case{{Arguments: one.Arguments, Fails: true}}}, "cases", "want an error"},
		"other output": {tooltest.Suite{Tool: named(echo), Cases: []tooltest.Case{{Arguments: one.Arguments, Want: "b"}}}, "cases", "noted: a"},
		"slow": {tooltest.Suite{Tool: named(func(ctx context.Context, _ note) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}), Cases: []tooltest.Case{one}, Within: 200 * time.Millisecond}, "cases", "too long"},
		"reset": {tooltest.Suite{
			Tool: named(echo, tool.Set(func(s *tool.Settings) { s.Exclusive = true })), Cases: []tooltest.Case{one},
			State: func(context.Context) (string, error) { return "", errors.New("no disk") },
		}, "cases", "no disk"},

		"panics": {tooltest.Suite{
			Tool:  named(func(context.Context, note) (string, error) { panic("out of ink") }),
			Cases: []tooltest.Case{one},
		}, "panic", "out of ink"},
		"panics the second time": {tooltest.Suite{Tool: named(func(context.Context, note) (string, error) {
			if calls++; calls == 2 {
				panic("once only")
			}
			return "", nil
		}), Cases: []tooltest.Case{one}}, "panic", "once only"},

		"undeclared output": {tooltest.Suite{Tool: tool.Remote(dragoman.ToolSpec{
			Name: "note", Parameters: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object","required":["length"]}`),
		}, func(context.Context, tool.Input) (tool.Output, error) {
			return tool.Output{Content: []dragoman.Part{&dragoman.Data{JSON: json.RawMessage(`{}`)}}}, nil
		}, tool.Set(func(s *tool.Settings) { s.Structured = true })), Cases: []tooltest.Case{{Arguments: `{}`}}}, "output", "length"},
		"text for data": {tooltest.Suite{Tool: tool.Remote(dragoman.ToolSpec{
			Name: "note", Parameters: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
		}, func(context.Context, tool.Input) (tool.Output, error) {
			return tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "five"}}}, nil
		}), Cases: []tooltest.Case{{Arguments: `{}`}}}, "output", "output schema"},

		"long output": {tooltest.Suite{
			Tool:  named(func(context.Context, note) (string, error) { return strings.Repeat("x", 50_001), nil }),
			Cases: []tooltest.Case{one},
		}, "limits", "50001 characters"},
		"longer than its own limit": {tooltest.Suite{
			Tool:  named(echo, tool.Set(func(s *tool.Settings) { s.Limits.Chars = 5 })),
			Cases: []tooltest.Case{one},
		}, "limits", "limit is 5"},
		"many parts": {tooltest.Suite{Tool: tool.New("parts", "Many parts.", func(context.Context, note) ([]dragoman.Part, error) {
			return slices.Repeat([]dragoman.Part{&dragoman.Text{Text: "x"}}, 101), nil
		}), Cases: []tooltest.Case{one}}, "limits", "101 parts"},

		"writing reader": {tooltest.Suite{Tool: named(func(context.Context, note) (string, error) { state++; return "", nil },
			tool.ReadOnly(), tool.Set(func(s *tool.Settings) { s.Exclusive = true })), Cases: []tooltest.Case{one}, State: number}, "read-only", "changed the state"},
		"read-only and destructive": {tooltest.Suite{Tool: named(echo, tool.Destructive(), tool.ReadOnly())}, "read-only", "destructive"},

		"counter": {tooltest.Suite{Tool: named(func(context.Context, note) (string, error) { calls++; return fmt.Sprint(calls), nil },
			tool.Idempotent(), tool.Set(func(s *tool.Settings) { s.Exclusive = true })), Cases: []tooltest.Case{one}}, "idempotent", "another output"},
		"appender": {tooltest.Suite{Tool: named(func(context.Context, note) (string, error) { state++; return "appended", nil },
			tool.Idempotent(), tool.Set(func(s *tool.Settings) { s.Exclusive = true })), Cases: []tooltest.Case{one}, State: number}, "idempotent", "state again"},

		"one at a time": {tooltest.Suite{Tool: named(func(ctx context.Context, _ note) (string, error) {
			defer inside.Add(-1)
			if inside.Add(1) > 1 {
				met()
				return "", errors.New("busy")
			}
			if single.Add(1) > 2 { // the calls after the first two are concurrent
				select {
				case <-meet:
				case <-ctx.Done():
				}
			}
			return "done", nil
		}), Cases: []tooltest.Case{one}}, "concurrent", "busy"},

		"ignores its context": {tooltest.Suite{
			Tool:  named(func(context.Context, note) (string, error) { <-release; return "", nil }),
			Cases: []tooltest.Case{blocked}, Within: 20 * time.Millisecond,
		}, "cancel", "still runs"},
		"does not block": {
			tooltest.Suite{Tool: named(echo), Cases: []tooltest.Case{blocked}, Without: map[string]string{"timeout": "it ends"}},
			"cancel", "says Blocks",
		},
		"ignores short limits": {tooltest.Suite{Tool: named(func(ctx context.Context, _ note) (string, error) {
			done := ctx.Done()
			if at, ok := ctx.Deadline(); ok && time.Until(at) < 500*time.Millisecond {
				done = release
			}
			<-done
			return "", ctx.Err()
		}), Cases: []tooltest.Case{blocked}, Within: 200 * time.Millisecond}, "timeout", "time limit"},
		"immediate and blocking": {tooltest.Suite{Tool: named(func(ctx context.Context, _ note) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, toolopt.Immediately()), Cases: []tooltest.Case{blocked}}, "timeout", "immediate"},

		"new definition each time": {tooltest.Suite{Tool: counting()}, "stable", "Version"},
		"edits its definition":     {tooltest.Suite{Tool: selfEditingTool(), Cases: []tooltest.Case{{Arguments: `{}`}}}, "stable", "Took a note."},

		"unknown rule": {tooltest.Suite{Tool: named(echo), Without: map[string]string{"cancle": "typing error"}}, "", "cancle"},
	} {
		t.Run(name, func(t *testing.T) {
			calls, state = 0, 0
			found := tooltest.Check(t.Context(), c.suite)
			if len(found) != 1 || found[0].Rule != c.want || !strings.Contains(found[0].Error(), c.text) {
				t.Errorf("got %v, want one finding of %q with %q", found, c.want, c.text)
			}
		})
	}
}

func raw(schema string, opts ...tool.Option) tool.Tool {
	return tool.Raw("raw", "Takes what its schema says.", json.RawMessage(schema), func(context.Context, json.RawMessage) (any, error) { return "ok", nil }, opts...)
}

func TestWithoutSkipsRules(t *testing.T) {
	s := tooltest.Suite{Tool: named(echo), Cases: []tooltest.Case{{Arguments: one.Arguments, Fails: true}}}
	s.Without = map[string]string{"cases": "known"}
	if found := tooltest.Check(t.Context(), s); len(found) > 0 {
		t.Error(found)
	}
}

func TestCanceledContextChecksNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	found := tooltest.Check(ctx, tooltest.Suite{Tool: named(echo), Cases: []tooltest.Case{one}})
	if len(found) == 0 || found[0].Text != "not checked: context canceled" {
		t.Error(found)
	}
}

// The suite repeats the default limits of package tool.
func TestDefaultLimitsAreThoseOfTheRunner(t *testing.T) {
	for n, cut := range map[int]bool{50_000: false, 50_001: true} {
		long := named(func(context.Context, note) (string, error) { return strings.Repeat("x", n), nil }, tool.Set(func(s *tool.Settings) { s.Trusted = true }))
		box, err := tool.NewBox(long)
		if err != nil {
			t.Fatal(err)
		}
		b, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, tool.Turn{Calls: []*dragoman.ToolCall{{ID: "1", Name: "note", Arguments: one.Arguments}}})
		if err != nil || (b.Records[0].Plain != strings.Repeat("x", n)) != cut {
			t.Errorf("%d characters: cut is not %v, %v", n, cut, err)
		}
		if found := tooltest.Check(t.Context(), tooltest.Suite{Tool: long, Cases: []tooltest.Case{one}}); (len(found) > 0) != cut {
			t.Errorf("%d characters: %v", n, found)
		}
	}
}
