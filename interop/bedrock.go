package interop

import (
	"encoding/json"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// A tool object of Bedrock is an element of a list: {"toolSpec":…},
// {"toolUse":…}, {"toolResult":…}. The element's only member says what it is.

// bedrockUnion lists the members of which a block holds exactly one.
var bedrockUnion = []string{
	"text", "image", "document", "video", "audio", "toolUse", "toolResult", "reasoningContent", "cachePoint",
	"guardContent", "citationsContent", "searchResult", "toolAddition", "toolRemoval",
}

// What says what a call runs.
var (
	bedrockCallBlock = []string{"toolUse"}
	bedrockToolUse   = []string{"toolUseId", "name", "input", "type"}
)

// BedrockKey returns the member that says what a block of Bedrock's is: the one
// of the union it has, else its first. It is empty for what is no object.
func BedrockKey(obj []byte) string {
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
		if foldsTo(bedrockCallBlock, k) != "" { // a block that any reader could take for a call is one
			return "toolUse"
		}
		if known == "" && contains(bedrockUnion, k) {
			known = k
		}
	}
	if known == "" {
		return first
	}
	return known
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// bedrockSchemaFormat names the format of an element of toolConfig.tools.
func bedrockSchemaFormat(obj []byte) dragoman.Format {
	rd := jsonwire.NewReader(obj)
	key := ""
	if rd.Kind() == '{' {
		for k := range rd.Object() {
			name := string(k)
			rd.Skip()
			if name == "toolSpec" {
				return dragoman.FormatBedrockTool
			}
			if key == "" {
				key = name
			}
		}
	}
	return dragoman.Format(string(dragoman.Bedrock) + "." + key)
}

func bedrockCallFormat(obj []byte) dragoman.Format {
	if key := BedrockKey(obj); key != "toolUse" {
		return dragoman.Format(string(dragoman.Bedrock) + "." + key)
	}
	return dragoman.FormatBedrockToolUse
}

func readBedrockTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	for key := range rd.Object() {
		if string(key) == "toolSpec" {
			readToolSpec(rd, s)
		} else {
			extra.Add(&s.Extra, dragoman.Bedrock, "", key, rd.Raw())
		}
	}
}

func readToolSpec(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	const d = dragoman.Bedrock
	for key := range rd.Object() {
		switch string(key) {
		case "name":
			s.Name = rd.String()
		case "description":
			s.Description = rd.String()
		case "inputSchema":
			for key := range rd.Object() {
				if string(key) == "json" {
					s.Parameters = parameters(rd)
				} else {
					extra.Add(&s.Extra, d, "/toolSpec/inputSchema", key, rd.Raw())
				}
			}
		case "strict":
			readStrict(rd, s)
		default:
			extra.Add(&s.Extra, d, "/toolSpec", key, rd.Raw())
		}
	}
}

// bedrockHostedName is the name of a tool that Bedrock runs: that inside its
// only member, or the member's.
func bedrockHostedName(rd *jsonwire.Reader) string {
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
		if inner := hostedName(rd); inner != "" && name == k {
			name = inner
		}
	}
	return name
}

// writeBedrockTool writes a tool. An empty description is refused, so it is
// left out (quirk A32).
func (r *Registry) writeBedrockTool(w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dragoman.Bedrock
	low, ok := r.lower(s, dragoman.FormatBedrockTool, at, rep)
	if !ok {
		return false
	}
	unsaid(s, dragoman.FormatBedrockTool, at, rep)
	w.BeginObject()
	w.Key("toolSpec")
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", low.description)
	w.Key("inputSchema")
	w.BeginObject()
	w.RawField("json", low.Schema)
	extra.Write(w, s.Extra, d, "/toolSpec/inputSchema")
	w.EndObject()
	if low.strict {
		w.BoolField("strict", true)
	}
	extra.Write(w, s.Extra, d, "/toolSpec")
	w.EndObject()
	extra.End(w, s.Extra, d, at, rep)
	return true
}

// markTool writes the cache breakpoint after a tool where that is an element
// of the list of tools itself.
func (r *Registry) markTool(w *jsonwire.Writer, s *dragoman.ToolSpec, at extra.Path, rep *dragoman.Report) {
	if s.Cache != nil && r.target.Dialect == dragoman.Bedrock && !r.refusesCache(at, rep) {
		WriteCachePoint(w, s.Cache, at, rep)
	}
}

