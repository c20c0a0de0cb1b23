package jsonwire

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Literal describes the fields of a document whose values are not interpreted: call
// arguments, schemas, documents.
type Literal struct {
	Fields []string
	// Same returns the normal form of a name, for readers that accept several
	// spellings. If nil, each spelling is a different name.
	Same func(name []byte) []byte
	// Maps are the fields in whose values each spelling is a different name, even with
	// Same: the author of the document chose these names.
	Maps []string
	// Known are the fields that are read, to detect case variants. If nil, they are not
	// checked.
	Known Known
}

// With returns l for a document with these known fields.
func (l Literal) With(k Known) Literal {
	l.Known = k
	return l
}

// Cut lists the fields that Settle removed.
type Cut struct {
	// Repeats are the paths of duplicate fields, CaseVariants the paths of fields that differ
	// from a known one only in case.
	Repeats, CaseVariants []string
}

// None reports whether nothing was removed.
func (c Cut) None() bool { return len(c.Repeats)+len(c.CaseVariants) == 0 }

// Settle removes duplicate fields and case variants of known fields from a document. Of
// duplicate fields it keeps the last one. Literal values stay unchanged. at lists the
// paths of the removed fields, or the first of them if there are many. A document
// without such fields, and one that is not valid JSON, is returned unchanged.
func Settle(doc []byte, l Literal) (settled []byte, at Cut) {
	v, at := SettleValue(doc, l)
	return v.Raw, at
}

// SettleValue is like Settle; the result includes what the scan found.
func SettleValue(doc []byte, l Literal) (settled Value, at Cut) {
	// In the usual case, one scan is enough.
	if l.Same == nil || bytes.IndexByte(doc, '_') < 0 {
		s := scan[[]byte]{doc: doc, note: len(doc) >= noteworthy}
		if s.clear(l.Known) {
			return Value{Raw: doc, long: s.long, clear: !s.half && utf8.Valid(doc)}, Cut{}
		}
		if readsOneWaySlowly(doc, l.Known) {
			return Value{Raw: doc}, Cut{}
		}
	}
	settledDoc, at := settleSlowly(doc, l)
	return Value{Raw: settledDoc}, at
}

// noteworthy is the minimum length of a document for which the ends of long values are
// recorded.
const noteworthy = 1 << 10

