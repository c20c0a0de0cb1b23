package sim_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/sim"
)

// rich is a response with everything that a fault could change.
const rich = `
turn
  match any
  think The weather of two places is wanted, and a sum.
  say Let me look — one moment, please 🙂.
  call get_weather {"city":"Oslo 🙂","unit":"celsius"}
  call get_weather {"city":"Bergen","unit":"fahrenheit"}
  call add {"a":1,"b":22}
`

// hostileServer serves the rich response; slow first bytes come at once.
func hostileServer(t *testing.T) string {
	t.Helper()
	played, err := sim.ParseScenario("rich", rich)
	if err != nil {
		t.Fatal(err)
	}
	pace := sim.Pace{Wait: func(context.Context, time.Duration) error { return nil }}
	return serve(t, sim.Config{Scenario: played, Settings: sim.Settings{Pace: pace}}).URL
}

// runnable returns the calls of a response that a client would run.
func runnable(resp *dragoman.Response) []string {
	var out []string
	if resp == nil {
		return nil
	}
	for _, c := range resp.ToolCalls() {
		if c.Problem == nil {
			out = append(out, c.Name+strings.TrimSpace(c.Arguments)) // white space around JSON has no meaning
		}
	}
	return out
}

// isTyped reports whether an error has a type that a program can act on.
func isTyped(err error) bool {
	var api *dragoman.APIError
	var decode *dragoman.DecodeError
	var network net.Error
	return errors.As(err, &api) || errors.As(err, &decode) || errors.As(err, &network) ||
		errors.Is(err, dragoman.ErrIncompleteStream) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled)
}

// The main rule: whatever the server sends, the client gets the intended response or an
// error, and never runs an incomplete call.
func TestZ2_EveryFaultHasItsOutcome(t *testing.T) {
	server := hostileServer(t)
	tried := 0
	for _, f := range sim.Faults() {
		inModes(t, func(t *testing.T, c client, stream bool) {
			has := slices.Contains(f.Dialects, c.Dialect()) && (stream || !f.StreamOnly)
			t.Run(f.ID, func(t *testing.T) {
				ctx := context.Background()
				req := ask("What's the weather in Oslo and Bergen, and what is 1 plus 22?", toolbox()...)
				req.Stream, req.StreamUsage = stream, true
				req.Model = "sim/scenario"
				want, err := c.generate(context.Background(), server, req)
				if err != nil {
					t.Fatal(err)
				}
				req.Model = "sim/scenario?fault=" + f.ID
				resp, err := c.generate(ctx, server, req)
				if !has {
					var e *dragoman.APIError
					if !errors.As(err, &e) || e.Class != dragoman.ErrorBadRequest || !strings.Contains(e.Message, f.ID) {
						t.Errorf("a fault that the dialect does not have: %v", err)
					}
					return
				}
				tried++
				judge(t, f, want, resp, err)
			})
		})
	}
	if tried < 200 {
		t.Errorf("only %d streams were tried", tried)
	}
}

func judge(t *testing.T, f sim.Fault, want, resp *dragoman.Response, err error) {
	t.Helper()
	switch f.Outcome {
	case "intact":
		if err != nil {
			t.Fatal(err)
		}
		text := want.Text()
		got := resp.Text()
		if f.ID == "c17" {
			if n := strings.Count(got, "\uFFFD"); n > 1 || n == 0 && resp.Origin != nil && resp.Origin.Dialect != dialectname.OpenAIResponses { // Responses repeats the text at the end
				t.Errorf("%q", got)
			}
			got = strings.Replace(got, "\uFFFD", "", 1)
		}
		if got != text || !slices.Equal(runnable(resp), runnable(want)) || resp.Stop.Reason != want.Stop.Reason || thinking(resp) != thinking(want) {
			t.Errorf("\n got %q %v %q %s\nwant %q %v %q %s", got, runnable(resp), thinking(resp), resp.Stop.Reason, text, runnable(want), thinking(want), want.Stop.Reason)
		}
		if resp.Usage.Output != want.Usage.Output || resp.Usage.Input != want.Usage.Input {
			t.Errorf("usage %+v, want %+v", resp.Usage, want.Usage)
		}
	case "blocked":
		if err != nil || len(runnable(resp)) > 0 || resp.Stop.Reason.Runs() {
			t.Errorf("%v: %v would run after %s", err, runnable(resp), resp.Stop.Reason)
		}
	case "fails":
		if err == nil || !isTyped(err) || len(runnable(resp)) > 0 {
			t.Errorf("%v (%T): %v would run", err, err, runnable(resp))
		}
	}
}

