package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
)

// summary returns a short form of an event.
func summary(ev agent.Event) string {
	switch ev := ev.(type) {
	case *agent.ModelEvent:
		return "model." + ev.Event.Type()
	case *agent.ToolEvent:
		return strings.TrimPrefix(fmt.Sprintf("%T", ev.Event), "tool.")
	default:
		return ev.Type()
	}
}

func TestL11_EventsComeInOrderAndEndWithTheResult(t *testing.T) {
	var did counted
	a := agent.Agent{Model: model(calls("a look"), textResponse("ok")), Tools: []tool.Tool{did.tool("look")}}
	var got []string
	for ev, err := range a.Stream(t.Context(), "go") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, summary(ev))
		if c, ok := ev.(*agent.ToolCalled); ok && c.Call.Arguments != "{}" {
			t.Errorf("%+v", c.Call)
		}
		if end, ok := ev.(*agent.RunEnd); ok && end.Result.Output != "ok" {
			t.Errorf("%+v", end.Result)
		}
	}
	want := "run_start turn_start model.response_start model.part_start model.part_end model.response_end message_added tool_call " +
		"CallStarted CallEnded tool_result turn_end " +
		"turn_start model.response_start model.part_start model.part_delta model.part_end model.response_end message_added turn_end run_end"
	if s := strings.Join(got, " "); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}

// Calls that must not run have events like all others, so that a user interface can show the
// outcome of every call.
func TestL11_EveryToolCalledHasAToolReturned(t *testing.T) {
	ended := func(reason dragoman.StopReason) *dragoman.Response {
		resp := calls("a look", "b look")
		resp.Stop.Reason = reason
		return resp
	}
	var did counted
	next := agent.Agent{Name: "next", Model: model()}
	last := agent.Agent{Name: "last", Model: model()}
	for name, tc := range map[string]struct {
		answer *dragoman.Response
		ran    int
	}{
		"they ran":                  {ended(dragoman.StopToolCalls), 2},
		"the response was cut off":  {ended(dragoman.StopLength), 0},
		"a call is malformed":       {ended(dragoman.StopMalformedCall), 0},
		"the response was withheld": {ended(dragoman.StopContentFilter), 0},
		"the model refused":         {ended(dragoman.StopRefusal), 0},
		"one is not loaded":         {calls("a look", "b hidden"), 1},
		"two handoffs":              {calls("a transfer_to_next", "b transfer_to_last"), 1},
		"one is over the limit":     {calls("a look", "b look", "c look"), 2},
		"one is hosted":             {hostedAndCall(calls("a look", "b look")), 2},
	} {
		a := agent.Agent{
			Model: model(tc.answer), Tools: []tool.Tool{did.tool("look"), did.tool("hidden", tool.Deferred())},
			Handoffs: []agent.Handoff{{To: &next}, {To: &last}}, Limits: agent.Limits{ToolCalls: 2},
		}
		var order []string
		open, ran, inTurn := map[string]bool{}, 0, false
		for ev := range a.Stream(t.Context(), "go") {
			switch ev := ev.(type) {
			case *agent.TurnStart:
				inTurn = true
			case *agent.TurnEnd:
				inTurn = false
			case *agent.ToolCalled:
				open[ev.Call.ID] = true
				order = append(order, ev.Call.ID)
			case *agent.ToolEvent:
				if _, ok := ev.Event.(tool.CallStarted); ok {
					ran++
				}
			case *agent.ToolReturned:
				if !open[ev.Result.CallID] || !inTurn {
					t.Errorf("%s: %s is answered, and was not told", name, ev.Result.CallID)
				}
				delete(open, ev.Result.CallID)
				order = append(order, "="+ev.Result.CallID)
			}
		}
		n := len(tc.answer.ToolCalls())
		if name == "one is hosted" {
			n--
		}
		if len(open) > 0 || len(order) != 2*n || ran != tc.ran {
			t.Errorf("%s: told %q, %d ran", name, order, ran)
		}
	}
}

// hostedAndCall adds a tool call that the provider has run to a response.
func hostedAndCall(resp *dragoman.Response) *dragoman.Response {
	m := &resp.Output[0]
	m.Parts = append([]dragoman.Part{&dragoman.ToolCall{ID: "h", Name: "web_search", Hosted: true, Arguments: "{}"}}, m.Parts...)
	return resp
}

// chunkModel is a model whose stream contains its native bytes.
type chunkModel struct{ *scripted }

