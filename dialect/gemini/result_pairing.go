package gemini

import (
	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
)

// openCalls holds the calls of the last model turn that have no result yet.
type openCalls struct {
	calls []*dragoman.ToolCall
	taken []bool
	// Each queue holds positions in order. Taken calls are removed at its head.
	byID   map[string][]int
	byName map[[2]string][]int
	all    []int
	// inModelTurn reports whether the model turn may continue with the next
	// message.
	inModelTurn bool
}

// pair assigns a call to each result of a content: the call with the same id,
// otherwise the first open call with the same name, otherwise the first open
// call (quirk B15).
func (o *openCalls) pair(m *dragoman.Message, at extra.Path, rep *dragoman.Report) {
	if m.Role == dragoman.RoleAssistant {
		if !o.inModelTurn {
			*o = openCalls{inModelTurn: true}
		}
		for _, c := range m.ToolCalls() {
			o.add(c)
		}
		return
	}
	o.inModelTurn = false
	if len(o.calls) == 0 {
		return
	}
	var late []int
	for i, p := range m.Parts {
		res, ok := p.(*dragoman.ToolResult)
		if !ok {
			continue
		}
		o.byID[res.CallID] = o.skipTaken(o.byID[res.CallID])
		if c := o.take(o.byID[res.CallID], nil); res.CallID == "" || c == nil {
			late = append(late, i)
		} else if res.Name == "" {
			res.Namespace, res.Name = c.Namespace, c.Name
		}
	}
	for _, i := range late {
		o.pairByName(m.Parts[i].(*dragoman.ToolResult), at.Elem("parts", i), rep)
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

// pairByName pairs a result whose id is empty or matches no call. Such an id was
// made by the client for a call without an id, so only calls with a synthetic
// id match it.
func (o *openCalls) pairByName(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	fits := func(c *dragoman.ToolCall) bool { return res.CallID == "" || c.Synthetic }
	name := [2]string{res.Namespace, res.Name}
	o.byName[name] = o.skipTaken(o.byName[name])
	c := o.take(o.byName[name], fits)
	if c == nil {
		o.all = o.skipTaken(o.all)
		c = o.take(o.all, fits)
	}
	if c == nil {
		return
	}
	if res.CallID = c.ID; res.Name == "" {
		res.Namespace, res.Name = c.Namespace, c.Name
	}
	rep.Addf(dragoman.Synthesized, dragoman.Info, at.String(), "result without a matching call id assigned to call %q", c.ID)
}

// skipTaken returns queue without the taken calls at its head.
func (o *openCalls) skipTaken(queue []int) []int {
	for len(queue) > 0 && o.taken[queue[0]] {
		queue = queue[1:]
	}
	return queue
}

// take takes the first open call of queue if it fits.
func (o *openCalls) take(queue []int, fits func(*dragoman.ToolCall) bool) *dragoman.ToolCall {
	queue = o.skipTaken(queue)
	if len(queue) == 0 || fits != nil && !fits(o.calls[queue[0]]) {
		return nil
	}
	o.taken[queue[0]] = true
	return o.calls[queue[0]]
}
