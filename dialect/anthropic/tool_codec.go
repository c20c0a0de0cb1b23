package anthropic

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

// toolCodec reads and writes the tool objects of the Messages API.
type toolCodec struct{}

// toolUseFields lists the fields that decide what a call runs.
var toolUseFields = []string{"type", "id", "name", "input", "cache_control", "caller"}

var toolTraits = toolwire.Traits{
	Dialect:     dialectname.Anthropic,
	RequiresIDs: true,
	Function:    toolformat.AnthropicTool, Call: toolformat.AnthropicToolUse, Result: toolformat.AnthropicResult,
	// These types end in a version.
	ClientRun: []string{
		"anthropic.messages.bash_", "anthropic.messages.text_editor_", "anthropic.messages.memory_",
		"anthropic.messages.computer_", "anthropic.messages.browser_toolset_",
	},
	StrictLimits:       toolwire.ClaudeStrictLimits(),
	CacheInTool:        true,
	OptionalCallFields: toolwire.CallFields{Cache: true},
	CallFields:         []toolwire.Fields{{Path: "/", Names: toolUseFields}},
	ResultOutcome:      true, ResultFlag: true,
}

var _ toolwire.Recognizer = toolCodec{}

// toolCodecs lists the codecs of a registry that the dialect creates itself.
var toolCodecs = []toolwire.Codec{toolCodec{}}

// ToolCodec returns the codec of the dialect's tool objects, for use in a
// registry.
func (Codec) ToolCodec() toolwire.Codec { return toolCodec{} }

func (toolCodec) Traits() *toolwire.Traits { return &toolTraits }

// The formats of tools and calls, by their type.
var (
	toolTypes = map[string]dragoman.Format{"": toolformat.AnthropicTool, "custom": toolformat.AnthropicTool}
	callTypes = map[string]dragoman.Format{"tool_use": toolformat.AnthropicToolUse}
)

func (toolCodec) ToolFormat(obj json.RawMessage) dragoman.Format {
	return toolTraits.FormatByType(jsonwire.Value{Raw: obj}, toolTypes)
}

func (toolCodec) CallFormat(obj jsonwire.Value) dragoman.Format {
	return toolTraits.FormatByType(obj, callTypes)
}

func (toolCodec) RecognizeCall(o *toolwire.Outline) dragoman.Format { return callTypes[o.Type] }

func (toolCodec) RecognizeInner(*toolwire.Outline) dragoman.Format { return "" }

func (toolCodec) ReadTool(_ toolwire.View, format dragoman.Format, obj json.RawMessage, _ extra.Path, _ *dragoman.Report) ([]dragoman.ToolSpec, error) {
	if format != toolformat.AnthropicTool {
		return toolwire.DecodeTool(format, obj, toolwire.ReadHosted)
	}
	return toolwire.DecodeTool(format, obj, readTool)
}

func (toolCodec) ReadCall(rd *jsonwire.Reader, c *dragoman.ToolCall) toolwire.CallReading {
	return toolwire.CallReading{Sound: readToolUse(rd, c)}
}

func (toolCodec) WriteCall(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.Anthropic
	w.BeginObject()
	toolwire.WriteUnlessKept(w, c.Extra, d, "", "type", "tool_use")
	w.StringField("id", id)
	toolwire.WriteUnlessKept(w, c.Extra, d, "", "name", name)
	w.RawField("input", v.ArgumentObject(c, at, rep))
	extra.Write(w, c.Extra, d, "")
	if c.Cache != nil && !toolwire.HasField(c.Extra, d, "/cache_control") {
		writeCacheControl(w, c.Cache, at, rep)
	}
	w.EndObject()
}

func readTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	const d = dialectname.Anthropic
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "name":
			s.Name = rd.String()
		case "description":
			s.Description = rd.String()
		case "input_schema":
			s.Parameters = toolwire.ReadSchema(rd)
		case "strict":
			toolwire.ReadStrict(rd, s)
		case "defer_loading":
			s.Deferred = rd.Bool()
		case "input_examples":
			for range rd.Array() {
				s.Examples = append(s.Examples, rd.Raw())
			}
		case "cache_control":
			s.Cache = toolwire.ReadCacheHint(rd)
		default:
			extra.Add(&s.Extra, d, "", key, rd.Raw())
		}
	}
}

