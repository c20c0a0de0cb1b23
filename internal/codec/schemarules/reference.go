package schemarules

// Reference describes one surface according to the wire reference of its API. It is
// written independently of [Rules], so that lowering and checking can test each other.
type Reference struct {
	RootObject bool `json:",omitempty"`
	// RootKeys lists the keywords that the root may have; nil means the same as below
	// the root.
	RootKeys []string `json:",omitempty"`
	// Keywords lists the known keywords; nil means all except Never.
	Keywords []string `json:",omitempty"`
	Never    []string `json:",omitempty"`
	// Formats maps a format to the type it is for; nil means any format.
	Formats map[string]string `json:",omitempty"`
	// Patterns is "", "plain" or "grammar".
	Patterns string `json:",omitempty"`
	// Enum is "", "scalars" or "strings".
	Enum string `json:",omitempty"`
	// Names is a regular expression that property names must match; empty means any.
	Names string `json:",omitempty"`

	Items      bool `json:",omitempty"` // arrays must have items
	ItemType   bool `json:",omitempty"` // items must have a type
	Strict     bool `json:",omitempty"` // constrained decoding: closed objects, types everywhere
	All        bool `json:",omitempty"` // every property required
	Acyclic    bool `json:",omitempty"`
	SmallMin   bool `json:",omitempty"` // minItems 0 or 1 only
	BareRefs   bool `json:",omitempty"`
	Dollars    bool `json:",omitempty"` // except for keywords that begin with $
	NoBooleans bool `json:",omitempty"`
	Typed      bool `json:",omitempty"`
	OneType    bool `json:",omitempty"`
	Upper      bool `json:",omitempty"` // types in capitals as well
	Flagged    bool `json:",omitempty"` // OpenAPI: nullable, and keywords only of the declared type
	Alone      bool `json:",omitempty"` // no siblings of anyOf
	Known      bool `json:",omitempty"` // required may name only existing properties
	// OptionalCycles: a schema may contain itself in optional properties only.
	OptionalCycles bool `json:",omitempty"`
	// Most are bounds: bytes, properties, levels, names, "enum values", optional, unions.
	Most map[string]int `json:",omitempty"`
}
