package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// object is a JSON object that keeps the order of its fields. Other JSON values are nil, bool,
// json.Number, string and []any.
type object struct {
	keys   []string
	values map[string]any
}

// newObject makes an object of alternating keys and values.
func newObject(pairs ...any) *object {
	o := &object{values: make(map[string]any, len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

// get returns a field, or nil if there is none or o is nil.
func (o *object) get(key string) any {
	if o == nil {
		return nil
	}
	return o.values[key]
}

func (o *object) has(key string) bool {
	if o == nil {
		return false
	}
	_, ok := o.values[key]
	return ok
}

// set replaces a field in its place, or adds it at the end.
func (o *object) set(key string, value any) {
	if !o.has(key) {
		o.keys = append(o.keys, key)
	}
	o.values[key] = value
}

func (o *object) remove(key string) {
	if o.has(key) {
		delete(o.values, key)
		o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
	}
}

// at follows keys into objects and indexes into lists. It returns nil if the path does not
// exist.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(*object)
			v = o.get(step)
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// objectAt is like at, but returns nil if the value is not an object.
func objectAt(v any, path ...any) *object {
	o, _ := at(v, path...).(*object)
	return o
}

// clone returns a deep copy.
func clone(v any) any {
	switch v := v.(type) {
	case *object:
		c := &object{keys: slices.Clone(v.keys), values: make(map[string]any, len(v.values))}
		for k, e := range v.values {
			c.values[k] = clone(e)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, e := range v {
			c[i] = clone(e)
		}
		return c
	default:
		return v
	}
}

// maxTreeDepth limits the nesting of JSON.
const maxTreeDepth = 500

// parseTree reads one JSON value.
func parseTree(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := readTree(d, 0)
	if err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("sim: more than one JSON value")
	}
	return v, nil
}

func readTree(d *json.Decoder, depth int) (any, error) {
	if depth > maxTreeDepth {
		return nil, fmt.Errorf("sim: JSON nested deeper than %d", maxTreeDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := newObject()
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := readTree(d, depth+1)
			if err != nil {
				return nil, err
			}
			o.set(key.(string), v)
		}
		_, err = d.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := readTree(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	default:
		return t, nil
	}
}

// appendTree appends the compact JSON of a value.
func appendTree(dst []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		dst = append(dst, '{')
		for i, k := range v.keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendTree(dst, k), ':')
			dst = appendTree(dst, v.values[k])
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendTree(dst, e)
		}
		return append(dst, ']')
	case rawJSON:
		return append(dst, v...)
	default:
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(v) != nil {
			return append(dst, "null"...)
		}
		return append(dst, bytes.TrimRight(b.Bytes(), "\n")...)
	}
}

// rawJSON is JSON that is written unchanged.
type rawJSON string
