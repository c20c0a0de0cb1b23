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

// readPart reads one content part of a Responses item. A type it does
// not know is opaque.
func readPart(raw json.RawMessage) dragoman.Part {
	const d = dialectname.OpenAIResponses
	typ := toolwire.TypeOf(raw)
	rd := jsonwire.NewReader(raw)
	var part dragoman.Part
	switch typ {
	case "input_text", "output_text", "text":
		t := toolwire.ReadText(rd, d, toolwire.ReadBreakpoint)
		if typ == "text" { // not the type this place calls for; keep the spelling
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
			if bare && m.URL != "" { // base64 without the data: around it
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

// writePart writes a part as content of a Responses message. Text is
// "output_text" in an assistant's message and "input_text" in any other. It
// returns false when nothing was written.
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
				rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: none can follow the assistant's text")
			}
		} else {
			toolwire.WriteBreakpoint(v, w, t.Cache, nil, d, at, rep)
		}
		extra.End(w, t.Extra, d, at, rep)
	case *dragoman.Refusal:
		toolwire.WriteRefusal(w, p, d, at, rep)
	case *dragoman.Media:
		if assistant {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s in an assistant's message has no place in Responses", p.Media)
			return false
		}
		if p.Text == "" && !v.Caps().TakesMedia(p.Media) {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target takes no %s; a note stands in for it", p.Media)
			w.BeginObject()
			w.StringField("type", "input_text")
			w.StringField("text", toolwire.Placeholder(p))
			w.EndObject()
			return true
		}
		writeMedia(v, w, p, at, rep)
	case *dragoman.Opaque:
		if p.Dialect != d {
			rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place in a Responses message", extra.AType(p.Type, "block"), p.Dialect)
			return false
		}
		w.Raw(p.JSON)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in this Responses message", extra.A(part.Kind()))
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
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s without content; a note stands in for it", m.Media)
	case m.Text != "":
		w.StringField("type", "input_text")
		w.StringField("text", m.Text)
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text document written as text")
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
				rep.Add(dragoman.Synthesized, dragoman.Info, at.String(), `file name "file"`)
			}
			w.StringField("file_data", toolwire.FileData(m))
		case m.URL != "":
			w.StringField("file_url", m.URL)
		}
		w.StringFieldIf("detail", m.Detail)
	default:
		w.StringField("type", "input_text")
		w.StringField("text", toolwire.Placeholder(m))
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Responses takes no %s; a note stands in for it", m.Media)
	}
	if m.Title != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "document title")
	}
	toolwire.WriteBreakpoint(v, w, m.Cache, nil, d, at, rep)
	extra.End(w, m.Extra, d, at, rep)
}
