package main

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/internal/serving/sniff"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// namedDialect is a dialect with the names that the command line accepts for it.
type namedDialect struct {
	dialect.Codec
	// short holds the common names.
	short []string
	// list is the field of a request that holds the conversation.
	list string
	// provider is the built-in provider of the vendor; its model facts apply.
	provider string
	// toolTypes are the only tool types of the dialect; its vendor refuses others. Empty
	// means that providers add types.
	toolTypes string
}

func allDialects() (out []namedDialect) {
	for _, codec := range dialects.All() {
		w := wire.Of(codec)
		l := namedDialect{Codec: codec, short: w.Names, list: w.Body.Messages, toolTypes: w.ToolTypes}
		if len(w.Providers) > 0 {
			l.provider = w.Providers[0].Names[0]
		}
		out = append(out, l)
	}
	return out
}

// dialectNamed finds a dialect by one of its names, among all dialects and more.
func dialectNamed(name string, more ...namedDialect) (namedDialect, error) {
	all := append(allDialects(), more...)
	for _, l := range all {
		if string(l.Dialect()) == name || slices.Contains(l.short, name) {
			return l, nil
		}
	}
	known, names := dialectNames(all)
	return namedDialect{}, usageError("unknown dialect %q: known dialects are %s%s", name, known, textkit.Suggest(name, names))
}

// dialectNames returns a list of dialects for an error, and all of their names.
func dialectNames(all []namedDialect) (list string, names []string) {
	var known []string
	for _, l := range all {
		if string(l.Dialect()) == l.short[0] {
			known = append(known, l.short[0])
		} else {
			known = append(known, l.short[0]+" ("+string(l.Dialect())+")")
		}
		names = append(append(names, l.short...), string(l.Dialect()))
	}
	return strings.Join(known, ", "), names
}

// convertibleNamed finds what convert reads and writes by its name: a dialect or the
// canonical form.
func convertibleNamed(name string) (namedDialect, error) {
	return dialectNamed(name, canonicalDialect())
}

func dialectOf(d dragoman.Dialect) namedDialect {
	all := append(allDialects(), canonicalDialect())
	return all[slices.IndexFunc(all, func(l namedDialect) bool { return l.Dialect() == d })]
}

// sourceNamed returns the dialect that a --from value names. It finds dialects with find.
func sourceNamed(name string, find func(string) (namedDialect, error)) (dragoman.Dialect, error) {
	if name == "" || name == string(sniff.MCP) {
		return dragoman.Dialect(name), nil
	}
	l, err := find(name)
	if err != nil {
		return "", err
	}
	return l.Dialect(), nil
}

// plurals names the content of each kind of input, for errors.
var plurals = map[sniff.Kind]string{
	sniff.Request: "request fields", sniff.Response: "response fields", sniff.Stream: "events",
	sniff.Messages: "messages", sniff.Tools: "tools",
}

// kindNamed finds a kind of input by its name. It also accepts the singular words tool and
// message.
func kindNamed(name string) (sniff.Kind, error) {
	if name == "tool" || name == "message" {
		name += "s"
	}
	if name == "" || slices.Contains(sniff.Kinds, sniff.Kind(name)) {
		return sniff.Kind(name), nil
	}
	return "", unknownValue("--kind", name, "request", "response", "stream", "messages", "tools")
}

// helpDialects lists the dialects for help texts.
func helpDialects() string {
	var b strings.Builder
	for _, l := range allDialects() {
		b.WriteString("\n  " + string(l.Dialect()))
		b.WriteString(strings.Repeat(" ", max(1, 26-len(l.Dialect()))) + "or " + strings.Join(l.short, ", "))
	}
	return b.String()
}
