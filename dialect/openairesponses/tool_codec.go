package openairesponses

import (
	"encoding/json"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// toolCodec reads and writes the tool objects of the Responses API.
type toolCodec struct{}

// callFields are the fields that determine what a call runs.
var callFields = []string{"type", "id", "call_id", "name", "namespace", "arguments", "input", "async", "status", "caller"}

var toolTraits = toolwire.Traits{
	Dialect:     dialectname.OpenAIResponses,
	RequiresIDs: true,
	Function:    toolformat.ResponsesFunction, Freeform: toolformat.ResponsesCustom, Namespace: toolformat.ResponsesNamespace,
	Call: toolformat.ResponsesFunctionCall, TextCall: toolformat.ResponsesCustomCall,
	Result:             toolformat.ResponsesResult,
	ClientRun:          []string{"openai.responses.local_shell", "openai.responses.apply_patch", "openai.responses.computer"},
	StrictByDefault:    true,
	OptionalCallFields: toolwire.CallFields{Async: true, ItemID: true},
	CallFields:         []toolwire.Fields{{Path: "/", Names: callFields}},
	ArgumentsPath:      []string{"arguments"},
	ResultItemID:       true,
}

var (
	_ toolwire.Recognizer      = toolCodec{}
	_ toolwire.NamespaceWriter = toolCodec{}
)

// toolCodecs are the codecs of a registry that the dialect composes itself.
var toolCodecs = []toolwire.Codec{toolCodec{}}

// ToolCodec returns the codec of the dialect's tool objects, for a registry.
func (Codec) ToolCodec() toolwire.Codec { return toolCodec{} }

func (toolCodec) Traits() *toolwire.Traits { return &toolTraits }

// The formats of definitions and calls, by type.
var (
	toolTypes = map[string]dragoman.Format{"function": toolformat.ResponsesFunction, "": toolformat.ResponsesFunction, "custom": toolformat.ResponsesCustom, "namespace": toolformat.ResponsesNamespace}
	callTypes = map[string]dragoman.Format{"function_call": toolformat.ResponsesFunctionCall, "custom_tool_call": toolformat.ResponsesCustomCall}
)

func (toolCodec) ToolFormat(obj json.RawMessage) dragoman.Format {
	return toolTraits.FormatByType(jsonwire.Value{Raw: obj}, toolTypes)
}

func (toolCodec) CallFormat(obj jsonwire.Value) dragoman.Format {
	return toolTraits.FormatByType(obj, callTypes)
}

func (toolCodec) RecognizeCall(o *toolwire.Outline) dragoman.Format { return callTypes[o.Type] }

func (toolCodec) RecognizeInner(*toolwire.Outline) dragoman.Format { return "" }

func (toolCodec) ReadTool(v toolwire.View, format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	switch format {
	case toolformat.ResponsesFunction:
		return toolwire.DecodeTool(format, obj, func(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
			s.Strict = codes.StrictUnset
			readTool(rd, s)
		})
	case toolformat.ResponsesCustom:
		return toolwire.DecodeTool(format, obj, func(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
			s.Kind = codes.ToolFreeform
			readTool(rd, s)
		})
	case toolformat.ResponsesNamespace:
		return readNamespace(v, obj, at, rep)
	default:
		return toolwire.DecodeTool(format, obj, toolwire.ReadHosted)
	}
}

func (toolCodec) WriteTool(v toolwire.View, w *jsonwire.Writer, format dragoman.Format, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	if format == toolformat.ResponsesCustom {
		writeCustom(v, w, s, name, at, rep)
		return true
	}
	return writeFunction(v, w, s, name, at, rep)
}

func (toolCodec) BeginNamespace(w *jsonwire.Writer, tools []dragoman.ToolSpec) {
	w.BeginObject()
	w.StringField("type", "namespace")
	w.StringField("name", tools[0].Namespace)
	description := tools[0].NamespaceDescription
	if description == "" {
		description = tools[0].Namespace // the wire requires one
	}
	w.StringField("description", description)
	w.Key("tools")
	w.BeginArray()
}

func (toolCodec) EndNamespace(w *jsonwire.Writer, tools []dragoman.ToolSpec) {
	w.EndArray()
	extra.Write(w, tools[0].NamespaceExtra, dialectname.OpenAIResponses, "")
	w.EndObject()
}

func (toolCodec) ReadCall(rd *jsonwire.Reader, c *dragoman.ToolCall) toolwire.CallReading {
	readCall(rd, c)
	return toolwire.CallReading{}
}

func (toolCodec) WriteCall(v toolwire.View, w *jsonwire.Writer, format dragoman.Format, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.OpenAIResponses
	w.BeginObject()
	text := format == toolformat.ResponsesCustomCall
	if text {
		toolwire.WriteUnlessKept(w, c.Extra, d, "", "type", "custom_tool_call")
	} else {
		toolwire.WriteUnlessKept(w, c.Extra, d, "", "type", "function_call")
	}
	w.StringFieldIf("id", c.ItemID)
	w.StringField("call_id", id)
	toolwire.WriteUnlessKept(w, c.Extra, d, "", "name", name)
	if c.Namespace != "" && v.KeepsNamespaces() {
		toolwire.WriteUnlessKept(w, c.Extra, d, "", "namespace", c.Namespace)
	}
	if text {
		w.StringField("input", c.Arguments)
	} else {
		w.StringField("arguments", v.ArgumentText(c, at, rep))
	}
	if c.Async {
		w.BoolField("async", true)
	}
	extra.Write(w, c.Extra, d, "")
	w.EndObject()
}

func readTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	const d = dialectname.OpenAIResponses
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "name":
			s.Name = rd.String()
		case "description":
			s.Description = rd.String()
		case "parameters":
			s.Parameters = toolwire.ReadSchema(rd)
		case "strict":
			toolwire.ReadStrict(rd, s)
		case "format":
			toolwire.ReadGrammar(rd, s, d, "/format")
		case "defer_loading":
			s.Deferred = rd.Bool()
		case "output_schema":
			s.OutputSchema = toolwire.ReadSchema(rd)
		default:
			extra.Add(&s.Extra, d, "", key, rd.Raw())
		}
	}
}

