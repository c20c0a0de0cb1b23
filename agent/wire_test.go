package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
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
	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
)

// stack is a dialect with a model that its vendor serves.
type stack struct {
	codec dialect.Codec
	model string
	// base is the path below which the API is.
	base string
}

func stacks() map[dragoman.Dialect]stack {
	return map[dragoman.Dialect]stack{
		dialectname.OpenAIChat:      {openaichat.Codec{}, "gpt-4.1", "/v1"},
		dialectname.OpenAIResponses: {openairesponses.Codec{}, "gpt-4.1", "/v1"},
		dialectname.Anthropic:       {anthropic.Codec{}, "claude-sonnet-4-5", ""},
		dialectname.Gemini:          {gemini.Codec{}, "gemini-2.5-flash", ""},
		dialectname.Ollama:          {ollama.Codec{}, "qwen3", ""},
		dialectname.Bedrock:         {bedrock.Codec{}, "anthropic.claude-sonnet-4-5-20250929-v1:0", ""},
		cohere.Codec{}.Dialect():    {cohere.Codec{}, "command-a-03-2025", ""},
	}
}

// upstream is a strict server in one dialect that records request bodies.
type upstream struct {
	*httptest.Server
	client *provider.Client
	mu     sync.Mutex
	bodies []string
}

// serveStrictly serves the simulator in one dialect, and refuses the requests that the
// vendor refuses.
func serveStrictly(t *testing.T, s stack) *upstream {
	t.Helper()
	u := &upstream{}
	strict := strictupstream.New(sim.Handler(sim.Config{}), strictupstream.Options{
		Model: "sim/planner", Refused: func(r *strictupstream.Refusal) { t.Errorf("the server refused: %+v", r) },
	})
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		u.mu.Lock()
		u.bodies = append(u.bodies, string(body))
		u.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(body))
		strict.ServeHTTP(w, r)
	}))
	t.Cleanup(u.Close)
	u.client = &provider.Client{Codec: s.codec, Model: s.model, BaseURL: u.URL + s.base}
	return u
}

// last returns the body of the last request.
func (u *upstream) last(t *testing.T) string {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.bodies) == 0 {
		t.Fatal("the server got no request")
	}
	return u.bodies[len(u.bodies)-1]
}

// mustHave fails unless a body holds each text once its JSON strings are unquoted.
func mustHave(t *testing.T, what, body string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(body, w) && !strings.Contains(strings.ReplaceAll(body, `\"`, `"`), w) {
			t.Errorf("%s: no %s in\n%s", what, w, body)
		}
	}
}

func mustLack(t *testing.T, what, body string, unwanted ...string) {
	t.Helper()
	for _, w := range unwanted {
		if strings.Contains(body, w) {
			t.Errorf("%s: %s is in\n%s", what, w, body)
		}
	}
}

// searchResult is a result as Anthropic writes it, in an envelope with a private field.
var searchResult = map[string]any{
	"type": "provider_native_tool_result", "format": "anthropic.messages", "text": "3 degrees in Oslo",
	"_metadata": map[string]any{"cost": "private-cost"},
	"content": []any{map[string]any{
		"type": "search_result", "source": "https://example.com/oslo", "title": "Oslo",
		"content": []any{map[string]any{"type": "text", "text": "3 degrees"}},
	}},
}

type envelope struct {
	Type     string          `json:"type"`
	Format   string          `json:"format"`
	Text     string          `json:"text"`
	Content  json.RawMessage `json:"content"`
	Metadata any             `json:"_metadata"`
}

func TestR9_NativeResultReturnedAsData(t *testing.T) {
	raw := must[[]byte](t)(json.Marshal(searchResult))
	var typed envelope
	if err := json.Unmarshal(raw, &typed); err != nil {
		t.Fatal(err)
	}
	const about = "Looks up the weather in a city."
	for how, weather := range map[string]tool.Tool{
		"map":    tool.New("get_weather", about, func(context.Context, city) (map[string]any, error) { return searchResult, nil }),
		"struct": tool.New("get_weather", about, func(context.Context, city) (*envelope, error) { return &typed, nil }),
		"raw":    tool.New("get_weather", about, func(context.Context, city) (json.RawMessage, error) { return raw, nil }),
		"part": tool.New("get_weather", about, func(context.Context, city) (dragoman.Part, error) {
			return &dragoman.Data{JSON: raw}, nil
		}),
	} {
		for d, s := range stacks() {
			u := serveStrictly(t, s)
			res, err := agent.Agent{Model: u.client, Tools: []tool.Tool{weather}}.Run(t.Context(), "What is the weather in Oslo?")
			if err != nil || len(res.Records) != 1 || !res.Records[0].OK {
				t.Fatalf("%s, %s: %v\n%s", how, d, err, recordLines(res.Records))
			}
			what := how + ", " + string(d)
			mustLack(t, what, u.last(t), "_metadata", "private-cost", "provider_native_tool_result")
			if d == dialectname.Anthropic {
				mustHave(t, what, u.last(t), `"type":"search_result"`, `"source":"https://example.com/oslo"`)
				mustLack(t, what, u.last(t), "Output of the tool")
				continue
			}
			mustHave(t, what, u.last(t), "3 degrees in Oslo", "Output of the tool get_weather")
			mustLack(t, what, u.last(t), "search_result", "example.com")
			if !slices.ContainsFunc(res.Losses.Losses, func(l dragoman.Loss) bool { return strings.Contains(l.Detail, "native result of anthropic.messages") }) {
				t.Errorf("%s: the text fallback is not reported: %v", what, res.Losses.Losses)
			}
		}
	}
}

