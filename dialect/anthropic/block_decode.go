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

// blockDecoder decodes content blocks. Each block becomes one part.
type blockDecoder struct{ *blockwire.Decoder }

// typeOf reads the "type" field of a block.
func typeOf(raw []byte) string {
	typ, _ := typeAndDuplicate(jsonwire.Value{Raw: raw})
	return typ
}

// typeAndDuplicate reads the "type" field of a block and returns the first field
// that occurs twice, if any. A block that any reader could read as a call is a
// call.
func typeAndDuplicate(block jsonwire.Value) (typ, repeated string) {
	r := block.Reader()
	defer r.Return()
	if r.Kind() != '{' {
		return "", ""
	}
	var seen nameSet
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

// typeCall is the type of a call block.
const typeCall = "tool_use"

// nameSet finds repeated names: a few without a map, many in linear time.
type nameSet struct {
	few  [8]string
	n    int
	many map[string]bool
}

// add reports whether the name was added before.
func (s *nameSet) add(name []byte) bool {
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

// block decodes one block. place is the seed for a synthetic call id. An
// unknown block, or one that does not match its type, is stored unchanged, so
// that one strange block does not fail the message.
func (d *blockDecoder) block(block jsonwire.Value, at extra.Path, place ...int) dragoman.Part {
	raw := json.RawMessage(block.Raw)
	switch typ, repeated := typeAndDuplicate(block); typ {
	case "text", "image", "document":
		p := readPart(raw)
		if t, ok := p.(*dragoman.Text); ok {
			d.DropCaseVariants(&t.Extra, "", at.String(), modeledBlockFields)
		}
		return p
	case "thinking", "redacted_thinking":
		if p := readReasoning(raw, typ); p != nil {
			d.DropCaseVariants(&p.Extra, "", at.String(), modeledBlockFields)
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

// modeledBlockFields lists the fields that decide what a block is and holds.
var modeledBlockFields = []string{"type", "text", "thinking", "signature", "data", "id", "name", "input"}

// call decodes a call. repeated is a field that occurs twice. A call that
// cannot be decoded is still returned, with a problem that keeps it from
// running, because clients would see it.
func (d *blockDecoder) call(block jsonwire.Value, repeated string, at extra.Path) *dragoman.ToolCall {
	c, err := d.Reg.ReadCallValue(block, at, d.Rep)
	if err != nil {
		if c = d.Unreadable(undecodedCall(block.Raw), err, at); c.Name == "" {
			c.Problem.Code = codes.ProblemNoName
		}
	}
	return d.Called(c, repeated)
}

// undecodedCall returns a call of which only some fields could be decoded. The others
// are stored as extra fields; an invalid id or name is stored below /unread,
// because the wire has only one of each.
func undecodedCall(raw json.RawMessage) *dragoman.ToolCall {
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

// opaque stores a block unchanged. The call and the result of a hosted tool
// have the same id under two field names.
func opaque(raw json.RawMessage, typ string) *dragoman.Opaque {
	o := &dragoman.Opaque{Dialect: name, Type: typ, JSON: raw}
	idField := ""
	switch {
	case strings.HasSuffix(typ, "_tool_use"), typ == typeCall:
		idField = "id"
	case strings.HasSuffix(typ, "_tool_result"), typ == "tool_result":
		idField = "tool_use_id"
	default:
		return o
	}
	o.Hosted = typ != typeCall && typ != "tool_result"
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		if string(key) == idField && r.Kind() == '"' {
			o.CallID = r.String()
		} else {
			r.Skip()
		}
	}
	return o
}

// readReasoning reads a thinking block. It returns nil if the block is not one.
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
