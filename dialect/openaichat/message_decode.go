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

// messageDecoder reads messages, one wire element to one message.
type messageDecoder struct {
	reg    *interop.Registry
	o      dialect.DecodeOptions
	origin *dragoman.Origin
	rep    *dragoman.Report
	// legacy holds, by name, the synthetic ids of function_call messages that
	// no function message has answered yet, oldest first.
	legacy map[string][]legacyCall
	// turn holds the calls of the latest assistant message that made some and
	// that wait for their results, which pair with those and no others (quirk
	// B12). The key is the id a call came with, without what a gateway hid
	// behind it (quirk B17): empty where it had none, another call's where two
	// shared one (quirk B11).
	turn map[string][]waitingCall
	// request: a message is a client's, which must say who speaks.
	request bool
	// once: no object has a member twice.
	once bool
	// unclear: two readers could read what was decoded so far as two answers.
	unclear bool
	// twice is unclear for the message at hand.
	twice bool
	// clash: two calls of the message at hand shared an id.
	clash bool
	// trimmed: the message at hand has an empty function_call, or an empty custom
	// beside a function. Neither is written again.
	trimmed bool
	// hidden holds, for calls of the message at hand, the ids they came with
	// where a signature was taken off (quirk B17). The message is not passed on
	// as it came: whoever answers the call knows it by its own id.
	hidden map[*dragoman.ToolCall]string
}

// waitingCall is a call that waits for its result.
type waitingCall struct {
	call *dragoman.ToolCall
	came string // its id on the wire
}

type legacyCall struct {
	id      string
	payload string
}

// ambiguous reports that what was read has two meanings. Its native form is
// not passed on: written anew it has one.
func (d *messageDecoder) ambiguous(at, detail string) {
	d.unclear, d.twice = true, true
	d.rep.Add(dragoman.Lowered, dragoman.Warn, at, detail+"; its native form is not kept")
}

// twin reports whether a member is another spelling of one that says what runs
// or whether it may: a reader that ignores case would take it for that one. It
// is left out, so that nobody does.
func (d *messageDecoder) twin(known []string, key []byte, at extra.Path) bool {
	if slices.Contains(known, string(key)) || !wirekit.Folds(known, key) {
		return false
	}
	d.unclear, d.twice = true, true
	d.rep.Addf(dragoman.Dropped, dragoman.Warn, at.String(), "the member %.40q, which some readers would take for another; the native form is not kept", key)
	return true
}

// message reads the message at a place; pos is its position, from which ids
// are made for calls that have none.
func (d *messageDecoder) message(raw []byte, at extra.Path, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Origin: d.origin}
	var err error
	asItCame := true
	d.twice, d.clash, d.trimmed, d.hidden = false, false, false, nil
	rewritten := d.reg.Rewritten()
	role := roleOf(raw, d.once)
	if role == "" && d.request {
		return m, noRole(raw)
	}
	switch role {
	case "tool":
		m.Role = dragoman.RoleTool
		asItCame, err = d.toolMessage(raw, &m, at)
	case "function":
		m.Role = dragoman.RoleTool
		asItCame = false
		err = d.functionMessage(raw, &m, at, pos)
	default:
		m.Role = dragoman.Role(role)
		if role == "" {
			m.Role = dragoman.RoleAssistant // some servers leave it out or blank
		}
		err = d.plainMessage(raw, &m, at, pos)
	}
	if err != nil {
		return m, err
	}
	for _, c := range m.ToolCalls() {
		if c.Problem != nil && c.Problem.Code == codes.ProblemDuplicateKey {
			d.ambiguous(at.String(), fmt.Sprintf("call %.64q says something twice", c.ID))
			break
		}
	}
	// A result that answers another id than it says would not fit the call
	// beside it, should that be rebuilt.
	if !d.o.NoNative && asItCame && !d.twice && !d.trimmed && d.hidden == nil && d.reg.Rewritten() == rewritten {
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	return m, nil
}

var errNoRole = errors.New("a message needs a role")

