package policy

import "syscall"

// forgetTyped drops what was typed at a terminal and nobody has read yet, and
// reports whether it is one. What is no terminal keeps what it has.
func forgetTyped(in any) (terminal bool, err error) {
	conn, ok := in.(syscall.Conn)
	if !ok {
		return false, nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return false, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { terminal, failed = flushTerminal(fd) })
	if err == nil {
		err = failed
	}
	return terminal, err
}
