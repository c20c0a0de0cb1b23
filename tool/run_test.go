package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

func TestT5_OrderOfHooksAndMiddleware(t *testing.T) {
	var mu sync.Mutex
	var order []string
	log := func(s string) { mu.Lock(); order = append(order, s); mu.Unlock() }
	pre := func(s string) tool.PreHook {
		return func(_ context.Context, in tool.Input) (tool.Input, error) { log("pre " + s); return in, nil }
	}
	post := func(s string) tool.PostHook {
		return func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
			log("post " + s)
			return out, nil
		}
	}
	use := func(s string) tool.Middleware {
		return func(next tool.Handler) tool.Handler {
			return func(ctx context.Context, in tool.Input) (tool.Output, error) {
				log("in " + s)
				out, err := next(ctx, in)
				log("out " + s)
				return out, err
			}
		}
	}
	box, err := tool.Config{Hooks: tool.Hooks{Pre: []tool.PreHook{pre("box1"), pre("box2")}, Use: []tool.Middleware{use("box1"), use("box2")}, Post: []tool.PostHook{post("box")}}}.Box(
		tool.New("a", "", func(context.Context, struct{}) (string, error) { log("tool"); return "", nil },
			toolopt.Pre(pre("tool")), toolopt.Use(use("tool")), toolopt.Post(post("tool"))))
	if err != nil {
		t.Fatal(err)
	}
	res, rec := do(t, &tool.Runner{}, box, call("1", "a", ""))
	wantKind(t, res, rec, "")
	want := []string{"pre box1", "pre box2", "pre tool", "in box1", "in box2", "in tool", "tool", "out tool", "out box2", "out box1", "post tool", "post box"}
	if !slices.Equal(order, want) {
		t.Errorf("%q", order)
	}
}

