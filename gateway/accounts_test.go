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

// askAs asks with the team's key.
func (r *rig) askAs(w way, stream bool) *reply {
	r.t.Helper()
	hr := r.request(r.t.Context(), w, stream)
	hr.Header.Set("Authorization", "Bearer "+teamKey)
	return r.read(r.send(hr), w.client, stream) //nolint:bodyclose // read does
}

func TestG3_ARequestThatIsOverIsNotUnderWay(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	for i, f := range upstreamFaults {
		rigged(t, "gateway: {keys: {team: {key_env: TEAM_KEY, parallel: 1}}}\n", f.serve, func(r *rig) {
			w, stream := ways()[i%len(ways())], f.streams || i%2 == 0
			for range 2 {
				if a := r.askAs(w, stream); strings.Contains(a.apiError(r.t).Message, "at once") {
					r.t.Errorf("%s: %d %s", f.name, a.status, a.body)
				}
			}
			if n := r.asked.Load(); n != 2 {
				r.t.Errorf("%s: asked %d times", f.name, n)
			}
		})
	}
}

func TestG3_OneMoreThanMayBeUnderWayIsRefused(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	rigged(t, "gateway: {keys: {team: {key_env: TEAM_KEY, parallel: 1}}}\n", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(r *rig) {
		w := ways()[0]
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
		if a := r.askAs(w, false); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
			r.t.Errorf("%d %s", a.status, a.body)
		}
		leave()
		<-left
	})
}

func TestG3_WhatCameOfAStreamThatBrokeIsPaidForWhateverTheServerCountedByThen(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	for _, w := range []way{{anthropic.Codec{}, "anthropic"}, {openaichat.Codec{}, "anthropic"}} {
		rigged(t, "gateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 100, per: day}}}}\n", func(rw http.ResponseWriter, r *http.Request) {
			var all []string
			for i := range 90 {
				all = append(all, fmt.Sprint("word", i))
			}
			begin, deltas, _ := words(all...) // of which it has counted 7 and 1
			answers(rw, r, true, begin+strings.Join(deltas, ""))
			panic(http.ErrAbortHandler)
		}, func(r *rig) {
			for i := range 2 {
				a := r.askAs(w, true)
				if refused := strings.Contains(a.apiError(r.t).Message, "budget"); refused {
					r.t.Errorf("%s: request %d is refused: %s", w, i, a.body)
				}
			}
			if a := r.askAs(w, true); !strings.Contains(a.apiError(r.t).Message, "budget") {
				r.t.Errorf("%s: it was for nothing: %s", w, a.body)
			}
		})
	}
}

