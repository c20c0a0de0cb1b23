package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A schema surface of a language judges the tools that a provider hosts as the
// language does.
func TestLintSurfacesAgreeWithTheirLanguageOnHostedTools(t *testing.T) {
	inputs := map[string]string{
		"chat":      `{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"type":"web_search"}]}`,
		"responses": `{"model":"m","input":"x","tools":[{"type":"file_search","vector_store_ids":["v"]}]}`,
		"anthropic": `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":"x"}],"tools":[{"type":"web_search_20250305","name":"web_search"}]}`,
		"gemini":    `{"contents":[{"role":"user","parts":[{"text":"x"}]}],"tools":[{"googleSearch":{}}]}`,
	}
	status := func(target, from, input string) string {
		var out, stderr strings.Builder
		if code := run([]string{"lint", "--for", target, "--from", from, "--report", "json"}, strings.NewReader(input), &out, &stderr); code != exitOK {
			t.Fatalf("lint --for %s: exit code %d: %s", target, code, stderr.String())
		}
		var l linted
		if err := json.Unmarshal([]byte(out.String()), &l); err != nil || len(l.Tools) != 1 {
			t.Fatalf("%v: %s", err, out.String())
		}
		return string(l.Tools[0].Status)
	}
	dropped := 0
	for surface, language := range map[string]string{
		"openai.strict": "chat", "openai.tool": "chat", "anthropic.strict": "anthropic", "anthropic.tool": "anthropic",
		"gemini.parameters": "gemini", "ollama.tool": "ollama", "bedrock.tool": "bedrock", "compat.tool": "chat",
	} {
		for from, input := range inputs {
			got, want := status(surface, from, input), status(language, from, input)
			if got != want {
				t.Errorf("a tool hosted by %s: lint --for %s says %s, --for %s says %s", from, surface, got, language, want)
			}
			if got == "dropped" {
				dropped++
			}
		}
	}
	if dropped == 0 {
		t.Error("no tool was dropped: the test shows nothing")
	}
}
