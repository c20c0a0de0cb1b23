package blockwire

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// RequestDecoder is a request that is being decoded. Dialects embed it.
type RequestDecoder struct {
	*Decoder
	R   *jsonwire.Reader
	Req *dragoman.Request
	Err error
	// NotReplayable means that the request is ambiguous, or contains something that the API
	// refuses. Its native form is not sent.
	NotReplayable bool
	// openCalls holds the synthetic call ids of the last assistant message. Results
	// without an id belong to these calls, in order.
	openCalls []string
}

// NewRequestDecoder returns a decoder of an empty request.
func NewRequestDecoder(d *Decoder) RequestDecoder {
	return RequestDecoder{Decoder: d, Req: new(dragoman.Request)}
}

// Decode decodes the body of a request. known lists the fields that are read; field
// reads the value of one.
func (d *RequestDecoder) Decode(body []byte, known jsonwire.Known, field func(key []byte)) (*dragoman.Request, dragoman.Report, error) {
	err := wirekit.DecodeRequest(d.Dialect, d.Messages, body, d.Options, d.Literal.With(known), d.Req, d.Rep, func(r *jsonwire.Reader) (sure bool, err error) {
		d.R = r
		for key := range r.Object() {
			field(key)
			if d.Err != nil {
				break
			}
		}
		if err = d.Err; err == nil {
			err = r.End()
		}
		return !d.NotReplayable, err
	})
	return d.Req, *d.Rep, err
}

// Fail records err as the error of the request, unless there is one already.
func (d *RequestDecoder) Fail(err error) {
	if d.Err == nil {
		d.Err = err
	}
}

// FailAt is like Fail, for an error inside the value raw that was just read at path.
func (d *RequestDecoder) FailAt(path string, raw []byte, err error) {
	d.Fail(jsonwire.PlaceAt(path, d.R.Offset()-int64(len(raw)), err))
}

// KeepField stores a field that is unknown or has an unknown form.
func (d *RequestDecoder) KeepField(prefix, key string, raw []byte) {
	extra.Add(&d.Req.Extra, d.Dialect, prefix, []byte(key), raw)
}

// Conversation reads the messages. message reads one element.
func (d *RequestDecoder) Conversation(message func(elem jsonwire.Value, pos int) (dragoman.Message, error)) {
	for i := range d.R.Array() {
		elem := d.R.Value()
		if d.R.Err() != nil {
			return
		}
		m, err := message(elem, i)
		if err != nil {
			d.FailAt(extra.Elem("/messages", i).String(), elem.Raw, err)
			return
		}
		d.Req.Messages = append(d.Req.Messages, m)
	}
}

// Settle completes a message that was read from raw: it pairs results with calls and
// sets the role. list is the name of the parts in reports; contents is the number of
// fields that hold them. changed means that raw must not be sent again.
func (d *RequestDecoder) Settle(m *dragoman.Message, raw json.RawMessage, at extra.Path, list string, contents int, changed bool) {
	d.pair(m, at, list)
	if m.Role == dragoman.RoleUser && OnlyResults(m.Parts) {
		m.Role = dragoman.RoleTool
	}
	if contents > 1 && len(m.ToolCalls()) > 0 {
		d.Ambiguous = true
	}
	d.NotReplayable = d.NotReplayable || d.Ambiguous || changed
	if !d.Options.NoNative && !d.Ambiguous && !changed {
		m.Native = &dragoman.Sidecar{Dialect: d.Dialect, Raw: raw, Mirror: m.Fingerprint()}
	}
}

// pair assigns the ids of calls that came without one to results without one, in order
// (quirk B10).
func (d *RequestDecoder) pair(m *dragoman.Message, at extra.Path, list string) {
	if m.Role == dragoman.RoleAssistant {
		d.openCalls = d.openCalls[:0]
		for _, p := range m.Parts {
			if c, ok := p.(*dragoman.ToolCall); ok && c.Synthetic {
				d.openCalls = append(d.openCalls, c.ID)
			}
		}
		return
	}
	for i, p := range m.Parts {
		res, ok := p.(*dragoman.ToolResult)
		if !ok || res.CallID != "" || len(d.openCalls) == 0 {
			continue
		}
		res.CallID, d.openCalls = d.openCalls[0], d.openCalls[1:]
		d.Rep.Addf(dragoman.Synthesized, dragoman.Info, at.Elem(list, i).String(), "a result without an id is assigned to call %q", res.CallID)
	}
}

