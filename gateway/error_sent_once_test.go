package gateway_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/anthropic"
	"github.com/dragoman-go/dragoman/dialect/openaichat"
	"github.com/dragoman-go/dragoman/dialect/openairesponses"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// echoingError returns the error of a server that repeats the request in its message.
func echoingError(r *http.Request, class dragoman.ErrorClass, status int) *dragoman.APIError {
	key := cmp.Or(r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key"), r.Header.Get("Authorization"))
	text := fmt.Sprintf("your headers were %v, your query %s, your key %s", r.Header, r.URL.RawQuery, base64.StdEncoding.EncodeToString([]byte(key)))
	return &dragoman.APIError{Class: class, Status: status, Message: text, Code: r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")}
}

// containsBase64 reports whether a text has a secret in base64, alone or after "Bearer ".
func containsBase64(text, secret string) bool {
	alone := base64.RawStdEncoding.EncodeToString([]byte(secret))
	after := base64.RawStdEncoding.EncodeToString([]byte("Bearer " + secret))
	return strings.Contains(text, alone[:len(alone)-1]) || strings.Contains(text, after[len("Bearer ")*4/3+1:len(after)-1])
}

func TestG3_NoCredentialReachesClients(t *testing.T) {
	const own, virtual = "upstream-secret", "a-secret-of-the-team"
	serves := map[string]http.HandlerFunc{
		"200": func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, false, errorBody(dialectOf(r), echoingError(r, dragoman.ErrorRateLimit, 429)))
		},
		"200 streamed": func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, failedStream(dialectOf(r), 0, echoingError(r, dragoman.ErrorRateLimit, 429)))
		},
		"amid": func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, failedStream(dialectOf(r), 4, echoingError(r, dragoman.ErrorRateLimit, 429)))
		},
		"amid, in pieces": func(rw http.ResponseWriter, r *http.Request) {
			all := failedStream(dialectOf(r), 4, echoingError(r, dragoman.ErrorRateLimit, 429))
			at := strings.Index(all, own) + 5
			writeResponse(rw, r, true, all[:at], all[at:])
		},
		"page": func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("content-type", "text/html")
			_, _ = io.WriteString(rw, "<html>"+echoingError(r, "", 0).Message)
		},
	}
	for _, status := range []int{400, 401, 403, 404, 413, 429, 500, 529} {
		serves[fmt.Sprint(status)] = func(rw http.ResponseWriter, r *http.Request) {
			sent := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key") + r.Header.Get("X-Goog-Api-Key")
			rw.Header().Set("request-id", sent)
			rw.Header().Set("x-request-id", sent)
			rw.Header().Set("x-ratelimit-limit-requests", sent)
			writeError(rw, r, *echoingError(r, "", status))
		}
	}
	presented := []func(hr *http.Request){
		func(hr *http.Request) { hr.Header.Set("Authorization", "Bearer "+virtual) },
		func(hr *http.Request) { hr.Header.Set("X-Api-Key", virtual) },
		func(hr *http.Request) { hr.Header.Set("X-Goog-Api-Key", virtual) },
		func(hr *http.Request) { hr.Header.Set("Api-Key", virtual) },
		func(hr *http.Request) {
			q := hr.URL.Query()
			q.Set("key", virtual)
			hr.URL.RawQuery = q.Encode()
		},
	}
	for name, serve := range serves {
		for _, repair := range []string{"auto", "always"} {
			more := "gateway: {keys: {team: {key_env: TEAM_KEY}}, " + routesWith("repair: "+repair) + "}\n"
			t.Run(name+"/"+repair, func(t *testing.T) {
				t.Setenv("TEAM_KEY", virtual)
				withRig(t, more, serve, func(r *rig) {
					t := r.t
					for i, w := range pairs() {
						for _, stream := range []bool{false, true} {
							hr := r.request(t.Context(), w, stream)
							presented[i%len(presented)](hr)
							a := r.read(r.send(hr), w.client, stream) //nolint:bodyclose // read does
							all := fmt.Sprint(a.header, string(a.body))
							if a.apiError(t); strings.Contains(all, own) || strings.Contains(all, virtual) || containsBase64(all, own) {
								t.Errorf("%s%s gets %s", w, streamed(stream), all)
							}
							wrong := r.request(t.Context(), w, stream)
							wrong.URL.RawQuery += "&key=not-" + virtual
							if a := r.read(r.send(wrong), w.client, false); a.status != http.StatusUnauthorized || bytes.Contains(a.body, []byte(virtual)) { //nolint:bodyclose // read does
								t.Errorf("%d %s", a.status, a.body)
							}
						}
					}
					if log := r.logLines() + r.metrics(virtual); strings.Contains(log, own) || containsBase64(log, own) || strings.Contains(log, virtual) || strings.Count(log, `"msg":"request"`) != 4*len(pairs()) {
						t.Errorf("%s", log)
					}
				})
			})
		}
	}
}

