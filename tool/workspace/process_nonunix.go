//go:build !unix

package workspace

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

// killGroup kills one process. The processes that it started continue.
func killGroup(p *os.Process) error { return p.Kill() }
