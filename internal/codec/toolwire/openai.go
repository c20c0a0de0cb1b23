package toolwire

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Functions that the two OpenAI dialects share.

// ReadGrammar reads the format of a freeform tool: Chat nests the grammar, Responses
// does not. The text format is the same as no grammar.
func ReadGrammar(rd *jsonwire.Reader, s *dragoman.ToolSpec, d dragoman.Dialect, prefix string) {
	if rd.Null() {
		return
	}
	raw := rd.Raw()
	if rd.Err() != nil {
		return
	}
	switch typ := TypeOf(raw); typ {
	case "grammar":
	case "", "text":
		return
	default: // an unknown format is written back unchanged
		at := strings.LastIndexByte(prefix, '/')
		extra.Add(&s.Extra, d, prefix[:at], []byte(prefix[at+1:]), raw)
		return
	}
	in := jsonwire.NewReader(raw)
	g := &dragoman.Grammar{}
	var visit func(key []byte, prefix string)
	visit = func(key []byte, prefix string) {
		switch string(key) {
		case "type":
			in.Skip()
		case "grammar":
			for key := range in.Object() {
				visit(key, prefix+"/grammar")
			}
		case "syntax":
			g.Syntax = in.String()
		case "definition":
			g.Definition = in.String()
		default:
			extra.Add(&s.Extra, d, prefix, key, in.Raw())
		}
	}
	for key := range in.Object() {
		visit(key, prefix)
	}
	if err := in.Err(); err != nil {
		rd.Fail(err)
	}
	s.Grammar = g
}

// ReadBreakpoint reads OpenAI's explicit cache breakpoint. It is a [CacheReader].
func ReadBreakpoint(rd *jsonwire.Reader, key []byte, hint **dragoman.CacheHint, _ **dragoman.Extra) bool {
	if string(key) != "prompt_cache_breakpoint" {
		return false
	}
	*hint = ReadCacheHint(rd)
	return true
}

// WriteBreakpoint writes OpenAI's explicit cache breakpoint if the model accepts one.
func WriteBreakpoint(v View, w *jsonwire.Writer, h *dragoman.CacheHint, e *dragoman.Extra, d dragoman.Dialect, at extra.Path, rep *dragoman.Report) {
	if h == nil || HasField(e, d, "/cache_control") {
		return
	}
	if !v.Caps().CacheBreakpoints {
		rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "cache breakpoint: the target caches automatically")
		return
	}
	if !v.TakeBreakpoint(at, rep) {
		return
	}
	ttl := h.TTL
	switch ttl {
	case "", "30m", "12h":
	case "5m":
		ttl = "30m"
	default:
		ttl = "12h"
	}
	if ttl != h.TTL {
		rep.Addf(dragoman.Lowered, dragoman.Info, at.String(), "cache lifetime %q written as %q", h.TTL, ttl)
	}
	w.Key("prompt_cache_breakpoint")
	w.BeginObject()
	w.StringField("mode", "explicit")
	w.StringFieldIf("ttl", ttl)
	w.EndObject()
}

// ReadRefusal reads a refusal part of an OpenAI dialect.
func ReadRefusal(rd *jsonwire.Reader, d dragoman.Dialect) *dragoman.Refusal {
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

// WriteRefusal writes a refusal part.
func WriteRefusal(w *jsonwire.Writer, t *dragoman.Refusal, d dragoman.Dialect, at extra.Path, rep *dragoman.Report) {
	w.BeginObject()
	w.StringField("type", "refusal")
	w.StringField("refusal", t.Text)
	extra.End(w, t.Extra, d, at, rep)
}

// FileData returns the content of a file in the form of the OpenAI dialects. A file
// without a type is written without one, because guessing the type is not safe.
func FileData(m *dragoman.Media) string {
	if m.MIME == "" {
		return m.Base64
	}
	return DataURI(m)
}

// openAIMedia are the image and audio types that OpenAI accepts.
var openAIMedia = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"}

// OpenAIRefuses returns why neither OpenAI API accepts the media, or "" if it may be
// accepted. It checks only images and audio that have a type. It does not apply to
// compatible servers, which accept what their models do.
func OpenAIRefuses(m *dragoman.Media) (why string) {
	m = SettledMedia(m)
	if m.Base64 == "" || m.Media != codes.MediaImage && m.Media != codes.MediaAudio {
		return ""
	}
	if mime := MediaType(m); mime != "" && mime != "application/octet-stream" && !slices.Contains(openAIMedia, mime) {
		return fmt.Sprintf("OpenAI accepts no %s of type %.60q", m.Media, m.MIME)
	}
	return ""
}
