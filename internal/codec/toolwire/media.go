package toolwire

import (
	"encoding/base64"
	"net/url"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// EmptyMedia reports whether media has neither content nor a reference to it.
func EmptyMedia(m *dragoman.Media) bool {
	return m.Base64 == "" && m.Text == "" && m.URL == "" && m.FileID == ""
}

// DataURI returns the URL of a media part, or its content as a data: URI.
func DataURI(m *dragoman.Media) string {
	if m.Base64 == "" {
		return m.URL
	}
	return "data:" + m.MIME + ";base64," + m.Base64
}

// SplitDataURI stores the content of a data: URI in m, or any other URL as its URL. The
// scheme and "base64" may be in any case, white space may precede them, and the content
// may be plain text.
func SplitDataURI(m *dragoman.Media, uri string) {
	mime, content, ok := cutDataURI(uri)
	if !ok {
		m.URL = uri
		return
	}
	m.MIME, m.Base64 = mime, content
}

// cutDataURI returns the type of a data: URI and its content in base64.
func cutDataURI(uri string) (mime, content string, ok bool) {
	if !IsDataURI(uri) {
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
		text = content // a literal percent sign
	}
	return strings.TrimSpace(head), base64.StdEncoding.EncodeToString([]byte(text)), true
}

const dataScheme = "data:"

// IsDataURI reports whether a URL is a data: URI.
func IsDataURI(uri string) bool {
	uri = strings.TrimSpace(uri)
	return len(uri) >= len(dataScheme) && strings.EqualFold(uri[:len(dataScheme)], dataScheme)
}

// SettledMedia returns media with its content in the right field: a data: URI may be in
// place of a URL or of the content.
func SettledMedia(m *dragoman.Media) *dragoman.Media {
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

// MediaType returns the content type of media in the spelling that every API knows:
// without parameters, in lower case. If the type is not given, it is detected from the
// first bytes of the content; it is empty if they are unknown.
func MediaType(m *dragoman.Media) string {
	mime, _, _ := strings.Cut(m.MIME, ";")
	switch mime = strings.ToLower(strings.TrimSpace(mime)); mime {
	case "image/jpg", "image/pjpeg":
		return "image/jpeg"
	case "image/x-png":
		return "image/png"
	case "application/x-pdf":
		return "application/pdf"
	case "", "application/octet-stream":
		if detected := contentType(m.Base64); detected != "" {
			return detected
		}
	}
	return mime
}

// contentType returns the type of base64 content by its first bytes, or "".
func contentType(b64 string) string {
	if head, _ := base64.StdEncoding.DecodeString(b64[:min(len(b64), 8)/4*4]); begins(head, "%PDF-") {
		return "application/pdf"
	}
	_, mime := Sniff(b64)
	return mime
}

// NoURL reports whether media has a URL that is not valid.
func NoURL(m *dragoman.Media) bool { return m.URL != "" && !strings.Contains(m.URL, "://") }

// Placeholder returns the text to write for media that cannot be sent. It names the
// media and never includes its content.
func Placeholder(m *dragoman.Media) string {
	what := m.Media
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

// maxShown limits a name in a placeholder. A longer name is content in the wrong field.
const maxShown = 2048

func shown(name string) string {
	if IsDataURI(name) || len(name) > maxShown {
		return ""
	}
	return " " + name
}

// signatures are the first bytes of common image and audio formats. A space matches any
// byte.
var signatures = []struct {
	begin string
	mime  string
}{
	{"\x89PNG\r\n\x1a\n", "image/png"},
	{"\xff\xd8\xff", "image/jpeg"},
	{"GIF8", "image/gif"},
	{"RIFF    WEBP", "image/webp"},
	{"BM", "image/bmp"},
	{"RIFF    WAVE", "audio/wav"},
	{"ID3", "audio/mpeg"},
	{"OggS", "audio/ogg"},
	{"fLaC", "audio/flac"},
}

// Sniff returns the kind and type of base64 content by its first bytes. Unknown content
// is an image without a type.
func Sniff(b64 string) (string, string) {
	const most = 16 // characters, for twelve bytes
	head, _ := base64.StdEncoding.DecodeString(b64[:min(len(b64), most)/4*4])
	for _, s := range signatures {
		if begins(head, s.begin) {
			if strings.HasPrefix(s.mime, "audio/") {
				return codes.MediaAudio, s.mime
			}
			return codes.MediaImage, s.mime
		}
	}
	return codes.MediaImage, ""
}

func begins(head []byte, with string) bool {
	if len(head) < len(with) {
		return false
	}
	for i := range len(with) {
		if with[i] != ' ' && head[i] != with[i] {
			return false
		}
	}
	return true
}

// CanSniff reports whether Sniff can detect this type.
func CanSniff(mime string) bool {
	for _, s := range signatures {
		if s.mime == mime {
			return true
		}
	}
	return false
}
