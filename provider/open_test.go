package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/provider/extension"
	"github.com/dragoman-go/dragoman/provider/internal/servers"
	"github.com/dragoman-go/dragoman/sim"
)

// env returns a lookup function for an environment.
func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// capturingTransport records the request and returns an error.
type capturingTransport struct {
	url    string
	header http.Header
	body   string
}

func (w *capturingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	w.url, w.header, w.body = r.URL.String(), r.Header, string(body)
	return &http.Response{StatusCode: http.StatusTeapot, Body: http.NoBody, Header: http.Header{}}, err
}

// captureRequest opens a model and returns the request that it sends.
func captureRequest(t *testing.T, c *provider.Config, spec string) *capturingTransport {
	t.Helper()
	var w capturingTransport
	c.HTTP = &http.Client{Transport: &w}
	m, err := c.Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), newRequest()); w.url == "" {
		t.Fatalf("%s: nothing was sent: %v", spec, err)
	}
	return &w
}

func TestX15_BuiltInProvidersAreKnownByName(t *testing.T) {
	key := func(name string) []string { return []string{name, "the-key"} }
	const bearer, the = "Authorization", "Bearer the-key"
	for _, tc := range []struct {
		spec, url, header, value string
		env                      []string
	}{
		{"openai/gpt-5", "https://api.openai.com/v1/responses", bearer, the, key("OPENAI_API_KEY")},
		{"openai/gpt-5", "https://proxy.example/v1/responses", bearer, the, append(key("OPENAI_API_KEY"), "OPENAI_BASE_URL", "https://proxy.example/v1")},
		{"openai/gpt-5", "https://api.openai.com/v1/responses", "Openai-Organization", "org-1", append(key("OPENAI_API_KEY"), "OPENAI_ORG_ID", "org-1")},
		{"openai/gpt-5", "https://api.openai.com/v1/responses", "Openai-Project", "proj-1", append(key("OPENAI_API_KEY"), "OPENAI_PROJECT_ID", "proj-1")},
		{"openai-chat/gpt-4.1", "https://api.openai.com/v1/chat/completions", bearer, the, key("OPENAI_API_KEY")},
		{"anthropic/claude-opus-5-5", "https://api.anthropic.com/v1/messages", "X-Api-Key", "the-key", key("ANTHROPIC_API_KEY")},
		{"anthropic/claude-opus-5-5", "https://api.anthropic.com/v1/messages", "Anthropic-Version", "2023-06-01", key("ANTHROPIC_API_KEY")},
		{"anthropic/claude-opus-5-5", "https://proxy.example/a/v1/messages", bearer, the, append(key("ANTHROPIC_AUTH_TOKEN"), "ANTHROPIC_BASE_URL", "https://proxy.example/a")},
		{"gemini/gemini-3-pro", "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent", "X-Goog-Api-Key", "the-key", key("GEMINI_API_KEY")},
		{"google/gemini-3-pro", "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent", "X-Goog-Api-Key", "the-key", key("GOOGLE_API_KEY")},
		{"vertex/gemini-3-pro", "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro:generateContent", bearer, the, append(key("GOOGLE_OAUTH_ACCESS_TOKEN"), "GOOGLE_CLOUD_PROJECT", "p")},
		{"vertex/gemini-3-pro", "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/publishers/google/models/gemini-3-pro:generateContent", bearer, the, append(key("GOOGLE_OAUTH_ACCESS_TOKEN"), "GOOGLE_CLOUD_PROJECT", "p", "GOOGLE_CLOUD_LOCATION", "europe-west4")},
		{"ollama/qwen3:8b", "http://127.0.0.1:11434/api/chat", bearer, "", nil},
		{"ollama/qwen3:8b", "http://127.0.0.1:7000/api/chat", bearer, the, append(key("OLLAMA_API_KEY"), "OLLAMA_HOST", "0.0.0.0:7000")},
		{"ollama/qwen3:8b", "http://box:11434/api/chat", bearer, "", []string{"OLLAMA_HOST", "box"}},
		{"ollama/qwen3:8b", "http://127.0.0.1:7000/api/chat", bearer, "", []string{"OLLAMA_HOST", ":7000"}},
		{"ollama/qwen3:8b", "https://box.example/api/chat", bearer, "", []string{"OLLAMA_HOST", "https://box.example"}},
		{"ollama/qwen3:8b", "http://[::1]:11434/api/chat", bearer, "", []string{"OLLAMA_HOST", "[::1]"}},
		{"ollama/qwen3:8b", "http://[::1]:11434/api/chat", bearer, "", []string{"OLLAMA_HOST", "::1"}},
		{"ollama/qwen3:8b", "http://[::1]:7000/api/chat", bearer, "", []string{"OLLAMA_HOST", "[::1]:7000"}},
		{"ollama/qwen3:8b", "http://127.0.0.1:11434/api/chat", bearer, "", []string{"OLLAMA_HOST", "::"}},
		{"bedrock/anthropic.claude-opus-5-5-v1:0", "https://bedrock-runtime.eu-north-1.amazonaws.com/model/anthropic.claude-opus-5-5-v1%3A0/converse", bearer, the, append(key("AWS_BEARER_TOKEN_BEDROCK"), "AWS_REGION", "eu-north-1")},
		{"deepseek/deepseek-chat", "https://api.deepseek.com/chat/completions", bearer, the, key("DEEPSEEK_API_KEY")},
		{"mistral/mistral-large", "https://api.mistral.ai/v1/chat/completions", bearer, the, key("MISTRAL_API_KEY")},
		{"groq/llama-4", "https://api.groq.com/openai/v1/chat/completions", bearer, the, key("GROQ_API_KEY")},
		{"openrouter/anthropic/claude-opus-5-5", "https://openrouter.ai/api/v1/chat/completions", bearer, the, key("OPENROUTER_API_KEY")},
		{"xai/grok-5", "https://api.x.ai/v1/chat/completions", bearer, the, key("XAI_API_KEY")},
		{"kimi/kimi-k3", "https://api.moonshot.ai/v1/chat/completions", bearer, the, key("MOONSHOT_API_KEY")},
		{"qwen/qwen4-max", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions", bearer, the, key("DASHSCOPE_API_KEY")},
		{"zai/glm-5.3", "https://api.z.ai/api/paas/v4/chat/completions", bearer, the, key("ZAI_API_KEY")},
		{"together/x/y", "https://api.together.xyz/v1/chat/completions", bearer, the, key("TOGETHER_API_KEY")},
		{"fireworks/accounts/fireworks/models/x", "https://api.fireworks.ai/inference/v1/chat/completions", bearer, the, key("FIREWORKS_API_KEY")},
		{"cerebras/x", "https://api.cerebras.ai/v1/chat/completions", bearer, the, key("CEREBRAS_API_KEY")},
		{"vllm/x", "http://127.0.0.1:8000/v1/chat/completions", bearer, "", nil},
		{"vllm/x", "http://gpu:8000/v1/chat/completions", bearer, the, append(key("VLLM_API_KEY"), "VLLM_BASE_URL", "http://gpu:8000/v1")},
		{"llamacpp/x", "http://127.0.0.1:8080/v1/chat/completions", bearer, "", nil},
		{"lmstudio/x", "http://127.0.0.1:1234/v1/chat/completions", bearer, "", nil},
	} {
		w := captureRequest(t, &provider.Config{Getenv: env(tc.env...)}, tc.spec)
		if w.url != tc.url {
			t.Errorf("%s: sent to %s, want %s", tc.spec, w.url, tc.url)
		}
		if got := w.header.Get(tc.header); got != tc.value {
			t.Errorf("%s: %s is %q, want %q", tc.spec, tc.header, got, tc.value)
		}
	}
}

func TestX15_ModelIsEverythingAfterTheFirstSlash(t *testing.T) {
	w := captureRequest(t, &provider.Config{Getenv: env("OPENROUTER_API_KEY", "k")}, "openrouter/anthropic/claude-opus-5-5")
	if !strings.Contains(w.body, `"model":"anthropic/claude-opus-5-5"`) {
		t.Errorf("sent %s", w.body)
	}
}

func TestX12_MissingCredentialFailsTheFirstCall(t *testing.T) {
	for spec, want := range map[string]string{
		"openai/m": "OPENAI_API_KEY", "openai-chat/m": "OPENAI_API_KEY", "anthropic/m": "ANTHROPIC_API_KEY", "gemini/m": "GEMINI_API_KEY or GOOGLE_API_KEY",
		"deepseek/m": "DEEPSEEK_API_KEY", "mistral/m": "MISTRAL_API_KEY", "groq/m": "GROQ_API_KEY", "openrouter/m": "OPENROUTER_API_KEY", "xai/m": "XAI_API_KEY",
		"moonshot/m": "MOONSHOT_API_KEY", "qwen/m": "DASHSCOPE_API_KEY", "zai/m": "ZAI_API_KEY", "together/m": "TOGETHER_API_KEY", "fireworks/m": "FIREWORKS_API_KEY", "cerebras/m": "CEREBRAS_API_KEY",
		"vertex/m": "GOOGLE_CLOUD_PROJECT", "bedrock/m": "AWS_REGION",
	} {
		m, err := (&provider.Config{Getenv: env()}).Open(spec)
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		_, err = m.Generate(t.Context(), newRequest())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not name %s", spec, err, want)
		}
		var api *dragoman.APIError
		if strings.HasSuffix(want, "KEY") && (!errors.As(err, &api) || api.Class != dragoman.ErrorAuth) {
			t.Errorf("%s: %#v", spec, err)
		}
	}
	for spec, c := range map[string]*provider.Config{
		"bedrock/m": {Getenv: env("AWS_REGION", "r")}, "vertex/m": {Getenv: env("GOOGLE_CLOUD_PROJECT", "p")},
	} {
		m, err := c.Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		var key *provider.MissingKeyError
		if _, err := m.Generate(t.Context(), newRequest()); !errors.As(err, &key) {
			t.Errorf("%s: %v", spec, err)
		}
	}
}

