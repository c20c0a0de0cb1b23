package emitcheck

import "strings"

var cohereStops = []string{"COMPLETE", "STOP_SEQUENCE", "MAX_TOKENS", "TOOL_CALL", "ERROR", "TIMEOUT"}

func cohereUsage(u object) {
	if t, ok := u.objOrNull("tokens"); ok {
		t.counts("input_tokens", "output_tokens")
		if t.has("input_tokens") {
			u.partOf("cached_tokens", t.tokens("input_tokens"), "input")
		}
	}
}

// cohereCall checks a call and returns its function.
func cohereCall(c object, calls *ids) object {
	calls.add(c, "id")
	c.is("type", "function")
	f := c.obj("function")
	f.called()
	return f
}

func cohereStop(o object, calls int) {
	stop := o.oneOf("finish_reason", cohereStops...)
	if stop == "TOOL_CALL" && calls == 0 {
		o.value("finish_reason", "TOOL_CALL without a call")
	}
	if stop == "COMPLETE" && calls > 0 {
		o.value("finish_reason", "COMPLETE after a call")
	}
}

func cohereWhole(r object) {
	r.nonEmptyText("id")
	m := r.obj("message")
	m.is("role", "assistant")
	m.text("tool_plan")
	if m.has("content") {
		for _, b := range m.objects("content") {
			switch b.nonEmptyText("type") {
			case "text":
				b.str("text")
			case "thinking":
				b.str("thinking")
			}
		}
	}
	var calls ids
	n := 0
	if m.has("tool_calls") {
		for _, c := range m.objects("tool_calls") {
			cohereCall(c, &calls).str("arguments")
			n++
		}
	}
	cohereStop(r, n)
	if u, ok := r.objOrNull("usage"); ok {
		cohereUsage(u)
	}
}

// cohereStream is the state of a stream.
type cohereStream struct {
	base
	started, ended bool
	kind           string // kind of the open block: content or tool-call
	content, calls int
	ids            ids
}

func (s *cohereStream) next(n int, name string, data []byte) error {
	c := s.check("event", n, name)
	s.base.open(c)
	if string(data) == "[DONE]" {
		if !s.ended {
			c.bad("", "[DONE] before message-end")
		}
		s.finished = "[DONE]"
		return c.err
	}
	e := c.root(data)
	if typ := e.nonEmptyText("type"); typ != name {
		e.bad("type", "%q under the name %q", typ, name)
	}
	switch {
	case c.err != nil:
	case s.ended:
		e.bad("", "after message-end")
	case name == "message-start":
		if s.started {
			e.bad("", "a second message-start")
		}
		s.started = true
		e.nonEmptyText("id")
		e.obj("delta").obj("message").is("role", "assistant")
	case !s.started:
		e.bad("", "before message-start")
	default:
		s.event(e, name)
	}
	return c.err
}

func (s *cohereStream) end() error { return s.closed() }

func (s *cohereStream) event(e object, name string) {
	message := func() object { return e.obj("delta").obj("message") }
	switch name {
	case "content-start":
		s.starts(e, "content", s.content)
		s.content++
		b := message().obj("content")
		if typ := b.oneOf("type", "text", "thinking"); b.str(typ) != "" {
			b.bad(typ, "not empty at the start; clients append to it")
		}
	case "content-delta":
		s.at(e, "content", s.content-1)
		b := message().obj("content")
		if !b.has("thinking") {
			b.str("text")
		}
	case "tool-plan-delta":
		if s.kind != "" {
			e.bad("", "a plan inside a block")
		}
		message().str("tool_plan")
	case "tool-call-start":
		s.starts(e, "tool-call", s.calls)
		s.calls++
		if f := cohereCall(message().obj("tool_calls"), &s.ids); f.str("arguments") != "" {
			f.bad("arguments", "not empty at the start; clients append to them")
		}
	case "tool-call-delta":
		s.at(e, "tool-call", s.calls-1)
		message().obj("tool_calls").obj("function").str("arguments")
	case "content-end", "tool-call-end":
		kind := strings.TrimSuffix(name, "-end")
		s.at(e, kind, map[string]int{"content": s.content, "tool-call": s.calls}[kind]-1)
		s.kind = ""
	case "citation-start":
		e.count("index")
		message().obj("citations")
	case "citation-end":
		e.count("index")
	case "message-end":
		s.ended = true
		d := e.obj("delta")
		if _, failed := d.text("error"); failed {
			d.is("finish_reason", "ERROR")
			return
		}
		if s.kind != "" {
			e.bad("", "inside a block")
		}
		cohereStop(d, s.calls)
		if u, ok := d.objOrNull("usage"); ok {
			cohereUsage(u)
		}
	default:
		if !s.passThrough {
			e.bad("type", "unknown event")
		}
	}
}

func (s *cohereStream) starts(e object, kind string, index int) {
	if s.kind != "" {
		e.bad("", "a block starts inside another")
	}
	if n := e.count("index"); n != index {
		e.bad("index", "%d, want %d", n, index)
	}
	s.kind = kind
}

func (s *cohereStream) at(e object, kind string, index int) {
	if n := e.count("index"); s.kind != kind || n != index {
		e.bad("index", "%s %d is not open", kind, n)
	}
}
