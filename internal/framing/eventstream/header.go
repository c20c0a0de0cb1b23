package eventstream

import (
	"encoding/binary"
	"fmt"
	"iter"
	"math"
)

// Kind is the type of a header's value.
type Kind byte

// The types of value, with the numbers they have on the wire.
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

// kinds is how many types there are.
const kinds = 10

// fixedSize is the size of values of a type; -1 says that a length of two
// bytes stands before them.
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
	// Data is the value as it stands on the wire, without its length. It is
	// empty for booleans, which are told by their kind.
	Data []byte
}

// Text is a value of type String.
func Text(s string) Value { return Value{Kind: String, Data: []byte(s)} }

// Int returns the number of a value of an integer type or a timestamp, which
// counts milliseconds since 1970. ok is false for any other type.
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
		return dst, fmt.Errorf("%w: no such type as %d", ErrHeader, v.Kind)
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

// next cuts the first header off a block.
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

// few is how many headers are compared one by one.
const few = 16

// checkHeaders says what is wrong with a block: a header that does not fit, or
// one that is there twice, as two readers could see two values.
func checkHeaders(block []byte) error {
	var names [few][]byte
	var many map[string]bool
	n := 0
	for rest := block; len(rest) > 0; n++ {
		name, _, after, ok := next(rest)
		if !ok {
			return fmt.Errorf("%w: byte %d of them", ErrHeader, len(block)-len(rest))
		}
		rest = after
		for i := range min(n, few) {
			if string(names[i]) == string(name) {
				return fmt.Errorf("%w: %.40q is there twice", ErrHeader, name)
			}
		}
		if n < few {
			names[n] = name
			continue
		}
		if many[string(name)] {
			return fmt.Errorf("%w: %.40q is there twice", ErrHeader, name)
		}
		if many == nil {
			many = make(map[string]bool)
		}
		many[string(name)] = true
	}
	return nil
}

// All loops over the headers of a frame, in order.
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

// Text returns the value of a header of type String; nil where there is none.
func (f Frame) Text(name string) []byte {
	if v, ok := f.Get(name); ok && v.Kind == String {
		return v.Data
	}
	return nil
}
