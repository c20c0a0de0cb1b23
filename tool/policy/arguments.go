package policy

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// arguments holds the arguments of a call as a CEL map. Values are decoded on first use,
// because most expressions read one or two.
type arguments struct {
	facts  *facts
	fields []argument
	byName map[string]int // index in fields by name; nil if there are few fields
	whole  traits.Mapper  // all values; nil until all are used
}

// fewFields is the number of fields up to which a linear search is faster than a map.
const fewFields = 16

type argument struct {
	name  string
	raw   []byte
	value ref.Val // nil until it is decoded
}

var _ traits.Mapper = (*arguments)(nil)

// arguments returns the arguments of the call as a CEL map, or a CEL error.
func (f *facts) arguments() ref.Val {
	if f.args == nil {
		f.args = readArguments(f, f.q.Input.Arguments)
	}
	if err, bad := f.args.(*types.Err); bad {
		f.unreadable = err.Unwrap()
	}
	return f.args
}

// readArguments finds the fields of the arguments. It returns a CEL error if they cannot be
// read.
func readArguments(f *facts, raw []byte) ref.Val {
	a := &arguments{facts: f}
	if len(raw) == 0 {
		return a
	}
	if !utf8.Valid(raw) {
		return types.WrapErr(errors.New("the arguments are not UTF-8"))
	}
	r := jsonwire.NewReader(raw)
	a.fields = make([]argument, 0, 8)
	for key := range r.Object() {
		name := string(key)
		if a.find(name) != nil {
			r.Fail(fmt.Errorf("duplicate field %q", name))
		}
		a.add(argument{name: name, raw: r.Raw()})
	}
	if err := r.End(); err != nil {
		return types.WrapErr(fmt.Errorf("the arguments: %w", err))
	}
	return a
}

func (a *arguments) add(m argument) {
	a.fields = append(a.fields, m)
	switch {
	case a.byName != nil:
		a.byName[m.name] = len(a.fields) - 1
	case len(a.fields) > fewFields:
		a.byName = make(map[string]int, 2*fewFields)
		for i := range a.fields {
			a.byName[a.fields[i].name] = i
		}
	}
}

func (a *arguments) find(name string) *argument {
	if a.byName != nil {
		if i, ok := a.byName[name]; ok {
			return &a.fields[i]
		}
		return nil
	}
	for i := range a.fields {
		if a.fields[i].name == name {
			return &a.fields[i]
		}
	}
	return nil
}

// read returns the value of a field. A value that cannot be read fails the expression.
func (a *arguments) read(m *argument) ref.Val {
	if m.value == nil {
		v, err := celRaw(m.raw)
		if err != nil {
			v = types.WrapErr(fmt.Errorf("the argument %q: %w", m.name, err))
		}
		m.value = v
	}
	if err, bad := m.value.(*types.Err); bad {
		a.facts.unreadable = err.Unwrap()
	}
	return m.value
}

// all returns a map with all values.
func (a *arguments) all() traits.Mapper {
	for i := range a.fields { // set again, so that this expression fails too
		a.read(&a.fields[i])
	}
	if a.whole == nil {
		values := make(map[string]ref.Val, len(a.fields))
		for _, m := range a.fields {
			values[m.name] = m.value
		}
		a.whole = types.NewMap(types.DefaultTypeAdapter, values)
	}
	return a.whole
}

// FindStringKey implements the lookup of args.name in CEL.
func (a *arguments) FindStringKey(name string) (any, bool) {
	if m := a.find(name); m != nil {
		return a.read(m), true
	}
	return nil, false
}

// The other methods of a CEL map.

func (a *arguments) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return a.all().Find(key)
	}
	if m := a.find(string(name)); m != nil {
		return a.read(m), true
	}
	return nil, false
}

func (a *arguments) Contains(key ref.Val) ref.Val {
	if name, ok := key.(types.String); ok {
		return types.Bool(a.find(string(name)) != nil)
	}
	return a.all().Contains(key)
}

func (a *arguments) Get(key ref.Val) ref.Val {
	if v, ok := a.Find(key); ok {
		return v
	}
	return a.all().Get(key)
}