func (m chunkModel) Stream(ctx context.Context, req *dragoman.Request) iter.Seq2[dragoman.Event, error] {
	return func(yield func(dragoman.Event, error) bool) {
		for ev, err := range m.scripted.Stream(ctx, req) {
			if !yield(&dragoman.Chunk{Raw: []byte("data: {}")}, nil) || !yield(&dragoman.Chunk{}, nil) || !yield(ev, err) {
				return
			}
		}
	}
}

// recordedTransport is a transport that records the bodies of responses.
type recordedTransport struct{ bodies bytes.Buffer }

func (t *recordedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &t.bodies), resp.Body}
	return resp, nil
}

func TestL11_RawChunksComeFromEveryWireAndThroughChains(t *testing.T) {
	for name, s := range stacks() {
		for _, chained := range []bool{false, true} {
			for _, asked := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/chain=%t/asked=%t", name, chained, asked), func(t *testing.T) {
					server := httptest.NewServer(sim.Handler(sim.Config{}))
					defer server.Close()
					tape := &recordedTransport{}
					var m dragoman.Model = &provider.Client{
						Codec: s.codec, Model: "sim/echo", BaseURL: server.URL + s.base, HTTP: &http.Client{Transport: tape},
					}
					if chained {
						m = &provider.Chain{Links: []provider.Link{{Name: "one", Model: m}}}
					}
					var opts []agent.Option
					if asked {
						opts = append(opts, agent.Chunks())
					}
					chunks := 0
					for ev, err := range (agent.Agent{Model: m}).Stream(t.Context(), "Do I need a coat?", opts...) {
						if err != nil {
							t.Fatal(err)
						}
						ev, ok := ev.(*agent.ModelEvent)
						if !ok {
							continue
						}
						if c, ok := ev.Event.(*dragoman.Chunk); ok {
							chunks++
							if !bytes.Contains(tape.bodies.Bytes(), c.Raw) {
								t.Errorf("the server did not send %q", c.Raw)
							}
						}
					}
					if (chunks > 0) != asked {
						t.Errorf("%d chunks", chunks)
					}
				})
			}
		}
	}
}

func TestL11_RawChunksAreOptional(t *testing.T) {
	for asked, opts := range map[bool][]agent.Option{true: {agent.Chunks()}, false: nil} {
		told := 0
		for ev, err := range (agent.Agent{Model: chunkModel{model(textResponse("hi"))}}).Stream(t.Context(), "go", opts...) {
			if err != nil {
				t.Fatal(err)
			}
			if ev, ok := ev.(*agent.ModelEvent); ok {
				if chunk, ok := ev.Event.(*dragoman.Chunk); ok {
					told++
					if len(chunk.Raw) == 0 {
						t.Error("a chunk without bytes became an event")
					}
				}
			}
		}
		if (told > 0) != asked {
			t.Errorf("with Chunks %t: %d chunks", asked, told)
		}
	}
}

// goroutineChecker is a task runner. All code that a run calls must run on its goroutines, or on the
// goroutine that began the run.
type goroutineChecker struct {
	t      *testing.T
	mu     sync.Mutex
	begins int
	seen   map[string]bool
}

func (b *goroutineChecker) start(task func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begins++
	go task()
}

// here checks that the current goroutine was started by start.
func (b *goroutineChecker) here(what string) {
	stack := string(debug.Stack())
	b.mu.Lock()
	defer b.mu.Unlock()
	if !strings.Contains(stack, "created by github.com/dragoman-go/dragoman/agent_test.(*goroutineChecker).start") {
		b.t.Errorf("%s is called on another goroutine:\n%s", what, stack)
	}
	b.seen[what] = true
}

// Decide is a policy that asks about every call, and Approve an approver that agrees.
func (b *goroutineChecker) Decide(_ context.Context, q *tool.Question) (tool.Decision, error) {
	b.here("policy")
	if q.Subject == codes.SubjectModelCall {
		return tool.Decision{Effect: tool.Allow}, nil
	}
	return tool.Decision{Effect: tool.Ask}, nil
}

func (b *goroutineChecker) Version() string { return "1" }

func (b *goroutineChecker) Approve(context.Context, *tool.ApprovalRequest) (tool.Answer, error) {
	b.here("approver")
	return tool.Answer{Verdict: tool.Approved}, nil
}

// checkedJournal is a journal that checks that it is called on the goroutines of calls.
type checkedJournal struct {
	*memory
	*goroutineChecker
}

func (j checkedJournal) Begin(ctx context.Context, in tool.Intent) (tool.Prior, error) {
	j.here("journal")
	return j.memory.Begin(ctx, in)
}

