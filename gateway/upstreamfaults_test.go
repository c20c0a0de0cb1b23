package gateway_test

import (
	"bytes"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// told is what a server says that goes wrong.
const told = "too many of yours"

var limited = &dragoman.APIError{Class: dragoman.ErrorRateLimit, Status: http.StatusTooManyRequests, Message: told}

// half is the first half of an answer: whole events of a stream, or half of a body.
func half(r *http.Request) []string {
	if isStream(r) {
		return tellings(spoken(r), asModel("one two three four five"))[:4]
	}
	all := wholeOf(spoken(r), "one two three")
	return []string{all[:len(all)/2]}
}

// started is the beginning of a stream, before any content.
func started(codec dialect.Codec) string {
	if codec.Dialect() == dialectname.Ollama { // which has no start
		return "{\"model\":\"m\",\"created_at\":\"2026-01-01T00:00:00Z\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n"
	}
	if codec.Dialect() == dialectname.Gemini {
		return "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]},\"index\":0}],\"modelVersion\":\"m\"}\n\n"
	}
	if codec.Dialect() == dialectname.OpenAIChat { // whose encoder waits for content
		return regexp.MustCompile(`"content":"[^"]*"`).ReplaceAllString(tellings(codec, asModel("one two three four five"))[0], `"content":""`)
	}
	return tellings(codec, asModel("one two three"))[0]
}

// beats sends heartbeats until the gateway hangs up, in all forms that a dialect has.
func beats(rw http.ResponseWriter, r *http.Request) {
	forms := []string{": keep-alive\n\n", ":\n\n"}
	switch codec := spoken(r); {
	case !isStream(r):
		forms = []string{"\n", " "}
	case codec.Dialect() == dialectname.Ollama:
		forms = []string{started(codec)}
	case codec.Dialect() == dialectname.Anthropic:
		forms = append(forms, "event: ping\ndata: {\"type\": \"ping\"}\n\n")
	case codec.Dialect() == dialectname.OpenAIChat:
		forms = append(forms, strings.Replace(started(codec), `"role":"assistant",`, "", 1))
	}
	for i := 0; ; i++ {
		select {
		case <-r.Context().Done():
			return
		case <-time.After(9 * time.Second):
		}
		_, _ = io.WriteString(rw, forms[i%len(forms)])
		_ = http.NewResponseController(rw).Flush()
	}
}

// upstreamFaults are what becomes of answers that go wrong. Those of streams come behind
// the first byte where begun says so: of a whole answer nobody sees half.
var upstreamFaults = []struct {
	name    string
	serve   http.HandlerFunc
	begun   bool
	streams bool // it befalls streams only
	status  int
	class   dragoman.ErrorClass
	says    string
}{
	{name: "429", status: 429, class: dragoman.ErrorRateLimit, says: told, serve: func(rw http.ResponseWriter, r *http.Request) {
		refuses(rw, r, *limited)
	}},
	{name: "500", status: 500, class: dragoman.ErrorServer, says: told, serve: func(rw http.ResponseWriter, r *http.Request) {
		refuses(rw, r, dragoman.APIError{Status: 500, Message: told})
	}},
	{name: "no answer", status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}},
	{name: "headers alone", status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r))
		<-r.Context().Done()
	}},
	{name: "stalls", begun: true, status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r), half(r)...)
		<-r.Context().Done()
	}},
	{name: "heartbeats alone", status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r))
		beats(rw, r)
	}},
	{name: "heartbeats behind the start", streams: true, status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, true, started(spoken(r)))
		beats(rw, r)
	}},
	{name: "heartbeats amid", begun: true, status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r), half(r)...)
		beats(rw, r)
	}},
	{name: "stalls amid its first event", streams: true, status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, true, streamOf(spoken(r), "hello")[:20])
		<-r.Context().Done()
	}},
	{name: "cut at once", status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}},
	{name: "cut behind the headers", status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r))
		panic(http.ErrAbortHandler)
	}},
	{name: "cut", begun: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r), half(r)...)
		panic(http.ErrAbortHandler)
	}},
	{name: "cut amid its first event", streams: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, true, streamOf(spoken(r), "hello")[:20])
		panic(http.ErrAbortHandler)
	}},
	{name: "ends amid its first event", streams: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, true, streamOf(spoken(r), "hello")[:20])
	}},
	{name: "ends without its end", streams: true, begun: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, true, half(r)...)
	}},
	{name: "ends amid an event", streams: true, begun: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		pieces := half(r)
		answers(rw, r, true, append(pieces[:3:3], pieces[3][:20])...)
	}},
	{name: "an error inside 200", status: 429, class: dragoman.ErrorRateLimit, says: told, serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, false, errorOf(spoken(r), limited))
	}},
	{name: "an error as the first event", streams: true, status: 429, class: dragoman.ErrorRateLimit, says: told, serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, true, failedStream(spoken(r), 0, limited))
	}},
	{name: "an error behind the start", streams: true, status: 429, class: dragoman.ErrorRateLimit, says: told, serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, true, failedStream(spoken(r), 1, limited))
	}},
	{name: "an error amid", streams: true, begun: true, status: 429, class: dragoman.ErrorRateLimit, says: told, serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, true, failedStream(spoken(r), 4, limited))
	}},
	{name: "empty", status: 502, class: dragoman.ErrorServer, serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r))
	}},
	{name: "blank", status: 502, class: dragoman.ErrorServer, serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r), "\n", "\n")
	}},
	{name: "an object that is no answer", status: 502, class: dragoman.ErrorServer, serve: func(rw http.ResponseWriter, r *http.Request) {
		answers(rw, r, isStream(r), `{"hello":1}`)
	}},
	{name: "a page", status: 502, class: dragoman.ErrorServer, serve: func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "text/html")
		_, _ = io.WriteString(rw, "<html>Welcome to our network.</html>")
	}},
}

