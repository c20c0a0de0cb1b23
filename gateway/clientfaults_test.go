package gateway_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-go/dragoman/gateway"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/storage/memorynotes"
	"github.com/dragoman-go/dragoman/session"
)

// beat is the heartbeat of a way; empty: it has none.
func (w way) beat() string {
	switch {
	case !w.beats():
		return ""
	case w.client.Dialect() == dialectname.Anthropic:
		return "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	default:
		return ": ping\n\n"
	}
}

// withoutBeats is a stream without the heartbeats, each of which stands between two events.
func withoutBeats(w way, body []byte) (rest string, beats int) {
	if !w.beats() {
		return string(body), bytes.Count(body, []byte("ping"))
	}
	for event := range strings.SplitAfterSeq(string(body), "\n\n") {
		if event == w.beat() {
			beats++
			continue
		}
		rest += event
	}
	return rest, beats
}

func TestQuirkJ1_ASilentServerIsFilledInForWithHeartbeatsBetweenEvents(t *testing.T) {
	const says = "one two three"
	for name, serve := range map[string]func(rw http.ResponseWriter, r *http.Request, all string){
		"before the headers": func(rw http.ResponseWriter, r *http.Request, all string) {
			pause(40)
			answers(rw, r, true, all)
		},
		"behind the headers": func(rw http.ResponseWriter, r *http.Request, all string) {
			answers(rw, r, true)
			pause(40)
			_, _ = io.WriteString(rw, all)
		},
		"amid an event": func(rw http.ResponseWriter, r *http.Request, all string) {
			at := len(strings.Join(tellings(spoken(r), asModel(says))[:2], ""))
			answers(rw, r, true, all[:at+10])
			pause(40)
			_, _ = io.WriteString(rw, all[at+10:])
		},
		"amid the first event": func(rw http.ResponseWriter, r *http.Request, all string) {
			answers(rw, r, true, all[:10])
			pause(40)
			_, _ = io.WriteString(rw, all[10:])
		},
		"between events": func(rw http.ResponseWriter, r *http.Request, all string) {
			at := len(strings.Join(tellings(spoken(r), asModel(says))[:2], ""))
			answers(rw, r, true, all[:at])
			pause(40)
			_, _ = io.WriteString(rw, all[at:])
		},
	} {
		for _, heartbeat := range []string{"15s", "none"} {
			for _, w := range ways() {
				t.Run(name+"/"+heartbeat+"/"+w.String(), func(t *testing.T) {
					var all string
					rigged(t, "gateway: {heartbeat: "+heartbeat+"}\n", func(rw http.ResponseWriter, r *http.Request) {
						all = streamOf(spoken(r), says)
						serve(rw, r, all)
					}, func(r *rig) {
						t := r.t
						a := r.ask(w, true)
						rest, beats := withoutBeats(w, a.body)
						want := 0
						if heartbeat != "none" && w.beats() {
							want = 2
						}
						if beats != want || a.status != http.StatusOK {
							t.Errorf("%d beats, want %d: %d %s", beats, want, a.status, a.body)
						}
						if w.passes(true) && rest != all {
							t.Errorf("passed on is %s\nwant %s", rest, all)
						}
						if resp, err := a.answer(); err != nil || textOf(resp) != says {
							t.Errorf("%v: %s", err, a.body)
						}
						if err := a.check(); err != nil {
							t.Errorf("%v: %s", err, a.body)
						}
					})
				})
			}
		}
	}
}

// stages are how far an answer has come when its client leaves.
var stages = map[string]http.HandlerFunc{
	"before the headers": func(http.ResponseWriter, *http.Request) {},
	"behind the headers": func(rw http.ResponseWriter, r *http.Request) { answers(rw, r, isStream(r)) },
	"amid the answer":    func(rw http.ResponseWriter, r *http.Request) { answers(rw, r, isStream(r), half(r)...) },
}

