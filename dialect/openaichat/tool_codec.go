package openaichat

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

// toolCodec reads and writes the tool objects of Chat Completions.
type toolCodec struct{}

// The fields that determine what a call runs.
var (
	callFields     = []string{"id", "type", "function", "custom"}
	functionFields = []string{"name", "arguments"}
	customFields   = []string{"name", "input"}
)

var toolTraits = toolwire.Traits{
	Dialect:     dialectname.OpenAIChat,
	RequiresIDs: true,
	Function:    toolformat.ChatFunction, Freeform: toolformat.ChatCustom,
	Call: toolformat.ChatFunctionCall, TextCall: toolformat.ChatCustomCall,
	OptionalParameters: true,
	Result:             toolformat.ChatResult,
	NoHosted:           true,
	CallFields:         []toolwire.Fields{{Path: "/", Names: callFields}, {Path: "/function/", Names: functionFields}, {Path: "/custom/", Names: customFields}},
	ArgumentsPath:      []string{"function", "arguments"},
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

// The formats of definitions and calls, by type.
var (
	toolTypes = map[string]dragoman.Format{"function": toolformat.ChatFunction, "": toolformat.ChatFunction, "custom": toolformat.ChatCustom}
	callTypes = map[string]dragoman.Format{"function": toolformat.ChatFunctionCall, "": toolformat.ChatFunctionCall, "custom": toolformat.ChatCustomCall}
)

func (toolCodec) ToolFormat(obj json.RawMessage) dragoman.Format {
	return toolTraits.FormatByType(jsonwire.Value{Raw: obj}, toolTypes)
}

func (toolCodec) CallFormat(obj jsonwire.Value) dragoman.Format {
	return toolTraits.FormatByType(obj, callTypes)
}

func (toolCodec) RecognizeCall(o *toolwire.Outline) dragoman.Format {
	switch {
	case o.Type == "custom" && o.Kinds["custom"] == '{':
		return toolformat.ChatCustomCall
	case o.Kinds["function"] != '{', o.Type == "" && o.FunctionArguments == '{': // calls of Ollama have an object
		return ""
	case o.Type == "" || o.Type == "function":
		return toolformat.ChatFunctionCall
	default:
		return ""
	}
}

func (toolCodec) RecognizeInner(o *toolwire.Outline) dragoman.Format {
	if o.Kinds["name"] == '"' && o.Kinds["arguments"] == '"' && !o.Has("type") && !o.Has("function") && o.Kinds["toolUseId"] != '"' {
		return toolformat.ChatFunctionCall
	}
	return ""
}

func (c toolCodec) CallObject(format dragoman.Format, obj json.RawMessage) toolwire.CallShape {
	if format == toolformat.ChatFunctionCall {
		return toolwire.WithOuter(c, "function", obj)
	}
	return toolwire.CallShape{Object: obj}
}

func (toolCodec) ResultObject(obj json.RawMessage) (json.RawMessage, *dragoman.Extra) {
	return obj, nil
}

func (toolCodec) ReadTool(_ toolwire.View, format dragoman.Format, obj json.RawMessage, _ extra.Path, _ *dragoman.Report) ([]dragoman.ToolSpec, error) {
	switch format {
	case toolformat.ChatFunction:
		return toolwire.DecodeTool(format, obj, readTool)
	case toolformat.ChatCustom:
		return toolwire.DecodeTool(format, obj, func(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
			s.Kind = codes.ToolFreeform
			readTool(rd, s)
		})
	default:
		return toolwire.DecodeTool(format, obj, toolwire.ReadHosted)
	}
}

func (toolCodec) WriteTool(v toolwire.View, w *jsonwire.Writer, format dragoman.Format, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	if format == toolformat.ChatCustom {
		writeCustom(v, w, s, name, at, rep)
		return true
	}
	return writeFunction(v, w, s, name, at, rep)
}

func (toolCodec) ReadCall(rd *jsonwire.Reader, c *dragoman.ToolCall) toolwire.CallReading {
	return toolwire.CallReading{Trimmed: readCall(rd, c)}
}

func (toolCodec) WriteCall(v toolwire.View, w *jsonwire.Writer, format dragoman.Format, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.OpenAIChat
	kind := "function"
	if format == toolformat.ChatCustomCall {
		kind = "custom"
	}
	w.BeginObject()
	w.StringField("id", id)
	toolwire.WriteUnlessKept(w, c.Extra, d, "", "type", kind)
	if !toolwire.HasField(c.Extra, d, "/"+kind) {
		w.Key(kind)
		w.BeginObject()
		toolwire.WriteUnlessKept(w, c.Extra, d, "/"+kind, "name", name)
		if kind == "custom" {
			w.StringField("input", c.Arguments)
		} else {
			w.StringField("arguments", v.ArgumentText(c, at, rep))
		}
		extra.Write(w, c.Extra, d, "/"+kind)
		w.EndObject()
	}
	extra.Write(w, c.Extra, d, "")
	w.EndObject()
}

func readTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	const d = dialectname.OpenAIChat
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "function":
			for key := range rd.Object() {
				switch string(key) {
				case "name":
					s.Name = rd.String()
				case "description":
					s.Description = rd.String()
				case "parameters":
					s.Parameters = toolwire.ReadSchema(rd)
				case "strict":
					toolwire.ReadStrict(rd, s)
				default:
					extra.Add(&s.Extra, d, "/function", key, rd.Raw())
				}
			}
		case "custom":
			for key := range rd.Object() {
				switch string(key) {
				case "name":
					s.Name = rd.String()
				case "description":
					s.Description = rd.String()
				case "format":
					toolwire.ReadGrammar(rd, s, d, "/custom/format")
				default:
					extra.Add(&s.Extra, d, "/custom", key, rd.Raw())
				}
			}
		default:
			extra.Add(&s.Extra, d, "", key, rd.Raw())
		}
	}
}

