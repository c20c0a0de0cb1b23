package tool_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

func turn(number int, calls ...*dragoman.ToolCall) tool.Turn {
	return tool.Turn{Number: number, Calls: calls}
}

// countingTool is a tool that counts its runs.
func countingTool(n *atomic.Int32) tool.Tool {
	return tool.New("pay", "", func(context.Context, struct{}) (string, error) { n.Add(1); return "paid", nil })
}

func TestRepeatedTurnNeverRunsAgain(t *testing.T) {
	var n atomic.Int32
	run, box := (&tool.Runner{}).Start("r"), mustBox(t, countingTool(&n))
	var first *dragoman.ToolResult
	const turns = 20
	for i := range turns {
		b, err := run.Do(t.Context(), box, turn(i, call("c", "pay", "")))
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = b.Results[0]
		}
	}
	// A repetition of one of the last eight turns gets the stored results. An older one is an
	// error.
	b, err := run.Do(t.Context(), box, turn(turns-8, call("c", "pay", "")))
	if err != nil || !b.Records[0].Replayed || b.Results[0] == nil {
		t.Errorf("%v: %+v", err, b)
	}
	b, err = run.Do(t.Context(), box, turn(0, call("c", "pay", "")))
	if !errors.Is(err, tool.ErrRepeated) || !strings.Contains(err.Error(), "Turn.Results") || len(b.Results) != 0 {
		t.Errorf("%v: %+v", err, b)
	}
	// The advice in the error works.
	again := turn(0, call("c", "pay", ""))
	again.Results = []*dragoman.ToolResult{first}
	if b, err = run.Do(t.Context(), box, again); err != nil || b.Results[0] != first {
		t.Errorf("%v: %+v", err, b)
	}
	if n.Load() != turns {
		t.Errorf("%d runs of %d calls", n.Load(), turns)
	}
}

func TestRunningTurnCannotBeStartedAgain(t *testing.T) {
	var n atomic.Int32
	inside, goOn := make(chan struct{}), make(chan struct{})
	slow := tool.New("pay", "", func(context.Context, struct{}) (string, error) {
		n.Add(1)
		close(inside)
		<-goOn
		return "paid", nil
	})
	run, box := (&tool.Runner{}).Start("r"), mustBox(t, slow)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := run.Do(context.Background(), box, turn(1, call("c", "pay", ""))); err != nil {
			t.Error(err)
		}
	})
	<-inside
	if _, err := run.Do(t.Context(), box, turn(1, call("c", "pay", ""))); !errors.Is(err, tool.ErrRepeated) {
		t.Errorf("%v", err)
	}
	close(goOn)
	wg.Wait()
	b, err := run.Do(t.Context(), box, turn(1, call("c", "pay", "")))
	if err != nil || !b.Records[0].Replayed || n.Load() != 1 {
		t.Errorf("%v, %d runs: %+v", err, n.Load(), b)
	}
}

func TestMiddlewareRetryWithOtherInputIsAMismatch(t *testing.T) {
	var n atomic.Int32
	twice := toolopt.Use(func(next tool.Handler) tool.Handler {
		return func(ctx context.Context, in tool.Input) (tool.Output, error) {
			if _, err := next(ctx, in); err != nil {
				return tool.Output{}, err
			}
			return next(ctx, tool.Input{Arguments: json.RawMessage(`{"text":"other"}`)})
		}
	})
	f := tool.New("f", "", func(_ context.Context, in struct {
		Text string `json:"text"`
	},
	) (string, error) {
		n.Add(1)
		return in.Text, nil
	}, twice)
	res, rec := do(t, &tool.Runner{}, mustBox(t, f), call("1", "f", `{"text":"a"}`))
	wantKind(t, res, rec, tool.ErrorMismatch)
	if n.Load() != 1 || !rec.Executed || strings.Contains(res.Text(), "f did not run") {
		t.Errorf("%d runs, executed %v: %s", n.Load(), rec.Executed, res.Text())
	}
}

func TestLateMiddlewareCannotRunTheTool(t *testing.T) {
	var n atomic.Int32
	goOn, returned := make(chan struct{}), make(chan error, 1)
	late := func(next tool.Handler) tool.Handler {
		return func(ctx context.Context, in tool.Input) (tool.Output, error) {
			<-goOn // long after the timeout
			out, err := next(context.WithoutCancel(ctx), in)
			returned <- err
			return out, err
		}
	}
	box, err := tool.Config{Hooks: tool.Hooks{Use: []tool.Middleware{late}, Timeout: time.Millisecond}, Timeout: time.Millisecond}.Box(countingTool(&n))
	if err != nil {
		t.Fatal(err)
	}
	res, rec := do(t, &tool.Runner{}, box, call("1", "pay", ""))
	wantKind(t, res, rec, tool.ErrorTimeout)
	close(goOn)
	if err := <-returned; err == nil || n.Load() != 0 {
		t.Errorf("%d runs after the call was answered: %v", n.Load(), err)
	}
}

