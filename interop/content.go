package interop

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// readText reads a text part of any dialect; they differ in what marks a cache
// breakpoint.
func readText(rd *jsonwire.Reader, d dragoman.Dialect) *dragoman.Text {
	t := &dragoman.Text{}
	for key := range rd.Object() {
		switch string(key) {
		case "type":
			rd.Skip()
		case "text":
			t.Text = rd.String()
		default:
			if !readCache(rd, d, key, &t.Cache, &t.Extra) {
				extra.Add(&t.Extra, d, "", key, rd.Raw())
			}
		}
	}
	return t
}

// readRefusal reads a refusal part of either of OpenAI's dialects.
func readRefusal(rd *jsonwire.Reader, d dragoman.Dialect) *dragoman.Refusal {
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
	return t
}

func writeRefusal(w *jsonwire.Writer, t *dragoman.Refusal, d dragoman.Dialect, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	w.StringField("type", "refusal")
	w.StringField("refusal", t.Text)
	extra.End(w, t.Extra, d, at, rep)
}

// empty reports whether media says nowhere where its content is.
func empty(m *dragoman.Media) bool {
	return m.Base64 == "" && m.Text == "" && m.URL == "" && m.FileID == ""
}

// dataURI is the URL of a media part: its own, or its content in a data: URI.
func dataURI(m *dragoman.Media) string {
	if m.Base64 == "" {
		return m.URL
	}
	return "data:" + m.MIME + ";base64," + m.Base64
}

// fileData is the content of a file as OpenAI's wires write it. One without a
// type goes as it came; a type is not ours to guess.
func fileData(m *dragoman.Media) string {
	if m.MIME == "" {
		return m.Base64
	}
	return dataURI(m)
}
