package history

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/interop"
)

// media returns what stands for media in a message: itself, or a note where the
// target would refuse the request for it (quirk D14). What came from the
// target's own dialect is its client's affair, as long as the model can see.
func (n *normaliser) media(d *draft, j int, m *dragoman.Media) dragoman.Part {
	why := n.refuses(m)
	if roles := n.limits.MediaRoles; why == "" && roles != nil && !n.own(d) && m.Text == "" && !slices.Contains(roles, d.Role) {
		why = "no message of role " + string(d.Role) + " takes it"
	}
	if why == "" {
		return m
	}
	n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s: %s; a note stands in for it", m.Media, why)
	return note(m)
}

// refuses says why the target takes media nowhere; empty means that it does. A
// plain-text document is text, which every model can read.
func (n *normaliser) refuses(m *dragoman.Media) string {
	switch {
	case m.Text != "":
		return ""
	case n.target.Caps.NoImages:
		return "the model takes none"
	case n.limits.MediaKinds != nil && !slices.Contains(n.limits.MediaKinds, m.Media):
		return "the wire has no place for it"
	case m.Base64 == "" && m.URL != "" && n.limits.NoMediaURL:
		return "the wire takes content, not URLs"
	case m.Base64 == "" && m.URL == "" && m.FileID != "" && n.limits.NoMediaFileID:
		return "the wire takes content, not the ids of stored files"
	default:
		return ""
	}
}

func note(m *dragoman.Media) dragoman.Part {
	return &dragoman.Text{Text: interop.Placeholder(m), Cache: m.Cache}
}

// resultMedia is media for the content of a result. Where results carry none
// at all, the encoder moves what the model may see behind them (quirk D13).
func (n *normaliser) resultMedia(d *draft, j int, res *dragoman.ToolResult) dragoman.Part {
	var content []dragoman.Part
	for k, p := range res.Content {
		m, ok := p.(*dragoman.Media)
		if !ok {
			continue
		}
		why := n.refuses(m)
		if why == "" {
			continue
		}
		if content == nil {
			content = slices.Clone(res.Content)
		}
		n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "%s in a result: %s; a note stands in for it", m.Media, why)
		content[k] = note(m)
	}
	if content == nil {
		return res
	}
	out := *res
	out.Content = content
	return &out
}
