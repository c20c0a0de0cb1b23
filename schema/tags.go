package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dlclark/regexp2"
)

// checkTag rejects a jsonschema tag that the reflector would misread or ignore: every tag has
// its effect or is an error.
func checkTag(f reflect.StructField, jsonOptions string) error {
	tag, ok := f.Tag.Lookup("jsonschema")
	_, hasDoc := f.Tag.Lookup("doc")
	if !ok {
		if d, has := f.Tag.Lookup("jsonschema_description"); has && hasDoc && d != "" {
			return errors.New("doc and jsonschema_description both have a description")
		}
		return nil
	}
	kind := jsonKind(f.Type)
	if slices.Contains(strings.Split(jsonOptions, ","), "string") && (kind == "integer" || kind == "number" || kind == "boolean") {
		kind = "string"
	}
	seen := map[string]bool{}
	values := map[string][]string{}
	for _, part := range splitTag(tag) {
		key, val, has := strings.Cut(part, "=")
		values[key] = append(values[key], val)
		if seen[key] && key != "enum" && key != "example" && !(key == "default" && kind == "array") {
			return fmt.Errorf("jsonschema tag: duplicate key %s", key)
		}
		seen[key] = true
		if key == "description" && hasDoc {
			return errors.New("doc and the jsonschema tag both have a description")
		}
		if !has && strings.ContainsAny(key, " \t") { // the form of github.com/google/jsonschema-go
			return fmt.Errorf("jsonschema tag %q: a description is written doc:%q", part, tag)
		}
		if err := checkPair(kind, f.Type, key, val, has); err != nil {
			return fmt.Errorf("jsonschema tag %q: %w", part, err)
		}
	}
	if err := consistent(kind, values); err != nil {
		return fmt.Errorf("jsonschema tag %q: %w", tag, err)
	}
	return nil
}

// consistent returns an error for constraints that no value satisfies, and for a default that
// violates the other constraints. The values must be valid.
func consistent(kind string, values map[string][]string) error {
	number := func(key string) (float64, bool) {
		if len(values[key]) == 0 {
			return 0, false
		}
		n, err := strconv.ParseFloat(values[key][0], 64)
		return n, err == nil
	}
	for _, pair := range [...][2]string{{"minimum", "maximum"}, {"minLength", "maxLength"}, {"minItems", "maxItems"}} {
		low, least := number(pair[0])
		if high, most := number(pair[1]); least && most && low > high {
			return fmt.Errorf("%s is greater than %s", pair[0], pair[1])
		}
	}
	if kind == "array" || len(values["default"]) == 0 {
		return nil
	}
	given := values["default"][0]
	if enum := values["enum"]; len(enum) > 0 && !slices.ContainsFunc(enum, func(v string) bool { return sameValue(kind, v, given) }) {
		return fmt.Errorf("the default %s is not in the enum", given)
	}
	size, isNumber := number("default")
	if kind == "string" {
		size = float64(utf8.RuneCountInString(given))
	} else if !isNumber {
		return nil
	}
	for _, bound := range [...]struct {
		key     string
		outside func(bound float64) bool
	}{
		{"minimum", func(b float64) bool { return size < b }},
		{"maximum", func(b float64) bool { return size > b }},
		{"exclusiveMinimum", func(b float64) bool { return size <= b }},
		{"exclusiveMaximum", func(b float64) bool { return size >= b }},
		{"minLength", func(b float64) bool { return size < b }},
		{"maxLength", func(b float64) bool { return size > b }},
	} {
		if b, ok := number(bound.key); ok && bound.outside(b) {
			return fmt.Errorf("the default %s does not satisfy %s", given, bound.key)
		}
	}
	return nil
}

// sameValue reports whether two values of a tag are equal.
func sameValue(kind, a, b string) bool {
	if kind == "string" {
		return a == b
	}
	x, err := strconv.ParseFloat(a, 64)
	y, bad := strconv.ParseFloat(b, 64)
	return err == nil && bad == nil && x == y
}

