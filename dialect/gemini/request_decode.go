package gemini

import (
	"encoding/json"
	"iter"
	"strings"

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
	d := requestDecoder{partDecoder: newPartDecoder(c, o), req: new(dragoman.Request)}
	err := wirekit.DecodeRequest(name, messagesAt, body, o, literal.With(settings.Known()), d.req, d.rep, d.read)
	return d.req, *d.rep, err
}

// literal lists the fields whose contents are read literally, and the maps
// whose keys belong to the user. All other fields have two spellings.
var literal = jsonwire.Literal{
	Fields: []string{
		"args", "parameters", "parametersJsonSchema", "response", "responseSchema", "responseJsonSchema", "_responseJsonSchema",
		"schema",
	},
	Maps: []string{"labels", "partMetadata", "headers", "metadata"},
	Same: jsonwire.Camel,
}

func (d *requestDecoder) read(r *jsonwire.Reader) (sure bool, err error) {
	d.r = r
	for key := range r.Object() {
		settings.Decode(d, r, d.req, key)
		if d.err != nil {
			break
		}
	}
	if err = d.err; err == nil {
		err = r.End()
	}
	if err == nil {
		d.output.settle(d)
	}
	return !d.unsure, err
}

type requestDecoder struct {
	partDecoder
	r   *jsonwire.Reader
	req *dragoman.Request
	err error
	// unsure reports that a message can be read in two ways.
	unsure    bool
	openCalls openCalls
	output    outputFields
}