// WriteCachePoint writes the block that is Bedrock's cache breakpoint. It knows
// the lifetimes that Anthropic knows.
func WriteCachePoint(w *jsonwire.Writer, h *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
	ttl := anthropicTTL(h)
	switch {
	case ttl == h.TTL:
	case ttl == "":
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String()+"/cache", "cache lifetime %.40q is unknown; left to the provider", h.TTL)
	default:
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String()+"/cache", "cache lifetime %q written as %q", h.TTL, ttl)
	}
	w.BeginObject()
	w.Key("cachePoint")
	w.BeginObject()
	w.StringField("type", "default")
	w.StringFieldIf("ttl", ttl)
	w.EndObject()
	w.EndObject()
}

// ReadCachePoint reads Bedrock's cache breakpoint. It is nil for any other
// block, and for one that says more than a hint can.
func ReadCachePoint(raw []byte) *dragoman.CacheHint {
	rd := jsonwire.NewReader(raw)
	if rd.Kind() != '{' {
		return nil
	}
	var hint *dragoman.CacheHint
	plain := true
	for key := range rd.Object() {
		if string(key) != "cachePoint" || rd.Kind() != '{' || hint != nil {
			rd.Skip()
			plain = false
			continue
		}
		hint = &dragoman.CacheHint{}
		for key := range rd.Object() {
			switch {
			case string(key) == "type" && rd.Kind() == '"':
				plain = rd.String() == "default" && plain
			case string(key) == "ttl" && rd.Kind() == '"':
				hint.TTL = rd.String()
				plain = plain && (hint.TTL == "5m" || hint.TTL == "1h")
			default:
				rd.Skip()
				plain = false
			}
		}
	}
	if rd.End() != nil || !plain {
		return nil
	}
	return hint
}

// bedrockHosted is the type of a call that the provider runs itself.
const bedrockHosted = "server_tool_use"

func readBedrockCall(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	cr := &callReader{rd: rd, c: c, d: dragoman.Bedrock}
	var seen uint
	for key := range rd.Object() {
		switch cr.member(bedrockCallBlock, &seen, "", key) {
		case "toolUse":
			if cr.object("", "toolUse") {
				cr.toolUse()
			}
		default:
			if contains(bedrockUnion, string(key)) && rd.Kind() != 'n' { // a block is one thing only; null is nothing (quirk C8)
				cr.ambiguous(string(key))
				cr.other("/unread", key)
				continue
			}
			cr.other("", key)
		}
	}
}

func (cr *callReader) toolUse() {
	const prefix = "/toolUse"
	var seen uint
	for key := range cr.rd.Object() {
		switch cr.member(bedrockToolUse, &seen, prefix, key) {
		case "toolUseId":
			cr.c.ID = readID(cr.rd)
		case "name":
			cr.c.Name = cr.text(prefix, "name")
		case "input":
			cr.c.Arguments = readPayload(cr.rd)
		case "type": // whatever it says else, clients run the call
			raw := cr.rd.Raw()
			cr.c.Hosted = jsonwire.NewReader(raw).String() == bedrockHosted // nothing else reads so
			extra.Add(&cr.c.Extra, cr.d, prefix, key, raw)
		default:
			cr.other(prefix, key)
		}
	}
}

func (r *Registry) writeBedrockCall(w *jsonwire.Writer, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report) {
	const d = dragoman.Bedrock
	w.BeginObject()
	if !hasMember(c.Extra, d, "/toolUse") {
		w.Key("toolUse")
		w.BeginObject()
		w.StringField("toolUseId", id)
		if !hasMember(c.Extra, d, "/toolUse/name") {
			w.StringField("name", name)
		}
		w.RawField("input", r.argumentObject(c, at, rep))
		extra.Write(w, c.Extra, d, "/toolUse")
		w.EndObject()
	}
	extra.Write(w, c.Extra, d, "")
	w.EndObject()
}

func readBedrockResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	res.Outcome = dragoman.OutcomeOK // what an absent status means
	for key := range rd.Object() {
		if string(key) == "toolResult" {
			readToolResult(rd, res)
		} else {
			extra.Add(&res.Extra, dragoman.Bedrock, "", key, rd.Raw())
		}
	}
}

func readToolResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
	const d, prefix = dragoman.Bedrock, "/toolResult"
	for key := range rd.Object() {
		switch string(key) {
		case "toolUseId":
			res.CallID = readID(rd)
		case "content":
			switch rd.Kind() {
			case '"':
				res.Content = []dragoman.Part{&dragoman.Text{Text: rd.String()}}
			case '[':
				for range rd.Array() {
					raw := rd.Raw()
					if hint := ReadCachePoint(raw); hint != nil && res.Cache == nil {
						res.Cache = hint // it belongs behind the result (quirk D31)
						continue
					}
					res.Content = append(res.Content, readBedrockContent(raw))
				}
			case 'n':
				rd.Skip()
			default:
				res.Content = []dragoman.Part{&dragoman.Data{JSON: rd.Raw()}}
			}
		case "status":
			raw := rd.Raw()
			switch string(raw) {
			case `"error"`:
				res.Outcome = dragoman.OutcomeError
			case `"success"`:
				extra.Add(&res.Extra, d, prefix, key, raw)
			default: // a word that we do not know is no success
				res.Outcome = dragoman.OutcomeUnknown
				extra.Add(&res.Extra, d, prefix, key, raw)
			}
		default:
			extra.Add(&res.Extra, d, prefix, key, rd.Raw())
		}
	}
}

// readBedrockContent reads a block of a result, which may be JSON.
func readBedrockContent(raw json.RawMessage) dragoman.Part {
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
	return ReadBedrockPart(raw)
}

// noOutput is what a result without output says: the wire demands content, and
// text that says something (quirk D11).
const noOutput = "(no output)"

func (r *Registry) writeBedrockResult(w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) {
	const d, prefix = dragoman.Bedrock, "/toolResult"
	if res.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "a cache breakpoint is a block of its own, beside the result")
	}
	w.BeginObject()
	w.Key("toolResult")
	w.BeginObject()
	w.StringField("toolUseId", id)
	w.Key("content")
	if native := nativeContent(res, dragoman.FormatBedrockResult); native != nil {
		w.Raw(native)
	} else {
		r.writeBedrockContent(w, res, at, rep)
	}
	if res.Outcome == dragoman.OutcomeError {
		w.StringField("status", "error")
	}
	extra.WriteBut(w, res.Extra, d, prefix, func(f dragoman.Field) bool {
		return f.Path == prefix+"/status" && res.Outcome == dragoman.OutcomeError
	})
	w.EndObject()
	extra.Write(w, res.Extra, d, "")
	w.EndObject()
}

func (r *Registry) writeBedrockContent(w *jsonwire.Writer, res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	w.BeginArray()
	start := len(w.Buf)
	for i, p := range res.Content {
		at := at.Elem("content", i)
		switch p := p.(type) {
		case *dragoman.Text:
			switch {
			case !blank(p):
				r.WriteBedrockText(w, p, at, rep)
			case p.Text != "" || len(res.Content) > 1: // else it is an empty output
				reportBlank(rep, at)
			}
		case *dragoman.Data:
			writeBedrockData(w, p)
		case *dragoman.Media:
			if p.Media == dragoman.MediaAudio { // a message takes some, a result does not
				rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), "Bedrock takes no audio in a toolResult; a note stands in for it")
				writeBedrockString(w, Placeholder(p))
				continue
			}
			r.WriteBedrockMedia(w, p, at, rep)
		case *dragoman.Opaque:
			if p.Dialect == dragoman.Bedrock {
				w.Raw(p.JSON)
				continue
			}
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place in a toolResult", extra.AType(p.Type, "block"), p.Dialect)
		default:
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in a toolResult", extra.A(string(p.Kind())))
		}
	}
	if len(w.Buf) == start {
		rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "a result without output says %q", noOutput)
		writeBedrockString(w, noOutput)
	}
	w.EndArray()
}

