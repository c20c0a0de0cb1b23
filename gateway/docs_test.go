package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/gateway"
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
	for line := range strings.Lines(w.logged()) {
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

// What Parse knows is what it offers to who mistypes it.
func TestThePageHasEveryFieldOfTheFile(t *testing.T) {
	setKeys(t)
	page, err := os.ReadFile("../docs/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	for what, section := range map[string]string{
		"gateway": `"?": 1`,
		"a key":   `"keys": {"a": {"key_env": "DRAGOMAN_TEST_KEY", "?": 1}}`,
		"budget":  `"keys": {"a": {"key_env": "DRAGOMAN_TEST_KEY", "budget": {"tokens": 1, "per": "day", "?": 1}}}`,
		"a route": `"routes": {"a": {"to": "sim/echo", "?": 1}}`,
		"set":     `"routes": {"a": {"to": "sim/echo", "set": {"?": 1}}}`,
		"state":   `"state": {"?": 1}`,
		"limits":  `"limits": {"?": 1}`,
	} {
		_, err := gateway.Parse("f", []byte(`{"version": 1, "gateway": {`+section+`}}`))
		_, fields, found := strings.Cut(fmt.Sprint(err), "known fields are ")
		if !found {
			t.Fatalf("%s: %v", what, err)
		}
		for field := range strings.SplitSeq(fields, ", ") {
			if !regexp.MustCompile("`" + field + "`|\\b" + field + ":").Match(page) {
				t.Errorf("%s: %s is not described", what, field)
			}
		}
	}
}
