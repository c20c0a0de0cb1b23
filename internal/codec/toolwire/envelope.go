package toolwire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// envelopeType is the type of an explicit provider-native result, which a tool
// returns as its only data:
//
//	{"type": "provider_native_tool_result", "format": "anthropic.messages", "content": […]}
//
// The format is a dialect's name, and the content is the result as that dialect writes
// it. It keeps its structure for a target of that dialect. Every other target gets the
// field "text", or without one the text of the content. Other fields, such as
// "_metadata", are private to the tool: they are dropped and reach no wire.
//
// Text is never read as an envelope, even if it is JSON. Package tool documents which
// tools may return one.
const envelopeType = "provider_native_tool_result"

// Envelope is a provider-native result in parts.
type Envelope struct {
	// Native is the content in its format.
	Native dragoman.Native
	// Text is the text for targets of other formats.
	Text string
}

// ReadEnvelope reads a provider-native result, an object of the type above. ok is false for any
// other JSON; the error says what is wrong with an object of that type.
func ReadEnvelope(data json.RawMessage) (e Envelope, ok bool, err error) {
	// Without escapes, an envelope contains its type as text. Most tool outputs are not
	// envelopes.
	if bytes.IndexByte(data, '\\') < 0 && !bytes.Contains(data, []byte(envelopeType)) {
		return Envelope{}, false, nil
	}
	var typ, format, text string
	var content json.RawMessage
	hasText := false
	rd := jsonwire.NewReader(data)
	if rd.Kind() != '{' {
		return Envelope{}, false, nil
	}
	for key := range rd.Object() {
		switch k := string(key); {
		case k == "type" && rd.Kind() == '"':
			typ = rd.String()
		case k == "format" && rd.Kind() == '"':
			format = rd.String()
		case k == "text" && rd.Kind() == '"':
			text, hasText = rd.String(), true
		case k == "content":
			content = rd.Raw()
		default:
			rd.Skip()
		}
	}
	if rd.End() != nil || typ != envelopeType {
		return Envelope{}, false, nil //nolint:nilerr // what is not JSON is not an envelope
	}
	switch {
	case format == "":
		return Envelope{}, true, fmt.Errorf("interop: %s: the field format must name a dialect", envelopeType)
	case content == nil:
		return Envelope{}, true, fmt.Errorf("interop: %s: the field content is missing", envelopeType)
	}
	if err := jsonwire.Check(content); err != nil {
		return Envelope{}, true, fmt.Errorf("interop: %s: content: %w", envelopeType, err)
	}
	if !hasText {
		text = contentText(content)
	}
	return Envelope{dragoman.Native{Format: dragoman.Format(format), JSON: content}, text}, true, nil
}

// contentText returns the text of native content: a string itself, the text fields of a list of
// parts, or otherwise the JSON.
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
