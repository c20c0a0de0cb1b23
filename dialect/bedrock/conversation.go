package bedrock

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// documentText is added to a message that has a document but no text.
const documentText = "(see the attached document)"

// arrange plans the conversation of a request.
func (e *requestEncoder) arrange(req *dragoman.Request) {
	e.Arrange(req, e, e.Rep)
	e.moveCachePoints()
	e.nameDocuments()
	e.TrimPrefill()
	e.Open()
}

// Replay implements [blockwire.Wire]. The API does not accept every response
// back: it refuses invalid tool names that the model made up (quirk A33),
// arguments that are not an object, and blank texts.
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

// Complete implements [blockwire.Wire]. It removes blank texts, adds a text to
// a document, and puts the cache hint of the message on the last block.
func (e *requestEncoder) Complete(out []blockwire.Block, m *dragoman.Message, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	out = blockwire.DropBlank(out, rep)
	if role == blockwire.User && e.needsText(out) {
		rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "the API requires text next to a document: %q added", documentText)
		out = append(out, blockwire.Block{Part: &dragoman.Text{Text: documentText}, At: at})
	}
	blockwire.MarkLast(out, m.Cache, at, rep)
	return out
}

// needsText reports whether blocks contain a document and no text (quirk D38).
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
	b, ok := e.BlockFor(m, p, at, role, rep, e.MayThink)
	if !ok {
		return out
	}
	if e.Target.Caps.NoCacheBreakpoints && isCachePoint(b.Part) {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: not supported by the target")
		return out
	}
	if res, is := b.Part.(*dragoman.ToolResult); is {
		b.Part, b.Cache = hoistCache(res, at, rep)
	}
	return append(out, b)
}

// isCachePoint reports whether a part is a cache point that a hint cannot
// express, or that has no part before it.
func isCachePoint(p dragoman.Part) bool {
	o, ok := p.(*dragoman.Opaque)
	return ok && o.Dialect == name && o.Type == keyCache
}

// hoistCache returns a result without cache hints, and the hint to write after it:
// the wire has no cache point inside a result (quirk D31).
func hoistCache(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (*dragoman.ToolResult, *dragoman.CacheHint) {
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
			rep.Add(dragoman.Moved, dragoman.Info, at.String(), "cache breakpoint inside a result written after it")
		}
		out.Content[i] = blockwire.WithoutHint(p)
		if hint == nil {
			hint = h
		}
	}
	return &out, hint
}

// moveCachePoints moves cache points between the results of a turn to the
// end of the last result: results come first, with nothing in between (quirk
// D2). A message in its native form is not changed.
func (e *requestEncoder) moveCachePoints() {
	for i := 1; i < len(e.Turns); i++ {
		t := &e.Turns[i]
		last := lastResult(&e.Turns[i-1], t)
		if t.Untouched() || last < 0 || t.Blocks[last].Raw != nil {
			continue
		}
		for j := last - 1; j >= 0; j-- {
			b := &t.Blocks[j]
			if b.Cache == nil || !b.Is(codes.KindToolResult) {
				continue
			}
			e.Rep.Add(dragoman.Moved, dragoman.Info, b.At.String(), "cache breakpoint between results written after the last one")
			if to := &t.Blocks[last]; to.Cache == nil {
				to.Cache, to.Mark = b.Cache, b.Mark
			}
			b.Cache, b.Mark = nil, nil
		}
	}
}

// lastResult returns the position of the last result in t for a call of the
// turn before; -1 if there is none.
func lastResult(before, t *blockwire.Turn) int {
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

// nameDocuments gives every document a valid name that is unique in the
// request. It assigns names in order, so a later document never changes the
// name of an earlier one.
func (e *requestEncoder) nameDocuments() {
	used := map[string]int{}
	for i := range e.Turns {
		for j := range e.Turns[i].Blocks {
			b := &e.Turns[i].Blocks[j]
			switch p := b.Part.(type) {
			case *dragoman.Media:
				if m := e.named(p, b.Raw != nil, used, b.At); m != p {
					b.Part = m
				}
			case *dragoman.ToolResult:
				copied := false
				for k, part := range p.Content {
					m, ok := part.(*dragoman.Media)
					if !ok {
						continue
					}
					named := e.named(m, b.Raw != nil, used, b.At.Elem("content", k))
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

// named returns a document with its wire name, and other media unchanged. A
// document in its native form keeps its name.
func (e *requestEncoder) named(m *dragoman.Media, native bool, used map[string]int, at extra.Path) *dragoman.Media {
	if m.Media != codes.MediaFile || refusesMedia(e.Reg.View(), m) != "" {
		return m
	}
	base := documentName(m)
	n := used[base]
	used[base]++
	if native {
		return m
	}
	wire := base
	for n > 0 {
		wire = fmt.Sprintf("%s (%d)", base, n+1)
		if _, there := used[wire]; !there {
			used[wire] = 1
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
		e.Rep.Addf(dragoman.Synthesized, dragoman.Info, at.String()+"/name", "the API requires a document name: %q written", wire)
	}
	out := *m
	out.Name = wire
	return &out
}

// endHint returns the cache hint to write at the end of the prompt; nil if a
// cache point is already there.
func (e *requestEncoder) endHint(hint *dragoman.CacheHint) *dragoman.CacheHint {
	if n := len(e.Turns); n > 0 {
		if blocks := e.Turns[n-1].Blocks; len(blocks) > 0 && blocks[len(blocks)-1].Cache != nil {
			return nil
		}
	}
	return hint
}

// writeReasoning writes a reasoning block.
func writeReasoning(w *jsonwire.Writer, p *dragoman.Reasoning, signature string) {
	w.BeginObject()
	w.Key(keyReasoning)
	w.BeginObject()
	if p.Redacted {
		w.StringField("redactedContent", p.Encrypted)
	} else {
		w.Key("reasoningText")
		w.BeginObject()
		w.StringField("text", wirekit.VisibleReasoning(p))
		w.StringFieldIf("signature", signature)
		extra.WriteBut(w, p.Extra, name, inText, func(f dragoman.Field) bool { return f.Path == inText+"/signature" && signature != "" })
		w.EndObject()
	}
	extra.Write(w, p.Extra, name, inReasoning)
	w.EndObject()
	extra.Write(w, p.Extra, name, "")
	w.EndObject()
}
