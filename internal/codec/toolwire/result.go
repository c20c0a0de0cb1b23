package toolwire

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ErrorPrefix marks a failed result in dialects without an error flag.
const ErrorPrefix = "ERROR: "

// NativeContent returns the content of the result's envelope if it has the format, or
// nil.
func NativeContent(res *dragoman.ToolResult, format dragoman.Format) json.RawMessage {
	if res.Envelope != nil && res.Envelope.Format == format {
		return res.Envelope.JSON
	}
	return nil
}

// TextParts returns the content of a result as texts, marking an error in the
// first one, and the parts that are not text.
func TextParts(res *dragoman.ToolResult) (texts []string, media []dragoman.Part) {
	for _, p := range res.Content {
		switch p := p.(type) {
		case *dragoman.Text:
			texts = append(texts, p.Text)
		case *dragoman.Data:
			texts = append(texts, string(p.JSON))
		default:
			media = append(media, p)
		}
	}
	if res.Outcome == codes.OutcomeError {
		if len(texts) == 0 {
			texts = []string{""}
		}
		if !strings.HasPrefix(texts[0], ErrorPrefix) {
			texts[0] = ErrorPrefix + texts[0]
		}
	}
	return texts, media
}

// ReportErrorFlag reports that an error flag became a prefix.
func ReportErrorFlag(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	if res.Outcome == codes.OutcomeError {
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), `error flag written as "ERROR: " before the text`)
	}
}

// Blank reports whether a text block would be rejected as empty (quirk D22).
func Blank(t *dragoman.Text) bool { return strings.TrimSpace(t.Text) == "" }

// ReportBlank reports a blank text that is left out.
func ReportBlank(rep *dragoman.Report, at extra.Path) {
	rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "a blank text")
}

// ReadContent reads the content of a result: a text, a list of blocks that block
// reads, or a JSON value. block returns nil for a block that is not content. A list
// is added to the parts.
func ReadContent(rd *jsonwire.Reader, parts []dragoman.Part, block func(raw json.RawMessage) dragoman.Part) []dragoman.Part {
	switch rd.Kind() {
	case '"':
		return []dragoman.Part{&dragoman.Text{Text: rd.String()}}
	case '[':
		for range rd.Array() {
			if p := block(rd.Raw()); p != nil {
				parts = append(parts, p)
			}
		}
		return parts
	case 'n':
		rd.Skip()
		return parts
	default:
		return []dragoman.Part{&dragoman.Data{JSON: rd.Raw()}}
	}
}

// ContentWriter writes the blocks of a result's content.
type ContentWriter struct {
	Dialect dragoman.Dialect
	// Block is the name of a result block in reports, such as "toolResult".
	Block string
	Text  func(t *dragoman.Text, at extra.Path)
	Data  func(d *dragoman.Data, at extra.Path)
	Media func(m *dragoman.Media, at extra.Path)
	// EmptyOutput: a result with one empty text is a result without output, and the
	// text is not reported as lost.
	EmptyOutput bool
}

// Write writes the blocks of a result as elements of a list. It reports parts that have
// no block.
func (c ContentWriter) Write(w *jsonwire.Writer, parts []dragoman.Part, at extra.Path, rep *dragoman.Report) {
	for i, p := range parts {
		at := at.Elem("content", i)
		switch p := p.(type) {
		case *dragoman.Text:
			switch {
			case !Blank(p):
				c.Text(p, at)
			case !c.EmptyOutput || p.Text != "" || len(parts) > 1:
				ReportBlank(rep, at)
			}
		case *dragoman.Data:
			c.Data(p, at)
		case *dragoman.Media:
			c.Media(p, at)
		case *dragoman.Opaque:
			if p.Dialect == c.Dialect {
				w.Raw(p.JSON)
				continue
			}
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s cannot be expressed in a "+c.Block, extra.TypedNoun(p.Type, "block"), p.Dialect)
		default:
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part cannot be expressed in a "+c.Block, extra.WithArticle(p.Kind()))
		}
	}
}
