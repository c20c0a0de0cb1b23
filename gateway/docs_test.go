package gateway_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Who builds dashboards reads the page and not the code.
func TestG6_ThePageListsEveryMetricItsLabelsAndEveryFieldOfTheLog(t *testing.T) {
	page, err := os.ReadFile("../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := func(name string) bool { return strings.Contains(string(page), "`"+name+"`") }
	w := newWorld(t, "")
	if status, body := get(t, http.MethodPost, w.url+"/v1/chat/completions",
		`{"model":"anthropic/sim/echo","seed":1,"messages":[{"role":"user","content":"hi"}]}`); status != http.StatusOK {
		t.Fatal(body)
	}
	if status, body := get(t, http.MethodPost, w.url+"/v1/chat/completions", `{"model":"nobody"}`); status != http.StatusNotFound {
		t.Fatal(body)
	}
	w.wantLog(t, `"status":404`)
	_, text := get(t, http.MethodGet, w.url+"/metrics", "")
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+)|[{,](\w+)="`).FindAllStringSubmatch(text, -1) {
		found[m[1]+m[2]] = true
	}
	if len(found) < 10 {
		t.Errorf("no metrics in\n%s", text)
	}
	delete(found, "le") // which is Prometheus's own
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(w.log.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["msg"] != "request" {
			continue
		}
		for name := range fields {
			found[name] = true
		}
	}
	for _, own := range []string{"time", "level", "msg"} { // slog's
		delete(found, own)
	}
	if !found["losses"] || !found["error"] || !found["input_tokens"] {
		t.Errorf("the log has only %v", found)
	}
	for name := range found {
		if !listed(name) {
			t.Errorf("docs/gateway.md does not list %s", name)
		}
	}
}
