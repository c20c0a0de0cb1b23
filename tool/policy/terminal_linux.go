package policy

import "golang.org/x/sys/unix"

func flushTerminal(fd uintptr) (terminal bool, err error) {
	if !isTerminal(fd) {
		return false, nil
	}
	return true, unix.IoctlSetInt(int(fd), unix.TCFLSH, unix.TCIFLUSH)
}

func isTerminal(fd uintptr) bool {
	_, err := unix.IoctlGetTermios(int(fd), unix.TCGETS)
	return err == nil
}