func TestX15_AliasesResolveToModels(t *testing.T) {
	c := &provider.Config{Getenv: env("OPENAI_API_KEY", "k"), Aliases: map[string]string{"best": "smart", "smart": "openai/gpt-5"}}
	if w := captureRequest(t, c, "best"); !strings.Contains(w.body, `"model":"gpt-5"`) {
		t.Errorf("sent %s", w.body)
	}
}

func TestX15_ListOpensAChain(t *testing.T) {
	c := &provider.Config{Getenv: env(), Aliases: map[string]string{"spare": "groq/b , ollama/c", "more": "spare,openai/a"}}
	m, err := c.Open("openai/a, more ,xai/d")
	if err != nil {
		t.Fatal(err)
	}
	chain, ok := m.(*provider.Chain)
	if !ok {
		t.Fatalf("it is a %T", m)
	}
	var names []string
	for _, l := range chain.Links {
		names = append(names, l.Name)
	}
	if got := strings.Join(names, " "); got != "openai/a groq/b ollama/c xai/d" {
		t.Errorf("links %s", got)
	}
	again, err := c.Open("openai/a,xai/d")
	if err != nil || again.(*provider.Chain).Health != chain.Health {
		t.Errorf("chains of one config do not share their health: %v", err)
	}
	if one, err := c.Open("openai/a,openai/a"); err != nil {
		t.Error(err)
	} else if _, ok := one.(*provider.Client); !ok {
		t.Errorf("a list of one is a %T", one)
	}
}

