package openaichat

import (
	"errors"
	"strings"

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
		messageDecoder: messageDecoder{reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o, origin: wirekit.Origin(name, o), rep: new(dragoman.Report), request: true},
		req:            new(dragoman.Request),
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
	}
	if d.functions && !d.newer {
		extra.Add(&d.req.Extra, name, "", []byte("functions"), []byte(functionsMarker))
	}
	if err = r.End(); err == nil {
		err = d.lists.Err
	}
	return !d.corrected, err
}

// errNotObject reports that the data of a stream event is not a JSON object.
var errNotObject = wirekit.ErrNotObject

type requestDecoder struct {
	messageDecoder
	r     *jsonwire.Reader
	req   *dragoman.Request
	lists wirekit.RequestLists
	// functions is set if the request has functions, newer if it has tools.
	functions, newer bool
	// corrected is set if the body has something that other servers refuse. Such a body is
	// re-encoded.
	corrected bool
}

// functionsMarker is stored in the extras of a request whose tools were declared as functions.
const functionsMarker = "[]"

// isFunctionsMarker reports whether a stored value only marks that the tools were declared as
// functions.
func isFunctionsMarker(_ *requestEncoder, kept []byte) bool { return string(kept) == functionsMarker }

// legacyFunctions reports whether a request was decoded from a Chat request with "functions" and
// without "tools". Its client only reads calls in the form of
// [dialect.EncodeOptions].LegacyFunctions.
func legacyFunctions(req *dragoman.Request) bool {
	if req == nil {
		return false
	}
	marker, _ := extra.Get(req.Extra, name, "/functions")
	return string(marker) == functionsMarker
}

// keep stores a field that has no canonical form.
func (d *requestDecoder) keep(key string) {
	extra.Add(&d.req.Extra, name, "", []byte(key), d.r.Raw())
}

// recordName records which of two field names the client used, so that the same one is written
// back.
func (d *requestDecoder) recordName(key string) {
	extra.Add(&d.req.Extra, name, "", []byte(key), []byte("null"))
}

func (d *requestDecoder) messages() {
	d.lists.Each(d.r, "/messages", func(raw []byte, at extra.Path, i int) error {
		m, err := d.message(raw, at, i)
		d.corrected = d.corrected || d.trimmed
		if err != nil {
			return err
		}
		d.req.Messages = append(d.req.Messages, m)
		return wirekit.Mistyped(raw, m.Parts)
	})
}

func ptr[T any](v T) *T { return &v }

func (d *requestDecoder) tools() {
	d.newer = true
	d.lists.Tools(d.r, d.reg, name, d.req, d.rep)
}

// legacyTool wraps a legacy function as a tool; a } follows the function.
const legacyTool = `{"type":"function","function":`

// legacyFunctions reads the older list of functions as tools.
func (d *requestDecoder) legacyFunctions() {
	d.functions = true
	d.lists.Each(d.r, "/functions", func(raw []byte, at extra.Path, _ int) error {
		tool := append(append([]byte(legacyTool), raw...), '}')
		specs, err := d.reg.ReadTool(tool, at, d.rep)
		var in *jsonwire.Error
		if errors.As(err, &in) { // the position without the wrapper
			err = &jsonwire.Error{Pointer: strings.TrimPrefix(in.Pointer, "/function"), Offset: in.Offset - int64(len(legacyTool)), Err: in.Err}
		}
		d.req.Tools = append(d.req.Tools, specs...)
		return err
	})
	d.rep.Add(dragoman.Moved, dragoman.Info, "/functions", "legacy functions are read as tools")
}

func (d *requestDecoder) toolChoice() {
	if d.req.ToolChoice != nil {
		d.rep.Add(dragoman.Dropped, dragoman.Warn, "/function_call", "the request also has a tool_choice, which is used")
	}
	d.req.ToolChoice = d.choice("tool_choice")
}

// functionCall reads the older form of a tool choice.
func (d *requestDecoder) functionCall() {
	if d.req.ToolChoice != nil {
		d.r.Skip()
		d.rep.Add(dragoman.Dropped, dragoman.Warn, "/function_call", "the request also has a tool_choice, which is used")
		return
	}
	d.req.ToolChoice = d.choice("function_call")
}

