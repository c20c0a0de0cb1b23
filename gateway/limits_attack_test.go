package gateway_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// Clients that occupy slots, buffers or budget for too long.

// slowRequest is a request whose body stops after some bytes.
type slowRequest struct {
	net.Conn
	// response delivers the response.
	response chan *http.Response
}

// startSlowRequest sends the headers of a request whose body has length bytes, and a part of the
// body.
func (r *rig) startSlowRequest(path, secret string, length int, sent string) *slowRequest {
	r.t.Helper()
	conn, err := r.front.dial(r.t.Context(), "", "")
	if err != nil {
		r.t.Fatal(err)
	}
	s := &slowRequest{Conn: conn, response: make(chan *http.Response, 1)}
	go func() {
		_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n%s", path, secret, length, sent)
	}()
	go func() {
		if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil { //nolint:bodyclose // its reader does
			s.response <- resp
		}
		close(s.response)
	}()
	synctest.Wait()
	return s
}

// status returns the status of the response: 0 if there is no response yet, -1 if the
// connection closed without one.
func (s *slowRequest) status() int {
	select {
	case resp := <-s.response:
		if resp == nil {
			return -1
		}
		return resp.StatusCode
	default:
		return 0
	}
}

func hello(rw http.ResponseWriter, r *http.Request) {
	if isStream(r) {
		writeResponse(rw, r, true, textStream(dialectOf(r), "hello"))
		return
	}
	writeResponse(rw, r, false, textResponse(dialectOf(r), "hello"))
}

func TestG3_SlowBodyOccupiesASlot(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY, parallel: 1}}, limits: {body_time: 30s}}\n", hello, func(r *rig) {
		t := r.t
		for _, w := range pairs() {
			for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/responses", "/api/chat", "/v1beta/models/openai/m:generateContent", "/v1/messages/count_tokens"} {
				s := r.startSlowRequest(path, teamKey, 1000, "{")
				a := r.requestAsTeam(w, false)
				if a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" || !strings.Contains(a.apiError(t).Message, "1 request running") {
					t.Errorf("%s behind %s: %d %s", w, path, a.status, a.body)
				}
				sleepSeconds(31) // the time for the body is over
				synctest.Wait()
				if got := s.status(); got != http.StatusRequestTimeout && got != http.StatusGatewayTimeout && got != http.StatusServiceUnavailable {
					t.Errorf("%s: %d", path, got)
				}
				if a := r.requestAsTeam(w, false); a.status != http.StatusOK {
					t.Errorf("%s: the slot is not free: %d %s", path, a.status, a.body)
				}
				_ = s.Close()
			}
		}
		if n := r.requests.Load(); int(n) != len(pairs())*6 {
			t.Errorf("%d upstream requests", n)
		}
	})
}

