package gateway_test

import (
	"net/http"
	"strings"
	"testing"
)

// A file that the upstream cannot read is an error, not a note on a 200 (decision 40). A
// model of the route that can read it still gets the request.
func TestUnreadableFileIsAnError(t *testing.T) {
	const (
		responses = `{"model":"MODEL","input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_file","file_id":"REF"}]}]}`
		anthropic = `{"model":"MODEL","max_tokens":500,"messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"document","source":{"type":"file","file_id":"REF"}}]}]}`
		chat      = `{"model":"MODEL","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"file","file":{"file_id":"REF"}}]}]}`
		image     = `{"model":"MODEL","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"REF"}}]}]}`
		gemini    = `{"contents":[{"role":"user","parts":[{"text":"hi"},{"fileData":{"mimeType":"image/png","fileUri":"REF"}}]}]}`
		stored    = "https://generativelanguage.googleapis.com/v1beta/files/abc"
	)
	w := newWorld(t, `gateway:
  routes:
    list: {to: [anthropic/sim/planner, responses/sim/planner]}
    openai/*: {to: "openai/*"}
    responses/*: {to: "responses/*"}
    anthropic/*: {to: "anthropic/*"}
    gemini/*: {to: "gemini/*"}
`)
	for _, tc := range []struct {
		path, body, model, ref string
		refused                bool
	}{
		{"/v1/responses", responses, "anthropic/sim/planner", "file-abc", true},
		{"/v1/responses", responses, "gemini/sim/planner", "file-abc", true},
		{"/v1/responses", responses, "openai/sim/planner", "file-abc", false},
		{"/v1/responses", responses, "responses/sim/planner", "file-abc", false},
		{"/v1/responses", responses, "list", "file-abc", false},
		{"/v1/chat/completions", chat, "anthropic/sim/planner", "file-abc", true},
		{"/v1/chat/completions", chat, "responses/sim/planner", "file-abc", false},
		{"/v1/chat/completions", image, "anthropic/sim/planner", "https://example.com/a.png", false},
		{"/v1/messages", anthropic, "responses/sim/planner", "file_abc", true},
		{"/v1/messages", anthropic, "list", "file_abc", false},
		{"/v1beta/models/responses/sim/planner:generateContent", gemini, "", stored, true},
		{"/v1beta/models/anthropic/sim/planner:generateContent", gemini, "", stored, true},
		{"/v1beta/models/anthropic/sim/planner:generateContent", gemini, "", "https://example.com/a.png", false},
	} {
		status, losses, body := postJSON(t, w.url+tc.path, strings.NewReplacer("MODEL", tc.model, "REF", tc.ref).Replace(tc.body))
		if !tc.refused {
			if status != http.StatusOK || strings.Contains(losses, "dropped /messages/0/parts/1") {
				t.Errorf("%s %s: %d %q %s", tc.path, tc.model, status, losses, body)
			}
			continue
		}
		if status != http.StatusBadRequest || !strings.Contains(body, tc.ref) || !strings.Contains(body, "/messages/0/parts/1") || !strings.Contains(body, "send the content inline") {
			t.Errorf("%s %s: %d %q %s", tc.path, tc.model, status, losses, body)
		}
	}
}
