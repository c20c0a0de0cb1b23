package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// WriteCall writes a call in the target's format. Arguments that a history
// cannot hold are replaced in the copy and reported; the call itself is never
// changed.
func (r *Registry) WriteCall(w *jsonwire.Writer, c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) error {
	f, err := wireOf(r.target.Dialect)
	if err != nil {
		return err
	}
	format := f.call
	if c.Payload == dragoman.PayloadText && f.textCall != "" && !r.target.Caps.NoCustomTools {
		format = f.textCall
	}
	return r.writeCallAs(w, format, c, at, rep)
}

func (r *Registry) writeCallAs(w *jsonwire.Writer, format dragoman.Format, c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) error {
	if a, ok := r.adapters[adapterKey{dragoman.CallObject, "", format}]; ok {
		obj, sub, err := a.Adapt(dragoman.AdapterInput{Call: c})
		rep.Merge(at.String(), sub)
		if err != nil {
			return err
		}
		w.Raw(obj)
		return nil
	}
	unsaidOfCall(c, format, at, rep)
	if c.Payload == dragoman.PayloadText && (format == dragoman.FormatChatFunctionCall ||
		format == dragoman.FormatResponsesFunctionCall || format == dragoman.FormatAnthropicToolUse) {
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), `freeform input written as the argument "input" of a function call`)
	}
	id, name := r.wireIDName(c.ID, c.Namespace, c.Name, at, rep)
	var d dragoman.Dialect
	switch format {
	case dragoman.FormatChatFunctionCall:
		w.BeginObject()
		w.StringField("id", id)
		w.StringField("type", "function")
		w.Key("function")
		w.BeginObject()
		w.StringField("name", name)
		w.StringField("arguments", r.argumentText(c, at, rep))
		extra.Write(w, c.Extra, dragoman.OpenAIChat, "/function")
		w.EndObject()
		extra.Write(w, c.Extra, dragoman.OpenAIChat, "")
		w.EndObject()
		d = dragoman.OpenAIChat
	case dragoman.FormatChatCustomCall:
		w.BeginObject()
		w.StringField("id", id)
		w.StringField("type", "custom")
		w.Key("custom")
		w.BeginObject()
		w.StringField("name", name)
		w.StringField("input", c.Arguments)
		extra.Write(w, c.Extra, dragoman.OpenAIChat, "/custom")
		w.EndObject()
		extra.Write(w, c.Extra, dragoman.OpenAIChat, "")
		w.EndObject()
		d = dragoman.OpenAIChat
	case dragoman.FormatResponsesFunctionCall, dragoman.FormatResponsesCustomCall:
		w.BeginObject()
		text := format == dragoman.FormatResponsesCustomCall
		if text {
			w.StringField("type", "custom_tool_call")
		} else {
			w.StringField("type", "function_call")
		}
		w.StringFieldIf("id", c.ItemID)
		w.StringField("call_id", id)
		w.StringField("name", name)
		if c.Namespace != "" && !r.names.flatten {
			w.StringField("namespace", c.Namespace)
		}
		if text {
			w.StringField("input", c.Arguments)
		} else {
			w.StringField("arguments", r.argumentText(c, at, rep))
		}
		if c.Async {
			w.BoolField("async", true)
		}
		extra.Write(w, c.Extra, dragoman.OpenAIResponses, "")
		w.EndObject()
		d = dragoman.OpenAIResponses
	case dragoman.FormatAnthropicToolUse:
		w.BeginObject()
		w.StringField("type", "tool_use")
		w.StringField("id", id)
		w.StringField("name", name)
		w.RawField("input", r.argumentObject(c, at, rep))
		extra.Write(w, c.Extra, dragoman.Anthropic, "")
		if c.Cache != nil {
			WriteCacheControl(w, c.Cache, at, rep)
		}
		w.EndObject()
		d = dragoman.Anthropic
	default:
		return fmt.Errorf("interop: no adapter writes calls as %s; contribute one", format)
	}
	extra.Report(rep, c.Extra, d, at)
	return nil
}

