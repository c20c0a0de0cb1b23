package bench

import (
	"syscall"
	"time"
)

// threadTime is the CPU time of this thread. On a shared machine it says what
// the code costs, where the clock on the wall says how many neighbours there
// were. Background collection of garbage runs on other threads and is left out,
// which favours whoever allocates more: not us.
func threadTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_THREAD, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const clock = "CPU time of the thread that does the work"
