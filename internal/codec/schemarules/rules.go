// Package schemarules describes the subset of JSON Schema that one surface of an
// API takes, as data. Dialects hold the rules of their vendors; schema.NewProfile
// makes profiles of them for the lowering engine.
package schemarules

// Rules describe one surface of one API. The zero value has no rules beyond JSON
// Schema itself. A rule that needs a new branch in the engine is a new field here.
type Rules struct {
	// Name of the surface, such as "openai.strict".
	Name string

	// Keywords is the whitelist of keywords; nil means any that Refused does not list.
	Keywords []string `json:",omitempty"`
	// Refused lists keywords that are not taken, where there is no whitelist.
	Refused []string `json:",omitempty"`
	// RootKeywords is the whitelist of the root; nil means the same as elsewhere.
	RootKeywords []string `json:",omitempty"`
	// Formats is the whitelist of formats; nil means any.
	Formats []Format `json:",omitempty"`
	// MinItemsMax bounds minItems; 0 means no bound.
	MinItemsMax int `json:",omitempty"`
	// Regexps says which patterns are taken.
	Regexps Regexps `json:",omitempty"`
	// Enums says which values an enum may list.
	Enums Enums `json:",omitempty"`
	// Names says which names properties may have; others get an alias.
	Names Names `json:",omitzero"`

	// RootObject demands type "object" and properties at the root, and nothing
	// beside them that makes it a union.
	RootObject bool `json:",omitempty"`
	// Answers: the schema describes answers, not arguments.
	Answers bool `json:",omitempty"`
	// NoEmptyProps writes no empty properties, not even at the root (quirk A20).
	NoEmptyProps bool `json:",omitempty"`
	// AnyCase takes types in capitals as well.
	AnyCase bool `json:",omitempty"`
	// NoBooleans takes true and false for additionalProperties only.
	NoBooleans bool `json:",omitempty"`
	// ArrayItems demands items in every array.
	ArrayItems bool `json:",omitempty"`
	// ItemTypes are the types of items without a schema; nil leaves them open.
	// They never list array, whose items would have none again.
	ItemTypes []string `json:",omitempty"`
	// ModernDefs renames definitions to $defs.
	ModernDefs bool `json:",omitempty"`
	// RootDefs demands that every reference goes to the root or to one of the
	// root's $defs.
	RootDefs bool `json:",omitempty"`
	// BareRefs forbids siblings of $ref.
	BareRefs bool `json:",omitempty"`
	// InlineRefs replaces references by their targets, and cuts those that lead
	// into themselves.
	InlineRefs bool `json:",omitempty"`
	// NoRecursion refuses a schema that contains itself.
	NoRecursion bool `json:",omitempty"`
	// OptionalCycles lets a schema contain itself in optional properties only.
	OptionalCycles bool `json:",omitempty"`
	// MergeAllOf writes allOf as the one schema it means.
	MergeAllOf bool `json:",omitempty"`
	// AnyOfOnly writes oneOf as anyOf, and allows only annotations beside it.
	AnyOfOnly bool `json:",omitempty"`
	// LoneAnyOf allows nothing beside anyOf.
	LoneAnyOf bool `json:",omitempty"`
	// Typed demands a type wherever there is no union or reference, and refuses a
	// schema that leaves it open.
	Typed bool `json:",omitempty"`
	// Inferred adds the type where the keywords imply it, and drops keywords about
	// other types.
	Inferred bool `json:",omitempty"`
	// AnyTypes replaces an open type; nil leaves it open.
	AnyTypes []string `json:",omitempty"`
	// OneType takes no list of types.
	OneType bool `json:",omitempty"`
	// NullableFlag writes OpenAPI's nullable, and knows no type null.
	NullableFlag bool `json:",omitempty"`
	// MapEntries writes a map as a list of entries with key and value.
	MapEntries bool `json:",omitempty"`
	// KnownRequired demands that required names properties that exist.
	KnownRequired bool `json:",omitempty"`
	// Closed demands additionalProperties:false of every object; a free-form map
	// is refused.
	Closed bool `json:",omitempty"`
	// AllRequired demands that every property is required; an optional one becomes
	// nullable.
	AllRequired bool `json:",omitempty"`

	// MaxBytes bounds the lowered text; beyond it the schema is compacted.
	MaxBytes int    `json:",omitempty"`
	Limits   Limits `json:",omitzero"`

	// Reference is what Check holds a schema against; nil means no rules.
	Reference *Reference `json:",omitempty"`
}

// Format is a format with the type it belongs to; empty means any.
type Format struct {
	Name string
	Type string `json:",omitempty"`
}

// Formats lists formats that belong to no type in particular.
func Formats(names ...string) []Format {
	out := make([]Format, len(names))
	for i, name := range names {
		out[i].Name = name
	}
	return out
}

// Regexps says which patterns a target takes, from all to few.
type Regexps string

const (
	// AnyRegexps allows all patterns.
	AnyRegexps Regexps = ""
	// PlainRegexps allows no look-around, no back reference, no inline flags.
	PlainRegexps Regexps = "plain"
	// GrammarRegexps is PlainRegexps for patterns that are anchored at both ends and have
	// no groups that do not capture.
	GrammarRegexps Regexps = "grammar"
)

// Enums says which values an enum may list.
type Enums string

const (
	// AnyEnums allows all values.
	AnyEnums Enums = ""
	// ScalarEnums allows strings and numbers.
	ScalarEnums Enums = "scalars"
	// DescribedEnums allows strings of type string, none of them empty. An enum of other
	// values is written into the description.
	DescribedEnums Enums = "described"
	// StringEnums is DescribedEnums, but other values are written as strings and arguments
	// are turned back (quirk A10).
	StringEnums Enums = "strings"
)

// Names says which names properties may have. The zero value allows all.
type Names struct {
	// Max is the greatest length in bytes; 0 means no rule at all.
	Max int
	// Punctuation lists what is allowed besides letters, digits and underscore.
	Punctuation string `json:",omitempty"`
	// LetterFirst demands a letter or an underscore at the start.
	LetterFirst bool `json:",omitempty"`
}

// Limits count things in one schema; zero means unbounded.
type Limits struct {
	Properties, Levels, NameChars, EnumValues, Optional, Unions int `json:",omitempty"`
}

// StrictKeywords are the keywords that the strict subsets have in common.
func StrictKeywords() []string {
	return []string{
		"$ref", "$defs", "anyOf", "properties", "additionalProperties", "items", "type", "enum", "const",
		"required", "format", "pattern", "minItems", "title", "description",
	}
}

// EveryType replaces a type that a schema leaves open, where one must be given.
func EveryType() []string {
	return []string{"string", "number", "boolean", "object", "array", "null"}
}

// ItemTypes replaces the types of items without a schema.
func ItemTypes() []string { return []string{"string", "number", "boolean", "object", "null"} }

// Grammar returns the rules of servers that compile a schema to a grammar: a type
// on every node, and patterns they can translate (quirks A27, A48).
func Grammar(name string) Rules {
	return Rules{
		Name:       name,
		Regexps:    GrammarRegexps,
		NoBooleans: true,
		ArrayItems: true,
		Inferred:   true,
		AnyTypes:   EveryType(),
		ItemTypes:  ItemTypes(),
	}
}