func TestGoStartsAllGoroutinesOfRun(t *testing.T) {
	for name, collect := range map[string]func(agent.Agent, ...agent.Option) (*agent.Result, error){
		"whole": func(a agent.Agent, o ...agent.Option) (*agent.Result, error) { return a.Run(t.Context(), "go", o...) },
		"streamed": func(a agent.Agent, o ...agent.Option) (*agent.Result, error) {
			return a.Stream(t.Context(), "go", o...).Collect()
		},
	} {
		b := &goroutineChecker{t: t, seen: map[string]bool{}}
		look := tool.New("look", "Looks.", func(context.Context, word) (string, error) { b.here("tool"); return "", nil }, tool.Set(func(s *tool.Settings) {
			s.Hooks = tool.Hooks{
				Pre: []tool.PreHook{func(_ context.Context, in tool.Input) (tool.Input, error) { b.here("pre-hook"); return in, nil }},
				Post: []tool.PostHook{func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
					b.here("post-hook")
					return out, nil
				}},
			}
		}))
		next := agent.Agent{Name: "next", Model: model(calls("c look", "d look")), Tools: []tool.Tool{look}}
		a := agent.Agent{
			Model: model(calls("a look", "b look", "h transfer_to_next")), Tools: []tool.Tool{look}, Handoffs: []agent.Handoff{{To: &next}},
			Runner: &tool.Runner{Policy: b, Approver: b}, Go: b.start,
		}
		res, err := collect(a, agent.In(checkedJournal{&memory{}, b}))
		if err != nil || res.Agent != "next" || len(b.seen) != 6 || b.begins == 0 {
			t.Errorf("%s: %v, %v, %d started", name, err, b.seen, b.begins)
		}
		var own atomic.Int64
		a.Model, a.Runner = model(calls("a look", "b look")), &tool.Runner{Go: func(task func()) { own.Add(1); b.start(task) }}
		if _, err := collect(a); err != nil || own.Load() == 0 {
			t.Errorf("%s: of the runner: %v, %d started", name, err, own.Load())
		}
	}
}

func TestL11_StreamIsUsedOnce(t *testing.T) {
	s := agent.Agent{Model: model(textResponse("hi"))}.Stream(t.Context(), "go")
	if res := must[*agent.Result](t)(s.Collect()); res.Output != "hi" {
		t.Errorf("%+v", res)
	}
	if _, err := s.Collect(); err == nil {
		t.Error("a stream was used twice")
	}
	if _, err := (agent.Agent{}).Stream(t.Context(), "go").Collect(); !errors.Is(err, agent.ErrAgent) {
		t.Error(err)
	}
	broken := errors.New("no network")
	ends := 0
	for ev, err := range (agent.Agent{Model: model(broken)}).Stream(t.Context(), "go") {
		if end, ok := ev.(*agent.RunEnd); ok {
			ends++
			if !errors.Is(err, broken) || err.Error() != "agent: turn 1: no network" || end.Result == nil || end.Result.State == nil {
				t.Errorf("%v %+v", err, end.Result)
			}
		}
	}
	if ends != 1 {
		t.Errorf("%d ends", ends)
	}
}

func TestL12_LeavingTheLoopCancelsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		waits := tool.New("wait", "Waits.", func(ctx context.Context, _ word) (string, error) {
			tool.Report(ctx, &dragoman.Text{Text: "waiting"})
			<-ctx.Done()
			return "", ctx.Err()
		})
		a := agent.Agent{Model: model(calls("a wait", "b wait {\"word\":\"x\"}"), textResponse("never")), Tools: []tool.Tool{waits}}
		for ev, err := range a.Stream(t.Context(), "go", agent.In(store)) {
			if err != nil {
				t.Fatal(err)
			}
			if te, ok := ev.(*agent.ToolEvent); ok {
				if _, ok := te.Event.(tool.Progress); ok {
					break
				}
			}
		}
		if got := script(store.messages); got != "user: \"go\"\nassistant: call a wait call b wait\ntool: result a error result b error\n" {
			t.Errorf("kept\n%s", got)
		}
		res := must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(store)))
		if res.Output != "never" {
			t.Errorf("%+v", res)
		}
	})
}

func TestL12_CanceledRunCanBeResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var did counted
		stops := tool.New("stop", "Stops.", func(ctx context.Context, _ word) (string, error) {
			cancel()
			<-ctx.Done()
			return "", ctx.Err()
		})
		store := &memory{}
		a := agent.Agent{Model: model(calls("a look", "b stop")), Tools: []tool.Tool{did.tool("look"), stops}}
		res, err := a.Run(ctx, "go", agent.In(store))
		if !errors.Is(err, context.Canceled) || !strings.Contains(script(store.messages), "result b error") || res.State.Done() {
			t.Fatalf("%v\n%s", err, script(store.messages))
		}
		res = must[*agent.Result](t)(a.Resume(t.Context(), nil, agent.In(store)))
		if res.Output != "done" || res.Run == "" {
			t.Errorf("%+v, ran %q", res, did.String())
		}
	})
}

