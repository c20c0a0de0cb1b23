// Package jsonwire reads and writes JSON in order and in one pass. It keeps the text of
// what it does not interpret.
//
// A [Reader] walks a document with plain loops:
//
//	r := jsonwire.NewReader(body)
//	for key := range r.Object() {
//		switch string(key) {
//		case "model":
//			model = r.String()
//		default:
//			extra = append(extra, field{string(key), r.Raw()})
//		}
//	}
//	if err := r.Err(); err != nil { ... }
//
// Errors are sticky: after the first one, every loop ends and every read returns a zero
// value, so a decoder checks once. Null reads as the zero value of any type, because
// real servers write null for everything.
//
// A loop does not allocate unless it is nested deeply within one function: write a
// function for each level.
package jsonwire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Error describes where a document differs from what the reader expected.
type Error struct {
	Pointer string
	Offset  int64
	Err     error
}

func (e *Error) Error() string {
	if e.Pointer == "" {
		return fmt.Sprintf("%v (byte %d)", e.Err, e.Offset)
	}
	return fmt.Sprintf("at %s: %v (byte %d)", e.Pointer, e.Err, e.Offset)
}

func (e *Error) Unwrap() error { return e.Err }

// ErrTrailing reports data after the end of the document.
var ErrTrailing = errors.New("unexpected data after the JSON value")

// Reader walks one JSON document. It is lenient: it allows duplicate fields (a loop
// sees each of them, so the last one wins), and replaces text that is not UTF-8 by
// U+FFFD (quirk C17).
type Reader struct {
	data []byte
	dec  cursor
	err  error
	key  []byte
	// clear is the flag of the Value that is read.
	clear bool
}

// NewReader returns a reader for data, which must not change while the reader or a
// slice that it returned is in use.
func NewReader(data []byte) *Reader {
	r := new(Reader)
	r.Reset(data)
	return r
}

// readers holds readers for reuse.
var readers = sync.Pool{New: func() any { return new(Reader) }}

// Borrow is like [NewReader] with a reader from a pool; give it back with
// [Reader.Return]. Most readers are needed only within one function, and a message
// takes several.
func Borrow(data []byte) *Reader {
	r := readers.Get().(*Reader)
	r.Reset(data)
	return r
}

// Return puts a borrowed reader back into the pool; it must not be used afterwards.
// Values that it returned stay valid, except for keys.
func (r *Reader) Return() {
	r.Reset(nil)
	readers.Put(r)
}

// Reset makes the reader start over with data.
func (r *Reader) Reset(data []byte) {
	r.data, r.err, r.clear = data, nil, false
	r.dec.reset(data)
}

// Err returns the first error.
func (r *Reader) Err() error { return r.err }

// Fail makes err the error of the reader, at the position of the last value, unless the
// reader has an error.
func (r *Reader) Fail(err error) {
	if r.err == nil {
		r.err = &Error{Pointer: clip(r.dec.StackPointer()), Offset: r.dec.InputOffset(), Err: err}
	}
}

// FailBelow is like Fail, for an error inside the last value, which starts at start and
// was read separately.
func (r *Reader) FailBelow(err *Error, start int64) {
	if r.err == nil {
		r.err = &Error{Pointer: clip(r.dec.StackPointer() + jsontext.Pointer(err.Pointer)), Offset: start + err.Offset, Err: err.Err}
	}
}

// maxPointer limits the pointer in an error: a hostile document must not determine the
// length of an error that a person or a model reads.
const maxPointer = 256

func clip(p jsontext.Pointer) string {
	if len(p) <= maxPointer {
		return string(p)
	}
	return strings.ToValidUTF8(string(p[:maxPointer]), "") + "…"
}

func (r *Reader) fail(err error) {
	if r.err != nil {
		return
	}
	var syn *jsontext.SyntacticError
	if errors.As(err, &syn) {
		r.err = &Error{Pointer: clip(syn.JSONPointer), Offset: syn.ByteOffset, Err: syn.Err}
		return
	}
	if errors.Is(err, io.EOF) { // an empty document
		err = io.ErrUnexpectedEOF
	}
	r.Fail(err)
}