func readNamespace(v toolwire.View, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	var (
		name, description string
		specs             []dragoman.ToolSpec
		ex                *dragoman.Extra
		failed            error
		nested            bool
	)
	rd := jsonwire.NewReader(obj)
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "name":
			name = rd.String()
		case "description":
			description = rd.String()
		case "tools":
			for i := range rd.Array() {
				raw := rd.Raw()
				if rd.Err() != nil {
					break
				}
				format := toolCodec{}.ToolFormat(raw)
				if format == toolformat.ResponsesNamespace {
					// No API has nested namespaces, and each level would be decoded again.
					nested = true
					continue
				}
				inner, err := v.ReadTool(format, raw, at.Elem("tools", i), rep)
				if err != nil && failed == nil {
					failed = err
				}
				specs = append(specs, inner...)
			}
		default:
			extra.Add(&ex, dialectname.OpenAIResponses, "", key, rd.Raw())
		}
	}
	if err := rd.End(); err != nil {
		return nil, toolwire.Fail(toolformat.ResponsesNamespace, err)
	}
	if failed != nil {
		return nil, failed
	}
	if nested {
		return nil, fmt.Errorf("interop: namespace %.80q contains a namespace: namespaces cannot be nested", name)
	}
	if name == "" || len(specs) == 0 {
		// It cannot be addressed: treat it as a hosted tool and keep it unchanged.
		s := dragoman.ToolSpec{Kind: codes.ToolHosted, Name: name, Source: &dragoman.ToolSource{Format: toolformat.ResponsesNamespace, JSON: obj}}
		s.Source.Mirror = s.Fingerprint()
		return []dragoman.ToolSpec{s}, nil
	}
	for i := range specs {
		s := &specs[i]
		if s.Kind == codes.ToolHosted {
			return nil, fmt.Errorf("interop: namespace %q contains a %s, which is not allowed in a namespace", name, s.Source.Format)
		}
		s.Namespace, s.NamespaceDescription, s.NamespaceExtra = name, description, ex
		s.Source.Mirror = s.Fingerprint()
	}
	return specs, nil
}

