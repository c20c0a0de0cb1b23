package schema_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/schema"
)

// tagged returns a struct type with one field. go vet does not check its tag.
func tagged(field any, tag reflect.StructTag) reflect.Type {
	return reflect.StructOf([]reflect.StructField{{Name: "A", Type: reflect.TypeOf(field), Tag: tag}})
}

// A malformed tag, or one that no value satisfies, is an error when the schema is generated.
func TestT1_MalformedTagsAreErrors(t *testing.T) {
	bad := tagged(0, `json: "b"`)
	for name, typ := range map[string]reflect.Type{
		"space behind the key":      tagged(0, `json: "a"`),
		"no end":                    tagged(0, `json:"a" doc:"no end`),
		"no quotes":                 tagged(0, `jsonschema:minimum=1`),
		"commas between pairs":      tagged(0, `json:"a",jsonschema:"minimum=1"`),
		"semicolons between pairs":  tagged(0, `json:"a";doc:"it"`),
		"in an inner struct":        reflect.StructOf([]reflect.StructField{{Name: "In", Type: bad}}),
		"in an element":             tagged(reflect.New(reflect.SliceOf(bad)).Elem().Interface(), `json:"a"`),
		"minimum above maximum":     tagged(0, `jsonschema:"minimum=5,maximum=1"`),
		"minLength above maxLength": tagged("", `jsonschema:"minLength=5,maxLength=1"`),
		"minItems above maxItems":   tagged([]string{}, `jsonschema:"minItems=5,maxItems=1"`),
		"default below minimum":     tagged(0, `jsonschema:"minimum=1,default=0"`),
		"default above maximum":     tagged(0, `jsonschema:"maximum=1,default=2"`),
		"default at an open bound":  tagged(0.5, `jsonschema:"exclusiveMinimum=1,default=1"`),
		"default at the upper one":  tagged(0.5, `jsonschema:"exclusiveMaximum=1,default=1"`),
		"default not in enum":       tagged("", `jsonschema:"enum=x,enum=y,default=z"`),
		"default too long":          tagged("", `jsonschema:"maxLength=2,default=abc"`),
		"default too short":         tagged("", `jsonschema:"minLength=4,default=abc"`),
	} {
		if _, err := schema.FromType(typ); err == nil || !strings.Contains(err.Error(), "tag") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, typ := range map[string]reflect.Type{
		"no space between pairs": tagged(0, `json:"a"doc:"it"`),
		"a note of others":       tagged(0, `json:"a" see below`),
		"a key of others":        tagged(0, `json:"a" x_y.z-1:"b"`),
		"escapes":                tagged(0, `json:"a" doc:"a \"quoted\" word"`),
		"default in the enum":    tagged(0.5, `jsonschema:"enum=1,enum=2.50,default=2.5"`),
		"default at the bounds":  tagged("", `jsonschema:"minLength=2,maxLength=2,default=éé"`),
		"equal bounds":           tagged(0, `jsonschema:"minimum=1,maximum=1,default=1"`),
	} {
		if _, err := schema.FromType(typ); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
