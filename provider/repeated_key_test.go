package provider_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/provider"
)

// repeatedKey is a call's arguments, as an object and as a string.
const (
	repeatedKey     = `{"q":"a","q":"b"}`
	repeatedKeyText = `"{\"q\":\"a\",\"q\":\"b\"}"`
)

func events(all ...string) string {
	var b strings.Builder
	for _, e := range all {
		var of struct{ Type string }
		if json.Unmarshal([]byte(e), &of); of.Type != "" {
			fmt.Fprintf(&b, "event: %s\n", of.Type)
		}
		fmt.Fprintf(&b, "data: %s\n\n", e)
	}
	return b.String()
}

// repeatedKeyResponses are responses with such a call, whole and streamed.
func repeatedKeyResponses() map[string][2]string {
	const (
		chatCall  = `"id":"c1","type":"function","function":{"name":"look","arguments":` + repeatedKeyText + `}}`
		item      = `{"type":"function_call","id":"fc_1","call_id":"c1","name":"look","arguments":` + repeatedKeyText + `,"status":"completed"}`
		response  = `{"id":"resp_1","object":"response","created_at":1,"model":"m","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2},`
		completed = response + `"status":"completed","output":[` + item + `]}`
		gemini    = `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"look","args":` + repeatedKey + `}}]},"finishReason":"STOP"}],"modelVersion":"m","usageMetadata":{"promptTokenCount":1,"totalTokenCount":2}}`
		ollama    = `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"c1","function":{"name":"look","arguments":` + repeatedKey + `}}]},"done":true,"done_reason":"stop"}`
		message   = `{"id":"msg_1","type":"message","role":"assistant","model":"m","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1},`
	)
	return map[string][2]string{
		"openai-chat": {
			`{"id":"x","model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{` + chatCall + `]}}]}`,
			events(`{"id":"x","model":"m","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,`+chatCall+`]}}]}`,
				`{"id":"x","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, `[DONE]`),
		},
		"openai": {completed, events(
			`{"type":"response.created","sequence_number":0,"response":`+response+`"status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c1","name":"look","arguments":"","status":"in_progress"}}`,
			`{"type":"response.function_call_arguments.delta","sequence_number":2,"item_id":"fc_1","output_index":0,"delta":`+repeatedKeyText+`}`,
			`{"type":"response.function_call_arguments.done","sequence_number":3,"item_id":"fc_1","output_index":0,"name":"look","arguments":`+repeatedKeyText+`}`,
			`{"type":"response.output_item.done","sequence_number":4,"output_index":0,"item":`+item+`}`,
			`{"type":"response.completed","sequence_number":5,"response":`+completed+`}`)},
		"anthropic": {
			message + `"content":[{"type":"tool_use","id":"c1","name":"look","input":` + repeatedKey + `}],"stop_reason":"tool_use"}`, events(
				`{"type":"message_start","message":`+message+`"content":[],"stop_reason":null}}`,
				`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c1","name":"look","input":{}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":`+repeatedKeyText+`}}`,
				`{"type":"content_block_stop","index":0}`,
				`{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":3}}`,
				`{"type":"message_stop"}`),
		},
		"gemini":  {gemini, events(gemini)},
		"ollama":  {ollama, ollama + "\n"},
		"bedrock": {`{"output":{"message":{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"look","input":` + repeatedKey + `}}]}},"stopReason":"tool_use","usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2}}`},
	}
}

func TestR7_RepeatedKeysGoBackToTheirOriginAsReceived(t *testing.T) {
	for typ, responses := range repeatedKeyResponses() {
		for i, body := range responses {
			if body == "" {
				continue
			}
			t.Run(typ+[]string{"", " streamed"}[i], func(t *testing.T) {
				var sent string
				open := func(name, typ string) dragoman.Model {
					server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						got, _ := io.ReadAll(r.Body)
						sent = string(got)
						_, _ = io.WriteString(w, body)
					}))
					t.Cleanup(server.Close)
					settings := provider.Settings{Type: typ, BaseURL: server.URL, Retry: provider.Retry{Max: -1}}
					if typ == "bedrock" {
						settings.Region = "eu-central-1"
					}
					config := &provider.Config{Providers: map[string]provider.Settings{name: settings}, Getenv: func(string) string { return "k" }}
					m, err := config.Open(name + "/m")
					if err != nil {
						t.Fatal(err)
					}
					return m
				}
				m := open("one", typ)
				req := &dragoman.Request{Messages: []dragoman.Message{dragoman.UserText("hi")}, Tools: []dragoman.ToolSpec{{Name: "look", Parameters: json.RawMessage(`{"type":"object","properties":{}}`)}}}
				generate := func() *dragoman.Response {
					resp, err := m.Generate(t.Context(), req)
					if i > 0 {
						resp, err = dragoman.Collect(m.Stream(t.Context(), req))
					}
					if err != nil {
						t.Fatal(err)
					}
					return resp
				}
				resp := generate()
				c := resp.ToolCalls()[0]
				if c.Problem == nil || c.Problem.Code != codes.ProblemDuplicateKey {
					t.Fatalf("the call may run: %+v", c.Problem)
				}
				req.Messages = append(req.Messages, resp.Output[0], dragoman.Message{Role: dragoman.RoleTool, Parts: []dragoman.Part{c.Fail("The key q is repeated.")}})
				generate()
				if !strings.Contains(sent, repeatedKey) && !strings.Contains(sent, repeatedKeyText) {
					t.Errorf("its origin gets %s", sent)
				}
				other := "anthropic"
				if typ == other {
					other = "openai-chat"
				}
				_, _ = open("one", other).Generate(t.Context(), req) // the response is that of another API
				if strings.Contains(sent, `"q`) || strings.Contains(sent, `\"q`) {
					t.Errorf("%s gets %s", other, sent)
				}
			})
		}
	}
}
