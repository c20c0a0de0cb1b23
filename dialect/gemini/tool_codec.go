package gemini

import (
	"bytes"
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

// Gemini uses protobuf JSON: every field may arrive in lowerCamelCase or in
// snake_case and is written in lowerCamelCase. Its tool objects are a function
// declaration, and the functionCall and functionResponse inside a part. The
// dialect handles the other fields of the part.

// formatTool is an element of a request's tools: any number of function
// declarations and hosted tools in one object.
const formatTool dragoman.Format = "gemini.generate_content.tool"

// toolCodec reads and writes the tool objects of generateContent.
type toolCodec struct{}

var toolTraits = toolwire.Traits{
	Dialect:  dialectname.Gemini,
	Function: toolformat.GeminiFunction, ToolList: formatTool,
	Call: toolformat.GeminiFunctionCall, Result: toolformat.GeminiResult,
	CallFields:    []toolwire.Fields{{Path: "/", Names: callFields}},
	ResultOutcome: true,
}

var (
	_ toolwire.Recognizer = toolCodec{}
	_ toolwire.Shaper     = toolCodec{}
)

// toolCodecs lists the codecs of a registry that the dialect creates itself.
var toolCodecs = []toolwire.Codec{toolCodec{}}

// ToolCodec returns the codec of the dialect's tool objects, for use in a
// registry.
func (Codec) ToolCodec() toolwire.Codec { return toolCodec{} }

func (toolCodec) Traits() *toolwire.Traits { return &toolTraits }

func (toolCodec) CallFormat(jsonwire.Value) dragoman.Format {
	return toolformat.GeminiFunctionCall
}

func (toolCodec) RecognizeCall(o *toolwire.Outline) dragoman.Format {
	switch {
	case o.Type != "" || o.Kinds["function"] == '{' || o.Kinds["toolUse"] == '{': // a call of another dialect
		return ""
	case o.Kinds["name"] == '"' && o.Has("args") && !o.Has("functionCall") && !o.Has("function_call"):
		return toolformat.GeminiFunctionCall
	}
	if _, ok := partOfCall(o.Object); ok {
		return toolformat.GeminiFunctionCall
	}
	return ""
}

func (toolCodec) RecognizeInner(*toolwire.Outline) dragoman.Format { return "" }

func (toolCodec) CallObject(format dragoman.Format, obj json.RawMessage) toolwire.CallShape {
	if format == toolformat.GeminiFunctionCall {
		if s, ok := partOfCall(obj); ok {
			return s
		}
	}
	return toolwire.CallShape{Object: obj}
}

func (toolCodec) ResultObject(obj json.RawMessage) (json.RawMessage, *dragoman.Extra) {
	if inner, rest, ok := partOfResult(obj); ok {
		return inner, rest
	}
	return obj, nil
}

func (toolCodec) ReadTool(v toolwire.View, format dragoman.Format, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	switch format {
	case toolformat.GeminiFunction:
		return toolwire.DecodeTool(format, obj, func(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
			readFunction(rd, s, at, rep)
		})
	case formatTool:
		return readTool(v, obj, at, rep)
	default:
		return toolwire.DecodeTool(format, obj, toolwire.ReadHosted)
	}
}

func (toolCodec) ReadCall(rd *jsonwire.Reader, c *dragoman.ToolCall) toolwire.CallReading {
	readCall(rd, c)
	return toolwire.CallReading{}
}

func (toolCodec) WriteCall(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report) {
	writeCall(v, w, c, id, name, at, rep)
}

func (toolCodec) WriteResult(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) []dragoman.Part {
	return writeResult(v, w, res, id, at, rep)
}

// ToolFormat distinguishes a function declaration, which has a name, from an
// element of the tools.
func (toolCodec) ToolFormat(obj json.RawMessage) dragoman.Format {
	rd := jsonwire.NewReader(obj)
	if rd.Kind() != '{' {
		return formatTool
	}
	for key := range rd.Object() {
		if string(key) == "name" && rd.Kind() == '"' {
			return toolformat.GeminiFunction
		}
		rd.Skip()
	}
	return formatTool
}

// readTool reads an element of the tools. Every field other than
// functionDeclarations becomes a hosted tool of its own, because they are
// written separately (quirk A44).
func readTool(v toolwire.View, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	rd := jsonwire.NewReader(obj)
	var specs []dragoman.ToolSpec
	var failed error
	for key := range rd.Object() {
		field := string(jsonwire.Camel(key))
		switch {
		case rd.Kind() == 'n':
			rd.Skip()
		case field == "functionDeclarations":
			declaration := func(i int) {
				raw := rd.Raw()
				if rd.Err() != nil {
					return
				}
				inner, err := v.ReadTool(toolformat.GeminiFunction, raw, at.Elem(field, i), rep)
				if err != nil && failed == nil {
					failed = err
				}
				specs = append(specs, inner...)
			}
			if rd.Kind() == '{' { // the API reads a single value as a list of one
				declaration(0)
				continue
			}
			for i := range rd.Array() {
				declaration(i)
			}
		default:
			specs = append(specs, hostedTool(string(key), field, rd.Raw()))
		}
	}
	if err := rd.End(); err != nil {
		return nil, toolwire.Fail(formatTool, err)
	}
	return specs, failed
}

// hostedTool returns a tool that the provider runs. Its source holds only this
// tool.
func hostedTool(key, field string, value []byte) dragoman.ToolSpec {
	var w jsonwire.Writer
	w.BeginObject()
	w.QuotedKey(key)
	w.Known(value)
	w.EndObject()
	format := dragoman.Format(string(dialectname.Gemini) + "." + field)
	s := dragoman.ToolSpec{
		Kind: codes.ToolHosted, Name: field,
		Source: &dragoman.ToolSource{Format: format, JSON: w.Buf},
	}
	s.Source.Mirror = s.Fingerprint()
	return s
}

// readFunction reads a function declaration. The API accepts one of two schema
// forms; if both are present, JSON Schema is used.
func readFunction(rd *jsonwire.Reader, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.Gemini
	var closed, closedOutput json.RawMessage
	for key := range rd.Object() {
		switch string(jsonwire.Camel(key)) {
		case "name":
			s.Name = rd.String()
		case "description":
			s.Description = rd.String()
		case "parametersJsonSchema":
			s.Parameters = toolwire.ReadSchema(rd)
		case "parameters":
			closed = toolwire.ReadSchema(rd)
		case "responseJsonSchema":
			s.OutputSchema = toolwire.ReadSchema(rd)
		case "response":
			closedOutput = toolwire.ReadSchema(rd)
		default:
			extra.Add(&s.Extra, d, "", key, rd.Raw())
		}
	}
	if rd.Err() != nil {
		return
	}
	s.Parameters = eitherSchema(s.Parameters, closed, "parameters", at, rep)
	s.OutputSchema = eitherSchema(s.OutputSchema, closedOutput, "response", at, rep)
}

// eitherSchema returns the schema of a declaration in either form. name is the
// field of the closed form.
func eitherSchema(open, closed json.RawMessage, name string, at extra.Path, rep *dragoman.Report) json.RawMessage {
	switch {
	case closed == nil:
		return open
	case open == nil:
		return fromClosedSchema(closed, at.String()+"/"+name, rep)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Warn, at.String()+"/"+name, "%sJsonSchema is also set; the API accepts only one of the two", name)
		return open
	}
}

