package workspace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// supervise starts a command and, when the command ends, kills everything that it started,
// including processes that left its process group: orphans become children of this process,
// and it kills its children until there are none. It then returns errSupervised, or the reason
// why the command could not be started.
func supervise(plan string) error {
	syscall.CloseOnExec(statusFD)
	syscall.CloseOnExec(controlFD)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	runtime.LockOSThread() // the command ends together with the thread that started it
	pid, err := syscall.ForkExec(ownProgram, []string{commandName, plan}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2, statusFD},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	if err := closeOutput(); err != nil {
		return err
	}
	var ended atomic.Bool
	go func() {
		awaitControl()
		if !ended.Load() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}()
	status := awaitCommand(pid)
	ended.Store(true)
	endChildren()
	if status.Signaled() {
		reportStatus(statusSignaled + status.Signal().String())
	} else {
		reportStatus(statusExited + strconv.Itoa(status.ExitStatus()))
	}
	return errSupervised
}

// closeOutput closes the output of the command. Otherwise its reader would wait for this process
// too, and would get text that is not from the command.
func closeOutput() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer closeQuietly(null)
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return nil
}

// awaitControl waits until the program that started this one closes the control pipe: it wants
// the command to end, or has ended itself.
func awaitControl() {
	var b [1]byte
	for {
		_, err := syscall.Read(controlFD, b[:])
		if !errors.Is(err, syscall.EINTR) {
			return // the pipe never carries data
		}
	}
}

// awaitCommand waits for the command and reaps orphans meanwhile.
func awaitCommand(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		switch p, err := syscall.Wait4(-1, &status, 0, nil); {
		case p == pid, err != nil && !errors.Is(err, syscall.EINTR):
			return status
		}
	}
}

// endChildren kills all children, and their children when they become orphans, until there are
// none. Children are reaped only here, so that no process id is reused.
func endChildren() {
	const pause = 2 * time.Millisecond
	for {
		killChildren()
		for {
			var status syscall.WaitStatus
			p, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				return
			}
			if p <= 0 && !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		time.Sleep(pause)
	}
}

func killChildren() {
	self := []byte(strconv.Itoa(os.Getpid()))
	names, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		// The format is: pid (name) state parent ...; the name may contain anything.
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(fields) < 2 || !bytes.Equal(fields[1], self) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
