package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// foreignKeys maps struct tags of other libraries (huma, swag, go-openai, fantasy) to the
// equivalent keys of a jsonschema tag. A reader would expect such a tag to be part of the
// schema. Tags with other uses as well (validate, binding, example, env) are not listed.
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

// checkForeign rejects tags of other libraries that would have no effect on the schema
// (decision 67). It allows one that repeats our own tag: a struct may serve two libraries.
func checkForeign(f reflect.StructField, jsonOptions string) error {
	var own []string // the keys that our own tags set
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
		if !ok || val == "" || slices.Contains(own, k.key) || alreadyInSchema(f, jsonOptions, k.key, val) {
			continue
		}
		return fmt.Errorf("the tag %s:%q has no effect here: %s", k.tag, val, tagAdvice(f, jsonOptions, k.key, val))
	}
	return nil
}

// alreadyInSchema reports whether the schema has the content of a foreign tag without it.
func alreadyInSchema(f reflect.StructField, jsonOptions, key, val string) bool {
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
		return kind != "string" || leaf != nil && leaf.Format == val // it has no effect on a number
	default:
		return false
	}
}

func optional(jsonOptions string) bool {
	opts := strings.Split(jsonOptions, ",")
	return slices.Contains(opts, "omitempty") || slices.Contains(opts, "omitzero")
}

// tagAdvice returns advice on how to write a foreign tag in our form.
func tagAdvice(f reflect.StructField, jsonOptions, key, val string) string {
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
