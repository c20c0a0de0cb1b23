package jsonwire

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth is the maximum nesting of objects and lists, as in jsontext.
const maxDepth = 10000

// none is the end of an invalid value.
const none = -1

// Constants for processing eight bytes at a time: the same value in each byte.
const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// stops marks the bytes of w that need attention in a string: quotes, backslashes and
// control characters. The lowest mark is exact; a higher one may be a false positive.
func stops(w uint64) uint64 {
	quote, escape := w^(ones*'"'), w^(ones*'\\')
	return ((quote-ones)&^quote | (escape-ones)&^escape | (w-ones*' ')&^w) & highs
}

// eightBytes returns the eight bytes of doc at i, the first in the lowest bits.
func eightBytes[T []byte | string](doc T, i int) uint64 {
	b := doc[i : i+8]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// textEnd returns the end of the string whose text begins at i, after its quote, or
// none if it is not a valid JSON string. It does not check UTF-8. half means that an
// escape is a surrogate, which may or may not be part of a pair.
func textEnd[T []byte | string](doc T, i int) (end int, half bool) {
	for i+8 <= len(doc) {
		// Words are processed in sequence even if they contain escapes, so that the
		// processor can load the next word before it knows where an escape ends.
		w := eightBytes(doc, i)
		next := i + 8
		for found := stops(w); found != 0; {
			at := i + bits.TrailingZeros64(found)/8
			if doc[at] == '"' {
				return at + 1, half
			}
			if doc[at] != '\\' {
				if doc[at] < ' ' {
					return none, false
				}
				found &= found - 1 // a false positive
				continue
			}
			if at+1 >= len(doc) {
				return none, false
			}
			if unescaped[doc[at+1]] == 0 {
				r, ok := hex4(doc, at+2)
				if doc[at+1] != 'u' || !ok {
					return none, false
				}
				half = half || surrogate(r)
				next = at + 6
				break
			}
			next = max(next, at+2)
			found &= ^uint64(0) << (8 * (at + 2 - i))
		}
		i = next
	}
	return textTail(doc, i, half)
}

// textTail is textEnd for the last bytes of a document.
func textTail[T []byte | string](doc T, i int, half bool) (int, bool) {
	for ; i < len(doc); i++ {
		switch c := doc[i]; {
		case c == '"':
			return i + 1, half
		case c < ' ':
			return none, false
		case c != '\\':
		case i+1 < len(doc) && unescaped[doc[i+1]] != 0:
			i++
		default:
			r, ok := hex4(doc, i+2)
			if !ok || doc[i+1] != 'u' {
				return none, false
			}
			half = half || surrogate(r)
			i += 5
		}
	}
	return none, false
}

// surrogate reports whether r is one half of a surrogate pair.
func surrogate(r rune) bool { return 0xd800 <= r && r < 0xe000 }

// unescaped maps the byte after a backslash to its value, for escapes of one byte.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// hex4 returns the value of the four hexadecimal digits at i.
func hex4[T []byte | string](doc T, i int) (n rune, ok bool) {
	if i+4 > len(doc) {
		return 0, false
	}
	for _, c := range []byte(doc[i : i+4]) {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		n = n<<4 | rune(c)
	}
	return n, true
}

// space returns the end of the white space at i, if any.
func space[T []byte | string](doc T, i int) int {
	for i < len(doc) && doc[i] <= ' ' && (doc[i] == ' ' || doc[i] == '\n' || doc[i] == '\t' || doc[i] == '\r') {
		i++
	}
	return i
}

// numeralEnd returns the end of the number that begins at i, or none.
func numeralEnd[T []byte | string](doc T, i int) int {
	if doc[i] == '-' {
		i++
	}
	if i < len(doc) && doc[i] == '0' {
		i++
	} else if i = digits(doc, i); i == none {
		return none
	}
	if i < len(doc) && doc[i] == '.' {
		if i = digits(doc, i+1); i == none {
			return none
		}
	}
	if i < len(doc) && doc[i]|0x20 == 'e' {
		i++
		if i < len(doc) && (doc[i] == '+' || doc[i] == '-') {
			i++
		}
		return digits(doc, i)
	}
	return i
}

// digits returns the end of the digits at i, or none if there is no digit.
func digits[T []byte | string](doc T, i int) int {
	start := i
	for i < len(doc) && doc[i]-'0' <= 9 {
		i++
	}
	if i == start {
		return none
	}
	return i
}

// wordEnd returns the end of the literal word at i, or none.
func wordEnd[T []byte | string](doc T, i int, word string) int {
	if end := i + len(word); end <= len(doc) && string(doc[i:end]) == word {
		return end
	}
	return none
}

// scan checks a document in one fast pass. If it cannot confirm that a document is
// valid, jsontext decides.
type scan[T []byte | string] struct {
	doc T
	// names are the field names of the open objects, used if once forbids duplicates.
	names []nameAt
	once  bool
	// half means that an escape is a surrogate, which may or may not be part of a pair.
	half bool
	// long are the long values, in order of their start, if note is set.
	long []span
	note bool
}

// span is the range of a value.
type span struct{ start, end int }

// manyBytes is the minimum length of a value whose end is recorded.
const manyBytes = 128

// nameAt is the range of a name, and a hash that is compared first.
type nameAt struct {
	start, end int
	hash       uint64
}

// manyNames is the maximum number of names that are compared with each other. Objects
// with more are left to jsontext, which uses a map.
const manyNames = 64

// unused holds lists of names for reuse.
var unused = sync.Pool{New: func() any { return new([]nameAt) }}

// manyOpen is the maximum capacity of a list that is kept for reuse; a larger one is
// rarely needed.
const manyOpen = 1 << 10

// clear is like whole, and also requires that no object has a duplicate field.
func (s *scan[T]) clear(k Known) bool {
	names := unused.Get().(*[]nameAt)
	s.once, s.names = true, (*names)[:0]
	ok := s.whole(k)
	if *names = s.names; cap(s.names) <= manyOpen {
		unused.Put(names)
	}
	return ok
}

// value returns the end of the value that begins at i, within depth open objects and
// lists.
func (s *scan[T]) value(i, depth int, k Known) int {
	if !s.note {
		return s.pass(i, depth, k)
	}
	n := len(s.long)
	s.long = append(s.long, span{i, none})
	end := s.pass(i, depth, k)
	if end-i < manyBytes {
		s.long = s.long[:n]
	} else {
		s.long[n].end = end
	}
	return end
}

// pass is value without recording long values.
func (s *scan[T]) pass(i, depth int, k Known) int {
	if i >= len(s.doc) {
		return none
	}
	switch c := s.doc[i]; c {
	case '"':
		end, half := textEnd(s.doc, i+1)
		s.half = s.half || half
		return end
	case '{':
		return s.object(i+1, depth+1, k)
	case '[':
		return s.list(i+1, depth+1, k)
	case 't':
		return wordEnd(s.doc, i, "true")
	case 'f':
		return wordEnd(s.doc, i, "false")
	case 'n':
		return wordEnd(s.doc, i, "null")
	default:
		if c == '-' || c-'0' <= 9 {
			return numeralEnd(s.doc, i)
		}
		return none
	}
}

func (s *scan[T]) list(i, depth int, k Known) int {
	if depth > maxDepth {
		return none
	}
	i = space(s.doc, i)
	if i < len(s.doc) && s.doc[i] == ']' {
		return i + 1
	}
	for {
		if i = s.value(i, depth, k); i == none {
			return none
		}
		more := false
		if i, more = s.next(i, ']'); !more {
			return i
		}
	}
}

// next returns the start of the next element after the one that ends at i. If there is
// no next element, it returns the end of the container; none means that the syntax is
// invalid.
func (s *scan[T]) next(i int, closing byte) (at int, more bool) {
	if i = space(s.doc, i); i >= len(s.doc) {
		return none, false
	}
	switch s.doc[i] {
	case ',':
		return space(s.doc, i+1), true
	case closing:
		return i + 1, false
	default:
		return none, false
	}
}

func (s *scan[T]) object(i, depth int, k Known) int {
	if depth > maxDepth {
		return none
	}
	i = space(s.doc, i)
	if i < len(s.doc) && s.doc[i] == '}' {
		return i + 1
	}
	outside := len(s.names)
	for {
		if i >= len(s.doc) || s.doc[i] != '"' {
			return none
		}
		start := i + 1
		if i, _ = textEnd(s.doc, start); i == none {
			return none
		}
		name := s.doc[start : i-1]
		if s.once && !s.first(start, i-1, outside) {
			return none
		}
		var below Known
		if k != nil {
			var known bool
			if below, known = k[string(name)]; !known && k.caseVariant([]byte(name)) {
				return none
			}
		}
		if i = space(s.doc, i); i >= len(s.doc) || s.doc[i] != ':' {
			return none
		}
		if i = s.value(space(s.doc, i+1), depth, below); i == none {
			return none
		}
		more := false
		if i, more = s.next(i, '}'); !more {
			s.names = s.names[:outside]
			return i
		}
	}
}

// first records the name at start. It reports whether the name is plain and not a
// duplicate in its object, whose names are those from outside on.
func (s *scan[T]) first(start, end, outside int) bool {
	name := s.doc[start:end]
	if !isPlainName(name) || len(s.names)-outside >= manyNames {
		return false
	}
	mark := hashName(name)
	for i := range s.names[outside:] {
		n := &s.names[outside+i]
		if n.hash == mark && string(s.doc[n.start:n.end]) == string(name) {
			return false
		}
	}
	s.names = append(s.names, nameAt{start, end, mark})
	return true
}

// isPlainName reports whether a quoted name needs no unquoting.
func isPlainName[T []byte | string](name T) bool {
	for i := range len(name) {
		if c := name[i]; c == '\\' || c >= utf8.RuneSelf {
			return plain([]byte(name))
		}
	}
	return true
}

// hashName returns a hash of a name. Different names rarely have the same hash.
func hashName[T []byte | string](name T) uint64 {
	n := len(name)
	mark := uint64(n) << 56
	if n >= 8 {
		return mark ^ eightBytes(name, 0) ^ eightBytes(name, n-8)<<1
	}
	for i := range n {
		mark |= uint64(name[i]) << (8 * i)
	}
	return mark
}

// whole reports whether the scan confirms that the document is a single value with only
// white space around it.
func (s *scan[T]) whole(k Known) bool {
	end := s.value(space(s.doc, 0), 0, k)
	return end != none && space(s.doc, end) == len(s.doc)
}

// valid reports whether doc is exactly one value.
func valid(doc []byte) bool {
	s := scan[[]byte]{doc: doc}
	return s.whole(nil) || jsontext.Value(doc).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// appendUnquote is like jsontext.AppendUnquote for a valid string; it replaces invalid
// Unicode.
func appendUnquote(dst, quoted []byte) []byte {
	inner := quoted[1 : len(quoted)-1]
	begin := len(dst)
	dst = slices.Grow(dst, len(inner)+8)
	out, n := dst[:cap(dst)], begin // unquoting does not grow the text
	other := uint64(0)              // the bitwise or of all non-ASCII bytes
	for i := 0; i < len(inner); {
		if i+8 <= len(inner) {
			w := eightBytes(inner, i)
			other |= w & highs
			binary.LittleEndian.PutUint64(out[n:], w) // bytes after an escape are overwritten later
			found := escapes(w)
			if found == 0 {
				i, n = i+8, n+8
				continue
			}
			before := bits.TrailingZeros64(found) / 8
			i, n = i+before, n+before
		}
		if c := inner[i]; c != '\\' {
			other |= uint64(c & utf8.RuneSelf)
			out[n] = c
			i, n = i+1, n+1
			continue
		}
		if c := unescaped[inner[i+1]]; c != 0 {
			out[n] = c
			i, n = i+2, n+1
			continue
		}
		r, _ := hex4(inner, i+2)
		if surrogate(r) {
			dst, _ = jsontext.AppendUnquote(dst, quoted)
			return dst
		}
		i, n = i+6, n+utf8.EncodeRune(out[n:], r)
	}
	if other != 0 && !utf8.Valid(inner) {
		dst, _ = jsontext.AppendUnquote(dst, quoted)
		return dst
	}
	return out[:n]
}

// escapes marks the backslashes of w. The lowest mark is exact; a higher one may be a
// false positive.
func escapes(w uint64) uint64 {
	escape := w ^ (ones * '\\')
	return (escape - ones) &^ escape & highs
}
