//go:build !linux

package workspace

import "errors"

const ownProgram = ""

func landlockABI() (int, string) { return 0, "only Linux supports it" }

func becomeCommand(string) error { return errors.New("only Linux supports Landlock") }

func supervise(string) error { return errors.New("only Linux supports supervisors") }
