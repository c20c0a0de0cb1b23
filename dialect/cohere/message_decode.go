package cohere

import (
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

// fieldPlan is the value of [dragoman.Reasoning].Field for a plan before calls.
const fieldPlan = "tool_plan"

// typeCall is the type of an opaque part that is an element of tool_calls.
const typeCall = "tool_call"

// messageDecoder decodes messages. Each wire message becomes one canonical
// message.
type messageDecoder struct {
	reg    *interop.Registry
	o      dialect.DecodeOptions
	origin *dragoman.Origin
	rep    *dragoman.Report
	// inResponse reports that the message belongs to a response.
	inResponse bool
	// turn holds the calls of the latest assistant message that have no result
	// yet, by wire id (quirk B12).
	turn map[string][]*dragoman.ToolCall
	// ambiguousInput reports that readers could read the decoded input differently;
	// ambiguousMessage reports it for the current message.
	ambiguousInput, ambiguousMessage bool
}

func newMessageDecoder(c Codec, o dialect.DecodeOptions) messageDecoder {
	return messageDecoder{
		reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o,
		origin: wirekit.Origin(name, o), rep: new(dragoman.Report),
	}
}

// ambiguous reports that the input can be read in two ways. Its native form is
// not kept.
func (d *messageDecoder) ambiguous(at, detail string) {
	d.ambiguousInput, d.ambiguousMessage = true, true
	d.rep.Add(dragoman.Lowered, dragoman.Warn, at, detail+"; its native form is not kept")
}

// message decodes the message at a path. pos is its position, from which ids of
// calls without one are derived.
func (d *messageDecoder) message(raw []byte, at extra.Path, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Origin: d.origin, Role: dragoman.RoleAssistant}
	if !d.inResponse {
		if m.Role = roleOf(raw); m.Role == "" {
			return m, noRole(raw)
		}
	}
	d.ambiguousMessage = false
	rewritten := d.reg.Rewritten()
	var same bool
	var err error
	if m.Role == dragoman.RoleTool {
		same, err = d.result(raw, &m, at)
	} else {
		same, err = d.plain(raw, &m, at, pos)
	}
	if err != nil {
		return m, err
	}
	for _, c := range m.ToolCalls() {
		if c.Problem != nil && c.Problem.Code == codes.ProblemDuplicateKey {
			d.ambiguous(at.String(), fmt.Sprintf("call %.64q repeats a field", c.ID))
			break
		}
	}
	if !d.o.NoNative && same && !d.ambiguousMessage && d.reg.Rewritten() == rewritten {
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	return m, nil
}

func noRole(raw []byte) error {
	if err := wirekit.CheckNotStrings(raw, "role"); err != nil {
		return err
	}
	return wirekit.CheckRole("")
}

func roleOf(raw []byte) (role dragoman.Role) {
	r := jsonwire.Borrow(raw)
	defer r.Return()
	for key := range r.Object() {
		if string(key) == "role" && r.Kind() == '"' {
			role = dragoman.Role(r.StringOneOf("user", "assistant", "tool", "system"))
		} else {
			r.Skip()
		}
	}
	return role
}

// result decodes a tool message. same reports whether the result keeps its wire
// id.
func (d *messageDecoder) result(raw []byte, m *dragoman.Message, at extra.Path) (same bool, err error) {
	res, err := d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep)
	if err != nil {
		return false, err
	}
	id := res.CallID
	if pending := d.turn[id]; len(pending) > 0 {
		call := pending[0]
		d.turn[id] = pending[1:]
		res.CallID, res.Payload = call.ID, call.Payload
		if res.Name == "" {
			res.Namespace, res.Name = call.Namespace, call.Name
		}
	}
	if res.CallID == "" { // only a string can be an id (requirement I8)
		if err := wirekit.CheckNotStrings(raw, "tool_call_id"); err != nil {
			return false, err
		}
	}
	m.Parts = []dragoman.Part{res}
	return res.CallID == id, nil
}

// messageKeyFields lists the message fields that must not occur twice, because readers
// would read them differently.
var messageKeyFields = []string{"role", "content", "tool_plan", "tool_calls"}

var errContent = errors.New("want a string or a list of blocks")

