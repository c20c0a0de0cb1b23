package emitcheck

var ollamaCounters = []string{"total_duration", "load_duration", "prompt_eval_count", "prompt_eval_cached_count", "prompt_eval_duration", "eval_count", "eval_duration"}

func ollamaWhole(r object) {
	var s ollamaStream
	s.line(r)
	if s.finished == "" {
		r.bad("done", "false in a response that is not streamed")
	}
}

// ollamaStream is the state of a stream of lines.
type ollamaStream struct {
	base
	model string
	calls ids
}

func (s *ollamaStream) next(n int, _ string, data []byte) error {
	c := s.check("line", n, "")
	s.open(c)
	r := c.root(data)
	switch {
	case c.err != nil:
	case r.has("error"):
		r.nonEmptyText("error")
		s.finished = "an error"
	default:
		s.line(r)
	}
	return c.err
}

func (s *ollamaStream) end() error { return s.closed() }

func (s *ollamaStream) line(r object) {
	model := r.named("model")
	if s.model == "" {
		s.model = model
	}
	if model != s.model {
		r.bad("model", "%q, but the first line has %q", model, s.model)
	}
	r.time("created_at")
	m := r.obj("message")
	m.is("role", "assistant")
	m.str("content")
	m.text("thinking")
	if m.has("tool_calls") {
		list := m.objects("tool_calls")
		if len(list) == 0 {
			m.bad("tool_calls", "empty: omit the field")
		}
		for _, c := range list {
			s.call(c)
		}
	}
	if r.flag("done") {
		r.nonEmptyText("done_reason") // an open string; Ollama uses four values
		r.counts(ollamaCounters...)
		if r.has("prompt_eval_count") {
			r.partOf("prompt_eval_cached_count", r.tokens("prompt_eval_count"), "prompt")
		}
		s.finished = "done"
		return
	}
	for _, k := range append([]string{"done_reason"}, ollamaCounters...) {
		if r.has(k) {
			r.bad(k, "before the last line")
		}
	}
}

func (s *ollamaStream) call(c object) {
	if c.has("id") {
		s.calls.add(c, "id")
	}
	f := c.obj("function")
	f.called()
	f.obj("arguments")
	f.counts("index")
}
