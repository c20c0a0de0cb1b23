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

// faultMessage is the message of an upstream error.
const faultMessage = "too many of yours"

var limited = &dragoman.APIError{Class: dragoman.ErrorRateLimit, Status: http.StatusTooManyRequests, Message: faultMessage}

// halfResponse returns the first half of a response: whole events of a stream, or half of a body.
func halfResponse(r *http.Request) []string {
	if isStream(r) {
		return encodeEvents(dialectOf(r), simulatedEvents("one two three four five"))[:4]
	}
	all := textResponse(dialectOf(r), "one two three")
	return []string{all[:len(all)/2]}
}

// streamStart returns the beginning of a stream, before any content.
func streamStart(codec dialect.Codec) string {
	if codec.Dialect() == dialectname.Ollama { // it has no start event
		return "{\"model\":\"m\",\"created_at\":\"2026-01-01T00:00:00Z\",\"message\":{\"role\":\"assistant\",\"content\":\"\"},\"done\":false}\n"
	}
	if codec.Dialect() == dialectname.Gemini {
		return "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]},\"index\":0}],\"modelVersion\":\"m\"}\n\n"
	}
	if codec.Dialect() == dialectname.OpenAIChat { // its encoder waits for content
		return regexp.MustCompile(`"content":"[^"]*"`).ReplaceAllString(encodeEvents(codec, simulatedEvents("one two three four five"))[0], `"content":""`)
	}
	return encodeEvents(codec, simulatedEvents("one two three"))[0]
}

