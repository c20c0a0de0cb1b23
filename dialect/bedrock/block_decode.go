package bedrock

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Block keys that occur only in messages.
const (
	keyCall      = "toolUse"
	keyResult    = "toolResult"
	keyReasoning = "reasoningContent"
	keyCache     = "cachePoint"
)

// blockDecoder decodes content blocks. Each block becomes one part, except that
// a cache point belongs to the part before it.
type blockDecoder struct {
	*blockwire.Decoder
	// moved reports that a cache point will be written at another position.
	moved bool
}

// content decodes a list of blocks. path is its location, place the seed for
// synthetic call ids. A string instead of a list is decoded as one text.
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

// cacheHint reads a cache point. It returns nil for any other block.
func cacheHint(raw []byte) *dragoman.CacheHint {
	if blockKey(raw) != keyCache {
		return nil
	}
	return readCachePoint(raw)
}

// mark sets hint on the last part, if that can carry one and does not have one
// yet. It reports whether it did.
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

// block decodes one block. An unknown block, or one that does not match its
// key, is stored unchanged, so that one strange block does not fail the
// message. Blocks of hosted tools are also stored unchanged.
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
		d.Identify(c, at, place...)
		return c
	case keyResult:
		if assistant {
			return hosted(raw, key)
		}
		part := d.Result(raw, at, func() *dragoman.Opaque { return opaque(raw, key) })
		if res, ok := part.(*dragoman.ToolResult); ok && res.Cache != nil { // the API refuses it inside a result (quirk D31)
			d.moved = true
			d.Rep.Add(dragoman.Moved, dragoman.Info, at.String(), "cache point inside a result read as one after it")
		}
		return part
	default:
		return readPart(raw)
	}
}

// call decodes a call. A call that cannot be decoded is still returned, with a
// problem that keeps it from running, because clients would see it.
func (d *blockDecoder) call(raw json.RawMessage, at extra.Path) *dragoman.ToolCall {
	c, err := d.Reg.ReadCall(raw, at, d.Rep)
	if err != nil {
		c = d.Unreadable(&dragoman.ToolCall{}, err, at)
		extra.Add(&c.Extra, name, "/unread", []byte("block"), raw)
	}
	return d.Called(c, "")
}

// hosted returns the call or the result of a hosted tool as an opaque part.
func hosted(raw json.RawMessage, key string) *dragoman.Opaque {
	o := opaque(raw, key)
	o.Hosted = true
	return o
}

// opaque stores a block unchanged. The call and the result of a hosted tool
// have the same id.
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

// readReasoning reads visible or redacted thinking. It returns nil if the block
// is neither.
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