func (toolCodec) WriteTool(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dialectname.Anthropic
	low, ok := v.Lower(toolCodec{}, s, s.Strict, at, rep)
	if !ok {
		return false
	}
	toolwire.ReportMissing(s, toolwire.ToolFields{Deferred: true, Examples: true, Cache: true}, at, rep)
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", low.Description)
	w.RawField("input_schema", low.Schema)
	if low.Strict {
		w.BoolField("strict", true)
	}
	toolwire.WriteDeferred(v, w, s, at, rep)
	writeExamples(v, w, s, low, at, rep)
	if s.Cache != nil {
		if s.Deferred {
			rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint on a deferred tool") // quirk D31
		} else if !toolwire.RefusesCache(v, at, rep) {
			writeCacheControl(w, s.Cache, at, rep)
		}
	}
	extra.End(w, s.Extra, d, at, rep)
	return true
}

// writeExamples writes the input examples, converted to the written schema.
func writeExamples(v toolwire.View, w *jsonwire.Writer, s *dragoman.ToolSpec, low toolwire.Lowered, at extra.Path, rep *dragoman.Report) {
	if len(s.Examples) == 0 {
		return
	}
	w.Key("input_examples")
	w.BeginArray()
	for _, e := range s.Examples {
		wire, err := low.ToWire(e)
		if err != nil {
			rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "input example dropped: %v", err)
			continue
		}
		w.Raw(wire)
	}
	w.EndArray()
}

// readToolUse reads a call. It reports whether the arguments are known to be
// valid.
func readToolUse(rd *jsonwire.Reader, c *dragoman.ToolCall) (sound bool) {
	cr := &toolwire.CallReader{Reader: rd, Call: c, Dialect: dialectname.Anthropic}
	var seen uint
	for key := range rd.Object() {
		switch name := cr.Field(toolUseFields, &seen, "", key); name {
		case "type":
			cr.Text("", "type")
		case "id":
			c.ID = toolwire.ReadID(rd)
		case "name":
			c.Name = cr.Text("", "name")
		case "input":
			sound = rd.Clear() && rd.Kind() == '{'
			c.Arguments = toolwire.ReadPayload(rd)
		case "cache_control":
			raw := rd.Raw()
			in := jsonwire.NewReader(raw)
			if hint := toolwire.ReadCacheHint(in); in.Err() == nil {
				c.Cache = hint
			} else { // it does not affect what runs
				extra.Add(&c.Extra, cr.Dialect, "", []byte(name), raw)
			}
		case "caller":
			c.Caller = rd.Raw()
			extra.Add(&c.Extra, cr.Dialect, "", []byte(name), c.Caller)
		default:
			cr.Other("", key)
		}
	}
	return sound
}

func (toolCodec) ReadResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	res.Outcome = codes.OutcomeOK // the meaning of an absent is_error
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "tool_use_id":
			res.CallID = toolwire.ReadID(rd)
		case "is_error":
			if rd.Kind() == 'n' {
				rd.Skip()
				continue
			}
			if rd.Bool() {
				res.Outcome = codes.OutcomeError
			} else {
				extra.Add(&res.Extra, dialectname.Anthropic, "", []byte("is_error"), []byte("false"))
			}
		case "content":
			res.Content = toolwire.ReadContent(rd, res.Content, readPart)
		case "cache_control":
			res.Cache = toolwire.ReadCacheHint(rd)
		default:
			extra.Add(&res.Extra, dialectname.Anthropic, "", key, rd.Raw())
		}
	}
}

func (toolCodec) WriteResult(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) []dragoman.Part {
	w.BeginObject()
	w.StringField("type", "tool_result")
	w.StringField("tool_use_id", id)
	if native := toolwire.NativeContent(res, toolformat.AnthropicResult); native != nil {
		w.RawField("content", native)
	} else if parts := res.Content; hasResultContent(parts) {
		w.Key("content")
		w.BeginArray()
		toolwire.ContentWriter{
			Dialect: dialectname.Anthropic, Block: "tool_result",
			Text:  func(t *dragoman.Text, at extra.Path) { writeText(w, t, at, rep) },
			Data:  func(d *dragoman.Data, at extra.Path) { writeText(w, &dragoman.Text{Text: string(d.JSON)}, at, rep) },
			Media: func(m *dragoman.Media, at extra.Path) { writeMedia(v, w, m, at, rep) },
		}.Write(w, parts, at, rep)
		w.EndArray()
	} else if res.Text() != "" {
		toolwire.ReportBlank(rep, at)
	}
	if res.Outcome == codes.OutcomeError {
		w.BoolField("is_error", true)
	}
	extra.Write(w, res.Extra, dialectname.Anthropic, "")
	if res.Cache != nil {
		writeCacheControl(w, res.Cache, at, rep)
	}
	w.EndObject()
	return nil
}

// hasResultContent reports whether a result has content. A result without any
// is written without a content field (quirk D11).
func hasResultContent(parts []dragoman.Part) bool {
	for _, p := range parts {
		if t, ok := p.(*dragoman.Text); !ok || !toolwire.Blank(t) {
			return true
		}
	}
	return false
}
