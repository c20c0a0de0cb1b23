package history

import (
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// dropDangling drops reasoning and turns that have lost their content.
func (n *normalizer) dropDangling() {
	for _, t := range n.turns {
		if t.last < t.first {
			continue
		}
		n.dropDanglingReasoning(t)
		n.dropReasoningOnly(t)
	}
}

// dropDanglingReasoning drops reasoning whose next part is gone: some providers check for
// the part that follows (quirks D8, D27). An unknown part may be that one, unless the
// results of the turn come between them.
func (n *normalizer) dropDanglingReasoning(t *turn) {
	lost := n.limits.ReasoningFirst // whether the next part is gone
	if next := t.last + 1; next < t.end && len(n.ms[next].Parts) > 0 && n.ms[next].Parts[0].Kind() == codes.KindOpaque && !n.awaitsResults(t) {
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
				n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j), "the content after the reasoning is missing")
				d.drop(j)
			}
		}
	}
}

// awaitsResults reports whether a turn has a call that results must follow.
func (n *normalizer) awaitsResults(t *turn) bool {
	return slices.ContainsFunc(t.slots, func(s *slot) bool {
		return !s.free && !s.hidden && !n.ms[s.msg].dropped(s.part)
	})
}

// dropReasoningOnly drops a turn that has only reasoning or nothing left: it is not a
// response, and several servers refuse it (quirk G11).
func (n *normalizer) dropReasoningOnly(t *turn) {
	thinks, touched := false, false
	for i := t.first; i <= t.last; i++ {
		d := &n.ms[i]
		if d.Extra.For(n.limits.Dialect) != nil {
			return // it has unknown fields
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
		n.rep.Add(dragoman.Dropped, dragoman.Warn, n.ms[t.first].path(), "a turn with only reasoning")
		t.omitted = true
	case touched || n.limits.NoBlankText:
		for i := t.first; i <= t.last; i++ {
			n.reportEmpty(&n.ms[i])
		}
		t.omitted = true
	}
}

// reportEmpty reports that a message is dropped, unless its parts were already
// reported.
func (n *normalizer) reportEmpty(d *draft) {
	if !d.touched && d.gone == nil {
		n.rep.Add(dragoman.Dropped, dragoman.Info, d.path(), "a message without content")
	}
}

// addDummySignatures puts the placeholder signature on the first call of a turn (quirk B16).
// It does so in every turn, so that a turn stays the same when the next one begins.
func (n *normalizer) addDummySignatures() {
	if n.limits.DummySignature == "" || n.target.Caps.NoDummySignature {
		return
	}
	called := false // in the current run of assistant messages
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

// dropOldReasoning drops the reasoning of turns before the last user message, if the
// target forbids it there (quirk G3). It runs late, because earlier steps decide
// which user message is the last.
func (n *normalizer) dropOldReasoning() {
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
				n.rep.Add(dragoman.Dropped, dragoman.Warn, d.part(j), "the server does not accept reasoning of older turns")
				return nil
			})
			if n.limits.NoBlankText && d.assistant() {
				n.dropBlankText(&d)
			}
		}
		if len(d.Parts) > 0 || before == 0 {
			put(d)
		}
	})
}
