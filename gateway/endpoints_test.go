package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/gateway"
)

// get sends a request that calls no model.
func get(t testing.TB, method, url, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestQuirkJ5_TokensAreCountedWithSystemTextAndTools(t *testing.T) {
	w := newWorld(t, "")
	count := func(path, body string) string {
		status, text := get(t, http.MethodPost, w.url+path, body, "anthropic-version", "2023-06-01")
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
		return text
	}
	bare := count("/v1/messages/count_tokens?beta=true", `{"model":"sim/echo","messages":[{"role":"user","content":"12345678"}]}`)
	all := count("/v1/messages/count_tokens?beta=true", `{"model":"sim/echo","system":"12345678","tools":[{"name":"1234","description":"1234","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"12345678"}]}`)
	if bare != `{"input_tokens":2}` || all == bare || !strings.HasPrefix(all, `{"input_tokens":1`) {
		t.Errorf("%s, and with system text and tools %s", bare, all)
	}
	for _, body := range []string{
		`{"contents":[{"role":"user","parts":[{"text":"12345678"}]}]}`,
		`{"generateContentRequest":{"model":"models/sim/echo","contents":[{"role":"user","parts":[{"text":"12345678"}]}]}}`,
	} {
		if got := count("/v1beta/models/sim%2Fecho:countTokens", body); got != `{"totalTokens":2}` {
			t.Errorf("%s: %s", body, got)
		}
	}
	if status, text := get(t, http.MethodPost, w.url+"/v1/messages/count_tokens", `{"model":"nobody","messages":[]}`); status != http.StatusNotFound || !strings.Contains(text, "nobody") {
		t.Errorf("%d %s", status, text)
	}
}

func TestQuirkJ5_UpstreamOfTheSameDialectCountsTokens(t *testing.T) {
	type answer struct {
		status int
		body   string
	}
	var requests []string
	var text answer
	w := newServerWorld(t, "gateway:\n  routes: {claude: {to: anthropic/claude-x}, gpt: {to: responses/gpt-x}, gem: {to: gemini/gem-x}, other: {to: chat/y}}\n", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		requests = append(requests, r.URL.String()+" "+string(body))
		rw.Header().Set("content-type", "application/json")
		rw.WriteHeader(text.status)
		_, _ = io.WriteString(rw, text.body)
	})
	const messages = `,"messages":[{"role":"user","content":"How many tokens are these?"}]}`
	for _, tc := range []struct {
		name, path, body string
		says             answer
		asked            string
		estimate         bool
	}{
		{"Anthropic's", "/v1/messages/count_tokens?beta=true", `{"model":"claude"` + messages, answer{200, `{"input_tokens":777}`}, `/v1/messages/count_tokens?beta=true {"model":"claude-x"` + messages, false},
		{"OpenAI's", "/v1/responses/input_tokens", `{"model":"gpt","input":"How many?"}`, answer{200, `{"object":"response.input_tokens","input_tokens":777}`}, `/v1/responses/input_tokens {"model":"gpt-x","input":"How many?"}`, false},
		{"Gemini's", "/v1beta/models/gem:countTokens", `{"contents":[{"parts":[{"text":"How many?"}]}]}`, answer{200, `{"totalTokens":777}`}, `/v1beta/models/gem-x:countTokens {"contents":[{"parts":[{"text":"How many?"}]}]}`, false},
		{"a server that has no such endpoint", "/v1/messages/count_tokens", `{"model":"claude"` + messages, answer{404, `{"type":"error","error":{"type":"not_found_error","message":"no"}}`}, `/v1/messages/count_tokens {"model":"claude-x"` + messages, true},
		{"a server that says something else", "/v1/messages/count_tokens", `{"model":"claude"` + messages, answer{200, `{"tokens":777}`}, `/v1/messages/count_tokens {"model":"claude-x"` + messages, true},
		{"a server of another dialect is not asked", "/v1/messages/count_tokens", `{"model":"other"` + messages, answer{200, `{"input_tokens":777}`}, "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			requests, text = nil, tc.says
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+tc.path, strings.NewReader(tc.body))
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, _ := io.ReadAll(resp.Body)
			if got := strings.Join(requests, "\n"); got != tc.asked {
				t.Errorf("requests %s, want %s", got, tc.asked)
			}
			estimate := resp.Header.Get("X-Dragoman-Count") == "estimate"
			if resp.StatusCode != http.StatusOK || estimate != tc.estimate || strings.Contains(string(body), "777") == tc.estimate {
				t.Errorf("%d %v %s", resp.StatusCode, resp.Header, body)
			}
		})
	}
}

