package openaichat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// messageDecoder decodes messages. Each wire element becomes one message.
type messageDecoder struct {
	reg    *interop.Registry
	o      dialect.DecodeOptions
	origin *dragoman.Origin
	rep    *dragoman.Report
	// legacy holds the synthetic ids of function_call messages that have no result yet, by name,
	// oldest first.
	legacy map[string][]legacyCall
	// turn holds the calls of the latest assistant message with calls that wait for results.
	// Results only match these calls (quirk B12). The key is the wire id of a call without an
	// embedded signature (quirk B17). It is empty for a call without an id, and the original id
	// for a call that was renamed because two calls shared one (quirk B11).
	turn map[string][]waitingCall
	// request is set while a request is decoded. Its messages must have a role.
	request bool
	// once is set if no object has a duplicate field.
	once bool
	// unclear is set if readers could interpret the decoded bytes in different ways.
	unclear bool
	// messageUnclear is unclear for the current message.
	messageUnclear bool
	// clash is set if two calls of the current message share an id.
	clash bool
	// trimmed is set if the current message has an empty function_call, or an empty custom next
	// to a function. These are not written again.
	trimmed bool
	// hidden holds the wire ids of calls of the current message from which a signature was
	// removed (quirk B17). Such a message is re-encoded, because its results refer to the id
	// without the signature.
	hidden map[*dragoman.ToolCall]string
}

// waitingCall is a call that waits for its result.
type waitingCall struct {
	call   *dragoman.ToolCall
	wireID string
}

type legacyCall struct {
	id      string
	payload string
}

// ambiguous reports that the input has two interpretations. Its native form is not kept, so
// encoding writes an unambiguous form.
func (d *messageDecoder) ambiguous(at, detail string) {
	d.unclear, d.messageUnclear = true, true
	d.rep.Add(dragoman.Lowered, dragoman.Warn, at, detail+"; the native form is not kept")
}

// caseVariant reports whether a field differs only in case from one that determines what runs, or
// whether it may run. A reader that ignores case would confuse them, so the caller drops the
// field.
func (d *messageDecoder) caseVariant(known []string, key []byte, at extra.Path) bool {
	if slices.Contains(known, string(key)) || !wirekit.Folds(known, key) {
		return false
	}
	d.unclear, d.messageUnclear = true, true
	d.rep.Addf(dragoman.Dropped, dragoman.Warn, at.String(), "field %.40q differs only in case from a known field; the native form is not kept", key)
	return true
}

// message decodes the message at the given path. pos is its position, which determines the ids of
// calls without one.
func (d *messageDecoder) message(raw []byte, at extra.Path, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Origin: d.origin}
	var err error
	unchanged := true
	d.messageUnclear, d.clash, d.trimmed, d.hidden = false, false, false, nil
	rewritten := d.reg.Rewritten()
	role := roleOf(raw, d.once)
	if role == "" && d.request {
		return m, noRole(raw)
	}
	switch role {
	case "tool":
		m.Role = dragoman.RoleTool
		unchanged, err = d.toolMessage(raw, &m, at)
	case "function":
		m.Role = dragoman.RoleTool
		unchanged = false
		err = d.functionMessage(raw, &m, at, pos)
	default:
		m.Role = dragoman.Role(role)
		if role == "" {
			m.Role = dragoman.RoleAssistant // some servers omit it or leave it empty
		}
		err = d.plainMessage(raw, &m, at, pos)
	}
	if err != nil {
		return m, err
	}
	for _, c := range m.ToolCalls() {
		if c.Problem != nil && c.Problem.Code == codes.ProblemDuplicateKey {
			d.ambiguous(at.String(), fmt.Sprintf("call %.64q has a duplicate field", c.ID))
			break
		}
	}
	// The native form of a result with another call id would not match its call if that call is
	// rebuilt.
	if !d.o.NoNative && unchanged && !d.messageUnclear && !d.trimmed && d.hidden == nil && d.reg.Rewritten() == rewritten {
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	return m, nil
}

var errNoRole = errors.New("message has no role")

