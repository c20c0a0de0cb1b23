package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/session/sqlite"
)

// sessionsOf runs "dragoman sessions".
func sessionsOf(stdin io.Reader, args ...string) ran {
	var out, err bytes.Buffer
	if stdin == nil {
		stdin = strings.NewReader("")
	}
	code := run(append([]string{"sessions"}, args...), stdin, &out, &err)
	return ran{code, out.String(), err.String()}
}

func decodeOutput[T any](t *testing.T, r ran) (v T) {
	t.Helper()
	if r.code != exitOK || r.err != "" {
		t.Fatalf("%+v", r)
	}
	if err := json.Unmarshal([]byte(r.out), &v); err != nil {
		t.Fatalf("%v: %s", err, r.out)
	}
	return v
}

// sessionWithPrompts creates a session "trip" with two prompts, in the returned folder.
func sessionWithPrompts(t *testing.T) (dir string, do func(io.Reader, ...string) ran) {
	t.Helper()
	dir, do = runs(t)
	write(t, dir, "a.txt", "one \x1b[2J two")
	for _, prompt := range []string{`Read the file "a.txt"`, "And then?"} {
		if r := do(nil, "--session", "trip", "--model", "sim/planner", prompt); r.code != exitOK {
			t.Fatalf("%+v", r)
		}
	}
	return dir, do
}

