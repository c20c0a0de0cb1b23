package mcp_test

import (
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/dragoman-go/dragoman/mcp"
)

// countingProbes counts the requests that only newer servers know.
type countingProbes struct{ n atomic.Int32 }

func (c *countingProbes) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Mcp-Method") == "server/discover" {
		c.n.Add(1)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func TestRevisionsAreRememberedBetweenConnections(t *testing.T) {
	probes := &countingProbes{}
	s := legacyServer(t, "2025-06-18", `{"content":[]}`, nil)
	revisions := &mcp.Revisions{}
	connected := func(want int32) {
		t.Helper()
		servers := connect(t, mcp.Options{Revisions: revisions, Transport: probes}, s)
		if st := servers.Status()[0]; st.Revision != "2025-06-18" || len(st.Tools) != 1 || probes.n.Load() != want {
			t.Fatalf("%+v after %d probes, want %d", st, probes.n.Load(), want)
		}
		_ = servers.Close()
	}
	connected(1)
	connected(1)
	stored, err := json.Marshal(revisions)
	if err != nil {
		t.Fatal(err)
	}
	revisions = &mcp.Revisions{}
	if err := json.Unmarshal(stored, revisions); err != nil {
		t.Fatal(err)
	}
	connected(1)
	if err := json.Unmarshal([]byte(`{"x":{"revision":"1999-01-01","seen":"2026-01-01T00:00:00Z"}}`), revisions); err != nil {
		t.Error(err)
	}
	if b, err := json.Marshal(revisions); err != nil || string(b) != "{}" {
		t.Errorf("%s, %v", b, err)
	}
	if err := json.Unmarshal([]byte(`[]`), revisions); err == nil {
		t.Error("a list was read")
	}
}
