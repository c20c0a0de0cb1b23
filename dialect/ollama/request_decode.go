package ollama

import (
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
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
		err = d.err
	}
	// The last line of a stream always tells what it cost.
	d.req.StreamUsage = d.req.Stream
	return true, err
}

type requestDecoder struct {
	messageDecoder
	r   *jsonwire.Reader
	req *dragoman.Request
	err error
}

// fail remembers the first error in a value that was just read.
func (d *requestDecoder) fail(at extra.Path, raw []byte, err error) {
	if d.err == nil {
		d.err = placeAt(at, d.r.Offset()-int64(len(raw)), err)
	}
}

func (d *requestDecoder) messages() {
	r := d.r
	for i := range r.Array() {
		raw := r.Raw()
		if r.Err() != nil || d.err != nil {
			continue // what follows a bad element is only checked as JSON
		}
		at := extra.Elem("/messages", i)
		m, err := d.message(raw, at, i)
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

// format reads what an answer must look like: any JSON, or JSON of a schema, to
// which the sampler is then bound. An empty string is what some clients write
// for neither.
func (d *requestDecoder) format() {
	raw := d.r.Raw()
	switch {
	case string(raw) == `"json"`:
		d.req.Output = &dragoman.OutputFormat{Kind: dragoman.OutputJSON, Dialect: name}
	case len(raw) > 0 && raw[0] == '{':
		d.req.Output = &dragoman.OutputFormat{Kind: dragoman.OutputSchema, Schema: raw, Strict: dragoman.StrictAuto, Dialect: name}
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
		req.Reasoning = &dragoman.ReasoningSettings{Mode: dragoman.ReasoningAdaptive}
	case 'f':
		r.Skip()
		req.Reasoning = &dragoman.ReasoningSettings{Mode: dragoman.ReasoningOff}
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

// placeAt puts an error of a value below its place in the document; start is
// the value's first byte, -1 where that is unknown.
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
