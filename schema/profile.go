package schema

import "strings"

// Profile names one surface of one API and holds its rules as data: which
// keywords and formats it takes, what its root must be, and what becomes of
// that which it cannot say. A new target is a new Profile, not a new branch
// in the engine (quirk F3).
//
// The zero Profile has no rules beyond JSON Schema itself: it only repairs
// what is not valid 2020-12.
type Profile struct {
	name string

	// allowed is the whitelist of keywords; used only when closed to others.
	whitelist bool
	allowed   keywordSet
	// refused lists keywords that are not taken where there is no whitelist.
	refused keywordSet
	// rootAllowed is what the root may have; used only with rootWhitelist.
	rootWhitelist bool
	rootAllowed   keywordSet
	// formats is the whitelist of formats; nil means any.
	formats []formatRule
	// minItemsMax bounds minItems; 0 means no bound.
	minItemsMax int
	// regexps says which patterns are taken.
	regexps regexpRule
	// enums says which values an enum may list.
	enums enumRule
	// names says which names properties may have; others get an alias.
	names nameRule

	// rootObject demands type "object" and properties at the root, and nothing
	// beside them that makes it a union.
	rootObject bool
	// answers says that the schema is one of answers, not of arguments.
	answers bool
	// noEmptyProps writes no empty properties, not even at the root (quirk A20).
	noEmptyProps bool
	// anyCase takes types in capitals as well.
	anyCase bool
	// noBooleans takes true and false for additionalProperties only.
	noBooleans bool
	// arrayItems demands items in every array.
	arrayItems bool
	// itemTypes are the types of items that say nothing; nil leaves them open.
	// They never list array, whose items would say nothing again.
	itemTypes []string
	// modernDefs renames definitions to $defs.
	modernDefs bool
	// rootDefs demands that every reference goes to the root or to one of the
	// root's $defs.
	rootDefs bool
	// bareRefs forbids siblings of $ref.
	bareRefs bool
	// inlineRefs writes what references mean in their place, and cuts those
	// that lead into themselves.
	inlineRefs bool
	// noRecursion refuses a schema that contains itself.
	noRecursion bool
	// optionalCycles lets a schema contain itself in optional properties only.
	optionalCycles bool
	// mergeAllOf writes allOf as the one schema it means.
	mergeAllOf bool
	// anyOfOnly writes oneOf as anyOf, and lets nothing but annotations stand
	// beside it.
	anyOfOnly bool
	// loneAnyOf lets nothing at all stand beside anyOf.
	loneAnyOf bool
	// typed demands a type wherever there is no union or reference, and refuses
	// a schema that leaves it open.
	typed bool
	// inferred adds the type where the keywords tell it, and drops keywords
	// about other types.
	inferred bool
	// anyTypes is what stands for a schema that leaves the type open; nil leaves
	// it open.
	anyTypes []string
	// oneType takes no list of types.
	oneType bool
	// nullableFlag writes that null is taken as OpenAPI's nullable, and knows no
	// type null.
	nullableFlag bool
	// mapEntries writes a map as a list of entries with key and value.
	mapEntries bool
	// knownRequired demands that required names properties that exist.
	knownRequired bool
	// closed demands additionalProperties:false of every object; a free-form
	// map is refused.
	closed bool
	// allRequired demands that every property is required; an optional one
	// becomes nullable.
	allRequired bool

	// maxBytes bounds the lowered text; beyond it the schema is compacted.
	maxBytes int
	limits   limits
}

// formatRule is a format with the type it belongs to; empty means any.
type formatRule struct{ format, about string }

// regexpRule says which patterns a target takes, from all to few.
type regexpRule uint8

const (
	anyRegexp regexpRule = iota
	// plainRegexps: no look-around, no back reference, no inline flags.
	plainRegexps
	// grammarRegexps: besides, anchored at both ends and without groups that
	// do not capture.
	grammarRegexps
)

// enumRule says which values an enum may list.
type enumRule uint8

const (
	anyEnum enumRule = iota
	// scalarEnums: strings and numbers.
	scalarEnums
	// toldEnums: strings of type string, none of them empty; an enum of other
	// values is told in the description.
	toldEnums
	// stringEnums: the same, but other values are written as strings and
	// arguments are turned back (quirk A10).
	stringEnums
)

// nameRule says which names properties may have. The zero value allows all.
type nameRule struct {
	// max is the greatest length in bytes; 0 means no rule at all.
	max int
	// punctuation lists what is allowed besides letters, digits and underscore.
	punctuation string
	// letterFirst demands a letter or an underscore at the start.
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

// limits count things in one schema; zero means unbounded.
type limits struct {
	properties int
	levels     int
	nameChars  int
	enumValues int
	optional   int
	unions     int
}

// Name returns the profile's name, such as "openai.strict".
func (p Profile) Name() string { return p.name }

// Named returns the profile with a name, as a dialect's limits give it.
func Named(name string) (Profile, bool) {
	for _, f := range catalogue() {
		if p := f(); p.name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Profiles returns every profile this package knows.
func Profiles() []Profile {
	list := catalogue()
	out := make([]Profile, len(list))
	for i, f := range list {
		out[i] = f()
	}
	return out
}

// WithBudget returns p with a bound on the bytes of a lowered schema. A schema
// beyond it is compacted in stages, reported; the names of the arguments are
// kept (quirk A39). Zero means no bound.
func (p Profile) WithBudget(bytes int) Profile {
	p.maxBytes = bytes
	return p
}

// ForAnswers returns p for the schema of an answer, which nobody translates
// back: properties keep their names. One that the target forbids is for the
// target to refuse.
func (p Profile) ForAnswers() Profile {
	p.names = nameRule{}
	p.answers = true
	return p
}

// whole and parts are what a schema describes, in words.
func (p *Profile) whole() string {
	if p.answers {
		return "an answer is an object"
	}
	return "arguments are an object"
}

func (p *Profile) parts() string {
	if p.answers {
		return "properties"
	}
	return "arguments"
}

// Strict reports whether the profile is a subset for constrained decoding,
// where [Lower] may answer dragoman.ErrUnsupported for a good schema.
func (p Profile) Strict() bool { return p.closed }

// takes reports whether the target knows a keyword, somewhere.
func (p *Profile) takes(k keyword) bool {
	if p.whitelist {
		return p.allowed.has(k)
	}
	return !p.refused.has(k)
}

// takesAt is takes for one place.
func (p *Profile) takesAt(k keyword, root bool) bool {
	if root && p.rootWhitelist {
		return p.rootAllowed.has(k)
	}
	return p.takes(k)
}

// takesFormat reports whether a format is taken for a value of some types.
func (p *Profile) takesFormat(f string, types []string) bool {
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

func (p *Profile) takesRegexp(s string) bool {
	switch p.regexps {
	case plainRegexps:
		return plainRegexp(s)
	case grammarRegexps:
		return plainRegexp(s) && strings.HasPrefix(s, "^") && strings.HasSuffix(s, "$") && !strings.HasSuffix(s, `\$`) && !strings.Contains(s, "(?")
	default:
		return true
	}
}
