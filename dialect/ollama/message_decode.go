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

// messageDecoder reads messages, one wire element to one message.
type messageDecoder struct {
	reg    *interop.Registry
	o      dialect.DecodeOptions
	origin *dragoman.Origin
	rep    *dragoman.Report
	// answer: what is read is a model's answer, whoever it says that it is.
	answer bool
	turn   turn
	// unclear: two readers could read what was decoded so far as two.
	unclear bool
	// twice is unclear for the message at hand.
	twice bool
}

func newMessageDecoder(c Codec, o dialect.DecodeOptions) messageDecoder {
	return messageDecoder{
		reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o,
		origin: wirekit.Origin(name, o), rep: new(dragoman.Report),
	}
}

// ambiguous reports that what was read has two meanings. Its native form is
// not passed on: written anew it has one.
func (d *messageDecoder) ambiguous(at, detail string) {
	d.unclear, d.twice = true, true
	d.rep.Add(dragoman.Lowered, dragoman.Warn, at, detail+"; its native form is not kept")
}

// message reads the message at a place; pos is its position, from which ids
// are made for calls that have none.
func (d *messageDecoder) message(raw []byte, at extra.Path, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Origin: d.origin, Role: dragoman.RoleAssistant}
	if !d.answer {
		m.Role = roleOf(raw)
	}
	d.twice = false
	rewritten := d.reg.Rewritten()
	var asItCame bool
	var err error
	if m.Role == dragoman.RoleTool {
		asItCame, err = d.result(raw, &m, at, pos)
	} else {
		asItCame, err = d.plain(raw, &m, at, pos)
	}
	if err != nil {
		return m, err
	}
	for _, c := range m.ToolCalls() {
		if ambiguousCall(c) {
			d.ambiguous(at.String(), fmt.Sprintf("call %.64q says something twice", c.ID))
			break
		}
	}
	if !d.o.NoNative && asItCame && !d.twice && d.reg.Rewritten() == rewritten {
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	return m, nil
}

func ambiguousCall(c *dragoman.ToolCall) bool {
	return c.Problem != nil && c.Problem.Code == codes.ProblemDuplicateKey
}

// roleOf reads who speaks; who does not say so is the user. The server ignores
// the case of a role.
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

// result reads a tool message; same reports whether it names the call it
// answers by the id that call has on the wire.
func (d *messageDecoder) result(raw []byte, m *dragoman.Message, at extra.Path, pos int) (same bool, err error) {
	res, err := d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep)
	if err != nil {
		return false, err
	}
	m.Parts = []dragoman.Part{res}
	d.turn.answered = true
	said := res.CallID
	call := d.turn.pair(said, toolName{res.Namespace, res.Name})
	switch {
	case call != nil:
		res.CallID, res.Payload = call.part.ID, call.part.Payload
		if res.Name == "" {
			res.Namespace, res.Name = call.part.Namespace, call.part.Name
		}
		if said == "" || said == call.id {
			return true, nil
		}
		d.rep.Addf(dragoman.Renamed, dragoman.Warn, at.String(), "the result names a call %.64q, which there is none of; it answers the one of %.80q", said, call.part.Name)
		return false, nil
	case said == "":
		res.CallID = wirekit.SyntheticID("call_", d.o.Seed, pos)
		d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q for a result that answers no call", res.CallID)
	}
	return true, nil
}

// plain reads a message of any role but tool; same reports whether its calls
// have the ids they came with, or came with none.
func (d *messageDecoder) plain(raw []byte, m *dragoman.Message, at extra.Path, pos int) (same bool, err error) {
	d.turn.speaks(m.Role)
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

// body is what a message says, by member.
type body struct {
	content  string
	blank    bool // content is there and empty
	thinking string
	images   []dragoman.Part
	calls    []dragoman.Part
	err      error
}

// telling are the members of a message that readers would take differently,
// should they stand twice or in letters of another case.
var telling = []string{"role", "content", "thinking", "images", "tool_calls"}

func (b *body) read(d *messageDecoder, r *jsonwire.Reader, m *dragoman.Message, at extra.Path, pos int) {
	var seen wirekit.Members
	for key := range r.Object() {
		if seen.Twice(telling, key) && !d.twice {
			d.ambiguous(at.String(), fmt.Sprintf("the message has its %.40s twice", key))
		}
		switch string(key) {
		case "role":
			if d.answer || r.Kind() == 'n' {
				r.Skip()
			} else {
				_ = r.String() // roleOf has read it, unless it is none
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
				b.spoilCalls()
			}
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	wirekit.DropTwins(&m.Extra, "", telling)
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

// spoilCalls marks the calls of a message that has its list of them twice.
func (b *body) spoilCalls() {
	for _, p := range b.calls {
		if c, ok := p.(*dragoman.ToolCall); ok {
			c.Problem = wirekit.RepeatedMember("tool_calls")
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

// call reads one call. One that cannot be read at all is kept as opaque: a
// strange call must not cost the message.
func (d *messageDecoder) call(obj json.RawMessage, at extra.Path, pos, i int) dragoman.Part {
	if len(obj) == 0 || obj[0] == 'n' {
		return nil
	}
	c, err := d.reg.ReadCall(obj, at, d.rep)
	if err != nil {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept as it is: %v", err)
		return &dragoman.Opaque{Dialect: name, Type: typeCall, JSON: obj}
	}
	if c.ID == "" {
		c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed, pos, i), true
		d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", c.ID)
	}
	return c
}

// typeCall marks an opaque part that stands in a list of calls.
const typeCall = "tool_call"

func hasOpaqueCall(m *dragoman.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool {
		o, ok := p.(*dragoman.Opaque)
		return ok && o.Dialect == name && o.Type == typeCall
	})
}

// settle settles calls that share an id within one message: an exact repeat is
// one call, another call gets an id of its own (quirk B11). same reports whether
// nothing of that kind was to do.
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
			same, d.unclear = false, true // a client would run it twice, or take it for another
			if sameCall(first, c) {
				d.rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "call %.64q is repeated exactly", c.ID)
				continue
			}
			c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed+wire, pos, len(seen)), true
			d.rep.Addf(dragoman.Renamed, dragoman.Warn, at.String(), "call id %.64q occurs twice; the later call is %q", wire, c.ID)
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
