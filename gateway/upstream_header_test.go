package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
)

// firstFails responds for every model except "bad", which fails.
func firstFails(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	if strings.Contains(string(body), `"bad"`) || strings.Contains(r.URL.Path, "bad") {
		writeError(rw, r, dragoman.APIError{Status: http.StatusInternalServerError, Message: "it is broken"})
		return
	}
	hello(rw, r)
}

func TestResponseHeadersNameUpstreams(t *testing.T) {
	const file = "aliases: {one: \"PROVIDER/m\", many: \"ollama/bad, PROVIDER/bad, PROVIDER/m\", none: \"ollama/bad, PROVIDER/bad\"}\ngateway: {heartbeat: 15s}\n"
	for _, w := range pairs() {
		for _, stream := range []bool{false, true} {
			withRig(t, strings.ReplaceAll(file, "PROVIDER", w.provider), firstFails, func(r *rig) {
				for model, want := range map[string][2]string{
					"one":  {w.provider + "/m", ""},
					"many": {w.provider + "/m", "ollama/bad, " + w.provider + "/bad"},
					"none": {w.provider + "/bad", "ollama/bad"},
				} {
					a := r.read(r.send(r.requestFor(r.t.Context(), w.client, model, stream)), w.client, stream) //nolint:bodyclose // read does
					if ok := a.status == http.StatusOK; ok != (model != "none") {
						r.t.Errorf("%s: %d %s", w, a.status, a.body)
					}
					if w.provider == "ollama" && model != "one" { // the same upstream twice
						continue
					}
					if up, failed := a.header.Get("X-Dragoman-Upstream"), a.header.Get("X-Dragoman-Failed-Over"); up != want[0] || failed != want[1] {
						r.t.Errorf("%s%s, %s: upstream %q, failed over %q", w, streamed(stream), model, up, failed)
					}
				}
			})
		}
	}
}

// The headers of a stream that a heartbeat begins are sent before the upstream is known.
func TestUpstreamIsInTheTrailerAfterAHeartbeat(t *testing.T) {
	for _, w := range pairs() {
		if !w.beats() {
			continue
		}
		withRig(t, strings.ReplaceAll("aliases: {many: \"gemini/bad, PROVIDER/m\"}\n", "PROVIDER", w.provider), func(rw http.ResponseWriter, r *http.Request) {
			sleepSeconds(20)
			firstFails(rw, r)
		}, func(r *rig) {
			resp := r.send(r.requestFor(r.t.Context(), w.client, "many", true)) //nolint:bodyclose // read closes it
			a := r.read(resp, w.client, true)
			if got := resp.Header.Get("X-Dragoman-Upstream"); got != "" || a.status != http.StatusOK {
				r.t.Errorf("%s: %d, upstream %q before it was called", w, a.status, got)
			}
			if up, failed := resp.Trailer.Get("X-Dragoman-Upstream"), resp.Trailer.Get("X-Dragoman-Failed-Over"); up != w.provider+"/m" || failed != "gemini/bad" {
				r.t.Errorf("%s: trailer %v", w, resp.Trailer)
			}
		})
	}
}

func TestKeyHidesTheUpstream(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	withRig(t, "aliases: {many: \"ollama/bad, openai/m\"}\ngateway: {keys: {team: {key_env: TEAM_KEY, hide_upstream: true}}}\n", firstFails, func(r *rig) {
		for _, w := range pairs() {
			for _, stream := range []bool{false, true} {
				hr := r.requestFor(r.t.Context(), w.client, "many", stream)
				hr.Header.Set("Authorization", "Bearer "+teamKey)
				a := r.read(r.send(hr), w.client, stream) //nolint:bodyclose // read does
				if a.status != http.StatusOK || a.header.Get("X-Dragoman-Upstream") != "" || a.header.Get("X-Dragoman-Failed-Over") != "" {
					r.t.Errorf("%s: %d %v", w, a.status, a.header)
				}
			}
		}
	})
}

func TestNoUpstreamHeaderWithoutACall(t *testing.T) {
	w := newWorld(t, "")
	resp, err := http.Post(w.url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"nobody","messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("X-Dragoman-Upstream"); got != "" || resp.StatusCode != http.StatusNotFound {
		t.Errorf("%d %q", resp.StatusCode, got)
	}
}

// Requests that the gateway refuses itself reach no upstream.
func TestRefusedRequestNamesNoUpstream(t *testing.T) {
	t.Setenv("NO_SUCH_KEY", "")
	t.Setenv("TEST_KEY", "k")
	var called atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		called.Add(1)
		rw.WriteHeader(http.StatusInternalServerError)
	}))
	defer up.Close()
	providers := "providers:\n" +
		"  messages: {base_url: " + up.URL + ", type: anthropic, api_key_env: TEST_KEY, retries: 0, capabilities: {no_tools: true}}\n" +
		"  chat: {base_url: " + up.URL + ", type: compatible, retries: 0}\n" +
		"  keyless: {base_url: " + up.URL + ", type: compatible, api_key_env: NO_SUCH_KEY}\n"
	w := newWorldOf(t, up, "version: 1\n"+providers+"aliases: {messages: messages/x, chat: chat/x, keyless: keyless/x, after: \"chat/x, keyless/x\"}\n")
	for _, tc := range []struct {
		name, path, body string
		status           int
		upstream         string
	}{
		{"no messages", "/v1/chat/completions", `{"model":"messages","messages":[]}`, http.StatusBadRequest, ""},
		{"no messages, passed through", "/v1/chat/completions", `{"model":"keyless","messages":[]}`, http.StatusBadRequest, ""},
		{"input of a wrong type", "/v1/responses", `{"model":"chat","input":5}`, http.StatusBadRequest, ""},
		{"suffix", "/api/generate", `{"model":"chat","prompt":"x","suffix":"y"}`, http.StatusBadRequest, ""},
		{"tools", "/v1/chat/completions", `{"model":"messages","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`, http.StatusBadRequest, ""},
		{"no key", "/v1/messages", `{"model":"keyless","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, http.StatusInternalServerError, ""},
		{"no key, streamed", "/v1/messages", `{"model":"keyless","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, http.StatusInternalServerError, ""},
		{"no key for the last one", "/v1/messages", `{"model":"after","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, http.StatusInternalServerError, "chat/x"},
	} {
		called.Store(0)
		resp, err := http.Post(w.url+tc.path, "application/json", strings.NewReader(tc.body))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != tc.status || called.Load() > 0 != (tc.upstream != "") {
			t.Errorf("%s: %d %s, upstream called %d times", tc.name, resp.StatusCode, body, called.Load())
		}
		if up, failed := resp.Header.Get("X-Dragoman-Upstream"), resp.Header.Get("X-Dragoman-Failed-Over"); up != tc.upstream || failed != "" {
			t.Errorf("%s: upstream %q, failed over %q: %s", tc.name, up, failed, body)
		}
	}
}
