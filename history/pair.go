package history

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/resultorder"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// turn is a run of assistant messages, first to last, that stand together on
// the wire, and what follows it up to the next one.
type turn struct {
	first, last, end int
	slots            []*slot
	// byName lists the calls of each tool, for results without an id: the first
	// listed of slots, because few conversations have such results. unnamed are
	// the calls that have no id themselves.
	byName  map[toolName]*queue
	listed  int
	unnamed queue
	// silent says that the whole run is left out.
	silent bool
}

type toolName struct{ namespace, name string }

// slot is a call and the result that answers it.
type slot struct {
	call *dragoman.ToolCall // nil for a call we cannot read
	id   string             // on the way out
	turn *turn
	msg  int
	part int
	// free calls need no result of ours: a provider runs them, or nobody waits.
	free bool
	// hidden calls are kept by the server and not shown.
	hidden bool
	// first is where the result stands, last what it says: of several results
	// the last counts, in the place of the first (quirk D6).
	first, last *answer
	// standIn answers an abandoned call.
	standIn *dragoman.ToolResult
}

// answer is a result in its place.
type answer struct {
	res  *dragoman.ToolResult
	slot *slot // nil for an orphan
	msg  int
	part int
}

// queue hands out calls in order, each once.
type queue struct {
	slots []*slot
	next  int
}

// pop returns the next call without a result, or nil.
func (q *queue) pop() *slot {
	for q != nil && q.next < len(q.slots) {
		s := q.slots[q.next]
		q.next++
		if s.first == nil {
			return s
		}
	}
	return nil
}

// callID is what is known of an id.
type callID struct {
	// open are its calls in the latest turn that has any: a result answers the call
	// that came before it, and an id may come back (quirk B12).
	open queue
	// used counts the calls that had it.
	used int
}

// pairing is what is known while the conversation is walked.
type pairing struct {
	*normaliser
	// ids has every id of the request and every one made here.
	ids  map[string]*callID
	turn *turn
}

// pair finds the turns of the conversation, their calls, and the result of each.
func (n *normaliser) pair() {
	p := pairing{normaliser: n, ids: n.lists.ids}
	p.turn = n.begin(0, -1) // what stands before the first one
	p.announce()
	for i := range n.ms {
		d := &n.ms[i]
		if d.assistant() && (p.turn.last != i-1 || len(n.turns) == 1 || n.apart(i-1, i)) {
			p.turn = n.begin(i, i)
		}
		if d.assistant() {
			p.turn.last = i
		}
		p.turn.end = i + 1
		for j, part := range d.Parts {
			switch part := part.(type) {
			case *dragoman.ToolCall:
				p.call(d, i, j, part)
			case *dragoman.Opaque:
				if d.assistant() && part.CallID != "" {
					p.add(d, n.lists.slots.next(slot{id: part.CallID, free: true, msg: i, part: j}), part.CallID)
				}
			case *dragoman.ToolResult:
				p.result(d, i, j, part)
			}
		}
	}
}

// apart reports whether the encoder writes two assistant messages that follow
// each other as two.
func (n *normaliser) apart(i, k int) bool {
	return n.limits.SeparateMessages && !n.target.Caps.Alternate && (n.own(&n.ms[i]) || n.own(&n.ms[k]))
}

// begin begins a turn.
func (n *normaliser) begin(first, last int) *turn {
	t := n.lists.turns.next(turn{first: first, last: last})
	n.turns = append(n.turns, t)
	n.lists.order = n.turns
	return t
}

// announce collects the ids of the request, so that none is made again.
func (p *pairing) announce() {
	for i := range p.ms {
		for _, part := range p.ms[i].Parts {
			switch part := part.(type) {
			case *dragoman.ToolCall:
				p.id(part.ID)
			case *dragoman.ToolResult:
				p.id(part.CallID)
			}
		}
	}
}

// id is what is known of an id, which is taken from now on.
func (p *pairing) id(id string) *callID {
	known := p.ids[id]
	if known == nil {
		known = p.lists.known.next(callID{})
		p.ids[id] = known
	}
	return known
}

// opened is the first call that is open under an id; nil: there is none.
func (c *callID) opened() *slot {
	if c == nil || len(c.open.slots) == 0 {
		return nil
	}
	return c.open.slots[0]
}

// call enters a call. One that repeats another of its turn exactly is that
// call; any other that shares an id gets one of its own (quirk B11).
func (p *pairing) call(d *draft, i, j int, c *dragoman.ToolCall) {
	s := p.lists.slots.next(slot{call: c, id: c.ID, free: c.Hosted, msg: i, part: j})
	known := p.id(c.ID)
	if o := known.opened(); c.ID != "" && o != nil && o.turn == p.turn {
		if same(o.call, c) {
			p.rep.Addf(dragoman.Dropped, dragoman.Info, d.part(j), "call %.60q stands twice in its turn", c.ID)
			d.drop(j)
			return
		}
		s.id = p.fresh(c.ID)
		p.rep.Addf(dragoman.Renamed, dragoman.Warn, d.part(j), "another call of the turn has the id %.60q; this one is now %q", c.ID, s.id)
	} else if c.ID == "" {
		s.id = p.fresh("")
		p.rep.Addf(dragoman.Synthesized, dragoman.Info, d.part(j), "a call without an id gets the id %q", s.id)
	} else if known.used > 0 && p.limits.UniqueIDs && !c.Hosted {
		s.id = p.fresh(c.ID)
		p.rep.Addf(dragoman.Renamed, dragoman.Info, d.part(j), "an earlier turn has a call with the id %.60q; this one is now %q", c.ID, s.id)
	}
	known.used++
	p.add(d, s, c.ID)
	if c.ID == "" {
		p.turn.unnamed.slots = append(p.turn.unnamed.slots, s)
	}
}

