package bedrock

import (
	"encoding/json"
	"errors"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
	"github.com/dragoman-go/dragoman/interop"
)

// idPrefix starts the ids of calls that came without one.
const idPrefix = "tooluse_"

// The members that say what a block is, of those that only messages hold.
const (
	keyCall      = "toolUse"
	keyResult    = "toolResult"
	keyReasoning = "reasoningContent"
	keyCache     = "cachePoint"
)

// blockDecoder reads content blocks, one block to one part, but that a cache
// point belongs to the part before it.
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
	// moved says that a cache point does not stand where it will be written.
	moved bool
}

func newBlockDecoder(c Codec, o dialect.DecodeOptions) blockDecoder {
	return blockDecoder{reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o, origin: wirekit.Origin(name, o), rep: new(dragoman.Report)}
}

// quiet is a decoder whose findings are looked at and not reported.
func (d *blockDecoder) quiet() blockDecoder {
	return blockDecoder{reg: d.reg, o: d.o, origin: d.origin, rep: new(dragoman.Report)}
}

// content reads a list of blocks; path is where it stands, place where a
// synthetic call id comes from. A string instead of blocks is taken as one.
func (d *blockDecoder) content(raw []byte, assistant bool, path string, place int) ([]dragoman.Part, error) {
	r := jsonwire.NewReader(raw)
	if r.Kind() == '"' {
		return []dragoman.Part{&dragoman.Text{Text: r.String()}}, r.Err()
	}
	var parts []dragoman.Part
	for i := range r.Array() {
		block := r.Raw()
		if r.Err() != nil {
			break
		}
		if hint := cacheHint(block); hint != nil && mark(parts, hint) {
			continue
		}
		parts = append(parts, d.block(block, assistant, extra.Elem(path, i), place, i))
	}
	return parts, r.Err()
}

// cacheHint reads a cache point; nil for any other block.
func cacheHint(raw []byte) *dragoman.CacheHint {
	if blockKey(raw) != keyCache {
		return nil
	}
	return readCachePoint(raw)
}

// mark puts a hint on the last of the parts, if that can carry one and has
// none.
func mark(parts []dragoman.Part, hint *dragoman.CacheHint) bool {
	if len(parts) == 0 {
		return false
	}
	var place **dragoman.CacheHint
	switch p := parts[len(parts)-1].(type) {
	case *dragoman.Text:
		place = &p.Cache
	case *dragoman.Media:
		place = &p.Cache
	case *dragoman.ToolCall:
		place = &p.Cache
	case *dragoman.ToolResult:
		place = &p.Cache
	}
	if place == nil || *place != nil {
		return false
	}
	*place = hint
	return true
}

// block reads one block. One we do not know, or that is not what its member
// promises, is kept as it is: one strange block must not cost the message.
// Blocks of tools that the provider runs are kept so too.
func (d *blockDecoder) block(raw json.RawMessage, assistant bool, at extra.Path, place ...int) dragoman.Part {
	switch key := blockKey(raw); key {
	case keyReasoning:
		if p := readReasoning(raw); p != nil {
			return p
		}
		return opaque(raw, key)
	case keyCall:
		c := d.call(raw, at)
		if c.Hosted && c.Problem == nil {
			return hosted(raw, key)
		}
		d.identify(c, at, place...)
		return c
	case keyResult:
		if assistant {
			return hosted(raw, key)
		}
		res, err := d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep)
		if err != nil {
			d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "kept as it is: %v", err)
			return opaque(raw, key)
		}
		if res.Cache != nil { // the API refuses it where it stands (quirk D31)
			d.moved = true
			d.rep.Add(dragoman.Moved, dragoman.Info, at.String(), "a cache point inside a result, read as one behind it")
		}
		return res
	default:
		return readPart(raw)
	}
}

// call reads a call. One that cannot be read is still one, which must not run:
// clients would see it all the same.
func (d *blockDecoder) call(raw json.RawMessage, at extra.Path) *dragoman.ToolCall {
	c, err := d.reg.ReadCall(raw, at, d.rep)
	if err != nil {
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "a call that cannot be read: %v", err)
		c = &dragoman.ToolCall{Problem: &dragoman.CallProblem{
			Code: dragoman.ProblemInvalidJSON, Message: "the call cannot be read: " + err.Error(), Offset: -1,
		}}
		extra.Add(&c.Extra, name, "/unread", []byte("block"), raw)
	}
	if p := c.Problem; p != nil && p.Code == dragoman.ProblemDuplicateKey && p.Offset < 0 {
		d.ambiguous = true // the call around the arguments, not they
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

// hosted returns the call or the result of a tool that the provider runs.
func hosted(raw json.RawMessage, key string) *dragoman.Opaque {
	o := opaque(raw, key)
	o.Hosted = true
	return o
}

// opaque keeps a block as it is. The two halves of a tool that the provider
// runs carry the same id.
func opaque(raw json.RawMessage, key string) *dragoman.Opaque {
	o := &dragoman.Opaque{Dialect: name, Type: key, JSON: raw}
	if key != keyCall && key != keyResult {
		return o
	}
	r := jsonwire.NewReader(raw)
	for k := range r.Object() {
		if string(k) != key || r.Kind() != '{' {
			r.Skip()
			continue
		}
		for k := range r.Object() {
			if string(k) == "toolUseId" && r.Kind() == '"' {
				o.CallID = r.String()
			} else {
				r.Skip()
			}
		}
	}
	return o
}

const (
	inReasoning = "/" + keyReasoning
	inText      = inReasoning + "/reasoningText"
)

// readReasoning reads thinking, shown or withheld; nil when it is neither.
func readReasoning(raw []byte) *dragoman.Reasoning {
	p := &dragoman.Reasoning{}
	r := jsonwire.NewReader(raw)
	kinds := 0
	for key := range r.Object() {
		if string(key) != keyReasoning {
			extra.Add(&p.Extra, name, "", key, r.Raw())
			continue
		}
		for key := range r.Object() {
			switch string(key) {
			case "reasoningText":
				kinds++
				readReasoningText(r, p)
			case "redactedContent":
				kinds++
				p.Redacted, p.Encrypted = true, r.String()
			default:
				extra.Add(&p.Extra, name, inReasoning, key, r.Raw())
			}
		}
	}
	if r.End() != nil || kinds != 1 {
		return nil
	}
	return p
}

func readReasoningText(r *jsonwire.Reader, p *dragoman.Reasoning) {
	for key := range r.Object() {
		switch string(key) {
		case "text":
			p.Text = r.String()
		case "signature":
			if p.Signature = r.String(); p.Signature == "" {
				extra.Add(&p.Extra, name, inText, []byte("signature"), []byte(`""`))
			}
		default:
			extra.Add(&p.Extra, name, inText, key, r.Raw())
		}
	}
}

// settleDuplicates settles calls that share an id within one response: an
// exact repeat is one call, another call gets an id of its own (quirk B11).
func (d *blockDecoder) settleDuplicates(parts []dragoman.Part) (kept []dragoman.Part, changed bool) {
	kept, clash := wirekit.SettleCalls(parts, "/output/message/content", d.rep, func(i int, old string) string {
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
	fresh, renamed := s.Settle(c, extra.Elem("/output/message/content", i), d.rep, func(old string) string {
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

// unquote reads a JSON string; anything else is none.
func unquote(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsonwire.NewReader(raw).String()
}