func (toolCodec) WriteTool(v toolwire.View, w *jsonwire.Writer, _ dragoman.Format, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dialectname.Gemini
	closed := v.Caps().ClosedSchemas
	first := len(rep.Losses)
	low, ok := v.Lower(toolCodec{}, s, codes.StrictOff, at, rep)
	if !ok {
		return false
	}
	if hasNoArguments(low.Schema) {
		rep.Losses = dropSchemaLosses(rep.Losses, first, at.String()+"/parameters")
	}
	if s.Strict == codes.StrictOn {
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/strict", "the API has no strict flag")
	}
	toolwire.ReportMissing(s, toolwire.ToolFields{OutputSchema: true}, at, rep)
	w.BeginObject()
	w.StringField("name", name)
	w.StringField("description", low.Description) // the API document requires one
	if !hasNoArguments(low.Schema) {              // quirk A20
		w.RawField(schemaField("parameters", closed), low.Schema)
	}
	if s.OutputSchema != nil {
		writeOutput(v, w, s, closed, at, rep)
	}
	extra.End(w, s.Extra, d, at, rep)
	return true
}

// dropSchemaLosses removes losses since first that describe additions to, or empty
// properties of, a schema that is not sent because the tool has no arguments.
func dropSchemaLosses(losses []dragoman.Loss, first int, at string) []dragoman.Loss {
	return append(losses[:first], slices.DeleteFunc(losses[first:], func(l dragoman.Loss) bool {
		return l.Severity == dragoman.Info && (l.Kind == dragoman.Synthesized && l.Path == at || l.Kind == dragoman.Dropped && l.Path == at+"/properties")
	})...)
}

