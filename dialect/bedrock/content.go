package bedrock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

func writeString(w *jsonwire.Writer, text string) {
	w.BeginObject()
	w.StringField("text", text)
	w.EndObject()
}

// readPart reads a block that holds text, cited text, an image, a document, a
// video or audio. Any other block becomes opaque here; [blockDecoder.block]
// reads the blocks that occur only in messages.
func readPart(raw json.RawMessage) dragoman.Part {
	key := blockKey(raw)
	rd := jsonwire.NewReader(raw)
	var part dragoman.Part
	switch key {
	case "text":
		part = readText(rd)
	case "citationsContent":
		part = readCitations(rd)
	case "image", "document", "video", "audio":
		part = readMedia(rd, key)
	}
	if part == nil || rd.End() != nil {
		return &dragoman.Opaque{Dialect: dialectname.Bedrock, Type: key, JSON: raw}
	}
	return part
}

// readText reads a text. It returns nil if the block also holds something else.
func readText(rd *jsonwire.Reader) dragoman.Part {
	t := &dragoman.Text{}
	for key := range rd.Object() {
		switch k := string(key); {
		case k == "text":
			t.Text = rd.String()
		case slices.Contains(blockUnion, k):
			return nil
		default:
			extra.Add(&t.Extra, dialectname.Bedrock, "", key, rd.Raw())
		}
	}
	return t
}

const citationsField = "/citationsContent"

// readCitations reads a text with its sources. If the text has several
// segments, they are stored as an extra field.
func readCitations(rd *jsonwire.Reader) dragoman.Part {
	const d = dialectname.Bedrock
	t := &dragoman.Text{}
	for key := range rd.Object() {
		if k := string(key); k != "citationsContent" {
			if slices.Contains(blockUnion, k) {
				return nil
			}
			extra.Add(&t.Extra, d, "", key, rd.Raw())
			continue
		}
		for key := range rd.Object() {
			raw := rd.Raw()
			if string(key) != "content" {
				extra.Add(&t.Extra, d, citationsField, key, raw)
				continue
			}
			text, pieces, ok := citedText(raw)
			if !ok {
				return nil
			}
			if t.Text = text; pieces != 1 {
				extra.Add(&t.Extra, d, citationsField, key, raw)
			}
		}
	}
	if !extra.Has(t.Extra, d, citationsField) {
		extra.Add(&t.Extra, d, citationsField, []byte("citations"), []byte("[]"))
	}
	return t
}

// citedText joins the segments of a cited text. ok is false if a segment is not
// a plain text.
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

// writeText writes a text, with its citations if it has any.
func writeText(v toolwire.View, w *jsonwire.Writer, t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.Bedrock
	extra.ReportState(rep, t.Signature, at)
	w.BeginObject()
	if !extra.Has(t.Extra, d, citationsField) {
		w.StringField("text", t.Text)
		extra.End(w, t.Extra, d, at, rep)
		return
	}
	w.Key("citationsContent")
	w.BeginObject()
	w.Key("content")
	pieces, ok := extra.Get(t.Extra, d, citationsField+"/content")
	if text, _, sound := citedText(pieces); ok && sound && text == t.Text {
		w.Raw(pieces)
	} else {
		w.BeginArray()
		writeString(w, t.Text)
		w.EndArray()
	}
	extra.WriteBut(w, t.Extra, d, citationsField, func(f dragoman.Field) bool { return f.Path == citationsField+"/content" })
	w.EndObject()
	extra.End(w, t.Extra, d, at, rep)
}

// mediaFormat pairs a Bedrock media format with a MIME type.
type mediaFormat struct{ key, format, mime string }