// partEvents returns the events of some parts of a response.
func partEvents(parts ...dragoman.Part) []dragoman.Event {
	events := []dragoman.Event{&dragoman.ResponseStart{Response: dragoman.Response{ID: "r1", Model: "m", Created: time.Unix(946684800, 0)}}}
	for i, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			events = append(events, &dragoman.PartStart{Index: i, Part: &dragoman.Text{}}, &dragoman.PartDelta{Index: i, Kind: p.Kind(), Text: p.Text}, &dragoman.PartEnd{Index: i, Part: p})
		case *dragoman.ToolCall:
			start := *p
			start.Arguments = ""
			events = append(events, &dragoman.PartStart{Index: i, Part: &start}, &dragoman.PartDelta{Index: i, Kind: p.Kind(), Text: p.Arguments}, &dragoman.PartEnd{Index: i, Part: p})
		}
	}
	return events
}

// streamWithoutEnd returns a stream of some parts without the end of the response.
func streamWithoutEnd(codec dialect.Codec, parts ...dragoman.Part) string {
	enc := codec.NewStreamEncoder(dialect.EncodeOptions{Seed: "s", Model: "m"})
	var out []byte
	for _, ev := range partEvents(parts...) {
		out, _ = enc.Encode(out, ev)
	}
	return string(out)
}

func TestQuirkJ11_RouteCompletesUnfinishedStream(t *testing.T) {
	more := "gateway: {heartbeat: none, " + routesWith("unfinished: end") + "}\n"
	text := &dragoman.Text{Text: "half of it"}
	call := &dragoman.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}
	for _, tc := range []struct {
		name  string
		serve http.HandlerFunc
		stop  dragoman.StopReason // empty: an error
		calls int
	}{
		{name: "text", stop: dragoman.StopEnd, serve: func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, streamWithoutEnd(dialectOf(r), text))
		}},
		{name: "a call", stop: dragoman.StopToolCalls, calls: 1, serve: func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, streamWithoutEnd(dialectOf(r), text, call))
		}},
		{name: "nothing", serve: func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, streamWithoutEnd(dialectOf(r)))
		}},
		{name: "a cut connection", serve: func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, streamWithoutEnd(dialectOf(r), text))
			panic(http.ErrAbortHandler)
		}},
		{name: "a stall", serve: func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, streamWithoutEnd(dialectOf(r), text))
			<-r.Context().Done()
		}},
		{name: "an error", serve: func(rw http.ResponseWriter, r *http.Request) {
			writeResponse(rw, r, true, failedStream(dialectOf(r), 4, limited))
		}},
	} {
		for _, w := range pairs() {
			if tc.calls > 0 && w.provider == "ollama" {
				continue // its calls arrive with the end
			}
			t.Run(tc.name+"/"+w.String(), func(t *testing.T) {
				withRig(t, more, tc.serve, func(r *rig) {
					a := r.roundTrip(w, true)
					resp, err := a.decode()
					switch {
					case tc.stop == "" && (err == nil || a.apiError(r.t) == nil):
						r.t.Errorf("an end is made up: %s", a.body)
					case tc.stop != "" && (err != nil || resp.Stop.Reason != tc.stop || textOf(resp) != text.Text || len(callsOf(resp)) != tc.calls):
						r.t.Errorf("%v, %+v: %s", err, resp, a.body)
					}
					if err := a.check(); err != nil {
						r.t.Errorf("%v: %s", err, a.body)
					}
					if words := map[dragoman.Dialect]string{dialectname.OpenAIChat: `"finish_reason":"tool_calls"`, dialectname.Anthropic: `"stop_reason":"tool_use"`}; tc.calls > 0 && !strings.Contains(string(a.body), words[w.client.Dialect()]) {
						r.t.Errorf("%s", a.body)
					}
					if log := r.logLines(); tc.stop != "" && !strings.Contains(log, `"losses":"1; synthesized /stop`) || (tc.stop == "") != strings.Contains(log, `"error"`) {
						r.t.Error(log)
					}
				})
			})
		}
	}
}

