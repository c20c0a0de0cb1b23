package anthropic

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// idPrefix starts the ids of calls that came without one.
const idPrefix = "toolu_"

// blockDecoder reads content blocks, one block to one part.
type blockDecoder struct {
	reg    *interop.Registry
	o      dialect.DecodeOptions
	origin *dragoman.Origin
	rep    *dragoman.Report
	// lost are the lines of rep that a stream could bring again and again.
	lost wirekit.Untold
	// ambiguous says that two readers could see two messages in what was read,
	// so that its bytes must not be passed on.
	ambiguous bool
}

func newBlockDecoder(c Codec, o dialect.DecodeOptions) blockDecoder {
	return blockDecoder{reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o, origin: wirekit.Origin(name, o), rep: new(dragoman.Report)}
}

// quiet is a decoder whose findings are looked at and not reported.
func (d *blockDecoder) quiet() blockDecoder {
	return blockDecoder{reg: d.reg, o: d.o, origin: d.origin, rep: new(dragoman.Report)}
}

// typeOf reads the "type" of a block.
func typeOf(raw []byte) string {
	typ, _ := typeAndRepeat(jsonwire.Value{Raw: raw})
	return typ
}

// typeAndRepeat reads the "type" of a block, and which of its members is there
// twice: empty for none. A block that any reader could take for a call is one.
func typeAndRepeat(block jsonwire.Value) (typ, repeated string) {
	r := block.Reader()
	defer r.Return()
	if r.Kind() != '{' {
		return "", ""
	}
	var seen memberSet
	for key := range r.Object() {
		if seen.add(key) && repeated == "" {
			repeated = string(key)
		}
		if !strings.EqualFold(string(key), "type") || r.Kind() != '"' {
			r.Skip()
			continue
		}
		exact := string(key) == "type"
		switch s := r.String(); {
		case s == typeCall && !exact: // many readers ignore case
			typ, repeated = s, "type"
		case exact && typ != typeCall:
			typ = s
		}
	}
	return typ, repeated
}

// typeCall is the type of a block that is a call.
const typeCall = "tool_use"

// memberSet finds repeated names: few without a map, many in linear time.
type memberSet struct {
	few  [8]string
	n    int
	many map[string]bool
}

// add reports whether the name was there before.
func (s *memberSet) add(name []byte) bool {
	for _, f := range s.few[:s.n] {
		if f == string(name) {
			return true
		}
	}
	if s.n < len(s.few) {
		s.few[s.n] = string(name)
		s.n++
		return false
	}
	if s.many[string(name)] {
		return true
	}
	if s.many == nil {
		s.many = make(map[string]bool)
	}
	s.many[string(name)] = true
	return false
}

// block reads one block; place is where a synthetic call id comes from. A
// block we do not know, or that is not what its type promises, is kept as it
// is: one strange block must not cost the message.
func (d *blockDecoder) block(block jsonwire.Value, at extra.Path, place ...int) dragoman.Part {
	raw := json.RawMessage(block.Raw)
	switch typ, repeated := typeAndRepeat(block); typ {
	case "text", "image", "document":
		p := readPart(raw)
		if t, ok := p.(*dragoman.Text); ok {
			d.dropTwins(&t.Extra, at)
		}
		return p
	case "thinking", "redacted_thinking":
		if p := readReasoning(raw, typ); p != nil {
			d.dropTwins(&p.Extra, at)
			return p
		}
		return opaque(raw, typ)
	case typeCall:
		c := d.call(block, repeated, at)
		d.identify(c, at, place...)
		return c
	case "tool_result":
		res, err := d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep)
		if err != nil {
			d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept as it is: %v", err)
			return opaque(raw, typ)
		}
		return res
	default:
		return opaque(raw, typ)
	}
}

// blockMembers say what a block is and what it holds.
var blockMembers = []string{"type", "text", "thinking", "signature", "data", "id", "name", "input"}

// dropTwins drops what a reader that ignores case would take for another member
// of the block.
func (d *blockDecoder) dropTwins(e **dragoman.Extra, at extra.Path) {
	if wirekit.DropTwins(e, "", blockMembers) {
		d.ambiguous = true
		d.rep.Add(dragoman.Dropped, dragoman.Warn, at.String(), "a member that some readers would take for another; the native form is not kept")
	}
}

// call reads a call; repeated is a member that it has twice. A call that cannot
// be read is still one, which must not run: clients would see it all the same.
func (d *blockDecoder) call(block jsonwire.Value, repeated string, at extra.Path) *dragoman.ToolCall {
	c, err := d.reg.ReadCallValue(block, at, d.rep)
	if err != nil {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "a call that cannot be read: %v", err)
		c = unreadable(block.Raw, err)
	}
	if repeated != "" {
		c.Problem = wirekit.RepeatedMember(repeated)
	}
	if p := c.Problem; p != nil && p.Code == dragoman.ProblemDuplicateKey && p.Offset < 0 {
		d.ambiguous = true // the call around the arguments, not they
	}
	return c
}

