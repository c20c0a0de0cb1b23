package gateway_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/gateway"
)

// Attacks by clients.

// receivedBodies holds the request bodies of a server, by path.
type receivedBodies struct {
	mu  sync.Mutex
	all []string
}

func (h *receivedBodies) take(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, r.URL.Path+" "+string(body))
}

func (h *receivedBodies) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.all, "\n")
}

func TestG3_ModelListIsNotAModelName(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	var h receivedBodies
	w := newServerWorld(t, `gateway:
  keys:
    team: {key_env: TEAM_KEY, models: ["ollama/*", "local-*"]}
  routes:
    ollama/*: {to: "ollama/*"}
    local-*: {to: "ollama/*"}
`, func(rw http.ResponseWriter, r *http.Request) {
		h.take(r)
		rw.WriteHeader(http.StatusNotFound) // so that the next model is called
	})
	for _, model := range []string{"ollama/x,anthropic/dear", "local-x, anthropic/dear", "ollama/,anthropic/dear", "local-x,"} {
		c := &client{t: t, codec: ollama.Codec{}, url: w.url, key: "a-secret-of-the-team"}
		resp := c.postBody(t.Context(), "", false, fmt.Appendf(nil, `{"model":%q,"stream":false,"messages":[{"role":"user","content":"hi"}]}`, model)) //nolint:bodyclose // the test's end does
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusNotFound || h.String() != "" {
			t.Errorf("%s: %d %s, requests: %s", model, resp.StatusCode, body, h.String())
		}
	}
}

func TestG3_DuplicateFieldsAreRefused(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	var h receivedBodies
	w := newServerWorld(t, `gateway:
  keys:
    team: {key_env: TEAM_KEY, models: [cheap]}
  routes:
    cheap: {to: ollama/cheap}
`, func(_ http.ResponseWriter, r *http.Request) { h.take(r) })
	for _, members := range []string{
		`"model":"dear","model":"cheap"`,
		`"model":"cheap","Model":"dear"`, // servers that are written in Go take it
		`"MODEL":"dear","model":"cheap"`,
		`"model":"cheap","model":null`,
		`"model":"cheap","stream":false,"stream":true`,
		`"model":"cheap","ſtream":true`,
		`"model":"cheap","previouſ_reſponſe_id":"resp_1"`,
	} {
		c := &client{t: t, codec: ollama.Codec{}, url: w.url, key: "a-secret-of-the-team"}
		resp := c.postBody(t.Context(), "", false, []byte(`{`+members+`,"messages":[{"role":"user","content":"hi"}]}`)) //nolint:bodyclose // the test's end does
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || h.String() != "" {
			t.Errorf("%s: %d %s, requests: %s", members, resp.StatusCode, body, h.String())
		}
	}
}

func TestG6_ClientNamesAreNotMetricLabels(t *testing.T) {
	w := newWorld(t, "")
	for i := range 3 {
		c := &client{t: t, codec: openairesponses.Codec{}, url: w.url}
		_, _ = io.Copy(io.Discard, c.postBody(t.Context(), "", false, fmt.Appendf(nil, `{"model":"ollama/made-up-%d\u200b","input":"hi"}`, i)).Body) //nolint:bodyclose // the test's end does
	}
	w.wantLog(t, "made-up-0", "made-up-1", "made-up-2")
	resp, err := http.Get(w.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if text := string(body); strings.Contains(text, "made-up") || !strings.Contains(text, `upstream="ollama/*"`) || strings.Count(text, "dragoman_requests_total{") != 1 {
		t.Errorf("%s", body)
	}
}

func TestG3_ErrorsListOnlyAllowedModels(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	w := newWorld(t, `gateway:
  keys:
    team: {key_env: TEAM_KEY, models: [cheap, "cheap-*"]}
  routes:
    cheap: {to: sim/echo}
    others-own: {to: sim/echo}
`)
	for path, body := range map[string]string{"/v1/chat/completions": `{"model":"cheap-x","messages":[]}`, "/api/show": `{"model":"cheap-x"}`, "/v1/messages/count_tokens": `{"model":"cheap-x","messages":[]}`} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer a-secret-of-the-team")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if told, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusNotFound || strings.Contains(string(told), "others-own") || !strings.Contains(string(told), "known models are cheap") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, told)
		}
	}
}

// slowHeader is a response writer whose second call of Header blocks for a while.
type slowHeader struct {
	*httptest.ResponseRecorder
	asked atomic.Int32
}

