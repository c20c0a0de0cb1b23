//go:build !unix && !windows

package stdio

import "os/exec"

func setGroup(*exec.Cmd) {}

// group is a process without its descendants: this system has no groups.
type group struct{ cmd *exec.Cmd }

func newGroup(cmd *exec.Cmd) *group { return &group{cmd: cmd} }

func (g *group) terminate() {}

func (g *group) kill() { _ = g.cmd.Process.Kill() }

func (g *group) close() {}
