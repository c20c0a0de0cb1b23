package interop

import (
	"encoding/json"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ErrorPrefix marks a failed result on wires that have no error flag.
const ErrorPrefix = "ERROR: "

// WriteResult writes a result in the target's format. Media that the target
// cannot carry in a result is replaced by a note and returned, for the dialect
// to place elsewhere (quirk D13).
func (r *Registry) WriteResult(w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part, err error) {
	f, err := wireOf(r.target.Dialect)
	if err != nil {
		return nil, err
	}
	return r.writeResultAs(w, f.result, res, at, rep)
}

func (r *Registry) writeResultAs(w *jsonwire.Writer, format dragoman.Format, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part, err error) {
	if a, ok := r.adapters[adapterKey{dragoman.ResultObject, "", format}]; ok {
		obj, sub, err := a.Adapt(dragoman.AdapterInput{Result: res})
		rep.Merge(at.String(), sub)
		if err == nil {
			w.Raw(obj)
		}
		return nil, err
	}
	res = unwrapEnvelope(res)
	id := r.ids.alias(res.CallID)
	if res.Envelope != nil && res.Envelope.Format != format {
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "native result of %s written as its text", res.Envelope.Format)
	}
	if res.Outcome == dragoman.OutcomeError && nativeContent(res, format) != nil && format != dragoman.FormatAnthropicResult && format != dragoman.FormatBedrockResult {
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String(), "the error flag: a native result says for itself what happened")
	}
	if format != dragoman.FormatResponsesResult {
		extra.ReportItem(rep, res.ItemID, at, "/item_id")
	}
	switch format {
	case dragoman.FormatChatResult:
		spill = r.writeChatResult(w, res, id, at, rep)
		extra.Report(rep, res.Extra, dragoman.OpenAIChat, at)
	case dragoman.FormatResponsesResult:
		r.writeResponsesResult(w, res, id, at, rep)
		extra.Report(rep, res.Extra, dragoman.OpenAIResponses, at)
	case dragoman.FormatAnthropicResult:
		r.writeAnthropicResult(w, res, id, at, rep)
		extra.Report(rep, res.Extra, dragoman.Anthropic, at)
	case dragoman.FormatGeminiResult:
		spill = r.writeGeminiResult(w, res, id, at, rep)
		extra.Report(rep, res.Extra, dragoman.Gemini, at)
	case dragoman.FormatOllamaResult:
		r.writeOllamaResult(w, res, id, at, rep)
		extra.Report(rep, res.Extra, dragoman.Ollama, at)
	case dragoman.FormatBedrockResult:
		r.writeBedrockResult(w, res, id, at, rep)
		extra.Report(rep, res.Extra, dragoman.Bedrock, at)
	default:
		return nil, fmt.Errorf("interop: no adapter writes results as %s; contribute one", format)
	}
	return spill, nil
}

// nativeContent returns the content of an envelope the format may use.
func nativeContent(res *dragoman.ToolResult, format dragoman.Format) json.RawMessage {
	if res.Envelope != nil && res.Envelope.Format == format {
		return res.Envelope.JSON
	}
	return nil
}

// textParts returns the content of a result as texts, marking an error in the
// first one where the wire has no flag, and what is no text.
func textParts(res *dragoman.ToolResult) (texts []string, media []dragoman.Part) {
	for _, p := range res.Content {
		switch p := p.(type) {
		case *dragoman.Text:
			texts = append(texts, p.Text)
		case *dragoman.Data:
			texts = append(texts, string(p.JSON))
		default:
			media = append(media, p)
		}
	}
	if res.Outcome == dragoman.OutcomeError {
		if len(texts) == 0 {
			texts = []string{""}
		}
		if !strings.HasPrefix(texts[0], ErrorPrefix) {
			texts[0] = ErrorPrefix + texts[0]
		}
	}
	return texts, media
}

// reportFlag says that an error flag became a prefix.
func reportFlag(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	if res.Outcome == dragoman.OutcomeError {
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), `error flag written as "ERROR: " before the text`)
	}
}

