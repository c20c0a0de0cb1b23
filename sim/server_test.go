package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/bedrock"
	"github.com/dragoman-go/dragoman/dialect/cohere"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/sim"
)

// client is a plain client of one dialect: a codec and a URL.
type client struct {
	dialect.Codec
	path func(model string, stream bool) string
}

func fixed(path string) func(string, bool) string { return func(string, bool) string { return path } }

func clients() []client {
	return []client{
		{openaichat.Codec{}, fixed("/v1/chat/completions")},
		{openairesponses.Codec{}, fixed("/v1/responses")},
		{anthropic.Codec{}, fixed("/v1/messages")},
		{gemini.Codec{}, func(model string, stream bool) string {
			if stream {
				return "/v1beta/models/" + url.PathEscape(model) + ":streamGenerateContent?alt=sse"
			}
			return "/v1beta/models/" + url.PathEscape(model) + ":generateContent"
		}},
		{ollama.Codec{}, fixed("/api/chat")},
		{bedrock.Codec{}, func(model string, stream bool) string {
			if stream {
				return "/model/" + url.PathEscape(model) + "/converse-stream"
			}
			return "/model/" + url.PathEscape(model) + "/converse"
		}},
		{cohere.Codec{}, fixed("/v2/chat")},
	}
}

func serve(t *testing.T, c sim.Config) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(sim.Handler(c))
	t.Cleanup(s.Close)
	return s
}

// post sends a request and returns the response and the options to decode it.
func (c client) post(ctx context.Context, server string, req *dragoman.Request) (*http.Response, dialect.DecodeOptions, error) {
	enc, err := c.EncodeRequest(req, dialect.EncodeOptions{})
	if err != nil {
		return nil, dialect.DecodeOptions{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server+c.path(req.Model, req.Stream), bytes.NewReader(enc.Body))
	if err != nil {
		return nil, dialect.DecodeOptions{}, err
	}
	r.Header.Set("authorization", "Bearer anything")
	resp, err := http.DefaultClient.Do(r)
	return resp, dialect.DecodeOptions{Registry: enc.Registry, Seed: "turn"}, err
}

// generate sends a request and decodes the response, streamed or not.
func (c client) generate(ctx context.Context, server string, req *dragoman.Request) (*dragoman.Response, error) {
	resp, o, err := c.post(ctx, server, req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, err := io.ReadAll(resp.Body)
		return nil, errors.Join(c.DecodeError(resp.StatusCode, resp.Header, body), err)
	}
	if req.Stream {
		return dragoman.Collect(dialect.Events(c.NewStreamDecoder(o), resp.Body))
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	out, _, err := c.DecodeResponse(body, o)
	if err != nil {
		return nil, err
	}
	if out.Error != nil {
		return out, out.Error
	}
	return out, nil
}

// inModes runs a test for every dialect, streamed and not.
func inModes(t *testing.T, test func(t *testing.T, c client, stream bool)) {
	for _, c := range clients() {
		for _, stream := range []bool{false, true} {
			mode := "whole"
			if stream {
				mode = "stream"
			}
			t.Run(string(c.Dialect())+"/"+mode, func(t *testing.T) { test(t, c, stream) })
		}
	}
}

func TestZ1_EveryDialectIsServed(t *testing.T) {
	server := serve(t, sim.Config{})
	inModes(t, func(t *testing.T, c client, stream bool) {
		req := ask("What's the weather in Oslo and Bergen?", toolbox()...)
		req.Stream, req.StreamUsage = stream, true
		want := generate(t, sim.Planner{}, req)
		resp, err := c.generate(context.Background(), server.URL, req)
		if err != nil {
			t.Fatal(err)
		}
		if summary(resp) != summary(want) || resp.Stop.Reason != dragoman.StopToolCalls {
			t.Errorf("%s\n%s\n%+v", summary(resp), summary(want), resp.Stop)
		}
		if !resp.Usage.Input.Known || resp.Usage.Output != want.Usage.Output {
			t.Errorf("%+v, want %+v", resp.Usage, want.Usage)
		}
		for _, call := range resp.ToolCalls() {
			if call.Problem != nil || call.ID == "" {
				t.Errorf("%+v", call)
			}
		}
		req.Messages = append(req.Messages, resp.Output...)
		calls := resp.ToolCalls()
		req.Messages = append(req.Messages, dragoman.ToolResults(calls[0].ResultText("4 °C"), calls[1].ResultText("8 °C")))
		resp, err = c.generate(context.Background(), server.URL, req)
		if err != nil || summary(resp) != "get_weather says: 4 °C\nget_weather says: 8 °C" || resp.Stop.Reason != dragoman.StopEnd {
			t.Errorf("%v %s %+v", err, summary(resp), resp)
		}
	})
}

func TestEveryDialectHasTextOutputAndReasoning(t *testing.T) {
	server := serve(t, sim.Config{})
	inModes(t, func(t *testing.T, c client, stream bool) {
		req := ask("Ann is 42 🙂")
		req.Stream = stream
		resp, err := c.generate(context.Background(), server.URL, req)
		if err != nil || resp.Text() != "You said: Ann is 42 🙂" {
			t.Errorf("%v %+v", err, resp)
		}
		req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Name: "person", Schema: json.RawMessage(
			`{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false}`)}
		resp, err = c.generate(context.Background(), server.URL, req)
		if err != nil || resp.Text() != `{"name":"Ann","age":42}` {
			t.Errorf("%v %+v", err, resp.Text())
		}
		req.Output = nil
		if c.Dialect() == dialectname.OpenAIChat {
			return // these servers send no reasoning
		}
		req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningBudget, BudgetTokens: new(int64(2048)), Summary: "auto"}
		if c.Dialect() == dialectname.OpenAIResponses {
			req.Reasoning = &dragoman.ReasoningSettings{Effort: "high", Summary: "auto"}
		}
		resp, err = c.generate(context.Background(), server.URL, req)
		if err != nil || !strings.Contains(thinking(resp), "No tool is needed") {
			t.Errorf("%v %+v", err, resp)
		}
	})
}

