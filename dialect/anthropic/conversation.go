package anthropic

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Replay implements [blockwire.Wire].
func (e *requestEncoder) Replay(m *dragoman.Message) ([]byte, bool) { return e.Native(m, nil) }

// arrange plans the conversation of a request.
func (e *requestEncoder) arrange(req *dragoman.Request) {
	_, e.Threaded = extra.Get(req.Extra, name, "/thread")
	e.Arrange(req, e, e.Rep)
	e.TrimPrefill()
	e.Open()
}

// Complete implements [blockwire.Wire]. It removes blank texts and puts the
// cache hint of the message on the last block.
func (e *requestEncoder) Complete(out []blockwire.Block, m *dragoman.Message, at extra.Path, _ string, rep *dragoman.Report) []blockwire.Block {
	out = blockwire.DropBlank(out, rep)
	blockwire.MarkLast(out, m.Cache, at, rep)
	return out
}

// Add implements [blockwire.Wire].
func (e *requestEncoder) Add(out []blockwire.Block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []blockwire.Block {
	b, ok := e.BlockFor(m, p, at, role, rep, e.MayThink)
	if !ok {
		return out
	}
	if t, text := b.Part.(*dragoman.Text); text && role == blockwire.User {
		if _, cites := extra.Get(t.Extra, name, "/citations"); cites {
			rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/citations", "version 2026-10-21 rejects citations on user text")
			b.Part = withoutCitations(t)
		}
	}
	return append(out, b)
}

func withoutCitations(p *dragoman.Text) *dragoman.Text {
	t := *p
	t.Extra = extra.Clone(p.Extra)
	t.Extra.Fields = slices.DeleteFunc(t.Extra.Fields, func(f dragoman.Field) bool {
		return f.Path == "/citations" || strings.HasPrefix(f.Path, "/citations/")
	})
	return &t
}

// writeReasoning writes a thinking block.
func writeReasoning(w *jsonwire.Writer, p *dragoman.Reasoning, signature string) {
	w.BeginObject()
	if p.Redacted {
		w.StringField("type", "redacted_thinking")
		w.StringField("data", p.Encrypted)
	} else {
		w.StringField("type", "thinking")
		w.StringField("thinking", wirekit.VisibleReasoning(p))
		w.StringField("signature", signature)
	}
	extra.Write(w, p.Extra, name, "")
	w.EndObject()
}
