package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/tool"
)

// ran is the result of a command line.
type ran struct {
	code     int
	out, err string
}

// runs returns a function that runs "dragoman run" in a new folder, with new sessions and no
// configured model.
func runs(t *testing.T) (dir string, f func(stdin io.Reader, args ...string) ran) {
	t.Helper()
	dir = t.TempDir()
	for _, v := range []string{"DRAGOMAN_MODEL", "DRAGOMAN_CONFIG", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		t.Setenv(v, "")
	}
	home := t.TempDir() // without skills
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	t.Setenv("DRAGOMAN_SESSIONS", filepath.Join(t.TempDir(), "deep", "sessions.db"))
	return dir, func(stdin io.Reader, args ...string) ran {
		var out, err bytes.Buffer
		if stdin == nil {
			stdin = strings.NewReader("")
		}
		code := run(append([]string{"run", "--dir", dir}, args...), stdin, &out, &err)
		return ran{code, out.String(), err.String()}
	}
}

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestC1_RunUsesSimulatorIfNothingIsConfigured(t *testing.T) {
	dir, do := runs(t)
	write(t, dir, "letter.txt", "dear all")
	r := do(nil, `Read the file "letter.txt"`)
	if r.code != exitOK || !strings.Contains(r.out, "dear all") {
		t.Fatalf("%+v", r)
	}
	if strings.Count(r.err, "simulator") != 1 || !strings.Contains(r.err, `→ read_file {"path":"letter.txt"}`) || !strings.Contains(r.err, "← read_file: ") {
		t.Errorf("standard error:\n%s", r.err)
	}
	if !strings.HasSuffix(r.out, "\n") || strings.Contains(r.out, "→") {
		t.Errorf("the response: %q", r.out)
	}
}

// A call that never reached a tool, for example because the response was cut off, is shown
// with its result like any other call. A call that reached a tool is shown once.
func TestC1_CallResultIsShownOnce(t *testing.T) {
	var out, stderr bytes.Buffer
	show := &printer{out: &out, err: &stderr}
	ran, refused := &dragoman.ToolCall{ID: "a", Name: "look"}, &dragoman.ToolCall{ID: "b", Name: "pay"}
	for _, ev := range []agent.Event{
		&agent.ToolCalled{Call: ran}, &agent.ToolCalled{Call: refused},
		&agent.ToolEvent{Event: tool.CallEnded{CallRef: tool.CallRef{CallID: "a"}, Record: tool.Record{Tool: "look", OK: true, Plain: "seen"}}},
		&agent.ToolReturned{Result: ran.ResultText("seen")}, &agent.ToolReturned{Result: refused.Fail("pay did not run.")},
	} {
		if err := show.show(ev); err != nil {
			t.Fatal(err)
		}
	}
	if want := "→ look \n→ pay \n← look: seen\n← pay failed: pay did not run.\n"; stderr.String() != want || out.Len() > 0 {
		t.Errorf("%q, want %q", stderr.String(), want)
	}
}

