//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package policy

// flushTerminal does not support terminals on this system.
func flushTerminal(uintptr) (terminal bool, err error) { return false, nil }
