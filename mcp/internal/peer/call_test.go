package peer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// accept answers every question with content.
func accept(_ context.Context, r Round) (map[string]Response, error) {
	out := map[string]Response{}
	for _, q := range r.Requests {
		out[q.Key] = Response{Result: json.RawMessage(`{"action":"accept","content":{"b":"main"}}`)}
	}
	return out, nil
}

const asks = `{"resultType":"input_required","inputRequests":{"branch":{"method":"elicitation/create","params":{"mode":"form","message":"Which?","requestedSchema":{"type":"object","properties":{"b":{"type":"string"}}}}}},"requestState":"é\u0001 opaque"}`

func TestQuirkH16_InputRequiredIsAnsweredWithTheStateByteForByte(t *testing.T) {
	var params []string
	s := &server{}
	s.handle = modern(func(_ context.Context, _ *conn, r *rpc.Request) (string, error) {
		params = append(params, string(r.Params))
		if len(params) == 1 {
			return asks, nil
		}
		return done, nil
	})
	p := connect(t, s)
	raw, err := callTool(t, p, Options{Input: accept})
	if err != nil || raw != done {
		t.Fatal(raw, err)
	}
	m := fields(json.RawMessage(params[1]))
	if string(m["requestState"]) != `"é\u0001 opaque"` || string(m["inputResponses"]) != `{"branch":{"action":"accept","content":{"b":"main"}}}` {
		t.Errorf("retry: %s", params[1])
	}
	if string(m["name"]) != `"t"` || string(m["arguments"]) != `{}` {
		t.Errorf("the retry lost parameters: %s", params[1])
	}
}

func TestPitfallK30_AnswersStayWithTheirCall(t *testing.T) {
	var last string
	n := 0
	s := &server{}
	s.handle = modern(func(_ context.Context, _ *conn, r *rpc.Request) (string, error) {
		last = string(r.Params)
		if n++; n == 1 {
			return asks, nil
		}
		return done, nil
	})
	p := connect(t, s)
	params := json.RawMessage(`{"name":"t","arguments":{}}`)
	for range 2 {
		if _, err := p.Call(t.Context(), "tools/call", params, Options{Input: accept}); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(last, "inputResponses") || strings.Contains(last, "requestState") || string(params) != `{"name":"t","arguments":{}}` {
		t.Errorf("the next call carries answers of the one before: %s", last)
	}
}

func TestPitfallK29_UnknownResultTypeIsAnError(t *testing.T) {
	for _, raw := range []string{
		`{"resultType":"later","content":[]}`, `{"resultType":7,"content":[]}`, `[]`,
		`{"resultType":"input_required"}`,
		`{"resultType":"input_required","inputRequests":{"a":{"method":"shell/run"}}}`,
	} {
		s := &server{handle: modern(func(context.Context, *conn, *rpc.Request) (string, error) { return raw, nil })}
		if out, err := callTool(t, connect(t, s), Options{Input: accept}); !errors.Is(err, ErrResult) {
			t.Errorf("%s: got %s, %v", raw, out, err)
		}
	}
	s := &server{handle: modern(func(context.Context, *conn, *rpc.Request) (string, error) { return asks, nil })}
	if _, err := connect(t, s).Call(t.Context(), "completion/complete", json.RawMessage(`{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":""}}`), Options{Input: accept}); !errors.Is(err, ErrResult) {
		t.Error("a method that must not ask for input did:", err)
	}
}

func TestRoundsAreLimited(t *testing.T) {
	n := 0
	s := &server{handle: modern(func(context.Context, *conn, *rpc.Request) (string, error) { n++; return asks, nil })}
	if _, err := callTool(t, connect(t, s), Options{Input: accept}); !errors.Is(err, ErrResult) || n > maxRounds+2 {
		t.Errorf("%d rounds: %v", n, err)
	}
}

func TestQuestionWithoutAHumanIsDeclined(t *testing.T) {
	var answer string
	s := &server{}
	s.handle = modern(func(_ context.Context, _ *conn, r *rpc.Request) (string, error) {
		if a := fields(r.Params)["inputResponses"]; a != nil {
			answer = string(a)
			return done, nil
		}
		return asks, nil
	})
	if _, err := callTool(t, connect(t, s), Options{}); err != nil || answer != `{"branch":{"action":"cancel"}}` {
		t.Error(answer, err)
	}
}

func TestPitfallK27_UndeclaredCapabilityIsRefused(t *testing.T) {
	s := &server{handle: modern(func(_ context.Context, _ *conn, r *rpc.Request) (string, error) {
		if strings.Contains(string(r.Params), `"elicitation"`) {
			t.Error("the client declares elicitation")
		}
		return asks, nil
	})}
	p := connect(t, s, func(c *Config) { c.Elicitation = false })
	if _, err := callTool(t, p, Options{Input: accept}); !errors.Is(err, ErrDeclined) {
		t.Error(err)
	}
	old := &server{}
	old.handle = older(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		if a := c.ask("elicitation/create", `{"message":"m","requestedSchema":{}}`, r); a.failure == nil || a.failure.Code != rpc.CodeMethodNotFound {
			t.Errorf("answer %+v", a)
		}
		return done, nil
	})
	if _, err := callTool(t, connect(t, old, func(c *Config) { c.Elicitation = false }), Options{}); err != nil {
		t.Error(err)
	}
}

