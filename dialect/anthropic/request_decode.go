package anthropic

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// DecodeRequest implements [dialect.Codec]. The request keeps slices of body,
// which must not change afterwards. What was decoded before an error is
// returned with it.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	d := requestDecoder{blockDecoder: newBlockDecoder(c, o), req: new(dragoman.Request)}
	err := wirekit.DecodeRequest(name, messagesAt, body, o, literal.With(requestMembers), d.req, d.rep, d.read)
	return d.req, *d.rep, err
}

// literal are the members that are read as they stand.
var literal = jsonwire.Literal{Members: []string{"input", "input_schema", "schema"}}

func (d *requestDecoder) read(r *jsonwire.Reader) (sure bool, err error) {
	d.r = r
	for key := range r.Object() {
		d.member(string(key))
		if d.err != nil {
			break
		}
	}
	if err = d.err; err == nil {
		err = r.End()
	}
	return !d.unsure, err
}

type requestDecoder struct {
	blockDecoder
	r   *jsonwire.Reader
	req *dragoman.Request
	err error
	// unsure says that a message can be read in two ways, or holds what the API
	// refuses: the request is not sent as it came.
	unsure bool
	// unanswered holds the calls of the last assistant message whose ids we
	// made: results without an id answer them in order.
	unanswered []string
}

func (d *requestDecoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// keep puts a member aside that is not modelled, or not in this spelling.
func (d *requestDecoder) keep(prefix, key string, raw []byte) {
	extra.Add(&d.req.Extra, name, prefix, []byte(key), raw)
}

func (d *requestDecoder) member(key string) {
	r, req := d.r, d.req
	if r.Kind() == 'n' {
		d.keep("", key, r.Raw())
		return
	}
	switch key {
	case "model":
		req.Model = r.String()
	case "max_tokens":
		n := r.Integer()
		req.MaxOutputTokens = &n
	case "messages":
		d.messages()
	case "system":
		d.system()
	case "tools":
		d.tools()
	case "tool_choice":
		d.choice()
	case "thinking":
		d.thinking()
	case "output_config":
		d.outputConfig()
	case "output_format": // the beta's name for output_config.format
		raw := r.Raw()
		if !d.format(raw) && r.Err() == nil {
			d.keep("", key, raw)
		}
	case "metadata":
		d.metadata()
	case "stop_sequences":
		n := 0
		for range r.Array() {
			req.Sampling.Stop = append(req.Sampling.Stop, r.String())
			n++
		}
		if n == 0 {
			d.keep("", key, []byte("[]"))
		}
	case "temperature":
		req.Sampling.Temperature = d.number()
	case "top_p":
		req.Sampling.TopP = d.number()
	case "top_k":
		n := r.Integer()
		req.Sampling.TopK = &n
	case "stream":
		if req.Stream = r.Bool(); !req.Stream {
			d.keep("", key, []byte("false"))
		}
	case "service_tier":
		raw := r.Raw()
		switch tier := unquote(raw); tier {
		case "auto", "standard_only":
			req.ServiceTier = tier
		default:
			d.keep("", key, raw)
		}
	case "cache_control":
		d.cache(r.Raw())
	default:
		d.keep("", key, r.Raw())
	}
}

// unquote reads a JSON string; anything else is none.
func unquote(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	return jsonwire.NewReader(raw).String()
}

func (d *requestDecoder) number() *dragoman.Number {
	n := dragoman.Number(d.r.Number())
	return &n
}

// cache reads the marker for the end of the prompt; one of a kind we do not
// know is kept as it is.
func (d *requestDecoder) cache(raw []byte) {
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
		d.req.Cache = hint
		return
	}
	d.keep("", "cache_control", raw)
}

func (d *requestDecoder) system() {
	if d.r.Kind() == '"' {
		if s := d.r.String(); s != "" {
			d.req.Instructions = []dragoman.Part{&dragoman.Text{Text: s}}
		} else {
			d.keep("", "system", []byte(`""`))
		}
		return
	}
	n := 0
	for i := range d.r.Array() {
		block := d.r.Value()
		if d.r.Err() != nil {
			return
		}
		n++
		d.req.Instructions = append(d.req.Instructions, d.block(block, extra.Elem("/instructions", i), -1, i))
	}
	if n == 0 && d.r.Err() == nil {
		d.keep("", "system", []byte("[]"))
	}
}