// End checks that nothing but white space follows the document.
func (r *Reader) End() error {
	if r.err == nil && len(bytes.TrimLeft(r.data[r.dec.InputOffset():], " \t\r\n")) > 0 {
		r.Fail(ErrTrailing)
	}
	return r.err
}

// Pointer returns the JSON pointer of the value just read or being read.
func (r *Reader) Pointer() string { return string(r.dec.StackPointer()) }

// Offset returns the offset after the last value or token.
func (r *Reader) Offset() int64 { return r.dec.InputOffset() }

// Rest returns the document from the next value on, to look ahead.
func (r *Reader) Rest() []byte { return r.RestFrom(r.dec.InputOffset()) }

// RestFrom returns the document from an earlier Offset on.
func (r *Reader) RestFrom(offset int64) []byte {
	return bytes.TrimLeft(r.data[offset:], " \t\r\n,:")
}

// Kind returns the kind of the next value: one of n t f " 0 { [, or 0 after an error.
func (r *Reader) Kind() jsontext.Kind {
	if r.err != nil {
		return 0
	}
	switch k := r.dec.PeekKind(); k {
	case 0, '}', ']':
		// Reading reports why there is no next value.
		err := r.dec.readBracket()
		if err == nil {
			err = errors.New("want a value, have the end of the list")
		}
		r.fail(err)
		return 0
	default:
		return k
	}
}

// Null consumes a null and reports whether the next value was null.
func (r *Reader) Null() bool {
	if r.Kind() != 'n' {
		return false
	}
	r.Skip()
	return r.err == nil
}

// mistyped fails with what was expected and what was found.
func (r *Reader) mistyped(want string) {
	k := r.Kind()
	if r.err != nil {
		return
	}
	v, err := r.dec.ReadValue() // so that the pointer names the value
	if err != nil {
		r.fail(err)
		return
	}
	e := &Error{
		Pointer: clip(r.dec.StackPointer()),
		Offset:  r.dec.InputOffset() - int64(len(v)),
		Err:     fmt.Errorf("want %s, have %s", want, kindName(k)),
	}
	r.err = e
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return "the end"
	}
}

// Object loops over the fields of the next value, which must be an object or null. The
// loop body must consume each value, at least with Skip. A key is valid until the next
// read.
func (r *Reader) Object() iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		switch r.Kind() {
		case '{':
		case 'n':
			r.Skip()
			return
		default:
			r.mistyped("an object")
			return
		}
		if err := r.dec.readBracket(); err != nil {
			r.fail(err)
			return
		}
		for r.err == nil {
			if r.dec.PeekKind() == '}' {
				if err := r.dec.readBracket(); err != nil {
					r.fail(err)
				}
				return
			}
			name, err := r.dec.ReadValue()
			if err != nil {
				r.fail(err)
				return
			}
			if !yield(r.unquoteKey(name)) {
				return
			}
		}
	}
}

func (r *Reader) unquoteKey(name []byte) []byte {
	inner := name[1 : len(name)-1]
	if plain(inner) {
		return inner
	}
	r.key = appendUnquote(r.key[:0], name)
	return r.key
}

// plain reports whether the inside of a quoted string is the string itself.
func plain(inner []byte) bool {
	if len(inner) > 32 {
		return bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner)
	}
	for _, c := range inner {
		if c == '\\' || c >= utf8.RuneSelf {
			return bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner)
		}
	}
	return true
}

// Array loops over the elements of the next value, which must be an array or null. The
// loop body must consume each element.
func (r *Reader) Array() iter.Seq[int] {
	return func(yield func(int) bool) {
		switch r.Kind() {
		case '[':
		case 'n':
			r.Skip()
			return
		default:
			r.mistyped("an array")
			return
		}
		if err := r.dec.readBracket(); err != nil {
			r.fail(err)
			return
		}
		for i := 0; r.err == nil; i++ {
			if r.dec.PeekKind() == ']' {
				if err := r.dec.readBracket(); err != nil {
					r.fail(err)
				}
				return
			}
			mark := r.dec.InputOffset()
			if r.Kind() == 0 || !yield(i) {
				return
			}
			if r.dec.InputOffset() == mark { // otherwise the loop would never end
				r.Skip()
			}
		}
	}
}