// thinking returns the visible reasoning of a response.
func thinking(resp *dragoman.Response) string {
	var b strings.Builder
	for _, m := range resp.Output {
		for _, p := range m.Parts {
			if r, ok := p.(*dragoman.Reasoning); ok {
				b.WriteString(r.Text + strings.Join(r.Summary, ""))
			}
		}
	}
	return b.String()
}

func TestFreeformToolsInDialectsThatHaveThem(t *testing.T) {
	server := serve(t, sim.Config{})
	inModes(t, func(t *testing.T, c client, stream bool) {
		req := ask(`Run the code "print(1)"`, dragoman.ToolSpec{Kind: codes.ToolFreeform, Name: "run_code", Description: "Runs code."})
		req.Stream = stream
		resp, err := c.generate(context.Background(), server.URL, req)
		if err != nil || len(resp.ToolCalls()) != 1 {
			t.Fatalf("%v %+v", err, resp)
		}
		if call := resp.ToolCalls()[0]; call.Payload != codes.PayloadText || call.Arguments != "print(1)" {
			t.Errorf("%+v", call)
		}
	})
}

func TestErrorsHaveClassAndStatus(t *testing.T) {
	script := "turn\nmatch user slow\nerror rate_limit retry=3s Slow down.\nturn\nmatch user overload\nerror overloaded Too much.\n" +
		"turn\nmatch user policy\nerror auth Who?\n"
	script = strings.ReplaceAll(script, "error auth", "error authentication")
	played, err := sim.ParseScenario("errors", script)
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, sim.Config{Scenario: played, MaxBytes: 100_000})
	inModes(t, func(t *testing.T, c client, stream bool) {
		fails := func(model, prompt string, class dragoman.ErrorClass) *dragoman.APIError {
			t.Helper()
			req := ask(prompt)
			req.Model, req.Stream = model, stream
			_, err := c.generate(context.Background(), server.URL, req)
			var e *dragoman.APIError
			if !errors.As(err, &e) || e.Class != class || e.Status < 400 || e.Native == nil {
				t.Errorf("%.20s: %+v, want %s", prompt, err, class)
				return &dragoman.APIError{}
			}
			return e
		}
		if e := fails("sim/scenario", "slow", dragoman.ErrorRateLimit); e.RetryAfter != 3*time.Second || e.Status != 429 {
			t.Errorf("%+v", e)
		}
		fails("sim/scenario", "overload", dragoman.ErrorOverloaded)
		fails("sim/scenario", "policy", dragoman.ErrorAuth)
		fails("sim/scenario", "no turn", dragoman.ErrorBadRequest)
		fails("sim/planner?x=y", "hi", dragoman.ErrorBadRequest)
		if e := fails("gpt-5", "hi", dragoman.ErrorNotFound); e.Status != 404 || !strings.Contains(e.Message, "sim/planner") {
			t.Errorf("%+v", e)
		}
		large := dragoman.ErrorTooLarge
		if c.Dialect() == dialectname.Bedrock {
			large = dragoman.ErrorBadRequest // the dialect has no other error type
		}
		fails("sim/echo", strings.Repeat("x", 200_000), large)
	})
}

