package interop

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
)

// splitDataURI puts the content of a data: URI into m, or keeps a URL. Who wrote
// the URI may have spelled its words in any case, put blanks before it, and left
// the content as it is.
func splitDataURI(m *dragoman.Media, uri string) {
	mime, content, ok := cutDataURI(uri)
	if !ok {
		m.URL = uri
		return
	}
	m.MIME, m.Base64 = mime, content
}

// cutDataURI returns the type of a data: URI, and its content in base64.
func cutDataURI(uri string) (mime, content string, ok bool) {
	if !isDataURI(uri) {
		return "", "", false
	}
	head, content, ok := strings.Cut(strings.TrimSpace(uri)[len(dataScheme):], ",")
	if !ok {
		return "", "", false
	}
	i := strings.LastIndexByte(head, ';')
	if i >= 0 && strings.EqualFold(strings.TrimSpace(head[i+1:]), "base64") {
		return strings.TrimSpace(head[:i]), content, true
	}
	text, err := url.PathUnescape(content)
	if err != nil {
		text = content // a percent sign that stands for itself
	}
	return strings.TrimSpace(head), base64.StdEncoding.EncodeToString([]byte(text)), true
}

const dataScheme = "data:"

func isDataURI(uri string) bool {
	uri = strings.TrimSpace(uri)
	return len(uri) >= len(dataScheme) && strings.EqualFold(uri[:len(dataScheme)], dataScheme)
}

// settledMedia is media whose content is where it belongs: a data: URI may stand
// in place of a URL, or of the content itself.
func settledMedia(m *dragoman.Media) *dragoman.Media {
	uri := m.Base64
	if uri == "" {
		uri = m.URL
	}
	mime, content, ok := cutDataURI(uri)
	if !ok {
		return m
	}
	settled := *m
	settled.URL, settled.Base64 = "", content
	if mime != "" {
		settled.MIME = mime
	}
	return &settled
}

// mediaType is the content type of media in the spelling that every API knows:
// without parameters, in small letters. Where none is told, the first bytes of
// the content tell it; it is empty where they do not.
func mediaType(m *dragoman.Media) string {
	mime, _, _ := strings.Cut(m.MIME, ";")
	switch mime = strings.ToLower(strings.TrimSpace(mime)); mime {
	case "image/jpg", "image/pjpeg":
		return "image/jpeg"
	case "image/x-png":
		return "image/png"
	case "application/x-pdf":
		return "application/pdf"
	case "", "application/octet-stream":
		if told := contentType(m.Base64); told != "" {
			return told
		}
	}
	return mime
}

// contentType is what content in base64 is by its first bytes; empty where they
// do not tell.
func contentType(b64 string) string {
	if head, _ := base64.StdEncoding.DecodeString(b64[:min(len(b64), 8)/4*4]); begins(head, "%PDF-") {
		return "application/pdf"
	}
	_, mime := sniff(b64)
	return mime
}

// nowhere reports whether media is said to be behind a URL that is none.
func nowhere(m *dragoman.Media) bool { return m.URL != "" && !strings.Contains(m.URL, "://") }

// anthropicImages are the types of images that Anthropic takes.
var anthropicImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// anthropicBlock says which block of Anthropic's media goes into, with its type
// where it goes by its content; or why it has none.
func (r *Registry) anthropicBlock(m *dragoman.Media) (block, mime, why string) {
	switch {
	case empty(m):
		return "", "", fmt.Sprintf("%s without content", m.Media)
	case m.Text == "" && !r.target.Caps.TakesMedia(m.Media):
		return "", "", fmt.Sprintf("the target takes no %s", m.Media)
	case m.Media != dragoman.MediaImage && m.Media != dragoman.MediaFile:
		return "", "", fmt.Sprintf("Anthropic takes no %s", m.Media)
	}
	block = "image"
	if m.Media == dragoman.MediaFile {
		block = "document"
	}
	switch {
	case nowhere(m):
		return "", "", fmt.Sprintf("the %s has no URL to fetch it from", m.Media)
	case m.Base64 == "":
		return block, "", ""
	}
	mime = mediaType(m)
	switch {
	case slices.Contains(anthropicImages, mime):
		return "image", mime, ""
	case mime == "application/pdf":
		return "document", mime, ""
	case strings.HasPrefix(mime, "text/") && m.Media == dragoman.MediaFile:
		if _, ok := plainText(m); ok {
			return "document", "text/plain", ""
		}
		return "", "", "Anthropic takes text in UTF-8 only"
	default:
		return "", "", fmt.Sprintf("Anthropic takes no %s of type %.60q", m.Media, m.MIME)
	}
}