// sendHeartbeats sends heartbeats of every form of the dialect until the gateway disconnects.
func sendHeartbeats(rw http.ResponseWriter, r *http.Request) {
	forms := []string{": keep-alive\n\n", ":\n\n"}
	switch codec := dialectOf(r); {
	case !isStream(r):
		forms = []string{"\n", " "}
	case codec.Dialect() == dialectname.Ollama:
		forms = []string{streamStart(codec)}
	case codec.Dialect() == dialectname.Anthropic:
		forms = append(forms, "event: ping\ndata: {\"type\": \"ping\"}\n\n")
	case codec.Dialect() == dialectname.OpenAIChat:
		forms = append(forms, strings.Replace(streamStart(codec), `"role":"assistant",`, "", 1))
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

// upstreamFaults lists upstream faults and what the client gets. If begun is set, the fault of a
// stream comes after its first byte. A client never gets half of a complete response.
var upstreamFaults = []struct {
	name    string
	serve   http.HandlerFunc
	begun   bool
	streams bool // only for streams
	status  int
	class   dragoman.ErrorClass
	says    string
}{
	{name: "429", status: 429, class: dragoman.ErrorRateLimit, says: faultMessage, serve: func(rw http.ResponseWriter, r *http.Request) {
		writeError(rw, r, *limited)
	}},
	{name: "500", status: 500, class: dragoman.ErrorServer, says: faultMessage, serve: func(rw http.ResponseWriter, r *http.Request) {
		writeError(rw, r, dragoman.APIError{Status: 500, Message: faultMessage})
	}},
	{name: "no answer", status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
	}},
	{name: "headers alone", status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r))
		<-r.Context().Done()
	}},
	{name: "stalls", begun: true, status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r), halfResponse(r)...)
		<-r.Context().Done()
	}},
	{name: "heartbeats alone", status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r))
		sendHeartbeats(rw, r)
	}},
	{name: "heartbeats after the start", streams: true, status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, streamStart(dialectOf(r)))
		sendHeartbeats(rw, r)
	}},
	{name: "heartbeats amid", begun: true, status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r), halfResponse(r)...)
		sendHeartbeats(rw, r)
	}},
	{name: "stalls amid its first event", streams: true, status: 504, class: dragoman.ErrorTimeout, says: "timed out", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, textStream(dialectOf(r), "hello")[:20])
		<-r.Context().Done()
	}},
	{name: "cut at once", status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(http.ResponseWriter, *http.Request) {
		panic(http.ErrAbortHandler)
	}},
	{name: "cut after the headers", status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r))
		panic(http.ErrAbortHandler)
	}},
	{name: "cut", begun: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r), halfResponse(r)...)
		panic(http.ErrAbortHandler)
	}},
	{name: "cut amid its first event", streams: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, textStream(dialectOf(r), "hello")[:20])
		panic(http.ErrAbortHandler)
	}},
	{name: "ends amid its first event", streams: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, textStream(dialectOf(r), "hello")[:20])
	}},
	{name: "ends without its end", streams: true, begun: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, halfResponse(r)...)
	}},
	{name: "ends amid an event", streams: true, begun: true, status: 502, class: dragoman.ErrorServer, says: "connection to the upstream broke", serve: func(rw http.ResponseWriter, r *http.Request) {
		pieces := halfResponse(r)
		writeResponse(rw, r, true, append(pieces[:3:3], pieces[3][:20])...)
	}},
	{name: "an error inside 200", status: 429, class: dragoman.ErrorRateLimit, says: faultMessage, serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, false, errorBody(dialectOf(r), limited))
	}},
	{name: "an error as the first event", streams: true, status: 429, class: dragoman.ErrorRateLimit, says: faultMessage, serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, failedStream(dialectOf(r), 0, limited))
	}},
	{name: "an error after the start", streams: true, status: 429, class: dragoman.ErrorRateLimit, says: faultMessage, serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, failedStream(dialectOf(r), 1, limited))
	}},
	{name: "an error amid", streams: true, begun: true, status: 429, class: dragoman.ErrorRateLimit, says: faultMessage, serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, true, failedStream(dialectOf(r), 4, limited))
	}},
	{name: "empty", status: 502, class: dragoman.ErrorServer, serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r))
	}},
	{name: "blank", status: 502, class: dragoman.ErrorServer, serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r), "\n", "\n")
	}},
	{name: "an object that is not a response", status: 502, class: dragoman.ErrorServer, serve: func(rw http.ResponseWriter, r *http.Request) {
		writeResponse(rw, r, isStream(r), `{"hello":1}`)
	}},
	{name: "a page", status: 502, class: dragoman.ErrorServer, serve: func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "text/html")
		_, _ = io.WriteString(rw, "<html>Welcome to our network.</html>")
	}},
}

// forEachFault runs a test for every fault and pair, complete and streamed.
func forEachFault(t *testing.T, more string, test func(r *rig, w pair, stream bool, fault int), serve func(fault http.HandlerFunc) http.HandlerFunc) {
	for i, f := range upstreamFaults {
		for _, w := range pairs() {
			for _, stream := range []bool{false, true} {
				if f.streams && !stream || f.name == "an object that is not a response" && w.provider == "ollama" && w.passes(stream) {
					continue // an Ollama stream accepts any object
				}
				t.Run(f.name+"/"+w.String()+streamed(stream), func(t *testing.T) {
					withRig(t, strings.ReplaceAll(more, "PROVIDER", w.provider), serve(f.serve), func(r *rig) { test(r, w, stream, i) })
				})
			}
		}
	}
}

func alone(fault http.HandlerFunc) http.HandlerFunc { return fault }

// isStatus reports whether a client got a fault with its status. Not every dialect distinguishes
// bad gateways from failures, and only Anthropic clients know 529.
func isStatus(got, want int) bool {
	return got == want || want == http.StatusBadGateway && got == http.StatusInternalServerError || want == 529 && got == http.StatusServiceUnavailable
}

func TestG2_EveryUpstreamFaultHasItsOutcome(t *testing.T) {
	for _, repair := range []string{"auto", "always"} {
		t.Run("repair "+repair, func(t *testing.T) { faultEnds(t, repair) })
	}
}

