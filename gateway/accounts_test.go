package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// teamKey is the secret of the key of a rig whose config has one.
const teamKey = "a-secret-of-the-team"

// requestAsTeam sends a request with the team's key.
func (r *rig) requestAsTeam(w pair, stream bool) *reply {
	r.t.Helper()
	hr := r.request(r.t.Context(), w, stream)
	hr.Header.Set("Authorization", "Bearer "+teamKey)
	return r.read(r.send(hr), w.client, stream) //nolint:bodyclose // read does
}

func TestG3_EndedRequestFreesItsSlot(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	for i, f := range upstreamFaults {
		withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY, parallel: 1}}}\n", f.serve, func(r *rig) {
			w, stream := pairs()[i%len(pairs())], f.streams || i%2 == 0
			for range 2 {
				if a := r.requestAsTeam(w, stream); strings.Contains(a.apiError(r.t).Message, "at once") {
					r.t.Errorf("%s: %d %s", f.name, a.status, a.body)
				}
			}
			if n := r.requests.Load(); n != 2 {
				r.t.Errorf("%s: %d upstream requests", f.name, n)
			}
		})
	}
}

func TestG3_RequestAboveParallelLimitIsRefused(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY, parallel: 1}}}\n", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(r *rig) {
		w := pairs()[0]
		ctx, leave := context.WithCancel(r.t.Context())
		left := make(chan struct{})
		hr := r.request(ctx, w, false)
		hr.Header.Set("Authorization", "Bearer "+teamKey)
		go func() {
			defer close(left)
			if resp, err := r.clients.Do(hr); err == nil {
				_ = resp.Body.Close()
			}
		}()
		synctest.Wait()
		if a := r.requestAsTeam(w, false); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
			r.t.Errorf("%d %s", a.status, a.body)
		}
		leave()
		<-left
	})
}

func TestG3_BrokenStreamIsChargedForWhatArrived(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	for _, w := range []pair{{anthropic.Codec{}, "anthropic"}, {openaichat.Codec{}, "anthropic"}} {
		withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 100, per: day}}}}\n", func(rw http.ResponseWriter, r *http.Request) {
			var all []string
			for i := range 90 {
				all = append(all, fmt.Sprint("word", i))
			}
			begin, deltas, _ := wordStream(all...) // the upstream reports 7 input tokens and 1 output token
			writeResponse(rw, r, true, begin+strings.Join(deltas, ""))
			panic(http.ErrAbortHandler)
		}, func(r *rig) {
			for i := range 2 {
				a := r.requestAsTeam(w, true)
				if refused := strings.Contains(a.apiError(r.t).Message, "budget"); refused {
					r.t.Errorf("%s: request %d is refused: %s", w, i, a.body)
				}
			}
			if a := r.requestAsTeam(w, true); !strings.Contains(a.apiError(r.t).Message, "budget") {
				r.t.Errorf("%s: it was free: %s", w, a.body)
			}
		})
	}
}

