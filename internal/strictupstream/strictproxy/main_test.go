package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
	h, err := newHandler(next.URL, "sim/echo", &out)
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
	if _, err := newHandler("nowhere", "", &out); err == nil {
		t.Error("newHandler accepts a -to without a host")
	}
}
