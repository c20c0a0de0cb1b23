package ollama

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// DecodeRequest implements [dialect.Codec]. The request retains slices of body, which must not
// change afterwards.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	d := requestDecoder{
		messageDecoder: newMessageDecoder(c, o),
		// Requests ask for a stream by default.
		req: &dragoman.Request{Stream: true},
	}
	err := wirekit.DecodeRequest(name, messagesAt, body, o, literal.With(settings.Known()), d.req, d.rep, d.read)
	return d.req, *d.rep, err
}

// literal lists the fields whose raw JSON is kept.
var literal = jsonwire.Literal{Fields: []string{"arguments", "parameters", "format"}}

func (d *requestDecoder) read(r *jsonwire.Reader) (sure bool, err error) {
	d.r = r
	for key := range r.Object() {
		settings.Decode(d, r, d.req, key)
	}
	if err = r.End(); err == nil {
		err = d.lists.Err
	}
	// The last line of a stream always contains usage.
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

// format reads the output format: any JSON, or JSON that follows a schema, which the server
// enforces in the sampler. Some clients write an empty string for no format.
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

// think reads whether to think, or how much.
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
		} else { // a level that only some models know
			extra.Add(&req.Extra, name, "", []byte("think"), raw)
		}
	default:
		_ = r.Bool() // reports the error
	}
}

// knownLevel reports whether every model with thinking levels accepts this one.
func knownLevel(s string) bool {
	switch s {
	case "low", "medium", "high", "max":
		return true
	default:
		return false
	}
}
