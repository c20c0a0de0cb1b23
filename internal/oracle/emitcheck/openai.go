package emitcheck

// openaiError checks the error object of both OpenAI dialects. It has all four fields, null if
// there is no value.
func openaiError(e object) {
	e.nonEmptyText("message")
	e.nonEmptyText("type")
	e.textOrNull("param")
	e.textOrNull("code")
}

// finishReasons lists the OpenAI finish reasons, and "error", which is from OpenRouter and
// means that the response failed after its status. All clients read the field as an open
// string, and any other reason would be wrong, especially one after which a client runs calls.
var finishReasons = []string{"stop", "length", "tool_calls", "content_filter", "function_call", "error"}

// openaiTiers lists the service tiers of both OpenAI dialects.
var openaiTiers = []string{"auto", "default", "flex", "scale", "priority", "fast"}

// cutShort reports whether a finish reason explains arguments that end early.
func cutShort(reason string) bool {
	return reason == "length" || reason == "content_filter" || reason == "error"
}

func chatWhole(r object) {
	chatEnvelope(r, "chat.completion")
	if u, ok := r.m["usage"]; ok && u == nil {
		r.bad("usage", "null in a response that is not streamed")
	}
	chatUsage(r)
	choices := r.objects("choices")
	if len(choices) == 0 {
		r.bad("choices", "empty")
	}
	var calls ids
	for i, ch := range choices {
		if n := ch.count("index"); n != i {
			ch.bad("index", "%d, want %d", n, i)
		}
		finish := ch.oneOf("finish_reason", finishReasons...)
		ch.need("logprobs")
		m := ch.obj("message")
		m.is("role", "assistant")
		m.textOrNull("content")
		m.textOrNull("refusal")
		n := 0
		if m.has("tool_calls") {
			list := m.objects("tool_calls")
			if n = len(list); n == 0 {
				m.bad("tool_calls", "empty: omit the field")
			}
			for _, call := range list {
				calls.add(call, "id")
				kind, payload := chatCallKind(call)
				f := call.obj(kind)
				f.called()
				if s := f.str(payload); payload == "arguments" && !cutShort(finish) && !isObject(s) {
					f.bad(payload, "%.80q is not a JSON object", s)
				}
			}
		}
		if finish == "tool_calls" && n == 0 {
			ch.bad("finish_reason", "tool_calls without calls")
		}
		var legacy *legacyCall
		if f, ok := m.objOrNull("function_call"); ok {
			f.called()
			legacy = &legacyCall{args: []byte(f.str("arguments"))}
		}
		legacy.finished(ch, finish, n)
	}
}

// legacyClient checks a whole response to a client that sent functions and no tools.
func legacyClient(body []byte) error {
	c := &check{}
	for _, ch := range c.root(body).objects("choices") {
		if m := ch.obj("message"); m.has("tool_calls") {
			m.bad("tool_calls", "for a client that sent functions and no tools")
		}
	}
	return c.err
}

// legacyCall is the single call of a response in the format before tools. Nil means no call.
type legacyCall struct{ args []byte }

// finished checks a choice at its end. Clients of the old format look for the call only if the
// finish_reason is function_call; a forced call ends with "stop".
func (l *legacyCall) finished(ch object, finish string, calls int) {
	switch {
	case l == nil:
		if finish == "function_call" {
			ch.value("finish_reason", "function_call without a call")
		}
	case calls > 0:
		ch.value("", "a function_call together with tool_calls")
	case cutShort(finish):
	case finish != "function_call" && finish != "stop":
		ch.value("finish_reason", "%q together with a function_call", finish)
	case !isObject(string(l.args)):
		ch.value("", "the arguments of the function_call, %.80q, are not a JSON object", l.args)
	}
}

// chatCallKind returns the field that a call's type names, and the field with its payload.
func chatCallKind(call object) (kind, payload string) {
	if kind = call.oneOf("type", "function", "custom"); kind == "custom" {
		return kind, "input"
	}
	return "function", "arguments"
}

func chatEnvelope(r object, kind string) {
	r.named("id")
	r.is("object", kind)
	r.tokens("created")
	r.named("model")
	r.wordOrNull("service_tier", openaiTiers...)
	if r.has("error") {
		// Clients stop if the field is present at all.
		r.bad("error", "in a response that is not an error")
	}
}

// chatUsage checks the usage, and reports whether it is present.
func chatUsage(r object) bool {
	u, ok := r.objOrNull("usage")
	if !ok {
		return false
	}
	in, out, total := u.tokens("prompt_tokens"), u.tokens("completion_tokens"), u.tokens("total_tokens")
	if total != in+out {
		u.bad("total_tokens", "%d, want %d + %d", total, in, out)
	}
	if d, ok := u.objOrNull("prompt_tokens_details"); ok {
		d.counts("cached_tokens", "cache_write_tokens", "audio_tokens")
		d.partOf("cached_tokens", in, "prompt")
	}
	if d, ok := u.objOrNull("completion_tokens_details"); ok {
		d.counts("reasoning_tokens", "audio_tokens")
		d.partOf("reasoning_tokens", out, "completion")
	}
	return true
}

// chatStream is the state of a stream of chunks.
type chatStream struct {
	base
	id, model string
	created   int
	choices   []*chatChoice
	calls     ids
	usage     bool
	failed    bool
	// unrequested: the request did not ask for usage.
	unrequested bool
	// legacy: the request has functions and no tools.
	legacy bool
}

// maxChoices is the maximum number of choices in the API.
const maxChoices = 128

type chatChoice struct {
	begun  bool
	finish string
	calls  []*chatCall
	legacy *legacyCall
}

type chatCall struct {
	kind, payload, id string
	args              []byte
	at                string
}

