package jsonwire

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// Literal names the members of a document whose values are read as they stand:
// the arguments of calls, schemas, documents.
type Literal struct {
	Members []string
	// Same returns what every spelling of a name is to those who read the
	// document; nil: each spelling is a name of its own.
	Same func(name []byte) []byte
}

// Settle returns the document with only the last of the members that one of its
// objects has more than once, and where those were; what is literal stays as it
// is. Of many places the first are told. A document without any is returned as
// it is, and so is what is no JSON.
func Settle(doc []byte, l Literal) (settled []byte, at []string) {
	// The usual case costs no more than a scan.
	if ReadsOneWay(doc) && (l.Same == nil || bytes.IndexByte(doc, '_') < 0) {
		return doc, nil
	}
	s := settler{literal: l}
	s.dec.Reset(bytes.NewBuffer(doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if !s.walk() || len(s.cuts) == 0 {
		return doc, nil
	}
	return s.without(doc), s.at
}

// ReadsOneWay reports whether a document is JSON in which no object has a member
// twice: readers disagree on which of two counts.
func ReadsOneWay(doc []byte) bool {
	return jsontext.Value(doc).IsValid(jsontext.AllowInvalidUTF8(true))
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
	at      []string
}

// container is an object or a list that is being read.
type container struct {
	// members are the places in begins of an object's members.
	members map[string]int
	begins  []int64
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
			s.open = append(s.open, container{members: s.index()})
		case '[':
			s.open = append(s.open, container{})
		case '}', ']':
			last := len(s.open) - 1
			if index := s.open[last].members; index != nil {
				s.spare = append(s.spare, index)
			}
			s.open = s.open[:last]
		}
		if len(s.open) == 0 {
			return true
		}
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
	if s.literal.Same != nil {
		key = s.literal.Same(key)
		literal = literal || slices.Contains(s.literal.Members, string(key))
	}
	o := &s.open[len(s.open)-1]
	o.begins = append(o.begins, begins)
	if i, twice := o.members[string(key)]; twice {
		s.cuts = append(s.cuts, cut{o.begins[i], o.begins[i+1]})
		if len(s.at) < maxRepeats {
			s.at = append(s.at, clip(s.dec.StackPointer()))
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
		}
	}
	return append(out, doc[end:]...)
}
