package gateway_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/oracle/emitcheck"
)

// newServerWorld returns a gateway in front of a server of the test.
func newServerWorld(t testing.TB, more string, handler http.HandlerFunc, how ...option) *world {
	t.Helper()
	t.Setenv("SIM_KEY", "upstream-secret")
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return newWorldOf(t, s, configOf(s.URL)+more, how...)
}

// anthropicAnswer is an Anthropic stream with an unknown field.
const anthropicAnswer = "event: message_start\ndata: {\"type\":\"message_start\", \"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,\"usage\":{\"input_tokens\":7,\"output_tokens\":1},\"novel\":true}}\n\n" +
	"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
	"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"message_stop\"}}\n\n" +
	"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
	"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":3}}\n\n" +
	"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"

// anthropicOdd is the same stream in a form that the encoder never writes.
var anthropicOdd = strings.Replace(anthropicAnswer, "event: content_block_start", ": a comment\n\nevent: vendor.thing\ndata: {\"type\":\"vendor.thing\",\"x\":1}\n\nevent: content_block_start", 1)

const anthropicRequest = `{ "model" : "anthropic/some-model",  "max_tokens":10,"stream":true,"messages":[{"role":"user","content":"hi"}],"novel_field":[1, 2]}`

func TestG1_SameDialectPassesByteForByte(t *testing.T) {
	var got []byte
	var header http.Header
	var query string
	w := newServerWorld(t, "", func(rw http.ResponseWriter, r *http.Request) {
		got, _ = io.ReadAll(r.Body)
		header, query = r.Header, r.URL.RawQuery
		rw.Header().Set("content-type", "text/event-stream")
		rw.Header().Set("request-id", "req_theirs")
		for event := range bytes.SplitAfterSeq([]byte(anthropicOdd), []byte("\n")) {
			_, _ = rw.Write(event)
			_ = http.NewResponseController(rw).Flush()
		}
	}, unjudgedPassThrough("the vendor has an event that is new"))
	c := &client{t: t, codec: anthropic.Codec{}, url: w.url, key: "the client's own"}
	resp := c.postBody(t.Context(), "", true, []byte(anthropicRequest)) //nolint:bodyclose // the test's end does
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != anthropicOdd {
		t.Errorf("%v: %s", err, body)
	}
	if want := strings.Replace(anthropicRequest, "anthropic/some-model", "some-model", 1); string(got) != want {
		t.Errorf("sent: %s", got)
	}
	if header.Get("Authorization") != "" || header.Get("X-Api-Key") != "upstream-secret" {
		t.Errorf("credentials: %v", header)
	}
	if !strings.HasPrefix(resp.Header.Get("Request-Id"), "req_") || resp.Header.Get("X-Upstream-Request-Id") != "req_theirs" {
		t.Errorf("ids: %v", resp.Header)
	}
	w.wantLog(t, `"transparent":true`, `"input_tokens":7`, `"output_tokens":3`, `"status":200`)
	if get(t, http.MethodPost, w.url+"/v1/messages?beta=true&key=a-secret", anthropicRequest); query != "beta=true" { // as Claude Code sends it
		t.Errorf("query: %q", query)
	}
}

func TestIdempotencyKeyIsScopedToTheVirtualKey(t *testing.T) {
	t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
	t.Setenv("SECOND_KEY", "the-second-key-of-this-test")
	seen := map[string]bool{}
	w := newServerWorld(t, "gateway:\n  keys: {first: {key_env: FIRST_KEY}, second: {key_env: SECOND_KEY}}\n  routes: {anthropic/*: {to: anthropic/*}}\n", func(rw http.ResponseWriter, r *http.Request) {
		seen[r.Header.Get("Idempotency-Key")] = true
		rw.Header().Set("content-type", "text/event-stream")
		_, _ = io.WriteString(rw, anthropicAnswer)
	})
	for _, key := range []string{"the-first-key-of-this-test", "the-second-key-of-this-test", "the-first-key-of-this-test"} {
		if status, text := get(t, http.MethodPost, w.url+"/v1/messages", anthropicRequest, "authorization", "Bearer "+key, "idempotency-key", "the same"); status != http.StatusOK {
			t.Fatalf("%d %s", status, text)
		}
	}
	if len(seen) != 2 || seen["the same"] || seen[""] {
		t.Errorf("%v", seen)
	}
}

