package catalog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// pinnedFields are the fields of a tool that a definition covers, in canonical order, besides
// the label of the server and _meta.ui.
var pinnedFields = []string{"annotations", "description", "execution", "inputSchema", "name", "outputSchema", "title"}

// The names of fields that only definitions have.
const (
	labelField = "label"
	uiField    = "ui"
	oldUIField = "ui/resourceUri"
)

// Fingerprint returns the hash of a definition: "sha256:" and 64 hexadecimal digits.
func Fingerprint(definition json.RawMessage) string {
	sum := sha256.Sum256(definition)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Fingerprint returns the hash of the tool's definition.
func (t *Tool) Fingerprint() string { return Fingerprint(t.Definition) }

// define returns the definition of a tool object: its pinned fields as canonical JSON. A field
// with the value null differs from an absent one.
func define(label string, fields map[string]json.RawMessage) (json.RawMessage, error) {
	def := map[string]json.RawMessage{labelField: jsonwire.Quote(label)}
	for _, name := range pinnedFields {
		if v, ok := fields[name]; ok {
			def[name] = v
		}
	}
	for _, name := range [...]string{uiField, oldUIField} {
		if ui := field(fields["_meta"], name); ui != nil {
			def[name] = ui
		}
	}
	return canonicalObject(def)
}

// field returns the value of a field of an object, or nil.
func field(object json.RawMessage, name string) json.RawMessage {
	if len(object) == 0 {
		return nil
	}
	r := jsonwire.NewReader(object)
	if r.Kind() != '{' {
		return nil
	}
	var out json.RawMessage
	for key := range r.Object() {
		if string(key) == name {
			out = r.Raw()
		} else {
			r.Skip()
		}
	}
	return out
}

// SameExceptName reports whether two definitions differ at most in the name of the tool. So a
// tool that only changed its name is recognized.
func SameExceptName(a, b json.RawMessage) bool {
	return bytes.Equal(jsonwire.Without(a, "name"), jsonwire.Without(b, "name"))
}

// Canonical returns a JSON value in one spelling: sorted field names, no white space, the
// shortest escapes, and one form for equal numbers. Unlike RFC 8785 it compares numbers
// exactly, because a change that doubles cannot express is still a change.
func Canonical(raw json.RawMessage) (json.RawMessage, error) {
	if err := jsonwire.Check(raw); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return appendCanonical(nil, v), nil
}

func canonicalObject(fields map[string]json.RawMessage) (json.RawMessage, error) {
	names := make([]string, 0, len(fields))
	for name := range fields {
		names = append(names, name)
	}
	slices.Sort(names)
	out := []byte{'{'}
	var errs error
	for i, name := range names {
		v, err := Canonical(fields[name])
		errs = errors.Join(errs, err)
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, jsonwire.Quote(name)...), ':'), v...)
	}
	return append(out, '}'), errs
}

func appendCanonical(out []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(out, "null"...)
	case bool:
		return strconv.AppendBool(out, v)
	case json.Number:
		return append(out, canonicalNumber(string(v))...)
	case string:
		return append(out, jsonwire.Quote(v)...)
	case []any:
		out = append(out, '[')
		for i, e := range v {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendCanonical(out, e)
		}
		return append(out, ']')
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.Sort(names)
		out = append(out, '{')
		for i, name := range names {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(append(out, jsonwire.Quote(name)...), ':')
			out = appendCanonical(out, v[name])
		}
		return append(out, '}')
	}
	return out
}

// maxPlainZeros is the largest number of zeros that a canonical integer ends with; beyond it,
// the number has an exponent.
const maxPlainZeros = 20

// canonicalNumber returns one spelling for all spellings of a number: 1.0, 1e0 and 1 are 1.
func canonicalNumber(text string) string {
	rest, sign := text, ""
	if strings.HasPrefix(rest, "-") {
		rest, sign = rest[1:], "-"
	}
	mantissa, exponent := rest, int64(0)
	if e := strings.IndexAny(rest, "eE"); e >= 0 {
		n, err := strconv.ParseInt(rest[e+1:], 10, 32)
		if err != nil {
			return text
		}
		mantissa, exponent = rest[:e], n
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	exponent -= int64(len(fraction))
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return "0"
	}
	trimmed := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(trimmed))
	switch {
	case exponent == 0:
		return sign + trimmed
	case exponent > 0 && exponent <= maxPlainZeros:
		return sign + trimmed + strings.Repeat("0", int(exponent))
	case exponent < 0 && -exponent < int64(len(trimmed)):
		point := len(trimmed) + int(exponent)
		return sign + trimmed[:point] + "." + trimmed[point:]
	case exponent < 0 && -exponent-int64(len(trimmed)) < maxPlainZeros:
		return sign + "0." + strings.Repeat("0", int(-exponent)-len(trimmed)) + trimmed
	default:
		return sign + trimmed + "e" + strconv.FormatInt(exponent, 10)
	}
}
