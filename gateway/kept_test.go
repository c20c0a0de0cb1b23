package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/codectest"
)

// scripted is a server that says what it is told to, and remembers what it was asked.
type scripted struct {
	mu      sync.Mutex
	answers []string
	asked   []string
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, string(body))
	answer := s.answers[min(len(s.asked), len(s.answers))-1]
	w.Header().Set("content-type", "application/json")
	if strings.HasPrefix(answer, "event:") || strings.HasPrefix(answer, "data:") {
		w.Header().Set("content-type", "text/event-stream")
	}
	_, _ = io.WriteString(w, answer)
}

// Answers of models that think, and want to see that again.
const (
	geminiThinks = `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"functionCall":{"name":"get_weather","args":{"city":"Oslo"}},"thoughtSignature":"c2lnbmF0dXJlLW9mLXRoZS1jYWxs"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2},"modelVersion":"gemini-3","responseId":"r1"}`

	anthropicThinks = `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"thinking","thinking":"The user wants the weather.","signature":"signature-of-the-thinking"},{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Oslo"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`

	responsesThinks = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","model":"gpt","error":null,"incomplete_details":null,"output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"encrypted-thinking"},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{\"city\":\"Oslo\"}","status":"completed"}],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2,"input_tokens_details":{"cached_tokens":0},"output_tokens_details":{"reasoning_tokens":0}},"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"metadata":{},"temperature":1,"top_p":1,"instructions":null}`
)

// forgetful are clients that keep what every client keeps: texts, calls and results.
func forgetful(resp *dragoman.Response) dragoman.Message {
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

func TestQuirkB17_WhatAClientDropsIsPutBackBeforeItsModelIsAskedAgain(t *testing.T) {
	for _, up := range []struct{ provider, answer, opaque string }{
		{"gemini", geminiThinks, "c2lnbmF0dXJlLW9mLXRoZS1jYWxs"},
		{"anthropic", anthropicThinks, "signature-of-the-thinking"},
		{"responses", responsesThinks, "encrypted-thinking"},
	} {
		for _, codec := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}, anthropic.Codec{}, gemini.Codec{}, ollama.Codec{}} {
			t.Run(string(codec.Dialect())+" to "+up.provider, func(t *testing.T) {
				if ownProvider(codec.Dialect()) == up.provider {
					return // passed on as it is: it is the client's to keep
				}
				model := &scripted{answers: []string{up.answer}}
				t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
				t.Setenv("SECOND_KEY", "the-second-key-of-this-test")
				w := worldOf(t, fmt.Sprintf("gateway:\n  keys: {first: {key_env: FIRST_KEY}, second: {key_env: SECOND_KEY}}\n  routes: {m: {to: %q}}\n", up.provider+"/model"), model.ServeHTTP)
				c := &client{t: t, codec: codec, url: w.url, key: "the-first-key-of-this-test"}
				req := &dragoman.Request{Model: "m", MaxOutputTokens: new(int64(2000)), Tools: []dragoman.ToolSpec{weatherTool()}, Messages: []dragoman.Message{userSays("The weather in Oslo?")}, Store: new(false)}
				resp, err := c.ask(req)
				if err != nil || len(callsOf(resp)) != 1 {
					t.Fatalf("%v %v", resp, err)
				}
				req.Messages = append(req.Messages, forgetful(resp), dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{callsOf(resp)[0].ResultText("snow")}})
				if _, err := c.ask(req); err != nil {
					t.Fatal(err)
				}
				if n := strings.Count(model.asked[1], up.opaque); n != 1 {
					t.Errorf("it is there %d times: %s", n, model.asked[1])
				}
				// The same conversation of somebody else has nothing of it.
				c.key = "the-second-key-of-this-test"
				if _, err := c.ask(req); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(model.asked[2], up.opaque) {
					t.Errorf("another key sees it: %s", model.asked[2])
				}
			})
		}
	}
}

// lookup is a value in JSON; nil where there is none.
func lookup(t *testing.T, text string, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return codectest.At(v, path...)
}

