package anthropic

import (
	"bytes"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
)

// cacheBudget keeps a request within the API's number of cache breakpoints.
// A later breakpoint remembers all that stands before it, so when there are
// too many the first ones go, in the order the API reads a prompt: tools,
// system, messages (quirk D31).
type cacheBudget struct {
	// surplus is how many hints are still to be left out.
	surplus int
	told    string // where the last one was
}

var markerName = []byte(`"cache_control"`)

// hints counts the hints of a block: its own and those of a result's content.
func hints(b *blockwire.Block) int {
	n := 0
	if b.Cache != nil {
		n++
	}
	if res, ok := b.Part.(*dragoman.ToolResult); ok {
		for _, p := range res.Content {
			if hintInside(p) != nil {
				n++
			}
		}
	}
	return n
}

// hintInside returns the hint of a part of a result's content.
func hintInside(p dragoman.Part) *dragoman.CacheHint {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Cache
	case *dragoman.Media:
		return p.Cache
	default:
		return nil
	}
}

// fixed counts the markers of a block that we never rewrite.
func fixed(b *blockwire.Block) int {
	if o, ok := b.Part.(*dragoman.Opaque); ok {
		return bytes.Count(o.JSON, markerName)
	}
	return 0
}

// plan counts what is asked for and settles how much of it is too much.
func (c *cacheBudget) plan(limit int, tools []dragoman.ToolSpec, atEnd bool, conv *conversation) {
	n := 0
	for i := range tools {
		switch t := &tools[i]; {
		case t.Kind == dragoman.ToolHosted && t.Source != nil:
			n += bytes.Count(t.Source.JSON, markerName)
		case t.Cache != nil && !t.Deferred:
			n++
		}
	}
	count := func(blocks []blockwire.Block) {
		for i := range blocks {
			n += hints(&blocks[i]) + fixed(&blocks[i])
		}
	}
	count(conv.System)
	for i := range conv.Turns {
		count(conv.Turns[i].Blocks)
	}
	if atEnd {
		n++
	}
	c.surplus = max(n-limit, 0)
}

func (c *cacheBudget) drop(rep *dragoman.Report, at extra.Path) {
	c.surplus--
	if place := at.String(); place != c.told { // a part may have two, its own and its message's
		c.told = place
		rep.Add(dragoman.Dropped, dragoman.Info, place, "cache breakpoint: the API takes four, and later ones cover more")
	}
}

// tools leaves out the hints of tools that are too many.
func (c *cacheBudget) tools(tools []dragoman.ToolSpec, rep *dragoman.Report) []dragoman.ToolSpec {
	copied := false
	for i := range tools {
		if c.surplus == 0 {
			break
		}
		if tools[i].Cache == nil || tools[i].Deferred || tools[i].Kind == dragoman.ToolHosted {
			continue
		}
		if !copied {
			tools, copied = slices.Clone(tools), true
		}
		tools[i].Cache = nil
		c.drop(rep, extra.Elem("/tools", i))
	}
	return tools
}

// take returns the hint to write on a block.
func (c *cacheBudget) take(b *blockwire.Block, rep *dragoman.Report) *dragoman.CacheHint {
	if b.Cache != nil && c.surplus > 0 {
		c.drop(rep, b.At)
		return nil
	}
	return b.Cache
}

// inside returns the content of a result with the hints to write.
func (c *cacheBudget) inside(parts []dragoman.Part, at extra.Path, rep *dragoman.Report) []dragoman.Part {
	copied := false
	for i, p := range parts {
		if c.surplus == 0 {
			break
		}
		if hintInside(p) == nil {
			continue
		}
		if !copied {
			parts, copied = slices.Clone(parts), true
		}
		switch p := p.(type) {
		case *dragoman.Text:
			t := *p
			t.Cache, parts[i] = nil, &t
		case *dragoman.Media:
			m := *p
			m.Cache, parts[i] = nil, &m
		}
		c.drop(rep, at)
	}
	return parts
}

// cuts reports whether a block would lose a hint, so that it cannot be written
// in the form it came in.
func (c *cacheBudget) cuts(b *blockwire.Block) bool { return c.surplus > 0 && hints(b) > 0 }

// cutsAny reports whether any of the blocks would lose a hint.
func (c *cacheBudget) cutsAny(blocks []blockwire.Block) bool {
	if c.surplus == 0 {
		return false
	}
	for i := range blocks {
		if c.cuts(&blocks[i]) {
			return true
		}
	}
	return false
}