func TestQuirkJ11_TruncatedCallIsNotCompleted(t *testing.T) {
	// Only these dialects stream calls in fragments.
	cut := map[dragoman.Dialect]string{
		dialectname.OpenAIChat:      `\"city\":`,
		dialectname.Anthropic:       `\"city\":`,
		dialectname.OpenAIResponses: `\"city\":`,
	}
	call := &dragoman.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}
	for i, w := range append(pairs(), pairs()...) {
		if w.provider == "gemini" || w.provider == "ollama" {
			continue
		}
		silent := i >= len(pairs()) // no arguments arrive
		t.Run(fmt.Sprint(w, ", silent ", silent), func(t *testing.T) {
			withRig(t, "gateway: {heartbeat: none, "+routesWith("unfinished: end")+"}\n", func(rw http.ResponseWriter, r *http.Request) {
				enc := dialectOf(r).NewStreamEncoder(dialect.EncodeOptions{Seed: "s", Model: "m"})
				var out []byte
				events := partEvents(&dragoman.Text{Text: "x"}, call)
				for _, ev := range events[:len(events)-1] {
					if d, ok := ev.(*dragoman.PartDelta); ok && d.Kind == call.Kind() {
						ev = &dragoman.PartDelta{Index: d.Index, Kind: d.Kind, Text: d.Text[:9]}
						if silent {
							continue
						}
					}
					out, _ = enc.Encode(out, ev)
				}
				if bytes.Contains(out, []byte(cut[dialectOf(r).Dialect()])) == silent {
					t.Errorf("this is not a test: %s", out)
				}
				writeResponse(rw, r, true, string(out))
			}, func(r *rig) {
				a := r.roundTrip(w, true)
				if e := a.apiError(r.t); !strings.Contains(e.Message, "connection to the upstream broke") {
					r.t.Errorf("%s", a.body)
				}
				if err := a.check(); err != nil {
					r.t.Errorf("%v: %s", err, a.body)
				}
			})
		})
	}
}

func TestG7_ResponseWithSynthesizedEndIsStored(t *testing.T) {
	withRig(t, "gateway: {"+routesWith("unfinished: end")+"}\n", func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		writeResponse(rw, r, true, streamWithoutEnd(dialectOf(r), &dragoman.Text{Text: fmt.Sprint("half", bytes.Count(body, []byte("role")))}))
	}, func(r *rig) {
		w := pair{openairesponses.Codec{}, "openai"}
		before := ""
		for _, want := range []string{"half1", "half3"} { // messages sent to the model
			hr := r.request(r.t.Context(), w, true)
			hr.Body, hr.ContentLength = io.NopCloser(strings.NewReader(`{"model":"openai/m","stream":true,"input":"hi"`+before+`}`)), -1
			a := r.read(r.send(hr), w.client, true) //nolint:bodyclose // read does
			resp, err := a.decode()
			if err != nil || textOf(resp) != want {
				r.t.Fatalf("%v: %s", err, a.body)
			}
			before = `,"previous_response_id":"` + resp.ID + `"`
		}
	})
}

func TestG1_UnstreamedResponseBecomesAStream(t *testing.T) {
	call := &dragoman.ToolCall{ID: "call_1", Name: "get_weather", Arguments: `{"city":"Oslo"}`}
	for i, w := range append(pairs(), pairs()...) {
		stream := i < len(pairs()) // and as a stream
		t.Run(w.String()+streamed(stream), func(t *testing.T) {
			withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
				resp := &dragoman.Response{
					ID: "r1", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopToolCalls}, Usage: dragoman.Usage{Input: dragoman.Counted(7), Output: dragoman.Counted(9)},
					Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: "all at once"}, call}}},
				}
				enc, err := dialectOf(r).EncodeResponse(resp, dialect.EncodeOptions{Seed: "s", Model: "m"})
				if err != nil {
					t.Error(err)
				}
				writeResponse(rw, r, false, string(enc.Body))
			}, func(r *rig) {
				a := r.roundTrip(w, stream)
				resp, err := a.decode()
				if err != nil || textOf(resp) != "all at once" || len(callsOf(resp)) != 1 || callsOf(resp)[0].Name != call.Name || resp.Stop.Reason != dragoman.StopToolCalls {
					r.t.Fatalf("%v: %s", err, a.body)
				}
				if err := a.check(); err != nil && w.provider != "ollama" { // its complete response is a stream of one line and is passed through
					r.t.Errorf("%v: %s", err, a.body)
				}
				if log := r.logLines(); !strings.Contains(log, `"input_tokens":7,`) || !strings.Contains(log, `"output_tokens":9`) || !strings.Contains(log, fmt.Sprintf(`"status":200,"stream":%v`, stream)) || strings.Contains(log, `"error"`) {
					r.t.Error(log)
				}
			})
		})
	}
}