func (d *requestDecoder) choice(field string) *dragoman.ToolChoice {
	r := d.r
	if r.Kind() == '"' {
		switch s := r.String(); s {
		case "auto":
			return &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}
		case "none":
			return &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}
		case "required":
			return &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
		case "any": // used by Mistral
			return &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Native: nativeChoice([]byte(`"any"`))}
		default:
			return &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: nativeChoice(quote(s))}
		}
	}
	raw := r.Raw()
	in := jsonwire.NewReader(raw)
	c := &dragoman.ToolChoice{}
	// implied is the type of a choice without a type, as Hugging Face clients send it.
	typ, implied := "", ""
	for key := range in.Object() {
		switch string(key) {
		case "type":
			typ = in.String()
		case "function", "custom":
			ref := dragoman.ToolRef{}
			if string(key) == "custom" {
				ref.Kind = codes.ToolFreeform
			}
			implied = string(key)
			ref.Name = refName(in, string(key), &ref.Extra)
			ref.Namespace, ref.Name, _ = d.reg.PublicName("", ref.Name)
			c.Tools = append(c.Tools, ref)
		case "name": // legacy function_call, and clients with a flat form
			c.Tools = append(c.Tools, dragoman.ToolRef{Name: in.String()})
			implied = "function"
		case "allowed_tools":
			implied = "allowed_tools"
			for key := range in.Object() {
				switch string(key) {
				case "mode":
					c.Mode = in.String()
				case "tools":
					for range in.Array() {
						c.Tools = append(c.Tools, d.toolRef(in.Raw()))
					}
				default:
					extra.Add(&c.Extra, name, "/allowed_tools", key, in.Raw())
				}
			}
		default:
			extra.Add(&c.Extra, name, "", key, in.Raw())
		}
	}
	if typ == "" {
		typ, d.corrected = implied, d.corrected || field == "tool_choice"
	}
	switch {
	case in.Err() != nil:
		d.lists.Fail(d.r, extra.At("/"+field), raw, in.Err())
	case typ == "allowed_tools":
		switch c.Mode {
		case "":
			c.Mode = dragoman.ChoiceAuto
		case dragoman.ChoiceAuto, dragoman.ChoiceRequired, dragoman.ChoiceNone:
		default: // an unknown mode
			return &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: nativeChoice(raw)}
		}
	case (typ == "function" || typ == "custom") && len(c.Tools) == 1:
		c.Mode = dragoman.ChoiceTool
	default:
		return &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: nativeChoice(raw)}
	}
	return c
}

func nativeChoice(raw []byte) *dragoman.Native {
	return &dragoman.Native{Format: dragoman.Format(name), JSON: raw}
}

func quote(s string) []byte {
	var w jsonwire.Writer
	w.String(s)
	return w.Buf
}

func nameField(r *jsonwire.Reader) string {
	n := ""
	for key := range r.Object() {
		if string(key) == "name" {
			n = r.String()
		} else {
			r.Skip()
		}
	}
	return n
}

// refName reads the name of a tool reference inside field, and stores its other fields in e.
func refName(r *jsonwire.Reader, field string, e **dragoman.Extra) string {
	n := ""
	for key := range r.Object() {
		if string(key) == "name" {
			n = r.String()
		} else {
			extra.Add(e, name, "/"+field, key, r.Raw())
		}
	}
	return n
}

// toolRef reads one entry of a list of allowed tools. An entry with a name is a reference to a
// tool; any other entry is kept unchanged.
func (d *requestDecoder) toolRef(raw []byte) dragoman.ToolRef {
	r := jsonwire.NewReader(raw)
	ref := dragoman.ToolRef{}
	for key := range r.Object() {
		switch string(key) {
		case "function":
			ref.Name = refName(r, "function", &ref.Extra)
		case "custom":
			ref.Kind, ref.Name = codes.ToolFreeform, refName(r, "custom", &ref.Extra)
		case "type": // function or custom; other types have no name
			r.Skip()
		default:
			extra.Add(&ref.Extra, name, "", key, r.Raw())
		}
	}
	if ref.Name == "" {
		return dragoman.ToolRef{Kind: ref.Kind, Native: nativeChoice(raw)}
	}
	ref.Namespace, ref.Name, _ = d.reg.PublicName("", ref.Name)
	return ref
}

func (d *requestDecoder) output() {
	f := &dragoman.OutputFormat{Dialect: name}
	d.req.Output = f
	for key := range d.r.Object() {
		switch string(key) {
		case "type":
			switch t := d.r.String(); t {
			case "json_object":
				f.Kind = codes.OutputJSON
			default:
				f.Kind = t
			}
		case "json_schema":
			for key := range d.r.Object() {
				switch string(key) {
				case "name":
					f.Name = d.r.String()
				case "description":
					f.Description = d.r.String()
				case "schema":
					f.Schema = d.r.Raw()
				case "strict":
					switch d.r.Kind() {
					case 't':
						f.Strict = codes.StrictOn
						d.r.Skip()
					default:
						extra.Add(&f.Extra, name, "/json_schema", key, d.r.Raw())
					}
				default:
					extra.Add(&f.Extra, name, "/json_schema", key, d.r.Raw())
				}
			}
		default:
			extra.Add(&f.Extra, name, "", key, d.r.Raw())
		}
	}
}
