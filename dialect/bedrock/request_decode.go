package bedrock

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeRequest implements [dialect.Codec]. The request aliases body, which
// must not change afterwards. On error it returns what was decoded so far. The
// caller sets Model and Stream from the URL.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	blocks := blockDecoder{Decoder: blockwire.NewDecoder(format, o)}
	d := requestDecoder{RequestDecoder: blockwire.NewRequestDecoder(blocks.Decoder), blocks: blocks}
	return d.Decode(body, settings.Known(), func(key []byte) { settings.Decode(&d, d.R, d.Req, key) })
}

type requestDecoder struct {
	blockwire.RequestDecoder
	blocks blockDecoder
}

// object reads an object field by field. An empty object, or a value that is
// not an object, is stored unchanged.
func (d *requestDecoder) object(key string, field func(prefix, key string)) {
	if d.R.Kind() != '{' {
		d.KeepField("", key, d.R.Raw())
		return
	}
	n := 0
	for k := range d.R.Object() {
		n++
		field("/"+key, string(k))
		if d.Err != nil {
			return
		}
	}
	if n == 0 && d.R.Err() == nil {
		d.KeepField("", key, []byte("{}"))
	}
}

func (d *requestDecoder) model(key string) {
	raw := d.R.Raw()
	d.KeepField("", key, raw)
	model := jsonwire.Unquote(raw)
	if d.Req.Model != "" && model != "" && model != d.Req.Model {
		d.NotReplayable = true
		d.Rep.Addf(dragoman.Lowered, dragoman.Warn, "/"+key, "the body also names model %.60q; this one is used for both fields", d.Req.Model)
	}
	if model != "" {
		d.Req.Model = model
	}
}

func (d *requestDecoder) system() {
	if k := d.R.Kind(); k != '[' && k != '"' {
		for range d.R.Array() { // reports the type error
		}
		return
	}
	raw := d.R.Raw()
	if d.R.Err() != nil {
		return
	}
	parts, err := d.blocks.content(raw, false, "/system", -1)
	if err != nil {
		d.FailAt("/system", raw, err)
		return
	}
	if d.Req.Instructions = parts; len(parts) == 0 {
		d.KeepField("", "system", raw)
	}
}

// message decodes one message. It decodes the content after the role, which may
// follow it, because the meaning of a tool result depends on the role.
func (d *requestDecoder) message(elem jsonwire.Value, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Origin: d.Origin}
	at := extra.Elem("/messages", pos)
	d.Ambiguous, d.blocks.moved = false, false
	r := elem.Reader()
	defer r.Return()
	if r.Kind() != '{' && r.Err() == nil {
		return m, wirekit.ErrNotObject
	}
	var content []byte
	var base int64
	contents := 0
	for key := range r.Object() {
		switch string(key) {
		case "role":
			m.Role = dragoman.Role(r.String())
		case "content":
			contents++
			if k := r.Kind(); k != '[' && k != '"' && k != 'n' {
				for range r.Array() { // reports the type error
				}
				continue
			}
			content = r.Raw()
			base = r.Offset() - int64(len(content))
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
	if content != nil {
		parts, err := d.blocks.content(content, m.Role == dragoman.RoleAssistant, at.String()+"/content", pos)
		if m.Parts = parts; err != nil {
			return m, jsonwire.PlaceAt("/content", base, err)
		}
	}
	changed := d.DropAllUnsendable(m.Parts, at.String()+"/content") || d.blocks.moved
	d.Settle(&m, elem.Raw, at, "content", contents, changed)
	return m, nil
}

func (d *requestDecoder) toolField(prefix, key string) {
	switch {
	case key == "tools" && d.R.Kind() == '[':
		d.Tools(prefix, key, prefix+"/tools", d.toolMark)
	case key == "toolChoice" && d.R.Kind() == '{':
		d.choice(prefix)
	case key == "tools" && d.R.Kind() != 'n':
		for range d.R.Array() { // reports the type error
		}
	default:
		d.KeepField(prefix, key, d.R.Raw())
	}
}

// toolMark reads a cache point, which belongs to the tool before it.
func (d *requestDecoder) toolMark(raw []byte) bool {
	hint := cacheHint(raw)
	if hint == nil || len(d.Req.Tools) == 0 {
		return false
	}
	last := &d.Req.Tools[len(d.Req.Tools)-1]
	if last.Cache != nil || last.Kind == codes.ToolHosted {
		return false
	}
	last.Cache = hint
	last.Source.Mirror = last.Fingerprint()
	return true
}

// choice reads the tool choice, an object with one field that names the mode.
// An unknown choice is stored unchanged.
func (d *requestDecoder) choice(prefix string) {
	raw := d.R.Raw()
	if d.R.Err() != nil {
		return
	}
	c := &dragoman.ToolChoice{}
	in := jsonwire.NewReader(raw)
	known, members := true, 0
	for key := range in.Object() {
		members++
		k := string(key)
		if in.Kind() != '{' {
			in.Skip()
			known = false
			continue
		}
		switch k {
		case "auto":
			c.Mode = dragoman.ChoiceAuto
		case "any":
			c.Mode = dragoman.ChoiceRequired
		case "tool":
			c.Mode = dragoman.ChoiceTool
		default:
			in.Skip()
			known = false
			continue
		}
		for inner := range in.Object() {
			if k == "tool" && string(inner) == "name" && in.Kind() == '"' {
				c.Tools = d.Chosen(in.String())
				continue
			}
			extra.Add(&c.Extra, name, "/"+k, inner, in.Raw())
		}
	}
	if err := in.End(); err != nil {
		d.FailAt(prefix+"/toolChoice", raw, err)
		return
	}
	if !known || members != 1 || c.Mode == dragoman.ChoiceTool && len(c.Tools) != 1 {
		c = &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: &dragoman.Native{Format: formatChoice, JSON: raw}}
	}
	d.Req.ToolChoice = c
}

