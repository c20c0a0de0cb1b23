package ollama

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

func reportTextLosses(t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
	extra.Report(rep, t.Extra, dialectname.Ollama, at)
	if t.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches automatically")
	}
	extra.ReportState(rep, t.Signature, at)
}

// blankLine separates texts that are joined.
const blankLine = "\n\n"

// messageContent collects the content of one Ollama message: one string, and a separate list of
// images in bare base64. The zero value is empty.
type messageContent struct {
	texts  []string
	images []string
	moved  bool // a text follows an image
}

// empty reports whether nothing was added.
func (c *messageContent) empty() bool { return len(c.texts) == 0 && len(c.images) == 0 }

// add adds a part. It reports content that the wire cannot express, and replaces unsupported
// media with a text note.
func (c *messageContent) add(v toolwire.View, part dragoman.Part, at extra.Path, rep *dragoman.Report) {
	switch p := part.(type) {
	case *dragoman.Text:
		reportTextLosses(p, at, rep)
		c.text(p.Text)
	case *dragoman.Data:
		c.text(string(p.JSON))
	case *dragoman.Refusal:
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "refusal is written as text")
		extra.Report(rep, p.Extra, dialectname.Ollama, at)
		c.text(p.Text)
	case *dragoman.Media:
		c.media(v, p, at, rep)
	case *dragoman.Opaque:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama messages cannot contain %s of %s", extra.TypedNoun(p.Type, "block"), p.Dialect)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "this Ollama message cannot contain %s part", extra.WithArticle(part.Kind()))
	}
}

func (c *messageContent) text(s string) {
	c.moved = c.moved || len(c.images) > 0
	c.texts = append(c.texts, s)
}

func (c *messageContent) media(v toolwire.View, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	if toolwire.IsDataURI(m.Base64) { // a whole data URI in the base64 field
		m = toolwire.SettledMedia(m)
	}
	note := ""
	switch {
	case m.Text != "":
		note = m.Text
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text document is written as text")
	case toolwire.EmptyMedia(m):
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s has no content; it is replaced with a text note", m.Media)
	case !v.Caps().AcceptsMedia(m.Media):
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target does not accept %s input; it is replaced with a text note", m.Media)
	case m.Base64 == "":
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama does not accept %s input by reference; it is replaced with a text note", m.Media)
	case m.Media != codes.MediaImage && m.Media != codes.MediaAudio:
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama does not accept %s input; it is replaced with a text note", m.Media)
	case undecodable(m):
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama does not accept %s input of type %.60q; it is replaced with a text note", m.Media, m.MIME)
	}
	reportMediaLosses(m, at, rep)
	if note != "" {
		c.text(note)
		return
	}
	switch kind, mime := toolwire.Sniff(m.Base64); {
	case m.MIME != "" && (mime != m.MIME || kind != m.Media):
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/mime", "Ollama detects the type of the %s from its content; the declared type %q is dropped", m.Media, m.MIME)
	case kind != m.Media:
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/media", "Ollama detects the kind of media from its content; the declared kind %q is dropped", m.Media)
	}
	c.images = append(c.images, m.Base64)
}

func reportMediaLosses(m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	extra.Report(rep, m.Extra, dialectname.Ollama, at)
	if m.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches automatically")
	}
	if m.Detail != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/detail", "resolution hint")
	}
	if m.Title != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/title", "document title")
	}
}

// write writes the content field, always, and the images field if there are any. Texts are joined
// with between.
func (c *messageContent) write(w *jsonwire.Writer, between string, at extra.Path, rep *dragoman.Report) {
	if n := len(c.texts); n > 1 && between != "" {
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String(), "%d texts are joined with blank lines", n)
	}
	if c.moved {
		rep.Add(dragoman.Moved, dragoman.Info, at.String(), "images are moved after the text")
	}
	w.StringField("content", strings.Join(c.texts, between))
	if len(c.images) == 0 {
		return
	}
	w.Key("images")
	w.BeginArray()
	for _, s := range c.images {
		w.String(s)
	}
	w.EndArray()
}

// readImage reads an element of the images field: base64 of an image or audio, detected from its
// first bytes. It also reads a data: URI, which some clients send.
func readImage(s string) *dragoman.Media {
	m := &dragoman.Media{Media: codes.MediaImage, Base64: s}
	if toolwire.IsDataURI(s) {
		m.Base64 = ""
		toolwire.SplitDataURI(m, s)
		if strings.HasPrefix(toolwire.MediaType(m), "audio/") {
			m.Media = codes.MediaAudio
		}
		return m
	}
	m.Media, m.MIME = toolwire.Sniff(s)
	return m
}

// undecodable reports whether media is declared as a type that Ollama does not know, and its
// content does not contradict that.
func undecodable(m *dragoman.Media) bool {
	if _, mime := toolwire.Sniff(m.Base64); mime != "" {
		return false
	}
	mime := toolwire.MediaType(m)
	return !toolwire.CanSniff(mime) && m.Media == codes.MediaImage && strings.HasPrefix(mime, "image/")
}
