// Package extra collects native members that the canonical model has no place
// for, writes them back to their own dialect, and reports them as lost toward
// every other one.
package extra

import (
	"slices"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Path is a place in a document: a JSON pointer built only when it is asked
// for, because most places have nothing to report.
type Path struct {
	Prefix string
	Index  int // -1: Prefix is the whole path
}

// At is the path of prefix itself.
func At(prefix string) Path { return Path{Prefix: prefix, Index: -1} }

// Elem is the path of element i of prefix.
func Elem(prefix string, i int) Path { return Path{Prefix: prefix, Index: i} }

func (p Path) String() string {
	if p.Index < 0 {
		return p.Prefix
	}
	return p.Prefix + "/" + strconv.Itoa(p.Index)
}

// Elem is the path of element i of member name of p.
func (p Path) Elem(name string, i int) Path { return Path{Prefix: p.String() + "/" + name, Index: i} }

// Escape writes a member's name as a segment of a JSON pointer.
func Escape(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

func unescape(segment string) string {
	if strings.IndexByte(segment, '~') < 0 {
		return segment
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(segment)
}

// Add keeps the member name below prefix (a pointer, or empty) in *e.
func Add(e **dragoman.Extra, d dragoman.Dialect, prefix string, name []byte, raw []byte) {
	if *e == nil {
		*e = &dragoman.Extra{Dialect: d}
	}
	path := prefix + "/" + Escape(string(name))
	// Of a repeated name the last value counts, in the place of the first. In
	// a long list that is settled by settled, or a hostile object with a
	// million members would cost the square of it.
	if len((*e).Fields) < short {
		for i := range (*e).Fields {
			if (*e).Fields[i].Path == path {
				(*e).Fields[i].Value = raw
				return
			}
		}
	}
	(*e).Fields = append((*e).Fields, dragoman.Field{Path: path, Value: raw})
}

// short is how many fields Add searches for a repeated name.
const short = 64

// settled returns the fields with each path once.
func settled(fields []dragoman.Field) []dragoman.Field {
	if len(fields) <= short {
		return fields
	}
	at := make(map[string]int, len(fields))
	out := make([]dragoman.Field, 0, len(fields))
	for _, f := range fields {
		if i, ok := at[f.Path]; ok {
			out[i].Value = f.Value
			continue
		}
		at[f.Path] = len(out)
		out = append(out, f)
	}
	return out
}

// Write writes the members kept directly below prefix into the object that w
// is writing, if they are of dialect d.
func Write(w *jsonwire.Writer, e *dragoman.Extra, d dragoman.Dialect, prefix string) {
	for _, f := range settled(e.For(d)) {
		rest, ok := strings.CutPrefix(f.Path, prefix+"/")
		if ok && !strings.Contains(rest, "/") {
			w.QuotedKey(unescape(rest))
			w.Raw(f.Value)
		}
	}
}

// Has reports whether a member is kept directly below prefix for dialect d.
func Has(e *dragoman.Extra, d dragoman.Dialect, prefix string) bool {
	for _, f := range e.For(d) {
		if rest, ok := strings.CutPrefix(f.Path, prefix+"/"); ok && !strings.Contains(rest, "/") {
			return true
		}
	}
	return false
}

// Get returns the value kept at path for dialect d.
func Get(e *dragoman.Extra, d dragoman.Dialect, path string) ([]byte, bool) {
	for _, f := range slices.Backward(e.For(d)) {
		if f.Path == path {
			return f.Value, true
		}
	}
	return nil, false
}

// empty reports whether a member says nothing: null, or an empty list, string
// or object.
func empty(v []byte) bool {
	switch string(v) {
	case "null", "[]", "{}", `""`, "false":
		return true
	default:
		return false
	}
}

// Report reports the members as lost, unless they are of dialect d.
func Report(rep *dragoman.Report, e *dragoman.Extra, d dragoman.Dialect, at Path) {
	if e == nil || e.Dialect == d {
		return
	}
	for _, f := range settled(e.Fields) {
		if empty(f.Value) {
			continue
		}
		rep.Addf(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "%s has no such member", d)
	}
}