// noRole returns the error, with its position in raw, for a message without a valid role.
func noRole(raw []byte) error {
	if err := wirekit.CheckNotStrings(raw, "role"); err != nil {
		return err
	}
	return &jsonwire.Error{Err: errNoRole}
}

// roleOf returns the role of a message. If it may occur twice, the last one counts.
func roleOf(raw []byte, once bool) string {
	r := jsonwire.Borrow(raw)
	defer r.Return()
	role := ""
	for key := range r.Object() {
		if string(key) == "role" && r.Kind() == '"' {
			if role = r.StringOneOf("user", "assistant", "tool", "system", "developer"); once {
				break
			}
		} else {
			r.Skip()
		}
	}
	return role
}

// toolMessage decodes a result. same reports whether it keeps its call id.
func (d *messageDecoder) toolMessage(raw []byte, m *dragoman.Message, at extra.Path) (same bool, err error) {
	res, err := d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep)
	if err != nil {
		return false, err
	}
	id := res.CallID
	d.pair(res)
	if d.request && res.CallID == "" { // a value that is not a string is never converted to an id (requirement I8)
		if err := wirekit.CheckNotStrings(raw, "tool_call_id"); err != nil {
			return false, err
		}
	}
	m.Parts = []dragoman.Part{res}
	return res.CallID == id, nil
}

// pair finds the call of a result: the first call with its id that has no result yet. A call with
// exactly the same wire id is preferred to one whose id differs by an embedded signature (quirk
// B17). The call provides the tool name and the kind of payload.
func (d *messageDecoder) pair(res *dragoman.ToolResult) {
	wireID := res.CallID
	res.CallID, _ = wirekit.SplitID(wireID)
	waiting := d.turn[res.CallID]
	if len(waiting) == 0 {
		return
	}
	i := max(0, slices.IndexFunc(waiting, func(w waitingCall) bool { return w.wireID == wireID }))
	call := waiting[i].call
	if i == 0 {
		d.turn[res.CallID] = waiting[1:]
	} else {
		d.turn[res.CallID] = slices.Delete(waiting, i, i+1)
	}
	res.CallID, res.Payload = call.ID, call.Payload
	if res.Name == "" {
		res.Namespace, res.Name = call.Namespace, call.Name
	}
}

// functionMessage decodes the result of a legacy function call. It has no id, so it belongs to
// the oldest open call of its name.
func (d *messageDecoder) functionMessage(raw []byte, m *dragoman.Message, at extra.Path, pos int) error {
	res, err := d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep)
	if err != nil {
		return err
	}
	if res.Extra != nil { // the name is that of the tool; a tool message has no such field
		res.Extra.Fields = slices.DeleteFunc(res.Extra.Fields, func(f dragoman.Field) bool { return f.Path == "/name" })
	}
	m.Parts = []dragoman.Part{res}
	if open := d.legacy[res.Name]; len(open) > 0 {
		res.CallID, res.Payload = open[0].id, open[0].payload
		d.legacy[res.Name] = open[1:]
		return nil
	}
	res.CallID = wirekit.SyntheticID("call_", d.o.Seed, pos)
	d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "generated call id %q for the result of a legacy function call", res.CallID)
	return nil
}

// messageKeys are the fields of a message that readers interpret differently if they occur twice.
var messageKeys = []string{"role", "content", "refusal", "tool_calls", "function_call"}

func hasOpaqueCall(m *dragoman.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool {
		o, ok := p.(*dragoman.Opaque)
		return ok && o.Dialect == name && o.Type == "tool_call"
	})
}

