package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Sandbox runs commands under Landlock, which Linux kernels have since 5.13. Get
// one by [Main].
//
// A confined command, and all that it starts, can read, write and run files of the
// workspace, of its own folder for temporary files and of [Shell.WritePaths]; read
// and run those of /usr, /bin, /sbin, /lib*, /opt, the folders of PATH,
// [Shell.ReadPaths], and the files of /etc that programs need to start (users,
// host names, time zone, certificates, the linker's); and use /dev/null and its
// like. Signals and abstract sockets reach only what it started itself (ABI 6).
//
// Not confined: what a name outside looks like (its size, its times), sockets that
// are files (before ABI 9), the network unless [Shell.DenyNetwork] is set, and even
// then UDP before ABI 10 and Multipath TCP, memory and processor time. The
// write-protection of .git holds for the tools, not for commands: git needs to
// write there.
type Sandbox struct {
	// abi is the kernel's version of Landlock; 0: it has none.
	abi int
	// why says why there is none.
	why string
}

// childName is what a process is called whose work is to confine itself and
// become a command.
const childName = "dragoman-confined-command"

// Main must be the first thing that a program's main does, if the program wants
// its commands confined: they are started by starting the program itself once
// more, and that one must do nothing else.
//
//	sandbox, err := workspace.Main()
//	if err != nil {
//		fmt.Fprintln(os.Stderr, err)
//		os.Exit(126)
//	}
//
// In a program that was started by a person it does nothing and returns at once.
// In one that was started to become a command it does not return, unless with an
// error.
func Main() (*Sandbox, error) {
	if len(os.Args) != 2 || os.Args[0] != childName {
		abi, why := landlockABI()
		return &Sandbox{abi: abi, why: why}, nil
	}
	err := becomeCommand(os.Args[1])
	// The parent ends this process when it reads that, whatever the caller does.
	if status := os.NewFile(statusFD, "status"); status != nil {
		_, _ = io.WriteString(status, err.Error())
	}
	return nil, fmt.Errorf("workspace: %w", err)
}

// statusFD is the file by which a child tells why it could not become a command.
const statusFD = 3

// launch is how a command is started, and what a child is told.
type launch struct {
	Program string   `json:"program"`
	Argv    []string `json:"argv"`
	// Read and Write are files and folders; those that are missing do not matter.
	Read        []string `json:"read"`
	Write       []string `json:"write"`
	Devices     []string `json:"devices"`
	ABI         int      `json:"abi"`
	DenyNetwork bool     `json:"deny_network"`

	confined     bool
	status, told *os.File
}

// launch decides how a command is confined.
func (c *command) launch(program, private string) (*launch, error) {
	s := c.shell
	l := &launch{Program: program, Argv: c.argv, DenyNetwork: s.DenyNetwork}
	why := "the program does not call workspace.Main"
	if s.Sandbox != nil {
		why, l.ABI = s.Sandbox.why, s.Sandbox.abi
	}
	switch {
	case l.ABI == 0 && s.RequireSandbox:
		return nil, fmt.Errorf("commands must be confined, and cannot be: %s", why)
	case l.ABI == 0:
		c.confinement = "; without Landlock: " + why
		return l, nil
	case s.DenyNetwork && l.ABI < networkABI && s.RequireSandbox:
		return nil, errors.New("commands must not use the network, and this kernel cannot keep them from it")
	}
	c.confinement = "; under Landlock"
	switch {
	case s.DenyNetwork && l.ABI < networkABI:
		c.confinement += ", with the network: this kernel cannot deny it"
	case s.DenyNetwork:
		c.confinement += ", without TCP"
	}
	l.confined = true
	l.Read = append(append([]string{program}, c.searchPath()...), s.ReadPaths...)
	l.Read = append(l.Read, systemPaths()...)
	l.Write = append([]string{c.w.real, private}, s.WritePaths...)
	l.Devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
	return l, nil
}

// networkABI is the first version of Landlock that can deny TCP.
const networkABI = 4

// systemPaths are what most programs need to run.
func systemPaths() []string {
	paths := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"}
	for name := range strings.FieldsSeq("alternatives bash.bashrc ca-certificates debian_version gai.conf gitconfig group host.conf hosts " +
		"inputrc ld.so.cache ld.so.conf ld.so.conf.d ld.so.preload locale.alias localtime magic mime.types nsswitch.conf " +
		"os-release passwd pki profile protocols resolv.conf services shells ssl terminfo timezone") {
		paths = append(paths, "/etc/"+name)
	}
	return paths
}

// command is the process to start.
func (l *launch) command(ctx context.Context) *exec.Cmd {
	if !l.confined {
		cmd := exec.CommandContext(ctx, l.Program)
		cmd.Args = l.Argv
		return cmd
	}
	plan, _ := json.Marshal(l) // strings, numbers and booleans
	cmd := exec.CommandContext(ctx, ownProgram)
	cmd.Args = []string{childName, string(plan)}
	return cmd
}

// watch lets a child tell why it cannot become the command, and ends it then. What
// it told is known after the command's end.
func (l *launch) watch(cmd *exec.Cmd, cancel context.CancelFunc) (func() string, error) {
	if !l.confined {
		return func() string { return "" }, nil
	}
	var err error
	if l.status, l.told, err = os.Pipe(); err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{l.told}
	told := make(chan string, 1)
	go func() {
		defer shut(l.status)
		const most = 4096
		data, _ := io.ReadAll(io.LimitReader(l.status, most))
		if len(data) > 0 {
			cancel()
		}
		told <- string(data)
	}()
	return func() string { return <-told }, nil
}

// started closes what only the child needs.
func (l *launch) started() {
	if l.told != nil {
		shut(l.told)
	}
}
