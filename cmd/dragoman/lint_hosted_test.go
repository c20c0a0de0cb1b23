package main

import (
	"encoding/json"
	"strings"
	"testing"
)

// A schema surface judges hosted tools like the dialect that it belongs to.
func TestLintSurfacesJudgeHostedToolsLikeTheirDialect(t *testing.T) {
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
		var l lintReport
		if err := json.Unmarshal([]byte(out.String()), &l); err != nil || len(l.Tools) != 1 {
			t.Fatalf("%v: %s", err, out.String())
		}
		return l.Tools[0].Status
	}
	dropped := 0
	for surface, dialect := range map[string]string{
		"openai.strict": "chat", "openai.tool": "chat", "anthropic.strict": "anthropic", "anthropic.tool": "anthropic",
		"gemini.parameters": "gemini", "ollama.tool": "ollama", "bedrock.tool": "bedrock", "compat.tool": "chat",
	} {
		for from, input := range inputs {
			got, want := status(surface, from, input), status(dialect, from, input)
			if got != want {
				t.Errorf("a tool hosted by %s: lint --for %s says %s, --for %s says %s", from, surface, got, dialect, want)
			}
			if got == "dropped" {
				dropped++
			}
		}
	}
	if dropped == 0 {
		t.Error("no tool was dropped: the test has no effect")
	}
}

func TestLintReportsToolTypesThatChatDoesNotHave(t *testing.T) {
	for _, typ := range []string{"web_search", "web_search_preview", "code_interpreter"} {
		request := `{"model":"gpt-5","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"` + typ + `"}]}`
		for _, target := range []string{"chat", "openai.strict"} {
			var out, stderr strings.Builder
			code := run([]string{"lint", "--for", target, "--from", "chat", "--fail-on", "serious"}, strings.NewReader(request), &out, &stderr)
			if code != exitLossy || !strings.Contains(out.String(), "has only tools of type function or custom") {
				t.Errorf("%s for %s: %d %s%s", typ, target, code, out.String(), stderr.String())
			}
		}
		var out, stderr strings.Builder
		code := run([]string{"convert", "--from", "chat", "--to", "responses"}, strings.NewReader(request), &out, &stderr)
		if code != exitOK || strings.Contains(stderr.String(), "has no such tool") || !strings.Contains(stderr.String(), "has a type that its dialect does not define, so it cannot be converted to openai.responses") {
			t.Errorf("%s: %d %s", typ, code, stderr.String())
		}
		out.Reset()
		if run([]string{"convert", "--from", "chat", "--to", "chat"}, strings.NewReader(request), &out, &stderr); !strings.Contains(out.String(), `{"type":"`+typ+`"}`) {
			t.Errorf("%s was not kept for a compatible server: %s", typ, out.String())
		}
	}
	var out, stderr strings.Builder
	if run([]string{"lint", "--for", "ollama", "--from", "ollama"}, strings.NewReader(`[{"type":"web_search"}]`), &out, &stderr); !strings.Contains(out.String(), "dropped") {
		t.Errorf("%s%s", out.String(), stderr.String())
	}
}
