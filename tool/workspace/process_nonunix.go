//go:build !unix

package workspace

import (
	"os"
	"os/exec"
)

func ownGroup(*exec.Cmd) {}

// killGroup ends one process: those that it started stay.
func killGroup(p *os.Process) error { return p.Kill() }