func (w *slowHeader) Header() http.Header {
	if w.asked.Add(1) == 2 {
		time.Sleep(2 * 15 * time.Second)
	}
	return w.ResponseRecorder.Header()
}

func TestQuirkJ1_NoHeartbeatWhileAnErrorIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := gateway.New(nil, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &slowHeader{ResponseRecorder: httptest.NewRecorder()}
		withJudge(t, g).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages",
			strings.NewReader(`{"model":"sim/planner?fault=500","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`)))
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "ping") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

func TestG3_UnreportedUsageIsEstimated(t *testing.T) {
	const line = `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"x"},"done":false}` + "\n"
	const last = `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop"}` + "\n"
	for name, path := range map[string]string{"passed on": "/api/chat", "translated": "/v1/chat/completions"} {
		for _, leaves := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, leaves %v", name, leaves), func(t *testing.T) {
				t.Setenv("TEAM_KEY", "a-secret-of-the-team")
				w := newServerWorld(t, "gateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 40, per: month}}}}\n", func(rw http.ResponseWriter, r *http.Request) {
					rw.Header().Set("content-type", "application/x-ndjson")
					_, _ = io.WriteString(rw, strings.Repeat(line, 30))
					if _ = http.NewResponseController(rw).Flush(); leaves {
						<-r.Context().Done()
					}
					_, _ = io.WriteString(rw, last)
				})
				ask := func() int {
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					r, _ := http.NewRequestWithContext(ctx, http.MethodPost, w.url+path, strings.NewReader(`{"model":"ollama/m","stream":true,"messages":[{"role":"user","content":"hello hello hello"}]}`))
					r.Header.Set("Authorization", "Bearer a-secret-of-the-team")
					resp, err := http.DefaultClient.Do(r)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					if !leaves {
						_, _ = io.Copy(io.Discard, resp.Body)
					} else if _, err := io.ReadFull(resp.Body, make([]byte, 2000)); err != nil {
						t.Log(err)
					}
					return resp.StatusCode
				}
				if status := ask(); status != http.StatusOK {
					t.Fatal(status)
				}
				w.wantLog(t, `"msg":"request"`)
				if status := ask(); status != http.StatusTooManyRequests {
					t.Errorf("%d: %s", status, w.logged())
				}
			})
		}
	}
}

func TestG2_FailureAfterTheEndIsNotAnError(t *testing.T) {
	w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "text/event-stream")
		_, _ = io.WriteString(rw, anthropicAnswer)
		_ = http.NewResponseController(rw).Flush()
		panic(http.ErrAbortHandler)
	})
	c := &client{t: t, codec: anthropic.Codec{}, url: w.url}
	resp := c.postBody(t.Context(), "", true, []byte(anthropicRequest)) //nolint:bodyclose // the test's end does
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != anthropicAnswer {
		t.Errorf("%v: %s", err, body)
	}
}

// complete lists streams that are complete, each in a form that differs from the vendor's.
var complete = map[string]struct{ path, body, answer string }{
	"no names": {"/v1/messages", anthropicRequest, regexp.MustCompile(`(?m)^event: .*\n`).ReplaceAllString(anthropicAnswer, "")},
	"ids":      {"/v1/messages", anthropicRequest, strings.ReplaceAll(anthropicAnswer, "event: ", "id: 7\nevent: ")},
	"comments": {"/v1/messages", anthropicRequest, strings.ReplaceAll(anthropicAnswer, "event: ", ": comment\nevent: ")},
	"chat with names": {
		"/v1/chat/completions", `{"model":"openai/m","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		"event: message\ndata: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\nevent: done\ndata: [DONE]\n\n",
	},
	"a large end": {
		"/v1/responses", `{"model":"responses/m","stream":true,"input":"hi"}`,
		"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1,\"status\":\"in_progress\",\"model\":\"m\",\"output\":[],\"usage\":null}}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":1,\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"created_at\":1,\"status\":\"completed\",\"model\":\"m\",\"output\":[{\"type\":\"image_generation_call\",\"id\":\"ig_1\",\"status\":\"completed\",\"result\":\"" + strings.Repeat("iVBORw0K", 400_000) + "\"}],\"usage\":{\"input_tokens\":3,\"output_tokens\":4,\"total_tokens\":7}}}\n\n",
	},
}

func TestG2_CompleteStreamIsNotReportedAsBroken(t *testing.T) {
	for name, tc := range complete {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SIM_KEY", "upstream-secret")
			s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("content-type", "text/event-stream")
				_, _ = io.WriteString(rw, tc.answer)
			}))
			t.Cleanup(s.Close)
			w := newWorldOf(t, s, configOf(s.URL), unjudgedPassThrough("servers differ in how they write a stream"))
			resp, err := http.Post(w.url+tc.path, "application/json", strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != tc.answer {
				t.Errorf("%v: %d bytes for %d: …%s", err, len(body), len(tc.answer), body[max(0, len(body)-500):])
			}
			w.wantLog(t, `"transparent":true`)
			if log := w.logged(); strings.Contains(log, `"error"`) || name == "a large end" && !strings.Contains(log, `"output_tokens":4`) {
				t.Error(log)
			}
		})
	}
}

func TestG2_ErrorIsSeparatedFromAnUnfinishedEvent(t *testing.T) {
	const last = `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"x"},"done":false}`
	w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "application/x-ndjson")
		_, _ = io.WriteString(rw, last)
	})
	resp, err := http.Post(w.url+"/api/chat", "application/json", strings.NewReader(`{"model":"ollama/m","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || !strings.HasPrefix(string(body), last+"\n{\"error\":") {
		t.Errorf("%v: %s", err, body)
	}
}

