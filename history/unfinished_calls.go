package history

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// dropUnfinished drops hosted calls, and unknown calls or results, that have no counterpart
// and that a user message follows: a run ended at a pause, and the server refuses one
// without the other (quirk I15). Without a user message, the provider still has to finish
// the call.
func (n *normalizer) dropUnfinished() {
	if n.stored {
		return // the server may have the counterpart
	}
	last := n.lastUserMessage()
	var opaque map[string]int
	for _, t := range n.turns {
		for _, s := range t.slots {
			if s.msg > last || s.first != nil || s.call != nil && !s.call.Hosted {
				continue
			}
			if opaque == nil {
				opaque = n.opaqueParts()
			}
			if s.call == nil && opaque[s.id] > 1 || s.call != nil && opaque[s.id] > 0 {
				continue
			}
			d := &n.ms[s.msg]
			n.rep.Addf(dragoman.Dropped, dragoman.Warn, d.part(s.part), "%s %.60q has no matching call or result, and a user message follows it", extra.WithArticle(unfinishedName(d.Parts[s.part])), s.id)
			d.drop(s.part)
		}
	}
}

// lastUserMessage returns the index of the last message with user content other than
// results, including content that only this target turns into user content, or -1.
func (n *normalizer) lastUserMessage() int {
	caps := n.target.Caps
	tail := false // whether the last part is found
	for i := len(n.ms) - 1; i >= 0; i-- {
		d := &n.ms[i]
		switch {
		case d.system():
		case d.assistant():
			for j := len(d.Parts) - 1; j >= 0 && !tail; j-- {
				if p := d.Parts[j]; !d.dropped(j) && !blank(p) {
					if tail = true; caps.NoPrefill && !continues(p) {
						return len(n.ms) // a user message is added at the end
					}
				}
			}
		default:
			tail = true
			if slices.ContainsFunc(d.Parts, func(p dragoman.Part) bool { return n.becomesUserContent(d, p) }) {
				return i
			}
		}
	}
	return -1
}

// becomesUserContent reports whether a part of a message that is not the assistant's becomes user content.
func (n *normalizer) becomesUserContent(d *draft, p dragoman.Part) bool {
	res, ok := p.(*dragoman.ToolResult)
	if !ok {
		return !fitsToolMessage(p)
	}
	return n.target.Caps.NoTools || n.target.Caps.AssistantAfterTools || n.orphanFate(d, res) == orphanAsText
}

// opaqueParts counts the opaque parts of each call.
func (n *normalizer) opaqueParts() map[string]int {
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

func unfinishedName(p dragoman.Part) string {
	if o, ok := p.(*dragoman.Opaque); ok && o.Type != "" {
		return o.Type
	}
	return "hosted call"
}
