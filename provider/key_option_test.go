package provider_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dragoman-go/dragoman/provider"
)

func TestWithKeySendsTheKeyInTheHeaderOfTheProvider(t *testing.T) {
	t.Setenv("DRAGOMAN_CONFIG", "")
	for _, variable := range []string{"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY", "OLLAMA_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"} {
		t.Setenv(variable, "from-the-environment")
	}
	var got http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	for spec, want := range map[string]string{
		"anthropic/m":  "X-Api-Key",
		"gemini/m":     "X-Goog-Api-Key",
		"openai/m":     "Authorization",
		"ollama/m":     "Authorization",
		"compatible/m": "Authorization",
		"bedrock/m":    "Authorization",
	} {
		m, err := provider.Open(spec, provider.WithBaseURL(server.URL), provider.WithKey(provider.FixedKey("from-a-vault")))
		if err != nil {
			t.Errorf("%s: %v", spec, err)
			continue
		}
		_, _ = m.Generate(t.Context(), newRequest())
		if v := got.Get(want); v != "from-a-vault" && v != "Bearer from-a-vault" {
			t.Errorf("%s: header %s is %q", spec, want, v)
		}
	}
}

func TestSettingsKeyIsTheTokenOfVertex(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	c := &provider.Config{
		Getenv: func(string) string { return "" },
		Token:  provider.FixedKey("of-the-config"),
		Providers: map[string]provider.Settings{"vertex": {
			Project: "p", Location: "l", BaseURL: server.URL, Key: provider.FixedKey("of-the-provider"),
		}},
	}
	m, err := c.Open("vertex/m")
	if err != nil {
		t.Fatal(err)
	}
	if _, _ = m.Generate(t.Context(), newRequest()); got != "Bearer of-the-provider" {
		t.Errorf("Authorization is %q", got)
	}
}

func TestSettingsKeyUsesTheKeyHeader(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("X-Team-Key")
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	calls := 0
	c := &provider.Config{Getenv: func(string) string { return "" }, Providers: map[string]provider.Settings{"work": {
		Type: "compatible", BaseURL: server.URL, KeyHeader: "X-Team-Key",
		Key: func(context.Context) (string, error) { calls++; return "secret", nil },
	}}}
	m, err := c.Open("work/m")
	if err != nil {
		t.Fatal(err)
	}
	if calls != 0 {
		t.Error("the key was read before a request")
	}
	if _, _ = m.Generate(t.Context(), newRequest()); got != "secret" {
		t.Errorf("header X-Team-Key is %q", got)
	}
}
