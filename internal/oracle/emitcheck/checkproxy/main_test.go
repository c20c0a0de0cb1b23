package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestViolationsAreLines(t *testing.T) {
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, "{\n}")
	}))
	defer gateway.Close()
	var found bytes.Buffer
	proxy, err := newProxy(gateway.URL, &found, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/healthz", "/v1/models", "/api/tags"} {
		rec := httptest.NewRecorder()
		proxy.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if rec.Body.String() != "{\n}" {
			t.Errorf("%s: %s", path, rec.Body)
		}
	}
	lines := strings.Split(strings.TrimSpace(found.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "GET /v1/models") || !strings.Contains(lines[1], "/models: missing") {
		t.Errorf("%q", lines)
	}
	if _, err := newProxy("nowhere", &found, io.Discard); err == nil {
		t.Error("newProxy accepts an invalid URL")
	}
}
