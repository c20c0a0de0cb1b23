package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// foreignKeys are struct tags by which other libraries (huma, swag, go-openai,
// fantasy) say what a schema says, with the key of a jsonschema tag that means the
// same. Who reads such a tag on the argument of a tool takes it for the schema. Tags
// that stand on a struct for other reasons too (validate, binding, example, env) are
// none of our business.
var foreignKeys = []struct{ tag, key string }{
	{"description", "description"},
	{"desc", "description"},
	{"title", "title"},
	{"enum", "enum"},
	{"enums", "enum"},
	{"default", "default"},
	{"format", "format"},
	{"pattern", "pattern"},
	{"minLength", "minLength"},
	{"maxLength", "maxLength"},
	{"minimum", "minimum"},
	{"maximum", "maximum"},
	{"exclusiveMinimum", "exclusiveMinimum"},
	{"exclusiveMaximum", "exclusiveMaximum"},
	{"multipleOf", "multipleOf"},
	{"minItems", "minItems"},
	{"maxItems", "maxItems"},
	{"uniqueItems", "uniqueItems"},
	{"required", "required"},
	{"nullable", "nullable"},
}

// checkForeign refuses tags of other libraries that promise what the schema will not
// have (decision 67). One beside our own that says the same is let be: a struct may
// serve two libraries.
func checkForeign(f reflect.StructField, jsonOptions string) error {
	var own []string // the keys that are said in our words
	if tag, ok := f.Tag.Lookup("jsonschema"); ok {
		for _, part := range splitTag(tag) {
			key, _, _ := strings.Cut(part, "=")
			own = append(own, key)
		}
	}
	for _, tag := range []string{"doc", "jsonschema_description"} {
		if f.Tag.Get(tag) != "" {
			own = append(own, "description")
		}
	}
	for _, k := range foreignKeys {
		val, ok := f.Tag.Lookup(k.tag)
		if !ok || val == "" || slices.Contains(own, k.key) || saidAnyway(f, jsonOptions, k.key, val) {
			continue
		}
		return fmt.Errorf("the tag %s:%q says nothing here: %s", k.tag, val, ourWords(f, jsonOptions, k.key, val))
	}
	return nil
}

// saidAnyway reports whether what a foreign tag says is so without it.
func saidAnyway(f reflect.StructField, jsonOptions, key, val string) bool {
	switch key {
	case "required":
		return (val == "true") == !optional(jsonOptions)
	case "nullable", "uniqueItems":
		return val == "false"
	case "format":
		kind := jsonKind(f.Type)
		if kind == "array" {
			kind = jsonKind(elem(f.Type))
		}
		t := f.Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		leaf := leafOf(t)
		return kind != "string" || leaf != nil && leaf.Format == val // of a number it promises nothing
	default:
		return false
	}
}

func optional(jsonOptions string) bool {
	opts := strings.Split(jsonOptions, ",")
	return slices.Contains(opts, "omitempty") || slices.Contains(opts, "omitzero")
}

// ourWords tells how to say what a foreign tag says.
func ourWords(f reflect.StructField, jsonOptions, key, val string) string {
	switch key {
	case "description":
		return fmt.Sprintf("write doc:%q", val)
	case "required":
		if val == "true" {
			return "a field is required unless its json tag says omitempty or omitzero"
		}
		return "a field is optional where its json tag says omitempty or omitzero"
	case "nullable":
		return `write jsonschema:"nullable"`
	}
	values := []string{val}
	if key == "enum" {
		values = strings.Split(val, ",")
	}
	var said []string
	for _, v := range values {
		v = strings.TrimSpace(v)
		kind := jsonKind(f.Type)
		if slices.Contains(strings.Split(jsonOptions, ","), "string") {
			kind = "string"
		}
		if checkPair(kind, f.Type, key, v, true) != nil {
			return fmt.Sprintf("a field of this type cannot have %s, remove it", key)
		}
		said = append(said, key+"="+strings.ReplaceAll(v, ",", `\\,`))
	}
	return `write jsonschema:"` + strings.Join(said, ",") + `"`
}