func TestG2_TooLongEventIsPassedThroughInPieces(t *testing.T) {
	long := strings.Repeat("long ", 4<<20) // more than is held back
	for _, ends := range []bool{true, false} {
		withRig(t, "gateway: {heartbeat: none}\n", func(rw http.ResponseWriter, r *http.Request) {
			all := streamWithoutEnd(dialectOf(r), &dragoman.Text{Text: long})
			if ends {
				all = strings.Join(encodeEvents(dialectOf(r), append(partEvents(&dragoman.Text{Text: long}), &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}})), "")
			}
			writeResponse(rw, r, true, all)
		}, func(r *rig) {
			a := r.roundTrip(pair{anthropic.Codec{}, "anthropic"}, true)
			if n := strings.Count(string(a.body), "long "); n != 4<<20 {
				r.t.Errorf("%d words", n)
			}
			// A stream that cannot be checked is not reported as broken.
			if tail := string(a.body[len(a.body)-200:]); strings.Contains(tail, "event: error") || strings.Contains(tail, "message_stop") != ends {
				r.t.Errorf("%s", tail)
			}
		})
	}
}

func TestG6_LogAndMetricsAgree(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	const more = "gateway:\n  keys: {team: {key_env: TEAM_KEY}}\n  routes: {\"fast-*\": {to: \"anthropic/*\"}, other: {to: openai/m}}\n"
	fails := false
	withRig(t, more, func(rw http.ResponseWriter, r *http.Request) {
		sleepSeconds(2)
		if fails {
			writeError(rw, r, *limited)
			return
		}
		events := append(partEvents(&dragoman.Text{Text: "hello"}), &dragoman.ResponseEnd{
			Stop:  dragoman.Stop{Reason: dragoman.StopEnd},
			Usage: dragoman.Usage{Input: dragoman.Counted(70), CacheRead: dragoman.Counted(30), Output: dragoman.Counted(9), Reasoning: dragoman.Counted(4)},
		})
		all := encodeEvents(dialectOf(r), events)
		writeResponse(rw, r, true, all[0])
		sleepSeconds(3)
		writeResponse(rw, r, true, all[1:]...)
	}, func(r *rig) {
		t := r.t
		ask := func(codec dialect.Codec, model string) int {
			hr := r.requestFor(t.Context(), codec, model, true)
			hr.Header.Set("Authorization", "Bearer a-secret-of-the-team")
			a := r.read(r.send(hr), codec, true) //nolint:bodyclose // read does
			return len(a.body)
		}
		n := ask(anthropic.Codec{}, "fast-model")
		m := ask(openaichat.Codec{}, "fast-model")
		fails = true
		o := ask(openaichat.Codec{}, "other")
		log := regexp.MustCompile(`req_[0-9a-f]{32}`).ReplaceAllString(r.logLines(), "req_ID")
		want := fmt.Sprintf(`{"time":"2000-01-01T00:00:05Z","level":"INFO","msg":"request","id":"req_ID","dialect":"anthropic.messages","path":"/v1/messages","key":"team","model":"fast-model","route":"fast-*","upstream":"anthropic/model","status":200,"stream":true,"transparent":true,"took":5000000000,"first_byte":5000000000,"bytes":%d,"input_tokens":70,"cached_tokens":30,"output_tokens":9,"reasoning_tokens":4}
{"time":"2000-01-01T00:00:10Z","level":"INFO","msg":"request","id":"req_ID","dialect":"openai.chat_completions","path":"/v1/chat/completions","key":"team","model":"fast-model","route":"fast-*","upstream":"anthropic/model","status":200,"stream":true,"transparent":false,"took":5000000000,"first_byte":5000000000,"bytes":%d,"input_tokens":70,"cached_tokens":30,"output_tokens":9,"reasoning_tokens":4}
{"time":"2000-01-01T00:00:12Z","level":"WARN","msg":"request","id":"req_ID","dialect":"openai.chat_completions","path":"/v1/chat/completions","key":"team","model":"other","route":"other","upstream":"openai/m","status":429,"stream":true,"transparent":false,"took":2000000000,"first_byte":2000000000,"bytes":%d,"error":"429 requests: too many of yours"}
`, n, m, o)
		if log != want {
			t.Errorf("got\n%swant\n%s", log, want)
		}
		var got []string
		for line := range strings.Lines(r.metrics("a-secret-of-the-team")) {
			if !strings.HasPrefix(line, "#") && !strings.Contains(line, "_bucket") {
				got = append(got, line)
			}
		}
		const (
			first  = `{dialect="anthropic.messages",route="fast-*",upstream="anthropic/*",key="team",status="200"} `
			second = `{dialect="openai.chat_completions",route="fast-*",upstream="anthropic/*",key="team",status="200"} `
			third  = `{dialect="openai.chat_completions",route="other",upstream="openai/m",key="team",status="429"} `
		)
		all := "dragoman_requests_running 0\n"
		for _, c := range []struct {
			name    string
			a, b, c int
		}{
			{"requests_total", 1, 1, 1},
			{"streams_total", 1, 1, 0},
			{"transparent_total", 1, 0, 0},
			{"clients_left_total", 0, 0, 0},
			{"losses_total", 0, 0, 0},
			{"input_tokens_total", 70, 70, 0},
			{"output_tokens_total", 9, 9, 0},
		} {
			all += fmt.Sprintf("dragoman_%[1]s%[2]s%[5]d\ndragoman_%[1]s%[3]s%[6]d\ndragoman_%[1]s%[4]s%[7]d\n", c.name, first, second, third, c.a, c.b, c.c)
		}
		all += "dragoman_upstream_failures_total{upstream=\"openai/m\"} 1\n"
		for _, h := range []struct {
			name    string
			a, b, c int
		}{{"request_seconds", 5, 5, 2}, {"first_byte_seconds", 5, 5, 2}} {
			all += fmt.Sprintf("dragoman_%[1]s_sum%[2]s%[5]d\ndragoman_%[1]s_count%[2]s1\ndragoman_%[1]s_sum%[3]s%[6]d\ndragoman_%[1]s_count%[3]s1\ndragoman_%[1]s_sum%[4]s%[7]d\ndragoman_%[1]s_count%[4]s1\n", h.name, first, second, third, h.a, h.b, h.c)
		}
		if strings.Join(got, "") != all {
			t.Errorf("got\n%swant\n%s", strings.Join(got, ""), all)
		}
		text := r.metrics("a-secret-of-the-team")
		for _, le := range []string{`1"} 0`, `2.5"} 0`, `5"} 1`, `300"} 1`, `+Inf"} 1`} {
			if bucket := "dragoman_first_byte_seconds_bucket" + strings.TrimSuffix(first, "} ") + `,le="` + le + "\n"; !strings.Contains(text, bucket) {
				t.Errorf("no %s in %s", bucket, text)
			}
		}
	})
}

