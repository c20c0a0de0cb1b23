package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/sim"
)

// Model is a test suite for a model over HTTP.
type Model struct {
	// Codec is the codec of the model's dialect. It determines which error classes the
	// dialect can distinguish.
	Codec dialect.Codec
	// Open returns the model for a server. The URL has no path. The model sends the model
	// name of the request, needs no credential, and does not retry.
	Open func(t *testing.T, url string) dragoman.Model
	// ReasoningField is the field in which the server sends reasoning, for a model that
	// uses OpenAI Chat with a compatible server. Empty means that it sends none, as OpenAI
	// does: the tests of reasoning are skipped for OpenAI Chat.
	ReasoningField string
	// Without skips tests by name, each with a reason that is printed. Nil skips none.
	Without map[string]string
}

// check is one test of the suite.
type check struct {
	name string
	run  func(t *testing.T, s *session)
	// reasons marks tests that need a server that sends reasoning.
	reasons bool
}

func checks() []check {
	return []check{
		{name: "text", run: text},
		{name: "call", run: call},
		{name: "parallel calls", run: parallelCalls},
		{name: "freeform", run: freeform},
		{name: "namespaced", run: namespaced},
		{name: "reasoning", run: reasoning, reasons: true},
		{name: "reasoning replay", run: reasoningReplay, reasons: true},
		{name: "images in results", run: imagesInResults},
		{name: "failed results", run: failedResults},
		{name: "structured output", run: structuredOutput},
		{name: "output limit", run: outputLimit},
		{name: "errors of each class", run: errorsOfEachClass},
		{name: "error midway", run: errorMidway},
		{name: "cancellation", run: cancellation},
		{name: "slow reader", run: slowReader},
		{name: "faults", run: faults},
	}
}

// Run runs the suite, each test streamed and not.
func (m Model) Run(t *testing.T) {
	for _, c := range checks() {
		for _, mode := range []string{"whole", "stream"} {
			t.Run(c.name+"/"+mode, func(t *testing.T) {
				if why, out := m.Without[c.name]; out {
					t.Skip(why)
				}
				if c.reasons && m.ReasoningField == "" && wire.Of(m.Codec).Relayed {
					t.Skip("an OpenAI Chat server without a ReasoningField sends no reasoning")
				}
				s := m.begin(t)
				s.streamed = mode == "stream"
				c.run(t, s)
			})
		}
	}
	for name := range m.Without {
		if !strings.Contains(names(), "|"+name+"|") {
			t.Errorf("Without has the unknown test %q: known tests are %s", name, names())
		}
	}
}

func names() string {
	all := "|"
	for _, c := range checks() {
		all += c.name + "|"
	}
	return all
}

// session is a model and its server.
type session struct {
	dragoman.Model
	codec    dialect.Codec
	streamed bool

	mu     sync.Mutex
	bodies [][]byte
	// wait is called by the server before each fragment. Nil means no wait.
	wait func(ctx context.Context) error
	// ended receives the context error of each completed request.
	ended chan error
}

func (m Model) begin(t *testing.T) *session {
	t.Helper()
	played, err := sim.ParseScenario("errors", errorScript())
	if err != nil {
		t.Fatal(err)
	}
	s := &session{codec: m.Codec, ended: make(chan error, 16)}
	pace := sim.Pace{TokensPerSecond: 1, Wait: func(ctx context.Context, _ time.Duration) error {
		if s.wait == nil {
			return ctx.Err()
		}
		return s.wait(ctx)
	}}
	handler := sim.Handler(sim.Config{Scenario: played, Settings: sim.Settings{Pace: pace}, ReasoningField: m.ReasoningField})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, body)
		s.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		handler.ServeHTTP(w, r)
		select {
		case s.ended <- r.Context().Err():
		default: // the test does not read it
		}
	}))
	t.Cleanup(server.Close)
	s.Model = m.Open(t, server.URL)
	return s
}

// sent reports whether the last request contained a text.
func (s *session) sent(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies) > 0 && bytes.Contains(s.bodies[len(s.bodies)-1], []byte(text))
}

// try sends a request.
func (s *session) try(ctx context.Context, req *dragoman.Request) (*dragoman.Response, error) {
	if s.streamed {
		return dragoman.Collect(s.Stream(ctx, req))
	}
	return s.Generate(ctx, req)
}

