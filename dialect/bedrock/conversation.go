package bedrock

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// besideText stands beside a document that nothing is said about.
const besideText = "(see the attached document)"

// arrange plans the whole of a request's conversation.
func (e *requestEncoder) arrange(req *dragoman.Request) {
	e.Arrange(req, e, e.Rep)
	e.marksBehindResults()
	e.nameDocuments()
	e.TrimPrefill()
	e.Open()
}

// Replay implements [blockwire.Wire]. An answer is not always a message that the
// API takes back: it refuses names that it would not have let pass itself (quirk
// A33), arguments that are no object, and texts that say nothing.
func (e *requestEncoder) Replay(m *dragoman.Message) ([]byte, bool) {
	thinks := slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindReasoning })
	return e.Native(m, func(p dragoman.Part) bool {
		switch p := p.(type) {
		case *dragoman.Text:
			return !thinks && strings.TrimSpace(p.Text) == ""
		case *dragoman.Opaque:
			return e.Target.Caps.NoCacheBreakpoints && isCachePoint(p)
		case *dragoman.ToolCall:
			_, exact := p.Object()
			return !exact || e.Reg.WireName(p.Namespace, p.Name) != p.Name
		default:
			return false
		}
	})
}

// Complete implements [blockwire.Wire]: no text is blank, a document has a text
// beside it, and the last block carries the cache hint of the message.
func (e *requestEncoder) Complete(out []blockwire.Block, m *dragoman.Message, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	out = blockwire.DropBlank(out, rep)
	if role == blockwire.User && e.needsText(out) {
		rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "the API requires text in a message with a document; %q added", besideText)
		out = append(out, blockwire.Block{Part: &dragoman.Text{Text: besideText}, At: at})
	}
	blockwire.MarkLast(out, m.Cache, at, rep)
	return out
}

// needsText reports whether blocks hold a document and no text (quirk D38).
func (e *requestEncoder) needsText(blocks []blockwire.Block) bool {
	document := false
	for _, b := range blocks {
		switch p := b.Part.(type) {
		case *dragoman.Text:
			return false
		case *dragoman.Media:
			document = document || p.Media == codes.MediaFile && refusesMedia(e.Reg.View(), p) == ""
		case *dragoman.Opaque:
			document = document || p.Type == "document"
		}
	}
	return document
}

// Add implements [blockwire.Wire].
func (e *requestEncoder) Add(out []blockwire.Block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	b, ok := e.Usual(m, p, at, role, rep, e.MayThink)
	if !ok {
		return out
	}
	if e.Target.Caps.NoCacheBreakpoints && isCachePoint(b.Part) {
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
func (e *requestEncoder) marksBehindResults() {
	for i := 1; i < len(e.Turns); i++ {
		t := &e.Turns[i]
		last := lastAnswer(&e.Turns[i-1], t)
		if t.Untouched() || last < 0 || t.Blocks[last].Raw != nil {
			continue
		}
		for j := last - 1; j >= 0; j-- {
			b := &t.Blocks[j]
			if b.Cache == nil || !b.Is(codes.KindToolResult) {
				continue
			}
			e.Rep.Add(dragoman.Moved, dragoman.Info, b.At.String(), "a cache breakpoint between results written behind the last of them")
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
func (e *requestEncoder) nameDocuments() {
	taken := map[string]int{}
	for i := range e.Turns {
		for j := range e.Turns[i].Blocks {
			b := &e.Turns[i].Blocks[j]
			switch p := b.Part.(type) {
			case *dragoman.Media:
				if m := e.named(p, b.Raw != nil, taken, b.At); m != p {
					b.Part = m
				}
			case *dragoman.ToolResult:
				copied := false
				for k, part := range p.Content {
					m, ok := part.(*dragoman.Media)
					if !ok {
						continue
					}
					named := e.named(m, b.Raw != nil, taken, b.At.Elem("content", k))
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
func (e *requestEncoder) named(m *dragoman.Media, native bool, taken map[string]int, at extra.Path) *dragoman.Media {
	if m.Media != codes.MediaFile || refusesMedia(e.Reg.View(), m) != "" {
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
		e.Rep.AddRename(dragoman.Info, at.String()+"/name", "document", m.Name, wire)
	} else {
		e.Rep.Addf(dragoman.Synthesized, dragoman.Info, at.String()+"/name", "the API requires a name; %q written", wire)
	}
	out := *m
	out.Name = wire
	return &out
}

// ending is the cache point that a request wants at the end of its prompt; nil
// where one stands there already.
func (e *requestEncoder) ending(hint *dragoman.CacheHint) *dragoman.CacheHint {
	if n := len(e.Turns); n > 0 {
		if blocks := e.Turns[n-1].Blocks; len(blocks) > 0 && blocks[len(blocks)-1].Cache != nil {
			return nil
		}
	}
	return hint
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