func TestRepeatedIdempotencyHeadersAreScoped(t *testing.T) {
	t.Setenv("FIRST_KEY", "the-first-key-of-this-test")
	var seen []string
	w := newServerWorld(t, "gateway:\n  keys: {first: {key_env: FIRST_KEY}}\n  routes: {anthropic/*: {to: anthropic/*}}\n", func(rw http.ResponseWriter, r *http.Request) {
		seen = r.Header.Values("Idempotency-Key")
		rw.Header().Set("content-type", "text/event-stream")
		_, _ = io.WriteString(rw, anthropicAnswer)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/messages", strings.NewReader(anthropicRequest))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer the-first-key-of-this-test"}, "Idempotency-Key": {"", "that of another"}}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if len(seen) != 1 || len(seen[0]) != 64 {
		t.Errorf("%q", seen)
	}
}

func TestG2_RedirectTargetIsOnlyLogged(t *testing.T) {
	for _, route := range []string{"{to: anthropic/*}", "{to: anthropic/*, repair: always}", "{to: \"anthropic/*, anthropic/other\"}"} {
		w := newServerWorld(t, "gateway: {routes: {anthropic/*: "+route+"}}\n", func(rw http.ResponseWriter, r *http.Request) {
			http.Redirect(rw, r, "https://inner.example.com/v1", http.StatusPermanentRedirect)
		})
		status, text := get(t, http.MethodPost, w.url+"/v1/messages", anthropicRequest)
		if status != http.StatusInternalServerError || strings.Contains(text, "inner.example") || strings.Contains(text, "base URL") || !strings.Contains(text, "redirects") {
			t.Errorf("%s: %d %s", route, status, text)
		}
		w.wantLog(t, "inner.example.com")
	}
}