func TestG7_UpstreamStoredResponseIsContinuedByItsKeyOnly(t *testing.T) {
	t.Setenv("ONE_KEY", "the-secret-of-the-one")
	t.Setenv("OTHER_KEY", "the-secret-of-the-other")
	for name, route := range map[string]string{"passed on": "{to: responses/m}", "translated": "{to: responses/m, repair: always}"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream %v", name, stream), func(t *testing.T) {
				w := newWorld(t, "gateway: {keys: {one: {key_env: ONE_KEY}, other: {key_env: OTHER_KEY}}, routes: {m: "+strings.Replace(route, "responses/m", "responses/sim/echo", 1)+"}}\n")
				ask := func(key, more string) (int, string) {
					c := &client{t: t, codec: openairesponses.Codec{}, url: w.url, key: key}
					resp := c.postBody(t.Context(), "", stream, fmt.Appendf(nil, `{"model":"m","stream":%v,"input":"hi"%s}`, stream, more)) //nolint:bodyclose // the test's end does
					body, _ := io.ReadAll(resp.Body)
					return resp.StatusCode, string(body)
				}
				_, body := ask("the-secret-of-the-one", "")
				id := regexp.MustCompile(`"id": ?"(sim_[^"]+|resp_[^"]+)"`).FindStringSubmatch(body)
				if id == nil {
					t.Fatal(body)
				}
				more := `,"previous_response_id":"` + id[1] + `"`
				if status, body := ask("the-secret-of-the-other", more); status != http.StatusBadRequest || !strings.Contains(body, `"code":"previous_response_not_found"`) || !strings.Contains(body, "expired or was not stored") {
					t.Errorf("another's: %d %s", status, body)
				}
				if _, body := ask("the-secret-of-the-one", more); strings.Contains(body, "expired or was not stored") {
					t.Errorf("its own: %s", body)
				}
			})
		}
	}
}