func TestQuirkJ9_WhoeverLeavesEndsTheRequestAndPaysForIt(t *testing.T) {
	const more = "gateway: {keys: {team: {key_env: TEAM_KEY, parallel: 1, budget: {tokens: 1, per: month}}}}\n"
	for name, stage := range stages {
		for _, w := range ways() {
			for _, stream := range []bool{false, true} {
				t.Run(name+"/"+w.String()+streamed(stream), func(t *testing.T) {
					t.Setenv("TEAM_KEY", "a-secret-of-the-team")
					var gone atomic.Int32
					rigged(t, more, func(rw http.ResponseWriter, r *http.Request) {
						stage(rw, r)
						<-r.Context().Done()
						gone.Add(1)
					}, func(r *rig) {
						t := r.t
						ctx, leave := context.WithCancel(t.Context())
						ask := func() (*http.Response, error) {
							hr := r.request(ctx, w, stream)
							hr.Header.Set("Authorization", "Bearer a-secret-of-the-team")
							return r.clients.Do(hr)
						}
						left := make(chan struct{})
						go func() {
							defer close(left)
							if resp, err := ask(); err == nil {
								_, _ = io.Copy(io.Discard, resp.Body)
								_ = resp.Body.Close()
							}
						}()
						synctest.Wait()
						if gone.Load() != 0 || r.asked.Load() != 1 {
							t.Fatalf("asked %d times, gone %d", r.asked.Load(), gone.Load())
						}
						leave()
						<-left
						log := r.line()
						if gone.Load() != 1 {
							t.Error("the request goes on")
						}
						if strings.Count(log, `"client_left":true`) != 1 || !strings.Contains(log, `"key":"team"`) {
							t.Errorf("%s", log)
						}
						ctx = t.Context()
						resp, err := ask() //nolint:bodyclose // read does; it is refused for the budget, and not as one that is still under way
						if err != nil {
							t.Fatal(err)
						}
						a := r.read(resp, w.client, false)
						if e := a.apiError(t); e.Status != http.StatusTooManyRequests && e.Status != http.StatusPaymentRequired || !strings.Contains(e.Message, "budget") {
							t.Errorf("%d %s", a.status, a.body)
						}
						if n := r.back.open.Load(); n != 0 {
							t.Errorf("%d connections are open", n)
						}
						if text := r.metrics("a-secret-of-the-team"); !strings.Contains(text, "dragoman_requests_running 0\n") || strings.Count(text, "\ndragoman_clients_left_total{") != 2 || !strings.Contains(text, "} 1\n") {
							t.Errorf("%s", text)
						}
					})
				})
			}
		}
	}
}

// metrics are those of the gateway, as one sees them who has a key.
func (r *rig) metrics(key string) string {
	r.t.Helper()
	hr, _ := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://localhost/metrics", nil)
	hr.Header.Set("Authorization", "Bearer "+key)
	resp := r.send(hr)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

func TestG5_AClientThatDoesNotReadStopsTheServerOfTheModel(t *testing.T) {
	const word, many, most = "many words in a row ", 20_000, 256 << 10
	for _, w := range ways() {
		t.Run(w.String(), func(t *testing.T) {
			var written atomic.Int64
			// A beat would wait for the sink, and the bubble's time for it.
			rigged(t, "gateway: {heartbeat: none}\n", func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("content-type", "text/event-stream")
				for _, piece := range tellings(spoken(r), asModel(strings.Repeat(word, many/20))) {
					n, err := io.WriteString(rw, piece)
					if written.Add(int64(n)); err != nil {
						return
					}
					_ = http.NewResponseController(rw).Flush()
				}
			}, func(r *rig) {
				t := r.t
				resp := r.send(r.request(t.Context(), w, true)) //nolint:bodyclose // read does
				synctest.Wait()
				if n := written.Load(); n == 0 || n > most {
					t.Errorf("the server wrote %d bytes to a client that reads nothing", n)
				}
				a := r.read(resp, w.client, true)
				if got, err := a.answer(); err != nil || strings.TrimSpace(textOf(got)) != strings.TrimSpace(strings.Repeat(word, many/20)) {
					t.Errorf("%v, %d bytes", err, len(a.body))
				}
				if n := written.Load(); n < most {
					t.Errorf("%d bytes are no test", n)
				}
			})
		})
	}
}

