//go:build unix

package workspace

import "syscall"

// openWithoutWaiting keeps the opening of a pipe from waiting for its other end,
// and a terminal from becoming ours.
const openWithoutWaiting = syscall.O_NONBLOCK | syscall.O_NOCTTY
