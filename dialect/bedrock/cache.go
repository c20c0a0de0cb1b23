package bedrock

import (
	"bytes"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
)

// cacheBudget keeps a request within the API's number of cache points. A later
// one remembers all that stands before it, so when there are too many the first
// ones go, in the order a model reads a prompt: tools, system, messages (quirk
// D31).
type cacheBudget struct {
	// surplus is how many hints are still to be left out.
	surplus int
	told    string // where the last one was
}

var cacheName = []byte(`"` + keyCache + `"`)

// plan counts what is asked for and settles how much of it is too much. Cache
// points inside blocks and tools that we never rewrite count, and stay.
func (c *cacheBudget) plan(limit int, tools []dragoman.ToolSpec, atEnd bool, conv *conversation) {
	n := 0
	for i := range tools {
		if t := &tools[i]; t.Kind == dragoman.ToolHosted && t.Source != nil {
			n += bytes.Count(t.Source.JSON, cacheName)
		} else if t.Cache != nil {
			n++
		}
	}
	count := func(blocks []blockwire.Block) {
		for i := range blocks {
			if blocks[i].Cache != nil {
				n++
			}
			if o, ok := blocks[i].Part.(*dragoman.Opaque); ok {
				n += bytes.Count(o.JSON, cacheName)
			}
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
		if tools[i].Cache == nil || tools[i].Kind == dragoman.ToolHosted {
			continue
		}
		if !copied {
			tools, copied = slices.Clone(tools), true
		}
		t := &tools[i]
		unedited := t.Source != nil && t.Source.Mirror == t.Fingerprint()
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

// take returns the hint to write after a block.
func (c *cacheBudget) take(b *blockwire.Block, rep *dragoman.Report) *dragoman.CacheHint {
	if b.Cache != nil && c.surplus > 0 {
		c.drop(rep, b.At)
		return nil
	}
	return b.Cache
}

// cutsAny reports whether any of the blocks would lose its hint, so that the
// message around them cannot be written in the form it came in.
func (c *cacheBudget) cutsAny(blocks []blockwire.Block) bool {
	return c.surplus > 0 && slices.ContainsFunc(blocks, func(b blockwire.Block) bool { return b.Cache != nil })
}
