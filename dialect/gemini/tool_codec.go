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

// Gemini speaks the JSON of protocol buffers: every member may come in
// lowerCamelCase or in snake_case, and is written in the first. Its tool
// objects are a function declaration, and the functionCall and functionResponse
// inside a part; what stands beside those in the part is the dialect's.

// formatTool is an element of a request's tools: any number of function
// declarations, and the provider's own tools, in one object.
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

// toolCodecs are those of a registry that the dialect composes itself.
var toolCodecs = []toolwire.Codec{toolCodec{}}

// ToolCodec returns the codec of the dialect's tool objects, for a registry.
func (Codec) ToolCodec() toolwire.Codec { return toolCodec{} }

func (toolCodec) Traits() *toolwire.Traits { return &toolTraits }

func (toolCodec) CallFormat(jsonwire.Value) dragoman.Format {
	return toolformat.GeminiFunctionCall
}

func (toolCodec) RecognizeCall(o *toolwire.Outline) dragoman.Format {
	switch {
	case o.Type != "" || o.Kinds["function"] == '{' || o.Kinds["toolUse"] == '{': // the call of another dialect
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
		return toolwire.OneTool(format, obj, func(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
			readFunction(rd, s, at, rep)
		})
	case formatTool:
		return readTool(v, obj, at, rep)
	default:
		return toolwire.OneTool(format, obj, toolwire.ReadHosted)
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

// ToolFormat tells a declaration, which has a name, from an element of
// the tools.
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

// readTool reads an element of the tools. Whatever is no declaration is
// the provider's own, one tool for each member: they are written apart (quirk
// A44).
func readTool(v toolwire.View, obj json.RawMessage, at extra.Path, rep *dragoman.Report) ([]dragoman.ToolSpec, error) {
	rd := jsonwire.NewReader(obj)
	var specs []dragoman.ToolSpec
	var failed error
	for key := range rd.Object() {
		member := string(jsonwire.Camel(key))
		switch {
		case rd.Kind() == 'n':
			rd.Skip()
		case member == "functionDeclarations":
			declaration := func(i int) {
				raw := rd.Raw()
				if rd.Err() != nil {
					return
				}
				inner, err := v.ReadTool(toolformat.GeminiFunction, raw, at.Elem(member, i), rep)
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
			specs = append(specs, hostedTool(string(key), member, rd.Raw()))
		}
	}
	if err := rd.End(); err != nil {
		return nil, toolwire.Fail(formatTool, err)
	}
	return specs, failed
}

// hostedTool is a tool that the provider runs. Its source holds it alone.
func hostedTool(key, member string, value []byte) dragoman.ToolSpec {
	var w jsonwire.Writer
	w.BeginObject()
	w.QuotedKey(key)
	w.Known(value)
	w.EndObject()
	format := dragoman.Format(string(dialectname.Gemini) + "." + member)
	s := dragoman.ToolSpec{
		Kind: codes.ToolHosted, Name: member,
		Source: &dragoman.ToolSource{Format: format, JSON: w.Buf},
	}
	s.Source.Mirror = s.Fingerprint()
	return s
}

// readFunction reads a declaration. Of the two forms of a schema that the
// API wants one of, JSON Schema is read.
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

// eitherSchema is the schema that a declaration has, in whichever form;
// name is the member of the closed one.
func eitherSchema(open, closed json.RawMessage, name string, at extra.Path, rep *dragoman.Report) json.RawMessage {
	switch {
	case closed == nil:
		return open
	case open == nil:
		return fromClosedSchema(closed, at.String()+"/"+name, rep)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Warn, at.String()+"/"+name, "%sJsonSchema stands beside it, where the API wants one of the two", name)
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
	if takesNothing(low.Schema) {
		rep.Losses = unwritten(rep.Losses, first, at.String()+"/parameters")
	}
	if s.Strict == codes.StrictOn {
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/strict", "the API has no strict flag")
	}
	toolwire.ReportUnsaid(s, toolwire.ToolSays{OutputSchema: true}, at, rep)
	w.BeginObject()
	w.StringField("name", name)
	w.StringField("description", low.Description) // the API's document demands one
	if !takesNothing(low.Schema) {                // quirk A20
		w.RawField(schemaField("parameters", closed), low.Schema)
	}
	if s.OutputSchema != nil {
		writeOutput(v, w, s, closed, at, rep)
	}
	extra.End(w, s.Extra, d, at, rep)
	return true
}

// unwritten takes out of the losses since first what was added to a schema, or
// taken from it as empty, that is not sent at all, because it takes nothing.
func unwritten(losses []dragoman.Loss, first int, at string) []dragoman.Loss {
	return append(losses[:first], slices.DeleteFunc(losses[first:], func(l dragoman.Loss) bool {
		return l.Severity == dragoman.Info && (l.Kind == dragoman.Synthesized && l.Path == at || l.Kind == dragoman.Dropped && l.Path == at+"/properties")
	})...)
}

// schemaField is the name of the member that holds a schema.
func schemaField(name string, closed bool) string {
	if closed {
		return name
	}
	return name + "JsonSchema"
}

func writeOutput(v toolwire.View, w *jsonwire.Writer, s *dragoman.ToolSpec, closed bool, at extra.Path, rep *dragoman.Report) {
	profile := openAnswers
	if closed {
		profile = closedAnswers
	}
	low, err := v.Adapt(s.OutputSchema, profile)
	if err != nil {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "output schema: %v", err)
		return
	}
	rep.Merge(at.String()+"/output_schema", low.Report)
	w.RawField(schemaField("response", closed), low.Schema)
}

// takesNothing reports whether a schema is that of a tool without arguments:
// the API dislikes an object of no properties.
func takesNothing(parameters json.RawMessage) bool {
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

// callFields are the fields that say what a call runs.
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
			default: // nobody knows whether all of it is here
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
			Message: "the call came in fragments, of which some are missing; make it again",
		}
	}
}