func writeFunction(v toolwire.View, w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dialectname.OpenAIResponses
	low, ok := v.Lower(toolCodec{}, s, s.Strict, at, rep)
	if !ok {
		return false
	}
	toolwire.ReportMissing(s, toolwire.ToolFields{Deferred: true, OutputSchema: true}, at, rep)
	w.BeginObject()
	w.StringField("type", "function")
	w.StringField("name", name)
	w.StringFieldIf("description", low.Description)
	w.RawField("parameters", low.Schema)
	if s.Strict != codes.StrictUnset && !v.Caps().NoStrict {
		// Explicit, because the default of this wire is true.
		w.BoolField("strict", low.Strict)
	}
	toolwire.WriteDeferred(v, w, s, at, rep)
	if s.OutputSchema != nil {
		w.RawField("output_schema", s.OutputSchema)
	}
	extra.End(w, s.Extra, d, at, rep)
	return true
}

func writeCustom(v toolwire.View, w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.OpenAIResponses
	toolwire.ReportMissing(s, toolwire.ToolFields{Deferred: true}, at, rep)
	w.BeginObject()
	w.StringField("type", "custom")
	w.StringField("name", name)
	w.StringFieldIf("description", s.Description)
	if s.Grammar != nil {
		w.Key("format")
		w.BeginObject()
		w.StringField("type", "grammar")
		w.StringField("syntax", s.Grammar.Syntax)
		w.StringField("definition", s.Grammar.Definition)
		extra.Write(w, s.Extra, d, "/format")
		w.EndObject()
	}
	toolwire.WriteDeferred(v, w, s, at, rep)
	extra.End(w, s.Extra, d, at, rep)
}

func readCall(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	cr := &toolwire.CallReader{Reader: rd, Call: c, Dialect: dialectname.OpenAIResponses}
	var seen uint
	payloads := 0
	for key := range rd.Object() {
		switch name := cr.Field(callFields, &seen, "", key); name {
		case "type":
			if cr.Text("", "type") == "custom_tool_call" {
				c.Payload = codes.PayloadText
			}
		case "id":
			c.ItemID = toolwire.ReadID(rd)
		case "call_id":
			c.ID = toolwire.ReadID(rd)
		case "name":
			c.Name = cr.Text("", "name")
		case "namespace":
			c.Namespace = cr.Text("", "namespace")
		case "arguments", "input":
			if rd.Null() {
				continue
			}
			payloads++
			c.Arguments = toolwire.ReadPayload(rd)
		case "async":
			if raw := rd.Raw(); string(raw) == "true" {
				c.Async = true
			} else {
				extra.Add(&c.Extra, cr.Dialect, "", []byte(name), raw)
			}
		case "status":
			raw := rd.Raw()
			if s := strings.Trim(string(raw), `"`); s == "incomplete" {
				c.Status = codes.StatusIncomplete
			}
			extra.Add(&c.Extra, cr.Dialect, "", []byte(name), raw)
		case "caller":
			c.Caller = rd.Raw()
			extra.Add(&c.Extra, cr.Dialect, "", []byte(name), c.Caller)
		default:
			cr.Other("", key)
		}
	}
	if payloads > 1 {
		cr.Ambiguous("input") // both arguments and input
	}
}