func TestParkedCallContinuesInAnotherPeer(t *testing.T) {
	handle := modern(func(_ context.Context, _ *conn, r *rpc.Request) (string, error) {
		m := fields(r.Params)
		if m["requestState"] == nil {
			return asks, nil
		}
		if string(m["requestState"]) != `"é\u0001 opaque"` {
			t.Errorf("state %s", m["requestState"])
		}
		return done, nil
	})
	_, err := callTool(t, connect(t, &server{handle: handle}), Options{Input: func(context.Context, Round) (map[string]Response, error) { return nil, ErrPark }})
	var parked *Parked
	if !errors.As(err, &parked) || len(parked.Requests) != 1 {
		t.Fatal(err)
	}
	raw, err := callTool(t, connect(t, &server{handle: handle}), Options{Continue: &Continuation{
		RequestState: parked.RequestState,
		Responses:    map[string]Response{"branch": {Result: json.RawMessage(`{"action":"accept","content":{}}`)}},
	}})
	if err != nil || raw != done {
		t.Error(raw, err)
	}
}

func TestServerRequestsBelongToTheirCall(t *testing.T) {
	for _, tc := range []struct {
		name   string
		during bool
	}{{"by stream", true}, {"the only open call", false}} {
		t.Run(tc.name, func(t *testing.T) {
			var got answer
			s := &server{}
			s.handle = older(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
				var of *rpc.Request
				if tc.during {
					of = r
				}
				got = c.ask("elicitation/create", `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`, of)
				return done, nil
			})
			var round Round
			_, err := callTool(t, connect(t, s), Options{Input: func(ctx context.Context, r Round) (map[string]Response, error) {
				round = r
				return accept(ctx, r)
			}})
			if err != nil || !strings.Contains(got.result, `"accept"`) || !round.InFlight || round.Call != "tools/call" {
				t.Errorf("%+v, %+v, %v", got, round, err)
			}
		})
	}
}

func TestServerRequestOfAnUnknownCallIsDeclined(t *testing.T) {
	s := &server{}
	var open sync.WaitGroup
	open.Add(2)
	answered := make(chan answer, 1)
	over := make(chan struct{})
	s.handle = older(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		open.Done()
		open.Wait()
		if strings.Contains(string(r.Params), "asker") {
			answered <- c.ask("elicitation/create", `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`, nil)
			close(over)
		}
		<-over // both calls are open while the server asks
		return done, nil
	})
	p := connect(t, s)
	var wg sync.WaitGroup
	for _, name := range []string{"asker", "other"} {
		wg.Go(func() {
			_, _ = p.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"t","arguments":{"x":"`+name+`"}}`), Options{Input: func(ctx context.Context, r Round) (map[string]Response, error) {
				t.Error("a question of an unknown call was asked")
				return accept(ctx, r)
			}})
		})
	}
	wg.Wait()
	if a := <-answered; a.result != `{"action":"cancel"}` {
		t.Errorf("%+v", a)
	}
}

func TestPingAndRootsAreAnswered(t *testing.T) {
	s := &server{}
	s.handle = older(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		if a := c.ask("ping", ``, r); a.result != "{}" {
			t.Errorf("ping: %+v", a)
		}
		if a := c.ask("roots/list", ``, r); a.result != `{"roots":[{"uri":"file:///w","name":"w"}]}` {
			t.Errorf("roots: %+v", a)
		}
		return done, nil
	})
	p := connect(t, s, func(c *Config) { c.Roots = []Root{{"file:///w", "w"}} })
	if _, err := callTool(t, p, Options{}); err != nil {
		t.Error(err)
	}
}

func TestPitfallK17_ProgressRestartsTheLimitUpToACeiling(t *testing.T) {
	for _, tc := range []struct {
		name    string
		most    time.Duration
		timeout bool
	}{{"progress", 5 * time.Second, false}, {"ceiling", 60 * time.Millisecond, true}} {
		t.Run(tc.name, func(t *testing.T) {
			s := &server{}
			s.handle = modern(func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
				token := fields(fields(r.Params)["_meta"])["progressToken"]
				if len(token) == 0 {
					t.Error("no progress token was sent")
				}
				for i := range 20 {
					if !sleep(ctx, 10*time.Millisecond) {
						return "", context.Cause(ctx)
					}
					c.notify("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d,"message":"m"}`, token, i), r)
				}
				return done, nil
			})
			var reports atomic.Int32
			_, err := callTool(t, connect(t, s), Options{Timeout: 50 * time.Millisecond, MaxTime: tc.most, Progress: func(Progress) { reports.Add(1) }})
			if errors.Is(err, ErrTimeout) != tc.timeout || reports.Load() == 0 {
				t.Errorf("err = %v, %d reports", err, reports.Load())
			}
		})
	}
}

