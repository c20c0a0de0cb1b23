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

// media returns what stands for media in a message: itself, or a note where the
// target would refuse the request for it (quirk D14). What came from the
// target's own dialect is its client's affair, as long as the model can see.
func (n *normaliser) media(d *draft, j int, m *dragoman.Media) dragoman.Part {
	why := n.refuses(d, m)
	if roles := n.limits.MediaRoles; why == "" && roles != nil && !n.own(d) && m.Text == "" && !slices.Contains(roles, d.Role) {
		why = "no message of role " + string(d.Role) + " takes it"
	}
	if why == "" {
		return m
	}
	n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s: %s; a note stands in for it", m.Media, why)
	return note(m)
}

// refuses says why the target takes media of a message nowhere; empty means
// that it does. A plain-text document is text, which every model can read.
func (n *normaliser) refuses(d *draft, m *dragoman.Media) string {
	switch {
	case m.Text != "":
		return ""
	case !n.target.Caps.TakesMedia(m.Media):
		return "the model does not accept it"
	case n.limits.MediaKinds != nil && !slices.Contains(n.limits.MediaKinds, m.Media):
		return "the wire has no place for it"
	case m.Base64 != "":
		return ""
	case m.URL != "":
		return n.unreachable(d, m.URL)
	case m.FileID != "" && n.limits.NoMediaFileID:
		return "the wire takes content, not the ids of stored files"
	case m.FileID != "" && !n.stores(d):
		return "the file is stored by another provider"
	default:
		return ""
	}
}

// unreachable says why the target cannot fetch from a URL; empty means that it
// can. The storage of a provider is open to that provider only.
func (n *normaliser) unreachable(d *draft, url string) string {
	begins := func(prefix string) bool {
		return len(url) >= len(prefix) && strings.EqualFold(url[:len(prefix)], prefix)
	}
	open := begins("https://") || begins("http://") || begins("data:")
	stored := slices.ContainsFunc(dialects.StorageURLs(), begins)
	switch {
	case slices.ContainsFunc(n.limits.StorageURLs, begins):
		return ""
	case n.limits.NoMediaURL:
		return "the wire takes content, not URLs"
	case n.own(d) && (open || !stored): // the scheme of another vendor's storage is never the client's affair
		return ""
	case stored, !open:
		return "the target cannot fetch from where it is stored"
	default:
		return ""
	}
}

// stores reports whether the ids of files in a message are the target's: from
// the same vendor's wire and the same provider. An id in a message that nobody
// sent us was put there for this target.
func (n *normaliser) stores(d *draft) bool {
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

// resultMedia is media for the content of a result. Where results carry none
// at all, the encoder moves what the model may see behind them (quirk D13).
func (n *normaliser) resultMedia(d *draft, j int, res *dragoman.ToolResult) dragoman.Part {
	return withNotes(res, func(m *dragoman.Media) bool {
		why := n.refuses(d, m)
		if why != "" {
			n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s in a result: %s; a note stands in for it", m.Media, why)
		}
		return why != ""
	})
}

// withNotes is a result with notes in place of the media that is refused.
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

// few keeps each message of the wire within the number of images and files that
// it takes: those in front stay, so that what was sent once stays as it was when
// more come.
func (n *normaliser) few() {
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
			n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(place), "%s: a message takes %d; a note stands in for it", m.Media, most)
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