func (d *requestDecoder) messages() {
	for i := range d.r.Array() {
		elem := d.r.Value()
		if d.r.Err() != nil {
			return
		}
		m, err := d.message(elem, i)
		if err == nil {
			err = wirekit.Mistyped(elem.Raw, m.Parts)
		}
		if err != nil {
			d.fail(placeAt(extra.Elem("/messages", i).String(), d.r.Offset()-int64(len(elem.Raw)), err))
			return
		}
		d.req.Messages = append(d.req.Messages, m)
	}
}

// message reads one element of the conversation.
func (d *requestDecoder) message(elem jsonwire.Value, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Origin: d.origin}
	at := extra.Elem("/messages", pos)
	d.ambiguous = false
	contents, stray := 0, false
	raw := json.RawMessage(elem.Raw)
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
					part := d.block(block, at.Elem("parts", i), pos, i)
					if o, ok := part.(*dragoman.Opaque); ok && o.Type == typeDelta {
						d.rep.Addf(dragoman.Dropped, dragoman.Info, at.Elem("parts", i).String(), "a piece of a stream, and no block")
						stray = true
						continue
					}
					stray = withoutStrays(part, at.Elem("parts", i), d.rep) || stray
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
	if err := wirekit.NoRole(m.Role); err != nil {
		return m, err
	}
	d.pair(&m, at)
	if m.Role == dragoman.RoleUser && onlyResults(m.Parts) {
		m.Role = dragoman.RoleTool
	}
	if contents > 1 && len(m.ToolCalls()) > 0 {
		d.ambiguous = true
	}
	d.unsure = d.unsure || d.ambiguous || stray
	if !d.o.NoNative && !d.ambiguous && !stray {
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	return m, nil
}

// pair gives results that came without an id those of the calls without one,
// in order (quirk B10).
func (d *requestDecoder) pair(m *dragoman.Message, at extra.Path) {
	if m.Role == dragoman.RoleAssistant {
		d.unanswered = d.unanswered[:0]
		for _, p := range m.Parts {
			if c, ok := p.(*dragoman.ToolCall); ok && c.Synthetic {
				d.unanswered = append(d.unanswered, c.ID)
			}
		}
		return
	}
	for i, p := range m.Parts {
		res, ok := p.(*dragoman.ToolResult)
		if !ok || res.CallID != "" || len(d.unanswered) == 0 {
			continue
		}
		res.CallID, d.unanswered = d.unanswered[0], d.unanswered[1:]
		d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.Elem("parts", i).String(), "a result without an id answers call %q", res.CallID)
	}
}

func onlyResults(parts []dragoman.Part) bool {
	for _, p := range parts {
		if p.Kind() != dragoman.KindToolResult {
			return false
		}
	}
	return len(parts) > 0
}

func (d *requestDecoder) tools() {
	n := 0
	for i := range d.r.Array() {
		raw := d.r.Raw()
		if d.r.Err() != nil {
			return
		}
		n++
		specs, err := d.reg.ReadTool(raw, extra.Elem("/tools", i), d.rep)
		if err != nil {
			d.fail(placeAt(extra.Elem("/tools", i).String(), d.r.Offset()-int64(len(raw)), err))
			return
		}
		d.req.Tools = append(d.req.Tools, specs...)
	}
	if n == 0 && d.r.Err() == nil {
		d.keep("", "tools", []byte("[]"))
	}
}

