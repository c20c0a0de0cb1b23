package history

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// draft is a message of the conversation while it is normalized. It shares its parts
// with the request until it is touched.
type draft struct {
	dragoman.Message
	// from is the index of the message in the request; -1 for a synthesized one.
	from int
	// at holds the original index of each part; nil means unchanged.
	at      []int
	touched bool
	// joined reports whether the parts come from several messages, in a list of its own.
	joined bool

	// slots and placed hold the pairing of each part; nil if the message has no
	// calls or no results.
	slots  []*slot
	placed []*placedResult
	// gone marks parts that arrange drops.
	gone []bool
}

// synthesized returns a new message that is not in the request.
func synthesized(role dragoman.Role, parts ...dragoman.Part) draft {
	return draft{Message: dragoman.Message{Role: role, Parts: parts}, from: -1, touched: true}
}

// touch marks the message as changed and drops its native form.
func (d *draft) touch() {
	d.touched = true
	d.Native = nil
}

// path returns the pointer of the message in the request.
func (d *draft) path() string {
	if d.from < 0 {
		return "/messages"
	}
	return extra.Elem("/messages", d.from).String()
}

// part returns the pointer of a part in the request.
func (d *draft) part(j int) string {
	if d.from < 0 {
		return "/messages"
	}
	if d.at != nil {
		j = d.at[j]
	}
	return extra.Elem("/messages", d.from).Elem("parts", j).String()
}

// edit passes each part through f, which returns the part itself, a replacement, or
// nil to drop it. If a part changes, the pairing of the message is discarded.
func (d *draft) edit(f func(j int, p dragoman.Part) dragoman.Part) {
	var parts []dragoman.Part
	var at []int
	for j, p := range d.Parts {
		q := f(j, p)
		if q == p && parts == nil {
			continue
		}
		if parts == nil {
			parts = make([]dragoman.Part, j, len(d.Parts))
			copy(parts, d.Parts)
			at = make([]int, j, len(d.Parts))
			for k := range at {
				at[k] = d.place(k)
			}
		}
		if q != nil {
			parts = append(parts, q)
			at = append(at, d.place(j))
		}
	}
	if parts == nil {
		return
	}
	d.touch()
	d.Parts, d.at = parts, at
	d.slots, d.placed, d.gone = nil, nil, nil
}

func (d *draft) place(j int) int {
	if d.at == nil {
		return j
	}
	return d.at[j]
}

// take returns a copy of the message with some of its parts.
func (d *draft) take(role dragoman.Role, which []int) draft {
	out := draft{Message: d.Message, from: d.from, at: make([]int, len(which))}
	out.touch()
	out.Role = role
	out.Parts = make([]dragoman.Part, len(which))
	for k, j := range which {
		out.Parts[k], out.at[k] = d.Parts[j], d.place(j)
	}
	return out
}

func (d *draft) slot(j int) *slot {
	if d.slots == nil {
		return nil
	}
	return d.slots[j]
}

func (d *draft) placedResult(j int) *placedResult {
	if d.placed == nil {
		return nil
	}
	return d.placed[j]
}

func (d *draft) drop(j int) {
	if d.gone == nil {
		d.gone = make([]bool, len(d.Parts))
	}
	d.gone[j] = true
}

func (d *draft) dropped(j int) bool { return d.gone != nil && d.gone[j] }

func (d *draft) assistant() bool { return d.Role == dragoman.RoleAssistant }

func (d *draft) system() bool {
	return d.Role == dragoman.RoleSystem || d.Role == dragoman.RoleDeveloper
}

// results returns the indexes of the parts that are results, and of the rest.
func (d *draft) results() (results, rest []int) {
	for j, p := range d.Parts {
		if p.Kind() == codes.KindToolResult {
			results = append(results, j)
		} else {
			rest = append(rest, j)
		}
	}
	return results, rest
}

func (d *draft) hasResults() bool {
	for _, p := range d.Parts {
		if p.Kind() == codes.KindToolResult {
			return true
		}
	}
	return false
}

// fromTargetDialect reports whether the message came from the target's dialect.
func (n *normalizer) fromTargetDialect(d *draft) bool {
	return d.Origin != nil && d.Origin.Dialect == n.limits.Dialect
}

// blank reports whether a part is text without content.
func blank(p dragoman.Part) bool {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Signature == "" && strings.TrimSpace(p.Text) == ""
	case *dragoman.Refusal:
		return strings.TrimSpace(p.Text) == ""
	default:
		return false
	}
}