func TestWhatPeersLoseIsKeptOrReported(t *testing.T) {
	const chat = `{"model":"%s","parallel_tool_calls":false,"tool_choice":{"type":"function","function":{"name":"get_weather"}},
		"tools":[{"type":"function","function":{"name":"get_weather","description":"d","strict":true,"parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}},
			{"type":"function","function":{"name":"other.tool/with odd name","description":"d","parameters":{"type":"object","properties":{}}}}],
		"messages":[{"role":"user","content":"Weather?"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Oslo\"}"}},{"id":"call_b","type":"function","function":{"name":"get_weather","arguments":"{\"city\":\"Rome\"}"}}]},
			{"role":"tool","tool_call_id":"call_b","content":"ERROR: no such city"},{"role":"tool","tool_call_id":"call_a","content":"snow"}]}`
	const answer = `{"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
	ask := func(t *testing.T, codec dialect.Codec, to, answer, body string) (sent, losses string, w *world) {
		t.Helper()
		model := &scripted{answers: []string{answer}}
		w = worldOf(t, fmt.Sprintf("gateway:\n  routes: {m: {to: %q, lift_errors: true}}\n", to), model.ServeHTTP)
		c := &client{t: t, codec: codec, url: w.url}
		resp := c.postBody(t.Context(), "m", false, []byte(body)) //nolint:bodyclose // the test's end does
		if all, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, all)
		}
		return model.asked[0], resp.Header.Get(gateway.LossHeader), w
	}
	t.Run("OpenAI to Anthropic", func(t *testing.T) {
		sent, losses, w := ask(t, openaichat.Codec{}, "anthropic/claude-sonnet-4-5", answer, fmt.Sprintf(chat, "m"))
		if lookup(t, sent, "tool_choice", "disable_parallel_tool_use") != true || lookup(t, sent, "tool_choice", "name") != "get_weather" {
			t.Errorf("tool choice: %v; %s", lookup(t, sent, "tool_choice"), losses)
		}
		if strict := lookup(t, sent, "tools", 0, "strict"); strict != true && !strings.Contains(losses, "strict") {
			t.Errorf("strict: %v, losses %q", strict, losses)
		}
		first, second := lookup(t, sent, "messages", 2, "content", 0), lookup(t, sent, "messages", 2, "content", 1)
		if a, b := first.(map[string]any), second.(map[string]any); a["tool_use_id"] != "call_a" || b["tool_use_id"] != "call_b" || b["is_error"] != true || a["is_error"] == true {
			t.Errorf("results: %v %v", first, second)
		}
		if name, _ := lookup(t, sent, "tools", 1, "name").(string); name == "" || strings.ContainsAny(name, "./ ") {
			t.Errorf("name: %q", name)
		}
		if losses != "" {
			w.wantLog(t, `"losses":"`+losses[:1])
		}
	})
	t.Run("OpenAI to Gemini", func(t *testing.T) {
		sent, losses, _ := ask(t, openaichat.Codec{}, "gemini/gemini-2.5-pro", strings.Replace(geminiThinks, `,"thoughtSignature":"c2lnbmF0dXJlLW9mLXRoZS1jYWxs"`, "", 1), fmt.Sprintf(chat, "m"))
		if lookup(t, sent, "toolConfig", "functionCallingConfig", "mode") != "ANY" || lookup(t, sent, "toolConfig", "functionCallingConfig", "allowedFunctionNames", 0) != "get_weather" {
			t.Errorf("tool choice: %v", lookup(t, sent, "toolConfig"))
		}
		if !strings.Contains(losses, "parallel") {
			t.Errorf("that calls may not be parallel is lost: %q", losses)
		}
		results := lookup(t, sent, "contents", 2, "parts")
		if lookup(t, sent, "contents", 2, "parts", 0, "functionResponse", "response", "error") != nil || lookup(t, sent, "contents", 2, "parts", 1, "functionResponse", "response", "error") == nil {
			t.Errorf("results: %v", results)
		}
	})
	t.Run("Anthropic to OpenAI", func(t *testing.T) {
		body := `{"model":"m","max_tokens":100,"tool_choice":{"type":"any","disable_parallel_tool_use":true},"tools":[{"name":"get_weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}}}}],
			"messages":[{"role":"user","content":"Weather?"},{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"get_weather","input":{"city":"Oslo"}},{"type":"tool_use","id":"toolu_2","name":"get_weather","input":{"city":"Rome"}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_2","content":"no","is_error":true},{"type":"tool_result","tool_use_id":"toolu_1","content":"snow"}]}]}`
		sent, losses, _ := ask(t, anthropic.Codec{}, "responses/gpt-5", responsesThinks, body)
		if lookup(t, sent, "parallel_tool_calls") != false || lookup(t, sent, "tool_choice") != "required" {
			t.Errorf("choice: %v %v", lookup(t, sent, "parallel_tool_calls"), lookup(t, sent, "tool_choice"))
		}
		order := []any{lookup(t, sent, "input", 1, "call_id"), lookup(t, sent, "input", 2, "call_id"), lookup(t, sent, "input", 3, "call_id"), lookup(t, sent, "input", 4, "call_id")}
		outputs := fmt.Sprint(lookup(t, sent, "input", 3, "output"), lookup(t, sent, "input", 4, "output"))
		if order[0] != "toolu_1" || order[1] != "toolu_2" || !strings.Contains(outputs, "ERROR: no") {
			t.Errorf("%v %s; losses %q", order, outputs, losses)
		}
	})
}