func TestInvalidBodyIsBadRequest(t *testing.T) {
	server := serve(t, sim.Config{})
	for _, c := range clients() {
		for _, body := range []string{"", "nothing", "[]", `{"messages":3,"contents":3,"input":{},"model":7}`} {
			resp, err := http.Post(server.URL+c.path("sim/echo", false), "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			raw, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if e := c.DecodeError(resp.StatusCode, resp.Header, raw); resp.StatusCode != http.StatusBadRequest || e.Class != dragoman.ErrorBadRequest || e.Native == nil {
				t.Errorf("%s, %q: %d %s", c.Dialect(), body, resp.StatusCode, raw)
			}
		}
	}
}

func TestContentTypesAndRequestIDs(t *testing.T) {
	server := serve(t, sim.Config{})
	types := map[dragoman.Dialect]string{
		dialectname.Ollama: "application/x-ndjson", dialectname.Bedrock: "application/vnd.amazon.eventstream",
	}
	ids := map[dragoman.Dialect]string{dialectname.Anthropic: "request-id", dialectname.Bedrock: "x-amzn-requestid"}
	inModes(t, func(t *testing.T, c client, stream bool) {
		want := "application/json"
		if stream {
			if want = types[c.Dialect()]; want == "" {
				want = "text/event-stream"
			}
		}
		id := ids[c.Dialect()]
		if id == "" {
			id = "x-request-id"
		}
		req := ask("hi")
		req.Stream = stream
		resp, _, err := c.post(context.Background(), server.URL, req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := resp.Header.Get("content-type"); got != want || !strings.HasPrefix(resp.Header.Get(id), "req_") {
			t.Errorf("%s %q", got, resp.Header)
		}
	})
}

func TestQuirkC29_GeminiStreamsArrayByDefault(t *testing.T) {
	server := serve(t, sim.Config{})
	body := `{"contents":[{"role":"user","parts":[{"text":"hi there"}]}]}`
	for _, path := range []string{"/v1beta/models/sim/echo:streamGenerateContent", "/v1beta/sim/echo:streamGenerateContent", "/v1/projects/p/locations/l/publishers/google/models/echo:streamGenerateContent"} {
		resp, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) < 2 || resp.Header.Get("content-type") != "application/json" {
			t.Errorf("%s: %q %s", path, resp.Header, raw)
		}
	}
}

func TestAnthropicThreadIsRefused(t *testing.T) {
	server := serve(t, sim.Config{})
	for thread, want := range map[string]int{`{"type":"create"}`: 400, `{"type":"continue","previous_message_id":"msg_1"}`: 400, `null`: 200} {
		body := `{"model":"sim/echo","max_tokens":50,"thread":` + thread + `,"messages":[{"role":"user","content":"hi"}]}`
		resp, err := http.Post(server.URL+"/v1/messages", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want || want == 400 && !strings.Contains(string(raw), `"details":{"error_code":"thread_unsupported_request"}`) {
			t.Errorf("%s: %d %s", thread, resp.StatusCode, raw)
		}
	}
}

// Each event is flushed when it is made.
func TestEventsAreFlushedAndDisconnectEndsResponse(t *testing.T) {
	for _, c := range clients() {
		t.Run(string(c.Dialect()), func(t *testing.T) {
			ended, next := make(chan error, 1), make(chan struct{}, 10)
			pace := sim.Pace{TokensPerSecond: 1, Wait: func(ctx context.Context, _ time.Duration) error {
				select {
				case <-next:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}}
			handler := sim.Handler(sim.Config{Settings: sim.Settings{Pace: pace}})
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				handler.ServeHTTP(w, r)
				ended <- r.Context().Err()
			}))
			defer server.Close()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			req := ask("one two three four five six")
			req.Model, req.Stream = "sim/echo", true
			next <- struct{}{}
			resp, o, err := c.post(ctx, server.URL, req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text := ""
			for ev, err := range dialect.Events(c.NewStreamDecoder(o), resp.Body) {
				if err != nil {
					break // the body was cut
				}
				if d, ok := ev.(*dragoman.PartDelta); ok {
					text += d.Text
					if text == "one two " {
						cancel()
						break
					}
					next <- struct{}{}
				}
			}
			if err := <-ended; !errors.Is(err, context.Canceled) || text != "one two " {
				t.Errorf("%v after %q", err, text)
			}
		})
	}
}

