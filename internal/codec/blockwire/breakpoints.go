package blockwire

import (
	"bytes"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// Breakpoints limits the cache breakpoints of a request to the number that its target
// accepts. A later breakpoint covers everything before it, so the first ones are
// dropped, in the order in which a model reads a prompt: tools, system, messages (quirk
// D31).
type Breakpoints struct {
	// Marker is the field that makes a breakpoint. Breakpoints in blocks and tools that
	// are never rewritten are counted, but not dropped.
	Marker string
	// Separate means that the breakpoint of a tool follows it instead of being part of it.
	// If it is part of the tool, a deferred tool cannot have one.
	Separate bool
	// None means that the target refuses all breakpoints.
	None bool

	surplus int    // number of hints still to drop
	dropped string // path of the last dropped hint
}

// Plan counts the breakpoints of a request and determines how many to drop. atEnd means
// that the request has one after its prompt.
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
	return t.Cache != nil && t.Kind != codes.ToolHosted && (c.Separate || !t.Deferred)
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

// over reports whether the next hint must be dropped.
func (c *Breakpoints) over() bool { return c.None || c.surplus > 0 }

func (c *Breakpoints) drop(rep *dragoman.Report, at extra.Path) {
	c.surplus--
	place := at.String()
	if place == c.dropped { // a part may have two, its own and its message's
		return
	}
	c.dropped = place
	if c.None {
		rep.Add(dragoman.Dropped, dragoman.Info, place, "cache breakpoint: the target accepts none")
		return
	}
	rep.Add(dragoman.Dropped, dragoman.Info, place, "cache breakpoint: the API accepts four, and later ones cover more")
}

// Tools drops the hints of tools that exceed the limit.
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
		unedited := c.Separate && t.Source != nil && t.Source.Mirror == t.Fingerprint()
		t.Cache = nil
		if unedited { // the hint is not part of the source, which stays valid
			src := *t.Source
			src.Mirror = t.Fingerprint()
			t.Source = &src
		}
		c.drop(rep, extra.Elem("/tools", i))
	}
	return tools
}

// Take returns the hint to write on a block, or after it.
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

// AtEnd returns the hint to write after the prompt.
func (c *Breakpoints) AtEnd(hint *dragoman.CacheHint, rep *dragoman.Report) *dragoman.CacheHint {
	if hint != nil && c.None {
		c.drop(rep, extra.At("/cache"))
		return nil
	}
	return hint
}

// WouldDrop reports whether a block would lose a hint, so that its native form cannot be
// written.
func (c *Breakpoints) WouldDrop(b *Block) bool { return c.over() && hints(b) > 0 }

// WouldDropAny reports whether any of the blocks would lose a hint, so that the native form
// of their message cannot be written.
func (c *Breakpoints) WouldDropAny(blocks []Block) bool {
	return c.over() && slices.ContainsFunc(blocks, func(b Block) bool { return hints(&b) > 0 })
}
