package bedrock

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
// returned with it. Its Model and Stream are for who served the URL to set.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	d := requestDecoder{blockDecoder: newBlockDecoder(c, o), req: new(dragoman.Request)}
	err := wirekit.DecodeRequest(name, messagesAt, body, o, literal.With(requestMembers), d.req, d.rep, d.read)
	return d.req, *d.rep, err
}

// literal are the members that are read as they stand.
var literal = jsonwire.Literal{Members: []string{"input", "json"}}

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
	// unsure says that the body can be read in two ways.
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
	r := d.r
	if r.Kind() == 'n' {
		d.keep("", key, r.Raw())
		return
	}
	switch key {
	case "messages":
		d.messages()
	case "system":
		d.system()
	case "inferenceConfig":
		d.object(key, d.inference)
	case "toolConfig":
		d.object(key, d.toolMember)
	case "outputConfig":
		d.object(key, d.outputMember)
	case "additionalModelRequestFields":
		d.object(key, d.modelField)
	case "requestMetadata":
		d.metadata()
	case "serviceTier":
		d.tier()
	case "modelId", "model": // neither belongs into the body; clients send them all the same
		d.model(key)
	default:
		d.keep("", key, r.Raw())
	}
}

// object reads an object member by member; one that is empty, or no object, is
// kept as it is.
func (d *requestDecoder) object(key string, member func(prefix, key string)) {
	if d.r.Kind() != '{' {
		d.keep("", key, d.r.Raw())
		return
	}
	n := 0
	for k := range d.r.Object() {
		n++
		member("/"+key, string(k))
		if d.err != nil {
			return
		}
	}
	if n == 0 && d.r.Err() == nil {
		d.keep("", key, []byte("{}"))
	}
}

func (d *requestDecoder) model(key string) {
	raw := d.r.Raw()
	d.keep("", key, raw)
	model := unquote(raw)
	if d.req.Model != "" && model != "" && model != d.req.Model {
		d.unsure = true
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, "/"+key, "the body names another model, %.60q; both members follow this one", d.req.Model)
	}
	if model != "" {
		d.req.Model = model
	}
}

func (d *requestDecoder) inference(prefix, key string) {
	r, s := d.r, &d.req.Sampling
	if r.Kind() == 'n' {
		d.keep(prefix, key, r.Raw())
		return
	}
	number := func() *dragoman.Number {
		n := dragoman.Number(r.Number())
		return &n
	}
	switch key {
	case "maxTokens":
		n := r.Integer()
		d.req.MaxOutputTokens = &n
	case "temperature":
		s.Temperature = number()
	case "topP":
		s.TopP = number()
	case "stopSequences":
		n := 0
		for range r.Array() {
			s.Stop = append(s.Stop, r.String())
			n++
		}
		if n == 0 {
			d.keep(prefix, key, []byte("[]"))
		}
	default:
		d.keep(prefix, key, r.Raw())
	}
}

func (d *requestDecoder) system() {
	if k := d.r.Kind(); k != '[' && k != '"' {
		for range d.r.Array() { // says what is wrong
		}
		return
	}
	raw := d.r.Raw()
	if d.r.Err() != nil {
		return
	}
	parts, err := d.content(raw, false, "/system", -1)
	if err != nil {
		d.fail(placeAt("/system", d.r.Offset()-int64(len(raw)), err))
		return
	}
	if d.req.Instructions = parts; len(parts) == 0 {
		d.keep("", "system", raw)
	}
}

func (d *requestDecoder) messages() {
	for i := range d.r.Array() {
		raw := d.r.Raw()
		if d.r.Err() != nil {
			return
		}
		m, err := d.message(raw, i)
		if err != nil {
			d.fail(placeAt(extra.Elem("/messages", i).String(), d.r.Offset()-int64(len(raw)), err))
			return
		}
		d.req.Messages = append(d.req.Messages, m)
	}
}