func (r *Registry) writeChatResult(w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part) {
	w.BeginObject()
	w.StringField("role", "tool")
	if r.target.Caps.ToolResultName && res.Name != "" && !hasMember(res.Extra, dragoman.OpenAIChat, "/name") {
		w.StringField("name", r.names.wireName(res.Namespace, res.Name))
	}
	w.StringField("tool_call_id", id)
	w.Key("content")
	if native := nativeContent(res, dragoman.FormatChatResult); native != nil {
		w.Raw(native)
	} else {
		spill = r.writeChatContent(w, res, at, rep)
	}
	extra.Write(w, res.Extra, dragoman.OpenAIChat, "")
	w.EndObject()
	return spill
}

// writeChatContent writes the content of a tool message: a string where one
// says it all (quirk D34), else text parts. It returns the media, of which only
// a note stays.
func (r *Registry) writeChatContent(w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part) {
	texts, _ := textParts(res)
	reportFlag(res, at, rep)
	parts := make([]dragoman.Part, 0, len(res.Content)+1)
	from := make([]int, 0, len(res.Content)+1) // what parts were made of; -1: of the result
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
			if p.Dialect == dragoman.OpenAIChat {
				parts, from = append(parts, p), append(from, i)
				continue
			}
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place in a tool message", extra.AType(p.Type, "block"), p.Dialect)
		default:
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in a tool message", extra.A(string(p.Kind())))
		}
	}
	if len(texts) > 0 { // an error with nothing to say still says that it is one
		add(dragoman.Text{}, -1)
	}
	if len(spill) > 0 {
		last = &dragoman.Text{Text: "(see the attached " + mediaWord(spill) + " below)"}
		parts, from = append(parts, last), append(from, -1)
	}
	if res.Cache != nil {
		if last != nil && last.Cache == nil && r.target.Caps.CacheBreakpoints {
			last.Cache = res.Cache
		} else {
			rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a result: the target caches by itself")
		}
	}
	if len(parts) == 0 {
		w.String("") // the member is required (quirk D11)
		return spill
	}
	if text, ok := r.ChatString(parts, place(from[0]), rep); ok {
		w.String(text)
		return spill
	}
	w.BeginArray()
	for i, p := range parts {
		r.WriteChatPart(w, p, place(from[i]), rep)
	}
	w.EndArray()
	return spill
}

func mediaWord(parts []dragoman.Part) string {
	kind := dragoman.MediaKind("")
	for _, p := range parts {
		m, ok := p.(*dragoman.Media)
		if !ok || (kind != "" && m.Media != kind) {
			return "content"
		}
		kind = m.Media
	}
	return string(kind)
}

func (r *Registry) writeResponsesResult(w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	if res.Payload == dragoman.PayloadText && !r.target.Caps.NoCustomTools {
		w.StringField("type", "custom_tool_call_output")
	} else {
		w.StringField("type", "function_call_output")
	}
	w.StringFieldIf("id", res.ItemID)
	if id != "" || res.CallID != "" {
		w.StringField("call_id", id)
	}
	w.Key("output")
	if native := nativeContent(res, dragoman.FormatResponsesResult); native != nil {
		w.Raw(native)
	} else {
		r.writeResponsesOutput(w, res, at, rep)
	}
	extra.Write(w, res.Extra, dragoman.OpenAIResponses, "")
	if res.Caller != nil && !hasMember(res.Extra, dragoman.OpenAIResponses, "/caller") {
		w.RawField("caller", res.Caller)
	}
	w.EndObject()
}

func hasMember(e *dragoman.Extra, d dragoman.Dialect, path string) bool {
	_, ok := extra.Get(e, d, path)
	return ok
}

func (r *Registry) writeResponsesOutput(w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	if res.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a result: the target caches by itself")
	}
	texts, media := textParts(res)
	reportFlag(res, at, rep)
	if len(media) == 0 && len(texts) <= 1 && !r.needsPart(res.Content) {
		w.String(strings.Join(texts, ""))
		if len(res.Content) == 1 {
			if t, ok := res.Content[0].(*dragoman.Text); ok {
				extra.ReportState(rep, t.Signature, at.Elem("content", 0))
				extra.Report(rep, t.Extra, dragoman.OpenAIResponses, at.Elem("content", 0))
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
				r.writeBreakpoint(w, t.Cache, nil, dragoman.OpenAIResponses, at, rep)
				extra.ReportState(rep, t.Signature, at)
				extra.Write(w, t.Extra, dragoman.OpenAIResponses, "")
				extra.Report(rep, t.Extra, dragoman.OpenAIResponses, at)
			}
			w.EndObject()
			text++
		case *dragoman.Media:
			r.WriteResponsesPart(w, p, false, at, rep)
		case *dragoman.Opaque:
			if p.Dialect == dragoman.OpenAIResponses {
				w.Raw(p.JSON)
				continue
			}
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place in an output", extra.AType(p.Type, "block"), p.Dialect)
		default:
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in an output", extra.A(string(p.Kind())))
		}
	}
	// An error with nothing to say but media still says that it is one.
	for ; text < len(texts); text++ {
		w.BeginObject()
		w.StringField("type", "input_text")
		w.StringField("text", texts[text])
		w.EndObject()
	}
	w.EndArray()
}

