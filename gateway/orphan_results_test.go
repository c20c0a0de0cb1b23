package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A result whose call is missing is dropped, and the loss names its place (decision 97).
func TestQuirkD8_ResultOfAMissingCallIsReported(t *testing.T) {
	for _, up := range everyUpstream {
		if strings.HasPrefix(up, "responses") {
			continue // a transparent route: the upstream decides
		}
		model := &strictUpstream{}
		w := newServerWorld(t, fmt.Sprintf("gateway:\n  routes: {m: {to: %q}}\n", up+"/m"), model.ServeHTTP)
		resp, err := http.Post(w.url+"/v1/responses", "application/json", strings.NewReader(`{"model":"m","input":[{"role":"user","content":"hi"},{"type":"function_call_output","call_id":"call_gone","output":"snowfall"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if losses := resp.Header.Get("X-Dragoman-Losses"); resp.StatusCode != http.StatusOK || !strings.Contains(losses, "dropped /messages/1/parts/0") || strings.Contains(model.last(), "snowfall") {
			t.Errorf("%s: %d %q %s", up, resp.StatusCode, losses, body)
		}
	}
}
