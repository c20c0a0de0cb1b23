package toolwire

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
)

// Unclear reports whether a call is ambiguous, so that it is unknown what it would run.
func Unclear(p *dragoman.CallProblem) bool {
	return p != nil && (p.Code == codes.ProblemDuplicateKey || p.Code == codes.ProblemUnreadable)
}

// Verdict returns what is wrong with the arguments of a call. As in Object, a stored
// problem that the text is invalid is accepted; without one, the text is checked.
func Verdict(c *dragoman.ToolCall) *dragoman.CallProblem {
	if p := c.Problem; p != nil && (p.Code == codes.ProblemInvalidJSON || p.Code == codes.ProblemDuplicateKey) {
		return p
	}
	return dragoman.CheckArguments(c.Arguments)
}

// ResponseArguments returns the arguments of a call for a client that reads them from a
// string:
//
//   - Valid arguments are returned unchanged.
//   - Text that no client can parse is returned unchanged, even an empty text if the
//     call has a problem. It must not become {}, which would run.
//   - Text that clients would understand differently, or could parse in part, becomes
//     an object that only quotes it, because clients run what they can parse.
//
// why is nil if the text is unchanged.
func ResponseArguments(c *dragoman.ToolCall) (text string, why *dragoman.CallProblem) {
	if Unclear(c.Problem) {
		return string(quoted(c.Arguments)), c.Problem
	}
	if c.Payload == codes.PayloadText {
		obj, _ := c.Object()
		return string(obj), nil
	}
	p := Verdict(c)
	switch {
	case p != nil && (p.Code == codes.ProblemDuplicateKey || p.Code == codes.ProblemInvalidJSON && halfReadable(c.Arguments)):
		return string(quoted(c.Arguments)), p
	case c.Arguments == "" && c.Problem == nil:
		return "{}", nil
	default:
		return c.Arguments, nil
	}
}

// ResponseObject is like AnswerText, for a client that reads an object. It quotes text
// that is not valid JSON, too, because an empty object would run the call without
// arguments.
func ResponseObject(c *dragoman.ToolCall) (obj json.RawMessage, why *dragoman.CallProblem) {
	if Unclear(c.Problem) {
		return quoted(c.Arguments), c.Problem
	}
	if c.Payload == codes.PayloadObject {
		if p := Verdict(c); p != nil && p.Code != codes.ProblemNotObject {
			return quoted(c.Arguments), p
		}
		if c.Problem != nil && strings.TrimSpace(c.Arguments) == "" { // truncated before the first byte
			return quoted(c.Arguments), c.Problem
		}
	}
	obj, exact := c.Object()
	if !exact && c.Payload == codes.PayloadObject {
		why = dragoman.CheckArguments(c.Arguments)
	}
	return obj, why
}

// quoted returns an object that quotes a text. It fails every schema that requires a
// property.
func quoted(text string) json.RawMessage {
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("_raw", text)
	w.EndObject()
	return w.Buf
}

// halfReadable reports whether some parser accepts text that is not valid JSON: one
// that stops after the first value, does not check the encoding, or accepts NaN and
// Infinity.
func halfReadable(text string) bool {
	if strings.Contains(text, "NaN") || strings.Contains(text, "Infinity") {
		return true
	}
	dec := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := dec.ReadValue()
	return err == nil
}
