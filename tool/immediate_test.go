package tool_test

import (
	"context"
	"errors"
	"runtime/debug"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

// onTestGoroutine reports whether the caller runs on the goroutine of the test.
func onTestGoroutine() bool { return strings.Contains(string(debug.Stack()), "testing.tRunner(") }

// inlineRecorder is a tool with hooks and middleware. It notes which of them run in place.
type inlineRecorder struct {
	inline []string
	// hooks and tool report which of them are immediate.
	hooks, tool bool
}

func (p *inlineRecorder) note(name string) {
	if onTestGoroutine() {
		p.inline = append(p.inline, name)
	}
}

func (p *inlineRecorder) box(t *testing.T) *tool.Box {
	t.Helper()
	box, err := tool.Config{Hooks: tool.Hooks{
		Immediate: p.hooks,
		Pre:       []tool.PreHook{func(_ context.Context, in tool.Input) (tool.Input, error) { p.note("pre"); return in, nil }},
		Use: []tool.Middleware{func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, in tool.Input) (tool.Output, error) { p.note("use"); return next(ctx, in) }
		}},
		Post: []tool.PostHook{func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
			p.note("post")
			return out, nil
		}},
	}}.Box(tool.New("a", "", func(context.Context, struct{}) (string, error) { p.note("tool"); return "done", nil },
		tool.Set(func(s *tool.Settings) { s.Immediate = p.tool })))
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestT6_ImmediateCallsRunOnTheCallersGoroutine(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    inlineRecorder
		want string
	}{
		{"nothing is", inlineRecorder{}, ""},
		{"hooks alone", inlineRecorder{hooks: true}, "pre"},
		{"the tool alone", inlineRecorder{tool: true}, ""},
		{"everything", inlineRecorder{hooks: true, tool: true}, "pre use tool post"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			res, rec := do(t, &tool.Runner{}, tc.p.box(t), call("1", "a", `{}`))
			wantKind(t, res, rec, "")
			if got := strings.Join(tc.p.inline, " "); got != tc.want {
				t.Errorf("in place: %q, want %q", got, tc.want)
			}
		})
	}
}

func TestT6_ImmediateIsASetting(t *testing.T) {
	placed := false
	box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) { placed = onTestGoroutine(); return "", nil }, toolopt.Immediately()))
	res, rec := do(t, &tool.Runner{}, box, call("1", "a", `{}`))
	if wantKind(t, res, rec, ""); !placed {
		t.Error("it ran on another goroutine")
	}
}

func TestT6_OtherHooksOfAnImmediateToolTimeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box, err := tool.Config{Hooks: tool.Hooks{Immediate: true, Pre: []tool.PreHook{
			func(_ context.Context, in tool.Input) (tool.Input, error) { return in, nil },
		}}}.Box(echo("a", toolopt.Immediately(), toolopt.Pre(func(ctx context.Context, in tool.Input) (tool.Input, error) {
			return in, hangFor(time.Minute)
		})))
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		res, rec := do(t, &tool.Runner{}, box, call("1", "a", `{}`))
		if wantKind(t, res, rec, tool.ErrorHook); time.Since(begun) != 10*time.Second {
			t.Errorf("given up after %s", time.Since(begun))
		}
		time.Sleep(time.Hour) // time of the bubble's clock until the hook has returned
	})
}

func hangFor(d time.Duration) error { time.Sleep(d); return nil }

func TestT6_ImmediateCodeFailsLikeOtherCode(t *testing.T) {
	immediate := tool.Set(func(s *tool.Settings) { s.Immediate, s.Hooks.Immediate = true, true })
	out := tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "x"}}}
	for name, tc := range map[string]struct {
		opt  tool.Option
		want tool.ErrorKind
	}{
		"a refusal before": {toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) { return tool.Input{}, errors.New("no") }), tool.ErrorDenied},
		"a panic before":   {toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) { panic("secret value") }), tool.ErrorHook},
		"invalid arguments from a hook": {toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) {
			return tool.Input{Arguments: []byte(`{"text":7}`)}, nil
		}), tool.ErrorArguments},
		"a panic around": {toolopt.Use(func(tool.Handler) tool.Handler {
			return func(context.Context, tool.Input) (tool.Output, error) { panic("secret value") }
		}), tool.ErrorPanic},
		"other arguments around": {toolopt.Use(func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, in tool.Input) (tool.Output, error) {
				_, _ = next(ctx, tool.Input{Arguments: []byte(`{"text":"other"}`)})
				return out, nil
			}
		}), tool.ErrorMismatch},
		"a panic after": {toolopt.Post(func(context.Context, tool.Input, tool.Output) (tool.Output, error) { panic("secret value") }), tool.ErrorHook},
	} {
		t.Run(name, func(t *testing.T) {
			res, rec := do(t, &tool.Runner{}, mustBox(t, echo("a", immediate, tc.opt)), call("1", "a", `{"text":"x"}`))
			wantKind(t, res, rec, tc.want)
			if strings.Contains(res.Text(), "secret value") {
				t.Error(res.Text())
			}
		})
	}
	t.Run("a panic of the tool, which post-hooks see", func(t *testing.T) {
		seen := false
		box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) { panic("secret value") }, immediate,
			toolopt.Post(func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
				seen = out.Failed
				return out, nil
			})))
		res, rec := do(t, &tool.Runner{}, box, call("1", "a", `{}`))
		if wantKind(t, res, rec, tool.ErrorPanic); !seen {
			t.Error("the post-hook did not see the failure")
		}
	})
}