func TestZ2_FaultIsSetByModelHeaderURLOrConfig(t *testing.T) {
	server := serve(t, sim.Config{}).URL
	all := serve(t, sim.Config{Fault: "500"}).URL
	body := `{"model":"sim/echo","messages":[{"role":"user","content":"hi"}]}`
	post := func(url, header, body string) int {
		t.Helper()
		r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			r.Header.Set("X-Dragoman-Fault", header)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	for _, tc := range []struct {
		about string
		got   int
		want  int
	}{
		{"none", post(server+"/v1/chat/completions", "", body), 200},
		{"the model", post(server+"/v1/chat/completions", "", strings.Replace(body, "sim/echo", "sim/echo?fault=429", 1)), 429},
		{"the header", post(server+"/v1/chat/completions", "529", body), 529},
		{"the URL", post(server+"/v1/chat/completions?fault=500", "", body), 500},
		{"the config", post(all+"/v1/chat/completions", "", body), 500},
		{"the header overrides the config", post(all+"/v1/chat/completions", "429", body), 429},
		{"an unknown fault", post(server+"/v1/chat/completions", "c99", body), 400},
		{"the URL of a path with the model", post(server+"/v1beta/models/sim/echo:generateContent?fault=429", "", `{"contents":[{"parts":[{"text":"hi"}]}]}`), 429},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %d, want %d", tc.about, tc.got, tc.want)
		}
	}
}

func TestFaultsInProcess(t *testing.T) {
	played, err := sim.ParseScenario("rich", rich)
	if err != nil {
		t.Fatal(err)
	}
	pace := sim.Pace{Wait: func(context.Context, time.Duration) error { return nil }}
	config := sim.Config{Scenario: played, Settings: sim.Settings{Pace: pace}}
	plain, _ := config.Open("scenario")
	for _, f := range sim.Faults() {
		m, err := config.Open("sim/scenario?fault=" + f.ID)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(f.ID, func(t *testing.T) {
			for _, stream := range []bool{false, true} {
				ctx := context.Background()
				req := ask("hi", toolbox()...)
				want := generate(t, plain, req)
				resp, err := (*dragoman.Response)(nil), error(nil)
				if stream {
					resp, err = dragoman.Collect(m.Stream(ctx, req))
				} else {
					resp, err = m.Generate(ctx, req)
				}
				if f.Dialects[0] == dialectname.OpenAIChat && resp != nil && err == nil && thinking(resp) == "" {
					want.Usage.Reasoning = dragoman.Count{}
					want.Output[0].Parts = want.Output[0].Parts[1:] // the dialect does not send reasoning
				}
				judge(t, f, want, resp, err)
			}
		})
	}
	if _, err := sim.Open("sim/echo?fault=nothing"); err == nil || !strings.Contains(err.Error(), "slow-first-byte") {
		t.Error(err)
	}
}

func TestFaultsAreListedOnce(t *testing.T) {
	seen := map[string]bool{}
	c := 0
	for _, f := range sim.Faults() {
		if seen[f.ID] || f.ID != strings.ToLower(f.ID) || !strings.HasSuffix(f.Description, ".") || len(f.Dialects) == 0 || f.Outcome == "" {
			t.Errorf("%+v", f)
		}
		seen[f.ID] = true
		if f.StreamOnly {
			c++
		}
	}
	if c != 41 {
		t.Errorf("%d quirks of streams, not 41", c)
	}
}

