package interop

import (
	"encoding/json"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/go-json-experiment/json/jsontext"
)

// unclear reports a call of which nobody can say what it would run.
func unclear(p *dragoman.CallProblem) bool {
	return p != nil && (p.Code == dragoman.ProblemDuplicateKey || p.Code == dragoman.ProblemUnreadable)
}

// verdict says what is wrong with the arguments. As Object does, a verdict
// that the text is bad is believed; any other is no proof that it is sound.
func verdict(c *dragoman.ToolCall) *dragoman.CallProblem {
	if p := c.Problem; p != nil && (p.Code == dragoman.ProblemInvalidJSON || p.Code == dragoman.ProblemDuplicateKey) {
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
	if unclear(c.Problem) {
		return string(told(c.Arguments)), c.Problem
	}
	if c.Payload == dragoman.PayloadText {
		obj, _ := c.Object()
		return string(obj), nil
	}
	p := verdict(c)
	switch {
	case p != nil && (p.Code == dragoman.ProblemDuplicateKey || p.Code == dragoman.ProblemInvalidJSON && halfReadable(c.Arguments)):
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
	if unclear(c.Problem) {
		return told(c.Arguments), c.Problem
	}
	if c.Payload == dragoman.PayloadObject {
		if p := verdict(c); p != nil && p.Code != dragoman.ProblemNotObject {
			return told(c.Arguments), p
		}
		if c.Problem != nil && strings.TrimSpace(c.Arguments) == "" { // cut off before the first
			return told(c.Arguments), c.Problem
		}
	}
	obj, exact := c.Object()
	if !exact && c.Payload == dragoman.PayloadObject {
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

// Sound reports whether nothing is wrong with the arguments of a call, as CheckArguments
// does, and remembers it: an answer is asked that of each of its calls, to write it and
// to see whether it may run.
func (r *Registry) Sound(c *dragoman.ToolCall) bool {
	for _, text := range r.sound {
		if text == c.Arguments { // the same memory in the end, and so no look at it
			return true
		}
	}
	if dragoman.CheckArguments(c.Arguments) != nil {
		return false
	}
	r.sound[r.found%len(r.sound)] = c.Arguments
	r.found++
	return true
}

// KeepArguments writes the arguments of a history's call as received although they repeat
// an object key (requirement R7). It is meant for calls that the target's own model made:
// its server has seen them, and every other target gets {}. Arguments with another fault
// are not kept.
func (r *Registry) KeepArguments(c *dragoman.ToolCall) {
	if c == nil || c.Hosted || c.Payload == dragoman.PayloadText || c.Problem == nil || c.Problem.Code != dragoman.ProblemDuplicateKey {
		return
	}
	// The problem may be that of the call around sound arguments, and text behind the
	// repeated key may be no JSON.
	if p := dragoman.CheckArguments(c.Arguments); p == nil || p.Code != dragoman.ProblemDuplicateKey || !jsontext.Value(c.Arguments).IsValid(jsontext.AllowDuplicateNames(true)) {
		return
	}
	put(&r.received, c.Arguments, true)
}

// argumentText is the JSON text of a call's arguments for a wire that carries
// it in a string. In an answer it is AnswerText; in a history, which nobody
// runs, it is as received while it is valid JSON of any type, {} otherwise.
func (r *Registry) argumentText(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) string {
	if r.answer {
		if c.Payload == dragoman.PayloadObject && c.Problem == nil && c.Arguments != "" && r.Sound(c) {
			return c.Arguments
		}
		text, why := AnswerText(c)
		reportTold(why, text, at, rep)
		return text
	}
	if c.Payload == dragoman.PayloadText {
		obj, _ := c.Object()
		return string(obj)
	}
	p := verdict(c)
	switch {
	case p != nil && r.received[c.Arguments]:
		return c.Arguments
	case p == nil && strings.HasPrefix(c.Arguments, "{"), p != nil && p.Code == dragoman.ProblemNotObject:
		return c.Arguments
	case p == nil: // blanks around it, or a spelling of no arguments
		obj, _ := c.Object()
		return string(obj)
	}
	rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/arguments", "arguments written as {}: %s", p.Message)
	return "{}"
}

// argumentObject is the arguments for a wire that carries an object.
func (r *Registry) argumentObject(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) json.RawMessage {
	if r.answer {
		obj, why := AnswerObject(c)
		if why != nil {
			reportTold(why, string(obj), at, rep)
		}
		return obj
	}
	if text := strings.TrimSpace(c.Arguments); c.Payload == dragoman.PayloadObject && strings.HasPrefix(text, "{") && r.received[c.Arguments] {
		return json.RawMessage(text)
	}
	obj, exact := c.Object()
	if !exact && c.Payload == dragoman.PayloadObject {
		why := "they are not a sound JSON object"
		if p := dragoman.CheckArguments(c.Arguments); p != nil {
			why = p.Message
		}
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/arguments", "arguments written as %.40s: %s", obj, why)
	}
	return obj
}

func reportTold(why *dragoman.CallProblem, written string, at extra.Path, rep *dragoman.Report) {
	if why != nil {
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/arguments", "arguments written as %.40s: %s", written, why.Message)
	}
}

// answerFormat is the format to answer in. Every text is an input that a
// freeform tool runs, so a call that must not run is written as a function
// call, which such a tool does not take.
func answerFormat(c *dragoman.ToolCall, format dragoman.Format) dragoman.Format {
	switch {
	case !unclear(c.Problem):
		return format
	case format == dragoman.FormatChatCustomCall:
		return dragoman.FormatChatFunctionCall
	case format == dragoman.FormatResponsesCustomCall:
		return dragoman.FormatResponsesFunctionCall
	default:
		return format
	}
}

// withoutTwins leaves out of an answer the members that a client which ignores
// case would read in place of ours.
func withoutTwins(c *dragoman.ToolCall, format dragoman.Format, at extra.Path, rep *dragoman.Report) *dragoman.ToolCall {
	fields := c.Extra.For(dialectOfCall(format))
	twin := func(f dragoman.Field) bool {
		prefix, name := f.Path[:strings.LastIndexByte(f.Path, '/')+1], f.Path[strings.LastIndexByte(f.Path, '/')+1:]
		var known []string
		switch {
		case prefix == "/function/":
			known = chatFunction
		case prefix == "/custom/":
			known = chatCustom
		case prefix == "/toolUse/":
			known = bedrockToolUse
		case prefix != "/":
		case format == dragoman.FormatAnthropicToolUse:
			known = toolUseMembers
		case dialectOfCall(format) == dragoman.OpenAIChat:
			known = chatMembers
		case format == dragoman.FormatGeminiFunctionCall:
			known = geminiMembers
		case format == dragoman.FormatOllamaToolCall:
			known = ollamaMembers
		case format == dragoman.FormatBedrockToolUse:
			known = bedrockCallBlock
		default:
			known = responsesMembers
		}
		k := foldsTo(known, name)
		return k != "" && k != name
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
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "differs from a member of the call only in case")
	}
	return &out
}