func (a *arguments) Size() ref.Val                               { return types.Int(len(a.fields)) }
func (a *arguments) Iterator() traits.Iterator                   { return a.all().Iterator() }
func (a *arguments) Fold(f traits.Folder)                        { types.ToFoldableMap(a.all()).Fold(f) }
func (a *arguments) Equal(other ref.Val) ref.Val                 { return a.all().Equal(other) }
func (a *arguments) ConvertToType(t ref.Type) ref.Val            { return a.all().ConvertToType(t) }
func (a *arguments) Type() ref.Type                              { return types.MapType }
func (a *arguments) Value() any                                  { return a.all().Value() }
func (a *arguments) ConvertToNative(t reflect.Type) (any, error) { return a.all().ConvertToNative(t) }

// celRaw decodes a JSON value that is known to be valid.
func celRaw(raw []byte) (ref.Val, error) {
	switch raw[0] {
	case '"':
		if inner := raw[1 : len(raw)-1]; !strings.Contains(string(inner), `\`) {
			return types.String(inner), nil
		}
	case 't':
		return types.True, nil
	case 'f':
		return types.False, nil
	case 'n':
		return types.NullValue, nil
	case '{', '[':
	default:
		return celNumber(string(raw))
	}
	r := jsonwire.NewReader(raw)
	v := celValue(r)
	return v, r.End()
}

// celValue decodes the next value. The reader holds its errors.
func celValue(r *jsonwire.Reader) ref.Val {
	switch r.Kind() {
	case '{':
		m := map[string]ref.Val{}
		for key := range r.Object() {
			name := string(key)
			if _, twice := m[name]; twice {
				r.Fail(fmt.Errorf("duplicate field %q", name))
			}
			m[name] = celValue(r)
		}
		return types.NewMap(types.DefaultTypeAdapter, m)
	case '[':
		var list []ref.Val
		for range r.Array() {
			list = append(list, celValue(r))
		}
		return types.NewRefValList(types.DefaultTypeAdapter, list)
	case '"':
		return types.String(r.String())
	case 't', 'f':
		return types.Bool(r.Bool())
	case 'n':
		r.Skip()
		return types.NullValue
	case '0':
		v, err := celNumber(r.Number())
		if err != nil {
			r.Fail(err)
		}
		return v
	default:
		r.Fail(errors.New("not a JSON value"))
		return types.NullValue
	}
}

// exactBelow is the limit below which a double holds every integer exactly.
const exactBelow = 1 << 53

// celNumber converts a JSON number to the CEL number with the same value. It fails if there is
// no such number.
func celNumber(s string) (ref.Val, error) {
	if !strings.ContainsAny(s, ".eE") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return types.Int(n), nil
		}
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			return types.Uint(n), nil
		}
		return types.NullValue, fmt.Errorf("%s has more than 64 bits, so expressions cannot use it", clip(s))
	}
	f, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return types.NullValue, fmt.Errorf("%s is too large for a double, so expressions cannot use it", clip(s))
	case f == 0 && strings.ContainsAny(mantissa(s), "123456789"):
		return types.NullValue, fmt.Errorf("%s is too small for a double, so expressions cannot use it", clip(s))
	case math.Abs(f) >= exactBelow:
		return celLarge(s, f)
	default:
		return types.Double(f), nil
	}
}

func mantissa(s string) string {
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		return s[:i]
	}
	return s
}

// maxNumber limits the digits of a number that is converted exactly.
const maxNumber = 400

// celLarge converts a number that was written with a point or an exponent and whose double f
// has no room for a fraction. CEL would round an integer that is compared with it to a double,
// so the number becomes an integer if it is one.
func celLarge(s string, f float64) (ref.Val, error) {
	var r *big.Rat
	if len(s) <= maxNumber {
		r, _ = new(big.Rat).SetString(s)
	}
	switch {
	case r == nil || r.Cmp(new(big.Rat).SetFloat64(f)) != 0:
		return types.NullValue, fmt.Errorf("%s has no exact double, so expressions cannot use it", clip(s))
	case r.Num().IsInt64():
		return types.Int(r.Num().Int64()), nil
	case r.Num().IsUint64():
		return types.Uint(r.Num().Uint64()), nil
	case roundsIntegers(f):
		return types.NullValue, fmt.Errorf("%s has more than 64 bits, so expressions cannot use it", clip(s))
	default:
		return types.Double(f), nil
	}
}

// roundsIntegers reports whether comparing an integer with f may round the integer: f is
// beyond 2^53 and within the range of integers.
func roundsIntegers(f float64) bool {
	return f >= exactBelow && f <= 1<<64 || f <= -exactBelow && f >= -1<<63
}

// clip shortens a number for an error message.
func clip(s string) string {
	const most = 40
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