func schemaField(name string, closed bool) string {
	if closed {
		return name
	}
	return name + "JsonSchema"
}

func writeOutput(v toolwire.View, w *jsonwire.Writer, s *dragoman.ToolSpec, closed bool, at extra.Path, rep *dragoman.Report) {
	profile := openOutput
	if closed {
		profile = closedOutput
	}
	low, err := v.Adapt(s.OutputSchema, profile)
	if err != nil {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "output schema: %v", err)
		return
	}
	rep.Merge(at.String()+"/output_schema", low.Report)
	w.RawField(schemaField("response", closed), low.Schema)
}

// hasNoArguments reports whether a schema describes a tool without arguments.
// The API handles an object schema without properties badly.
func hasNoArguments(parameters json.RawMessage) bool {
	rd := jsonwire.Borrow(parameters)
	defer rd.Return()
	if rd.Kind() != '{' {
		return false
	}
	for key := range rd.Object() {
		switch string(key) {
		case "type", "description", "title":
			rd.Skip()
		case "properties", "required":
			if v := rd.Raw(); string(v) != "{}" && string(v) != "[]" {
				return false
			}
		case "additionalProperties":
			if string(rd.Raw()) != "false" {
				return false
			}
		default:
			return false
		}
	}
	return rd.Err() == nil
}

// callFields lists the fields that decide what a call runs.
var callFields = []string{"id", "name", "args", "partialArgs", "willContinue"}

func readCall(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	cr := &toolwire.CallReader{Reader: rd, Call: c, Dialect: dialectname.Gemini}
	var seen uint
	for key := range rd.Object() {
		switch cr.Field(callFields, &seen, "", jsonwire.Camel(key)) {
		case "id":
			c.ID = toolwire.ReadID(rd)
		case "name":
			c.Name = cr.Text("", "name")
		case "args":
			c.Arguments = toolwire.ReadPayload(rd)
		case "partialArgs":
			if !rd.Null() {
				cr.Other("", []byte("partialArgs"))
				markIncomplete(c)
			}
		case "willContinue":
			switch rd.Kind() {
			case 't':
				rd.Skip()
				markIncomplete(c)
			case 'f', 'n', 0:
				rd.Skip()
			default: // unknown whether the call is complete
				cr.Unreadable("", "willContinue", "true or false")
			}
		default:
			cr.Other("", key)
		}
	}
}

// markIncomplete marks a call whose object is a fragment of a streamed call (quirk C28).
func markIncomplete(c *dragoman.ToolCall) {
	if c.Problem == nil {
		c.Problem = &dragoman.CallProblem{
			Code: codes.ProblemTruncated, Offset: -1,
			Message: "the call arrived in fragments and some are missing; make the call again",
		}
	}
}

