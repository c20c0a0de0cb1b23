package ollama

import dragoman "github.com/dragoman-go/dragoman"

// turn holds the calls of the latest assistant turn that wait for results. Results only match
// these calls (quirk B12). A result identifies its call by id, otherwise by tool name, otherwise
// by order (quirk D15).
type turn struct {
	byID map[string][]*waiting
	// bare holds the calls without an id; all also holds those with one. A result without an id
	// matches a call without an id first, because its sender could have named the id.
	bare, all queues
	// answered is set after a message that is not part of the turn.
	answered bool
}

// queues holds calls in order: all of them, and those of each tool.
type queues struct {
	order  []*waiting
	byName map[toolName][]*waiting
}

type toolName struct{ namespace, name string }

// waiting is a call with its wire id, which may be empty.
type waiting struct {
	part *dragoman.ToolCall
	id   string
	done bool
}

// observe records the role of the next message. Assistant messages after another role start a new
// turn.
func (t *turn) observe(role dragoman.Role) {
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

// pair finds the call that a result belongs to and takes it; nil if there is none. A matching id
// has priority. An unknown id may belong to a call without one, if the sender of the result
// generated the id.
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

// take takes the oldest open call of a tool, or of any tool if the name is empty.
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

// open drops the answered calls at the head of a queue.
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
