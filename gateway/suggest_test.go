package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/gateway"
)

// One error lists all mistakes of a file, including routes to unknown models if the providers
// have errors.
func TestG4_RoutesAreCheckedDespiteProviderErrors(t *testing.T) {
	_, err := gateway.Parse("f", []byte(`version: 1
providers:
  work: {type: vllm, base_url: "https://llm.example.com/v1", retris: 3}
  cloud: {type: bedrok}
aliases:
  fast: work/small
  bad: wrk/small, anthropc/claude
  loop: loop
gateway:
  listen: 12
  routes:
    a: {to: wrok/x}
    b: {to: fsat}
    c: {to: "anthropc/claude, openai/x, gemni/y"}
    d: {to: [bad, loop, fast, work/x, cloud/x, openai/gpt-5, sim/echo]}
    e-*: {to: "wrok/*"}
`))
	if err == nil {
		t.Fatal("the file is taken")
	}
	for _, want := range []string{
		`f:3:62: provider work: unknown field "retris"`, `f:4:17: type: "bedrok"`, `f:7:8: alias bad: unknown provider "wrk"`, `f:7:8: alias bad: unknown provider "anthropc"`,
		`f:8:9: alias loop: `, `f:10:11: listen: `,
		`f:12:13: to: unknown provider "wrok"`, `f:13:13: to: not an alias`, `f:14:13: to: unknown provider "anthropc"`, `f:14:13: to: unknown provider "gemni"`,
		`f:16:15: to: unknown provider "wrok"`, `did you mean work?`, `did you mean fast?`, `did you mean anthropic?`, `did you mean gemini?`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing", want)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 11 {
		t.Errorf("%d errors:\n%v", n, err)
	}
}

func TestMisspelledCapabilitySuggestsName(t *testing.T) {
	_, err := gateway.Parse("f", []byte(`version: 1
providers: {work: {type: vllm, base_url: "https://llm.example.com/v1", capabilities: {no_strct: true}, models: {m: {capabilities: {reasoning_feild: x}}}}}
gateway: {routes: {a: {to: work/x, capabilities: {no-images: true}}}}
`))
	if err == nil {
		t.Fatal("the file is taken")
	}
	for _, want := range []string{"did you mean no_strict?", "did you mean reasoning_field?", "did you mean no_images?"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is missing in\n%v", want, err)
		}
	}
}

// The error for a misspelled model suggests a similar name that the key may use.
func TestMisspelledModelSuggestsNamesOfTheKey(t *testing.T) {
	t.Setenv("TEAM_KEY", "a-secret-of-the-team")
	t.Setenv("BOSS_KEY", "a-secret-of-the-boss")
	t.Setenv("GLOB_KEY", "a-secret-of-the-glob")
	w := newWorld(t, `gateway:
  keys:
    team: {key_env: TEAM_KEY, models: [gpt-4o, "local-*"]}
    boss: {key_env: BOSS_KEY}
    glob: {key_env: GLOB_KEY, models: ["*-4*", "se*l"]}
  routes:
    gpt-4o: {to: sim/echo}
    secret-model: {to: sim/echo}
    work/tiny: {to: sim/echo}
    local-small: {to: sim/echo}
    "cloud-*": {to: sim/echo}
    "try-*": {to: "sim/*"}
    "house/of/*": {to: sim/echo}
`)
	const none = "did you mean"
	for _, tc := range []struct {
		key, model string
		status     int
		want       string
	}{
		{"team", "gtp-4o", http.StatusForbidden, "did you mean gpt-4o?"},
		{"team", "local-smal", http.StatusNotFound, "did you mean local-small?"},
		{"team", "secret-modle", http.StatusForbidden, none},
		{"team", "tiny", http.StatusForbidden, none},
		{"glob", "gtp-4o", http.StatusNotFound, "did you mean gpt-4o?"},
		{"glob", "secret-modl", http.StatusNotFound, "did you mean secret-model?"},
		{"boss", "secret-modle", http.StatusNotFound, "did you mean secret-model?"},
		{"boss", "tiny", http.StatusNotFound, "did you mean work/tiny?"},
		{"boss", "something-else-entirely", http.StatusNotFound, none},
		{"boss", "try-ecko", http.StatusNotFound, "did you mean try-echo?"},
		{"team", "try-ecko", http.StatusForbidden, none},
		{"boss", "cloudy*", http.StatusNotFound, none},
		{"boss", "cluod-large", http.StatusNotFound, "did you mean cloud-large?"},
		{"boss", "hous/of/m", http.StatusNotFound, "did you mean house/of/m?"},
		{"boss", "mouse-of/m", http.StatusNotFound, none},
		{"boss", "house/", http.StatusNotFound, none},
		{"team", "cluod-large", http.StatusForbidden, none},
	} {
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"model":"` + tc.model + `","messages":[{"role":"user","content":"hi"}]}`,
			"/v1/messages":         `{"model":"` + tc.model + `","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
			"/api/show":            `{"model":"` + tc.model + `"}`,
			"/v1beta/models/" + strings.ReplaceAll(tc.model, "/", "%2F") + ":generateContent": `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
		} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer a-secret-of-the-"+tc.key)
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			got := string(b)
			if err != nil || resp.StatusCode != tc.status || strings.Contains(got, tc.want) != (tc.want != none) {
				t.Errorf("%s, %s, %s: %d %s, want %d %s", tc.key, tc.model, path, resp.StatusCode, got, tc.status, tc.want)
			}
			if tc.key == "team" && (strings.Contains(got, "secret-model\"") || strings.Contains(got, "secret-model?") || strings.Contains(got, "work/tiny")) {
				t.Errorf("%s reads the name of a model of another key: %s", tc.key, got)
			}
		}
	}
}
