//go:build unix

package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/tool"
)

// scripts returns the options for tests that need a misbehaving program.
func scripts() *Shell { return &Shell{AllowAny: true, Scripts: true} }

func TestT15_CommandRunsInTheWorkspace(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true}})
	p.file("sub/a.txt", "hello\n")
	p.link("sub", "near")
	p.link("../outside", "away")
	p.ok(toolname.Shell, args{"command": "cat sub/a.txt"}, "[exit code 0 after ", "without Landlock: the program does not call workspace.Main]", "hello\n")
	p.ok(toolname.Shell, args{"command": "cat sub/a.txt", "seconds": int64(1) << 62}, "hello\n")
	p.ok(toolname.Shell, args{"command": "cat a.txt", "folder": "sub"}, "hello")
	p.ok(toolname.Shell, args{"command": "cat a.txt", "folder": "near"}, "hello")
	p.ok(toolname.Shell, args{"command": "cat none"}, "exit code 1", "none")
	p.fails(toolname.Shell, args{"command": "cat canary", "folder": "away"}, "outside the workspace")
	p.fails(toolname.Shell, args{"command": "ls", "folder": ".."}, "outside the workspace")
	p.fails(toolname.Shell, args{"command": "ls", "folder": "sub/a.txt"}, "not a folder")
	p.fails(toolname.Shell, args{"command": "no-such-program"}, "no program is named")
	p.fails(toolname.Shell, args{"command": "cd sub"}, "as the argument folder")
	p.fails(toolname.Shell, args{"command": "ls | cat"}, "| is not allowed")
	p.file("sub/run.sh", "#!/bin/sh\necho from $0\n")
	p.ok(toolname.Shell, args{"command": "sh sub/run.sh"}, "from sub/run.sh")
	p.fails(toolname.Shell, args{"command": "./run.sh", "folder": "sub"}, "cannot be run")
	if err := os.Chmod(p.path("sub/run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.ok(toolname.Shell, args{"command": "./run.sh", "folder": "sub"}, "exit code 0", "from ")
	p.fails(toolname.Shell, args{"command": "../outside/x"}, "outside the workspace")
}

func TestT15_CommandNotAllowedIsNotRun(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{Allow: []string{"ls *"}, Scripts: true}})
	p.ok(toolname.Shell, args{"command": "ls ."}, "exit code 0")
	p.fails(toolname.Shell, args{"command": "touch x"}, "not allowed", "ls *")
	p.fails(toolname.Shell, args{"command": "ls . ; touch x"}, "not allowed")
	p.wantFiles(map[string]string{})
}

// Only the caller knows what an exit code means: it is reported, and is not a failure.
func TestT15_ExitCodeIsAResult(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true, Scripts: true}})
	p.ok(toolname.Shell, args{"command": "echo so; exit 7"}, "[exit code 7 after ", "so\n")
	p.fails(toolname.Shell, args{"command": "kill -9 $$"}, "signal")
	if d := p.Shell().Spec().Description; !strings.Contains(d, "a code other than 0 comes from the command, not from the tool") {
		t.Errorf("%s", d)
	}
}

