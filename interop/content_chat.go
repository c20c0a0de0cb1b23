package interop

import (
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ReadChatPart reads one content part of a Chat message. A type it does not
// know is opaque.
func ReadChatPart(raw json.RawMessage) dragoman.Part {
	const d = dragoman.OpenAIChat
	typ := typeOf(raw)
	rd := jsonwire.NewReader(raw)
	var part dragoman.Part
	switch typ {
	case "text":
		t := &dragoman.Text{}
		for key := range rd.Object() {
			switch string(key) {
			case "type":
				rd.Skip()
			case "text":
				t.Text = rd.String()
			case "prompt_cache_breakpoint":
				t.Cache = ttl(rd)
			case "cache_control":
				t.Cache = cacheMember(rd, &t.Extra, d)
			default:
				extra.Add(&t.Extra, d, "", key, rd.Raw())
			}
		}
		part = t
	case "refusal":
		t := &dragoman.Refusal{}
		for key := range rd.Object() {
			switch string(key) {
			case "type":
				rd.Skip()
			case "refusal":
				t.Text = rd.String()
			default:
				extra.Add(&t.Extra, d, "", key, rd.Raw())
			}
		}
		part = t
	case "image_url", "input_audio", "file", "video_url":
		// One without content is nothing we know, and goes back as it came.
		if m := readChatMedia(rd, typ); !empty(m) {
			part = m
		}
	}
	if part == nil || rd.End() != nil {
		return &dragoman.Opaque{Dialect: d, Type: typ, JSON: raw}
	}
	return part
}

// cacheMember reads a cache_control member of a compatible server: the hint is
// understood, the spelling kept.
func cacheMember(rd *jsonwire.Reader, e **dragoman.Extra, d dragoman.Dialect) *dragoman.CacheHint {
	raw := rd.Raw()
	extra.Add(e, d, "", []byte("cache_control"), raw)
	return ttl(jsonwire.NewReader(raw))
}

func readChatMedia(rd *jsonwire.Reader, typ string) *dragoman.Media {
	const d = dragoman.OpenAIChat
	m := &dragoman.Media{Media: map[string]dragoman.MediaKind{
		"image_url": dragoman.MediaImage, "input_audio": dragoman.MediaAudio,
		"file": dragoman.MediaFile, "video_url": dragoman.MediaVideo,
	}[typ]}
	inner := "/" + typ
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case typ:
			if rd.Kind() == '"' { // Mistral writes the URL, or the sound, itself
				if s := rd.String(); typ == "input_audio" {
					m.Base64 = s
				} else {
					splitDataURI(m, s)
				}
				extra.Add(&m.Extra, d, inner, []byte("bare"), []byte("null"))
				continue
			}
			for key := range rd.Object() {
				switch string(key) {
				case "url":
					splitDataURI(m, rd.String())
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
						splitDataURI(m, s)
					} else { // base64 without the data: around it
						m.Base64 = s
					}
				case "file_id":
					m.FileID = rd.String()
				default:
					extra.Add(&m.Extra, d, inner, key, rd.Raw())
				}
			}
		case "prompt_cache_breakpoint":
			m.Cache = ttl(rd)
		case "cache_control":
			m.Cache = cacheMember(rd, &m.Extra, d)
		default:
			extra.Add(&m.Extra, d, "", key, rd.Raw())
		}
	}
	return m
}

// empty reports whether media says nowhere where its content is.
func empty(m *dragoman.Media) bool {
	return m.Base64 == "" && m.Text == "" && m.URL == "" && m.FileID == ""
}

// splitDataURI puts the content of a data: URI into m, or keeps a URL.
func splitDataURI(m *dragoman.Media, uri string) {
	rest, ok := strings.CutPrefix(uri, "data:")
	if !ok {
		m.URL = uri
		return
	}
	mime, data, ok := strings.Cut(rest, ";base64,")
	if !ok {
		m.URL = uri
		return
	}
	m.MIME, m.Base64 = mime, data
}

// dataURI is the URL of a media part: its own, or its content in a data: URI.
func dataURI(m *dragoman.Media) string {
	if m.Base64 == "" {
		return m.URL
	}
	return "data:" + m.MIME + ";base64," + m.Base64
}

// ChatString returns the text of content that one string says as well as a
// list of parts would, which is what compatible servers want (quirk D34). What
// the string cannot say and the target would not take is reported.
func (r *Registry) ChatString(parts []dragoman.Part, at extra.Path, rep *dragoman.Report) (string, bool) {
	if len(parts) != 1 {
		return "", false
	}
	t, ok := parts[0].(*dragoman.Text)
	if !ok || t.Extra.For(dragoman.OpenAIChat) != nil || t.Cache != nil && r.target.Caps.CacheBreakpoints {
		return "", false
	}
	if t.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the target caches by itself")
	}
	extra.Report(rep, t.Extra, dragoman.OpenAIChat, at)
	return t.Text, true
}