// writeBedrockData writes a JSON value. The wire takes objects; any other value
// is told as text.
func writeBedrockData(w *jsonwire.Writer, p *dragoman.Data) {
	if text := strings.TrimSpace(string(p.JSON)); !strings.HasPrefix(text, "{") {
		writeBedrockString(w, text)
		return
	}
	w.BeginObject()
	w.RawField("json", p.JSON)
	w.EndObject()
}

func writeBedrockString(w *jsonwire.Writer, text string) {
	w.BeginObject()
	w.StringField("text", text)
	w.EndObject()
}

// ReadBedrockPart reads a block that holds text, an image, a document, a film,
// a sound or a text with citations. Any other block is opaque here; the dialect
// reads those that only messages hold.
func ReadBedrockPart(raw json.RawMessage) dragoman.Part {
	key := BedrockKey(raw)
	rd := jsonwire.NewReader(raw)
	var part dragoman.Part
	switch key {
	case "text":
		part = readBedrockText(rd)
	case "citationsContent":
		part = readCitations(rd)
	case "image", "document", "video", "audio":
		part = readBedrockMedia(rd, key)
	}
	if part == nil || rd.End() != nil {
		return &dragoman.Opaque{Dialect: dragoman.Bedrock, Type: key, JSON: raw}
	}
	return part
}

// readBedrockText reads a text; nil where the block is something else as well.
func readBedrockText(rd *jsonwire.Reader) dragoman.Part {
	t := &dragoman.Text{}
	for key := range rd.Object() {
		switch k := string(key); {
		case k == "text":
			t.Text = rd.String()
		case contains(bedrockUnion, k):
			return nil
		default:
			extra.Add(&t.Extra, dragoman.Bedrock, "", key, rd.Raw())
		}
	}
	return t
}

const citations = "/citationsContent"

// readCitations reads a text with its sources. How the text was cut into pieces
// is kept beside it where there is more than one.
func readCitations(rd *jsonwire.Reader) dragoman.Part {
	const d = dragoman.Bedrock
	t := &dragoman.Text{}
	for key := range rd.Object() {
		if k := string(key); k != "citationsContent" {
			if contains(bedrockUnion, k) {
				return nil
			}
			extra.Add(&t.Extra, d, "", key, rd.Raw())
			continue
		}
		for key := range rd.Object() {
			raw := rd.Raw()
			if string(key) != "content" {
				extra.Add(&t.Extra, d, citations, key, raw)
				continue
			}
			text, pieces, ok := citedText(raw)
			if !ok {
				return nil
			}
			if t.Text = text; pieces != 1 {
				extra.Add(&t.Extra, d, citations, key, raw)
			}
		}
	}
	if !extra.Has(t.Extra, d, citations) {
		extra.Add(&t.Extra, d, citations, []byte("citations"), []byte("[]"))
	}
	return t
}

// citedText joins the pieces of a cited text, each of which is a text and
// nothing else.
func citedText(raw []byte) (text string, pieces int, ok bool) {
	rd := jsonwire.NewReader(raw)
	if rd.Kind() != '[' {
		return "", 0, false
	}
	ok = true
	var b strings.Builder
	for range rd.Array() {
		pieces++
		if rd.Kind() != '{' {
			return "", 0, false
		}
		for key := range rd.Object() {
			if string(key) != "text" || rd.Kind() != '"' {
				rd.Skip()
				ok = false
				continue
			}
			b.WriteString(rd.String())
		}
	}
	return b.String(), pieces, ok && rd.Err() == nil
}

// WriteBedrockText writes a text, with its citations where it has some.
func (r *Registry) WriteBedrockText(w *jsonwire.Writer, t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
	const d = dragoman.Bedrock
	extra.ReportState(rep, t.Signature, at)
	w.BeginObject()
	if !extra.Has(t.Extra, d, citations) {
		w.StringField("text", t.Text)
		extra.End(w, t.Extra, d, at, rep)
		return
	}
	w.Key("citationsContent")
	w.BeginObject()
	w.Key("content")
	pieces, ok := extra.Get(t.Extra, d, citations+"/content")
	if text, _, sound := citedText(pieces); ok && sound && text == t.Text {
		w.Raw(pieces)
	} else {
		w.BeginArray()
		writeBedrockString(w, t.Text)
		w.EndArray()
	}
	extra.WriteBut(w, t.Extra, d, citations, func(f dragoman.Field) bool { return f.Path == citations+"/content" })
	w.EndObject()
	extra.End(w, t.Extra, d, at, rep)
}

