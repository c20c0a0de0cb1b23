package schema

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
	// formats is the whitelist of string formats; nil means any.
	formats []string
	// minItemsMax bounds minItems; 0 means no bound.
	minItemsMax int
	// plainRegexps refuses patterns with look-around or back references.
	plainRegexps bool

	// rootObject demands type "object" and properties at the root, and nothing
	// beside them that makes it a union.
	rootObject bool
	// arrayItems demands items in every array.
	arrayItems bool
	// modernDefs renames definitions to $defs.
	modernDefs bool
	// rootDefs demands that every reference goes to the root or to one of the
	// root's $defs.
	rootDefs bool
	// bareRefs forbids siblings of $ref.
	bareRefs bool
	// noRecursion refuses a schema that contains itself.
	noRecursion bool
	// mergeAllOf writes allOf as the one schema it means.
	mergeAllOf bool
	// anyOfOnly writes oneOf as anyOf, and lets nothing but annotations stand
	// beside it.
	anyOfOnly bool
	// typed demands a type wherever there is no union or reference.
	typed bool
	// closed demands additionalProperties:false of every object; a free-form
	// map is refused.
	closed bool
	// allRequired demands that every property is required; an optional one
	// becomes nullable.
	allRequired bool

	limits limits
}

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
	for _, p := range []Profile{OpenAITool(), OpenAIOutput(), OpenAIStrict(), AnthropicTool(), AnthropicStrict()} {
		if p.name == name {
			return p, true
		}
	}
	return Profile{}, false
}

// Strict reports whether the profile is a subset for constrained decoding,
// where [Lower] may answer dragoman.ErrUnsupported for a good schema.
func (p Profile) Strict() bool { return p.closed }

var (
	openAIFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
	claudeFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}
)

func strictCore() keywordSet {
	return setOf(kwRef, kwDefs, kwAnyOf, kwProperties, kwAdditionalProperties, kwItems, kwType, kwEnum, kwConst,
		kwRequired, kwFormat, kwPattern, kwMinItems, kwTitle, kwDescription)
}

// OpenAITool is a function's parameters without strict, on Chat Completions
// and Responses. Nearly any JSON Schema is taken below the root.
func OpenAITool() Profile {
	return Profile{name: "openai.tool", rootObject: true, arrayItems: true}
}

// OpenAIOutput is a response schema without strict.
func OpenAIOutput() Profile {
	return Profile{name: "openai.output", rootObject: true, arrayItems: true}
}

// OpenAIStrict is a function's parameters, or a response schema, with strict.
func OpenAIStrict() Profile {
	return Profile{
		name:      "openai.strict",
		whitelist: true,
		allowed: strictCore().with(kwMultipleOf, kwMinimum, kwMaximum, kwExclusiveMinimum,
			kwExclusiveMaximum, kwMaxItems),
		formats:      openAIFormats,
		plainRegexps: true,
		rootObject:   true,
		arrayItems:   true,
		modernDefs:   true,
		rootDefs:     true,
		bareRefs:     true,
		mergeAllOf:   true,
		anyOfOnly:    true,
		typed:        true,
		closed:       true,
		allRequired:  true,
		limits:       limits{properties: 5000, levels: 10, nameChars: 120_000, enumValues: 1000},
	}
}

// AnthropicTool is a tool's input_schema without strict: JSON Schema 2020-12
// with an object at the root.
func AnthropicTool() Profile {
	return Profile{name: "anthropic.tool", rootObject: true, modernDefs: true}
}

// AnthropicStrict is a strict tool's input_schema, or output_config.format.
func AnthropicStrict() Profile {
	return Profile{
		name:         "anthropic.strict",
		whitelist:    true,
		allowed:      strictCore(),
		formats:      claudeFormats,
		minItemsMax:  1,
		plainRegexps: true,
		rootObject:   true,
		arrayItems:   true,
		modernDefs:   true,
		rootDefs:     true,
		bareRefs:     true,
		noRecursion:  true,
		mergeAllOf:   true,
		anyOfOnly:    true,
		typed:        true,
		closed:       true,
		limits:       limits{optional: 24, unions: 16},
	}
}

func (p *Profile) takes(k keyword) bool { return !p.whitelist || p.allowed.has(k) }

func (p *Profile) takesFormat(f string) bool {
	if p.formats == nil {
		return true
	}
	for _, have := range p.formats {
		if have == f {
			return true
		}
	}
	return false
}
