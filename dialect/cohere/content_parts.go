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

// readPart reads one content block. An unknown block becomes opaque.
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

// noCache is a [toolwire.CacheReader] that accepts no field: the API has no
// cache breakpoints.
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

// readDocument reads a document that has only data, in the form of an object.
// It returns nil for a document with an id or with data in another form, which
// stays opaque and is written back unchanged.
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

// isDocument reports whether a JSON value can be the data of a document.
func isDocument(raw []byte) bool { return jsonwire.NewReader(raw).Kind() == '{' }

func reportText(t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
	extra.Report(rep, t.Extra, name, at)
	reportCache(t.Cache, at, rep)
	extra.ReportState(rep, t.Signature, at)
}

func reportCache(h *dragoman.CacheHint, at extra.Path, rep *dragoman.Report) {
	if h != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches automatically")
	}
}

func reportRefusal(p *dragoman.Refusal, at extra.Path, rep *dragoman.Report) {
	rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "refusal written as text")
	extra.Report(rep, p.Extra, name, at)
}

// reportForeign reports a block of another dialect as dropped.
func reportForeign(p *dragoman.Opaque, at extra.Path, rep *dragoman.Report) {
	rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of dialect %s cannot be expressed in a Cohere message", extra.TypedNoun(p.Type, "block"), p.Dialect)
}

// writePart writes a part as a content block. If the part has no form, it
// reports the loss, writes nothing and returns false.
func writePart(v toolwire.View, w *jsonwire.Writer, part dragoman.Part, at extra.Path, rep *dragoman.Report) bool {
	switch p := part.(type) {
	case *dragoman.Text:
		reportText(p, at, rep)
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
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part cannot be expressed in this Cohere message", part.Kind())
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

// imageTypes lists the image types that the API accepts.
var imageTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// mediaNote returns the text that replaces media that cannot be sent; empty if
// it can be sent.
func mediaNote(v toolwire.View, m *dragoman.Media, at extra.Path, rep *dragoman.Report) string {
	switch mime := toolwire.MediaType(m); {
	case m.Text != "":
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text document written as text")
		return m.Text
	case toolwire.EmptyMedia(m):
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s without content; replaced by a note", m.Media)
	case m.Media != codes.MediaImage:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Cohere does not accept %s input; replaced by a note", m.Media)
	case !v.Caps().AcceptsMedia(m.Media):
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target does not accept %s input; replaced by a note", m.Media)
	case m.FileID != "":
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Cohere does not accept %s input by file id; replaced by a note", m.Media)
	case m.Base64 != "" && mime != "" && mime != "application/octet-stream" && !slices.Contains(imageTypes, mime):
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Cohere does not accept %s type %.60q; replaced by a note", m.Media, m.MIME)
	default:
		return ""
	}
	return toolwire.Placeholder(m)
}

func writeMedia(v toolwire.View, w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	if toolwire.IsDataURI(m.Base64) { // the content is a data URI
		m = toolwire.SettledMedia(m)
	}
	reportCache(m.Cache, at, rep)
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
		rep.Addf(dragoman.Synthesized, dragoman.Warn, at.String(), "MIME type %s written for %s without a type", m.MIME, m.Media)
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
