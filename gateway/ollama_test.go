package gateway_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// readGenerate reads what a client of /api/generate gets, line by line as the Ollama client
// does: a whole response is one line too.
func readGenerate(t *testing.T, url, body string) (text, thinking, reason string) {
	t.Helper()
	status, out := get(t, http.MethodPost, url+"/api/generate", body)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, out)
	}
	done := false
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var line struct {
			Model, Response, Thinking, Error string
			Created                          string `json:"created_at"`
			Done                             bool
			Reason                           string `json:"done_reason"`
			Message                          *json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Error != "" || line.Message != nil || line.Created == "" || done {
			t.Fatalf("%v in %q of %s", err, lines.Text(), out)
		}
		text, thinking, reason, done = text+line.Response, thinking+line.Thinking, line.Reason, line.Done
	}
	if !done {
		t.Fatalf("no end: %s", out)
	}
	return text, thinking, reason
}

func TestOllamaGenerateReachesEveryUpstream(t *testing.T) {
	w := newWorld(t, "")
	for _, upstream := range upstreams {
		model := upstream + "/sim/echo"
		if upstream == "sim" {
			model = "sim/echo"
		}
		for _, stream := range []string{"", `,"stream":true`, `,"stream":false`} {
			text, _, reason := readGenerate(t, w.url, fmt.Sprintf(`{"model":%q,"system":"Be brief.","prompt":"lighthouse keeper","context":[],"template":"","format":"","options":{}%s}`, model, stream))
			if !strings.Contains(text, "lighthouse keeper") || reason != "stop" {
				t.Errorf("%s%s: %q ends with %q", model, stream, text, reason)
			}
		}
	}
}

func TestOllamaLoadAndUnload(t *testing.T) {
	w := newWorld(t, "")
	for body, want := range map[string]string{
		`{"model":"sim/echo"}`: "load", `{"model":"sim/echo","prompt":"","keep_alive":"5m"}`: "load", `{"model":"sim/echo","keep_alive":-1}`: "load",
		`{"model":"sim/echo","keep_alive":0}`: "unload", `{"model":"sim/echo","keep_alive":"0s","stream":false}`: "unload",
	} {
		if text, _, reason := readGenerate(t, w.url, body); reason != want || text != "" {
			t.Errorf("%s: %q ends with %q", body, text, reason)
		}
		chat := strings.Replace(body, `"prompt":""`, `"messages":[]`, 1)
		if status, text := get(t, http.MethodPost, w.url+"/api/chat", chat); status != http.StatusOK || !strings.Contains(text, `"done_reason":"`+want+`"`) || !strings.Contains(text, `"message":{"role":"assistant"`) {
			t.Errorf("%s: %d %s", chat, status, text)
		}
	}
	if status, text := get(t, http.MethodPost, w.url+"/api/generate", `{"model":"no/such"}`); status != http.StatusNotFound {
		t.Errorf("a model that is not served is loaded: %d %s", status, text)
	}
}

