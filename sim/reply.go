package sim

import (
	"encoding/json"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// reply is the text of an answer without calls: the results, what was said, or
// the structured output that was asked for.
func reply(req *dragoman.Request, ex exchange, unfilled []string) (string, error) {
	text := tellResults(ex)
	switch {
	case text != "":
	case len(unfilled) > 0:
		text = "No valid arguments were found for " + strings.Join(unfilled, ", ") + "."
	case ex.prompt == "":
		text = "Nothing was asked."
	default:
		text = "You said: " + ex.prompt
	}
	var f dragoman.OutputFormat
	if req.Output != nil {
		f = *req.Output
	}
	inWords := schemaInWords(req)
	switch {
	case f.Kind == codes.OutputSchema:
		return structured(f.Schema, ex, text)
	case f.Kind != codes.OutputText && inWords != nil:
		return structured(inWords, ex, text)
	case f.Kind == codes.OutputJSON:
		return string(appendTree(nil, newObject("answer", text))), nil
	default:
		return text, nil
	}
}

// schemaInWords is the schema that the instructions ask the answer to be of, as
// they do for servers that cannot be told it otherwise; nil where they ask for none.
func schemaInWords(req *dragoman.Request) json.RawMessage {
	told := texts(req.Instructions)
	for i := range req.Messages {
		if r := req.Messages[i].Role; r == dragoman.RoleSystem || r == dragoman.RoleDeveloper {
			told += "\n" + req.Messages[i].Text()
		}
	}
	_, behind, asked := strings.Cut(told, "JSON Schema:\n")
	if !asked {
		return nil
	}
	var src json.RawMessage
	if json.NewDecoder(strings.NewReader(behind)).Decode(&src) != nil || len(src) == 0 || src[0] != '{' {
		return nil
	}
	return src
}

// texts joins the texts of parts.
func texts(parts []dragoman.Part) string {
	var b strings.Builder
	for _, p := range parts {
		if t, ok := p.(*dragoman.Text); ok {
			b.WriteString(t.Text + "\n")
		}
	}
	return b.String()
}

// structured is an answer that a schema takes, with what was said in the prompt
// and in the results.
func structured(src json.RawMessage, ex exchange, text string) (string, error) {
	said := ex.prompt
	if len(ex.results) > 0 {
		said += "\n" + text
	}
	out, ok := fill(src, valuesIn(said, func(string) bool { return false }))
	if !ok {
		return "", &dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: "no answer was found that the output schema takes"}
	}
	return string(out), nil
}

// maxResult bounds how much of a result is told.
const maxResult = 400

// tellResults tells the results of an exchange, one a line; empty where there are
// none.
func tellResults(ex exchange) string {
	var lines []string
	for _, r := range ex.results {
		verb := "says"
		if r.Outcome == codes.OutcomeError {
			verb = "failed"
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", ex.nameOf(r), verb, tellContent(r)))
	}
	return strings.Join(lines, "\n")
}

// tellContent is what a result holds, in one line or so.
func tellContent(r *dragoman.ToolResult) string {
	text := strings.TrimSpace(r.PlainText())
	if short := head(text, maxResult); short != text {
		text = short + "…"
	}
	for _, p := range r.Content {
		if m, ok := p.(*dragoman.Media); ok {
			text = strings.TrimSpace(fmt.Sprintf("%s (%s %s)", text, m.Media, m.MIME))
		}
	}
	if text == "" {
		return "nothing"
	}
	return text
}
