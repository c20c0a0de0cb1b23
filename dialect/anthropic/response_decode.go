package anthropic

import (
	"errors"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeResponse implements [dialect.Codec]. The response aliases body, which
// must not change afterwards. On error it returns what was decoded so far.
func (c Codec) DecodeResponse(body []byte, o dialect.DecodeOptions) (*dragoman.Response, dragoman.Report, error) {
	a := newResponseDecoder(blockDecoder{blockwire.NewDecoder(format, o)})
	return a.Decode(body, func(r *jsonwire.Reader) error {
		content := a.read(r)
		err := r.End()
		if err == nil {
			err = a.checkContent(content.Raw)
		}
		a.finish(content)
		return err
	})
}

// responseDecoder decodes one message object: the body of a response, or the fields of
// it that a stream sends at its start and end.
type responseDecoder struct {
	blockwire.Response
	blocks   blockDecoder
	counters counters
	// contents counts the content fields; contentEnd is the offset at which the
	// last one ends.
	contents   int
	contentEnd int64
}

func newResponseDecoder(blocks blockDecoder) responseDecoder {
	return responseDecoder{Response: blockwire.NewResponse(blocks.Decoder), blocks: blocks}
}

var (
	errNoContent = errors.New("no content: is this an Anthropic message?")
	errContent   = errors.New("want a list of content blocks")
)

// checkContent returns an error if the body is not a message. An empty body
// must not pass as an empty response.
func (a *responseDecoder) checkContent(content []byte) error {
	switch {
	case a.Failed:
		return nil
	case len(content) == 0:
		return errNoContent
	}
	switch content[0] {
	case '[', '"', 'n':
		return nil
	default:
		return jsonwire.PlaceAt("/content", a.contentEnd-int64(len(content)), errContent)
	}
}

// read reads a message object and returns its content without decoding it.
func (a *responseDecoder) read(r *jsonwire.Reader) (content jsonwire.Value) {
	for key := range r.Object() {
		switch k := string(key); k {
		case "id":
			a.Resp.ID = r.String()
		case "model":
			a.Resp.Model = r.String()
		case "type":
			a.Failed = wirekit.Text(r, "") == "error" || a.Failed
		case "error":
			raw := r.Raw()
			a.Failed = a.Failed || string(raw) != "null"
			a.Keep.Field(&a.Resp.Extra, name, "", key, raw)
		case "role":
			r.Skip()
		case "content":
			content = r.Value()
			a.contents, a.contentEnd = a.contents+1, r.Offset()
		case "usage":
			a.counters.read(r, a.Keep, a.Decoder.Rep)
		case "stop_reason", "stop_sequence", "stop_details":
			a.readStop(r, k)
		default:
			a.Keep.Field(&a.Resp.Extra, name, "", key, r.Raw())
		}
	}
	a.Decoder.DropCaseVariants(&a.Resp.Extra, "", "", responseFields)
	a.Resp.ServiceTier = a.counters.tier
	return content
}

// responseFields lists the fields that decide what a response holds and whether
// its calls may run.
var responseFields = []string{"type", "role", "content", "stop_reason", "error", "id", "model", "stop_sequence", "stop_details", "usage"}

// readStop reads one of the fields that describe why a message ended. Null does
// not replace an earlier value.
func (a *responseDecoder) readStop(r *jsonwire.Reader, key string) {
	if r.Kind() == 'n' {
		raw := r.Raw()
		if key == "stop_details" && a.Details == nil {
			a.Keep.Field(&a.Resp.Extra, name, "", []byte(key), raw)
		}
		return
	}
	switch key {
	case "stop_reason":
		a.SetStop(r.String())
	case "stop_sequence":
		a.Sequence = r.String()
	case "stop_details":
		first := a.Details == nil // a null may have been stored before
		var old []byte
		if !first {
			old = a.Details.JSON
		}
		a.Details = &dragoman.Native{Format: formatDetails, JSON: a.Keep.Bytes(old, r.Raw())}
		if first && a.Resp.Extra != nil {
			a.Resp.Extra.Fields = slices.DeleteFunc(a.Resp.Extra.Fields, func(f dragoman.Field) bool { return f.Path == "/stop_details" })
			if len(a.Resp.Extra.Fields) == 0 {
				a.Resp.Extra = nil
			}
		}
	}
}

// finish decodes the content and sets the stop and the usage of a complete
// message.
func (a *responseDecoder) finish(content jsonwire.Value) {
	d := a.Decoder
	parts, changed := d.SettleDuplicates(a.blocks.content(content))
	if a.contents > 1 {
		a.Repeated(parts, "content")
	}
	m := dragoman.Message{Role: dragoman.RoleAssistant, Parts: parts, Origin: d.Origin}
	a.Resp.Stop = a.Stop(true, m.ToolCalls())
	a.Resp.Usage = a.counters.usage()
	// A response may have these fields, a request may not.
	changed = d.DropAllUnsendable(parts, d.Content) || changed
	if changed || len(parts) > 0 && content.Raw[0] != '[' {
		a.Message(m, nil)
		return
	}
	a.Message(m, func() []byte { // the next request contains the message, not the response
		raw := make([]byte, 0, len(content.Raw)+32)
		raw = append(raw, `{"role":"assistant","content":`...)
		return append(append(raw, content.Raw...), '}')
	})
}

// content decodes the blocks of a response. A string is decoded as one text;
// any other value gives no parts.
func (d *blockDecoder) content(content jsonwire.Value) []dragoman.Part {
	if len(content.Raw) == 0 {
		return nil
	}
	r := content.Reader()
	defer r.Return()
	switch r.Kind() {
	case '"':
		if s := r.String(); s != "" {
			return []dragoman.Part{&dragoman.Text{Text: s}}
		}
		return nil
	case '[':
		var parts []dragoman.Part
		for i := range r.Array() {
			block := r.Value()
			if r.Err() != nil {
				break
			}
			if string(block.Raw) != "null" {
				parts = append(parts, d.block(block, extra.Elem("/content", i), i))
			}
		}
		return parts
	default:
		return nil
	}
}