// ask sends a request that must not fail, and appends the response to it.
func (s *session) ask(t *testing.T, req *dragoman.Request) *dragoman.Response {
	t.Helper()
	resp, err := s.try(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	if !resp.Usage.Output.Known || resp.Usage.Output.N == 0 {
		t.Errorf("no usage: %+v", resp.Usage)
	}
	req.Messages = append(req.Messages, resp.Output...)
	return resp
}

func request(prompt string, tools ...dragoman.ToolSpec) *dragoman.Request {
	return &dragoman.Request{Model: "sim/planner", StreamUsage: true, Messages: []dragoman.Message{dragoman.UserText(prompt)}, Tools: tools}
}

func weatherTool() dragoman.ToolSpec {
	return dragoman.ToolSpec{
		Name: "get_weather", Description: "Current weather in a city.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}
}

// calls checks the calls of a response. want alternates names and arguments.
func calls(t *testing.T, resp *dragoman.Response, want ...string) []*dragoman.ToolCall {
	t.Helper()
	got := resp.ToolCalls()
	if len(got) != len(want)/2 || resp.Stop.Reason != dragoman.StopToolCalls {
		t.Fatalf("%d calls and the stop %q: %q", len(got), resp.Stop.Reason, resp.Text())
	}
	ids := map[string]bool{}
	for i, c := range got {
		if c.QualifiedName() != want[2*i] || !sameJSON(c.Arguments, want[2*i+1]) || c.Problem != nil || c.ID == "" || ids[c.ID] {
			t.Errorf("call %d is %s%s (%q, %v), want %s%s", i, c.QualifiedName(), c.Arguments, c.ID, c.Problem, want[2*i], want[2*i+1])
		}
		ids[c.ID] = true
	}
	return got
}

// sameJSON reports whether two texts are equal, or equal as JSON.
func sameJSON(a, b string) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, []byte(a)) != nil || json.Compact(&y, []byte(b)) != nil {
		return a == b
	}
	return x.String() == y.String()
}

func checkText(t *testing.T, resp *dragoman.Response, want string) {
	t.Helper()
	if resp.Text() != want || resp.Stop.Reason != dragoman.StopEnd {
		t.Errorf("text %q with stop reason %q, want text %q", resp.Text(), resp.Stop.Reason, want)
	}
}

func text(t *testing.T, s *session) {
	req := request("Hello, wörld 🙂!")
	req.Instructions = []dragoman.Part{&dragoman.Text{Text: "Be brief."}}
	checkText(t, s.ask(t, req), "You said: Hello, wörld 🙂!")
	if !s.sent("Be brief.") {
		t.Error("the instructions were not sent")
	}
	req.Messages = append(req.Messages, dragoman.UserText("And again."))
	checkText(t, s.ask(t, req), "You said: And again.")
}

func call(t *testing.T, s *session) {
	req := request("What's the weather in Oslo?", weatherTool())
	got := calls(t, s.ask(t, req), "get_weather", `{"city":"Oslo"}`)
	req.Messages = append(req.Messages, dragoman.ToolResults(got[0].ResultText("4 °C")))
	checkText(t, s.ask(t, req), "get_weather says: 4 °C")
}

func parallelCalls(t *testing.T, s *session) {
	req := request("What's the weather in Oslo and Bergen?", weatherTool())
	got := calls(t, s.ask(t, req), "get_weather", `{"city":"Oslo"}`, "get_weather", `{"city":"Bergen"}`)
	req.Messages = append(req.Messages, dragoman.ToolResults(got[0].ResultText("4 °C"), got[1].ResultText("8 °C")))
	checkText(t, s.ask(t, req), "get_weather says: 4 °C\nget_weather says: 8 °C")
}

func freeform(t *testing.T, s *session) {
	req := request(`Run the code "print(\"hi\")"`, dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "run_code", Description: "Runs code."})
	req.Messages[0] = dragoman.UserText("Run the code `print(1)`")
	resp := s.ask(t, req)
	got := calls(t, resp, "run_code", "print(1)")
	if got[0].Payload != codes.PayloadText {
		t.Errorf("the payload is %q", got[0].Payload)
	}
	req.Messages = append(req.Messages, dragoman.ToolResults(got[0].ResultText("1")))
	if resp := s.ask(t, req); !strings.HasSuffix(resp.Text(), "says: 1") {
		t.Errorf("%q", resp.Text())
	}
}

func namespaced(t *testing.T, s *session) {
	tool := weatherTool()
	tool.Namespace, tool.NamespaceDescription = "meteo", "About the weather."
	req := request("What's the weather in Oslo?", tool)
	got := calls(t, s.ask(t, req), "meteo.get_weather", `{"city":"Oslo"}`)
	if got[0].Namespace != "meteo" || got[0].Name != "get_weather" {
		t.Errorf("%+v", got[0])
	}
	req.Messages = append(req.Messages, dragoman.ToolResults(got[0].ResultText("4 °C")))
	if resp := s.ask(t, req); !strings.HasSuffix(resp.Text(), "says: 4 °C") {
		t.Errorf("%q", resp.Text())
	}
}

