package sim

import (
	"encoding/json"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// reply returns the text of a response without calls: the results, the prompt, or the
// requested structured output.
func reply(req *dragoman.Request, turn userTurn, unfilled []string) (string, error) {
	text := describeResults(turn)
	switch {
	case text != "":
	case len(unfilled) > 0:
		text = "No valid arguments were found for " + strings.Join(unfilled, ", ") + "."
	case turn.prompt == "":
		text = "Nothing was asked."
	default:
		text = "You said: " + turn.prompt
	}
	var f dragoman.OutputFormat
	if req.Output != nil {
		f = *req.Output
	}
	inWords := schemaFromInstructions(req)
	switch {
	case f.Kind == codes.OutputSchema:
		return structured(f.Schema, turn, text)
	case f.Kind != codes.OutputText && inWords != nil:
		return structured(inWords, turn, text)
	case f.Kind == codes.OutputJSON:
		return string(appendTree(nil, newObject("answer", text))), nil
	default:
		return text, nil
	}
}

// schemaFromInstructions returns the schema that the instructions contain for the response, as clients
// write it for servers that have no field for it. It returns nil if there is none.
func schemaFromInstructions(req *dragoman.Request) json.RawMessage {
	instructions := texts(req.Instructions)
	for i := range req.Messages {
		if r := req.Messages[i].Role; r == dragoman.RoleSystem || r == dragoman.RoleDeveloper {
			instructions += "\n" + req.Messages[i].Text()
		}
	}
	_, rest, found := strings.Cut(instructions, "JSON Schema:\n")
	if !found {
		return nil
	}
	var src json.RawMessage
	if json.NewDecoder(strings.NewReader(rest)).Decode(&src) != nil || len(src) == 0 || src[0] != '{' {
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

// structured returns a response that matches a schema, with values of the prompt and the
// results.
func structured(src json.RawMessage, turn userTurn, text string) (string, error) {
	prompt := turn.prompt
	if len(turn.results) > 0 {
		prompt += "\n" + text
	}
	out, ok := fill(src, valuesIn(prompt, func(string) bool { return false }))
	if !ok {
		return "", &dragoman.APIError{Class: dragoman.ErrorBadRequest, Message: "found no value that matches the output schema"}
	}
	return string(out), nil
}

// maxResult limits how many bytes of a result the response repeats.
const maxResult = 400

// describeResults describes the results of a user turn, one per line. It returns "" if there
// are none.
func describeResults(turn userTurn) string {
	var lines []string
	for _, r := range turn.results {
		verb := "says"
		if r.Outcome == codes.OutcomeError {
			verb = "failed"
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", turn.nameOf(r), verb, describeContent(r)))
	}
	return strings.Join(lines, "\n")
}

// describeContent returns the content of a result, in about one line.
func describeContent(r *dragoman.ToolResult) string {
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
