package cohere

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeRequest implements [dialect.Codec]. The request aliases body, which
// must not change afterwards.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	d := requestDecoder{messageDecoder: newMessageDecoder(c, o), req: new(dragoman.Request)}
	err := wirekit.DecodeRequest(name, messagesAt, body, o, literal.With(settings.Known()), d.req, d.rep, d.read)
	return d.req, *d.rep, err
}

// literal lists the fields whose contents are read literally.
var literal = jsonwire.Literal{Fields: []string{"arguments", "parameters", "json_schema", "data", "documents"}}

type requestDecoder struct {
	messageDecoder
	r      *jsonwire.Reader
	req    *dragoman.Request
	strict bool
	lists  wirekit.RequestLists
}

func (d *requestDecoder) read(r *jsonwire.Reader) (sure bool, err error) {
	d.r = r
	for key := range r.Object() {
		settings.Decode(d, r, d.req, key)
	}
	if err = r.End(); err == nil {
		err = d.lists.Err
	}
	if d.strict {
		d.makeStrict()
	}
	d.req.StreamUsage = d.req.Stream // the last event always has the token counts
	return true, err
}

// makeStrict makes all tools strict, as strict_tools requires.
func (d *requestDecoder) makeStrict() {
	if len(d.req.Tools) == 0 {
		extra.Add(&d.req.Extra, name, "", []byte("strict_tools"), []byte("true"))
	}
	for i := range d.req.Tools {
		s := &d.req.Tools[i]
		s.Strict = codes.StrictOn
		if s.Source != nil {
			s.Source.Mirror = s.Fingerprint()
		}
	}
}

func (d *requestDecoder) messages() {
	d.lists.Each(d.r, "/messages", func(raw []byte, at extra.Path, i int) error {
		m, err := d.message(raw, at, i)
		if err != nil {
			return err
		}
		d.req.Messages = append(d.req.Messages, m)
		return wirekit.Mistyped(raw, m.Parts)
	})
}

func (d *requestDecoder) tools() {
	d.lists.Tools(d.r, d.reg, name, d.req, d.rep)
}

func (d *requestDecoder) choice() {
	raw := d.r.Raw()
	switch string(raw) {
	case `"REQUIRED"`:
		d.req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
	case `"NONE"`:
		d.req.ToolChoice = &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}
	default:
		d.req.ToolChoice = &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: &dragoman.Native{Format: dragoman.Format(name), JSON: raw}}
	}
}

func (d *requestDecoder) output() {
	f := &dragoman.OutputFormat{Dialect: name}
	for key := range d.r.Object() {
		switch {
		case string(key) == "type" && d.r.Kind() == '"':
			if t := d.r.String(); t == "json_object" {
				f.Kind = codes.OutputJSON
			} else {
				f.Kind = t
			}
		case string(key) == "json_schema" && d.r.Kind() == '{':
			f.Schema = d.r.Raw()
		default:
			extra.Add(&f.Extra, name, "", key, d.r.Raw())
		}
	}
	if f.Kind == codes.OutputJSON && len(f.Schema) > 0 { // the API enforces the schema
		f.Kind, f.Strict = codes.OutputSchema, codes.StrictAuto
	}
	d.req.Output = f
}

func (d *requestDecoder) thinking() {
	s := &dragoman.ReasoningSettings{}
	for key := range d.r.Object() {
		switch {
		case string(key) == "type" && d.r.Kind() == '"':
			switch t := d.r.StringOneOf("enabled", "disabled"); t {
			case "enabled":
				s.Mode = codes.ReasoningAdaptive
			case "disabled":
				s.Mode = codes.ReasoningOff
			default:
				s.Mode = t
			}
		case string(key) == "token_budget" && d.r.Kind() == '0':
			s.BudgetTokens = new(d.r.Integer())
		default:
			extra.Add(&s.Extra, name, "", key, d.r.Raw())
		}
	}
	if s.Mode == codes.ReasoningAdaptive && s.BudgetTokens != nil {
		s.Mode = codes.ReasoningBudget
	}
	d.req.Reasoning = s
}
