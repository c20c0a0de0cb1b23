package history

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// thin leaves out what says nothing any more, or has lost what it belonged to.
func (n *normaliser) thin() {
	for _, t := range n.turns {
		if t.last < t.first {
			continue
		}
		n.unled(t)
		n.thoughtsOnly(t)
	}
}

// unled leaves out reasoning whose next part is gone: a provider that checks
// looks for what followed it (quirks D8, D27). What we do not know may be that,
// unless the results of the turn stand between them.
func (n *normaliser) unled(t *turn) {
	lost := n.limits.ReasoningLeads // whether the part behind is gone
	if next := t.last + 1; next < t.end && len(n.ms[next].Parts) > 0 && n.ms[next].Parts[0].Kind() == codes.KindOpaque && !n.awaits(t) {
		lost = false
	}
	for i := t.last; i >= t.first; i-- {
		d := &n.ms[i]
		for j := len(d.Parts) - 1; j >= 0; j-- {
			if d.Parts[j].Kind() != codes.KindReasoning {
				lost = d.dropped(j)
				continue
			}
			if lost {
				n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j), "what the reasoning led to is not there")
				d.drop(j)
			}
		}
	}
}

// awaits reports whether a turn has a call that results follow.
func (n *normaliser) awaits(t *turn) bool {
	return slices.ContainsFunc(t.slots, func(s *slot) bool {
		return !s.free && !s.hidden && !n.ms[s.msg].dropped(s.part)
	})
}

// thoughtsOnly leaves out a turn of which nothing is left but thinking, or
// nothing at all: it is no answer, and several servers refuse it (quirk G11).
func (n *normaliser) thoughtsOnly(t *turn) {
	thinks, touched := false, false
	for i := t.first; i <= t.last; i++ {
		d := &n.ms[i]
		if d.Extra.For(n.limits.Dialect) != nil {
			return // it says something that is not modelled
		}
		touched = touched || d.touched || d.gone != nil
		for j, p := range d.Parts {
			switch {
			case d.dropped(j):
			case p.Kind() == codes.KindReasoning:
				thinks = true
			case !blank(p) || !n.limits.NoBlankText && !thinks:
				return
			}
		}
	}
	switch {
	case thinks:
		n.rep.Add(dragoman.Dropped, dragoman.Warn, n.ms[t.first].path(), "a turn of nothing but reasoning")
		t.silent = true
	case touched || n.limits.NoBlankText:
		for i := t.first; i <= t.last; i++ {
			n.saysNothing(&n.ms[i])
		}
		t.silent = true
	}
}

// saysNothing reports that a message is left out, unless its parts were
// reported already.
func (n *normaliser) saysNothing(d *draft) {
	if !d.touched && d.gone == nil {
		n.rep.Add(dragoman.Dropped, dragoman.Info, d.path(), "a message without content")
	}
}

// sign puts the signature that stands for none on the first call of a turn
// (quirk B16): in every turn, so that a turn stays as it was when the next one
// begins.
func (n *normaliser) sign() {
	if n.limits.DummySignature == "" || n.target.Caps.NoDummySignature {
		return
	}
	called := false // in the run of assistant messages at hand
	for i := range n.ms {
		d := &n.ms[i]
		called = called && d.assistant()
		d.edit(func(j int, p dragoman.Part) dragoman.Part {
			c, ok := p.(*dragoman.ToolCall)
			if !ok || c.Hosted || called {
				return p
			}
			called = true
			if through, _ := wirekit.ThroughChat(c, wirekit.RecordsOf(d.Parts)); c.Signature != "" || through != "" {
				return p
			}
			extra.ReportUnsigned(&n.rep, d.part(j)+"/signature")
			signed := *c
			signed.Signature = n.limits.DummySignature
			return &signed
		})
	}
}

// forget leaves out the reasoning of turns before the last word of the user's,
// where the target forbids it there (quirk G3). It comes last: only then is it
// known who has the last word.
func (n *normaliser) forget() {
	if !n.target.Caps.NoOldReasoning {
		return
	}
	last := len(n.ms) - 1
	for last > 0 && (n.ms[last].Role != dragoman.RoleUser || n.ms[last].hasResults()) {
		last--
	}
	n.relist(func(i int, d draft, put func(draft)) {
		before := len(d.Parts)
		if i < last {
			d.edit(func(j int, p dragoman.Part) dragoman.Part {
				if p.Kind() != codes.KindReasoning {
					return p
				}
				n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j), "the server takes no reasoning of older turns back")
				return nil
			})
			if n.limits.NoBlankText && d.assistant() {
				n.unblank(&d)
			}
		}
		if len(d.Parts) > 0 || before == 0 {
			put(d)
		}
	})
}
