package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
)

// threadTools are the instructions and tools of a thread, which only its first request has.
const threadTools = `"system":"Be brief.","tools":[{"type":"custom","name":"get_weather","description":"Current weather in a city.","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]`

// postMessages posts to /v1/messages and returns the response, also from a stream.
func postMessages(t testing.TB, w *world, body string) *dragoman.Response {
	t.Helper()
	c := &client{t: t, codec: anthropic.Codec{}, url: w.url}
	hr := c.postBody(t.Context(), "", false, []byte(body))
	defer hr.Body.Close()
	raw, err := io.ReadAll(hr.Body)
	if err != nil || hr.StatusCode != http.StatusOK {
		t.Fatalf("%d %v: %s", hr.StatusCode, err, raw)
	}
	var resp *dragoman.Response
	if strings.Contains(body, `"stream":true`) {
		resp, err = dragoman.Collect(dialect.Events(c.codec.NewStreamDecoder(dialect.DecodeOptions{}), bytes.NewReader(raw)))
	} else {
		resp, _, err = c.codec.DecodeResponse(raw, dialect.DecodeOptions{})
	}
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return resp
}

func TestG7_AnthropicThreadContinuesOnOtherUpstreams(t *testing.T) {
	w := newWorld(t, "")
	for _, stream := range []string{"false", "true"} {
		for _, up := range []string{"sim/planner", "chat/sim/planner", "responses/sim/planner", "gemini/sim/planner", "ollama/sim/planner", "bedrock/sim/planner"} {
			t.Run(up+" streamed "+stream, func(t *testing.T) {
				post := func(rest string) *dragoman.Response {
					t.Helper()
					return postMessages(t, w, fmt.Sprintf(`{"model":%q,"max_tokens":500,"stream":%s,%s}`, up, stream, rest))
				}
				first := post(threadTools + `,"thread":{"type":"create"},"messages":[{"role":"user","content":"What is the weather in Oslo?"}]`)
				calls := callsOf(first)
				if !strings.HasPrefix(first.ID, "msg_") || len(calls) != 1 || first.Stop.Native != "tool_use" {
					t.Fatalf("%+v", first)
				}
				second := post(fmt.Sprintf(`"thread":{"type":"continue","previous_message_id":%q},"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"snow"}]}]`, first.ID, calls[0].ID))
				if textOf(second) != "get_weather says: snow" {
					t.Errorf("the call is forgotten: %q", textOf(second))
				}
				third := post(fmt.Sprintf(`"thread":{"type":"continue","previous_message_id":%q},"messages":[{"role":"user","content":"What is the weather in Rome?"}]`, second.ID))
				if calls := callsOf(third); len(calls) != 1 || !strings.Contains(calls[0].Arguments, "Rome") {
					t.Errorf("the tools are forgotten: %q", textOf(third))
				}
			})
		}
	}
}

func TestG7_UnknownThreadIsAnAnthropicError(t *testing.T) {
	const oneKey, otherKey = "one-key-of-enough-letters", "another-key-of-enough-letters"
	t.Setenv("ONE_KEY", oneKey)
	t.Setenv("OTHER_KEY", otherKey)
	w := newWorld(t, "gateway: {keys: {one: {key_env: ONE_KEY}, other: {key_env: OTHER_KEY}}}\n")
	ask := func(key, model, thread string) (int, map[string]any) {
		c := &client{t: t, codec: anthropic.Codec{}, url: w.url, key: key}
		resp := c.postBody(t.Context(), "", false, fmt.Appendf(nil, `{"model":%q,"max_tokens":500,"thread":%s,"messages":[{"role":"user","content":"Hello."}]}`, model, thread))
		defer resp.Body.Close()
		if losses := resp.Header.Get("X-Dragoman-Losses"); losses != "" {
			t.Errorf("%s to %s: %s", thread, model, losses)
		}
		return resp.StatusCode, decodeJSON(t, resp.Body)
	}
	code := func(m map[string]any) any {
		e, _ := m["error"].(map[string]any)
		details, _ := e["details"].(map[string]any)
		return details["error_code"]
	}
	_, first := ask(oneKey, "chat/sim/echo", `{"type":"create"}`)
	going := fmt.Sprintf(`{"type":"continue","previous_message_id":%q}`, first["id"])
	if status, m := ask(oneKey, "chat/sim/echo", going); status != http.StatusOK {
		t.Errorf("%d %v", status, m)
	}
	if status, m := ask(otherKey, "chat/sim/echo", going); status != http.StatusNotFound || code(m) != "thread_not_found" {
		t.Errorf("another key goes on: %d %v", status, m)
	}
	if status, m := ask(oneKey, "chat/sim/echo", `{"type":"continue","previous_message_id":"msg_none"}`); status != http.StatusNotFound || code(m) != "thread_not_found" {
		t.Errorf("an unknown one: %d %v", status, m)
	}
	// An Anthropic-compatible server without threads refuses them itself.
	if status, m := ask(oneKey, "anthropic/sim/echo", `{"type":"create"}`); status != http.StatusBadRequest || code(m) != "thread_unsupported_request" {
		t.Errorf("the simulator: %d %v", status, m)
	}
}

func TestG6_UncalledModelIsNotAFailure(t *testing.T) {
	w := newWorld(t, "")
	const unknown = `{"model":"chat/sim/echo","max_tokens":500,"thread":{"type":"continue","previous_message_id":"msg_none"},"messages":[{"role":"user","content":"Hello."}]}`
	if status, text := get(t, http.MethodPost, w.url+"/v1/messages", unknown); status != http.StatusNotFound || !strings.Contains(text, "thread_not_found") {
		t.Errorf("%d %s", status, text)
	}
	if _, text := get(t, http.MethodGet, w.url+"/metrics", ""); strings.Contains(text, "dragoman_upstream_failures_total{") {
		t.Error(text)
	}
}
