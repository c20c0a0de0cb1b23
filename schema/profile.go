package schema

import (
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
)

// Profile holds the rules of one API surface as data: the keywords and formats it accepts, what
// its root must be, and what happens to what it cannot express. A new target is a new Profile,
// not a new branch in the engine (quirk F3).
//
// Dialects define the profiles of their vendors; package dialect/all lists them. The zero
// Profile has no rules beyond JSON Schema itself: it only repairs what is not valid 2020-12.
type Profile struct {
	name string

	// The fields are those of [schemarules.Rules], with sets of keywords.
	whitelist, rootWhitelist      bool
	allowed, refused, rootAllowed keywordSet
	formats                       []formatRule
	minItemsMax                   int
	regexps                       regexpRule
	enums                         enumRule
	names                         nameRule

	rootObject, forOutput, noEmptyProps, anyCase, noBooleans, arrayItems bool
	itemTypes                                                            []string
	modernDefs, rootDefs, bareRefs, inlineRefs                           bool
	noRecursion, optionalCycles                                          bool
	mergeAllOf, anyOfOnly, loneAnyOf                                     bool
	typed, inferred                                                      bool
	anyTypes                                                             []string
	oneType, nullableFlag, mapEntries, knownRequired                     bool
	closed, allRequired                                                  bool

	maxBytes int
	limits   limits

	// reference holds the rules for Check; nil means no rules.
	reference *apiRules
}

// formatRule is a format with the type it applies to; empty means any.
type formatRule struct{ format, about string }

// regexpRule determines which patterns a target accepts, from all to few.
type regexpRule uint8

const (
	anyRegexp regexpRule = iota
	// plainRegexps: no look-around, no back reference, no inline flags.
	plainRegexps
	// grammarRegexps: also anchored at both ends and without non-capturing groups.
	grammarRegexps
)

// enumRule determines which values an enum may list.
type enumRule uint8

const (
	anyEnum enumRule = iota
	// scalarEnums: strings and numbers.
	scalarEnums
	// describedEnums: non-empty strings of type string; an enum of other values moves into the
	// description.
	describedEnums
	// stringEnums: the same, but other values are written as strings and arguments are
	// translated back (quirk A10).
	stringEnums
)

// nameRule determines which names properties may have. The zero value allows all.
type nameRule struct {
	// max is the maximum length in bytes; 0 means no rule at all.
	max int
	// punctuation lists the characters allowed besides letters, digits and underscore.
	punctuation string
	// letterFirst requires a letter or an underscore at the start.
	letterFirst bool
}

func (r nameRule) allows(name string) bool {
	if r.max == 0 {
		return true
	}
	if name == "" || len(name) > r.max || r.letterFirst && !(isLetter(name[0]) || name[0] == '_') {
		return false
	}
	for i := range len(name) {
		if !r.char(name[i]) {
			return false
		}
	}
	return true
}

