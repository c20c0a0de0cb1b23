package dragoman

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
)

// emptyObject is what every spelling of "no arguments" means (quirk B2): a new
// one each time, as its reader may write into it.
func emptyObject() json.RawMessage { return json.RawMessage("{}") }

// blankArguments reports whether arguments are one of the spellings of none:
// nothing, blanks, null, "" in quotes.
func blankArguments(s string) bool {
	switch strings.TrimSpace(s) {
	case "", "null", `""`:
		return true
	default:
		return false
	}
}

// CheckArguments says what is wrong with the arguments of an object payload;
// nil means that they are an object that every reader understands alike, or
// one of the spellings of an empty one.
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

// Object returns the arguments as a JSON object that any wire accepts, for
// history: the text itself where it is a sound object; {} where it is empty,
// not JSON, or ambiguous (quirks B2, B7); {"_raw": value} around JSON that is
// no object (quirk B5); {"input": text} for a text payload. exact is false when
// the object is not what was received. A nil call has none.
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
	// A verdict that the text is bad is believed; any other is no proof that
	// the text is sound, as the call may have been edited since.
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

// Result answers the call with parts: text, media or data.
func (c *ToolCall) Result(parts ...Part) *ToolResult {
	if c == nil {
		c = &ToolCall{}
	}
	return &ToolResult{
		CallID: c.ID, Name: c.Name, Namespace: c.Namespace, Payload: c.Payload,
		Content: parts, Outcome: codes.OutcomeOK,
	}
}

// ResultText answers the call with text.
func (c *ToolCall) ResultText(text string) *ToolResult { return c.Result(&Text{Text: text}) }

// Fail answers the call with an error, in words a model can act on. A call
// with a Problem is answered so:
//
//	if call.Problem != nil {
//		return call.Fail(call.Problem.Message)
//	}
func (c *ToolCall) Fail(message string) *ToolResult {
	r := c.ResultText(message)
	r.Outcome = codes.OutcomeError
	return r
}