func TestG3_ForeignOriginIsRefusedWithoutKeys(t *testing.T) {
	w := newWorld(t, "")
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.gateway.Serve(ctx, l, time.Second) }()
	url := w.judgedURL(t, l.Addr().String())
	for _, tc := range []struct {
		host, origin string
		status       int
	}{
		{"", "", 200},
		{"localhost:8088", "", 200},
		{"[::1]:8088", "", 200},
		{"app.localhost:8088", "", 200},
		{"LOCALHOST.", "", 200},
		{"127.9.9.9", "", 200},
		{"", "http://localhost:3000", 200},
		{"", "http://127.0.0.1", 200},
		{"", "vscode-webview://abc", 200},
		{"", "https://evil.example", 403},
		{"", "http://localhost.evil.example", 403},
		{"", "null", 403},
		{"evil.example:8088", "", 403}, // DNS now points it at this machine
		{"evil.example:8088", "http://evil.example:8088", 403},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/chat/completions", strings.NewReader(`{"model":"sim/echo","messages":[{"role":"user","content":"hi"}]}`))
		r.Header.Set("Content-Type", "text/plain") // avoids a preflight request
		if r.Host = tc.host; tc.origin != "" {
			r.Header.Set("Origin", tc.origin)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if _ = resp.Body.Close(); resp.StatusCode != tc.status {
			t.Errorf("%q %q: %d", tc.host, tc.origin, resp.StatusCode)
		}
	}
	w.wantLog(t, `"status":403`, "none from web pages of other sites")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A name that DNS can point at this machine lets a web page use the gateway: mDNS names,
// one-label names with a search domain, and names of private zones included.
func TestG3_ForeignHostIsRefusedWithoutKeys(t *testing.T) {
	const others = "gateway: {hosts: [host.docker.internal, 'Printer.local', 10.0.0.7]}\n"
	statuses := func(t *testing.T, more string, hosts ...string) map[string]int {
		w := newWorld(t, more)
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.gateway.Serve(ctx, l, time.Second) }()
		out := map[string]int{}
		for _, host := range hosts {
			for _, path := range []string{"/healthz", "/v1/models", "/metrics"} {
				conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+host+"\r\nConnection: close\r\n\r\n")
				resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
				if err != nil {
					t.Fatalf("%q: %v", host, err)
				}
				_ = resp.Body.Close()
				_ = conn.Close()
				if before, seen := out[host]; seen && before != resp.StatusCode {
					t.Errorf("%q: %s answers %d, another path %d", host, path, resp.StatusCode, before)
				}
				out[host] = resp.StatusCode
			}
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return out
	}
	loopback := []string{"localhost", "LocalHost:1", "a.b.localhost", "localhost.", "127.0.0.1:99", "127.255.0.1", "[::1]", "[::1]:80", "[::ffff:127.0.0.1]:80"}
	foreign := []string{"gateway", "box.local", "x.internal", "evil.example", "localhost.evil.example", "notlocalhost", "10.0.0.8", "0.0.0.0", "[::]", "192.168.0.1:8088", "127.0.0.1.evil.example", "127.0.0.1.nip.io", "1270.0.0.1", ""}
	configured := []string{"host.docker.internal:8088", "HOST.docker.INTERNAL.", "printer.local", "10.0.0.7:80"}
	got := statuses(t, "", slices.Concat(loopback, foreign, configured)...)
	for _, host := range loopback {
		if got[host] != http.StatusOK {
			t.Errorf("loopback %q: %d", host, got[host])
		}
	}
	for _, host := range slices.Concat(foreign, configured) {
		if got[host] != http.StatusForbidden {
			t.Errorf("foreign %q: %d", host, got[host])
		}
	}
	got = statuses(t, others, slices.Concat(foreign, configured)...)
	for _, host := range foreign {
		if got[host] != http.StatusForbidden {
			t.Errorf("not configured %q: %d", host, got[host])
		}
	}
	for _, host := range configured {
		if got[host] != http.StatusOK {
			t.Errorf("configured %q: %d", host, got[host])
		}
	}
}

func TestHostsAreNamesWithoutSchemePortOrPattern(t *testing.T) {
	for host, want := range map[string]string{
		`"*.local"`: "patterns are not supported", `"http://a"`: "without a scheme", `"a:80"`: "without a port", `""`: "empty", `"a b"`: "not a valid host name",
	} {
		_, err := gateway.Parse("gateway.yaml", []byte("version: 1\ngateway:\n  hosts: ["+host+"]\n"))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "gateway.yaml:3:11: hosts: ") {
			t.Errorf("%s: %v", host, err)
		}
		if err := (&gateway.Config{Hosts: []string{strings.Trim(host, `"`)}}).Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", host, err)
		}
	}
	t.Setenv("SOME_KEY", "a-key-of-this-test")
	c, err := gateway.Parse("gateway.yaml", []byte("version: 1\ngateway: {hosts: a.local, keys: {k: {key_env: SOME_KEY}}}\n"))
	if err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0].Error(), "has no effect, because with keys") {
		t.Errorf("%v %v", err, c)
	}
}

func TestG1_CompressedBodyIsBounded(t *testing.T) {
	packed := func(text string) *bytes.Buffer {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return &b
	}
	const hi = `{"model":"sim/echo","messages":[{"role":"user","content":"hi"}]`
	w := newWorld(t, "gateway: {limits: {body_bytes: 100000}}\n")
	for _, tc := range []struct {
		how    string
		body   io.Reader
		status int
	}{
		{"gzip", packed(hi + "}"), 200},
		{"gzip", packed(hi + strings.Repeat(" ", 1_000_000) + "}"), 413}, // a bomb
		{"gzip", strings.NewReader(hi + "}"), 400},
		{"zstd", strings.NewReader(hi + "}"), 415},
		{"identity", strings.NewReader(hi + "}"), 200},
	} {
		r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/chat/completions", tc.body)
		r.Header.Set("Content-Encoding", tc.how)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		if _ = resp.Body.Close(); resp.StatusCode != tc.status {
			t.Errorf("%s: %d %s", tc.how, resp.StatusCode, body)
		}
	}
}
