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

// KnownFields detects ambiguous fields of one object: a known field that occurs twice, or a field
// that differs from a known one only in case, which many readers ignore. The zero value is ready
// to use for one object.
type KnownFields struct{ seen uint64 }

// IsRepeated adds the next key. It reports whether the key repeats a known field or differs
// from one only in case. There are at most 64 known fields, in lower case.
func (m *KnownFields) IsRepeated(known []string, key []byte) bool {
	for i, name := range known {
		if string(key) == name {
			return m.IsRepeatedAt(i)
		}
	}
	return Folds(known, key)
}

// IsRepeatedAt is like IsRepeated for a key that is known to be field i.
func (m *KnownFields) IsRepeatedAt(i int) bool {
	again := m.seen&(1<<i) != 0
	m.seen |= 1 << i
	return again
}

// Folds reports whether key, which is not one of the known names, differs from one of
// them only in case.
func Folds(known []string, key []byte) bool {
	for _, c := range key {
		if c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf { // otherwise no other key folds to it
			return slices.ContainsFunc(known, func(name string) bool { return bytes.EqualFold(key, []byte(name)) })
		}
	}
	return false
}

// RepeatedField returns the problem of a call that was sent with a duplicate field:
// readers disagree which one counts.
func RepeatedField(field string) *dragoman.CallProblem {
	return &dragoman.CallProblem{
		Code: codes.ProblemDuplicateKey, Offset: -1,
		Message: fmt.Sprintf("the call has a duplicate field %.40q, so its meaning is ambiguous; make the call again", field),
	}
}

// DropCaseVariants removes the stored fields at prefix that differ from a known name only in
// case. If they were written again, a reader that ignores case would see a different
// response. It reports whether there were any.
func DropCaseVariants(e **dragoman.Extra, prefix string, known []string) bool {
	if *e == nil {
		return false
	}
	variant := func(f dragoman.Field) bool {
		key, here := strings.CutPrefix(f.Path, prefix+"/")
		return here && !slices.Contains(known, key) &&
			slices.ContainsFunc(known, func(name string) bool { return strings.EqualFold(key, name) })
	}
	n := len((*e).Fields)
	(*e).Fields = slices.DeleteFunc((*e).Fields, variant)
	dropped := len((*e).Fields) < n
	if len((*e).Fields) == 0 {
		*e = nil
	}
	return dropped
}

// HasDuplicates reports whether raw is an object with an ambiguous field: a known field that
// occurs twice, or a field that differs from one only in case. HasDuplicates resets r to read
// raw.
func HasDuplicates(r *jsonwire.Reader, raw []byte, known []string) bool {
	if len(raw) == 0 {
		return false
	}
	if r.Reset(raw); r.Kind() != '{' {
		return false
	}
	var seen KnownFields
	doubled := false
	for key := range r.Object() {
		doubled = seen.IsRepeated(known, key) || doubled
		r.Skip()
	}
	return doubled
}
