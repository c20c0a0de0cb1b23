package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnUnknownModelOfAProviderIsSuggested(t *testing.T) {
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