// WriteChatPart writes a part as content of a Chat message. It reports what
// the target cannot carry and returns false when nothing was written.
func (r *Registry) WriteChatPart(w *jsonwire.Writer, part dragoman.Part, at extra.Path, rep *dragoman.Report) bool {
	const d = dragoman.OpenAIChat
	switch p := part.(type) {
	case *dragoman.Text:
		w.BeginObject()
		w.StringField("type", "text")
		w.StringField("text", p.Text)
		r.writeBreakpoint(w, p.Cache, p.Extra, d, at, rep)
		extra.Write(w, p.Extra, d, "")
		w.EndObject()
		extra.Report(rep, p.Extra, d, at)
	case *dragoman.Refusal:
		w.BeginObject()
		w.StringField("type", "refusal")
		w.StringField("refusal", p.Text)
		extra.Write(w, p.Extra, d, "")
		w.EndObject()
		extra.Report(rep, p.Extra, d, at)
	case *dragoman.Data:
		w.BeginObject()
		w.StringField("type", "text")
		w.StringField("text", string(p.JSON))
		w.EndObject()
	case *dragoman.Media:
		return r.writeChatMedia(w, p, at, rep)
	case *dragoman.Opaque:
		if p.Dialect != d {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "a %s block of %s has no place in a Chat message", p.Type, p.Dialect)
			return false
		}
		w.Raw(p.JSON)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "a %s part has no place in this Chat message", part.Kind())
		return false
	}
	return true
}

// writeBreakpoint writes OpenAI's explicit cache breakpoint where the model
// takes one.
func (r *Registry) writeBreakpoint(w *jsonwire.Writer, h *dragoman.CacheHint, e *dragoman.Extra, d dragoman.Dialect, at extra.Path, rep *dragoman.Report) {
	if h == nil || hasMember(e, d, "/cache_control") {
		return
	}
	if !r.target.Caps.CacheBreakpoints {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the target caches by itself")
		return
	}
	if r.surplus > 0 {
		r.surplus--
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the API takes %d, and later ones cover more", r.limits.MaxCacheBreakpoints)
		return
	}
	ttl := h.TTL
	switch ttl {
	case "", "30m", "12h":
	case "5m":
		ttl = "30m"
	default:
		ttl = "12h"
	}
	if ttl != h.TTL {
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String(), "cache lifetime %q written as %q", h.TTL, ttl)
	}
	w.Key("prompt_cache_breakpoint")
	w.BeginObject()
	w.StringField("mode", "explicit")
	w.StringFieldIf("ttl", ttl)
	w.EndObject()
}

func (r *Registry) writeChatMedia(w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) bool {
	const d = dragoman.OpenAIChat
	if strings.HasPrefix(m.Base64, "data:") { // a whole URI where its content belongs
		split := *m
		split.Base64 = ""
		splitDataURI(&split, m.Base64)
		m = &split
	}
	typ := ""
	switch m.Media {
	case dragoman.MediaImage:
		typ = "image_url"
	case dragoman.MediaAudio:
		typ = "input_audio"
	case dragoman.MediaVideo:
		typ = "video_url"
	default:
		typ = "file"
	}
	text := ""
	switch {
	case empty(m):
		text = placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s without content; a note stands in for it", m.Media)
	case r.target.Caps.NoImages:
		text = placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target takes no %s; a note stands in for it", m.Media)
	case m.Text != "":
		text = m.Text
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text document written as text")
	case typ == "file" && m.URL != "":
		text = placeholder(m)
		rep.Add(dragoman.Lowered, dragoman.Serious, at.String(), "a file by URL has no place in Chat; only its URL is written")
	case typ == "image_url" && m.FileID != "", typ == "input_audio" && m.Base64 == "":
		text = placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s given by reference cannot be sent in Chat", m.Media)
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
	if hasMember(m.Extra, d, "/"+typ+"/bare") {
		if typ == "input_audio" {
			w.StringField(typ, m.Base64)
		} else {
			w.StringField(typ, dataURI(m))
		}
	} else {
		w.Key(typ)
		w.BeginObject()
		switch typ {
		case "image_url", "video_url":
			if m.Base64 != "" && m.MIME == "" { // a type is not ours to guess, but a URI has one
				typed := *m
				typed.MIME = "application/octet-stream"
				m = &typed
				rep.Addf(dragoman.Synthesised, dragoman.Warn, at.String(), "content type %s: the %s has none", m.MIME, m.Media)
			}
			w.StringField("url", dataURI(m))
			w.StringFieldIf("detail", m.Detail)
		case "input_audio":
			w.StringField("data", m.Base64)
			if m.MIME == "" {
				rep.Add(dragoman.Dropped, dragoman.Warn, at.String(), "the wire wants the format of a sound, and the audio has no content type")
			} else {
				w.StringField("format", audioFormat(m.MIME))
			}
		default:
			w.StringFieldIf("filename", m.Name)
			if m.FileID != "" {
				w.StringField("file_id", m.FileID)
			} else if m.MIME == "" { // as it came; a type is not ours to guess
				w.StringField("file_data", m.Base64)
			} else {
				w.StringField("file_data", dataURI(m))
			}
		}
		extra.Write(w, m.Extra, d, "/"+typ)
		w.EndObject()
	}
	r.writeBreakpoint(w, m.Cache, m.Extra, d, at, rep)
	extra.Write(w, m.Extra, d, "")
	w.EndObject()
	extra.Report(rep, m.Extra, d, at)
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

// placeholder stands for media that cannot be sent.
func placeholder(m *dragoman.Media) string {
	what := string(m.Media)
	switch {
	case m.Name != "":
		what += " " + m.Name
	case m.URL != "":
		what += " " + m.URL
	case m.FileID != "":
		what += " " + m.FileID
	}
	return "[" + what + " not shown]"
}