func TestT5_PreHookInputIsValidatedAndJudgedAgain(t *testing.T) {
	to := func(args string) tool.Option {
		return toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) {
			return tool.Input{Arguments: json.RawMessage(args)}, nil
		})
	}
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`
	var asked []string
	r := &tool.Runner{Policy: policyFunc(func(_ context.Context, q *tool.Question) (tool.Decision, error) {
		asked = append(asked, string(q.Input.Arguments))
		if string(q.Input.Arguments) == `{"n":13}` {
			return tool.Decision{Effect: tool.Deny, Reason: "not thirteen"}, nil
		}
		return tool.Decision{Effect: tool.Allow}, nil
	})}
	for _, tc := range []struct {
		name, args string
		kind       tool.ErrorKind
		asked      []string
	}{
		{"other arguments", `{"n":2}`, "", []string{`{"n":1}`, `{"n":2}`}},
		{"the same", `{"n":1}`, "", []string{`{"n":1}`}},
		{"invalid ones", `{"n":"x"}`, tool.ErrorArguments, []string{`{"n":1}`}},
		{"not JSON", `{"n":`, tool.ErrorArguments, []string{`{"n":1}`}},
		{"denied ones", `{"n":13}`, tool.ErrorDenied, []string{`{"n":1}`, `{"n":13}`}},
	} {
		asked = nil
		res, rec := do(t, r, mustBox(t, argumentsTool(schema, to(tc.args))), call("1", "f", `{"n":1}`))
		wantKind(t, res, rec, tc.kind)
		if !slices.Equal(asked, tc.asked) {
			t.Errorf("%s: the policy was asked about %q", tc.name, asked)
		}
		if tc.kind == "" && res.Display != tc.args {
			t.Errorf("%s: %s ran", tc.name, res.Display)
		}
	}
}

func TestT5_PostHooksTransformOutputAndSeeFailures(t *testing.T) {
	var seen []bool
	mark := toolopt.Post(func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
		seen = append(seen, out.Failed)
		out.Content = append(out.Content, &dragoman.Text{Text: "hooked"})
		return out, nil
	})
	ok := tool.New("ok", "", func(context.Context, struct{}) (string, error) { return "fine", nil }, mark)
	bad := tool.New("bad", "", func(context.Context, struct{}) (string, error) { return "", errors.New("no luck") }, mark)
	box := mustBox(t, ok, bad)
	res, rec := do(t, &tool.Runner{}, box, call("1", "ok", ""))
	if wantKind(t, res, rec, ""); len(res.Content) != 2 {
		t.Errorf("%d parts", len(res.Content))
	}
	res, rec = do(t, &tool.Runner{}, box, call("1", "bad", ""))
	if wantKind(t, res, rec, tool.ErrorFailed); !strings.Contains(res.Text(), "no luck") || !strings.Contains(res.Text(), "hooked") {
		t.Errorf("%s", res.Text())
	}
	if !slices.Equal(seen, []bool{false, true}) {
		t.Errorf("%v", seen)
	}
}

func TestT5_FailingHookIsAnErrorResult(t *testing.T) {
	hang := func(ctx context.Context) error {
		<-context.WithoutCancel(ctx).Done() // longer than any timeout
		return nil
	}
	for name, opt := range map[string]tool.Option{
		"an error before": toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) { return tool.Input{}, errors.New("broken") }),
		"a panic before":  toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) { panic("secret value") }),
		"a hang before": toolopt.Pre(func(ctx context.Context, in tool.Input) (tool.Input, error) {
			return in, hang(ctx)
		}),
		"an error after": toolopt.Post(func(context.Context, tool.Input, tool.Output) (tool.Output, error) {
			return tool.Output{}, errors.New("broken")
		}),
		"a panic after": toolopt.Post(func(context.Context, tool.Input, tool.Output) (tool.Output, error) { panic("secret value") }),
		"a hang after":  toolopt.Post(func(ctx context.Context, _ tool.Input, o tool.Output) (tool.Output, error) { return o, hang(ctx) }),
		"the end of a goroutine": toolopt.Pre(func(context.Context, tool.Input) (tool.Input, error) {
			runtime.Goexit()
			return tool.Input{}, nil
		}),
	} {
		opts := []tool.Option{opt}
		if strings.HasPrefix(name, "a hang") {
			opts = append(opts, tool.Set(func(s *tool.Settings) { s.Hooks.Timeout = time.Millisecond }))
		}
		res, rec := do(t, &tool.Runner{}, mustBox(t, echo("a", opts...)), call("1", "a", `{"text":"x"}`))
		want := tool.ErrorHook
		if name == "an error before" { // refuses the call
			want = tool.ErrorDenied
		}
		wantKind(t, res, rec, want)
		if strings.Contains(res.Text(), "secret value") {
			t.Errorf("%s: %s", name, res.Text())
		}
	}
}

func TestT6_MostSpecificTimeoutWinsWithinTheContext(t *testing.T) {
	for _, tc := range []struct {
		name                       string
		call, tool, box, run, left int
		want                       int
	}{
		{"the call's", 1, 2, 3, 4, 0, 1},
		{"the tool's", 0, 2, 1, 1, 0, 2},
		{"the toolbox's", 0, 0, 3, 1, 0, 3},
		{"the run's", 0, 0, 0, 4, 0, 4},
		{"the default", 0, 0, 0, 0, 0, 60},
		{"what remains", 0, 9, 9, 9, 5, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := func(n int) time.Duration { return time.Duration(n) * time.Second }
			box, err := tool.Config{Timeout: s(tc.box)}.Box(tool.New("a", "", func(ctx context.Context, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			}, tool.Timeout(s(tc.tool))))
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if tc.left > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, s(tc.left))
				defer cancel()
			}
			began := time.Now()
			b, err := (&tool.Runner{Timeout: s(tc.run)}).Start("r").Do(ctx, box, tool.Turn{Calls: []*dragoman.ToolCall{call("1", "a", "")}, Timeout: s(tc.call)})
			if err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != s(tc.want) || b.Results[0].Outcome != codes.OutcomeError {
				t.Errorf("%s: %v, %s", tc.name, took, b.Results[0].Text())
			}
			synctest.Wait()
		})
	}
}

func TestT6_LargestDurationDoesNotExpire(t *testing.T) {
	next := func(h tool.Handler) tool.Handler { return h }
	box := mustBox(t, echo("a", tool.Timeout(math.MaxInt64), toolopt.Use(next)))
	res, rec := do(t, &tool.Runner{}, box, call("1", "a", ""))
	wantKind(t, res, rec, "")
}

func TestT6_HandlerThatIgnoresItsContextIsAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var late atomic.Int32
		box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) { <-release; return "too late", nil }, tool.Timeout(time.Second)))
		r := &tool.Runner{Observe: func(ev tool.Event) {
			if l, ok := ev.(tool.LateReturn); ok && l.CallID == "1" && l.After == time.Hour {
				late.Add(1)
			}
		}}
		b, err := r.Start("r").Do(t.Context(), box, tool.Turn{Calls: []*dragoman.ToolCall{call("1", "a", "")}})
		if err != nil {
			t.Fatal(err)
		}
		wantKind(t, b.Results[0], b.Records[0], tool.ErrorTimeout)
		if !b.Records[0].Executed || b.Records[0].Latency != time.Second || !strings.Contains(b.Results[0].Text(), "1s") {
			t.Errorf("%+v", b.Records[0])
		}
		time.Sleep(time.Hour - time.Second) // the bubble's clock
		close(release)
		synctest.Wait()
		if late.Load() != 1 || strings.Contains(b.Results[0].Text(), "too late") {
			t.Errorf("reported %d times: %s", late.Load(), b.Results[0].Text())
		}
	})
}

func TestT7_PanicIsAnErrorResultWithoutItsStack(t *testing.T) {
	var logged bytes.Buffer
	box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) { panic("internal detail") }),
		tool.New("b", "", func(context.Context, struct{}) (string, error) { runtime.Goexit(); return "", nil }))
	r := &tool.Runner{Log: slog.New(slog.NewTextHandler(&logged, nil))}
	res, rec := do(t, r, box, call("1", "a", ""))
	wantKind(t, res, rec, tool.ErrorPanic)
	stored, err := json.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	if s := res.Text() + string(stored); strings.Contains(s, "internal detail") || strings.Contains(s, "goroutine") {
		t.Errorf("shown: %s", s)
	}
	if s := logged.String(); !strings.Contains(s, "internal detail") || !strings.Contains(s, "run_test.go") {
		t.Errorf("logged: %s", s)
	}
	res, rec = do(t, r, box, call("1", "b", ""))
	wantKind(t, res, rec, tool.ErrorFailed)
}

func TestT10_EveryCallHasARecord(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := &tool.Runner{Now: func() time.Time { return now }, Policy: policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
		return tool.Decision{Effect: tool.Allow, Rule: "all", Matches: []string{"all"}}, nil
	})}
	run := r.Start("run")
	run.Agent = []string{"outer", "inner"}
	b, err := run.Do(t.Context(), mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) {
		now = now.Add(time.Second)
		return "", errors.New("no luck with ghp_" + strings.Repeat("a1", 20))
	})), tool.Turn{Number: 3, Calls: []*dragoman.ToolCall{call("c9", "a", "{}")}})
	if err != nil {
		t.Fatal(err)
	}
	got := b.Records[0]
	if got.Tool != "a" || got.Run != "run" || got.Turn != 3 || got.CallID != "c9" || !slices.Equal(got.Agent, run.Agent) || got.OK || !got.Executed ||
		got.ErrorKind != tool.ErrorFailed || got.Error != "no luck with "+"[redacted]" || got.Latency != time.Second || got.Attempt != 1 || got.Replayed ||
		got.Decision.Rule != "all" || got.Arguments != (tool.Input{Arguments: json.RawMessage("{}")}).Hash() || got.Raw != "{}" {
		t.Errorf("%+v", got)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var back tool.Record
	if err := json.Unmarshal(raw, &back); err != nil || back.Arguments != got.Arguments || back.Key != got.Key {
		t.Errorf("%s: %v", raw, err)
	}
}

func TestT11_ParallelCallsAreBoundedAndResultsKeepOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		box := mustBox(t, tool.New("a", "", func(_ context.Context, in struct {
			N int `json:"n"`
		},
		) (string, error) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Duration(100-in.N) * time.Millisecond) // the last call ends first
			now.Add(-1)
			return fmt.Sprint(in.N), nil
		}))
		var calls []*dragoman.ToolCall
		for i := range 20 {
			calls = append(calls, call(fmt.Sprint("c", i), "a", fmt.Sprintf(`{"n":%d}`, i)))
		}
		b, err := (&tool.Runner{Parallel: 3}).Start("r").Do(t.Context(), box, tool.Turn{Calls: calls})
		if err != nil {
			t.Fatal(err)
		}
		for i, res := range b.Results {
			if res.CallID != calls[i].ID || withoutFence(t, res.Text()) != fmt.Sprint(i) || b.Records[i].CallID != calls[i].ID {
				t.Errorf("%d is %s: %s", i, res.CallID, res.Text())
			}
		}
		if most.Load() != 3 {
			t.Errorf("%d ran at once", most.Load())
		}
	})
}

func TestT11_ExclusiveToolRunsAloneAndInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var log []string
		running := 0
		body := func(name string, alone bool) func(context.Context, struct{}) (string, error) {
			return func(context.Context, struct{}) (string, error) {
				mu.Lock()
				running++
				log = append(log, name)
				if alone && running != 1 {
					t.Errorf("%s runs concurrently with %d others", name, running-1)
				}
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				if alone && running != 1 {
					t.Errorf("%s ran concurrently with %d others", name, running-1)
				}
				running--
				return "", nil
			}
		}
		box := mustBox(t, tool.New("a", "", body("a", false)), tool.New("x", "", body("x", true), tool.Set(func(s *tool.Settings) { s.Exclusive = true })))
		began := time.Now()
		b, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, tool.Turn{Calls: []*dragoman.ToolCall{
			call("1", "a", ""), call("2", "a", ""), call("3", "x", ""), call("4", "x", ""), call("5", "a", ""), call("6", "a", ""),
		}})
		if err != nil || len(b.Settled()) != 6 {
			t.Fatal(err)
		}
		if got := strings.Join(log, ""); got != "aaxxaa" || time.Since(began) != 4*time.Second {
			t.Errorf("%s in %v", got, time.Since(began))
		}
	})
}

func TestT12_ProgressNeverEntersTheResult(t *testing.T) {
	var seen []string
	var ctxAfter context.Context
	r := &tool.Runner{Observe: func(ev tool.Event) {
		if p, ok := ev.(tool.Progress); ok {
			seen = append(seen, p.Parts[0].(*dragoman.Text).Text)
		}
	}}
	box := mustBox(t, tool.New("a", "", func(ctx context.Context, _ struct{}) (string, error) {
		for i := range 3 {
			tool.Report(ctx, &dragoman.Text{Text: fmt.Sprint("step ", i, " ghp_0123456789abcdefghijABCDEFGHIJ012345")})
		}
		ctxAfter = ctx
		return "done", nil
	}))
	res, rec := do(t, r, box, call("1", "a", ""))
	if wantKind(t, res, rec, ""); strings.Contains(res.Text(), "step") {
		t.Error(res.Text())
	}
	tool.Report(ctxAfter, &dragoman.Text{Text: "after the end"})
	tool.Report(context.Background(), &dragoman.Text{Text: "without a call"})
	if !slices.Equal(seen, []string{"step 0 [redacted]", "step 1 [redacted]", "step 2 [redacted]"}) {
		t.Errorf("%q", seen)
	}
}

func TestT14_OnlyTheHandlerGetsSecrets(t *testing.T) {
	const secret = `p"ss wörd/+1`
	box := mustBox(t, tool.New("a", "", func(ctx context.Context, in struct {
		Fail bool `json:"fail,omitempty"`
	},
	) (any, error) {
		s, err := tool.Secret(ctx, "db")
		if err != nil {
			return nil, err
		}
		if in.Fail {
			return nil, fmt.Errorf("cannot log in with %s", s)
		}
		return tool.Output{
			Content:  []dragoman.Part{&dragoman.Text{Text: "used " + s}, &dragoman.Data{JSON: mustJSON(map[string]string{"password": s})}},
			Display:  "with " + s,
			Envelope: &dragoman.Native{Format: "x", JSON: mustJSON(s)},
		}, nil
	}))
	var events []string
	r := &tool.Runner{
		Secrets: func(_ context.Context, name string) (string, error) {
			if name != "db" {
				return "", tool.ErrNoSecret
			}
			return secret, nil
		},
		Observe: func(ev tool.Event) { events = append(events, fmt.Sprintf("%+v", ev)) },
	}
	for _, args := range []string{"{}", `{"fail":true}`} {
		res, rec := do(t, r, box, call("1", "a", args))
		all := string(mustJSON(res)) + string(mustJSON(rec)) + strings.Join(events, "\n")
		for _, spelt := range []string{secret, `p\"ss`, "wörd"} {
			if strings.Contains(all, spelt) {
				t.Errorf("%s: %q is seen in %s", args, spelt, all)
			}
		}
		if !strings.Contains(all, "[redacted]") {
			t.Errorf("%s: nothing is redacted in %s", args, all)
		}
		for _, p := range res.Content {
			if d, ok := p.(*dragoman.Data); ok && !json.Valid(d.JSON) {
				t.Errorf("not JSON: %s", d.JSON)
			}
		}
	}
	if _, err := tool.Secret(context.Background(), "db"); !errors.Is(err, tool.ErrNoSecret) {
		t.Errorf("outside of a call: %v", err)
	}
}

