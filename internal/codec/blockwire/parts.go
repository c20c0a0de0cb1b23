package blockwire

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

func isThinking(b Block) bool { return b.Is(codes.KindReasoning) }

// BlockFor returns the block for a part, on a wire where user messages have media, and
// calls, results and thinking are blocks. If there is no block for the part, ok is
// false and the loss is reported. m is nil for the instructions of the request.
// mayThink reports whether thinking is sent back to the target.
func (p *Plan) BlockFor(
	m *dragoman.Message, part dragoman.Part, at extra.Path, role string, rep *dragoman.Report,
	mayThink func(*dragoman.Message, *dragoman.Reasoning) bool,
) (b Block, ok bool) {
	drop := func(sev dragoman.Severity, format string, args ...any) (Block, bool) {
		rep.Addf(dragoman.Dropped, sev, at.String(), format, args...)
		return Block{}, false
	}
	b = Block{Part: part, At: at, Cache: HintOf(part)}
	switch part := part.(type) {
	case *dragoman.Text:
		if role == System && strings.TrimSpace(part.Text) == "" {
			return drop(dragoman.Info, "a blank text")
		}
	case *dragoman.Refusal:
		extra.Report(rep, part.Extra, p.Dialect, at)
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
		b.Part = &dragoman.Text{Text: part.Text}
	case *dragoman.Data:
		b.Part = &dragoman.Text{Text: string(part.JSON)}
	case *dragoman.Reasoning:
		if role != p.Assistant || !mayThink(m, part) {
			return drop(dragoman.Warn, "reasoning that this target did not write, or that carries no signature")
		}
	case *dragoman.Media:
		switch {
		case role == System:
			return drop(dragoman.Serious, "a system message cannot contain %s", part.Media)
		case role == p.Assistant && !p.Own(m):
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "an assistant message cannot contain %s; replaced by a note", part.Media)
			b.Part = &dragoman.Text{Text: toolwire.Placeholder(part)}
		}
	case *dragoman.ToolCall:
		switch {
		case part.Hosted:
			return drop(dragoman.Serious, "call of %q was run by its provider", part.Name)
		case role != p.Assistant:
			return drop(dragoman.Serious, "a call outside an assistant message")
		}
	case *dragoman.ToolResult:
		if role != User {
			return drop(dragoman.Serious, "a tool result inside a message of role %s", role)
		}
	case *dragoman.Opaque:
		if part.Dialect != p.Dialect {
			return drop(dragoman.Serious, "%s of %s cannot be expressed here", extra.WithArticle(part.Type), part.Dialect)
		}
	default:
		return drop(dragoman.Serious, "a part of an unknown kind")
	}
	return b, true
}

// DropBlank removes blank texts from the blocks of a message, for an API that rejects
// them. A message with thinking keeps them: a blank text may separate two blocks of
// thinking (quirk D22).
func DropBlank(blocks []Block, rep *dragoman.Report) []Block {
	if slices.ContainsFunc(blocks, isThinking) {
		return blocks
	}
	return slices.DeleteFunc(blocks, func(b Block) bool {
		t, ok := b.Part.(*dragoman.Text)
		if !ok || strings.TrimSpace(t.Text) != "" {
			return false
		}
		rep.Add(dragoman.Dropped, dragoman.Info, b.At.String(), "a blank text")
		return true
	})
}

// MarkLast puts the cache hint of a message, if any, on the last block that can carry
// one.
func MarkLast(blocks []Block, hint *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
	if hint == nil {
		return
	}
	for i := len(blocks) - 1; i >= 0; i-- {
		switch blocks[i].Part.(type) {
		case *dragoman.Reasoning, *dragoman.Opaque:
		default:
			if blocks[i].Cache == nil {
				blocks[i].Cache = hint
			}
			return
		}
	}
	rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "no block of the message can carry a cache breakpoint")
}

// HintOf returns the cache hint of a part of a message.
func HintOf(p dragoman.Part) *dragoman.CacheHint {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Cache
	case *dragoman.Media:
		return p.Cache
	case *dragoman.ToolCall:
		return p.Cache
	case *dragoman.ToolResult:
		return p.Cache
	default:
		return nil
	}
}

// WithoutHint returns a part of a result's content without its cache hint.
func WithoutHint(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Text:
		t := *p
		t.Cache = nil
		return &t
	case *dragoman.Media:
		m := *p
		m.Cache = nil
		return &m
	default:
		return p
	}
}

// HasProof reports whether thinking has a signature or encrypted content, which proves
// that the model produced it.
func HasProof(p *dragoman.Reasoning) bool {
	if p.Redacted {
		return p.Encrypted != ""
	}
	return p.Signature != ""
}

// Signature returns the signature of thinking in a response for a client of dialect d.
// It returns "" for a signature of another dialect, which would be rejected when the
// client sends it back. origin is the origin of the response.
func Signature(p *dragoman.Reasoning, origin *dragoman.Origin, d dragoman.Dialect, at extra.Path, rep *dragoman.Report) string {
	if !foreign(p, origin, d) {
		return p.Signature
	}
	extra.ReportItem(rep, p.ID, at, "/id")
	if p.Signature != "" || p.Encrypted != "" || len(p.Details) > 0 {
		extra.ReportOpaque(rep, at.String())
	}
	return ""
}

// IsShown reports whether thinking in a response becomes a block.
func IsShown(p *dragoman.Reasoning, origin *dragoman.Origin, d dragoman.Dialect) bool {
	own := !foreign(p, origin, d)
	if p.Redacted {
		return own && p.Encrypted != ""
	}
	return wirekit.VisibleReasoning(p) != "" || own && (p.Signature != "" || p.Encrypted == "")
}

// foreign reports whether thinking is known to come from another dialect.
func foreign(p *dragoman.Reasoning, origin *dragoman.Origin, d dragoman.Dialect) bool {
	if p.Origin != nil {
		origin = p.Origin
	}
	return origin != nil && origin.Dialect != d
}