// noRole is the error, placed in raw, of a message whose role nobody can read.
func noRole(raw []byte) error {
	if err := wirekit.NoStrings(raw, "role"); err != nil {
		return err
	}
	return &jsonwire.Error{Err: errNoRole}
}

// roleOf is the role of a message: the last one, unless it is known that there are no
// two.
func roleOf(raw []byte, once bool) string {
	r := jsonwire.Borrow(raw)
	defer r.Return()
	role := ""
	for key := range r.Object() {
		if string(key) == "role" && r.Kind() == '"' {
			if role = r.Among("user", "assistant", "tool", "system", "developer"); once {
				break
			}
		} else {
			r.Skip()
		}
	}
	return role
}

// toolMessage reads a result; same reports whether it names the call it
// answers by the id that call has.
func (d *messageDecoder) toolMessage(raw []byte, m *dragoman.Message, at extra.Path) (same bool, err error) {
	res, err := d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep)
	if err != nil {
		return false, err
	}
	id := res.CallID
	d.pair(res)
	if d.request && res.CallID == "" { // an id is never made of what is none (requirement I8)
		if err := wirekit.NoStrings(raw, "tool_call_id"); err != nil {
			return false, err
		}
	}
	m.Parts = []dragoman.Part{res}
	return res.CallID == id, nil
}

// pair finds the call that a result answers: the first with its id that has no
// result yet, before one whose id is the same but for a signature behind it
// (quirk B17). The call knows which tool it is and what kind of payload it has.
func (d *messageDecoder) pair(res *dragoman.ToolResult) {
	came := res.CallID
	res.CallID, _ = wirekit.SplitID(came)
	waiting := d.turn[res.CallID]
	if len(waiting) == 0 {
		return
	}
	i := max(0, slices.IndexFunc(waiting, func(w waitingCall) bool { return w.came == came }))
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

// functionMessage reads the result of a legacy function call. It has no id, so
// it answers the oldest open call of its name.
func (d *messageDecoder) functionMessage(raw []byte, m *dragoman.Message, at extra.Path, pos int) error {
	res, err := d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep)
	if err != nil {
		return err
	}
	if res.Extra != nil { // the name is the tool's, and a tool message has none
		res.Extra.Fields = slices.DeleteFunc(res.Extra.Fields, func(f dragoman.Field) bool { return f.Path == "/name" })
	}
	m.Parts = []dragoman.Part{res}
	if open := d.legacy[res.Name]; len(open) > 0 {
		res.CallID, res.Payload = open[0].id, open[0].payload
		d.legacy[res.Name] = open[1:]
		return nil
	}
	res.CallID = wirekit.SyntheticID("call_", d.o.Seed, pos)
	d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q for the result of a legacy function call", res.CallID)
	return nil
}

// telling are the members of a message that readers would take differently,
// should they stand twice.
var telling = []string{"role", "content", "refusal", "tool_calls", "function_call"}

func hasOpaqueCall(m *dragoman.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool {
		o, ok := p.(*dragoman.Opaque)
		return ok && o.Dialect == name && o.Type == "tool_call"
	})
}

