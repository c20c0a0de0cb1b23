package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dragoman-go/dragoman/sim"
)

// A stored response is continued by the upstream that stores it, wherever that is in the list of
// models. While it is down, the client gets its error, not "not found".
func TestG7_StoredResponseStaysWithItsUpstream(t *testing.T) {
	withTwoKeys(t)
	for _, keys := range []string{"", twoKeys} {
		for _, list := range []string{"responses/planner, openai/planner", "openai/planner, responses/planner"} {
			t.Run(fmt.Sprintf("%s, keys %v", list, keys != ""), func(t *testing.T) {
				var down atomic.Value // a part of the path that fails
				down.Store("/chat/completions")
				stored := sim.Handler(sim.Config{})
				w := newServerWorld(t, fmt.Sprintf("failover: {after: 100}\ngateway:\n%s  routes: {m: {to: %q}}\n", keys, list), func(rw http.ResponseWriter, r *http.Request) {
					if strings.Contains(r.URL.Path, down.Load().(string)) {
						rw.Header().Set("content-type", "application/json")
						rw.Header().Set("Retry-After", "7")
						rw.WriteHeader(http.StatusServiceUnavailable)
						_, _ = io.WriteString(rw, `{"error":{"message":"not now","type":"server_error","param":null,"code":null}}`)
						return
					}
					stored.ServeHTTP(rw, r)
				})
				post := func(more string) (int, string) {
					return postAs(t, w, http.MethodPost, "/v1/responses", "first", fmt.Sprintf(`{"model":"m",%s}`, more))
				}
				status, text := post(`"input":"Hello."`)
				if status != http.StatusOK {
					t.Fatalf("%d %s", status, text)
				}
				first := decodeJSON(t, strings.NewReader(text))
				continued := map[string]string{
					"the response": fmt.Sprintf(`"previous_response_id":%q,"input":"Go on."`, first["id"]),
					"its item":     fmt.Sprintf(`"input":[{"type":"item_reference","id":%q},{"role":"user","content":"Go on."}]`, idsOf(first, "message")[0]),
				}
				down.Store("nothing")
				for what, more := range continued {
					if status, text := post(more); status != http.StatusOK {
						t.Errorf("%s: %d %s", what, status, text)
					}
				}
				down.Store("/responses")
				for what, more := range continued {
					if status, text := post(more); status != http.StatusServiceUnavailable || !strings.Contains(text, "not now") {
						t.Errorf("%s, while its upstream is down: %d %s", what, status, text)
					}
				}
				if status, text := post(`"input":"Something else."`); status != http.StatusOK {
					t.Errorf("another request: %d %s", status, text)
				}
			})
		}
	}
}

// Many compatible servers send errors without a type.
func TestG2_ErrorWithoutTypeGetsTheTypeOfItsStatus(t *testing.T) {
	for status, want := range map[int]string{500: "server_error", 503: "server_error", 429: "requests", 400: "invalid_request_error", 404: "invalid_request_error"} {
		w := newServerWorld(t, "", func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(status)
			_, _ = io.WriteString(rw, `{"error":{"message":"no"}}`)
		})
		got, text := get(t, http.MethodPost, w.url+"/v1/responses", `{"model":"openai/m","input":"Hello."}`)
		if got != status || !strings.Contains(text, fmt.Sprintf(`"type":%q`, want)) {
			t.Errorf("%d: %d %s", status, got, text)
		}
	}
}
