package workspace

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
)

// confined is a shell under Landlock.
func confined(t *testing.T) *Shell {
	t.Helper()
	s, err := Main()
	if err != nil {
		t.Fatal(err)
	}
	if s.abi == 0 {
		t.Skip("Landlock cannot be tested:", s.why)
	}
	return &Shell{AllowAny: true, Scripts: true, Sandbox: s, RequireSandbox: true}
}

func TestT15_ConfinedCommandWorksInTheWorkspace(t *testing.T) {
	p := newFixture(t, Options{Shell: confined(t)})
	p.file("a", "inside\n")
	p.ok(toolname.Shell, args{"command": "cat a"}, "exit code 0", "; under Landlock]", "inside")
	p.ok(toolname.Shell, args{"command": "mkdir d e && echo x > d/f && mv d/f e/g && rm -r d && echo t > $TMPDIR/t && cat e/g $TMPDIR/t 2>/dev/null"}, "exit code 0", "x\nt\n")
	p.wantFiles(map[string]string{"a": "inside\n", "e/g": "x\n"})
	p.file("run", "#!/bin/sh\necho ran\n")
	if err := os.Chmod(p.path("run"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.ok(toolname.Shell, args{"command": "./run"}, "ran")
	p.ok(toolname.Shell, args{"command": "exit 3"}, "exit code 3")
	p.fails(toolname.Shell, args{"command": "sleep 100", "seconds": 1}, "were over")
	p.fails(toolname.Shell, args{"command": "./a"}, "cannot be run")
}

func TestAttack_ConfinedCommandCannotReachOutside(t *testing.T) {
	p := newFixture(t, Options{Shell: confined(t)})
	p.link("../outside/canary", "relative")
	p.link(filepath.Join(p.outer, "outside"), "absolute")
	for name, script := range map[string]string{
		"read":                 "cat ../outside/canary",
		"read by an own child": "sh -c 'sh -c \"cat ../outside/canary\"'",
		"read by a link":       "cat relative; cat absolute/canary",
		"own link":             "ln -s ../outside/canary mine; cat mine",
		"hard link":            "ln ../outside/canary hard; cat hard",
		"list":                 "ls ../outside",
		"write":                "echo x > ../outside/canary; echo x >> ../outside/canary",
		"truncate":             ": > ../outside/canary",
		"create":               "echo x > ../outside/new; mkdir ../outside/dir",
		"remove":               "rm -f ../outside/canary; rmdir ../outside",
		"move out":             "echo x > f; mv f ../outside/f",
		"move in":              "mv ../outside/canary .",
		"the parent's files":   "cat /proc/$PPID/environ; cat /proc/$PPID/cwd/../outside/canary",
		"copy of the program":  "cp /bin/cat c; ./c ../outside/canary",
	} {
		t.Run(name, func(t *testing.T) {
			p := &fixture{p.Workspace, t, p.outer}
			got, _ := p.call(toolname.Shell, args{"command": script})
			if strings.Contains(got, canaryContent) || strings.Contains(got, "canary\n") || !strings.Contains(got, "ermission denied") && !strings.Contains(got, "cross-device") {
				t.Error(got)
			}
			p.wantOutsideUntouched()
		})
	}
	home, err := os.UserHomeDir()
	if err == nil {
		p.has(p.ok(toolname.Shell, args{"command": "ls " + home}), []string{"ermission denied"})
	}
}

func TestT15_ReadPathsAndWritePaths(t *testing.T) {
	s := confined(t)
	outer := t.TempDir()
	for _, name := range []string{"read", "write"} {
		if err := os.Mkdir(filepath.Join(outer, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(outer, name, "f"), []byte(name+" me"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s.ReadPaths, s.WritePaths = []string{filepath.Join(outer, "read")}, []string{filepath.Join(outer, "write"), filepath.Join(outer, "missing")}
	p := newFixture(t, Options{Shell: s})
	p.ok(toolname.Shell, args{"command": fmt.Sprintf("cat %[1]s/read/f && cat %[1]s/write/f && echo x > %[1]s/write/f", outer)}, "exit code 0", "read me", "write me")
	p.ok(toolname.Shell, args{"command": fmt.Sprintf("echo x > %s/read/f", outer)}, "ermission denied")
}

func TestT15_NetworkIsDeniedIfTheKernelCan(t *testing.T) {
	s := confined(t)
	if s.Sandbox.abi < networkABI {
		t.Skip("this kernel's Landlock cannot deny the network: ABI", s.Sandbox.abi)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("no network to test with:", err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if _, err := os.Stat("/bin/bash"); err != nil {
		t.Skip("no bash to open a connection with")
	}
	command := fmt.Sprintf("bash -c 'exec 3<>/dev/tcp/127.0.0.1/%s && echo connected'", port)
	open := newFixture(t, Options{Shell: s})
	open.ok(toolname.Shell, args{"command": command}, "under Landlock]", "connected")
	deny := *s
	deny.DenyNetwork = true
	closed := newFixture(t, Options{Shell: &deny})
	if got := closed.ok(toolname.Shell, args{"command": command}, "under Landlock, without TCP]", "ermission denied"); strings.Contains(got, "connected") {
		t.Error(got)
	}
}

func TestAttack_ProcessesThatLeaveTheirGroup(t *testing.T) {
	supervised := scripts()
	supervised.Sandbox = &Sandbox{why: "for a test"}
	for name, s := range map[string]*Shell{"confined": confined(t), "not confined": supervised, "not supervised": scripts()} {
		t.Run(name, func(t *testing.T) {
			p := newFixture(t, Options{Shell: s})
			nap := uniqueSleep()
			p.ok(toolname.Shell, args{"command": "setsid sleep " + nap + " & setsid sh -c 'sleep " + nap + "; true' >/dev/null 2>&1 & echo begun"}, "begun")
			if alive(t, nap) {
				t.Error("it lives on")
			}
			if s.Sandbox == nil {
				return // killMarked would not find it
			}
			nap = uniqueSleep()
			p.ok(toolname.Shell, args{"command": "env -i setsid sh -c 'sleep " + nap + " & sleep " + nap + "; true' & env -i setsid sleep " + nap + " & echo begun"}, "begun")
			p.fails(toolname.Shell, args{"command": "env -i setsid sleep " + nap + " & sleep " + nap, "seconds": 1}, "were over")
			if alive(t, nap) {
				t.Error("without its environment it lives on")
			}
		})
	}
}

func TestAttack_CommandEndsItsSupervisor(t *testing.T) {
	s := confined(t)
	const signalABI = 6
	if s.Sandbox.abi < signalABI {
		t.Skip("this kernel's Landlock does not stop signals: ABI", s.Sandbox.abi)
	}
	p := newFixture(t, Options{Shell: s})
	p.ok(toolname.Shell, args{"command": "kill -9 $PPID; echo still here"}, "exit code 0", "still here")
}

func TestAttack_CommandEndsItsSupervisorWithoutLandlock(t *testing.T) {
	s := scripts()
	s.Sandbox = &Sandbox{why: "for a test"}
	p := newFixture(t, Options{Shell: s})
	nap := uniqueSleep()
	p.fails(toolname.Shell, args{"command": "setsid sleep " + nap + " & kill -9 $PPID; sleep " + nap}, "ended by signal: killed")
	if alive(t, nap) {
		t.Error("it lives on")
	}
}

func TestT15_SupervisorReportsTheOutcome(t *testing.T) {
	s := scripts()
	s.Sandbox = &Sandbox{why: "for a test"}
	p := newFixture(t, Options{Shell: s})
	p.ok(toolname.Shell, args{"command": "echo out; echo err >&2; exit 9"}, "exit code 9", "without Landlock: for a test]", "out\nerr\n")
	p.fails(toolname.Shell, args{"command": "kill -SEGV $$"}, "ended by signal: segmentation fault")
	p.file("data", "no program")
	if err := os.Chmod(p.path("data"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.fails(toolname.Shell, args{"command": "./data"}, "cannot be run: exec format error")
}

// A child that cannot become its command reports it and is stopped.
func TestT15_UnconfinedCommandDoesNotRun(t *testing.T) {
	s := confined(t)
	s.Sandbox = &Sandbox{abi: 1000}
	p := newFixture(t, Options{Shell: s})
	got, ok := p.call(toolname.Shell, args{"command": "touch x"})
	if s, err := Main(); err != nil || s.abi < 11 {
		if ok || !strings.Contains(got, "cannot be confined") {
			t.Errorf("asked for more than the kernel has: %s", got)
		}
		p.wantFiles(map[string]string{})
	}
}
