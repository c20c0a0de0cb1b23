package interop

import (
	"encoding/base64"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The tool objects of Ollama look like those of Chat, with four differences:
// there are no freeform tools and no strict flag, arguments are an object, a
// call may have no id, and a result is a string beside bare base64 images.

func readOllamaTool(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	for key := range rd.Object() {
		switch {
		case string(key) == "type":
			rd.Skip()
		case string(key) == "function" && rd.Kind() == '{':
			readOllamaFunction(rd, s)
		default:
			extra.Add(&s.Extra, dragoman.Ollama, "", key, rd.Raw())
		}
	}
}

func readOllamaFunction(rd *jsonwire.Reader, s *dragoman.ToolSpec) {
	for key := range rd.Object() {
		switch string(key) {
		case "name":
			s.Name = rd.String()
		case "description":
			s.Description = rd.String()
		case "parameters":
			s.Parameters = parameters(rd)
		default:
			extra.Add(&s.Extra, dragoman.Ollama, "/function", key, rd.Raw())
		}
	}
}

func (r *Registry) writeOllamaFunction(w *jsonwire.Writer, s *dragoman.ToolSpec, name string, at extra.Path, rep *dragoman.Report) bool {
	const d = dragoman.Ollama
	if s.Strict == dragoman.StrictOn {
		rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/strict", "Ollama has no strict tools")
	}
	loose := *s
	loose.Strict = dragoman.StrictOff
	low, ok := r.lower(&loose, dragoman.FormatOllamaFunction, at, rep)
	if !ok {
		return false
	}
	unsaid(s, dragoman.FormatOllamaFunction, at, rep)
	w.BeginObject()
	w.StringField("type", "function")
	w.Key("function")
	w.BeginObject()
	w.StringField("name", name)
	w.StringFieldIf("description", low.description)
	w.RawField("parameters", low.Schema)
	extra.Write(w, s.Extra, d, "/function")
	w.EndObject()
	extra.End(w, s.Extra, d, at, rep)
	return true
}

// What the wire calls the members of a call that say what runs.
var (
	ollamaMembers  = []string{"id", "type", "function"}
	ollamaFunction = []string{"name", "arguments"}
)

func readOllamaCall(rd *jsonwire.Reader, c *dragoman.ToolCall) {
	cr := &callReader{rd: rd, c: c, d: dragoman.Ollama}
	var seen uint
	for key := range rd.Object() {
		switch cr.member(ollamaMembers, &seen, "", key) {
		case "id":
			c.ID = readID(rd)
		case "type": // clients of another API write one (quirk B35)
			extra.Add(&c.Extra, cr.d, "", []byte("type"), rd.Raw())
		case "function":
			if cr.object("", "function") {
				cr.chatPayload("/function", ollamaFunction, "arguments")
			}
		default:
			cr.other("", key)
		}
	}
}

func (r *Registry) writeOllamaCall(w *jsonwire.Writer, c *dragoman.ToolCall, id, name string, at extra.Path, rep *dragoman.Report) {
	const d = dragoman.Ollama
	w.BeginObject()
	w.StringFieldIf("id", id)
	if !hasMember(c.Extra, d, "/function") {
		w.Key("function")
		w.BeginObject()
		if !hasMember(c.Extra, d, "/function/name") {
			w.StringField("name", name)
		}
		w.RawField("arguments", r.argumentObject(c, at, rep))
		extra.Write(w, c.Extra, d, "/function")
		w.EndObject()
	}
	extra.Write(w, c.Extra, d, "")
	w.EndObject()
}

func readOllamaResult(rd *jsonwire.Reader, res *dragoman.ToolResult) {
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
				media = append(media, ReadOllamaImage(rd.String()))
			}
		case "tool_name":
			res.Name = rd.String()
		case "tool_call_id":
			res.CallID = readID(rd)
		default:
			extra.Add(&res.Extra, dragoman.Ollama, "", key, rd.Raw())
		}
	}
	if len(media) > 0 && res.Text() == "" {
		res.Content = nil
	}
	res.Content = append(res.Content, media...)
}