// bubbled counts the goroutines of a test's bubble, and shows all: others come and go.
func bubbled() (n int, stacks string) {
	buf := make([]byte, 1<<20)
	stacks = string(buf[:runtime.Stack(buf, true)])
	return strings.Count(stacks, ", synctest bubble "), stacks
}

func TestG5_AThousandStreamsLeaveNothingBehind(t *testing.T) {
	kinds := []http.HandlerFunc{
		func(rw http.ResponseWriter, r *http.Request) { answers(rw, r, true, streamOf(spoken(r), "hello")) },
		func(rw http.ResponseWriter, r *http.Request) { // until who asks has gone
			answers(rw, r, true, half(r)...)
			<-r.Context().Done()
		},
		func(rw http.ResponseWriter, r *http.Request) {
			answers(rw, r, true, half(r)...)
			panic(http.ErrAbortHandler)
		},
		func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	rigged(t, "", func(rw http.ResponseWriter, r *http.Request) {
		kinds[len(r.Header.Get("Traceparent"))](rw, r)
	}, func(r *rig) {
		t := r.t
		all := ways()
		r.ask(way{all[0].client, "openai"}, true)
		r.clients.CloseIdleConnections()
		r.sender.CloseIdleConnections()
		synctest.Wait()
		before, _ := bubbled()
		for i := range 1000 {
			w := all[i%len(all)]
			kind := i / len(all) % len(kinds)
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			hr := r.request(ctx, w, true)
			hr.Header.Set("Traceparent", strings.Repeat("x", kind)) // which is passed on
			if !w.passes(true) {
				kind = 0
			}
			resp, err := r.clients.Do(hr)
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			} else if kind != 3 {
				t.Errorf("%s, %d: %v", w, kind, err)
			}
			leave()
		}
		r.clients.CloseIdleConnections()
		r.sender.CloseIdleConnections()
		synctest.Wait()
		if n, stacks := bubbled(); n > before {
			t.Errorf("%d goroutines, %d before:\n%s", n, before, stacks)
		}
		if front, back := r.front.open.Load(), r.back.open.Load(); front != 0 || back != 0 {
			t.Errorf("%d connections of clients and %d to servers are open", front, back)
		}
		if n := strings.Count(r.line(), `"msg":"request"`); n != 1001 {
			t.Errorf("%d lines", n)
		}
		if text := r.metrics(""); !strings.Contains(text, "dragoman_requests_running 0\n") {
			t.Errorf("%s", text)
		}
	})
}

// held asks for a stream of each way, which are read while the test goes on.
func (r *rig) held() (replies func(w way) *reply) {
	r.t.Helper()
	got := map[string]chan *reply{}
	for _, w := range ways() {
		c := make(chan *reply, 1)
		got[w.String()] = c
		hr := r.request(r.t.Context(), w, true)
		go func() {
			a := &reply{}
			resp, err := r.clients.Do(hr)
			if err == nil {
				a, err = readAll(resp, w.client, true)
			}
			if err != nil {
				a.body = append(a.body, err.Error()...)
			}
			c <- a
		}()
	}
	synctest.Wait()
	return func(w way) *reply { return <-got[w.String()] }
}