func writeFunction(v toolwire.View, w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dialectname.OpenAIChat
	low, ok := v.Lower(toolCodec{}, s, s.Strict, at, rep)
	if !ok {
		return false
	}
	toolwire.ReportMissing(s, toolwire.ToolFields{}, at, rep)
	w.BeginObject()
	w.StringField("type", "function")
	w.Key("function")
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", low.Description)
	own := s.Source != nil && s.Source.Format == toolformat.ChatFunction
	if s.Parameters != nil || s.Kind == codes.ToolFreeform || !own || toolTraits.NeedsParameters(s, v.Caps()) {
		w.RawField("parameters", low.Schema)
	}
	if low.Strict {
		w.BoolField("strict", true)
	}
	extra.Write(w, s.Extra, d, "/function")
	w.EndObject()
	extra.End(w, s.Extra, d, at, rep)
	return true
}

func writeCustom(v toolwire.View, w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.OpenAIChat
	toolwire.ReportMissing(s, toolwire.ToolFields{}, at, rep)
	w.BeginObject()
	w.StringField("type", "custom")
	w.Key("custom")
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", s.Description)
	if s.Grammar != nil {
		w.Key("format")
		w.BeginObject()
		w.StringField("type", "grammar")
		w.Key("grammar")
		w.BeginObject()
		w.StringField("syntax", s.Grammar.Syntax)
		w.StringField("definition", s.Grammar.Definition)
		extra.Write(w, s.Extra, d, "/custom/format/grammar")
		w.EndObject()
		extra.Write(w, s.Extra, d, "/custom/format")
		w.EndObject()
	}
	extra.Write(w, s.Extra, d, "/custom")
	w.EndObject()
	extra.End(w, s.Extra, d, at, rep)
}

// readCall decodes a call. It reports whether the call has an empty payload in addition to the
// filled one; the empty one is not sent to other servers.
func readCall(rd *jsonwire.Reader, c *dragoman.ToolCall) (zero bool) {
	cr := &toolwire.CallReader{Reader: rd, Call: c, Dialect: dialectname.OpenAIChat}
	var seen uint
	payloads, objects := 0, 0
	for key := range rd.Object() {
		switch cr.Field(callFields, &seen, "", key) {
		case "id":
			c.ID = toolwire.ReadID(rd)
		case "type":
			if cr.Text("", "type") == "custom" {
				c.Payload = codes.PayloadText
			}
		case "function":
			if cr.Object("", "function") {
				objects++
				if cr.Payload("/function", functionFields, "arguments") {
					payloads++
				}
			}
		case "custom":
			if cr.Object("", "custom") {
				objects++
				if cr.Payload("/custom", customFields, "input") {
					payloads++
					c.Payload = codes.PayloadText
				}
			}
		default:
			cr.Other("", key)
		}
	}
	if payloads > 1 {
		cr.Ambiguous("function") // both a function and a custom tool
	}
	return payloads == 1 && objects > 1
}

