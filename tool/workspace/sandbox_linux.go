package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsyscall "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// ownProgram is this program, even if its file was replaced.
const ownProgram = "/proc/self/exe"

// landlockABI returns the Landlock version of the kernel, or 0 and the reason.
func landlockABI() (int, string) {
	abi, err := llsyscall.LandlockGetABIVersion()
	if err != nil || abi <= 0 {
		return 0, "this kernel does not support it, or it is not enabled"
	}
	return abi, ""
}

// becomeCommand confines this process and executes the command in it.
func becomeCommand(plan string) error {
	var l launch
	if err := json.Unmarshal([]byte(plan), &l); err != nil || len(l.Argv) == 0 {
		return errors.New("the program to run is unknown")
	}
	syscall.CloseOnExec(statusFD)
	runtime.LockOSThread() // the thread that becomes the command, with its capabilities
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("the command cannot be confined: %w", err)
	}
	if l.ABI > 0 {
		if err := l.confine(); err != nil {
			return fmt.Errorf("the command cannot be confined: %w", err)
		}
	}
	return syscall.Exec(l.Program, l.Argv, os.Environ())
}

// confine restricts this process. It requests exactly the rights that the kernel supports, so
// that nothing is silently ignored.
func (l *launch) confine() error {
	configs := [...]landlock.Config{
		landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
		landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
	}
	config := configs[max(1, min(l.ABI, len(configs)))-1]
	if !l.DenyNetwork {
		config.HandledAccessNet = 0
	}
	var rules []landlock.Rule
	for _, p := range l.Read {
		switch isDir, err := isFolder(p); {
		case err != nil: // missing
		case isDir:
			rules = append(rules, landlock.RODirs(p))
		default:
			rules = append(rules, landlock.ROFiles(p))
		}
	}
	for _, p := range l.Write {
		switch isDir, err := isFolder(p); {
		case err != nil:
		case isDir && l.ABI >= 2:
			rules = append(rules, writableFolder(p, config).WithRefer())
		case isDir:
			rules = append(rules, writableFolder(p, config))
		default:
			rules = append(rules, landlock.RWFiles(p))
		}
	}
	rules = append(rules, landlock.RWFiles(l.Devices...).IgnoreIfMissing())
	return config.Restrict(rules...)
}

// writableFolder grants all rights in a directory except making devices and named pipes, and
// controlling devices. Sockets may be made: they lead to no other file.
func writableFolder(path string, config landlock.Config) landlock.FSRule {
	const rights = llsyscall.AccessFSExecute | llsyscall.AccessFSReadFile | llsyscall.AccessFSReadDir |
		llsyscall.AccessFSWriteFile | llsyscall.AccessFSTruncate | llsyscall.AccessFSRemoveDir | llsyscall.AccessFSRemoveFile |
		llsyscall.AccessFSMakeDir | llsyscall.AccessFSMakeReg | llsyscall.AccessFSMakeSym | llsyscall.AccessFSMakeSock
	return landlock.PathAccess(rights&config.HandledAccessFS, path)
}

func isFolder(p string) (bool, error) {
	info, err := os.Stat(p)
	if err != nil {
		return false, err
	}
	return info.IsDir(), nil
}