type city struct {
	City string `json:"city" doc:"the city's name"`
}

func TestR9_UntrustedToolsReturnNoNativeResults(t *testing.T) {
	raw := must[[]byte](t)(json.Marshal(searchResult))
	params := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)
	spec := dragoman.ToolSpec{Name: "get_weather", Description: "Looks up the weather in a city.", Parameters: params, OutputSchema: json.RawMessage(`{"type":"object"}`)}
	data := func(context.Context, tool.Input) (tool.Output, error) {
		return tool.Output{Content: []dragoman.Part{&dragoman.Data{JSON: raw}}}, nil
	}
	text := func(context.Context, city) (string, error) { return string(raw), nil }
	u := func(weather tool.Tool) string {
		u := serveStrictly(t, stacks()[dialectname.Anthropic])
		if _, err := (agent.Agent{Model: u.client, Tools: []tool.Tool{weather}}).Run(t.Context(), "What is the weather in Oslo?"); err != nil {
			t.Fatal(err)
		}
		return u.last(t)
	}
	for how, weather := range map[string]tool.Tool{
		"remote":     tool.Remote(spec, data),
		"structured": tool.Remote(spec, data, toolopt.Structured()),
		"mcp": tool.Raw("get_weather", spec.Description, params, func(context.Context, json.RawMessage) (any, error) { return json.RawMessage(raw), nil },
			tool.Set(func(s *tool.Settings) { s.Source = codes.FromMCP })),
		"text of a tool of this program": tool.New("get_weather", spec.Description, text),
	} {
		body := u(weather)
		mustHave(t, how, body, "Output of the tool get_weather") // as text in a fence
		mustLack(t, how, body, `"type":"search_result"`)
	}
	trusted := u(tool.Remote(spec, data, tool.Set(func(s *tool.Settings) { s.Trusted = true })))
	mustHave(t, "trusted", trusted, `"type":"search_result"`)
	mustLack(t, "trusted", trusted, "_metadata")
}

func TestR9_IncompleteNativeResultIsAnError(t *testing.T) {
	for _, bad := range []map[string]any{
		{"type": "provider_native_tool_result", "content": "x", "_metadata": "private-cost"},
		{"type": "provider_native_tool_result", "format": "anthropic.messages", "_metadata": "private-cost"},
	} {
		m := model(calls("a look"), textResponse("done"))
		look := tool.New("look", "Looks.", func(context.Context, struct{}) (map[string]any, error) { return bad, nil })
		res := must[*agent.Result](t)(agent.Agent{Model: m, Tools: []tool.Tool{look}}.Run(t.Context(), "go"))
		if rec := res.Records[0]; rec.ErrorKind != tool.ErrorOutput || strings.Contains(rec.Output, "private-cost") || !strings.Contains(rec.Error, "field") {
			t.Errorf("%v: %s %q", bad, rec.ErrorKind, rec.Output)
		}
	}
}

// A result names its tool by the qualified name. A model that calls the tool by that name
// runs it, although the wire has another name for it.
func TestQuirkB22_ToolRunsByItsQualifiedName(t *testing.T) {
	called := []string{"crm__find", "crm.find"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		message := `{"role":"assistant","content":"done"}`
		if len(called) > 0 {
			message = `{"role":"assistant","tool_calls":[{"id":"` + called[0] + `","type":"function","function":{"name":"` + called[0] + `","arguments":"{}"}}]}`
			called = called[1:]
		}
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, `{"choices":[{"index":0,"message":`+message+`,"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	var c counted
	a := agent.Agent{
		Model: &provider.Client{BaseURL: server.URL, Model: "m"},
		Tools: []tool.Tool{c.tool("find", tool.InNamespace("crm", "Customers."))},
	}
	res, err := a.Run(t.Context(), "Find them.")
	if err != nil || res.Output != "done" || c.String() != "find: find:" {
		t.Errorf("ran %q, output %q, error %v", c.String(), res.Output, err)
	}
}