func (d *requestDecoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// keep stores a field that is not modeled, or not in this form.
func (d *requestDecoder) keep(prefix, key string, raw []byte) {
	extra.Add(&d.req.Extra, name, prefix, []byte(key), raw)
}

// system reads the system instruction, a content outside the conversation.
func (d *requestDecoder) system() {
	const prefix = "/systemInstruction"
	n := 0
	for key := range d.r.Object() {
		n++
		if kind := d.r.Kind(); string(key) != "parts" || kind != '[' && kind != '{' {
			d.keep(prefix, string(key), d.r.Raw())
			continue
		}
		i := -1
		for i = range elements(d.r) {
			raw := d.r.Raw()
			if d.r.Err() != nil {
				return
			}
			p, err := d.part(raw, extra.Elem(prefix+"/parts", i), i, -1)
			if err != nil {
				d.fail(jsonwire.PlaceAt(extra.Elem(prefix+"/parts", i).String(), d.r.Offset()-int64(len(raw)), err))
				return
			}
			d.req.Instructions = append(d.req.Instructions, p)
		}
		if i < 0 {
			d.keep(prefix, "parts", []byte("[]"))
		}
	}
	if n == 0 && d.r.Err() == nil {
		d.keep("", prefix[1:], []byte("{}"))
	}
}

// elements yields the positions of a list's elements. The API reads a single
// value as a list of one, and clients rely on it: parts and tools may be
// objects.
func elements(r *jsonwire.Reader) iter.Seq[int] {
	if r.Kind() == '[' {
		return r.Array()
	}
	return func(yield func(int) bool) { yield(0) }
}

// contents reads the conversation. A client may send a single content without
// the list.
func (d *requestDecoder) contents() {
	if d.r.Kind() == '{' {
		d.content(0, "/contents")
		return
	}
	for i := range d.r.Array() {
		d.content(i, extra.Elem("/contents", i).String())
		if d.err != nil {
			return
		}
	}
}

func (d *requestDecoder) content(i int, path string) {
	raw := d.r.Raw()
	if d.r.Err() != nil {
		return
	}
	m, err := d.message(raw, i)
	if err != nil {
		d.fail(jsonwire.PlaceAt(path, d.r.Offset()-int64(len(raw)), err))
		return
	}
	d.req.Messages = append(d.req.Messages, m)
}

// message reads one content.
func (d *requestDecoder) message(raw json.RawMessage, pos int) (dragoman.Message, error) {
	m := dragoman.Message{Role: dragoman.RoleUser, Origin: d.origin} // the default if role is missing
	at := extra.Elem("/contents", pos)
	d.ambiguous = false
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' && r.Err() == nil {
		return m, wirekit.ErrNotObject
	}
	var seen seenFields
	duplicate := false
	for key := range r.Object() {
		duplicate = seen.duplicate(contentFields, key) || duplicate
		switch string(key) {
		case "role":
			d.role(&m, r)
		case "parts":
			if err := d.parts(&m, r, at, pos); err != nil {
				return m, err
			}
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return m, err
	}
	d.openCalls.pair(&m, at, d.rep)
	if m.Role == dragoman.RoleUser && blockwire.OnlyResults(m.Parts) {
		m.Role = dragoman.RoleTool
	}
	if duplicate && len(m.ToolCalls()) > 0 {
		d.ambiguous = true
	}
	d.unsure = d.unsure || d.ambiguous
	if !d.o.NoNative && !d.ambiguous {
		m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
	}
	return m, nil
}

func (d *requestDecoder) role(m *dragoman.Message, r *jsonwire.Reader) {
	switch role := r.String(); role {
	case "", "user":
		m.Role = dragoman.RoleUser
	case "model":
		m.Role = dragoman.RoleAssistant
	case "function": // an older name for the role of results
		m.Role = dragoman.RoleTool
		extra.Add(&m.Extra, name, "", []byte("role"), []byte(`"function"`))
	default:
		m.Role = dragoman.Role(role)
	}
}

func (d *requestDecoder) parts(m *dragoman.Message, r *jsonwire.Reader, at extra.Path, pos int) error {
	m.Parts = nil
	if r.Kind() == '{' { // a single part without the list
		raw := r.Raw()
		p, err := d.part(raw, at.Elem("parts", 0), 0, pos)
		if err != nil {
			return jsonwire.PlaceAt("/parts", r.Offset()-int64(len(raw)), err)
		}
		m.Parts = []dragoman.Part{p}
		return nil
	}
	for i := range r.Array() {
		raw := r.Raw()
		if r.Err() != nil {
			break
		}
		p, err := d.part(raw, at.Elem("parts", i), i, pos)
		if err != nil {
			return jsonwire.PlaceAt(extra.Elem("/parts", i).String(), r.Offset()-int64(len(raw)), err)
		}
		m.Parts = append(m.Parts, p)
	}
	return nil
}

func (d *requestDecoder) tools() {
	n := 0
	for i := range elements(d.r) {
		raw := d.r.Raw()
		if d.r.Err() != nil {
			return
		}
		n++
		specs, err := d.reg.ReadTool(raw, extra.Elem("/tools", i), d.rep)
		if err != nil {
			d.fail(jsonwire.PlaceAt(extra.Elem("/tools", i).String(), d.r.Offset()-int64(len(raw)), err))
			return
		}
		d.req.Tools = append(d.req.Tools, specs...)
	}
	if n == 0 && d.r.Err() == nil {
		d.keep("", "tools", []byte("[]"))
	}
}

const (
	configPath = "/toolConfig"
	callPath   = "/toolConfig/functionCallingConfig"
	tuningPath = "/generationConfig"
	thinkPath  = "/generationConfig/thinkingConfig"
)

func (d *requestDecoder) toolConfig() {
	n := 0
	for key := range d.r.Object() {
		n++
		if string(jsonwire.Camel(key)) == "functionCallingConfig" && d.r.Kind() == '{' {
			d.choice()
			continue
		}
		d.keep(configPath, string(key), d.r.Raw())
	}
	if n == 0 && d.r.Err() == nil {
		d.keep("", configPath[1:], []byte("{}"))
	}
}

// choice reads the function calling config. Fields other than mode and
// allowedFunctionNames are stored with the request.
func (d *requestDecoder) choice() {
	raw := d.r.Raw()
	if d.r.Err() != nil {
		return
	}
	base := d.r.Offset() - int64(len(raw))
	in := jsonwire.NewReader(raw)
	mode, n := "", 0
	var allowed []dragoman.ToolRef
	var rest []dragoman.Field
	for key := range in.Object() {
		n++
		field := string(jsonwire.Camel(key))
		switch {
		case in.Kind() == 'n':
			rest = append(rest, dragoman.Field{Path: string(key), Value: in.Raw()})
		case field == "mode":
			mode = modeName(enumName(in))
		case field == "allowedFunctionNames":
			allowed = []dragoman.ToolRef{}
			for range elements(in) {
				ref := dragoman.ToolRef{}
				ref.Namespace, ref.Name, _ = d.reg.PublicName("", in.String())
				allowed = append(allowed, ref)
			}
		default:
			rest = append(rest, dragoman.Field{Path: string(key), Value: in.Raw()})
		}
	}
	if err := in.End(); err != nil {
		d.fail(jsonwire.PlaceAt(callPath, base, err))
		return
	}
	if len(allowed) == 0 {
		if allowed != nil {
			d.keep(callPath, "allowedFunctionNames", []byte("[]"))
		}
		allowed = nil // an empty list allows all
	}
	c := &dragoman.ToolChoice{Tools: allowed}
	switch mode {
	case "AUTO":
		c.Mode = dragoman.ChoiceAuto
	case "VALIDATED": // auto, with arguments validated against the schema
		c.Mode = dragoman.ChoiceAuto
		extra.Add(&c.Extra, name, "", []byte("mode"), []byte(`"VALIDATED"`))
	case "ANY":
		c.Mode = dragoman.ChoiceRequired
		if len(allowed) == 1 {
			c.Mode = dragoman.ChoiceTool
		}
	case "NONE":
		c.Mode = dragoman.ChoiceNone
	case "":
		c = nil
		if allowed != nil {
			c = &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: &dragoman.Native{Format: formatChoice, JSON: raw}}
		}
	default:
		d.req.ToolChoice = &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: &dragoman.Native{Format: formatChoice, JSON: raw}}
		return
	}
	d.req.ToolChoice = c
	for _, f := range rest {
		d.keep(callPath, f.Path, f.Value)
	}
	if n == 0 {
		d.keep(configPath, "functionCallingConfig", []byte("{}"))
	}
}

