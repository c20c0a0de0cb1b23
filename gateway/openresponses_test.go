package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// translatedUpstreams are simulated models whose responses the gateway translates: one in process,
// and one behind each other dialect.
var translatedUpstreams = []string{"sim/echo", "anthropic/sim/echo", "chat/sim/echo", "gemini/sim/echo", "ollama/sim/echo", "bedrock/sim/echo"}

// TestOpenResponsesRequiredFields pins the fields that Open Responses requires with a
// value. It does not need the document.
func TestOpenResponsesRequiredFields(t *testing.T) {
	w := newWorld(t, "")
	for _, up := range translatedUpstreams {
		for _, stream := range []string{"false", "true"} {
			for _, settings := range []string{``, `,"temperature":null,"top_p":null,"service_tier":null`} {
				got := postResponses(t, w, fmt.Sprintf(`{"model":%q,"input":"Hello.","stream":%s%s}`, up, stream, settings))
				created, _ := got["created_at"].(float64)
				completed, _ := got["completed_at"].(float64)
				if got["temperature"] != 1.0 || got["top_p"] != 1.0 || got["service_tier"] != "default" || completed < created || completed == 0 {
					t.Errorf("%s, stream %s%s: temperature %v, top_p %v, service_tier %v, created_at %v, completed_at %v",
						up, stream, settings, got["temperature"], got["top_p"], got["service_tier"], got["created_at"], got["completed_at"])
				}
			}
		}
	}
}

func TestOpenResponsesStreamSnapshotsHaveRequiredFields(t *testing.T) {
	w := newWorld(t, "")
	_, text := get(t, http.MethodPost, w.url+"/v1/responses", `{"model":"anthropic/sim/echo","input":"Hello.","stream":true,"temperature":0.5}`)
	for _, event := range []string{"response.created", "response.in_progress"} {
		_, data, ok := strings.Cut(text, "event: "+event+"\ndata: ")
		data, _, _ = strings.Cut(data, "\n")
		var e struct{ Response map[string]any }
		if err := json.Unmarshal([]byte(data), &e); err != nil || !ok {
			t.Fatalf("%s: %v in %s", event, err, text)
		}
		completed, has := e.Response["completed_at"]
		if e.Response["temperature"] != 0.5 || e.Response["top_p"] != 1.0 || e.Response["service_tier"] != "default" || !has || completed != nil {
			t.Errorf("%s: %v", event, e.Response)
		}
	}
}

func TestResponseEchoesTheSettingsOfTheRoute(t *testing.T) {
	w := newWorld(t, "gateway:\n  routes: {m: {to: anthropic/sim/echo, set: {temperature: 0.25}}}\n")
	for _, requests := range []string{``, `,"temperature":0.75`} {
		got := postResponses(t, w, `{"model":"m","input":"Hello."`+requests+`}`)
		if got["temperature"] != 0.25 {
			t.Errorf("asked for %q: temperature %v, want the route's 0.25", requests, got["temperature"])
		}
	}
}