func TestX15_InvalidSpecsAreExplained(t *testing.T) {
	c := &provider.Config{Getenv: env(), Aliases: map[string]string{"a": "b", "b": "c, openai/x", "c": "a", "self": "self", "lost": "nowhere/x"}}
	for spec, want := range map[string]string{
		"":               "the model is missing: write PROVIDER/MODEL",
		"openai/a,":      "list is empty",
		"openai":         "openai/MODEL",
		"openai/":        "after the slash",
		"gpt-5":          "not an alias",
		"acme/x":         `unknown provider "acme"`,
		"simm/planner":   "lmstudio, sim",
		"a":              "a → b → c → a",
		"self":           "self → self",
		"lost":           `unknown provider "nowhere"`,
		"openai/x,a":     "refers to itself",
		"/x":             `unknown provider ""`,
		"compatible/any": "base_url",
	} {
		_, err := c.Open(spec)
		var bad *provider.SpecError
		var setting *provider.SettingError
		if err == nil || !strings.Contains(err.Error(), want) || !errors.As(err, &bad) && !errors.As(err, &setting) {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
		if errors.As(err, &bad) && !badSpec(err) {
			t.Errorf("%q: it is not an ErrSpec", spec)
		}
	}
}

const configFile = `# all that a file can say
version: 1
providers:
  work:
    type: openai-chat
    base_url: https://llm.example.com/v1
    api_key_env: [WORK_KEY, OTHER_KEY]
    key_header: api-key
    headers: {x-team: search}
    path: /deployments/{model}/chat?api-version=7
    stream_path: /deployments/{model}/stream
    capabilities: {no_strict: true, legacy_max_tokens: true, reasoning_field: reasoning}
    models:
      small:
        name: llama-9b
        capabilities: {legacy_max_tokens: false}
    timeouts: {connect: 5s, first_byte: 2m, idle: none, total: 10m}
    retries: 0
  claudes: {type: anthropic, base_url: "https://claude.example.com", api_key_env: WORK_KEY}
  frankfurt: {type: bedrock, region: eu-central-1}
  cloud: {type: vertex, project: my-project, location: europe-west4}
  own: {type: compatible, base_url: "http://127.0.0.1:9"}
  openai: {api_key_env: WORK_KEY}
aliases:
  fast: work/small
  best: [anthropic/claude-opus-5-5, openai/gpt-5, fast]
`

func TestX15_ConfigFileSetsProviders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(configFile), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func() *provider.Config {
		c, err := provider.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		c.Getenv = env("OTHER_KEY", "k1", "WORK_KEY", "", "AWS_BEARER_TOKEN_BEDROCK", "k2", "GOOGLE_OAUTH_ACCESS_TOKEN", "k3")
		return c
	}
	w := captureRequest(t, load(), "fast")
	if w.url != "https://llm.example.com/v1/deployments/llama-9b/chat?api-version=7" || w.header.Get("Api-Key") != "k1" || w.header.Get("Authorization") != "" || w.header.Get("X-Team") != "search" {
		t.Errorf("sent to %s with %v", w.url, w.header)
	}
	for spec, want := range map[string]string{
		"frankfurt/m": "https://bedrock-runtime.eu-central-1.amazonaws.com/model/m/converse",
		"cloud/m":     "https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west4/publishers/google/models/m:generateContent",
		"own/m":       "http://127.0.0.1:9/chat/completions",
	} {
		if w := captureRequest(t, load(), spec); w.url != want {
			t.Errorf("%s: sent to %s, want %s", spec, w.url, want)
		}
	}
	m, err := load().Open("work/small")
	if err != nil {
		t.Fatal(err)
	}
	client := m.(*provider.Client)
	target, _, err := client.Target(t.Context(), "")
	if caps := target.Caps; err != nil || !caps.NoStrict || caps.LegacyMaxTokens || caps.ReasoningField != "reasoning" {
		t.Errorf("%v: capabilities %+v", err, caps)
	}
	if client.Timeouts != (provider.Timeouts{Connect: 5 * time.Second, FirstByte: 2 * time.Minute, Idle: -1, Total: 10 * time.Minute}) || client.Retry.Max != -1 {
		t.Errorf("%+v %+v", client.Timeouts, client.Retry)
	}
	if m, err := load().Open("best"); err != nil || len(m.(*provider.Chain).Links) != 3 {
		t.Errorf("%v, %v", m, err)
	}
	m, err = load().Open("openai/gpt-5")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Generate(t.Context(), newRequest()); err == nil || !strings.Contains(err.Error(), "WORK_KEY") {
		t.Errorf("the settings of a built-in name are not the file's: %v", err)
	}
}

