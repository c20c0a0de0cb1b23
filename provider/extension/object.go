package extension

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Object is a JSON object that is edited in place: all bytes that are not edited stay
// unchanged, in their order. The zero value is {}.
//
// Paths are field names, or JSON Pointers, which begin with a slash: "think",
// "/options/num_ctx", "/messages/0/prefix". A missing element of an array is an error; "-" is
// the position after the last element.
type Object struct {
	raw json.RawMessage
}

// ErrNoPath reports that a path does not exist in an object.
var ErrNoPath = errors.New("extension: unknown path")

// NewObject parses an object. Its own field names must be unique. Objects inside it may repeat
// a name, as the arguments of a call may (requirement R7): they stay unchanged.
func NewObject(raw json.RawMessage) (Object, error) {
	if err := jsonwire.Check(raw); err != nil && !repeatsInside(raw) {
		return Object{}, err
	}
	raw = bytes.TrimSpace(raw)
	if raw[0] != '{' {
		return Object{}, fmt.Errorf("%w: not an object", ErrNoPath)
	}
	return Object{raw: raw}, nil
}

// repeatsInside reports whether the only fault of an object is that objects inside it
// repeat a name.
func repeatsInside(raw json.RawMessage) bool {
	if !isObject(raw) || !json.Valid(raw) || !utf8.Valid(raw) {
		return false
	}
	r := jsonwire.NewReader(raw)
	names := map[string]bool{}
	for key := range r.Object() {
		if names[string(key)] {
			return false
		}
		names[string(key)] = true
		r.Skip()
	}
	return r.End() == nil
}

// JSON returns the current object. It must not be changed.
func (o *Object) JSON() json.RawMessage {
	if len(o.raw) == 0 {
		return json.RawMessage("{}")
	}
	return o.raw
}

// isEmpty reports whether nothing was written into the object.
func (o *Object) isEmpty() bool { return len(o.raw) == 0 }

// MarshalJSON writes the object.
func (o Object) MarshalJSON() ([]byte, error) { return o.JSON(), nil }

// UnmarshalJSON reads an object.
func (o *Object) UnmarshalJSON(b []byte) (err error) {
	if err := jsonwire.Check(b); err != nil {
		return err
	}
	*o, err = NewObject(bytes.Clone(b))
	return err
}

// Get returns the value at a path, or nil if there is none.
func (o *Object) Get(path string) json.RawMessage {
	if o.isEmpty() && path != "" {
		return nil
	}
	raw := o.JSON()
	for _, token := range tokens(path) {
		if raw = child(raw, token); raw == nil {
			return nil
		}
	}
	return raw
}

// Read decodes the value at a path into v. It reports whether there is one.
func (o *Object) Read(path string, v any) (found bool, err error) {
	raw := o.Get(path)
	if raw == nil {
		return false, nil
	}
	return true, json.Unmarshal(raw, v)
}

// Set writes a value; a json.RawMessage is written unchanged. Missing objects on the path
// are created.
func (o *Object) Set(path string, value any) error {
	raw, err := encode(value)
	if err != nil {
		return fmt.Errorf("extension: the value of %s: %w", path, err)
	}
	return o.edit(path, func(json.RawMessage) (json.RawMessage, error) { return raw, nil })
}

// SetDefault is like Set but keeps an existing value.
func (o *Object) SetDefault(path string, value any) error {
	if o.Get(path) != nil {
		return nil
	}
	return o.Set(path, value)
}

// Delete removes the value at a path, if there is one.
func (o *Object) Delete(path string) error {
	if o.Get(path) == nil {
		return nil
	}
	return o.edit(path, func(json.RawMessage) (json.RawMessage, error) { return nil, nil })
}

// Merge merges the fields of a patch into the object: objects are merged field by field, any
// other value replaces the existing one. Fields that are not in the patch stay unchanged.
func (o *Object) Merge(patch json.RawMessage) error {
	var p Object
	err := p.UnmarshalJSON(patch)
	if err != nil {
		return err
	}
	merged, err := merge(o.JSON(), p.raw)
	if err == nil {
		o.raw = merged
	}
	return err
}

