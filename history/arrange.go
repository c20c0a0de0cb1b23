package history

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
)

// emptyUser replaces an empty message, if the target refuses those.
const emptyUser = "(no text)"

// arrange rewrites the conversation: each turn, then its results, then the other
// messages before the next turn.
func (n *normalizer) arrange() {
	out := slices.Grow(n.lists.arranged, len(n.ms))
	put := func(d draft) { out = append(out, d) }
	for k := 0; k < len(n.turns); k++ {
		t := n.turns[k]
		n.writeTurn(t, put)
		// Messages after an omitted turn follow the turn before it.
		following := []*turn{t}
		for k+1 < len(n.turns) && n.turns[k+1].omitted {
			k++
			following = append(following, n.turns[k])
		}
		n.writeFollowing(t, following, put)
	}
	n.moved = n.moved || len(out) != len(n.ms)
	for i := range out {
		n.moved = n.moved || out[i].from != i
	}
	n.ms, n.lists.arranged = out, out
}

// writeTurn writes the assistant messages of a turn.
func (n *normalizer) writeTurn(t *turn, put func(draft)) {
	thinks := false
	for i := t.first; i <= t.last; i++ {
		d := &n.ms[i]
		for j, p := range d.Parts {
			thinks = thinks || p.Kind() == codes.KindReasoning && !d.dropped(j)
		}
	}
	for i := t.first; i <= t.last; i++ {
		d := n.ms[i]
		d.edit(func(j int, p dragoman.Part) dragoman.Part {
			if d.dropped(j) {
				return nil
			}
			if s := d.slot(j); s != nil && s.call != nil {
				return s.written()
			}
			return p
		})
		// Blank text may separate two reasoning parts (quirk D22).
		if n.limits.NoBlankText && !thinks {
			n.dropBlankText(&d)
		}
		if len(d.Parts) > 0 || !d.touched && !n.limits.NoBlankText || d.Extra.For(n.limits.Dialect) != nil {
			put(d)
		} else {
			n.reportEmpty(&d)
		}
	}
}

// written returns the call as it is sent.
func (s *slot) written() dragoman.Part {
	if s.id == s.call.ID {
		return s.call
	}
	c := *s.call
	c.ID, c.Synthetic = s.id, true
	return &c
}

// resultFor returns the result of the call as it is sent. same reports whether it is
// unchanged and at the place of the original result.
func (n *normalizer) resultFor(s *slot) (res *dragoman.ToolResult, same bool) {
	if s.placeholder != nil {
		res = s.placeholder
	} else {
		res = s.last.res
	}
	named, typed := !n.misnamed(s, res), !mistyped(s, res)
	if res.CallID == s.id && named && typed {
		return res, s.first == s.last && s.placeholder == nil
	}
	fixed := *res
	fixed.CallID = s.id
	if !named { // quirk D15
		fixed.Name, fixed.Namespace = s.call.Name, s.call.Namespace
	}
	if !typed {
		fixed.Payload = s.call.Payload
	}
	return &fixed, false
}

// misnamed reports whether a result must carry the name of its tool and does
// not.
func (n *normalizer) misnamed(s *slot, res *dragoman.ToolResult) bool {
	return (n.limits.ResultNames || n.target.Caps.ToolResultName) && s.call != nil &&
		(res.Name != s.call.Name || res.Namespace != s.call.Namespace)
}

// mistyped reports whether a text result belongs to a call with JSON arguments.
func mistyped(s *slot, res *dragoman.ToolResult) bool {
	return s.call != nil && res.Payload == codes.PayloadText && s.call.Payload != codes.PayloadText
}

// writeFollowing writes the messages that follow the turns in all. The results
// belong to the first of them, t.
func (n *normalizer) writeFollowing(t *turn, all []*turn, put func(draft)) {
	placed := n.limits.LooseResults || n.inPlace(t, all)
	switch {
	case n.limits.LooseResults:
		n.writePlaceholders(t, put)
		fallthrough
	case placed && !t.hasPlaceholder():
		n.eachFollowing(all, func(d draft) {
			n.keepResults(&d)
			n.writeMessage(&d, put)
		})
	default:
		n.regroup(t, all, !placed, put)
	}
}