// plainText is the text of a document that is one.
func plainText(m *dragoman.Media) (string, bool) {
	if m.Base64 == "" || m.Media != dragoman.MediaFile || !strings.HasPrefix(mediaType(m), "text/") {
		return m.Text, m.Base64 == "" && m.Text != ""
	}
	text, err := base64.StdEncoding.DecodeString(m.Base64)
	return string(text), err == nil && utf8.Valid(text)
}

// geminiFiles are the types of files that Gemini takes beside texts and media.
var geminiFiles = []string{
	"application/pdf", "application/json", "application/xml", "application/rtf", "application/javascript", "application/x-javascript",
	"application/x-python-code", "application/x-typescript",
}

// GeminiMedia is media as Gemini takes it, with its type told, or why it takes
// none such: not every type, and content of no type not at all.
func GeminiMedia(m *dragoman.Media) (settled *dragoman.Media, why string) {
	m = settledMedia(m)
	switch {
	case nowhere(m):
		return m, fmt.Sprintf("the %s has no URL to fetch it from", m.Media)
	case m.Base64 == "":
		return m, ""
	}
	mime := mediaType(m)
	kind, _, _ := strings.Cut(mime, "/")
	takes := slices.Contains(geminiFiles, mime) || kind == "text" || kind == "audio" || kind == "video" || kind == "image" && mime != "image/svg+xml"
	if !takes {
		return m, fmt.Sprintf("Gemini takes no %s of type %.60q", m.Media, m.MIME)
	}
	given, _, _ := strings.Cut(m.MIME, ";")
	if m.MIME == mime || given == mime && kind == "audio" {
		return m, "" // parameters may say how a sound is to be read
	}
	typed := *m
	typed.MIME = mime
	return &typed, ""
}

// openAIMedia are the types of images and sounds that OpenAI takes.
var openAIMedia = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "audio/wav", "audio/x-wav", "audio/wave", "audio/mpeg", "audio/mp3"}

// OpenAIRefuses says why OpenAI takes no media such as this in either of its APIs;
// empty where it may take it. Servers of others that speak them take what their
// models do. It judges images and sounds by their type; of what has none, and of
// files, it says nothing.
func OpenAIRefuses(m *dragoman.Media) (why string) {
	m = settledMedia(m)
	if m.Base64 == "" || m.Media != dragoman.MediaImage && m.Media != dragoman.MediaAudio {
		return ""
	}
	if mime := mediaType(m); mime != "" && mime != "application/octet-stream" && !slices.Contains(openAIMedia, mime) {
		return fmt.Sprintf("OpenAI takes no %s of type %.60q", m.Media, m.MIME)
	}
	return ""
}

// Placeholder is the text that stands for media that cannot be sent. It names the
// media, and never holds its content.
func Placeholder(m *dragoman.Media) string {
	what := string(m.Media)
	switch {
	case m.Name != "":
		what += shown(m.Name)
	case strings.Contains(m.URL, "://"):
		what += shown(m.URL)
	case m.FileID != "":
		what += shown(m.FileID)
	}
	return "[" + what + " not shown]"
}

// maxShown bounds a name in a placeholder: what is longer is content by a wrong
// name.
const maxShown = 2048

func shown(name string) string {
	if isDataURI(name) || len(name) > maxShown {
		return ""
	}
	return " " + name
}
