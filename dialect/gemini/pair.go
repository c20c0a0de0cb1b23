package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// openCalls are the calls of the model's last turn that no result answered yet.
type openCalls struct {
	calls []*dragoman.ToolCall
	taken []bool
	// Each queue holds positions in order; what was taken leaves at its head.
	byID   map[string][]int
	byName map[[2]string][]int
	all    []int
	// speaking says that the turn may still go on.
	speaking bool
}

// pair gives the results of a content the calls they answer: by id where a call
// has it, else the first open call of the same name, else the first (quirk
// B15).
func (o *openCalls) pair(m *dragoman.Message, at extra.Path, rep *dragoman.Report) {
	if m.Role == dragoman.RoleAssistant {
		if !o.speaking {
			*o = openCalls{speaking: true}
		}
		for _, c := range m.ToolCalls() {
			o.add(c)
		}
		return
	}
	o.speaking = false
	if len(o.calls) == 0 {
		return
	}
	var late []int
	for i, p := range m.Parts {
		res, ok := p.(*dragoman.ToolResult)
		if !ok {
			continue
		}
		o.byID[res.CallID] = o.rest(o.byID[res.CallID])
		if c := o.take(o.byID[res.CallID], nil); res.CallID == "" || c == nil {
			late = append(late, i)
		} else if res.Name == "" {
			res.Namespace, res.Name = c.Namespace, c.Name
		}
	}
	for _, i := range late {
		o.answer(m.Parts[i].(*dragoman.ToolResult), at.Elem("parts", i), rep)
	}
}

func (o *openCalls) add(c *dragoman.ToolCall) {
	if o.byID == nil {
		o.byID, o.byName = map[string][]int{}, map[[2]string][]int{}
	}
	i := len(o.calls)
	o.calls, o.taken, o.all = append(o.calls, c), append(o.taken, false), append(o.all, i)
	name := [2]string{c.Namespace, c.Name}
	o.byID[c.ID], o.byName[name] = append(o.byID[c.ID], i), append(o.byName[name], i)
}

// answer pairs a result whose id, if it has one, no call has. An id is then the
// client's own, and the call it means has none.
func (o *openCalls) answer(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	fits := func(c *dragoman.ToolCall) bool { return res.CallID == "" || c.Synthetic }
	name := [2]string{res.Namespace, res.Name}
	o.byName[name] = o.rest(o.byName[name])
	c := o.take(o.byName[name], fits)
	if c == nil {
		o.all = o.rest(o.all)
		c = o.take(o.all, fits)
	}
	if c == nil {
		return
	}
	if res.CallID = c.ID; res.Name == "" {
		res.Namespace, res.Name = c.Namespace, c.Name
	}
	rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "a result without the id of a call answers call %q", c.ID)
}

// rest leaves out what was taken at the head of a queue.
func (o *openCalls) rest(queue []int) []int {
	for len(queue) > 0 && o.taken[queue[0]] {
		queue = queue[1:]
	}
	return queue
}

// take takes the first open call of a queue, if it fits.
func (o *openCalls) take(queue []int, fits func(*dragoman.ToolCall) bool) *dragoman.ToolCall {
	queue = o.rest(queue)
	if len(queue) == 0 || fits != nil && !fits(o.calls[queue[0]]) {
		return nil
	}
	o.taken[queue[0]] = true
	return o.calls[queue[0]]
}
