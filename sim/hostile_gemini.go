package sim

import (
	"encoding/json"
)

// geminiParts returns the parts of a chunk.
func geminiParts(f *frame) []any {
	parts, _ := at(f.data, "candidates", 0, "content", "parts").([]any)
	return parts
}

// callsApart puts each call into a separate chunk without its id, and sends the first one
// again.
func callsApart(s *wireStream) {
	var out []frame
	for i := range s.frames {
		f := s.frames[i]
		parts := geminiParts(&f)
		for _, p := range parts {
			if call := objectAt(p, "functionCall"); call != nil {
				call.remove("id")
			}
		}
		for n := range max(0, len(parts)-1) {
			one := frame{data: clone(f.data)}
			objectAt(one.data, "candidates", 0, "content").set("parts", []any{parts[n]})
			objectAt(one.data, "candidates", 0).remove("finishReason")
			out = append(out, one)
		}
		if len(parts) > 1 {
			objectAt(f.data, "candidates", 0, "content").set("parts", parts[len(parts)-1:])
		}
		out = append(out, f)
	}
	s.frames = out
	for i := range s.frames {
		if parts := geminiParts(&s.frames[i]); len(parts) == 1 && objectAt(parts[0], "functionCall") != nil && at(s.frames[i].data, "candidates", 0, "finishReason") == nil {
			s.insert(i, frame{data: clone(s.frames[i].data)})
			return
		}
	}
}

// partialArgs sends the arguments of each call in fragments, like Vertex: the call with its
// name, then paths and values, then an empty call that ends it.
func partialArgs(s *wireStream) {
	var out []frame
	for i := range s.frames {
		f := s.frames[i]
		parts := geminiParts(&f)
		call := (*object)(nil)
		if len(parts) == 1 {
			call = objectAt(parts[0], "functionCall")
		}
		args := objectAt(call, "args")
		if args == nil || !plainMembers(args) {
			out = append(out, f)
			continue
		}
		chunk := func(call *object) {
			one := frame{data: clone(f.data)}
			part := clone(parts[0]).(*object)
			part.set("functionCall", call)
			objectAt(one.data, "candidates", 0, "content").set("parts", []any{part})
			objectAt(one.data, "candidates", 0).remove("finishReason")
			out = append(out, one)
		}
		begin := clone(call).(*object)
		begin.remove("args")
		begin.set("willContinue", true)
		chunk(begin)
		for _, key := range args.keys {
			for _, piece := range partialArg("$."+key, args.values[key]) {
				chunk(newObject("partialArgs", []any{piece}, "willContinue", true))
			}
		}
		objectAt(f.data, "candidates", 0, "content").set("parts", []any{newObject("functionCall", newObject())})
		out = append(out, f)
	}
	s.frames = out
}

// plainMembers reports whether simple JSON paths can address all fields.
func plainMembers(o *object) bool {
	for k, v := range o.values {
		switch v.(type) {
		case *object, []any:
			return false
		}
		for _, r := range k {
			if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				return false
			}
		}
	}
	return true
}

// partialArg returns the fragments of a value: two for a string, one for others.
func partialArg(path string, v any) []any {
	switch v := v.(type) {
	case string:
		half := head(v, len(v)/2)
		return []any{
			newObject("jsonPath", path, "stringValue", half, "willContinue", true),
			newObject("jsonPath", path, "stringValue", v[len(half):]),
		}
	case json.Number:
		return []any{newObject("jsonPath", path, "numberValue", v)}
	case bool:
		return []any{newObject("jsonPath", path, "boolValue", v)}
	default:
		return []any{newObject("jsonPath", path, "nullValue", "NULL_VALUE")}
	}
}

// otherFraming writes a JSON array if events were requested, and the reverse.
func otherFraming(s *wireStream) { s.framing = s.wire.Stream.OtherFraming }

// emptySigned inserts a part with a signature and no text before the end.
func emptySigned(s *wireStream) {
	for i := range s.frames {
		if at(s.frames[i].data, "candidates", 0, "finishReason") == nil {
			continue
		}
		one := frame{data: clone(s.frames[i].data)}
		objectAt(one.data, "candidates", 0).set("content", newObject("role", "model", "parts", []any{newObject("text", "", "thoughtSignature", "c2ln")}))
		objectAt(one.data, "candidates", 0).remove("finishReason")
		s.insert(i, one)
		return
	}
}

// vanishingUsage sends all counts early, then only some, then none.
func vanishingUsage(s *wireStream) {
	var usage any
	for i := range s.frames {
		if u := at(s.frames[i].data, "usageMetadata"); u != nil {
			usage = u
		}
	}
	for i := range s.frames {
		o, ok := s.frames[i].data.(*object)
		if !ok {
			continue
		}
		o.remove("usageMetadata")
		switch {
		case i == len(s.frames)-1:
			o.set("usageMetadata", nil)
		case i%2 == 0 && usage != nil:
			o.set("usageMetadata", clone(usage))
		default:
			o.set("usageMetadata", newObject())
		}
	}
}

// geminiTogether puts text and a call into one chunk.
func geminiTogether(s *wireStream) {
	for i := 1; i < len(s.frames); i++ {
		before, here := geminiParts(&s.frames[i-1]), geminiParts(&s.frames[i])
		if len(here) == 0 || len(before) == 0 || objectAt(here[0], "functionCall") == nil || at(before[0], "text") == nil {
			continue
		}
		objectAt(s.frames[i].data, "candidates", 0, "content").set("parts", append(before[:len(before):len(before)], here...))
		s.replace(i-1, i-1, nil)
		return
	}
}

// bareLines writes Ollama calls like an older server: without ids, each on a separate line,
// and without a reason at the end.
func bareLines(s *wireStream) {
	var out []frame
	for i := range s.frames {
		f := s.frames[i]
		if o, ok := f.data.(*object); ok {
			o.remove("done_reason")
		}
		calls, _ := at(f.data, "message", "tool_calls").([]any)
		for _, c := range calls {
			call, _ := c.(*object)
			if call == nil {
				continue
			}
			call.remove("id")
			one := frame{data: clone(f.data)}
			objectAt(one.data, "message").set("tool_calls", []any{call})
			one.data.(*object).set("done", false)
			out = append(out, one)
		}
		if m := objectAt(f.data, "message"); len(calls) > 0 {
			m.remove("tool_calls")
		}
		out = append(out, f)
	}
	s.frames = out
}

// emptyFirst begins a stream with empty events.
func emptyFirst(s *wireStream) {
	if s.wire.Simulator.Blank == nil {
		chatEmptyFirst(s)
		return
	}
	var blank []frame
	for _, b := range s.wire.Simulator.Blank {
		data, err := parseTree([]byte(b.Data))
		if err != nil {
			continue
		}
		if o, ok := data.(*object); ok && o.has("model") {
			o.set("model", at(s.frames[0].data, "model"))
		}
		blank = append(blank, frame{name: b.Name, data: data})
	}
	s.insert(0, blank...)
}
