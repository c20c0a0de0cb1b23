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

// Writer appends JSON to Buf, which must contain only JSON. It writes commas itself and
// never escapes for HTML (quirk B33). The zero value is ready to use; calls must nest
// properly. Buf stays valid JSON for any input.
type Writer struct {
	Buf []byte
	err error
}

// ErrNotJSON reports a raw value that is not valid JSON.
var ErrNotJSON = errors.New("not a JSON value")

// Err returns an error for the first value given to Raw that was not valid JSON, with
// the field that it was for. Null was written instead.
func (w *Writer) Err() error { return w.err }

// sep writes a comma if one is needed. The last byte decides: no value ends with an
// opening bracket, a colon or a comma.
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

// Key writes a field name. The name must be plain ASCII without escapes.
func (w *Writer) Key(name string) {
	w.sep()
	w.Buf = append(w.Buf, '"')
	w.Buf = append(w.Buf, name...)
	w.Buf = append(w.Buf, '"', ':')
}

// QuotedKey writes an arbitrary field name.
func (w *Writer) QuotedKey(name string) {
	w.String(name)
	w.Buf = append(w.Buf, ':')
}

// String writes a string; text that is not UTF-8 becomes U+FFFD (quirk C17).
func (w *Writer) String(s string) {
	w.sep()
	w.Buf = appendQuote(w.Buf, s)
}

// appendQuote is a fast jsontext.AppendQuote, which works byte by byte, for text that
// mostly needs no escapes.
func appendQuote(dst []byte, s string) []byte {
	begin := len(dst)
	dst = slices.Grow(dst, len(s)+len(s)/8+quoteRoom)
	out, n := dst[:cap(dst)], begin+1
	out[begin] = '"'
	other := uint64(0) // the bitwise or of all non-ASCII bytes of s
	for i := 0; i < len(s); {
		if len(out)-n < quoteRoom {
			out = slices.Grow(out[:n], len(s)-i+(len(s)-i)/8+quoteRoom)
			out = out[:cap(out)]
		}
		if i+8 <= len(s) {
			w := eightBytes(s, i)
			other |= w & highs
			binary.LittleEndian.PutUint64(out[n:], w) // bytes after one to escape are overwritten later
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
		// Escapes come in pairs in JSON within text, because its escapes are escaped.
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

// quoteRoom is more than eight bytes, two escapes and a quote need.
const quoteRoom = 24

// escaped maps a byte to the byte after its backslash: 0 if it needs no escape, u if it
// is written in hexadecimal.
var escaped = func() (by [256]byte) {
	for c := range byte(' ') {
		by[c] = 'u'
	}
	for c, char := range unescaped {
		if char != 0 && c != '/' {
			by[char] = byte(c)
		}
	}
	return by
}()

// Raw writes a JSON value unchanged. A value that is not exactly one JSON value is an
// error, because it could change the structure around it.
func (w *Writer) Raw(v []byte) {
	if !valid(v) {
		if w.err == nil {
			w.err = fmt.Errorf("%w: %.60q%s", ErrNotJSON, v, w.field())
		}
		v = []byte("null")
	}
	w.Known(v)
}

// field returns the field name for which a value is being written, for errors.
func (w *Writer) field() string {
	name, ok := bytes.CutSuffix(w.Buf, []byte(`":`))
	if !ok {
		return ""
	}
	return fmt.Sprintf(" for %q", name[bytes.LastIndexByte(name, '"')+1:])
}

// Known writes a value that was already read or checked.
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

// StringField, IntField, BoolField, RawField and NullField write one field.
func (w *Writer) StringField(name, v string)     { w.Key(name); w.String(v) }
func (w *Writer) IntField(name string, v int64)  { w.Key(name); w.Int(v) }  // IntField writes one field.
func (w *Writer) BoolField(name string, v bool)  { w.Key(name); w.Bool(v) } // BoolField writes one field.
func (w *Writer) RawField(name string, v []byte) { w.Key(name); w.Raw(v) }  // RawField writes one field.
func (w *Writer) NullField(name string)          { w.Key(name); w.Null() }  // NullField writes one field.

// StringFieldIf writes a field unless its value is empty.
func (w *Writer) StringFieldIf(name, v string) {
	if v != "" {
		w.StringField(name, v)
	}
}

// StringFieldOrNull writes a field, with null for an empty value.
func (w *Writer) StringFieldOrNull(name, v string) {
	w.Key(name)
	if v == "" {
		w.Null()
	} else {
		w.String(v)
	}
}

// Edit replaces one range of a document.
type Edit struct {
	Start, End int64
	New        []byte
}

// Splice returns data with the edits applied; all other bytes stay unchanged. Edits
// must not overlap.
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

// ReplaceString returns doc with the strings at the given field paths replaced by
// value. A path that is absent, or has another type, is ignored. A string that already
// equals value keeps its spelling (such as "a\/b"). Each duplicate field is replaced,
// because readers disagree which one counts.
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

// Check returns nil if text is exactly one JSON value that every reader understands
// alike: valid syntax, valid UTF-8, no duplicate object key.
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

// understood reports whether a scan confirms text that is UTF-8.
func understood[T []byte | string](text T) bool {
	s := scan[T]{doc: text}
	return s.clear(nil) && !s.half
}

// checkSlowly returns what is wrong with text, if anything.
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