// plainMessage decodes a message of any other role.
func (d *messageDecoder) plainMessage(raw []byte, m *dragoman.Message, at extra.Path, pos int) error {
	var (
		content   []dragoman.Part
		refusal   *dragoman.Refusal
		calls     []dragoman.Part
		reasoning reasoningFields
	)
	assistant := m.Role == dragoman.RoleAssistant
	var seen, again uint // bit sets of messageKeys: fields seen, and fields seen twice
	r := jsonwire.Borrow(raw)
	defer r.Return()
	for key := range r.Object() {
		if d.caseVariant(messageKeys, key, at) {
			r.Skip()
			continue
		}
		if i := slices.Index(messageKeys, string(key)); i >= 0 {
			if seen&(1<<i) != 0 {
				again |= 1 << i
				if !d.messageUnclear {
					d.ambiguous(at.String(), "the message has a duplicate field "+messageKeys[i])
				}
			}
			seen |= 1 << i
		}
		switch string(key) {
		case "role":
			r.Skip()
		case "name":
			if r.Kind() == 'n' {
				extra.Add(&m.Extra, name, "", key, r.Raw())
				continue
			}
			m.Name = r.String()
		case "content":
			switch r.Kind() {
			case '"':
				text := r.String()
				if text == "" && assistant {
					// It means no content, but some servers require the empty string back.
					extra.Add(&m.Extra, name, "", []byte("content"), []byte(`""`))
					content = nil // the last counts
					continue
				}
				content = []dragoman.Part{&dragoman.Text{Text: text}}
			case '[':
				content = readContent(r)
			case 'n':
				r.Skip()
				content = nil
			case '{':
				content = []dragoman.Part{&dragoman.Opaque{Dialect: name, Type: "content", JSON: r.Raw()}}
			default:
				r.Skip()
				r.Fail(errContent)
			}
		case "refusal":
			if r.Kind() == '"' && nonEmptyValue(r) {
				refusal = &dragoman.Refusal{Text: r.String()}
			} else { // an empty text is not a refusal
				extra.Add(&m.Extra, name, "", key, r.Raw())
				refusal = nil
			}
		case "tool_calls":
			if r.Kind() == 'n' {
				extra.Add(&m.Extra, name, "", key, r.Raw())
				continue
			}
			n := 0
			for i := range r.Array() {
				obj := r.Raw()
				n++
				if part := d.call(obj, at.Elem("tool_calls", i), pos, i); part != nil {
					calls = append(calls, part)
				}
			}
			if n == 0 { // an empty list means no calls (quirk B34)
				extra.Add(&m.Extra, name, "", []byte("tool_calls"), []byte("[]"))
			}
		case "function_call":
			if r.Kind() == 'n' {
				extra.Add(&m.Extra, name, "", key, r.Raw())
				continue
			}
			if zeroFunctionCall(r.Rest()) { // Snowflake Cortex adds it to every text
				r.Skip()
				d.trimmed = true
				continue
			}
			calls = append(calls, d.legacyFunctionCall(r, at, pos))
		case "reasoning_content", "reasoning", "reasoning_text", "reasoning_details":
			reasoning.readField(r, string(key), &m.Extra)
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return err
	}
	if p := reasoning.part(); p != nil {
		m.Parts = append(m.Parts, p)
	}
	m.Parts = append(m.Parts, content...)
	if refusal != nil {
		m.Parts = append(m.Parts, refusal)
	}
	m.Parts = append(m.Parts, calls...)
	if i := slices.Index(messageKeys, "tool_calls"); again&(1<<i) != 0 {
		for _, c := range m.ToolCalls() {
			c.Problem = wirekit.RepeatedField("tool_calls")
		}
	}
	if len(calls) > 0 {
		if d.request { // no results follow in a response
			d.turn = make(map[string][]waitingCall, len(calls))
		}
		m.Parts = d.settleDuplicates(m.Parts, pos, at)
	}
	return nil
}

func readContent(r *jsonwire.Reader) []dragoman.Part {
	var parts []dragoman.Part
	for range r.Array() {
		raw := r.Raw()
		if r.Err() != nil {
			break
		}
		p := readPart(raw)
		if o, ok := p.(*dragoman.Opaque); ok && o.Type == "thinking" {
			p = thinkingPart(o)
		}
		parts = append(parts, p)
	}
	return parts
}

// call decodes one tool call. A call that cannot be read is kept as an opaque part, so that it
// does not fail the whole message.
func (d *messageDecoder) call(obj json.RawMessage, at extra.Path, pos, i int) dragoman.Part {
	if len(obj) > 0 && obj[0] == 'n' {
		return nil
	}
	rewritten := d.reg.Rewritten()
	c, err := d.reg.ReadCall(obj, at, d.rep)
	d.trimmed = d.trimmed || d.reg.Rewritten() != rewritten && bytes.Contains(obj, []byte(`"custom"`)) && bytes.Contains(obj, []byte(`"function"`))
	if err != nil {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept unchanged: %v", err)
		return &dragoman.Opaque{Dialect: name, Type: "tool_call", JSON: obj}
	}
	d.extractSignature(c, at)
	if c.ID == "" {
		c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed, pos, i), true
		d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "generated call id %q", c.ID)
	}
	return c
}

