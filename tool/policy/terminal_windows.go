package policy

import "golang.org/x/sys/windows"

func flushTerminal(fd uintptr) (terminal bool, err error) {
	var mode uint32
	if windows.GetConsoleMode(windows.Handle(fd), &mode) != nil {
		return false, nil // fails for every handle that is not a console
	}
	return true, windows.FlushConsoleInputBuffer(windows.Handle(fd))
}