func (toolCodec) ReadResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			if rd.String() == "custom_tool_call_output" {
				res.Payload = codes.PayloadText
			}
		case "id":
			res.ItemID = toolwire.ReadID(rd)
		case "call_id":
			res.CallID = toolwire.ReadID(rd)
		case "output":
			switch rd.Kind() {
			case '"':
				res.Content = []dragoman.Part{&dragoman.Text{Text: rd.String()}}
			case '[':
				for range rd.Array() {
					res.Content = append(res.Content, readPart(rd.Raw()))
				}
			case 'n':
				rd.Skip()
			default:
				res.Content = []dragoman.Part{&dragoman.Data{JSON: rd.Raw()}}
			}
		case "caller":
			res.Caller = rd.Raw()
			extra.Add(&res.Extra, dialectname.OpenAIResponses, "", []byte("caller"), res.Caller)
		default:
			extra.Add(&res.Extra, dialectname.OpenAIResponses, "", key, rd.Raw())
		}
	}
}

func (toolCodec) WriteResult(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) []dragoman.Part {
	w.BeginObject()
	if res.Payload == codes.PayloadText && !v.Caps().NoCustomTools {
		w.StringField("type", "custom_tool_call_output")
	} else {
		w.StringField("type", "function_call_output")
	}
	w.StringFieldIf("id", res.ItemID)
	if id != "" || res.CallID != "" {
		w.StringField("call_id", id)
	}
	w.Key("output")
	if native := toolwire.NativeContent(res, toolformat.ResponsesResult); native != nil {
		w.Raw(native)
	} else {
		writeOutput(v, w, res, at, rep)
	}
	extra.Write(w, res.Extra, dialectname.OpenAIResponses, "")
	if res.Caller != nil && !toolwire.HasField(res.Extra, dialectname.OpenAIResponses, "/caller") {
		w.RawField("caller", res.Caller)
	}
	w.EndObject()
	return nil
}

func writeOutput(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	if res.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a result: the target caches automatically")
	}
	texts, media := toolwire.TextParts(res)
	toolwire.ReportErrorFlag(res, at, rep)
	if len(media) == 0 && len(texts) <= 1 && !needsPart(v, res.Content) {
		w.String(strings.Join(texts, ""))
		if len(res.Content) == 1 {
			if t, ok := res.Content[0].(*dragoman.Text); ok {
				extra.ReportState(rep, t.Signature, at.Elem("content", 0))
				extra.Report(rep, t.Extra, dialectname.OpenAIResponses, at.Elem("content", 0))
			}
		}
		return
	}
	w.BeginArray()
	text := 0
	for i, p := range res.Content {
		at := at.Elem("content", i)
		switch p := p.(type) {
		case *dragoman.Text, *dragoman.Data:
			w.BeginObject()
			w.StringField("type", "input_text")
			w.StringField("text", texts[text])
			if t, ok := p.(*dragoman.Text); ok {
				toolwire.WriteBreakpoint(v, w, t.Cache, nil, dialectname.OpenAIResponses, at, rep)
				extra.ReportState(rep, t.Signature, at)
				extra.Write(w, t.Extra, dialectname.OpenAIResponses, "")
				extra.Report(rep, t.Extra, dialectname.OpenAIResponses, at)
			}
			w.EndObject()
			text++
		case *dragoman.Media:
			writePart(v, w, p, false, at, rep)
		case *dragoman.Opaque:
			if p.Dialect == dialectname.OpenAIResponses {
				w.Raw(p.JSON)
				continue
			}
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "a tool output cannot contain %s of %s", extra.TypedNoun(p.Type, "block"), p.Dialect)
		default:
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "a tool output cannot contain %s part", extra.WithArticle(p.Kind()))
		}
	}
	// An error without text still has the error prefix.
	for ; text < len(texts); text++ {
		w.BeginObject()
		w.StringField("type", "input_text")
		w.StringField("text", texts[text])
		w.EndObject()
	}
	w.EndArray()
}

// needsPart reports whether the text of a result has properties that a string cannot express.
func needsPart(v toolwire.View, content []dragoman.Part) bool {
	if len(content) != 1 {
		return false
	}
	t, ok := content[0].(*dragoman.Text)
	return ok && (t.Extra.For(dialectname.OpenAIResponses) != nil || t.Cache != nil)
}
