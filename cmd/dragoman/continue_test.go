package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestContinueUsesSessionModel(t *testing.T) {
	_, do := runs(t)
	sent := chatConfig(t, "")
	if r := do(nil, "--session", "trip", "--model", "work/m", "one"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for i, args := range [][]string{{"--session", "trip"}, {"--continue"}} {
		r := do(nil, append(args, "more")...)
		if r.code != exitOK || len(*sent) != i+2 || !strings.Contains(r.err, "Using work/m, the last model of session trip. Use --model to choose another.") {
			t.Errorf("%q: %+v, %q", args, r, *sent)
		}
	}
	t.Setenv("OPENAI_API_KEY", "k") // a new run would use it
	if r := do(nil, "--session", "trip", "more"); r.code != exitOK || len(*sent) != 4 {
		t.Errorf("%+v, %q", r, *sent)
	}
	if r := do(nil, "--session", "trip", "--model", "sim/echo", "aloud"); r.code != exitOK || !strings.Contains(r.out, "aloud") {
		t.Errorf("%+v", r)
	}
}

func TestSimulatorDoesNotContinueRealSession(t *testing.T) {
	_, do := runs(t)
	sent := chatConfig(t, "")
	if r := do(nil, "--session", "trip", "--model", "work/m", "one"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	t.Setenv("DRAGOMAN_MODEL", "sim/echo")
	if r := do(nil, "--session", "trip", "more"); r.code != exitFailed || r.out != "" || !strings.Contains(r.err, "session trip used work/m") {
		t.Errorf("%+v", r)
	}
	t.Setenv("DRAGOMAN_MODEL", "")
	t.Setenv("DRAGOMAN_CONFIG", "") // the provider is unknown now
	if r := do(nil, "--session", "trip", "more"); r.code != exitFailed || r.out != "" || !strings.Contains(r.err, "the last model of session trip") || !strings.Contains(r.err, "choose another with --model") {
		t.Errorf("%+v", r)
	}
	if len(*sent) != 1 {
		t.Errorf("%q", *sent)
	}
}

// hintArgs returns the arguments of the command in a hint.
func hintArgs(t *testing.T, text string) []string {
	t.Helper()
	_, line, ok := strings.Cut(text, "ontinue with: dragoman ")
	if !ok {
		t.Fatalf("no hint in %q", text)
	}
	line, _, _ = strings.Cut(line, "\n")
	var args []string
	for _, word := range regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`).FindAllString(line, -1) {
		args = append(args, strings.Trim(word, `'"`))
	}
	return args
}

func TestRunHintWorksAsPrinted(t *testing.T) {
	dir, do := runs(t)
	write(t, dir, "policy.yaml", "version: 1\n")
	write(t, dir, "a.txt", "one")
	db := filepath.Join(t.TempDir(), "my sessions.db")
	r := do(nil, "--sessions", db, "--model", "sim/planner", "--policy", filepath.Join(dir, "policy.yaml"), "--allow", "write_file", "--metadata", "stage=test run", "--max-turns", "7", "--system", "Be brief.", `Read the file "a.txt"`)
	if r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{" --sessions '" + db + "'", " --model sim/planner", " --policy ", " --allow write_file", " --metadata 'stage=test run'", " --max-turns 7", " --system 'Be brief.'", " --dir "} {
		if !strings.Contains(r.err, want) {
			t.Errorf("no %q in %s", want, r.err)
		}
	}
	var out, stderr bytes.Buffer
	if code := run(hintArgs(t, r.err), strings.NewReader(""), &out, &stderr); code != exitOK || strings.Contains(stderr.String(), "New session") {
		t.Errorf("%d %s", code, stderr.String())
	}
	if r := sessionsOf(nil, "list", "--sessions", db); strings.Count(r.out, "sim/planner") != 1 {
		t.Errorf("the hint created another session: %+v", r)
	}
	if _, err := os.Stat(os.Getenv("DRAGOMAN_SESSIONS")); err == nil {
		t.Error("the hint used another file")
	}
}

func TestSessionsHintsNameTheFile(t *testing.T) {
	_, do := runs(t)
	db := filepath.Join(t.TempDir(), "s.db")
	if r := do(nil, "--sessions", db, "--session", "trip", "--model", "sim/echo", "hi"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	for _, args := range [][]string{{"branch", "trip", "--as", "other"}, {"rewind", "trip"}} {
		if r := sessionsOf(nil, append(args, "--sessions", db)...); r.code != exitOK || !strings.Contains(r.err, " --sessions "+db) {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

func TestNewNamedSessionIsReported(t *testing.T) {
	_, do := runs(t)
	if r := do(nil, "--session", "trip", "--model", "sim/echo", "hi"); !strings.Contains(r.err, "New session trip.\n") {
		t.Errorf("%+v", r)
	}
	if r := do(nil, "--session", "trip", "--model", "sim/echo", "hi"); r.code != exitOK || strings.Contains(r.err, "New session") {
		t.Errorf("%+v", r)
	}
	if r := do(nil, "--model", "sim/echo", "hi"); strings.Contains(r.err, "New session") {
		t.Errorf("%+v", r)
	}
}

// onlyID returns the only session of the store.
func onlyID(t *testing.T) string {
	t.Helper()
	list := decodeOutput[[]sessionReport](t, sessionsOf(nil, "list", "--json"))
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	return list[0].ID
}

func TestTooShortSessionNameIsRefused(t *testing.T) {
	_, do := runs(t)
	if r := do(nil, "--model", "sim/echo", "hi"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	id := onlyID(t)
	if r := do(nil, "--session", id[:3], "--model", "sim/echo", "hi"); r.code != exitFailed || !strings.Contains(r.err, "did you mean "+id+"?") {
		t.Errorf("%+v", r)
	}
	onlyID(t)
}

func TestBranchHasShortName(t *testing.T) {
	_, do := runs(t)
	if r := do(nil, "--session", "trip", "--model", "sim/echo", "hi"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	if b := decodeOutput[sessionReport](t, sessionsOf(nil, "branch", "trip", "--json")); len(b.ID) != 8 || b.Parent != "trip" {
		t.Errorf("%+v", b)
	}
}

func TestDeleteNeedsFullName(t *testing.T) {
	_, do := runs(t)
	if r := do(nil, "--model", "sim/echo", "hi"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	id := onlyID(t)
	if r := sessionsOf(nil, "delete", id[:4]); r.code != exitFailed || !strings.Contains(r.err, "delete needs the full name: "+id) {
		t.Errorf("%+v", r)
	}
	onlyID(t)
}