func settleSlowly(doc []byte, l Literal) (settled []byte, at Cut) {
	s := settler{literal: l}
	s.dec.Reset(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	s.next = l.Known
	if !s.walk() || len(s.cuts) == 0 {
		return doc, Cut{}
	}
	return s.withoutRemoved(doc), s.at
}

// Unambiguous reports whether a document is valid JSON without duplicate fields:
// readers disagree which duplicate counts.
func Unambiguous(doc []byte) bool { return readsOneWay(doc, nil) }

// readsOneWay reports whether a document is valid JSON without duplicate fields and without case
// variants of known fields.
func readsOneWay(doc []byte, k Known) bool {
	s := scan[[]byte]{doc: doc}
	return s.clear(k) || readsOneWaySlowly(doc, k)
}

func readsOneWaySlowly(doc []byte, k Known) bool {
	return jsontext.Value(doc).IsValid(jsontext.AllowInvalidUTF8(true)) && !anyCaseVariant(doc, k)
}

// maxRepeats limits how many paths are listed: a hostile document must not determine
// the length of a report.
const maxRepeats = 16

type settler struct {
	dec     jsontext.Decoder
	literal Literal
	open    []container
	spare   []map[string]int
	cuts    []cut
	at      Cut
	// next are the known fields of the next value; own means that it is in a map (see
	// Literal.Maps).
	next Known
	own  bool
}

// container is an object or a list that is being read.
type container struct {
	// fields maps the names of an object's fields to their indexes in begins.
	fields map[string]int
	begins []int64
	known  Known
	own    bool
	// isVariant means that the last field is a case variant.
	isVariant bool
}

// cut is the range of a removed field, from its name to the next name.
type cut struct{ from, to int64 }

// walk reads the whole document and reports whether it is valid JSON.
func (s *settler) walk() bool {
	for {
		kind := s.dec.PeekKind()
		if kind == '"' && s.expectsName() {
			if !s.name() {
				return false
			}
			continue
		}
		if _, err := s.dec.ReadToken(); err != nil {
			return false
		}
		switch kind {
		case '{':
			s.open = append(s.open, container{fields: s.index(), known: s.next, own: s.own})
		case '[':
			s.open = append(s.open, container{known: s.next, own: s.own})
		case '}', ']':
			s.close()
		}
		if len(s.open) == 0 {
			return true
		}
	}
}

// close ends the innermost object or list.
func (s *settler) close() {
	last := len(s.open) - 1
	o := &s.open[last]
	if o.fields != nil {
		o.cutCaseVariant(s, s.dec.InputOffset()-1)
		s.spare = append(s.spare, o.fields)
	}
	s.open = s.open[:last]
	if last > 0 {
		s.next, s.own = s.open[last-1].known, s.open[last-1].own // for the next element of a list
	}
}

// cutCaseVariant removes the last field, up to offset to, if it is a case variant.
func (o *container) cutCaseVariant(s *settler, to int64) {
	if o.isVariant {
		s.cuts = append(s.cuts, cut{o.begins[len(o.begins)-1], to})
		o.isVariant = false
	}
}

// index returns an empty index of field names.
func (s *settler) index() map[string]int {
	n := len(s.spare)
	if n == 0 {
		return map[string]int{}
	}
	index := s.spare[n-1]
	s.spare = s.spare[:n-1]
	clear(index)
	return index
}

// expectsName reports whether the next token is a field name.
func (s *settler) expectsName() bool {
	kind, n := s.dec.StackIndex(s.dec.StackDepth())
	return kind == '{' && n%2 == 0
}

// name reads a field name, and its value if that is literal.
func (s *settler) name() bool {
	quoted, err := s.dec.ReadValue()
	if err != nil {
		return false
	}
	begins := s.dec.InputOffset() - int64(len(quoted))
	key, _ := jsontext.AppendUnquote(nil, quoted) // replaces text that is not UTF-8, like the reader
	literal := slices.Contains(s.literal.Fields, string(key))
	o := &s.open[len(s.open)-1]
	if s.literal.Same != nil && !o.own {
		key = s.literal.Same(key)
		literal = literal || slices.Contains(s.literal.Fields, string(key))
	}
	s.own = o.own || slices.Contains(s.literal.Maps, string(key))
	o.cutCaseVariant(s, begins)
	o.begins = append(o.begins, begins)
	if o.isVariant = o.known.caseVariant(key); o.isVariant {
		if len(s.at.CaseVariants) < maxRepeats {
			s.at.CaseVariants = append(s.at.CaseVariants, clip(s.dec.StackPointer()))
		}
		return s.dec.SkipValue() == nil
	}
	s.next = o.known[string(key)]
	if i, duplicate := o.fields[string(key)]; duplicate {
		s.cuts = append(s.cuts, cut{o.begins[i], o.begins[i+1]})
		if len(s.at.Repeats) < maxRepeats {
			s.at.Repeats = append(s.at.Repeats, clip(s.dec.StackPointer()))
		}
	}
	o.fields[string(key)] = len(o.begins) - 1
	return !literal || s.dec.SkipValue() == nil
}

// withoutRemoved returns the document without the removed ranges.
func (s *settler) withoutRemoved(doc []byte) []byte {
	slices.SortFunc(s.cuts, func(a, b cut) int { return cmp.Compare(a.from, b.from) })
	out := make([]byte, 0, len(doc))
	var end int64
	for _, c := range s.cuts {
		if c.from >= end { // otherwise it is inside a range that was already removed
			out = append(out, doc[end:c.from]...)
			end = c.to
			if doc[end] == '}' { // no comma before it
				out = bytes.TrimSuffix(bytes.TrimRight(out, " \t\r\n"), []byte(","))
			}
		}
	}
	return append(out, doc[end:]...)
}
