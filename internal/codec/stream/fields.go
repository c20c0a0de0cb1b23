package stream

import (
	"bytes"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The bounds of [Fields].
const (
	MaxFields     = 64
	MaxFieldBytes = 64 << 10
)

// elementCost is the approximate memory of a list element without its text.
const elementCost = 48

// Fields collects the unknown fields of a message from the chunks of a stream, in the order
// of their first appearance. Servers send a field once, repeat it in each chunk, or spread
// a list over several chunks. Elements of a later list are appended, an element replaces an
// earlier one with the same index, and a list that begins with the earlier list replaces
// it. Any other value replaces the earlier one.
type Fields struct {
	// Replaced, if not nil, is called with the name of a field when part of its earlier
	// value is lost.
	Replaced func(name string)

	fields []streamedField
	at     map[string]int // positions in fields
	bytes  int
}

type streamedField struct {
	name  string
	value []byte // nil if the field is a list from several chunks
	list  []element
	index map[string]int // positions in list
	full  bool           // the list is too long to be split
}

// element is a list element. The index is empty if the element has no index field.
type element struct {
	raw   []byte
	index string
}

// Add stores a copy of a field. If the fields would exceed their bounds, it stores nothing
// and returns false. It takes time linear in the length of the value.
func (f *Fields) Add(name, value []byte, bound *Bound) bool {
	if len(value) == 0 {
		return true
	}
	i, found := f.at[string(name)]
	if !found {
		if len(f.fields) >= MaxFields || !f.take(len(name)+len(value), bound) {
			return false
		}
		if f.at == nil {
			f.at = map[string]int{}
		}
		f.at[string(name)] = len(f.fields)
		f.fields = append(f.fields, streamedField{name: string(name), value: bytes.Clone(value)})
		return true
	}
	old := &f.fields[i]
	if old.value != nil && bytes.Equal(old.value, value) {
		return true
	}
	if value[0] == '[' && (old.value == nil || old.value[0] == '[') {
		return f.merge(old, value, bound)
	}
	if !f.take(len(value)-old.size(), bound) {
		return false
	}
	f.lose(old)
	*old = streamedField{name: old.name, value: bytes.Clone(value)}
	return true
}

// merge adds the elements of a list to those of an earlier one.
func (f *Fields) merge(old *streamedField, value []byte, bound *Bound) bool {
	if old.full || len(value) > MaxFieldBytes {
		return false
	}
	later := split(value)
	if len(later) == 0 {
		return true
	}
	if old.value != nil { // the second list: split the first one, once
		earlier := split(old.value) // shares the copy in value
		if old.full = !f.take(sizeOf(earlier)-old.size(), bound); old.full {
			return false
		}
		old.value, old.list, old.index = nil, earlier, map[string]int{}
		for i, e := range earlier {
			if e.index != "" {
				old.index[e.index] = i
			}
		}
	}
	same := func(a, b element) bool { return bytes.Equal(a.raw, b.raw) }
	if n := len(old.list); len(later) >= n && slices.EqualFunc(later[:n], old.list, same) {
		later = later[n:]
	}
	var grows int
	for _, e := range later {
		grows += len(e.raw) + elementCost
		if i, found := old.index[e.index]; found {
			grows -= len(old.list[i].raw) + elementCost
		}
	}
	if !f.take(grows, bound) {
		return false
	}
	for _, e := range later {
		i, found := old.index[e.index]
		e.raw = bytes.Clone(e.raw)
		switch {
		case found && !same(e, old.list[i]):
			f.lose(old)
			old.list[i] = e
		case !found:
			if e.index != "" {
				old.index[e.index] = len(old.list)
			}
			old.list = append(old.list, e)
		}
	}
	return true
}

func (f *Fields) take(n int, bound *Bound) bool {
	if n > 0 && f.bytes+n > MaxFieldBytes || !bound.Take(n) {
		return false
	}
	f.bytes += n
	return true
}

func (f *Fields) lose(field *streamedField) {
	if f.Replaced != nil {
		f.Replaced(field.name)
	}
}

// size returns the number of bytes that the value counts for.
func (s *streamedField) size() int {
	if s.value != nil {
		return len(s.value)
	}
	return sizeOf(s.list)
}

func sizeOf(list []element) int {
	n := 0
	for _, e := range list {
		n += len(e.raw) + elementCost
	}
	return n
}

// split returns the elements of a list, which share its memory.
func split(list []byte) []element {
	var out []element
	r := jsonwire.NewReader(list)
	for range r.Array() {
		raw := r.Raw()
		out = append(out, element{raw, indexOf(raw)})
	}
	return out
}

// indexOf returns the index field of a list element if it is a number, or "".
func indexOf(raw []byte) (index string) {
	if len(raw) == 0 || raw[0] != '{' {
		return ""
	}
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		if string(key) == "index" && r.Kind() == '0' {
			index = string(r.Raw())
		} else {
			r.Skip()
		}
	}
	return index
}

// Extra returns the fields, or nil if there are no fields.
func (f *Fields) Extra(d dragoman.Dialect) *dragoman.Extra {
	if len(f.fields) == 0 {
		return nil
	}
	out := &dragoman.Extra{Dialect: d}
	pointer := strings.NewReplacer("~", "~0", "/", "~1")
	for _, field := range f.fields {
		value := field.value
		if value == nil {
			value = []byte{'['}
			for i, e := range field.list {
				if i > 0 {
					value = append(value, ',')
				}
				value = append(value, e.raw...)
			}
			value = append(value, ']')
		}
		out.Fields = append(out.Fields, dragoman.Field{Path: "/" + pointer.Replace(field.name), Value: value})
	}
	return out
}