// unreadTag returns the malformed rest of a struct tag: the part that package reflect does
// not read, or reads with a separator in the key. It is empty for a valid tag.
func unreadTag(tag reflect.StructTag) string {
	s := string(tag)
	for {
		s = strings.TrimLeft(s, " ")
		if s == "" {
			return ""
		}
		i := strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r == ':' || r == '"' || r == 0x7f })
		if i <= 0 || !strings.HasPrefix(s[i:], `:"`) || strings.ContainsAny(s[:i], ",;") {
			return s
		}
		quoted, err := strconv.QuotedPrefix(s[i+1:])
		if err != nil {
			return s
		}
		s = s[i+1+len(quoted):]
	}
}

// splitTag splits at commas without a preceding backslash.
func splitTag(tag string) []string {
	var parts []string
	var b strings.Builder
	for i := 0; i < len(tag); i++ {
		switch {
		case tag[i] == '\\' && i+1 < len(tag) && tag[i+1] == ',':
			b.WriteByte(',')
			i++
		case tag[i] == ',':
			parts = append(parts, b.String())
			b.Reset()
		default:
			b.WriteByte(tag[i])
		}
	}
	return append(parts, b.String())
}

var errUnknownKey = errors.New("unknown key, or not allowed for this type")

func checkPair(kind string, t reflect.Type, key, val string, has bool) error {
	switch key {
	case "required", "nullable":
		if has {
			return errors.New("takes no value")
		}
		return nil
	case "":
		return errors.New("empty")
	}
	if !has || val == "" {
		return errors.New("needs a value")
	}
	if key == "title" || key == "description" {
		return nil
	}
	if kind == "array" {
		// The reflector drops a list's values that contain "=".
		if strings.Contains(val, "=") {
			return errors.New("a value for a list must not contain =")
		}
		item := jsonKind(elem(t))
		switch key {
		case "minItems", "maxItems":
			return count(val)
		case "uniqueItems":
			if val != "true" {
				return errors.New("must be true")
			}
			return nil
		case "default":
			if item != "string" {
				return errors.New("a list can have a default only if its items are strings")
			}
			return nil
		case "format", "pattern":
			if item != "string" {
				return errUnknownKey
			}
		}
		return scalar(item, key, val)
	}
	return scalar(kind, key, val)
}

func scalar(kind, key, val string) error {
	switch kind {
	case "string":
		switch key {
		case "minLength", "maxLength":
			return count(val)
		case "pattern":
			_, err := regexp2.Compile(val, regexp2.ECMAScript)
			return err
		case "readOnly", "writeOnly":
			_, err := strconv.ParseBool(val)
			return err
		case "format", "default", "example", "enum":
			return nil
		}
	case "integer", "number":
		switch key {
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "default", "example", "enum":
			return numeral(kind, key, val)
		}
	case "boolean":
		if key == "default" {
			if val != "true" && val != "false" {
				return errors.New("must be true or false")
			}
			return nil
		}
	}
	return errUnknownKey
}

func count(val string) error {
	_, err := strconv.ParseUint(val, 10, 63)
	return err
}

func numeral(kind, key, val string) error {
	if !isNumber(val) {
		return errors.New("must be a number")
	}
	if _, err := json.Number(val).Float64(); err != nil {
		return err
	}
	if key == "multipleOf" && !isPositive([]byte(val)) {
		return errors.New("must be more than 0")
	}
	if kind == "integer" && (key == "default" || key == "enum" || key == "example") {
		_, err := strconv.ParseInt(val, 10, 64)
		return err
	}
	return nil
}

func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t.Elem()
}

// jsonKind returns the JSON type that the reflector gives a field; empty if its tags do not
// apply to it (objects, references, any). It follows one pointer, and a named list is a
// reference.
func jsonKind(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if leaf := leafOf(t); leaf != nil {
		return leaf.Type
	}
	if t.Implements(selfDescribe) {
		return ""
	}
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Slice, reflect.Array:
		if t.Name() != "" {
			return ""
		}
		return "array"
	default:
		return ""
	}
}
