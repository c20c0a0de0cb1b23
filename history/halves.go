package history

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// dropHalves drops calls of the provider's tools, and calls that are not modeled, that
// have no result and that the user spoke after: a run ended at a pause, and the server
// refuses one half without the other (quirk I15). Without words of the user, the
// provider still has to finish the call.
func (n *normaliser) dropHalves() {
	if n.stored {
		return // the server may have the other half
	}
	spoke := n.lastWords()
	var halves map[string]int
	for _, t := range n.turns {
		for _, s := range t.slots {
			if s.msg > spoke || s.first != nil || s.call != nil && !s.call.Hosted {
				continue
			}
			if halves == nil {
				halves = n.halves()
			}
			if s.call == nil && halves[s.id] > 1 || s.call != nil && halves[s.id] > 0 {
				continue
			}
			d := &n.ms[s.msg]
			n.rep.Addf(dragoman.Dropped, dragoman.Warn, d.part(s.part), "%s %.60q has no other half, and the user spoke after it", extra.A(halfName(d.Parts[s.part])), s.id)
			d.drop(s.part)
		}
	}
}

// lastWords returns the index of the last message in which the user speaks, other than
// with results, also where only this target makes it so; -1 if there is none.
func (n *normaliser) lastWords() int {
	caps := n.target.Caps
	tail := false // whether the conversation has a last part that is known
	for i := len(n.ms) - 1; i >= 0; i-- {
		d := &n.ms[i]
		switch {
		case d.system():
		case d.assistant():
			for j := len(d.Parts) - 1; j >= 0 && !tail; j-- {
				if p := d.Parts[j]; !d.dropped(j) && !blank(p) {
					if tail = true; caps.NoPrefill && !continues(p) {
						return len(n.ms) // the user is made to speak last
					}
				}
			}
		default:
			tail = true
			if slices.ContainsFunc(d.Parts, func(p dragoman.Part) bool { return n.speaks(d, p) }) {
				return i
			}
		}
	}
	return -1
}

// speaks reports whether a part that is not the assistant's becomes words of the user.
func (n *normaliser) speaks(d *draft, p dragoman.Part) bool {
	res, ok := p.(*dragoman.ToolResult)
	if !ok {
		return !ofTools(p)
	}
	return n.target.Caps.NoTools || n.target.Caps.AssistantAfterTools || n.fate(d, res) == orphanTold
}

// halves counts the opaque parts of each call.
func (n *normaliser) halves() map[string]int {
	out := map[string]int{}
	for i := range n.ms {
		for _, p := range n.ms[i].Parts {
			if o, ok := p.(*dragoman.Opaque); ok && o.CallID != "" {
				out[o.CallID]++
			}
		}
	}
	return out
}

func halfName(p dragoman.Part) string {
	if o, ok := p.(*dragoman.Opaque); ok && o.Type != "" {
		return o.Type
	}
	return "call of the provider's tool"
}
