package jsonwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Writer appends JSON to Buf, which holds JSON and nothing else. It places
// commas by itself and never escapes for HTML (quirk B33). The zero value is
// ready; calls must nest properly. Whatever it is given, Buf stays JSON.
type Writer struct {
	Buf []byte
	err error
}

// ErrNotJSON says that a value given as raw JSON is none.
var ErrNotJSON = errors.New("not a JSON value")

// Err returns the first value given to Raw that was not JSON, with the member
// it was meant for. A null was written in its place.
func (w *Writer) Err() error { return w.err }

// sep writes a comma where one belongs. The last byte tells: no value ends in
// an opening bracket, a colon or a comma.
func (w *Writer) sep() {
	if n := len(w.Buf); n > 0 {
		switch w.Buf[n-1] {
		case '{', '[', ':', ',':
		default:
			w.Buf = append(w.Buf, ',')
		}
	}
}

// BeginObject opens an object.
func (w *Writer) BeginObject() { w.sep(); w.Buf = append(w.Buf, '{') }

// EndObject closes an object.
func (w *Writer) EndObject() { w.Buf = append(w.Buf, '}') }

// BeginArray opens an array.
func (w *Writer) BeginArray() { w.sep(); w.Buf = append(w.Buf, '[') }

// EndArray closes an array.
func (w *Writer) EndArray() { w.Buf = append(w.Buf, ']') }

// Key writes a member's name. Names are ours: plain ASCII without escapes.
func (w *Writer) Key(name string) {
	w.sep()
	w.Buf = append(w.Buf, '"')
	w.Buf = append(w.Buf, name...)
	w.Buf = append(w.Buf, '"', ':')
}

// QuotedKey writes a member's name that is not ours.
func (w *Writer) QuotedKey(name string) {
	w.String(name)
	w.Buf = append(w.Buf, ':')
}

// String writes a string; what is not UTF-8 becomes U+FFFD (quirk C17).
func (w *Writer) String(s string) {
	w.sep()
	w.Buf = appendQuote(w.Buf, s)
}

// appendQuote is jsontext.AppendQuote, which goes byte by byte, for text of
// which most is written as it is.
func appendQuote(dst []byte, s string) []byte {
	begin := len(dst)
	dst = slices.Grow(dst, len(s)+len(s)/8+quoteRoom)
	out, n := dst[:cap(dst)], begin+1
	out[begin] = '"'
	other := uint64(0) // the bytes of s that are not ASCII, all in one
	for i := 0; i < len(s); {
		if len(out)-n < quoteRoom {
			out = slices.Grow(out[:n], len(s)-i+(len(s)-i)/8+quoteRoom)
			out = out[:cap(out)]
		}
		if i+8 <= len(s) {
			w := eight(s, i)
			other |= w & highs
			binary.LittleEndian.PutUint64(out[n:], w) // what is behind one to escape is written anew
			found := stops(w)
			if found == 0 {
				i, n = i+8, n+8
				continue
			}
			before := bits.TrailingZeros64(found) / 8
			i, n = i+before, n+before
		}
		c := s[i]
		i++
		switch e := escaped[c]; e {
		case 0:
			other |= uint64(c & utf8.RuneSelf)
			out[n] = c
			n++
			continue
		case 'u':
			const hex = "0123456789abcdef"
			n += copy(out[n:], []byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]})
		default:
			out[n], out[n+1] = '\\', e
			n += 2
		}
		// JSON within text has its escapes escaped: they come in pairs.
		if i < len(s) && (s[i] == '"' || s[i] == '\\') {
			out[n], out[n+1] = '\\', s[i]
			i, n = i+1, n+2
		}
	}
	if other != 0 && !utf8.ValidString(s) {
		out, _ = jsontext.AppendQuote(out[:begin], s)
		return out
	}
	out[n] = '"'
	return out[:n+1]
}

// quoteRoom is more than eight bytes, two escapes and a quote take.
const quoteRoom = 24

// escaped is what stands behind a backslash for a byte: zero for one that is written
// as it is, u for one that is written in digits.
var escaped = func() (by [256]byte) {
	for c := range byte(' ') {
		by[c] = 'u'
	}
	for c, said := range unescaped {
		if said != 0 && c != '/' {
			by[said] = byte(c)
		}
	}
	return by
}()

// Raw writes a JSON value as it is. A value that is not exactly one is an
// error: it could say more than its place allows.
func (w *Writer) Raw(v []byte) {
	if !valid(v) {
		if w.err == nil {
			w.err = fmt.Errorf("%w: %.60q%s", ErrNotJSON, v, w.member())
		}
		v = []byte("null")
	}
	w.Known(v)
}

// member names the member that a value is being written for.
func (w *Writer) member() string {
	name, ok := bytes.CutSuffix(w.Buf, []byte(`":`))
	if !ok {
		return ""
	}
	return fmt.Sprintf(" for %q", name[bytes.LastIndexByte(name, '"')+1:])
}

