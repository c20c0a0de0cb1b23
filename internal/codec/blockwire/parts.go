package blockwire

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
)

func isThinking(b Block) bool { return b.Is(codes.KindReasoning) }

// Usual is the block that a part becomes on a wire where media stands in user
// messages, and calls, results and thinking are blocks; ok is false where there
// is none, which it reports. m is nil for the request's instructions. mayThink
// reports whether thinking goes back to the target.
func (p *Plan) Usual(
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
			return drop(dragoman.Info, "a text that says nothing")
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
			return drop(dragoman.Serious, "a system message takes no %s", part.Media)
		case role == p.Assistant && !p.Own(m):
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "an assistant message takes no %s; a note stands in for it", part.Media)
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
			return drop(dragoman.Serious, "%s of %s has no place here", extra.A(part.Type), part.Dialect)
		}
	default:
		return drop(dragoman.Serious, "a part of an unknown kind")
	}
	return b, true
}

// DropBlank takes texts that say nothing out of the blocks of a message, for an
// API that rejects them. Beside thinking they stay: one may be what keeps two
// blocks of it apart (quirk D22).
func DropBlank(blocks []Block, rep *dragoman.Report) []Block {
	if slices.ContainsFunc(blocks, isThinking) {
		return blocks
	}
	return slices.DeleteFunc(blocks, func(b Block) bool {
		t, ok := b.Part.(*dragoman.Text)
		if !ok || strings.TrimSpace(t.Text) != "" {
			return false
		}
		rep.Add(dragoman.Dropped, dragoman.Info, b.At.String(), "a text that says nothing")
		return true
	})
}

// MarkLast puts the cache hint of a message, if it has one, on the last of its
// blocks that can carry one.
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

// WithoutHint is a part of a result's content without its cache hint.
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

// Proven reports whether thinking carries what proves that the model thought
// it.
func Proven(p *dragoman.Reasoning) bool {
	if p.Redacted {
		return p.Encrypted != ""
	}
	return p.Signature != ""
}

// Visible is the thinking a reader may see.
func Visible(p *dragoman.Reasoning) string {
	if len(p.Summary) == 0 {
		return p.Text
	}
	all := p.Summary
	if p.Text != "" {
		all = append([]string{p.Text}, p.Summary...)
	}
	return strings.Join(all, "\n\n")
}

// Signature returns the signature of thinking in an answer as a client of dialect
// d may see it: one that another dialect minted would only be rejected when it
// comes back. origin is the answer's.
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

// Shows reports whether thinking in an answer makes a block at all.
func Shows(p *dragoman.Reasoning, origin *dragoman.Origin, d dragoman.Dialect) bool {
	own := !foreign(p, origin, d)
	if p.Redacted {
		return own && p.Encrypted != ""
	}
	return Visible(p) != "" || own && (p.Signature != "" || p.Encrypted == "")
}

// foreign reports whether thinking is known to come from another dialect.
func foreign(p *dragoman.Reasoning, origin *dragoman.Origin, d dragoman.Dialect) bool {
	if p.Origin != nil {
		origin = p.Origin
	}
	return origin != nil && origin.Dialect != d
}
