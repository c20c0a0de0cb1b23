package traffic

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Small helpers to walk decoded JSON. A value of the wrong type reads as absent.

// Object returns a JSON value as an object, or nil.
func Object(v any) map[string]any { m, _ := v.(map[string]any); return m }

// List returns a JSON value as a list, or nil.
func List(v any) []any { l, _ := v.([]any); return l }

// Text returns a JSON value as a string, or "".
func Text(v any) string { s, _ := v.(string); return s }

// JSONText writes a value back as compact JSON with sorted keys.
func JSONText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}