// plainMessage reads a message of any other role.
func (d *messageDecoder) plainMessage(raw []byte, m *dragoman.Message, at extra.Path, pos int) error {
	var (
		content   []dragoman.Part
		refusal   *dragoman.Refusal
		calls     []dragoman.Part
		reasoning reasoningFields
	)
	assistant := m.Role == dragoman.RoleAssistant
	var seen, again uint // which of the telling members, and which of them twice
	r := jsonwire.Borrow(raw)
	defer r.Return()
	for key := range r.Object() {
		if d.twin(telling, key, at) {
			r.Skip()
			continue
		}
		if i := slices.Index(telling, string(key)); i >= 0 {
			if seen&(1<<i) != 0 {
				again |= 1 << i
				if !d.twice {
					d.ambiguous(at.String(), "the message has its "+telling[i]+" twice")
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
					// The same as none, in a spelling some servers want back.
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
			if r.Kind() == '"' && saysMore(r) {
				refusal = &dragoman.Refusal{Text: r.String()}
			} else { // an empty text is no refusal
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
			if zeroFunctionCall(r.Ahead()) { // Snowflake Cortex writes it beside every text
				r.Skip()
				d.trimmed = true
				continue
			}
			calls = append(calls, d.legacyFunctionCall(r, at, pos))
		case "reasoning_content", "reasoning", "reasoning_text", "reasoning_details":
			reasoning.member(r, string(key), &m.Extra)
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
	if i := slices.Index(telling, "tool_calls"); again&(1<<i) != 0 {
		for _, c := range m.ToolCalls() {
			c.Problem = wirekit.RepeatedMember("tool_calls")
		}
	}
	if len(calls) > 0 {
		if d.request { // in an answer, no results follow
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

// call reads one tool call. One that cannot be read at all is kept as opaque:
// a strange call must not cost the message.
func (d *messageDecoder) call(obj json.RawMessage, at extra.Path, pos, i int) dragoman.Part {
	if len(obj) > 0 && obj[0] == 'n' {
		return nil
	}
	rewritten := d.reg.Rewritten()
	c, err := d.reg.ReadCall(obj, at, d.rep)
	d.trimmed = d.trimmed || d.reg.Rewritten() != rewritten && bytes.Contains(obj, []byte(`"custom"`)) && bytes.Contains(obj, []byte(`"function"`))
	if err != nil {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept as it is: %v", err)
		return &dragoman.Opaque{Dialect: name, Type: "tool_call", JSON: obj}
	}
	d.unhide(c, at)
	if c.ID == "" {
		c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed, pos, i), true
		d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", c.ID)
	}
	return c
}

// unhide takes a signature off the id of a call (quirk B17).
func (d *messageDecoder) unhide(c *dragoman.ToolCall, at extra.Path) {
	came, kept := wirekit.TakeOffID(c)
	if came == "" {
		return
	}
	if d.hidden == nil {
		d.hidden = map[*dragoman.ToolCall]string{}
	}
	d.hidden[c] = came
	reportHidden(d.rep, c.ID, kept, at.String())
}

// reportHidden reports that a signature was taken off a call id.
func reportHidden(rep *dragoman.Report, id string, kept bool, at string) {
	if kept {
		rep.Addf(dragoman.Moved, dragoman.Info, at, "a signature behind the call id, which is %q without it", id)
	} else {
		rep.Addf(dragoman.Dropped, dragoman.Warn, at, "a signature behind the call id, which is %q without it: the call has another", id)
	}
}

// legacyFunctionCall reads a call without an id, the only one of its message, as
// the one of a function that it is.
func (d *messageDecoder) legacyFunctionCall(r *jsonwire.Reader, at extra.Path, pos int) dragoman.Part {
	if r.Kind() != '{' {
		for range r.Object() { // says what is wrong
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
	d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q for a legacy function call", c.ID)
	return c
}

var errContent = errors.New("want a text or a list of parts")

// settleDuplicates settles calls that share an id within one message: an exact
// repeat is one call, another call gets an id of its own (quirk B11).
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
		came := cmp.Or(d.hidden[c], wire)
		if twin, dup := seen[c.ID]; dup {
			d.clash = true
			first := twin.call
			if twin.came == came && first.Name == c.Name && first.Namespace == c.Namespace && first.Arguments == c.Arguments && first.Problem == nil && c.Problem == nil {
				d.rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "call %q is repeated exactly", c.ID)
				continue
			}
			c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed+wire, pos, i), true
			d.rep.Addf(dragoman.Renamed, dragoman.Warn, at.String(), "call id %q occurs twice; the later call is %q", wire, c.ID)
		}
		seen[c.ID] = waitingCall{c, came}
		if d.turn != nil {
			d.turn[wire] = append(d.turn[wire], waitingCall{c, came})
		}
		kept = append(kept, p)
	}
	return kept
}
