package jsonwire

import (
	"bytes"
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Literal names the members of a document whose values are read as they stand:
// the arguments of calls, schemas, documents.
type Literal struct {
	Members []string
	// Same returns what every spelling of a name is to those who read the
	// document; nil: each spelling is a name of its own.
	Same func(name []byte) []byte
	// Maps are the members in whose values every spelling is a name of its own all
	// the same: who wrote the document chose them.
	Maps []string
	// Known are the members that are read, for a document in which others must
	// not read more; nil: that is not looked at.
	Known Known
}

// With is l for a document of which these members are read.
func (l Literal) With(k Known) Literal {
	l.Known = k
	return l
}

// Cut says where members were that a document was settled by.
type Cut struct {
	// Repeats stood in an object again, Twins differed from a known one only in
	// the case of their letters.
	Repeats, Twins []string
}

// None reports whether nothing was cut.
func (c Cut) None() bool { return len(c.Repeats)+len(c.Twins) == 0 }

// Settle returns the document with only the last of the members that one of its
// objects has more than once, and without the twins of those that are known, and
// where all those were; what is literal stays as it is. Of many places the first
// are told. A document without any is returned as it is, and so is what is no
// JSON.
func Settle(doc []byte, l Literal) (settled []byte, at Cut) {
	v, at := SettleValue(doc, l)
	return v.Raw, at
}

// SettleValue is Settle, with what is known of the document by then.
func SettleValue(doc []byte, l Literal) (settled Value, at Cut) {
	// The usual case costs no more than a scan.
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

// noteworthy is how long a document is of which it is noted where its long values end.
const noteworthy = 1 << 10

func settleSlowly(doc []byte, l Literal) (settled []byte, at Cut) {
	s := settler{literal: l}
	s.dec.Reset(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	s.next = l.Known
	if !s.walk() || len(s.cuts) == 0 {
		return doc, Cut{}
	}
	return s.without(doc), s.at
}

// ReadsOneWay reports whether a document is JSON in which no object has a member
// twice: readers disagree on which of two counts.
func ReadsOneWay(doc []byte) bool { return readsOneWay(doc, nil) }

// readsOneWay is ReadsOneWay, where moreover no member may be the twin of one that is
// known.
func readsOneWay(doc []byte, k Known) bool {
	s := scan[[]byte]{doc: doc}
	return s.clear(k) || readsOneWaySlowly(doc, k)
}

func readsOneWaySlowly(doc []byte, k Known) bool {
	return jsontext.Value(doc).IsValid(jsontext.AllowInvalidUTF8(true)) && !anyTwin(doc, k)
}

// maxRepeats bounds how many places are told: a hostile document must not
// decide how long a report is.
const maxRepeats = 16

type settler struct {
	dec     jsontext.Decoder
	literal Literal
	open    []container
	spare   []map[string]int
	cuts    []cut
	at      Cut
	// next are the known members of the value that comes next; own: it is in a map.
	next Known
	own  bool
}

// container is an object or a list that is being read.
type container struct {
	// members are the places in begins of an object's members.
	members map[string]int
	begins  []int64
	known   Known
	own     bool
	// twin says that the last member is one.
	twin bool
}

// cut is a member that does not count, from its name up to the next one's.
type cut struct{ from, to int64 }

// walk reads the whole document and reports whether it is JSON.
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
			s.open = append(s.open, container{members: s.index(), known: s.next, own: s.own})
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

// close ends the object or list that was read last.
func (s *settler) close() {
	last := len(s.open) - 1
	o := &s.open[last]
	if o.members != nil {
		o.cutTwin(s, s.dec.InputOffset()-1)
		s.spare = append(s.spare, o.members)
	}
	s.open = s.open[:last]
	if last > 0 {
		s.next, s.own = s.open[last-1].known, s.open[last-1].own // for the next element of a list
	}
}

// cutTwin cuts the last member, up to where the next begins, if it is a twin.
func (o *container) cutTwin(s *settler, to int64) {
	if o.twin {
		s.cuts = append(s.cuts, cut{o.begins[len(o.begins)-1], to})
		o.twin = false
	}
}

// index returns an empty index of members.
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

// expectsName reports whether the next token is the name of a member.
func (s *settler) expectsName() bool {
	kind, n := s.dec.StackIndex(s.dec.StackDepth())
	return kind == '{' && n%2 == 0
}

// name reads the name of a member, and its value where that is literal.
func (s *settler) name() bool {
	quoted, err := s.dec.ReadValue()
	if err != nil {
		return false
	}
	begins := s.dec.InputOffset() - int64(len(quoted))
	key, _ := jsontext.AppendUnquote(nil, quoted) // text that is no UTF-8 is replaced, as the reader does
	literal := slices.Contains(s.literal.Members, string(key))
	o := &s.open[len(s.open)-1]
	if s.literal.Same != nil && !o.own {
		key = s.literal.Same(key)
		literal = literal || slices.Contains(s.literal.Members, string(key))
	}
	s.own = o.own || slices.Contains(s.literal.Maps, string(key))
	o.cutTwin(s, begins)
	o.begins = append(o.begins, begins)
	if o.twin = o.known.twin(key); o.twin {
		if len(s.at.Twins) < maxRepeats {
			s.at.Twins = append(s.at.Twins, clip(s.dec.StackPointer()))
		}
		return s.dec.SkipValue() == nil
	}
	s.next = o.known[string(key)]
	if i, twice := o.members[string(key)]; twice {
		s.cuts = append(s.cuts, cut{o.begins[i], o.begins[i+1]})
		if len(s.at.Repeats) < maxRepeats {
			s.at.Repeats = append(s.at.Repeats, clip(s.dec.StackPointer()))
		}
	}
	o.members[string(key)] = len(o.begins) - 1
	return !literal || s.dec.SkipValue() == nil
}

// without returns the document without what was cut.
func (s *settler) without(doc []byte) []byte {
	slices.SortFunc(s.cuts, func(a, b cut) int { return cmp.Compare(a.from, b.from) })
	out := make([]byte, 0, len(doc))
	var end int64
	for _, c := range s.cuts {
		if c.from >= end { // else it lies in one that is cut already
			out = append(out, doc[end:c.from]...)
			end = c.to
			if doc[end] == '}' { // no comma before it
				out = bytes.TrimSuffix(bytes.TrimRight(out, " \t\r\n"), []byte(","))
			}
		}
	}
	return append(out, doc[end:]...)
}
