package workspace

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"golang.org/x/sys/unix"
)

// nodes are commands that create device nodes, with the numbers of the null device and of a
// block device that is reserved for experiments.
var nodes = map[string]string{
	"a character device": "mknod n c 1 3",
	"a block device":     "mknod n b 240 0",
	"a named pipe":       "mkfifo n",
	"in its own folder":  "mknod $TMPDIR/n c 1 3",
	"by a child":         "sh -c 'sh -c \"mknod n c 1 3\"'",
	"with a namespace":   "unshare --user --map-root-user mknod n c 1 3",
}

func TestAttack_CommandMakesDeviceNodes(t *testing.T) {
	unconfined := scripts()
	unconfined.Sandbox = &Sandbox{why: "for a test"}
	for name, s := range map[string]*Shell{"under Landlock": confined(t), "without Landlock": unconfined} {
		for what, command := range nodes {
			t.Run(name+", "+what, func(t *testing.T) {
				if s == unconfined && what == "a named pipe" {
					t.Skip("only Landlock keeps a command from making pipes")
				}
				p := newFixture(t, Options{Shell: s})
				got, _ := p.call(toolname.Shell, args{"command": command + "; ls -l; ls -l $TMPDIR"})
				if !strings.Contains(got, "ermission denied") && !strings.Contains(got, "not permitted") && !strings.Contains(got, "failed") {
					t.Error(got)
				}
				if _, err := os.Lstat(p.path("n")); err == nil {
					t.Errorf("it is there:\n%s", got)
				}
				for line := range strings.Lines(got) {
					if strings.HasPrefix(line, "c") && strings.Contains(line, "1, ") || strings.HasPrefix(line, "b") && strings.Contains(line, "240, ") {
						t.Errorf("it was there: %s", line)
					}
				}
			})
		}
	}
}

// Landlock does not confine extended attributes: root could give a program outside the
// workspace a capability.
func TestAttack_CommandSetsFileCapabilities(t *testing.T) {
	if _, err := exec.LookPath("setcap"); err != nil || os.Geteuid() != 0 {
		t.Skip("only root can set capabilities, with setcap")
	}
	outside := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(outside, []byte("#!/bin/sh\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	p := newFixture(t, Options{Shell: confined(t)})
	got, _ := p.call(toolname.Shell, args{"command": "setcap cap_mknod+ep " + outside})
	if n, err := unix.Getxattr(outside, "security.capability", nil); err == nil {
		t.Errorf("%d bytes of capabilities:\n%s", n, got)
	}
}

func TestT15_CommandsLackCapabilitiesThatLeadToDevices(t *testing.T) {
	s := scripts()
	s.Sandbox = &Sandbox{why: "for a test"} // under Landlock a command cannot read /proc
	p := newFixture(t, Options{Shell: s})
	got := p.ok(toolname.Shell, args{"command": "cat /proc/self/status"}, "exit code 0")
	var sets int
	for line := range strings.Lines(got) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if !strings.HasPrefix(name, "Cap") {
			continue
		}
		bits := uint64(0)
		for _, c := range value {
			bits = bits<<4 | uint64(strings.IndexRune("0123456789abcdef", c))
		}
		sets++
		if name == "CapBnd" && os.Geteuid() != 0 {
			continue // a user cannot change it, and no_new_privs is not needed
		}
		for _, c := range []uint{unix.CAP_MKNOD, unix.CAP_SYS_RAWIO, unix.CAP_SYS_MODULE, unix.CAP_SYS_BOOT, unix.CAP_SETFCAP, unix.CAP_SYS_ADMIN, unix.CAP_SYS_NICE, unix.CAP_NET_ADMIN, unix.CAP_SYS_TIME} {
			if bits&(1<<c) != 0 {
				t.Errorf("%s has capability %d", name, c)
			}
		}
	}
	if sets != 5 {
		t.Errorf("%d sets:\n%s", sets, got)
	}
	if os.Geteuid() == 0 && !strings.Contains(got, "NoNewPrivs:\t1") {
		t.Errorf("a command of root may gain privileges:\n%s", got)
	}
}

func TestT15_WorkspaceWithADeviceNodeIsRefused(t *testing.T) {
	s := confined(t)
	p := newFixture(t, Options{Shell: s})
	p.file("deep/er/a", "x")
	node := p.path("deep/er/null")
	if err := unix.Mknod(node, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		t.Skip("no device node can be made:", err)
	}
	p.fails(toolname.Shell, args{"command": "touch made"}, `"deep/er/null" in the workspace is a device node; remove it`)
	if _, err := os.Lstat(p.path("made")); err == nil {
		t.Error("the command ran")
	}
	if err := os.Remove(node); err != nil {
		t.Fatal(err)
	}
	p.ok(toolname.Shell, args{"command": "touch made"}, "under Landlock]")
}

func TestT15_DeviceNodeInAWritablePathIsRefused(t *testing.T) {
	s := *confined(t)
	outer := t.TempDir()
	if err := os.Mkdir(filepath.Join(outer, "deep"), 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(outer, link); err != nil {
		t.Fatal(err)
	}
	node := filepath.Join(outer, "deep", "null")
	if err := unix.Mknod(node, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		t.Skip("no device node can be made:", err)
	}
	for _, path := range []string{outer, link} {
		s.WritePaths = []string{path}
		newFixture(t, Options{Shell: &s}).fails(toolname.Shell, args{"command": "touch made"}, "in Shell.WritePaths is a device node; remove it")
	}
	s.WritePaths = []string{node} // the device itself is listed
	newFixture(t, Options{Shell: &s}).ok(toolname.Shell, args{"command": "touch made"}, "under Landlock]")
}

func TestT15_IncompleteDeviceCheckIsReported(t *testing.T) {
	s := confined(t)
	p := newFixture(t, Options{Shell: s})
	p.file("a", "x")
	p.file("b", "x")
	p.maxDeviceWalk = 2
	p.fails(toolname.Shell, args{"command": "ls"}, "could not be checked for device nodes: it has more than 2 files")
	open := *s
	open.RequireSandbox = false
	q := newFixture(t, Options{Shell: &open})
	q.file("a", "x")
	q.file("b", "x")
	q.maxDeviceWalk = 2
	q.ok(toolname.Shell, args{"command": "ls"}, "under Landlock, not checked for device nodes: it has more than 2 files]")
}

// Runs the same tests as an ordinary user if the tests run as root.
func TestT15_SandboxWorksForAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("these tests run as a user")
	}
	const nobody = 65534
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && len(d) > 1; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "workspace.test")
	copyProgram(t, program)
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(work, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run", "^(TestAttack_CommandMakesDeviceNodes|TestT15_CommandsLackCapabilities.*|TestT15_ConfinedCommandWorks.*)$", "-test.v")
	cmd.Dir, cmd.Env = work, append(os.Environ(), "TMPDIR="+work, "HOME="+work)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: TestT15_ConfinedCommandWorksInTheWorkspace") && !strings.Contains(string(out), "Landlock cannot be tested") {
		t.Errorf("%v\n%s", err, out)
	}
}

// copyProgram copies the test binary to a place where every user can run it.
func copyProgram(t *testing.T, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	from, err := os.Open(self)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = from.Close() }()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(f, from); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