// unreadable is a call of which only some members could be read. The others
// are kept in its extras: a name that is none below /unread, as the wire has
// one name only.
func unreadable(raw json.RawMessage, err error) *dragoman.ToolCall {
	c := &dragoman.ToolCall{}
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		switch k := string(key); {
		case k == "type":
			r.Skip()
		case k == "id" && r.Kind() == '"':
			c.ID = r.String()
		case k == "name" && r.Kind() == '"':
			c.Name = r.String()
		case k == "input" && r.Kind() == '"':
			c.Arguments = r.String()
		case k == "input":
			c.Arguments = string(r.Raw())
		case k == "id", k == "name":
			extra.Add(&c.Extra, name, "/unread", key, r.Raw())
		default:
			extra.Add(&c.Extra, name, "", key, r.Raw())
		}
	}
	c.Problem = &dragoman.CallProblem{Code: dragoman.ProblemInvalidJSON, Message: "the call cannot be read: " + err.Error(), Offset: -1}
	if c.Name == "" {
		c.Problem.Code = dragoman.ProblemNoName
	}
	return c
}

// identify gives a call without an id one of its own (quirk B10).
func (d *blockDecoder) identify(c *dragoman.ToolCall, at extra.Path, place ...int) {
	if c.ID != "" {
		return
	}
	c.ID, c.Synthetic = wirekit.SyntheticID(idPrefix, d.o.Seed, place...), true
	d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "call id %q", c.ID)
}

// opaque keeps a block as it is. The two halves of a tool that the provider
// runs carry the same id under two names.
func opaque(raw json.RawMessage, typ string) *dragoman.Opaque {
	o := &dragoman.Opaque{Dialect: name, Type: typ, JSON: raw}
	half := ""
	switch {
	case strings.HasSuffix(typ, "_tool_use"), typ == typeCall:
		half = "id"
	case strings.HasSuffix(typ, "_tool_result"), typ == "tool_result":
		half = "tool_use_id"
	default:
		return o
	}
	o.Hosted = typ != typeCall && typ != "tool_result"
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		if string(key) == half && r.Kind() == '"' {
			o.CallID = r.String()
		} else {
			r.Skip()
		}
	}
	return o
}

// readReasoning reads a thinking block; nil when it is none.
func readReasoning(raw []byte, typ string) *dragoman.Reasoning {
	p := &dragoman.Reasoning{Redacted: typ == "redacted_thinking"}
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		switch k := string(key); {
		case k == "type":
			r.Skip()
		case k == "thinking" && !p.Redacted:
			p.Text = r.String()
		case k == "signature" && !p.Redacted:
			p.Signature = r.String()
		case k == "data" && p.Redacted:
			p.Encrypted = r.String()
		default:
			extra.Add(&p.Extra, name, "", key, r.Raw())
		}
	}
	if r.End() != nil {
		return nil
	}
	return p
}

// settleDuplicates settles calls that share an id within one response: an
// exact repeat is one call, another call gets an id of its own (quirk B11).
func (d *blockDecoder) settleDuplicates(parts []dragoman.Part) (kept []dragoman.Part, changed bool) {
	kept, clash := wirekit.SettleCalls(parts, "/content", d.rep, func(i int, old string) string {
		return wirekit.SyntheticID(idPrefix, d.o.Seed+old, i)
	})
	d.ambiguous = d.ambiguous || clash
	return kept, clash || slices.ContainsFunc(kept, func(p dragoman.Part) bool {
		c, ok := p.(*dragoman.ToolCall)
		return ok && c.Synthetic
	})
}

// callIDs are the calls of one response by id.
type callIDs struct{ wirekit.CallIDs }

// settle takes the next call: fresh is false for an exact repeat, and touched
// says that the response no longer reads as it came.
func (s *callIDs) settle(d *blockDecoder, c *dragoman.ToolCall, i int) (fresh, touched bool) {
	fresh, renamed := s.Settle(c, extra.Elem("/content", i), d.rep, func(old string) string {
		return wirekit.SyntheticID(idPrefix, d.o.Seed+old, i)
	})
	return fresh, !fresh || renamed || c.Synthetic
}

// placeAt puts the place of an element before the place inside it. base is the
// element's offset in the document.
func placeAt(path string, base int64, err error) error {
	var at *jsonwire.Error
	if errors.As(err, &at) {
		offset := at.Offset
		if offset >= 0 {
			offset += base
		}
		return &jsonwire.Error{Pointer: path + at.Pointer, Offset: offset, Err: at.Err}
	}
	return &jsonwire.Error{Pointer: path, Offset: base, Err: err}
}
