package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Sandbox runs commands under a supervisor, which stops everything that they leave behind, and
// under Landlock, which Linux kernels have since 5.13. [Main] returns it.
//
// A confined command, and all that it starts, can read, write and run files of the
// workspace, of its own folder for temporary files and of [Shell.WritePaths]; read
// and run those of /usr, /bin, /sbin, /lib*, /opt, the folders of PATH,
// [Shell.ReadPaths], and the files of /etc that programs need to start (users,
// host names, time zone, certificates, the linker's); and use /dev/null and its
// like. It cannot make device nodes or named pipes, and a workspace that holds a device
// node is refused, as is a folder of [Shell.WritePaths] that holds one: the first command
// searches them, up to two million files. A command run by root loses the capabilities to
// make nodes, to access devices and memory directly, to load kernel modules and to reboot
// (CAP_MKNOD, CAP_SYS_RAWIO, CAP_SYS_MODULE, CAP_SYS_BOOT), to set capabilities and flags of
// files, and to administer the system (CAP_SETFCAP, CAP_SYS_ADMIN, CAP_NET_ADMIN and the like),
// also without Landlock, and cannot gain them again (no_new_privs). Signals and abstract
// sockets reach only what it started itself (ABI 6).
//
// Not confined are the metadata of files outside: a command can read their size and times,
// and change their mode, owner, times and extended attributes if its user may. Run commands
// as a user who owns nothing else. Not confined either: sockets that are files (before ABI
// 9), the network unless [Shell.DenyNetwork] is set, and even then UDP before ABI 10 and
// Multipath TCP, memory and processor time. The write-protection of .git holds for the
// tools, not for commands: git needs to write there. Where signals are not confined, a
// command can end its supervisor, and then only those of its processes are ended that kept
// its group or its environment.
type Sandbox struct {
	// abi is the Landlock version of the kernel; 0 means that it does not support Landlock.
	abi int
	// why is the reason if abi is 0.
	why string
}

// The names under which this package starts its own program.
const (
	// supervisorName starts a command and stops all that it leaves behind.
	supervisorName = "dragoman-supervisor"
	// commandName confines itself and becomes the command.
	commandName = "dragoman-command"
)

// Main must be the first call of a program's main function if the program wants its commands
// confined. Commands are started by running the program itself once more, and that process must
// do nothing else.
//
//	sandbox, err := workspace.Main()
//	if err != nil {
//		fmt.Fprintln(os.Stderr, err)
//		os.Exit(126)
//	}
//
// In a normal process Main does nothing and returns at once. In a process that was started for
// a command it returns only an error, when its work is done or failed, and the program must
// exit.
func Main() (*Sandbox, error) {
	var err error
	switch {
	case len(os.Args) == 2 && os.Args[0] == supervisorName:
		err = supervise(os.Args[1])
	case len(os.Args) == 2 && os.Args[0] == commandName:
		err = becomeCommand(os.Args[1])
	default:
		abi, why := landlockABI()
		return &Sandbox{abi: abi, why: why}, nil
	}
	if !errors.Is(err, errSupervised) {
		reportStatus(statusFailed + err.Error())
	}
	return nil, fmt.Errorf("workspace: %w", err)
}

// errSupervised reports that a command has ended.
var errSupervised = errors.New("the command has ended")

// The files of a supervisor: it reports the outcome of the command on one, and the other is
// closed when the command must end.
const (
	statusFD  = 3
	controlFD = 4
)

// Reports begin with one of these.
const (
	statusFailed   = "failed: "
	statusExited   = "exited: "
	statusSignaled = "signaled: "
)

func reportStatus(status string) {
	if f := os.NewFile(statusFD, "status"); f != nil {
		_, _ = io.WriteString(f, status)
	}
}

// launch describes how a command is started, for the processes that start it.
type launch struct {
	Program string   `json:"program"`
	Argv    []string `json:"argv"`
	// ABI is the Landlock version to confine the command with; 0 means not confined.
	ABI int `json:"abi,omitempty"`
	// Read and Write are files and directories; missing ones are ignored.
	Read        []string `json:"read,omitempty"`
	Write       []string `json:"write,omitempty"`
	Devices     []string `json:"devices,omitempty"`
	DenyNetwork bool     `json:"deny_network,omitempty"`

	supervised bool
	// The ends of the pipes: ours, and the supervisor's.
	status, control   *os.File
	status2, control2 *os.File
	reported          chan string
}