func (d *requestDecoder) choice() {
	r := d.r
	if r.Kind() != '{' {
		raw := r.Raw()
		if r.Err() == nil {
			d.fail(placeAt("/tool_choice", r.Offset()-int64(len(raw)), wirekit.ErrNotObject))
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
		d.fail(placeAt("/tool_choice", r.Offset()-int64(len(raw)), err))
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
		ref := dragoman.ToolRef{}
		ref.Namespace, ref.Name, _ = d.reg.PublicName("", tool)
		c.Tools = []dragoman.ToolRef{ref}
	default:
		d.req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceOpaque, Native: &dragoman.Native{Format: formatChoice, JSON: raw}}
		return
	}
	d.req.ToolChoice, d.req.ParallelToolCalls = c, parallel
}

func (d *requestDecoder) reasoning() *dragoman.ReasoningSettings {
	if d.req.Reasoning == nil {
		d.req.Reasoning = new(dragoman.ReasoningSettings)
	}
	return d.req.Reasoning
}

// thinking reads the thinking settings; a type we do not know is kept whole.
func (d *requestDecoder) thinking() {
	raw := d.r.Raw()
	if d.r.Err() != nil {
		return
	}
	s := dragoman.ReasoningSettings{}
	in := jsonwire.NewReader(raw)
	for key := range in.Object() {
		switch k := string(key); {
		case k == "type":
			switch in.String() {
			case "adaptive":
				s.Mode = dragoman.ReasoningAdaptive
			case "enabled":
				s.Mode = dragoman.ReasoningBudget
			case "disabled":
				s.Mode = dragoman.ReasoningOff
			}
		case k == "budget_tokens" && in.Kind() != 'n':
			n := in.Integer()
			s.BudgetTokens = &n
		case k == "display" && in.Kind() == '"':
			switch v := in.Raw(); string(v) {
			case `"summarized"`:
				s.Summary = "auto"
			case `"omitted"`:
				s.Summary = "omitted"
			default:
				extra.Add(&s.Extra, name, "/thinking", key, v)
			}
		default:
			extra.Add(&s.Extra, name, "/thinking", key, in.Raw())
		}
	}
	if err := in.End(); err != nil {
		d.fail(placeAt("/thinking", d.r.Offset()-int64(len(raw)), err))
		return
	}
	if s.Mode == dragoman.ReasoningDefault {
		d.keep("", "thinking", raw)
		return
	}
	s.Effort = d.reasoning().Effort
	d.req.Reasoning = &s
}

func (d *requestDecoder) outputConfig() {
	r := d.r
	n := 0
	for key := range r.Object() {
		n++
		switch k := string(key); {
		case k == "effort" && r.Kind() == '"':
			d.reasoning().Effort = r.String()
		case k == "format" && r.Kind() == '{':
			raw := r.Raw()
			if !d.format(raw) {
				d.keep("/output_config", k, raw)
			}
		default:
			d.keep("/output_config", k, r.Raw())
		}
	}
	if n == 0 && r.Err() == nil {
		d.keep("", "output_config", []byte("{}"))
	}
}

// format reads an output format and reports whether it is one we know.
func (d *requestDecoder) format(raw []byte) bool {
	// The API enforces the schema; toward others that means: where it fits.
	f := &dragoman.OutputFormat{Kind: dragoman.OutputSchema, Strict: dragoman.StrictAuto, Dialect: name}
	in := jsonwire.NewReader(raw)
	typ := ""
	for key := range in.Object() {
		switch k := string(key); {
		case k == "type" && in.Kind() == '"':
			typ = in.String()
		case k == "schema":
			f.Schema = in.Raw()
		default:
			extra.Add(&f.Extra, name, "", key, in.Raw())
		}
	}
	if in.End() != nil || typ != "json_schema" || f.Schema == nil {
		return false
	}
	d.req.Output = f
	return true
}

func (d *requestDecoder) metadata() {
	n := 0
	for key := range d.r.Object() {
		n++
		if string(key) == "user_id" && d.r.Kind() == '"' {
			if d.req.User = d.r.String(); d.req.User != "" {
				continue
			}
			d.keep("/metadata", "user_id", []byte(`""`))
			continue
		}
		d.keep("/metadata", string(key), d.r.Raw())
	}
	if n == 0 && d.r.Err() == nil {
		d.keep("", "metadata", []byte("{}"))
	}
}