// bedrockFormat is a media format of Bedrock's.
type bedrockFormat struct{ key, format, mime string }

// bedrockFormats pairs Bedrock's names of formats with content types. The first
// line of a content type is the one that is written for it.
var bedrockFormats = []bedrockFormat{
	{"image", "png", "image/png"},
	{"image", "jpeg", "image/jpeg"},
	{"image", "jpeg", "image/jpg"},
	{"image", "gif", "image/gif"},
	{"image", "webp", "image/webp"},
	{"document", "pdf", "application/pdf"},
	{"document", "csv", "text/csv"},
	{"document", "doc", "application/msword"},
	{"document", "docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
	{"document", "xls", "application/vnd.ms-excel"},
	{"document", "xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
	{"document", "html", "text/html"},
	{"document", "txt", "text/plain"},
	{"document", "md", "text/markdown"},
	{"video", "mp4", "video/mp4"},
	{"video", "mov", "video/quicktime"},
	{"video", "mkv", "video/x-matroska"},
	{"video", "webm", "video/webm"},
	{"video", "flv", "video/x-flv"},
	{"video", "mpeg", "video/mpeg"},
	{"video", "mpg", "video/mpg"},
	{"video", "wmv", "video/x-ms-wmv"},
	{"video", "three_gp", "video/3gpp"},
	{"audio", "mp3", "audio/mpeg"},
	{"audio", "mp3", "audio/mp3"},
	{"audio", "wav", "audio/wav"},
	{"audio", "wav", "audio/x-wav"},
	{"audio", "opus", "audio/opus"},
	{"audio", "aac", "audio/aac"},
	{"audio", "flac", "audio/flac"},
	{"audio", "ogg", "audio/ogg"},
	{"audio", "mp4", "audio/mp4"},
	{"audio", "m4a", "audio/m4a"},
	{"audio", "webm", "audio/webm"},
	{"audio", "pcm", "audio/pcm"},
}

// bedrockMIME is the content type of a format; empty for one we do not know.
func bedrockMIME(key, format string) string {
	for _, f := range bedrockFormats {
		if f.key == key && f.format == format {
			return f.mime
		}
	}
	return ""
}

// bedrockFormatOf is the format of a content type, whose parameters do not
// count; empty for one that Bedrock does not know.
func bedrockFormatOf(key, mime string) string {
	mime, _, _ = strings.Cut(mime, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	for _, f := range bedrockFormats {
		if f.key == key && f.mime == mime {
			return f.format
		}
	}
	return ""
}

func readBedrockMedia(rd *jsonwire.Reader, key string) dragoman.Part {
	const d = dragoman.Bedrock
	m := &dragoman.Media{}
	switch key {
	case "image":
		m.Media = dragoman.MediaImage
	case "document":
		m.Media = dragoman.MediaFile
	case "video":
		m.Media = dragoman.MediaVideo
	case "audio":
		m.Media = dragoman.MediaAudio
	}
	known := true
	for k := range rd.Object() {
		if string(k) != key {
			known = known && !contains(bedrockUnion, string(k))
			extra.Add(&m.Extra, d, "", k, rd.Raw())
			continue
		}
		for k := range rd.Object() {
			switch string(k) {
			case "format":
				m.MIME = bedrockMIME(key, rd.String())
			case "name":
				m.Name = rd.String()
			case "source":
				known = readBedrockSource(rd, m, "/"+key+"/source") && known
			default:
				extra.Add(&m.Extra, d, "/"+key, k, rd.Raw())
			}
		}
	}
	if !known || m.MIME == "" || empty(m) {
		return nil // of a form we do not know; kept as it is
	}
	return m
}

// readBedrockSource reads where the content is. It is false for a source that
// media of ours cannot name.
func readBedrockSource(rd *jsonwire.Reader, m *dragoman.Media, prefix string) bool {
	const d = dragoman.Bedrock
	sources := 0
	for key := range rd.Object() {
		sources++
		switch string(key) {
		case "bytes":
			m.Base64 = rd.String()
		case "text":
			m.Text = rd.String()
		case "s3Location":
			for key := range rd.Object() {
				if string(key) == "uri" {
					m.URL = rd.String()
				} else {
					extra.Add(&m.Extra, d, prefix+"/s3Location", key, rd.Raw())
				}
			}
		default:
			rd.Skip()
			return false
		}
	}
	return sources == 1
}

// bedrockKeyOf is the block that a kind of media goes into.
func bedrockKeyOf(k dragoman.MediaKind) string {
	switch k {
	case dragoman.MediaImage:
		return "image"
	case dragoman.MediaFile:
		return "document"
	case dragoman.MediaVideo:
		return "video"
	case dragoman.MediaAudio:
		return "audio"
	default:
		return ""
	}
}

// CanWriteBedrockMedia says why media has no block of Bedrock's; empty where
// it has one.
func (r *Registry) CanWriteBedrockMedia(m *dragoman.Media) (why string) {
	key := bedrockKeyOf(m.Media)
	switch {
	case m.Text == "" && !r.target.Caps.TakesMedia(m.Media):
		return fmt.Sprintf("the target takes no %s", m.Media)
	case key == "":
		return fmt.Sprintf("Bedrock takes no %s", m.Media)
	case m.Text != "" && m.Media == dragoman.MediaFile:
		return ""
	case m.Base64 == "" && !strings.HasPrefix(m.URL, "s3://"):
		return fmt.Sprintf("Bedrock takes %ss as their bytes or from S3 only", m.Media)
	case bedrockFormatOf(key, m.MIME) == "":
		return fmt.Sprintf("Bedrock takes no %s of type %.60q", m.Media, m.MIME)
	default:
		return ""
	}
}

// WriteBedrockMedia writes the block of a media part, or a note where Bedrock
// has no block for it or the model takes none (quirk D14).
func (r *Registry) WriteBedrockMedia(w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	const d = dragoman.Bedrock
	if why := r.CanWriteBedrockMedia(m); why != "" {
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s; a note stands in for it", why)
		writeBedrockString(w, Placeholder(m))
		return
	}
	key := bedrockKeyOf(m.Media)
	format := bedrockFormatOf(key, m.MIME)
	if format == "" {
		format = "txt" // a text without a type
	}
	w.BeginObject()
	w.Key(key)
	w.BeginObject()
	w.StringField("format", format)
	if key == "document" {
		w.StringField("name", BedrockDocumentName(m))
	}
	w.Key("source")
	w.BeginObject()
	switch {
	case m.Base64 != "":
		w.StringField("bytes", m.Base64)
	case m.Text != "" && key == "document":
		w.StringField("text", m.Text)
	default:
		w.Key("s3Location")
		w.BeginObject()
		w.StringField("uri", m.URL)
		extra.Write(w, m.Extra, d, "/"+key+"/source/s3Location")
		w.EndObject()
	}
	w.EndObject()
	extra.Write(w, m.Extra, d, "/"+key)
	w.EndObject()
	if m.Detail != "" && m.Detail != "auto" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "image detail %q", m.Detail)
	}
	if m.Title != "" && m.Title != m.Name {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/title", "the title %.60q", m.Title)
	}
	extra.End(w, m.Extra, d, at, rep)
}

// BedrockDocumentName is a name that Bedrock takes for a document: letters,
// digits, hyphens, brackets, and white space in ones. What it does not take
// becomes a hyphen.
func BedrockDocumentName(m *dragoman.Media) string {
	const longest = 200
	name := m.Name
	if name == "" {
		name = m.Title
	}
	out := make([]byte, 0, len(name))
	for _, c := range name {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.ContainsRune("-()[]", c):
			out = append(out, byte(c))
		case c == ' ' || c == '\t' || c == '\n':
			if len(out) > 0 && out[len(out)-1] != ' ' {
				out = append(out, ' ')
			}
		default:
			out = append(out, '-')
		}
		if len(out) == longest {
			break
		}
	}
	if s := strings.TrimSpace(string(out)); s != "" {
		return s
	}
	return "document"
}
