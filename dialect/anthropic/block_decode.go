package anthropic

import (
	"encoding/json"
	"errors"
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
}

func newBlockDecoder(c Codec, o dialect.DecodeOptions) blockDecoder {
	return blockDecoder{reg: wirekit.DecodeRegistry(c.Limits(), o), o: o, origin: wirekit.Origin(name, o), rep: new(dragoman.Report)}
}

// typeOf reads the "type" of a block.
func typeOf(raw []byte) string {
	r := jsonwire.NewReader(raw)
	typ := ""
	if r.Kind() != '{' {
		return ""
	}
	for key := range r.Object() {
		if string(key) == "type" && r.Kind() == '"' {
			typ = r.String()
		} else {
			r.Skip()
		}
	}
	return typ
}

// block reads one block; place is where a synthetic call id comes from. A
// block we do not know, or that is not what its type promises, is kept as it
// is: one strange block must not cost the message.
func (d *blockDecoder) block(raw json.RawMessage, at extra.Path, place ...int) dragoman.Part {
	switch typ := typeOf(raw); typ {
	case "text", "image", "document":
		return interop.ReadAnthropicPart(raw)
	case "thinking", "redacted_thinking":
		if p := readReasoning(raw, typ); p != nil {
			return p
		}
		return opaque(raw, typ)
	case "tool_use":
		c, err := d.reg.ReadCall(raw, at, d.rep)
		if err != nil {
			d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept as it is: %v", err)
			return opaque(raw, typ)
		}
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

// identify gives a call without an id one of its own (quirk B10).
func (d *blockDecoder) identify(c *dragoman.ToolCall, at extra.Path, place ...int) {
	if c.ID != "" {
		return
	}
	c.ID, c.Synthetic = wirekit.SyntheticID(idPrefix, d.o.Seed, place...), true
	d.rep.Addf(dragoman.Synthesised, dragoman.Info, at.String(), "call id %q", c.ID)
}

// opaque keeps a block as it is. The two halves of a tool that the provider
// runs carry the same id under two names.
func opaque(raw json.RawMessage, typ string) *dragoman.Opaque {
	o := &dragoman.Opaque{Dialect: name, Type: typ, JSON: raw}
	half := ""
	switch {
	case strings.HasSuffix(typ, "_tool_use"), typ == "tool_use":
		half = "id"
	case strings.HasSuffix(typ, "_tool_result"), typ == "tool_result":
		half = "tool_use_id"
	default:
		return o
	}
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
	var seen callIDs
	kept = parts[:0]
	for i, p := range parts {
		c, ok := p.(*dragoman.ToolCall)
		if !ok {
			kept = append(kept, p)
			continue
		}
		fresh, touched := seen.settle(d, c, i)
		if fresh {
			kept = append(kept, p)
		}
		changed = changed || touched
	}
	return kept, changed
}

// callIDs are the calls of one response by id.
type callIDs map[string]*dragoman.ToolCall

// settle takes the next call: fresh is false for an exact repeat, and touched
// says that the response no longer reads as it came.
func (s *callIDs) settle(d *blockDecoder, c *dragoman.ToolCall, i int) (fresh, touched bool) {
	if first, dup := (*s)[c.ID]; dup {
		at := extra.Elem("/content", i).String()
		if first.Name == c.Name && first.Namespace == c.Namespace && first.Arguments == c.Arguments {
			d.rep.Addf(dragoman.Dropped, dragoman.Info, at, "call %q is repeated exactly", c.ID)
			return false, true
		}
		old := c.ID
		c.ID, c.Synthetic = wirekit.SyntheticID(idPrefix, d.o.Seed+old, i), true
		d.rep.Addf(dragoman.Renamed, dragoman.Warn, at, "call id %q occurs twice; the later call is %q", old, c.ID)
		touched = true
	}
	if *s == nil {
		*s = make(callIDs)
	}
	(*s)[c.ID] = c
	return true, touched || c.Synthetic
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
