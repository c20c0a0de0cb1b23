package gemini

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
)

// taken is media as the API takes it, or a note (quirk D14).
func taken(p *dragoman.Media, at extra.Path, rep *dragoman.Report) dragoman.Part {
	m, why := settledMedia(p)
	if why != "" {
		rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why+"; a note stands in for it")
		return &dragoman.Text{Text: toolwire.Placeholder(p)}
	}
	if m != p && m.MIME != p.MIME && p.Base64 != "" {
		rep.Addf(dragoman.Synthesized, dragoman.Info, at.String()+"/mime", "the type is written as %q", m.MIME)
	}
	return typed(m, at, rep)
}

// typed is media with its type told, where it is sent by a URL that tells it: a
// part by URL without one is refused, or read as anything (quirk D13).
func typed(p *dragoman.Media, at extra.Path, rep *dragoman.Report) *dragoman.Media {
	if p.MIME != "" || p.Base64 != "" || p.Text != "" {
		return p
	}
	mime := typeOfURL(p.URL)
	if mime == "" {
		return p
	}
	rep.Addf(dragoman.Synthesized, dragoman.Info, at.String()+"/mime", "the API requires a type; %q follows from the URL", mime)
	out := *p
	out.MIME = mime
	return &out
}

// mistyped reports content that has no type, one of which the API is known to take
// none, or a picture's in a spelling that it does not know: it refuses such from
// everybody.
func mistyped(p *dragoman.Media) bool {
	if p.Base64 == "" {
		return false
	}
	m, why := settledMedia(p)
	return p.MIME == "" || why != "" || strings.HasPrefix(p.MIME, "image/") && m.MIME != p.MIME
}

// typedResult is a result with the types of its media told. One of the API's own
// goes back as it came, where the API can have sent it so.
func typedResult(res *dragoman.ToolResult, own bool, at extra.Path, rep *dragoman.Report) *dragoman.ToolResult {
	copied := false
	for i, part := range res.Content {
		p, ok := part.(*dragoman.Media)
		if !ok || own && !mistyped(p) {
			continue
		}
		m := taken(p, at.Elem("content", i), rep)
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

// typeOfURL is the content type that the end of a URL's path names; empty where
// it names none.
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
