package sim

import (
	"encoding/json"
	"slices"
	"strconv"
)

// chatCall is a fragment of a call in a Chat chunk.
type chatCall struct {
	frame int
	call  *object
	index string // index of the call in the original stream
}

// chatCalls returns all fragments of calls, in order.
func (s *wireStream) chatCalls() []chatCall {
	var out []chatCall
	for i := range s.frames {
		choices, _ := at(s.frames[i].data, "choices").([]any)
		for _, choice := range choices {
			calls, _ := at(choice, "delta", "tool_calls").([]any)
			for _, c := range calls {
				if call, ok := c.(*object); ok {
					out = append(out, chatCall{i, call, string(appendTree(nil, call.get("index")))})
				}
			}
		}
	}
	return out
}

// payload returns the object that holds the arguments, and the name of their field.
func (c chatCall) payload() (of *object, field string) {
	if custom := objectAt(c.call, "custom"); custom != nil {
		return custom, "input"
	}
	return objectAt(c.call, "function"), "arguments"
}

func (c chatCall) arguments() string {
	of, field := c.payload()
	text, _ := of.get(field).(string)
	return text
}

// opens reports whether a fragment is the first of its call.
func (c chatCall) opens() bool { return c.call.has("id") }

func integer(n int) json.Number { return json.Number(strconv.Itoa(n)) }

// chatChunk returns a copy of a chunk with other choices.
func (s *wireStream) chatChunk(choices any) frame {
	for i := range s.frames {
		if o, ok := s.frames[i].data.(*object); ok && o.has("choices") {
			chunk := clone(o).(*object)
			chunk.set("choices", choices)
			chunk.remove("usage")
			return frame{data: chunk}
		}
	}
	return frame{data: newObject("choices", choices)}
}

func chatNoIndex(s *wireStream) {
	for _, c := range s.chatCalls() {
		c.call.remove("index")
	}
}

func chatIndexZero(s *wireStream) {
	for _, c := range s.chatCalls() {
		c.call.set("index", integer(0))
	}
}

func chatSparseIndex(s *wireStream) {
	for _, c := range s.chatCalls() {
		n, _ := strconv.Atoi(c.index)
		c.call.set("index", integer(3+2*n))
	}
}

func chatIDEverywhere(s *wireStream) {
	ids := map[string]any{}
	for _, c := range s.chatCalls() {
		if c.opens() {
			ids[c.index] = c.call.get("id")
		}
		c.call.set("id", ids[c.index])
	}
}

func chatNameAgain(s *wireStream) {
	names := map[string]any{}
	for n, c := range s.chatCalls() {
		of, _ := c.payload()
		switch {
		case c.opens():
			names[c.index] = of.get("name")
		case n%3 == 0:
			of.set("name", nil)
		case n%3 == 1:
			of.set("name", "")
		default:
			of.set("name", names[c.index])
		}
	}
	s.chatHalfName()
}

// chatHalfName splits the name of the last call over two fragments.
func (s *wireStream) chatHalfName() {
	calls := s.chatCalls()
	for _, c := range slices.Backward(calls) {
		of, field := c.payload()
		name, _ := of.get("name").(string)
		if !c.opens() || len(name) < 2 {
			continue
		}
		more := frame{data: clone(s.frames[c.frame].data)}
		for _, other := range (&wireStream{frames: []frame{more}}).chatCalls() {
			rest, _ := other.payload()
			other.call.remove("id")
			rest.set("name", name[len(name)/2:])
			rest.set(field, "")
		}
		of.set("name", name[:len(name)/2])
		s.insert(c.frame+1, more)
		return
	}
}

// chatBundled moves arguments into the chunk with the name of the call: all of them, as a
// string or an object, or the first fragment.
func chatBundled(s *wireStream, all bool, object bool) {
	calls := s.chatCalls()
	var drop []int
	for i, first := range calls {
		if !first.opens() {
			continue
		}
		text := first.arguments()
		for _, more := range calls[i+1:] {
			if more.index != first.index || more.opens() {
				continue
			}
			text += more.arguments()
			drop = append(drop, more.frame)
			if !all {
				break
			}
		}
		of, field := first.payload()
		of.set(field, text)
		if tree, err := parseTree([]byte(text)); err == nil && object && field == "arguments" {
			of.set(field, tree)
		}
	}
	n := -1
	s.keep(func(*frame) bool { n++; return !slices.Contains(drop, n) })
}

