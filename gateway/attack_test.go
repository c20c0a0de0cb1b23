package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-go/dragoman/dialect/ollama"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/gateway"
)

// What clients try that mean no good.

// heard are the bodies that a server was sent, by their paths.
type heard struct {
	mu  sync.Mutex
	all []string
}

func (h *heard) take(r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, r.URL.Path+" "+string(body))
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.all, "\n")
}

func TestG3_AListOfModelsIsNoNameThatAClientMayAskFor(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	var h heard
	w := worldOf(t, `gateway:
  keys:
    team: {key_env: TEAM_KEY, models: ["ollama/*", "local-*"]}
  routes:
    ollama/*: {to: "ollama/*"}
    local-*: {to: "ollama/*"}
`, func(rw http.ResponseWriter, r *http.Request) {
		h.take(r)
		rw.WriteHeader(http.StatusNotFound) // so that the next is asked
	})
	for _, model := range []string{"ollama/x,anthropic/dear", "local-x, anthropic/dear", "ollama/,anthropic/dear", "local-x,"} {
		c := &client{t: t, codec: ollama.Codec{}, url: w.url, key: "a-secret-of-the-team"}
		resp := c.postBody(t.Context(), "", false, fmt.Appendf(nil, `{"model":%q,"stream":false,"messages":[{"role":"user","content":"hi"}]}`, model)) //nolint:bodyclose // the test's end does
		if body, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusNotFound || h.String() != "" {
			t.Errorf("%s: %d %s, asked: %s", model, resp.StatusCode, body, h.String())
		}
	}
}

func TestG3_WhatIsSaidTwiceIsRefused(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	var h heard
	w := worldOf(t, `gateway:
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
			t.Errorf("%s: %d %s, asked: %s", members, resp.StatusCode, body, h.String())
		}
	}
}

func TestG6_NamesThatClientsMakeUpAreNoSeries(t *testing.T) {
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

func TestG3_AKeyIsToldOnlyOfTheModelsItMayUse(t *testing.T) {
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
		if told, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusNotFound || strings.Contains(string(told), "others-own") || !strings.Contains(string(told), "there are cheap") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, told)
		}
	}
}

// slowHeader is a writer whose headers are long in coming when they are asked for the
// second time.
type slowHeader struct {
	*httptest.ResponseRecorder
	asked atomic.Int32
}

func (w *slowHeader) Header() http.Header {
	if w.asked.Add(1) == 2 {
		time.Sleep(2 * gateway.DefaultHeartbeat)
	}
	return w.ResponseRecorder.Header()
}

func TestQuirkJ1_NoHeartbeatBeginsAStreamWhileAnErrorIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := gateway.New(nil, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		w := &slowHeader{ResponseRecorder: httptest.NewRecorder()}
		g.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/messages",
			strings.NewReader(`{"model":"sim/planner?fault=500","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`)))
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "ping") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
