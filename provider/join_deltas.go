package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// joinedField is a field of a message that was streamed in deltas.
type joinedField struct {
	name  string
	value json.RawMessage
}

// fieldPointer returns the JSON pointer to a field.
func fieldPointer(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// joinDeltas merges the deltas of a message field by field, in their order, without the
// fields to skip:
//
//   - strings are concatenated, lists appended, and objects merged field by field;
//   - list elements with the same "index" are merged;
//   - any other value replaces the one before.
//
// It ignores null values, and deltas that are not objects.
func joinDeltas(deltas []json.RawMessage, skip func(name string) bool) ([]joinedField, error) {
	var names []string
	values := map[string][]json.RawMessage{}
	for _, d := range deltas {
		if first := bytes.TrimLeft(d, " \t\r\n"); len(first) == 0 || first[0] != '{' {
			continue
		}
		r := jsonwire.NewReader(d)
		for key := range r.Object() {
			name, value := string(key), json.RawMessage(r.Raw())
			if skip != nil && skip(name) {
				continue
			}
			if values[name] == nil {
				names = append(names, name)
			}
			values[name] = append(values[name], value)
		}
		if err := r.End(); err != nil {
			return nil, err
		}
	}
	out := make([]joinedField, 0, len(names))
	for _, name := range names {
		value, err := joinValues(values[name])
		if err != nil {
			return nil, err
		}
		out = append(out, joinedField{name, value})
	}
	return out, nil
}

// joinValues merges the values of one field.
func joinValues(values []json.RawMessage) (json.RawMessage, error) {
	var run []json.RawMessage // consecutive values of one kind
	kind := byte('n')
	for _, v := range values {
		k := bytes.TrimLeft(v, " \t\r\n")[0]
		switch {
		case k == 'n':
			continue
		case k != kind || k != '"' && k != '[' && k != '{':
			run, kind = nil, k
		}
		run = append(run, v)
	}
	switch {
	case len(run) == 0:
		return json.RawMessage("null"), nil
	case len(run) == 1:
		return run[0], nil
	case kind == '"':
		var text strings.Builder
		for _, v := range run {
			var s string
			if err := json.Unmarshal(v, &s); err != nil {
				return nil, err
			}
			text.WriteString(s)
		}
		var w jsonwire.Writer
		w.String(text.String())
		return w.Buf, w.Err()
	case kind == '[':
		return joinLists(run)
	default:
		fields, err := joinDeltas(run, nil)
		if err != nil {
			return nil, err
		}
		return writeObject(fields)
	}
}

// joinLists appends the elements of lists, and merges those with the same "index".
func joinLists(lists []json.RawMessage) (json.RawMessage, error) {
	type element struct {
		index  string
		values []json.RawMessage
	}
	var all []*element
	byIndex := map[string]*element{}
	for _, l := range lists {
		for _, e := range elements(l) {
			var at struct{ Index json.RawMessage }
			if json.Unmarshal(e, &at) != nil || at.Index == nil {
				all = append(all, &element{values: []json.RawMessage{e}})
				continue
			}
			index := string(at.Index)
			if byIndex[index] == nil {
				byIndex[index] = &element{index: index}
				all = append(all, byIndex[index])
			}
			byIndex[index].values = append(byIndex[index].values, e)
		}
	}
	out := make([]json.RawMessage, len(all))
	for i, e := range all {
		fields, err := joinDeltas(e.values, nil)
		switch {
		case err != nil:
			return nil, err
		case e.index == "":
			out[i] = e.values[0]
			continue
		}
		if out[i], err = writeObject(fields); err != nil {
			return nil, err
		}
	}
	return writeList(out), nil
}

// writeObject writes an object with these fields.
func writeObject(fields []joinedField) (json.RawMessage, error) {
	var w jsonwire.Writer
	w.BeginObject()
	for _, m := range fields {
		w.QuotedKey(m.name)
		w.Raw(m.value)
	}
	w.EndObject()
	return w.Buf, errors.Join(w.Err())
}