// mediaFormats maps Bedrock format names to MIME types. The first entry of a
// format has the MIME type that the decoder returns.
var mediaFormats = []mediaFormat{
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

// mimeOf returns the MIME type of a format; empty if unknown.
func mimeOf(key, format string) string {
	for _, f := range mediaFormats {
		if f.key == key && f.format == format {
			return f.mime
		}
	}
	return ""
}

// formatOf returns the format of a MIME type, ignoring its parameters; empty if
// Bedrock does not know it.
func formatOf(key, mime string) string {
	mime, _, _ = strings.Cut(mime, ";")
	mime = strings.ToLower(strings.TrimSpace(mime))
	for _, f := range mediaFormats {
		if f.key == key && f.mime == mime {
			return f.format
		}
	}
	return ""
}

func readMedia(rd *jsonwire.Reader, key string) dragoman.Part {
	const d = dialectname.Bedrock
	m := &dragoman.Media{}
	switch key {
	case "image":
		m.Media = codes.MediaImage
	case "document":
		m.Media = codes.MediaFile
	case "video":
		m.Media = codes.MediaVideo
	case "audio":
		m.Media = codes.MediaAudio
	}
	known := true
	for k := range rd.Object() {
		if string(k) != key {
			known = known && !slices.Contains(blockUnion, string(k))
			extra.Add(&m.Extra, d, "", k, rd.Raw())
			continue
		}
		for k := range rd.Object() {
			switch string(k) {
			case "format":
				m.MIME = mimeOf(key, rd.String())
			case "name":
				m.Name = rd.String()
			case "source":
				known = readSource(rd, m, "/"+key+"/source") && known
			default:
				extra.Add(&m.Extra, d, "/"+key, k, rd.Raw())
			}
		}
	}
	if !known || m.MIME == "" || toolwire.EmptyMedia(m) {
		return nil // unknown form; stored unchanged
	}
	return m
}

// readSource reads the source of media. It returns false for a source that
// [dragoman.Media] cannot express.
func readSource(rd *jsonwire.Reader, m *dragoman.Media, prefix string) bool {
	const d = dialectname.Bedrock
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

// keyOf returns the block key for a kind of media.
func keyOf(k string) string {
	switch k {
	case codes.MediaImage:
		return "image"
	case codes.MediaFile:
		return "document"
	case codes.MediaVideo:
		return "video"
	case codes.MediaAudio:
		return "audio"
	default:
		return ""
	}
}

// refusesMedia returns why Bedrock has no block for m; empty if it has one.
func refusesMedia(v toolwire.View, m *dragoman.Media) (why string) {
	key := keyOf(m.Media)
	switch {
	case m.Text == "" && !v.Caps().AcceptsMedia(m.Media):
		return fmt.Sprintf("the target does not accept %s input", m.Media)
	case key == "":
		return fmt.Sprintf("Bedrock does not accept %s input", m.Media)
	case m.Text != "" && m.Media == codes.MediaFile:
		return ""
	case m.Base64 == "" && !strings.HasPrefix(m.URL, "s3://"):
		return fmt.Sprintf("Bedrock accepts %ss only as bytes or from S3", m.Media)
	case formatOf(key, m.MIME) == "":
		return fmt.Sprintf("Bedrock does not accept %s type %.60q", m.Media, m.MIME)
	default:
		return ""
	}
}

// writeMedia writes the block of a media part. If Bedrock or the model does not
// accept the media, it writes a text note instead (quirk D14).
func writeMedia(v toolwire.View, w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.Bedrock
	if why := refusesMedia(v, m); why != "" {
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s; replaced by a note", why)
		writeString(w, toolwire.Placeholder(m))
		return
	}
	key := keyOf(m.Media)
	format := formatOf(key, m.MIME)
	if format == "" {
		format = "txt" // text without a MIME type
	}
	w.BeginObject()
	w.Key(key)
	w.BeginObject()
	w.StringField("format", format)
	if key == "document" {
		w.StringField("name", documentName(m))
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
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/title", "title %.60q", m.Title)
	}
	extra.End(w, m.Extra, d, at, rep)
}

// documentName returns a name that Bedrock accepts for a document: letters,
// digits, hyphens, brackets, and single spaces. Other characters become
// hyphens.
func documentName(m *dragoman.Media) string {
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

// writeCachePoint writes a cache breakpoint block. Bedrock has the same
// lifetimes as Anthropic.
func writeCachePoint(w *jsonwire.Writer, h *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	w.Key("cachePoint")
	toolwire.WriteClaudeCache(w, "default", h, at, rep)
	w.EndObject()
}

// readCachePoint reads a cache breakpoint block. It returns nil for any other
// block, and for one that a hint cannot express.
func readCachePoint(raw []byte) *dragoman.CacheHint {
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
