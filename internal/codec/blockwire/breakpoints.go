package blockwire

import (
	"bytes"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// Breakpoints keeps a request within the number of cache breakpoints that its
// target takes. A later breakpoint remembers all that stands before it, so when
// there are too many the first ones go, in the order a model reads a prompt:
// tools, system, messages (quirk D31).
type Breakpoints struct {
	// Marker is the member that makes a breakpoint, as it stands in blocks and
	// tools that we never rewrite: those count, and stay.
	Marker string
	// Apart says that a tool's breakpoint stands behind it and not in it. Where
	// it stands in it, a deferred tool carries none.
	Apart bool
	// None says that the target refuses them all.
	None bool

	surplus int    // how many hints are still to be left out
	told    string // where the last one was
}

// Plan counts what is asked for and settles how much of it is too much; atEnd
// says that the request wants one behind its prompt.
func (c *Breakpoints) Plan(limit int, tools []dragoman.ToolSpec, atEnd bool, plan *Plan) {
	marker := []byte(`"` + c.Marker + `"`)
	n := 0
	for i := range tools {
		switch t := &tools[i]; {
		case t.Kind == codes.ToolHosted && t.Source != nil:
			n += bytes.Count(t.Source.JSON, marker)
		case c.carries(t):
			n++
		}
	}
	count := func(blocks []Block) {
		for i := range blocks {
			n += hints(&blocks[i])
			if o, ok := blocks[i].Part.(*dragoman.Opaque); ok {
				n += bytes.Count(o.JSON, marker)
			}
		}
	}
	count(plan.System)
	for i := range plan.Turns {
		count(plan.Turns[i].Blocks)
	}
	if atEnd {
		n++
	}
	c.surplus = max(n-limit, 0)
}

// carries reports whether a tool is written with a breakpoint.
func (c *Breakpoints) carries(t *dragoman.ToolSpec) bool {
	return t.Cache != nil && t.Kind != codes.ToolHosted && (c.Apart || !t.Deferred)
}

// hints counts the hints of a block: its own and those of a result's content.
func hints(b *Block) int {
	n := 0
	if b.Cache != nil {
		n++
	}
	if res, ok := b.Part.(*dragoman.ToolResult); ok {
		for _, p := range res.Content {
			if HintOf(p) != nil {
				n++
			}
		}
	}
	return n
}

// over reports whether the next hint is to be left out.
func (c *Breakpoints) over() bool { return c.None || c.surplus > 0 }

func (c *Breakpoints) drop(rep *dragoman.Report, at extra.Path) {
	c.surplus--
	place := at.String()
	if place == c.told { // a part may have two, its own and its message's
		return
	}
	c.told = place
	if c.None {
		rep.Add(dragoman.Dropped, dragoman.Info, place, "cache breakpoint: the target takes none")
		return
	}
	rep.Add(dragoman.Dropped, dragoman.Info, place, "cache breakpoint: the API takes four, and later ones cover more")
}

// Tools leaves out the hints of tools that are too many.
func (c *Breakpoints) Tools(tools []dragoman.ToolSpec, rep *dragoman.Report) []dragoman.ToolSpec {
	copied := false
	for i := range tools {
		if !c.over() {
			break
		}
		if !c.carries(&tools[i]) {
			continue
		}
		if !copied {
			tools, copied = slices.Clone(tools), true
		}
		t := &tools[i]
		unedited := c.Apart && t.Source != nil && t.Source.Mirror == t.Fingerprint()
		t.Cache = nil
		if unedited { // the hint is no part of the source, which stands as it is
			src := *t.Source
			src.Mirror = t.Fingerprint()
			t.Source = &src
		}
		c.drop(rep, extra.Elem("/tools", i))
	}
	return tools
}

// Take returns the hint to write on a block, or behind it.
func (c *Breakpoints) Take(b *Block, rep *dragoman.Report) *dragoman.CacheHint {
	if b.Cache != nil && c.over() {
		c.drop(rep, b.At)
		return nil
	}
	return b.Cache
}

// Inside returns the content of a result with the hints to write.
func (c *Breakpoints) Inside(parts []dragoman.Part, at extra.Path, rep *dragoman.Report) []dragoman.Part {
	copied := false
	for i, p := range parts {
		if !c.over() {
			break
		}
		if HintOf(p) == nil {
			continue
		}
		if !copied {
			parts, copied = slices.Clone(parts), true
		}
		parts[i] = WithoutHint(p)
		c.drop(rep, at)
	}
	return parts
}

// AtEnd returns the hint to write behind the prompt.
func (c *Breakpoints) AtEnd(hint *dragoman.CacheHint, rep *dragoman.Report) *dragoman.CacheHint {
	if hint != nil && c.None {
		c.drop(rep, extra.At("/cache"))
		return nil
	}
	return hint
}

// Cuts reports whether a block would lose a hint, so that it cannot be written
// in the form it came in.
func (c *Breakpoints) Cuts(b *Block) bool { return c.over() && hints(b) > 0 }

// CutsAny reports whether any of the blocks would lose a hint, so that the
// message around them cannot be written in the form it came in.
func (c *Breakpoints) CutsAny(blocks []Block) bool {
	return c.over() && slices.ContainsFunc(blocks, func(b Block) bool { return hints(&b) > 0 })
}