func TestG3_DisconnectWithinTheBodyFreesSlotAndBytes(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY, parallel: 1}}, limits: {body_bytes: 1000, buffered_bytes_per_key: 1100}}\n", hello, func(r *rig) {
		for range 50 {
			s := r.startSlowRequest("/v1/chat/completions", teamKey, 900, strings.Repeat(" ", 800))
			_ = s.Close()
			synctest.Wait()
		}
		if a := r.requestAsTeam(pairs()[0], false); a.status != http.StatusOK {
			r.t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func TestG3_BufferedBytesAreBounded(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	t.Setenv("OTHER_KEY", "a-secret-of-the-other-team")
	const mb = 1 << 20
	more := fmt.Sprintf("gateway: {keys: {team: {key_env: TEAM_KEY}, other: {key_env: OTHER_KEY}}, limits: {body_bytes: %d, buffered_bytes_per_key: %d, buffered_bytes: %d}}\n", mb, 3*mb+mb/2, 4*mb+mb/2)
	withRig(t, more, hello, func(r *rig) {
		t := r.t
		half := strings.Repeat(" ", mb*3/4) // the limit is one megabyte
		var all []*slowRequest
		count := func(statuses ...int) (n int) {
			for _, s := range all {
				got := s.status()
				for _, want := range statuses {
					if got == want {
						n++
					}
				}
			}
			return n
		}
		defer func() {
			for _, s := range all {
				_ = s.Close()
			}
		}()
		for range 20 {
			all = append(all, r.startSlowRequest("/v1/chat/completions", teamKey, mb, half))
		}
		if n := count(http.StatusTooManyRequests); n != 17 {
			t.Errorf("%d of 20 slow bodies of a key are refused, want 17", n)
		}
		for _, w := range []pair{{openaichat.Codec{}, "openai"}, {anthropic.Codec{}, "openai"}} { // a small request of the same key succeeds
			if a := r.requestAsTeam(w, false); a.status != http.StatusOK {
				t.Errorf("%s: %d %s", w, a.status, a.body)
			}
		}
		first := all
		all = nil
		for range 20 {
			all = append(all, r.startSlowRequest("/v1/messages", "a-secret-of-the-other-team", mb, half))
		}
		if n := count(529, http.StatusServiceUnavailable); n != 19 { // another key, within the rest of the total
			t.Errorf("%d of 20 slow bodies of another key are refused, want 19", n)
		}
		all = append(all, first...)
		sleepSeconds(61)
		synctest.Wait()
		for range 2 {
			big := r.startSlowRequest("/v1/chat/completions", teamKey, mb, half)
			if got := big.status(); got != 0 {
				t.Errorf("the bytes are not free: %d", got)
			}
			_ = big.Close()
			synctest.Wait()
		}
	})
}

// The bodies of auxiliary requests are read as well.
func TestG3_AuxiliaryRequestBodiesAreBounded(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY}}, limits: {body_bytes: 1000, buffered_bytes_per_key: 65536}}\n", hello, func(r *rig) {
		refused := 0
		for range 20 {
			s := r.startSlowRequest("/api/show", teamKey, 1<<20, strings.Repeat(" ", 16<<10))
			defer s.Close()
			if s.status() == http.StatusTooManyRequests {
				refused++
			}
		}
		if refused < 16 {
			r.t.Errorf("%d of 20 are refused", refused)
		}
	})
}

// Without a valid key the gateway does not wait for the body, and closes the connection.
func TestG3_RefusedRequestReleasesItsConnection(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY}}, limits: {body_time: 20s}}\n", hello, func(r *rig) {
		for _, path := range []string{"/v1/messages", "/nowhere", "/api/show", "/v1/responses/resp_1/cancel"} {
			s := r.startSlowRequest(path, "not-a-key-of-this-gateway", 1000, "{")
			sleepSeconds(21)
			synctest.Wait()
			if got := s.status(); got != http.StatusUnauthorized && got != http.StatusNotFound {
				r.t.Errorf("%s: %d", path, got)
			}
			sleepSeconds(1)
			if _, err := s.Write([]byte("x")); err == nil {
				r.t.Errorf("%s: the connection is open", path)
			}
			_ = s.Close()
		}
	})
}

func TestG3_ConcurrentRequestsExceedABudgetByLessThanOneEstimate(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	for _, stream := range []bool{false, true} {
		for _, w := range []pair{{openaichat.Codec{}, "openai"}, {anthropic.Codec{}, "openai"}, {openaichat.Codec{}, "anthropic"}} {
			const budget, used = 4000, 540 // each request has up to 500 output tokens and a small prompt
			var spent atomic.Int64
			more := fmt.Sprintf("gateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: %d, per: day}}}}\n", budget)
			withRig(t, more, func(rw http.ResponseWriter, r *http.Request) {
				spent.Add(used)
				sleepSeconds(5) // so that all are in progress together
				writeResponse(rw, r, stream, usageResponse(dialectOf(r).Dialect(), stream, used))
			}, func(r *rig) {
				t := r.t
				var wg sync.WaitGroup
				statuses := map[int]int{}
				var mu sync.Mutex
				for range 40 {
					wg.Go(func() {
						a := r.requestAsTeam(w, stream)
						mu.Lock()
						defer mu.Unlock()
						statuses[a.status]++
						if a.status != http.StatusOK && (a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "1" || !strings.Contains(string(a.body), "running requests")) {
							t.Errorf("%s: %d %v %s", w, a.status, a.header, a.body)
						}
					})
				}
				wg.Wait()
				first := spent.Load()
				if n := first / used; n < 4 || first > budget+used {
					t.Errorf("%s: %d tokens of a budget of %d: %v", w, first, budget, statuses)
				}
				for range 40 { // sequential requests can use up the rest
					if a := r.requestAsTeam(w, stream); a.status != http.StatusOK {
						break
					}
				}
				if n := spent.Load(); n < budget || n >= budget+used {
					t.Errorf("%s: %d tokens of a budget of %d in the end", w, n, budget)
				}
			})
		}
	}
}