func (r *Registry) writeOllamaResult(w *jsonwire.Writer, res *dragoman.ToolResult, id string, at extra.Path, rep *dragoman.Report) {
	const d = dragoman.Ollama
	w.BeginObject()
	w.StringField("role", "tool")
	if native := nativeContent(res, dragoman.FormatOllamaResult); len(native) > 0 && native[0] == '"' {
		w.RawField("content", native)
	} else {
		texts, _ := textParts(res)
		reportFlag(res, at, rep)
		unsaidOfTexts(res.Content, at, rep)
		content := OllamaContent{texts: texts}
		for i, p := range res.Content {
			if k := p.Kind(); k != dragoman.KindText && k != dragoman.KindData {
				content.Add(r, p, at.Elem("content", i), rep)
			}
		}
		content.Write(w, BlankLine, at, rep)
	}
	if res.Name != "" {
		w.StringField("tool_name", r.names.wireName(res.Namespace, res.Name))
	}
	w.StringFieldIf("tool_call_id", id)
	if res.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint after a result: the target caches by itself")
	}
	extra.Write(w, res.Extra, d, "")
	w.EndObject()
}

// unsaidOfTexts reports what the texts of a result say beside their words.
func unsaidOfTexts(parts []dragoman.Part, at extra.Path, rep *dragoman.Report) {
	for i, p := range parts {
		if t, ok := p.(*dragoman.Text); ok {
			unsaidOfText(t, at.Elem("content", i), rep)
		}
	}
}

func unsaidOfText(t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
	extra.Report(rep, t.Extra, dragoman.Ollama, at)
	if t.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches by itself")
	}
	extra.ReportState(rep, t.Signature, at)
}

// BlankLine is what sets texts apart that become one.
const BlankLine = "\n\n"

// OllamaContent collects the content of one Ollama message: one string, and
// beside it images in bare base64. The zero value is empty.
type OllamaContent struct {
	texts  []string
	images []string
	moved  bool // a text follows an image
}

// Empty reports whether nothing was added.
func (c *OllamaContent) Empty() bool { return len(c.texts) == 0 && len(c.images) == 0 }

// Images returns the images added so far.
func (c *OllamaContent) Images() []string { return c.images }

// Add takes a part. What the wire has no place for is reported, and where it is
// media a note stands in for it.
func (c *OllamaContent) Add(r *Registry, part dragoman.Part, at extra.Path, rep *dragoman.Report) {
	switch p := part.(type) {
	case *dragoman.Text:
		unsaidOfText(p, at, rep)
		c.text(p.Text)
	case *dragoman.Data:
		c.text(string(p.JSON))
	case *dragoman.Refusal:
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
		extra.Report(rep, p.Extra, dragoman.Ollama, at)
		c.text(p.Text)
	case *dragoman.Media:
		c.media(r, p, at, rep)
	case *dragoman.Opaque:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place in an Ollama message", extra.AType(p.Type, "block"), p.Dialect)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in this Ollama message", extra.A(string(part.Kind())))
	}
}

func (c *OllamaContent) text(s string) {
	c.moved = c.moved || len(c.images) > 0
	c.texts = append(c.texts, s)
}

func (c *OllamaContent) media(r *Registry, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	if isDataURI(m.Base64) { // a whole URI where its content belongs
		m = settledMedia(m)
	}
	note := ""
	switch {
	case m.Text != "":
		note = m.Text
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text document written as text")
	case empty(m):
		note = Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s without content; a note stands in for it", m.Media)
	case !r.target.Caps.TakesMedia(m.Media):
		note = Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target takes no %s; a note stands in for it", m.Media)
	case m.Base64 == "":
		note = Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama takes no %s by reference; a note stands in for it", m.Media)
	case m.Media != dragoman.MediaImage && m.Media != dragoman.MediaAudio:
		note = Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama takes no %s; a note stands in for it", m.Media)
	case undecodable(m):
		note = Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama takes no %s of type %.60q; a note stands in for it", m.Media, m.MIME)
	}
	unsaidOfMedia(m, at, rep)
	if note != "" {
		c.text(note)
		return
	}
	switch kind, mime := sniff(m.Base64); {
	case m.MIME != "" && (mime != m.MIME || kind != m.Media):
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/mime", "Ollama finds out by itself what the %s is; it says %q", m.Media, m.MIME)
	case kind != m.Media:
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/media", "Ollama finds out by itself whether this is %s", m.Media)
	}
	c.images = append(c.images, m.Base64)
}