// modelField reads a field that is passed to the model. Only Claude's thinking
// has a canonical form.
func (d *requestDecoder) modelField(prefix, key string) {
	raw := d.R.Raw()
	if d.R.Err() != nil {
		return
	}
	if key == "thinking" {
		if known, err := d.Thinking(prefix+"/thinking", raw, true); known && err == nil {
			return
		}
	}
	d.KeepField(prefix, key, raw)
}

// format reads an output format and reports whether it is known. The schema is
// JSON inside a string.
func (d *requestDecoder) format(raw []byte) bool {
	return d.OutputSchema(raw, func(in *jsonwire.Reader, key []byte, f *dragoman.OutputFormat) {
		if string(key) == "structure" && in.Kind() == '{' {
			readStructure(in, f)
		} else {
			extra.Add(&f.Extra, name, "", key, in.Raw())
		}
		if jsonwire.Check(f.Schema) != nil {
			f.Schema = nil
		}
	})
}

func readStructure(in *jsonwire.Reader, f *dragoman.OutputFormat) {
	for key := range in.Object() {
		if string(key) != "jsonSchema" {
			extra.Add(&f.Extra, name, "/structure", key, in.Raw())
			continue
		}
		for key := range in.Object() {
			switch k := string(key); {
			case k == "schema" && in.Kind() == '"':
				f.Schema = json.RawMessage(in.String())
			case k == "name" && in.Kind() == '"':
				f.Name = in.String()
			case k == "description" && in.Kind() == '"':
				f.Description = in.String()
			default:
				extra.Add(&f.Extra, name, "/structure/jsonSchema", key, in.Raw())
			}
		}
	}
}

// tier reads the service tier.
func (d *requestDecoder) tier() {
	raw := d.R.Raw()
	if tier := readTier(raw); tier != "" {
		d.Req.ServiceTier = tier
		return
	}
	d.KeepField("", "serviceTier", raw)
}

// readTier reads {"type": tier}. It returns an empty string for anything else.
func readTier(raw []byte) string {
	in := jsonwire.NewReader(raw)
	if in.Kind() != '{' {
		return ""
	}
	tier, members := "", 0
	for key := range in.Object() {
		members++
		if string(key) == "type" && in.Kind() == '"' {
			tier = in.String()
		} else {
			in.Skip()
		}
	}
	if members != 1 || in.End() != nil || !knownTier(tier) {
		return ""
	}
	return tier
}

func knownTier(tier string) bool {
	switch tier {
	case "priority", "default", "flex", "reserved":
		return true
	default:
		return false
	}
}
