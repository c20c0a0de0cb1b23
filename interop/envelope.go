package interop

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// EnvelopeType is the type of an explicit provider-native result: a tool that
// returns {"type": EnvelopeType, "format": a dialect's name, "content": …} as
// its only data says how its result looks on that dialect's wire. A member
// "text" says what every other target gets; without one they get the text of
// the content. Other members are private to the tool and reach no wire.
const EnvelopeType = "provider_native_tool_result"

// unwrapEnvelope returns a result whose only content is an explicit envelope
// with the envelope taken apart. Any other result is returned as it is.
func unwrapEnvelope(res *dragoman.ToolResult) *dragoman.ToolResult {
	if res.Envelope != nil || len(res.Content) != 1 {
		return res
	}
	data, ok := res.Content[0].(*dragoman.Data)
	if !ok {
		return res
	}
	var typ, format, text string
	var content json.RawMessage
	told := false
	rd := jsonwire.NewReader(data.JSON)
	if rd.Kind() != '{' {
		return res
	}
	for key := range rd.Object() {
		switch k := string(key); {
		case k == "type" && rd.Kind() == '"':
			typ = rd.String()
		case k == "format" && rd.Kind() == '"':
			format = rd.String()
		case k == "text" && rd.Kind() == '"':
			text, told = rd.String(), true
		case k == "content":
			content = rd.Raw()
		default:
			rd.Skip()
		}
	}
	if rd.End() != nil || typ != EnvelopeType || format == "" || content == nil || jsonwire.Check(content) != nil {
		return res
	}
	if !told {
		text = contentText(content)
	}
	out := *res
	out.Envelope = &dragoman.Native{Format: dragoman.Format(format), JSON: content}
	out.Content = []dragoman.Part{&dragoman.Text{Text: text}}
	return &out
}

// contentText is what native content says in words: a string itself, the text
// members of a list of parts, or else the JSON.
func contentText(content json.RawMessage) string {
	rd := jsonwire.NewReader(content)
	switch rd.Kind() {
	case '"':
		return rd.String()
	case '[':
		var texts []string
		for range rd.Array() {
			if rd.Kind() != '{' {
				rd.Skip()
				continue
			}
			for key := range rd.Object() {
				if string(key) == "text" && rd.Kind() == '"' {
					texts = append(texts, rd.String())
				} else {
					rd.Skip()
				}
			}
		}
		if len(texts) > 0 {
			return strings.Join(texts, "\n")
		}
	}
	return string(content)
}
