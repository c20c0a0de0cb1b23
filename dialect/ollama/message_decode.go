package ollama

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
	// isResponse is set while a response is decoded. Its role is assistant, whatever the role
	// field contains.
	isResponse bool
	turn       turn
	// unclear is set if readers could interpret the decoded bytes in different ways.
	unclear bool
	// messageUnclear is unclear for the current message.
	messageUnclear bool
}

func newMessageDecoder(c Codec, o dialect.DecodeOptions) messageDecoder {
	return messageDecoder{
		reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o,
		origin: wirekit.Origin(name, o), rep: new(dragoman.Report),
	}
}

// ambiguous reports that the input has two interpretations. Its native form is not kept, so
// encoding writes an unambiguous form.
func (d *messageDecoder) ambiguous(at, detail string) {
	d.unclear, d.messageUnclear = true, true
	d.rep.Add(dragoman.Lowered, dragoman.Warn, at, detail+"; the native form is not kept")
}

// message decodes the message at the given path. pos is its position, which determines the ids of
// calls without one.
func (d *messageDecoder) message(raw []byte, at extra.Path, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Origin: d.origin, Role: dragoman.RoleAssistant}
	if !d.isResponse {
		m.Role = roleOf(raw)
	}
	d.messageUnclear = false
	rewritten := d.reg.Rewritten()
	var unchanged bool
	var err error
	if m.Role == dragoman.RoleTool {
		unchanged, err = d.result(raw, &m, at, pos)
	} else {
		unchanged, err = d.plain(raw, &m, at, pos)
	}
	if err != nil {
		return m, err
	}
	for _, c := range m.ToolCalls() {
		if ambiguousCall(c) {
			d.ambiguous(at.String(), fmt.Sprintf("call %.64q has a duplicate field", c.ID))
			break
		}
	}
	if !d.o.NoNative && unchanged && !d.messageUnclear && d.reg.Rewritten() == rewritten {
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	return m, nil
}

func ambiguousCall(c *dragoman.ToolCall) bool {
	return c.Problem != nil && c.Problem.Code == codes.ProblemDuplicateKey
}

// roleOf reads the role; a message without one is from the user. The server ignores the case of a
// role.
func roleOf(raw []byte) dragoman.Role {
	r := jsonwire.NewReader(raw)
	role := ""
	for key := range r.Object() {
		if string(key) == "role" && r.Kind() == '"' {
			role = r.String()
		} else {
			r.Skip()
		}
	}
	if role == "" {
		return dragoman.RoleUser
	}
	if lower := dragoman.Role(strings.ToLower(role)); slices.Contains(
		[]dragoman.Role{dragoman.RoleSystem, dragoman.RoleUser, dragoman.RoleAssistant, dragoman.RoleTool}, lower) {
		return lower
	}
	return dragoman.Role(role)
}

// result decodes a tool message. same reports whether it names its call by the id that the call
// has on the wire.
func (d *messageDecoder) result(raw []byte, m *dragoman.Message, at extra.Path, pos int) (same bool, err error) {
	res, err := d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep)
	if err != nil {
		return false, err
	}
	m.Parts = []dragoman.Part{res}
	d.turn.answered = true
	wireID := res.CallID
	call := d.turn.pair(wireID, toolName{res.Namespace, res.Name})
	switch {
	case call != nil:
		res.CallID, res.Payload = call.part.ID, call.part.Payload
		if res.Name == "" {
			res.Namespace, res.Name = call.part.Namespace, call.part.Name
		}
		if wireID == "" || wireID == call.id {
			return true, nil
		}
		d.rep.Addf(dragoman.Renamed, dragoman.Warn, at.String(), "the result names the unknown call id %.64q; it is matched with the call of %.80q", wireID, call.part.Name)
		return false, nil
	case wireID == "":
		res.CallID = wirekit.SyntheticID("call_", d.o.Seed, pos)
		d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "generated call id %q for a result that matches no call", res.CallID)
	}
	return true, nil
}

// plain decodes a message of any role but tool. same reports whether its calls keep their wire
// ids, or had none.
func (d *messageDecoder) plain(raw []byte, m *dragoman.Message, at extra.Path, pos int) (same bool, err error) {
	d.turn.observe(m.Role)
	var b body
	b.read(d, jsonwire.NewReader(raw), m, at, pos)
	if b.err != nil {
		return false, b.err
	}
	m.Parts = b.parts(m.Role)
	if len(b.calls) == 0 {
		return true, nil
	}
	return d.settle(m, at, pos), nil
}

// body holds the fields of a message.
type body struct {
	content  string
	blank    bool // content is present and empty
	thinking string
	images   []dragoman.Part
	calls    []dragoman.Part
	err      error
}

// messageKeys are the fields of a message that readers interpret differently if they occur twice
// or differ in case.
var messageKeys = []string{"role", "content", "thinking", "images", "tool_calls"}