func TestTokensAreCountedAndModelsListed(t *testing.T) {
	server := serve(t, sim.Config{})
	call := func(method, path, body string, header ...string) string {
		t.Helper()
		r, err := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if len(header) > 1 {
			r.Header.Set(header[0], header[1])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, _ := io.ReadAll(resp.Body)
		return resp.Status[:3] + " " + string(raw)
	}
	message := `{"model":"sim/echo","system":"1234","messages":[{"role":"user","content":"12345"}]}`
	contents := `{"systemInstruction":{"parts":[{"text":"1234"}]},"contents":[{"role":"user","parts":[{"text":"12345"}]}]}`
	for _, tc := range []struct{ about, got, want string }{
		{"Anthropic counts", call("POST", "/v1/messages/count_tokens?beta=true", message), `200 {"input_tokens":3}`},
		{"Anthropic counts for an unknown model", call("POST", "/v1/messages/count_tokens", `{"model":"x","messages":[]}`), `404 {"type":"error"`},
		{"Gemini counts", call("POST", "/v1beta/models/echo:countTokens", contents), `200 {"totalTokens":3}`},
		{"Gemini counts a request", call("POST", "/v1beta/models/echo:countTokens", `{"generateContentRequest":`+contents+`}`), `200 {"totalTokens":3}`},
		{"Gemini counts for an unknown model", call("POST", "/v1beta/models/x:countTokens", contents), `404 {"error"`},
		{"OpenAI lists", call("GET", "/v1/models", ""), `200 {"object":"list","data":[{"id":"sim/planner","object":"model"`},
		{"Anthropic lists", call("GET", "/v1/models", "", "anthropic-version", "2023-06-01"), `200 {"data":[{"type":"model","id":"sim/planner"`},
		{"OpenAI describes a model", call("GET", "/v1/models/sim/echo", ""), `200 {"id":"sim/echo"`},
		{"OpenAI does not know the model", call("GET", "/v1/models/x", ""), `404 {"error"`},
		{"Gemini lists", call("GET", "/v1beta/models", ""), `200 {"models":[{"name":"models/sim/planner"`},
		{"Gemini describes a model", call("GET", "/v1beta/models/sim/echo", ""), `200 {"name":"models/sim/echo"`},
		{"Ollama sends a done reason", call("POST", "/api/chat", `{"model":"echo","stream":false,"messages":[{"role":"user","content":"hi"}]}`), `200 {"model":"echo","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"hi"},"done":true,"done_reason":"stop"`},
		{"Ollama lists", call("GET", "/api/tags", ""), `200 {"models":[{"name":"sim/planner"`},
		{"Ollama describes a model", call("POST", "/api/show", `{"model":"planner"}`), `200 {"license"`},
		{"Ollama describes a model to older clients", call("POST", "/api/show", `{"name":"planner"}`), `200 {"license"`},
		{"Ollama does not know the model", call("POST", "/api/show", `{"model":"x"}`), `404 {"error"`},
		{"Ollama's version", call("GET", "/api/version", ""), `200 {"version":"0.34.4"}`},
		{"alive", call("GET", "/", ""), `200 The simulator is running.`},
		{"no version", call("POST", "/responses", "{}"), `404 {"error":{"message":"nothing is served at POST /responses; the base URL for OpenAI clients ends in /v1"`},
		{"unknown path", call("POST", "/v1/embeddings", "{}"), `404 {"error"`},
		{"unknown method", call("POST", "/v1beta/models/echo:embedContent", "{}"), `404 {"error"`},
		{"no method", call("POST", "/v1beta/models/echo", "{}"), `404 {"error"`},
		{"unknown operation", call("POST", "/model/echo/invoke", "{}"), `404 {"__type"`},
		{"Gemini error in an array", call("POST", "/v1beta/models/x:streamGenerateContent", contents), `404 [{"error"`},
		{"Gemini error in events", call("POST", "/v1beta/models/x:streamGenerateContent?alt=sse", contents), `404 {"error"`},
		{"unknown response", call("POST", "/v1/responses", `{"model":"echo","input":"hi","previous_response_id":"resp_1"}`), `400 {"error"`},
	} {
		if !strings.HasPrefix(tc.got, tc.want) {
			t.Errorf("%s\n got %s\nwant %s", tc.about, tc.got, tc.want)
		}
	}
}

func TestAbandonedStreamsLeakNothing(t *testing.T) {
	server := serve(t, sim.Config{})
	for i := range 1000 {
		c := clients()[i%6]
		ctx, cancel := context.WithCancel(context.Background())
		req := ask(strings.Repeat("a long text ", 50))
		req.Model, req.Stream = "sim/echo", true
		resp, _, err := c.post(ctx, server.URL, req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = resp.Body.Read(make([]byte, 10))
		cancel()
		resp.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	server.Close() // waits for all open requests
}
