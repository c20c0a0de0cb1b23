package bench

import (
	"syscall"
	"time"
)

// threadTime returns the CPU time of this thread. On a shared machine it shows the cost of the
// code, while the wall clock also shows other load. It does not include background garbage
// collection on other threads, which favors the side that allocates more: not us.
func threadTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const clock = "CPU time of the thread that does the work"