func TestG2_UpstreamErrorIsPassedThrough(t *testing.T) {
	const own = `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: too big","extra":1},"request_id":"req_1"}`
	w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, own)
	})
	c := &client{t: t, codec: anthropic.Codec{}, url: w.url}
	resp := c.postBody(t.Context(), "", true, []byte(anthropicRequest)) //nolint:bodyclose // the test's end does
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusBadRequest || string(body) != own {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestG2_RefusedProviderKeyIsABadGateway(t *testing.T) {
	w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
		rw.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(rw, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`)
	})
	for _, codec := range clientDialects {
		c := &client{t: t, codec: codec, url: w.url}
		_, err := c.generate(&dragoman.Request{Model: "anthropic/m", MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}})
		if api, ok := err.(*dragoman.APIError); !ok || api.Status < http.StatusInternalServerError { //nolint:errorlint // the codec returns it unwrapped
			t.Errorf("%s: %v", codec.Dialect(), err)
		}
	}
}

func TestG2_UpstreamRefusalHasItsReason(t *testing.T) {
	const says = "Your account may not use model m."
	for _, tc := range []struct {
		message string
		told    bool
	}{
		{says, true}, {"The key upstream-secret may not use m.", false}, {"User: arn:aws:iam::123456789012:user/us is not authorized to perform: bedrock:InvokeModel", false},
	} {
		w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("content-type", "application/json")
			rw.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(rw, `{"type":"error","error":{"type":"permission_error","message":%q}}`, tc.message)
		})
		for _, codec := range clientDialects {
			c := &client{t: t, codec: codec, url: w.url}
			_, err := c.generate(&dragoman.Request{Model: "anthropic/m", MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}})
			api, ok := err.(*dragoman.APIError) //nolint:errorlint // the codec returns it unwrapped
			if !ok || api.Status != http.StatusForbidden || !strings.Contains(api.Message, "the upstream denied the gateway permission") || strings.Contains(api.Message, says) != tc.told || !tc.told && strings.Contains(api.Message, "m.") {
				t.Errorf("%s: %v", codec.Dialect(), err)
			}
			if err != nil && (strings.Contains(err.Error(), "upstream-secret") || strings.Contains(err.Error(), "123456789012")) {
				t.Errorf("%s: of the account: %v", codec.Dialect(), err)
			}
		}
	}
}

func TestG2_NoRetryAfterTheFirstByte(t *testing.T) {
	t.Setenv("SIM_KEY", "upstream-secret")
	for _, codec := range clientDialects {
		var requests atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			rw.Header().Set("content-type", "text/event-stream")
			_, _ = io.WriteString(rw, anthropicAnswer[:strings.Index(anthropicAnswer, "event: message_delta")])
			_ = http.NewResponseController(rw).Flush()
			panic(http.ErrAbortHandler)
		}))
		// A retry and another model would both be possible.
		w := newWorldOf(t, server, strings.ReplaceAll(configOf(server.URL), "retries: 0", "retries: 2")+"aliases: {best: \"anthropic/m, chat/n\"}\n")
		c := &client{t: t, codec: codec, url: w.url}
		resp := c.post(t.Context(), &dragoman.Request{Model: "best", Stream: true, MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}}) //nolint:bodyclose // the test's end does
		body, err := io.ReadAll(resp.Body)
		if err != nil || requests.Load() != 1 || !bytes.Contains(body, []byte("connection to the upstream broke")) {
			t.Errorf("%s: %d upstream requests, %v: %s", codec.Dialect(), requests.Load(), err, body)
		}
		server.Close()
	}
}

func TestG4_FailedModelFailsOver(t *testing.T) {
	var requests []string
	w := newServerWorld(t, `aliases: {best: "anthropic/m, chat/n"}
`, func(rw http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.URL.Path)
		if r.URL.Path == "/v1/messages" {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		rw.Header().Set("content-type", "application/json")
		_, _ = io.WriteString(rw, `{"id":"c1","object":"chat.completion","created":1,"model":"n","choices":[{"index":0,"message":{"role":"assistant","content":"From the other.","refusal":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`)
	})
	c := &client{t: t, codec: anthropic.Codec{}, url: w.url}
	resp, err := c.generate(&dragoman.Request{Model: "best", MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}})
	if err != nil || textOf(resp) != "From the other." || len(requests) != 2 {
		t.Fatalf("%v %v %v", resp, err, requests)
	}
	// The log has it, for the operator.
	w.wantLog(t, `"level":"WARN","msg":"request"`, `"upstream":"chat/n","status":200`, `"failed_over":"anthropic/m: `)
	if _, text := get(t, http.MethodGet, w.url+"/metrics", ""); !strings.Contains(text, "\ndragoman_upstream_failures_total{upstream=\"anthropic/m\"} 1\n") || strings.Contains(text, `failures_total{upstream="chat/n"}`) {
		t.Errorf("%s", text)
	}
}

func TestG6_RequestErrorIsNotAModelFailure(t *testing.T) {
	w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "application/json")
		rw.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(rw, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`)
	})
	for _, body := range []string{`{"model":"anthropic/m"}`, `{"model":"anthropic/m","messages":[{"role":"user","content":"hi"}]}`} { // refused by us, and by it
		if status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", body); status != http.StatusBadRequest {
			t.Errorf("%d %s", status, text)
		}
	}
	w.wantLog(t, "at least one message is required", "invalid_request_error")
	if _, text := get(t, http.MethodGet, w.url+"/metrics", ""); strings.Contains(text, "failures_total{") {
		t.Errorf("%s", text)
	}
}

func TestG4_FailoverAfterAHeartbeat(t *testing.T) {
	for _, codec := range []dialect.Codec{anthropic.Codec{}, openaichat.Codec{}} { // passed through, and translated
		beaten := make(chan struct{})
		w := newServerWorld(t, `aliases: {best: "anthropic/m, chat/n"}
gateway: {heartbeat: 1ms, routes: {best: {to: best}}}
`, func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/messages" {
				select { // the upstream stays silent until the client has a heartbeat
				case <-beaten:
				case <-r.Context().Done():
				}
				rw.WriteHeader(http.StatusInternalServerError)
				return
			}
			rw.Header().Set("content-type", "text/event-stream")
			_, _ = io.WriteString(rw, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"n","choices":[{"index":0,"delta":{"role":"assistant","content":"From the other."},"finish_reason":null}]}`+"\n\n"+
				`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"n","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		})
		c := &client{t: t, codec: codec, url: w.url}
		resp := c.post(t.Context(), &dragoman.Request{Model: "best", Stream: true, MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}}) //nolint:bodyclose // the test's end does
		var beats [4]byte
		if _, err := io.ReadFull(resp.Body, beats[:]); err != nil {
			t.Fatal(err)
		}
		close(beaten)
		rest, err := io.ReadAll(resp.Body)
		body := slices.Concat(beats[:], rest)
		if err != nil || !bytes.Contains(body, []byte("ping")) || !bytes.Contains(body, []byte("From the other.")) {
			t.Errorf("%s: %v %s", codec.Dialect(), err, body)
		}
		if err := emitcheck.Stream(codec.Dialect(), resp.Header, body); err != nil {
			t.Errorf("%v\n%s", err, body)
		}
	}
}

func TestG2_LastRefusalIsReported(t *testing.T) {
	for _, codec := range clientDialects { // each with its own Health
		w := newServerWorld(t, `aliases: {best: "anthropic/m, chat/n"}
`, func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("content-type", "application/json")
			if r.URL.Path == "/v1/messages" {
				rw.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(rw, `{"type":"error","error":{"type":"api_error","message":"the first"}}`)
				return
			}
			rw.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(rw, `{"error":{"message":"the second","type":"rate_limit_error","param":null,"code":null}}`)
		})
		c := &client{t: t, codec: codec, url: w.url}
		_, err := c.generate(&dragoman.Request{Model: "best", MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}})
		if api, ok := err.(*dragoman.APIError); !ok || api.Status != http.StatusTooManyRequests || !strings.Contains(api.Message, "the second") { //nolint:errorlint // the codec returns it unwrapped
			t.Errorf("%s: %v", codec.Dialect(), err)
		}
	}
}

func TestQuirkJ9_DisconnectCancelsTheUpstreamRequest(t *testing.T) {
	for _, codec := range []string{"anthropic", "chat"} { // passed on, and translated
		left := make(chan struct{})
		w := newServerWorld(t, "", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("content-type", "text/event-stream")
			_, _ = io.WriteString(rw, anthropicAnswer[:strings.Index(anthropicAnswer, "event: content_block_stop")])
			_ = http.NewResponseController(rw).Flush()
			<-r.Context().Done()
			close(left)
		})
		c := &client{t: t, codec: anthropic.Codec{}, url: w.url}
		if codec == "chat" {
			c.codec = openaichat.Codec{}
		}
		ctx, leave := context.WithCancel(t.Context())
		resp := c.post(ctx, &dragoman.Request{Model: "anthropic/m", Stream: true, MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}}) //nolint:bodyclose // the test's end does
		if _, err := resp.Body.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		leave()
		<-left
		w.wantLog(t, `"client_left":true`)
	}
}

func TestQuirkJ1_PausesAreFilledWithHeartbeats(t *testing.T) {
	for _, tc := range []struct {
		path, body, ping string
	}{
		{"/v1/messages", `{"model":"sim/planner?first=40s","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, "event: ping\ndata: {\"type\": \"ping\"}\n\n"},
		{"/v1/chat/completions", `{"model":"sim/planner?first=40s","stream":true,"messages":[{"role":"user","content":"hi"}]}`, ": ping\n\n"},
		{"/v1/responses", `{"model":"sim/planner?first=40s","stream":true,"input":"hi"}`, ": ping\n\n"},
		{"/api/chat", `{"model":"sim/planner?first=40s","messages":[{"role":"user","content":"hi"}]}`, ""},
	} {
		t.Run(tc.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, err := gateway.New(nil, gateway.Options{})
				if err != nil {
					t.Fatal(err)
				}
				rec := httptest.NewRecorder()
				withJudge(t, g).ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, tc.path, strings.NewReader(tc.body)))
				want := 2 // in 40 seconds
				if tc.ping == "" {
					want = 0
				}
				if n := strings.Count(rec.Body.String(), "ping"); tc.ping != "" && strings.Count(rec.Body.String(), tc.ping) != want || tc.ping == "" && n != 0 || rec.Code != http.StatusOK {
					t.Errorf("%d: %s", rec.Code, rec.Body)
				}
				if tc.ping != "" && !strings.HasPrefix(rec.Body.String(), tc.ping) {
					t.Errorf("the first is not at the beginning: %s", rec.Body)
				}
			})
		})
	}
}

func TestG3_KeyIsCheckedFirst(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	w := newWorld(t, `gateway:
  keys:
    team: {key_env: TEAM_KEY, models: ["sim/*", fast], requests_per_minute: 3}
  routes:
    sim/*: {to: "sim/*"}
    other: {to: sim/echo}
    fast: {to: sim/echo}
`)
	ask := func(key, model string) error {
		c := &client{t: t, codec: openairesponses.Codec{}, url: w.url, key: key}
		_, err := c.generate(&dragoman.Request{Model: model, Messages: []dragoman.Message{userSays("hi")}})
		return err
	}
	for _, tc := range []struct {
		key, model string
		status     int
	}{
		{"", "sim/echo", 401},
		{"another", "sim/echo", 401},
		{"a-secret-of-the-team", "other", 403},
		{"a-secret-of-the-team", "sim/echo", 0},
		{"a-secret-of-the-team", "fast", 0},
		{"a-secret-of-the-team", "sim/planner", 0},
		{"a-secret-of-the-team", "sim/planner", 429},
	} {
		err := ask(tc.key, tc.model)
		api, _ := err.(*dragoman.APIError) //nolint:errorlint // the codec returns it unwrapped
		if tc.status == 0 && err != nil || tc.status != 0 && (api == nil || api.Status != tc.status) {
			t.Errorf("%q %s: %v, want %d", tc.key, tc.model, err, tc.status)
		}
		if tc.status == 429 && (api == nil || api.RetryAfter <= 0) {
			t.Errorf("no wait is reported: %v", err)
		}
	}
	resp, err := http.Get(w.url + "/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("models without a key: %d", resp.StatusCode)
	}
	if strings.Contains(w.logged(), "a-secret-of-the-team") || strings.Contains(w.logged(), "another") {
		t.Error("a key is in the log")
	}
}

func TestG5_ShutdownWaitsForResponses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		drain time.Duration
		whole bool
	}{{"in time", time.Minute, true}, {"not in time", time.Nanosecond, false}} {
		t.Run(tc.name, func(t *testing.T) {
			release, reached := make(chan struct{}), make(chan struct{})
			w := newServerWorld(t, "", func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("content-type", "text/event-stream")
				cut := strings.Index(anthropicAnswer, "event: content_block_stop")
				_, _ = io.WriteString(rw, anthropicAnswer[:cut])
				_ = http.NewResponseController(rw).Flush()
				close(reached)
				select {
				case <-release:
					_, _ = io.WriteString(rw, anthropicAnswer[cut:])
				case <-r.Context().Done():
				}
			})
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- w.gateway.Serve(ctx, l, tc.drain) }()
			c := &client{t: t, codec: openaichat.Codec{}, url: w.judgedURL(t, l.Addr().String())}
			resp := c.post(t.Context(), &dragoman.Request{Model: "anthropic/m", Stream: true, Messages: []dragoman.Message{userSays("hi")}}) //nolint:bodyclose // the test's end does
			<-reached
			stop()
			if tc.whole {
				close(release)
			}
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			if done := bytes.Contains(body, []byte(`"finish_reason":"stop"`)); done != tc.whole || !tc.whole && !bytes.Contains(body, []byte("shutting down")) {
				t.Errorf("%s", body)
			}
			var cut *gateway.DrainError
			if err := <-ended; tc.whole && err != nil || !tc.whole && (!errors.As(err, &cut) || cut.Responses != 1) {
				t.Error(err)
			}
		})
	}
}

