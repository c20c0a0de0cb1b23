package interop

import (
	"encoding/json"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/go-json-experiment/json/jsontext"
)

// Valid reports whether the arguments of a call are valid, like CheckArguments, and caches the
// result: each call of a response is checked when it is written and when it is decided whether
// it may run.
func (r *Registry) Valid(c *dragoman.ToolCall) bool {
	for _, text := range r.valid {
		if text == c.Arguments { // usually the same memory, so the comparison is cheap
			return true
		}
	}
	if dragoman.CheckArguments(c.Arguments) != nil {
		return false
	}
	r.valid[r.found%len(r.valid)] = c.Arguments
	r.found++
	return true
}

// KeepArguments writes the arguments of a call in the history as received although they repeat
// an object key (requirement R7). It is meant for calls that the target's own model made: its
// server has seen them, and every other target gets {}. Arguments with another fault are not
// kept.
func (r *Registry) KeepArguments(c *dragoman.ToolCall) {
	if c == nil || c.Hosted || c.Payload == codes.PayloadText || c.Problem == nil || c.Problem.Code != codes.ProblemDuplicateKey {
		return
	}
	// The problem may be that of the call around valid arguments, and text after the repeated
	// key may not be JSON.
	if p := dragoman.CheckArguments(c.Arguments); p == nil || p.Code != codes.ProblemDuplicateKey || !jsontext.Value(c.Arguments).IsValid(jsontext.AllowDuplicateNames(true)) {
		return
	}
	put(&r.received, c.Arguments, true)
}

// argumentText returns the JSON text of a call's arguments for a wire that carries it in a
// string. In a response it is [toolwire.ResponseArguments]. In a history, where calls do not run, it
// is the text as received if it is valid JSON of any type, and {} otherwise.
func (r *Registry) argumentText(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) string {
	if r.forResponse {
		if c.Payload == codes.PayloadObject && c.Problem == nil && c.Arguments != "" && r.Valid(c) {
			return c.Arguments
		}
		text, why := toolwire.ResponseArguments(c)
		reportRewritten(why, text, at, rep)
		return text
	}
	if c.Payload == codes.PayloadText {
		obj, _ := c.Object()
		return string(obj)
	}
	p := toolwire.Verdict(c)
	switch {
	case p != nil && r.received[c.Arguments]:
		return c.Arguments
	case p == nil && strings.HasPrefix(c.Arguments, "{"), p != nil && p.Code == codes.ProblemNotObject:
		return c.Arguments
	case p == nil: // blanks around it, or a spelling of "no arguments"
		obj, _ := c.Object()
		return string(obj)
	}
	rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/arguments", "arguments written as {}: %s", p.Message)
	return "{}"
}

// argumentObject returns the arguments for a wire that carries an object.
func (r *Registry) argumentObject(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) json.RawMessage {
	if r.forResponse {
		obj, why := toolwire.ResponseObject(c)
		if why != nil {
			reportRewritten(why, string(obj), at, rep)
		}
		return obj
	}
	if text := strings.TrimSpace(c.Arguments); c.Payload == codes.PayloadObject && strings.HasPrefix(text, "{") && r.received[c.Arguments] {
		return json.RawMessage(text)
	}
	obj, exact := c.Object()
	if !exact && c.Payload == codes.PayloadObject {
		why := "not a valid JSON object"
		if p := dragoman.CheckArguments(c.Arguments); p != nil {
			why = p.Message
		}
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/arguments", "arguments written as %.40s: %s", obj, why)
	}
	return obj
}

func reportRewritten(why *dragoman.CallProblem, written string, at extra.Path, rep *dragoman.Report) {
	if why != nil {
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/arguments", "arguments written as %.40s: %s", written, why.Message)
	}
}

// responseFormat returns the format for a call in a response. A freeform tool runs any text as
// its input, so a call that must not run is written as a function call, which such a tool does
// not accept.
func responseFormat(c *dragoman.ToolCall, format dragoman.Format, t *toolwire.Traits) dragoman.Format {
	if toolwire.Unclear(c.Problem) && format == t.TextCall {
		return t.Call
	}
	return format
}

// dropCaseVariants removes fields from a call in a response that a case-insensitive client would
// read instead of ours.
func dropCaseVariants(c *dragoman.ToolCall, t *toolwire.Traits, at extra.Path, rep *dragoman.Report) *dragoman.ToolCall {
	fields := c.Extra.For(t.Dialect)
	twin := func(f dragoman.Field) bool {
		cut := strings.LastIndexByte(f.Path, '/') + 1
		prefix, name := f.Path[:cut], f.Path[cut:]
		for _, known := range t.CallFields {
			if known.Path == prefix {
				k := toolwire.FoldsTo(known.Names, name)
				return k != "" && k != name
			}
		}
		return false
	}
	if !slices.ContainsFunc(fields, twin) {
		return c
	}
	out := *c
	out.Extra = &dragoman.Extra{Dialect: c.Extra.Dialect}
	for _, f := range fields {
		if !twin(f) {
			out.Extra.Fields = append(out.Extra.Fields, f)
			continue
		}
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "differs from another field of the call only in case")
	}
	return &out
}