func TestC3_ListShowsSessions(t *testing.T) {
	if r := sessionsOf(nil, "list", "--sessions", filepath.Join(t.TempDir(), "none.db")); r.code != exitOK || r.out != "" || !strings.Contains(r.err, "No sessions") {
		t.Errorf("%+v", r)
	}
	none := filepath.Join(t.TempDir(), "none.db")
	if r := sessionsOf(nil, "list", "--json", "--sessions", none); r.code != exitOK || r.out != "[]\n" {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(none); !os.IsNotExist(err) {
		t.Error("list created a file")
	}
	dir, do := sessionWithPrompts(t)
	if r := do(nil, "--session", "later", "--model", "sim/echo", "hi"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	if r := do(nil, "--session", "cut", "--max-turns", "1", "--model", "sim/planner", `Read the file "a.txt"`); r.code != exitFailed {
		t.Fatalf("%+v", r)
	}
	list := decodeOutput[[]sessionReport](t, sessionsOf(nil, "list", "--json"))
	var got []string
	for _, r := range list {
		got = append(got, strings.Join([]string{r.ID, r.Model, r.Status, r.Title}, "|"))
		if r.Folder != absolute(dir) || r.Created.IsZero() || r.Updated.Before(r.Created) || r.Error != "" {
			t.Errorf("%+v", r)
		}
	}
	want := []string{`cut|sim/planner|unfinished|Read the file "a.txt"`, `later|sim/echo|done|hi`, `trip|sim/planner|done|Read the file "a.txt"`}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
	if list[2].Turns != 3 || list[1].Turns != 1 {
		t.Errorf("turns: %+v", list)
	}
	r := sessionsOf(nil, "list", "--most", "2")
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != exitOK || len(lines) != 3 || !strings.Contains(lines[1], "cut ") || !strings.Contains(lines[1], absolute(dir)) || !strings.Contains(r.err, "--most 0") {
		t.Errorf("%+v", r)
	}
}

func TestC3_BrokenSessionDoesNotHideOthers(t *testing.T) {
	sessionWithPrompts(t)
	store, err := sqlite.Open(t.Context(), os.Getenv("DRAGOMAN_SESSIONS"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	own, err := session.Create(t.Context(), store, session.Info{ID: "own"})
	if err != nil {
		t.Fatal(err)
	}
	message := dragoman.Message{Role: dragoman.RoleAssistant, Parts: []dragoman.Part{&dragoman.Text{Text: "hi"}}, Origin: &dragoman.Origin{Provider: "acme", Model: "m1"}}
	if err := own.Save(t.Context(), []dragoman.Message{message, message}, nil); err != nil {
		t.Fatal(err)
	}
	broken, err := session.Create(t.Context(), store, session.Info{ID: "broken"})
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.Save(t.Context(), nil, []byte(`{"v":99}`)); err != nil {
		t.Fatal(err)
	}
	list := decodeOutput[[]sessionReport](t, sessionsOf(nil, "list", "--json"))
	if len(list) != 3 || list[0].Error == "" || list[1].Model != "acme/m1" || list[1].Turns != 1 || list[1].Status != statusEmpty || list[2].Error != "" {
		t.Errorf("%+v", list)
	}
	if r := sessionsOf(nil, "list"); !strings.Contains(r.out, "unreadable") || !strings.Contains(r.out, "trip") {
		t.Errorf("%+v", r)
	}
}

func TestC3_ShowNumbersPrompts(t *testing.T) {
	sessionWithPrompts(t)
	r := sessionsOf(nil, "show", "trip")
	for _, want := range []string{"Session trip, 3 turns, done", "\n[1] Read the file \"a.txt\"\n→ read_file {\"path\":\"a.txt\"}\n← [a.txt: ", "\n[2] And then?\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("no %q in\n%s", want, r.out)
		}
	}
	if r.code != exitOK || strings.Contains(r.out, "\x1b") || strings.Contains(r.out, "<<<") {
		t.Errorf("%+v", r)
	}
	s := decodeOutput[shownSession](t, sessionsOf(nil, "show", "trip", "--json"))
	var numbers []int
	for i, m := range s.Messages {
		numbers = append(numbers, m.Prompt)
		if m.Seq <= 0 || i > 0 && m.Seq <= s.Messages[i-1].Seq {
			t.Errorf("message %d is at %d", i, m.Seq)
		}
	}
	if s.ID != "trip" || !slices.Equal(numbers, []int{1, 0, 0, 0, 2, 0}) || s.Messages[4].Message.Text() != "And then?" {
		t.Errorf("%v: %+v", numbers, s)
	}
}

func TestC3_RewindCanBeUndone(t *testing.T) {
	dir, do := sessionWithPrompts(t)
	if r := decodeOutput[sessionReport](t, sessionsOf(nil, "rewind", "trip", "--json")); r.Turns != 2 || r.Status != statusDone {
		t.Errorf("%+v", r)
	}
	r := sessionsOf(nil, "rewind", "trip", "1")
	if r.code != exitOK || r.out != "" || !strings.Contains(r.err, `before prompt 1, "Read the file`) {
		t.Fatalf("%+v", r)
	}
	_, entry, _ := strings.Cut(strings.TrimSpace(r.err), "rewind trip --entry ")
	if again := decodeOutput[sessionReport](t, sessionsOf(nil, "rewind", "trip", "--entry", entry, "--json")); again.Turns != 2 || again.Folder != absolute(dir) {
		t.Errorf("%q: %+v", entry, again)
	}
	if r := do(nil, "--session", "trip", "--model", "sim/echo", "Something else"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	if r := sessionsOf(nil, "show", "trip"); strings.Contains(r.out, "And then?") || !strings.Contains(r.out, "[2] Something else") {
		t.Errorf("%+v", r)
	}
	for want, args := range map[string][]string{
		"prompts 1 to 2": {"rewind", "trip", "3"}, `"x" is not a number`: {"rewind", "trip", "x"},
		"no entry 999": {"rewind", "trip", "--entry", "999"}, "cannot be used together": {"rewind", "trip", "1", "--entry", "1"},
	} {
		if r := sessionsOf(nil, args...); r.code == exitOK || !strings.Contains(r.err, want) {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// The numbers of messages lead to points at which a run can be resumed.
func TestC3_RewoundToAMessageASessionContinues(t *testing.T) {
	_, do := sessionWithPrompts(t)
	all := decodeOutput[shownSession](t, sessionsOf(nil, "show", "trip", "--json")).Messages
	if len(all) != 6 {
		t.Fatalf("%+v", all)
	}
	for i, m := range all {
		r := decodeOutput[sessionReport](t, sessionsOf(nil, "rewind", "trip", "--entry", strconv.FormatInt(m.Seq, 10), "--json"))
		answered := i == 3 || i == 5
		if want := map[bool]string{true: statusDone, false: statusUnfinished}[answered]; r.Status != want {
			t.Errorf("rewound to message %d: %+v, want status %s", i, r, want)
		}
		if r := do(nil, "--session", "trip", "--model", "sim/planner"); r.code != exitOK {
			t.Errorf("continued after message %d: %+v", i, r)
		}
		now := decodeOutput[shownSession](t, sessionsOf(nil, "show", "trip", "--json")).Messages
		if want := map[bool]int{true: 4, false: 6}[i < 4]; len(now) != want || now[len(now)-1].Message.Role != dragoman.RoleAssistant {
			t.Errorf("after message %d there are %d messages, want %d", i, len(now), want)
		}
	}
}

func TestC3_BranchIsIndependent(t *testing.T) {
	_, do := sessionWithPrompts(t)
	moved := t.TempDir()
	if r := do(nil, "--session", "trip", "--dir", moved, "--model", "sim/echo", "Moved"); r.code != exitOK {
		t.Fatalf("%+v", r)
	}
	b := decodeOutput[sessionReport](t, sessionsOf(nil, "branch", "trip", "2", "--as", "side", "--json"))
	if r := sessionsOf(nil, "show", "side"); !strings.Contains(r.out, "[1] Read the file") || strings.Contains(r.out, "And then?") {
		t.Errorf("the branch differs from the state before the prompt: %+v", r)
	}
	if b.ID != "side" || b.Parent != "trip" || b.Turns != 2 || b.Folder != absolute(moved) {
		t.Errorf("%+v", b)
	}
	if r := do(nil, "--session", "side", "--dir", moved, "--model", "sim/echo", "Elsewhere"); r.code != exitOK || strings.Contains(r.err, "from now on") {
		t.Errorf("%+v", r)
	}
	if r := sessionsOf(nil, "show", "trip"); strings.Contains(r.out, "Elsewhere") || !strings.Contains(r.out, "And then?") {
		t.Errorf("%+v", r)
	}
	if whole := decodeOutput[sessionReport](t, sessionsOf(nil, "branch", "trip", "--json")); whole.Turns != 4 || whole.ID == "" {
		t.Errorf("%+v", whole)
	}
	if r := sessionsOf(nil, "branch", "trip", "--as", "side"); r.code != exitFailed {
		t.Errorf("a name in use was accepted: %+v", r)
	}
}

func TestC3_ExportAndImport(t *testing.T) {
	_, do := sessionWithPrompts(t)
	lines := sessionsOf(nil, "export", "trip")
	if lines.code != exitOK || lines.err != "" {
		t.Fatalf("%+v", lines)
	}
	if r := sessionsOf(strings.NewReader(lines.out), "import", "--json"); r.code != exitFailed || r.out != "" || !strings.HasPrefix(r.err, `{"error":`) || !strings.Contains(r.err, "--as") {
		t.Errorf("an import replaced a session: %+v", r)
	}
	if r := sessionsOf(nil, "delete", "trip"); r.code != exitOK || r.out+r.err != "" {
		t.Errorf("%+v", r)
	}
	file := filepath.Join(t.TempDir(), "trip.jsonl")
	write(t, filepath.Dir(file), "trip.jsonl", lines.out)
	if r := sessionsOf(nil, "import", file); r.code != exitOK || !strings.Contains(r.err, "run --session trip") {
		t.Errorf("%+v", r)
	}
	if again := sessionsOf(nil, "export", "trip"); again.out != lines.out {
		t.Errorf("the imported session differs:\n%s\n%s", again.out, lines.out)
	}
	if r := do(nil, "--session", "trip", "--model", "sim/echo", "On we go"); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	if r := sessionsOf(strings.NewReader(lines.out[:len(lines.out)/2]), "import", "--as", "half"); r.code != exitFailed || sessionsOf(nil, "show", "half").code != exitFailed {
		t.Errorf("half of a session was imported: %+v", r)
	}
}

func TestC3_DeleteIsAllOrNothing(t *testing.T) {
	sessionWithPrompts(t)
	if r := sessionsOf(nil, "rm", "trip", "nope"); r.code != exitFailed || !strings.Contains(r.err, `unknown session "nope"`) {
		t.Errorf("%+v", r)
	}
	if r := sessionsOf(nil, "show", "tripp"); r.code != exitFailed || !strings.Contains(r.err, "did you mean trip?") {
		t.Errorf("%+v", r)
	}
	if r := sessionsOf(nil, "rm", "trip", "trip"); r.code != exitOK {
		t.Errorf("%+v", r)
	}
	if r := sessionsOf(nil, "show", "trip", "--json"); r.code != exitFailed || !strings.HasPrefix(r.err, `{"error":`) {
		t.Errorf("%+v", r)
	}
}

func TestC4_MistypedCommandIsSuggested(t *testing.T) {
	for want, args := range map[string][]string{
		"did you mean sessions?": {"sesions"}, "did you mean list?": {"sessions", "lst"}, `unknown command "frobnicate" for "dragoman tools"`: {"tools", "frobnicate"},
	} {
		var out, err bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &err); code != exitUsage || !strings.Contains(err.String(), want) {
			t.Errorf("%q: %d %s", args, code, err.String())
		}
	}
}