func TestG1_BlanksBeforeAStreamAreSkipped(t *testing.T) {
	for _, w := range pairs() {
		for _, before := range []string{"\ufeff", "\n\n", " \r\n", "\ufeff\n"} {
			withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
				writeResponse(rw, r, true, before, textStream(dialectOf(r), "hello"))
			}, func(r *rig) {
				a := r.roundTrip(w, true)
				if resp, err := a.decode(); err != nil || textOf(resp) != "hello" || a.check() != nil {
					r.t.Errorf("%s %q: %v %v: %s", w, before, err, a.check(), a.body)
				}
			})
		}
	}
}

func TestG1_FailedResponseIsPassedThrough(t *testing.T) {
	failed := strings.NewReplacer(`"status":"completed"`, `"status":"failed"`, `"error":null`, `"error":{"code":"server_error","message":"`+faultMessage+`"}`).Replace(responsesThinks)
	withRig(t, "", func(rw http.ResponseWriter, r *http.Request) { writeResponse(rw, r, false, failed) }, func(r *rig) {
		a := r.roundTrip(pair{openairesponses.Codec{}, "responses"}, false)
		if a.status != http.StatusOK || string(a.body) != failed {
			r.t.Errorf("%d %s", a.status, a.body)
		}
		if log := r.logLines(); !strings.Contains(log, `"error":"`) || !strings.Contains(log, faultMessage) || !strings.Contains(log, `"transparent":true`) {
			r.t.Error(log)
		}
	})
}