// Skip consumes the next value.
func (r *Reader) Skip() {
	if r.err == nil {
		if err := r.dec.SkipValue(); err != nil {
			r.fail(err)
		}
	}
}

// Raw consumes the next value and returns its text, a slice of the document.
func (r *Reader) Raw() []byte {
	if r.err != nil {
		return nil
	}
	v, err := r.dec.ReadValue()
	if err != nil {
		r.fail(err)
		return nil
	}
	end := r.dec.InputOffset()
	start := end - int64(len(v))
	return r.data[start:end:end]
}

// Value consumes the next value and returns its text, a slice of the document, with the
// results of earlier scans.
func (r *Reader) Value() Value {
	raw := r.Raw()
	if r.dec.slow != nil {
		return Value{Raw: raw}
	}
	return Value{Raw: raw, long: r.dec.long, base: r.dec.base + r.dec.pos - len(raw), clear: r.clear}
}

// Clear reports whether the whole document is known to pass Check.
func (r *Reader) Clear() bool { return r.clear }

// quoted consumes a string and returns its text with quotes; nil for null.
func (r *Reader) quoted(want string) []byte {
	switch r.Kind() {
	case '"':
		return r.Raw()
	case 'n':
		r.Skip()
	default:
		r.mistyped(want)
	}
	return nil
}

// String consumes a string.
func (r *Reader) String() string {
	q := r.quoted("a string")
	if len(q) <= 2 {
		return ""
	}
	return string(r.unquote(q))
}

// StringLike consumes a string that probably equals have, such as the fields that every chunk of a
// stream repeats. It allocates only if the string differs. Null reads as the empty string.
func (r *Reader) StringLike(have string) string {
	q := r.quoted("a string")
	if len(q) <= 2 {
		return ""
	}
	if s := r.unquote(q); string(s) != have {
		return string(s)
	}
	return have
}

// StringOneOf consumes a string that is probably one of these. It allocates only for any
// other string.
func (r *Reader) StringOneOf(these ...string) string {
	q := r.quoted("a string")
	if len(q) <= 2 {
		return ""
	}
	s := r.unquote(q)
	for _, this := range these {
		if string(s) == this {
			return this
		}
	}
	return string(s)
}

// AppendString consumes a string and appends it to dst.
func (r *Reader) AppendString(dst []byte) []byte {
	q := r.quoted("a string")
	if len(q) <= 2 {
		return dst
	}
	return append(dst, r.unquote(q)...)
}

// unquote returns the content of a quoted string, valid until the next read.
func (r *Reader) unquote(q []byte) []byte { return r.unquoteKey(q) }

// CutString splits the quoted string off the beginning of a text. ok is false if the
// text does not begin with a string.
func CutString(text []byte) (quoted, rest []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, text, false
	}
	end, _ := textEnd(text, 1)
	if end == none {
		return nil, text, false
	}
	return text[:end:end], text[end:], true
}

// AppendUnquote appends the content of a quoted string, like [Reader.AppendString].
func AppendUnquote(dst, quoted []byte) []byte {
	if inner := quoted[1 : len(quoted)-1]; plain(inner) {
		return append(dst, inner...)
	}
	return appendUnquote(dst, quoted)
}

// Bool consumes a boolean.
func (r *Reader) Bool() bool {
	switch r.Kind() {
	case 't':
		r.Skip()
		return r.err == nil
	case 'f', 'n':
		r.Skip()
	default:
		r.mistyped("a boolean")
	}
	return false
}

// Number consumes a number and returns its text; it returns "" for null. It also
// accepts a number in a string, because some servers write int64 that way.
func (r *Reader) Number() string {
	switch r.Kind() {
	case '0':
		return string(r.Raw())
	case '"':
		q := r.Raw()
		if r.err != nil {
			return ""
		}
		s := string(r.unquote(q))
		// Accept only JSON numbers: "NaN" or "0x1p4" would break the next wire.
		if v := jsontext.Value(s); v.Kind() != '0' || !v.IsValid() || strings.TrimSpace(s) != s {
			r.err = &Error{
				Pointer: clip(r.dec.StackPointer()),
				Offset:  r.dec.InputOffset() - int64(len(q)),
				Err:     fmt.Errorf("want a number, have the string %.40q", s),
			}
			return ""
		}
		return s
	case 'n':
		r.Skip()
	default:
		r.mistyped("a number")
	}
	return ""
}