func (toolCodec) ReadResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	for key := range rd.Object() {
		switch string(key) {
		case "role":
			rd.Skip()
		case "tool_call_id":
			res.CallID = toolwire.ReadID(rd)
		case "name":
			res.Name = rd.String()
			extra.Add(&res.Extra, dialectname.OpenAIChat, "", []byte("name"), toolwire.Quote(res.Name))
		case "content":
			res.Content = toolwire.ReadContent(rd, nil, readPart)
		default:
			extra.Add(&res.Extra, dialectname.OpenAIChat, "", key, rd.Raw())
		}
	}
}

func (toolCodec) WriteResult(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part) {
	w.BeginObject()
	w.StringField("role", "tool")
	if v.Caps().ToolResultName && res.Name != "" && !toolwire.HasField(res.Extra, dialectname.OpenAIChat, "/name") {
		w.StringField("name", v.WireName(res.Namespace, res.Name))
	}
	w.StringField("tool_call_id", id)
	w.Key("content")
	if native := toolwire.NativeContent(res, toolformat.ChatResult); native != nil {
		w.Raw(native)
	} else {
		spill = writeContent(v, w, res, at, rep)
	}
	extra.Write(w, res.Extra, dialectname.OpenAIChat, "")
	w.EndObject()
	return spill
}

// writeContent writes the content of a tool message: a string if that is sufficient (quirk D34),
// otherwise text parts. It returns the media, which is replaced with a note.
func writeContent(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part) {
	texts, _ := toolwire.TextParts(res)
	toolwire.ReportErrorFlag(res, at, rep)
	parts := make([]dragoman.Part, 0, len(res.Content)+1)
	from := make([]int, 0, len(res.Content)+1) // index in res.Content of each part; -1 for the result
	place := func(i int) extra.Path {
		if i < 0 {
			return at
		}
		return at.Elem("content", i)
	}
	last := (*dragoman.Text)(nil)
	add := func(t dragoman.Text, i int) {
		t.Text, texts = texts[0], texts[1:]
		last = &t
		parts, from = append(parts, last), append(from, i)
	}
	for i, p := range res.Content {
		at := place(i)
		switch p := p.(type) {
		case *dragoman.Text:
			add(*p, i)
		case *dragoman.Data:
			add(dragoman.Text{}, i)
		case *dragoman.Media:
			spill = append(spill, p)
		case *dragoman.Opaque:
			if p.Dialect == dialectname.OpenAIChat {
				parts, from = append(parts, p), append(from, i)
				continue
			}
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool messages cannot contain %s of %s", extra.TypedNoun(p.Type, "block"), p.Dialect)
		default:
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "tool messages cannot contain %s part", extra.WithArticle(p.Kind()))
		}
	}
	if len(texts) > 0 { // an error without content still has the error prefix
		add(dragoman.Text{}, -1)
	}
	if len(spill) > 0 {
		last = &dragoman.Text{Text: "(see the attached " + mediaWord(spill) + " below)"}
		parts, from = append(parts, last), append(from, -1)
	}
	if res.Cache != nil {
		if last != nil && last.Cache == nil && v.Caps().CacheBreakpoints {
			last.Cache = res.Cache
		} else {
			rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a result: the target caches automatically")
		}
	}
	if len(parts) == 0 {
		w.String("") // the field is required (quirk D11)
		return spill
	}
	if text, ok := contentString(v, parts, place(from[0]), rep); ok {
		w.String(text)
		return spill
	}
	w.BeginArray()
	for i, p := range parts {
		writePart(v, w, p, place(from[i]), rep)
	}
	w.EndArray()
	return spill
}

func mediaWord(parts []dragoman.Part) string {
	kind := ""
	for _, p := range parts {
		m, ok := p.(*dragoman.Media)
		if !ok || (kind != "" && m.Media != kind) {
			return "content"
		}
		kind = m.Media
	}
	return kind
}
