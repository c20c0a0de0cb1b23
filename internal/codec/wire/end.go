package wire

import (
	"bytes"
	"slices"
)

// Field is the name of a field as it is searched for in an event: without the quote before
// it. Quotes are frequent, so a search that begins with one is slow.
type Field []byte

// NewField returns a name as a Field.
func NewField(name string) Field { return Field(name + `"`) }

// Name returns the name of the field.
func (f Field) Name() string { return string(bytes.TrimSuffix(f, []byte{'"'})) }

// IsSet reports whether a field of this name in data has a value other than null, false or
// an empty string. It does not parse data: within a string, the quote after a name has a
// backslash.
func (f Field) IsSet(data []byte) bool {
	for {
		i := bytes.Index(data, f)
		if i < 0 {
			return false
		}
		isName := i > 0 && data[i-1] == '"'
		data = data[i+len(f):]
		if value := bytes.TrimLeft(data[:min(len(data), 8)], ": "); isName && len(value) > 0 && value[0] != 'n' && value[0] != 'f' && !bytes.HasPrefix(value, []byte(`""`)) {
			return true
		}
	}
}

// End describes which events end a response. Dialects that name their events use Names,
// the others Field.
type End struct {
	// Names are the events that may end a response, Last those that nothing follows.
	Names, Last []string
	// Field is set in the event that ends the response. FieldIsLast means that nothing
	// follows it.
	Field       Field
	FieldIsLast bool
	// Path leads to the object with Field in an event.
	Path []any
	// Content means that the event with Field has content as well.
	Content bool
	// Mark is the data of the event after the last one.
	Mark string
}

// Named reports whether events are recognized by their names.
func (e *End) Named() bool { return len(e.Names) > 0 }

// May reports whether an event may end the response.
func (e *End) May(name, data []byte) bool {
	if e.Named() {
		return isNamed(name, data, e.Names)
	}
	return e.Field.IsSet(data) || e.Mark != "" && bytes.HasPrefix(bytes.TrimLeft(data[:min(len(data), markBytes)], " "), []byte(e.Mark))
}

// Is reports whether nothing follows an event that may end the response.
func (e *End) Is(name, data []byte) bool {
	switch {
	case e.Named():
		return isNamed(name, data, e.Last)
	case e.Mark != "":
		return bytes.Contains(data[:min(len(data), markBytes)], []byte(e.Mark))
	default:
		return e.FieldIsLast
	}
}

// markBytes limits the data that is searched for a mark.
const markBytes = 16

// isNamed reports whether an event has one of the names. If a server omits the name
// line, or sends the same name for all events, the field "type" has the name: at the
// beginning of the data, unless the server sorts its fields.
func isNamed(name, data []byte, names []string) bool {
	if len(name) == 0 || string(name) == "message" {
		begins := bytes.TrimLeft(data[:min(len(data), 64)], " {")
		typ, ok := bytes.CutPrefix(begins, []byte(`"type"`))
		if !ok {
			return slices.ContainsFunc(names, func(n string) bool {
				return bytes.Contains(data, []byte(`"type":"`+n+`"`)) || bytes.Contains(data, []byte(`"type": "`+n+`"`))
			})
		}
		name, _, _ = bytes.Cut(bytes.TrimLeft(typ, `: "`), []byte{'"'})
	}
	for _, n := range names { // runs for every event: a loop is faster than slices.ContainsFunc
		if string(name) == n {
			return true
		}
	}
	return false
}