// Int consumes an integer. It truncates a fraction, and saturates a number out of
// range: counters of real servers are not always clean, and none of them justifies
// losing a response.
func (r *Reader) Int() int64 {
	var s string
	if r.Kind() == '0' {
		raw := r.Raw()
		if n, ok := smallInt(raw); ok {
			return n
		}
		s = string(raw)
	} else {
		s = r.Number()
	}
	if s == "" {
		return 0
	}
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n
	}
	f, _ := strconv.ParseFloat(s, 64)
	switch {
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(f)
	}
}

// Integer consumes an integer that a person or program chose, unlike the counters that
// Int is for: it fails for a number that does not fit or has a fraction. 40.0 and 4e1
// are integers.
func (r *Reader) Integer() int64 {
	begin := r.Rest()
	s := r.Number()
	n, ok := integer(s)
	if !ok && s != "" && r.err == nil {
		r.err = &Error{
			Pointer: clip(r.dec.StackPointer()),
			Offset:  int64(len(r.data) - len(begin)),
			Err:     fmt.Errorf("want a whole number of 64 bits, have %.40s", s),
		}
	}
	return n
}

// Count consumes a count: a non-negative integer, in a string or not. ok is false for
// null and for anything else. That is not an error, because no count justifies losing a
// response.
func (r *Reader) Count() (n int64, ok bool) {
	k := r.Kind()
	raw := r.Raw()
	switch {
	case r.err != nil:
		return 0, false
	case k == '"':
		raw, _ = jsontext.AppendUnquote(nil, raw) // unquote into new memory: the current key stays valid
		if v := jsontext.Value(raw); v.Kind() != '0' || !v.IsValid() {
			return 0, false
		}
	case k != '0':
		return 0, false
	}
	if n, ok = smallInt(raw); !ok {
		n, ok = integer(string(bytes.TrimSpace(raw)))
	}
	if n < 0 {
		return 0, false
	}
	return n, ok
}

// integer returns the value of a JSON number if it is an integer of 64 bits. It uses
// the digits, because a float would round 2^53+1.
func integer(s string) (int64, bool) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, true
	}
	mantissa, power, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	sign := ""
	if rest, negative := strings.CutPrefix(whole, "-"); negative {
		sign, whole = "-", rest
	}
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, true // for any exponent
	}
	exponent := 0
	if power != "" {
		var err error
		if exponent, err = strconv.Atoi(power); err != nil {
			return 0, false
		}
	}
	kept := strings.TrimRight(digits, "0")
	zeros := exponent - len(fraction) + len(digits) - len(kept)
	if zeros < 0 || zeros > 19 || len(kept) > 19 {
		return 0, false
	}
	n, err := strconv.ParseInt(sign+kept+strings.Repeat("0", zeros), 10, 64)
	return n, err == nil
}

// smallInt reads a typical counter: up to 18 digits.
func smallInt(raw []byte) (n int64, ok bool) {
	if len(raw) == 0 || len(raw) > 18 {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

// PlaceAt prefixes the position in an error with the position of the element that
// contains it. base is the offset of the element in the document, or -1 if it is
// unknown.
func PlaceAt(path string, base int64, err error) error {
	out := &Error{Pointer: path, Offset: base, Err: err}
	var at *Error
	if errors.As(err, &at) {
		out.Pointer, out.Err = path+at.Pointer, at.Err
		if base >= 0 && at.Offset >= 0 {
			out.Offset = base + at.Offset
		}
	}
	return out
}

// Quote returns a text as a JSON string.
func Quote(s string) []byte {
	var w Writer
	w.String(s)
	return w.Buf
}

// Unquote returns the text of a JSON string, and "" for any other value.
func Unquote(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return NewReader(raw).String()
}
