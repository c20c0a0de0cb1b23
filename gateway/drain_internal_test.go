package gateway

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestG6_AGatewayThatEndsSaysSo(t *testing.T) {
	g, err := New(nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		draining bool
		status   int
		body     string
	}{{false, http.StatusOK, `{"status":"ok"}`}, {true, http.StatusServiceUnavailable, `{"status":"draining"}`}} {
		g.draining.Store(tc.draining)
		rec := httptest.NewRecorder()
		g.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/healthz", nil))
		if got := rec.Body.String(); rec.Code != tc.status || got != tc.body && got != tc.body+"\n" || rec.Header().Get("Content-Type") != "application/json" {
			t.Errorf("%v: %d %s", tc, rec.Code, rec.Body)
		}
	}
}