func TestG3_UnstreamedUsageIsEstimated(t *testing.T) {
	t.Setenv("TEAM_KEY", teamKey)
	for _, w := range pairs() {
		withRig(t, "gateway: {keys: {team: {key_env: TEAM_KEY, budget: {tokens: 120, per: hour}}}}\n", func(rw http.ResponseWriter, r *http.Request) {
			resp := &dragoman.Response{
				ID: "r1", Model: "m", Stop: dragoman.Stop{Reason: dragoman.StopEnd},
				Output: []dragoman.Message{{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: strings.Repeat("word ", 80)}}}},
			}
			enc, _ := dialectOf(r).EncodeResponse(resp, dialect.EncodeOptions{Seed: "s", Model: "m"})
			writeResponse(rw, r, false, regexp.MustCompile(`,"usage":\{"(input_tokens|prompt_tokens)":0[^{}]*\}`).ReplaceAllString(string(enc.Body), ""))
		}, func(r *rig) {
			if a := r.requestAsTeam(w, false); a.status != http.StatusOK {
				r.t.Errorf("%s: %d %s", w, a.status, a.body)
			}
			if a := r.requestAsTeam(w, false); a.status == http.StatusOK {
				r.t.Errorf("%s: it was free: %s %s", w, a.body, r.logLines())
			}
		})
	}
}

func TestG5_SlowUpstreamDoesNotEndTheStream(t *testing.T) {
	for _, w := range pairs() {
		t.Run(w.String(), func(t *testing.T) {
			var all string
			withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
				all = textStream(dialectOf(r), "one two three")
				sep := "\n\n"
				if dialectOf(r).Dialect() == dialectname.Ollama {
					sep = "\n"
				}
				for event := range strings.SplitAfterSeq(all, sep) {
					if event == "" {
						continue
					}
					if dialectOf(r).Dialect() != dialectname.OpenAIResponses || !strings.HasPrefix(event, "data: [DONE]") { // after the end
						sleepSeconds(2) // events before content are held back, for less than a heartbeat
					}
					writeResponse(rw, r, true, event)
				}
			}, func(r *rig) {
				a := r.roundTrip(w, true)
				resp, err := a.decode()
				if err != nil || textOf(resp) != "one two three" || a.check() != nil || a.header.Get("X-Accel-Buffering") != "no" {
					r.t.Errorf("%v %v %v: %s", err, a.check(), a.header, a.body)
				}
				if w.passes(true) && string(a.body) != all {
					r.t.Errorf("%s\nwant %s", a.body, all)
				}
			})
		})
	}
}

func TestQuirkJ2_StreamsAreNotBuffered(t *testing.T) {
	for _, w := range pairs() {
		t.Run(w.String(), func(t *testing.T) {
			withRig(t, "", func(rw http.ResponseWriter, r *http.Request) {
				writeResponse(rw, r, true, textStream(dialectOf(r), "one"))
			}, func(r *rig) {
				if h := r.roundTrip(w, true).header; h.Get("Cache-Control") != "no-cache" || h.Get("X-Accel-Buffering") != "no" {
					r.t.Errorf("%v", h)
				}
			})
		})
	}
}

func TestG5_EventEndIsFoundAtEverySplit(t *testing.T) {
	for _, w := range pairs() {
		for _, end := range []string{"\n", "\r\n"} {
			t.Run(fmt.Sprintf("%s %q", w, end), func(t *testing.T) {
				withRig(t, "gateway: {heartbeat: none}\n", func(rw http.ResponseWriter, r *http.Request) {
					all := strings.ReplaceAll(strings.Join(encodeEvents(dialectOf(r), simulatedEvents("one two three"))[:4], ""), "\n", end)
					for i := range len(end) * 2 { // the last bytes one by one
						at := len(all) - len(end)*2 + i
						if i == 0 {
							writeResponse(rw, r, true, all[:at])
						}
						writeResponse(rw, r, true, all[at:at+1])
					}
					<-r.Context().Done()
				}, func(r *rig) {
					ctx, leave := context.WithCancel(r.t.Context())
					defer leave()
					resp, err := r.clients.Do(r.request(ctx, w, true)) //nolint:bodyclose // closed below; the goroutine hides that from the linter
					if err != nil {
						r.t.Fatal(err)
					}
					defer resp.Body.Close()
					var got safeBuffer
					ended := make(chan struct{})
					go func() {
						defer close(ended)
						_, _ = io.Copy(&got, resp.Body)
					}()
					synctest.Wait()
					if text := got.String(); !strings.Contains(text, "two") {
						r.t.Errorf("what is whole is held back: %s", text)
					}
					leave()
					<-ended
				})
			})
		}
	}
}
