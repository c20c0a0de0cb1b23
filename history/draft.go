package history

import (
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// draft is a message of the conversation on its way. It shares its parts with
// the request until it is touched.
type draft struct {
	dragoman.Message
	// from is the message of the request it came from; -1 for one made here.
	from int
	// at holds, for each part, its place in that message; nil means the same.
	at      []int
	touched bool
	// joined says that the parts are of several messages, in a list of its own.
	joined bool

	// slots and answers belong to the parts as they were paired, one for each
	// part; nil where the message has no such part.
	slots   []*slot
	answers []*answer
	// gone marks parts that are left out when the conversation is arranged.
	gone []bool
}

// made is a message that was not there.
func made(role dragoman.Role, parts ...dragoman.Part) draft {
	return draft{Message: dragoman.Message{Role: role, Parts: parts}, from: -1, touched: true}
}

// touch says that the message is no longer the one that came.
func (d *draft) touch() {
	d.touched = true
	d.Native = nil
}

// path is the place of the message in the request.
func (d *draft) path() string {
	if d.from < 0 {
		return "/messages"
	}
	return extra.Elem("/messages", d.from).String()
}

// part is the place of one of its parts in the request.
func (d *draft) part(j int) string {
	if d.from < 0 {
		return "/messages"
	}
	if d.at != nil {
		j = d.at[j]
	}
	return extra.Elem("/messages", d.from).Elem("parts", j).String()
}

// edit passes each part through f, which returns what stands for it: the part
// itself, another, or nil for nothing. What was paired with parts is forgotten
// when one of them goes.
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
	d.slots, d.answers, d.gone = nil, nil, nil
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

func (d *draft) answer(j int) *answer {
	if d.answers == nil {
		return nil
	}
	return d.answers[j]
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

// results returns which parts are results, and which are not.
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

// own reports whether the message came from the target's dialect.
func (n *normaliser) own(d *draft) bool {
	return d.Origin != nil && d.Origin.Dialect == n.limits.Dialect
}

// blank reports whether a part is a text that says nothing.
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