func TestG3_CountingTokensNeedsAnAllowedModel(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	w := newWorld(t, "gateway: {keys: {team: {key_env: TEAM_KEY, models: [cheap]}}, routes: {cheap: {to: sim/echo}, dear: {to: sim/echo}}}\n")
	for model, want := range map[string]int{"cheap": 200, "dear": 403, "none": 403} {
		for _, path := range []string{"/v1/messages/count_tokens", "/v1/messages"} {
			body := `{"model":"` + model + `","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
			if status, text := get(t, http.MethodPost, w.url+path, body, "authorization", "Bearer "+teamKey, "anthropic-version", "2023-06-01"); status != want {
				t.Errorf("%s %s: %d %s", path, model, status, text)
			}
		}
	}
}

func TestQuirkJ1_UnstreamedResponseHasNoHeartbeats(t *testing.T) {
	for _, w := range pairs() {
		withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
			sleepSeconds(40)
			writeResponse(rw, r, false, textResponse(dialectOf(r), "hello"))
		}, func(r *rig) {
			a := r.roundTrip(w, false)
			if resp, err := a.decode(); err != nil || textOf(resp) != "hello" || a.check() != nil {
				r.t.Errorf("%s: %v %v: %s", w, err, a.check(), a.body)
			}
		})
	}
}

func TestG6_UpstreamErrorIsInTheRequestsLogLine(t *testing.T) {
	for _, status := range []int{500, 400, 429} {
		withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
			writeError(rw, r, dragoman.APIError{Status: status, Message: strings.Repeat("why it fails ", 1000)})
		}, func(r *rig) {
			for _, w := range pairs() {
				r.roundTrip(w, false)
			}
			log := r.logLines()
			if n := strings.Count(log, "\n"); n != len(pairs()) || n != strings.Count(log, `"msg":"request"`) {
				r.t.Errorf("%d: %d lines: %s", status, n, log)
			}
			for line := range strings.Lines(log) {
				if len(line) > 1500 || !strings.Contains(line, `"error"`) || !strings.Contains(line, "why it fails why it fails") {
					r.t.Errorf("%d: %s", status, line)
				}
			}
		})
	}
}

func TestG2_RequestIDIsFromTheGateway(t *testing.T) {
	for _, status := range []int{200, 400, 429, 500} {
		withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"request-id", "x-request-id"} {
				rw.Header().Set(name, "req_theirs")
			}
			rw.Header().Set("x-upstream-request-id", "req_of_another")
			if status != 200 {
				writeError(rw, r, dragoman.APIError{Status: status, Message: "no"})
				return
			}
			writeResponse(rw, r, false, textResponse(dialectOf(r), "hello"))
		}, func(r *rig) {
			for _, w := range pairs() {
				a := r.roundTrip(w, false)
				name := "X-Request-Id"
				if w.client.Dialect() == dialectname.Anthropic {
					name = "Request-Id"
				}
				id := a.header.Get(name)
				if !strings.HasPrefix(id, "req_") || !strings.Contains(r.logLines(), `"id":"`+id+`"`) || !w.passes(false) && strings.Contains(fmt.Sprint(a.header, string(a.body)), "req_theirs") {
					r.t.Errorf("%d %s: %v %s", status, w, a.header, a.body)
				}
				if theirs := a.header.Get("X-Upstream-Request-Id"); w.passes(false) && status == 200 && theirs != "req_theirs" {
					r.t.Errorf("%s: the server's own is %q", w, theirs)
				}
			}
		})
	}
}

func TestG6_DecodingLossesAreReported(t *testing.T) {
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r), map[bool]string{true: textStream(dialectOf(r), "hello"), false: textResponse(dialectOf(r), "hello")}[isStream(r)])
	}, func(r *rig) {
		for i, stream := range []bool{false, true} {
			w := pair{openaichat.Codec{}, "anthropic"}
			hr := r.request(r.t.Context(), w, stream)
			body := fmt.Sprintf(`{"model":"anthropic/m","stream":%v,"temperature":0.1,"temperature":0.2,"frequency_penalty":0.5,"messages":[{"role":"user","content":"hi"}]}`, stream)
			hr.Body, hr.ContentLength = io.NopCloser(strings.NewReader(body)), -1
			a := r.read(r.send(hr), w.client, stream) //nolint:bodyclose // read does
			losses := a.header.Get("X-Dragoman-Losses")
			if !strings.HasPrefix(losses, "2; ") || !strings.Contains(losses, "/temperature") || !strings.Contains(losses, "frequency_penalty") || strings.Count(r.logLines(), `"losses":"`+losses+`"`) != i+1 {
				r.t.Errorf("%q: %s, %s", losses, a.body, r.logLines())
			}
			if log := r.logLines(); !strings.Contains(log, "/temperature") || strings.Contains(r.metrics(""), "dragoman_losses_total{dialect=\"openai.chat_completions\",route=\"anthropic/*\",upstream=\"anthropic/*\",key=\"\",status=\"200\"} 0") {
				r.t.Errorf("%s %s", log, r.metrics(""))
			}
		}
	})
}

func TestG6_ClientNamesAreTruncatedInTheLog(t *testing.T) {
	withRig(t, "", func(http.ResponseWriter, *http.Request) {}, func(r *rig) {
		for _, w := range pairs() {
			a := r.read(r.send(r.requestFor(r.t.Context(), w.client, "nobody/"+strings.Repeat("x", 5000), false)), w.client, false) //nolint:bodyclose // read does
			if a.status != http.StatusNotFound || len(a.body) > 1000 || a.check() != nil {
				r.t.Errorf("%s: %v: %d %s", w, a.check(), a.status, a.body)
			}
		}
		for line := range strings.Lines(r.logLines()) {
			if len(line) > 1500 {
				r.t.Errorf("%d bytes: %s", len(line), line)
			}
		}
	})
}

func TestG2_RequestTooLargeForTheUpstreamIs413(t *testing.T) {
	const small = "  small: {type: openai-chat, base_url: \"http://127.0.0.1:1/v1\", api_key_env: SIM_KEY, retries: 0, max_request_bytes: 50}\n"
	withRig(t, small, func(http.ResponseWriter, *http.Request) {}, func(r *rig) {
		for _, w := range pairs() {
			for _, stream := range []bool{false, true} {
				a := r.roundTrip(pair{w.client, "small"}, stream)
				if a.status != http.StatusRequestEntityTooLarge || a.check() != nil || r.requests.Load() != 0 {
					r.t.Errorf("%s: %v: %d %s", w, a.check(), a.status, a.body)
				}
			}
		}
	})
}

func TestG6_LossesOfFailedModelsAreNotReported(t *testing.T) {
	withRig(t, "aliases: {best: \"anthropic/m, openai/n\"}\n", func(rw http.ResponseWriter, r *http.Request) {
		if dialectOf(r).Dialect() == dialectname.Anthropic {
			writeResponse(rw, r, true, failedStream(dialectOf(r), 1, limited))
			return
		}
		writeResponse(rw, r, true, textStream(dialectOf(r), "hello"))
	}, func(r *rig) {
		w := pair{openaichat.Codec{}, "best"}
		hr := r.request(r.t.Context(), w, true)
		hr.Body, hr.ContentLength = io.NopCloser(strings.NewReader(`{"model":"best","stream":true,"frequency_penalty":0.5,"messages":[{"role":"user","content":"hi"}]}`)), -1
		a := r.read(r.send(hr), w.client, true) //nolint:bodyclose // read does
		if resp, err := a.decode(); err != nil || textOf(resp) != "hello" || r.requests.Load() != 2 {
			r.t.Errorf("%v: %s", err, a.body)
		}
		if log := r.logLines(); a.header.Get("X-Dragoman-Losses") != "" || strings.Contains(log, `"losses"`) || !strings.Contains(log, `"transparent":true`) {
			r.t.Errorf("%v %s", a.header, log)
		}
	})
}

func TestG2_MissingProviderKeyIsABadGateway(t *testing.T) {
	const keyless = "  keyless: {type: openai-chat, base_url: \"http://127.0.0.1:1/v1\", api_key_env: NO_SUCH_KEY, retries: 0}\n"
	withRig(t, keyless, func(http.ResponseWriter, *http.Request) {}, func(r *rig) {
		for _, w := range pairs() {
			a := r.roundTrip(pair{w.client, "keyless"}, true)
			if e := a.apiError(r.t); !isStatus(a.status, http.StatusBadGateway) || !strings.Contains(e.Message, "no working configuration") || strings.Contains(string(a.body), "NO_SUCH_KEY") || a.check() != nil {
				r.t.Errorf("%s: %v: %d %s", w, a.check(), a.status, a.body)
			}
		}
		if log := r.logLines(); r.requests.Load() != 0 || strings.Count(log, "NO_SUCH_KEY") < len(pairs()) {
			r.t.Errorf("the log does not say what is missing: %s", log)
		}
	})
}
