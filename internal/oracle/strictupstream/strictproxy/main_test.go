package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
)

func TestRefusalsAreLines(t *testing.T) {
	var got string
	next := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = string(body)
		_, _ = io.WriteString(w, "{}")
	}))
	defer next.Close()
	var out bytes.Buffer
	h, err := newHandler(next.URL, strictupstream.Options{Model: "sim/echo", Models: []string{"gpt-4.1"}, Record: true}, &out)
	if err != nil {
		t.Fatal(err)
	}
	post := func(body string) int {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(body)))
		return rec.Code
	}
	const messages = `"messages":[{"role":"user","content":"Hello"}]`
	if code := post(`{"model":"gpt-4.1",` + messages + `}`); code != http.StatusOK || !strings.Contains(got, `"model":"sim/echo"`) {
		t.Errorf("accepted request: status %d, the next server got %s", code, got)
	}
	if code := post(`{"model":"gpt-4.1","top_k":1,` + messages + `}`); code != http.StatusBadRequest {
		t.Errorf("refused request: status %d", code)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 1 || !strings.Contains(lines[0], "top_k") {
		t.Errorf("lines: %q", lines)
	}
	if post(`{"model":"gpt-4o",` + messages + `}`); !strings.Contains(got, `"model":"gpt-4o"`) {
		t.Errorf("a model that is not listed was renamed: %s", got)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/strict/seen?text=gpt-4.1", nil))
	var seen []string
	if err := json.Unmarshal(rec.Body.Bytes(), &seen); err != nil || len(seen) != 1 || !strings.Contains(seen[0], "Hello") {
		t.Errorf("seen: %s", rec.Body)
	}
	if _, err := newHandler("nowhere", strictupstream.Options{}, &out); err == nil {
		t.Error("newHandler accepts a -to without a host")
	}
}