// needsPart reports whether the text of a result says more than a string can.
func (r *Registry) needsPart(content []dragoman.Part) bool {
	if len(content) != 1 {
		return false
	}
	t, ok := content[0].(*dragoman.Text)
	return ok && (t.Extra.For(dragoman.OpenAIResponses) != nil || t.Cache != nil)
}

func (r *Registry) writeAnthropicResult(w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	w.StringField("type", "tool_result")
	w.StringField("tool_use_id", id)
	if native := nativeContent(res, dragoman.FormatAnthropicResult); native != nil {
		w.RawField("content", native)
	} else if parts := res.Content; hasContent(parts) {
		w.Key("content")
		w.BeginArray()
		for i, p := range parts {
			at := at.Elem("content", i)
			switch p := p.(type) {
			case *dragoman.Text:
				if blank(p) {
					reportBlank(rep, at)
					continue
				}
				WriteAnthropicText(w, p, at, rep)
			case *dragoman.Data:
				WriteAnthropicText(w, &dragoman.Text{Text: string(p.JSON)}, at, rep)
			case *dragoman.Media:
				r.WriteAnthropicMedia(w, p, at, rep)
			case *dragoman.Opaque:
				if p.Dialect == dragoman.Anthropic {
					w.Raw(p.JSON)
					continue
				}
				rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place in a tool_result", extra.AType(p.Type, "block"), p.Dialect)
			default:
				rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in a tool_result", extra.A(string(p.Kind())))
			}
		}
		w.EndArray()
	} else if res.Text() != "" {
		reportBlank(rep, at)
	}
	if res.Outcome == dragoman.OutcomeError {
		w.BoolField("is_error", true)
	}
	extra.Write(w, res.Extra, dragoman.Anthropic, "")
	if res.Cache != nil {
		WriteCacheControl(w, res.Cache, at, rep)
	}
	w.EndObject()
}

// blank reports whether a text block would be rejected for saying nothing
// (quirk D22).
func blank(t *dragoman.Text) bool { return strings.TrimSpace(t.Text) == "" }

// reportBlank tells of a text that is left out.
func reportBlank(rep *dragoman.Report, at extra.Path) {
	rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "a text that says nothing")
}

// hasContent reports whether a result says anything: one without content is
// written without a content member (quirk D11).
func hasContent(parts []dragoman.Part) bool {
	for _, p := range parts {
		if t, ok := p.(*dragoman.Text); !ok || !blank(t) {
			return true
		}
	}
	return false
}

// ReadResult reads a result object of the target's dialect. lift reads the
// error prefix as the flag, where the dialect has none.
func (r *Registry) ReadResult(obj json.RawMessage, lift bool, at extra.Path, rep *dragoman.Report) (*dragoman.ToolResult, error) {
	f, err := wireOf(r.target.Dialect)
	if err != nil {
		return nil, err
	}
	return r.readResultAs(f.result, obj, lift, at, rep)
}

func (r *Registry) readResultAs(format dragoman.Format, obj json.RawMessage, lift bool, at extra.Path, rep *dragoman.Report) (*dragoman.ToolResult, error) {
	if a, ok := r.results[format]; ok {
		res, sub, err := a.InspectResult(obj)
		rep.Merge(at.String(), sub)
		if err == nil && res == nil {
			err = fail(format, errNothing)
		}
		return res, err
	}
	res := &dragoman.ToolResult{}
	rd := jsonwire.NewReader(obj)
	switch format {
	case dragoman.FormatChatResult:
		readChatResult(rd, res)
	case dragoman.FormatResponsesResult:
		readResponsesResult(rd, res)
	case dragoman.FormatAnthropicResult:
		readAnthropicResult(rd, res)
		lift = false
	case dragoman.FormatGeminiResult:
		readGeminiResult(rd, res)
		lift = false
	case dragoman.FormatOllamaResult:
		readOllamaResult(rd, res)
	case dragoman.FormatBedrockResult:
		readBedrockResult(rd, res)
		lift = false
	default:
		return nil, fmt.Errorf("interop: no accessor reads results of format %s; contribute one", format)
	}
	if err := rd.End(); err != nil {
		return nil, fail(format, err)
	}
	res.CallID = r.ids.restore(res.CallID)
	if res.Name != "" {
		res.Namespace, res.Name, _ = r.PublicName(res.Namespace, res.Name)
	}
	if lift {
		liftError(res, at, rep)
	}
	return res, nil
}

