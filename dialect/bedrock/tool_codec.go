package bedrock

import (
	"encoding/json"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolformat"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// A Bedrock tool object is an element of a list: {"toolSpec":…}, {"toolUse":…},
// {"toolResult":…}. Its only field says what it is.

// blockUnion lists the keys of which a block has exactly one.
var blockUnion = []string{
	"text", "image", "document", "video", "audio", "toolUse", "toolResult", "reasoningContent", "cachePoint",
	"guardContent", "citationsContent", "searchResult", "toolAddition", "toolRemoval",
}

// The fields that decide what a call runs.
var (
	callFields    = []string{"toolUse"}
	toolUseFields = []string{"toolUseId", "name", "input", "type"}
)

// toolCodec reads and writes the tool objects of Converse.
type toolCodec struct{}

var toolTraits = toolwire.Traits{
	Dialect:     dialectname.Bedrock,
	RequiresIDs: true,
	Function:    toolformat.BedrockTool, Call: toolformat.BedrockToolUse, Result: toolformat.BedrockResult,
	StrictOptIn:   true, // some models refuse the flag (quirk A31)
	StrictLimits:  toolwire.ClaudeStrictLimits(),
	CallFields:    []toolwire.Fields{{Path: "/", Names: callFields}, {Path: "/toolUse/", Names: toolUseFields}},
	ResultOutcome: true, ResultFlag: true,
}

var (
	_ toolwire.Recognizer = toolCodec{}
	_ toolwire.Shaper     = toolCodec{}
	_ toolwire.ToolMarker = toolCodec{}
)

// toolCodecs lists the codecs of a registry that the dialect creates itself.
var toolCodecs = []toolwire.Codec{toolCodec{}}

// ToolCodec returns the codec of the dialect's tool objects, for use in a
// registry.
func (Codec) ToolCodec() toolwire.Codec { return toolCodec{} }

func (toolCodec) Traits() *toolwire.Traits { return &toolTraits }

func (toolCodec) ToolFormat(obj json.RawMessage) dragoman.Format { return toolFormat(obj) }

func (toolCodec) CallFormat(obj jsonwire.Value) dragoman.Format { return callFormat(obj.Raw) }

func (toolCodec) RecognizeCall(o *toolwire.Outline) dragoman.Format {
	if o.Type == "" && o.Kinds["toolUse"] == '{' && o.Kinds["function"] != '{' {
		return toolformat.BedrockToolUse
	}
	return ""
}

// RecognizeInner recognizes a toolUse, which may have a type.
func (toolCodec) RecognizeInner(o *toolwire.Outline) dragoman.Format {
	if o.Kinds["name"] == '"' && o.Kinds["toolUseId"] == '"' {
		return toolformat.BedrockToolUse
	}
	return ""
}

func (c toolCodec) CallObject(_ dragoman.Format, obj json.RawMessage) toolwire.CallShape {
	return toolwire.WithOuter(c, "toolUse", obj)
}

func (toolCodec) ResultObject(obj json.RawMessage) (json.RawMessage, *dragoman.Extra) {
	if toolwire.ObjectHas(obj, "toolUseId") && !toolwire.ObjectHas(obj, "toolResult") {
		return slices.Concat([]byte(`{"toolResult":`), obj, []byte("}")), nil
	}
	return obj, nil
}

func (toolCodec) ReadTool(_ toolwire.View, format dragoman.Format, obj json.RawMessage, _ extra.Path, _ *dragoman.Report) ([]dragoman.ToolSpec, error) {
	if format != toolformat.BedrockTool {
		return toolwire.DecodeTool(format, obj, func(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
			s.Kind = codes.ToolHosted
			s.Name = hostedName(rd)
		})
	}
	return toolwire.DecodeTool(format, obj, readTool)
}

func (toolCodec) ReadCall(rd *jsonwire.Reader, c *dragoman.ToolCall) toolwire.CallReading {
	readCall(rd, c)
	return toolwire.CallReading{}
}

// blockKey returns the field that says what a block is: its key of the union,
// or else its first field. It returns an empty string if obj is not an object.
func blockKey(obj []byte) string {
	rd := jsonwire.NewReader(obj)
	if rd.Kind() != '{' {
		return ""
	}
	first, known := "", ""
	for key := range rd.Object() {
		k := string(key)
		rd.Skip()
		if first == "" {
			first = k
		}
		if toolwire.FoldsTo(callFields, k) != "" { // a block that any reader could read as a call is a call
			return "toolUse"
		}
		if known == "" && slices.Contains(blockUnion, k) {
			known = k
		}
	}
	if known == "" {
		return first
	}
	return known
}

// toolFormat returns the format of an element of toolConfig.tools.
func toolFormat(obj []byte) dragoman.Format {
	rd := jsonwire.NewReader(obj)
	key := ""
	if rd.Kind() == '{' {
		for k := range rd.Object() {
			name := string(k)
			rd.Skip()
			if name == "toolSpec" {
				return toolformat.BedrockTool
			}
			if key == "" {
				key = name
			}
		}
	}
	return dragoman.Format(string(dialectname.Bedrock) + "." + key)
}

func callFormat(obj []byte) dragoman.Format {
	if key := blockKey(obj); key != "toolUse" {
		return dragoman.Format(string(dialectname.Bedrock) + "." + key)
	}
	return toolformat.BedrockToolUse
}

func readTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	for key := range rd.Object() {
		if string(key) == "toolSpec" {
			readToolSpec(rd, s)
		} else {
			extra.Add(&s.Extra, dialectname.Bedrock, "", key, rd.Raw())
		}
	}
}

