// Package toolname makes tool names.
package toolname

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Handoff returns the name of the tool that hands a run over to an agent: letters,
// digits and _ only. If the name is taken, a number follows (requirement I9); taken
// must know every reserved name and the enabled handoffs.
func Handoff(agent string, taken func(string) bool) string {
	name := "transfer_to_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		default:
			return '_'
		}
	}, agent)
	return Free(name, taken)
}

// Free returns name, or name followed by the first number that makes it free.
func Free(name string, taken func(string) bool) string {
	free := name
	for n := 2; taken != nil && taken(free); n++ {
		free = fmt.Sprintf("%s_%d", name, n)
	}
	return free
}

// ReadOutput is the name of the tool that reads stored outputs, unless it is taken.
const ReadOutput = "read_tool_output"

// The names of the tools of package tool/workspace.
const (
	ListFiles   = "list_files"
	ReadFile    = "read_file"
	SearchFiles = "search_files"
	WriteFile   = "write_file"
	ApplyPatch  = "apply_patch"
	Shell       = "shell"
)

// Spilled returns the name of a stored output. It is the same for the same call and part.
func Spilled(run string, turn int, call string, part int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %q %d", run, turn, call, part))
	return "out_" + hex.EncodeToString(sum[:8])
}
