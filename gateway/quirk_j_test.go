package gateway_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/targets"
)

func TestQuirkJ6_UnknownFieldsPassWithinADialectAndAreReportedBetween(t *testing.T) {
	var mu sync.Mutex
	var sent string
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		sent = string(body)
		mu.Unlock()
		writeResponse(rw, r, false, textResponse(dialectOf(r), "hello"))
	}, func(r *rig) {
		ask := func(upstream string) (*reply, string) {
			a := r.post(pair{openaichat.Codec{}, upstream}, "/v1/chat/completions", fmt.Sprintf(`{"model":"%s/m","max_tokens":50,"messages":[{"role":"user","content":"hi"}],"context_management":{"edits":[]}}`, upstream))
			mu.Lock()
			defer mu.Unlock()
			return a, sent
		}
		if a, body := ask("openai"); !strings.Contains(body, `"context_management":{"edits":[]}`) || a.header.Get("X-Dragoman-Losses") != "" {
			r.t.Errorf("the same dialect: losses %q\n%s", a.header.Get("X-Dragoman-Losses"), body)
		}
		for _, upstream := range []string{"anthropic", "responses", "gemini", "ollama"} {
			a, body := ask(upstream)
			if strings.Contains(body, "context_management") || !strings.Contains(a.header.Get("X-Dragoman-Losses"), "dropped /context_management") || a.status != http.StatusOK {
				r.t.Errorf("%s: %d, losses %q\n%s", upstream, a.status, a.header.Get("X-Dragoman-Losses"), body)
			}
		}
	})
}

// A stream is left to the next upstream only while none of its content has reached the
// client. The next one is asked in its own dialect, from the canonical conversation.
func TestQuirkJ8_NoFallbackAfterContent(t *testing.T) {
	for before, want := range map[int]int32{1: 2, 3: 1} {
		withRig(t, "aliases: {best: \"anthropic/m, openai/n\"}\n", func(rw http.ResponseWriter, r *http.Request) {
			if dialectOf(r).Dialect() == dialectname.Anthropic {
				writeResponse(rw, r, true, failedStream(dialectOf(r), before, limited))
				return
			}
			writeResponse(rw, r, true, textStream(dialectOf(r), "hello"))
		}, func(r *rig) {
			a := r.read(r.send(r.requestFor(r.t.Context(), openaichat.Codec{}, "best", true)), openaichat.Codec{}, true) //nolint:bodyclose // read does
			resp, err := a.decode()
			if r.requests.Load() != want {
				r.t.Errorf("with %d events: %d upstreams were called, want %d", before, r.requests.Load(), want)
			}
			if fell := want == 2; fell && (err != nil || textOf(resp) != "hello") || !fell && (err == nil || strings.Contains(string(a.body), "hello")) {
				r.t.Errorf("with %d events: %v %s", before, err, a.body)
			}
		})
	}
}

// State that is pooled between requests does not leak from one to the next: alternating
// and concurrent requests get what each gets alone.
func TestQuirkJ10_RequestsDoNotShareState(t *testing.T) {
	w := newWorld(t, "")
	ask := func(codec dialect.Codec, i int, stream bool) (string, error) {
		c := &client{t: t, codec: codec, url: w.url}
		req := &dragoman.Request{Model: "anthropic/sim/echo", Stream: stream, MaxOutputTokens: new(int64(100)), Messages: []dragoman.Message{userSays(fmt.Sprintf("word%d", i))}}
		if i%2 == 0 {
			req.Tools = []dragoman.ToolSpec{weatherTool()}
		}
		resp, err := c.generate(req)
		if err != nil {
			return "", err
		}
		return textOf(resp), nil
	}
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			codec := clientDialects[i%len(clientDialects)]
			text, err := ask(codec, i, i%3 != 0)
			want := fmt.Sprintf("word%d", i)
			if err != nil || strings.TrimSpace(text) != want {
				t.Errorf("%s: %q, want %q (%v)", codec.Dialect(), text, want, err)
			}
		})
	}
	all.Wait()
}

// Encrypted reasoning goes back to the account that made it, and to no other.
func TestQuirkJ14_OpaqueStateSticksToItsAccount(t *testing.T) {
	made := targets.Target{Dialect: dialectname.OpenAIResponses, Provider: "openai", Scope: "account-a", Model: "gpt-5"}
	origin := made.Origin()
	req := &dragoman.Request{
		Model: made.Model, Tools: []dragoman.ToolSpec{weatherTool()},
		Messages: []dragoman.Message{
			userSays("Weather?"),
			{Role: dragoman.RoleAssistant, Origin: &origin, Parts: []dragoman.Part{&dragoman.Reasoning{ID: "rs_1", Encrypted: "ZW5jcnlwdGVk", Origin: &origin}}},
			{Role: dragoman.RoleAssistant, Origin: &origin, Parts: []dragoman.Part{&dragoman.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}}},
			{Role: dragoman.RoleTool, Parts: []dragoman.Part{&dragoman.ToolResult{CallID: "call_1", Name: "get_weather", Content: []dragoman.Part{&dragoman.Text{Text: "4 C"}}}}},
		},
	}
	for scope, wantKept := range map[string]bool{"account-a": true, "account-b": false} {
		target := made
		target.Scope = scope
		enc, err := openairesponses.Codec{}.EncodeRequest(req, dialect.EncodeOptions{Target: target})
		if err != nil || strings.Contains(string(enc.Body), "ZW5jcnlwdGVk") != wantKept || !strings.Contains(string(enc.Body), "Oslo") {
			t.Errorf("%s: %v\n%s", scope, err, enc.Body)
		}
	}
}

