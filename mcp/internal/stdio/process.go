package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/mcp/internal/rpc"
)

// Dialer starts a program for each connection.
type Dialer struct {
	// Command and Args start the program. Env is added to a minimal environment: PATH, HOME
	// and the like. Dir is the working folder; empty means the current one.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string
	// MaxMessage limits a message in bytes; 0 means 16 MiB.
	MaxMessage int
	// Grace is the time that the program has to end after its input is closed, and again
	// after a signal, before it is killed; 0 means 3 seconds.
	Grace time.Duration
	// Log gets warnings about the program; nil logs nothing.
	Log *slog.Logger
}

// Dial implements [rpc.Dialer]. The program lives until the connection is closed; ctx limits
// only the start. The connection is a *[Conn].
func (d *Dialer) Dial(ctx context.Context, h rpc.Handler) (rpc.Conn, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p, in, out, err := d.start()
	if err != nil {
		return nil, err
	}
	return newConn(in, out, h, p, d.MaxMessage, d.Grace, d.Log), nil
}

// process is a running program.
type process struct {
	name   string
	cmd    *exec.Cmd
	group  *group
	stderr ring
	errors *os.File // our end of standard error

	exited     chan struct{}
	stderrDone chan struct{}
}

func (d *Dialer) start() (p *process, in io.ReadCloser, out io.WriteCloser, err error) {
	if d.Command == "" {
		return nil, nil, nil, errors.New("no command: set the program that is the server")
	}
	command := d.Command
	if d.Dir != "" && !filepath.IsAbs(command) && filepath.Base(command) != command {
		command = filepath.Join(d.Dir, command)
	}
	environment, err := environment(d.Env)
	if err != nil {
		return nil, nil, nil, err
	}
	cmd := exec.Command(command, d.Args...) //nolint:noctx // it outlives the context of Dial
	cmd.Dir, cmd.Env = d.Dir, environment
	setGroup(cmd)
	// Pipes of our own: those of exec make Wait wait for grandchildren.
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err != nil {
			return nil, nil
		}
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w
	}
	stdinR, stdinW := pipe()
	stdoutR, stdoutW := pipe()
	stderrR, stderrW := pipe()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("start %q: %w", d.Command, err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdinR, stdoutW, stderrW
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return nil, nil, nil, fmt.Errorf("start %q: the program is not installed or not in PATH: install it, or set its full path: %w", d.Command, err)
		}
		return nil, nil, nil, fmt.Errorf("start %q: %w", d.Command, err)
	}
	files = []*os.File{stdinR, stdoutW, stderrW} // the ends of the program
	p = &process{
		name: d.Command, cmd: cmd, group: newGroup(cmd), errors: stderrR,
		exited: make(chan struct{}), stderrDone: make(chan struct{}),
	}
	go func() {
		defer close(p.stderrDone)
		_, _ = io.Copy(&p.stderr, stderrR) // it ends with the program
	}()
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // the state is in cmd.ProcessState
	}()
	return p, stdoutR, stdinW, nil
}

func (p *process) release() {
	wait(p.stderrDone, settle)
	_ = p.errors.Close()
	p.group.close()
}

// explain returns the reason of an end with what the process left behind.
func (p *process) explain(reason error) error {
	e := &ExitError{Command: p.name, Reason: reason}
	select {
	case <-p.exited:
		e.State = p.cmd.ProcessState.String()
		wait(p.stderrDone, settle/4) // grandchildren may keep it open
	default:
	}
	e.Stderr = lastLines(p.stderr.String())
	return e
}

// ExitError reports that a server ended, or closed its output, before it was asked to. It wraps
// [rpc.ErrLost].
type ExitError struct {
	Command string
	// State says how the process ended, such as "exit status 1"; empty if it still runs.
	State string
	// Stderr has the last lines that it wrote to standard error, as visible characters.
	Stderr string
	// Reason is the event that ended the connection.
	Reason error
}

func (e *ExitError) Error() string {
	text := e.Reason.Error()
	if e.State != "" {
		text = fmt.Sprintf("%v: the server %q ended (%s)", rpc.ErrLost, e.Command, e.State)
	}
	if e.Stderr == "" {
		return text + " and wrote nothing to standard error"
	}
	return text + "; its last lines on standard error:\n" + e.Stderr
}

func (e *ExitError) Unwrap() error { return e.Reason }

// Bounds of the lines in an error.
const (
	errorLines = 8
	errorBytes = 300 // of each line
)

// lastLines returns the last lines of a text that are not empty.
func lastLines(text string) string {
	var kept []string
	for _, line := range slices.Backward(strings.Split(text, "\n")) {
		line = strings.TrimRight(line, " \t\r")
		if line == "" {
			continue
		}
		if len(line) > errorBytes {
			line = line[:errorBytes] + "…"
		}
		if kept = append(kept, "\t"+textkit.Visible(strings.ToValidUTF8(line, "\ufffd"))); len(kept) == errorLines {
			break
		}
	}
	slices.Reverse(kept)
	return strings.Join(kept, "\n")
}

// inherited are the variables that a program gets from our environment. None of them has a
// secret.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LC_ALL", "LC_CTYPE", "TZ",
	"TMPDIR", "TMP", "TEMP", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	// Windows.
	"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "APPDATA", "LOCALAPPDATA", "ProgramData", "ProgramFiles",
	"HOMEDRIVE", "HOMEPATH", "USERNAME", "USERPROFILE", "PROCESSOR_ARCHITECTURE", "NUMBER_OF_PROCESSORS",
}

// environment returns the environment of a program: what every program needs, and add.
func environment(add map[string]string) ([]string, error) {
	var all []string
	for _, name := range inherited {
		// Some shells export functions as values that begin with ().
		if v, ok := os.LookupEnv(name); ok && !strings.HasPrefix(v, "()") {
			all = append(all, name+"="+v)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(add)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(add[name], "\x00") {
			return nil, fmt.Errorf("environment variable %q: a name has no = and no zero byte, and its value no zero byte", name)
		}
		all = append(all, name+"="+add[name])
	}
	return all, nil
}