// Known writes a value that was read or checked before.
func (w *Writer) Known(v []byte) {
	w.sep()
	w.Buf = append(w.Buf, v...)
}

// Int writes an integer.
func (w *Writer) Int(n int64) {
	w.sep()
	w.Buf = strconv.AppendInt(w.Buf, n, 10)
}

// Bool writes a boolean.
func (w *Writer) Bool(v bool) {
	w.sep()
	w.Buf = strconv.AppendBool(w.Buf, v)
}

// Null writes null.
func (w *Writer) Null() { w.Known([]byte("null")) }

// StringField, IntField, BoolField, RawField and NullField write one member.
func (w *Writer) StringField(name, v string)     { w.Key(name); w.String(v) }
func (w *Writer) IntField(name string, v int64)  { w.Key(name); w.Int(v) }  // IntField writes one member.
func (w *Writer) BoolField(name string, v bool)  { w.Key(name); w.Bool(v) } // BoolField writes one member.
func (w *Writer) RawField(name string, v []byte) { w.Key(name); w.Raw(v) }  // RawField writes one member.
func (w *Writer) NullField(name string)          { w.Key(name); w.Null() }  // NullField writes one member.

// StringFieldIf writes a member unless its value is empty.
func (w *Writer) StringFieldIf(name, v string) {
	if v != "" {
		w.StringField(name, v)
	}
}

// StringFieldOrNull writes a member, with null for an empty value.
func (w *Writer) StringFieldOrNull(name, v string) {
	w.Key(name)
	if v == "" {
		w.Null()
	} else {
		w.String(v)
	}
}

// Edit replaces one span of a document.
type Edit struct {
	Start, End int64
	New        []byte
}

// Splice returns data with the edits applied; all other bytes stay as they
// are. Edits must not overlap.
func Splice(data []byte, edits ...Edit) []byte {
	slices.SortFunc(edits, func(a, b Edit) int { return int(a.Start - b.Start) })
	size := len(data)
	for _, e := range edits {
		size += len(e.New) - int(e.End-e.Start)
	}
	out := make([]byte, 0, size)
	var at int64
	for _, e := range edits {
		out = append(out, data[at:e.Start]...)
		out = append(out, e.New...)
		at = e.End
	}
	return append(out, data[at:]...)
}

// ReplaceString returns doc with the string values at the given paths of
// object members replaced by value. A path that is absent, or does not hold a
// string, is left alone, and so is a string that says value already, in
// whatever spelling ("a\/b"). A repeated member is replaced each time: readers
// disagree on which one counts.
func ReplaceString(doc []byte, value string, paths ...[]string) ([]byte, error) {
	r := NewReader(doc)
	quoted, _ := jsontext.AppendQuote(nil, value)
	var edits []Edit
	r.findStrings(paths, func(start, end int64) {
		if string(r.unquote(doc[start:end])) != value {
			edits = append(edits, Edit{start, end, quoted})
		}
	})
	if r.err != nil {
		return nil, r.err
	}
	return Splice(doc, edits...), nil
}

func (r *Reader) findStrings(paths [][]string, found func(start, end int64)) {
	for key := range r.Object() {
		var below [][]string
		here := false
		for _, p := range paths {
			if len(p) == 0 || p[0] != string(key) {
				continue
			}
			if len(p) == 1 {
				here = true
			} else {
				below = append(below, p[1:])
			}
		}
		switch k := r.Kind(); {
		case here && k == '"':
			v := r.Raw()
			if r.err == nil {
				end := r.dec.InputOffset()
				found(end-int64(len(v)), end)
			}
		case len(below) > 0 && k == '{':
			r.findStrings(below, found)
		default:
			r.Skip()
		}
	}
}

// Check says whether text is exactly one JSON value that every reader
// understands alike: valid syntax, valid UTF-8, no repeated object key.
func Check(text []byte) error {
	if utf8.Valid(text) && understood(text) {
		return nil
	}
	return checkSlowly(text)
}

// CheckText is Check for text in a string.
func CheckText(text string) error {
	if utf8.ValidString(text) && understood(text) {
		return nil
	}
	return checkSlowly([]byte(text))
}

// understood reports whether a scan vouches for text that is UTF-8.
func understood[T []byte | string](text T) bool {
	s := scan[T]{doc: text}
	return s.clear(nil) && !s.half
}

// checkSlowly finds out what is wrong with text, if anything is.
func checkSlowly(text []byte) error {
	if jsontext.Value(text).IsValid() {
		return nil
	}
	r := NewReader(text)
	dec := jsontext.NewDecoder(bytes.NewBuffer(text))
	_, err := dec.ReadValue()
	if err == nil {
		return &Error{Offset: dec.InputOffset(), Err: ErrTrailing}
	}
	r.fail(err)
	return r.err
}