// plain decodes a message of any other role. same reports whether its calls
// keep their wire ids.
func (d *messageDecoder) plain(raw []byte, m *dragoman.Message, at extra.Path, pos int) (same bool, err error) {
	var plan, content, calls []dragoman.Part
	lists := 0
	var seen wirekit.KnownFields
	r := jsonwire.Borrow(raw)
	defer r.Return()
	for key := range r.Object() {
		if seen.IsRepeated(messageKeyFields, key) && !d.ambiguousMessage {
			d.ambiguous(at.String(), fmt.Sprintf("duplicate field %.40s", key))
		}
		switch string(key) {
		case "role":
			r.Skip()
		case "content":
			content = readContent(r, m)
		case "tool_plan":
			plan = nil
			if r.Kind() != '"' {
				extra.Add(&m.Extra, name, "", key, r.Raw())
			} else if text := r.String(); text == "" {
				extra.Add(&m.Extra, name, "", []byte("tool_plan"), []byte(`""`))
			} else {
				plan = []dragoman.Part{&dragoman.Reasoning{Text: text, Field: fieldPlan}}
			}
		case "tool_calls":
			if r.Kind() == 'n' {
				extra.Add(&m.Extra, name, "", key, r.Raw())
				continue
			}
			lists++
			n := 0
			for i := range r.Array() {
				obj := r.Raw()
				n++
				if part := d.call(obj, at.Elem("tool_calls", i), pos, i); part != nil && r.Err() == nil {
					calls = append(calls, part)
				}
			}
			if n == 0 { // an empty list means no calls (quirk B34)
				extra.Add(&m.Extra, name, "", []byte("tool_calls"), []byte("[]"))
			}
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	wirekit.DropCaseVariants(&m.Extra, "", messageKeyFields)
	if err := r.End(); err != nil {
		return false, err
	}
	m.Parts = slices.Concat(plan, content, calls)
	if lists > 1 {
		for _, c := range m.ToolCalls() {
			c.Problem = wirekit.RepeatedField("tool_calls")
		}
	}
	if len(calls) == 0 {
		return true, nil
	}
	return d.settle(m, at, pos), nil
}

func readContent(r *jsonwire.Reader, m *dragoman.Message) (parts []dragoman.Part) {
	assistant := m.Role == dragoman.RoleAssistant
	switch r.Kind() {
	case '"':
		text := r.String()
		if text == "" && assistant {
			extra.Add(&m.Extra, name, "", []byte("content"), []byte(`""`))
			return nil
		}
		return []dragoman.Part{&dragoman.Text{Text: text}}
	case '[':
		for range r.Array() {
			raw := r.Raw()
			if r.Err() != nil {
				break
			}
			parts = append(parts, readPart(raw))
		}
		if len(parts) == 0 {
			extra.Add(&m.Extra, name, "", []byte("content"), []byte("[]"))
		}
	case 'n':
		r.Skip()
		extra.Add(&m.Extra, name, "", []byte("content"), []byte("null"))
	default:
		r.Skip()
		r.Fail(errContent)
	}
	return parts
}

// call decodes one call. A call that cannot be decoded becomes opaque.
func (d *messageDecoder) call(obj json.RawMessage, at extra.Path, pos, i int) dragoman.Part {
	if len(obj) == 0 || obj[0] == 'n' {
		return nil
	}
	c, err := d.reg.ReadCall(obj, at, d.rep)
	if err != nil {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "call passed through unchanged: %v", err)
		return &dragoman.Opaque{Dialect: name, Type: typeCall, JSON: obj}
	}
	d.identify(c, at, pos, i)
	return c
}

// identify gives a call without an id a synthetic one.
func (d *messageDecoder) identify(c *dragoman.ToolCall, at extra.Path, pos, i int) {
	if c.ID == "" {
		c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed, pos, i), true
		d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", c.ID)
	}
}

// settle renames calls of one message that share an id and drops exact repeats
// (quirk B11). same reports whether it changed nothing.
func (d *messageDecoder) settle(m *dragoman.Message, at extra.Path, pos int) (same bool) {
	if !d.inResponse {
		d.turn = map[string][]*dragoman.ToolCall{}
	}
	same = true
	var ids wirekit.CallIDs
	kept := m.Parts[:0]
	for i, p := range m.Parts {
		c, ok := p.(*dragoman.ToolCall)
		if !ok {
			kept = append(kept, p)
			continue
		}
		wire := c.ID
		if c.Synthetic {
			wire = ""
		}
		fresh, renamed := ids.Settle(c, at, d.rep, func(old string) string {
			return wirekit.SyntheticID("call_", d.o.Seed+old, pos, i)
		})
		if !fresh || renamed { // a client would run a call twice, or confuse two calls
			same, d.ambiguousInput = false, true
		}
		if !fresh {
			continue
		}
		if d.turn != nil {
			d.turn[wire] = append(d.turn[wire], c)
		}
		kept = append(kept, p)
	}
	m.Parts = kept
	return same
}

func hasOpaqueCall(m *dragoman.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool {
		o, ok := p.(*dragoman.Opaque)
		return ok && o.Dialect == name && o.Type == typeCall
	})
}