// thinking asks for reasoning with settings that every dialect has.
func thinking(req *dragoman.Request) {
	limit, budget, encrypted := int64(8000), int64(2048), true
	req.MaxOutputTokens = &limit
	req.Reasoning = &dragoman.ReasoningSettings{Effort: "high", Mode: codes.ReasoningBudget, BudgetTokens: &budget, Summary: "auto", Encrypted: &encrypted}
}

func reasonings(resp *dragoman.Response) []*dragoman.Reasoning {
	var out []*dragoman.Reasoning
	for _, m := range resp.Output {
		for _, p := range m.Parts {
			if r, ok := p.(*dragoman.Reasoning); ok {
				out = append(out, r)
			}
		}
	}
	return out
}

func reasoning(t *testing.T, s *session) {
	req := request("Hello")
	thinking(req)
	thoughts := reasonings(s.ask(t, req))
	text := ""
	for _, r := range thoughts {
		text += r.Text + strings.Join(r.Summary, "")
	}
	if text != "No tool is needed for this." || len(thoughts) != 1 {
		t.Errorf("%q, in %d parts", text, len(thoughts))
	}
}

func reasoningReplay(t *testing.T, s *session) {
	req := request("What's the weather in Oslo?", weatherTool())
	thinking(req)
	resp := s.ask(t, req)
	thoughts := reasonings(resp)
	if len(thoughts) == 0 {
		t.Fatal("no reasoning to send back: if the server needs a ReasoningField, set it")
	}
	got := calls(t, resp, "get_weather", `{"city":"Oslo"}`)
	req.Messages = append(req.Messages, dragoman.ToolResults(got[0].ResultText("4 °C")))
	resp = s.ask(t, req)
	checkText(t, resp, "get_weather says: 4 °C")
	if !s.sent("something that tools can do") {
		t.Error("the reasoning was not sent back")
	}
	for _, r := range thoughts {
		for _, state := range []string{r.Signature, r.Encrypted} {
			if !s.sent(state) {
				t.Errorf("the opaque state %q was not sent back", state)
			}
		}
	}
}

func imagesInResults(t *testing.T, s *session) {
	pixel := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89")
	image := dragoman.Image("image/png", pixel)
	req := request("What's the weather in Oslo?", weatherTool())
	got := calls(t, s.ask(t, req), "get_weather", `{"city":"Oslo"}`)
	req.Messages = append(req.Messages, dragoman.ToolResults(got[0].Result(&dragoman.Text{Text: "a photo:"}, image)))
	if resp := s.ask(t, req); len(resp.ToolCalls()) > 0 || resp.Text() == "" {
		t.Errorf("%q", resp.Text())
	}
	if !s.sent(image.Base64) {
		t.Error("the image was not sent")
	}
}

func failedResults(t *testing.T, s *session) {
	req := request("What's the weather in Oslo?", weatherTool())
	got := calls(t, s.ask(t, req), "get_weather", `{"city":"Oslo"}`)
	req.Messages = append(req.Messages, dragoman.ToolResults(got[0].Fail("no such city")))
	resp := s.ask(t, req)
	if !strings.Contains(resp.Text(), "no such city") || !s.codec.Limits().ErrorFlag && !strings.Contains(resp.Text(), "ERROR: ") ||
		s.codec.Limits().ErrorFlag && !strings.Contains(resp.Text(), "failed: ") {
		t.Errorf("the model does not see that it failed: %q", resp.Text())
	}
}

func structuredOutput(t *testing.T, s *session) {
	req := request("Ann is 42")
	req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "person", Schema: json.RawMessage(
		`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false}`)}
	if resp := s.ask(t, req); !sameJSON(resp.Text(), `{"name":"Ann","age":42}`) {
		t.Errorf("%q", resp.Text())
	}
}

func outputLimit(t *testing.T, s *session) {
	req := request("What's the weather in Oslo, Bergen and Paris?", weatherTool())
	limit := int64(18) // two calls and part of the third
	req.MaxOutputTokens = &limit
	resp, err := s.try(context.Background(), req)
	if err != nil || resp.Stop.Reason != dragoman.StopLength {
		t.Fatalf("%v %+v", err, resp)
	}
	// A dialect that sends whole calls cannot send part of one.
	if all := resp.ToolCalls(); len(all) > 0 && all[len(all)-1].Problem == nil {
		t.Errorf("the last call before the limit would run: %+v", all[len(all)-1])
	}
}