// everyFault runs a test for every fault and way, whole and streamed.
func everyFault(t *testing.T, more string, test func(r *rig, w way, stream bool, fault int), serve func(fault http.HandlerFunc) http.HandlerFunc) {
	for i, f := range upstreamFaults {
		for _, w := range ways() {
			for _, stream := range []bool{false, true} {
				if f.streams && !stream || f.name == "an object that is no answer" && w.provider == "ollama" && w.passes(stream) {
					continue // Ollama's streams are of any objects
				}
				t.Run(f.name+"/"+w.String()+streamed(stream), func(t *testing.T) {
					rigged(t, strings.ReplaceAll(more, "PROVIDER", w.provider), serve(f.serve), func(r *rig) { test(r, w, stream, i) })
				})
			}
		}
	}
}

func alone(fault http.HandlerFunc) http.HandlerFunc { return fault }

// isStatus reports whether a client is told of a fault with its status. Not every dialect,
// and not every way to find out, tells a server that is bad from one that fails, and only
// Anthropic's clients know 529.
func isStatus(got, want int) bool {
	return got == want || want == http.StatusBadGateway && got == http.StatusInternalServerError || want == 529 && got == http.StatusServiceUnavailable
}

func TestG2_EveryFaultBehindTheGatewayEndsAsWritten(t *testing.T) {
	for _, repair := range []string{"auto", "always"} {
		t.Run("repair "+repair, func(t *testing.T) { everyFaultEnds(t, repair) })
	}
}

func everyFaultEnds(t *testing.T, repair string) {
	everyFault(t, "gateway: {heartbeat: none, "+routesWith("repair: "+repair)+"}\n", func(r *rig, w way, stream bool, fault int) {
		t, f := r.t, upstreamFaults[fault]
		if repair == "always" && !w.passes(stream) {
			return // nothing else than without
		}
		a := r.ask(w, stream)
		e := a.apiError(t)
		behind, want := f.begun && stream, f.status
		if want == http.StatusGatewayTimeout && w.client.Dialect() == dialectname.Ollama { // which has no such status
			want = http.StatusServiceUnavailable
		}
		if behind && a.status != 200 || !behind && !isStatus(a.status, want) && !(w.provider == "ollama" && a.status == 500) {
			t.Errorf("status %d: %s", a.status, a.body)
		}
		if own := w.client.Dialect(); strings.HasPrefix(f.name, "cut") && !behind && own != dialectname.Anthropic && own != dialectname.Gemini && a.status != http.StatusBadGateway {
			t.Errorf("status %d: %s", a.status, a.body)
		}
		if !strings.Contains(e.Message, f.says) {
			t.Errorf("%s", a.body)
		}
		if codec := w.client.Dialect(); w.provider != "ollama" && (codec == dialectname.Anthropic || codec == dialectname.Gemini) && e.Class != f.class { // others have not so many words
			t.Errorf("class %s: %s", e.Class, a.body)
		}
		if err := a.check(); err != nil {
			t.Errorf("%v: %s", err, a.body)
		}
		if behind && !bytes.Contains(a.body, []byte("one")) {
			t.Errorf("what came before is lost: %s", a.body)
		}
		if n := r.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
		log := r.line()
		if !strings.Contains(log, `"msg":"request"`) || !strings.Contains(log, `"error":"`) || !strings.Contains(log, `"level":"WARN"`) || strings.Contains(log, "client_left") || strings.Contains(log, "upstream-secret") {
			t.Errorf("%s", log)
		}
		if passed := behind && w.passes(stream) && repair == "auto"; strings.Contains(log, `"transparent":true`) != passed {
			t.Errorf("passed on: %v: %s", passed, log)
		}
	}, alone)
}

