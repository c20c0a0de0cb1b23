package workspace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// waitWithoutReaping waits for the end of a process without releasing its process id, so that
// its group id cannot be reused. It reports whether it could.
func waitWithoutReaping(pid int) bool {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

// killMarked kills the processes with the mark of a command in their environment, which have
// left its group. It does not find a process that also cleared its environment.
func killMarked(id string) {
	mark := []byte(commandMark + "=" + id)
	// A process may start another during the search, and a process that is just executing a
	// program has no environment for an instant.
	const (
		rounds = 20
		clean  = 3
		pause  = 2 * time.Millisecond
	)
	for found, none := 0, 0; found < rounds && none < clean; {
		if killMarkedOnce(mark) > 0 {
			found, none = found+1, 0
			continue
		}
		if none++; none < clean {
			time.Sleep(pause)
		}
	}
}

func killMarkedOnce(mark []byte) int {
	names, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return 0
	}
	killed := 0
	for _, name := range names {
		if !hasMark(name, mark) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			continue
		}
		// The process is opened before it is checked again: its id cannot be reused in
		// between.
		p, err := os.FindProcess(pid)
		if err == nil && hasMark(name, mark) && p.Kill() == nil {
			killed++
		}
	}
	return killed
}

func hasMark(environ string, mark []byte) bool {
	data, err := os.ReadFile(environ)
	if err != nil {
		return false
	}
	for v := range bytes.SplitSeq(data, []byte{0}) {
		if bytes.Equal(v, mark) {
			return true
		}
	}
	return false
}

// workFolder opens a directory of the workspace to run a command in. It is opened within the
// root and then named by its file descriptor, so that it cannot be replaced.
func (w *Workspace) workFolder(rel string) (string, func(), error) {
	f, err := w.openFolder(rel)
	if err != nil {
		return "", nil, err
	}
	return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())), func() { closeQuietly(f) }, nil
}