// writeCall writes a functionCall. A call without an id is written without one:
// the API pairs it by name and position (quirk B15).
func writeCall(v toolwire.View, w *jsonwire.Writer, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.Gemini
	w.BeginObject()
	w.StringFieldIf("id", id)
	if !toolwire.HasField(c.Extra, d, "/name") {
		w.StringField("name", name)
	}
	args := v.ArgumentObject(c, at, rep)
	w.RawField("args", args)
	reportInexact(v, args, at, "/arguments", rep)
	extra.Write(w, c.Extra, d, "")
	w.EndObject()
}

// reportInexact reports a number in a request that the API changes, because it
// stores all numbers as doubles. Clients of a response read the number that is
// written.
func reportInexact(v toolwire.View, raw []byte, at extra.Path, field string, rep *dragoman.Report) {
	if v.ForClient() {
		return
	}
	if n := jsonwire.Inexact(raw); n != nil {
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+field, "%.40s is beyond 2^53: the API stores numbers as doubles and may change it", n)
	}
}

// writeResult writes a functionResponse. It returns the media that has to be
// written next to it.
func writeResult(v toolwire.View, w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) (spill []dragoman.Part) {
	const d = dialectname.Gemini
	w.BeginObject()
	w.StringFieldIf("id", id)
	w.StringField("name", v.WireName(res.Namespace, res.Name))
	w.Key("response")
	start := len(w.Buf)
	var media []dragoman.Part
	if native := toolwire.NativeContent(res, toolformat.GeminiResult); native != nil {
		if jsonwire.NewReader(native).Kind() == '{' {
			w.Raw(native)
		} else {
			writeKeyed(w, "output", native)
		}
	} else {
		media = writeResponse(w, res, at, rep)
	}
	reportInexact(v, w.Buf[start:], at, "/content", rep)
	spill, media = splitMedia(v, media)
	if len(media) > 0 {
		w.Key("parts")
		w.BeginArray()
		for _, p := range media {
			writeResultPart(v, w, p, at.Elem("content", slices.Index(res.Content, p)), rep)
		}
		w.EndArray()
	}
	extra.Write(w, res.Extra, d, "")
	w.EndObject()
	if res.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a result: the target caches automatically")
	}
	return spill
}

// splitMedia splits media into what is written next to a result and what fits
// inside. The API accepts few types inside, and each must have a MIME type
// (quirk D13).
func splitMedia(v toolwire.View, media []dragoman.Part) (after, inside []dragoman.Part) {
	for _, p := range media {
		m, ok := p.(*dragoman.Media)
		if v.Caps().NoResultMedia || ok && !inResult(m) {
			after = append(after, p)
		} else {
			inside = append(inside, p)
		}
	}
	return after, inside
}

// inResult reports whether a result can contain media of this type.
func inResult(m *dragoman.Media) bool {
	switch m.MIME {
	case "image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain":
		return true
	default:
		return m.Text != "" && m.Base64 == "" // written as text/plain
	}
}

func writeResultPart(v toolwire.View, w *jsonwire.Writer, p dragoman.Part, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	defer w.EndObject()
	m, ok := p.(*dragoman.Media)
	if !ok {
		o := p.(*dragoman.Opaque)
		writeFields(w, o.JSON)
		return
	}
	writeMediaField(w, m, at, rep)
	extra.Write(w, m.Extra, dialectname.Gemini, "")
	extra.Report(rep, m.Extra, dialectname.Gemini, at)
}

// writeFields writes the fields of obj into the object that w is writing.
func writeFields(w *jsonwire.Writer, obj []byte) {
	rd := jsonwire.NewReader(obj)
	for key := range rd.Object() {
		w.QuotedKey(string(key))
		w.Known(rd.Raw())
	}
}