func faultEnds(t *testing.T, repair string) {
	forEachFault(t, "gateway: {heartbeat: none, "+routesWith("repair: "+repair)+"}\n", func(r *rig, w pair, stream bool, fault int) {
		t, f := r.t, upstreamFaults[fault]
		if repair == "always" && !w.passes(stream) {
			return // nothing else than without
		}
		a := r.roundTrip(w, stream)
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
		if codec := w.client.Dialect(); w.provider != "ollama" && (codec == dialectname.Anthropic || codec == dialectname.Gemini) && e.Class != f.class { // others have fewer error types
			t.Errorf("class %s: %s", e.Class, a.body)
		}
		if err := a.check(); err != nil {
			t.Errorf("%v: %s", err, a.body)
		}
		if behind && !bytes.Contains(a.body, []byte("one")) {
			t.Errorf("what came before is lost: %s", a.body)
		}
		if n := r.requests.Load(); n != 1 {
			t.Errorf("%d upstream requests", n)
		}
		log := r.logLines()
		if !strings.Contains(log, `"msg":"request"`) || !strings.Contains(log, `"error":"`) || !strings.Contains(log, `"level":"WARN"`) || strings.Contains(log, "client_left") || strings.Contains(log, "upstream-secret") {
			t.Errorf("%s", log)
		}
		if passed := behind && w.passes(stream) && repair == "auto"; strings.Contains(log, `"transparent":true`) != passed {
			t.Errorf("passed on: %v: %s", passed, log)
		}
	}, alone)
}

func TestG5_ErrorAfterAHeartbeatIsInTheStream(t *testing.T) {
	forEachFault(t, "", func(r *rig, w pair, stream bool, fault int) {
		t, f := r.t, upstreamFaults[fault]
		if !stream {
			return
		}
		a := r.roundTrip(w, true)
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
			sleepSeconds(40)
			fault(rw, r)
		}
	})
}

func TestG4_FailoverUntilTheFirstEvent(t *testing.T) {
	for _, heartbeat := range []string{"none", "15s"} {
		t.Run("heartbeat "+heartbeat, func(t *testing.T) {
			file := "aliases: {best: \"PROVIDER/m, ollama/second, openai/third\"}\ngateway: {heartbeat: " + heartbeat + "}\n"
			forEachFault(t, file, func(r *rig, w pair, stream bool, fault int) {
				t, f := r.t, upstreamFaults[fault]
				if heartbeat != "none" && !(stream && w.beats()) {
					return // nothing else than without
				}
				a := r.read(r.send(r.requestFor(t.Context(), w.client, "best", stream)), w.client, stream) //nolint:bodyclose // read does
				resp, err := a.decode()
				behind := f.begun && stream
				if behind && (err == nil || r.requests.Load() != 1 || bytes.Contains(a.body, []byte("the o"))) {
					t.Errorf("%d upstream requests: %s", r.requests.Load(), a.body)
				}
				if !behind && (err != nil || textOf(resp) != "the other" || r.requests.Load() != 3) {
					t.Errorf("%d upstream requests, %v: %s", r.requests.Load(), err, a.body)
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
							sleepSeconds(40)
						}
						first(rw, r)
					case isStream(r):
						writeResponse(rw, r, true, textStream(dialectOf(r), "the other"))
					default:
						writeResponse(rw, r, false, textResponse(dialectOf(r), "the other"))
					}
				}
			})
		})
	}
}

func TestG5_FailedUpstreamConnectionsAreClosed(t *testing.T) {
	forEachFault(t, "", func(r *rig, w pair, stream bool, fault int) {
		name := upstreamFaults[fault].name
		r.roundTrip(w, stream)
		synctest.Wait()
		if n := r.back.open.Load(); n != 0 && (strings.HasPrefix(name, "cut") || strings.HasPrefix(name, "stalls") || name == "headers alone" || name == "no answer") {
			r.t.Errorf("%d connections are open", n)
		}
	}, alone)
}