func merge(into, patch json.RawMessage) (json.RawMessage, error) {
	r := jsonwire.NewReader(patch)
	for key := range r.Object() {
		name, value := string(key), json.RawMessage(r.Raw())
		var err error
		into, err = edit(into, []string{name}, func(old json.RawMessage) (json.RawMessage, error) {
			if isObject(old) && isObject(value) {
				return merge(old, value)
			}
			return value, nil
		})
		if err != nil {
			return nil, err
		}
	}
	return into, r.End()
}

func (o *Object) edit(path string, f func(old json.RawMessage) (json.RawMessage, error)) error {
	keys := tokens(path)
	if len(keys) == 0 {
		return fmt.Errorf("%w: the path is empty", ErrNoPath)
	}
	raw, err := edit(o.JSON(), keys, f)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	o.raw = raw
	return nil
}

// edit returns raw with the value at a path changed. f gets the value there, or nil; its result is
// written, and nil deletes the value.
func edit(raw json.RawMessage, keys []string, f func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	if len(keys) == 0 {
		return f(raw)
	}
	switch {
	case raw == nil:
		raw = json.RawMessage("{}")
	case isArray(raw):
		return editArray(raw, keys, f)
	case !isObject(raw):
		return nil, fmt.Errorf("%w: the parent of %q is not an object", ErrNoPath, keys[0])
	}
	var w jsonwire.Writer
	w.BeginObject()
	r := jsonwire.NewReader(raw)
	found := false
	for key := range r.Object() {
		name, value := string(key), r.Raw()
		if name == keys[0] && !found {
			found = true
			changed, err := edit(value, keys[1:], f)
			if err != nil {
				return nil, err
			}
			if changed == nil {
				continue
			}
			value = changed
		}
		w.QuotedKey(name)
		w.Raw(value)
	}
	if !found {
		added, err := edit(nil, keys[1:], f)
		if err != nil {
			return nil, err
		}
		if added != nil {
			w.QuotedKey(keys[0])
			w.Raw(added)
		}
	}
	w.EndObject()
	return w.Buf, errors.Join(r.End(), w.Err())
}

func editArray(raw json.RawMessage, keys []string, f func(json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error) {
	var w jsonwire.Writer
	w.BeginArray()
	r := jsonwire.NewReader(raw)
	n, found := 0, false
	for range r.Array() {
		value := json.RawMessage(r.Raw())
		if keys[0] == strconv.Itoa(n) {
			found = true
			changed, err := edit(value, keys[1:], f)
			if err != nil {
				return nil, err
			}
			value = changed
		}
		if value != nil {
			w.Raw(value)
		}
		n++
	}
	if keys[0] == "-" {
		found = true
		added, err := edit(nil, keys[1:], f)
		if err != nil {
			return nil, err
		}
		if added != nil {
			w.Raw(added)
		}
	}
	w.EndArray()
	if !found {
		return nil, fmt.Errorf("%w: the array has %d elements, but no element %q", ErrNoPath, n, keys[0])
	}
	return w.Buf, errors.Join(r.End(), w.Err())
}

// child returns the value under a name or an index, or nil if there is none.
func child(raw json.RawMessage, token string) json.RawMessage {
	r := jsonwire.NewReader(raw)
	switch {
	case isObject(raw):
		for key := range r.Object() {
			name, value := string(key), r.Raw()
			if name == token {
				return value
			}
		}
	case isArray(raw):
		n := 0
		for range r.Array() {
			value := r.Raw()
			if strconv.Itoa(n) == token {
				return value
			}
			n++
		}
	}
	return nil
}

// tokens returns the keys of a path.
func tokens(path string) []string {
	switch {
	case path == "":
		return nil
	case path[0] != '/':
		return []string{path}
	}
	parts := strings.Split(path[1:], "/")
	for i, p := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
	}
	return parts
}

func isObject(raw json.RawMessage) bool { return first(raw) == '{' }
func isArray(raw json.RawMessage) bool  { return first(raw) == '[' }

func first(raw json.RawMessage) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) > 0 {
		return raw[0]
	}
	return 0
}

func encode(value any) (json.RawMessage, error) {
	if raw, ok := value.(json.RawMessage); ok {
		return raw, jsonwire.Check(raw)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
