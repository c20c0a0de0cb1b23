package interop

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ReadAnthropicPart reads a text, image or document block. Any other block is
// opaque here; the dialect reads those that only messages hold.
func ReadAnthropicPart(raw json.RawMessage) dragoman.Part {
	typ := typeOf(raw)
	rd := jsonwire.NewReader(raw)
	var part dragoman.Part
	switch typ {
	case "text":
		part = readText(rd, dragoman.Anthropic)
	case "image", "document":
		part = readAnthropicMedia(rd, typ)
	}
	if part == nil || rd.End() != nil {
		return &dragoman.Opaque{Dialect: dragoman.Anthropic, Type: typ, JSON: raw}
	}
	return part
}

// readAnthropicMedia reads an image or a document; nil where its source is none
// that we know, does not hold what its type promises, or more than that.
func readAnthropicMedia(rd *jsonwire.Reader, typ string) dragoman.Part {
	const d = dragoman.Anthropic
	m := &dragoman.Media{Media: dragoman.MediaImage}
	if typ == "document" {
		m.Media = dragoman.MediaFile
	}
	known := false
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "source":
			src := ""
			data := ""
			for key := range rd.Object() {
				switch string(key) {
				case "type":
					src = rd.String()
				case "media_type":
					m.MIME = rd.String()
				case "data":
					data = rd.String()
				case "url":
					m.URL = rd.String()
				case "file_id":
					m.FileID = rd.String()
				default:
					extra.Add(&m.Extra, d, "/source", key, rd.Raw())
				}
			}
			switch src {
			case "base64":
				m.Base64 = data
				known = data != "" && m.URL == "" && m.FileID == ""
			case "text":
				m.Text = data
				known = data != "" && m.URL == "" && m.FileID == ""
			case "url":
				known = m.URL != "" && data == "" && m.FileID == ""
			case "file":
				known = m.FileID != "" && data == "" && m.URL == ""
			}
		case "title":
			m.Title = rd.String()
		default:
			if !readCache(rd, d, key, &m.Cache, &m.Extra) {
				extra.Add(&m.Extra, d, "", key, rd.Raw())
			}
		}
	}
	if !known {
		return nil
	}
	return m
}

// WriteAnthropicText writes a text block.
func WriteAnthropicText(w *jsonwire.Writer, t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	w.StringField("type", "text")
	w.StringField("text", t.Text)
	if t.Cache != nil {
		WriteCacheControl(w, t.Cache, at, rep)
	}
	extra.ReportState(rep, t.Signature, at)
	extra.End(w, t.Extra, dragoman.Anthropic, at, rep)
}

// WriteAnthropicMedia writes an image or document block, or a note where
// Anthropic has no block for the media or the model takes none (quirk D14).
func (r *Registry) WriteAnthropicMedia(w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	const d = dragoman.Anthropic
	m = settledMedia(m)
	typ, mime, why := r.anthropicBlock(m)
	if why != "" {
		rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why+"; a note stands in for it")
		WriteAnthropicText(w, &dragoman.Text{Text: Placeholder(m), Cache: m.Cache}, at, rep)
		return
	}
	w.BeginObject()
	w.StringField("type", typ)
	w.Key("source")
	w.BeginObject()
	plain, isText := plainText(m)
	switch {
	case isText: // what is no PDF has no other place
		w.StringField("type", "text")
		w.StringField("media_type", "text/plain")
		w.StringField("data", plain)
	case m.Base64 != "":
		w.StringField("type", "base64")
		w.StringField("media_type", mime)
		w.StringField("data", m.Base64)
	case m.FileID != "":
		w.StringField("type", "file")
		w.StringField("file_id", m.FileID)
	default:
		w.StringField("type", "url")
		w.StringField("url", m.URL)
	}
	extra.Write(w, m.Extra, d, "/source")
	w.EndObject()
	if typ == "document" {
		title := m.Title
		if title == "" && m.Extra.For(d) == nil {
			title = m.Name
		}
		w.StringFieldIf("title", title)
	}
	if m.Detail != "" && m.Detail != "auto" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "image detail %q", m.Detail)
	}
	if m.Cache != nil {
		WriteCacheControl(w, m.Cache, at, rep)
	}
	extra.End(w, m.Extra, d, at, rep)
}
