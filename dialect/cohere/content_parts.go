package cohere

import (
	"encoding/json"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readPart reads one block of content. An unknown one is opaque.
func readPart(raw json.RawMessage) dragoman.Part {
	typ := toolwire.TypeOf(raw)
	rd := jsonwire.NewReader(raw)
	var part dragoman.Part
	switch typ {
	case "text":
		part = toolwire.ReadText(rd, name, noCache)
	case "thinking":
		part = readThinking(rd)
	case "image_url":
		if m := readImage(rd); !toolwire.EmptyMedia(m) {
			part = m
		}
	case "document":
		if d := readDocument(rd); d != nil {
			part = d
		}
	}
	if part == nil || rd.End() != nil {
		return &dragoman.Opaque{Dialect: name, Type: typ, JSON: raw}
	}
	return part
}

// noCache says that no field marks a cache breakpoint. It is a [toolwire.CacheReader].
func noCache(*jsonwire.Reader, []byte, **dragoman.CacheHint, **dragoman.Extra) bool { return false }

func readThinking(rd *jsonwire.Reader) *dragoman.Reasoning {
	t := &dragoman.Reasoning{}
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "thinking":
			t.Text = rd.String()
		default:
			extra.Add(&t.Extra, name, "", key, rd.Raw())
		}
	}
	return t
}

func readImage(rd *jsonwire.Reader) *dragoman.Media {
	m := &dragoman.Media{Media: codes.MediaImage}
	for key := range rd.Object() {
		switch {
		case string(key) == "type":
			rd.Skip()
		case string(key) == "image_url" && rd.Kind() == '{':
			for key := range rd.Object() {
				switch string(key) {
				case "url":
					toolwire.SplitDataURI(m, rd.String())
				case "detail":
					m.Detail = rd.String()
				default:
					extra.Add(&m.Extra, name, "/image_url", key, rd.Raw())
				}
			}
		default:
			extra.Add(&m.Extra, name, "", key, rd.Raw())
		}
	}
	return m
}

// readDocument reads a document whose data is an object, and nothing else. A document with
// an id, or with data in another form, is opaque: it goes back unchanged.
func readDocument(rd *jsonwire.Reader) *dragoman.Data {
	var data json.RawMessage
	plain := true
	for key := range rd.Object() {
		switch {
		case string(key) == "type":
			rd.Skip()
		case string(key) == "document" && rd.Kind() == '{':
			for key := range rd.Object() {
				if string(key) == "data" && rd.Kind() == '{' {
					data = rd.Raw()
				} else {
					plain = false
					rd.Skip()
				}
			}
		default:
			plain = false
			rd.Skip()
		}
	}
	if !plain || data == nil {
		return nil
	}
	return &dragoman.Data{JSON: data}
}

// isDocument reports whether a JSON value may be the data of a document.
func isDocument(raw []byte) bool { return jsonwire.NewReader(raw).Kind() == '{' }

func unsaidOfText(t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
	extra.Report(rep, t.Extra, name, at)
	unsaidCache(t.Cache, at, rep)
	extra.ReportState(rep, t.Signature, at)
}

func unsaidCache(h *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
	if h != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches by itself")
	}
}

func reportRefusal(p *dragoman.Refusal, at extra.Path, rep *dragoman.Report) {
	rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
	extra.Report(rep, p.Extra, name, at)
}

// reportForeign reports a block of another dialect, which is not written.
func reportForeign(p *dragoman.Opaque, at extra.Path, rep *dragoman.Report) {
	rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place in a Cohere message", extra.AType(p.Type, "block"), p.Dialect)
}

// writePart writes a part as a block of content. It returns false, with a report, if it
// wrote nothing.
func writePart(v toolwire.View, w *jsonwire.Writer, part dragoman.Part, at extra.Path, rep *dragoman.Report) bool {
	switch p := part.(type) {
	case *dragoman.Text:
		unsaidOfText(p, at, rep)
		writeText(w, p.Text, p.Extra)
	case *dragoman.Refusal:
		reportRefusal(p, at, rep)
		writeText(w, p.Text, nil)
	case *dragoman.Data:
		if !isDocument(p.JSON) {
			writeText(w, string(p.JSON), nil)
			break
		}
		w.BeginObject()
		w.StringField("type", "document")
		w.Key("document")
		w.BeginObject()
		w.RawField("data", p.JSON)
		w.EndObject()
		w.EndObject()
	case *dragoman.Media:
		writeMedia(v, w, p, at, rep)
	case *dragoman.Opaque:
		if p.Dialect != name {
			reportForeign(p, at, rep)
			return false
		}
		w.Raw(p.JSON)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in this Cohere message", extra.A(part.Kind()))
		return false
	}
	return true
}

func writeText(w *jsonwire.Writer, text string, e *dragoman.Extra) {
	w.BeginObject()
	w.StringField("type", "text")
	w.StringField("text", text)
	extra.Write(w, e, name, "")
	w.EndObject()
}

// imageTypes are the types of images that the API accepts.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// mediaNote returns the text that stands in for media that cannot be sent; empty if it can.
func mediaNote(v toolwire.View, m *dragoman.Media, at extra.Path, rep *dragoman.Report) string {
	switch mime := toolwire.MediaType(m); {
	case m.Text != "":
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text document written as text")
		return m.Text
	case toolwire.EmptyMedia(m):
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s without content; a note stands in for it", m.Media)
	case m.Media != codes.MediaImage:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Cohere takes no %s; a note stands in for it", m.Media)
	case !v.Caps().TakesMedia(m.Media):
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target takes no %s; a note stands in for it", m.Media)
	case m.FileID != "":
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Cohere takes no %s by the id of a file; a note stands in for it", m.Media)
	case m.Base64 != "" && mime != "" && mime != "application/octet-stream" && !slices.Contains(imageTypes, mime):
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Cohere takes no %s of type %.60q; a note stands in for it", m.Media, m.MIME)
	default:
		return ""
	}
	return toolwire.Placeholder(m)
}

func writeMedia(v toolwire.View, w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	if toolwire.IsDataURI(m.Base64) { // a URI in the place of its content
		m = toolwire.SettledMedia(m)
	}
	unsaidCache(m.Cache, at, rep)
	if m.Title != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/title", "document title")
	}
	extra.Report(rep, m.Extra, name, at)
	if note := mediaNote(v, m, at, rep); note != "" {
		writeText(w, note, nil)
		return
	}
	if m.Base64 != "" && m.MIME == "" {
		typed := *m
		if typed.MIME = toolwire.MediaType(m); typed.MIME == "" {
			typed.MIME = "application/octet-stream"
		}
		m = &typed
		rep.Addf(dragoman.Synthesized, dragoman.Warn, at.String(), "content type %s: the %s has none", m.MIME, m.Media)
	}
	w.BeginObject()
	w.StringField("type", "image_url")
	w.Key("image_url")
	w.BeginObject()
	w.StringField("url", toolwire.DataURI(m))
	w.StringFieldIf("detail", m.Detail)
	extra.Write(w, m.Extra, name, "/image_url")
	w.EndObject()
	extra.Write(w, m.Extra, name, "")
	w.EndObject()
}