// hasPlaceholder reports whether the turn has a synthesized result.
func (t *turn) hasPlaceholder() bool {
	for _, s := range t.slots {
		if s.placeholder != nil {
			return true
		}
	}
	return false
}

// eachFollowing visits the messages that follow the turns.
func (n *normalizer) eachFollowing(all []*turn, visit func(d draft)) {
	for _, t := range all {
		for i := t.last + 1; i < t.end; i++ {
			visit(n.ms[i])
		}
	}
}

// writePlaceholders writes the synthesized results directly after their calls.
func (n *normalizer) writePlaceholders(t *turn, put func(draft)) {
	for _, s := range t.slots {
		if s.placeholder != nil {
			res, _ := n.resultFor(s)
			put(synthesized(dragoman.RoleTool, res))
		}
	}
}

// inPlace reports whether the existing results of a turn are where the target requires
// them: directly after the turn, complete, and without others.
func (n *normalizer) inPlace(t *turn, all []*turn) bool {
	calls := turnrules.Ranks[*slot]{}
	missing := 0 // results not seen yet
	for _, s := range t.slots {
		calls.Add(s)
		if s.first != nil {
			missing++
		}
	}
	last, ok := 0, true
	next := func(rank int) { ok, last = ok && rank >= last, rank }
	n.eachFollowing(all, func(d draft) {
		if len(d.Parts) == 0 {
			next(calls.Rest())
		}
		for j := range d.Parts {
			a := d.placedResult(j)
			switch {
			case a == nil || a.slot == nil && n.orphanFate(&d, a.res) == orphanAsText:
				next(calls.Rest())
			case a.slot == nil, a.slot.hidden, a != a.slot.first:
			case a.slot.turn != t:
				ok = false
			default:
				missing--
				if n.limits.OrderedResults {
					next(calls.Of(a.slot))
				} else {
					next(0)
				}
			}
		}
	})
	return ok && missing == 0
}

// orphanFate is the treatment of a result without a call (quirk D8).
type orphanFate int

const (
	orphanDropped orphanFate = iota
	orphanKept               // the dialect allows results without a call
	orphanAsText             // written as user text
)

func (n *normalizer) orphanFate(d *draft, res *dragoman.ToolResult) orphanFate {
	switch {
	case res.CallID == "" && n.limits.LooseResults && n.fromTargetDialect(d) && res.Payload == codes.PayloadObject:
		return orphanKept
	case res.CallID == "" && strings.TrimSpace(res.Text()) != "":
		return orphanAsText
	default:
		return orphanDropped
	}
}

// replaceOrphan returns the replacement of a result without a call.
func (n *normalizer) replaceOrphan(d *draft, j int, res *dragoman.ToolResult) dragoman.Part {
	switch n.orphanFate(d, res) {
	case orphanKept:
		return res
	case orphanAsText:
		n.rep.Add(dragoman.Lowered, dragoman.Warn, d.part(j), "a result without a call written as user text")
		return &dragoman.Text{Text: resultAsText(res)}
	default:
		n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "a result of unknown call %.60q", res.CallID)
		return nil
	}
}

// keepResults updates the results of a message and removes those that move.
func (n *normalizer) keepResults(d *draft) {
	before := *d
	foreign := false // a result comes from a message of another origin
	d.edit(func(j int, p dragoman.Part) dragoman.Part {
		a := before.placedResult(j)
		switch {
		case a == nil:
			return p
		case a.slot == nil:
			return n.replaceOrphan(&before, j, a.res)
		case a != a.slot.first:
			return nil
		default:
			foreign = foreign || a.slot.last != nil && a.slot.placeholder == nil && !sameOrigin(&before, &n.ms[a.slot.last.msg])
			res, _ := n.resultFor(a.slot)
			return res
		}
	})
	if foreign {
		n.unbind(d)
	}
}