func TestQuirkC39_EveryStartedPartEnds(t *testing.T) {
	server := hostileServer(t)
	for _, f := range sim.Faults() {
		for _, c := range clients() {
			if !slices.Contains(f.Dialects, c.Dialect()) {
				continue
			}
			req := ask("hi", toolbox()...)
			req.Model, req.Stream = "sim/scenario?fault="+f.ID, true
			resp, o, err := c.post(context.Background(), server, req)
			if err != nil {
				t.Fatal(err)
			}
			open := map[[2]int]bool{}
			for ev := range dialect.Events(c.NewStreamDecoder(o), resp.Body) {
				switch ev := ev.(type) {
				case *dragoman.PartStart:
					open[[2]int{ev.Choice, ev.Index}] = true
				case *dragoman.PartEnd:
					delete(open, [2]int{ev.Choice, ev.Index})
				}
			}
			resp.Body.Close()
			if len(open) > 0 {
				t.Errorf("%s of %s left parts open: %v", f.ID, c.Dialect(), open)
			}
		}
	}
}

// A client that cancels during a stall ends the response.
func TestCancelDuringStallEndsResponse(t *testing.T) {
	for _, c := range clients() {
		ctx, cancel := context.WithCancel(context.Background())
		pace := sim.Pace{Wait: func(ctx context.Context, d time.Duration) error {
			if d < time.Minute {
				return nil
			}
			cancel() // half of the response was sent
			<-ctx.Done()
			return ctx.Err()
		}}
		server := serve(t, sim.Config{Settings: sim.Settings{Pace: pace}})
		req := ask("a long text that comes in several events")
		req.Model, req.Stream = "sim/echo?fault=stall", true
		_, err := c.generate(ctx, server.URL, req)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", c.Dialect(), err)
		}
		cancel()
		server.Close()
	}
}

// A fault without effect would prove nothing.
func TestEveryFaultChangesTheBytes(t *testing.T) {
	server := hostileServer(t)
	read := func(c client, model string) string {
		t.Helper()
		req := ask("hi", toolbox()...)
		req.Model, req.Stream, req.StreamUsage = model, true, true
		resp, _, err := c.post(context.Background(), server, req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			raw = append(raw, err.Error()...)
		}
		return strings.ReplaceAll(resp.Status+string(raw), strings.TrimPrefix(model, "sim/scenario"), "")
	}
	for _, c := range clients() {
		plain := read(c, "sim/scenario")
		for _, f := range sim.Faults() {
			if f.ID == "c16" || f.ID == "slow-first-byte" || !slices.Contains(f.Dialects, c.Dialect()) {
				continue // these change only the timing
			}
			if got := read(c, "sim/scenario?fault="+f.ID); got == plain {
				t.Errorf("%s of %s has no effect", f.ID, c.Dialect())
			}
		}
	}
}

// pieces is a connection that records the size of each write.
type pieces struct {
	*httptest.ResponseRecorder
	sizes []int
}

func (p *pieces) Write(b []byte) (int, error) {
	p.sizes = append(p.sizes, len(b))
	return p.ResponseRecorder.Write(b)
}

// Z2: c16 changes only how bytes are flushed, so the test looks at the writes.
func TestQuirkC16_BytesAreSentSeparately(t *testing.T) {
	for model, single := range map[string]bool{"sim/echo?fault=c16": true, "sim/echo": false} {
		w := &pieces{ResponseRecorder: httptest.NewRecorder()}
		body := `{"model":"` + model + `","stream":true,"messages":[{"role":"user","content":"Grüße 🙂"}]}`
		sim.Handler(sim.Config{}).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
		if len(w.sizes) == 0 || (slices.Max(w.sizes) == 1) != single {
			t.Errorf("%s: pieces of %v", model, w.sizes)
		}
	}
}

// An error in a stream is sent once; Responses sends it in an event and in the failed
// response.
func TestStreamErrorIsSentOnce(t *testing.T) {
	played, err := sim.ParseScenario("breaks", "turn\n  match any\n  say The beginning.\n  error overloaded Enough of it.\n")
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, sim.Config{Scenario: played}).URL
	for _, c := range clients() {
		req := ask("hi")
		req.Model, req.Stream = "sim/scenario", true
		resp, _, err := c.post(context.Background(), server, req)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		want := 1
		if c.Dialect() == dialectname.OpenAIResponses {
			want = 2
		}
		if n := strings.Count(string(raw), "Enough of it."); err != nil || n != want {
			t.Errorf("%s: %d times in %s (%v)", c.Dialect(), n, raw, err)
		}
	}
}
