package main

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/capname"
)

// target is what a command writes for: what is known of the model by its name,
// and what the command line says about it.
func (l language) target(model string, set []string) (dragoman.Target, error) {
	var t dragoman.Target
	if l.models != nil {
		t.Caps = l.models(model)
	}
	for _, s := range set {
		if err := setCapability(&t.Caps, s); err != nil {
			return t, err
		}
	}
	return t, nil
}

// setCapability sets a capability by its name, or by name=value.
func setCapability(caps *dragoman.Capabilities, s string) error {
	name, value, valued := strings.Cut(s, "=")
	if err := capname.Flag.Set(caps, name, value, valued); err != nil {
		return misused("--capability %w", err)
	}
	return nil
}

// helpCapabilities lists the capabilities for help texts, in lines.
func helpCapabilities() string {
	var b strings.Builder
	width := 80
	for i, name := range capname.Flag.Names() {
		if i > 0 {
			b.WriteByte(',')
		}
		if width+len(name)+2 > 80 {
			b.WriteString("\n ")
			width = 2
		}
		b.WriteString(" " + name)
		width += len(name) + 2
	}
	return b.String()
}
