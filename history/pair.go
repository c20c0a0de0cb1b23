package history

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
)

// turn is a run of assistant messages, from first to last, that are together on the
// wire, and the messages after it up to the next turn.
type turn struct {
	first, last, end int
	slots            []*slot
	// byName indexes the calls of each tool, for results without an id. It covers
	// the first listed slots and is filled on demand, because few conversations have
	// such results. unnamed holds the calls without an id.
	byName  map[toolName]*queue
	listed  int
	unnamed queue
	// omitted reports whether the whole run is omitted.
	omitted bool
}

type toolName struct{ namespace, name string }

// slot is a call with its result.
type slot struct {
	call *dragoman.ToolCall // nil for a call that is not modeled
	id   string             // id in the normalized request
	turn *turn
	msg  int
	part int
	// free reports whether the call needs no result from us: a provider runs it, or it is asynchronous.
	free bool
	// hidden reports whether the server stores the call and the request does not contain it.
	hidden bool
	// first is the position of the result, last its content: of several results
	// the last counts, in the position of the first (quirk D6).
	first, last *placedResult
	// placeholder is the synthesized result of a call without one.
	placeholder *dragoman.ToolResult
}

// placedResult is a result with its position.
type placedResult struct {
	res  *dragoman.ToolResult
	slot *slot // nil for an orphan
	msg  int
	part int
}

// queue returns calls in order, each once.
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

// callID holds the calls of one id.
type callID struct {
	// open holds its calls in the latest turn that has any. A result belongs to a
	// call before it, and an id may be reused (quirk B12).
	open queue
	// used counts the calls with this id.
	used int
}

// pairing is the state of pair.
type pairing struct {
	*normalizer
	// ids holds every id of the request and every synthesized one.
	ids  map[string]*callID
	turn *turn
}