func TestG1_ModelListHasTheFormOfEachDialect(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	w := newWorld(t, "gateway:\n  keys: {team: {key_env: TEAM_KEY, models: [fast]}}\n  routes: {fast: {to: sim/echo}, slow: {to: sim/echo}, all-*: {to: sim/echo}}\n")
	key := []string{"authorization", "Bearer a-secret-of-the-team"}
	for path, want := range map[string]string{
		"/v1/models": `"id":"fast","object":"model"`, "/v1beta/models": `"name":"models/fast"`, "/api/tags": `"name":"fast"`, "/v1/models/fast": `"id":"fast"`, "/v1beta/models/fast": `"name":"models/fast"`,
	} {
		if status, text := get(t, http.MethodGet, w.url+path, "", key...); status != http.StatusOK || !strings.Contains(text, want) || strings.Contains(text, "slow") || strings.Contains(text, "all-") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := get(t, http.MethodGet, w.url+"/v1/models", "", append(key, "anthropic-version", "2023-06-01")...); status != http.StatusOK || !strings.Contains(text, `"display_name":"fast"`) || !strings.Contains(text, `"first_id":"fast"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := get(t, http.MethodPost, w.url+"/api/show", `{"model":"fast"}`, key...); status != http.StatusOK || !strings.Contains(text, `"capabilities"`) {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := get(t, http.MethodPost, w.url+"/api/show", `{"model":"fast"}`); status != http.StatusUnauthorized {
		t.Errorf("without a key: %d", status)
	}
	if status, _ := get(t, http.MethodGet, w.url+"/v1/models/slow", "", key...); status != http.StatusForbidden {
		t.Errorf("a model that is not allowed: %d", status)
	}
	if status, _ := get(t, http.MethodGet, w.url+"/v1/models/none", "", key...); status != http.StatusForbidden {
		t.Errorf("the existence of a forbidden model is revealed: %d", status)
	}
}

func TestG1_OllamaVersionIsServed(t *testing.T) {
	w := newWorld(t, "")
	if status, text := get(t, http.MethodGet, w.url+"/api/version", ""); status != http.StatusOK || text != `{"version":"0.34.4"}` {
		t.Errorf("%d %s", status, text)
	}
}

func TestG6_MetricsCountRequests(t *testing.T) {
	w := newWorld(t, "aliases: {quick: anthropic/sim/echo}\ngateway:\n  routes: {m: {to: quick}}\n")
	c := &client{t: t, codec: openaichat.Codec{}, url: w.url}
	for _, stream := range []bool{true, false} {
		if _, err := c.generate(&dragoman.Request{Model: "m", Stream: stream, Messages: []dragoman.Message{userSays("hello")}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.generate(&dragoman.Request{Model: "made up", Messages: []dragoman.Message{userSays("hello")}}); err == nil {
		t.Fatal("no error")
	}
	w.wantLog(t, `"status":404`) // the last line is written
	_, text := get(t, http.MethodGet, w.url+"/metrics", "")
	const of = `{dialect="openai.chat_completions",route="m",upstream="anthropic/sim/echo",key="",status="200"}`
	for _, want := range []string{
		"dragoman_requests_running 0\n", "dragoman_requests_total" + of + " 2\n", "dragoman_streams_total" + of + " 1\n", "dragoman_request_seconds_count" + of + " 2\n",
		`status="404"} 1` + "\n", "# TYPE dragoman_first_byte_seconds histogram\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "made up") {
		t.Error("a name that a client made up is a label")
	}
}

func TestG6_HealthDuringShutdown(t *testing.T) {
	w := newWorld(t, "")
	if status, text := get(t, http.MethodGet, w.url+"/healthz", ""); status != http.StatusOK || text != `{"status":"ok"}` {
		t.Errorf("%d %s", status, text)
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		if status, _ := get(t, method, w.url+"/", ""); status != http.StatusOK {
			t.Errorf("%s /: %d", method, status)
		}
	}
}

func TestG2_UnknownPathErrorsUseTheDialectOfThePath(t *testing.T) {
	w := newWorld(t, "")
	for path, want := range map[string]string{
		"/v1/embeddings": `"error":{"message":`, "/chat/completions": "ends in /v1", "/v1beta/files": `"status":"NOT_FOUND"`, "/api/embed": `{"error":`,
	} {
		if status, text := get(t, http.MethodPost, w.url+path, "{}"); status != http.StatusNotFound || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestQuirkC29_ErrorInPlaceOfAnArrayIsAList(t *testing.T) {
	w := newWorld(t, "")
	for method, want := range map[string]string{":streamGenerateContent": `[{"error"`, ":streamGenerateContent?alt=sse": `{"error"`, ":generateContent": `{"error"`} {
		for about, body := range map[string]string{"no model": `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`, "no JSON": `{`} {
			if status, text := get(t, http.MethodPost, w.url+"/v1beta/models/nobodys"+method, body); status < 400 || !strings.HasPrefix(text, want) {
				t.Errorf("%s, %s: %d %s", method, about, status, text)
			}
		}
	}
}

func TestG2_WrongPathAndWrongMethod(t *testing.T) {
	w := newWorld(t, "")
	for _, tc := range []struct {
		method, path string
		status       int
		allow, want  string
	}{
		{http.MethodPost, "/v1/embeddings", 404, "", `"code":"unknown_url"`},
		{http.MethodPost, "/v1/v1/messages", 404, "", "only the base URL for OpenAI clients"},
		{http.MethodGet, "/v1/chat/completions", 405, "POST", `"code":"method_not_supported"`},
		{http.MethodOptions, "/v1/chat/completions", 405, "POST", "not OPTIONS"},
		{http.MethodPut, "/v1/responses/resp_1", 405, "DELETE, GET", "DELETE, GET"},
		{http.MethodGet, "/v1/messages", 405, "POST", `"invalid_request_error"`},
		{http.MethodPut, "/v1beta/models/m:generateContent", 400, "GET, POST", `"code":400`}, // Gemini's errors repeat one of its own
		{http.MethodGet, "/api/chat", 405, "POST", `{"error":`},
		{http.MethodGet, "/v1/responses/resp_1", 404, "", `"code":null`},
		{http.MethodPost, "/metrics", 405, "GET", "GET"},
		{http.MethodPost, "/v1/models", 405, "GET", "GET"}, // and no redirection
		{http.MethodPost, "/v1beta/models", 400, "GET", `"code":400`},
		{http.MethodPost, "/v1beta", 404, "", `"code":404`},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), tc.method, w.url+tc.path, strings.NewReader("{}"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != tc.status || resp.Header.Get("Allow") != tc.allow || !strings.Contains(string(body), tc.want) || strings.Contains(string(body), "model_not_found") {
			t.Errorf("%s %s: %d, Allow %q, %s", tc.method, tc.path, resp.StatusCode, resp.Header.Get("Allow"), body)
		}
		w.wantLog(t, `"path":"`+tc.path+`"`, `"status":`+strconv.Itoa(tc.status))
	}
}

func TestG2_EmptyRequestIsRefused(t *testing.T) {
	requests := 0
	w := newServerWorld(t, "gateway:\n  routes: {other: {to: bedrock/m}}\n", func(http.ResponseWriter, *http.Request) { requests++ })
	for path, body := range map[string]string{
		"/v1/chat/completions":                 `{"model":"other"}`,
		"/v1/responses":                        `{"model":"other","input":[]}`,
		"/v1/messages":                         `{"model":"other","max_tokens":5,"messages":[]}`,
		"/v1beta/models/other:generateContent": `{"contents":[]}`,
	} {
		if status, text := get(t, http.MethodPost, w.url+path, body); status != http.StatusBadRequest || !strings.Contains(text, "at least one message is required") || requests > 0 {
			t.Errorf("%s: %d %s, %d upstream requests", path, status, text, requests)
		}
	}
}

func TestTooLargeContentLengthIsRefusedAtOnce(t *testing.T) {
	w := newWorld(t, "gateway:\n  limits: {body_bytes: 1000}\n")
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", strings.TrimPrefix(w.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, _ = io.WriteString(conn, "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusRequestEntityTooLarge || !strings.Contains(string(body), "more than 1000 bytes") {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestG2_UnreadableBodyIsRefused(t *testing.T) {
	w := newWorld(t, "gateway:\n  limits: {body_bytes: 1000}\n")
	for _, tc := range []struct {
		body   string
		status int
		want   string
	}{
		{"", 400, "not a JSON object"},
		{"[]", 400, "not a JSON object"},
		{`{"model":"sim/echo",`, 400, "not JSON"},
		{`{"messages":[]}`, 400, "model"},
		{`{"model":"sim/echo","messages":"` + strings.Repeat("x", 1000) + `"}`, 413, "more than 1000 bytes"},
		{`{"model":"sim/echo","messages":7}`, 400, "messages"},
	} {
		if status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", tc.body); status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%.40s: %d %s", tc.body, status, text)
		}
	}
}

func TestQuirkC13_RouteCompletesUnfinishedStream(t *testing.T) {
	const cut = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"half"},"finish_reason":null}]}` + "\n\n"
	for _, tc := range []struct{ setting, want string }{{"error", `"error"`}, {"end", `"finish_reason":"stop"`}} {
		model := &scriptedServer{responses: []string{cut}}
		w := newServerWorld(t, fmt.Sprintf("gateway:\n  routes: {m: {to: chat/m, unfinished: %s}}\n", tc.setting), model.ServeHTTP)
		_, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
		if !strings.Contains(text, "half") || !strings.Contains(text, tc.want) {
			t.Errorf("%s: %s", tc.setting, text)
		}
	}
}

func TestMaxBytesDoesNotApplyToDatabases(t *testing.T) {
	var bad *gateway.ConfigError
	for _, state := range []gateway.State{{SQLite: "state.db", MaxBytes: 1}, {PostgresEnv: "DATABASE", MaxBytes: 1}} {
		if err := (&gateway.Config{State: state}).Check(); !errors.As(err, &bad) || bad.Setting != "state" {
			t.Errorf("%+v: %v", state, err)
		}
	}
	if err := (&gateway.Config{State: gateway.State{MaxBytes: 1}}).Check(); err != nil {
		t.Error(err)
	}
}

// A gateway is a handler: without a config it serves the simulator.
func Example() {
	g, err := gateway.New(nil, gateway.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(g)
	defer server.Close()

	ask, _ := http.NewRequestWithContext(context.Background(), http.MethodPost, server.URL+"/v1/messages",
		strings.NewReader(`{"model":"sim/echo","max_tokens":100,"messages":[{"role":"user","content":"Good morning."}]}`))
	resp, err := http.DefaultClient.Do(ask)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, strings.Contains(string(body), `"text":"Good morning."`))
	// Output: 200 true
}

func TestG6_AuxiliaryRequestsAreLoggedAndCounted(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	w := newWorld(t, "gateway:\n  keys: {team: {key_env: TEAM_KEY}}\n  routes: {m: {to: sim/echo}}\n")
	const bearer = "Bearer a-secret-of-the-team"
	_, wantKept := get(t, http.MethodPost, w.url+"/v1/responses", `{"model":"m","input":"hi"}`, "authorization", bearer)
	id, _ := lookup(wantKept, "id").(string)
	for _, tc := range []struct {
		method, path, body, key string
		status                  int
		dialect, more           string
	}{
		{http.MethodGet, "/v1/models", "", bearer, 200, "openai.chat_completions", `"key":"team"`},
		{http.MethodGet, "/v1/models/m", "", bearer, 200, "openai.chat_completions", `"model":"m","route":"m"`},
		{http.MethodGet, "/v1/models/none", "", bearer, 404, "openai.chat_completions", `"error":`},
		{http.MethodGet, "/v1/models", "", "Bearer another", 401, "openai.chat_completions", `"key":"?"`},
		{http.MethodGet, "/v1beta/models", "", bearer, 200, "gemini.generate_content", `"key":"team"`},
		{http.MethodGet, "/api/tags", "", bearer, 200, "ollama.chat", `"key":"team"`},
		{http.MethodPost, "/api/show", `{"model":"m"}`, bearer, 200, "ollama.chat", `"model":"m","route":"m"`},
		{http.MethodGet, "/v1/responses/" + id, "", bearer, 200, "openai.responses", `"key":"team"`},
		{http.MethodDelete, "/v1/responses/" + id, "", bearer, 200, "openai.responses", `"key":"team"`},
		{http.MethodGet, "/v1/responses/" + id, "", bearer, 404, "openai.responses", `"error":`},
		{http.MethodPost, "/v1/embeddings", "{}", bearer, 404, "openai.chat_completions", `"path":"/v1/embeddings"`},
	} {
		w.log.reset()
		status, text := get(t, tc.method, w.url+tc.path, tc.body, "authorization", tc.key)
		if status != tc.status {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, status, text)
		}
		w.wantLog(t, `"msg":"request"`, fmt.Sprintf(`"dialect":%q,"path":%q`, tc.dialect, tc.path), fmt.Sprintf(`"status":%d`, tc.status), fmt.Sprintf(`"bytes":%d`, len(text)), tc.more)
	}
	_, text := get(t, http.MethodGet, w.url+"/metrics", "", "authorization", bearer)
	for _, want := range []string{
		`dragoman_requests_total{dialect="openai.responses",route="",upstream="",key="team",status="200"} 2`, `dragoman_requests_total{dialect="ollama.chat",route="m",upstream="",key="team",status="200"} 1`,
		"dragoman_requests_running 0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestIDsAreUniqueWithoutRandomness(t *testing.T) {
	g, err := gateway.New(nil, gateway.Options{Random: strings.NewReader("short")})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(withJudge(t, g))
	defer server.Close()
	seen := map[string]bool{}
	for range 3 {
		_, text := get(t, http.MethodPost, server.URL+"/v1/responses", `{"model":"sim/echo","input":"hi"}`)
		seen[fmt.Sprint(lookup(text, "id"))] = true
	}
	if len(seen) != 3 {
		t.Errorf("%v", seen)
	}
}
