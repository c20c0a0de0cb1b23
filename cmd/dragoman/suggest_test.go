package main

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnknownModelIsSuggested(t *testing.T) {
	_, do := runs(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"type":"error","error":{"type":"not_found_error","message":"model: claude-opus-45"}}`))
	}))
	defer server.Close()
	t.Setenv("ANTHROPIC_API_KEY", "k")
	t.Setenv("ANTHROPIC_BASE_URL", server.URL)
	r := do(nil, "--no-session", "--model", "anthropic/claude-opus-45", "hi")
	if r.code != exitFailed || !strings.Contains(r.err, "did you mean claude-opus-4-5?") {
		t.Errorf("%+v", r)
	}
	if r := do(nil, "--no-session", "--model", "anthropic/zzz", "hi"); strings.Contains(r.err, "did you mean") {
		t.Errorf("%+v", r)
	}
}

// A provider of the config file has the models of its type, whatever its name is.
func TestUnknownModelOfConfiguredProviderIsSuggested(t *testing.T) {
	_, do := runs(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":{"message":"The model does not exist","type":"invalid_request_error","param":"model","code":"model_not_found"}}`))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf("version: 1\nproviders:\n  work: {type: openai, base_url: %q, api_key_env: WORK_KEY}\n  talk: {type: openai-chat, base_url: %q, api_key_env: WORK_KEY}\n  anthropic: {type: openai, base_url: %q, api_key_env: WORK_KEY}\naliases: {fast: work/gpt-4o-mni}\n", server.URL, server.URL, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DRAGOMAN_CONFIG", file)
	t.Setenv("WORK_KEY", "k")
	for spec, want := range map[string]string{
		"work/gpt-4o-mni":          "did you mean gpt-4o-mini?",
		"talk/gpt-4o-mni":          "did you mean gpt-4o-mini?",
		"fast":                     "did you mean gpt-4o-mini?",
		"anthropic/gpt-4o-mni":     "did you mean gpt-4o-mini?",
		"talk/zzz,work/gpt-4o-mni": "did you mean gpt-4o-mini?",
		"work/claude-opus-45":      "",
		"anthropic/claude-opus-45": "",
	} {
		r := do(nil, "--no-session", "--model", spec, "hi")
		if r.code != exitFailed || !strings.Contains(r.err, cmp.Or(want, "does not exist")) || want == "" && strings.Contains(r.err, "did you mean") {
			t.Errorf("%s: %+v", spec, r)
		}
	}
}
