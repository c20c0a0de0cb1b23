package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/gateway"
)

// frames writes server-sent events, each as "name|data" or "data".
func frames(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		if name, data, ok := strings.Cut(e, "|"); ok {
			fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data)
		} else {
			fmt.Fprintf(&b, "data: %s\n\n", e)
		}
	}
	return b.String()
}

// fixedServer always sends the same body, and counts the requests.
func fixedServer(t *testing.T, body string) (url string, calls *int) {
	calls = new(int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		*calls++
		w.Header().Set("Content-Type", "application/json")
		if !strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, calls
}

// postList sends a request to a gateway with a route to the two servers.
func postList(t *testing.T, kind, first, second, path, body string) (int, string) {
	t.Helper()
	t.Setenv("EMPTY_TEST_KEY", "a-key-for-tests")
	config, err := gateway.Parse("gateway.yaml", fmt.Appendf(nil, `version: 1
providers:
  first: {type: %s, base_url: %q, retries: 0, api_key_env: EMPTY_TEST_KEY}
  second: {type: %s, base_url: %q, retries: 0, api_key_env: EMPTY_TEST_KEY}
gateway:
  routes: {fast: {to: "first/m, second/m"}}
`, kind, first, kind, second))
	if err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(config, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(g)
	defer s.Close()
	resp, err := http.Post(s.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	out, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(out)
}

const (
	startsMessage = `message_start|{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`
	startsBlock   = `content_block_start|{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	stopsBlock    = `content_block_stop|{"type":"content_block_stop","index":0}`
	endsMessage   = `message_delta|{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}`
	stopsMessage  = `message_stop|{"type":"message_stop"}`
	startsChunks  = `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	endsChunks    = `{"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
)

// A response without content counts as a failure while the route has another model, passed
// through or translated, and so does a stream that fails before its content.
func TestX14_EmptyResponseFailsOver(t *testing.T) {
	chatWhole := `{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
	messageWhole := `{"id":"m","type":"message","role":"assistant","model":"c","content":[%s],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
	fine := map[string]map[bool]string{
		"openai-chat": {
			false: fmt.Sprintf(chatWhole, "fine"),
			true:  frames(startsChunks, strings.Replace(startsChunks, `"content":""`, `"content":"fine"`, 1), endsChunks, `[DONE]`),
		},
		"anthropic": {
			false: fmt.Sprintf(messageWhole, `{"type":"text","text":"fine"}`),
			true: frames(startsMessage, startsBlock, `content_block_delta|{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"fine"}}`,
				stopsBlock, endsMessage, stopsMessage),
		},
	}
	for _, c := range []struct {
		name, kind string
		stream     bool
		body       string
		// ends reports that the response is complete: the response of the last model is sent
		// unchanged.
		ends bool
	}{
		{"chat", "openai-chat", false, fmt.Sprintf(chatWhole, ""), true},
		{"chat stream", "openai-chat", true, frames(startsChunks, endsChunks, `[DONE]`), true},
		{"chat stream that is cut off", "openai-chat", true, frames(startsChunks), false},
		{"messages", "anthropic", false, fmt.Sprintf(messageWhole, ""), true},
		{"messages stream", "anthropic", true, frames(startsMessage, endsMessage, stopsMessage), true},
		{"messages stream with an empty block", "anthropic", true, frames(startsMessage, startsBlock, stopsBlock, endsMessage, stopsMessage), true},
		{"messages stream that is cut off", "anthropic", true, frames(startsMessage, startsBlock), false},
		{"messages stream with an error", "anthropic", true, frames(startsMessage, startsBlock, `error|{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`), false},
	} {
		for path, request := range map[string]string{
			"/v1/chat/completions": `{"model":"fast","messages":[{"role":"user","content":"hi"}],"stream":%v}`,
			"/v1/messages":         `{"model":"fast","max_tokens":100,"messages":[{"role":"user","content":"hi"}],"stream":%v}`,
		} {
			suffix := map[string]string{"openai-chat": "/v1"}[c.kind]
			bad, requests := fixedServer(t, c.body)
			good, answered := fixedServer(t, fine[c.kind][c.stream])
			status, out := postList(t, c.kind, bad+suffix, good+suffix, path, fmt.Sprintf(request, c.stream))
			if status != http.StatusOK || strings.Count(out, "fine") != 1 || strings.Contains(out, "error") || *requests != 1 || *answered != 1 {
				t.Errorf("%s to %s: %d %s", c.name, path, status, out)
			}
			if !c.ends {
				continue
			}
			status, out = postList(t, c.kind, bad+suffix, bad+suffix, path, fmt.Sprintf(request, c.stream))
			if status != http.StatusOK || strings.Contains(out, "error") || *requests != 3 {
				t.Errorf("%s to %s, from the last model: %d %s, %d calls", c.name, path, status, out, *requests)
			}
		}
	}
}

// A response that is still queued is not an empty one.
func TestX14_AQueuedResponseIsNotEmpty(t *testing.T) {
	queued, requests := fixedServer(t, `{"id":"resp_1","object":"response","created_at":1,"status":"queued","background":true,"model":"m","output":[]}`)
	status, out := postList(t, "openai", queued+"/v1", queued+"/v1", "/v1/responses", `{"model":"fast","input":"hi","background":true}`)
	if status != http.StatusOK || !strings.Contains(out, `"queued"`) || *requests != 1 {
		t.Errorf("%d %s, %d calls", status, out, *requests)
	}
}
