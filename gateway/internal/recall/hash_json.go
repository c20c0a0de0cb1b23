package recall

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// hashJSON hashes a JSON value by its meaning: the order of fields, white space, escapes and the
// spelling of a number do not count, but every digit of its value does. Invalid JSON is hashed by
// its bytes.
func hashJSON(raw []byte) sum { return hashJSONWithout(raw, "") }

// hashBlock is hashJSON for a native block, in which a cache marker does not count.
func hashBlock(raw []byte) sum { return hashJSONWithout(raw, "cache_control") }

// hashJSONWithout is hashJSON without one field of the object.
func hashJSONWithout(raw []byte, but string) sum {
	if jsonwire.Check(raw) != nil {
		return sha256.Sum256(append([]byte("no JSON "), raw...))
	}
	return hashValue(jsonwire.NewReader(raw), but)
}

// hashValue identifies the next value.
func hashValue(r *jsonwire.Reader, but string) sum {
	switch r.Kind() {
	case '{':
		return hashObject(r, but)
	case '[':
		h := sha256.New()
		h.Write([]byte{'['})
		for range r.Array() {
			s := hashValue(r, "")
			h.Write(s[:])
		}
		return sum(h.Sum(nil))
	case '"':
		return hashTexts("string", r.String())
	case '0':
		return hashTexts("number", canonicalNumber(string(r.Raw())))
	default:
		return hashTexts("word", string(r.Raw()))
	}
}

func hashObject(r *jsonwire.Reader, but string) sum {
	type member struct{ name, value sum }
	var members []member
	for key := range r.Object() {
		if but != "" && string(key) == but {
			r.Skip()
			continue
		}
		name := hashTexts(string(key))
		members = append(members, member{name, hashValue(r, "")})
	}
	slices.SortFunc(members, func(a, b member) int { return bytes.Compare(a.name[:], b.name[:]) })
	h := sha256.New()
	h.Write([]byte{'{'})
	for _, m := range members {
		h.Write(m.name[:])
		h.Write(m.value[:])
	}
	return sum(h.Sum(nil))
}

// canonicalNumber returns a JSON number in one spelling, by its digits: clients write 1.0 as 1 and 1e3
// as 1000, while a float would make two large integers equal.
func canonicalNumber(text string) string {
	s, negative := strings.CutPrefix(text, "-")
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(s[i+1:])
		if err != nil || e > 1<<20 || e < -1<<20 {
			return text // too large to normalize
		}
		mantissa, exponent = s[:i], e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	exponent -= len(fraction)
	short := strings.TrimRight(digits, "0")
	exponent += len(digits) - len(short)
	switch {
	case short == "":
		return "0"
	case negative:
		return "-" + short + "e" + strconv.Itoa(exponent)
	default:
		return short + "e" + strconv.Itoa(exponent)
	}
}
