package anthropic

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeRequest implements [dialect.Codec]. The request aliases body, which
// must not change afterwards. On error it returns what was decoded so far.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	blocks := blockDecoder{blockwire.NewDecoder(format, o)}
	d := requestDecoder{RequestDecoder: blockwire.NewRequestDecoder(blocks.Decoder), blocks: blocks}
	return d.Decode(body, settings.Known(), func(key []byte) { settings.Decode(&d, d.R, d.Req, key) })
}

type requestDecoder struct {
	blockwire.RequestDecoder
	blocks blockDecoder
}

// cache reads the cache marker for the end of the prompt. One of an unknown
// kind is stored unchanged.
func (d *requestDecoder) cache() {
	raw := d.R.Raw()
	hint := &dragoman.CacheHint{}
	known := true
	in := jsonwire.NewReader(raw)
	for key := range in.Object() {
		switch {
		case string(key) == "type" && in.Kind() == '"':
			known = known && in.String() == "ephemeral"
		case string(key) == "ttl" && in.Kind() == '"':
			hint.TTL = in.String()
		default:
			in.Skip()
			known = false
		}
	}
	if known && in.Err() == nil {
		d.Req.Cache = hint
		return
	}
	d.KeepField("", "cache_control", raw)
}

func (d *requestDecoder) system() {
	if d.R.Kind() == '"' {
		if s := d.R.String(); s != "" {
			d.Req.Instructions = []dragoman.Part{&dragoman.Text{Text: s}}
		} else {
			d.KeepField("", "system", []byte(`""`))
		}
		return
	}
	n := 0
	for i := range d.R.Array() {
		block := d.R.Value()
		if d.R.Err() != nil {
			return
		}
		n++
		d.Req.Instructions = append(d.Req.Instructions, d.blocks.block(block, extra.Elem("/instructions", i), -1, i))
	}
	if n == 0 && d.R.Err() == nil {
		d.KeepField("", "system", []byte("[]"))
	}
}

func (d *requestDecoder) message(elem jsonwire.Value, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Origin: d.Origin}
	at := extra.Elem("/messages", pos)
	d.Ambiguous = false
	contents, stripped := 0, false
	r := elem.Reader()
	defer r.Return()
	if r.Kind() != '{' && r.Err() == nil {
		return m, wirekit.ErrNotObject
	}
	for key := range r.Object() {
		switch string(key) {
		case "role":
			m.Role = dragoman.Role(r.String())
		case "content":
			contents++
			switch r.Kind() {
			case '"':
				m.Parts = []dragoman.Part{&dragoman.Text{Text: r.String()}}
			default:
				m.Parts = nil
				for i := range r.Array() {
					block := r.Value()
					if r.Err() != nil {
						break
					}
					part := d.blocks.block(block, at.Elem("parts", i), pos, i)
					if o, ok := part.(*dragoman.Opaque); ok && o.Type == typeDelta {
						d.Rep.Addf(dragoman.Dropped, dragoman.Info, at.Elem("parts", i).String(), "a stream delta, not a content block")
						stripped = true
						continue
					}
					stripped = d.DropUnsendable(part, at.Elem("parts", i)) || stripped
					m.Parts = append(m.Parts, part)
				}
			}
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return m, err
	}
	if err := wirekit.CheckRole(m.Role); err != nil {
		return m, err
	}
	d.Settle(&m, elem.Raw, at, "parts", contents, stripped)
	return m, wirekit.Mistyped(elem.Raw, m.Parts)
}

func (d *requestDecoder) choice() {
	r := d.R
	if r.Kind() != '{' {
		raw := r.Raw()
		if r.Err() == nil {
			d.FailAt("/tool_choice", raw, wirekit.ErrNotObject)
		}
		return
	}
	raw := r.Raw()
	if r.Err() != nil {
		return
	}
	c := &dragoman.ToolChoice{}
	in := jsonwire.NewReader(raw)
	typ, tool := "", ""
	var parallel *bool
	for key := range in.Object() {
		switch k := string(key); {
		case k == "type":
			typ = in.String()
		case k == "name" && in.Kind() == '"':
			tool = in.String()
		case k == "disable_parallel_tool_use" && in.Kind() != 'n':
			enabled := !in.Bool()
			parallel = &enabled
		default:
			extra.Add(&c.Extra, name, "", key, in.Raw())
		}
	}
	if err := in.End(); err != nil {
		d.FailAt("/tool_choice", raw, err)
		return
	}
	switch typ {
	case "auto":
		c.Mode = dragoman.ChoiceAuto
	case "any":
		c.Mode = dragoman.ChoiceRequired
	case "none":
		c.Mode = dragoman.ChoiceNone
	case "tool":
		c.Mode = dragoman.ChoiceTool
		c.Tools = d.Chosen(tool)
	default:
		d.Req.ToolChoice = &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: &dragoman.Native{Format: formatChoice, JSON: raw}}
		return
	}
	d.Req.ToolChoice, d.Req.ParallelToolCalls = c, parallel
}

// thinking reads the thinking settings. Settings of an unknown type are stored
// unchanged.
func (d *requestDecoder) thinking() {
	raw := d.R.Raw()
	if d.R.Err() != nil {
		return
	}
	switch known, err := d.Thinking("/thinking", raw, false); {
	case err != nil:
		d.FailAt("/thinking", raw, err)
	case !known:
		d.KeepField("", "thinking", raw)
	}
}

// format reads an output format and reports whether it is known.
func (d *requestDecoder) format(raw []byte) bool {
	return d.OutputSchema(raw, func(in *jsonwire.Reader, key []byte, f *dragoman.OutputFormat) {
		if string(key) == "schema" {
			f.Schema = in.Raw()
		} else {
			extra.Add(&f.Extra, name, "", key, in.Raw())
		}
	})
}