func TestG4_StreamsAreNotDisturbedByANewConfig(t *testing.T) {
	rigged(t, "", func(rw http.ResponseWriter, r *http.Request) {
		all := tellings(spoken(r), asModel("one two three"))
		answers(rw, r, true, all[:4]...)
		pause(50)
		answers(rw, r, true, all[4:]...)
	}, func(r *rig) {
		t := r.t
		replies := r.held()
		for i := range 5 {
			if err := r.gateway.Reload(r.config(fmt.Sprintf("version: 1\naliases: {new%d: sim/echo}\ngateway: {limits: {body_bytes: 5}, heartbeat: none}\n", i))); err != nil {
				t.Fatal(err)
			}
		}
		bad := r.config("version: 1\naliases: {wrong: sim/echo}\n")
		bad.Routes = []gateway.Route{{Pattern: "x", To: "nobody/x"}}
		if err := r.gateway.Reload(bad); err == nil {
			t.Error("a config is taken over that cannot be used")
		}
		for _, w := range ways() {
			a := replies(w)
			resp, err := a.answer()
			if err != nil || textOf(resp) != "one two three" || a.check() != nil {
				t.Errorf("%s: %v %v: %s", w, err, a.check(), a.body)
			}
			if _, beats := withoutBeats(w, a.body); w.beats() && beats != 3 {
				t.Errorf("%s: its own heartbeat changed: %d", w, beats)
			}
			if after := r.ask(w, true); after.status != http.StatusRequestEntityTooLarge {
				t.Errorf("%s: the config before is still there: %d %s", w, after.status, after.body)
			}
		}
		if err := r.gateway.Reload(r.config("version: 1\naliases: {new: sim/echo}\n")); err != nil {
			t.Fatal(err)
		}
		for _, w := range ways() {
			if a := r.ask(w, true); a.status != http.StatusNotFound {
				t.Errorf("%s: a provider that is gone: %d %s", w, a.status, a.body)
			}
			a := r.read(r.send(r.requestFor(t.Context(), w.client, "new", false)), w.client, false) //nolint:bodyclose // read does
			if resp, err := a.answer(); err != nil || textOf(resp) != "hi" {
				t.Errorf("%s: %v %s", w, err, a.body)
			}
		}
	})
}

func TestQuirkJ1_NoHeartbeatAfterTheEnd(t *testing.T) {
	for _, w := range ways() {
		t.Run(w.String(), func(t *testing.T) {
			rigged(t, "gateway: {heartbeat: 300ms}\n", func(rw http.ResponseWriter, r *http.Request) {
				answers(rw, r, true, streamOf(spoken(r), "hello"))
				select { // it says its end, and does not hang up
				case <-time.After(40 * time.Second):
				case <-r.Context().Done():
				}
			}, func(r *rig) {
				t := r.t
				begun := time.Now()
				a := r.ask(w, true)
				if resp, err := a.answer(); err != nil || textOf(resp) != "hello" || a.check() != nil {
					t.Errorf("%v %v: %s", err, a.check(), a.body)
				}
				_, beats := withoutBeats(w, a.body)
				if took := time.Since(begun); (beats != 0 || took > 2*time.Second) && w.provider != "gemini" { // who does not say when it is over
					t.Errorf("it took %v, with %d beats: %s", took, beats, a.body)
				}
			})
		})
	}
}

func TestQuirkJ1_HeartbeatsAreFlushed(t *testing.T) {
	for _, w := range ways() {
		if !w.beats() {
			continue
		}
		t.Run(w.String(), func(t *testing.T) {
			var heard chan struct{} // of the bubble
			rigged(t, "", func(rw http.ResponseWriter, r *http.Request) {
				select { // until the client has heard one
				case <-heard:
					answers(rw, r, true, streamOf(spoken(r), "hello"))
				case <-r.Context().Done():
				}
			}, func(r *rig) {
				heard = make(chan struct{})
				resp := r.send(r.request(r.t.Context(), w, true)) //nolint:bodyclose // read does
				ping := make([]byte, len(w.beat()))
				if _, err := io.ReadFull(resp.Body, ping); err != nil || string(ping) != w.beat() {
					r.t.Errorf("%v: %q", err, ping)
				}
				close(heard)
				if a := r.read(resp, w.client, true); !strings.Contains(string(a.body), "hell") || strings.Contains(string(a.body), "ping") {
					r.t.Errorf("%s", a.body)
				}
			})
		})
	}
}

