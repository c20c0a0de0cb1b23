package ollama

import dragoman "github.com/dragoman-go/dragoman"

// turn holds the calls of the latest assistant turn that wait for their
// results, which pair with those and no others (quirk B12). A result names its
// call by id, else by the tool's name, else by nothing but its place in the
// order (quirk D15).
type turn struct {
	byID map[string][]*waiting
	// bare are the calls without an id, all are those with one too: who could
	// name an id and does not, does not mean a call that has one, as long as
	// there is another.
	bare, all queues
	// answered: a message came that is none of the turn's.
	answered bool
}

// queues are calls in order, all of them and those of each tool.
type queues struct {
	order  []*waiting
	byName map[toolName][]*waiting
}

type toolName struct{ namespace, name string }

// waiting is a call and the id it has on the wire, empty where it has none.
type waiting struct {
	part *dragoman.ToolCall
	id   string
	done bool
}

// speaks takes note of who speaks next: calls behind another's words begin a
// new turn.
func (t *turn) speaks(role dragoman.Role) {
	switch {
	case role != dragoman.RoleAssistant:
		t.answered = true
	case t.answered:
		*t = turn{}
	}
}

func (t *turn) add(c *dragoman.ToolCall, wireID string) {
	w := &waiting{part: c, id: wireID}
	t.all.add(w)
	if wireID == "" {
		t.bare.add(w)
		return
	}
	if t.byID == nil {
		t.byID = map[string][]*waiting{}
	}
	t.byID[wireID] = append(t.byID[wireID], w)
}

func (q *queues) add(w *waiting) {
	if q.byName == nil {
		q.byName = map[toolName][]*waiting{}
	}
	q.order = append(q.order, w)
	n := toolName{w.part.Namespace, w.part.Name}
	q.byName[n] = append(q.byName[n], w)
}

// pair finds the call that a result answers and takes it; nil where there is
// none. An id that a call has beats everything; one that no call has may be
// that of a call without an id, which its sender gave one.
func (t *turn) pair(id string, tool toolName) *waiting {
	if id != "" {
		if w := first(t.byID, id); w != nil {
			return w
		}
		return t.bare.take(tool)
	}
	if w := t.bare.take(tool); w != nil {
		return w
	}
	return t.all.take(tool)
}

// take takes the oldest open call of a tool, or of any where it has no name.
func (q *queues) take(tool toolName) *waiting {
	if tool.name != "" {
		return first(q.byName, tool)
	}
	q.order = open(q.order)
	return done(q.order)
}

func first[K comparable](queues map[K][]*waiting, key K) *waiting {
	q := open(queues[key])
	if len(q) > 0 {
		queues[key] = q
	}
	return done(q)
}

// open drops the calls at the head of a queue that were answered.
func open(q []*waiting) []*waiting {
	for len(q) > 0 && q[0].done {
		q = q[1:]
	}
	return q
}

func done(q []*waiting) *waiting {
	if len(q) == 0 {
		return nil
	}
	q[0].done = true
	return q[0]
}