// message reads one element of the conversation. Its content waits for its
// role, which may come later: what a tool result is depends on who says it.
func (d *requestDecoder) message(raw json.RawMessage, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Origin: d.origin}
	at := extra.Elem("/messages", pos)
	d.ambiguous, d.moved = false, false
	r := jsonwire.NewReader(raw)
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
				for range r.Array() { // says what is wrong
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
	if err := wirekit.NoRole(m.Role); err != nil {
		return m, err
	}
	if content != nil {
		parts, err := d.content(content, m.Role == dragoman.RoleAssistant, at.String()+"/content", pos)
		if m.Parts = parts; err != nil {
			return m, placeAt("/content", base, err)
		}
	}
	changed := settleStrays(m.Parts, at.String()+"/content", d.rep) || d.moved
	d.pair(&m, at)
	if m.Role == dragoman.RoleUser && onlyResults(m.Parts) {
		m.Role = dragoman.RoleTool
	}
	if contents > 1 && len(m.ToolCalls()) > 0 {
		d.ambiguous = true
	}
	d.unsure = d.unsure || d.ambiguous || changed
	if !d.o.NoNative && !d.ambiguous && !changed {
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
		d.rep.Addf(dragoman.Synthesized, dragoman.Info, at.Elem("content", i).String(), "a result without an id answers call %q", res.CallID)
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

func (d *requestDecoder) toolMember(prefix, key string) {
	switch {
	case key == "tools" && d.r.Kind() == '[':
		d.tools(prefix)
	case key == "toolChoice" && d.r.Kind() == '{':
		d.choice(prefix)
	case key == "tools" && d.r.Kind() != 'n':
		for range d.r.Array() { // says what is wrong
		}
	default:
		d.keep(prefix, key, d.r.Raw())
	}
}

// tools reads the definitions; a cache point belongs to the tool before it.
func (d *requestDecoder) tools(prefix string) {
	n := 0
	for i := range d.r.Array() {
		raw := d.r.Raw()
		if d.r.Err() != nil {
			return
		}
		n++
		if hint := cacheHint(raw); hint != nil && len(d.req.Tools) > 0 {
			if last := &d.req.Tools[len(d.req.Tools)-1]; last.Cache == nil && last.Kind != dragoman.ToolHosted {
				last.Cache = hint
				last.Source.Mirror = last.Fingerprint()
				continue
			}
		}
		at := extra.Elem(prefix+"/tools", i)
		specs, err := d.reg.ReadTool(raw, at, d.rep)
		if err != nil {
			d.fail(placeAt(at.String(), d.r.Offset()-int64(len(raw)), err))
			return
		}
		d.req.Tools = append(d.req.Tools, specs...)
	}
	if n == 0 && d.r.Err() == nil {
		d.keep(prefix, "tools", []byte("[]"))
	}
}

// choice reads the tool choice: an object whose only member says what it is.
// One we do not know is kept as it is.
func (d *requestDecoder) choice(prefix string) {
	raw := d.r.Raw()
	if d.r.Err() != nil {
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
				ref := dragoman.ToolRef{}
				ref.Namespace, ref.Name, _ = d.reg.PublicName("", in.String())
				c.Tools = []dragoman.ToolRef{ref}
				continue
			}
			extra.Add(&c.Extra, name, "/"+k, inner, in.Raw())
		}
	}
	if err := in.End(); err != nil {
		d.fail(placeAt(prefix+"/toolChoice", d.r.Offset()-int64(len(raw)), err))
		return
	}
	if !known || members != 1 || c.Mode == dragoman.ChoiceTool && len(c.Tools) != 1 {
		c = &dragoman.ToolChoice{Mode: dragoman.ChoiceOpaque, Native: &dragoman.Native{Format: formatChoice, JSON: raw}}
	}
	d.req.ToolChoice = c
}

func (d *requestDecoder) reasoning() *dragoman.ReasoningSettings {
	if d.req.Reasoning == nil {
		d.req.Reasoning = new(dragoman.ReasoningSettings)
	}
	return d.req.Reasoning
}

// modelField reads a member that the model behind the API takes. Of those only
// Claude's thinking means something to others.
func (d *requestDecoder) modelField(prefix, key string) {
	raw := d.r.Raw()
	if d.r.Err() != nil {
		return
	}
	if key != "thinking" || !d.thinking(prefix+"/thinking", raw) {
		d.keep(prefix, key, raw)
	}
}