// unsaidOfCall reports what a call says that a format has no member for.
func unsaidOfCall(c *dragoman.ToolCall, format dragoman.Format, at extra.Path, rep *dragoman.Report) {
	if c.Cache != nil && format != dragoman.FormatAnthropicToolUse {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint after a call: the target caches by itself")
	}
	if c.Async && format != dragoman.FormatResponsesFunctionCall && format != dragoman.FormatResponsesCustomCall {
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/async", "the target waits for every result")
	}
	if c.Signature != "" {
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/signature", "opaque state belongs to its own provider")
	}
}

func (r *Registry) wireIDName(id, ns, name string, at extra.Path, rep *dragoman.Report) (wireID, wireName string) {
	wireID = r.ids.alias(id)
	if wireID != id {
		rep.Addf(dragoman.Renamed, dragoman.Info, at.String(), "call id %.60q written as %q", id, wireID)
	}
	wireName = r.names.wireName(ns, name)
	if wireName != name {
		rep.Addf(dragoman.Renamed, dragoman.Info, at.String(), "tool %.80q written as %q", name, wireName)
	}
	return wireID, wireName
}

// argumentText is the JSON text of a call's arguments for a wire that carries
// it in a string: as received while it is valid JSON of any type, {} otherwise.
func (r *Registry) argumentText(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) string {
	if c.Payload == dragoman.PayloadText {
		obj, _ := c.Object()
		return string(obj)
	}
	p := c.Problem
	// A client cannot run what it cannot parse, so broken arguments pass in an
	// answer; ambiguous ones it would run, each client with another value.
	ambiguous := p != nil && p.Code == dragoman.ProblemDuplicateKey
	if r.answer && !ambiguous && (p != nil || c.Arguments != "") {
		return c.Arguments
	}
	// As Object does, a verdict that the text is bad is believed.
	if p == nil || p.Code != dragoman.ProblemInvalidJSON && p.Code != dragoman.ProblemDuplicateKey {
		p = dragoman.CheckArguments(c.Arguments)
	}
	switch {
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

// ReadCall reads a call object of the target's dialect.
func (r *Registry) ReadCall(obj json.RawMessage, at extra.Path, rep *dragoman.Report) (*dragoman.ToolCall, error) {
	return r.readCallAs(CallFormat(r.target.Dialect, obj), obj, at, rep)
}

func (r *Registry) readCallAs(format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) (*dragoman.ToolCall, error) {
	if a, ok := r.calls[format]; ok {
		c, sub, err := a.InspectCall(obj)
		rep.Merge(at.String(), sub)
		if err != nil {
			return c, err
		}
		if c == nil {
			return nil, fail(format, errNothing)
		}
		r.Settle(c, at, rep)
		return c, nil
	}
	c, err := readCall(format, obj)
	if err != nil {
		return nil, err
	}
	r.Settle(c, at, rep)
	return c, nil
}

// errNothing says that an accessor returned neither a view nor an error.
var errNothing = errors.New("the accessor found nothing")

// readCall reads a call of a built-in format as it stands on the wire.
func readCall(format dragoman.Format, obj json.RawMessage) (*dragoman.ToolCall, error) {
	c := &dragoman.ToolCall{}
	rd := jsonwire.NewReader(obj)
	switch format {
	case dragoman.FormatChatFunctionCall, dragoman.FormatChatCustomCall:
		readChatCall(rd, c)
	case dragoman.FormatResponsesFunctionCall, dragoman.FormatResponsesCustomCall:
		readResponsesCall(rd, c)
	case dragoman.FormatAnthropicToolUse:
		readToolUse(rd, c)
	default:
		return nil, fmt.Errorf("interop: no accessor reads calls of format %s; contribute one", format)
	}
	if err := rd.End(); err != nil {
		return nil, fail(format, err)
	}
	return c, nil
}

// readPayload reads arguments in whatever shape a server chose: a string, or
// the JSON value itself (quirks B1, B4).
func readPayload(rd *jsonwire.Reader) string {
	switch rd.Kind() {
	case '"':
		return rd.String()
	case 'n':
		rd.Skip()
		return ""
	default:
		return string(rd.Raw())
	}
}

func readChatCall(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	for key := range rd.Object() {
		switch string(key) {
		case "id":
			c.ID = readID(rd)
		case "type":
			if rd.String() == "custom" {
				c.Payload = dragoman.PayloadText
			}
		case "function":
			for key := range rd.Object() {
				switch string(key) {
				case "name":
					c.Name = rd.String()
				case "arguments":
					c.Arguments = readPayload(rd)
				default:
					extra.Add(&c.Extra, dragoman.OpenAIChat, "/function", key, rd.Raw())
				}
			}
		case "custom":
			c.Payload = dragoman.PayloadText
			for key := range rd.Object() {
				switch string(key) {
				case "name":
					c.Name = rd.String()
				case "input":
					c.Arguments = readPayload(rd)
				default:
					extra.Add(&c.Extra, dragoman.OpenAIChat, "/custom", key, rd.Raw())
				}
			}
		default:
			extra.Add(&c.Extra, dragoman.OpenAIChat, "", key, rd.Raw())
		}
	}
}

func readResponsesCall(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			if rd.String() == "custom_tool_call" {
				c.Payload = dragoman.PayloadText
			}
		case "id":
			c.ItemID = readID(rd)
		case "call_id":
			c.ID = readID(rd)
		case "name":
			c.Name = rd.String()
		case "namespace":
			c.Namespace = rd.String()
		case "arguments", "input":
			c.Arguments = readPayload(rd)
		case "async":
			if raw := rd.Raw(); string(raw) == "true" {
				c.Async = true
			} else {
				extra.Add(&c.Extra, dragoman.OpenAIResponses, "", []byte("async"), raw)
			}
		case "status":
			raw := rd.Raw()
			if s := strings.Trim(string(raw), `"`); s == "incomplete" {
				c.Status = dragoman.StatusIncomplete
			}
			extra.Add(&c.Extra, dragoman.OpenAIResponses, "", []byte("status"), raw)
		case "caller":
			c.Caller = rd.Raw()
			extra.Add(&c.Extra, dragoman.OpenAIResponses, "", []byte("caller"), c.Caller)
		default:
			extra.Add(&c.Extra, dragoman.OpenAIResponses, "", key, rd.Raw())
		}
	}
}

