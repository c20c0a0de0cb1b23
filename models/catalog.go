package models

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/textkit"
)

// data has a file for each provider, and rules.json for what holds for all.
//
//go:embed data
var data embed.FS

// Catalog is an immutable table of models. It is safe for concurrent use. The entries
// of a provider are parsed when they are first needed.
type Catalog struct {
	rules     rules
	providers map[string]func() *provider
}

// rules is the form of rules.json.
type rules struct {
	Version  int    `json:"version"`
	AsOf     string `json:"as_of"`
	PricesOn string `json:"prices_on"`
	Unit     string `json:"unit"`
	// Providers lists the providers that have a file.
	Providers []string `json:"providers"`
	// Prefixes maps the prefixes of model names at resellers to providers.
	Prefixes map[string]string `json:"prefixes"`
	// Regions lists the region prefixes of inference profile names, by provider. The names of
	// such a provider may also be ARNs.
	Regions map[string][]string `json:"regions"`
	// Libraries maps providers to a prefix of names that has no meaning.
	Libraries map[string]string `json:"libraries"`
	// Dashed lists the providers that write versions with dashes; resellers write dots.
	Dashed   []string `json:"dashed"`
	Families []family `json:"families"`
	Sources  []source `json:"sources"`
}

// family covers names without an entry: they get the reasoning settings, refusals and tools of
// another entry.
type family struct {
	Match     []string `json:"match"`
	Providers []string `json:"providers"`
	Like      string   `json:"like"`
}

// source names an origin of facts.
type source struct {
	Name    string `json:"name"`
	Repo    string `json:"repo"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	License string `json:"license"`
	Note    string `json:"note"`
}

// provider holds the entries of one provider, by their names in lower case.
type provider struct {
	entries  []*Entry
	exact    map[string]*Entry
	patterns []pattern
}

type pattern struct {
	text  string
	entry *Entry
}

// weight returns the length of a pattern without its stars.
func (p pattern) weight() int { return len(p.text) - strings.Count(p.text, "*") }

var embedded = sync.OnceValue(func() *Catalog {
	c := &Catalog{providers: map[string]func() *provider{}}
	read("rules", &c.rules)
	for _, name := range c.rules.Providers {
		c.providers[name] = sync.OnceValue(func() *provider {
			var entries []*Entry
			read(name, &entries)
			p, err := newProvider(entries)
			if err != nil {
				panic(fmt.Sprintf("models: embedded data of %s: %v", name, err))
			}
			return p
		})
	}
	return c
})

// read parses a file of the embedded data. A test reads all of them.
func read(name string, to any) {
	text, err := data.ReadFile("data/" + name + ".json")
	if err == nil {
		err = json.Unmarshal(text, to)
	}
	if err != nil {
		panic(fmt.Sprintf("models: embedded data of %s: %v", name, err))
	}
}

// Default returns the table that is part of this module.
func Default() *Catalog { return embedded() }

func newProvider(entries []*Entry) (*provider, error) {
	p := &provider{entries: entries, exact: make(map[string]*Entry, 2*len(entries))}
	ids := make(map[string]bool, len(entries))
	for _, e := range entries {
		if ids[e.ID] {
			return nil, fmt.Errorf("two entries have the id %q", e.ID)
		}
		ids[e.ID] = true
		for _, names := range [...][]string{e.Match, e.Aliases} {
			for _, name := range names {
				if err := p.add(strings.ToLower(name), e); err != nil {
					return nil, err
				}
			}
		}
	}
	slices.SortStableFunc(p.patterns, func(a, b pattern) int { return b.weight() - a.weight() })
	return p, nil
}

func (p *provider) add(name string, e *Entry) error {
	if strings.Contains(name, "*") {
		p.patterns = append(p.patterns, pattern{name, e})
		return nil
	}
	if other := p.exact[name]; other != nil && other != e {
		return fmt.Errorf("%q names both %s and %s", name, other.ID, e.ID)
	}
	p.exact[name] = e
	return nil
}

// find looks up a name: exactly, then by the pattern with the most characters other than
// stars.
func (p *provider) find(name string) (*Entry, string) {
	if e := p.exact[name]; e != nil {
		return e, codes.FoundByName
	}
	for _, pat := range p.patterns {
		if textkit.MatchStars(pat.text, name) {
			return pat.entry, codes.FoundByPattern
		}
	}
	return nil, codes.NotFound
}

// find looks up a name at a provider of the table.
func (c *Catalog) find(provider, name string) (*Entry, string) {
	if p := c.providers[provider]; p != nil {
		return p().find(name)
	}
	return nil, codes.NotFound
}

// AsOf returns the date of the newest source, YYYY-MM-DD.
func (c *Catalog) AsOf() string { return c.rules.AsOf }

// PricesOn returns the date on which the prices are valid, YYYY-MM-DD. Store it with the
// results that you compute from them.
func (c *Catalog) PricesOn() string { return c.rules.PricesOn }

// Providers returns the names of the providers in the table.
func (c *Catalog) Providers() []string { return slices.Clone(c.rules.Providers) }

// Entries returns all entries, by provider, in the order of the table.
func (c *Catalog) Entries() []*Entry {
	var all []*Entry
	for _, name := range c.rules.Providers {
		all = append(all, c.providers[name]().entries...)
	}
	return all
}

// Entry returns the entry with an id, or nil.
func (c *Catalog) Entry(id string) *Entry {
	name, _, _ := strings.Cut(id, "/")
	p := c.providers[name]
	if p == nil {
		return nil
	}
	entries := p().entries
	if i := slices.IndexFunc(entries, func(e *Entry) bool { return e.ID == id }); i >= 0 {
		return entries[i]
	}
	return nil
}
