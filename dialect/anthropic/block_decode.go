package anthropic

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// blockDecoder reads content blocks, one block to one part.
type blockDecoder struct{ *blockwire.Decoder }

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
			d.DropTwins(&t.Extra, "", at.String(), blockMembers)
		}
		return p
	case "thinking", "redacted_thinking":
		if p := readReasoning(raw, typ); p != nil {
			d.DropTwins(&p.Extra, "", at.String(), blockMembers)
			return p
		}
		return opaque(raw, typ)
	case typeCall:
		c := d.call(block, repeated, at)
		d.Identify(c, at, place...)
		return c
	case "tool_result":
		return d.Result(raw, at, func() *dragoman.Opaque { return opaque(raw, typ) })
	default:
		return opaque(raw, typ)
	}
}

// blockMembers say what a block is and what it holds.
var blockMembers = []string{"type", "text", "thinking", "signature", "data", "id", "name", "input"}

// call reads a call; repeated is a member that it has twice. A call that cannot
// be read is still one, which must not run: clients would see it all the same.
func (d *blockDecoder) call(block jsonwire.Value, repeated string, at extra.Path) *dragoman.ToolCall {
	c, err := d.Reg.ReadCallValue(block, at, d.Rep)
	if err != nil {
		if c = d.Unreadable(unread(block.Raw), err, at); c.Name == "" {
			c.Problem.Code = codes.ProblemNoName
		}
	}
	return d.Called(c, repeated)
}

// unread is a call of which only some members could be read. The others
// are kept in its extras: a name that is none below /unread, as the wire has
// one name only.
func unread(raw json.RawMessage) *dragoman.ToolCall {
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
	return c
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
