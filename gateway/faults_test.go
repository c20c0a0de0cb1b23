package gateway_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
)

// faultCases lists the upstream faults that end a response, and the error classes that the client
// may get.
var faultCases = []struct {
	fault   string
	classes []dragoman.ErrorClass
	status  int
	begun   bool // a stream has begun by then
}{
	{"429", []dragoman.ErrorClass{dragoman.ErrorRateLimit}, http.StatusTooManyRequests, false},
	{"500", []dragoman.ErrorClass{dragoman.ErrorServer}, http.StatusInternalServerError, false},
	{"529", []dragoman.ErrorClass{dragoman.ErrorOverloaded, dragoman.ErrorServer}, 529, false},
	{"cut", nil, http.StatusBadGateway, true},
	{"truncated", nil, http.StatusBadGateway, true},
	{"html", nil, http.StatusBadGateway, false},
	{"malformed", nil, http.StatusBadGateway, true},
}

func TestG2_UpstreamFaultsUseTheClientDialect(t *testing.T) {
	for _, f := range faultCases {
		t.Run(f.fault, func(t *testing.T) {
			var how []option
			if f.fault == "malformed" {
				how = append(how, unjudgedPassThrough("an invalid chunk is passed through"))
			}
			forEachPair(t, newWorld(t, "", how...), func(t *testing.T, c *client, model string, stream bool) {
				if strings.HasPrefix(model, "sim/") {
					return // no server
				}
				resp, err := c.generate(&dragoman.Request{
					Model: model + "?fault=" + f.fault, Stream: stream, MaxOutputTokens: new(int64(500)), Messages: []dragoman.Message{userSays("Say hello to all of us.")},
				})
				if own := strings.HasPrefix(model, providerOf(c.codec.Dialect())+"/"); own && stream && f.fault == "malformed" {
					return // passed through
				}
				if err == nil {
					t.Fatalf("no error, but %q, %v", textOf(resp), resp.Stop)
				}
				var api *dragoman.APIError
				if !errors.As(err, &api) || api.Message == "" {
					t.Fatalf("%T %v", err, err)
				}
				if len(f.classes) > 0 && !slices.Contains(f.classes, api.Class) {
					t.Errorf("%s: %v", api.Class, err)
				}
				if behind := stream && f.begun; behind && api.Status != 0 || !behind && !isStatus(api.Status, f.status) {
					t.Errorf("status %d: %v", api.Status, err)
				}
			})
		})
	}
}

func TestG2_InvalidResponseIsAnUpstreamError(t *testing.T) {
	for says, want := range map[string]string{
		`{}`:                      "a response that cannot be decoded",
		`[]`:                      "a response that cannot be decoded",
		`{"id":"x","type":"mess`:  "a response that cannot be decoded",
		`{"content":7,"id":false`: "a response that cannot be decoded",
		`nope`:                    "the upstream response is not JSON",
	} {
		w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("content-type", "application/json")
			_, _ = io.WriteString(rw, says)
		})
		for _, up := range upstreams[:len(upstreams)-1] { // the in-process simulator has no server
			status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"`+up+`/m","messages":[{"role":"user","content":"hi"}]}`)
			passed := says == `nope` && strings.Contains(text, "a response that cannot be decoded") // reported by the gateway when it passes the response through
			if status != http.StatusBadGateway || !strings.Contains(text, want) && !passed {
				t.Errorf("%s from %s: %d %s", says, up, status, text)
			}
		}
	}
	w := newWorld(t, "")
	w.sim.Close()
	for _, up := range []string{"openai", "anthropic"} { // passed on, and translated
		status, text := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"`+up+`/m","messages":[{"role":"user","content":"hi"}]}`)
		if status != http.StatusBadGateway || !strings.Contains(text, "the upstream cannot be reached") {
			t.Errorf("%s: %d %s", up, status, text)
		}
	}
}

// providerOf returns the provider that uses a dialect.
func providerOf(d dragoman.Dialect) string {
	switch d {
	case dialectname.OpenAIChat:
		return "openai"
	case dialectname.OpenAIResponses:
		return "responses"
	case dialectname.Anthropic:
		return "anthropic"
	case dialectname.Gemini:
		return "gemini"
	default:
		return "ollama"
	}
}
