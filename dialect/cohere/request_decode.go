package cohere

import (
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeRequest implements [dialect.Codec]. The request keeps slices of body, which must
// not change afterwards.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	d := requestDecoder{messageDecoder: newMessageDecoder(c, o), req: new(dragoman.Request)}
	err := wirekit.DecodeRequest(name, messagesAt, body, o, literal.With(requestFields), d.req, d.rep, d.read)
	return d.req, *d.rep, err
}

// literal are the fields whose values are not searched for fields of the API.
var literal = jsonwire.Literal{Members: []string{"arguments", "parameters", "json_schema", "data", "documents"}}

// requestFields are the fields of a request that are read.
var requestFields = jsonwire.Known{
	"model": nil, "stream": nil, "strict_tools": nil, "tool_choice": nil, "max_tokens": nil, "stop_sequences": nil,
	"temperature": nil, "seed": nil, "frequency_penalty": nil, "presence_penalty": nil, "k": nil, "p": nil,
	"thinking":        {"type": nil, "token_budget": nil},
	"response_format": {"type": nil, "json_schema": nil},
	"messages": {
		"role": nil, "tool_call_id": nil, "tool_plan": nil,
		"content": {
			"type": nil, "text": nil, "thinking": nil, "image_url": {"url": nil, "detail": nil},
			"document": {"data": nil},
		},
		"tool_calls": {"id": nil, "type": nil, "function": {"name": nil, "arguments": nil}},
	},
	"tools": {"type": nil, "function": {"name": nil, "description": nil, "parameters": nil}},
}

type requestDecoder struct {
	messageDecoder
	r      *jsonwire.Reader
	req    *dragoman.Request
	strict bool
	err    error
}

func (d *requestDecoder) read(r *jsonwire.Reader) (sure bool, err error) {
	d.r = r
	for key := range r.Object() {
		d.field(string(key))
	}
	if err = r.End(); err == nil {
		err = d.err
	}
	if d.strict {
		d.strictTools()
	}
	d.req.StreamUsage = d.req.Stream // the last event always has the token counts
	return true, err
}

// strictTools makes all tools strict, as strict_tools says.
func (d *requestDecoder) strictTools() {
	if len(d.req.Tools) == 0 {
		extra.Add(&d.req.Extra, name, "", []byte("strict_tools"), []byte("true"))
	}
	for i := range d.req.Tools {
		s := &d.req.Tools[i]
		s.Strict = dragoman.StrictOn
		if s.Source != nil {
			s.Source.Mirror = s.Fingerprint()
		}
	}
}

// fail keeps the first error in a value that was just read.
func (d *requestDecoder) fail(at extra.Path, raw []byte, err error) {
	if d.err == nil {
		d.err = placeAt(at, d.r.Offset()-int64(len(raw)), err)
	}
}

// keep keeps a field that has no canonical form.
func (d *requestDecoder) keep(key string) {
	extra.Add(&d.req.Extra, name, "", []byte(key), d.r.Raw())
}

func (d *requestDecoder) field(key string) {
	r, req, s := d.r, d.req, &d.req.Sampling
	if r.Kind() == 'n' && key != "messages" {
		d.keep(key)
		return
	}
	switch key {
	case "model":
		req.Model = r.String()
	case "messages":
		d.messages()
	case "tools":
		d.tools()
	case "strict_tools":
		if d.strict = r.Bool(); !d.strict {
			extra.Add(&req.Extra, name, "", []byte(key), []byte("false"))
		}
	case "tool_choice":
		req.ToolChoice = d.choice()
	case "response_format":
		req.Output = d.output()
	case "thinking":
		d.thinking()
	case "stream":
		if req.Stream = r.Bool(); !req.Stream {
			extra.Add(&req.Extra, name, "", []byte(key), []byte("false"))
		}
	case "max_tokens":
		req.MaxOutputTokens = ptr(r.Integer())
	case "temperature":
		s.Temperature = d.number()
	case "p":
		s.TopP = d.number()
	case "k":
		s.TopK = ptr(r.Integer())
	case "frequency_penalty":
		s.FrequencyPenalty = d.number()
	case "presence_penalty":
		s.PresencePenalty = d.number()
	case "seed":
		if s.Seed = readSeed(r); s.Seed == nil {
			d.keep(key)
		}
	case "stop_sequences":
		for range r.Array() {
			s.Stop = append(s.Stop, r.String())
		}
		if len(s.Stop) == 0 {
			extra.Add(&req.Extra, name, "", []byte(key), []byte("[]"))
		}
	default:
		d.keep(key)
	}
}

