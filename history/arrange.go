package history

import (
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/resultorder"
)

// emptyUser is what a user said who said nothing, where that is refused.
const emptyUser = "(no text)"

// arrange writes the conversation anew: turns, then their results, then what
// else was said before the next turn.
func (n *normaliser) arrange() {
	out := slices.Grow(n.lists.arranged, len(n.ms))
	put := func(d draft) { out = append(out, d) }
	for k := 0; k < len(n.turns); k++ {
		t := n.turns[k]
		n.says(t, put)
		// What follows a turn that is left out follows the one before.
		behind := []*turn{t}
		for k+1 < len(n.turns) && n.turns[k+1].silent {
			k++
			behind = append(behind, n.turns[k])
		}
		n.behind(t, behind, put)
	}
	n.moved = n.moved || len(out) != len(n.ms)
	for i := range out {
		n.moved = n.moved || out[i].from != i
	}
	n.ms, n.lists.arranged = out, out
}

// says writes the assistant's messages of a turn.
func (n *normaliser) says(t *turn, put func(draft)) {
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
		// Blank text may be what keeps two thoughts apart (quirk D22).
		if n.limits.NoBlankText && !thinks {
			n.unblank(&d)
		}
		if len(d.Parts) > 0 || !d.touched && !n.limits.NoBlankText || d.Extra.For(n.limits.Dialect) != nil {
			put(d)
		} else {
			n.saysNothing(&d)
		}
	}
}

// written is the call as it goes on.
func (s *slot) written() dragoman.Part {
	if s.id == s.call.ID {
		return s.call
	}
	c := *s.call
	c.ID, c.Synthetic = s.id, true
	return &c
}