// hostileDecoder is an argument whose custom decoder panics, hangs or ends its goroutine.
type hostileDecoder struct{ how string }

func (s *hostileDecoder) UnmarshalJSON(b []byte) error {
	switch s.how = string(b); s.how {
	case `"hang"`:
		select {}
	case `"panic"`:
		panic("no")
	case `"exit"`:
		runtime.Goexit()
	case `"odd"`:
		return oddError{}
	}
	return nil
}

type oddError struct{}

func (oddError) Error() string { panic("no text") }

func TestCustomDecodersAreContained(t *testing.T) {
	f := tool.New("f", "", func(context.Context, struct {
		S hostileDecoder `json:"s"`
	},
	) (string, error) {
		return "ran", nil
	}, tool.Set(func(s *tool.Settings) { s.Timeout = 20 * time.Millisecond }))
	f.Spec().Parameters = json.RawMessage(`{"type":"object"}`)
	box := mustBox(t, f)
	for _, how := range []string{"hang", "panic", "exit", "odd"} {
		res, rec := do(t, &tool.Runner{}, box, call("1", "f", fmt.Sprintf(`{"s":%q}`, how)))
		if wantKind(t, res, rec, tool.ErrorArguments); rec.Executed {
			t.Errorf("%s: it ran", how)
		}
	}
	res, rec := do(t, &tool.Runner{}, box, call("1", "f", `{"s":"fine"}`))
	wantKind(t, res, rec, "")
}

// panickyStore is a journal and a spill store whose methods panic.
type panickyStore struct{ begin, end bool }

func (j panickyStore) Begin(context.Context, tool.Intent) (tool.Prior, error) {
	if j.begin {
		panic("begin")
	}
	return tool.Prior{}, nil
}

func (j panickyStore) End(context.Context, tool.Intent, *dragoman.ToolResult) error {
	if j.end {
		panic("end")
	}
	return nil
}

func (panickyStore) Put(context.Context, tool.CallRef, int, string) (string, error) { panic("put") }
func (panickyStore) Read(context.Context, string, string, int, int) (string, int, error) {
	panic("read")
}

func TestT7_HostPanicsBecomeErrorResults(t *testing.T) {
	for name, r := range map[string]*tool.Runner{
		"a journal before":     {Journal: panickyStore{begin: true}},
		"a journal after":      {Journal: panickyStore{end: true}},
		"a store of outputs":   {Spill: panickyStore{}, Limits: tool.Limits{Chars: 10}},
		"a counter of tokens":  {Count: func(string) int { panic("count") }, Limits: tool.Limits{Tokens: 1}},
		"a source of chance":   {Random: panicReader{}},
		"an observer":          {Observe: func(tool.Event) { panic("observe") }},
		"a logger":             {Log: slog.New(panicHandler{}), Policy: policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) { panic("policy") })},
		"a policy's quickness": {Policy: panickyPolicy{}},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			f := tool.New("f", "", func(context.Context, struct{}) (string, error) { n.Add(1); return strings.Repeat("x", 100), nil })
			b, err := r.Start("r").Do(t.Context(), mustBox(t, f), turn(1, call("1", "f", "")))
			if b == nil || len(b.Results) != 1 || b.Results[0] == nil {
				t.Fatalf("%v: %+v", err, b)
			}
			if rec := b.Records[0]; rec.Executed != (n.Load() == 1) {
				t.Errorf("%d runs, and the record says %v", n.Load(), rec.Executed)
			}
		})
	}
}

type panicReader struct{}

func (panicReader) Read([]byte) (int, error) { panic("random") }

type panicHandler struct{ slog.Handler }

