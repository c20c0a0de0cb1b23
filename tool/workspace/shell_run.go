package workspace

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-go/dragoman/tool"
)

// commandMark is the variable that identifies the processes of a command.
const commandMark = "DRAGOMAN_COMMAND"

// command is one running command.
type command struct {
	w       *Workspace
	shell   *Shell
	argv    []string
	folder  string
	timeout time.Duration
	id      string

	// ending describes how it ended, confinement how it was confined; ended reports that it was
	// stopped.
	ending, confinement string
	ended               bool
}

func (c *command) run(ctx context.Context) (tool.Output, error) {
	program, err := c.program(c.argv[0])
	if err != nil {
		return tool.Output{}, err
	}
	dir, closeDir, err := c.w.workFolder(c.folder)
	if err != nil {
		return tool.Output{}, err
	}
	defer closeDir()
	private, err := os.MkdirTemp("", "dragoman-command-")
	if err != nil {
		return tool.Output{}, errors.New("there is no space for a temporary folder")
	}
	defer func() { _ = os.RemoveAll(private) }() // the system clears what is left
	c.id = rand.Text()
	l, err := c.launch(ctx, program, private)
	if err != nil {
		return tool.Output{}, err
	}
	timed, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return c.start(ctx, timed, cancel, l, dir, c.environment(private))
}

var errNoRoom = errors.New("the limit of processes is reached")

// start starts the command, waits for its end and stops all processes that it started.
func (c *command) start(outer, ctx context.Context, cancel context.CancelFunc, l *launch, dir string, env []string) (tool.Output, error) {
	output, write, err := os.Pipe()
	if err != nil {
		return tool.Output{}, errNoRoom
	}
	defer closeQuietly(output)
	p := &process{}
	p.cmd, err = l.command(ctx, p.kill)
	if err != nil {
		closeQuietly(write)
		return tool.Output{}, errNoRoom
	}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdout, p.cmd.Stderr = dir, env, write, write
	ownGroup(p.cmd)
	began := time.Now()
	err = p.cmd.Start()
	closeQuietly(write)
	l.started(cancel)
	if err != nil {
		l.outcome()
		return tool.Output{}, fmt.Errorf("%s cannot be run: %w", quoteShort(c.argv[0]), cause(err))
	}
	out := &boundedOutput{most: c.shell.MaxOutput, report: func(text string) { report(outer, text) }}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(out, output) // it ends with the last writer, or with its time
	}()
	err = p.wait(c.id)
	c.drain(output, drained)
	out.end()
	took := time.Since(began)
	outcome := l.outcome()
	if msg, failed := strings.CutPrefix(outcome, statusFailed); failed {
		return tool.Output{}, fmt.Errorf("%s cannot be run: %s", quoteShort(c.argv[0]), plain(msg))
	}
	if outer.Err() != nil {
		return tool.Output{}, context.Cause(outer)
	}
	c.describeEnding(ctx, l, p.cmd.ProcessState, outcome, err)
	return c.result(out, took), nil
}

// drain waits for the rest of the output. A process that still has the pipe open was missed, or
// hides.
func (c *command) drain(output *os.File, drained <-chan struct{}) {
	const look = 50 * time.Millisecond
	for range killedWithin / look {
		select {
		case <-drained:
			return
		case <-time.After(look):
			killMarked(c.id)
		}
	}
	_ = output.SetReadDeadline(time.Now())
	<-drained
}

// describeEnding describes how the command ended. The exit code of a supervisor does not
// describe the command.
func (c *command) describeEnding(ctx context.Context, l *launch, state *os.ProcessState, outcome string, err error) {
	code, exited := strings.CutPrefix(outcome, statusExited)
	signal, signaled := strings.CutPrefix(outcome, statusSignaled)
	if !l.supervised && state != nil && state.Exited() {
		code, exited = strconv.Itoa(state.ExitCode()), true
	}
	c.ended = !exited
	switch {
	case exited:
		c.ending = "exit code " + code
	case ctx.Err() != nil:
		c.ending = fmt.Sprintf("ended because its %s were over", c.timeout)
	case signaled:
		c.ending = "ended by signal: " + signal
	case state != nil:
		c.ending = "ended by " + state.String()
	default:
		c.ending = fmt.Sprintf("ended for an unknown reason: %v", err)
	}
}

// cause returns the text of a start error, without the paths of this machine.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// process is the first process of a command, which leads its group.
type process struct {
	cmd *exec.Cmd
	// reaped reports that its process id, and so its group's, may have been reused.
	mu     sync.Mutex
	reaped bool
}

// kill stops the process and its group.
func (p *process) kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return os.ErrProcessDone
	}
	return killGroup(p.cmd.Process)
}

// wait waits for the end of the process, and stops those that it leaves behind.
func (p *process) wait(id string) error {
	// Until the process is reaped, its process id, and so its group's, cannot be reused. If it
	// cannot be held, the id would have to be reused within this instant to be mistaken for it.
	held := waitWithoutReaping(p.cmd.Process.Pid)
	if held {
		_ = p.kill()
		p.release()
	}
	err := p.cmd.Wait()
	if !held {
		_ = p.kill()
		p.release()
	}
	killMarked(id)
	return err
}

// release records that the process id may be reused.
func (p *process) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reaped = true
}
