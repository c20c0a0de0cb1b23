package workspace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// droppedCapabilities are the capabilities that commands never have. With them, a command run by root
// could bypass Landlock, or change what Landlock does not confine: capabilities and flags
// of files outside the workspace, other processes, network settings, the clock.
var droppedCapabilities = [...]uint{
	unix.CAP_MKNOD, unix.CAP_SYS_RAWIO, unix.CAP_SYS_MODULE, unix.CAP_SYS_BOOT, // devices and the kernel
	unix.CAP_SETFCAP, unix.CAP_LINUX_IMMUTABLE, unix.CAP_MAC_ADMIN, unix.CAP_MAC_OVERRIDE, // attributes of files
	unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_NICE, unix.CAP_BPF, unix.CAP_PERFMON, unix.CAP_CHECKPOINT_RESTORE, // processes
	unix.CAP_NET_ADMIN, unix.CAP_SYS_TIME, unix.CAP_SYSLOG, unix.CAP_SYS_PACCT, unix.CAP_AUDIT_CONTROL, // the machine
}

// dropCapabilities removes the withheld capabilities from this thread and the programs
// that it executes. The caller must have locked the thread. It returns an error if one is
// left.
func dropCapabilities() error {
	sets, err := capabilities()
	if err != nil {
		return err
	}
	if !sets.hasAny() {
		return nil // an unprivileged process cannot gain them
	}
	// A program that root starts gets every capability of its bounding set, unless
	// it may gain none.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("setting no_new_privs: %w", err)
	}
	for _, c := range droppedCapabilities {
		// Without CAP_SETPCAP the bounding set stays; no_new_privs makes up for it.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER, uintptr(c), 0, 0) // before Linux 4.3 there is no such set
		half, bit := &sets[c/32], uint32(1)<<(c%32)
		half.Effective &^= bit
		half.Permitted &^= bit
		half.Inheritable &^= bit
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	left, err := capabilities()
	if err != nil {
		return err
	}
	if left.hasAny() {
		return fmt.Errorf("dropping capabilities: some are left")
	}
	return nil
}

// capabilitySets are the sets of a thread, the lower 32 capabilities first.
type capabilitySets [2]unix.CapUserData

func capabilities() (sets capabilitySets, err error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return sets, fmt.Errorf("reading capabilities: %w", err)
	}
	return sets, nil
}

// hasAny reports whether a withheld capability is in one of the sets.
func (s *capabilitySets) hasAny() bool {
	for _, c := range droppedCapabilities {
		half, bit := &s[c/32], uint32(1)<<(c%32)
		if (half.Effective|half.Permitted|half.Inheritable)&bit != 0 {
			return true
		}
	}
	return false
}
