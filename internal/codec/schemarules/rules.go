// Package schemarules describes, as data, the subset of JSON Schema that one surface of
// an API accepts. Dialects hold the rules of their vendors; schema.NewProfile makes
// profiles of them for the lowering engine.
package schemarules

// Rules describe one surface of one API. The zero value has no rules beyond JSON
// Schema itself. A rule that needs a new branch in the engine is a new field here.
type Rules struct {
	// Name of the surface, such as "openai.strict".
	Name string

	// Keywords is the whitelist of keywords; nil means any that Refused does not list.
	Keywords []string `json:",omitempty"`
	// Refused lists keywords that are not accepted, if there is no whitelist.
	Refused []string `json:",omitempty"`
	// RootKeywords is the whitelist for the root; nil means the same as below the root.
	RootKeywords []string `json:",omitempty"`
	// Formats is the whitelist of formats; nil means any.
	Formats []Format `json:",omitempty"`
	// MinItemsMax limits minItems; 0 means no limit.
	MinItemsMax int `json:",omitempty"`
	// Regexps says which patterns are accepted.
	Regexps Regexps `json:",omitempty"`
	// Enums says which values an enum may list.
	Enums Enums `json:",omitempty"`
	// Names says which names properties may have; others get an alias.
	Names Names `json:",omitzero"`

	// RootObject requires type "object" and properties at the root, without siblings
	// that make it a union.
	RootObject bool `json:",omitempty"`
	// Answers means that the schema describes responses, not arguments.
	Answers bool `json:",omitempty"`
	// NoEmptyProps writes no empty properties, not even at the root (quirk A20).
	NoEmptyProps bool `json:",omitempty"`
	// AnyCase accepts upper-case types as well.
	AnyCase bool `json:",omitempty"`
	// NoBooleans accepts true and false only for additionalProperties.
	NoBooleans bool `json:",omitempty"`
	// ArrayItems requires items in every array.
	ArrayItems bool `json:",omitempty"`
	// ItemTypes are the types of items without a schema; nil leaves them open. They
	// never include array, whose items would have no schema either.
	ItemTypes []string `json:",omitempty"`
	// ModernDefs renames definitions to $defs.
	ModernDefs bool `json:",omitempty"`
	// RootDefs requires that every reference points to the root or to one of the root's
	// $defs.
	RootDefs bool `json:",omitempty"`
	// BareRefs forbids siblings of $ref.
	BareRefs bool `json:",omitempty"`
	// InlineRefs replaces references with their targets, and cuts recursive ones.
	InlineRefs bool `json:",omitempty"`
	// NoRecursion refuses a schema that contains itself.
	NoRecursion bool `json:",omitempty"`
	// OptionalCycles allows a schema to contain itself in optional properties only.
	OptionalCycles bool `json:",omitempty"`
	// MergeAllOf merges allOf into one schema.
	MergeAllOf bool `json:",omitempty"`
	// AnyOfOnly writes oneOf as anyOf, and allows only annotations as siblings of
	// anyOf.
	AnyOfOnly bool `json:",omitempty"`
	// LoneAnyOf allows no siblings of anyOf.
	LoneAnyOf bool `json:",omitempty"`
	// Typed requires a type wherever there is no union or reference, and refuses a
	// schema that leaves it open.
	Typed bool `json:",omitempty"`
	// Inferred adds the type that the keywords imply, and drops keywords for other
	// types.
	Inferred bool `json:",omitempty"`
	// AnyTypes replaces an open type; nil leaves it open.
	AnyTypes []string `json:",omitempty"`
	// OneType accepts no list of types.
	OneType bool `json:",omitempty"`
	// NullableFlag writes OpenAPI's nullable instead of the type null.
	NullableFlag bool `json:",omitempty"`
	// MapEntries writes a map as a list of entries with key and value.
	MapEntries bool `json:",omitempty"`
	// KnownRequired requires that required names only existing properties.
	KnownRequired bool `json:",omitempty"`
	// Closed requires additionalProperties:false in every object; a free-form map is
	// refused.
	Closed bool `json:",omitempty"`
	// AllRequired requires that every property is required; an optional one becomes
	// nullable.
	AllRequired bool `json:",omitempty"`

	// MaxBytes limits the lowered text; a longer schema is compacted.
	MaxBytes int    `json:",omitempty"`
	Limits   Limits `json:",omitzero"`

	// Reference is the specification that Check uses; nil means no rules.
	Reference *Reference `json:",omitempty"`
}

// Format is a format with its type; an empty type means any.
type Format struct {
	Name string
	Type string `json:",omitempty"`
}

// Formats returns formats without a type.
func Formats(names ...string) []Format {
	out := make([]Format, len(names))
	for i, name := range names {
		out[i].Name = name
	}
	return out
}

// Regexps says which patterns a target accepts, from all to few.
type Regexps string

const (
	// AnyRegexps allows all patterns.
	AnyRegexps Regexps = ""
	// PlainRegexps allows no look-around, no back reference, no inline flags.
	PlainRegexps Regexps = "plain"
	// GrammarRegexps is PlainRegexps for patterns that are anchored at both ends and
	// have no non-capturing groups.
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
	// StringEnums is like DescribedEnums, but other values are written as strings and
	// converted back in arguments (quirk A10).
	StringEnums Enums = "strings"
)

// Names says which names properties may have. The zero value allows all.
type Names struct {
	// Max is the maximum length in bytes; 0 means no rule at all.
	Max int
	// Punctuation lists the characters that are allowed besides letters, digits and
	// underscore.
	Punctuation string `json:",omitempty"`
	// LetterFirst requires a letter or an underscore at the start.
	LetterFirst bool `json:",omitempty"`
}

// Limits are maximum counts in one schema; zero means unlimited.
type Limits struct {
	Properties, Levels, NameChars, EnumValues, Optional, Unions int `json:",omitempty"`
}

// StrictKeywords returns the keywords that the strict subsets have in common.
func StrictKeywords() []string {
	return []string{
		"$ref", "$defs", "anyOf", "properties", "additionalProperties", "items", "type", "enum", "const",
		"required", "format", "pattern", "minItems", "title", "description",
	}
}

// EveryType returns the types to write for a schema that leaves its type open, if one
// is required.
func EveryType() []string {
	return []string{"string", "number", "boolean", "object", "array", "null"}
}

// ItemTypes returns the types to write for items without a schema.
func ItemTypes() []string { return []string{"string", "number", "boolean", "object", "null"} }

// Grammar returns the rules for servers that compile a schema to a grammar: a type on
// every node, and only patterns that they can translate (quirks A27, A48).
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
