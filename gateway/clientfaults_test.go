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
	"github.com/dragoman-go/dragoman/internal/storage/storekit"
	"github.com/dragoman-go/dragoman/session"
)

// heartbeat returns the heartbeat of the client's dialect; empty if it has none.
func (w pair) heartbeat() string {
	switch {
	case !w.beats():
		return ""
	case w.client.Dialect() == dialectname.Anthropic:
		return "event: ping\ndata: {\"type\": \"ping\"}\n\n"
	default:
		return ": ping\n\n"
	}
}

// removeHeartbeats removes the heartbeats from a stream and counts them. Each must be between two
// events.
func removeHeartbeats(w pair, body []byte) (rest string, beats int) {
	if !w.beats() {
		return string(body), bytes.Count(body, []byte("ping"))
	}
	for event := range strings.SplitAfterSeq(string(body), "\n\n") {
		if event == w.heartbeat() {
			beats++
			continue
		}
		rest += event
	}
	return rest, beats
}

func TestQuirkJ1_SilentUpstreamGetsHeartbeatsBetweenEvents(t *testing.T) {
	const says = "one two three"
	for name, serve := range map[string]func(rw http.ResponseWriter, r *http.Request, all string){
		"before the headers": func(rw http.ResponseWriter, r *http.Request, all string) {
			sleepSeconds(40)
			writeResponse(rw, r, true, all)
		},
		"after the headers": func(rw http.ResponseWriter, r *http.Request, all string) {
			writeResponse(rw, r, true)
			sleepSeconds(40)
			_, _ = io.WriteString(rw, all)
		},
		"amid an event": func(rw http.ResponseWriter, r *http.Request, all string) {
			at := len(strings.Join(encodeEvents(dialectOf(r), simulatedEvents(says))[:2], ""))
			writeResponse(rw, r, true, all[:at+10])
			sleepSeconds(40)
			_, _ = io.WriteString(rw, all[at+10:])
		},
		"amid the first event": func(rw http.ResponseWriter, r *http.Request, all string) {
			writeResponse(rw, r, true, all[:10])
			sleepSeconds(40)
			_, _ = io.WriteString(rw, all[10:])
		},
		"between events": func(rw http.ResponseWriter, r *http.Request, all string) {
			at := len(strings.Join(encodeEvents(dialectOf(r), simulatedEvents(says))[:2], ""))
			writeResponse(rw, r, true, all[:at])
			sleepSeconds(40)
			_, _ = io.WriteString(rw, all[at:])
		},
	} {
		for _, heartbeat := range []string{"15s", "none"} {
			for _, w := range pairs() {
				t.Run(name+"/"+heartbeat+"/"+w.String(), func(t *testing.T) {
					var all string
					withRig(t, "gateway: {heartbeat: "+heartbeat+"}\n", func(rw http.ResponseWriter, r *http.Request) {
						all = textStream(dialectOf(r), says)
						serve(rw, r, all)
					}, func(r *rig) {
						t := r.t
						a := r.roundTrip(w, true)
						rest, beats := removeHeartbeats(w, a.body)
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
						if resp, err := a.decode(); err != nil || textOf(resp) != says {
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

// stages are the points of a response at which the client disconnects.
var stages = map[string]http.HandlerFunc{
	"before the headers": func(http.ResponseWriter, *http.Request) {},
	"after the headers":  func(rw http.ResponseWriter, r *http.Request) { writeResponse(rw, r, isStream(r)) },
	"amid the answer":    func(rw http.ResponseWriter, r *http.Request) { writeResponse(rw, r, isStream(r), halfResponse(r)...) },
}

func TestQuirkJ9_DisconnectCancelsTheRequestAndIsCharged(t *testing.T) {
	const more = "gateway: {keys: {team: {key_env: TEAM_KEY, parallel: 1, budget: {tokens: 1, per: month}}}}\n"
	for name, stage := range stages {
		for _, w := range pairs() {
			for _, stream := range []bool{false, true} {
				t.Run(name+"/"+w.String()+streamed(stream), func(t *testing.T) {
					t.Setenv("TEAM_KEY", "a-secret-of-the-team")
					var gone atomic.Int32
					withRig(t, more, func(rw http.ResponseWriter, r *http.Request) {
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
						if gone.Load() != 0 || r.requests.Load() != 1 {
							t.Fatalf("%d upstream requests, gone %d", r.requests.Load(), gone.Load())
						}
						leave()
						<-left
						log := r.logLines()
						if gone.Load() != 1 {
							t.Error("the request goes on")
						}
						if strings.Count(log, `"client_left":true`) != 1 || !strings.Contains(log, `"key":"team"`) {
							t.Errorf("%s", log)
						}
						ctx = t.Context()
						resp, err := ask() //nolint:bodyclose // read closes it; the refusal must name the budget, not the slot
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

// metrics returns the metrics of the gateway for a client with a key.
func (r *rig) metrics(key string) string {
	r.t.Helper()
	hr, _ := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://localhost/metrics", nil)
	hr.Header.Set("Authorization", "Bearer "+key)
	resp := r.send(hr)
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return string(text)
}

func TestG5_SlowClientSlowsTheUpstream(t *testing.T) {
	const word, many, most = "many words in a row ", 20_000, 256 << 10
	for _, w := range pairs() {
		t.Run(w.String(), func(t *testing.T) {
			var written atomic.Int64
			// A heartbeat would wait for the lock of the clientWriter, and stop the clock of the bubble.
			withRig(t, "gateway: {heartbeat: none}\n", func(rw http.ResponseWriter, r *http.Request) {
				rw.Header().Set("content-type", "text/event-stream")
				for _, chunk := range encodeEvents(dialectOf(r), simulatedEvents(strings.Repeat(word, many/20))) {
					n, err := io.WriteString(rw, chunk)
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
				if got, err := a.decode(); err != nil || strings.TrimSpace(textOf(got)) != strings.TrimSpace(strings.Repeat(word, many/20)) {
					t.Errorf("%v, %d bytes", err, len(a.body))
				}
				if n := written.Load(); n < most {
					t.Errorf("%d bytes are no test", n)
				}
			})
		})
	}
}

// bubbleGoroutines counts the goroutines of the test's bubble and returns all stacks.
func bubbleGoroutines() (n int, stacks string) {
	buf := make([]byte, 1<<20)
	stacks = string(buf[:runtime.Stack(buf, true)])
	return strings.Count(stacks, ", synctest bubble "), stacks
}

func TestG5_ThousandStreamsLeakNothing(t *testing.T) {
	kinds := []http.HandlerFunc{
		func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, textStream(dialectOf(r), "hello"))
		},
		func(rw http.ResponseWriter, r *http.Request) { // until the client has disconnected
			writeResponse(rw, r, true, halfResponse(r)...)
			<-r.Context().Done()
		},
		func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, halfResponse(r)...)
			panic(http.ErrAbortHandler)
		},
		func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		kinds[len(r.Header.Get("Traceparent"))](rw, r)
	}, func(r *rig) {
		t := r.t
		all := pairs()
		r.roundTrip(pair{all[0].client, "openai"}, true)
		r.clients.CloseIdleConnections()
		r.transport.CloseIdleConnections()
		synctest.Wait()
		before, _ := bubbleGoroutines()
		for i := range 1000 {
			w := all[i%len(all)]
			kind := i / len(all) % len(kinds)
			ctx, leave := context.WithTimeout(t.Context(), time.Second)
			hr := r.request(ctx, w, true)
			hr.Header.Set("Traceparent", strings.Repeat("x", kind)) // forwarded to the upstream
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
		r.transport.CloseIdleConnections()
		synctest.Wait()
		if n, stacks := bubbleGoroutines(); n > before {
			t.Errorf("%d goroutines, %d before:\n%s", n, before, stacks)
		}
		if front, back := r.front.open.Load(), r.back.open.Load(); front != 0 || back != 0 {
			t.Errorf("%d connections of clients and %d to servers are open", front, back)
		}
		if n := strings.Count(r.logLines(), `"msg":"request"`); n != 1001 {
			t.Errorf("%d lines", n)
		}
		if text := r.metrics(""); !strings.Contains(text, "dragoman_requests_running 0\n") {
			t.Errorf("%s", text)
		}
	})
}

// openStreams opens a stream for each pair and reads them in the background.
func (r *rig) openStreams() (replies func(w pair) *reply) {
	r.t.Helper()
	got := map[string]chan *reply{}
	for _, w := range pairs() {
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
	return func(w pair) *reply { return <-got[w.String()] }
}

func TestG4_ReloadDoesNotInterruptStreams(t *testing.T) {
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
		all := encodeEvents(dialectOf(r), simulatedEvents("one two three"))
		writeResponse(rw, r, true, all[:4]...)
		sleepSeconds(50)
		writeResponse(rw, r, true, all[4:]...)
	}, func(r *rig) {
		t := r.t
		replies := r.openStreams()
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
		for _, w := range pairs() {
			a := replies(w)
			resp, err := a.decode()
			if err != nil || textOf(resp) != "one two three" || a.check() != nil {
				t.Errorf("%s: %v %v: %s", w, err, a.check(), a.body)
			}
			if _, beats := removeHeartbeats(w, a.body); w.beats() && beats != 3 {
				t.Errorf("%s: its own heartbeat changed: %d", w, beats)
			}
			if after := r.roundTrip(w, true); after.status != http.StatusRequestEntityTooLarge {
				t.Errorf("%s: the config before is still there: %d %s", w, after.status, after.body)
			}
		}
		if err := r.gateway.Reload(r.config("version: 1\naliases: {new: sim/echo}\n")); err != nil {
			t.Fatal(err)
		}
		for _, w := range pairs() {
			if a := r.roundTrip(w, true); a.status != http.StatusNotFound {
				t.Errorf("%s: a provider that is gone: %d %s", w, a.status, a.body)
			}
			a := r.read(r.send(r.requestFor(t.Context(), w.client, "new", false)), w.client, false) //nolint:bodyclose // read does
			if resp, err := a.decode(); err != nil || textOf(resp) != "hi" {
				t.Errorf("%s: %v %s", w, err, a.body)
			}
		}
	})
}

func TestQuirkJ1_NoHeartbeatAfterTheEnd(t *testing.T) {
	for _, w := range pairs() {
		t.Run(w.String(), func(t *testing.T) {
			withRig(t, "gateway: {heartbeat: 300ms}\n", func(rw http.ResponseWriter, r *http.Request) {
				writeResponse(rw, r, true, textStream(dialectOf(r), "hello"))
				select { // it sends the end and keeps the connection open
				case <-time.After(40 * time.Second):
				case <-r.Context().Done():
				}
			}, func(r *rig) {
				t := r.t
				begun := time.Now()
				a := r.roundTrip(w, true)
				if resp, err := a.decode(); err != nil || textOf(resp) != "hello" || a.check() != nil {
					t.Errorf("%v %v: %s", err, a.check(), a.body)
				}
				_, beats := removeHeartbeats(w, a.body)
				if took := time.Since(begun); (beats != 0 || took > 2*time.Second) && w.provider != "gemini" { // for upstreams that send no end marker
					t.Errorf("it took %v, with %d beats: %s", took, beats, a.body)
				}
			})
		})
	}
}

func TestQuirkJ1_HeartbeatsAreFlushed(t *testing.T) {
	for _, w := range pairs() {
		if !w.beats() {
			continue
		}
		t.Run(w.String(), func(t *testing.T) {
			var received chan struct{} // of the bubble
			withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
				select { // until the client has received one
				case <-received:
					writeResponse(rw, r, true, textStream(dialectOf(r), "hello"))
				case <-r.Context().Done():
				}
			}, func(r *rig) {
				received = make(chan struct{})
				resp := r.send(r.request(r.t.Context(), w, true)) //nolint:bodyclose // read does
				ping := make([]byte, len(w.heartbeat()))
				if _, err := io.ReadFull(resp.Body, ping); err != nil || string(ping) != w.heartbeat() {
					r.t.Errorf("%v: %q", err, ping)
				}
				close(received)
				if a := r.read(resp, w.client, true); !strings.Contains(string(a.body), "hell") || strings.Contains(string(a.body), "ping") {
					r.t.Errorf("%s", a.body)
				}
			})
		})
	}
}

func TestG5_ClientThatStopsReadingTimesOut(t *testing.T) {
	for _, w := range pairs() {
		t.Run(w.String(), func(t *testing.T) {
			var gone atomic.Bool
			withRig(t, "gateway: {heartbeat: none}\n", func(rw http.ResponseWriter, r *http.Request) {
				writeResponse(rw, r, true, encodeEvents(dialectOf(r), simulatedEvents(strings.Repeat("many words ", 10_000)))...)
				gone.Store(r.Context().Err() != nil)
			}, func(r *rig) {
				resp := r.send(r.request(r.t.Context(), w, true))
				defer resp.Body.Close()
				synctest.Wait()
				sleepSeconds(280)
				if log := r.logLines(); log != "" {
					r.t.Errorf("it is given up early: %s", log)
				}
				sleepSeconds(60)
				if log := r.logLines(); strings.Count(log, `"msg":"request"`) != 1 || !gone.Load() {
					r.t.Errorf("it is waited for, its server goes on %v: %s", !gone.Load(), log)
				}
			})
		})
	}
}

func TestG2_StreamOfOnlyCommentsIsAnError(t *testing.T) {
	for _, w := range pairs() {
		withRig(t, "", func(rw http.ResponseWriter, r *http.Request) { writeResponse(rw, r, true, ": hello\n\n") }, func(r *rig) {
			a := r.roundTrip(w, true)
			if e := a.apiError(r.t); !strings.Contains(e.Message, "broke") || a.check() != nil {
				r.t.Errorf("%s: %v: %d %s", w, a.check(), a.status, a.body)
			}
		})
	}
}

func TestG3_ReloadReplacesKeys(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	t.Setenv("OTHER_KEY", "a-secret-of-the-other-team")
	withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY}}}\n", func(rw http.ResponseWriter, r *http.Request) {
		all := encodeEvents(dialectOf(r), simulatedEvents("one two three"))
		writeResponse(rw, r, true, all[:4]...)
		sleepSeconds(50)
		writeResponse(rw, r, true, all[4:]...)
	}, func(r *rig) {
		t, w := r.t, pairs()[0]
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
		if a := r.requestAsTeam(w, true); a.status != http.StatusUnauthorized {
			t.Errorf("a key that is gone: %d %s", a.status, a.body)
		}
		if text := r.metrics("a-secret-of-the-other-team"); !strings.Contains(text, "dragoman_requests_running 1\n") {
			t.Errorf("a new key: %s", text)
		}
		if resp, err := (<-begun).decode(); err != nil || textOf(resp) != "one two three" {
			t.Errorf("what had begun: %v", err)
		}
	})
}

// panickingNotes panics in Get.
type panickingNotes struct{ session.Notes }

func (panickingNotes) Get(context.Context, string) ([]byte, bool, error) { panic("these are no notes") }

func TestPanicEndsOnlyItsRequest(t *testing.T) {
	var log safeBuffer
	g, err := gateway.New(nil, gateway.Options{Log: slog.New(slog.NewJSONHandler(&log, nil)), Notes: panickingNotes{&storekit.Notes{}}})
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
		t.Errorf("status %d", resp.StatusCode)
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
