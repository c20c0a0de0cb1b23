package interop

import (
	"encoding/json"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// callShape describes the form of a single call object. Programs store calls as the object
// of their dialect, but also with the enclosing object, such as a Gemini part, or without
// the outer object, such as the function of a Chat call. Decoders do not use callShape:
// they know where the call is.
type callShape struct {
	// object is the call in the form of its format.
	object json.RawMessage
	// signature and part are the other fields of a Gemini part.
	signature string
	part      *dragoman.Extra
	// inner is set for the object inside a call: a function, or a toolUse.
	inner bool
}

// partPrefix is the path under which calls store the fields of the enclosing Gemini part.
const partPrefix = "/part"

// shapeOf returns the shape of a call in a format. It returns an object unchanged if it has
// the form of its format or an unknown shape.
func shapeOf(format dragoman.Format, obj json.RawMessage) callShape {
	switch format {
	case dragoman.FormatGeminiFunctionCall:
		if s, ok := geminiPart(obj); ok {
			return s
		}
	case dragoman.FormatBedrockToolUse, dragoman.FormatChatFunctionCall, dragoman.FormatOllamaToolCall:
		if innerCall(obj) == format {
			field := "function"
			if format == dragoman.FormatBedrockToolUse {
				field = "toolUse"
			}
			return callShape{object: slices.Concat([]byte(`{"`+field+`":`), obj, []byte("}")), inner: true}
		}
	}
	return callShape{object: obj}
}

// changed reports whether the object does not have the form of its format.
func (s *callShape) changed(obj json.RawMessage) bool { return len(s.object) != len(obj) }

// apply adds the fields of the enclosing part to a call.
func (s *callShape) apply(c *dragoman.ToolCall) {
	if s.signature != "" {
		c.Signature = s.signature
	}
	for _, f := range s.part.For(dragoman.Gemini) {
		extra.Add(&c.Extra, dragoman.Gemini, partPrefix, extra.Name(f.Path), f.Value)
	}
}

// geminiPart reads a part that holds a call. ok is false for any other object, and for a
// part that also holds something else or repeats a field.
func geminiPart(obj json.RawMessage) (s callShape, ok bool) {
	rd := jsonwire.NewReader(obj)
	if rd.Kind() != '{' {
		return s, false
	}
	var seen []string
	for key := range rd.Object() {
		name := string(jsonwire.Camel(key))
		if slices.ContainsFunc(seen, func(n string) bool { return strings.EqualFold(n, name) }) {
			return s, false
		}
		seen = append(seen, name)
		switch {
		case name == "functionCall" && rd.Kind() == '{':
			s.object = rd.Raw()
		case name == "thoughtSignature" && rd.Kind() == '"':
			s.signature = rd.String()
		case name == "thought" || rd.Kind() == 'n':
			extra.Add(&s.part, dragoman.Gemini, "", key, rd.Raw())
		default:
			return s, false
		}
	}
	if rd.End() != nil || s.object == nil {
		return s, false
	}
	return s, !hasField(s.object, "arguments") // an older form of a Chat call has arguments
}

// innerCall recognizes the object inside a call by its fields.
func innerCall(obj json.RawMessage) dragoman.Format {
	rd := jsonwire.NewReader(obj)
	if rd.Kind() != '{' {
		return ""
	}
	kinds := map[string]byte{}
	for key := range rd.Object() {
		kinds[string(key)] = byte(rd.Kind())
		rd.Skip()
	}
	_, typed := kinds["type"]
	switch {
	case rd.End() != nil || kinds["name"] != '"':
		return ""
	case kinds["toolUseId"] == '"': // it may have a type
		return dragoman.FormatBedrockToolUse
	case typed || kinds["function"] != 0:
		return ""
	case kinds["arguments"] == '"':
		return dragoman.FormatChatFunctionCall
	case kinds["arguments"] == '{':
		return dragoman.FormatOllamaToolCall
	default:
		return ""
	}
}

func hasField(obj json.RawMessage, field string) bool {
	rd := jsonwire.NewReader(obj)
	found := false
	for key := range rd.Object() {
		found = found || string(key) == field
		rd.Skip()
	}
	return found
}