func TestQuirkH11_AskingAHumanStopsTheTimer(t *testing.T) {
	s := &server{}
	s.handle = older(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		c.ask("elicitation/create", `{"message":"m","requestedSchema":{"type":"object","properties":{}}}`, r)
		return done, nil
	})
	_, err := callTool(t, connect(t, s), Options{Timeout: 30 * time.Millisecond, MaxTime: 30 * time.Millisecond, Input: func(ctx context.Context, r Round) (map[string]Response, error) {
		if !sleep(ctx, 120*time.Millisecond) {
			t.Error("the question was canceled by the limit of the call")
		}
		return accept(ctx, r)
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestTimeoutsAreErrorsThatNameTheServer(t *testing.T) {
	s := &server{handle: modern(func(ctx context.Context, _ *conn, _ *rpc.Request) (string, error) {
		<-ctx.Done()
		return "", context.Cause(ctx)
	})}
	_, err := callTool(t, connect(t, s), Options{Timeout: 10 * time.Millisecond})
	if !errors.Is(err, ErrTimeout) || !strings.Contains(err.Error(), `"srv"`) {
		t.Error(err)
	}
}

func TestQuirkH5_LostSessionIsReplacedOnceForAllCallers(t *testing.T) {
	s := &server{}
	var wave sync.WaitGroup
	const callers = 8
	wave.Add(callers)
	s.handle = older(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		if c.number == 1 {
			t.Error("unexpected connection")
		}
		if c.number == 2 { // after the probe
			wave.Done()
			wave.Wait()
			r.NotDelivered()
			c.kill(rpc.ErrSessionLost)
			return "", rpc.ErrSessionLost
		}
		return done, nil
	})
	p := connect(t, s)
	if _, err := p.List(t.Context(), Tools); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			if raw, err := callTool(t, p, Options{}); err != nil || raw != done {
				t.Error(raw, err)
			}
		})
	}
	wg.Wait()
	if s.count("initialize") != 2 || s.count("tools/list") != 2 {
		t.Errorf("%d handshakes, %d lists: want one more of each for all callers", s.count("initialize"), s.count("tools/list"))
	}
}

func TestPitfallK14_CallWithUnknownOutcomeIsNotRepeated(t *testing.T) {
	for _, safe := range []bool{false, true} {
		var ran atomic.Int32
		s := &server{}
		s.handle = modern(func(_ context.Context, c *conn, _ *rpc.Request) (string, error) {
			if ran.Add(1) == 1 {
				c.kill(errors.New("crashed"))
				return "", rpc.ErrLost
			}
			return done, nil
		})
		_, err := callTool(t, connect(t, s), Options{Safe: safe})
		if safe && (err != nil || ran.Load() != 2) || !safe && (!errors.Is(err, ErrOutcomeUnknown) || ran.Load() != 1) {
			t.Errorf("safe %v: ran %d times, %v", safe, ran.Load(), err)
		}
	}
}

func TestRetryIsRefusedIfTheToolChanged(t *testing.T) {
	refuse := errors.New("the tool has changed")
	var ran atomic.Int32
	s := &server{}
	s.handle = modern(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		ran.Add(1)
		r.NotDelivered()
		c.kill(rpc.ErrSessionLost)
		return "", rpc.ErrSessionLost
	})
	if _, err := callTool(t, connect(t, s), Options{Check: func() error { return refuse }}); !errors.Is(err, refuse) || ran.Load() != 1 {
		t.Errorf("ran %d times: %v", ran.Load(), err)
	}
}

func TestCrashLoopIsSlowedDown(t *testing.T) {
	s := &server{}
	s.handle = modern(func(_ context.Context, c *conn, _ *rpc.Request) (string, error) {
		c.kill(errors.New("crashed"))
		return "", rpc.ErrLost
	})
	p := connect(t, s, func(c *Config) { c.Backoff = time.Minute })
	var last error
	for range 50 {
		_, last = callTool(t, p, Options{})
	}
	if s.dials() > 3 || !strings.Contains(last.Error(), "in a row") {
		t.Errorf("%d connections: %v", s.dials(), last)
	}
}

