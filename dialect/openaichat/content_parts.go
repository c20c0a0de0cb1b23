package openaichat

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readPart reads one content part of a Chat message. A part of an unknown type is opaque.
func readPart(raw json.RawMessage) dragoman.Part {
	const d = dialectname.OpenAIChat
	typ := toolwire.TypeOf(raw)
	rd := jsonwire.NewReader(raw)
	var part dragoman.Part
	switch typ {
	case "text":
		part = toolwire.ReadText(rd, d, readCache)
	case "refusal":
		part = toolwire.ReadRefusal(rd, d)
	case "image_url", "input_audio", "file", "video_url":
		// Media without content is kept as an opaque part, so that it is sent back unchanged.
		if m := readMedia(rd, typ); !toolwire.EmptyMedia(m) {
			part = m
		}
	}
	if part == nil || rd.End() != nil {
		return &dragoman.Opaque{Dialect: d, Type: typ, JSON: raw}
	}
	return part
}

func readMedia(rd *jsonwire.Reader, typ string) *dragoman.Media {
	const d = dialectname.OpenAIChat
	m := &dragoman.Media{Media: map[string]string{
		"image_url": codes.MediaImage, "input_audio": codes.MediaAudio,
		"file": codes.MediaFile, "video_url": codes.MediaVideo,
	}[typ]}
	inner := "/" + typ
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case typ:
			if rd.Kind() == '"' { // Mistral writes the URL or the audio data directly
				if s := rd.String(); typ == "input_audio" {
					m.Base64 = s
				} else {
					toolwire.SplitDataURI(m, s)
				}
				extra.Add(&m.Extra, d, inner, []byte("bare"), []byte("null"))
				continue
			}
			for key := range rd.Object() {
				switch string(key) {
				case "url":
					toolwire.SplitDataURI(m, rd.String())
				case "detail":
					m.Detail = rd.String()
				case "data":
					m.Base64 = rd.String()
				case "format":
					m.MIME = "audio/" + rd.String()
				case "filename":
					m.Name = rd.String()
				case "file_data":
					if s := rd.String(); strings.Contains(s, ":") {
						toolwire.SplitDataURI(m, s)
					} else { // bare base64
						m.Base64 = s
					}
				case "file_id":
					m.FileID = rd.String()
				default:
					extra.Add(&m.Extra, d, inner, key, rd.Raw())
				}
			}
		default:
			if !readCache(rd, key, &m.Cache, &m.Extra) {
				extra.Add(&m.Extra, d, "", key, rd.Raw())
			}
		}
	}
	return m
}

// contentString returns the text of content that can be written as one string, which compatible
// servers prefer over a list of parts (quirk D34). It reports the properties of the part that the
// string cannot express and the target would not accept.
func contentString(v toolwire.View, parts []dragoman.Part, at extra.Path, rep *dragoman.Report) (string, bool) {
	if len(parts) != 1 {
		return "", false
	}
	t, ok := parts[0].(*dragoman.Text)
	if !ok || t.Extra.For(dialectname.OpenAIChat) != nil || t.Cache != nil && v.Caps().CacheBreakpoints {
		return "", false
	}
	if t.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches automatically")
	}
	extra.ReportState(rep, t.Signature, at)
	extra.Report(rep, t.Extra, dialectname.OpenAIChat, at)
	return t.Text, true
}

// writePart writes a part as content of a Chat message. It reports losses, and returns false if
// nothing was written.
func writePart(v toolwire.View, w *jsonwire.Writer, part dragoman.Part, at extra.Path, rep *dragoman.Report) bool {
	const d = dialectname.OpenAIChat
	switch p := part.(type) {
	case *dragoman.Text:
		w.BeginObject()
		w.StringField("type", "text")
		w.StringField("text", p.Text)
		toolwire.WriteBreakpoint(v, w, p.Cache, p.Extra, d, at, rep)
		extra.ReportState(rep, p.Signature, at)
		extra.End(w, p.Extra, d, at, rep)
	case *dragoman.Refusal:
		toolwire.WriteRefusal(w, p, d, at, rep)
	case *dragoman.Data:
		w.BeginObject()
		w.StringField("type", "text")
		w.StringField("text", string(p.JSON))
		w.EndObject()
	case *dragoman.Media:
		return writeMedia(v, w, p, at, rep)
	case *dragoman.Opaque:
		if p.Dialect != d {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Chat messages cannot contain %s of %s", extra.TypedNoun(p.Type, "block"), p.Dialect)
			return false
		}
		w.Raw(p.JSON)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "this Chat message cannot contain %s part", extra.WithArticle(part.Kind()))
		return false
	}
	return true
}