func (panicHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (panicHandler) Handle(context.Context, slog.Record) error { panic("log") }

type panickyPolicy struct{ policyFunc }

func (panickyPolicy) Immediate() bool { panic("immediate") }

// quickPolicy is an immediate policy.
type quickPolicy struct{ policyFunc }

func (quickPolicy) Immediate() bool { return true }

// hungError is an error and a panic value whose methods never return. The first call of Error may
// return.
type hungError struct {
	asked atomic.Int32
	once  bool
	end   <-chan struct{}
}

func (s *hungError) Error() string {
	if s.asked.Add(1) > 1 || !s.once {
		<-s.end
	}
	return "stuck"
}

func (s *hungError) Is(error) bool {
	if !s.once {
		<-s.end
	}
	return false
}

func TestT6_HungErrorMethodsTimeOut(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	short := tool.Set(func(s *tool.Settings) { s.Timeout, s.Hooks.Timeout = time.Millisecond, time.Millisecond })
	returns := func(once bool) func(context.Context, struct{}) (string, error) {
		return func(context.Context, struct{}) (string, error) { return "", &hungError{once: once, end: end} }
	}
	pass := toolopt.Use(func(next tool.Handler) tool.Handler { return next })
	box := mustBox(t,
		tool.New("never", "", returns(false), short),
		tool.New("once", "", returns(true), short),
		tool.New("wrapped", "", returns(true), short, pass),
		tool.New("panics", "", func(context.Context, struct{}) (string, error) { panic(&hungError{end: end}) }, short),
		echo("pre", short, toolopt.Pre(func(_ context.Context, in tool.Input) (tool.Input, error) {
			return in, &hungError{once: true, end: end}
		})),
		echo("post", short, toolopt.Post(func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
			return out, &hungError{once: true, end: end}
		})),
		echo("asks", short, toolopt.NeedsApprovalFor(func(context.Context, tool.Input) (bool, error) { return false, &hungError{once: true, end: end} })),
	)
	var calls []*dragoman.ToolCall
	for _, l := range box.List() {
		calls = append(calls, call(l.Name, l.Name, ""))
	}
	b, err := (&tool.Runner{Log: slog.New(slog.DiscardHandler)}).Start("r").Do(t.Context(), box, turn(1, calls...))
	if err != nil || len(b.Settled()) != len(calls)-1 || len(b.Pending) != 1 {
		t.Errorf("%v: %+v", err, b.Records)
	}
}

// If host code ends its goroutine, the step fails. Later steps must not run as if it had
// passed.
func TestP5_GoexitInHostCodeDeniesTheCall(t *testing.T) {
	ends := func(when func(tool.Event) bool) func(tool.Event) {
		return func(ev tool.Event) {
			if when(ev) {
				runtime.Goexit()
			}
		}
	}
	denies := policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
		return tool.Decision{Effect: tool.Deny}, nil
	})
	for name, r := range map[string]*tool.Runner{
		"an immediate policy": {Policy: quickPolicy{func(context.Context, *tool.Question) (tool.Decision, error) {
			runtime.Goexit()
			return tool.Decision{}, nil
		}}},
		"an observer of decisions": {Policy: denies, Observe: ends(func(ev tool.Event) bool { _, ok := ev.(tool.PolicyDecided); return ok })},
		"an observer of the end":   {Policy: denies, Observe: ends(func(ev tool.Event) bool { _, ok := ev.(tool.CallEnded); return ok })},
		"an observer of the start": {Observe: ends(func(ev tool.Event) bool { _, ok := ev.(tool.CallStarted); return ok })},
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			b, err := r.Start("r").Do(t.Context(), mustBox(t, countingTool(&n)), turn(1, call("1", "pay", ""), call("2", "pay", "")))
			if err != nil || n.Load() != 0 {
				t.Fatalf("%v, and it ran %d times", err, n.Load())
			}
			for i, res := range b.Results {
				if res == nil || res.Outcome != codes.OutcomeError || b.Records[i].OK {
					t.Errorf("call %d has the result %v", i+1, res)
				}
			}
		})
	}
}

func TestP5_FailingImmediatePolicyDenies(t *testing.T) {
	for name, decide := range map[string]policyFunc{
		"fails": func(context.Context, *tool.Question) (tool.Decision, error) {
			return tool.Decision{Effect: tool.Allow}, errors.New("no")
		},
		"panics": func(context.Context, *tool.Question) (tool.Decision, error) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			var n atomic.Int32
			res, rec := do(t, &tool.Runner{Policy: quickPolicy{decide}}, mustBox(t, countingTool(&n)), call("1", "pay", ""))
			if wantKind(t, res, rec, tool.ErrorDenied); n.Load() != 0 {
				t.Error("it ran")
			}
		})
	}
}

