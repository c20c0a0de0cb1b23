package main

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/configfile"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/targets"
)

// target returns the target that a command writes for: the capabilities of the model at
// the dialect's vendor, with the changes in set. file names a file of model facts;
// empty means the variable DRAGOMAN_MODELS.
func (l namedDialect) target(model, file string, set []string) (targets.Target, error) {
	var t targets.Target
	if l.provider != "" {
		c := provider.Config{ModelFile: cmp.Or(file, os.Getenv("DRAGOMAN_MODELS"))}
		m, err := c.Open(l.provider + "/" + cmp.Or(model, "unknown"))
		if err != nil && file == "" {
			return t, failed("%w", nameSource("DRAGOMAN_MODELS", err))
		}
		if err != nil {
			return t, failed("%w", nameSource("--model-file", err))
		}
		client, ok := m.(*provider.Client)
		if !ok {
			return t, failed("%s is not a client", l.provider)
		}
		if model != "" {
			known, _, err := client.Target(context.Background(), "")
			if err != nil {
				return t, failed("%w", err)
			}
			t.Caps = known.Caps
		}
	}
	for _, s := range set {
		if err := setCapability(&t.Caps, s); err != nil {
			return t, err
		}
	}
	return t, nil
}

// setCapability sets a capability by its name, or by name=value.
func setCapability(caps *targets.Capabilities, s string) error {
	name, value, valued := strings.Cut(s, "=")
	if err := configfile.Flag.Set(caps, name, value, valued); err != nil {
		if known := configfile.Flag.Names(); !slices.Contains(known, name) {
			return usageError("unknown --capability %q: \"dragoman convert --help\" lists all%s", name, textkit.Suggest(name, known))
		}
		return usageError("--capability %w", err)
	}
	return nil
}

// helpCapabilities lists the capabilities for help texts.
func helpCapabilities() string { return helpNames(configfile.Flag.Names()) }

// helpNames lists names for help texts, in lines of at most 80 characters.
func helpNames(names []string) string {
	var b strings.Builder
	width := 80
	for i, name := range names {
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