func liftError(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	if len(res.Content) == 0 {
		return
	}
	t, ok := res.Content[0].(*dragoman.Text)
	if !ok {
		return
	}
	if rest, ok := strings.CutPrefix(t.Text, ErrorPrefix); ok {
		t.Text, res.Outcome = rest, dragoman.OutcomeError
		rep.Add(dragoman.Moved, dragoman.Info, at.String(), `"ERROR: " at the start of the text read as the error flag`)
	}
}

func readChatResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	for key := range rd.Object() {
		switch string(key) {
		case "role":
			rd.Skip()
		case "tool_call_id":
			res.CallID = readID(rd)
		case "name":
			res.Name = rd.String()
			extra.Add(&res.Extra, dragoman.OpenAIChat, "", []byte("name"), quoteJSON(res.Name))
		case "content":
			res.Content = readChatTexts(rd)
		default:
			extra.Add(&res.Extra, dragoman.OpenAIChat, "", key, rd.Raw())
		}
	}
}

func quoteJSON(s string) []byte {
	var w jsonwire.Writer
	w.String(s)
	return w.Buf
}

// readChatTexts reads the content of a tool message: a string, text parts, or
// what some server made of it.
func readChatTexts(rd *jsonwire.Reader) []dragoman.Part {
	switch rd.Kind() {
	case '"':
		return []dragoman.Part{&dragoman.Text{Text: rd.String()}}
	case 'n':
		rd.Skip()
		return nil
	case '[':
		var parts []dragoman.Part
		for range rd.Array() {
			parts = append(parts, ReadChatPart(rd.Raw()))
		}
		return parts
	default:
		return []dragoman.Part{&dragoman.Data{JSON: rd.Raw()}}
	}
}

func readResponsesResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			if rd.String() == "custom_tool_call_output" {
				res.Payload = dragoman.PayloadText
			}
		case "id":
			res.ItemID = readID(rd)
		case "call_id":
			res.CallID = readID(rd)
		case "output":
			switch rd.Kind() {
			case '"':
				res.Content = []dragoman.Part{&dragoman.Text{Text: rd.String()}}
			case '[':
				for range rd.Array() {
					res.Content = append(res.Content, ReadResponsesPart(rd.Raw()))
				}
			case 'n':
				rd.Skip()
			default:
				res.Content = []dragoman.Part{&dragoman.Data{JSON: rd.Raw()}}
			}
		case "caller":
			res.Caller = rd.Raw()
			extra.Add(&res.Extra, dragoman.OpenAIResponses, "", []byte("caller"), res.Caller)
		default:
			extra.Add(&res.Extra, dragoman.OpenAIResponses, "", key, rd.Raw())
		}
	}
}

func readAnthropicResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	res.Outcome = dragoman.OutcomeOK // what an absent is_error means
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "tool_use_id":
			res.CallID = readID(rd)
		case "is_error":
			if rd.Kind() == 'n' {
				rd.Skip()
				continue
			}
			if rd.Bool() {
				res.Outcome = dragoman.OutcomeError
			} else {
				extra.Add(&res.Extra, dragoman.Anthropic, "", []byte("is_error"), []byte("false"))
			}
		case "content":
			switch rd.Kind() {
			case '"':
				res.Content = []dragoman.Part{&dragoman.Text{Text: rd.String()}}
			case '[':
				for range rd.Array() {
					res.Content = append(res.Content, ReadAnthropicPart(rd.Raw()))
				}
			case 'n':
				rd.Skip()
			default:
				res.Content = []dragoman.Part{&dragoman.Data{JSON: rd.Raw()}}
			}
		case "cache_control":
			res.Cache = ttl(rd)
		default:
			extra.Add(&res.Extra, dragoman.Anthropic, "", key, rd.Raw())
		}
	}
}