func TestL12_StopWaitsForTurn(t *testing.T) {
	stop := make(chan struct{})
	var did counted
	last := tool.New("last", "Is the last.", func(context.Context, word) (string, error) {
		close(stop)
		return "ok", nil
	})
	a := agent.Agent{Model: model(calls("a last", "b look")), Tools: []tool.Tool{did.tool("look"), last}}
	res, err := a.Run(t.Context(), "go", agent.StopAfterTurn(stop))
	if !errors.Is(err, agent.ErrStopped) || script(res.Messages) != "user: \"go\"\nassistant: call a last call b look\ntool: result a ok result b ok\n" {
		t.Fatalf("%v\n%s", err, script(res.Messages))
	}
	if res = must[*agent.Result](t)(a.Resume(t.Context(), stored(t, res.State))); res.Output != "done" {
		t.Errorf("%+v", res)
	}
}

func TestL_SlowReaderBlocksTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		chatty := tool.New("chat", "Tells much.", func(ctx context.Context, _ word) (string, error) {
			for range 1000 {
				tool.Report(ctx, &dragoman.Text{Text: "more"})
				sent++
			}
			return "ok", nil
		})
		a := agent.Agent{Model: model(calls("a chat")), Tools: []tool.Tool{chatty}}
		seen := 0
		for ev, err := range a.Stream(t.Context(), "go") {
			if err != nil {
				t.Fatal(err)
			}
			if te, ok := ev.(*agent.ToolEvent); ok {
				if _, ok := te.Event.(tool.Progress); ok {
					synctest.Wait() // until the tool is blocked
					if seen++; sent > seen+1 {
						t.Fatalf("%d sent, %d seen", sent, seen)
					}
				}
			}
		}
		if seen != 1000 {
			t.Errorf("%d of 1000 seen", seen)
		}
	})
}

func TestL11_EventsAreVersionedJSONWithStableNames(t *testing.T) {
	var did counted
	a := agent.Agent{
		Model: model(calls("a look", "b pay")), Tools: []tool.Tool{did.tool("look"), did.tool("pay", tool.NeedsApproval())},
		Runner: &tool.Runner{Random: strings.NewReader(strings.Repeat("r", 1000)), Now: func() time.Time { return time.Unix(0, 0) }},
	}
	var got []string
	for ev, err := range a.Stream(t.Context(), "go", agent.ID("r")) {
		b, failed := agent.MarshalEvent(ev, err)
		if failed != nil {
			t.Fatal(failed)
		}
		var head struct {
			V     int
			Type  string
			Error string
			Tool  struct{ Type, Tool string }
		}
		if err := json.Unmarshal(b, &head); err != nil || head.V != 2 {
			t.Fatalf("%v %s", err, b)
		}
		got = append(got, strings.TrimSpace(head.Type+" "+head.Tool.Tool+head.Tool.Type+head.Error))
	}
	want := "run_start,turn_start,model,model,model,model,model,model,message_added,tool_call,tool_call,tool payapproval_requested,tool lookstarted,tool lookended," +
		"run_end agent: calls wait for approval: decide on Result.Pending, and resume"
	if s := strings.Join(got, ","); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}

func TestResultIsNeverNil(t *testing.T) {
	s, err := session.Create(t.Context(), new(session.Memory), session.Info{})
	if err != nil {
		t.Fatal(err)
	}
	a := agent.Agent{Name: "a", Model: model()}
	runs := map[string]func() (*agent.Result, error){
		"no model":      func() (*agent.Result, error) { return agent.Agent{}.Run(t.Context(), "x") },
		"no prompt":     func() (*agent.Result, error) { return a.Run(t.Context(), "") },
		"no state":      func() (*agent.Result, error) { return a.Resume(t.Context(), nil) },
		"no stored run": func() (*agent.Result, error) { return a.Resume(t.Context(), nil, agent.In(s)) },
		"streamed":      func() (*agent.Result, error) { return a.Stream(t.Context(), "").Collect() },
		"of a type": func() (*agent.Result, error) {
			_, res, err := agent.Generate[chan int](t.Context(), a, "x")
			return res, err
		},
	}
	for name, run := range runs {
		if res, err := run(); err == nil || res == nil || res.Run != "" || res.State != nil {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	if b, err := agent.MarshalEvent(&agent.RunEnd{Result: &agent.Result{}}, agent.ErrState); err != nil || strings.Contains(string(b), `"end"`) {
		t.Errorf("a run that never began ends with %s, %v", b, err)
	}
}
