package models

import (
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// Model holds the result of a lookup.
type Model struct {
	// Entry holds the facts. It is empty if nothing is known.
	Entry
	// How states how the name was found:
	//   - "name": the entry has the name or an alias.
	//   - "pattern": a pattern of the entry matches.
	//   - "family": no entry matches, but the family is known. The facts are those of its
	//     newest known model, without limits and price.
	//   - empty: nothing was found.
	How string
	// Resold: a server other than Entry.Provider serves the model, under its own rules
	// and prices.
	Resold bool
}

// Providers for which the code has special rules.
const (
	atOpenAI = "openai"
	atGemini = "gemini"
	atVertex = "vertex"
)

// closed lists the providers whose model names mean the same model on every server. The
// name of an open model may mean a different one on each server.
var closed = []string{atOpenAI, "anthropic", atGemini, "xai"}

// Lookup returns the facts about a model by the provider that serves it and the provider's
// name for it. The provider is a built-in one ("openai", "vertex"); "openai-chat" and
// custom names are not. ok is false if nothing is known.
//
// Lookup tries, in order: the exact name or an alias, the pattern with the most characters
// other than stars, the family. It ignores case. It removes paths, regions and the prefixes
// of resellers first, and looks up a fine-tuned model by its base. A provider that is not
// in the table is treated as a reseller.
func (c *Catalog) Lookup(provider, name string) (m Model, ok bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return Model{}, false
	}
	if c.providers[provider] == nil {
		m = c.resold(name)
		return m, m.How != codes.NotFound
	}
	tuned := false
	switch provider {
	case atVertex:
		name = name[strings.LastIndex(name, "/models/")+1:]
		name = strings.TrimPrefix(name, "models/")
		if strings.HasPrefix(name, "gemini-") {
			provider = atGemini
		}
	case atGemini:
		name = name[strings.LastIndexByte(name, '/')+1:]
	default:
		name = strings.TrimPrefix(name, c.rules.Libraries[provider])
	}
	if regions := c.rules.Regions[provider]; regions != nil {
		name, tuned = withoutRegion(name, regions)
	}
	if base, is := tunedFrom(name); is {
		name, tuned = base, true
	}
	m = c.lookup(provider, name)
	if m.How == codes.NotFound || m.How == codes.FoundByFamily {
		for prefix, p := range c.rules.Prefixes { // at most one matches
			if rest, is := strings.CutPrefix(name, prefix); is && p == provider {
				m = c.lookup(provider, c.respelled(p, rest))
			}
		}
	}
	if tuned {
		m.Price = nil
	}
	return m, m.How != codes.NotFound
}

// lookup finds a name without prefixes.
func (c *Catalog) lookup(provider, name string) Model {
	if e, how := c.find(provider, name); e != nil {
		return Model{Entry: *e, How: how}
	}
	for _, f := range c.rules.Families {
		if slices.Contains(f.Providers, provider) && f.covers(name) {
			e := *c.Entry(f.Like)
			e.ID, e.Match, e.Aliases, e.Status, e.Retires, e.Floating = "", nil, nil, "", "", false
			e.Context, e.ContextBeta, e.Input, e.Output = 0, 0, 0, 0
			e.Price, e.Sources = nil, nil
			e.Provider = provider
			return Model{Entry: e, How: codes.FoundByFamily}
		}
	}
	return Model{}
}

// covers reports whether a name belongs to the family. The prefix of a vendor, as in
// "anthropic.claude-opus-5-5", does not count.
func (f *family) covers(name string) bool {
	_, bare, _ := strings.Cut(name, ".")
	return slices.ContainsFunc(f.Match, func(p string) bool {
		p = strings.ToLower(p)
		return textkit.MatchStars(p, name) || bare != "" && textkit.MatchStars(p, bare)
	})
}

// resold finds a model that a server other than its own provider serves: by the prefix of
// the name, or by the name of a model of a closed provider. The server's prices are
// unknown.
func (c *Catalog) resold(name string) (m Model) {
	name, _, _ = strings.Cut(name, ":") // a variant
	vendor, rest, prefixed := strings.Cut(name, "/")
	if provider := c.rules.Prefixes[vendor+"/"]; prefixed && provider != "" {
		m = c.lookup(provider, c.respelled(provider, rest))
	} else if !prefixed {
		for _, provider := range closed {
			if e, how := c.find(provider, name); e != nil {
				m = Model{Entry: *e, How: how}
				break
			}
		}
	}
	if m.How == codes.FoundByFamily && !slices.Contains(closed, m.Provider) {
		return Model{} // open models differ too much
	}
	if m.How != codes.NotFound {
		m.Resold, m.Price = true, nil
	}
	return m
}

// respelled converts a reseller's spelling of a name to that of the provider.
func (c *Catalog) respelled(provider, name string) string {
	if slices.Contains(c.rules.Dashed, provider) {
		return strings.ReplaceAll(name, ".", "-")
	}
	return name
}

// withoutRegion removes the region, or the path of an ARN, from the name of a model. The
// ARN of a custom model contains the name of its base model.
func withoutRegion(name string, regions []string) (base string, tuned bool) {
	if strings.HasPrefix(name, "arn:") {
		if _, path, is := strings.Cut(name, ":custom-model/"); is && strings.Contains(path, "/") {
			name, _, _ = strings.Cut(path, "/")
			tuned = true
		} else {
			name = name[strings.LastIndexByte(name, '/')+1:]
		}
	}
	for _, region := range regions {
		if rest, is := strings.CutPrefix(name, region); is {
			return rest, tuned
		}
	}
	return name, tuned
}

// tunedFrom returns the base of a fine-tuned model: ft:BASE:organization:….
func tunedFrom(name string) (base string, tuned bool) {
	rest, tuned := strings.CutPrefix(name, "ft:")
	base, _, _ = strings.Cut(rest, ":")
	return base, tuned
}