func readToolUse(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "id":
			c.ID = readID(rd)
		case "name":
			c.Name = rd.String()
		case "input":
			c.Arguments = readPayload(rd)
		case "cache_control":
			c.Cache = ttl(rd)
		case "caller":
			c.Caller = rd.Raw()
			extra.Add(&c.Extra, dragoman.Anthropic, "", []byte("caller"), c.Caller)
		default:
			extra.Add(&c.Extra, dragoman.Anthropic, "", key, rd.Raw())
		}
	}
}

// readID reads a call id. Ids are strings, never made from anything else: a
// number is no id, and the edge will make one (requirement I8).
func readID(rd *jsonwire.Reader) string {
	if rd.Kind() == '"' {
		return rd.String()
	}
	rd.Skip()
	return ""
}

// Settle turns a call as it came off the wire into the call the author of the
// tool knows: aliases are reversed, a freeform tool's input is unwrapped, and
// arguments that must not run are marked with the problem.
func (r *Registry) Settle(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) {
	c.ID = r.ids.restore(c.ID)
	wireName := c.Name
	ns, name, spec := r.PublicName(c.Namespace, c.Name)
	c.Namespace, c.Name = ns, name
	if wireName == "" && c.Problem == nil {
		c.Problem = &dragoman.CallProblem{Code: dragoman.ProblemNoName, Message: "the call names no tool", Offset: -1}
	}
	if c.Payload == dragoman.PayloadText {
		return
	}
	if spec != nil && spec.Kind == dragoman.ToolFreeform {
		r.unwrapFreeform(c, spec, at, rep)
		return
	}
	if c.Problem == nil {
		c.Problem = dragoman.CheckArguments(c.Arguments)
		if c.Problem != nil && c.Problem.Code == dragoman.ProblemNotObject {
			unwrapDoubleEncoded(c, at, rep)
		}
	}
}