func TestX12_APIKeyEnvOverridesTheDefaultVariable(t *testing.T) {
	c := &provider.Config{
		Getenv:    env("MY_KEY", "mine", "AWS_BEARER_TOKEN_BEDROCK", "not-mine", "GOOGLE_OAUTH_ACCESS_TOKEN", "not-mine", "ANTHROPIC_API_KEY", "not-mine"),
		Providers: map[string]provider.Settings{},
	}
	for _, typ := range []string{"bedrock", "vertex", "anthropic", "gemini", "openai", "ollama"} {
		s := provider.Settings{APIKeyEnv: []string{"MY_KEY"}}
		switch typ {
		case "bedrock":
			s.Region = "eu-north-1"
		case "vertex":
			s.Project = "p"
		}
		c.Providers[typ] = s
		w := captureRequest(t, c, typ+"/m")
		key := w.header.Get("Authorization") + w.header.Get("X-Api-Key") + w.header.Get("X-Goog-Api-Key")
		if strings.TrimPrefix(key, "Bearer ") != "mine" {
			t.Errorf("%s: the key is %q", typ, key)
		}
	}
}

func TestX14_ConfigFileSetsFailoverAndBodyLimits(t *testing.T) {
	c, err := provider.Parse("c.yaml", []byte("version: 1\nproviders:\n  openai: {max_request_bytes: 100, max_response_bytes: 200}\nfailover: {always_continue: true, after: 2, cooldown: 7s, max_cooldown: 9s}\n"))
	if err != nil {
		t.Fatal(err)
	}
	clock := newClock()
	c.Getenv = env()
	c.SetClock(clock)
	m, err := c.Open("openai/a")
	if client, ok := m.(*provider.Client); err != nil || !ok || client.MaxRequestBytes != 100 || client.MaxResponseBytes != 200 {
		t.Errorf("%v %+v", err, m)
	}
	m, err = c.Open("openai/a,openai/b")
	if err != nil {
		t.Fatal(err)
	}
	chain := m.(*provider.Chain)
	if !chain.AlwaysContinue || chain.Health == nil {
		t.Errorf("%+v", chain)
	}
	for i, want := range []time.Duration{0, 7 * time.Second, 9 * time.Second, 9 * time.Second} { // after two, twice as long, at most
		chain.Health.Failed("openai/a", errors.New("no"))
		if until, skipped := chain.Health.SkippedUntil("openai/a"); skipped != (want > 0) || skipped && until.Sub(clock.Now()) != want {
			t.Errorf("failure %d: %v until %v", i+1, skipped, until)
		}
	}
}

