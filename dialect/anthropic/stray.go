package anthropic

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
)

// typeDelta is the type of a piece of a stream, which some frameworks leave in
// the content of a message.
const typeDelta = "input_json_delta"

// strays are members that frameworks leave on blocks they collected from a
// stream, or that belong to another kind of block. The API answers "Extra inputs
// are not permitted" to each (quirk D32). What it sends itself, as the caller of
// a call, is none of them and goes back.
func strays(p dragoman.Part) (e **dragoman.Extra, members []string) {
	switch p := p.(type) {
	case *dragoman.Text:
		return &p.Extra, []string{"/index"}
	case *dragoman.Media:
		return &p.Extra, []string{"/index"}
	case *dragoman.Reasoning:
		return &p.Extra, []string{"/index"}
	case *dragoman.ToolCall:
		return &p.Extra, []string{"/index", "/signature", "/partial_json"}
	case *dragoman.ToolResult:
		return &p.Extra, []string{"/index", "/id"}
	default:
		return nil, nil
	}
}

// withoutStrays takes stray members off a part and reports whether it had any;
// the bytes that it came in must then not be sent again.
func withoutStrays(p dragoman.Part, at extra.Path, rep *dragoman.Report) bool {
	e, members := strays(p)
	if e == nil || *e == nil {
		return false
	}
	stray := func(f dragoman.Field) bool { return slices.Contains(members, f.Path) }
	found := false
	for _, f := range (*e).For(name) {
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
		*e = &dragoman.Extra{Dialect: name, Fields: kept}
	}
	return true
}
