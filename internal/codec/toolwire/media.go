package toolwire

import (
	"encoding/base64"
	"net/url"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// EmptyMedia reports whether media has neither content nor a place where it is.
func EmptyMedia(m *dragoman.Media) bool {
	return m.Base64 == "" && m.Text == "" && m.URL == "" && m.FileID == ""
}

// DataURI is the URL of a media part: its own, or its content in a data: URI.
func DataURI(m *dragoman.Media) string {
	if m.Base64 == "" {
		return m.URL
	}
	return "data:" + m.MIME + ";base64," + m.Base64
}

// SplitDataURI puts the content of a data: URI into m, or keeps a URL. The scheme
// and the word base64 may be in any case, blanks may come before them, and the
// content may be plain text.
func SplitDataURI(m *dragoman.Media, uri string) {
	mime, content, ok := cutDataURI(uri)
	if !ok {
		m.URL = uri
		return
	}
	m.MIME, m.Base64 = mime, content
}

// cutDataURI returns the type of a data: URI, and its content in base64.
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
		text = content // a percent sign that stands for itself
	}
	return strings.TrimSpace(head), base64.StdEncoding.EncodeToString([]byte(text)), true
}

const dataScheme = "data:"

// IsDataURI reports whether a URL is a data: URI.
func IsDataURI(uri string) bool {
	uri = strings.TrimSpace(uri)
	return len(uri) >= len(dataScheme) && strings.EqualFold(uri[:len(dataScheme)], dataScheme)
}

// SettledMedia is media whose content is where it belongs: a data: URI may stand
// in place of a URL, or of the content itself.
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

// MediaType is the content type of media in the spelling that every API knows:
// without parameters, in small letters. Where none is told, the first bytes of
// the content tell it; it is empty where they do not.
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
	_, mime := Sniff(b64)
	return mime
}

// NoURL reports whether media is given by a URL that is not one.
func NoURL(m *dragoman.Media) bool { return m.URL != "" && !strings.Contains(m.URL, "://") }

// Placeholder is the text that stands for media that cannot be sent. It names the
// media, and never holds its content.
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

// maxShown bounds a name in a placeholder: what is longer is content by a wrong
// name.
const maxShown = 2048

func shown(name string) string {
	if IsDataURI(name) || len(name) > maxShown {
		return ""
	}
	return " " + name
}

// signatures are the first bytes of common images and sounds. A blank stands for
// any byte.
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

// Sniff tells what base64 content is by its first bytes; an image, of no type,
// where they are unknown.
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

// CanSniff reports whether the first bytes of content tell that it has this type.
func CanSniff(mime string) bool {
	for _, s := range signatures {
		if s.mime == mime {
			return true
		}
	}
	return false
}
