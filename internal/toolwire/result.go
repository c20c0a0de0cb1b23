package toolwire

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
)

// ErrorPrefix marks a failed result on wires that have no error flag.
const ErrorPrefix = "ERROR: "

// NativeContent returns the content of an envelope that the format may use.
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
	if res.Outcome == dragoman.OutcomeError {
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
	if res.Outcome == dragoman.OutcomeError {
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), `error flag written as "ERROR: " before the text`)
	}
}

// Blank reports whether a text block would be rejected as empty (quirk D22).
func Blank(t *dragoman.Text) bool { return strings.TrimSpace(t.Text) == "" }

// ReportBlank reports a text that is left out.
func ReportBlank(rep *dragoman.Report, at extra.Path) {
	rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "a text that says nothing")
}