func TestT16_FailurePolicies(t *testing.T) {
	fails := func(f string) tool.Tool {
		return tool.New("bad", "", func(context.Context, struct{}) (string, error) { return "", errors.New("no luck") }, tool.Set(func(s *tool.Settings) { s.Failure = f }))
	}
	slow := tool.New("slow", "", func(ctx context.Context, _ struct{}) (string, error) {
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(time.Hour):
			return "done", nil
		}
	}, tool.Timeout(2*time.Hour))
	for _, tc := range []struct {
		name      string
		run, tool string
		err       error
		slow      tool.ErrorKind
		again     tool.ErrorKind
	}{
		{"continue is the default", "", "", nil, "", tool.ErrorFailed},
		{"degrade", codes.FailureDegrade, "", nil, "", tool.ErrorUnavailable},
		{"fail", codes.FailureFail, "", tool.ErrFailed, tool.ErrorCanceled, tool.ErrorFailed},
		{"the tool's own", codes.FailureFail, codes.FailureContinue, nil, "", tool.ErrorFailed},
	} {
		synctest.Test(t, func(t *testing.T) {
			box := mustBox(t, slow, fails(tc.tool))
			run := (&tool.Runner{Failure: tc.run}).Start("r")
			b, err := run.Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{call("1", "slow", ""), call("2", "bad", "")}})
			if !errors.Is(err, tc.err) || len(b.Settled()) != 2 || b.Records[0].ErrorKind != tc.slow || b.Records[1].ErrorKind != tool.ErrorFailed {
				t.Errorf("%s: %v, %s, %s", tc.name, err, b.Records[0].ErrorKind, b.Records[1].ErrorKind)
			}
			b, _ = run.Do(t.Context(), box, tool.Turn{Number: 2, Calls: []*dragoman.ToolCall{call("1", "bad", "")}})
			if b.Records[0].ErrorKind != tc.again {
				t.Errorf("%s: again %s", tc.name, b.Records[0].ErrorKind)
			}
			synctest.Wait()
		})
	}
	// A call that never ran is not a failure of the tool.
	run := (&tool.Runner{Failure: codes.FailureFail}).Start("r")
	if _, err := run.Do(t.Context(), mustBox(t, fails("")), tool.Turn{Calls: []*dragoman.ToolCall{call("1", "bad", "[]"), call("2", "nobody", "")}}); err != nil {
		t.Errorf("invalid arguments and an unknown tool: %v", err)
	}
}

func TestT16_BreakerOpensAndAllowsATrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		healthy, ran := false, 0
		box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) {
			ran++
			if healthy {
				return "fine", nil
			}
			return "", errors.New("down")
		}, tool.Set(func(s *tool.Settings) {
			s.Breaker = tool.Breaker{Failures: 3, Window: time.Minute, Pause: 10 * time.Second}
		})))
		run, turn := (&tool.Runner{}).Start("r"), 0
		try := func(want tool.ErrorKind, runs int) {
			t.Helper()
			turn++
			b, err := run.Do(t.Context(), box, tool.Turn{Number: turn, Calls: []*dragoman.ToolCall{call("1", "a", "")}})
			if err != nil || b.Records[0].ErrorKind != want || ran != runs {
				t.Fatalf("%v: %q after %d runs, want %q after %d", err, b.Records[0].ErrorKind, ran, want, runs)
			}
		}
		try(tool.ErrorFailed, 1)
		try(tool.ErrorFailed, 2)
		try(tool.ErrorFailed, 3)
		try(tool.ErrorUnavailable, 3)
		time.Sleep(11 * time.Second)
		try(tool.ErrorFailed, 4) // admitted as a trial
		try(tool.ErrorUnavailable, 4)
		time.Sleep(11 * time.Second)
		healthy = true
		try("", 5)
		try("", 6)
	})
}

