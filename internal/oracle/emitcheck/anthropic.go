package emitcheck

import (
	"regexp"
	"slices"
)

var (
	anthropicStops = []string{"end_turn", "max_tokens", "stop_sequence", "tool_use", "pause_turn", "refusal", "model_context_window_exceeded", "compaction"}

	refusals = []string{"cyber", "bio", "frontier_llm", "reasoning_extraction", "general_harms"}

	anthropicID = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// anthropicDeltas lists the kinds of deltas that fit each kind of block.
var anthropicDeltas = map[string]map[string]string{
	"text":            {"text_delta": "text", "citations_delta": ""},
	"thinking":        {"thinking_delta": "thinking", "signature_delta": "signature"},
	"tool_use":        {"input_json_delta": "partial_json"},
	"server_tool_use": {"input_json_delta": "partial_json"},
	"mcp_tool_use":    {"input_json_delta": "partial_json"},
	"compaction":      {"compaction_delta": ""},
}

func anthropicError(r object) {
	r.is("type", "error")
	e := r.obj("error")
	e.nonEmptyText("type")
	e.nonEmptyText("message")
	r.maybe("request_id")
}

// anthropicMessage checks the fields that a message has both whole and at the start of a
// stream.
func anthropicMessage(m object) {
	m.nonEmptyText("id")
	m.is("type", "message")
	m.is("role", "assistant")
	m.named("model")
	m.list("content")
	m.need("stop_reason")
	m.textOrNull("stop_sequence")
	u := m.obj("usage")
	u.tokens("input_tokens")
	anthropicCounters(u)
}

// anthropicTokens lists the counters that a stream repeats at its end.
var anthropicTokens = []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"}

// anthropicCounters checks the counters that are present at the start and at the end. Tokens
// read from a cache are not part of input_tokens.
func anthropicCounters(u object) {
	out := u.tokens("output_tokens")
	for _, k := range anthropicTokens {
		if u.m[k] != nil {
			u.tokens(k)
		}
	}
	if d, ok := u.objOrNull("output_tokens_details"); ok {
		d.partOf("thinking_tokens", out, "output")
	}
	u.wordOrNull("service_tier", "standard", "priority", "batch")
}

func anthropicWhole(m object) {
	anthropicMessage(m)
	stop := m.oneOf("stop_reason", anthropicStops...)
	var uses ids
	calls := 0
	for _, b := range m.objects("content") {
		if anthropicBlock(b, &uses) == "tool_use" {
			calls++
		}
		switch b.m["type"] {
		case "text":
			b.str("text")
		case "thinking":
			b.str("thinking")
			b.str("signature")
		}
	}
	anthropicStop(m, stop, calls)
}

func anthropicStop(o object, stop string, calls int) {
	if stop == "tool_use" && calls == 0 {
		o.value("stop_reason", "tool_use without a tool_use block")
	}
	if stop == "end_turn" && calls > 0 { // clients do not look for calls then
		o.value("stop_reason", "end_turn after a tool_use block")
	}
	if stop == "refusal" {
		anthropicRefusal(o.obj("stop_details"))
	}
	if _, matched := o.textOrNull("stop_sequence"); matched != (stop == "stop_sequence") {
		o.value("stop_sequence", "does not match %s", stop)
	}
}

// anthropicRefusal checks the details of a refusal. Null means an unknown category.
func anthropicRefusal(d object) {
	d.is("type", "refusal")
	if category, known := d.textOrNull("category"); known && !slices.Contains(refusals, category) {
		d.value("category", "%q is not one of %q", category, refusals)
	}
	d.textOrNull("explanation")
}

// anthropicBlock checks the fields that a block has from its start.
func anthropicBlock(b object, uses *ids) string {
	typ := b.nonEmptyText("type")
	switch typ {
	case "server_tool_use", "mcp_tool_use":
		if b.c.passThrough {
			break // any id is allowed, because it is passed through
		}
		fallthrough
	case "tool_use":
		if id := uses.add(b, "id"); !anthropicID.MatchString(id) {
			b.value("id", "%q does not match %s", id, anthropicID)
		}
		b.called()
		b.obj("input")
	case "redacted_thinking":
		b.nonEmptyText("data")
	}
	return typ
}

// anthropicStream is the state of a stream (quirk C20).
type anthropicStream struct {
	base
	started bool
	stopped bool // message_delta was sent
	blocks  int
	open    *anthropicOpenBlock
	uses    ids
	calls   int
	first   object // the usage at the start
	// broken is the first block whose input is not a JSON object. Only a message that was
	// cut short may have one.
	broken string
}

type anthropicOpenBlock struct {
	typ    string
	signed bool
	input  []byte
}

func (s *anthropicStream) next(n int, name string, data []byte) error {
	c := s.check("event", n, name)
	s.base.open(c)
	e := c.root(data)
	if typ := e.nonEmptyText("type"); typ != name {
		e.bad("type", "%q under the name %q", typ, name)
	}
	switch {
	case c.err != nil:
	case name == "ping":
	case name == "error":
		anthropicError(e)
		s.finished = "an error"
	case name == "message_start":
		s.start(e)
	case !s.started:
		e.bad("", "before message_start")
	case s.stopped && name != "message_stop" && (!s.passThrough || name != "message_delta"):
		e.bad("", "after message_delta")
	default:
		s.event(e, name)
	}
	return c.err
}

func (s *anthropicStream) end() error { return s.closed() }

func (s *anthropicStream) start(e object) {
	if s.started {
		e.bad("", "a second message_start")
	}
	s.started = true
	m := e.obj("message")
	anthropicMessage(m)
	s.first = m.obj("usage")
	if len(m.list("content")) > 0 || m.m["stop_reason"] != nil || m.m["stop_sequence"] != nil {
		m.bad("", "a message that begins has no content and no stop_reason")
	}
}

func (s *anthropicStream) event(e object, name string) {
	switch name {
	case "content_block_start":
		s.blockStart(e)
	case "content_block_delta":
		if s.at(e) {
			s.delta(e.obj("delta"))
		}
	case "content_block_stop":
		if s.at(e) {
			s.blockStop()
		}
	case "message_delta":
		s.messageDelta(e)
	case "message_stop":
		if !s.stopped {
			e.bad("", "without message_delta")
		}
		s.finished = "message_stop"
	default:
		e.bad("type", "unknown event")
	}
}

// at reports whether an event is about the open block.
func (s *anthropicStream) at(e object) bool {
	n := e.count("index")
	if s.open == nil || n != s.blocks-1 {
		e.bad("index", "block %d is not open", n)
		return false
	}
	return true
}

func (s *anthropicStream) blockStart(e object) {
	if s.open != nil {
		e.bad("", "a block starts inside another")
	}
	if n := e.count("index"); n != s.blocks {
		e.bad("index", "%d, want %d", n, s.blocks)
	}
	b := e.obj("content_block")
	typ := anthropicBlock(b, &s.uses)
	s.open = &anthropicOpenBlock{typ: typ}
	s.blocks++
	empty := ""
	switch typ {
	case "text":
		empty = b.str("text")
	case "thinking":
		empty = b.str("thinking") + b.str("signature")
	case "tool_use", "server_tool_use", "mcp_tool_use":
		if in, ok := b.objOrNull("input"); ok && len(in.m) > 0 {
			b.bad("input", "not empty at the start; clients append to it")
		}
	}
	if empty != "" {
		b.bad("", "a %s block that does not start empty; clients append to it", typ)
	}
	if typ == "tool_use" {
		s.calls++
	}
}

func (s *anthropicStream) delta(d object) {
	kind := d.nonEmptyText("type")
	field, fits := anthropicDeltas[s.open.typ][kind]
	if !fits {
		d.bad("type", "%s in a %s block", kind, s.open.typ)
		return
	}
	if s.open.signed {
		d.bad("type", "%s after the signature", kind)
	}
	s.open.signed = kind == "signature_delta"
	switch field {
	case "":
	case "partial_json":
		s.open.input = append(s.open.input, d.nonEmptyText(field)...)
	default:
		d.nonEmptyText(field)
	}
	if kind == "citations_delta" {
		d.obj("citation").nonEmptyText("type")
	}
}

func (s *anthropicStream) blockStop() {
	if len(s.open.input) > 0 && !isObject(string(s.open.input)) && s.broken == "" {
		s.broken = string(s.open.input)
	}
	s.open = nil
}

func (s *anthropicStream) messageDelta(e object) {
	if s.open != nil {
		e.bad("", "while a block is open")
	}
	if s.blocks == 0 {
		e.bad("", "a message without blocks")
	}
	d := e.obj("delta")
	stop := d.word("stop_reason", anthropicStops...)
	anthropicStop(d, stop, s.calls)
	if s.broken != "" && (stop == "tool_use" || stop == "end_turn") {
		d.value("stop_reason", "%s, but the input of a block is not a JSON object: %.80q", stop, s.broken)
	}
	u := e.obj("usage")
	anthropicCounters(u)
	s.checkFinalUsage(u)
	s.stopped = true
}

// checkFinalUsage compares the usage at the end with the one at the start. Counts are cumulative:
// clients use the later number.
func (s *anthropicStream) checkFinalUsage(u object) {
	for _, k := range anthropicTokens {
		if s.first.m[k] == nil || u.m[k] == nil {
			continue
		}
		if first, now := s.first.tokens(k), u.tokens(k); now < first {
			u.bad(k, "%d is less than %d at the start", now, first)
		}
	}
}
