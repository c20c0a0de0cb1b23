package interop

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// WriteCall writes a call in the target's format. Arguments that a history cannot hold are
// replaced in the copy and reported; the call itself is never changed.
func (r *Registry) WriteCall(w *jsonwire.Writer, c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) error {
	t, err := r.wire()
	if err != nil {
		return err
	}
	format := t.Call
	if c.Payload == codes.PayloadText && t.TextCall != "" && !r.target.Caps.NoCustomTools {
		format = t.TextCall
	}
	return r.writeCallAs(w, format, c, at, rep)
}

func (r *Registry) writeCallAs(w *jsonwire.Writer, format dragoman.Format, c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) error {
	if a, ok := r.adapters[adapterKey{codes.CallObject, "", format}]; ok {
		obj, sub, err := a.Adapt(dragoman.AdapterInput{Call: c})
		rep.Merge(at.String(), sub)
		if err != nil {
			return err
		}
		w.Raw(obj)
		return nil
	}
	codec := r.callCodec(format)
	if codec == nil {
		return errNoAdapter("call", format)
	}
	t := codec.Traits()
	if r.forResponse {
		format = responseFormat(c, format, t)
		c = dropCaseVariants(c, t, at, rep)
	}
	reportDroppedFields(c, t.OptionalCallFields, at, rep)
	c = r.toWire(c, codec, at, rep)
	if c.Payload == codes.PayloadText && format == t.Call {
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), `freeform input written as the argument "input" of a function call`)
	}
	if c.Payload != codes.PayloadText && format == t.TextCall {
		rep.Add(dragoman.Lowered, dragoman.Warn, at.String(), "arguments written as the text of a freeform call")
	}
	id, name := r.wireIDName(c.ID, c.Namespace, c.Name, at, rep)
	codec.WriteCall(view{r}, w, format, c, id, name, at, rep)
	extra.Report(rep, c.Extra, t.Dialect, at)
	return nil
}

// reportDroppedFields reports the fields of a call that a format does not have.
func reportDroppedFields(c *dragoman.ToolCall, supported toolwire.CallFields, at extra.Path, rep *dragoman.Report) {
	if c.Cache != nil && !supported.Cache {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint after a call: the target caches automatically")
	}
	if c.Async && !supported.Async {
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/async", "the target waits for every result")
	}
	if !supported.ItemID {
		extra.ReportItem(rep, c.ItemID, at, "/item_id")
	}
	if c.Signature != "" && c.Signature != toolwire.DummySignature {
		extra.ReportOpaque(rep, at.String()+"/signature")
	}
}

func (r *Registry) wireIDName(id, ns, name string, at extra.Path, rep *dragoman.Report) (wireID, wireName string) {
	wireID = r.ids.alias(id)
	if wireID != id {
		rep.AddRename(dragoman.Info, at.String(), "call id", id, wireID)
	}
	if r.names.isShared(ns, name) {
		rep.Addf(dragoman.Lowered, dragoman.Serious, at.String(), "a client cannot distinguish %.80q from a namespaced tool that was called before", name)
	}
	wireName = r.names.wireName(ns, name)
	if wireName != name {
		rep.AddRename(dragoman.Info, at.String(), "tool", name, wireName)
	}
	return wireID, wireName
}

// ResolveCall converts a call from the wire to the call that the author of the tool knows: it
// reverses aliases, also those in arguments, unwraps the input of a freeform tool, and sets
// Problem on a call that must not run.
func (r *Registry) ResolveCall(c *dragoman.ToolCall, at extra.Path, rep *dragoman.Report) {
	r.settleCall(c, false, at, rep)
}

// settleCall is ResolveCall; valid reports that the arguments need no check.
func (r *Registry) settleCall(c *dragoman.ToolCall, valid bool, at extra.Path, rep *dragoman.Report) {
	stood := *c
	r.settle(c, valid, at, rep)
	renamed := c.ID != stood.ID || r.names.renamed(stood.Namespace, stood.Name, toolID{c.Namespace, c.Name})
	// Clients of a wire without freeform tools know such a tool as a function.
	asFunction := c.Payload == codes.PayloadText && r.ownCodec != nil && r.ownCodec.Traits().TextCall == ""
	if renamed || !asFunction && (c.Payload != stood.Payload || c.Arguments != stood.Arguments) {
		r.rewritten++
	}
}

func (r *Registry) settle(c *dragoman.ToolCall, valid bool, at extra.Path, rep *dragoman.Report) {
	c.ID = r.ids.restore(c.ID)
	wireName := c.Name
	ns, name, spec := r.PublicName(c.Namespace, c.Name)
	if spec != nil && !r.names.isFlattened(toolID{namespace: c.Namespace}) && r.names.wireName(ns, name) != wireName {
		rep.Addf(dragoman.Renamed, dragoman.Info, at.String()+"/name", "the model called %.80q, which does not exist; read as %q", wireName, name)
	}
	c.Namespace, c.Name = ns, name
	if wireName == "" && c.Problem == nil {
		c.Problem = &dragoman.CallProblem{Code: codes.ProblemNoName, Message: "the call names no tool", Offset: -1}
	}
	if c.Payload == codes.PayloadText {
		return
	}
	if spec != nil && spec.Kind == codes.ToolFreeform {
		r.unwrapFreeform(c, spec, at, rep)
		return
	}
	switch {
	case c.Problem == nil && valid:
	case c.Problem == nil:
		c.Problem = dragoman.CheckArguments(c.Arguments)
		if c.Problem != nil && c.Problem.Code == codes.ProblemNotObject {
			unwrapDoubleEncoded(c, at, rep)
		}
	case c.Problem.Code == codes.ProblemUnreadable: // it does not replace a problem that reports ambiguity
		if p := dragoman.CheckArguments(c.Arguments); p != nil && p.Code == codes.ProblemDuplicateKey {
			c.Problem = p
		}
	}
	if c.Problem == nil && spec != nil {
		r.fromWire(c, spec)
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

// unwrapFreeform extracts the text from the function call that replaced a freeform one: the
// argument "input", or what models write instead of it (quirk B30).
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
	c.Payload, c.Arguments = codes.PayloadText, text
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
const problemNoInput string = "no_input"

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
			return "", "", &dragoman.CallProblem{Code: codes.ProblemInvalidJSON, Message: "the arguments are not valid JSON: " + err.Error(), Offset: -1}
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
		return input, `"input" only; the other arguments are dropped`, nil
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