// writeResponse writes the response object of a result. By the API's convention
// "output" holds the output and "error" an error; any other object is the
// output itself (quirks D11, D12, D16). It returns the parts that are not text.
func writeResponse(w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (media []dragoman.Part) {
	key := "output"
	if res.Outcome == codes.OutcomeError {
		key = "error"
	}
	var texts []dragoman.Part
	for i, p := range res.Content {
		at := at.Elem("content", i)
		switch p := p.(type) {
		case *dragoman.Text:
			texts = append(texts, p)
			extra.ReportState(rep, p.Signature, at)
			extra.Report(rep, p.Extra, dialectname.Gemini, at)
			if p.Cache != nil {
				rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches automatically")
			}
		case *dragoman.Data:
			texts = append(texts, p)
		case *dragoman.Media:
			if unsendable(p) {
				rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s that only its own provider can read; replaced by a note", p.Media)
				texts = append(texts, &dragoman.Text{Text: toolwire.Placeholder(p)})
				continue
			}
			media = append(media, p)
		case *dragoman.Opaque:
			if p.Dialect == dialectname.Gemini && jsonwire.NewReader(p.JSON).Kind() == '{' {
				media = append(media, p)
				continue
			}
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part of dialect %s cannot be expressed in a result", p.Type, p.Dialect)
		default:
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part cannot be expressed in a result", p.Kind())
		}
	}
	switch {
	case len(texts) == 0:
		writeKeyed(w, key, []byte(`""`)) // the field is required
	case len(texts) > 1:
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String(), "%d texts of a result joined into one", len(texts))
		writeKeyed(w, key, toolwire.Quote(joinTexts(texts)))
	default:
		writeSole(w, key, texts[0], res.Outcome == codes.OutcomeUnknown, at, rep)
	}
	return media
}

// writeSole writes the only text or value of a result. bare reports that an
// object is written without a key, because the outcome of the tool is unknown.
func writeSole(w *jsonwire.Writer, key string, p dragoman.Part, bare bool, at extra.Path, rep *dragoman.Report) {
	d, ok := p.(*dragoman.Data)
	switch {
	case !ok:
		writeKeyed(w, key, toolwire.Quote(p.(*dragoman.Text).Text))
	case bytes.Contains(d.JSON, []byte(`"$ref"`)) || bytes.Contains(d.JSON, []byte(`"$defs"`)):
		// The API would try to resolve the reference.
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "data with a $ref written as text")
		writeKeyed(w, key, toolwire.Quote(string(d.JSON)))
	case bare && jsonwire.NewReader(d.JSON).Kind() == '{' && soleKey(d.JSON) == "":
		w.Raw(d.JSON)
	default:
		writeKeyed(w, key, d.JSON)
	}
}

func writeKeyed(w *jsonwire.Writer, key string, value []byte) {
	w.BeginObject()
	w.RawField(key, value)
	w.EndObject()
}

func joinTexts(parts []dragoman.Part) string {
	texts := make([]string, len(parts))
	for i, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			texts[i] = p.Text
		case *dragoman.Data:
			texts[i] = string(p.JSON)
		}
	}
	return strings.Join(texts, "\n")
}

// soleKey returns "output" or "error" if that is the only field of obj, so that
// obj follows the convention; otherwise it returns an empty string.
func soleKey(obj []byte) string {
	rd := jsonwire.NewReader(obj)
	sole, n := "", 0
	for key := range rd.Object() {
		if k := string(key); k == "output" || k == "error" {
			sole = k
		}
		n++
		rd.Skip()
	}
	if n != 1 {
		return ""
	}
	return sole
}

func (toolCodec) ReadResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	const d = dialectname.Gemini
	var media []dragoman.Part
	for key := range rd.Object() {
		switch string(jsonwire.Camel(key)) {
		case "id":
			res.CallID = toolwire.ReadID(rd)
		case "name":
			res.Name = rd.String()
		case "response":
			readResponse(rd, res)
		case "parts":
			for range rd.Array() {
				raw := rd.Raw()
				if rd.Err() != nil {
					break
				}
				media = append(media, readResultPart(raw))
			}
		default:
			extra.Add(&res.Extra, d, "", key, rd.Raw())
		}
	}
	res.Content = append(res.Content, media...)
}