// writeMessage writes a message outside of turns, unless it is empty.
func (n *normalizer) writeMessage(d *draft, put func(draft)) {
	if d.Role == dragoman.RoleTool && len(d.Parts) > 0 && !slices.ContainsFunc(d.Parts, fitsToolMessage) {
		n.rep.Add(dragoman.Moved, dragoman.Info, d.path(), "a tool message without results written as a user message")
		d.touch()
		d.Role = dragoman.RoleUser
	}
	if n.limits.NoBlankText {
		n.fillBlank(d)
	}
	if len(d.Parts) > 0 || !d.touched && !n.limits.NoBlankText {
		put(*d)
	} else {
		n.reportEmpty(d)
	}
}

// fitsToolMessage reports whether a part may be in a tool message.
func fitsToolMessage(p dragoman.Part) bool {
	return p.Kind() == codes.KindToolResult || p.Kind() == codes.KindOpaque
}

// fillBlank drops blank texts. A blank message gets a placeholder: without it, two
// assistant messages could follow each other.
func (n *normalizer) fillBlank(d *draft) {
	allBlank := !d.system() && d.Role != dragoman.RoleTool && !slices.ContainsFunc(d.Parts, func(p dragoman.Part) bool { return !blank(p) })
	if allBlank && (len(d.Parts) > 0 || !d.touched) {
		n.rep.Addf(dragoman.Synthesized, dragoman.Info, d.path(), "the message is empty; %q written", emptyUser)
		d.touch()
		d.Parts, d.at = []dragoman.Part{&dragoman.Text{Text: emptyUser}}, []int{0}
		return
	}
	n.dropBlankText(d)
}

func (n *normalizer) dropBlankText(d *draft) {
	d.edit(func(j int, p dragoman.Part) dragoman.Part {
		if blank(p) {
			n.rep.Add(dragoman.Dropped, dragoman.Info, d.part(j), "blank text")
			return nil
		}
		return p
	})
}

// regroup writes the results of a turn directly after it, in the order of its calls
// (quirks D1 to D4), then the other content. Messages that contain only
// results that stay together are kept as they are.
func (n *normalizer) regroup(t *turn, all []*turn, moves bool, put func(draft)) {
	if moves {
		n.rep.Add(dragoman.Moved, dragoman.Info, n.ms[max(t.first, t.end-1)].path(), "the results of a turn moved directly after it, in the order of its calls")
	}
	var group []*slot
	flush := func() {
		if len(group) > 0 {
			n.writeResults(group, put)
			group = nil
		}
	}
	for _, s := range t.slots {
		switch {
		case s.placeholder != nil:
			flush()
			res, _ := n.resultFor(s)
			put(synthesized(dragoman.RoleTool, res))
		case s.first != nil:
			if len(group) > 0 && group[0].first.msg != s.first.msg {
				flush()
			}
			group = append(group, s)
		}
	}
	flush()
	n.eachFollowing(all, func(d draft) { n.writeRest(d, put) })
}

// writeResults writes results from one message. It writes the message itself if it
// contains exactly these results.
func (n *normalizer) writeResults(group []*slot, put func(draft)) {
	d := n.ms[group[0].first.msg]
	whole := len(group) == len(d.Parts)
	which := make([]int, len(group))
	parts := make([]dragoman.Part, len(group))
	for k, s := range group {
		res, same := n.resultFor(s)
		which[k], parts[k] = s.first.part, res
		whole = whole && same && s.first.part == k
	}
	if whole {
		put(d)
		return
	}
	out := d.take(dragoman.RoleTool, which)
	out.Parts = parts
	if _, rest := d.results(); len(rest) > 0 { // the message fields stay with the rest
		out.clearFields()
	}
	put(out)
}

// clearFields removes the fields that belong to the whole message, for a part of it.
func (d *draft) clearFields() { d.Cache, d.Extra, d.Name, d.Phase = nil, nil, "", "" }

// writeRest writes the content of a message except the results of calls: text and
// orphans that stay.
func (n *normalizer) writeRest(d draft, put func(draft)) {
	before := d
	d.edit(func(j int, p dragoman.Part) dragoman.Part {
		switch a := before.placedResult(j); {
		case a == nil:
			return p
		case a.slot == nil:
			return n.replaceOrphan(&before, j, a.res)
		case a.slot.hidden && a == a.slot.first:
			return a.slot.last.res
		default:
			return nil
		}
	})
	n.writeMessage(&d, put)
}
