package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readPart reads a text, image or document block. Any other block becomes
// opaque here; [blockDecoder.block] reads the blocks that occur only in
// messages.
func readPart(raw json.RawMessage) dragoman.Part {
	typ := toolwire.TypeOf(raw)
	rd := jsonwire.NewReader(raw)
	var part dragoman.Part
	switch typ {
	case "text":
		part = toolwire.ReadText(rd, dialectname.Anthropic, readCacheControl)
	case "image", "document":
		part = readMedia(rd, typ)
	}
	if part == nil || rd.End() != nil {
		return &dragoman.Opaque{Dialect: dialectname.Anthropic, Type: typ, JSON: raw}
	}
	return part
}

// readMedia reads an image or a document. It returns nil if the source is
// unknown, or does not hold exactly what its type requires.
func readMedia(rd *jsonwire.Reader, typ string) dragoman.Part {
	const d = dialectname.Anthropic
	m := &dragoman.Media{Media: codes.MediaImage}
	if typ == "document" {
		m.Media = codes.MediaFile
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
			if !readCacheControl(rd, key, &m.Cache, &m.Extra) {
				extra.Add(&m.Extra, d, "", key, rd.Raw())
			}
		}
	}
	if !known {
		return nil
	}
	return m
}

// writeText writes a text block.
func writeText(w *jsonwire.Writer, t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	w.StringField("type", "text")
	w.StringField("text", t.Text)
	if t.Cache != nil {
		writeCacheControl(w, t.Cache, at, rep)
	}
	extra.ReportState(rep, t.Signature, at)
	extra.End(w, t.Extra, dialectname.Anthropic, at, rep)
}

// writeMedia writes an image or document block. If Anthropic or the model does
// not accept the media, it writes a text note instead (quirk D14).
func writeMedia(v toolwire.View, w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.Anthropic
	m = toolwire.SettledMedia(m)
	typ, mime, why := mediaBlock(v, m)
	if why != "" {
		rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why+"; replaced by a note")
		writeText(w, &dragoman.Text{Text: toolwire.Placeholder(m), Cache: m.Cache}, at, rep)
		return
	}
	w.BeginObject()
	w.StringField("type", typ)
	w.Key("source")
	w.BeginObject()
	plain, isText := plainText(m)
	switch {
	case isText: // anything but a PDF must be text
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
		writeCacheControl(w, m.Cache, at, rep)
	}
	extra.End(w, m.Extra, d, at, rep)
}

// imageTypes lists the image types that Anthropic accepts.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// mediaBlock returns the type of block for m, and the MIME type of inline
// content; or why there is no block for it.
func mediaBlock(v toolwire.View, m *dragoman.Media) (block, mime, why string) {
	switch {
	case toolwire.EmptyMedia(m):
		return "", "", fmt.Sprintf("%s without content", m.Media)
	case m.Text == "" && !v.Caps().AcceptsMedia(m.Media):
		return "", "", fmt.Sprintf("the target does not accept %s input", m.Media)
	case m.Media != codes.MediaImage && m.Media != codes.MediaFile:
		return "", "", fmt.Sprintf("Anthropic does not accept %s input", m.Media)
	}
	block = "image"
	if m.Media == codes.MediaFile {
		block = "document"
	}
	switch {
	case toolwire.NoURL(m):
		return "", "", fmt.Sprintf("%s without a URL to fetch it from", m.Media)
	case m.Base64 == "":
		return block, "", ""
	}
	mime = toolwire.MediaType(m)
	switch {
	case slices.Contains(imageTypes, mime):
		return "image", mime, ""
	case mime == "application/pdf":
		return "document", mime, ""
	case strings.HasPrefix(mime, "text/") && m.Media == codes.MediaFile:
		if _, ok := plainText(m); ok {
			return "document", "text/plain", ""
		}
		return "", "", "Anthropic accepts text only in UTF-8"
	default:
		return "", "", fmt.Sprintf("Anthropic does not accept %s type %.60q", m.Media, m.MIME)
	}
}

// plainText returns the text of a document that is plain text.
func plainText(m *dragoman.Media) (string, bool) {
	if m.Base64 == "" || m.Media != codes.MediaFile || !strings.HasPrefix(toolwire.MediaType(m), "text/") {
		return m.Text, m.Base64 == "" && m.Text != ""
	}
	text, err := base64.StdEncoding.DecodeString(m.Base64)
	return string(text), err == nil && utf8.Valid(text)
}

// writeCacheControl writes the cache marker for a hint.
func writeCacheControl(w *jsonwire.Writer, h *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
	w.Key("cache_control")
	toolwire.WriteClaudeCache(w, "ephemeral", h, at, rep)
}

// readCacheControl reads a cache marker.
func readCacheControl(rd *jsonwire.Reader, key []byte, hint **dragoman.CacheHint, _ **dragoman.Extra) bool {
	if string(key) != "cache_control" {
		return false
	}
	*hint = toolwire.ReadCacheHint(rd)
	return true
}