// Allow is checked for every program of a script, not for the script as one text.
func TestT15_AllowCoversEveryProgramOfAScript(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{Allow: []string{"echo ...", "cat *", "tr a b", "exit *", "sort"}, Scripts: true}})
	p.ok(toolname.Shell, args{"command": "echo c a | tr a b && echo $((1+1)) 2>/dev/null"}, "c b\n2\n")
	p.ok(toolname.Shell, args{"command": "for i in y x; do echo $i; done | sort"}, "x\ny\n")
	p.ok(toolname.Shell, args{"command": "exit 7"}, "exit code 7") // a shell keyword
	for name, tc := range map[string]struct{ command, why string }{
		"list":           {"echo a; touch x", `"touch" is not on the list`},
		"substitution":   {"echo $(touch x)", `"touch" is not on the list`},
		"inner shell":    {"sh -c 'touch x'", `"sh" is not on the list`},
		"wrapper":        {"env touch x | sort", `"env" is not on the list`},
		"arguments":      {"echo a | tr a c", `"tr" may run only as: tr a b`},
		"unknown":        {"echo a; $x", "must be known before it runs"},
		"unknown words":  {"echo a; cat $x", `"cat" may run only as: cat *`},
		"variable":       {"PATH=. echo a | sort", "variables cannot be set"},
		"loop":           {"for PATH in .; do echo a; done", "in lower case"},
		"eval":           {"eval 'touch x'", `"eval" is not on the list`},
		"redirection":    {"echo a > x", `not to "x"`},
		"another shell":  {"[[ a || touch ]]", "is not on the list"},
		"no end":         {"echo 'a", "cannot be parsed"},
		"builtin":        {"cd /; echo a", `"cd" is not on the list`},
		"function":       {"echo() { touch x; }; echo", `"touch" is not on the list`},
		"shell as texts": {"sh -c \"$(echo touch x)\"", `"sh" is not on the list`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &fixture{p.Workspace, t, p.outer}
			p.fails(toolname.Shell, args{"command": tc.command}, "this command is not allowed", tc.why)
		})
	}
	p.wantFiles(map[string]string{})
}

func TestT15_ScriptsRunIfAllowed(t *testing.T) {
	p := newFixture(t, Options{Shell: scripts()})
	p.ok(toolname.Shell, args{"command": "echo a | tr a b && echo $((1+1))"}, "b\n2\n")
	p.ok(toolname.Shell, args{"command": "exit 7"}, "exit code 7")
}

func TestT14_CommandsDoNotInheritTheEnvironment(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "sk-not-for-you")
	t.Setenv("PASSED", "on")
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true, PassEnv: []string{"PASSED"}, Env: []string{"OWN=1"}}})
	t.Setenv("PATH", os.Getenv("PATH")+":.:"+p.path("bin"))
	got := p.ok(toolname.Shell, args{"command": "env"}, "PASSED=on", "OWN=1", "PATH=", "HOME=", "TMPDIR=")
	for line := range strings.Lines(got) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok || strings.HasPrefix(line, "[") {
			continue
		}
		switch name {
		case "PASSED", "OWN", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "PWD", commandMark:
		case "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0":
		case "HOME", "TMPDIR":
			if _, err := os.Stat(value); value == os.Getenv("HOME") || !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is %s, and was not removed: %v", name, value, err)
			}
		case "PATH":
			if strings.Contains(":"+value+":", ":.:") || strings.Contains(value, p.path("bin")) {
				t.Errorf("programs are looked for in the workspace: %s", value)
			}
		default:
			t.Errorf("%s came through", line)
		}
	}
}

func TestAttack_ProgramWithAFamiliarNameInTheWorkspace(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true}})
	p.file("bin/ls", "#!/bin/sh\necho gotcha\n")
	if err := os.Chmod(p.path("bin/ls"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", p.path("bin")+":.:"+os.Getenv("PATH"))
	if got := p.ok(toolname.Shell, args{"command": "ls", "folder": "bin"}); strings.Contains(got, "gotcha") {
		t.Error(got)
	}
}

func TestAttack_PathDirectoryCreatedInTheWorkspace(t *testing.T) {
	p := newFixture(t, Options{Shell: scripts()})
	p.file("evil", "#!/bin/sh\necho gotcha\n")
	t.Setenv("PATH", p.path("bin")+":"+os.Getenv("PATH"))
	if got := p.ok(toolname.Shell, args{"command": "mkdir bin && cp evil bin/ls && chmod +x bin/ls && ls"}); strings.Contains(got, "gotcha") {
		t.Error(got)
	}
}

// alive reports whether any process has a word in its command line.
func alive(t *testing.T, word string) bool {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), "ps", "-eo", "args").Output()
	if err == nil {
		return bytes.Contains(out, []byte(word))
	}
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(names) == 0 {
		t.Skip("there is no way to list processes here")
	}
	for _, name := range names {
		if data, err := os.ReadFile(name); err == nil && bytes.Contains(data, []byte(word)) {
			return true
		}
	}
	return false
}

