package eventstream

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

// Kind is the type of a header's value.
type Kind byte

// The value types, with their numbers on the wire.
const (
	True Kind = iota
	False
	Int8
	Int16
	Int32
	Int64
	Bytes
	String
	Timestamp
	UUID
)

// kinds is the number of types.
const kinds = 10

// fixedSize returns the size of values of a type; -1 means that a length of two bytes
// precedes them.
func fixedSize(k Kind) int {
	switch k {
	case True, False:
		return 0
	case Int8:
		return 1
	case Int16:
		return 2
	case Int32:
		return 4
	case Int64, Timestamp:
		return 8
	case UUID:
		return 16
	default:
		return -1
	}
}

// Value is the value of a header.
type Value struct {
	Kind Kind
	// Data is the value in wire format, without its length. It is empty for booleans,
	// whose kind is their value.
	Data []byte
}

// Text returns a value of type String.
func Text(s string) Value { return Value{Kind: String, Data: []byte(s)} }

// Int returns the value of an integer or of a timestamp, in milliseconds since 1970. ok
// is false for any other type.
func (v Value) Int() (n int64, ok bool) {
	if size := fixedSize(v.Kind); len(v.Data) != size {
		return 0, false
	}
	switch v.Kind {
	case Int8:
		return int64(int8(v.Data[0])), true
	case Int16:
		return int64(int16(binary.BigEndian.Uint16(v.Data))), true
	case Int32:
		return int64(int32(binary.BigEndian.Uint32(v.Data))), true
	case Int64, Timestamp:
		return int64(binary.BigEndian.Uint64(v.Data)), true
	default:
		return 0, false
	}
}

// Header is a named value.
type Header struct {
	Name  string
	Value Value
}

func (h Header) append(dst []byte) ([]byte, error) {
	v := h.Value
	size := fixedSize(v.Kind)
	switch {
	case len(h.Name) == 0 || len(h.Name) > math.MaxUint8:
		return dst, fmt.Errorf("%w: a name of %d bytes", ErrHeader, len(h.Name))
	case v.Kind >= kinds:
		return dst, fmt.Errorf("%w: unknown type %d", ErrHeader, v.Kind)
	case size >= 0 && len(v.Data) != size, len(v.Data) > math.MaxUint16:
		return dst, fmt.Errorf("%w: a value of %d bytes for type %d", ErrHeader, len(v.Data), v.Kind)
	}
	dst = append(dst, byte(len(h.Name)))
	dst = append(dst, h.Name...)
	dst = append(dst, byte(v.Kind))
	if size < 0 {
		dst = binary.BigEndian.AppendUint16(dst, uint16(len(v.Data)))
	}
	return append(dst, v.Data...), nil
}

// next splits the first header off a block.
func next(block []byte) (name []byte, v Value, rest []byte, ok bool) {
	n := int(block[0])
	if n == 0 || len(block) < 1+n+1 {
		return nil, Value{}, nil, false
	}
	name, v.Kind, rest = block[1:1+n], Kind(block[1+n]), block[2+n:]
	if v.Kind >= kinds {
		return nil, Value{}, nil, false
	}
	size := fixedSize(v.Kind)
	if size < 0 {
		if len(rest) < 2 {
			return nil, Value{}, nil, false
		}
		size, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
	}
	if len(rest) < size {
		return nil, Value{}, nil, false
	}
	v.Data, rest = rest[:size:size], rest[size:]
	return name, v, rest, true
}

// few is the number of headers that are compared one by one.
const few = 16

// checkHeaders returns an error for a header that does not fit into the block, or for a
// duplicate header, because two readers could see different values.
func checkHeaders(block []byte) error {
	var names [few][]byte
	var many map[string]bool
	n := 0
	for rest := block; len(rest) > 0; n++ {
		name, _, after, ok := next(rest)
		if !ok {
			return fmt.Errorf("%w: at byte %d of the headers", ErrHeader, len(block)-len(rest))
		}
		rest = after
		for i := range min(n, few) {
			if string(names[i]) == string(name) {
				return fmt.Errorf("%w: duplicate header %.40q", ErrHeader, name)
			}
		}
		if n < few {
			names[n] = name
			continue
		}
		if many[string(name)] {
			return fmt.Errorf("%w: duplicate header %.40q", ErrHeader, name)
		}
		if many == nil {
			many = make(map[string]bool)
		}
		many[string(name)] = true
	}
	return nil
}

// All returns an iterator over the headers of a frame, in order.
func (f Frame) All() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		for rest := f.Headers; len(rest) > 0; {
			name, v, after, ok := next(rest)
			if !ok || !yield(string(name), v) {
				return
			}
			rest = after
		}
	}
}

// Get returns the value of a header.
func (f Frame) Get(name string) (Value, bool) {
	for rest := f.Headers; len(rest) > 0; {
		have, v, after, ok := next(rest)
		if !ok {
			break
		}
		if string(have) == name {
			return v, true
		}
		rest = after
	}
	return Value{}, false
}

// Text returns the value of a header of type String, or nil.
func (f Frame) Text(name string) []byte {
	if v, ok := f.Get(name); ok && v.Kind == String {
		return v.Data
	}
	return nil
}