func TestG3_ServeRefusesToBeAnOpenRelay(t *testing.T) {
	w := newWorld(t, "")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	var relay *gateway.OpenRelayError
	if err := w.gateway.Serve(t.Context(), l, 0); !errors.As(err, &relay) {
		t.Errorf("%v", err)
	}
	if _, err := l.Accept(); err == nil {
		t.Error("it still listens")
	}
}

func TestG4_RouteOverridesAreApplied(t *testing.T) {
	model := &scriptedServer{responses: []string{anthropicThinks}}
	w := newServerWorld(t, "gateway:\n  routes: {m: {to: anthropic/claude-sonnet-4-5, set: {temperature: 0.25, max_tokens: 77}}}\n", model.ServeHTTP)
	for _, codec := range clientDialects {
		c := &client{t: t, codec: codec, url: w.url}
		if _, err := c.generate(&dragoman.Request{Model: "m", MaxOutputTokens: new(int64(5)), Messages: []dragoman.Message{userSays("hi")}}); err != nil {
			t.Fatal(err)
		}
		sent := model.requests[len(model.requests)-1]
		if lookup(sent, "temperature") != 0.25 || lookup(sent, "max_tokens") != 77.0 {
			t.Errorf("%s: %s", codec.Dialect(), sent)
		}
	}
}

