package cohere

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// toolCodec reads and writes the tool objects of the Cohere chat API.
// Definitions and calls resemble those of OpenAI Chat. There are no freeform
// tools, and the strict flag belongs to the request. A result is a string, or a
// list of texts and documents.
type toolCodec struct{}

// The fields that decide what a call runs.
var (
	callFields     = []string{"id", "type", "function"}
	functionFields = []string{"name", "arguments"}
)

var toolTraits = toolwire.Traits{
	Dialect:     name,
	RequiresIDs: true,
	Function:    formatFunction, Call: formatCall, Result: formatResult,
	NoHosted:      true,
	CallFields:    []toolwire.Fields{{Path: "/", Names: callFields}, {Path: "/function/", Names: functionFields}},
	ArgumentsPath: []string{"function", "arguments"},
}

// toolCodecs lists the codecs of a registry that the dialect creates itself.
var toolCodecs = []toolwire.Codec{toolCodec{}}

// ToolCodec returns the codec of the dialect's tool objects, for use in a
// registry.
func (Codec) ToolCodec() toolwire.Codec { return toolCodec{} }

func (toolCodec) Traits() *toolwire.Traits { return &toolTraits }

func (toolCodec) ToolFormat(obj json.RawMessage) dragoman.Format {
	if typ := toolwire.TypeOf(obj); typ != "function" && typ != "" {
		return toolTraits.HostedFormat(typ)
	}
	return formatFunction
}

func (toolCodec) CallFormat(obj jsonwire.Value) dragoman.Format {
	if typ := toolwire.TypeOfValue(obj); typ != "function" && typ != "" {
		return toolTraits.HostedFormat(typ)
	}
	return formatCall
}

// functionTool reads and writes tools.
var functionTool = toolwire.FunctionTool{Dialect: name}

func (toolCodec) ReadTool(_ toolwire.View, format dragoman.Format, obj json.RawMessage, _ extra.Path, _ *dragoman.Report) ([]dragoman.ToolSpec, error) {
	if format != formatFunction {
		return toolwire.DecodeTool(format, obj, toolwire.ReadHosted)
	}
	return toolwire.DecodeTool(format, obj, functionTool.Read)
}

func (toolCodec) WriteTool(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, s *dragoman.ToolSpec, wireName string, at extra.Path, rep *dragoman.Report) bool {
	return functionTool.Write(v, toolCodec{}, w, s, wireName, at, rep)
}

func (toolCodec) ReadCall(rd *jsonwire.Reader, c *dragoman.ToolCall) toolwire.CallReading {
	cr := &toolwire.CallReader{Reader: rd, Call: c, Dialect: name}
	var seen uint
	for key := range rd.Object() {
		switch cr.Field(callFields, &seen, "", key) {
		case "id":
			c.ID = toolwire.ReadID(rd)
		case "type":
			_ = cr.Text("", "type")
		case "function":
			if cr.Object("", "function") {
				cr.Payload("/function", functionFields, "arguments")
			}
		default:
			cr.Other("", key)
		}
	}
	return toolwire.CallReading{}
}

func (toolCodec) WriteCall(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, c *dragoman.ToolCall, id, wireName string, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	w.StringField("id", id)
	toolwire.WriteUnlessKept(w, c.Extra, name, "", "type", "function")
	if !toolwire.HasField(c.Extra, name, "/function") {
		w.Key("function")
		w.BeginObject()
		toolwire.WriteUnlessKept(w, c.Extra, name, "/function", "name", wireName)
		w.StringField("arguments", v.ArgumentText(c, at, rep))
		extra.Write(w, c.Extra, name, "/function")
		w.EndObject()
	}
	extra.Write(w, c.Extra, name, "")
	w.EndObject()
}

func (toolCodec) ReadResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	for key := range rd.Object() {
		switch string(key) {
		case "role":
			rd.Skip()
		case "tool_call_id":
			res.CallID = toolwire.ReadID(rd)
		case "content":
			res.Content = toolwire.ReadContent(rd, nil, readPart)
		default:
			extra.Add(&res.Extra, name, "", key, rd.Raw())
		}
	}
}

func (toolCodec) WriteResult(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part) {
	w.BeginObject()
	w.StringField("role", "tool")
	w.StringField("tool_call_id", id)
	w.Key("content")
	if native := toolwire.NativeContent(res, formatResult); native != nil {
		w.Raw(native)
	} else {
		spill = writeResultContent(v, w, res, at, rep)
	}
	if res.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a result: the target caches automatically")
	}
	extra.Write(w, res.Extra, name, "")
	w.EndObject()
	return spill
}

// writeResultContent writes a string for a single text, otherwise a list of
// texts and documents. It returns the media, which results cannot contain, and
// writes a note that refers to it.
func writeResultContent(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part) {
	texts, _ := toolwire.TextParts(res)
	toolwire.ReportErrorFlag(res, at, rep)
	var parts []placed
	for i, p := range res.Content {
		here := at.Elem("content", i)
		switch p := p.(type) {
		case *dragoman.Text:
			t := *p
			t.Text, texts = texts[0], texts[1:]
			parts = append(parts, placed{&t, here})
		case *dragoman.Data:
			if asText := texts[0]; !isDocument(p.JSON) || asText != string(p.JSON) {
				parts = append(parts, placed{&dragoman.Text{Text: asText}, here})
			} else {
				parts = append(parts, placed{p, here})
			}
			texts = texts[1:]
		case *dragoman.Media:
			spill = append(spill, p)
		case *dragoman.Opaque:
			if p.Dialect == name {
				parts = append(parts, placed{p, here})
				continue
			}
			rep.Addf(dragoman.Dropped, dragoman.Serious, here.String(), "%s of dialect %s cannot be expressed in a tool message", extra.TypedNoun(p.Type, "block"), p.Dialect)
		default:
			rep.Addf(dragoman.Dropped, dragoman.Serious, here.String(), "%s part cannot be expressed in a tool message", p.Kind())
		}
	}
	if len(texts) > 0 { // an error without content
		parts = append(parts, placed{&dragoman.Text{Text: texts[0]}, at})
	}
	if len(spill) > 0 {
		parts = append(parts, placed{&dragoman.Text{Text: "(see the attached media below)"}, at})
	}
	if len(parts) == 0 {
		w.String("") // the field is required
		return spill
	}
	if t, ok := parts[0].part.(*dragoman.Text); ok && len(parts) == 1 && t.Extra.For(name) == nil {
		reportText(t, parts[0].at, rep)
		w.String(t.Text)
		return spill
	}
	w.BeginArray()
	for _, p := range parts {
		writePart(v, w, p.part, p.at, rep)
	}
	w.EndArray()
	return spill
}
