//go:build unix

package codectest

import (
	"syscall"
	"time"
)

// Spent is how much time of processors this process has taken: other work on the
// machine does not count.
func Spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return time.Duration(time.Now().UnixNano())
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
