package catalog

import (
	"strings"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

// CrossCheck adds findings about tools that imitate or name those of another server. Pass the
// results in the order of the configuration: of two similar names, the one of the later server
// is reported. A name that both servers have in exactly the same form is a [Collision] without
// prefixes, and normal with them.
func CrossCheck(results ...*Result) {
	type owner struct {
		server string
		tool   *Tool
	}
	similar := map[string][]owner{} // by the skeleton of the public name
	named := map[string][]owner{}   // distinctive names, as descriptions mention them
	for _, res := range results {
		for i := range res.Tools {
			t := &res.Tools[i]
			key := skeleton(t.Public)
			for _, o := range similar[key] {
				if o.server != t.Server && o.tool.Public != t.Public {
					imitation(t, o.tool)
					break
				}
			}
			similar[key] = append(similar[key], owner{t.Server, t})
			for _, name := range [...]string{t.Name, t.Public} {
				if distinctive(name) && (len(named[name]) == 0 || named[name][len(named[name])-1].server != t.Server) {
					named[name] = append(named[name], owner{t.Server, t})
				}
			}
		}
	}
	for _, res := range results {
		for i := range res.Tools {
			t := &res.Tools[i]
			s := scanner{server: t.Server, tool: t.Name, found: t.Findings}
			for start, word := range words(t.Spec.Description) {
				others := named[word]
				own := len(others) == 0
				for _, o := range others {
					own = own || o.server == t.Server
				}
				if !own {
					s.add(ruleMention, Block, "/description", t.Spec.Description, start, start+len(word),
						"the description names "+textkit.Visible(word)+", a tool of the server "+textkit.Visible(others[0].server))
					break
				}
			}
			t.Findings = s.sorted()
		}
	}
}

// imitation reports a tool whose name looks like that of another server.
func imitation(t, other *Tool) {
	s := scanner{server: t.Server, tool: t.Name, found: t.Findings}
	rule, severity := ruleNearName, Ask
	if hasLookalikes(t.Name) || removeHidden(t.Name) != t.Name {
		rule, severity = ruleLookalike, Block
	}
	s.add(rule, severity, "/name", t.Name, 0, len(t.Name),
		"the name is almost "+textkit.Visible(other.Public)+", a tool of the server "+textkit.Visible(other.Server))
	t.Findings = s.sorted()
}

// distinctive reports whether a name in a text can only mean a tool: it has several words,
// written as programs write them.
func distinctive(name string) bool {
	const shortest = 6
	return len(name) >= shortest && (strings.ContainsAny(name, "_-") || textkit.Words(name) != nil && len(textkit.Words(name)) > 1 && !strings.Contains(name, " "))
}

// words yields the words of a text that can be names of tools, with their offsets.
func words(text string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		start := -1
		for i := 0; i <= len(text); {
			r, n := utf8.DecodeRuneInString(text[i:])
			inside := i < len(text) && (r >= 0x80 || isNameByte(byte(r)))
			switch {
			case inside && start < 0:
				start = i
			case !inside && start >= 0:
				if !yield(start, text[start:i]) {
					return
				}
				start = -1
			}
			i += max(n, 1)
		}
	}
}
