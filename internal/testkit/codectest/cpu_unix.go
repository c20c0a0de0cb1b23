//go:build unix

package codectest

import (
	"syscall"
	"time"
)

// CPUTime returns the processor time that this process has used. Other work on the machine
// does not count.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
