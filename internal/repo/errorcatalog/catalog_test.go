// Package errorcatalog produces the errors that users meet most, and checks that docs/errors.md
// shows them as they are. To write the page again, after you changed an error or an entry:
//
//	go test ./internal/repo/errorcatalog -update
package errorcatalog

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write docs/errors.md")

const (
	root = "../../.."
	page = root + "/docs/errors.md"
)

// section is a group of entries: the place where a user meets them.
type section struct {
	title, intro string
	entries      []entry
}

// entry is one error. Exactly one of command and run produces it.
type entry struct {
	title string
	// command is run by a shell in an empty folder that contains files, with env in its
	// environment. The error is what it writes to standard error. before is run first, and
	// its output is ignored.
	command, before string
	files           map[string]string
	env             []string
	// exit is the exit code of command; 0 means 1.
	exit int
	// from describes what run does, for the page. run returns the text of the error.
	from string
	run  func(t *testing.T) string
	// means says what happened, fix what to do.
	means, fix string
}

func sections() []section {
	return []section{
		commandLine(), choosingAModel(), upstream(), gatewayRequests(), configFile(), agents(), tools(), sessions(), policies(), schemas(),
	}
}

const intro = `# Errors

This page lists the errors that people meet most, by the place where they meet them. A test produces each of them and
compares it with this page, so the texts are exact. Ports, paths and generated names differ on your machine.

An error says what failed, where, and what to do. The command writes ` + "`dragoman: `" + ` and leaves out the package that the
library names first (` + "`provider: `, `agent: `" + `). For exit codes see [the command](command.md), for statuses and classes of
the gateway [its reference](gateway.md).

Programs do not compare texts: they use ` + "`errors.Is` and `errors.As`" + `. The texts may change in any release; types and
sentinel errors follow [the stability rules](stability.md).
`

func TestPageShowsTheErrorsAsTheyAre(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands of the catalog need a POSIX shell")
	}
	old, err := os.ReadFile(page)
	if err != nil && !*update {
		t.Fatal(err)
	}
	shownAs := make([][]string, len(sections()))
	count := 0
	t.Run("entries", func(t *testing.T) {
		for i, s := range sections() {
			shownAs[i] = make([]string, len(s.entries))
			for j, e := range s.entries {
				count++
				t.Run(s.title+"/"+e.title, func(t *testing.T) {
					t.Parallel()
					text, ok := e.produce(t)
					if !ok { // this machine cannot produce it: the page keeps its text
						shownAs[i][j] = shown(string(old), e.title)
						return
					}
					shownAs[i][j] = e.markdown(text)
				})
			}
		}
	})
	if t.Failed() {
		return
	}
	if count < 50 {
		t.Errorf("only %d entries", count)
	}
	var b strings.Builder
	b.WriteString(intro)
	for i, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", s.title, s.intro)
		for _, e := range shownAs[i] {
			b.WriteString("\n" + e)
		}
	}
	got := b.String()
	if *update {
		if err := os.WriteFile(page, []byte(got), 0o644); err != nil { //nolint:gosec // a page of the documentation
			t.Fatal(err)
		}
		return
	}
	if got != string(old) {
		t.Errorf("docs/errors.md is out of date; go test ./internal/repo/errorcatalog -update\n%s", difference(string(old), got))
	}
}

// Titles are anchors of the page, so each occurs once.
func TestTitlesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sections() {
		for _, e := range s.entries {
			if seen[e.title] {
				t.Errorf("two entries have the title %q", e.title)
			}
			seen[e.title] = true
			if e.means == "" || e.fix == "" || (e.command == "") == (e.run == nil) {
				t.Errorf("%s: the entry is not complete", e.title)
			}
		}
	}
}

var built = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "errorcatalog"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-o", filepath.Join(dir, "dragoman"), "./cmd/dragoman")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return dir, fmt.Errorf("%w\n%s", err, out)
	}
	return dir, nil
})