// Prompt caches need the same bytes for the same conversation: request after request, and
// after a restart.
func TestQuirkJ15_SameConversationIsSameBytes(t *testing.T) {
	for _, upstream := range []string{"chat", "responses", "anthropic", "gemini", "ollama"} {
		var mu sync.Mutex
		seen := map[string]int{}
		for range 2 { // another gateway is another process
			withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				seen[string(body)]++
				mu.Unlock()
				writeResponse(rw, r, false, textResponse(dialectOf(r), "hello"))
			}, func(r *rig) {
				body := strings.Replace(chatRequest, `"model":"m"`, `"max_tokens":500,"model":"`+upstream+`/m"`, 1)
				for range 25 {
					if a := r.post(pair{openaichat.Codec{}, upstream}, "/v1/chat/completions", body); a.status != http.StatusOK {
						r.t.Fatalf("%s: %d %s", upstream, a.status, a.body)
					}
				}
			})
		}
		if len(seen) != 1 {
			t.Errorf("%s: %d different bodies: %v", upstream, len(seen), seen)
		}
	}
}

func TestQuirkJ16_ClientHeadersStayAndCompressedErrorsAreRead(t *testing.T) {
	private := map[string]string{"Authorization": "Bearer client-secret", "X-Api-Key": "client-secret", "Cookie": "client-secret", "X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1", "Te": "trailers", "Proxy-Authorization": "client-secret"}
	var mu sync.Mutex
	var came []http.Header
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		mu.Lock()
		came = append(came, r.Header.Clone())
		mu.Unlock()
		rw.Header().Set("content-type", "application/json")
		rw.Header().Set("content-encoding", "gzip")
		rw.WriteHeader(http.StatusBadRequest)
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = io.WriteString(z, errorBody(dialectOf(r), &dragoman.APIError{Class: dragoman.ErrorBadRequest, Status: 400, Message: "temperature is too high"}))
		_ = z.Close()
		_, _ = rw.Write(packed.Bytes())
	}, func(r *rig) {
		for _, w := range pairs() {
			hr := r.request(r.t.Context(), w, false)
			for name, value := range private {
				hr.Header.Set(name, value)
			}
			a := r.read(r.send(hr), w.client, false) //nolint:bodyclose // read does
			if e := a.apiError(r.t); !strings.Contains(e.Message, "temperature is too high") {
				r.t.Errorf("%s: %d %q", w, a.status, a.body)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, h := range came {
			for name, value := range private {
				if h.Get(name) == value {
					r.t.Errorf("the upstream gets %s: %s", name, value)
				}
			}
		}
	})
}

// The log contains no content and no credentials, and invalid text does not lose a line.
func TestQuirkJ18_TheLogHasNoContentAndLosesNoLine(t *testing.T) {
	t.Setenv("TEAM_KEY", "team-secret-0123456789")
	w := newWorld(t, "gateway:\n  keys: {team: {key_env: TEAM_KEY}}\n  routes: {\"*\": {to: \"sim/echo\"}}\n")
	for i, model := range []string{"echo", "ec\\u0000ho\\ud800", strings.Repeat("m", 3000)} {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+"/v1/chat/completions", strings.NewReader(`{"model":"`+model+`","messages":[{"role":"user","content":"very-private-words"}]}`))
		req.Header.Set("Authorization", "Bearer team-secret-0123456789")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		w.wantLog(t, `"path":"/v1/chat/completions"`, `"key":"team"`)
		if n := strings.Count(w.logged(), "\n"); n != i+1 {
			t.Errorf("%d lines for %d requests: %s", n, i+1, w.logged())
		}
	}
	for _, secret := range []string{"very-private-words", "team-secret"} {
		if strings.Contains(w.logged(), secret) {
			t.Errorf("the log has %q: %s", secret, w.logged())
		}
	}
}

// The request depends on the type and the capabilities of the provider, not on its name.
func TestQuirkJ19_CapabilitiesDecideAndNotNames(t *testing.T) {
	const named = `  anthropic-cloud: {type: compatible, base_url: "http://127.0.0.1:1/v1", retries: 0}
  gemini-proxy: {type: compatible, base_url: "http://127.0.0.1:1/v1", retries: 0}
  plain: {type: compatible, base_url: "http://127.0.0.1:1/v1", retries: 0}
  older: {type: compatible, base_url: "http://127.0.0.1:1/v1", retries: 0, capabilities: {legacy_max_tokens: true}}
  newer: {type: compatible, base_url: "http://127.0.0.1:1/v1", retries: 0, capabilities: {legacy_max_tokens: false}}
`
	var mu sync.Mutex
	var sent string
	withRig(t, named, func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		sent = string(body)
		mu.Unlock()
		writeResponse(rw, r, false, textResponse(dialectOf(r), "hello"))
	}, func(r *rig) {
		ask := func(provider string) string {
			a := r.roundTrip(pair{anthropic.Codec{}, provider}, false)
			if a.status != http.StatusOK {
				r.t.Fatalf("%s: %d %s", provider, a.status, a.body)
			}
			mu.Lock()
			defer mu.Unlock()
			return sent
		}
		want := ask("plain")
		for _, name := range []string{"anthropic-cloud", "gemini-proxy"} {
			if got := ask(name); got != want {
				r.t.Errorf("%s is sent\n%s\nwant\n%s", name, got, want)
			}
		}
		if older, newer := ask("older"), ask("newer"); !strings.Contains(older, `"max_tokens":500`) || !strings.Contains(newer, `"max_completion_tokens":500`) {
			r.t.Errorf("older %s\nnewer %s", older, newer)
		}
	})
}
