package blockwire

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
)

func isThinking(b Block) bool { return b.Is(dragoman.KindReasoning) }

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
