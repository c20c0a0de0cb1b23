package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// A wrong base URL often leads to a web page with status 200. The error says so.
func TestPageInsteadOfAStreamIsNamed(t *testing.T) {
	page := func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("content-type", "text/html")
		_, _ = io.WriteString(rw, "<!DOCTYPE html><html><body>Welcome to our network.</body></html>")
	}
	for _, w := range pairs() {
		for _, stream := range []bool{false, true} {
			t.Run(w.String()+streamed(stream), func(t *testing.T) {
				withRig(t, "", page, func(r *rig) {
					resp, err := r.clients.Do(r.request(r.t.Context(), w, stream))
					if err != nil {
						r.t.Fatal(err)
					}
					defer func() { _ = resp.Body.Close() }()
					body, err := io.ReadAll(resp.Body)
					if err != nil || resp.StatusCode < http.StatusInternalServerError || !strings.Contains(string(body), "HTML page") || !strings.Contains(string(body), "Welcome to our network.") {
						r.t.Errorf("%d %s, %v", resp.StatusCode, body, err)
					}
				})
			})
		}
	}
}