func (b *body) read(d *messageDecoder, r *jsonwire.Reader, m *dragoman.Message, at extra.Path, pos int) {
	var seen wirekit.KnownFields
	for key := range r.Object() {
		if seen.IsRepeated(messageKeys, key) && !d.messageUnclear {
			d.ambiguous(at.String(), fmt.Sprintf("the message has a duplicate field %.40q", key))
		}
		switch string(key) {
		case "role":
			if d.isResponse || r.Kind() == 'n' {
				r.Skip()
			} else {
				_ = r.String() // roleOf has read it; this reports a role that is not a string
			}
		case "content":
			null := r.Kind() == 'n'
			b.content = r.String()
			b.blank = b.content == "" && !null
		case "thinking":
			if r.Kind() == 'n' {
				extra.Add(&m.Extra, name, "", key, r.Raw())
				continue
			}
			if b.thinking = r.String(); b.thinking == "" {
				extra.Add(&m.Extra, name, "", []byte("thinking"), []byte(`""`))
			}
		case "images":
			b.readImages(r, m)
		case "tool_calls":
			again := len(b.calls) > 0
			b.readCalls(d, r, m, at, pos)
			if again {
				b.markDuplicateCalls()
			}
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	wirekit.DropCaseVariants(&m.Extra, "", messageKeys)
	b.err = r.End()
}

func (b *body) readImages(r *jsonwire.Reader, m *dragoman.Message) {
	if r.Kind() == 'n' {
		extra.Add(&m.Extra, name, "", []byte("images"), r.Raw())
		return
	}
	n := 0
	for range r.Array() {
		n++
		b.images = append(b.images, readImage(r.String()))
	}
	if n == 0 {
		extra.Add(&m.Extra, name, "", []byte("images"), []byte("[]"))
	}
}

func (b *body) readCalls(d *messageDecoder, r *jsonwire.Reader, m *dragoman.Message, at extra.Path, pos int) {
	if r.Kind() == 'n' {
		extra.Add(&m.Extra, name, "", []byte("tool_calls"), r.Raw())
		return
	}
	n := 0
	for i := range r.Array() {
		obj := r.Raw()
		n++
		if part := d.call(obj, at.Elem("tool_calls", i), pos, i); part != nil && r.Err() == nil {
			b.calls = append(b.calls, part)
		}
	}
	if n == 0 { // an empty list means no calls (quirk B34)
		extra.Add(&m.Extra, name, "", []byte("tool_calls"), []byte("[]"))
	}
}

// markDuplicateCalls marks the calls of a message whose tool_calls field occurs twice.
func (b *body) markDuplicateCalls() {
	for _, p := range b.calls {
		if c, ok := p.(*dragoman.ToolCall); ok {
			c.Problem = wirekit.RepeatedField("tool_calls")
		}
	}
}

func (b *body) parts(role dragoman.Role) []dragoman.Part {
	var parts []dragoman.Part
	if b.thinking != "" {
		parts = append(parts, &dragoman.Reasoning{Text: b.thinking})
	}
	if b.content != "" || b.blank && role != dragoman.RoleAssistant && len(b.images)+len(b.calls) == 0 {
		parts = append(parts, &dragoman.Text{Text: b.content})
	}
	return append(append(parts, b.images...), b.calls...)
}

// call decodes one call. A call that cannot be read is kept as an opaque part, so that it does
// not fail the whole message.
func (d *messageDecoder) call(obj json.RawMessage, at extra.Path, pos, i int) dragoman.Part {
	if len(obj) == 0 || obj[0] == 'n' {
		return nil
	}
	c, err := d.reg.ReadCall(obj, at, d.rep)
	if err != nil {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept unchanged: %v", err)
		return &dragoman.Opaque{Dialect: name, Type: typeCall, JSON: obj}
	}
	if c.ID == "" {
		c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed, pos, i), true
		d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "generated call id %q", c.ID)
	}
	return c
}

// typeCall marks an opaque part that comes from a list of calls.
const typeCall = "tool_call"

func hasOpaqueCall(m *dragoman.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool {
		o, ok := p.(*dragoman.Opaque)
		return ok && o.Dialect == name && o.Type == typeCall
	})
}

// settle resolves calls that share an id within one message: an exact repeat is dropped, another
// call gets a new id (quirk B11). same reports whether there was nothing to resolve.
func (d *messageDecoder) settle(m *dragoman.Message, at extra.Path, pos int) (same bool) {
	same = true
	seen := make(map[string]*dragoman.ToolCall, len(m.Parts))
	kept := m.Parts[:0]
	for _, p := range m.Parts {
		c, ok := p.(*dragoman.ToolCall)
		if !ok {
			kept = append(kept, p)
			continue
		}
		wire := c.ID
		if c.Synthetic {
			wire = ""
		}
		if first, dup := seen[c.ID]; dup {
			same, d.unclear = false, true // a client would run it twice, or confuse it with another call
			if sameCall(first, c) {
				d.rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "exact repeat of call %.64q", c.ID)
				continue
			}
			c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed+wire, pos, len(seen)), true
			d.rep.Addf(dragoman.Renamed, dragoman.Warn, at.String(), "call id %.64q occurs twice; the later call gets the id %q", wire, c.ID)
		}
		seen[c.ID] = c
		d.turn.add(c, wire)
		kept = append(kept, p)
	}
	m.Parts = kept
	return same
}

func sameCall(a, b *dragoman.ToolCall) bool {
	return a.Name == b.Name && a.Namespace == b.Namespace && a.Arguments == b.Arguments
}