// modeName returns the name of a mode, which may be sent as a number.
func modeName(mode string) string {
	switch mode {
	case "1":
		return "AUTO"
	case "2":
		return "ANY"
	case "3":
		return "NONE"
	case "0", "MODE_UNSPECIFIED":
		return ""
	default:
		return strings.ToUpper(mode)
	}
}

// thinking reads the thinking config. A budget of 0 disables thinking; a budget
// of -1 leaves the amount to the model.
func (d *requestDecoder) thinking() {
	s := &dragoman.ReasoningSettings{}
	n := 0
	for key := range d.r.Object() {
		n++
		switch field := string(jsonwire.Camel(key)); {
		case field == "includeThoughts" && d.r.Kind() != 'n':
			s.Summary = "omitted"
			if d.r.Bool() {
				s.Summary = "auto"
			}
		case field == "thinkingBudget" && d.r.Kind() != 'n':
			budget(s, d.r.Integer())
		case field == "thinkingLevel" && d.r.Kind() != 'n':
			raw := d.r.Raw()
			switch level := strings.ToLower(jsonwire.Unquote(raw)); level {
			case "minimal", "low", "medium", "high":
				s.Effort = level
			default:
				extra.Add(&s.Extra, name, "", key, raw)
			}
		default:
			extra.Add(&s.Extra, name, "", key, d.r.Raw())
		}
	}
	if d.r.Err() != nil {
		return
	}
	if n == 0 {
		d.keep(tuningPath, "thinkingConfig", []byte("{}"))
		return
	}
	d.req.Reasoning = s
}

func budget(s *dragoman.ReasoningSettings, n int64) {
	switch {
	case n == 0:
		s.Mode = codes.ReasoningOff
	case n < 0:
		s.Mode = codes.ReasoningAdaptive
	default:
		s.Mode, s.BudgetTokens = codes.ReasoningBudget, &n
	}
}

// outputFields holds the fields that describe the output format. They are
// interpreted together.
type outputFields struct {
	mime, schema, jsonSchema json.RawMessage
}

// settle sets the output format of the request. Combinations that it does not
// know are stored unchanged.
func (o *outputFields) settle(d *requestDecoder) {
	const closed = tuningPath + "/responseSchema"
	mime := jsonwire.Unquote(o.mime)
	schema := o.jsonSchema
	if schema == nil && o.schema != nil {
		schema = fromClosedSchema(o.schema, closed, d.rep)
	}
	isObject := len(schema) > 0 && schema[0] == '{'
	switch {
	case mime == "application/json" && schema == nil:
		d.req.Output = &dragoman.OutputFormat{Kind: codes.OutputJSON}
	case mime == "application/json" && isObject:
		if o.jsonSchema != nil && o.schema != nil {
			d.rep.Add(dragoman.Dropped, dragoman.Warn, closed, "responseJsonSchema is also set; the API accepts only one of the two")
		}
		// The API enforces the schema. For other targets that means: where
		// possible.
		d.req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: schema, Strict: codes.StrictAuto, Dialect: name}
	default:
		for _, f := range []struct {
			key string
			raw []byte
		}{{"responseMimeType", o.mime}, {"responseSchema", o.schema}, {"responseJsonSchema", o.jsonSchema}} {
			if f.raw != nil {
				d.keep(tuningPath, f.key, f.raw)
			}
		}
	}
}