func TestG5_ConcurrentResponsesAreLimited(t *testing.T) {
	release, reached := make(chan struct{}), make(chan struct{}, 1)
	w := newServerWorld(t, "gateway:\n  limits: {streams: 1}\n", func(rw http.ResponseWriter, r *http.Request) {
		reached <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
		rw.Header().Set("content-type", "text/event-stream")
		_, _ = io.WriteString(rw, anthropicAnswer)
	})
	ended := make(chan string)
	go func() {
		_, text := get(t, http.MethodPost, w.url+"/v1/messages", anthropicRequest)
		ended <- text
	}()
	<-reached
	if status, text := get(t, http.MethodPost, w.url+"/v1/messages", anthropicRequest); status != 529 || !strings.Contains(text, "overloaded_error") {
		t.Errorf("%d %s", status, text)
	}
	close(release)
	if text := <-ended; text != anthropicAnswer {
		t.Errorf("%s", text)
	}
	w.wantLog(t, `"status":200`)
	if status, text := get(t, http.MethodPost, w.url+"/v1/messages", anthropicRequest); status != http.StatusOK {
		t.Errorf("when there is room again: %d %s", status, text)
	}
}

func TestG7_OwnerIsRecordedAfterALeadingComment(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	const stream = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_theirs\",\"object\":\"response\",\"created_at\":1,\"status\":\"in_progress\",\"model\":\"m\",\"output\":[]}}\n\n" +
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":1,\"response\":{\"id\":\"resp_theirs\",\"object\":\"response\",\"created_at\":1,\"status\":\"completed\",\"model\":\"m\",\"output\":[],\"store\":true}}\n\ndata: [DONE]\n\n"
	requests := 0
	w := newServerWorld(t, "gateway:\n  keys: {team: {key_env: TEAM_KEY}}\n  routes: {m: {to: responses/m}}\n", func(rw http.ResponseWriter, _ *http.Request) {
		requests++
		rw.Header().Set("content-type", "text/event-stream")
		for _, chunk := range []string{": ping\n\n", stream} {
			_, _ = io.WriteString(rw, chunk)
			_ = http.NewResponseController(rw).Flush()
		}
	}, unjudgedPassThrough("the server leaves out most of a response"))
	for i, body := range []string{`{"model":"m","stream":true,"input":"hi"}`, `{"model":"m","stream":true,"input":"hi","previous_response_id":"resp_theirs"}`} {
		if status, text := get(t, http.MethodPost, w.url+"/v1/responses", body, "authorization", "Bearer a-secret-of-the-team"); status != http.StatusOK || text != ": ping\n\n"+stream || requests != i+1 {
			t.Errorf("request %d: %d %s", i, status, text)
		}
	}
}