// writeCall writes a functionCall. A call without an id is written
// without one: the API pairs it by its name and place (quirk B15).
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
// keeps all of them as doubles. In an answer clients read what is written.
func reportInexact(v toolwire.View, raw []byte, at extra.Path, member string, rep *dragoman.Report) {
	if v.Answer() {
		return
	}
	if n := jsonwire.Inexact(raw); n != nil {
		rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+member, "%.40s is beyond 2^53: the API keeps numbers as doubles and may change it", n)
	}
}

// writeResult writes a functionResponse. It returns the media that has
// to stand beside it.
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
	spill, media = besideResult(v, media)
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
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a result: the target caches by itself")
	}
	return spill
}

// besideResult parts media into what stands beside a result and what stands in
// it: the API takes few types there, and each must be told (quirk D13).
func besideResult(v toolwire.View, media []dragoman.Part) (beside, inside []dragoman.Part) {
	for _, p := range media {
		m, ok := p.(*dragoman.Media)
		if v.Caps().NoResultMedia || ok && !inResult(m) {
			beside = append(beside, p)
		} else {
			inside = append(inside, p)
		}
	}
	return beside, inside
}

// inResult reports whether a result takes media of this type.
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
		writeMembers(w, o.JSON)
		return
	}
	writeMediaField(w, m, at, rep)
	extra.Write(w, m.Extra, dialectname.Gemini, "")
	extra.Report(rep, m.Extra, dialectname.Gemini, at)
}

// writeMembers writes the members of an object into the one that w is writing.
func writeMembers(w *jsonwire.Writer, obj []byte) {
	rd := jsonwire.NewReader(obj)
	for key := range rd.Object() {
		w.QuotedKey(string(key))
		w.Known(rd.Raw())
	}
}

// writeResponse writes the object of a result, by the API's convention:
// "output" for what came out, "error" for what went wrong; any other object is
// the output itself (quirks D11, D12, D16). It returns what is no text.
func writeResponse(w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) (media []dragoman.Part) {
	key := "output"
	if res.Outcome == codes.OutcomeError {
		key = "error"
	}
	var said []dragoman.Part
	for i, p := range res.Content {
		at := at.Elem("content", i)
		switch p := p.(type) {
		case *dragoman.Text:
			said = append(said, p)
			extra.ReportState(rep, p.Signature, at)
			extra.Report(rep, p.Extra, dialectname.Gemini, at)
			if p.Cache != nil {
				rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches by itself")
			}
		case *dragoman.Data:
			said = append(said, p)
		case *dragoman.Media:
			if unsendable(p) {
				rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s that only its own provider can read; a note stands in for it", extra.A(p.Media))
				said = append(said, &dragoman.Text{Text: toolwire.Placeholder(p)})
				continue
			}
			media = append(media, p)
		case *dragoman.Opaque:
			if p.Dialect == dialectname.Gemini && jsonwire.NewReader(p.JSON).Kind() == '{' {
				media = append(media, p)
				continue
			}
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place in a result", extra.A(p.Type), p.Dialect)
		default:
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in a result", extra.A(p.Kind()))
		}
	}
	switch {
	case len(said) == 0:
		writeKeyed(w, key, []byte(`""`)) // the member is required
	case len(said) > 1:
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String(), "%d texts of a result written as one", len(said))
		writeKeyed(w, key, toolwire.Quote(joinSaid(said)))
	default:
		writeSaid(w, key, said[0], res.Outcome == codes.OutcomeUnknown, at, rep)
	}
	return media
}

// writeSaid writes the only text or value of a result. bare says that an object
// stands for itself, as nobody says whether the tool failed.
func writeSaid(w *jsonwire.Writer, key string, p dragoman.Part, bare bool, at extra.Path, rep *dragoman.Report) {
	d, ok := p.(*dragoman.Data)
	switch {
	case !ok:
		writeKeyed(w, key, toolwire.Quote(p.(*dragoman.Text).Text))
	case bytes.Contains(d.JSON, []byte(`"$ref"`)) || bytes.Contains(d.JSON, []byte(`"$defs"`)):
		// The API would look for what they point at.
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

func joinSaid(parts []dragoman.Part) string {
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

// soleKey returns "output" or "error" for an object that has nothing but that
// member, so that it follows the convention; else nothing.
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

// readResponse reads the object of a result. Without the API's own keys
// the whole object is the output, and whether the tool failed is unknown.
func readResponse(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	switch rd.Kind() {
	case 'n':
		rd.Skip()
		return
	case '"': // not of the API, but it says what it is
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

// soleValue is the value of an object's only member.
func soleValue(obj []byte) (value json.RawMessage) {
	rd := jsonwire.NewReader(obj)
	for range rd.Object() {
		value = rd.Raw()
	}
	return value
}

// unsendable reports whether media has no content, nor a place that the API
// could fetch it from.
func unsendable(m *dragoman.Media) bool {
	return m.Base64 == "" && m.Text == "" && m.URL == ""
}

// partOfCall reads a part that holds a call. ok is false for any other object, and for a
// part that also holds something else or repeats a field.
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
