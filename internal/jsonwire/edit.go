package jsonwire

import "slices"

// Field is a field of an object: its name and its JSON value.
type Field struct{ Name, Value string }

// Without returns an object without some of its fields. Other values are returned unchanged.
func Without(object []byte, names ...string) []byte {
	r := NewReader(object)
	if r.Kind() != '{' {
		return object
	}
	var w Writer
	w.BeginObject()
	for key := range r.Object() {
		name := string(key)
		if value := r.Raw(); !slices.Contains(names, name) {
			w.RawField(name, value)
		}
	}
	w.EndObject()
	return w.Buf
}

// With returns an object with one field set.
func With(object []byte, name string, value []byte) []byte {
	return Fill(EditField(object, name, func([]byte) []byte { return value }), Field{name, string(value)})
}

// Fill returns an object with the given fields added, unless it has them already.
// Other values are returned unchanged.
func Fill(object []byte, fields ...Field) []byte {
	r := NewReader(object)
	if r.Kind() != '{' {
		return object
	}
	fields = slices.Clone(fields)
	var w Writer
	w.BeginObject()
	for key := range r.Object() {
		name := string(key)
		fields = slices.DeleteFunc(fields, func(f Field) bool { return f.Name == name })
		w.RawField(name, r.Raw())
	}
	for _, f := range fields {
		w.RawField(f.Name, []byte(f.Value))
	}
	w.EndObject()
	return w.Buf
}

// EditField returns an object with the value of one field changed, if it has that field.
// Other values are returned unchanged.
func EditField(object []byte, name string, change func([]byte) []byte) []byte {
	r := NewReader(object)
	if r.Kind() != '{' {
		return object
	}
	var w Writer
	w.BeginObject()
	for key := range r.Object() {
		field := string(key)
		value := r.Raw()
		if field == name {
			value = change(value)
		}
		w.RawField(field, value)
	}
	w.EndObject()
	return w.Buf
}

// EditEach returns a list with each element changed. Other values are returned unchanged.
func EditEach(list []byte, change func([]byte) []byte) []byte {
	r := NewReader(list)
	if r.Kind() != '[' {
		return list
	}
	out := []byte{'['}
	for range r.Array() {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, change(r.Raw())...)
	}
	return append(out, ']')
}

// TypeOf returns the field "type" of an object, or "" if it is not a string.
func TypeOf(object []byte) (name string) {
	r := NewReader(object)
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(key) == "type" && r.Kind() == '"' {
			name = r.String()
		} else {
			r.Skip()
		}
	}
	return name
}