// pair finds the turns of the conversation, their calls, and the result of each call.
func (n *normalizer) pair() {
	p := pairing{normalizer: n, ids: n.lists.ids}
	p.turn = n.startTurn(0, -1) // messages before the first turn
	p.reserveIDs()
	for i := range n.ms {
		d := &n.ms[i]
		if d.assistant() && (p.turn.last != i-1 || len(n.turns) == 1 || n.writtenApart(i-1, i)) {
			p.turn = n.startTurn(i, i)
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

// writtenApart reports whether the encoder keeps two consecutive assistant messages
// separate.
func (n *normalizer) writtenApart(i, k int) bool {
	return n.limits.SeparateMessages && !n.target.Caps.Alternate && (n.fromTargetDialect(&n.ms[i]) || n.fromTargetDialect(&n.ms[k]))
}

// startTurn appends a turn.
func (n *normalizer) startTurn(first, last int) *turn {
	t := n.lists.turns.next(turn{first: first, last: last})
	n.turns = append(n.turns, t)
	n.lists.order = n.turns
	return t
}

// reserveIDs collects the ids of the request, so that no synthesized id equals one.
func (p *pairing) reserveIDs() {
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

// id returns the entry of an id and reserves the id.
func (p *pairing) id(id string) *callID {
	known := p.ids[id]
	if known == nil {
		known = p.lists.known.next(callID{})
		p.ids[id] = known
	}
	return known
}

// opened returns the first open call of an id, or nil.
func (c *callID) opened() *slot {
	if c == nil || len(c.open.slots) == 0 {
		return nil
	}
	return c.open.slots[0]
}

// call adds a call. An exact duplicate within a turn is dropped; any other call with
// the same id gets a new one (quirk B11).
func (p *pairing) call(d *draft, i, j int, c *dragoman.ToolCall) {
	s := p.lists.slots.next(slot{call: c, id: c.ID, free: c.Hosted, msg: i, part: j})
	known := p.id(c.ID)
	if o := known.opened(); c.ID != "" && o != nil && o.turn == p.turn {
		if sameCall(o.call, c) {
			p.rep.Addf(dragoman.Dropped, dragoman.Info, d.part(j), "call %.60q is a duplicate in its turn", c.ID)
			d.drop(j)
			return
		}
		s.id = p.freshID(c.ID)
		p.rep.Addf(dragoman.Renamed, dragoman.Warn, d.part(j), "another call of the turn has the id %.60q; this one is now %q", c.ID, s.id)
	} else if c.ID == "" {
		s.id = p.freshID("")
		p.rep.Addf(dragoman.Synthesized, dragoman.Info, d.part(j), "a call without an id gets the id %q", s.id)
	} else if known.used > 0 && p.limits.UniqueIDs && !c.Hosted {
		s.id = p.freshID(c.ID)
		p.rep.Addf(dragoman.Renamed, dragoman.Info, d.part(j), "an earlier turn has a call with the id %.60q; this one is now %q", c.ID, s.id)
	}
	known.used++
	p.add(d, s, c.ID)
	if c.ID == "" {
		p.turn.unnamed.slots = append(p.turn.unnamed.slots, s)
	}
}

func sameCall(a, b *dragoman.ToolCall) bool {
	return a != nil && a.Name == b.Name && a.Namespace == b.Namespace && a.Payload == b.Payload &&
		a.Arguments == b.Arguments && a.Hosted == b.Hosted
}

// freshID returns an id for the next call of this id. It depends only on what precedes
// the call, so it stays the same when the conversation grows.
func (p *pairing) freshID(id string) string {
	for try := 0; ; try++ {
		fresh := wirekit.SyntheticID("call_", id, p.id(id).used, try)
		if p.ids[fresh] == nil {
			p.id(fresh)
			return fresh
		}
	}
}

// add adds a slot under the id that results use for it.
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

// result adds a result and finds its call.
func (p *pairing) result(d *draft, i, j int, res *dragoman.ToolResult) {
	a := p.lists.placed.next(placedResult{res: res, msg: i, part: j})
	if d.placed == nil {
		d.placed = p.lists.results.row(len(d.Parts))
	}
	d.placed[j] = a
	a.slot = p.find(d, res)
	if a.slot == nil && p.stored && res.CallID != "" {
		a.slot = &slot{id: res.CallID, free: true, hidden: true, turn: p.turn}
		known := p.id(res.CallID)
		known.open = queue{slots: []*slot{a.slot}}
		known.used++
	}
	s := a.slot
	if s != nil && res.CallID == "" {
		p.rep.Addf(dragoman.Synthesized, dragoman.Info, d.part(j), "a result without an id is matched to call %.60q", s.id)
	}
	switch {
	case s == nil:
	case s.first == nil:
		s.first, s.last = a, a
	default:
		p.addDuplicate(d, j, s, a)
	}
}

// find returns the call of a result: by id, or else in the order of the calls of that
// tool in the turn before (quirk B15).
func (p *pairing) find(d *draft, res *dragoman.ToolResult) *slot {
	if res.CallID == "" {
		if s := p.turn.unnamedOf(res); s != nil || res.Name == "" {
			return s
		}
		if p.limits.LooseResults && p.fromTargetDialect(d) {
			return nil // this dialect allows results without a call
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

// named returns the calls of the tool that a result names, or nil.
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

// unnamedOf returns the call of a result among the calls without an id.
func (t *turn) unnamedOf(res *dragoman.ToolResult) *slot {
	if len(t.unnamed.slots) == 0 {
		return nil
	}
	if res.Name != "" {
		return t.named(res).pop()
	}
	return t.unnamed.pop()
}

// addDuplicate adds another result of a call.
func (p *pairing) addDuplicate(d *draft, j int, s *slot, a *placedResult) {
	was := s.last
	gone, at := was.res, p.ms[was.msg].part(was.part)
	if turnrules.Replaces(was.res, a.res) {
		s.last = a
	} else {
		gone, at = a.res, d.part(j)
	}
	switch {
	case gone.Synthetic && gone != s.last.res && !s.last.res.Synthetic:
		p.rep.Addf(dragoman.Dropped, dragoman.Info, at, "the placeholder result of call %.60q", s.id)
	case sameResult(was.res, a.res):
		p.rep.Addf(dragoman.Dropped, dragoman.Info, at, "a duplicate result of call %.60q", s.id)
	default:
		p.rep.Addf(dragoman.Dropped, dragoman.Warn, at, "call %.60q has another, different result", s.id)
	}
}

// sameResult reports whether two results have the same outcome and content.
func sameResult(a, b *dragoman.ToolResult) bool {
	m := dragoman.Message{Parts: a.Content}
	o := dragoman.Message{Parts: b.Content}
	return a.Outcome == b.Outcome && m.Fingerprint() == o.Fingerprint()
}