func ptr[T any](v T) *T { return &v }

// readSeed reads a seed; nil means that it has more than 63 bits and is not read.
func readSeed(r *jsonwire.Reader) *int64 {
	if r.Kind() == '0' {
		probe := jsonwire.NewReader(r.Ahead())
		if probe.Integer(); probe.Err() != nil {
			return nil
		}
	}
	return ptr(r.Integer())
}

func (d *requestDecoder) number() *dragoman.Number { return ptr(dragoman.Number(d.r.Number())) }

func (d *requestDecoder) messages() {
	for i := range d.r.Array() {
		raw := d.r.Raw()
		if d.r.Err() != nil || d.err != nil {
			continue // after an error, elements are only checked as JSON
		}
		at := extra.Elem("/messages", i)
		m, err := d.message(raw, at, i)
		if err == nil {
			err = wirekit.Mistyped(raw, m.Parts)
		}
		if err != nil {
			d.fail(at, raw, err)
			continue
		}
		d.req.Messages = append(d.req.Messages, m)
	}
}

func (d *requestDecoder) tools() {
	n := 0
	for i := range d.r.Array() {
		raw := d.r.Raw()
		if d.r.Err() != nil || d.err != nil {
			continue
		}
		n++
		at := extra.Elem("/tools", i)
		specs, err := d.reg.ReadTool(raw, at, d.rep)
		if err != nil {
			d.fail(at, raw, err)
			continue
		}
		d.req.Tools = append(d.req.Tools, specs...)
	}
	if n == 0 {
		extra.Add(&d.req.Extra, name, "", []byte("tools"), []byte("[]"))
	}
}

func (d *requestDecoder) choice() *dragoman.ToolChoice {
	raw := d.r.Raw()
	switch string(raw) {
	case `"REQUIRED"`:
		return &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
	case `"NONE"`:
		return &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}
	default:
		return &dragoman.ToolChoice{Mode: dragoman.ChoiceOpaque, Native: &dragoman.Native{Format: dragoman.Format(name), JSON: raw}}
	}
}

func (d *requestDecoder) output() *dragoman.OutputFormat {
	f := &dragoman.OutputFormat{Dialect: name}
	for key := range d.r.Object() {
		switch {
		case string(key) == "type" && d.r.Kind() == '"':
			if t := d.r.String(); t == "json_object" {
				f.Kind = dragoman.OutputJSON
			} else {
				f.Kind = dragoman.OutputKind(t)
			}
		case string(key) == "json_schema" && d.r.Kind() == '{':
			f.Schema = d.r.Raw()
		default:
			extra.Add(&f.Extra, name, "", key, d.r.Raw())
		}
	}
	if f.Kind == dragoman.OutputJSON && len(f.Schema) > 0 { // to which the model is held
		f.Kind, f.Strict = dragoman.OutputSchema, dragoman.StrictAuto
	}
	return f
}

func (d *requestDecoder) thinking() {
	s := &dragoman.ReasoningSettings{}
	for key := range d.r.Object() {
		switch {
		case string(key) == "type" && d.r.Kind() == '"':
			switch t := d.r.Among("enabled", "disabled"); t {
			case "enabled":
				s.Mode = dragoman.ReasoningAdaptive
			case "disabled":
				s.Mode = dragoman.ReasoningOff
			default:
				s.Mode = dragoman.ReasoningMode(t)
			}
		case string(key) == "token_budget" && d.r.Kind() == '0':
			s.BudgetTokens = ptr(d.r.Integer())
		default:
			extra.Add(&s.Extra, name, "", key, d.r.Raw())
		}
	}
	if s.Mode == dragoman.ReasoningAdaptive && s.BudgetTokens != nil {
		s.Mode = dragoman.ReasoningBudget
	}
	d.req.Reasoning = s
}

// placeAt adds the place of a value to an error in it. start is its first byte, or -1.
func placeAt(at extra.Path, start int64, err error) error {
	out := &jsonwire.Error{Pointer: at.String(), Offset: start, Err: err}
	var in *jsonwire.Error
	if errors.As(err, &in) {
		out.Pointer, out.Err = out.Pointer+in.Pointer, in.Err
		if start >= 0 && in.Offset >= 0 {
			out.Offset = start + in.Offset
		}
	}
	return out
}
