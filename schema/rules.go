package schema

import (
	"regexp"

	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
)

// apiRules holds what the API reference says about one surface.
type apiRules struct {
	rootObject bool
	// rootKeys lists the keywords that the root may have; nil means the same as other schemas.
	rootKeys []string
	// keywords lists the known keywords; nil means everything except never.
	keywords []string
	never    []string
	// formats maps a format to the type it applies to; nil means any format.
	formats map[string]string
	// patterns is "", "plain" or "grammar".
	patterns string
	// enum is "", "scalars" or "strings".
	enum  string
	names *regexp.Regexp

	items      bool // arrays must have items
	itemType   bool // and the items a type
	strict     bool // constrained decoding: closed objects, types everywhere
	all        bool // every property is required
	acyclic    bool
	smallMin   bool // minItems 0 or 1 only
	bareRefs   bool
	dollars    bool // except for keywords that begin with $
	noBooleans bool
	typed      bool
	oneType    bool
	upper      bool // types in upper case as well
	flagged    bool // OpenAPI: nullable, and only keywords of the declared type
	alone      bool // no keywords next to anyOf
	known      bool // required names properties
	// optionalCycles: a schema may contain itself in optional properties only.
	optionalCycles bool
	most           map[string]int
}

// newAPIRules returns the rules of a reference, or nil for nil.
func newAPIRules(r *schemarules.Reference) *apiRules {
	if r == nil {
		return &apiRules{}
	}
	out := &apiRules{
		rootObject: r.RootObject, rootKeys: r.RootKeys, keywords: r.Keywords, never: r.Never, formats: r.Formats,
		patterns: r.Patterns, enum: r.Enum, items: r.Items, itemType: r.ItemType, strict: r.Strict, all: r.All,
		acyclic: r.Acyclic, smallMin: r.SmallMin, bareRefs: r.BareRefs, dollars: r.Dollars, noBooleans: r.NoBooleans,
		typed: r.Typed, oneType: r.OneType, upper: r.Upper, flagged: r.Flagged, alone: r.Alone, known: r.Known,
		optionalCycles: r.OptionalCycles, most: r.Most,
	}
	if r.Names != "" {
		out.names = regexp.MustCompile(r.Names)
	}
	return out
}