// Tools reads the tool definitions at a path. skip consumes an element that is not a
// definition, and reports whether it did.
func (d *RequestDecoder) Tools(prefix, key string, at string, skip func(raw []byte) bool) {
	n := 0
	for i := range d.R.Array() {
		raw := d.R.Raw()
		if d.R.Err() != nil {
			return
		}
		n++
		if skip != nil && skip(raw) {
			continue
		}
		specs, err := d.Reg.ReadTool(raw, extra.Elem(at, i), d.Rep)
		if err != nil {
			d.FailAt(extra.Elem(at, i).String(), raw, err)
			return
		}
		d.Req.Tools = append(d.Req.Tools, specs...)
	}
	if n == 0 && d.R.Err() == nil {
		d.KeepField(prefix, key, []byte("[]"))
	}
}

// Chosen returns the tool of a choice, given its name on the wire.
func (d *RequestDecoder) Chosen(name string) []dragoman.ToolRef {
	ref := dragoman.ToolRef{}
	ref.Namespace, ref.Name, _ = d.Reg.PublicName("", name)
	return []dragoman.ToolRef{ref}
}

// Reasoning returns the reasoning settings of the request, which it creates if needed.
func (d *RequestDecoder) Reasoning() *dragoman.ReasoningSettings {
	if d.Req.Reasoning == nil {
		d.Req.Reasoning = new(dragoman.ReasoningSettings)
	}
	return d.Req.Reasoning
}

// Thinking reads Claude's thinking settings and stores their unknown fields below
// prefix. It returns false for an unknown type. lenient ignores fields of a wrong type,
// for an API that passes the settings through without reading them.
func (d *RequestDecoder) Thinking(prefix string, raw []byte, lenient bool) (known bool, err error) {
	s := dragoman.ReasoningSettings{}
	in := jsonwire.NewReader(raw)
	for key := range in.Object() {
		switch k, kind := string(key), in.Kind(); {
		case k == "type" && (!lenient || kind == '"'):
			switch in.String() {
			case "adaptive":
				s.Mode = codes.ReasoningAdaptive
			case "enabled":
				s.Mode = codes.ReasoningBudget
			case "disabled":
				s.Mode = codes.ReasoningOff
			}
		case k == "budget_tokens" && (kind == '0' || !lenient && kind != 'n'):
			n := in.Integer()
			s.BudgetTokens = &n
		case k == "display" && kind == '"':
			switch v := in.Raw(); string(v) {
			case `"summarized"`:
				s.Summary = "auto"
			case `"omitted"`:
				s.Summary = "omitted"
			default:
				extra.Add(&s.Extra, d.Dialect, prefix, key, v)
			}
		default:
			extra.Add(&s.Extra, d.Dialect, prefix, key, in.Raw())
		}
	}
	if err := in.End(); err != nil || s.Mode == codes.ReasoningDefault {
		return false, err
	}
	s.Effort = d.Reasoning().Effort
	d.Req.Reasoning = &s
	return true, nil
}

// OutputSchema reads an output format and reports whether it has a schema. other reads
// every field except the type.
func (d *RequestDecoder) OutputSchema(raw []byte, other func(in *jsonwire.Reader, key []byte, f *dragoman.OutputFormat)) bool {
	// The API enforces the schema. Toward other APIs that means: strict if the schema
	// allows it.
	f := &dragoman.OutputFormat{Kind: codes.OutputSchema, Strict: codes.StrictAuto, Dialect: d.Dialect}
	in := jsonwire.NewReader(raw)
	typ := ""
	for key := range in.Object() {
		if string(key) == "type" && in.Kind() == '"' {
			typ = in.String()
		} else {
			other(in, key, f)
		}
	}
	if in.End() != nil || typ != "json_schema" || f.Schema == nil {
		return false
	}
	d.Req.Output = f
	return true
}
