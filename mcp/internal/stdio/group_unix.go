//go:build unix

package stdio

import (
	"os/exec"
	"syscall"
)

// setGroup makes a command the leader of a new process group.
func setGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// group is a process with its descendants, except those that left its process group.
type group struct{ leader int }

func newGroup(cmd *exec.Cmd) *group { return &group{leader: cmd.Process.Pid} }

// terminate asks the group to end. Errors mean that it has ended.
func (g *group) terminate() { _ = syscall.Kill(-g.leader, syscall.SIGTERM) }

// kill ends the group.
func (g *group) kill() { _ = syscall.Kill(-g.leader, syscall.SIGKILL) }

func (g *group) close() {}