func (r nameRule) char(c byte) bool {
	return isLetter(c) || c >= '0' && c <= '9' || c == '_' || strings.IndexByte(r.punctuation, c) >= 0
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// limits holds the maximum counts in one schema; zero means no limit.
type limits struct {
	properties int
	levels     int
	nameChars  int
	enumValues int
	optional   int
	unions     int
}

// NewProfile returns the profile of a surface. It panics if the rules name an unknown keyword.
func NewProfile(r schemarules.Rules) Profile {
	return Profile{
		name:           r.Name,
		whitelist:      r.Keywords != nil,
		allowed:        keywordsNamed(r.Keywords),
		refused:        keywordsNamed(r.Refused),
		rootWhitelist:  r.RootKeywords != nil,
		rootAllowed:    keywordsNamed(r.RootKeywords),
		formats:        formatRules(r.Formats),
		minItemsMax:    r.MinItemsMax,
		regexps:        regexpRules[r.Regexps],
		enums:          enumRules[r.Enums],
		names:          nameRule{r.Names.Max, r.Names.Punctuation, r.Names.LetterFirst},
		rootObject:     r.RootObject,
		forOutput:      r.Answers,
		noEmptyProps:   r.NoEmptyProps,
		anyCase:        r.AnyCase,
		noBooleans:     r.NoBooleans,
		arrayItems:     r.ArrayItems,
		itemTypes:      r.ItemTypes,
		modernDefs:     r.ModernDefs,
		rootDefs:       r.RootDefs,
		bareRefs:       r.BareRefs,
		inlineRefs:     r.InlineRefs,
		noRecursion:    r.NoRecursion,
		optionalCycles: r.OptionalCycles,
		mergeAllOf:     r.MergeAllOf,
		anyOfOnly:      r.AnyOfOnly,
		loneAnyOf:      r.LoneAnyOf,
		typed:          r.Typed,
		inferred:       r.Inferred,
		anyTypes:       r.AnyTypes,
		oneType:        r.OneType,
		nullableFlag:   r.NullableFlag,
		mapEntries:     r.MapEntries,
		knownRequired:  r.KnownRequired,
		closed:         r.Closed,
		allRequired:    r.AllRequired,
		maxBytes:       r.MaxBytes,
		reference:      newAPIRules(r.Reference),
		limits: limits{
			properties: r.Limits.Properties, levels: r.Limits.Levels, nameChars: r.Limits.NameChars,
			enumValues: r.Limits.EnumValues, optional: r.Limits.Optional, unions: r.Limits.Unions,
		},
	}
}

var (
	regexpRules = map[schemarules.Regexps]regexpRule{
		schemarules.PlainRegexps: plainRegexps, schemarules.GrammarRegexps: grammarRegexps,
	}
	enumRules = map[schemarules.Enums]enumRule{
		schemarules.ScalarEnums: scalarEnums, schemarules.DescribedEnums: describedEnums, schemarules.StringEnums: stringEnums,
	}
)

func formatRules(formats []schemarules.Format) []formatRule {
	var out []formatRule
	for _, f := range formats {
		out = append(out, formatRule{f.Name, f.Type})
	}
	return out
}

func keywordsNamed(names []string) keywordSet {
	var s keywordSet
	for _, name := range names {
		k := lookup([]byte(name))
		if k == kwOther {
			panic("schema: unknown keyword " + name)
		}
		s.add(k)
	}
	return s
}

// Name returns the profile's name, such as "openai.strict".
func (p Profile) Name() string { return p.name }

// WithBudget returns p with a limit on the bytes of a lowered schema. A schema that exceeds it
// is compacted in stages, which are reported; the names of the arguments are kept (quirk A39).
// Zero means no limit.
func (p Profile) WithBudget(bytes int) Profile {
	p.maxBytes = bytes
	return p
}

// ForOutput returns p for the schema of a response. Responses are not translated back, so
// properties keep their names. If the target forbids a name, it refuses the request.
func (p Profile) ForOutput() Profile {
	p.names = nameRule{}
	p.forOutput = true
	return p
}

// objectRequirement and parts describe in words what a schema is for.
func (p *Profile) objectRequirement() string {
	if p.forOutput {
		return "an output must be an object"
	}
	return "arguments must be an object"
}

func (p *Profile) fieldNoun() string {
	if p.forOutput {
		return "properties"
	}
	return "arguments"
}

// Strict reports whether the profile is a subset for constrained decoding, for which [Lower]
// may return dragoman.ErrUnsupported for a valid schema.
func (p Profile) Strict() bool { return p.closed }

// accepts reports whether the target accepts a keyword anywhere.
func (p *Profile) accepts(k keyword) bool {
	if p.whitelist {
		return p.allowed.has(k)
	}
	return !p.refused.has(k)
}

// acceptsAt is takes for one position.
func (p *Profile) acceptsAt(k keyword, root bool) bool {
	if root && p.rootWhitelist {
		return p.rootAllowed.has(k)
	}
	return p.accepts(k)
}

// acceptsFormat reports whether a format is accepted for values of some types.
func (p *Profile) acceptsFormat(f string, types []string) bool {
	if p.formats == nil {
		return true
	}
	for _, have := range p.formats {
		if have.format == f {
			return have.about == "" || len(types) == 1 && types[0] == have.about
		}
	}
	return false
}

func (p *Profile) acceptsRegexp(s string) bool {
	switch p.regexps {
	case plainRegexps:
		return plainRegexp(s)
	case grammarRegexps:
		return plainRegexp(s) && strings.HasPrefix(s, "^") && strings.HasSuffix(s, "$") && !strings.HasSuffix(s, `\$`) && !strings.Contains(s, "(?")
	default:
		return true
	}
}