// uniqueSleep returns an argument of sleep that no other process has.
func uniqueSleep() string { return fmt.Sprintf("%d.%d", 3600+os.Getpid(), time.Now().UnixNano()) }

// A directory that is a repository without being named .git is not write-protected, and its
// settings name programs that git runs.
func TestAttack_BareRepositoryInTheWorkspace(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	p := newFixture(t, Options{Shell: &Shell{Allow: []string{"git status ..."}}})
	for name, content := range map[string]string{
		"x/HEAD": "ref: refs/heads/main\n", "x/objects/a": "", "x/refs/a": "",
		"x/config": "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n\tfsmonitor = \"touch ran; false\"\n",
	} {
		p.ok(toolname.WriteFile, args{"path": name, "content": content, "parents": true})
	}
	got := p.ok(toolname.Shell, args{"command": "git status", "folder": "x"})
	for _, name := range []string{"ran", "x/ran"} {
		if _, err := os.Stat(p.path(name)); err == nil {
			t.Errorf("the repository's program ran: %s", got)
		}
	}
}

func TestAttack_ForkOutlivesItsParent(t *testing.T) {
	p := newFixture(t, Options{Shell: scripts()})
	for name, script := range map[string]string{
		"in the background":       "sleep %s & echo begun",
		"holding the output":      "(sleep %s) & (sleep %[1]s) & echo begun",
		"ignoring signals":        "trap '' HUP TERM INT; sh -c 'trap \"\" HUP TERM; sleep %s; true' & echo begun",
		"twice removed":           "sh -c 'sleep %s & sleep %[1]s & exit 0' & echo begun",
		"without its environment": "env -i sleep %s & echo begun",
		"without standard files":  "sleep %s <&- >&- 2>&- & echo begun",
	} {
		t.Run(name, func(t *testing.T) {
			nap := uniqueSleep()
			p := &fixture{p.Workspace, t, p.outer}
			began := time.Now()
			p.ok(toolname.Shell, args{"command": fmt.Sprintf(script, nap)}, "exit code 0", "begun")
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it was waited for, for %s", took)
			}
			if alive(t, nap) {
				t.Error("it lives on")
			}
		})
	}
}

func TestT15_TimeoutStopsACommandAndItsChildren(t *testing.T) {
	p := newFixture(t, Options{Shell: scripts()})
	nap := uniqueSleep()
	p.fails(toolname.Shell, args{"command": "echo begun; trap '' TERM; sleep " + nap + " & sleep " + nap + "; sleep " + nap, "seconds": 1}, "ended because its 1s were over", "begun")
	if alive(t, nap) {
		t.Error("it lives on")
	}
}

func TestT15_CancelStopsACommand(t *testing.T) {
	p := newFixture(t, Options{Shell: scripts()})
	nap := uniqueSleep()
	ctx, cancel := context.WithCancel(t.Context())
	pipe := p.path("pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = os.ReadFile(pipe) // the command has begun
		cancel()
	}()
	_, err := p.shell(ctx, shellInput{Command: "echo > pipe; sleep " + nap})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if alive(t, nap) {
		t.Error("it lives on")
	}
}

func TestAttack_HundredMegabytesOfOutput(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true, MaxOutput: 1000}})
	out, err := p.shell(t.Context(), shellInput{Command: "head -c 100000000 /dev/zero"})
	if err != nil {
		t.Fatal(err)
	}
	got := out.Content[0].(*dragoman.Text).Text
	if len(got) > 1200 || !strings.Contains(got, "[99999000 bytes not shown]") || !strings.Contains(got, "exit code 0") {
		t.Errorf("%d bytes: %.100q", len(got), got)
	}
}

func TestAttack_EndlessOutputStopsAtTheTimeout(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true, MaxOutput: 1000, Timeout: time.Second}})
	p.fails(toolname.Shell, args{"command": "yes"}, "were over", "bytes not shown")
}

