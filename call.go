package dragoman

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
)

// emptyObject returns {}, the meaning of every spelling of "no arguments" (quirk B2). It
// allocates each time because the caller may write into the result.
func emptyObject() json.RawMessage { return json.RawMessage("{}") }

// blankArguments reports whether s is a spelling of "no arguments": empty, blanks, null or ""
// in quotes.
func blankArguments(s string) bool {
	switch strings.TrimSpace(s) {
	case "", "null", `""`:
		return true
	default:
		return false
	}
}

// CheckArguments returns the problem with the arguments of an object payload. It returns nil if
// they are an unambiguous JSON object or a spelling of "no arguments".
func CheckArguments(arguments string) *CallProblem {
	if blankArguments(arguments) {
		return nil
	}
	err := jsonwire.CheckText(arguments)
	if err == nil {
		if strings.TrimLeft(arguments, " \t\r\n")[0] == '{' {
			return nil
		}
		return &CallProblem{Code: codes.ProblemNotObject, Message: "the arguments must be a JSON object", Offset: 0}
	}
	p := &CallProblem{Code: codes.ProblemInvalidJSON, Message: "the arguments are not valid JSON: " + err.Error(), Offset: -1}
	var at *jsonwire.Error
	if errors.As(err, &at) {
		p.Offset = at.Offset
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		p.Code = codes.ProblemDuplicateKey
		p.Message = "the arguments repeat an object key, so their meaning is ambiguous: " + err.Error()
	case errors.Is(err, jsonwire.ErrTrailing):
		p.Message = "the arguments hold more than one JSON value: " + err.Error()
	}
	return p
}

// Object returns the arguments as a JSON object that every dialect accepts in its history:
//
//   - the text itself, if it is a valid object
//   - {} if it is empty, not valid JSON, or ambiguous (quirks B2, B7)
//   - {"_raw": value} if it is JSON but not an object (quirk B5)
//   - {"input": text} for a text payload
//
// exact is false if the object differs from what was received. For a nil call, Object returns
// {} and false.
func (c *ToolCall) Object() (obj json.RawMessage, exact bool) {
	if c == nil {
		return emptyObject(), false
	}
	if c.Payload == codes.PayloadText {
		var w jsonwire.Writer
		w.BeginObject()
		w.StringField("input", c.Arguments)
		w.EndObject()
		return w.Buf, false
	}
	if blankArguments(c.Arguments) {
		return emptyObject(), true
	}
	p := c.Problem
	// Trust an earlier verdict that the text is invalid. Check again in all other cases,
	// because the call may have been edited since.
	if p == nil || p.Code != codes.ProblemInvalidJSON && p.Code != codes.ProblemDuplicateKey {
		p = CheckArguments(c.Arguments)
	}
	switch {
	case p == nil:
		return json.RawMessage(c.Arguments), true
	case p.Code == codes.ProblemNotObject:
		return json.RawMessage(`{"_raw":` + strings.TrimSpace(c.Arguments) + `}`), false
	default:
		return emptyObject(), false
	}
}

// Result returns a successful result for the call. The parts are text, media or data.
func (c *ToolCall) Result(parts ...Part) *ToolResult {
	if c == nil {
		c = &ToolCall{}
	}
	return &ToolResult{
		CallID: c.ID, Name: c.Name, Namespace: c.Namespace, Payload: c.Payload,
		Content: parts, Outcome: codes.OutcomeOK,
	}
}

// ResultText returns a successful result with text.
func (c *ToolCall) ResultText(text string) *ToolResult { return c.Result(&Text{Text: text}) }

// Fail returns an error result for the call. The model reads the message, so it should say what
// to do. For example, to reject a call that has a Problem:
//
//	if call.Problem != nil {
//		return call.Fail(call.Problem.Message)
//	}
func (c *ToolCall) Fail(message string) *ToolResult {
	r := c.ResultText(message)
	r.Outcome = codes.OutcomeError
	return r
}