// unwrapDoubleEncoded unwraps, once, arguments that are a JSON string holding
// an object (quirk B3).
func unwrapDoubleEncoded(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) {
	rd := jsonwire.NewReader([]byte(c.Arguments))
	if rd.Kind() != '"' {
		return
	}
	inner := rd.String()
	if rd.Err() != nil || dragoman.CheckArguments(inner) != nil {
		return
	}
	c.Arguments, c.Problem = inner, nil
	rep.Add(dragoman.Lowered, dragoman.Info, at.String()+"/arguments", "arguments were JSON inside a JSON string; unwrapped once")
}

// unwrapFreeform takes the text out of the function call that stood in for a
// freeform one: the argument "input", or what models write instead of it
// (quirk B30).
func (r *Registry) unwrapFreeform(c *dragoman.ToolCall, spec *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) {
	text, how, problem := freeformText(c.Arguments)
	if problem != nil {
		if c.Problem == nil {
			c.Problem = problem
		}
		return
	}
	if how != "" {
		rep.Add(dragoman.Lowered, dragoman.Info, at.String()+"/arguments", "freeform input taken from "+how)
	}
	if inner, ok := unfence(text); ok && spec.Grammar != nil && !strings.Contains(spec.Grammar.Definition, fence) {
		rep.Add(dragoman.Lowered, dragoman.Info, at.String()+"/arguments", "a code fence around freeform input was removed")
		text = inner
	}
	c.Payload, c.Arguments = dragoman.PayloadText, text
}

const fence = "```"

// unfence takes the text out of a code fence that holds all of it.
func unfence(s string) (string, bool) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, fence) {
		return "", false
	}
	_, body, ok := strings.Cut(s, "\n")
	if !ok {
		return "", false
	}
	body, ok = strings.CutSuffix(body, fence)
	if !ok || strings.Contains(body, fence) {
		return "", false
	}
	return body, true
}

// problemNoInput: the arguments are sound, but hold no text to take as a
// freeform tool's input.
const problemNoInput dragoman.ProblemCode = "no_input"

func freeformText(arguments string) (text, how string, problem *dragoman.CallProblem) {
	trimmed := strings.TrimSpace(arguments)
	switch trimmed {
	case "", "null", "{}":
		return "", "", nil
	}
	rd := jsonwire.NewReader([]byte(arguments))
	switch trimmed[0] {
	case '{':
		// A repeated key could be another input than the model meant (R7).
		if p := dragoman.CheckArguments(arguments); p != nil {
			return "", "", p
		}
	case '"':
		s := rd.String()
		if err := rd.End(); err != nil {
			return "", "", &dragoman.CallProblem{Code: dragoman.ProblemInvalidJSON, Message: "the arguments are not valid JSON: " + err.Error(), Offset: -1}
		}
		return s, "a bare JSON string", nil
	default:
		// Text that is not JSON at all is the input itself.
		return arguments, "the bare text of the call", nil
	}
	var input, other, command string
	var haveInput, haveCommand bool
	members, strs := 0, 0
	for key := range rd.Object() {
		members++
		switch {
		case string(key) == "input" && rd.Kind() == '"':
			input, haveInput = rd.String(), true
		case string(key) == "command" && rd.Kind() == '[':
			command, haveCommand = lastString(rd.Raw())
		case rd.Kind() == '"':
			other = rd.String()
			strs++
		default:
			rd.Skip()
		}
	}
	switch {
	case haveInput && members == 1:
		return input, "", nil
	case haveInput:
		return input, `"input" alone; the call had other arguments beside it`, nil
	case strs == 1:
		return other, "the call's only string argument", nil
	case strs == 0 && haveCommand:
		return command, `the last word of "command"`, nil
	default:
		return "", "", &dragoman.CallProblem{Code: problemNoInput, Message: `the call must carry its text in the argument "input"`, Offset: -1}
	}
}

// lastString is the last of a list of strings.
func lastString(raw []byte) (s string, ok bool) {
	rd := jsonwire.NewReader(raw)
	for range rd.Array() {
		if ok = rd.Kind() == '"'; !ok {
			return "", false
		}
		s = rd.String()
	}
	return s, ok && rd.Err() == nil
}