func TestQuirkH18_MethodsAreSentOnlyIfDeclared(t *testing.T) {
	s := &server{}
	s.handle = func(ctx context.Context, c *conn, r *rpc.Request) (string, error) {
		switch r.Method {
		case "server/discover":
			return `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"ttlMs":0,"cacheScope":"private"}`, nil
		case "tools/list":
			return oneTool, nil
		default:
			return "", &rpc.Error{Code: rpc.CodeMethodNotFound, Message: "method not found"}
		}
	}
	p := connect(t, s)
	for range 2 {
		if _, err := p.List(t.Context(), Prompts); !errors.Is(err, ErrUnsupported) {
			t.Error(err)
		}
		if _, err := p.List(t.Context(), Resources); !errors.Is(err, ErrUnsupported) {
			t.Error(err)
		}
	}
	if s.count("prompts/list") != 0 || s.count("resources/list") != 1 {
		t.Error(s.seen)
	}
	if list, err := p.List(t.Context(), Tools); err != nil || len(list.Items) != 1 {
		t.Error("a missing method failed the server:", err)
	}
}

func TestQuirkH9_ProtocolErrorsKeepCodeAndData(t *testing.T) {
	s := &server{handle: modern(func(context.Context, *conn, *rpc.Request) (string, error) {
		return "", &rpc.Error{Code: rpc.CodeInvalidParams, Message: "Unknown tool: t", Data: []byte(`{"x":1}`)}
	})}
	_, err := callTool(t, connect(t, s), Options{})
	var e *rpc.Error
	if !errors.As(err, &e) || e.Code != rpc.CodeInvalidParams || string(e.Data) != `{"x":1}` {
		t.Error(err)
	}
}

func TestPitfallK39_LateProgressReachesNoOtherCall(t *testing.T) {
	var tokens []string
	s := &server{}
	s.handle = modern(func(_ context.Context, c *conn, r *rpc.Request) (string, error) {
		token := string(fields(fields(r.Params)["_meta"])["progressToken"])
		if len(tokens) > 0 {
			c.notify("notifications/progress", `{"progressToken":`+tokens[0]+`,"progress":1}`, nil)
		}
		tokens = append(tokens, token)
		return done, nil
	})
	p := connect(t, s)
	for range 2 {
		if _, err := callTool(t, p, Options{Progress: func(Progress) { t.Error("progress of another call arrived") }}); err != nil {
			t.Fatal(err)
		}
	}
	if tokens[0] == tokens[1] {
		t.Error("a progress token was used twice")
	}
}

func TestQuirkH12_ParallelCallsAreLimited(t *testing.T) {
	var now, most atomic.Int32
	s := &server{}
	s.handle = modern(func(ctx context.Context, _ *conn, _ *rpc.Request) (string, error) {
		if n := now.Add(1); n > most.Load() {
			most.Store(n)
		}
		sleep(ctx, 5*time.Millisecond)
		now.Add(-1)
		return done, nil
	})
	p := connect(t, s, func(c *Config) { c.Parallel = 2 })
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { _, _ = callTool(t, p, Options{}) })
	}
	wg.Wait()
	if most.Load() > 2 {
		t.Errorf("%d calls at once", most.Load())
	}
}

func TestURLElicitationErrorAsksAndRepeatsTheCallWhenThePageIsDone(t *testing.T) {
	for name, says := range map[string]bool{"the server says so": true, "the server says nothing": false} {
		var calls atomic.Int32
		s := &server{}
		asked := make(chan Round, 1)
		complete := make(chan struct{})
		s.handle = older(func(_ context.Context, c *conn, _ *rpc.Request) (string, error) {
			if calls.Add(1) == 1 {
				go func() {
					<-complete
					c.notify("notifications/elicitation/complete", `{"elicitationId":"unknown"}`, nil)
					if says {
						c.notify("notifications/elicitation/complete", `{"elicitationId":"e1"}`, nil)
					}
				}()
				return "", &rpc.Error{Code: rpc.CodeURLElicitation, Message: "log in", Data: []byte(`{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://x.example/a","message":"Log in"}]}`)}
			}
			return done, nil
		})
		p := connect(t, s, func(c *Config) {
			c.CallTimeout = 100 * time.Millisecond // does not count while the user reads
			if c.PageTime = time.Minute; !says {
				c.PageTime = 300 * time.Millisecond
			}
		})
		raw, err := callTool(t, p, Options{Input: func(ctx context.Context, r Round) (map[string]Response, error) {
			asked <- r
			close(complete)
			return accept(ctx, r)
		}})
		if err != nil || raw != done {
			t.Fatal(name, raw, err)
		}
		if r := <-asked; len(r.Requests) != 1 || !strings.Contains(string(r.Requests[0].Params), "https://x.example/a") {
			t.Errorf("%s: %+v", name, r)
		}
	}
}
