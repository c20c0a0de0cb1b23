//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package oauth

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock of an open file if it is free. Locks belong to the open file, so
// they also work between goroutines.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) //nolint:gosec // a file descriptor fits
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, err
		}
	}
}
