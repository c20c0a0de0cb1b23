//go:build unix

package workspace

import "syscall"

// openWithoutWaiting keeps open from waiting for the other end of a pipe, and a terminal from
// becoming the controlling terminal.
const openWithoutWaiting = syscall.O_NONBLOCK | syscall.O_NOCTTY
