package policy

import "golang.org/x/sys/windows"

func flushTerminal(fd uintptr) (terminal bool, err error) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(fd), &mode) != nil {
		return false, nil // asking fails on all that is none
	}
	return true, windows.FlushConsoleInputBuffer(windows.Handle(fd))
}
