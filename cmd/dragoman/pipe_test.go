package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestPipedInputIsThePrompt(t *testing.T) {
	_, do := runs(t)
	for _, tc := range []struct {
		name, piped string
		args        []string
		want        string
	}{
		{"no prompt", "Say this\n", nil, "Say this"},
		{"a dash", "Say this\n", []string{"-"}, "Say this"},
		{"a prompt and input", "line one\nline two\n", []string{"Summarize", "this"}, "Summarize this\n\nStandard input:\n\nline one\nline two"},
		{"a prompt and empty input", "\n", []string{"Say this"}, "Say this"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := do(strings.NewReader(tc.piped), append([]string{"--no-session", "--model", "sim/echo"}, tc.args...)...)
			if r.code != exitOK || !strings.Contains(r.out, tc.want) {
				t.Errorf("%+v, want %q", r, tc.want)
			}
			if tc.name == "a prompt and empty input" && strings.Contains(r.out, "Standard input") {
				t.Errorf("empty input is announced: %+v", r)
			}
		})
	}
	for want, piped := range map[string]string{"missing prompt": "", "not UTF-8": "\xff\xfe"} {
		if r := do(strings.NewReader(piped), "--no-session"); r.code == exitOK || !strings.Contains(r.err, want) {
			t.Errorf("%+v, want %q", r, want)
		}
	}
}

func TestNullDeviceIsNotPipedInput(t *testing.T) {
	_, do := runs(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if r := do(null, "--no-session", "--model", "sim/echo", "Say this"); r.code != exitOK || strings.Contains(r.out, "Standard input") {
		t.Errorf("%+v", r)
	}
}

func TestContinueUsesLastSessionOfFolder(t *testing.T) {
	here, do := runs(t)
	if r := do(nil, "--continue", "--model", "sim/echo", "And?"); r.code != exitFailed || !strings.Contains(r.err, "folder "+absolute(here)+" has no session to continue") {
		t.Errorf("no session yet: %+v", r)
	}
	first := do(nil, "--session", "first", "--model", "sim/echo", "One")
	second := do(nil, "--model", "sim/echo", "Two")
	other := do(nil, "--dir", t.TempDir(), "--model", "sim/echo", "Three")
	id := sessionOf(t, second)
	if first.code != exitOK || other.code != exitOK || !regexp.MustCompile("^[a-z2-7]{8}$").MatchString(id) {
		t.Fatalf("%+v %+v %+v", first, second, other)
	}
	for _, args := range [][]string{{"-c", "More"}, {"--continue", "And more"}, {"--session", id[:4], "Still more"}} {
		if r := do(nil, append([]string{"--model", "sim/echo"}, args...)...); r.code != exitOK || sessionOf(t, r) != id {
			t.Errorf("%q did not continue session %s: %+v", args, id, r)
		}
	}
	for _, args := range [][]string{{"--continue", "--session", "first", "x"}, {"--continue", "--no-session", "x"}} {
		if r := do(nil, args...); r.code != exitUsage {
			t.Errorf("%q: %+v", args, r)
		}
	}
	// A name that a user chose cannot be shortened.
	if r := do(nil, "--session", "firs", "--model", "sim/echo", "New"); r.code != exitOK || sessionOf(t, r) != "firs" {
		t.Errorf("%+v", r)
	}
}

// sessionOf returns the session that the output of a run names.
func sessionOf(t *testing.T, r ran) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^Session (\S+)\.`).FindStringSubmatch(r.err)
	if m == nil {
		t.Fatalf("no session is named: %+v", r)
	}
	return m[1]
}

func TestMisspelledNamesAreSuggested(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tools.json")
	if err := os.WriteFile(file, []byte(`[{"name":"a","input_schema":{"type":"object"}}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ line, want string }{
		{"convert --to anthropc " + file, "did you mean anthropic?"},
		{"convert --to anthropic --from opanai " + file, "did you mean openai?"},
		{"convert --to canonicl " + file, "did you mean canonical?"},
		{"lint --for openai.strct " + file, "did you mean openai.strict?"},
		{"lint --for gemni " + file, "did you mean gemini?"},
		{"lint --fo gemini " + file, "did you mean --for?"},
		{"run --mdoel sim/echo hi", "did you mean --model?"},
		{"run --allow shel hi", "did you mean shell?"},
		{"sessions lst", "did you mean list?"},
	} {
		var out, stderr strings.Builder
		if code := run(strings.Fields(tc.line), strings.NewReader(""), &out, &stderr); code != exitUsage || !strings.Contains(stderr.String(), tc.want) {
			t.Errorf("dragoman %s: exit code %d: %s, want %q", tc.line, code, stderr.String(), tc.want)
		}
	}
}
