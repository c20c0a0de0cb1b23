package gemini

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
)

// acceptedMedia returns p in a form that the API accepts, or a text note that replaces
// it (quirk D14).
func acceptedMedia(p *dragoman.Media, at extra.Path, rep *dragoman.Report) dragoman.Part {
	m, why := normalizeMedia(p)
	if why != "" {
		rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why+"; replaced by a note")
		return &dragoman.Text{Text: toolwire.Placeholder(p)}
	}
	if m != p && m.MIME != p.MIME && p.Base64 != "" {
		rep.Addf(dragoman.Synthesized, dragoman.Info, at.String()+"/mime", "MIME type written as %q", m.MIME)
	}
	return withURLType(m, at, rep)
}

// withURLType adds the MIME type that the URL of p implies. The API refuses a part by
// URL without a type, or guesses one (quirk D13).
func withURLType(p *dragoman.Media, at extra.Path, rep *dragoman.Report) *dragoman.Media {
	if p.MIME != "" || p.Base64 != "" || p.Text != "" {
		return p
	}
	mime := typeOfURL(p.URL)
	if mime == "" {
		return p
	}
	rep.Addf(dragoman.Synthesized, dragoman.Info, at.String()+"/mime", "the API requires a MIME type: %q derived from the URL", mime)
	out := *p
	out.MIME = mime
	return &out
}

// hasBadType reports whether p is inline content that the API refuses from every
// client: it has no type, a type that the API does not accept, or an image type
// in an unknown spelling.
func hasBadType(p *dragoman.Media) bool {
	if p.Base64 == "" {
		return false
	}
	m, why := normalizeMedia(p)
	return p.MIME == "" || why != "" || strings.HasPrefix(p.MIME, "image/") && m.MIME != p.MIME
}

// acceptedResult returns res with media that the API accepts. Media that came from
// the API itself is kept if the API can have sent it in that form.
func acceptedResult(res *dragoman.ToolResult, own bool, at extra.Path, rep *dragoman.Report) *dragoman.ToolResult {
	copied := false
	for i, part := range res.Content {
		p, ok := part.(*dragoman.Media)
		if !ok || own && !hasBadType(p) {
			continue
		}
		m := acceptedMedia(p, at.Elem("content", i), rep)
		if m == dragoman.Part(p) {
			continue
		}
		if !copied {
			out := *res
			out.Content, copied = slices.Clone(res.Content), true
			res = &out
		}
		res.Content[i] = m
	}
	return res
}

// typeOfURL returns the MIME type implied by the file extension in a URL; empty
// if unknown.
func typeOfURL(url string) string {
	path, _, _ := strings.Cut(url, "#")
	path, _, _ = strings.Cut(path, "?")
	file := path[strings.LastIndexByte(path, '/')+1:]
	switch strings.ToLower(file[strings.LastIndexByte(file, '.')+1:]) {
	case "png":
		return "image/png"
	case "jpg", "jpeg":
		return "image/jpeg"
	case "webp":
		return "image/webp"
	case "gif":
		return "image/gif"
	case "pdf":
		return "application/pdf"
	case "txt":
		return "text/plain"
	case "mp3":
		return "audio/mp3"
	case "wav":
		return "audio/wav"
	case "mp4":
		return "video/mp4"
	default:
		return ""
	}
}
