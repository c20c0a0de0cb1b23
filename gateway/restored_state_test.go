package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

// scriptedServer returns the given responses and records the requests.
type scriptedServer struct {
	mu        sync.Mutex
	responses []string
	requests  []string
}

func (s *scriptedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, string(body))
	respBody := s.responses[min(len(s.requests), len(s.responses))-1]
	w.Header().Set("content-type", "application/json")
	if strings.HasPrefix(respBody, "event:") || strings.HasPrefix(respBody, "data:") {
		w.Header().Set("content-type", "text/event-stream")
	}
	_, _ = io.WriteString(w, respBody)
}

// Responses of reasoning models that require their reasoning back.
const (
	geminiThinks = `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"functionCall":{"name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":"c2lnbmF0dXJlLW9mLXRoZS1jYWxs"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"gemini-3","responseId":"r1"}`

	anthropicThinks = `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"The user wants the weather.","signature":"signature-of-the-thinking"},{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Oslo"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`

	responsesThinks = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"gpt","error":null,"incomplete_details":null,"output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"encrypted-thinking"},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{\"city\":\"Oslo\"}","status":"completed"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2,"input_tokens_details":{"cached_tokens":0},"output_tokens_details":{"reasoning_tokens":0}},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"metadata":{},"temperature":1,"top_p":1,"instructions":null,"completed_at":2,"previous_response_id":null,"truncation":"disabled","text":{"format":{"type":"text"}},"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,"reasoning":null,"max_output_tokens":null,"max_tool_calls":null,"store":true,"background":false,"service_tier":"default","safety_identifier":null,"prompt_cache_key":null}`
)

// withoutState returns a response as most clients send it back: texts, calls and results.
func withoutState(resp *dragoman.Response) dragoman.Message {
	out := dragoman.Message{Role: dragoman.RoleAssistant}
	for i := range resp.Output {
		for _, p := range resp.Output[i].Parts {
			switch p := p.(type) {
			case *dragoman.Text:
				out.Parts = append(out.Parts, &dragoman.Text{Text: p.Text})
			case *dragoman.ToolCall:
				out.Parts = append(out.Parts, &dragoman.ToolCall{ID: p.ID, Name: p.Name, Arguments: p.Arguments})
			}
		}
	}
	return out
}

func TestQuirkB17_DroppedStateIsRestored(t *testing.T) {
	for _, up := range []struct{ provider, answer, opaque string }{
		{"gemini", geminiThinks, "c2lnbmF0dXJlLW9mLXRoZS1jYWxs"},
		{"anthropic", anthropicThinks, "signature-of-the-thinking"},
		{"responses", responsesThinks, "encrypted-thinking"},
	} {
		for _, codec := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}} {
			t.Run(string(codec.Dialect())+" to "+up.provider, func(t *testing.T) {
				if providerOf(codec.Dialect()) == up.provider {
					return // passed through: the client keeps the state
				}
				model := &scriptedServer{responses: []string{up.answer}}
				t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
				t.Setenv("SECOND_KEY", "the-second-key-of-this-test")
				w := newServerWorld(t, fmt.Sprintf("gateway:\n  keys: {first: {key_env: FIRST_KEY}, second: {key_env: SECOND_KEY}}\n  routes: {m: {to: %q}}\n", up.provider+"/model"), model.ServeHTTP)
				c := &client{t: t, codec: codec, url: w.url, key: "the-first-key-of-this-test"}
				req := &dragoman.Request{Model: "m", MaxOutputTokens: new(int64(2000)), Tools: []dragoman.ToolSpec{weatherTool()}, Messages: []dragoman.Message{userSays("The weather in Oslo?")}, Store: new(false)}
				resp, err := c.generate(req)
				if err != nil || len(callsOf(resp)) != 1 {
					t.Fatalf("%v %v", resp, err)
				}
				req.Messages = append(req.Messages, withoutState(resp), dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{callsOf(resp)[0].ResultText("snow")}})
				if _, err := c.generate(req); err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(model.requests[1], up.opaque); n != 1 {
					t.Errorf("it is there %d times: %s", n, model.requests[1])
				}
				// The same conversation of another key gets none of it.
				c.key = "the-second-key-of-this-test"
				if _, err := c.generate(req); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(model.requests[2], up.opaque) {
					t.Errorf("another key sees it: %s", model.requests[2])
				}
			})
		}
	}
}

func TestQuirkB16_MissingSignatureUsesTheSentinel(t *testing.T) {
	model := &scriptedServer{responses: []string{geminiThinks}}
	route := "gateway:\n  routes: {m: {to: gemini/gemini-3-pro}}\n"
	w := newServerWorld(t, route, model.ServeHTTP)
	c := &client{t: t, codec: openaichat.Codec{}, url: w.url}
	req := &dragoman.Request{Model: "m", Tools: []dragoman.ToolSpec{weatherTool()}, Messages: []dragoman.Message{userSays("The weather in Oslo?")}}
	first, err := c.generate(req)
	if err != nil {
		t.Fatal(err)
	}
	text := withoutState(first)
	again := func(t *testing.T, w *world, text dragoman.Message, losses string) {
		t.Helper()
		more := *req
		more.Messages = append(slices.Clone(req.Messages), text, dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{text.ToolCalls()[0].ResultText("snow")}})
		c := &client{t: t, codec: openaichat.Codec{}, url: w.url}
		hr := c.post(t.Context(), &more) //nolint:bodyclose // the test's end does
		if got := hr.Header.Get("X-Dragoman-Losses"); hr.StatusCode != http.StatusOK || got != losses {
			t.Errorf("%d, losses %q, not %q", hr.StatusCode, got, losses)
		}
		sent := model.requests[len(model.requests)-1]
		if has := strings.Contains(sent, "skip_thought_signature_validator"); has != (losses != "") {
			t.Errorf("%s", sent)
		}
		if losses != "" {
			w.wantLog(t, `"losses":"`+losses+`"`)
		}
	}
	t.Run("what is remembered is put back, and nothing is lost", func(t *testing.T) {
		again(t, w, text, "")
	})
	t.Run("of an answer that the client changed the reasoning is missed", func(t *testing.T) {
		changed := *text.ToolCalls()[0]
		changed.Arguments = `{"city":"Rome"}`
		again(t, w, dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&changed}}, "2; dropped /messages/1; synthesized /messages/1/parts/0/signature")
	})
	t.Run("a gateway that remembers nothing says that the signature is made up", func(t *testing.T) {
		again(t, newServerWorld(t, route, model.ServeHTTP), text, "1; synthesized /messages/1/parts/0/signature")
	})
}
