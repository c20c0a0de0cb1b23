package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/oracle/strictupstream"
	"github.com/dragoman-go/dragoman/sim"
)

// A route may send the requests for one model to another one of the same vendor. A client
// sends what the requested model takes. A request that the other model would refuse is
// translated; all others are still passed through.
func TestA2_RenamedModelAcceptsSettingsOfTheRequestedModel(t *testing.T) {
	t.Setenv("SIM_KEY", "upstream-secret")
	const budget = `{"model":"%s","max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":2000},"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"messages":[{"role":"user","content":"hi"}]}`
	const effort = `{"model":"%s","reasoning":{"effort":"high"},"input":"hi","store":false}`
	for _, tc := range []struct {
		path, body, requested, to string
		transparent               bool
	}{
		{"/v1/messages", budget, "claude-sonnet-4-5", "anthropic/claude-opus-5-5", false},
		{"/v1/messages", budget, "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5-20250929", true},
		{"/v1/messages", budget, "claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", true},
		{"/v1/messages", budget, "some-alias", "anthropic/claude-sonnet-4-5", true},
		{"/v1/responses", effort, "gpt-5.5", "responses/gpt-4.1", false},
		{"/v1/responses", effort, "gpt-5.5", "responses/gpt-5.5", true},
	} {
		server := httptest.NewServer(strictupstream.New(sim.Handler(sim.Config{}), strictupstream.Options{Model: "sim/planner"}))
		t.Cleanup(server.Close)
		w := newWorldOf(t, server, configOf(server.URL)+`gateway: {routes: {"*": {to: "`+tc.to+`"}}}`+"\n")
		status, text := get(t, http.MethodPost, w.url+tc.path, strings.Replace(tc.body, "%s", tc.requested, 1), "anthropic-version", "2023-06-01", "anthropic-beta", "context-management-2025-06-27")
		if passed := strings.Contains(w.logged(), `"transparent":true`); status != http.StatusOK || passed != tc.transparent {
			t.Errorf("%s to %s: status %d, transparent %v: %.300s", tc.requested, tc.to, status, passed, text)
		}
	}
}