func readToolSpec(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	const d = dialectname.Bedrock
	for key := range rd.Object() {
		switch string(key) {
		case "name":
			s.Name = rd.String()
		case "description":
			s.Description = rd.String()
		case "inputSchema":
			for key := range rd.Object() {
				if string(key) == "json" {
					s.Parameters = toolwire.ReadSchema(rd)
				} else {
					extra.Add(&s.Extra, d, "/toolSpec/inputSchema", key, rd.Raw())
				}
			}
		case "strict":
			toolwire.ReadStrict(rd, s)
		default:
			extra.Add(&s.Extra, d, "/toolSpec", key, rd.Raw())
		}
	}
}

// hostedName returns the name of a hosted tool: the name inside its only field,
// or the name of that field.
func hostedName(rd *jsonwire.Reader) string {
	name := ""
	for key := range rd.Object() {
		k := string(key)
		if name == "" {
			name = k
		}
		if rd.Kind() != '{' {
			rd.Skip()
			continue
		}
		if inner := toolwire.HostedName(rd); inner != "" && name == k {
			name = inner
		}
	}
	return name
}

// WriteTool writes a tool. It omits an empty description, because the API
// refuses one (quirk A32).
func (toolCodec) WriteTool(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dialectname.Bedrock
	low, ok := v.Lower(toolCodec{}, s, s.Strict, at, rep)
	if !ok {
		return false
	}
	toolwire.ReportMissing(s, toolwire.ToolFields{Cache: true}, at, rep)
	w.BeginObject()
	w.Key("toolSpec")
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", low.Description)
	w.Key("inputSchema")
	w.BeginObject()
	w.RawField("json", low.Schema)
	extra.Write(w, s.Extra, d, "/toolSpec/inputSchema")
	w.EndObject()
	if low.Strict {
		w.BoolField("strict", true)
	}
	extra.Write(w, s.Extra, d, "/toolSpec")
	w.EndObject()
	extra.End(w, s.Extra, d, at, rep)
	return true
}

// MarkTool writes the cache breakpoint after a tool, which is an element of the
// list of tools.
func (toolCodec) MarkTool(v toolwire.View, w *jsonwire.Writer, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) {
	if s.Cache != nil && !toolwire.RefusesCache(v, at, rep) {
		writeCachePoint(w, s.Cache, at, rep)
	}
}

// hostedToolUse is the type of a call that the provider runs.
const hostedToolUse = "server_tool_use"

func readCall(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	cr := &toolwire.CallReader{Reader: rd, Call: c, Dialect: dialectname.Bedrock}
	var seen uint
	for key := range rd.Object() {
		switch cr.Field(callFields, &seen, "", key) {
		case "toolUse":
			if cr.Object("", "toolUse") {
				readToolUseBlock(cr)
			}
		default:
			if slices.Contains(blockUnion, string(key)) && rd.Kind() != 'n' { // a block is exactly one thing; null does not count (quirk C8)
				cr.Ambiguous(string(key))
				cr.Other("/unread", key)
				continue
			}
			cr.Other("", key)
		}
	}
}

func readToolUseBlock(cr *toolwire.CallReader) {
	const prefix = "/toolUse"
	var seen uint
	for key := range cr.Reader.Object() {
		switch cr.Field(toolUseFields, &seen, prefix, key) {
		case "toolUseId":
			cr.Call.ID = toolwire.ReadID(cr.Reader)
		case "name":
			cr.Call.Name = cr.Text(prefix, "name")
		case "input":
			cr.Call.Arguments = toolwire.ReadPayload(cr.Reader)
		case "type": // with any other value clients run the call
			raw := cr.Reader.Raw()
			cr.Call.Hosted = jsonwire.NewReader(raw).String() == hostedToolUse // only this value marks a hosted call
			extra.Add(&cr.Call.Extra, cr.Dialect, prefix, key, raw)
		default:
			cr.Other(prefix, key)
		}
	}
}