func TestT12_OutputIsReportedWhileRunning(t *testing.T) {
	p := newFixture(t, Options{NoApproval: []string{toolname.Shell}, Shell: scripts()})
	if err := syscall.Mkfifo(p.path("go"), 0o644); err != nil {
		t.Fatal(err)
	}
	box, err := tool.NewBox(p.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var reported strings.Builder
	var once sync.Once
	r := &tool.Runner{Observe: func(e tool.Event) {
		pr, ok := e.(tool.Progress)
		if !ok {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		for _, part := range pr.Parts {
			reported.WriteString(part.(*dragoman.Text).Text)
		}
		if strings.Contains(reported.String(), "first") {
			// The command continues only after its first line was reported.
			once.Do(func() { go os.WriteFile(p.path("go"), []byte("x"), 0o644) })
		}
	}}
	b, err := r.Start("r").Do(t.Context(), box, tool.Turn{Calls: []*dragoman.ToolCall{{ID: "c", Name: toolname.Shell, Arguments: `{"command":"echo first; cat go; echo last","seconds":20}`}}})
	if err != nil || b.Results[0] == nil || !strings.Contains(b.Results[0].Text(), "first\nxlast") {
		t.Fatalf("%v, %+v", err, b)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := reported.String(); got != "first\nxlast\n" {
		t.Errorf("reported %q", got)
	}
}

func TestT15_CommandHasNoInput(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true, Timeout: 10 * time.Second}})
	p.ok(toolname.Shell, args{"command": "cat"}, "exit code 0")
}

func TestT15_RequireSandboxRefusesUnconfinedCommands(t *testing.T) {
	for _, s := range []*Sandbox{nil, {why: "this kernel has none"}} {
		p := newFixture(t, Options{Shell: &Shell{AllowAny: true, Sandbox: s, RequireSandbox: true}})
		p.fails(toolname.Shell, args{"command": "touch x"}, "must be confined, but cannot be")
		p.wantFiles(map[string]string{})
	}
	p := newFixture(t, Options{Shell: &Shell{AllowAny: true, Sandbox: &Sandbox{abi: 3}, RequireSandbox: true, DenyNetwork: true}})
	p.fails(toolname.Shell, args{"command": "touch x"}, "must not use the network")
	p = newFixture(t, Options{Shell: &Shell{AllowAny: true, Sandbox: &Sandbox{why: "this kernel has none"}}})
	p.ok(toolname.Shell, args{"command": "touch x"}, "; without Landlock: this kernel has none]")
}

func TestT15_NoFilesAreLeftOpen(t *testing.T) {
	count := func() int {
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("open files cannot be counted here")
		}
		return len(names)
	}
	p := newFixture(t, Options{Shell: scripts()})
	p.file("sub/a", "x\n")
	work := func(i int) {
		p.everyTool(t.Context(), "sub/"+strconv.Itoa(i))
		p.everyTool(t.Context(), "sub")
		_, _ = p.shell(t.Context(), shellInput{Command: "sleep 100 & true"})
	}
	work(0)
	before := count()
	for i := range 5 {
		work(i)
	}
	if after := count(); after > before+2 {
		t.Errorf("%d open files became %d", before, after)
	}
}

func TestAttack_AllowedProgramRunsAnotherThroughItsArguments(t *testing.T) {
	p := newFixture(t, Options{Shell: &Shell{Allow: []string{"git ...", "sort ...", "sed ..."}}})
	p.file("f", "b\na\n")
	for _, command := range []string{"git -c core.pager='touch made' -p log", "sed '1e touch made' f", "sort --compress-program=./x f"} {
		p.fails(toolname.Shell, args{"command": command}, "may run other programs through its arguments")
	}
	p.ok(toolname.Shell, args{"command": "sed -n 1p f"}, "b\n")
	p.wantFiles(map[string]string{"f": "b\na\n"})
}
