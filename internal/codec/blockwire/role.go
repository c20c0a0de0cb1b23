package blockwire

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

func systemRole(r dragoman.Role) bool {
	return r == dragoman.RoleSystem || r == dragoman.RoleDeveloper
}

// Own reports whether a message, which may be nil, came from this dialect.
func (p *Plan) Own(m *dragoman.Message) bool {
	return m != nil && m.Origin != nil && m.Origin.Dialect == p.Dialect
}

// role returns the role of a message on the wire. A system message inside the
// conversation keeps its role if the model accepts it and its neighbors allow it: after
// a user message, and before an assistant message or at the end.
func (p *Plan) role(ms []dragoman.Message, i int, at extra.Path) string {
	m := &ms[i]
	if !systemRole(m.Role) {
		role := p.plainRole(m)
		switch m.Role {
		case dragoman.RoleUser, dragoman.RoleTool, dragoman.RoleAssistant:
		default:
			if role == User {
				p.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "role %.40q written as user", m.Role)
			}
		}
		return role
	}
	if p.SystemTurns && (p.Own(m) && m.Role == dragoman.RoleSystem || p.MidSystem && p.fits(ms, i)) {
		if m.Role == dragoman.RoleDeveloper {
			p.rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "a developer message written as a system message")
		}
		return System
	}
	p.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String(), "a %s message inside the conversation written as user text", m.Role)
	return User
}

// plainRole returns the role of a message that is not a system message. An unknown role
// is sent back only to the dialect it came from.
func (p *Plan) plainRole(m *dragoman.Message) string {
	switch m.Role {
	case dragoman.RoleUser, dragoman.RoleTool:
		return User
	case dragoman.RoleAssistant:
		return p.Assistant
	default:
		if p.Own(m) {
			return string(m.Role)
		}
		return User
	}
}

// fits reports whether the neighbors of a message allow it to be a system message.
// Messages of which nothing is written do not count as neighbors.
func (p *Plan) fits(ms []dragoman.Message, i int) bool {
	if p.after <= i { // searched once for a whole run of system messages
		p.after = i + 1
		for p.after < len(ms) && (systemRole(ms[p.after].Role) || p.isOmitted(&ms[p.after])) {
			p.after++
		}
	}
	before := ""
	if n := len(p.Turns); n > 0 {
		before = p.Turns[n-1].Role
	}
	return (before == User || before == System) && (p.after == len(ms) || ms[p.after].Role == dragoman.RoleAssistant)
}

// isOmitted reports whether nothing is written for a message that is not a system message.
func (p *Plan) isOmitted(m *dragoman.Message) bool {
	f, _ := p.replay(m, extra.Path{})
	return f.raw == nil && len(p.blocks(m, extra.Path{}, p.plainRole(m), new(dragoman.Report))) == 0
}
