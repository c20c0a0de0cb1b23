package ollama

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The tool objects of Ollama look like those of OpenAI Chat, with four differences: there are no
// freeform tools and no strict flag, arguments are an object, a call may have no id, and a result
// is a string with a separate list of bare base64 images.

// toolCodec reads and writes the tool objects of the native Ollama API.
type toolCodec struct{}

var toolTraits = toolwire.Traits{
	Dialect:  dialectname.Ollama,
	Function: toolformat.OllamaFunction, Call: toolformat.OllamaToolCall, Result: toolformat.OllamaResult,
	NoHosted:   true,
	CallFields: []toolwire.Fields{{Path: "/", Names: callFields}, {Path: "/function/", Names: functionFields}},
}

var (
	_ toolwire.Recognizer = toolCodec{}
	_ toolwire.Shaper     = toolCodec{}
)

// toolCodecs are the codecs of a registry that the dialect composes itself.
var toolCodecs = []toolwire.Codec{toolCodec{}}

// ToolCodec returns the codec of the dialect's tool objects, for a registry.
func (Codec) ToolCodec() toolwire.Codec { return toolCodec{} }

func (toolCodec) Traits() *toolwire.Traits { return &toolTraits }

// toolTypes maps the type of a definition to its format.
var toolTypes = map[string]dragoman.Format{"": toolformat.OllamaFunction, "function": toolformat.OllamaFunction}

func (toolCodec) ToolFormat(obj json.RawMessage) dragoman.Format {
	return toolTraits.FormatByType(jsonwire.Value{Raw: obj}, toolTypes)
}

// CallFormat returns the only call format: calls have no type (quirk B35).
func (toolCodec) CallFormat(jsonwire.Value) dragoman.Format { return toolformat.OllamaToolCall }

// RecognizeCall distinguishes calls from those of OpenAI Chat: the arguments are an object, and
// there is no type. Newer servers add an id.
func (toolCodec) RecognizeCall(o *toolwire.Outline) dragoman.Format {
	if o.Kinds["function"] == '{' && o.Type == "" && o.FunctionArguments == '{' {
		return toolformat.OllamaToolCall
	}
	return ""
}

func (toolCodec) RecognizeInner(o *toolwire.Outline) dragoman.Format {
	if o.Kinds["name"] == '"' && o.Kinds["arguments"] == '{' && !o.Has("type") && !o.Has("function") && o.Kinds["toolUseId"] != '"' {
		return toolformat.OllamaToolCall
	}
	return ""
}

func (c toolCodec) CallObject(_ dragoman.Format, obj json.RawMessage) toolwire.CallShape {
	return toolwire.WithOuter(c, "function", obj)
}

func (toolCodec) ResultObject(obj json.RawMessage) (json.RawMessage, *dragoman.Extra) {
	return obj, nil
}

// functionTool is the format of every tool.
var functionTool = toolwire.FunctionTool{Dialect: name}

func (toolCodec) ReadTool(_ toolwire.View, format dragoman.Format, obj json.RawMessage, _ extra.Path, _ *dragoman.Report) ([]dragoman.ToolSpec, error) {
	if format != toolformat.OllamaFunction {
		return toolwire.DecodeTool(format, obj, toolwire.ReadHosted)
	}
	return toolwire.DecodeTool(format, obj, functionTool.Read)
}

func (toolCodec) ReadCall(rd *jsonwire.Reader, c *dragoman.ToolCall) toolwire.CallReading {
	readCall(rd, c)
	return toolwire.CallReading{}
}

func (toolCodec) WriteTool(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	if s.Strict == codes.StrictOn {
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/strict", "Ollama has no strict tools")
	}
	return functionTool.Write(v, toolCodec{}, w, s, name, at, rep)
}

// The fields that determine what a call runs.
var (
	callFields     = []string{"id", "type", "function"}
	functionFields = []string{"name", "arguments"}
)

func readCall(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	cr := &toolwire.CallReader{Reader: rd, Call: c, Dialect: dialectname.Ollama}
	var seen uint
	for key := range rd.Object() {
		switch cr.Field(callFields, &seen, "", key) {
		case "id":
			c.ID = toolwire.ReadID(rd)
		case "type": // clients of other APIs write one (quirk B35)
			extra.Add(&c.Extra, cr.Dialect, "", []byte("type"), rd.Raw())
		case "function":
			if cr.Object("", "function") {
				cr.Payload("/function", functionFields, "arguments")
			}
		default:
			cr.Other("", key)
		}
	}
}

func (toolCodec) WriteCall(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.Ollama
	w.BeginObject()
	w.StringFieldIf("id", id)
	if !toolwire.HasField(c.Extra, d, "/function") {
		w.Key("function")
		w.BeginObject()
		if !toolwire.HasField(c.Extra, d, "/function/name") {
			w.StringField("name", name)
		}
		w.RawField("arguments", v.ArgumentObject(c, at, rep))
		extra.Write(w, c.Extra, d, "/function")
		w.EndObject()
	}
	extra.Write(w, c.Extra, d, "")
	w.EndObject()
}

func (toolCodec) ReadResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	var media []dragoman.Part
	for key := range rd.Object() {
		switch string(key) {
		case "role":
			rd.Skip()
		case "content":
			if rd.Kind() == 'n' {
				rd.Skip()
				continue
			}
			res.Content = []dragoman.Part{&dragoman.Text{Text: rd.String()}}
		case "images":
			for range rd.Array() {
				media = append(media, readImage(rd.String()))
			}
		case "tool_name":
			res.Name = rd.String()
		case "tool_call_id":
			res.CallID = toolwire.ReadID(rd)
		default:
			extra.Add(&res.Extra, dialectname.Ollama, "", key, rd.Raw())
		}
	}
	if len(media) > 0 && res.Text() == "" {
		res.Content = nil
	}
	res.Content = append(res.Content, media...)
}

func (toolCodec) WriteResult(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) []dragoman.Part {
	const d = dialectname.Ollama
	w.BeginObject()
	w.StringField("role", "tool")
	if native := toolwire.NativeContent(res, toolformat.OllamaResult); len(native) > 0 && native[0] == '"' {
		w.RawField("content", native)
	} else {
		texts, _ := toolwire.TextParts(res)
		toolwire.ReportErrorFlag(res, at, rep)
		reportTextPartLosses(res.Content, at, rep)
		content := messageContent{texts: texts}
		for i, p := range res.Content {
			if k := p.Kind(); k != codes.KindText && k != codes.KindData {
				content.add(v, p, at.Elem("content", i), rep)
			}
		}
		content.write(w, blankLine, at, rep)
	}
	if res.Name != "" {
		w.StringField("tool_name", v.WireName(res.Namespace, res.Name))
	}
	w.StringFieldIf("tool_call_id", id)
	if res.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a result: the target caches automatically")
	}
	extra.Write(w, res.Extra, d, "")
	w.EndObject()
	return nil
}

// reportTextPartLosses reports the losses of the text parts of a result.
func reportTextPartLosses(parts []dragoman.Part, at extra.Path, rep *dragoman.Report) {
	for i, p := range parts {
		if t, ok := p.(*dragoman.Text); ok {
			reportTextLosses(t, at.Elem("content", i), rep)
		}
	}
}
