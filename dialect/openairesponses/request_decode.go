package openairesponses

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// errNotObject reports that the data of a stream event is not a JSON object.
var errNotObject = wirekit.ErrNotObject

// encryptedReasoning is the value of include that requests encrypted reasoning.
const encryptedReasoning = wirekit.IncludeReasoning

// DecodeRequest implements [dialect.Codec]. The request retains slices of body, which must not
// change afterwards.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	d := requestDecoder{
		itemDecoder: newItemDecoder(c, o, false),
		req:         new(dragoman.Request),
	}
	err := wirekit.DecodeRequest(name, messagesAt, body, o, literal.With(settings.Known()), d.req, d.rep, d.read)
	return d.req, *d.rep, err
}

// literal lists the fields whose raw JSON is kept.
var literal = jsonwire.Literal{Fields: []string{"arguments", "parameters", "schema"}}

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
	d.link()
	return true, err
}

type requestDecoder struct {
	itemDecoder
	r    *jsonwire.Reader
	req  *dragoman.Request
	raws [][]byte // raw JSON of the messages; nil for a message that is not an item
	err  error
}

// keep stores a field that has no canonical form.
func (d *requestDecoder) keep(key string, raw []byte) {
	extra.Add(&d.req.Extra, name, "", []byte(key), raw)
}

func ptr[T any](v T) *T { return &v }

func (d *requestDecoder) input() {
	r := d.r
	if r.Kind() == '"' {
		d.req.Messages = []dragoman.Message{{
			Role: dragoman.RoleUser, Parts: []dragoman.Part{&dragoman.Text{Text: r.String()}}, Origin: d.origin,
		}}
		d.raws = [][]byte{nil}
		return
	}
	n := 0
	for i := range r.Array() {
		raw := r.Raw()
		if r.Err() != nil {
			return
		}
		n++
		at := extra.Elem("/input", i)
		m, err := d.item(raw, at, i)
		if err == nil {
			err = wirekit.Mistyped(raw, m.Parts)
		}
		if err == nil && d.nonStringID {
			err = wirekit.CheckNotStrings(raw, "call_id", "name")
		}
		if err != nil {
			d.err = jsonwire.PlaceAt(at.String(), r.Offset()-int64(len(raw)), err)
			return
		}
		d.req.Messages = append(d.req.Messages, m)
		d.raws = append(d.raws, raw)
	}
	if n == 0 && r.Err() == nil {
		d.keep("input", []byte("[]"))
	}
}

// link sets the tool of each result, resolves what depends on the list of tools, and attaches the
// sidecars.
func (d *requestDecoder) link() {
	type tool struct{ namespace, name string }
	declared := make(map[tool]bool, len(d.req.Tools))
	for i := range d.req.Tools {
		declared[tool{d.req.Tools[i].Namespace, d.req.Tools[i].Name}] = true
	}
	called := map[string]tool{}
	for i := range d.req.Messages {
		m := &d.req.Messages[i]
		for _, p := range m.Parts {
			switch p := p.(type) {
			case *dragoman.ToolCall:
				if !declared[tool{p.Namespace, p.Name}] && declared[tool{"", p.Name}] {
					unqualify(p)
				}
				called[p.ID] = tool{p.Namespace, p.Name}
			case *dragoman.ToolResult:
				if t, ok := called[p.CallID]; ok && p.Name == "" {
					p.Namespace, p.Name = t.namespace, t.name
				}
			}
		}
		if d.raws[i] != nil {
			d.withNative(m, d.raws[i])
		}
	}
}

func (d *requestDecoder) tools() {
	n := 0
	for i := range d.r.Array() {
		raw := d.r.Raw()
		if d.r.Err() != nil {
			return
		}
		n++
		at := extra.Elem("/tools", i)
		specs, err := d.reg.ReadTool(raw, at, d.rep)
		format := toolCodec{}.ToolFormat(raw)
		if err != nil && format == toolformat.ResponsesNamespace {
			// It contains something unknown: treat it as a hosted tool and keep it unchanged.
			specs, err = []dragoman.ToolSpec{{
				Kind: codes.ToolHosted, Name: "namespace",
				Source: &dragoman.ToolSource{Format: format, JSON: raw},
			}}, nil
		}
		if err != nil {
			d.err = jsonwire.PlaceAt(at.String(), d.r.Offset()-int64(len(raw)), err)
			return
		}
		d.req.Tools = append(d.req.Tools, specs...)
	}
	if n == 0 && d.r.Err() == nil {
		d.keep("tools", []byte("[]"))
	}
}

func (d *requestDecoder) format() { d.req.Output = readFormat(d.r) }

func readFormat(r *jsonwire.Reader) *dragoman.OutputFormat {
	f := &dragoman.OutputFormat{Dialect: name}
	for key := range r.Object() {
		switch k := string(key); {
		case r.Kind() == 'n':
			extra.Add(&f.Extra, name, "", key, r.Raw())
		case k == "type":
			if f.Kind = r.String(); f.Kind == "json_object" {
				f.Kind = codes.OutputJSON
			}
		case k == "name":
			f.Name = r.String()
		case k == "description":
			f.Description = r.String()
		case k == "schema":
			f.Schema = r.Raw()
		case k == "strict" && r.Kind() == 't':
			f.Strict = codes.StrictOn
			r.Skip()
		default:
			extra.Add(&f.Extra, name, "", key, r.Raw())
		}
	}
	return f
}

func (d *requestDecoder) settings() *dragoman.ReasoningSettings {
	if d.req.Reasoning == nil {
		d.req.Reasoning = new(dragoman.ReasoningSettings)
	}
	return d.req.Reasoning
}

func (d *requestDecoder) reasoningSettings() {
	r, empty := d.r, true
	for key := range r.Object() {
		s := d.settings()
		empty = false
		switch k := string(key); {
		case k == "effort" && r.Kind() == '"':
			s.Effort = r.String()
		case k == "summary" && r.Kind() == '"':
			s.Summary = r.String()
		default:
			extra.Add(&s.Extra, name, "", key, r.Raw())
		}
	}
	if empty && r.Err() == nil {
		d.keep("reasoning", []byte("{}"))
	}
}

// include reads the include list. A list with more than encrypted reasoning is stored whole, to
// keep its order.
func (d *requestDecoder) include() {
	raw := d.r.Raw()
	if d.r.Err() != nil {
		return
	}
	r := jsonwire.NewReader(raw)
	n, encrypted := 0, 0
	for range r.Array() {
		n++
		if r.Kind() != '"' {
			r.Skip()
		} else if r.String() == encryptedReasoning {
			encrypted++
		}
	}
	if r.Err() != nil {
		d.err = jsonwire.PlaceAt("/include", d.r.Offset()-int64(len(raw)), r.Err())
		return
	}
	if encrypted > 0 {
		d.settings().Encrypted = ptr(true)
	}
	if n != 1 || encrypted != 1 {
		d.keep("include", raw)
	}
}