func TestG3_AKeyCountsTheTokensOfItsModelsOnly(t *testing.T) {
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

func TestQuirkJ1_AWholeAnswerHasNoHeartbeats(t *testing.T) {
	for _, w := range ways() {
		rigged(t, "", func(rw http.ResponseWriter, r *http.Request) {
			pause(40)
			answers(rw, r, false, wholeOf(spoken(r), "hello"))
		}, func(r *rig) {
			a := r.ask(w, false)
			if resp, err := a.answer(); err != nil || textOf(resp) != "hello" || a.check() != nil {
				r.t.Errorf("%s: %v %v: %s", w, err, a.check(), a.body)
			}
		})
	}
}

func TestG6_WhyAServerFailedIsInTheOneLineOfItsRequest(t *testing.T) {
	for _, status := range []int{500, 400, 429} {
		rigged(t, "", func(rw http.ResponseWriter, r *http.Request) {
			refuses(rw, r, dragoman.APIError{Status: status, Message: strings.Repeat("why it fails ", 1000)})
		}, func(r *rig) {
			for _, w := range ways() {
				r.ask(w, false)
			}
			log := r.line()
			if n := strings.Count(log, "\n"); n != len(ways()) || n != strings.Count(log, `"msg":"request"`) {
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
		rigged(t, "", func(rw http.ResponseWriter, r *http.Request) {
			for _, name := range []string{"request-id", "x-request-id"} {
				rw.Header().Set(name, "req_theirs")
			}
			rw.Header().Set("x-upstream-request-id", "req_of_another")
			if status != 200 {
				refuses(rw, r, dragoman.APIError{Status: status, Message: "no"})
				return
			}
			answers(rw, r, false, wholeOf(spoken(r), "hello"))
		}, func(r *rig) {
			for _, w := range ways() {
				a := r.ask(w, false)
				name := "X-Request-Id"
				if w.client.Dialect() == dialectname.Anthropic {
					name = "Request-Id"
				}
				id := a.header.Get(name)
				if !strings.HasPrefix(id, "req_") || !strings.Contains(r.line(), `"id":"`+id+`"`) || !w.passes(false) && strings.Contains(fmt.Sprint(a.header, string(a.body)), "req_theirs") {
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
	rigged(t, "", func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r), map[bool]string{true: streamOf(spoken(r), "hello"), false: wholeOf(spoken(r), "hello")}[isStream(r)])
	}, func(r *rig) {
		for i, stream := range []bool{false, true} {
			w := way{openaichat.Codec{}, "anthropic"}
			hr := r.request(r.t.Context(), w, stream)
			body := fmt.Sprintf(`{"model":"anthropic/m","stream":%v,"temperature":0.1,"temperature":0.2,"frequency_penalty":0.5,"messages":[{"role":"user","content":"hi"}]}`, stream)
			hr.Body, hr.ContentLength = io.NopCloser(strings.NewReader(body)), -1
			a := r.read(r.send(hr), w.client, stream) //nolint:bodyclose // read does
			losses := a.header.Get("X-Dragoman-Losses")
			if !strings.HasPrefix(losses, "2; ") || !strings.Contains(losses, "/temperature") || !strings.Contains(losses, "frequency_penalty") || strings.Count(r.line(), `"losses":"`+losses+`"`) != i+1 {
				r.t.Errorf("%q: %s, %s", losses, a.body, r.line())
			}
			if log := r.line(); !strings.Contains(log, "/temperature") || strings.Contains(r.metrics(""), "dragoman_losses_total{dialect=\"openai.chat_completions\",route=\"anthropic/*\",upstream=\"anthropic/*\",key=\"\",status=\"200\"} 0") {
				r.t.Errorf("%s %s", log, r.metrics(""))
			}
		}
	})
}

func TestG6_NamesThatClientsMakeUpDoNotFillTheLog(t *testing.T) {
	rigged(t, "", func(http.ResponseWriter, *http.Request) {}, func(r *rig) {
		for _, w := range ways() {
			a := r.read(r.send(r.requestFor(r.t.Context(), w.client, "nobody/"+strings.Repeat("x", 5000), false)), w.client, false) //nolint:bodyclose // read does
			if a.status != http.StatusNotFound || len(a.body) > 1000 || a.check() != nil {
				r.t.Errorf("%s: %v: %d %s", w, a.check(), a.status, a.body)
			}
		}
		for line := range strings.Lines(r.line()) {
			if len(line) > 1500 {
				r.t.Errorf("%d bytes: %s", len(line), line)
			}
		}
	})
}

func TestG2_ARequestThatIsTooLargeForItsServerIsRefusedAsSuch(t *testing.T) {
	const small = "  small: {type: openai-chat, base_url: \"http://127.0.0.1:1/v1\", api_key_env: SIM_KEY, retries: 0, max_request_bytes: 50}\n"
	rigged(t, small, func(http.ResponseWriter, *http.Request) {}, func(r *rig) {
		for _, w := range ways() {
			for _, stream := range []bool{false, true} {
				a := r.ask(way{w.client, "small"}, stream)
				if a.status != http.StatusRequestEntityTooLarge || a.check() != nil || r.asked.Load() != 0 {
					r.t.Errorf("%s: %v: %d %s", w, a.check(), a.status, a.body)
				}
			}
		}
	})
}

func TestG6_WhatAModelLostThatDidNotAnswerIsNoLossOfTheAnswer(t *testing.T) {
	rigged(t, "aliases: {best: \"anthropic/m, openai/n\"}\n", func(rw http.ResponseWriter, r *http.Request) {
		if spoken(r).Dialect() == dialectname.Anthropic {
			answers(rw, r, true, failedStream(spoken(r), 1, limited))
			return
		}
		answers(rw, r, true, streamOf(spoken(r), "hello"))
	}, func(r *rig) {
		w := way{openaichat.Codec{}, "best"}
		hr := r.request(r.t.Context(), w, true)
		hr.Body, hr.ContentLength = io.NopCloser(strings.NewReader(`{"model":"best","stream":true,"frequency_penalty":0.5,"messages":[{"role":"user","content":"hi"}]}`)), -1
		a := r.read(r.send(hr), w.client, true) //nolint:bodyclose // read does
		if resp, err := a.answer(); err != nil || textOf(resp) != "hello" || r.asked.Load() != 2 {
			r.t.Errorf("%v: %s", err, a.body)
		}
		if log := r.line(); a.header.Get("X-Dragoman-Losses") != "" || strings.Contains(log, `"losses"`) || !strings.Contains(log, `"transparent":true`) {
			r.t.Errorf("%v %s", a.header, log)
		}
	})
}

func TestG2_AKeyThatTheGatewayLacksIsNoFaultOfTheClient(t *testing.T) {
	const keyless = "  keyless: {type: openai-chat, base_url: \"http://127.0.0.1:1/v1\", api_key_env: NO_SUCH_KEY, retries: 0}\n"
	rigged(t, keyless, func(http.ResponseWriter, *http.Request) {}, func(r *rig) {
		for _, w := range ways() {
			a := r.ask(way{w.client, "keyless"}, true)
			if e := a.apiError(r.t); !isStatus(a.status, http.StatusBadGateway) || !strings.Contains(e.Message, "no working configuration") || strings.Contains(string(a.body), "NO_SUCH_KEY") || a.check() != nil {
				r.t.Errorf("%s: %v: %d %s", w, a.check(), a.status, a.body)
			}
		}
		if log := r.line(); r.asked.Load() != 0 || strings.Count(log, "NO_SUCH_KEY") < len(ways()) {
			r.t.Errorf("the log does not say what is missing: %s", log)
		}
	})
}