// answered is the result of the call as it goes on, and whether it is exactly
// the one that stands in its place.
func (n *normaliser) answered(s *slot) (res *dragoman.ToolResult, same bool) {
	if s.standIn != nil {
		res = s.standIn
	} else {
		res = s.last.res
	}
	named, typed := !n.misnamed(s, res), !mistyped(s, res)
	if res.CallID == s.id && named && typed {
		return res, s.first == s.last && s.standIn == nil
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
func (n *normaliser) misnamed(s *slot, res *dragoman.ToolResult) bool {
	return (n.limits.ResultNames || n.target.Caps.ToolResultName) && s.call != nil &&
		(res.Name != s.call.Name || res.Namespace != s.call.Namespace)
}

// mistyped reports whether a result claims to answer text, but answers a call
// with arguments.
func mistyped(s *slot, res *dragoman.ToolResult) bool {
	return s.call != nil && res.Payload == codes.PayloadText && s.call.Payload != codes.PayloadText
}

// behind writes what follows a turn: all of it stands behind the turns given,
// of which the first is the one that is answered.
func (n *normaliser) behind(t *turn, all []*turn, put func(draft)) {
	placed := n.limits.LooseResults || n.inPlace(t, all)
	switch {
	case n.limits.LooseResults:
		n.standIns(t, put)
		fallthrough
	case placed && !t.standsIn():
		n.each(all, func(d draft) {
			n.edited(&d)
			n.finish(&d, put)
		})
	default:
		n.regroup(t, all, !placed, put)
	}
}

// standsIn reports whether a result of the turn is made up.
func (t *turn) standsIn() bool {
	for _, s := range t.slots {
		if s.standIn != nil {
			return true
		}
	}
	return false
}

// each visits the messages behind turns.
func (n *normaliser) each(all []*turn, visit func(d draft)) {
	for _, t := range all {
		for i := t.last + 1; i < t.end; i++ {
			visit(n.ms[i])
		}
	}
}

// standIns writes the results that were made up, directly behind their calls.
func (n *normaliser) standIns(t *turn, put func(draft)) {
	for _, s := range t.slots {
		if s.standIn != nil {
			res, _ := n.answered(s)
			put(made(dragoman.RoleTool, res))
		}
	}
}

// inPlace reports whether the results of a turn that there are stand where the
// target wants them: directly behind it, all of them, and no others.
func (n *normaliser) inPlace(t *turn, all []*turn) bool {
	calls := resultorder.Ranks[*slot]{}
	missing := 0 // results that were not seen yet
	for _, s := range t.slots {
		calls.Add(s)
		if s.first != nil {
			missing++
		}
	}
	last, ok := 0, true
	next := func(rank int) { ok, last = ok && rank >= last, rank }
	n.each(all, func(d draft) {
		if len(d.Parts) == 0 {
			next(calls.Rest())
		}
		for j := range d.Parts {
			a := d.answer(j)
			switch {
			case a == nil || a.slot == nil && n.fate(&d, a.res) == orphanTold:
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

// orphanFate is what becomes of a result that answers no call (quirk D8).
type orphanFate int

const (
	orphanDropped orphanFate = iota
	orphanKept               // the wire knows results of no call
	orphanTold               // nobody called for it: the model is told of it
)

func (n *normaliser) fate(d *draft, res *dragoman.ToolResult) orphanFate {
	switch {
	case res.CallID == "" && n.limits.LooseResults && n.own(d) && res.Payload == codes.PayloadObject:
		return orphanKept
	case res.CallID == "" && strings.TrimSpace(res.Text()) != "":
		return orphanTold
	default:
		return orphanDropped
	}
}

// orphan returns what stands for a result that answers no call.
func (n *normaliser) orphan(d *draft, j int, res *dragoman.ToolResult) dragoman.Part {
	switch n.fate(d, res) {
	case orphanKept:
		return res
	case orphanTold:
		n.rep.Add(dragoman.Lowered, dragoman.Warn, d.part(j), "a result of no call written as user text")
		return &dragoman.Text{Text: toldResult(res)}
	default:
		n.rep.Addf(dragoman.Dropped, dragoman.Serious, d.part(j), "a result of call %.60q, which is not there", res.CallID)
		return nil
	}
}

// edited leaves in a message the results that stay in it.
func (n *normaliser) edited(d *draft) {
	before := *d
	foreign := false // a result comes from a message of another origin
	d.edit(func(j int, p dragoman.Part) dragoman.Part {
		a := before.answer(j)
		switch {
		case a == nil:
			return p
		case a.slot == nil:
			return n.orphan(&before, j, a.res)
		case a != a.slot.first:
			return nil
		default:
			foreign = foreign || a.slot.last != nil && a.slot.standIn == nil && !sameOrigin(&before, &n.ms[a.slot.last.msg])
			res, _ := n.answered(a.slot)
			return res
		}
	})
	if foreign {
		n.unbind(d)
	}
}

// finish writes a message that is nobody's turn, unless nothing is left of it.
func (n *normaliser) finish(d *draft, put func(draft)) {
	if d.Role == dragoman.RoleTool && len(d.Parts) > 0 && !slices.ContainsFunc(d.Parts, ofTools) {
		n.rep.Add(dragoman.Moved, dragoman.Info, d.path(), "a tool message without results written as the user's")
		d.touch()
		d.Role = dragoman.RoleUser
	}
	if n.limits.NoBlankText {
		n.unblankWords(d)
	}
	if len(d.Parts) > 0 || !d.touched && !n.limits.NoBlankText {
		put(*d)
	} else {
		n.saysNothing(d)
	}
}

// ofTools reports whether a part may be what a tool message is for.
func ofTools(p dragoman.Part) bool {
	return p.Kind() == codes.KindToolResult || p.Kind() == codes.KindOpaque
}

// unblankWords drops blank texts. A blank message gets a placeholder: without it, two
// assistant messages could follow each other.
func (n *normaliser) unblankWords(d *draft) {
	silent := !d.system() && d.Role != dragoman.RoleTool && !slices.ContainsFunc(d.Parts, func(p dragoman.Part) bool { return !blank(p) })
	if silent && (len(d.Parts) > 0 || !d.touched) {
		n.rep.Addf(dragoman.Synthesized, dragoman.Info, d.path(), "the message is empty; %q written", emptyUser)
		d.touch()
		d.Parts, d.at = []dragoman.Part{&dragoman.Text{Text: emptyUser}}, []int{0}
		return
	}
	n.unblank(d)
}

// unblank leaves out texts that say nothing.
func (n *normaliser) unblank(d *draft) {
	d.edit(func(j int, p dragoman.Part) dragoman.Part {
		if blank(p) {
			n.rep.Add(dragoman.Dropped, dragoman.Info, d.part(j), "a text that says nothing")
			return nil
		}
		return p
	})
}

// regroup writes the results of a turn directly behind it, in the order of its
// calls (quirks D1 to D4), then everything else that was said. Messages that
// hold nothing but what goes together stay as they are.
func (n *normaliser) regroup(t *turn, all []*turn, moves bool, put func(draft)) {
	if moves {
		n.rep.Add(dragoman.Moved, dragoman.Info, n.ms[max(t.first, t.end-1)].path(), "the results of a turn written directly behind it, in the order of its calls")
	}
	var group []*slot
	flush := func() {
		if len(group) > 0 {
			n.batch(group, put)
			group = nil
		}
	}
	for _, s := range t.slots {
		switch {
		case s.standIn != nil:
			flush()
			res, _ := n.answered(s)
			put(made(dragoman.RoleTool, res))
		case s.first != nil:
			if len(group) > 0 && group[0].first.msg != s.first.msg {
				flush()
			}
			group = append(group, s)
		}
	}
	flush()
	n.each(all, func(d draft) { n.rest(d, put) })
}

// batch writes results that stood in one message: as that message, where it
// holds exactly these.
func (n *normaliser) batch(group []*slot, put func(draft)) {
	d := n.ms[group[0].first.msg]
	whole := len(group) == len(d.Parts)
	which := make([]int, len(group))
	parts := make([]dragoman.Part, len(group))
	for k, s := range group {
		res, same := n.answered(s)
		which[k], parts[k] = s.first.part, res
		whole = whole && same && s.first.part == k
	}
	if whole {
		put(d)
		return
	}
	out := d.take(dragoman.RoleTool, which)
	out.Parts = parts
	if _, rest := d.results(); len(rest) > 0 { // the frame stays with them
		out.bare()
	}
	put(out)
}

// bare takes from a message what belongs to all of it, for a piece of it.
func (d *draft) bare() { d.Cache, d.Extra, d.Name, d.Phase = nil, nil, "", "" }

// rest writes what a message holds beside the results of calls: what was said,
// and orphans that stay.
func (n *normaliser) rest(d draft, put func(draft)) {
	before := d
	d.edit(func(j int, p dragoman.Part) dragoman.Part {
		switch a := before.answer(j); {
		case a == nil:
			return p
		case a.slot == nil:
			return n.orphan(&before, j, a.res)
		case a.slot.hidden && a == a.slot.first:
			return a.slot.last.res
		default:
			return nil
		}
	})
	n.finish(&d, put)
}
