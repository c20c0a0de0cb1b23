package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-go/dragoman/dialect/openairesponses"
)

func decodeJSON(t testing.TB, r io.Reader) map[string]any {
	t.Helper()
	var out map[string]any
	body, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(body, &out)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	return out
}

// postResponses posts to /v1/responses and returns the response object, also from a stream.
func postResponses(t testing.TB, w *world, body string) map[string]any {
	t.Helper()
	c := &client{t: t, codec: openairesponses.Codec{}, url: w.url}
	resp := c.postBody(t.Context(), "", false, []byte(body)) //nolint:bodyclose // the test's end does
	if !strings.Contains(body, `"stream":true`) {
		return decodeJSON(t, resp.Body)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, last, ok := strings.Cut(string(text), "event: response.completed\ndata: ")
	if !ok {
		t.Fatalf("no end: %s", text)
	}
	last, _, _ = strings.Cut(last, "\n")
	return decodeJSON(t, strings.NewReader(last))["response"].(map[string]any)
}

func TestG7_ConversationContinuesByPreviousResponseID(t *testing.T) {
	w := newWorld(t, "")
	for _, stream := range []string{"false", "true"} {
		for _, up := range []string{"sim/echo", "anthropic/sim/echo", "chat/sim/echo", "gemini/sim/echo", "ollama/sim/echo", "bedrock/sim/echo"} {
			t.Run(up+" streamed "+stream, func(t *testing.T) {
				first := postResponses(t, w, fmt.Sprintf(`{"model":%q,"input":"My name is Ada.","stream":%s}`, up, stream))
				id, _ := first["id"].(string)
				if !strings.HasPrefix(id, "resp_") {
					t.Fatalf("no id: %v", first)
				}
				second := postResponses(t, w, fmt.Sprintf(`{"model":%q,"input":"And again.","stream":%s,"previous_response_id":%q}`, up, stream, id))
				third := postResponses(t, w, fmt.Sprintf(`{"model":%q,"input":"Thrice.","stream":%s,"previous_response_id":%q}`, up, stream, second["id"]))
				for i, resp := range []map[string]any{first, second, third} {
					usage, _ := resp["usage"].(map[string]any)
					t.Logf("response %d: %v", i, usage["input_tokens"])
				}
				more := func(a, b map[string]any) bool {
					x, _ := a["usage"].(map[string]any)["input_tokens"].(float64)
					y, _ := b["usage"].(map[string]any)["input_tokens"].(float64)
					return x < y
				}
				if !more(first, second) || !more(second, third) {
					t.Error("the conversation did not grow")
				}
			})
		}
	}
}

func TestResponsesEchoTheRequest(t *testing.T) {
	w := newWorld(t, "")
	for _, stream := range []string{"false", "true"} {
		got := postResponses(t, w, `{"model":"anthropic/sim/echo","input":"Hello.","stream":`+stream+`,"instructions":"Be brief.","temperature":0.5,"metadata":{"a":"b"},"tool_choice":"auto","parallel_tool_calls":false,
			"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{},"additionalProperties":false},"strict":false}]}`)
		tools, _ := got["tools"].([]any)
		if got["instructions"] != "Be brief." || got["temperature"] != 0.5 || got["parallel_tool_calls"] != false || got["store"] != true || len(tools) != 1 || got["metadata"].(map[string]any)["a"] != "b" {
			t.Errorf("%v", got)
		}
	}
}

func TestG7_StoredResponseIsRetrievedAndDeleted(t *testing.T) {
	w := newWorld(t, "")
	wantKept := postResponses(t, w, `{"model":"sim/echo","input":"Hello."}`)["id"].(string)
	not := postResponses(t, w, `{"model":"sim/echo","input":"Hello.","store":false}`)["id"].(string)
	get := func(method, id string) (int, map[string]any) {
		req, err := http.NewRequestWithContext(t.Context(), method, w.url+"/v1/responses/"+id, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		return resp.StatusCode, decodeJSON(t, resp.Body)
	}
	if status, body := get(http.MethodGet, wantKept); status != http.StatusOK || body["id"] != wantKept || body["status"] != "completed" {
		t.Errorf("%d %v", status, body)
	}
	if status, body := get(http.MethodGet, wantKept+"?stream=true"); status != http.StatusBadRequest || body["error"].(map[string]any)["param"] != "stream" {
		t.Errorf("streamed: %d %v", status, body)
	}
	if status, _ := get(http.MethodGet, not); status != http.StatusNotFound {
		t.Errorf("what was not to be stored: %d", status)
	}
	if status, body := get(http.MethodDelete, wantKept); status != http.StatusOK || body["deleted"] != true {
		t.Errorf("%d %v", status, body)
	}
	if status, _ := get(http.MethodGet, wantKept); status != http.StatusNotFound {
		t.Errorf("what was deleted: %d", status)
	}
	gone := postResponses(t, w, fmt.Sprintf(`{"model":"sim/echo","input":"Again.","previous_response_id":%q}`, wantKept))
	if e, _ := gone["error"].(map[string]any); e["param"] != "previous_response_id" {
		t.Errorf("%v", gone)
	}
}

func TestG1_ResponseEchoesPartialSettings(t *testing.T) {
	w := newWorld(t, "")
	const function = `{"type":"function","name":"f"}`
	for _, requests := range []string{
		`"reasoning":{"effort":"low"}`, `"reasoning":{"summary":"auto"}`, `"reasoning":{}`, `"reasoning":null`,
		`"tools":[` + function + `]`, `"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true},` + function + `]`, `"tools":[]`,
		`"tools":[{"type":"custom","name":"c"}]`, `"tool_choice":{"type":"function","name":"f"},"tools":[` + function + `]`,
		`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[` + function + `]},"tools":[` + function + `]`,
		`"text":{"verbosity":"low"}`, `"text":{}`, `"text":{"format":{"type":"json_object"}}`,
		`"text":{"format":{"type":"json_schema","name":"x","schema":{"type":"object"}}}`,
		`"instructions":"x"`, `"metadata":{"a":"b"}`, `"truncation":"auto"`, `"temperature":0.5,"top_p":1`,
	} {
		c := &client{t: t, codec: openairesponses.Codec{}, url: w.url}
		resp := c.postBody(t.Context(), "", false, fmt.Appendf(nil, `{"model":"anthropic/sim/echo","input":"Hello.",%s}`, requests))
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %d %v %s", requests, resp.StatusCode, err, body)
		}
		if err := openResponses(t).Whole(body); err != nil {
			t.Errorf("%s: %v\n%s", requests, err, body)
		}
	}
}

func TestG7_TooLargeResponseIsMarkedAsNotStored(t *testing.T) {
	w := newWorld(t, "")
	input := fmt.Sprintf(`[{"role":"user","content":%q},{"role":"assistant","content":"And?"},{"role":"user","content":"Hello."}]`, strings.Repeat("x", 5<<20))
	for _, stream := range []string{"false", "true"} {
		got := postResponses(t, w, fmt.Sprintf(`{"model":"sim/echo","input":%s,"stream":%s}`, input, stream))
		if got["store"] != false || got["status"] == nil {
			t.Errorf("streamed %s: store %v", stream, got["store"])
		}
		if status, text := get(t, http.MethodGet, fmt.Sprintf("%s/v1/responses/%v", w.url, got["id"]), ""); status != http.StatusNotFound {
			t.Errorf("%d %.200s", status, text)
		}
		w.wantLog(t, `"losses":"1; dropped /store"`)
	}
	resp, err := http.Post(w.url+"/v1/responses", "application/json", strings.NewReader(fmt.Sprintf(`{"model":"sim/echo","input":%s}`, input)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if losses := resp.Header.Get("X-Dragoman-Losses"); losses != "1; dropped /store" {
		t.Errorf("losses: %q", losses)
	}
}

func TestG7_UpstreamStoredResponseIsRetrievedByItsKey(t *testing.T) {
	t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
	t.Setenv("SECOND_KEY", "the-second-key-of-this-test")
	const keys = "  keys: {first: {key_env: FIRST_KEY}, second: {key_env: SECOND_KEY}}\n"
	const items = `{"object":"list","data":[{"type":"message","id":"msg_1","role":"user","content":[{"type":"input_text","text":"hi"}]}],"first_id":"msg_1","last_id":"msg_1","has_more":false}`
	for _, with := range []string{keys, ""} {
		var requests []string
		w := newServerWorld(t, "gateway:\n"+with+"  routes: {m: {to: responses/gpt}}\n", func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			requests = append(requests, fmt.Sprintf("%s %s %v %d", r.Method, r.URL, r.Header.Get("Authorization") == "Bearer upstream-secret", len(body)))
			rw.Header().Set("content-type", "application/json")
			switch {
			case strings.HasSuffix(r.URL.Path, "/cancel"):
				rw.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(rw, `{"error":{"message":"it has ended","type":"invalid_request_error","param":null,"code":null}}`)
			case r.Method == http.MethodDelete:
				_, _ = io.WriteString(rw, `{"id":"resp_1","object":"response","deleted":true}`)
			case strings.HasSuffix(r.URL.Path, "/input_items"):
				_, _ = io.WriteString(rw, items)
			default:
				_, _ = io.WriteString(rw, responsesThinks)
			}
		})
		ask := func(method, path, body, key string) (int, string) {
			return get(t, method, w.url+"/v1/responses"+path, body, "authorization", "Bearer the-"+key+"-key-of-this-test")
		}
		if status, text := ask(http.MethodGet, "/resp_1", "", "first"); status != http.StatusNotFound || !strings.Contains(text, "not found") || len(requests) != 0 {
			t.Errorf("before it is there: %d %s", status, text)
		}
		if status, text := ask(http.MethodPost, "", `{"model":"m","input":"hi","background":true}`, "first"); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		requests = nil
		for _, tc := range []struct {
			method, path, key string
			status            int
			want              string
		}{
			{http.MethodGet, "/resp_1?include[]=x&key=k", "first", 200, responsesThinks},
			{http.MethodGet, "/resp_1/input_items?limit=2", "first", 200, items},
			{http.MethodPost, "/resp_1/cancel", "first", 400, `{"error":{"message":"it has ended","type":"invalid_request_error","param":null,"code":null}}`},
			{http.MethodDelete, "/resp_1", "first", 200, `{"id":"resp_1","object":"response","deleted":true}`},
		} {
			if status, text := ask(tc.method, tc.path, "", tc.key); status != tc.status || text != tc.want {
				t.Errorf("%s %s: %d %s", tc.method, tc.path, status, text)
			}
		}
		if got, want := strings.Join(requests, "\n"), "GET /v1/responses/resp_1?include[]=x true 0\nGET /v1/responses/resp_1/input_items?limit=2 true 0\nPOST /v1/responses/resp_1/cancel true 0\nDELETE /v1/responses/resp_1 true 0"; got != want {
			t.Errorf("requests:\n%s\nwant:\n%s", got, want)
		}
		w.wantLog(t, `"path":"/v1/responses/resp_1/cancel"`, `"model":"m","route":"m","upstream":"responses/gpt"`)
		requests = nil
		for _, path := range []string{"/resp_1", "/resp_1/input_items", "/resp_1%2f..%2f..%2ffiles"} {
			if status, text := ask(http.MethodGet, path, "", "second"); with != "" && (status != http.StatusNotFound || len(requests) != 0) {
				t.Errorf("another key: %s: %d %s", path, status, text)
			}
		}
	}
}

func TestG3_ForwardedRetrievalCountsAsARequest(t *testing.T) {
	t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
	var requests atomic.Int32
	w := newServerWorld(t, "gateway:\n  keys: {first: {key_env: FIRST_KEY, requests_per_minute: 3}}\n  routes: {m: {to: responses/gpt}}\n", func(rw http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		rw.Header().Set("content-type", "application/json")
		_, _ = io.WriteString(rw, responsesThinks)
	})
	ask := func(method, path, body string) (int, string) {
		return get(t, method, w.url+path, body, "authorization", "Bearer the-first-key-of-this-test")
	}
	if status, text := ask(http.MethodPost, "/v1/responses", `{"model":"m","input":"hi"}`); status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for i, want := range []int{200, 200, 429, 429} {
		if status, text := ask(http.MethodGet, "/v1/responses/resp_1", ""); status != want {
			t.Errorf("the %d. time: %d %s", i+1, status, text)
		}
	}
	if status, text := ask(http.MethodGet, "/v1/models", ""); status != http.StatusOK {
		t.Errorf("a list calls no upstream: %d %s", status, text)
	}
	if n := requests.Load(); n != 3 {
		t.Errorf("the server was called %d times", n)
	}
}

// A model of another dialect cannot respond in the background: the client gets the whole
// response, and a loss names the field.
func TestBackgroundIsALossOnOtherUpstreams(t *testing.T) {
	for up, want := range map[string]int{"chat": 1, "anthropic": 1, "gemini": 1, "ollama": 1, "responses": 0} {
		w := newServerWorld(t, fmt.Sprintf("gateway:\n  routes: {m: {to: %s/m}}\n", up), (&strictUpstream{}).ServeHTTP)
		resp, err := http.Post(w.url+"/v1/responses", "application/json", strings.NewReader(`{"model":"m","input":"hi","background":true}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"status":"completed"`) {
			t.Fatalf("%s: %d %s %v", up, resp.StatusCode, body, err)
		}
		if got := strings.Count(w.log.String(), "/background"); got != want {
			t.Errorf("%s: the log names the field %d times, want %d: %s", up, got, want, w.log.String())
		}
		if losses := resp.Header.Get("X-Dragoman-Losses"); (losses != "") != (want > 0) {
			t.Errorf("%s: X-Dragoman-Losses: %q", up, losses)
		}
	}
}

func TestG3_BackgroundResponseIsRefusedWithABudget(t *testing.T) {
	t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
	t.Setenv("SECOND_KEY", "the-second-key-of-this-test")
	w := newServerWorld(t, "gateway:\n  keys: {first: {key_env: FIRST_KEY, budget: {tokens: 100, per: day}}, second: {key_env: SECOND_KEY}}\n  routes: {m: {to: responses/gpt}, other: {to: sim/echo}}\n", (&scriptedServer{responses: []string{responsesThinks}}).ServeHTTP)
	for _, tc := range []struct {
		key, body string
		status    int
	}{
		{"first", `{"model":"m","input":"hi","background":true}`, 400},
		{"first", `{"model":"m","input":"hi","background":"true"}`, 400},
		{"first", `{"model":"m","input":"hi","background":false,"background":true}`, 400},
		{"first", `{"model":"m","input":"hi","Background":true}`, 400},
		{"first", `{"model":"m","input":"hi","background":false}`, 200},
		{"first", `{"model":"other","input":"hi","background":true}`, 200}, // nobody does
		{"second", `{"model":"m","input":"hi","background":true}`, 200},
	} {
		status, text := get(t, http.MethodPost, w.url+"/v1/responses", tc.body, "authorization", "Bearer the-"+tc.key+"-key-of-this-test")
		if status != tc.status || status == 400 && !strings.Contains(text, "background") {
			t.Errorf("%s: %s: %d %s", tc.key, tc.body, status, text)
		}
	}
}
