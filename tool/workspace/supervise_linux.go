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

// supervise starts a command and makes its end the end of all that it started,
// also of those that left its process group: orphans become children of this
// process, and it ends its children until it has none. It returns errSupervised
// then, or why the command could not be started.
func supervise(plan string) error {
	syscall.CloseOnExec(statusFD)
	syscall.CloseOnExec(controlFD)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	runtime.LockOSThread() // the command ends with the thread that started it
	pid, err := syscall.ForkExec(ownProgram, []string{commandName, plan}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2, statusFD},
		Sys:   &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return err
	}
	if err := silence(); err != nil {
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
		tellStatus(statusSignaled + status.Signal().String())
	} else {
		tellStatus(statusExited + strconv.Itoa(status.ExitStatus()))
	}
	return errSupervised
}

// silence lets go of the command's output: what this program still writes is none
// of it, and who reads it waits for the last who holds it.
func silence() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer shut(null)
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return nil
}

// awaitControl waits until the program that started this one wants the command's
// end, or has ended itself.
func awaitControl() {
	var b [1]byte
	for {
		_, err := syscall.Read(controlFD, b[:])
		if !errors.Is(err, syscall.EINTR) {
			return // nothing is ever written
		}
	}
}

// awaitCommand waits for the command, and takes leave of orphans meanwhile.
func awaitCommand(pid int) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		switch p, err := syscall.Wait4(-1, &status, 0, nil); {
		case p == pid, err != nil && !errors.Is(err, syscall.EINTR):
			return status
		}
	}
}

// endChildren ends all children, and theirs when they become ours, until there
// are none. Only here are they taken leave of, so that no number is another's.
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
		// pid (name) state parent ...; the name may hold anything.
		fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
		if len(fields) < 2 || !bytes.Equal(fields[1], self) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
