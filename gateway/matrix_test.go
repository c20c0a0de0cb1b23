package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
	"github.com/dragoman-go/dragoman/internal/serving"
	"github.com/dragoman-go/dragoman/sim"
)

// clientDialects are the dialects of clients.
var clientDialects = []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, gemini.Codec{Array: true}, ollama.Codec{}}

// upstreams are providers that reach the simulator in every dialect. chat is a compatible server;
// the last one is the simulator in this process.
var upstreams = []string{"chat", "openai", "responses", "anthropic", "gemini", "ollama", "bedrock", "sim"}

// client sends requests to a gateway in a dialect, without package provider.
type client struct {
	t     testing.TB
	codec dialect.Codec
	url   string
	key   string
	// last is the last encoded request; its registry decodes the response.
	last dialect.Encoded
}

// post sends a request and returns the answer.
func (c *client) post(ctx context.Context, req *dragoman.Request) *http.Response {
	c.t.Helper()
	sent := *req
	if _, ok := c.codec.(gemini.Codec); ok {
		sent.Model, sent.Stream = "", false
	}
	enc, err := c.codec.EncodeRequest(&sent, dialect.EncodeOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	c.last = enc
	return c.postBody(ctx, req.Model, req.Stream, enc.Body)
}

func (c *client) postBody(ctx context.Context, model string, stream bool, body []byte) *http.Response {
	c.t.Helper()
	hr, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path(c.codec, model, stream), bytes.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	if c.codec.Dialect() == dialectname.Anthropic {
		hr.Header.Set("anthropic-version", "2023-06-01")
	}
	if c.key != "" {
		hr.Header.Set("authorization", "Bearer "+c.key)
	}
	resp, err := http.DefaultClient.Do(hr)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

func path(codec dialect.Codec, model string, stream bool) string {
	switch codec := codec.(type) {
	case openaichat.Codec:
		return "/v1/chat/completions"
	case openairesponses.Codec:
		return "/v1/responses"
	case anthropic.Codec:
		return "/v1/messages"
	case ollama.Codec:
		return "/api/chat"
	case gemini.Codec:
		p := "/v1beta/models/" + url.PathEscape(model)
		switch {
		case !stream:
			return p + ":generateContent"
		case codec.Array:
			return p + ":streamGenerateContent"
		default:
			return p + ":streamGenerateContent?alt=sse"
		}
	}
	panic("no path")
}

// generate sends a request and reads the answer.
func (c *client) generate(req *dragoman.Request) (*dragoman.Response, error) {
	c.t.Helper()
	hr := c.post(c.t.Context(), req) //nolint:bodyclose // the test's end does
	body, err := io.ReadAll(hr.Body)
	if err != nil {
		return nil, err
	}
	if hr.StatusCode != http.StatusOK {
		return nil, c.codec.DecodeError(hr.StatusCode, hr.Header, body)
	}
	o := dialect.DecodeOptions{Registry: c.last.Registry}
	if !req.Stream {
		resp, _, err := c.codec.DecodeResponse(body, o)
		return resp, err
	}
	return dragoman.Collect(dialect.Events(c.codec.NewStreamDecoder(o), bytes.NewReader(body)))
}

// world is a gateway in front of the simulator, over HTTP in every dialect.
type world struct {
	gateway *gateway.Gateway
	url     string
	sim     *httptest.Server
	// passes is the reason not to judge passed-through responses; empty means that they are
	// judged.
	passes string
	log    safeBuffer
}

// configOf is a config with the simulator at a URL as a provider of every dialect.
func configOf(simURL string) string {
	return fmt.Sprintf(`version: 1
providers:
  chat: {type: compatible, base_url: "%[1]s/v1", retries: 0}
  openai: {type: openai-chat, base_url: "%[1]s/v1", api_key_env: SIM_KEY, retries: 0}
  responses: {type: openai, base_url: "%[1]s/v1", api_key_env: SIM_KEY, retries: 0}
  anthropic: {base_url: "%[1]s", api_key_env: SIM_KEY, retries: 0}
  gemini: {base_url: "%[1]s", api_key_env: SIM_KEY, retries: 0}
  ollama: {base_url: "%[1]s", retries: 0}
  cohere: {base_url: "%[1]s", api_key_env: SIM_KEY, retries: 0}
  bedrock: {base_url: "%[1]s", region: eu-central-1, api_key_env: SIM_KEY, retries: 0}
`, simURL)
}

func newWorld(t testing.TB, more string, how ...option) *world {
	t.Helper()
	t.Setenv("SIM_KEY", "upstream-secret")
	s := httptest.NewServer(sim.Handler(sim.Config{}))
	t.Cleanup(s.Close)
	return newWorldOf(t, s, configOf(s.URL)+more, how...)
}

func newWorldOf(t testing.TB, s *httptest.Server, file string, how ...option) *world {
	t.Helper()
	config, err := gateway.Parse("gateway.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Routes) == 0 { // the simulator is also served in process
		config.Routes = append(config.Served(), gateway.Route{Pattern: "sim/*", To: "sim/*"})
	}
	w := &world{sim: s}
	for _, o := range how {
		o(w)
	}
	w.gateway, err = gateway.New(config, gateway.Options{Log: slog.New(slog.NewJSONHandler(&w.log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(emitcheck.Handler(w.gateway, w.judgeOptions(t)))
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func weatherTool() dragoman.ToolSpec {
	return dragoman.ToolSpec{
		Name: "get_weather", Description: "Current weather in a city.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`),
	}
}

func userSays(text string) dragoman.Message {
	return dragoman.Message{Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: text}}}
}

func textOf(resp *dragoman.Response) string {
	var b strings.Builder
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			if text, ok := p.(*dragoman.Text); ok {
				b.WriteString(text.Text)
			}
		}
	}
	return b.String()
}

func callsOf(resp *dragoman.Response) (out []*dragoman.ToolCall) {
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			if call, ok := p.(*dragoman.ToolCall); ok {
				out = append(out, call)
			}
		}
	}
	return out
}

// forEachPair runs a test for every client and upstream, whole and streamed.
func forEachPair(t *testing.T, w *world, f func(t *testing.T, c *client, model string, stream bool)) {
	for _, codec := range clientDialects {
		for _, up := range upstreams {
			for _, stream := range []bool{false, true} {
				name := string(codec.Dialect())
				if g, ok := codec.(gemini.Codec); ok && g.Array {
					name += "-array"
				}
				how := map[bool]string{false: "whole", true: "streamed"}[stream]
				model := up + "/sim/planner"
				if up == "sim" {
					model = "sim/planner"
				}
				t.Run(name+" to "+up+" "+how, func(t *testing.T) {
					f(t, &client{t: t, codec: codec, url: w.url}, model, stream)
				})
			}
		}
	}
}

func TestG1_EveryClientReachesEveryModelWithText(t *testing.T) {
	forEachPair(t, newWorld(t, ""), func(t *testing.T, c *client, model string, stream bool) {
		resp, err := c.generate(&dragoman.Request{Model: model, Stream: stream, MaxOutputTokens: new(int64(500)), Messages: []dragoman.Message{userSays("Say hello.")}})
		if err != nil {
			t.Fatal(err)
		}
		if textOf(resp) == "" || resp.Stop.Reason != dragoman.StopEnd {
			t.Errorf("%q, %v", textOf(resp), resp.Stop)
		}
	})
}

func TestG1_EveryClientReachesEveryModelWithAToolLoop(t *testing.T) {
	forEachPair(t, newWorld(t, ""), func(t *testing.T, c *client, model string, stream bool) {
		req := &dragoman.Request{
			Model: model, Stream: stream, MaxOutputTokens: new(int64(500)), Tools: []dragoman.ToolSpec{weatherTool()},
			Messages: []dragoman.Message{userSays("What is the weather in Oslo and in Rome?")},
		}
		resp, err := c.generate(req)
		if err != nil {
			t.Fatal(err)
		}
		calls := callsOf(resp)
		if len(calls) != 2 || resp.Stop.Reason != dragoman.StopToolCalls {
			t.Fatalf("%d calls, %v, %q", len(calls), resp.Stop, textOf(resp))
		}
		req.Messages = append(req.Messages, resp.Output...)
		results := dragoman.Message{Role: dragoman.RoleTool}
		for i, call := range calls {
			city := []string{"Oslo", "Rome"}[i]
			if call.Name != "get_weather" || !strings.Contains(call.Arguments, city) || call.ID == "" {
				t.Errorf("call %d: %+v", i, call)
			}
			results.Parts = append(results.Parts, call.Result(&dragoman.Text{Text: city + " has " + []string{"snow", "sun"}[i]}))
		}
		req.Messages = append(req.Messages, results)
		resp, err = c.generate(req)
		if err != nil {
			t.Fatal(err)
		}
		if text := textOf(resp); !strings.Contains(text, "snow") || !strings.Contains(text, "sun") || len(callsOf(resp)) != 0 {
			t.Errorf("%q, %v", text, resp.Stop)
		}
	})
}

// logLine waits for the log line of a request.
func (w *world) logLine(t *testing.T, id string) (line string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); runtime.Gosched() {
		for line := range strings.Lines(w.logged()) {
			if strings.Contains(line, `"msg":"request"`) && strings.Contains(line, `"id":"`+id+`"`) {
				return line
			}
		}
	}
	t.Fatalf("no line of %q in the log:\n%s", id, w.logged())
	return ""
}

func TestG1_OnlySharedDialectsArePassedThrough(t *testing.T) {
	w := newWorld(t, "")
	forEachPair(t, w, func(t *testing.T, c *client, model string, stream bool) {
		resp := c.post(t.Context(), &dragoman.Request{Model: model, Stream: stream, MaxOutputTokens: new(int64(500)), Messages: []dragoman.Message{userSays("Say hello.")}}) //nolint:bodyclose // the test's end does
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %v: %s", resp.StatusCode, err, body)
		}
		want := strings.HasPrefix(model, providerOf(c.codec.Dialect())+"/")
		if g, ok := c.codec.(gemini.Codec); ok && g.Array && stream {
			want = false // the upstream is asked for events
		}
		line := w.logLine(t, resp.Header.Get(serving.RequestIDHeader(c.codec)))
		if got := strings.Contains(line, `"transparent":true`); got != want {
			t.Errorf("transparent is %v: %s", got, line)
		}
	})
}