// With "continue", an open breaker is an error result. With the other policies it counts as a
// failure of the tool.
func TestT16_OpenBreakerCountsAsAFailure(t *testing.T) {
	for _, tc := range []struct {
		policy string
		err    error
		slow   tool.ErrorKind
		later  tool.ErrorKind // after the pause of the breaker
	}{
		{codes.FailureContinue, nil, "", ""},
		{codes.FailureDegrade, nil, "", tool.ErrorUnavailable},
		{codes.FailureFail, tool.ErrFailed, tool.ErrorCanceled, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			healthy := false
			box := mustBox(t,
				tool.New("slow", "", func(ctx context.Context, _ struct{}) (string, error) {
					select {
					case <-ctx.Done():
						return "", ctx.Err()
					case <-time.After(time.Second):
						return "done", nil
					}
				}),
				tool.New("bad", "", func(context.Context, struct{}) (string, error) {
					if healthy {
						return "fine", nil
					}
					return "", errors.New("down")
				}, tool.Set(func(s *tool.Settings) {
					s.Breaker, s.Failure = tool.Breaker{Failures: 1, Pause: 10 * time.Second}, tc.policy
				})))
			// A failure in another run opens the breaker.
			if b, err := (&tool.Runner{}).Start("r1").Do(t.Context(), box, turn(1, call("1", "bad", ""))); !errors.Is(err, tc.err) || b.Records[0].ErrorKind != tool.ErrorFailed {
				t.Fatalf("%s: %v, %q", tc.policy, err, b.Records[0].ErrorKind)
			}
			run := (&tool.Runner{}).Start("r2")
			b, err := run.Do(t.Context(), box, turn(1, call("1", "slow", ""), call("2", "bad", "")))
			if !errors.Is(err, tc.err) || b.Records[0].ErrorKind != tc.slow || b.Records[1].ErrorKind != tool.ErrorUnavailable || b.Records[1].Executed {
				t.Errorf("%s: %v, %q, %q", tc.policy, err, b.Records[0].ErrorKind, b.Records[1].ErrorKind)
			}
			healthy = true
			time.Sleep(11 * time.Second)
			if b, err = run.Do(t.Context(), box, turn(2, call("1", "bad", ""))); err != nil || b.Records[0].ErrorKind != tc.later {
				t.Errorf("%s, later: %v, %q", tc.policy, err, b.Records[0].ErrorKind)
			}
		})
	}
}