func writeMedia(v toolwire.View, w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) bool {
	const d = dialectname.OpenAIChat
	if toolwire.IsDataURI(m.Base64) { // a whole data URI in the base64 field
		m = toolwire.SettledMedia(m)
	}
	typ := ""
	switch m.Media {
	case codes.MediaImage:
		typ = "image_url"
	case codes.MediaAudio:
		typ = "input_audio"
	case codes.MediaVideo:
		typ = "video_url"
	default:
		typ = "file"
	}
	text := ""
	switch {
	case toolwire.EmptyMedia(m):
		text = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s has no content; it is replaced with a text note", m.Media)
	case m.Text != "":
		text = m.Text
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text document is written as text")
	case !v.Caps().AcceptsMedia(m.Media):
		text = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target does not accept %s input; it is replaced with a text note", m.Media)
	case typ == "file" && m.URL != "":
		text = toolwire.Placeholder(m)
		rep.Add(dragoman.Lowered, dragoman.Serious, at.String(), "Chat does not accept files by URL; only the URL is written, as text")
	case typ == "image_url" && m.FileID != "", typ == "input_audio" && m.Base64 == "":
		text = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Chat does not accept %s input by reference; it is replaced with a text note", m.Media)
	}
	if m.Title != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "document title")
	}
	w.BeginObject()
	if text != "" {
		w.StringField("type", "text")
		w.StringField("text", text)
		w.EndObject()
		extra.Report(rep, m.Extra, d, at)
		return true
	}
	w.StringField("type", typ)
	if toolwire.HasField(m.Extra, d, "/"+typ+"/bare") {
		if typ == "input_audio" {
			w.StringField(typ, m.Base64)
		} else {
			w.StringField(typ, toolwire.DataURI(m))
		}
	} else {
		w.Key(typ)
		w.BeginObject()
		switch typ {
		case "image_url", "video_url":
			if m.Base64 != "" && m.MIME == "" { // do not guess the type, but a data URI needs one
				typed := *m
				typed.MIME = "application/octet-stream"
				m = &typed
				rep.Addf(dragoman.Synthesized, dragoman.Warn, at.String(), "content type %s is generated, because the %s has no type", m.MIME, m.Media)
			}
			w.StringField("url", toolwire.DataURI(m))
			w.StringFieldIf("detail", m.Detail)
		case "input_audio":
			w.StringField("data", m.Base64)
			if m.MIME == "" {
				rep.Add(dragoman.Dropped, dragoman.Warn, at.String(), "Chat requires an audio format, but the audio has no content type")
			} else {
				w.StringField("format", audioFormat(m.MIME))
			}
		default:
			w.StringFieldIf("filename", m.Name)
			if m.FileID != "" {
				w.StringField("file_id", m.FileID)
			} else {
				w.StringField("file_data", toolwire.FileData(m))
			}
		}
		extra.Write(w, m.Extra, d, "/"+typ)
		w.EndObject()
	}
	toolwire.WriteBreakpoint(v, w, m.Cache, m.Extra, d, at, rep)
	extra.End(w, m.Extra, d, at, rep)
	return true
}

func audioFormat(mime string) string {
	f := strings.TrimPrefix(mime, "audio/")
	switch f {
	case "mpeg":
		return "mp3"
	case "x-wav", "wave":
		return "wav"
	default:
		return f
	}
}

// readCache reads the cache breakpoint of OpenAI, or that of compatible servers, whose original
// form is kept.
func readCache(rd *jsonwire.Reader, key []byte, hint **dragoman.CacheHint, e **dragoman.Extra) bool {
	if string(key) != "cache_control" {
		return toolwire.ReadBreakpoint(rd, key, hint, e)
	}
	raw := rd.Raw()
	extra.Add(e, dialectname.OpenAIChat, "", key, raw)
	*hint = toolwire.ReadCacheHint(jsonwire.NewReader(raw))
	return true
}
