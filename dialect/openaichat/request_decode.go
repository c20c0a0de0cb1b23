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

// DecodeRequest implements [dialect.Codec]. The request keeps slices of body,
// which must not change afterwards.
func (c Codec) DecodeRequest(body []byte, o dialect.DecodeOptions) (*dragoman.Request, dragoman.Report, error) {
	d := requestDecoder{
		messageDecoder: messageDecoder{reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o, origin: wirekit.Origin(name, o), rep: new(dragoman.Report), request: true},
		req:            new(dragoman.Request),
	}
	err := wirekit.DecodeRequest(name, messagesAt, body, o, literal.With(settings.Known()), d.req, d.rep, d.read)
	return d.req, *d.rep, err
}

// literal are the members that are read as they stand.
var literal = jsonwire.Literal{Members: []string{"arguments", "parameters", "schema"}}

func (d *requestDecoder) read(r *jsonwire.Reader) (sure bool, err error) {
	d.r = r
	for key := range r.Object() {
		settings.Decode(d, r, d.req, key)
	}
	if d.functions && !d.newer {
		extra.Add(&d.req.Extra, name, "", []byte("functions"), []byte(notedFunctions))
	}
	if err = r.End(); err == nil {
		err = d.lists.Err
	}
	return !d.corrected, err
}

// errNotObject says that an event of a stream is none.
var errNotObject = wirekit.ErrNotObject

type requestDecoder struct {
	messageDecoder
	r     *jsonwire.Reader
	req   *dragoman.Request
	lists wirekit.RequestLists
	// functions and newer say that tools were declared as functions, and as tools.
	functions, newer bool
	// corrected: the body has something that other servers refuse, so it is
	// written anew.
	corrected bool
}

// notedFunctions is what stands in the extras of a request for its functions, which are
// its tools.
const notedFunctions = "[]"

// isNotedFunctions reports whether a kept value only notes that the tools were functions.
func isNotedFunctions(_ *requestEncoder, kept []byte) bool { return string(kept) == notedFunctions }

// legacyFunctions reports whether a request was decoded from one of Chat that declares its
// tools as "functions", and none as "tools". Its client reads calls only in the form that
// [dialect.EncodeOptions].LegacyFunctions asks for.
func legacyFunctions(req *dragoman.Request) bool {
	if req == nil {
		return false
	}
	noted, _ := extra.Get(req.Extra, name, "/functions")
	return string(noted) == notedFunctions
}

// keep puts a member that is not modelled, or not in this spelling, aside.
func (d *requestDecoder) keep(key string) {
	extra.Add(&d.req.Extra, name, "", []byte(key), d.r.Raw())
}

// note remembers which of two spellings a member had, so that it goes back in
// the same one.
func (d *requestDecoder) note(key string) {
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

// legacyTool makes a tool of a legacy function, with a } after it.
const legacyTool = `{"type":"function","function":`

// legacyFunctions reads the older list of functions as tools.
func (d *requestDecoder) legacyFunctions() {
	d.functions = true
	d.lists.Each(d.r, "/functions", func(raw []byte, at extra.Path, _ int) error {
		tool := append(append([]byte(legacyTool), raw...), '}')
		specs, err := d.reg.ReadTool(tool, at, d.rep)
		var in *jsonwire.Error
		if errors.As(err, &in) { // its place without what we put around it
			err = &jsonwire.Error{Pointer: strings.TrimPrefix(in.Pointer, "/function"), Offset: in.Offset - int64(len(legacyTool)), Err: in.Err}
		}
		d.req.Tools = append(d.req.Tools, specs...)
		return err
	})
	d.rep.Add(dragoman.Moved, dragoman.Info, "/functions", "legacy functions read as tools")
}

func (d *requestDecoder) toolChoice() {
	if d.req.ToolChoice != nil {
		d.rep.Add(dragoman.Dropped, dragoman.Warn, "/function_call", "there is a tool_choice too, which counts")
	}
	d.req.ToolChoice = d.choice("tool_choice")
}

// functionCall reads the older form of a choice.
func (d *requestDecoder) functionCall() {
	if d.req.ToolChoice != nil {
		d.r.Skip()
		d.rep.Add(dragoman.Dropped, dragoman.Warn, "/function_call", "there is a tool_choice too, which counts")
		return
	}
	d.req.ToolChoice = d.choice("function_call")
}

func (d *requestDecoder) choice(member string) *dragoman.ToolChoice {
	r := d.r
	if r.Kind() == '"' {
		switch s := r.String(); s {
		case "auto":
			return &dragoman.ToolChoice{Mode: dragoman.ChoiceAuto}
		case "none":
			return &dragoman.ToolChoice{Mode: dragoman.ChoiceNone}
		case "required":
			return &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired}
		case "any": // Mistral's word
			return &dragoman.ToolChoice{Mode: dragoman.ChoiceRequired, Native: nativeChoice([]byte(`"any"`))}
		default:
			return &dragoman.ToolChoice{Mode: codes.ChoiceOpaque, Native: nativeChoice(quote(s))}
		}
	}
	raw := r.Raw()
	in := jsonwire.NewReader(raw)
	c := &dragoman.ToolChoice{}
	// implied is the type of a choice that names none, as Hugging Face clients
	// send it.
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
		case "name": // legacy function_call, and some flat senders
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
		typ, d.corrected = implied, d.corrected || member == "tool_choice"
	}
	switch {
	case in.Err() != nil:
		d.lists.Fail(d.r, extra.At("/"+member), raw, in.Err())
	case typ == "allowed_tools":
		switch c.Mode {
		case "":
			c.Mode = dragoman.ChoiceAuto
		case dragoman.ChoiceAuto, dragoman.ChoiceRequired, dragoman.ChoiceNone:
		default: // a mode that only this wire may know
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

func memberName(r *jsonwire.Reader) string {
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

// refName reads the name inside member of a reference to a tool, and keeps the
// rest of it in e.
func refName(r *jsonwire.Reader, member string, e **dragoman.Extra) string {
	n := ""
	for key := range r.Object() {
		if string(key) == "name" {
			n = r.String()
		} else {
			extra.Add(e, name, "/"+member, key, r.Raw())
		}
	}
	return n
}

// toolRef reads one entry of a list of allowed tools. One that names a tool is a
// reference to it, whatever stands beside the name; any other is kept as it is.
func (d *requestDecoder) toolRef(raw []byte) dragoman.ToolRef {
	r := jsonwire.NewReader(raw)
	ref := dragoman.ToolRef{}
	for key := range r.Object() {
		switch string(key) {
		case "function":
			ref.Name = refName(r, "function", &ref.Extra)
		case "custom":
			ref.Kind, ref.Name = codes.ToolFreeform, refName(r, "custom", &ref.Extra)
		case "type": // which of the two; one that is neither names nothing
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