// classes returns the error classes. The prompt of each test contains the class.
func classes() []dragoman.ErrorClass {
	return []dragoman.ErrorClass{
		dragoman.ErrorBadRequest, dragoman.ErrorAuth, dragoman.ErrorPermission, dragoman.ErrorNotFound, dragoman.ErrorTooLarge,
		dragoman.ErrorRateLimit, dragoman.ErrorQuota, dragoman.ErrorOverloaded, dragoman.ErrorTimeout, dragoman.ErrorConflict, dragoman.ErrorServer,
	}
}

// errorScript returns a script that fails with the class in the prompt, or in mid-stream, and a
// response with text and calls for the faults.
func errorScript() string {
	var b strings.Builder
	for _, c := range classes() {
		b.WriteString("turn\n  match user fail with " + string(c) + "\n  error " + string(c) + " It failed as you wished.\n")
	}
	b.WriteString("turn\n  match user midway\n  say The beginning of an answer.\n  call get_weather {\"city\":\"Oslo\"}\n  error overloaded Enough.\n")
	b.WriteString("turn\n  match user look it up\n  say I will look at two cities.\n  call get_weather {\"city\":\"Oslo\"}\n  call get_weather {\"city\":\"Bergen\"}\n")
	return b.String()
}

func errorsOfEachClass(t *testing.T, s *session) {
	for _, class := range classes() {
		req := request("fail with " + string(class))
		req.Model = "sim/scenario"
		_, err := s.try(context.Background(), req)
		// Classes that the dialect cannot distinguish count as one. The codec under test does
		// not decide which these are, if there is another one of the dialect.
		codec := s.codec
		if known, ok := dialects.Named(codec.Dialect()); ok {
			codec = known
		}
		status, body, _ := codec.EncodeError(&dragoman.APIError{Class: class, Message: "It failed as you wished."})
		want := codec.DecodeError(status, nil, body)
		var e *dragoman.APIError
		if !errors.As(err, &e) || e.Class != want.Class || e.Status != status || !strings.Contains(e.Message, "as you wished") {
			t.Errorf("%s: %v, want the class %s and the status %d", class, err, want.Class, status)
		}
	}
}

func errorMidway(t *testing.T, s *session) {
	req := request("midway", weatherTool())
	req.Model = "sim/scenario"
	resp, err := s.try(context.Background(), req)
	var e *dragoman.APIError
	if !errors.As(err, &e) {
		t.Fatalf("%v", err)
	}
	if resp == nil {
		return
	}
	for _, c := range resp.ToolCalls() {
		if c.Problem == nil {
			t.Errorf("%s%s would run", c.Name, c.Arguments)
		}
	}
}

// cancelWithin is the time in which a client must cancel.
const cancelWithin = 10 * time.Second

var errNotCanceled = errors.New("the client neither passed on the first fragment nor canceled the request")

// cancellation checks that the client gets the reason, and that the server stops.
func cancellation(t *testing.T, s *session) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	fragments := 0
	s.wait = func(ctx context.Context) error {
		if fragments++; fragments < 4 {
			return nil
		}
		if !s.streamed {
			cancel()
		}
		select {
		case <-ctx.Done(): // the server has more to send, but never sends it
			return ctx.Err()
		case <-time.After(cancelWithin):
			return errNotCanceled
		}
	}
	req := request("one two three four five six seven eight")
	req.Model = "sim/echo"
	var err error
	if s.streamed {
		err = s.readOne(ctx, cancel, req)
	} else {
		_, err = s.Generate(ctx, req)
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := <-s.ended; err == nil {
		t.Error("the server did not notice the cancellation")
	}
}

// readOne reads the first fragment of a stream, cancels, and continues to read.
func (s *session) readOne(ctx context.Context, cancel func(), req *dragoman.Request) error {
	for ev, err := range s.Stream(ctx, req) {
		if err != nil {
			return err
		}
		if ev.Type() == "part_delta" {
			cancel()
		}
	}
	return nil
}

// slowReader checks that events wait for the reader.
func slowReader(t *testing.T, s *session) {
	prompt := strings.Repeat("many words ", 200)
	req := request(prompt)
	req.Model = "sim/echo"
	if !s.streamed {
		checkText(t, s.ask(t, req), prompt)
		return
	}
	var c dragoman.Collector
	seen := 0
	for ev, err := range s.Stream(context.Background(), req) {
		if err != nil {
			t.Fatal(err)
		}
		if seen++; seen == 2 {
			<-s.ended // everything was written, but not yet read
		}
		c.Add(ev)
	}
	resp, err := c.Response()
	if err != nil {
		t.Fatal(err)
	}
	checkText(t, resp, prompt)
}
