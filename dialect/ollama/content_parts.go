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

func unsaidOfText(t *dragoman.Text, at extra.Path, rep *dragoman.Report) {
	extra.Report(rep, t.Extra, dialectname.Ollama, at)
	if t.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches by itself")
	}
	extra.ReportState(rep, t.Signature, at)
}

// blankLine is what sets texts apart that become one.
const blankLine = "\n\n"

// messageContent collects the content of one Ollama message: one string, and
// beside it images in bare base64. The zero value is empty.
type messageContent struct {
	texts  []string
	images []string
	moved  bool // a text follows an image
}

// empty reports whether nothing was added.
func (c *messageContent) empty() bool { return len(c.texts) == 0 && len(c.images) == 0 }

// add takes a part. What the wire has no place for is reported, and where it is
// media a note stands in for it.
func (c *messageContent) add(v toolwire.View, part dragoman.Part, at extra.Path, rep *dragoman.Report) {
	switch p := part.(type) {
	case *dragoman.Text:
		unsaidOfText(p, at, rep)
		c.text(p.Text)
	case *dragoman.Data:
		c.text(string(p.JSON))
	case *dragoman.Refusal:
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a refusal written as text")
		extra.Report(rep, p.Extra, dialectname.Ollama, at)
		c.text(p.Text)
	case *dragoman.Media:
		c.media(v, p, at, rep)
	case *dragoman.Opaque:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s has no place in an Ollama message", extra.AType(p.Type, "block"), p.Dialect)
	default:
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in this Ollama message", extra.A(part.Kind()))
	}
}

func (c *messageContent) text(s string) {
	c.moved = c.moved || len(c.images) > 0
	c.texts = append(c.texts, s)
}

func (c *messageContent) media(v toolwire.View, m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	if toolwire.IsDataURI(m.Base64) { // a whole URI where its content belongs
		m = toolwire.SettledMedia(m)
	}
	note := ""
	switch {
	case m.Text != "":
		note = m.Text
		rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text document written as text")
	case toolwire.EmptyMedia(m):
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s without content; a note stands in for it", m.Media)
	case !v.Caps().TakesMedia(m.Media):
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "the target takes no %s; a note stands in for it", m.Media)
	case m.Base64 == "":
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama takes no %s by reference; a note stands in for it", m.Media)
	case m.Media != codes.MediaImage && m.Media != codes.MediaAudio:
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama takes no %s; a note stands in for it", m.Media)
	case undecodable(m):
		note = toolwire.Placeholder(m)
		rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Ollama takes no %s of type %.60q; a note stands in for it", m.Media, m.MIME)
	}
	unsaidOfMedia(m, at, rep)
	if note != "" {
		c.text(note)
		return
	}
	switch kind, mime := toolwire.Sniff(m.Base64); {
	case m.MIME != "" && (mime != m.MIME || kind != m.Media):
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/mime", "Ollama finds out by itself what the %s is; it says %q", m.Media, m.MIME)
	case kind != m.Media:
		rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/media", "Ollama finds out by itself whether this is %s", m.Media)
	}
	c.images = append(c.images, m.Base64)
}

func unsaidOfMedia(m *dragoman.Media, at extra.Path, rep *dragoman.Report) {
	extra.Report(rep, m.Extra, dialectname.Ollama, at)
	if m.Cache != nil {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches by itself")
	}
	if m.Detail != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/detail", "resolution hint")
	}
	if m.Title != "" {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/title", "document title")
	}
}

// write writes the content member, always, and the images where there are some.
// Texts are joined with between.
func (c *messageContent) write(w *jsonwire.Writer, between string, at extra.Path, rep *dragoman.Report) {
	if n := len(c.texts); n > 1 && between != "" {
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String(), "%d texts written as one, a blank line between them", n)
	}
	if c.moved {
		rep.Add(dragoman.Moved, dragoman.Info, at.String(), "images stand behind the text")
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

// readImage reads an element of an images member: base64 of an image or a
// sound, which its first bytes tell. A data: URI, which some clients send, is
// read too.
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

// undecodable reports whether media says that it is of a type that Ollama does not
// know, and its content does not say otherwise.
func undecodable(m *dragoman.Media) bool {
	if _, mime := toolwire.Sniff(m.Base64); mime != "" {
		return false
	}
	mime := toolwire.MediaType(m)
	return !toolwire.CanSniff(mime) && m.Media == codes.MediaImage && strings.HasPrefix(mime, "image/")
}