func same(a, b *dragoman.ToolCall) bool {
	return a != nil && a.Name == b.Name && a.Namespace == b.Namespace && a.Payload == b.Payload &&
		a.Arguments == b.Arguments && a.Hosted == b.Hosted
}

// fresh makes an id for the next of the calls that had this one: the same in
// every request, however the conversation goes on.
func (p *pairing) fresh(id string) string {
	for try := 0; ; try++ {
		made := wirekit.SyntheticID("call_", id, p.id(id).used, try)
		if p.ids[made] == nil {
			p.id(made)
			return made
		}
	}
}

// add enters a slot under the id by which results know it.
func (p *pairing) add(d *draft, s *slot, id string) {
	s.turn = p.turn
	if p.turn.slots == nil {
		p.turn.slots = p.lists.calls.row(1)[:0]
	}
	p.turn.slots = append(p.turn.slots, s)
	if d.slots == nil {
		d.slots = p.lists.calls.row(len(d.Parts))
	}
	d.slots[s.part] = s
	if id == "" {
		return
	}
	known := p.id(id)
	if o := known.opened(); o != nil && o.turn == p.turn {
		known.open.slots = append(known.open.slots, s)
		return
	}
	known.open = queue{slots: append(p.lists.calls.row(1)[:0], s)}
}

// result enters a result and finds its call.
func (p *pairing) result(d *draft, i, j int, res *dragoman.ToolResult) {
	a := p.lists.answers.next(answer{res: res, msg: i, part: j})
	if d.answers == nil {
		d.answers = p.lists.results.row(len(d.Parts))
	}
	d.answers[j] = a
	a.slot = p.find(d, res)
	if a.slot == nil && p.stored && res.CallID != "" {
		a.slot = &slot{id: res.CallID, free: true, hidden: true, turn: p.turn}
		known := p.id(res.CallID)
		known.open = queue{slots: []*slot{a.slot}}
		known.used++
	}
	s := a.slot
	if s != nil && res.CallID == "" {
		p.rep.Addf(dragoman.Synthesized, dragoman.Info, d.part(j), "a result without an id answers call %.60q", s.id)
	}
	switch {
	case s == nil:
	case s.first == nil:
		s.first, s.last = a, a
	default:
		p.again(d, j, s, a)
	}
}

// find returns the call that a result answers: by id, else in the order of the
// calls of that tool in the turn before (quirk B15).
func (p *pairing) find(d *draft, res *dragoman.ToolResult) *slot {
	if res.CallID == "" {
		if s := p.turn.unnamedOf(res); s != nil || res.Name == "" {
			return s
		}
		if p.limits.LooseResults && p.own(d) {
			return nil // this wire knows results of no call
		}
		return p.turn.named(res).pop()
	}
	known := p.ids[res.CallID]
	if known.opened() == nil {
		return nil
	}
	if s := known.open.pop(); s != nil {
		return s
	}
	return known.open.slots[len(known.open.slots)-1]
}

// named are the calls of the tool that a result names; nil: there is none.
func (t *turn) named(res *dragoman.ToolResult) *queue {
	if t.byName == nil {
		t.byName = map[toolName]*queue{}
	}
	for ; t.listed < len(t.slots); t.listed++ {
		s := t.slots[t.listed]
		if s.call == nil {
			continue
		}
		name := toolName{s.call.Namespace, s.call.Name}
		if t.byName[name] == nil {
			t.byName[name] = &queue{}
		}
		t.byName[name].slots = append(t.byName[name].slots, s)
	}
	return t.byName[toolName{res.Namespace, res.Name}]
}

// unnamedOf finds the call for a result among those without an id.
func (t *turn) unnamedOf(res *dragoman.ToolResult) *slot {
	if len(t.unnamed.slots) == 0 {
		return nil
	}
	if res.Name != "" {
		return t.named(res).pop()
	}
	return t.unnamed.pop()
}

// again enters a further result of a call.
func (p *pairing) again(d *draft, j int, s *slot, a *answer) {
	was := s.last
	gone, at := was.res, p.ms[was.msg].part(was.part)
	if resultorder.Replaces(was.res, a.res) {
		s.last = a
	} else {
		gone, at = a.res, d.part(j)
	}
	switch {
	case gone.Synthetic && gone != s.last.res && !s.last.res.Synthetic:
		p.rep.Addf(dragoman.Dropped, dragoman.Info, at, "what stood in for the result of call %.60q", s.id)
	case alike(was.res, a.res):
		p.rep.Addf(dragoman.Dropped, dragoman.Info, at, "the result of call %.60q stands twice", s.id)
	default:
		p.rep.Addf(dragoman.Dropped, dragoman.Warn, at, "call %.60q has a later result, which says something else", s.id)
	}
}

// alike reports whether two results say the same.
func alike(a, b *dragoman.ToolResult) bool {
	m := dragoman.Message{Parts: a.Content}
	o := dragoman.Message{Parts: b.Content}
	return a.Outcome == b.Outcome && m.Fingerprint() == o.Fingerprint()
}