// extractSignature moves a signature from the id of a call to the call (quirk B17).
func (d *messageDecoder) extractSignature(c *dragoman.ToolCall, at extra.Path) {
	wireID, kept := wirekit.SplitCallID(c)
	if wireID == "" {
		return
	}
	if d.hidden == nil {
		d.hidden = map[*dragoman.ToolCall]string{}
	}
	d.hidden[c] = wireID
	reportHidden(d.rep, c.ID, kept, at.String())
}

// reportHidden reports that a signature was removed from a call id.
func reportHidden(rep *dragoman.Report, id string, kept bool, at string) {
	if kept {
		rep.Addf(dragoman.Moved, dragoman.Info, at, "signature in the call id; the id is %q without it", id)
	} else {
		rep.Addf(dragoman.Dropped, dragoman.Warn, at, "signature in the call id is dropped, because the call has another; the id is %q without it", id)
	}
}

// legacyFunctionCall decodes the function_call of a message, which has no id, as a call of a
// function tool.
func (d *messageDecoder) legacyFunctionCall(r *jsonwire.Reader, at extra.Path, pos int) dragoman.Part {
	if r.Kind() != '{' {
		for range r.Object() { // reports the error
		}
		return nil
	}
	obj := append(append([]byte(legacyTool), r.Raw()...), '}')
	c, err := d.reg.ReadCall(obj, at, d.rep)
	if err != nil {
		r.Fail(err)
		return nil
	}
	c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed, pos, 0), true
	if d.legacy == nil {
		d.legacy = map[string][]legacyCall{}
	}
	d.legacy[c.Name] = append(d.legacy[c.Name], legacyCall{c.ID, c.Payload})
	d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "generated call id %q for a legacy function call", c.ID)
	return c
}

var errContent = errors.New("content is neither a string nor a list of parts")

// settleDuplicates resolves calls that share an id within one message: an exact repeat is
// dropped, another call gets a new id (quirk B11).
func (d *messageDecoder) settleDuplicates(parts []dragoman.Part, pos int, at extra.Path) []dragoman.Part {
	seen := map[string]waitingCall{}
	kept := parts[:0]
	for i, p := range parts {
		c, ok := p.(*dragoman.ToolCall)
		if !ok {
			kept = append(kept, p)
			continue
		}
		wire := c.ID
		if c.Synthetic {
			wire = ""
		}
		wireID := cmp.Or(d.hidden[c], wire)
		if earlier, dup := seen[c.ID]; dup {
			d.clash = true
			first := earlier.call
			if earlier.wireID == wireID && first.Name == c.Name && first.Namespace == c.Namespace && first.Arguments == c.Arguments && first.Problem == nil && c.Problem == nil {
				d.rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "exact repeat of call %q", c.ID)
				continue
			}
			c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed+wire, pos, i), true
			d.rep.Addf(dragoman.Renamed, dragoman.Warn, at.String(), "call id %q occurs twice; the later call gets the id %q", wire, c.ID)
		}
		seen[c.ID] = waitingCall{c, wireID}
		if d.turn != nil {
			d.turn[wire] = append(d.turn[wire], waitingCall{c, wireID})
		}
		kept = append(kept, p)
	}
	return kept
}
