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

// language is a wire language with the names that the command line accepts for it.
type language struct {
	dialect.Codec
	// short holds the common names.
	short []string
	// list is the field of a request that holds the conversation.
	list string
	// provider is the built-in provider of the vendor; its model facts apply.
	provider string
	// toolTypes are the only tool types of the language; its vendor refuses others. Empty
	// means that providers add types.
	toolTypes string
}

func languages() (out []language) {
	for _, codec := range dialects.All() {
		w := wire.Of(codec)
		l := language{Codec: codec, short: w.Names, list: w.Body.Messages, toolTypes: w.ToolTypes}
		if len(w.Providers) > 0 {
			l.provider = w.Providers[0].Names[0]
		}
		out = append(out, l)
	}
	return out
}

// languageNamed finds a language by one of its names, among all wire languages and more.
func languageNamed(name string, more ...language) (language, error) {
	all := append(languages(), more...)
	for _, l := range all {
		if string(l.Dialect()) == name || slices.Contains(l.short, name) {
			return l, nil
		}
	}
	known, names := languageNames(all)
	return language{}, usageError("unknown wire language %q: known languages are %s%s", name, known, textkit.Suggest(name, names))
}

// languageNames returns a list of languages for an error, and all of their names.
func languageNames(all []language) (list string, names []string) {
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

// convertibleNamed finds a language that convert reads and writes: a wire language or the
// canonical form.
func convertibleNamed(name string) (language, error) {
	return languageNamed(name, canonicalLanguage())
}

func languageOf(d dragoman.Dialect) language {
	all := append(languages(), canonicalLanguage())
	return all[slices.IndexFunc(all, func(l language) bool { return l.Dialect() == d })]
}

// sourceNamed returns the dialect that a --from value names. It finds languages with find.
func sourceNamed(name string, find func(string) (language, error)) (dragoman.Dialect, error) {
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

// helpLanguages lists the languages for help texts.
func helpLanguages() string {
	var b strings.Builder
	for _, l := range languages() {
		b.WriteString("\n  " + string(l.Dialect()))
		b.WriteString(strings.Repeat(" ", max(1, 26-len(l.Dialect()))) + "or " + strings.Join(l.short, ", "))
	}
	return b.String()
}