func unsaidOfMedia(m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	extra.Report(rep, m.Extra, dragoman.Ollama, at)
	if m.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches by itself")
	}
	if m.Detail != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/detail", "resolution hint")
	}
	if m.Title != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/title", "document title")
	}
}

// Write writes the content member, always, and the images where there are some.
// Texts are joined with between.
func (c *OllamaContent) Write(w *jsonwire.Writer, between string, at extra.Path, rep *dragoman.Report) {
	if n := len(c.texts); n > 1 && between != "" {
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String(), "%d texts written as one, a blank line between them", n)
	}
	if c.moved {
		rep.Add(dragoman.Moved, dragoman.Info, at.String(), "images stand behind the text")
	}
	w.StringField("content", strings.Join(c.texts, between))
	if len(c.images) == 0 {
		return
	}
	w.Key("images")
	w.BeginArray()
	for _, s := range c.images {
		w.String(s)
	}
	w.EndArray()
}

// ReadOllamaImage reads an element of an images member: base64 of an image or a
// sound, which its first bytes tell. A data: URI, which some clients send, is
// read too.
func ReadOllamaImage(s string) *dragoman.Media {
	m := &dragoman.Media{Media: dragoman.MediaImage, Base64: s}
	if isDataURI(s) {
		m.Base64 = ""
		splitDataURI(m, s)
		if strings.HasPrefix(mediaType(m), "audio/") {
			m.Media = dragoman.MediaAudio
		}
		return m
	}
	m.Media, m.MIME = sniff(s)
	return m
}

// undecodable reports whether media says that it is of a type that Ollama does not
// know, and its content does not say otherwise.
func undecodable(m *dragoman.Media) bool {
	if _, mime := sniff(m.Base64); mime != "" {
		return false
	}
	mime := mediaType(m)
	for _, s := range signatures {
		if s.mime == mime {
			return false
		}
	}
	return m.Media == dragoman.MediaImage && strings.HasPrefix(mime, "image/")
}

// signatures are how the files begin that Ollama's models take. A blank stands
// for any byte.
var signatures = []struct {
	begin string
	mime  string
}{
	{"\x89PNG\r\n\x1a\n", "image/png"},
	{"\xff\xd8\xff", "image/jpeg"},
	{"GIF8", "image/gif"},
	{"RIFF    WEBP", "image/webp"},
	{"BM", "image/bmp"},
	{"RIFF    WAVE", "audio/wav"},
	{"ID3", "audio/mpeg"},
	{"OggS", "audio/ogg"},
	{"fLaC", "audio/flac"},
}

// sniff tells what base64 content is by its first bytes; an image, of no type,
// where they are unknown.
func sniff(b64 string) (dragoman.MediaKind, string) {
	const most = 16 // characters, for twelve bytes
	head, _ := base64.StdEncoding.DecodeString(b64[:min(len(b64), most)/4*4])
	for _, s := range signatures {
		if begins(head, s.begin) {
			if strings.HasPrefix(s.mime, "audio/") {
				return dragoman.MediaAudio, s.mime
			}
			return dragoman.MediaImage, s.mime
		}
	}
	return dragoman.MediaImage, ""
}

func begins(head []byte, with string) bool {
	if len(head) < len(with) {
		return false
	}
	for i := range len(with) {
		if with[i] != ' ' && head[i] != with[i] {
			return false
		}
	}
	return true
}

// ollamaSchemaFormat names the format of a tool definition; a type that is none
// of ours is the server's own.
func ollamaSchemaFormat(typ string) dragoman.Format {
	if typ == "function" || typ == "" {
		return dragoman.FormatOllamaFunction
	}
	return dragoman.Format(string(dragoman.Ollama) + "." + typ)
}
