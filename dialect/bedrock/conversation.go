package bedrock

import (
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// The roles of the wire.
const (
	wireUser      = blockwire.User
	wireAssistant = "assistant"
	wireSystem    = blockwire.System
)

// besideText stands beside a document that nothing is said about.
const besideText = "(see the attached document)"

// conversation is the plan of a request's conversation, and says what its parts
// become on this wire.
type conversation struct {
	blockwire.Plan
	reg    *interop.Registry
	limits dragoman.Limits
	target dragoman.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report
}

func newConversation(reg *interop.Registry, limits dragoman.Limits, o dialect.EncodeOptions, rep *dragoman.Report) conversation {
	target := reg.Target()
	rules := blockwire.Rules{
		Dialect: name, Assistant: wireAssistant, List: "content",
		Turn: "message", Prompt: "system prompt",
		SystemTurns: true, MidSystem: target.Caps.MidSystem,
		CachePoint: func(raw []byte) bool { return cacheHint(raw) != nil },
	}
	return conversation{Plan: blockwire.Plan{Rules: rules}, reg: reg, limits: limits, target: target, o: o, rep: rep}
}

// arrange plans the whole of a request's conversation.
func (c *conversation) arrange(req *dragoman.Request) {
	c.Arrange(req, c, c.rep)
	c.marksBehindResults()
	c.nameDocuments()
	c.TrimPrefill()
	c.Open()
}

// Said implements [blockwire.Wire]: a result must follow the calls of a turn.
func (c *conversation) Said(t *blockwire.Turn) { c.CallsLast(t) }

// mayThink reports whether thinking goes back: to its origin only, and only
// with the signature that proves it. Models that sign nothing take no thinking
// back (quirks D23, D24, G9, G12).
func (c *conversation) mayThink(m *dragoman.Message, p *dragoman.Reasoning) bool {
	return m != nil && blockwire.Proven(p) && wirekit.MayReplayReasoning(m, p, &c.limits, &c.target)
}

// Complete implements [blockwire.Wire]: no text is blank, a document has a text
// beside it, and the last block carries the cache hint of the message.
func (c *conversation) Complete(out []blockwire.Block, m *dragoman.Message, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	out = blockwire.DropBlank(out, rep)
	if role == wireUser && c.needsText(out) {
		rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "the API requires text in a message with a document; %q added", besideText)
		out = append(out, blockwire.Block{Part: &dragoman.Text{Text: besideText}, At: at})
	}
	blockwire.MarkLast(out, m.Cache, at, rep)
	return out
}

// needsText reports whether blocks hold a document and no text (quirk D38).
func (c *conversation) needsText(blocks []blockwire.Block) bool {
	document := false
	for _, b := range blocks {
		switch p := b.Part.(type) {
		case *dragoman.Text:
			return false
		case *dragoman.Media:
			document = document || p.Media == dragoman.MediaFile && refusesMedia(c.reg.View(), p) == ""
		case *dragoman.Opaque:
			document = document || p.Type == "document"
		}
	}
	return document
}

// Add implements [blockwire.Wire].
func (c *conversation) Add(out []blockwire.Block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	b, ok := c.Usual(m, p, at, role, rep, c.mayThink)
	if !ok {
		return out
	}
	if c.target.Caps.NoCacheBreakpoints && isCachePoint(b.Part) {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the target takes none")
		return out
	}
	if res, is := b.Part.(*dragoman.ToolResult); is {
		b.Part, b.Cache = hoisted(res, at, rep)
	}
	return append(out, b)
}

// isCachePoint reports whether a part is a cache point that says more than a hint
// can, or has no part before it.
func isCachePoint(p dragoman.Part) bool {
	o, ok := p.(*dragoman.Opaque)
	return ok && o.Dialect == name && o.Type == keyCache
}

