package interop

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// ReadGeminiMedia reads a part that holds media: its content, or where it is.
// Any other part is none, nil.
func ReadGeminiMedia(raw json.RawMessage) *dragoman.Media {
	const d = dragoman.Gemini
	m := &dragoman.Media{}
	found := 0
	rd := jsonwire.NewReader(raw)
	if rd.Kind() != '{' {
		return nil
	}
	for key := range rd.Object() {
		member := string(jsonwire.Camel(key))
		if (member == "inlineData" || member == "fileData") && rd.Kind() == '{' {
			found++
			readGeminiBlob(rd, m, member)
			continue
		}
		extra.Add(&m.Extra, d, "", key, rd.Raw())
	}
	if rd.End() != nil || found != 1 || empty(m) {
		return nil
	}
	m.Media = mediaOf(m.MIME)
	return m
}

func readGeminiBlob(rd *jsonwire.Reader, m *dragoman.Media, member string) {
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
			m.Name = unquoted(raw)
			extra.Add(&m.Extra, dragoman.Gemini, "/"+member, []byte("displayName"), raw)
		default:
			extra.Add(&m.Extra, dragoman.Gemini, "/"+member, key, rd.Raw())
		}
	}
}

// mediaOf is the kind of media of a content type.
func mediaOf(mime string) dragoman.MediaKind {
	switch kind, _, _ := strings.Cut(mime, "/"); kind {
	case "image":
		return dragoman.MediaImage
	case "audio":
		return dragoman.MediaAudio
	case "video":
		return dragoman.MediaVideo
	default:
		return dragoman.MediaFile
	}
}

// WriteGeminiMedia writes the member of a part that holds media, which has
// content or a URL. Members beside it are the part's.
func WriteGeminiMedia(w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	const d = dragoman.Gemini
	member, mime, data := "inlineData", m.MIME, m.Base64
	switch {
	case data != "":
	case m.Text != "":
		mime, data = "text/plain", base64.StdEncoding.EncodeToString([]byte(m.Text))
	default:
		member = "fileData"
	}
	w.Key(member)
	w.BeginObject()
	w.StringFieldIf("mimeType", mime)
	if member == "inlineData" {
		w.StringField("data", data)
	} else {
		w.StringField("fileUri", m.URL)
	}
	named := "/" + member + "/displayName"
	if _, came := extra.Get(m.Extra, d, named); came {
		w.StringFieldIf("displayName", m.Name)
	} else if m.Name != "" { // one of the API's two servers refuses it
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "the name %.60q", m.Name)
	}
	extra.WriteBut(w, m.Extra, d, "/"+member, func(f dragoman.Field) bool { return f.Path == named })
	w.EndObject()
	if m.Title != "" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "the title %.60q", m.Title)
	}
	if m.Detail != "" && m.Detail != "auto" {
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "image detail %q", m.Detail)
	}
	if m.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the target caches by itself")
	}
}
