package ollama

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeRequest implements [dialect.Codec]. The request keeps slices of body,
// which must not change afterwards.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	d := requestDecoder{
		messageDecoder: newMessageDecoder(c, o),
		// A stream is what a request asks for unless it says otherwise.
		req: &dragoman.Request{Stream: true},
	}
	err := wirekit.DecodeRequest(name, messagesAt, body, o, literal.With(settings.Known()), d.req, d.rep, d.read)
	return d.req, *d.rep, err
}

// literal are the members that are read as they stand.
var literal = jsonwire.Literal{Members: []string{"arguments", "parameters", "format"}}

func (d *requestDecoder) read(r *jsonwire.Reader) (sure bool, err error) {
	d.r = r
	for key := range r.Object() {
		settings.Decode(d, r, d.req, key)
	}
	if err = r.End(); err == nil {
		err = d.lists.Err
	}
	// The last line of a stream always tells what it cost.
	d.req.StreamUsage = d.req.Stream
	return true, err
}

type requestDecoder struct {
	messageDecoder
	r     *jsonwire.Reader
	req   *dragoman.Request
	lists wirekit.RequestLists
}

func (d *requestDecoder) messages() {
	d.lists.Each(d.r, "/messages", func(raw []byte, at extra.Path, i int) error {
		m, err := d.message(raw, at, i)
		d.req.Messages = append(d.req.Messages, m)
		return err
	})
}

func (d *requestDecoder) tools() {
	d.lists.Tools(d.r, d.reg, name, d.req, d.rep)
}

// format reads what an answer must look like: any JSON, or JSON of a schema, to
// which the sampler is then bound. An empty string is what some clients write
// for neither.
func (d *requestDecoder) format() {
	raw := d.r.Raw()
	switch {
	case string(raw) == `"json"`:
		d.req.Output = &dragoman.OutputFormat{Kind: codes.OutputJSON, Dialect: name}
	case len(raw) > 0 && raw[0] == '{':
		d.req.Output = &dragoman.OutputFormat{Kind: codes.OutputSchema, Schema: raw, Strict: codes.StrictAuto, Dialect: name}
	default:
		extra.Add(&d.req.Extra, name, "", []byte("format"), raw)
	}
}

// think reads whether, or how much, to think.
func (d *requestDecoder) think() {
	r, req := d.r, d.req
	switch r.Kind() {
	case 't':
		r.Skip()
		req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningAdaptive}
	case 'f':
		r.Skip()
		req.Reasoning = &dragoman.ReasoningSettings{Mode: codes.ReasoningOff}
	case '"':
		raw := r.Raw()
		if level := jsonwire.NewReader(raw).String(); knownLevel(level) {
			req.Reasoning = &dragoman.ReasoningSettings{Effort: level}
		} else { // a word that only its model knows
			extra.Add(&req.Extra, name, "", []byte("think"), raw)
		}
	default:
		_ = r.Bool() // which says what is wrong
	}
}

// knownLevel reports whether every model that takes levels takes this one.
func knownLevel(s string) bool {
	switch s {
	case "low", "medium", "high", "max":
		return true
	default:
		return false
	}
}
