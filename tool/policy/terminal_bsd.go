//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package policy

import "golang.org/x/sys/unix"

// flushInput is FREAD, which selects the input in TIOCFLUSH.
const flushInput = 1

func flushTerminal(fd uintptr) (terminal bool, err error) {
	if !isTerminal(fd) {
		return false, nil
	}
	return true, unix.IoctlSetPointerInt(int(fd), unix.TIOCFLUSH, flushInput)
}

func isTerminal(fd uintptr) bool {
	_, err := unix.IoctlGetTermios(int(fd), unix.TIOCGETA)
	return err == nil
}
