package policy

import "syscall"

// dropTyped drops unread input of a terminal, and reports whether in is one. It does not
// change other readers.
func dropTyped(in any) (terminal bool, err error) {
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