func (s *chatStream) next(n int, _ string, data []byte) error {
	c := s.check("event", n, "")
	if s.open(c); c.err != nil {
		return c.err
	}
	if string(data) == "[DONE]" {
		s.done(c)
		return c.err
	}
	r := c.root(data)
	switch {
	case c.err != nil:
	case s.failed:
		r.bad("", "a chunk after an error")
	case r.has("error"):
		openaiError(r.obj("error"))
		s.failed = true
	default:
		s.chunk(r)
	}
	return c.err
}

func (s *chatStream) done(c *check) {
	s.finished = "[DONE]"
	if s.failed {
		return
	}
	if len(s.choices) == 0 {
		c.bad("", "[DONE] before any choice")
	}
	for i, ch := range s.choices {
		if ch.finish == "" {
			c.bad("", "[DONE] before the finish_reason of choice %d", i)
		}
	}
}

func (s *chatStream) chunk(r object) {
	chatEnvelope(r, "chat.completion.chunk")
	id, model, created := r.str("id"), r.str("model"), r.tokens("created")
	if s.id == "" {
		s.id, s.model, s.created = id, model, created
	}
	if id != s.id {
		r.bad("id", "%q, but the first chunk has %q", id, s.id)
	}
	if model != s.model || created != s.created {
		r.value("", "model or created differ from those of the first chunk")
	}
	if s.usage {
		r.bad("", "a chunk after the usage")
	}
	choices := r.objects("choices")
	hasUsage := chatUsage(r)
	switch {
	case hasUsage && s.unrequested:
		r.bad("usage", "in a stream whose request did not ask for it")
	case hasUsage && len(choices) > 0:
		r.bad("usage", "together with choices; it has a separate chunk")
	case hasUsage:
		for i, ch := range s.choices {
			if ch.finish == "" {
				r.bad("usage", "before the finish_reason of choice %d", i)
			}
		}
		s.usage = true
	case len(choices) == 0:
		r.bad("choices", "empty in a chunk without usage")
	}
	for _, ch := range choices {
		s.choice(ch)
	}
}

func (s *chatStream) choice(ch object) {
	i := ch.count("index")
	if i >= maxChoices {
		ch.bad("index", "%d, want at most %d", i, maxChoices)
		return
	}
	for len(s.choices) <= i {
		s.choices = append(s.choices, &chatChoice{}) // choices may come in any order
	}
	state := s.choices[i]
	first := !state.begun
	state.begun = true
	if state.finish != "" {
		ch.bad("", "choice %d continues after its finish_reason", i)
	}
	d := ch.obj("delta")
	if first {
		d.is("role", "assistant")
	} else if d.has("role") {
		d.bad("role", "not in the first delta of the choice")
	}
	if _, parts := d.m["content"].([]any); !parts || !d.c.passThrough {
		d.maybe("content")
	}
	d.maybe("refusal")
	d.maybe("reasoning_content")
	d.maybe("reasoning")
	if d.has("tool_calls") {
		if s.legacy {
			d.bad("tool_calls", "for a client that sent functions and no tools")
		}
		list := d.objects("tool_calls")
		if len(list) == 0 {
			d.bad("tool_calls", "empty: omit the field")
		}
		for _, call := range list {
			s.call(state, call)
		}
	}
	if f, ok := d.objOrNull("function_call"); ok {
		state.function(f)
	}
	if finish, ok := ch.textOrNull("finish_reason"); ok {
		ch.word("finish_reason", finishReasons...)
		state.finish = finish
		state.finished(ch)
	}
}

func (s *chatStream) call(choice *chatChoice, call object) {
	i := call.count("index")
	if i > len(choice.calls) {
		call.bad("index", "%d, want at most %d", i, len(choice.calls))
		return
	}
	if i == len(choice.calls) {
		kind, payload := chatCallKind(call)
		id := s.calls.add(call, "id")
		f := call.obj(kind)
		f.called()
		choice.calls = append(choice.calls, &chatCall{kind: kind, payload: payload, id: id, args: []byte(f.str(payload)), at: call.at})
		return
	}
	known := choice.calls[i]
	if id, ok := call.text("id"); ok && id != known.id {
		call.bad("id", "%q, but the call started with %q", id, known.id)
	}
	if kind, ok := call.text("type"); ok && kind != known.kind {
		call.bad("type", "%q, but the call started with %q", kind, known.kind)
	}
	f, ok := call.objOrNull(known.kind)
	if !ok {
		if len(call.m) < 2 {
			call.bad("", "is empty")
		}
		return // a vendor field
	}
	if f.has("name") {
		f.bad("name", "repeated; clients concatenate names")
	}
	known.args = append(known.args, f.str(known.payload)...)
}

// function checks a fragment of a call in the old format: the name comes first, and once.
func (ch *chatChoice) function(f object) {
	args, _ := f.text("arguments")
	if ch.legacy == nil {
		f.called()
		ch.legacy = &legacyCall{}
	} else if f.has("name") {
		f.bad("name", "repeated; clients concatenate names")
	}
	ch.legacy.args = append(ch.legacy.args, args...)
}

// finished checks a choice at its end.
func (ch *chatChoice) finished(o object) {
	ch.legacy.finished(o, ch.finish, len(ch.calls))
	if ch.finish == "tool_calls" && len(ch.calls) == 0 {
		o.value("finish_reason", "tool_calls without calls")
	}
	for i, call := range ch.calls {
		if call.kind == "function" && !cutShort(ch.finish) && !isObject(string(call.args)) {
			o.value("", "the arguments of call %d, %.80q, are not a JSON object", i, call.args)
		}
	}
}

func (s *chatStream) end() error {
	if s.failed {
		return nil
	}
	return s.closed()
}
