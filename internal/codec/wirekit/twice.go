package wirekit

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Members finds what two readers of one object could read as two: a known
// member that stands twice, or that stands there in letters of another case, as
// many readers ignore it. The zero value is ready for one object.
type Members struct{ seen uint64 }

// Twice takes the next key and reports whether it says one of the known members
// again, or another way. There are at most 64 of them, in small letters.
func (m *Members) Twice(known []string, key []byte) bool {
	for i, name := range known {
		if string(key) == name {
			return m.Again(i)
		}
	}
	return Folds(known, key)
}

// Again is Twice for the key of the known member i, where that is known already.
func (m *Members) Again(i int) bool {
	again := m.seen&(1<<i) != 0
	m.seen |= 1 << i
	return again
}

// Folds reports whether key, which is none of the known names, is one of them but
// for its case.
func Folds(known []string, key []byte) bool {
	for _, c := range key {
		if c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf { // else it folds to nothing but itself
			return slices.ContainsFunc(known, func(name string) bool { return bytes.EqualFold(key, []byte(name)) })
		}
	}
	return false
}

// RepeatedMember is why a call must not run that was sent with a member twice:
// which of the two counts is not the same to all readers.
func RepeatedMember(member string) *dragoman.CallProblem {
	return &dragoman.CallProblem{
		Code: codes.ProblemDuplicateKey, Offset: -1,
		Message: fmt.Sprintf("the call was sent with the member %.40q twice, so its meaning is ambiguous; make it again", member),
	}
}

// DropTwins takes out of what is kept of an object, at prefix, the members that a
// reader which ignores case would take for one of the known ones: written again,
// they would tell it another answer. It reports whether there were any.
func DropTwins(e **dragoman.Extra, prefix string, known []string) bool {
	if *e == nil {
		return false
	}
	twin := func(f dragoman.Field) bool {
		key, here := strings.CutPrefix(f.Path, prefix+"/")
		return here && !slices.Contains(known, key) &&
			slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(key, name) })
	}
	n := len((*e).Fields)
	(*e).Fields = slices.DeleteFunc((*e).Fields, twin)
	dropped := len((*e).Fields) < n
	if len((*e).Fields) == 0 {
		*e = nil
	}
	return dropped
}

// Doubled reports whether raw is an object that two readers could read as two:
// one of the known members stands in it twice, or in letters of another case. r
// is a reader to use for it.
func Doubled(r *jsonwire.Reader, raw []byte, known []string) bool {
	if len(raw) == 0 {
		return false
	}
	if r.Reset(raw); r.Kind() != '{' {
		return false
	}
	var seen Members
	doubled := false
	for key := range r.Object() {
		doubled = seen.Twice(known, key) || doubled
		r.Skip()
	}
	return doubled
}
