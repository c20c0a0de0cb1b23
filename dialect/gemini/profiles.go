package gemini

import (
	"github.com/dragoman-go/dragoman/internal/codec/schemarules"
	"github.com/dragoman-go/dragoman/schema"
	"github.com/dragoman-go/dragoman/targets"
)

// maxSchemaBytes is far above any sensible tool, and below the size at which
// the API complains about nesting after it expands references (quirk A39).
const maxSchemaBytes = 64 << 10

// namePattern is functionNames as a regular expression.
const namePattern = `^[A-Za-z_][A-Za-z0-9_]{0,63}$`

// functionNames returns the rule for names of function properties (quirk A23).
func functionNames() schemarules.Names { return schemarules.Names{Max: 64, LetterFirst: true} }

var (
	// closedProfile describes the parameters of a function declaration: a fixed
	// set of OpenAPI keywords, on the Developer API and on Vertex (quirks A1,
	// A2). The codec omits the field for a tool without arguments (quirk A20).
	closedProfile = func() schema.Profile {
		r := closedRules("gemini.parameters")
		r.Names = functionNames()
		r.RootObject = true
		r.MapEntries = true
		r.Enums = schemarules.StringEnums
		r.Reference.RootObject = true
		r.Reference.Names = namePattern
		return schema.NewProfile(r)
	}()
	// openProfile describes parametersJsonSchema of a function declaration. It
	// is preferred, because references, maps and lists of types survive (quirk
	// A2).
	openProfile = func() schema.Profile {
		r := openRules("gemini.json_schema")
		r.Names = functionNames()
		r.RootObject = true
		r.Reference.RootObject = true
		r.Reference.Names = namePattern
		return schema.NewProfile(r)
	}()
	// closedOutput describes generationConfig.responseSchema: the keywords of
	// parameters, with any root, and without changes that would have to be
	// undone in the response.
	closedOutput = func() schema.Profile {
		r := closedRules("gemini.response_schema")
		r.Answers = true
		return schema.NewProfile(r)
	}()
	// openOutput describes generationConfig.responseJsonSchema, which may have
	// any root.
	openOutput = func() schema.Profile {
		r := openRules("gemini.response_json_schema")
		r.Answers = true
		return schema.NewProfile(r)
	}()
)

// closedRules returns the rules of the API's Schema object.
func closedRules(name string) schemarules.Rules {
	return schemarules.Rules{
		Name: name,
		Keywords: []string{
			"type", "format", "description", "nullable", "default", "example", "enum", "items", "minItems",
			"maxItems", "properties", "propertyOrdering", "required", "minProperties", "maxProperties", "minLength",
			"maxLength", "pattern", "minimum", "maximum", "anyOf",
		},
		Formats: []schemarules.Format{
			{Name: "enum", Type: "string"},
			{Name: "date-time", Type: "string"},
			{Name: "float", Type: "number"},
			{Name: "double", Type: "number"},
			{Name: "int32", Type: "integer"},
			{Name: "int64", Type: "integer"},
		},
		Enums:         schemarules.DescribedEnums,
		AnyCase:       true,
		NoBooleans:    true,
		ArrayItems:    true,
		ItemTypes:     []string{"string"},
		InlineRefs:    true,
		MergeAllOf:    true,
		AnyOfOnly:     true,
		LoneAnyOf:     true,
		NoEmptyProps:  true,
		Inferred:      true,
		OneType:       true,
		NullableFlag:  true,
		KnownRequired: true,
		MaxBytes:      maxSchemaBytes,
		Reference: &schemarules.Reference{
			Items: true, ItemType: true, NoBooleans: true, OneType: true, Upper: true, Flagged: true, Alone: true, Known: true,
			Enum: "strings",
			Keywords: []string{
				"type", "format", "title", "description", "nullable", "default", "example", "enum", "items", "minItems",
				"maxItems", "properties", "propertyOrdering", "required", "minProperties", "maxProperties", "minLength",
				"maxLength", "pattern", "minimum", "maximum", "anyOf",
			},
			Formats: map[string]string{
				"enum": "string", "date-time": "string", "float": "number", "double": "number", "int32": "integer", "int64": "integer",
			},
		},
	}
}

// openRules returns the rules of the fields that accept JSON Schema.
func openRules(name string) schemarules.Rules {
	return schemarules.Rules{
		Name: name,
		Keywords: []string{
			"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items",
			"prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties",
			"additionalProperties", "required", "propertyOrdering",
		},
		Enums:          schemarules.ScalarEnums,
		NoBooleans:     true,
		ArrayItems:     true,
		ModernDefs:     true,
		RootDefs:       true,
		BareRefs:       true,
		OptionalCycles: true,
		MergeAllOf:     true,
		KnownRequired:  true,
		MaxBytes:       maxSchemaBytes,
		Reference: &schemarules.Reference{
			Items: true, NoBooleans: true, BareRefs: true, Dollars: true, Known: true, OptionalCycles: true, Enum: "scalars",
			Keywords: []string{
				"$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems",
				"minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties",
				"required", "propertyOrdering",
			},
		},
	}
}

func (toolCodec) Profiles() []schema.Profile {
	return []schema.Profile{closedProfile, openProfile, closedOutput, openOutput}
}

func (toolCodec) Surfaces(caps *targets.Capabilities) (loose, strict *schema.Profile) {
	if caps.ClosedSchemas { // quirk A2
		return &closedProfile, &closedProfile
	}
	return &openProfile, &openProfile
}
