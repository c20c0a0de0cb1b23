package sim

import (
	"encoding/json"
	"slices"
)

// blockOf returns the index of the block or item that an event belongs to, or "".
func (s *wireStream) blockOf(f *frame) string {
	n, _ := at(f.data, s.wire.Simulator.Block).(json.Number)
	return n.String()
}

// hugeIndex starts the indexes of blocks, or of calls, at a billion.
func hugeIndex(s *wireStream) {
	huge := func(n string) json.Number { return json.Number("1000000000"[:10-len(n)] + n) }
	if s.callsInMessage() {
		for _, c := range s.chatCalls() {
			c.call.set("index", huge(c.index))
		}
		return
	}
	for i := range s.frames {
		if n := s.blockOf(&s.frames[i]); n != "" {
			s.frames[i].data.(*object).set(s.wire.Simulator.Block, huge(n))
		}
	}
}

// inputDelta returns the object and the field of an event that hold a fragment of a call's
// input, or nil.
func (s *wireStream) inputDelta(f *frame) (of *object, field string) {
	in := &s.wire.Simulator.Input
	if of := fragment(f, in); of.has(in.Field) {
		return of, in.Field
	}
	return nil, ""
}

// withInput adds a fragment after the last one of each call.
func (s *wireStream) withInput(text string) {
	done := map[string]bool{}
	for i := len(s.frames) - 1; i >= 0; i-- {
		f := &s.frames[i]
		of, field := s.inputDelta(f)
		if of == nil || done[s.blockOf(f)] {
			continue
		}
		done[s.blockOf(f)] = true
		more := frame{name: f.name, data: clone(f.data)}
		o, _ := s.inputDelta(&more)
		o.set(field, text)
		s.insert(i+1, more)
	}
}

// emptyInputs inserts an empty fragment before the first one of each call.
func emptyInputs(s *wireStream) {
	seen := map[string]bool{}
	for i := 0; i < len(s.frames); i++ {
		f := &s.frames[i]
		if of, field := s.inputDelta(f); of != nil && !seen[s.blockOf(f)] {
			seen[s.blockOf(f)] = true
			empty := frame{name: f.name, data: clone(f.data)}
			o, _ := s.inputDelta(&empty)
			o.set(field, "")
			s.insert(i, empty)
			i++
		}
	}
}

// blocksInterleaved interleaves the events of consecutive calls.
func blocksInterleaved(s *wireStream) {
	calls := map[string]bool{}
	for i := range s.frames {
		if of, _ := s.inputDelta(&s.frames[i]); of != nil {
			calls[s.blockOf(&s.frames[i])] = true
		}
	}
	first, last := -1, -1
	var order []string
	queues := map[string][]frame{}
	for i := range s.frames {
		b := s.blockOf(&s.frames[i])
		if !calls[b] || b == "" {
			continue
		}
		if first < 0 {
			first = i
		}
		last = i
		if !slices.Contains(order, b) {
			order = append(order, b)
		}
		queues[b] = append(queues[b], s.frames[i])
	}
	if len(order) > 1 {
		s.replace(first, last, takeTurns(order, queues))
	}
}

// noStops removes the end events of blocks.
func noStops(s *wireStream) {
	s.keep(func(f *frame) bool { return f.name != "content_block_stop" && f.name != "contentBlockStop" })
}

// signatureTwice also sends a signature before the thinking that it signs.
func signatureTwice(s *wireStream) {
	for i := range s.frames {
		if s.frames[i].has("content_block_delta") && at(s.frames[i].data, "delta", "type") == "signature_delta" {
			early := frame{name: s.frames[i].name, data: clone(s.frames[i].data)}
			for j := range s.frames {
				if s.frames[j].has("content_block_start") && s.blockOf(&s.frames[j]) == s.blockOf(&early) {
					s.insert(j+1, early)
					return
				}
			}
		}
	}
}

// secondStart starts another message within the first one.
func secondStart(s *wireStream) {
	if len(s.frames) < 4 {
		return
	}
	again := frame{name: s.frames[0].name, data: clone(s.frames[0].data)}
	if m := objectAt(again.data, "message"); m != nil {
		m.set("id", "msg_of_another_answer")
	}
	s.insert(len(s.frames)/2, again)
}

// oddFrames adds undocumented fields, and removes the end events of text blocks.
func oddFrames(s *wireStream) {
	text := map[string]bool{}
	for i := range s.frames {
		if at(s.frames[i].data, "delta", "text") != nil {
			text[s.blockOf(&s.frames[i])] = true
		}
		if o, ok := s.frames[i].data.(*object); ok {
			o.set("p", "abcdefgh")
		}
	}
	s.keep(func(f *frame) bool { return f.name != "contentBlockStop" || !text[s.blockOf(f)] })
}
