package interop

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ReadCall reads a call object of the target's dialect. A call that says
// something twice, or in a type that it must not have, is returned with its
// Problem; only what is no object, or of a format nobody reads, is an error.
func (r *Registry) ReadCall(obj json.RawMessage, at extra.Path, rep *dragoman.Report) (*dragoman.ToolCall, error) {
	return r.ReadCallValue(jsonwire.Value{Raw: obj}, at, rep)
}

// ReadCallValue is ReadCall of an object of which something is known.
func (r *Registry) ReadCallValue(obj jsonwire.Value, at extra.Path, rep *dragoman.Report) (*dragoman.ToolCall, error) {
	return r.readCallAs(callFormat(r.target.Dialect, obj), obj, at, rep)
}

func (r *Registry) readCallAs(format dragoman.Format, obj jsonwire.Value, at extra.Path, rep *dragoman.Report) (*dragoman.ToolCall, error) {
	if a, ok := r.calls[format]; ok {
		c, sub, err := a.InspectCall(obj.Raw)
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
	c, read, err := readCall(format, obj)
	if err != nil {
		return nil, err
	}
	if read.trimmed {
		r.rewritten++
	}
	r.settleAll(c, read.sound, at, rep)
	return c, nil
}

// errNothing says that an accessor returned neither a view nor an error.
var errNothing = errors.New("the accessor found nothing")

// callReading describes how a call was read.
type callReading struct {
	// sound: the arguments are an object that all readers understand alike.
	sound bool
	// trimmed: the wire object has an empty payload that the call does not.
	trimmed bool
}

// readCall reads a call of a built-in format from its wire object.
func readCall(format dragoman.Format, obj jsonwire.Value) (c *dragoman.ToolCall, read callReading, err error) {
	c = &dragoman.ToolCall{}
	rd := obj.Reader()
	defer rd.Return()
	switch format {
	case dragoman.FormatChatFunctionCall, dragoman.FormatChatCustomCall:
		read.trimmed = readChatCall(rd, c)
	case dragoman.FormatResponsesFunctionCall, dragoman.FormatResponsesCustomCall:
		readResponsesCall(rd, c)
	case dragoman.FormatAnthropicToolUse:
		read.sound = readToolUse(rd, c)
	case dragoman.FormatGeminiFunctionCall:
		readGeminiCall(rd, c)
	case dragoman.FormatOllamaToolCall:
		readOllamaCall(rd, c)
	case dragoman.FormatBedrockToolUse:
		readBedrockCall(rd, c)
	default:
		return nil, read, fmt.Errorf("interop: no accessor reads calls of format %s; contribute one", format)
	}
	if err := rd.End(); err != nil {
		return nil, read, fail(format, err)
	}
	return c, read, nil
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

// What each wire calls the members of a call that say what runs.
var (
	chatMembers      = []string{"id", "type", "function", "custom"}
	chatFunction     = []string{"name", "arguments"}
	chatCustom       = []string{"name", "input"}
	responsesMembers = []string{"type", "id", "call_id", "name", "namespace", "arguments", "input", "async", "status", "caller"}
	toolUseMembers   = []string{"type", "id", "name", "input", "cache_control", "caller"}
)

// callReader reads one call object. Whatever readers could understand
// differently makes the call one that must not run: a member that stands
// twice, or once more in other letters (many readers ignore case), a second
// payload, a member of the wrong type.
type callReader struct {
	rd *jsonwire.Reader
	c  *dragoman.ToolCall
	d  dragoman.Dialect
}

// ambiguous says that the call repeats a member. Nothing else that is wrong with
// it hides that, such as one of the two being unreadable; of several members the
// first counts.
func (cr *callReader) ambiguous(member string) {
	if p := cr.c.Problem; p == nil || p.Code != dragoman.ProblemDuplicateKey {
		cr.c.Problem = &dragoman.CallProblem{
			Code:    dragoman.ProblemDuplicateKey,
			Message: fmt.Sprintf("the call repeats the member %.40q, so its meaning is ambiguous", member),
			Offset:  -1,
		}
	}
}

// member returns the known member that a key names, or nothing. seen collects
// what the object held so far.
func (cr *callReader) member(known []string, seen *uint, prefix string, key []byte) string {
	for i, name := range known {
		if string(key) == name {
			if *seen&(1<<i) != 0 {
				cr.ambiguous(name)
				forget(&cr.c.Extra, prefix+"/"+name) // the last value counts
			}
			*seen |= 1 << i
			return name
		}
	}
	if twin := foldsTo(known, string(key)); twin != "" {
		cr.ambiguous(twin)
	}
	return ""
}

// foldsTo returns the member that a reader which ignores case would take name
// for.
func foldsTo(known []string, name string) string {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			return k
		}
	}
	return ""
}

// forget removes what was kept at path.
func forget(e **dragoman.Extra, path string) {
	if *e == nil {
		return
	}
	(*e).Fields = slices.DeleteFunc((*e).Fields, func(f dragoman.Field) bool { return f.Path == path })
	if len((*e).Fields) == 0 {
		*e = nil
	}
}

// unreadable keeps a member of the wrong type.
func (cr *callReader) unreadable(prefix, name, want string) {
	raw := cr.rd.Raw()
	if cr.rd.Err() != nil {
		return
	}
	extra.Add(&cr.c.Extra, cr.d, prefix, []byte(name), raw)
	if cr.c.Problem == nil {
		cr.c.Problem = &dragoman.CallProblem{
			Code: dragoman.ProblemUnreadable, Offset: -1,
			Message: fmt.Sprintf("the call cannot be read: %s must be %s", strings.TrimPrefix(prefix+"/"+name, "/"), want),
		}
	}
}