func TestC1_SessionContinues(t *testing.T) {
	dir, do := runs(t)
	write(t, dir, "a.txt", "one")
	if r := do(nil, "--session", "trip", `Read the file "a.txt"`); r.code != exitOK || !strings.Contains(r.err, "--session trip") {
		t.Fatalf("%+v", r)
	}
	r := do(nil, "--session", "trip", "--model", "sim/echo", "--json", "And then?")
	if r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	if strings.Contains(r.err, "Session") {
		t.Errorf("with --json, standard error must be empty: %s", r.err)
	}
	var last struct {
		Type string
		End  struct {
			Output string
			Done   bool
		}
	}
	for line := range strings.SplitSeq(strings.TrimSpace(r.out), "\n") {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
	}
	if last.Type != "run_end" || !last.End.Done || !strings.Contains(last.End.Output, "And then?") {
		t.Errorf("%+v", last)
	}
	if r := do(nil, "--session", "trip"); r.code != exitOK || !strings.Contains(r.err, "no unfinished run") {
		t.Errorf("%+v", r)
	}
	for _, args := range [][]string{{"--session", "other"}, {"--session", "../x", "hi"}} {
		if r := do(nil, args...); r.code != exitFailed {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestC1_CallsAreRefusedWithoutTerminal(t *testing.T) {
	dir, do := runs(t)
	r := do(nil, `Write the file "b.txt" with content "hi"`)
	if _, err := os.Stat(filepath.Join(dir, "b.txt")); !os.IsNotExist(err) {
		t.Fatalf("the file was written: %v", err)
	}
	if r.code != exitUnattended || !strings.Contains(r.err, "no approver is attached") || !strings.Contains(r.err, "--allow") || strings.Contains(r.err, "the user rejected") {
		t.Errorf("%+v", r)
	}
	write(t, dir, "policy.yaml", "version: 1\nrules:\n  - id: writes\n    effect: allow\n    when: {tool: [write_file]}\n")
	if r := do(nil, "--policy", filepath.Join(dir, "policy.yaml"), `Write the file "c.txt" with content "hi"`); r.code != exitOK || strings.Contains(r.err, "no approver is attached") {
		t.Errorf("a rule that allows a call approves it: %+v", r)
	}
	if r := do(nil, "--allow", "write_file", `Write the file "b.txt" with content "hi"`); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "b.txt")); err != nil || string(b) != "hi" {
		t.Errorf("%q %v", b, err)
	}
	write(t, dir, "policy.yaml", "version: 1\nrules:\n  - id: reads\n    effect: deny\n    reason: not today\n    when: {tool: [read_file]}\n")
	if r := do(nil, "--policy", filepath.Join(dir, "policy.yaml"), `Read the file "policy.yaml"`); !strings.Contains(r.err, "not today") {
		t.Errorf("%+v", r)
	}
}

func TestC4_RunReportsCommandLineErrors(t *testing.T) {
	_, do := runs(t)
	for want, args := range map[string][]string{
		"missing prompt":          {},
		"cannot be used together": {"--no-session", "--session", "x", "hi"},
		"needs a prompt":          {"--abandon", "--session", "x"},
		"unknown flag":            {"--frobnicate", "hi"},
	} {
		if r := do(nil, args...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%q: %+v", args, r)
		}
	}
	for want, args := range map[string][]string{
		"nosuch":         {"--model", "nosuch/model", "hi"},
		"no-such-file":   {"--policy", "no-such-file.yaml", "hi"},
		"no-such-folder": {"--dir", "no-such-folder", "hi"},
		"--no-session":   {"--sessions", "/dev/null/x.db", "hi"},
	} {
		if r := do(nil, args...); r.code != exitFailed || !strings.Contains(r.err, want) {
			t.Errorf("%q: %+v", args, r)
		}
	}
	if r := do(strings.NewReader("Say this\n"), "--no-session", "--model", "sim/echo", "-"); r.code != exitOK || !strings.Contains(r.out, "Say this") || strings.Contains(r.err, "Session") {
		t.Errorf("%+v", r)
	}
}

func TestC1_ConfiguredModelIsUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write(t, filepath.Dir(file), "config.yaml", "version: 1\naliases: {default: sim/echo}\n")
	for _, tc := range []struct {
		given  string
		env    map[string]string
		want   string
		notice bool
	}{
		{"x/y", map[string]string{"DRAGOMAN_MODEL": "a/b"}, "x/y", false},
		{"", map[string]string{"DRAGOMAN_MODEL": "a/b", "OPENAI_API_KEY": "k"}, "a/b", false},
		{"", map[string]string{"DRAGOMAN_CONFIG": file, "OPENAI_API_KEY": "k"}, "default", false},
		{"", map[string]string{"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}, "openai/gpt-5.1", true},
		{"", nil, "sim/planner", true},
	} {
		got, why, err := pickModel(tc.given, func(k string) string { return tc.env[k] })
		if err != nil || got != tc.want || (why != "") != tc.notice {
			t.Errorf("%v: %s (%s) %v", tc, got, why, err)
		}
	}
	if _, _, err := pickModel("", func(string) string { return file + ".not" }); err != nil {
		t.Error(err) // DRAGOMAN_MODEL comes first
	}
	broken := func(k string) string { return map[string]string{"DRAGOMAN_CONFIG": file + ".not"}[k] }
	if _, _, err := pickModel("", broken); err == nil {
		t.Error("an unreadable config file was ignored")
	}
}

func TestModelTextHasNoControlCharacters(t *testing.T) {
	if got := printable("a\tb\n\x1b[2Jc\r\n"); strings.ContainsAny(got, "\x1b\r") || !strings.HasPrefix(got, "a\tb\n") {
		t.Errorf("%q", got)
	}
}

func TestC1_RunErrorsNameFlags(t *testing.T) {
	dir, do := runs(t)
	write(t, dir, "letter.txt", "dear all")
	for _, tc := range []struct {
		code int
		want string
		args []string
	}{
		{exitUsage, `--allow: unknown tool "wrte_file": known tools are list_files, read_file, search_files, write_file, apply_patch, shell; did you mean write_file?`, []string{"--allow", "wrte_file", "hi"}},
		{exitUsage, "--max-turns -3: must not be negative; 0 means the default, 20", []string{"--max-turns", "-3", "hi"}},
		{exitFailed, "turns, at most 1; continue with: dragoman run --session short --dir " + quoteArg(absolute(dir)) + " --max-turns N", []string{"--session", "short", "--max-turns", "1", `Read the file "letter.txt"`}},
	} {
		if r := do(nil, tc.args...); r.code != tc.code || !strings.Contains(r.err, tc.want) {
			t.Errorf("%q: %+v, want %q", tc.args, r, tc.want)
		}
	}
	if r := do(nil, "--session", "short", "--max-turns", "5"); r.code != exitOK || !strings.Contains(r.out, "dear all") {
		t.Errorf("the session did not continue: %+v", r)
	}
}

func TestC1_SessionKeepsItsFolder(t *testing.T) {
	here, do := runs(t)
	there := t.TempDir()
	write(t, here, "a.txt", "of here")
	write(t, there, "a.txt", "of there")
	in := func(dir string, args ...string) ran {
		t.Chdir(dir)
		var out, err bytes.Buffer
		code := run(append([]string{"run"}, args...), strings.NewReader(""), &out, &err)
		return ran{code, out.String(), err.String()}
	}
	const ask = `Read the file "a.txt"`
	if r := in(here, "--session", "trip", ask); r.code != exitOK || !strings.Contains(r.err, "run --session trip \"…\"") {
		t.Fatalf("%+v", r)
	}
	for _, args := range [][]string{{"--session", "trip", ask}, {"--session", "trip"}} {
		r := in(there, args...)
		if r.code != exitFailed || r.out != "" || !strings.Contains(r.err, absolute(here)) || !strings.Contains(r.err, "--dir .") {
			t.Errorf("the session continued in another folder: %+v", r)
		}
	}
	if r := in(there, "--session", "trip", "--dir", here, ask); r.code != exitOK || !strings.Contains(r.out, "of here") || strings.Contains(r.err, "from now on") || !strings.Contains(r.err, "--dir "+quoteArg(absolute(here))) {
		t.Errorf("--dir with its own folder: %+v", r)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(here, link); err == nil {
		if !sameFolder(here, link) || sameFolder(there, link) || sameFolder(here, filepath.Join(link, "not")) {
			t.Error("sameFolder does not see that a symlink is the same folder")
		}
		if r := in(there, "--session", "trip", "--dir", link, ask); r.code != exitOK || strings.Contains(r.err, "from now on") {
			t.Errorf("--dir with a symlink to its own folder: %+v", r)
		}
	}
	if r := in(there, "--session", "trip", "--dir", ".", ask); r.code != exitOK || !strings.Contains(r.out, "of there") || !strings.Contains(r.err, "from now on it works in "+absolute(there)) {
		t.Errorf("--dir with another folder: %+v", r)
	}
	if r := in(here, "--session", "trip", ask); r.code != exitFailed || !strings.Contains(r.err, "works in "+absolute(there)) {
		t.Errorf("in the old folder, after the move: %+v", r)
	}
	if r := do(nil, "--session", "other", "--dir", filepath.Join(here, "nowhere"), ask); r.code != exitFailed {
		t.Errorf("%+v", r)
	}
	if r := do(nil, "--session", "other"); r.code != exitFailed || !strings.Contains(r.err, `unknown session "other"`) {
		t.Errorf("a run that could not start left a session: %+v", r)
	}
}

func TestC1_RunStartNamesTheSession(t *testing.T) {
	_, do := runs(t)
	first := func(args ...string) (ev struct{ Type, Session string }) {
		r := do(nil, append(args, "--json", "hi")...)
		line, _, _ := strings.Cut(r.out, "\n")
		if err := json.Unmarshal([]byte(line), &ev); err != nil || ev.Type != "run_start" {
			t.Fatalf("%v: %+v", err, r)
		}
		return ev
	}
	if ev := first("--session", "trip"); ev.Session != "trip" {
		t.Errorf("%+v", ev)
	}
	made := first().Session
	if made == "" {
		t.Fatal("the run does not report a generated session name")
	}
	if r := do(nil, "--session", made); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	if ev := first("--no-session"); ev.Session != "" {
		t.Errorf("%+v", ev)
	}
}

func TestC1_ArgumentsAreJoinedToOnePrompt(t *testing.T) {
	_, do := runs(t)
	if r := do(nil, "--no-session", "--model", "sim/echo", "Say", "it", "again"); r.code != exitOK || !strings.Contains(r.out, "Say it again") {
		t.Errorf("%+v", r)
	}
}

func TestC4_MistypedModelIsSuggested(t *testing.T) {
	_, do := runs(t)
	for spec, want := range map[string]string{
		"antropic/claude-opus-5-5": "did you mean anthropic?", "sim/planer": "did you mean sim/planner?", "planner": "did you mean sim/planner?",
		"kimmi/k2": "did you mean kimi?",
	} {
		if r := do(nil, "--model", spec, "hi"); r.code != exitFailed || !strings.Contains(r.err, want) {
			t.Errorf("%q: %+v", spec, r)
		}
	}
	if r := do(nil, "--model", "wholly-other/x", "hi"); strings.Contains(r.err, "did you mean") {
		t.Errorf("%+v", r)
	}
}

func TestC4_DebugLogsRequestsWithoutCredentials(t *testing.T) {
	dir, do := runs(t)
	const key = "sk-very-secret-key-0123456789"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":{"message":"no such thing for ` + r.Header.Get("Authorization") + ` \u001b[2J"}}`))
	}))
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", key)
	t.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
	r := do(nil, "--debug", "--no-session", "--model", "openai-chat/gpt-x", "What is this?")
	for _, want := range []string{"[model request]", "[model request refused]", server.URL + "/v1/chat/completions", `"content":"What is this?"`, "no such thing", "Authorization: "} {
		if !strings.Contains(r.err, want) {
			t.Errorf("no %q in\n%s", want, r.err)
		}
	}
	if strings.Contains(r.err, key) || strings.Contains(r.err, "\x1b") || r.out != "" {
		t.Errorf("%+v", r)
	}
	write(t, dir, "letter.txt", "dear all")
	r = do(nil, "--debug", "--no-session", "--model", "sim/planner", `Read the file "letter.txt"`)
	if r.code != exitOK || strings.Count(r.err, "[model request] model=sim/planner") != 2 || strings.Count(r.err, "[model response]") != 2 || strings.Contains(r.out, "[model") {
		t.Errorf("%+v", r)
	}
	if r := do(nil, "--no-session", "--model", "sim/planner", "hi"); strings.Contains(r.err, "[model") {
		t.Errorf("logged without --debug: %+v", r)
	}
}