// usageResponse returns a response that reports n tokens.
func usageResponse(d dragoman.Dialect, stream bool, n int) string {
	chat := fmt.Sprintf(`"usage":{"prompt_tokens":%d,"completion_tokens":500,"total_tokens":%d}}`, n-500, n)
	switch {
	case d == dialectname.Anthropic && stream:
		return strings.Replace(strings.Replace(anthropicAnswer, `"input_tokens":7`, fmt.Sprintf(`"input_tokens":%d`, n-500), 1), `"output_tokens":3`, `"output_tokens":500`, 1)
	case d == dialectname.Anthropic:
		return fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":%d,"output_tokens":500}}`, n-500)
	case stream:
		const chunk = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[`
		return chunk + `{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}` + "\n\n" +
			chunk + `{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + chunk + `],` + chat + "\n\ndata: [DONE]\n\n"
	default:
		return `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi","refusal":null},"logprobs":null,"finish_reason":"stop"}],` + chat
	}
}

func TestG3_ReservationEndsWithItsRequest(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	for i, f := range upstreamFaults {
		withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 600, per: day}}}}\n", f.serve, func(r *rig) {
			w, stream := pairs()[i%len(pairs())], f.streams || i%2 == 0
			for range 2 { // each reserves more than 500 tokens
				if a := r.requestAsTeam(w, stream); strings.Contains(a.apiError(r.t).Message, "budget") {
					r.t.Errorf("%s: %d %s", f.name, a.status, a.body)
				}
			}
		})
	}
	// A client that disconnects, and a request whose first model fails.
	withRig(t, "aliases: {both: \"ollama/m, openai/m\"}\ngateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 1000, per: day}}}}\n", func(rw http.ResponseWriter, r *http.Request) {
		if dialectOf(r).Dialect() == dialectname.Ollama {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		sleepSeconds(10)
		hello(rw, r)
	}, func(r *rig) {
		for range 3 {
			ctx := r.requestFor(r.t.Context(), openaichat.Codec{}, "both", false)
			ctx.Header.Set("Authorization", "Bearer "+teamKey)
			if a := r.read(r.send(ctx), openaichat.Codec{}, false); a.status != http.StatusOK { //nolint:bodyclose // read does
				r.t.Errorf("%d %s", a.status, a.body)
			}
		}
		s := r.startSlowRequest("/v1/chat/completions", teamKey, 70, `{"model":"openai/m","max_tokens":5000,"messages":[{"role":"user","con`)
		_ = s.Close()
		synctest.Wait()
		if a := r.requestAsTeam(pairs()[0], false); a.status != http.StatusOK {
			r.t.Errorf("%d %s", a.status, a.body)
		}
	})
}