func TestT10_RepeatedResultKeepsItsErrorKind(t *testing.T) {
	box := mustBox(t, tool.New("hang", "", func(context.Context, struct{}) (string, error) { panic("no") }))
	run := (&tool.Runner{}).Start("r")
	first, err := run.Do(t.Context(), box, turn(0, call("1", "hang", ""), call("2", "hang", "[]")))
	if err != nil {
		t.Fatal(err)
	}
	const turns = 20 // until the records of the first turn are discarded
	for i := range turns {
		if _, err := run.Do(t.Context(), box, turn(1+i, call("1", "hang", ""))); err != nil {
			t.Fatal(err)
		}
	}
	again := turn(0, call("1", "hang", ""), call("2", "hang", "[]"))
	again.Results = first.Results
	for in, of := range map[string]struct {
		run  *tool.Run
		want []tool.ErrorKind
	}{
		"the same process":                           {run, []tool.ErrorKind{tool.ErrorPanic, tool.ErrorArguments}},
		"another, which knows only that they failed": {(&tool.Runner{}).Start("r"), []tool.ErrorKind{tool.ErrorFailed, tool.ErrorFailed}},
	} {
		b, err := of.run.Do(t.Context(), box, again)
		if err != nil {
			t.Fatal(err)
		}
		for i, rec := range b.Records {
			if rec.ErrorKind != of.want[i] || rec.OK || rec.Executed || !rec.Replayed || rec.Error != first.Records[i].Error || rec.Error == "" {
				t.Errorf("%s: %q, want %q: %+v", in, rec.ErrorKind, of.want[i], rec)
			}
		}
	}
}