func TestX15_FileErrorsHaveLines(t *testing.T) {
	for text, want := range map[string][]string{
		"providers: {}":            {"1:1", "version"},
		"version: 2":               {"1:10", "version 1"},
		"version: 1\nprovider: {}": {"2:1", "unknown field"},
		"version: 1\nproviders:\n  w: {type: nope}":                            {"3:13", `"nope"`},
		"version: 1\nproviders:\n  w: {}":                                      {"3:3", "type is missing"},
		"version: 1\nproviders:\n  w: {type: compatible}":                      {"3:", "base_url"},
		"version: 1\nproviders:\n  w:\n    type: openai\n    base_url: x":      {"5:15", "https://"},
		"version: 1\nproviders:\n  openai:\n    api_key: sk-hush":              {"4:14", "api_key_env"},
		"version: 1\nproviders:\n  openai:\n    capabilities: {no_tool: true}": {"4:", "no_tools"},
		"version: 1\nproviders:\n  openai:\n    capabilities: {no_tools: 3}":   {"4:", "true or false"},
		"version: 1\nproviders:\n  openai:\n    timeouts: {idle: soon}":        {"4:", "30s"},
		"version: 1\nproviders:\n  openai:\n    retries: -1":                   {"4:14", "whole number"},
		"version: 1\nproviders:\n  openai:\n    max_request_bytes: 0":          {"4:24", "whole number"},
		"version: 1\nproviders:\n  openai:\n    max_response_bytes: much":      {"4:25", "max_response_bytes"},
		"version: 1\nfailover: {after: -1}":                                    {"2:", "after"},
		"version: 1\nfailover: {cooldown: soon}":                               {"2:", "30s"},
		"version: 1\nfailover: {always_continue: 1}":                           {"2:", "always_continue"},
		"version: 1\nproviders:\n  a/b: {type: openai}":                        {"3:3", "not a valid provider name"},
		"version: 1\naliases: {a: b, b: a}":                                    {"2:", "a → b → a"},
		"version: 1\naliases: {a: nowhere/x}":                                  {"2:14", "nowhere"},
		"version: 1\naliases: {a/b: openai/x}":                                 {"2:11", "not a valid alias"},
		"version: 1\naliases: {a: openai/x, a: openai/y}":                      {"2:", "a"},
		`{"version": 1, "aliases": {"a": 7}}`:                                  {"1:33", "a list"},
		"version: 1\nproviders: [":                                             {":"},
		"":                                                                     {"empty"},
	} {
		_, err := provider.Parse("c.yaml", []byte(text))
		var bad *provider.FileError
		if !errors.As(err, &bad) {
			t.Errorf("%q: %v", text, err)
			continue
		}
		for _, w := range want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%q: %v does not say %s", text, err, w)
			}
		}
		if strings.Contains(err.Error(), "sk-hush") {
			t.Errorf("it tells the key: %v", err)
		}
	}
	_, err := provider.Parse("c.yaml", []byte("version: 1\nproviders:\n  a: {type: x}\n  b: {type: y}\n"))
	if err == nil || strings.Count(err.Error(), "c.yaml:") != 2 {
		t.Errorf("not everything is said: %v", err)
	}
}

func TestX15_OpenReadsTheFileNamedByTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(configFile), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DRAGOMAN_CONFIG", file)
	if m, err := provider.Open("fast"); err != nil || fmt.Sprint(m) != "work/llama-9b" {
		t.Errorf("%v, %v", m, err)
	}
	t.Setenv("DRAGOMAN_CONFIG", file+".gone")
	if _, err := provider.Open("fast"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestMustOpenPanicsWithTheError(t *testing.T) {
	t.Setenv("DRAGOMAN_CONFIG", "")
	defer func() {
		if err, ok := recover().(error); !ok || !badSpec(err) {
			t.Errorf("panicked with %v", err)
		}
	}()
	if m := provider.MustOpen("ollama/x"); m == nil {
		t.Error("no model")
	}
	provider.MustOpen("nowhere/x")
}

func TestX15_ConfigFileConfiguresOwnExtensions(t *testing.T) {
	const text = "version: 1\nproviders:\n  acme:\n    type: compatible\n    base_url: http://127.0.0.1:1/v1\n    extensions: {acme.knob: {level: %s}}\n"
	own := servers.Server{
		Name: "acme.knob", Description: "A knob.", Requires: []extension.Tag{"server:acme"},
		Knobs: []servers.Knob{{Setting: "level", Path: "/level", Label: "how much", Type: "integer"}},
	}
	c, err := provider.Parse("f.yaml", fmt.Appendf(nil, text, "3"), own)
	if err != nil || len(c.Extensions) != 1 {
		t.Fatalf("%v %+v", err, c)
	}
	if _, err := c.Open("acme/m"); err != nil {
		t.Error(err)
	}
	if _, err := provider.Parse("f.yaml", fmt.Appendf(nil, text, "much"), own); err == nil || !strings.Contains(err.Error(), "f.yaml:6") {
		t.Errorf("settings that do not fit: %v", err)
	}
	if _, err := provider.Parse("f.yaml", fmt.Appendf(nil, text, "3")); err == nil || !strings.Contains(err.Error(), "Load or Parse") {
		t.Errorf("an unknown extension: %v", err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, text, "3"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DRAGOMAN_CONFIG", file)
	if c, err := provider.Default(own); err != nil || c.Providers["acme"].BaseURL == "" {
		t.Errorf("%v %+v", err, c)
	}
	t.Setenv("DRAGOMAN_CONFIG", "")
	if c, err := provider.Default(own); err != nil || len(c.Extensions) != 1 || c.Providers != nil {
		t.Errorf("%v %+v", err, c)
	}
}

func TestX12_ConfigFileAddsCompatibleServers(t *testing.T) {
	each(t, func(t *testing.T, codec dialect.Codec) {
		s := serve(t, codec, respond(textResponse("hi")))
		typ := map[dragoman.Dialect]string{
			dialectname.OpenAIChat: "compatible", dialectname.OpenAIResponses: "openai", dialectname.Anthropic: "anthropic",
			dialectname.Gemini: "gemini", dialectname.Ollama: "ollama", dialectname.Bedrock: "bedrock", "cohere.chat": "cohere",
		}[codec.Dialect()]
		c := &provider.Config{
			Getenv:    env("HERE_KEY", "k", "AWS_REGION", "r", "AWS_ACCESS_KEY_ID", "i", "AWS_SECRET_ACCESS_KEY", "s"),
			Providers: map[string]provider.Settings{"here": {Type: typ, BaseURL: s.URL, APIKeyEnv: []string{"HERE_KEY"}}},
		}
		m, err := c.Open("here/model-1")
		if err != nil {
			t.Fatal(err)
		}
		forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
			resp, err := ask(m, newRequest())
			if err != nil || resp.Text() != "hi" || resp.Origin.Provider != "here" {
				t.Errorf("%v, %v", resp, err)
			}
		})
	})
}

func TestQuirkE12_OpenAIMeansResponses(t *testing.T) {
	m, err := (&provider.Config{Getenv: env()}).Open("openai/gpt-5")
	if err != nil || m.(*provider.Client).Codec.Dialect() != dialectname.OpenAIResponses {
		t.Errorf("%v, %v", m, err)
	}
}

func TestModelCapabilitiesAreLookedUpByName(t *testing.T) {
	c := &provider.Config{Getenv: env()}
	for spec, want := range map[string]bool{"gemini/gemini-2.5-flash": true, "gemini/gemini-3-pro": false, "vertex/gemini-2.5-pro": true} {
		m, err := c.Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		target, _, err := m.(*provider.Client).Target(t.Context(), "")
		if got := target.Caps.NoMixedTools; err != nil || got != want {
			t.Errorf("%s: %v, %v", spec, got, err)
		}
	}
}

func TestA2_ModelFileOverridesCapabilities(t *testing.T) {
	file := filepath.Join(t.TempDir(), "models.yaml")
	facts := "version: 1\nmodels:\n  - {id: bedrock/amazon.nova-pro-v1:0, refuses: []}\n  - {id: bedrock/anthropic.claude-opus-4-7, refuses_together: null}\n  - {id: gemini/gemini-2.5-pro, refuses: null, ignores: [], refuses_together: []}\n"
	if err := os.WriteFile(file, []byte(facts), 0o600); err != nil {
		t.Fatal(err)
	}
	type known struct{ closed, output, mixed, ids, media, unsigned, budgets bool }
	for spec, without := range map[string]known{
		"bedrock/us.amazon.nova-pro-v1:0":        {closed: true},
		"bedrock/us.amazon.nova-new-v1:0":        {closed: true}, // by its family
		"bedrock/anthropic.claude-opus-4-7-v1:0": {output: true},
		"gemini/gemini-2.5-pro":                  {output: true, mixed: true, ids: true, media: true, unsigned: true, budgets: true},
	} {
		for _, name := range []string{"", file} {
			m, err := (&provider.Config{Getenv: env(), ModelFile: name}).Open(spec)
			if err != nil {
				t.Fatal(err)
			}
			target, _, err := m.(*provider.Client).Target(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			want := without
			if name != "" {
				want = known{budgets: without.budgets} // its reasoning has a budget and no words
			}
			c := target.Caps
			if got := (known{c.ClosedSchemas, c.NoOutputWithTools, c.NoMixedTools, c.NoCallIDs, c.NoResultMedia, c.NoDummySignature, c.ThinkingBudgets}); got != want {
				t.Errorf("%s with the file %q: %+v", spec, name, got)
			}
		}
	}
}

func TestX7_ServerTypeSelectsItsExtension(t *testing.T) {
	c := &provider.Config{Getenv: env(), Providers: map[string]provider.Settings{
		"own":  {Type: "vllm", BaseURL: "http://127.0.0.1:9/v1", Capabilities: map[string]string{"reasoning_field": "reasoning_content"}},
		"bare": {Type: "compatible", BaseURL: "http://127.0.0.1:9/v1", Switches: extension.Switches{Off: []string{"openai.compatible"}}},
	}}
	for spec, want := range map[string]struct {
		on    string
		field string
	}{
		"deepseek/deepseek-chat": {"openai.compatible deepseek dragoman.compact settings", "reasoning_content"},
		"kimi/kimi-k2":           {"openai.compatible kimi kimi.ids dragoman.compact settings", "reasoning_content"},
		"openai-chat/gpt-5.5":    {"openai dragoman.compact settings", ""},
		"openai/gpt-5.5":         {"dragoman.compact settings", ""},
		"own/Qwen3":              {"openai.compatible vllm dragoman.compact settings", "reasoning_content"}, // the settings have the last word
		"bare/m":                 {"dragoman.compact settings", ""},
		"ollama/qwen3":           {"ollama dragoman.compact settings", ""},
	} {
		m, err := c.Open(spec)
		if err != nil {
			t.Fatal(err)
		}
		target, r, err := m.(*provider.Client).Target(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		var on []string
		for _, e := range r.On {
			on = append(on, e.Info().Name)
		}
		if got := strings.Join(on, " "); got != want.on || target.Caps.ReasoningField != want.field {
			t.Errorf("%s: %q, %q", spec, got, target.Caps.ReasoningField)
		}
	}
	for _, wrong := range []provider.Settings{
		{Extensions: map[string]json.RawMessage{"none such": nil}}, {Switches: extension.Switches{On: []string{"none such"}}},
	} {
		c := &provider.Config{Getenv: env(), Providers: map[string]provider.Settings{"openai": wrong}}
		if _, err := c.Open("openai/m"); err == nil || !strings.Contains(err.Error(), "none such") {
			t.Errorf("%v", err)
		}
	}
}

func TestX11_ConfigFileConfiguresExtensions(t *testing.T) {
	c, err := provider.Parse("c.yaml", []byte("version: 1\nproviders:\n  deepseek:\n    extensions:\n      deepseek: {thinking: disabled}\n      openai.compatible: false\n      kimi.ids: true\n"))
	if err != nil {
		t.Fatal(err)
	}
	s := c.Providers["deepseek"]
	if string(s.Extensions["deepseek"]) != `{"thinking":"disabled"}` || !slices.Equal(s.Switches.Off, []string{"openai.compatible"}) || !slices.Equal(s.Switches.On, []string{"kimi.ids"}) {
		t.Errorf("%+v", s)
	}
	for text, want := range map[string]string{
		"{deepseek: {thinking: maybe}}": "thinking", "{deepseek: {other: 1}}": "other", "{nobody: {}}": "pass custom extensions to Load", "{deepseek: 7}": "want settings",
	} {
		_, err := provider.Parse("c.yaml", []byte("version: 1\nproviders:\n  deepseek:\n    extensions: "+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), "c.yaml:4:") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestZ3_UnrecordedRequestIsNotRetried(t *testing.T) {
	if provider.Retryable(&provider.TransportError{Err: &sim.MismatchError{}}) {
		t.Error("asking again records nothing")
	}
	if !provider.Retryable(&provider.TransportError{Err: io.ErrUnexpectedEOF}) {
		t.Error("a broken connection is worth another try")
	}
}

func TestX12_ErrorForAMissingKeySaysHowToSetIt(t *testing.T) {
	refused := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"error":{"message":"Unauthorized."}}`)
	}))
	defer refused.Close()
	for _, tc := range []struct{ settings, key, want string }{
		{"{type: vllm, base_url: %q}", "", "set VLLM_API_KEY"},
		{"{type: llamacpp, base_url: %q}", "", "set LLAMACPP_API_KEY"},
		{"{type: lmstudio, base_url: %q}", "", "set LMSTUDIO_API_KEY"},
		{"{type: ollama, base_url: %q}", "", "set OLLAMA_API_KEY"},
		{"{type: compatible, base_url: %q}", "", "api_key_env"},
		{"{type: vllm, base_url: %q}", "a-wrong-key", ""},
		{"{type: vllm, base_url: %q, headers: {x-key: a-wrong-key}}", "", ""},
		{"{type: compatible, base_url: %q, api_key_env: WORK_KEY}", "a-wrong-key", ""},
	} {
		config, err := provider.Parse("models.yaml", fmt.Appendf(nil, "version: 1\nproviders:\n  work: "+tc.settings, refused.URL))
		if err != nil {
			t.Fatal(err)
		}
		config.Getenv = func(string) string { return "" }
		if tc.key != "" {
			config.Getenv = func(name string) string {
				if strings.HasSuffix(name, "_KEY") {
					return tc.key
				}
				return ""
			}
		}
		m, err := config.Open("work/m")
		if err != nil {
			t.Fatal(err)
		}
		forGenerateAndStream(t, func(t *testing.T, ask func(dragoman.Model, *dragoman.Request) (*dragoman.Response, error)) {
			_, err := ask(m, newRequest())
			var api *dragoman.APIError
			if !errors.As(err, &api) || api.Class != dragoman.ErrorAuth || !strings.Contains(err.Error(), "Unauthorized") {
				t.Fatalf("%s: %v", tc.settings, err)
			}
			if text := strings.Contains(err.Error(), "no API key"); text != (tc.want != "") || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: %v, want %q", tc.settings, err, tc.want)
			}
		})
	}
}

func TestX15_UnusedSettingsAreRefused(t *testing.T) {
	for _, tc := range []struct{ settings, want string }{
		{"{type: openai, region: eu-central-1}", "work: region"},
		{"{type: compatible, base_url: 'http://x.test/v1', project: p}", "work: project"},
		{"{type: anthropic, location: europe-west4}", "work: location"},
		{"{type: vertex, base_url: 'http://x.test', project: p}", "work: base_url"},
		{"{type: vertex, base_url: 'http://x.test', location: l}", "work: base_url"},
		{"{type: vertex, project: p, key_header: x-key}", "work: key_header"},
		{"{type: bedrock, region: r, key_header: x-key}", "work: key_header"},
		{"{type: compatible, base_url: 'http://x.test/v1', key_header: x-key}", "api_key_env"},
		{"{type: compatible, base_url: 'http://x.test/v1', key_header: x-key, api_key_env: WORK_KEY}", ""},
		{"{type: bedrock, region: r, key_header: x-key, api_key_env: WORK_KEY}", ""},
		{"{type: vllm, key_header: x-key}", ""},
		{"{type: vertex, project: p, location: l}", ""},
	} {
		_, err := provider.Parse("models.yaml", []byte("version: 1\nproviders:\n  work: "+tc.settings))
		var where *provider.FileError
		switch {
		case tc.want == "" && err != nil:
			t.Errorf("%s: %v", tc.settings, err)
		case tc.want != "" && (!errors.As(err, &where) || !strings.Contains(err.Error(), "models.yaml:3:") || !strings.Contains(err.Error(), tc.want)):
			t.Errorf("%s: %v", tc.settings, err)
		}
	}
	config := &provider.Config{Providers: map[string]provider.Settings{"work": {Type: "openai", Region: "eu-central-1"}}}
	var setting *provider.SettingError
	if _, err := config.Open("work/m"); !errors.As(err, &setting) {
		t.Errorf("a region of OpenAI: %v", err)
	}
}

func TestSpecWithoutProviderIsSuggested(t *testing.T) {
	config := &provider.Config{Aliases: map[string]string{"best": "openai/gpt-5"}}
	for spec, want := range map[string]string{
		"claude-opus-5-5":          "did you mean anthropic/claude-opus-5-5?",
		"gpt-4.1-2025-04-14":       "did you mean openai/gpt-4.1-2025-04-14?",
		"gemini-2.5-flahs":         "did you mean gemini/gemini-2.5-flash?",
		"bset":                     "did you mean best?",
		"planner":                  "did you mean sim/planner?",
		"our-own-model-of-weather": "a model is written as provider/model",
	} {
		_, err := config.Open(spec)
		if !badSpec(err) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, want %q at the end", spec, err, want)
		}
	}
}