func TestG3_BudgetReservesStatedMaximumInEveryDialect(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	for path, body := range map[string]string{
		"/v1/chat/completions":                    `{"model":"m","max_completion_tokens":5000,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1/chat/completions?n":                  `{"model":"m","max_tokens":100,"n":50,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1/chat/completions?none":               `{"model":"m","messages":[{"role":"user","content":"hi"}]}`,
		"/v1/chat/completions?huge":               `{"model":"m","max_tokens":9223372036854775807,"n":9,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1/responses":                           `{"model":"m","max_output_tokens":5000,"input":"hi"}`,
		"/v1/messages":                            `{"model":"m","max_tokens":5000,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1beta/models/m:generateContent":        `{"generationConfig":{"maxOutputTokens":5000},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		"/v1beta/models/m:generateContent?snake":  `{"generation_config":{"max_output_tokens":5000},"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		"/api/chat":                               `{"model":"m","stream":false,"options":{"num_predict":5000},"messages":[{"role":"user","content":"hi"}]}`,
		"/v1/chat/completions?a-prompt-of-length": `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"` + strings.Repeat("word ", 4000) + `"}]}`,
	} {
		withRig(t, "aliases: {m: openai/m}\ngateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 4000, per: day}}}}\n", func(rw http.ResponseWriter, r *http.Request) {
			sleepSeconds(10)
			hello(rw, r)
		}, func(r *rig) {
			s := r.startSlowRequest(path, teamKey, len(body), body)
			a := r.requestAsTeam(pairs()[0], false)
			if a.status != http.StatusTooManyRequests || !strings.Contains(a.apiError(r.t).Message, "have reserved the rest of the budget") {
				r.t.Errorf("%s: %d %s", path, a.status, a.body)
			}
			sleepSeconds(11)
			synctest.Wait()
			if got := s.status(); got != http.StatusOK {
				r.t.Errorf("%s: %d", path, got)
			}
			_ = s.Close()
		})
	}
	// A route or the key may set the maximum of output tokens.
	for more, want := range map[string]int{
		"gateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 4000, per: day}}}, routes: {m: {to: openai/m, set: {max_tokens: 10}}}}\n": 200,
		"aliases: {m: openai/m}\ngateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 4000, per: day, reserve: 10}}}}\n":                200,
		"aliases: {m: openai/m}\ngateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 4000, per: day}}}}\n":                             429,
	} {
		withRig(t, more, func(rw http.ResponseWriter, r *http.Request) {
			sleepSeconds(10)
			hello(rw, r)
		}, func(r *rig) {
			const body = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
			one, two := r.startSlowRequest("/v1/chat/completions", teamKey, len(body), body), r.startSlowRequest("/v1/chat/completions", teamKey, len(body), body)
			sleepSeconds(11)
			synctest.Wait()
			if a, b := one.status(), two.status(); a != http.StatusOK || b != want {
				r.t.Errorf("%s: %d %d, want %d", more, a, b, want)
			}
			_, _ = one.Close(), two.Close()
		})
	}
}

func TestBufferLimitsMustExceedBodyLimit(t *testing.T) {
	for _, l := range []gateway.Limits{{BodyBytes: 1000, BufferedBytes: 1000}, {BufferedBytesPerKey: 1000}, {BodyTime: -time.Second}} {
		if err := (&gateway.Config{Limits: l}).Check(); err == nil || !strings.Contains(err.Error(), "limits") {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if err := (&gateway.Config{Limits: gateway.Limits{BodyBytes: 1 << 30}}).Check(); err != nil {
		t.Errorf("the defaults do not follow: %v", err)
	}
}

// A short request that continues a long conversation has a long prompt.
func TestG3_ABudgetReservesTheStoredConversation(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	withRig(t, "aliases: {m: anthropic/m}\ngateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 100000, per: day, reserve: 1}}}}\n", func(rw http.ResponseWriter, r *http.Request) {
		sleepSeconds(10)
		hello(rw, r)
	}, func(r *rig) {
		post := func(body string) (int, string) {
			hr, _ := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://localhost/v1/responses", strings.NewReader(body))
			hr.Header.Set("Authorization", "Bearer "+teamKey)
			resp := r.send(hr)
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			return resp.StatusCode, string(text)
		}
		status, text := post(`{"model":"m","input":"` + strings.Repeat("word ", 70_000) + `"}`)
		id := regexp.MustCompile(`"id":"(resp_[^"]+)"`).FindStringSubmatch(text)
		if status != http.StatusOK || id == nil {
			r.t.Fatalf("%d %.300s", status, text)
		}
		var wg sync.WaitGroup
		var admitted atomic.Int32
		for range 10 {
			wg.Go(func() {
				if status, _ := post(`{"model":"m","previous_response_id":"` + id[1] + `","input":"go on"}`); status == http.StatusOK {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
		if n := admitted.Load(); n < 1 || n > 2 { // each has a prompt of more than 80000 tokens
			r.t.Errorf("%d requests are admitted at once", n)
		}
	})
}

// An upstream that never ends is cut off, passed through and translated.
func TestG5_ARequestEndsAfterTheTotalTimeout(t *testing.T) {
	for _, w := range []pair{{anthropic.Codec{}, "anthropic"}, {openaichat.Codec{}, "anthropic"}} {
		withRig(t, "gateway: {heartbeat: none}\n", func(rw http.ResponseWriter, r *http.Request) {
			begin, deltas, _ := wordStream("word ")
			writeResponse(rw, r, true, begin)
			for r.Context().Err() == nil {
				writeResponse(rw, r, true, deltas[0])
				select {
				case <-r.Context().Done():
				case <-time.After(time.Minute):
				}
			}
		}, func(r *rig) {
			began := time.Now()
			a := r.roundTrip(w, true)
			if e := a.apiError(r.t); !strings.Contains(e.Message, "total") || time.Since(began) != time.Hour {
				r.t.Errorf("%s: %v after %v", w, e, time.Since(began))
			}
			if n := strings.Count(string(a.body), "word "); n < 59 {
				r.t.Errorf("%s: %d words", w, n)
			}
		})
	}
}