// thinking reads Claude's thinking settings; it is false for what is none of a
// type we know.
func (d *requestDecoder) thinking(prefix string, raw []byte) bool {
	s := dragoman.ReasoningSettings{}
	in := jsonwire.NewReader(raw)
	if in.Kind() != '{' {
		return false
	}
	for key := range in.Object() {
		switch k := string(key); {
		case k == "type" && in.Kind() == '"':
			switch in.String() {
			case "adaptive":
				s.Mode = dragoman.ReasoningAdaptive
			case "enabled":
				s.Mode = dragoman.ReasoningBudget
			case "disabled":
				s.Mode = dragoman.ReasoningOff
			}
		case k == "budget_tokens" && in.Kind() == '0':
			n := in.Integer()
			s.BudgetTokens = &n
		case k == "display" && in.Kind() == '"':
			switch v := in.Raw(); string(v) {
			case `"summarized"`:
				s.Summary = "auto"
			case `"omitted"`:
				s.Summary = "omitted"
			default:
				extra.Add(&s.Extra, name, prefix, key, v)
			}
		default:
			extra.Add(&s.Extra, name, prefix, key, in.Raw())
		}
	}
	if in.End() != nil || s.Mode == dragoman.ReasoningDefault {
		return false
	}
	s.Effort = d.reasoning().Effort
	d.req.Reasoning = &s
	return true
}

func (d *requestDecoder) outputMember(prefix, key string) {
	switch {
	case key == "effort" && d.r.Kind() == '"':
		if effort := d.r.String(); effort != "" {
			d.reasoning().Effort = effort
			return
		}
		d.keep(prefix, key, []byte(`""`))
	case key == "textFormat" && d.r.Kind() == '{':
		raw := d.r.Raw()
		if d.r.Err() == nil && !d.format(prefix+"/textFormat", raw) {
			d.keep(prefix, key, raw)
		}
	default:
		d.keep(prefix, key, d.r.Raw())
	}
}

// format reads an output format and reports whether it is one we know. The
// schema is JSON inside a string.
func (d *requestDecoder) format(prefix string, raw []byte) bool {
	// The API enforces the schema; toward others that means: where it fits.
	f := &dragoman.OutputFormat{Kind: dragoman.OutputSchema, Strict: dragoman.StrictAuto, Dialect: name}
	in := jsonwire.NewReader(raw)
	typ := ""
	for key := range in.Object() {
		switch k := string(key); {
		case k == "type" && in.Kind() == '"':
			typ = in.String()
		case k == "structure" && in.Kind() == '{':
			readStructure(in, f)
		default:
			extra.Add(&f.Extra, name, "", key, in.Raw())
		}
	}
	if in.End() != nil || typ != "json_schema" || f.Schema == nil || jsonwire.Check(f.Schema) != nil {
		return false
	}
	d.req.Output = f
	return true
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

// metadata reads what is said about the request; anything but an object of
// strings is kept as it is.
func (d *requestDecoder) metadata() {
	raw := d.r.Raw()
	if d.r.Err() != nil {
		return
	}
	in := jsonwire.NewReader(raw)
	var list []dragoman.KeyValue
	plain := in.Kind() == '{'
	if plain {
		for key := range in.Object() {
			k := string(key)
			if in.Kind() != '"' {
				in.Skip()
				plain = false
				continue
			}
			list = append(list, dragoman.KeyValue{Key: k, Value: in.String()})
		}
	}
	if !plain || len(list) == 0 {
		d.keep("", "requestMetadata", raw)
		return
	}
	d.req.Metadata = list
}

// tier reads how urgent the request is.
func (d *requestDecoder) tier() {
	raw := d.r.Raw()
	if tier := readTier(raw); tier != "" {
		d.req.ServiceTier = tier
		return
	}
	d.keep("", "serviceTier", raw)
}

// readTier reads {"type": word}; empty for anything else.
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
