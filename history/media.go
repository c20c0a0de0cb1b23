package history

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/dialects"
	"github.com/dragoman-go/dragoman/targets"
)

// media returns the media itself, or a note if the target would refuse the request
// because of it (quirk D14). Media from the target's own dialect is the client's
// responsibility, if the model supports its kind.
func (n *normalizer) media(d *draft, j int, m *dragoman.Media) dragoman.Part {
	why := n.refuses(d, m)
	if roles := n.limits.MediaRoles; why == "" && roles != nil && !n.fromTargetDialect(d) && m.Text == "" && !slices.Contains(roles, d.Role) {
		why = "messages with role " + string(d.Role) + " cannot contain it"
	}
	if why == "" {
		return m
	}
	n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s: %s; a note replaces it", m.Media, why)
	return note(m)
}

// refuses returns why the target does not accept the media, or "" if it does. A
// plain-text document is text, which every model can read.
func (n *normalizer) refuses(d *draft, m *dragoman.Media) string {
	switch {
	case m.Text != "":
		return ""
	case !n.target.Caps.AcceptsMedia(m.Media):
		return "the model does not accept it"
	case n.limits.MediaKinds != nil && !slices.Contains(n.limits.MediaKinds, m.Media):
		return "the API does not support it"
	case m.Base64 != "":
		return ""
	case m.URL != "":
		return n.unreachable(d, m.URL)
	case m.FileID != "" && n.limits.NoMediaFileID:
		return "the API accepts content, not file ids"
	case m.FileID != "" && !n.stores(d):
		return "the file is stored by another provider"
	default:
		return ""
	}
}

// unreachable returns why the target cannot fetch a URL, or "" if it can. Only a
// provider itself can read its storage.
func (n *normalizer) unreachable(d *draft, url string) string {
	begins := func(prefix string) bool {
		return len(url) >= len(prefix) && strings.EqualFold(url[:len(prefix)], prefix)
	}
	open := begins("https://") || begins("http://") || begins("data:")
	stored := slices.ContainsFunc(dialects.StorageURLs(), begins)
	switch {
	case slices.ContainsFunc(n.limits.StorageURLs, begins):
		return ""
	case n.limits.NoMediaURL:
		return "the API accepts content, not URLs"
	case n.fromTargetDialect(d) && (open || !stored): // a storage URL of another vendor is never accepted
		return ""
	case stored, !open:
		return "the target cannot fetch its URL"
	default:
		return ""
	}
}

// stores reports whether the file ids in a message belong to the target: the message
// came from the same vendor's dialect and the same provider. A message without an
// origin was written for this target.
func (n *normalizer) stores(d *draft) bool {
	if d.Origin == nil {
		return true
	}
	vendor := func(d dragoman.Dialect) string {
		v, _, _ := strings.Cut(string(d), ".")
		return v
	}
	return vendor(d.Origin.Dialect) == vendor(n.limits.Dialect) && targets.MatchProvider.Allows(d.Origin, n.target.Origin())
}

func note(m *dragoman.Media) dragoman.Part {
	return &dragoman.Text{Text: toolwire.Placeholder(m), Cache: m.Cache}
}

// resultMedia is like media, for the content of a result. If results cannot carry media
// at all, the encoder moves accepted media after them (quirk D13).
func (n *normalizer) resultMedia(d *draft, j int, res *dragoman.ToolResult) dragoman.Part {
	return withNotes(res, func(m *dragoman.Media) bool {
		why := n.refuses(d, m)
		if why != "" {
			n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s in a result: %s; a note replaces it", m.Media, why)
		}
		return why != ""
	})
}

// withNotes replaces the refused media of a result with notes.
func withNotes(res *dragoman.ToolResult, refused func(*dragoman.Media) bool) *dragoman.ToolResult {
	var content []dragoman.Part
	for k, p := range res.Content {
		m, ok := p.(*dragoman.Media)
		if !ok || !refused(m) {
			continue
		}
		if content == nil {
			content = slices.Clone(res.Content)
		}
		content[k] = note(m)
	}
	if content == nil {
		return res
	}
	out := *res
	out.Content = content
	return &out
}

// limitMedia keeps each message within the number of images and files that the wire
// accepts. The first ones stay, so that sent content stays the same when more
// follow.
func (n *normalizer) limitMedia() {
	images, files := 0, 0
	for i := range n.ms {
		d := &n.ms[i]
		if d.assistant() {
			images, files = 0, 0
			continue
		}
		place := 0
		tooMany := func(m *dragoman.Media) bool {
			count, most := &images, n.limits.MaxImages
			switch m.Media {
			case codes.MediaImage:
			case codes.MediaFile:
				count, most = &files, n.limits.MaxDocuments
			default:
				return false
			}
			*count++
			if most == 0 || *count <= most {
				return false
			}
			*count--
			n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(place), "%s: a message can contain at most %d; a note replaces it", m.Media, most)
			return true
		}
		d.edit(func(j int, p dragoman.Part) dragoman.Part {
			place = j
			switch p := p.(type) {
			case *dragoman.Media:
				if tooMany(p) {
					return note(p)
				}
			case *dragoman.ToolResult:
				return withNotes(p, tooMany)
			}
			return p
		})
	}
}