func TestT14_SecretsAreRedactedInLogsTicketsAndLaterOutputs(t *testing.T) {
	const secret = "hunter2-correct/horse"
	var log bytes.Buffer
	tickets := &tool.Tickets{Store: &tool.MemoryTickets{}}
	runner := &tool.Runner{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Tickets: tickets,
		Secrets: func(context.Context, string) (string, error) { return secret, nil },
	}
	get := func(ctx context.Context) string {
		s, err := tool.Secret(ctx, "key")
		if err != nil {
			t.Error(err)
		}
		return s
	}
	box := mustBox(t,
		tool.New("panics", "", func(ctx context.Context, _ struct{}) (string, error) { panic("bad key " + get(ctx)) }),
		tool.New("works", "", func(ctx context.Context, _ struct{}) (*tool.Ticket, error) {
			ticket, err := tool.Background(ctx, time.Hour)
			if err != nil {
				return nil, err
			}
			return ticket, tickets.Resolve(ctx, ticket.ID, tool.Output{Content: []dragoman.Part{&dragoman.Text{Text: "used " + get(ctx)}}})
		}),
		tool.New("tells", "", func(context.Context, struct{}) (string, error) {
			return `{"k":"hunter2-correct\/horse"} ` + secret, nil
		}),
	)
	run := runner.Start("r")
	b, err := run.Do(t.Context(), box, turn(1, call("1", "panics", ""), call("2", "works", "")))
	if err != nil {
		t.Fatal(err)
	}
	reported, err := run.Do(t.Context(), box, turn(2, call("1", "tells", "")))
	if err != nil {
		t.Fatal(err)
	}
	delivered, err := run.Deliver(t.Context(), box)
	if err != nil || len(delivered) != 1 {
		t.Fatal(delivered, err)
	}
	for what, text := range map[string]string{
		"log": log.String(), "results": string(mustJSON(b)), "another tool": reported.Results[0].Text() + string(mustJSON(reported.Records)), "delivery": string(mustJSON(delivered)),
	} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("%s: %s", what, text)
		}
	}
	if !strings.Contains(log.String(), "panicked") || !strings.Contains(string(mustJSON(delivered)), "used "+"[redacted]") {
		t.Errorf("log %s\ndelivered %s", log.String(), mustJSON(delivered))
	}
}

// A policy may set an argument to a secret, which the record must not contain.
func TestT14_SecretsAreRedactedInRecordedDecisions(t *testing.T) {
	const secret = "hunter2-correct"
	edit := tool.Edit{Argument: "text", Value: json.RawMessage(`"` + secret + `"`)}
	runner := &tool.Runner{
		Redactor: &tool.Redactor{Secrets: []string{secret}},
		Policy: policyFunc(func(context.Context, *tool.Question) (tool.Decision, error) {
			return tool.Decision{Effect: tool.Allow, Reason: "it gets " + secret, Edits: []tool.Edit{edit}}, nil
		}),
	}
	got := ""
	box := mustBox(t, tool.New("t", "", func(_ context.Context, in struct {
		Text string `json:"text,omitempty"`
	},
	) (string, error) {
		got = in.Text
		return "", nil
	}))
	_, rec := do(t, runner, box, call("1", "t", ""))
	if text := string(mustJSON(rec)) + string(mustJSON(box.Recent())); strings.Contains(text, secret) || !strings.Contains(text, "[redacted]") {
		t.Error(text)
	}
	if got != secret || string(edit.Value) != `"`+secret+`"` {
		t.Errorf("the tool got %q", got)
	}
}

func TestT9_LongerSecretIsRedactedFirst(t *testing.T) {
	for _, secrets := range [][]string{{"abcdef", "abcdef-and-the-rest"}, {"abcdef-and-the-rest", "abcdef"}} {
		r := &tool.Redactor{Secrets: secrets}
		if got := r.Redact("x abcdef-and-the-rest y abcdef"); got != "x "+"[redacted]"+" y "+"[redacted]" {
			t.Errorf("%q: %q", secrets, got)
		}
	}
}

// ledger is a journal that records the calls of its methods.
type ledger struct {
	mu    sync.Mutex
	begun []string
	ended map[string]*dragoman.ToolResult
}

func (l *ledger) Begin(_ context.Context, in tool.Intent) (tool.Prior, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.begun = append(l.begun, in.CallID)
	return tool.Prior{}, nil
}

func (l *ledger) End(_ context.Context, in tool.Intent, res *dragoman.ToolResult) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended == nil {
		l.ended = map[string]*dragoman.ToolResult{}
	}
	l.ended[in.CallID] = res
	return nil
}

func TestL14_CanceledCallKeepsItsIntentWithoutResult(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stuck := tool.New("stuck", "", func(ctx context.Context, _ struct{}) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	})
	j := &ledger{}
	b, err := (&tool.Runner{Journal: j}).Start("r").Do(ctx, mustBox(t, stuck), turn(1, call("1", "stuck", "")))
	if err != nil || b.Records[0].ErrorKind != tool.ErrorCanceled {
		t.Fatalf("%v: %+v", err, b.Records)
	}
	if len(j.begun) != 1 || len(j.ended) != 0 {
		t.Errorf("begun %q, ended %v", j.begun, j.ended)
	}
}
