package openairesponses

import (
	"encoding/json"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readPart reads one content part of a Responses item. A part of an unknown type is opaque.
func readPart(raw json.RawMessage) dragoman.Part {
	const d = dialectname.OpenAIResponses
	typ := toolwire.TypeOf(raw)
	rd := jsonwire.NewReader(raw)
	var part dragoman.Part
	switch typ {
	case "input_text", "output_text", "text":
		t := toolwire.ReadText(rd, d, toolwire.ReadBreakpoint)
		if typ == "text" { // not the standard type; keep it
			extra.Add(&t.Extra, d, "", []byte("type"), []byte(`"text"`))
		}
		part = t
	case "refusal":
		part = toolwire.ReadRefusal(rd, d)
	case "input_image", "input_file":
		part = readMedia(rd, typ)
	}
	if part == nil || rd.End() != nil {
		return &dragoman.Opaque{Dialect: d, Type: typ, JSON: raw}
	}
	return part
}

func readMedia(rd *jsonwire.Reader, typ string) *dragoman.Media {
	const d = dialectname.OpenAIResponses
	m := &dragoman.Media{Media: codes.MediaImage}
	if typ == "input_file" {
		m.Media = codes.MediaFile
	}
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "image_url", "file_data", "file_url":
			if rd.Kind() != '"' {
				extra.Add(&m.Extra, d, "", key, rd.Raw())
				continue
			}
			bare := string(key) == "file_data"
			toolwire.SplitDataURI(m, rd.String())
			if bare && m.URL != "" { // bare base64
				m.Base64, m.URL = m.URL, ""
			}
		case "file_id":
			if rd.Kind() != '"' {
				extra.Add(&m.Extra, d, "", key, rd.Raw())
				continue
			}
			m.FileID = rd.String()
		case "filename":
			m.Name = rd.String()
		case "detail":
			m.Detail = rd.String()
		default:
			if !toolwire.ReadBreakpoint(rd, key, &m.Cache, &m.Extra) {
				extra.Add(&m.Extra, d, "", key, rd.Raw())
			}
		}
	}
	return m
}

// writePart writes a part as content of a Responses message. Text is "output_text" in an
// assistant message and "input_text" in any other. It returns false if nothing was written.
func writePart(v toolwire.View, w *jsonwire.Writer, part dragoman.Part, assistant bool, at extra.Path, rep *dragoman.Report) bool {
	const d = dialectname.OpenAIResponses
	switch p := part.(type) {
	case *dragoman.Text, *dragoman.Data:
		t, ok := p.(*dragoman.Text)
		if !ok {
			t = &dragoman.Text{Text: string(p.(*dragoman.Data).JSON)}
		}
		w.BeginObject()
		if !toolwire.HasField(t.Extra, d, "/type") {
			if assistant {
				w.StringField("type", "output_text")
			} else {
				w.StringField("type", "input_text")
			}
		}
		w.StringField("text", t.Text)
		if assistant {
			if t.Cache != nil {
				rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: not possible after assistant text")
			}
		} else {
			toolwire.WriteBreakpoint(v, w, t.Cache, nil, d, at, rep)
		}
		extra.End(w, t.Extra, d, at, rep)
	case *dragoman.Refusal:
		toolwire.WriteRefusal(w, p, d, at, rep)
	case *dragoman.Media:
		if assistant {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Responses does not accept %s in an assistant message", p.Media)
			return false
		}
		if p.Text == "" && !v.Caps().AcceptsMedia(p.Media) {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target does not accept %s input; it is replaced with a text note", p.Media)
			w.BeginObject()
			w.StringField("type", "input_text")
			w.StringField("text", toolwire.Placeholder(p))
			w.EndObject()
			return true
		}
		writeMedia(v, w, p, at, rep)
	case *dragoman.Opaque:
		if p.Dialect != d {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Responses messages cannot contain %s of %s", extra.TypedNoun(p.Type, "block"), p.Dialect)
			return false
		}
		w.Raw(p.JSON)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "this Responses message cannot contain %s part", extra.WithArticle(part.Kind()))
		return false
	}
	return true
}

// writeMedia writes an image or a file as an input part.
func writeMedia(v toolwire.View, w *jsonwire.Writer, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	const d = dialectname.OpenAIResponses
	w.BeginObject()
	switch {
	case toolwire.EmptyMedia(m):
		w.StringField("type", "input_text")
		w.StringField("text", toolwire.Placeholder(m))
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s has no content; it is replaced with a text note", m.Media)
	case m.Text != "":
		w.StringField("type", "input_text")
		w.StringField("text", m.Text)
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text document is written as text")
	case m.Media == codes.MediaImage:
		w.StringField("type", "input_image")
		if m.FileID != "" {
			w.StringField("file_id", m.FileID)
		}
		if uri := toolwire.DataURI(m); uri != "" {
			w.StringField("image_url", uri)
		}
		detail := m.Detail
		if detail == "" {
			detail = "auto"
		}
		w.StringField("detail", detail)
	case m.Media == codes.MediaFile:
		w.StringField("type", "input_file")
		w.StringFieldIf("file_id", m.FileID)
		w.StringFieldIf("filename", m.Name)
		switch {
		case m.Base64 != "":
			if m.Name == "" {
				w.StringField("filename", "file")
				rep.Add(dragoman.Synthesized, dragoman.Info, at.String(), `file name "file" is generated`)
			}
			w.StringField("file_data", toolwire.FileData(m))
		case m.URL != "":
			w.StringField("file_url", m.URL)
		}
		w.StringFieldIf("detail", m.Detail)
	default:
		w.StringField("type", "input_text")
		w.StringField("text", toolwire.Placeholder(m))
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Responses does not accept %s input; it is replaced with a text note", m.Media)
	}
	if m.Title != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "document title")
	}
	toolwire.WriteBreakpoint(v, w, m.Cache, nil, d, at, rep)
	extra.End(w, m.Extra, d, at, rep)
}
