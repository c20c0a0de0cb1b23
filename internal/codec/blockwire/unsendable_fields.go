package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// WithoutUnknown removes fields from a part that frameworks leave on blocks which they
// collected from a stream, or that belong to another kind of block. unsendable are the
// paths of these fields in dialect d. It reports whether the part had any: the API
// refuses them, so the original bytes of the part must not be sent again (quirk D32).
func WithoutUnknown(p dragoman.Part, d dragoman.Dialect, unsendable []string, at extra.Path, rep *dragoman.Report) bool {
	e := extrasOf(p)
	if e == nil || *e == nil {
		return false
	}
	isUnsendable := func(f dragoman.Field) bool { return slices.Contains(unsendable, f.Path) }
	found := false
	for _, f := range (*e).For(d) {
		if isUnsendable(f) {
			found = true
			rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+f.Path, "left over from a stream; the API accepts no such field here")
		}
	}
	if !found {
		return false
	}
	kept := slices.DeleteFunc(slices.Clone((*e).Fields), isUnsendable)
	if *e = nil; len(kept) > 0 {
		*e = &dragoman.Extra{Dialect: d, Fields: kept}
	}
	return true
}

// extrasOf returns the unknown fields of a part, or nil if the part cannot have any.
func extrasOf(p dragoman.Part) **dragoman.Extra {
	switch p := p.(type) {
	case *dragoman.Text:
		return &p.Extra
	case *dragoman.Media:
		return &p.Extra
	case *dragoman.Reasoning:
		return &p.Extra
	case *dragoman.ToolCall:
		return &p.Extra
	case *dragoman.ToolResult:
		return &p.Extra
	default:
		return nil
	}
}
