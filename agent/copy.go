package agent

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
)

// copied returns a copy of messages whose parts can be edited without changing the
// originals.
func copied(ms []dragoman.Message) []dragoman.Message {
	out := slices.Clone(ms)
	for i := range out {
		out[i].Parts = copiedParts(out[i].Parts)
	}
	return out
}

func copiedParts(parts []dragoman.Part) []dragoman.Part {
	out := slices.Clone(parts)
	for i, p := range out {
		switch p := p.(type) {
		case *dragoman.Text:
			out[i] = cloned(p)
		case *dragoman.Reasoning:
			c := cloned(p)
			if c != nil {
				c.Summary, c.Details = slices.Clone(p.Summary), slices.Clone(p.Details)
			}
			out[i] = c
		case *dragoman.Media:
			out[i] = cloned(p)
		case *dragoman.ToolCall:
			out[i] = cloned(p)
		case *dragoman.ToolResult:
			c := cloned(p)
			if c != nil {
				c.Content = copiedParts(p.Content)
			}
			out[i] = c
		case *dragoman.Refusal:
			out[i] = cloned(p)
		case *dragoman.Data:
			out[i] = cloned(p)
		case *dragoman.Opaque:
			out[i] = cloned(p)
		}
	}
	return out
}

func cloned[T any](p *T) *T {
	if p == nil { // encoding the request reports it
		return nil
	}
	c := *p
	return &c
}
