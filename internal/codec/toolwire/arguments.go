package toolwire

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
)

// Unclear reports a call of which nobody can say what it would run.
func Unclear(p *dragoman.CallProblem) bool {
	return p != nil && (p.Code == codes.ProblemDuplicateKey || p.Code == codes.ProblemUnreadable)
}

// Verdict says what is wrong with the arguments. As Object does, a verdict
// that the text is bad is believed; any other is no proof that it is sound.
func Verdict(c *dragoman.ToolCall) *dragoman.CallProblem {
	if p := c.Problem; p != nil && (p.Code == codes.ProblemInvalidJSON || p.Code == codes.ProblemDuplicateKey) {
		return p
	}
	return dragoman.CheckArguments(c.Arguments)
}

// AnswerText is the JSON text of a call's arguments for a client that reads
// them from a string. Sound ones pass; so does text that no client can parse,
// nothing included where the call has a problem: it is not made {}, which runs.
// What clients would understand differently, or could half read, becomes an
// object that only tells what came, because a client runs what it can parse.
// why is nil where the text is what was received.
func AnswerText(c *dragoman.ToolCall) (text string, why *dragoman.CallProblem) {
	if Unclear(c.Problem) {
		return string(told(c.Arguments)), c.Problem
	}
	if c.Payload == codes.PayloadText {
		obj, _ := c.Object()
		return string(obj), nil
	}
	p := Verdict(c)
	switch {
	case p != nil && (p.Code == codes.ProblemDuplicateKey || p.Code == codes.ProblemInvalidJSON && halfReadable(c.Arguments)):
		return string(told(c.Arguments)), p
	case c.Arguments == "" && c.Problem == nil:
		return "{}", nil
	default:
		return c.Arguments, nil
	}
}

// AnswerObject is AnswerText for a client that reads an object: text that is
// no JSON is told too, as none would make the call run without arguments.
func AnswerObject(c *dragoman.ToolCall) (obj json.RawMessage, why *dragoman.CallProblem) {
	if Unclear(c.Problem) {
		return told(c.Arguments), c.Problem
	}
	if c.Payload == codes.PayloadObject {
		if p := Verdict(c); p != nil && p.Code != codes.ProblemNotObject {
			return told(c.Arguments), p
		}
		if c.Problem != nil && strings.TrimSpace(c.Arguments) == "" { // cut off before the first
			return told(c.Arguments), c.Problem
		}
	}
	obj, exact := c.Object()
	if !exact && c.Payload == codes.PayloadObject {
		why = dragoman.CheckArguments(c.Arguments)
	}
	return obj, why
}

// told is an object that tells a text and fails every schema that requires
// something.
func told(text string) json.RawMessage {
	var w jsonwire.Writer
	w.BeginObject()
	w.StringField("_raw", text)
	w.EndObject()
	return w.Buf
}

// halfReadable reports whether some parser takes text that is not sound JSON:
// one that stops after the first value, does not look at the encoding, or has
// numbers that JSON has not.
func halfReadable(text string) bool {
	if strings.Contains(text, "NaN") || strings.Contains(text, "Infinity") {
		return true
	}
	dec := jsontext.NewDecoder(strings.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	_, err := dec.ReadValue()
	return err == nil
}
