package sim

import "strings"

// wholeDeltas sends the arguments of each call in one fragment.
func wholeDeltas(s *wireStream) {
	texts, first := map[string]string{}, map[string]*object{}
	s.keep(func(f *frame) bool {
		of, field := s.inputDelta(f)
		if of == nil {
			return true
		}
		b := s.blockOf(f)
		text, _ := of.get(field).(string)
		texts[b] += text
		if first[b] != nil {
			first[b].set(field, texts[b])
			return false
		}
		first[b] = of
		return true
	})
}

// doneTwice repeats each event that marks something as done.
func doneTwice(s *wireStream) {
	for i := len(s.frames) - 1; i >= 0; i-- {
		if strings.HasSuffix(s.frames[i].name, ".done") {
			s.insert(i+1, frame{name: s.frames[i].name, data: clone(s.frames[i].data)})
		}
	}
}

// vendorEvents removes the names of events and adds vendor events.
func vendorEvents(s *wireStream) {
	s.nameless = true
	own := frame{data: newObject("type", "codex.rate_limits", "limit_reached", true)}
	s.insert(len(s.frames)/2, own)
	s.insert(0, own)
}

func emptyOutput(s *wireStream) {
	for i := range s.frames {
		if s.frames[i].has("response.completed") {
			objectAt(s.frames[i].data, "response").set("output", []any{})
		}
	}
}

// endIncomplete ends the response as incomplete because of the token limit.
func endIncomplete(s *wireStream) {
	for i := range s.frames {
		f := &s.frames[i]
		if !f.has("response.completed") {
			continue
		}
		f.name = "response.incomplete"
		f.data.(*object).set("type", f.name)
		resp := objectAt(f.data, "response")
		resp.set("status", "incomplete")
		resp.set("incomplete_details", newObject("reason", "max_output_tokens"))
	}
}

// sameNumbers gives every second event the number of the first one, and removes the number of
// the others.
func sameNumbers(s *wireStream) {
	for i := range s.frames {
		if o, ok := s.frames[i].data.(*object); ok {
			if i%2 == 0 {
				o.set("sequence_number", integer(0))
			} else {
				o.remove("sequence_number")
			}
		}
	}
}