func TestOllamaGenerateRefusesWhatItCannotDo(t *testing.T) {
	w := newWorld(t, "")
	for body, want := range map[string]string{
		`{"model":"sim/echo","prompt":"func f(","suffix":"}"}`: "suffix", `{"model":"sim/echo","prompt":"more","context":[1,2,3]}`: "/api/chat",
		`{"prompt":"hi"}`: "model", `[]`: "object", `{"model":"sim/echo","prompt":"hi"`: "JSON",
	} {
		if status, text := get(t, http.MethodPost, w.url+"/api/generate", body); status != http.StatusBadRequest || !strings.Contains(text, want) || !strings.HasPrefix(text, `{"error":`) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	resp, err := http.Post(w.url+"/api/generate", "application/json", strings.NewReader(`{"model":"sim/echo","prompt":"hi","raw":true,"template":"{{ .Prompt }}"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if losses := resp.Header.Get("X-Dragoman-Losses"); !strings.Contains(losses, "/raw") || !strings.Contains(losses, "/template") {
		t.Errorf("losses %q", losses)
	}
}

// The ollama command panics where one of the counts is missing.
func TestOllamaShowHasEveryCount(t *testing.T) {
	w := newWorld(t, "")
	for _, field := range []string{"model", "name"} {
		status, text := get(t, http.MethodPost, w.url+"/api/show", `{"`+field+`":"sim/echo"}`)
		var shown struct {
			Details      struct{ Format, Family string }
			Capabilities []string
			Modified     string         `json:"modified_at"`
			Info         map[string]any `json:"model_info"`
			Modelfile    string
		}
		if err := json.Unmarshal([]byte(text), &shown); err != nil || status != http.StatusOK {
			t.Fatalf("%d %v %s", status, err, text)
		}
		arch, _ := shown.Info["general.architecture"].(string)
		for _, count := range []string{"general.parameter_count", arch + ".context_length", arch + ".embedding_length"} {
			if _, ok := shown.Info[count].(float64); !ok {
				t.Errorf("%s is %v in %s", count, shown.Info[count], text)
			}
		}
		if arch == "" || shown.Details.Family == "" || shown.Modified == "" || len(shown.Capabilities) == 0 || shown.Modelfile == "" {
			t.Errorf("%s", text)
		}
	}
}

// The facts of the model table are shown, for the first upstream of the route.
func TestOllamaShowHasUpstreamFacts(t *testing.T) {
	w := newWorld(t, "gateway:\n  routes: {mini: {to: openai/gpt-4.1}}\n")
	for _, tc := range []struct{ method, path, body string }{{http.MethodPost, "/api/show", `{"model":"mini"}`}, {http.MethodGet, "/api/tags", ""}} {
		status, text := get(t, tc.method, w.url+tc.path, tc.body)
		if status != http.StatusOK || strings.Contains(text, `"thinking"`) || !strings.Contains(text, `"tools"`) || tc.body != "" && strings.Contains(text, `.context_length":0`) {
			t.Errorf("%s: %d %s", tc.path, status, text)
		}
	}
}

// The facts are those of the provider's type, not of its name in the config, and the config can change them.
func TestA3_OllamaShowUsesTheProviderTypeAndTheConfig(t *testing.T) {
	w := newWorldOf(t, nil, `version: 1
providers:
  house: {type: ollama, base_url: "http://127.0.0.1:1"}
  cloud: {type: bedrock, base_url: "http://127.0.0.1:1", region: us-east-1}
  mistral: {type: compatible, base_url: "http://127.0.0.1:1"}
  thinker: {type: ollama, base_url: "http://127.0.0.1:1", capabilities: {no_thinking: false}}
  own: {type: openai, base_url: "http://127.0.0.1:1", models: {small: {name: gpt-4.1}}}
gateway:
  routes:
    llama: {to: house/llama3.1}
    claude: {to: "cloud/anthropic.claude-sonnet-4-5-20250929-v1:0"}
    named: {to: mistral/mistral-large-latest}
    thinks: {to: thinker/llama3.1}
    plain: {to: house/qwen3, capabilities: {no_thinking: true}}
    small: {to: own/small}
`)
	for _, tc := range []struct {
		model    string
		thinking bool
		context  string
	}{
		{"llama", false, "0"},
		{"claude", true, "200000"},
		{"named", true, "0"}, // a server of any type may have any model under this name
		{"thinks", true, "0"},
		{"plain", false, "0"},
		{"small", false, "1047576"},
	} {
		status, text := get(t, http.MethodPost, w.url+"/api/show", `{"model":"`+tc.model+`"}`)
		if status != http.StatusOK || strings.Contains(text, `"thinking"`) != tc.thinking || !strings.Contains(text, `.context_length":`+tc.context+`,`) {
			t.Errorf("%s: %d %s", tc.model, status, text)
		}
	}
}

// Every Ollama server numbers the calls of a response. The order of the calls says the same, so that is not a loss.
func TestOllamaCallNumbersAreNotALoss(t *testing.T) {
	withRig(t, "", func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(rw, `{"model":"m","created_at":"2026-01-01T00:00:00Z","message":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"get_weather","arguments":{"city":"Oslo"}}},{"id":"call_2","function":{"index":1,"name":"get_weather","arguments":{"city":"Rome"}}}]},"done":true,"done_reason":"stop","prompt_eval_count":1,"eval_count":1}`)
	}, func(r *rig) {
		for _, codec := range clientDialects {
			a := r.roundTrip(pair{codec, "ollama"}, false)
			if a.status != http.StatusOK || !strings.Contains(string(a.body), "Rome") || strings.Contains(a.header.Get("X-Dragoman-Losses"), "index") {
				r.t.Errorf("%s: %d %q %s", codec.Dialect(), a.status, a.header.Get("X-Dragoman-Losses"), a.body)
			}
		}
	})
}

func TestOllamaListsNoLoadedModels(t *testing.T) {
	open := newWorld(t, "")
	if status, text := get(t, http.MethodGet, open.url+"/api/ps", ""); status != http.StatusOK || text != `{"models":[]}` {
		t.Errorf("%d %s", status, text)
	}
}
