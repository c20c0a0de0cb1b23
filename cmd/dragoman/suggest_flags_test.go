package main

import (
	"strings"
	"testing"
)

func TestMistakesOnTheCommandLineAreSuggested(t *testing.T) {
	runs(t)
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"did you mean run?", []string{"rnu"}},
		{"did you mean --model?", []string{"run", "-model", "sim/echo", "hi"}},
		{"did you mean --continue?", []string{"run", "-continue", "hi"}},
		{"did you mean no-tools?", []string{"convert", "--from", "chat", "--to", "chat", "--capability", "no-tool"}},
		{`unknown --capability "no-tool": "dragoman convert --help" lists all; did you mean no-tools?`, []string{"convert", "--from", "chat", "--to", "chat", "--capability", "no-tool"}},
		{"did you mean dropped?", []string{"convert", "--to", "chat", "--fail-on", "droped"}},
		{"did you mean stream?", []string{"convert", "--to", "chat", "--kind", "steam"}},
		{"did you mean json?", []string{"serve", "--log", "jsn"}},
		{"did you mean stall?", []string{"sim", "--fault", "stal"}},
		{"cohere.output; did you mean chat?\n", []string{"lint", "--for", "chatt"}},
		{"SESSION is missing: dragoman sessions show SESSION", []string{"sessions", "show"}},
		{"SESSION is missing: dragoman sessions delete SESSION...", []string{"sessions", "delete"}},
		{"ACTION is missing: dragoman sessions run-action SESSION ACTION", []string{"sessions", "run-action", "trip"}},
		{`unexpected argument "3": dragoman sessions branch SESSION [PROMPT]`, []string{"sessions", "branch", "trip", "2", "3"}},
		{`unexpected argument "b.json": dragoman convert --to`, []string{"convert", "--to", "chat", "a.json", "b.json"}},
		{`unexpected argument "gateway.yaml": dragoman serve`, []string{"serve", "gateway.yaml"}},
		{`invalid --max-turns "5x": want a whole number`, []string{"run", "--max-turns", "5x", "hi"}},
		{`invalid --drain "30": want a duration, such as 30s`, []string{"serve", "--drain", "30"}},
		{`invalid --entry "x": want a whole number`, []string{"sessions", "rewind", "trip", "--entry", "x"}},
		{`invalid --rate "fast": want a number`, []string{"sim", "--rate", "fast"}},
		{`invalid --quiet "maybe": want true or false`, []string{"lint", "--quiet=maybe"}},
		{`invalid --metadata "team": want name=value`, []string{"run", "--metadata", "team", "hi"}},
		{`Try "dragoman sessions show --help".`, []string{"sessions", "show"}},
		{`Try "dragoman run --help".`, []string{"run", "--frobnicate"}},
	} {
		if r := runArgs(tc.args...); r.code != exitUsage || !strings.Contains(r.err, tc.want) {
			t.Errorf("%q: %+v\nwant %s", tc.args, r, tc.want)
		}
	}
	dir := t.TempDir()
	write(t, dir, "c.yaml", "version: 1\nproviders: {work: {type: compatibel}}\n")
	t.Setenv("DRAGOMAN_CONFIG", dir+"/c.yaml")
	if r := runArgs("run", "--no-session", "--model", "work/m", "hi"); r.code != exitFailed || !strings.Contains(r.err, "did you mean compatible?") {
		t.Errorf("%+v", r)
	}
}