// binary returns the folder of the command, which is built once.
func binary(t *testing.T) string {
	t.Helper()
	dir, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if dir, _ := built(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// produce returns the error's text, or false if this machine cannot produce it.
func (e *entry) produce(t *testing.T) (string, bool) {
	t.Helper()
	if e.run != nil {
		text := e.run(t)
		if text == cannotProduce {
			t.Log("not produced on this machine")
			return "", false
		}
		return normalize(text), true
	}
	dir := t.TempDir()
	for name, text := range e.files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if e.before != "" {
		if out, err := shell(t, dir, e.before, e.env).CombinedOutput(); err != nil {
			t.Logf("before: %v\n%s", err, out)
		}
	}
	cmd := shell(t, dir, e.command, e.env)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	_ = cmd.Run()
	if want := max(e.exit, 1); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
		t.Fatalf("%s: %v, want exit code %d\n%s", e.command, cmd.ProcessState, want, stderr.String())
	}
	return normalize(strings.ReplaceAll(stderr.String(), dir, "/home/me/project")), true
}

// cannotProduce is the result of an entry that needs more than this machine offers.
const cannotProduce = "\x00"

// shell returns a command without the settings of the user who runs the test.
func shell(t *testing.T, dir, line string, env []string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	cmd.Env = append([]string{
		"PATH=" + binary(t) + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + dir, "LANG=C.UTF-8", "NO_COLOR=1",
		"DRAGOMAN_SESSIONS=" + filepath.Join(dir, "sessions.db"),
	}, env...)
	return cmd
}

// continued is the note with which a run ends.
var continued = regexp.MustCompile(`^Session \S+\. Continue with`)

var variable = []struct {
	re *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`(127\.0\.0\.1|localhost):\d{4,5}\b`), "$1:8080"},
	{regexp.MustCompile(`/[^\s"':]*/(TestPageShows|TestTitles)[^\s"':/]*/\d+`), "/home/me/project"},
	{regexp.MustCompile(`([Ss])ession [a-z0-9]{8}\b`), "${1}ession k3v9x2pm"},
	{regexp.MustCompile(`[0-9a-f]{24}`), "3f940cf0a3cad5e89d467dc3"},
	{regexp.MustCompile(`--session [a-z0-9]{8}\b`), "--session k3v9x2pm"},
}

// normalize replaces what differs from run to run, and notes that come before the error.
func normalize(text string) string {
	for _, v := range variable {
		text = v.re.ReplaceAllString(text, v.to)
	}
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if strings.HasPrefix(line, "No model is configured") || continued.MatchString(line) {
			continue
		}
		lines = append(lines, line)
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

// markdown returns the entry as the page shows it.
func (e *entry) markdown(text string) string {
	from := e.from
	if e.command != "" {
		from = "`" + e.command + "`"
	}
	for _, v := range e.env {
		if name, value, _ := strings.Cut(v, "="); value != "" {
			from += fmt.Sprintf(", with `%s=%s`", name, strings.ReplaceAll(value, "\n", `\n`))
		}
	}
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	for name, text := range e.files { // at most one file
		language := strings.TrimPrefix(filepath.Ext(name), ".")
		if language == "jsonl" || language == "db" {
			continue
		}
		from += fmt.Sprintf(", with this `%s`:\n\n```%s\n%s```\n\nThe error", name, language, text)
	}
	return fmt.Sprintf("### %s\n\nProduced by %s:\n\n%stext\n%s\n%s\n\n%s %s\n", e.title, from, fence, text, fence, e.means, e.fix)
}

// shown returns the entry with this title as the page has it.
func shown(page, title string) string {
	_, rest, ok := strings.Cut(page, "### "+title+"\n")
	if !ok {
		return ""
	}
	if i := regexp.MustCompile(`(?m)^##+ `).FindStringIndex(rest); i != nil {
		rest = rest[:i[0]]
	}
	return "### " + title + "\n" + strings.TrimRight(rest, "\n") + "\n"
}

// difference returns the lines that only one of two pages has.
func difference(page, produced string) string {
	var b strings.Builder
	for _, d := range []struct{ mark, a, b string }{{"page:  ", page, produced}, {"now:   ", produced, page}} {
		other := map[string]bool{}
		for line := range strings.Lines(d.b) {
			other[line] = true
		}
		for line := range strings.Lines(d.a) {
			if !other[line] {
				b.WriteString(d.mark + line)
			}
		}
	}
	return b.String()
}

func TestDifferenceNamesTheChangedLines(t *testing.T) {
	if got, want := difference("a\nold\n", "a\nnew\n"), "page:  old\nnow:   new\n"; got != want {
		t.Errorf("%q", got)
	}
	if got := shown("## s\n\n### a\n\nx\n\n### b\n\ny\n", "a"); got != "### a\n\nx\n" {
		t.Errorf("%q", got)
	}
}

func TestNormalizeKeepsTheError(t *testing.T) {
	const text = "No model is configured: x\ndragoman: dial 127.0.0.1:40123: refused\n"
	if got, want := normalize(text), "dragoman: dial 127.0.0.1:8080: refused"; got != want {
		t.Errorf("%q", got)
	}
}
