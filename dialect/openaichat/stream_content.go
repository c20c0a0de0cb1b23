package openaichat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// content decodes a fragment of content: a string, or a list of parts from servers that send
// those.
func (c *choice) content(r *jsonwire.Reader) {
	switch r.Kind() {
	case '"':
		c.appendText(r.String())
	case '[':
		for range r.Array() {
			c.contentPart(r.Raw())
		}
	case 'n':
		r.Skip()
	default:
		c.reportInvalidField("content", r)
	}
}

// reportInvalidField reports a field of a delta whose value has an invalid type. Only the chunk
// keeps the value.
func (c *choice) reportInvalidField(field string, r *jsonwire.Reader) {
	raw := r.Raw()
	if r.Err() == nil {
		c.d.reportUncollectedAs(dragoman.Serious, "strange."+field, fmt.Sprintf("%s of a streamed delta is neither text nor parts: %.40s", field, raw))
	}
}

func (c *choice) contentPart(raw []byte) {
	typ := ""
	var text strings.Builder
	r := jsonwire.NewReader(raw)
	switch r.Kind() {
	case '"':
		c.appendText(r.String())
		return
	case '{':
	default:
		c.reportInvalidField("content", r)
		return
	}
	for key := range r.Object() {
		switch string(key) {
		case "type":
			typ = looseTextFrom(r)
		case "text", "thinking":
			addLooseText(r, &text)
		default:
			r.Skip()
		}
	}
	switch {
	case r.Err() != nil:
	case typ == "thinking":
		c.reason(fieldThinking, text.String())
	case typ == "text" || typ == "":
		c.appendText(text.String())
	default:
		typ = shortName(typ)
		c.d.reportUncollected("content."+typ, "a streamed content part of type "+typ+" is not collected")
		c.d.held.Field(choicePath(c.index)+"/delta", []byte("content"), slices.Concat([]byte("["), raw, []byte("]")))
	}
}

func (c *choice) appendText(s string) {
	if s == "" {
		return
	}
	c.closeReasoning()
	if c.text.Ended() {
		c.text = c.open(&dragoman.Text{}, &dragoman.Text{})
	}
	c.text.Append(s)
}

func (c *choice) reason(field, text string) {
	if text == "" {
		return
	}
	c.closeText()
	if c.reasoning.Ended() {
		c.reasoning = c.open(&dragoman.Reasoning{Field: field}, &dragoman.Reasoning{Field: field})
	}
	c.reasoning.Append(text)
}

// hasReasoningField reports whether the open reasoning has its text from its own field, which the
// records only repeat (quirk G1).
func (c *choice) hasReasoningField() bool {
	return !c.reasoning.Ended() && c.reasoning.Value.(*dragoman.Reasoning).Field != ""
}

func (c *choice) closeText() { c.text.End() }

// closeReasoning ends the reasoning with the records merged so far. Records without visible text
// become a separate part.
func (c *choice) closeReasoning() {
	if c.reasoning.Ended() {
		if len(c.details.records) == 0 {
			return
		}
		c.reasoning = c.open(&dragoman.Reasoning{}, &dragoman.Reasoning{})
	}
	v := c.reasoning.Value.(*dragoman.Reasoning)
	if v.Field == fieldThinking {
		v.Details = []json.RawMessage{thinkingRecord(string(c.reasoning.Text))}
	}
	if len(c.details.records) > 0 {
		v.Details = c.details.details()
		c.details.records = nil
	}
	c.reasoning.End()
}

// thinkingRecord returns a content part of type thinking, for servers that use those.
func thinkingRecord(text string) json.RawMessage {
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("type", "thinking")
	w.Key("thinking")
	w.BeginArray()
	w.BeginObject()
	w.StringField("type", "text")
	w.StringField("text", text)
	w.EndObject()
	w.EndArray()
	w.EndObject()
	return w.Buf
}

// noText reports whether a value has a type that contains no text.
func noText(r *jsonwire.Reader) bool {
	switch r.Kind() {
	case '0', 't', 'f':
		return true
	default:
		return false
	}
}