// hoisted returns a result without cache hints, and the hint that belongs
// behind it: the wire takes no cache point inside a result (quirk D31).
func hoisted(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (*dragoman.ToolResult, *dragoman.CacheHint) {
	hint, inside := res.Cache, false
	out := *res
	out.Cache = nil
	for i, p := range res.Content {
		h := blockwire.HintOf(p)
		if h == nil {
			continue
		}
		if !inside {
			out.Content, inside = slices.Clone(res.Content), true
			rep.Add(dragoman.Moved, dragoman.Info, at.String(), "a cache breakpoint inside a result written behind it")
		}
		out.Content[i] = blockwire.WithoutHint(p)
		if hint == nil {
			hint = h
		}
	}
	return &out, hint
}

// marksBehindResults moves cache points from between the results of a turn's
// calls behind the last of them: results stand first, with nothing in between
// (quirk D2). Those of a message in the form it came in are its client's affair.
func (c *conversation) marksBehindResults() {
	for i := 1; i < len(c.Turns); i++ {
		t := &c.Turns[i]
		last := lastAnswer(&c.Turns[i-1], t)
		if t.Untouched() || last < 0 || t.Blocks[last].Raw != nil {
			continue
		}
		for j := last - 1; j >= 0; j-- {
			b := &t.Blocks[j]
			if b.Cache == nil || !b.Is(dragoman.KindToolResult) {
				continue
			}
			c.rep.Add(dragoman.Moved, dragoman.Info, b.At.String(), "a cache breakpoint between results written behind the last of them")
			if to := &t.Blocks[last]; to.Cache == nil {
				to.Cache, to.Mark = b.Cache, b.Mark
			}
			b.Cache, b.Mark = nil, nil
		}
	}
}

// lastAnswer is the place of the last result in a turn that answers a call of
// the one before; -1 where there is none.
func lastAnswer(before, t *blockwire.Turn) int {
	for j := len(t.Blocks) - 1; j >= 0; j-- {
		res, ok := t.Blocks[j].Part.(*dragoman.ToolResult)
		if ok && slices.ContainsFunc(before.Blocks, func(b blockwire.Block) bool {
			call, is := b.Part.(*dragoman.ToolCall)
			return is && call.ID == res.CallID
		}) {
			return j
		}
	}
	return -1
}

// nameDocuments gives every document a name that the API takes and that no
// other of the request has. Names are settled in order, so that a later one
// never changes an earlier.
func (c *conversation) nameDocuments() {
	taken := map[string]int{}
	for i := range c.Turns {
		for j := range c.Turns[i].Blocks {
			b := &c.Turns[i].Blocks[j]
			switch p := b.Part.(type) {
			case *dragoman.Media:
				if m := c.named(p, b.Raw != nil, taken, b.At); m != p {
					b.Part = m
				}
			case *dragoman.ToolResult:
				copied := false
				for k, part := range p.Content {
					m, ok := part.(*dragoman.Media)
					if !ok {
						continue
					}
					named := c.named(m, b.Raw != nil, taken, b.At.Elem("content", k))
					if named == m {
						continue
					}
					if !copied {
						res := *p
						res.Content, copied = slices.Clone(p.Content), true
						p, b.Part = &res, &res
					}
					p.Content[k] = named
				}
			}
		}
	}
}

// named returns a document under the name it has on the wire; any other media
// as it is. One in its native form keeps the name it came with.
func (c *conversation) named(m *dragoman.Media, native bool, taken map[string]int, at extra.Path) *dragoman.Media {
	if m.Media != dragoman.MediaFile || refusesMedia(c.reg.View(), m) != "" {
		return m
	}
	base := documentName(m)
	n := taken[base]
	taken[base]++
	if native {
		return m
	}
	wire := base
	for n > 0 {
		wire = fmt.Sprintf("%s (%d)", base, n+1)
		if _, there := taken[wire]; !there {
			taken[wire] = 1
			break
		}
		n++
	}
	if wire == m.Name {
		return m
	}
	if m.Name != "" {
		c.rep.AddRename(dragoman.Info, at.String()+"/name", "document", m.Name, wire)
	} else {
		c.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String()+"/name", "the API requires a name; %q written", wire)
	}
	out := *m
	out.Name = wire
	return &out
}

// writeBlock writes one part as a block, and the cache point behind it.
func (c *conversation) writeBlock(w *jsonwire.Writer, b *blockwire.Block, cache *blockwire.Breakpoints) error {
	if b.Raw != nil {
		w.Known(b.Raw)
	} else if err := c.writePart(w, b); err != nil {
		return err
	}
	hint := cache.Take(b, c.rep)
	switch {
	case hint == nil:
	case b.Mark != nil:
		w.Known(b.Mark)
	default:
		writeCachePoint(w, hint, b.At, c.rep)
	}
	return nil
}

// ending is the cache point that a request wants at the end of its prompt; nil
// where one stands there already.
func (c *conversation) ending(hint *dragoman.CacheHint) *dragoman.CacheHint {
	if n := len(c.Turns); n > 0 {
		if blocks := c.Turns[n-1].Blocks; len(blocks) > 0 && blocks[len(blocks)-1].Cache != nil {
			return nil
		}
	}
	return hint
}

// writeMark writes the cache point at the end of the prompt.
func (c *conversation) writeMark(w *jsonwire.Writer, hint *dragoman.CacheHint) {
	writeCachePoint(w, hint, extra.At(""), c.rep)
}

func (c *conversation) writePart(w *jsonwire.Writer, b *blockwire.Block) error {
	switch p := b.Part.(type) {
	case *dragoman.Text:
		writeText(c.reg.View(), w, p, b.At, c.rep)
	case *dragoman.Media:
		writeMedia(c.reg.View(), w, p, b.At, c.rep)
	case *dragoman.ToolCall:
		call := *p
		call.Cache = nil
		if err := c.reg.WriteCall(w, &call, b.At, c.rep); err != nil {
			return fmt.Errorf("bedrock: %s: %w", b.At, err)
		}
	case *dragoman.ToolResult:
		if _, err := c.reg.WriteResult(w, p, b.At, c.rep); err != nil {
			return fmt.Errorf("bedrock: %s: %w", b.At, err)
		}
	case *dragoman.Reasoning:
		writeReasoning(w, p, p.Signature)
	case *dragoman.Opaque:
		w.Raw(p.JSON)
	}
	return nil
}

// writeReasoning writes a block of thinking.
func writeReasoning(w *jsonwire.Writer, p *dragoman.Reasoning, signature string) {
	w.BeginObject()
	w.Key(keyReasoning)
	w.BeginObject()
	if p.Redacted {
		w.StringField("redactedContent", p.Encrypted)
	} else {
		w.Key("reasoningText")
		w.BeginObject()
		w.StringField("text", blockwire.Visible(p))
		w.StringFieldIf("signature", signature)
		extra.WriteBut(w, p.Extra, name, inText, func(f dragoman.Field) bool { return f.Path == inText+"/signature" && signature != "" })
		w.EndObject()
	}
	extra.Write(w, p.Extra, name, inReasoning)
	w.EndObject()
	extra.Write(w, p.Extra, name, "")
	w.EndObject()
}