func readResultPart(raw []byte) dragoman.Part {
	if m := readMedia(raw); m != nil {
		return m
	}
	return &dragoman.Opaque{Dialect: dialectname.Gemini, JSON: raw}
}

// readResponse reads the response object of a result. Without one of the API's
// keys the whole object is the output, and the outcome is unknown.
func readResponse(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	switch rd.Kind() {
	case 'n':
		rd.Skip()
		return
	case '"': // not valid for the API, but unambiguous
		res.Content = []dragoman.Part{&dragoman.Text{Text: rd.String()}}
		return
	}
	raw := rd.Raw()
	if rd.Err() != nil {
		return
	}
	value := json.RawMessage(raw)
	if raw[0] == '{' {
		switch soleKey(raw) {
		case "output":
			res.Outcome, value = codes.OutcomeOK, soleValue(raw)
		case "error":
			res.Outcome, value = codes.OutcomeError, soleValue(raw)
		}
	}
	in := jsonwire.NewReader(value)
	if in.Kind() != '"' {
		res.Content = []dragoman.Part{&dragoman.Data{JSON: value}}
		return
	}
	if text := in.String(); text != "" {
		res.Content = []dragoman.Part{&dragoman.Text{Text: text}}
	}
}

// soleValue returns the value of the only field of obj.
func soleValue(obj []byte) (value json.RawMessage) {
	rd := jsonwire.NewReader(obj)
	for range rd.Object() {
		value = rd.Raw()
	}
	return value
}

// unsendable reports whether media has neither content nor a URL.
func unsendable(m *dragoman.Media) bool {
	return m.Base64 == "" && m.Text == "" && m.URL == ""
}

// partOfCall reads a part that holds a call. ok is false for any other object,
// and for a part that holds something else too or repeats a field.
func partOfCall(obj json.RawMessage) (s toolwire.CallShape, ok bool) {
	rd := jsonwire.NewReader(obj)
	if rd.Kind() != '{' {
		return s, false
	}
	var seen []string
	for key := range rd.Object() {
		name := string(jsonwire.Camel(key))
		if slices.ContainsFunc(seen, func(n string) bool { return strings.EqualFold(n, name) }) {
			return s, false
		}
		seen = append(seen, name)
		switch {
		case name == "functionCall" && rd.Kind() == '{':
			s.Object = rd.Raw()
		case name == "thoughtSignature" && rd.Kind() == '"':
			s.Signature = rd.String()
		case name == "thought" || rd.Kind() == 'n':
			extra.Add(&s.Around, dialectname.Gemini, "", key, rd.Raw())
		default:
			return s, false
		}
	}
	if rd.End() != nil || s.Object == nil {
		return s, false
	}
	return s, !toolwire.ObjectHas(s.Object, "arguments") // an older form of a Chat call has arguments
}

// partOfResult reads a part that holds a result. ok is false for any other object, and
// for one that repeats the field.
func partOfResult(obj json.RawMessage) (inner json.RawMessage, rest *dragoman.Extra, ok bool) {
	rd := jsonwire.NewReader(obj)
	if rd.Kind() != '{' {
		return nil, nil, false
	}
	for key := range rd.Object() {
		name := string(jsonwire.Camel(key))
		switch {
		case name == "functionResponse" && rd.Kind() == '{' && inner == nil:
			inner = rd.Raw()
		case name == "functionResponse", name == "response": // not a part that holds one result
			return nil, nil, false
		default:
			extra.Add(&rest, dialectname.Gemini, "", key, rd.Raw())
		}
	}
	return inner, rest, rd.End() == nil && inner != nil
}