// launch decides how a command is confined.
func (c *command) launch(ctx context.Context, program, private string) (*launch, error) {
	s := c.shell
	l := &launch{Program: program, Argv: c.argv, DenyNetwork: s.DenyNetwork}
	why := "the program does not call workspace.Main"
	if s.Sandbox != nil {
		why, l.ABI = s.Sandbox.why, s.Sandbox.abi
		l.supervised = ownProgram != ""
	}
	switch {
	case l.ABI == 0 && s.RequireSandbox:
		return nil, fmt.Errorf("commands must be confined, but cannot be: %s", why)
	case l.ABI == 0:
		c.confinement = "; without Landlock: " + why
		return l, nil
	case s.DenyNetwork && l.ABI < networkABI && s.RequireSandbox:
		return nil, errors.New("commands must not use the network, but this kernel cannot prevent it")
	}
	c.confinement = "; under Landlock"
	found, partial, err := c.w.devices(ctx)
	switch {
	case err != nil:
		return nil, err
	case found != "":
		return nil, fmt.Errorf("commands cannot be confined: %s is a device node; remove it, or work in another folder", found)
	case partial != "" && s.RequireSandbox:
		return nil, fmt.Errorf("commands must be confined, but the workspace could not be checked for device nodes: %s; work in another folder", partial)
	case partial != "":
		c.confinement += ", not checked for device nodes: " + partial
	}
	switch {
	case s.DenyNetwork && l.ABI < networkABI:
		c.confinement += ", with the network: this kernel cannot deny it"
	case s.DenyNetwork:
		c.confinement += ", without TCP"
	}
	l.Read = append(append([]string{program}, c.searchPath()...), s.ReadPaths...)
	l.Read = append(l.Read, systemPaths()...)
	l.Write = append([]string{c.w.real, private}, s.WritePaths...)
	l.Devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
	return l, nil
}

// networkABI is the first version of Landlock that can deny TCP.
const networkABI = 4

// systemPaths returns the paths that most programs need.
func systemPaths() []string {
	paths := []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt"}
	for name := range strings.FieldsSeq("alternatives bash.bashrc ca-certificates debian_version gai.conf gitconfig group host.conf hosts " +
		"inputrc ld.so.cache ld.so.conf ld.so.conf.d ld.so.preload locale.alias localtime magic mime.types nsswitch.conf " +
		"os-release passwd pki profile protocols resolv.conf services shells ssl terminfo timezone") {
		paths = append(paths, "/etc/"+name)
	}
	return paths
}

// command returns the process to start. kill stops a command that has no supervisor.
func (l *launch) command(ctx context.Context, kill func() error) (*exec.Cmd, error) {
	if !l.supervised {
		cmd := exec.CommandContext(ctx, l.Program)
		cmd.Args, cmd.Cancel = l.Argv, kill
		return cmd, nil
	}
	plan, err := json.Marshal(l)
	if err != nil {
		return nil, err
	}
	if l.status, l.status2, err = os.Pipe(); err != nil {
		return nil, err
	}
	if l.control2, l.control, err = os.Pipe(); err != nil {
		closeQuietly(l.status)
		closeQuietly(l.status2)
		return nil, err
	}
	cmd := exec.CommandContext(ctx, ownProgram)
	cmd.Args = []string{supervisorName, string(plan)}
	cmd.ExtraFiles = []*os.File{l.status2, l.control2}
	cmd.Cancel, cmd.WaitDelay = l.control.Close, killedWithin
	return cmd, nil
}

// started closes the files that only the supervisor needs, and reads its reports. end stops a
// process that fails to become a command.
func (l *launch) started(end func()) {
	if !l.supervised {
		return
	}
	closeQuietly(l.status2)
	closeQuietly(l.control2)
	l.reported = make(chan string, 1)
	go func() {
		defer closeQuietly(l.status)
		const most = 4096
		buf := make([]byte, 0, most)
		for len(buf) < most {
			n, err := l.status.Read(buf[len(buf):most])
			buf = buf[:len(buf)+n]
			if bytes.HasPrefix(buf, []byte(statusFailed)) {
				end()
			}
			if err != nil {
				break
			}
		}
		l.reported <- string(buf)
	}()
}

// outcome returns the report of the supervisor, after its end.
func (l *launch) outcome() string {
	if !l.supervised {
		return ""
	}
	closeQuietly(l.control)
	return <-l.reported
}