func chatNullish(s *wireStream) {
	choice := func(delta any) []any {
		return []any{newObject("index", integer(0), "delta", delta, "finish_reason", nil)}
	}
	nothing := []any{
		nil,
		[]any{},
		choice(nil), choice(newObject("role", "")), choice(newObject("content", nil)),
		choice(newObject("tool_calls", nil)), choice(newObject("tool_calls", []any{})),
	}
	for i := len(s.frames) - 2; i >= 0; i-- {
		f := s.chatChunk(nothing[i%len(nothing)])
		f.data.(*object).set("usage", nil)
		s.insert(i, f)
	}
}

// chatUsageEverywhere sends zeros in every chunk, and the real counts within the last choice,
// like Moonshot.
func chatUsageEverywhere(s *wireStream) {
	for i := range s.frames {
		o, ok := s.frames[i].data.(*object)
		if last := s.lastChunk(); ok && o.get("usage") != nil && last < len(s.frames) {
			objectAt(s.frames[last].data, "choices", 0).set("usage", clone(o.get("usage")))
			o.remove("usage")
		}
	}
	for i := range s.frames {
		if o, ok := s.frames[i].data.(*object); ok && (!o.has("usage") || o.get("usage") == nil) {
			o.set("usage", newObject("prompt_tokens", integer(0), "completion_tokens", integer(0), "total_tokens", integer(0)))
		}
	}
}

func chatBlankTail(s *wireStream) {
	last := map[string]chatCall{}
	var order []string
	for _, c := range s.chatCalls() {
		if _, seen := last[c.index]; !seen {
			order = append(order, c.index)
		}
		last[c.index] = c
	}
	slices.Reverse(order)
	for _, index := range order {
		f := frame{data: clone(s.frames[last[index].frame].data)}
		for _, c := range (&wireStream{frames: []frame{f}}).chatCalls() {
			of, field := c.payload()
			of.set(field, " \n")
			c.call.remove("id")
			of.remove("name")
		}
		if last[index].call.has("custom") {
			continue // white space would change the text of a freeform call
		}
		s.insert(last[index].frame+1, f)
	}
}

func chatOddFinish(s *wireStream) {
	end := s.lastChunk()
	for i := range s.frames {
		if choice := objectAt(s.frames[i].data, "choices", 0); choice != nil && i < end {
			choice.set("finish_reason", "")
		}
	}
	junk := s.chatChunk([]any{newObject("index", integer(0), "delta", newObject("content", "junk"), "finish_reason", nil)})
	s.frames = append(s.frames, junk)
}

// chatInterleaved interleaves the fragments of all calls.
func chatInterleaved(s *wireStream) {
	calls := s.chatCalls()
	if len(calls) == 0 {
		return
	}
	var order []string
	queues := map[string][]frame{}
	for _, c := range calls {
		if _, seen := queues[c.index]; !seen {
			order = append(order, c.index)
		}
		queues[c.index] = append(queues[c.index], s.frames[c.frame])
	}
	s.replace(calls[0].frame, calls[len(calls)-1].frame, takeTurns(order, queues))
}

// takeTurns takes one frame of each queue in turn, until all are empty.
func takeTurns(order []string, queues map[string][]frame) []frame {
	var out []frame
	for left := true; left; {
		left = false
		for _, k := range order {
			if q := queues[k]; len(q) > 0 {
				out, queues[k], left = append(out, q[0]), q[1:], true
			}
		}
	}
	return out
}

// replace replaces the frames from first to last.
func (s *wireStream) replace(first, last int, with []frame) {
	s.frames = append(append(slices.Clone(s.frames[:first]), with...), s.frames[last+1:]...)
}

// chatTogether puts the last text fragment and the first fragment of a call into one delta.
func chatTogether(s *wireStream) {
	calls := s.chatCalls()
	if len(calls) == 0 || calls[0].frame == 0 {
		return
	}
	first := calls[0].frame
	text, ok := at(s.frames[first-1].data, "choices", 0, "delta", "content").(string)
	if !ok || text == "" {
		return
	}
	objectAt(s.frames[first].data, "choices", 0, "delta").set("content", text)
	s.replace(first-1, first-1, nil)
}

func chatEmptyFirst(s *wireStream) {
	empty := s.chatChunk([]any{})
	bare := s.chatChunk([]any{newObject("index", integer(0), "delta", newObject(), "finish_reason", nil)})
	s.insert(0, frame{data: newObject()}, empty, bare)
}