func TestG5_AnErrorBehindAHeartbeatComesWithinTheStream(t *testing.T) {
	everyFault(t, "", func(r *rig, w way, stream bool, fault int) {
		t, f := r.t, upstreamFaults[fault]
		if !stream {
			return
		}
		a := r.ask(w, true)
		e := a.apiError(t)
		if beaten := bytes.Contains(a.body, []byte("ping")); beaten != w.beats() || w.beats() && a.status != http.StatusOK {
			t.Errorf("%d %s", a.status, a.body)
		}
		if !strings.Contains(e.Message, f.says) {
			t.Errorf("%s", a.body)
		}
		if err := a.check(); err != nil {
			t.Errorf("%v: %s", err, a.body)
		}
	}, func(fault http.HandlerFunc) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			pause(40)
			fault(rw, r)
		}
	})
}

func TestG4_TheNextModelAnswersUntilOneHasBegunTo(t *testing.T) {
	for _, heartbeat := range []string{"none", "15s"} {
		t.Run("heartbeat "+heartbeat, func(t *testing.T) {
			file := "aliases: {best: \"PROVIDER/m, ollama/second, openai/third\"}\ngateway: {heartbeat: " + heartbeat + "}\n"
			everyFault(t, file, func(r *rig, w way, stream bool, fault int) {
				t, f := r.t, upstreamFaults[fault]
				if heartbeat != "none" && !(stream && w.beats()) {
					return // nothing else than without
				}
				a := r.read(r.send(r.requestFor(t.Context(), w.client, "best", stream)), w.client, stream) //nolint:bodyclose // read does
				resp, err := a.answer()
				behind := f.begun && stream
				if behind && (err == nil || r.asked.Load() != 1 || bytes.Contains(a.body, []byte("the o"))) {
					t.Errorf("asked %d times: %s", r.asked.Load(), a.body)
				}
				if !behind && (err != nil || textOf(resp) != "the other" || r.asked.Load() != 3) {
					t.Errorf("asked %d times, %v: %s", r.asked.Load(), err, a.body)
				}
				if err := a.check(); err != nil {
					t.Errorf("%v: %s", err, a.body)
				}
			}, func(first http.HandlerFunc) http.HandlerFunc {
				return func(rw http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					r.Body = io.NopCloser(bytes.NewReader(body))
					switch {
					case bytes.Contains(body, []byte(`"second"`)):
						rw.WriteHeader(http.StatusInternalServerError)
					case !bytes.Contains(body, []byte(`"third"`)):
						if heartbeat != "none" {
							pause(40)
						}
						first(rw, r)
					case isStream(r):
						answers(rw, r, true, streamOf(spoken(r), "the other"))
					default:
						answers(rw, r, false, wholeOf(spoken(r), "the other"))
					}
				}
			})
		})
	}
}

func TestG5_ConnectionsToServersThatFailedAreClosed(t *testing.T) {
	everyFault(t, "", func(r *rig, w way, stream bool, fault int) {
		name := upstreamFaults[fault].name
		r.ask(w, stream)
		synctest.Wait()
		if n := r.back.open.Load(); n != 0 && (strings.HasPrefix(name, "cut") || strings.HasPrefix(name, "stalls") || name == "headers alone" || name == "no answer") {
			r.t.Errorf("%d connections are open", n)
		}
	}, alone)
}