func TestQuirkI5_CallIDIdentifiesOneCall(t *testing.T) {
	ran := 0
	box := mustBox(t, tool.New("a", "", func(context.Context, struct {
		N int `json:"n,omitempty"`
	},
	) (string, error) {
		ran++
		return fmt.Sprint("run ", ran), nil
	}))
	run := (&tool.Runner{}).Start("r")
	turn := func(n int, calls ...*dragoman.ToolCall) (*tool.Batch, error) {
		return run.Do(t.Context(), box, tool.Turn{Number: n, Calls: calls})
	}
	first, err := turn(1, call("c", "a", "{}"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := turn(1, call("c", "a", "{}"))
	if err != nil || ran != 1 || again.Results[0] != first.Results[0] || !again.Records[0].Replayed {
		t.Errorf("%v: ran %d times", err, ran)
	}
	if b, err := turn(1, call("d", "a", "{}"), call("c", "a", `{"n":1}`)); !errors.Is(err, tool.ErrConflict) || ran != 1 || len(b.Settled()) != 0 {
		t.Errorf("other content: %v, ran %d times", err, ran)
	}
	if _, err := turn(2, call("x", "a", "{}"), call("x", "a", "{}")); !errors.Is(err, tool.ErrConflict) || ran != 1 {
		t.Errorf("an id twice: %v, ran %d times", err, ran)
	}
	if _, err := turn(2, nil); !errors.Is(err, tool.ErrConflict) {
		t.Errorf("nil: %v", err)
	}
	if _, err := turn(3, call("c", "a", `{"n":1}`)); err != nil || ran != 2 {
		t.Errorf("the same id in a later turn: %v, ran %d times", err, ran)
	}
}

func TestQuirkI7_CanceledTurnHasAResultForEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		box := mustBox(t, tool.New("a", "", func(context.Context, struct{}) (string, error) { <-release; return "", nil }), echo("b"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		b, err := (&tool.Runner{Parallel: 1}).Start("r").Do(ctx, box, tool.Turn{Calls: []*dragoman.ToolCall{call("1", "a", ""), call("2", "b", "")}})
		if err != nil || len(b.Settled()) != 2 {
			t.Fatalf("%v, %d results", err, len(b.Settled()))
		}
		for i, want := range []string{"may have had an effect", "did not run"} {
			if b.Records[i].ErrorKind != tool.ErrorCanceled || b.Records[i].Executed != (i == 0) || !strings.Contains(b.Results[i].Text(), want) {
				t.Errorf("%s: %s", b.Records[i].ErrorKind, b.Results[i].Text())
			}
		}
	})
}

// nilError is an error whose Error method panics.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

type panickyText struct{}

func (*panickyText) UnmarshalText([]byte) error { panic("no") }

func TestT7_ErrorsAndTypesThatPanicAreContained(t *testing.T) {
	var none *nilError
	box := mustBox(t,
		tool.New("error", "", func(context.Context, struct{}) (string, error) { return "", none }),
		tool.New("hook", "", func(context.Context, struct{}) (string, error) { return "", nil }, toolopt.Pre(func(_ context.Context, in tool.Input) (tool.Input, error) { return in, none })),
		tool.New("type", "", func(context.Context, map[string]panickyText) (string, error) { return "", nil }))
	policy := policyFunc(func(_ context.Context, q *tool.Question) (tool.Decision, error) {
		if q.CallID == "4" {
			return tool.Decision{}, none
		}
		return tool.Decision{Effect: tool.Allow}, nil
	})
	b, err := (&tool.Runner{Policy: policy, Log: slog.New(slog.DiscardHandler)}).Start("r").Do(t.Context(), box, tool.Turn{Calls: []*dragoman.ToolCall{
		call("1", "error", ""), call("2", "hook", ""), call("3", "type", `{"a":"x"}`), call("4", "error", ""),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []tool.ErrorKind{tool.ErrorPanic, tool.ErrorHook, tool.ErrorArguments, tool.ErrorDenied} {
		if b.Records[i].ErrorKind != want {
			t.Errorf("call %d: %s (%s), want %s", i+1, b.Records[i].ErrorKind, b.Records[i].Error, want)
		}
	}
}

func TestA4_RetryRunsTheApprovedInput(t *testing.T) {
	type in struct {
		Items []string `json:"items"`
	}
	var got []string
	retry := toolopt.Use(func(next tool.Handler) tool.Handler {
		return func(ctx context.Context, in tool.Input) (tool.Output, error) {
			_, _ = next(ctx, in)
			return next(ctx, in)
		}
	})
	box := mustBox(t, tool.New("f", "", func(_ context.Context, i in) (string, error) {
		got = append(got, i.Items[0])
		i.Items[0] = "/etc/shadow"
		return "", nil
	}, retry))
	res, rec := do(t, &tool.Runner{}, box, call("1", "f", `{"items":["safe"]}`))
	if wantKind(t, res, rec, ""); !slices.Equal(got, []string{"safe", "safe"}) {
		t.Errorf("%q ran", got)
	}
}

func TestInfoFromWorksInHooks(t *testing.T) {
	var seen []string
	see := func(ctx context.Context, where string) {
		info, ok := tool.InfoFrom(ctx)
		seen = append(seen, fmt.Sprint(where, ok, info.Key.Name, info.CallID, info.Run, info.Turn, info.Attempt))
	}
	inner := tool.New("inner", "Is called by another.", func(context.Context, struct{}) (string, error) { return "", nil })
	box, err := tool.Config{Hooks: tool.Hooks{
		Pre: []tool.PreHook{func(ctx context.Context, in tool.Input) (tool.Input, error) { see(ctx, "pre"); return in, nil }},
		Post: []tool.PostHook{func(ctx context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
			see(ctx, "post")
			return out, nil
		}},
	}}.Box(inner)
	if err != nil {
		t.Fatal(err)
	}
	around := tool.New("outer", "Calls another.", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := (&tool.Runner{}).Start("in").Do(ctx, box, tool.Turn{Number: 2, Calls: []*dragoman.ToolCall{{ID: "i", Name: "inner", Arguments: "{}"}}})
		return "", err
	})
	outer, err := tool.NewBox(around)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&tool.Runner{}).Start("out").Do(t.Context(), outer, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "o", Name: "outer", Arguments: "{}"}}}); err != nil {
		t.Fatal(err)
	}
	if want := "[pretrueinneriin2 1 posttrueinneriin2 1]"; fmt.Sprint(seen) != want {
		t.Errorf("%v", seen)
	}
}