func TestG4_ReloadUnderLoad(t *testing.T) {
	w := newWorld(t, "")
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			c := &client{t: t, codec: clientDialects[i], url: w.url}
			for range 10 {
				if _, err := c.generate(&dragoman.Request{Model: "anthropic/sim/echo", Stream: i%2 == 0, MaxOutputTokens: new(int64(50)), Messages: []dragoman.Message{userSays("hi")}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 20 {
		config, err := gateway.Parse("gateway.yaml", []byte(configOf(w.sim.URL)+fmt.Sprintf("aliases: {a%d: sim/echo}\n", i)))
		if err != nil {
			t.Fatal(err)
		}
		if err := w.gateway.Reload(config); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	c := &client{t: t, codec: openaichat.Codec{}, url: w.url}
	if _, err := c.generate(&dragoman.Request{Model: "a19", Messages: []dragoman.Message{userSays("hi")}}); err != nil {
		t.Error(err)
	}
	if _, err := c.generate(&dragoman.Request{Model: "a18", Messages: []dragoman.Message{userSays("hi")}}); err == nil {
		t.Error("the config before is still there")
	}
}

func TestMissingMaxTokensIsSetForTheModel(t *testing.T) {
	for name, want := range map[string]float64{"claude-opus-5-5": 32000, "claude-sonnet-4-5-20250929": 32000, "claude-opus-4-20250514": 32000, "claude-3-opus-20240229": 4096, "somebody-else": 4096} {
		model := &scriptedServer{responses: []string{anthropicThinks}}
		w := newServerWorld(t, "", model.ServeHTTP)
		for _, codec := range []dialect.Codec{openaichat.Codec{}, openairesponses.Codec{}} {
			c := &client{t: t, codec: codec, url: w.url}
			for _, bound := range []*int64{nil, new(int64(77))} {
				if _, err := c.generate(&dragoman.Request{Model: "anthropic/" + name, MaxOutputTokens: bound, Messages: []dragoman.Message{userSays("hi")}}); err != nil {
					t.Fatal(err)
				}
				got := lookup(model.requests[len(model.requests)-1], "max_tokens")
				if bound == nil && got != want || bound != nil && got != 77.0 {
					t.Errorf("%s to %s: %v", codec.Dialect(), name, got)
				}
			}
		}
	}
}