func (toolCodec) WriteCall(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.Bedrock
	w.BeginObject()
	if !toolwire.HasField(c.Extra, d, "/toolUse") {
		w.Key("toolUse")
		w.BeginObject()
		w.StringField("toolUseId", id)
		if !toolwire.HasField(c.Extra, d, "/toolUse/name") {
			w.StringField("name", name)
		}
		w.RawField("input", v.ArgumentObject(c, at, rep))
		extra.Write(w, c.Extra, d, "/toolUse")
		w.EndObject()
	}
	extra.Write(w, c.Extra, d, "")
	w.EndObject()
}

func (toolCodec) ReadResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	res.Outcome = codes.OutcomeOK // the meaning of an absent status
	for key := range rd.Object() {
		if string(key) == "toolResult" {
			readToolResult(rd, res)
		} else {
			extra.Add(&res.Extra, dialectname.Bedrock, "", key, rd.Raw())
		}
	}
}

func readToolResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	const d, prefix = dialectname.Bedrock, "/toolResult"
	for key := range rd.Object() {
		switch string(key) {
		case "toolUseId":
			res.CallID = toolwire.ReadID(rd)
		case "content":
			res.Content = toolwire.ReadContent(rd, res.Content, func(raw json.RawMessage) dragoman.Part {
				if hint := readCachePoint(raw); hint != nil && res.Cache == nil {
					res.Cache = hint // it belongs after the result (quirk D31)
					return nil
				}
				return readContent(raw)
			})
		case "status":
			raw := rd.Raw()
			switch string(raw) {
			case `"error"`:
				res.Outcome = codes.OutcomeError
			case `"success"`:
				extra.Add(&res.Extra, d, prefix, key, raw)
			default: // an unknown status is not a success
				res.Outcome = codes.OutcomeUnknown
				extra.Add(&res.Extra, d, prefix, key, raw)
			}
		default:
			extra.Add(&res.Extra, d, prefix, key, rd.Raw())
		}
	}
}

// readContent reads a block of a result, which may be JSON.
func readContent(raw json.RawMessage) dragoman.Part {
	rd := jsonwire.NewReader(raw)
	if rd.Kind() == '{' {
		var value json.RawMessage
		n := 0
		for key := range rd.Object() {
			n++
			if string(key) == "json" {
				value = rd.Raw()
			} else {
				rd.Skip()
			}
		}
		if n == 1 && value != nil && rd.End() == nil {
			return &dragoman.Data{JSON: value}
		}
	}
	return readPart(raw)
}

// noOutput is the text of a result without output: the wire requires content
// that is not blank (quirk D11).
const noOutput = "(no output)"

func (toolCodec) WriteResult(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) []dragoman.Part {
	const d, prefix = dialectname.Bedrock, "/toolResult"
	if res.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: it must be a separate block after the result")
	}
	w.BeginObject()
	w.Key("toolResult")
	w.BeginObject()
	w.StringField("toolUseId", id)
	w.Key("content")
	if native := toolwire.NativeContent(res, toolformat.BedrockResult); native != nil {
		w.Raw(native)
	} else {
		writeContent(v, w, res, at, rep)
	}
	if res.Outcome == codes.OutcomeError {
		w.StringField("status", "error")
	}
	extra.WriteBut(w, res.Extra, d, prefix, func(f dragoman.Field) bool {
		return f.Path == prefix+"/status" && res.Outcome == codes.OutcomeError
	})
	w.EndObject()
	extra.Write(w, res.Extra, d, "")
	w.EndObject()
	return nil
}

func writeContent(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	w.BeginArray()
	start := len(w.Buf)
	toolwire.ContentWriter{
		Dialect: dialectname.Bedrock, Block: "toolResult", EmptyOutput: true,
		Text: func(t *dragoman.Text, at extra.Path) { writeText(v, w, t, at, rep) },
		Data: func(d *dragoman.Data, _ extra.Path) { writeData(w, d) },
		Media: func(m *dragoman.Media, at extra.Path) {
			if m.Media == codes.MediaAudio { // a message accepts audio, a result does not
				rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), "Bedrock does not accept audio in a toolResult; replaced by a note")
				writeString(w, toolwire.Placeholder(m))
				return
			}
			writeMedia(v, w, m, at, rep)
		},
	}.Write(w, res.Content, at, rep)
	if len(w.Buf) == start {
		rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "result without output written as %q", noOutput)
		writeString(w, noOutput)
	}
	w.EndArray()
}

// writeData writes a JSON value. The wire accepts objects; any other value is
// written as text.
func writeData(w *jsonwire.Writer, p *dragoman.Data) {
	if text := strings.TrimSpace(string(p.JSON)); !strings.HasPrefix(text, "{") {
		writeString(w, text)
		return
	}
	w.BeginObject()
	w.RawField("json", p.JSON)
	w.EndObject()
}