func (cr *callReader) text(prefix, name string) string {
	switch cr.rd.Kind() {
	case '"', 'n', 0:
		return cr.rd.String()
	default:
		cr.unreadable(prefix, name, "a string")
		return ""
	}
}

// object reports whether an object follows; null is none.
func (cr *callReader) object(prefix, name string) bool {
	switch cr.rd.Kind() {
	case '{':
		return true
	case 'n', 0:
		cr.rd.Skip()
	default:
		cr.unreadable(prefix, name, "an object")
	}
	return false
}

func (cr *callReader) other(prefix string, key []byte) {
	extra.Add(&cr.c.Extra, cr.d, prefix, key, cr.rd.Raw())
}

// readChatCall reports whether the call has an empty payload in addition to the filled
// one; the empty one is not sent to other servers.
func readChatCall(rd *jsonwire.Reader, c *dragoman.ToolCall) (zero bool) {
	cr := &callReader{rd: rd, c: c, d: dragoman.OpenAIChat}
	var seen uint
	payloads, objects := 0, 0
	for key := range rd.Object() {
		switch cr.member(chatMembers, &seen, "", key) {
		case "id":
			c.ID = readID(rd)
		case "type":
			if cr.text("", "type") == "custom" {
				c.Payload = dragoman.PayloadText
			}
		case "function":
			if cr.object("", "function") {
				objects++
				if cr.chatPayload("/function", chatFunction, "arguments") {
					payloads++
				}
			}
		case "custom":
			if cr.object("", "custom") {
				objects++
				if cr.chatPayload("/custom", chatCustom, "input") {
					payloads++
					c.Payload = dragoman.PayloadText
				}
			}
		default:
			cr.other("", key)
		}
	}
	if payloads > 1 {
		cr.ambiguous("function") // a function and a custom tool in one
	}
	return payloads == 1 && objects > 1
}

// chatPayload reads a function or a custom tool. It reports false for an object whose
// fields are all empty, which Snowflake Cortex writes in addition to the filled one: it
// counts as absent.
func (cr *callReader) chatPayload(prefix string, known []string, payload string) (filled bool) {
	var seen uint
	for key := range cr.rd.Object() {
		switch cr.member(known, &seen, prefix, key) {
		case "name":
			if skipEmpty(cr.rd) {
				continue
			}
			filled = true
			cr.c.Name = cr.text(prefix, "name")
		case payload:
			if skipEmpty(cr.rd) {
				continue
			}
			filled = true
			cr.c.Arguments = readPayload(cr.rd)
		default:
			filled = true
			cr.other(prefix, key)
		}
	}
	return filled
}

// skipEmpty skips null and "", and reports whether it did.
func skipEmpty(rd *jsonwire.Reader) bool {
	switch rd.Kind() {
	case 'n':
	case '"':
		if !bytes.HasPrefix(rd.Ahead(), []byte(`""`)) {
			return false
		}
	default:
		return false
	}
	rd.Skip()
	return true
}

func readResponsesCall(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	cr := &callReader{rd: rd, c: c, d: dragoman.OpenAIResponses}
	var seen uint
	payloads := 0
	for key := range rd.Object() {
		switch name := cr.member(responsesMembers, &seen, "", key); name {
		case "type":
			if cr.text("", "type") == "custom_tool_call" {
				c.Payload = dragoman.PayloadText
			}
		case "id":
			c.ItemID = readID(rd)
		case "call_id":
			c.ID = readID(rd)
		case "name":
			c.Name = cr.text("", "name")
		case "namespace":
			c.Namespace = cr.text("", "namespace")
		case "arguments", "input":
			if rd.Null() {
				continue
			}
			payloads++
			c.Arguments = readPayload(rd)
		case "async":
			if raw := rd.Raw(); string(raw) == "true" {
				c.Async = true
			} else {
				extra.Add(&c.Extra, cr.d, "", []byte(name), raw)
			}
		case "status":
			raw := rd.Raw()
			if s := strings.Trim(string(raw), `"`); s == "incomplete" {
				c.Status = dragoman.StatusIncomplete
			}
			extra.Add(&c.Extra, cr.d, "", []byte(name), raw)
		case "caller":
			c.Caller = rd.Raw()
			extra.Add(&c.Extra, cr.d, "", []byte(name), c.Caller)
		default:
			cr.other("", key)
		}
	}
	if payloads > 1 {
		cr.ambiguous("input") // its arguments again, under another name
	}
}

// readToolUse reports whether the arguments are sound, as far as that is known.
func readToolUse(rd *jsonwire.Reader, c *dragoman.ToolCall) (sound bool) {
	cr := &callReader{rd: rd, c: c, d: dragoman.Anthropic}
	var seen uint
	for key := range rd.Object() {
		switch name := cr.member(toolUseMembers, &seen, "", key); name {
		case "type":
			cr.text("", "type")
		case "id":
			c.ID = readID(rd)
		case "name":
			c.Name = cr.text("", "name")
		case "input":
			sound = rd.Clear() && rd.Kind() == '{'
			c.Arguments = readPayload(rd)
		case "cache_control":
			raw := rd.Raw()
			in := jsonwire.NewReader(raw)
			if hint := ttl(in); in.Err() == nil {
				c.Cache = hint
			} else { // says nothing about what runs
				extra.Add(&c.Extra, cr.d, "", []byte(name), raw)
			}
		case "caller":
			c.Caller = rd.Raw()
			extra.Add(&c.Extra, cr.d, "", []byte(name), c.Caller)
		default:
			cr.other("", key)
		}
	}
	return sound
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
