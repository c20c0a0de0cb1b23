package gemini

import (
	"encoding/base64"
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

// readMedia reads a part that holds media, inline or by URL. It returns nil for
// any other part.
func readMedia(raw json.RawMessage) *dragoman.Media {
	const d = dialectname.Gemini
	m := &dragoman.Media{}
	found := 0
	rd := jsonwire.NewReader(raw)
	if rd.Kind() != '{' {
		return nil
	}
	for key := range rd.Object() {
		field := string(jsonwire.Camel(key))
		if (field == "inlineData" || field == "fileData") && rd.Kind() == '{' {
			found++
			readBlob(rd, m, field)
			continue
		}
		extra.Add(&m.Extra, d, "", key, rd.Raw())
	}
	if rd.End() != nil || found != 1 || toolwire.EmptyMedia(m) {
		return nil
	}
	m.Media = mediaOf(m.MIME)
	return m
}

func readBlob(rd *jsonwire.Reader, m *dragoman.Media, field string) {
	for key := range rd.Object() {
		switch string(jsonwire.Camel(key)) {
		case "mimeType":
			m.MIME = rd.String()
		case "data":
			m.Base64 = rd.String()
		case "fileUri":
			m.URL = rd.String()
		case "displayName":
			raw := rd.Raw()
			m.Name = jsonwire.Unquote(raw)
			extra.Add(&m.Extra, dialectname.Gemini, "/"+field, []byte("displayName"), raw)
		default:
			extra.Add(&m.Extra, dialectname.Gemini, "/"+field, key, rd.Raw())
		}
	}
}

// mediaOf returns the kind of media of a MIME type.
func mediaOf(mime string) string {
	switch kind, _, _ := strings.Cut(mime, "/"); kind {
	case "image":
		return codes.MediaImage
	case "audio":
		return codes.MediaAudio
	case "video":
		return codes.MediaVideo
	default:
		return codes.MediaFile
	}
}

// writeMediaField writes the inlineData or fileData field of a part. The caller
// writes the other fields of the part. m must have content or a URL.
func writeMediaField(w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.Gemini
	field, mime, data := "inlineData", m.MIME, m.Base64
	switch {
	case data != "":
	case m.Text != "":
		mime, data = "text/plain", base64.StdEncoding.EncodeToString([]byte(m.Text))
	default:
		field = "fileData"
	}
	w.Key(field)
	w.BeginObject()
	w.StringFieldIf("mimeType", mime)
	if field == "inlineData" {
		w.StringField("data", data)
	} else {
		w.StringField("fileUri", m.URL)
	}
	named := "/" + field + "/displayName"
	if _, ok := extra.Get(m.Extra, d, named); ok {
		w.StringFieldIf("displayName", m.Name)
	} else if m.Name != "" { // one of the API's two servers refuses it
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "file name %.60q", m.Name)
	}
	extra.WriteBut(w, m.Extra, d, "/"+field, func(f dragoman.Field) bool { return f.Path == named })
	w.EndObject()
	if m.Title != "" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "title %.60q", m.Title)
	}
	if m.Detail != "" && m.Detail != "auto" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "image detail %q", m.Detail)
	}
	if m.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the target caches automatically")
	}
}

// fileTypes lists the file types that Gemini accepts in addition to text,
// images, audio and video.
var fileTypes = []string{
	"application/pdf", "application/json", "application/xml", "application/rtf", "application/javascript", "application/x-javascript",
	"application/x-python-code", "application/x-typescript",
}

// normalizeMedia returns m with a MIME type that Gemini accepts. If Gemini does
// not accept the media, why is the reason: it refuses some types, and all inline
// content without a type.
func normalizeMedia(m *dragoman.Media) (settled *dragoman.Media, why string) {
	m = toolwire.SettledMedia(m)
	switch {
	case toolwire.NoURL(m):
		return m, fmt.Sprintf("%s without a URL to fetch it from", m.Media)
	case m.Base64 == "":
		return m, ""
	}
	mime := toolwire.MediaType(m)
	kind, _, _ := strings.Cut(mime, "/")
	accepted := slices.Contains(fileTypes, mime) || kind == "text" || kind == "audio" || kind == "video" || kind == "image" && mime != "image/svg+xml"
	if !accepted {
		return m, fmt.Sprintf("Gemini does not accept %s type %.60q", m.Media, m.MIME)
	}
	given, _, _ := strings.Cut(m.MIME, ";")
	if m.MIME == mime || given == mime && kind == "audio" {
		return m, "" // keep parameters: they may describe the audio encoding
	}
	typed := *m
	typed.MIME = mime
	return &typed, ""
}
