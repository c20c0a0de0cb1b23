package models

import (
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/text/glob"
)

// How is the way in which a name was found.
type How int

// The ways. The zero value is [NotFound].
const (
	NotFound How = iota
	// ByName: the entry has the name, or an alias.
	ByName
	// ByPattern: a pattern of the entry matches.
	ByPattern
	// ByFamily: no entry matches, but the family is known. The facts are those of
	// its newest known model, without limits and price.
	ByFamily
)

// Model holds the result of a lookup.
type Model struct {
	// Entry holds the facts. It is empty where nothing is known.
	Entry
	How How
	// Resold: a server other than Entry.Provider serves the model, under its own rules
	// and prices.
	Resold bool
}

// The places where the prefixes of a name are not those of a reseller.
const (
	atOpenAI  = "openai"
	atGemini  = "gemini"
	atVertex  = "vertex"
	atBedrock = "bedrock"
	atOllama  = "ollama"
)

// closed are the providers whose model names mean the same model on every server. The
// name of an open model may mean a different one on each server.
var closed = []string{atOpenAI, "anthropic", atGemini, "xai"}

// Lookup returns the facts about a model by the provider that serves it and the
// provider's name for it. The provider is a built-in one ("openai", "bedrock");
// "openai-chat" and custom names are not. ok is false if nothing is known.
//
// The order: the exact name or an alias, the pattern with the most text outside
// its stars, the family, nothing. Names are compared without case. Paths, the
// regions of Bedrock and the prefixes of resellers are removed first; a fine-tuned
// model is looked up by its base. A provider that is not in the table is treated as a
// reseller.
func (c *Catalog) Lookup(provider, name string) (m Model, ok bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return Model{}, false
	}
	if c.providers[provider] == nil {
		m = c.resold(name)
		return m, m.How != NotFound
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
	case atBedrock:
		name, tuned = c.withoutRegion(name)
	case atOllama:
		name = strings.TrimPrefix(name, "library/")
	}
	if base, is := tunedFrom(name); is {
		name, tuned = base, true
	}
	m = c.lookup(provider, name)
	if m.How == NotFound || m.How == ByFamily {
		for prefix, p := range c.rules.Prefixes { // at most one matches
			if rest, is := strings.CutPrefix(name, prefix); is && p == provider {
				m = c.lookup(provider, respelled(p, rest))
			}
		}
	}
	if tuned {
		m.Price = nil
	}
	return m, m.How != NotFound
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
			return Model{Entry: e, How: ByFamily}
		}
	}
	return Model{}
}

// covers reports whether a name belongs to the family. A vendor's prefix, as on
// Bedrock, does not count.
func (f *family) covers(name string) bool {
	_, bare, _ := strings.Cut(name, ".")
	return slices.ContainsFunc(f.Match, func(p string) bool {
		p = strings.ToLower(p)
		return glob.MatchStars(p, name) || bare != "" && glob.MatchStars(p, bare)
	})
}

// resold finds a model that a server other than its own provider serves: by the prefix of
// the name, or by the name of a model of a closed provider. The server's prices are
// unknown.
func (c *Catalog) resold(name string) (m Model) {
	name, _, _ = strings.Cut(name, ":") // a variant
	vendor, rest, prefixed := strings.Cut(name, "/")
	if provider := c.rules.Prefixes[vendor+"/"]; prefixed && provider != "" {
		m = c.lookup(provider, respelled(provider, rest))
	} else if !prefixed {
		for _, provider := range closed {
			if e, how := c.find(provider, name); e != nil {
				m = Model{Entry: *e, How: how}
				break
			}
		}
	}
	if m.How == ByFamily && !slices.Contains(closed, m.Provider) {
		return Model{} // open models differ too much
	}
	if m.How != NotFound {
		m.Resold, m.Price = true, nil
	}
	return m
}

// respelled converts a reseller's spelling of a name to that of the provider: resellers
// write the versions of Claude with dots.
func respelled(provider, name string) string {
	if provider == "anthropic" {
		return strings.ReplaceAll(name, ".", "-")
	}
	return name
}

// withoutRegion removes the region, or the path of an ARN, from a Bedrock model name. The
// ARN of a custom model contains the name of its base model.
func (c *Catalog) withoutRegion(name string) (base string, tuned bool) {
	if strings.HasPrefix(name, "arn:") {
		if _, path, is := strings.Cut(name, ":custom-model/"); is && strings.Contains(path, "/") {
			name, _, _ = strings.Cut(path, "/")
			tuned = true
		} else {
			name = name[strings.LastIndexByte(name, '/')+1:]
		}
	}
	for _, region := range c.rules.Regions {
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
