package blockwire

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// WithoutStrays takes members off a part that frameworks leave on blocks they
// collected from a stream, or that belong to another kind of block, and reports
// whether it had any: the API refuses each, so that the bytes which the part came
// in must not be sent again (quirk D32). strays are those of dialect d for such a
// part.
func WithoutStrays(p dragoman.Part, d dragoman.Dialect, strays []string, at extra.Path, rep *dragoman.Report) bool {
	e := extrasOf(p)
	if e == nil || *e == nil {
		return false
	}
	stray := func(f dragoman.Field) bool { return slices.Contains(strays, f.Path) }
	found := false
	for _, f := range (*e).For(d) {
		if stray(f) {
			found = true
			rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+f.Path, "left from a stream; the API takes no such member here")
		}
	}
	if !found {
		return false
	}
	kept := slices.DeleteFunc(slices.Clone((*e).Fields), stray)
	if *e = nil; len(kept) > 0 {
		*e = &dragoman.Extra{Dialect: d, Fields: kept}
	}
	return true
}

// extrasOf is where a part of a message keeps native members; nil for one that
// has none to lose.
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