func TestG5_AClientThatTakesNothingForLongIsGone(t *testing.T) {
	for _, w := range ways() {
		t.Run(w.String(), func(t *testing.T) {
			var gone atomic.Bool
			rigged(t, "gateway: {heartbeat: none}\n", func(rw http.ResponseWriter, r *http.Request) {
				answers(rw, r, true, tellings(spoken(r), asModel(strings.Repeat("many words ", 10_000)))...)
				gone.Store(r.Context().Err() != nil)
			}, func(r *rig) {
				resp := r.send(r.request(r.t.Context(), w, true))
				defer resp.Body.Close()
				synctest.Wait()
				pause(280)
				if log := r.line(); log != "" {
					r.t.Errorf("it is given up early: %s", log)
				}
				pause(60)
				if log := r.line(); strings.Count(log, `"msg":"request"`) != 1 || !gone.Load() {
					r.t.Errorf("it is waited for, its server goes on %v: %s", !gone.Load(), log)
				}
			})
		})
	}
}

func TestG2_StreamOfOnlyCommentsIsAnError(t *testing.T) {
	for _, w := range ways() {
		rigged(t, "", func(rw http.ResponseWriter, r *http.Request) { answers(rw, r, true, ": hello\n\n") }, func(r *rig) {
			a := r.ask(w, true)
			if e := a.apiError(r.t); !strings.Contains(e.Message, "broke") || a.check() != nil {
				r.t.Errorf("%s: %v: %d %s", w, a.check(), a.status, a.body)
			}
		})
	}
}

func TestG3_KeysAreThoseOfTheConfigThatHolds(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	t.Setenv("OTHER_KEY", "a-secret-of-the-other-team")
	rigged(t, "gateway: {keys: {team: {key_env: TEAM_KEY}}}\n", func(rw http.ResponseWriter, r *http.Request) {
		all := tellings(spoken(r), asModel("one two three"))
		answers(rw, r, true, all[:4]...)
		pause(50)
		answers(rw, r, true, all[4:]...)
	}, func(r *rig) {
		t, w := r.t, ways()[0]
		begun := make(chan *reply, 1)
		hr := r.request(t.Context(), w, true)
		hr.Header.Set("Authorization", "Bearer "+teamKey)
		go func() {
			resp, err := r.clients.Do(hr)
			if err != nil {
				begun <- &reply{body: []byte(err.Error())}
				return
			}
			a, _ := readAll(resp, w.client, true)
			begun <- a
		}()
		synctest.Wait()
		if err := r.gateway.Reload(r.config(rigConfig + "gateway: {keys: {other: {key_env: OTHER_KEY}}}\n")); err != nil {
			t.Fatal(err)
		}
		if a := r.askAs(w, true); a.status != http.StatusUnauthorized {
			t.Errorf("a key that is gone: %d %s", a.status, a.body)
		}
		if text := r.metrics("a-secret-of-the-other-team"); !strings.Contains(text, "dragoman_requests_running 1\n") {
			t.Errorf("a new key: %s", text)
		}
		if resp, err := (<-begun).answer(); err != nil || textOf(resp) != "one two three" {
			t.Errorf("what had begun: %v", err)
		}
	})
}

// panicking are notes that cannot be read.
type panicking struct{ session.Notes }

func (panicking) Get(context.Context, string) ([]byte, bool, error) { panic("these are no notes") }

func TestARequestThatPanicsIsTheOnlyOneThatEnds(t *testing.T) {
	var log safeBuffer
	g, err := gateway.New(nil, gateway.Options{Log: slog.New(slog.NewJSONHandler(&log, nil)), Notes: panicking{&memorynotes.Notes{}}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(g)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.Start()
	defer server.Close()
	resp, err := http.Post(server.URL+"/v1/responses", "application/json", strings.NewReader(`{"model":"sim/echo","input":"hi","previous_response_id":"resp_1"}`))
	if err == nil {
		_ = resp.Body.Close()
		t.Errorf("it is answered: %d", resp.StatusCode)
	}
	if text := log.String(); !strings.Contains(text, `"msg":"a request handler panicked"`) || !strings.Contains(text, "these are no notes") {
		t.Error(text)
	}
	if status, text := get(t, http.MethodPost, server.URL+"/v1/messages", `{"model":"sim/echo","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`); status != http.StatusOK {
		t.Errorf("the next: %d %s", status, text)
	}
	if _, text := get(t, http.MethodGet, server.URL+"/metrics", ""); !strings.Contains(text, "dragoman_requests_running 0\n") {
		t.Errorf("%s", text)
	}
}
