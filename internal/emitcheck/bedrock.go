package emitcheck

import (
	"slices"

	"github.com/dragoman-go/dragoman/internal/eventstream"
)

func bedrockWhole(r object) {
	m := r.obj("output").obj("message")
	m.is("role", "assistant")
	var uses ids
	for _, b := range m.objects("content") {
		if b.has("toolUse") {
			u := b.obj("toolUse")
			uses.add(u, "toolUseId")
			u.filled("name")
			u.obj("input")
		}
	}
	r.filled("stopReason")
	bedrockUsage(r)
	r.obj("metrics").count("latencyMs")
}

func bedrockUsage(r object) {
	u := r.obj("usage")
	u.count("inputTokens")
	u.count("outputTokens")
	u.count("totalTokens")
}

// bedrockStream holds a stream against what the API itself sends: one messageStart;
// blocks in order with dense indexes, one open at a time; a start for calls, results
// and images and for nothing else; deltas of the block's own kind and never empty; a
// stop for every block; messageStop, then metadata; or an exception and nothing
// behind it.
type bedrockStream struct {
	atTerminal
	parser eventstream.Parser
	n      int
	state  string
	open   int // index of the open block
	kind   string
	blocks int
	deltas int
}

func (s *bedrockStream) feed(p []byte) error { return s.parser.Feed(p, s.frame) }

func (s *bedrockStream) end() error {
	if err := s.parser.Close(); err != nil {
		return err
	}
	return s.closed()
}

var bedrockExceptions = []string{"internalServerException", "modelStreamErrorException", "serviceUnavailableException", "throttlingException", "validationException"}

func (s *bedrockStream) frame(f eventstream.Frame) error {
	typ := string(f.Text(":event-type"))
	c := &check{where: place("frame", s.n, typ)}
	s.n++
	s.atTerminal.open(c)
	if string(f.Text(":content-type")) != "application/json" {
		c.bad("", "no content type")
	}
	switch string(f.Text(":message-type")) {
	case "exception":
		s.over = "an exception"
		if name := string(f.Text(":exception-type")); !slices.Contains(bedrockExceptions, name) {
			c.bad("", "no such exception as %q", name)
		}
		c.root(f.Payload).str("message")
	case "event":
		e := c.root(f.Payload)
		if c.err == nil {
			s.event(e, typ)
		}
	default:
		c.bad("", "neither an event nor an exception")
	}
	return c.err
}

func (s *bedrockStream) event(e object, typ string) {
	switch typ {
	case "messageStart":
		e.is("role", "assistant")
		s.step(e, "", "message")
	case "contentBlockStart":
		s.start(e)
	case "contentBlockDelta":
		s.delta(e)
	case "contentBlockStop":
		if n := e.count("contentBlockIndex"); s.open != n {
			e.bad("contentBlockIndex", "block %d is not open", n)
		}
		if s.deltas == 0 && s.kind != "toolUse" && s.kind != "toolResult" {
			e.bad("", "the block has nothing in it")
		}
		s.open = -1
	case "messageStop":
		e.filled("stopReason")
		if s.open >= 0 {
			e.bad("", "while a block is open")
		}
		s.step(e, "message", "stopped")
	case "metadata":
		bedrockUsage(e)
		e.obj("metrics")
		s.step(e, "stopped", "ended")
		s.over = "metadata"
	default:
		e.bad("", "no such event")
	}
}

// step goes from one state to the next.
func (s *bedrockStream) step(e object, from, to string) {
	if s.state != from {
		e.bad("", "out of order")
	}
	s.state = to
}

func (s *bedrockStream) begin(e object, kind string) {
	n := e.count("contentBlockIndex")
	if s.state != "message" || s.open >= 0 || n != s.blocks {
		e.bad("contentBlockIndex", "block %d starts out of order, want %d", n, s.blocks)
	}
	s.open, s.kind, s.deltas = n, kind, 0
	s.blocks++
}

// start reads what a block starts as: one of the things that it can be. Members that
// nobody knows may stand beside it.
func (s *bedrockStream) start(e object) {
	start := e.obj("start")
	kind := ""
	for _, k := range []string{"toolUse", "toolResult", "image"} {
		if start.has(k) {
			if kind != "" {
				start.bad(k, "beside %s", kind)
			}
			kind = k
		}
	}
	switch kind {
	case "":
		start.bad("", "of nothing that starts")
	case "toolUse":
		u := start.obj(kind)
		u.filled("toolUseId")
		u.str("name")
		if u.has("input") {
			u.bad("input", "at the start")
		}
	}
	s.begin(e, kind)
}

func (s *bedrockStream) delta(e object) {
	d := e.obj("delta")
	if len(d.m) != 1 {
		d.bad("", "%d things in a delta", len(d.m))
	}
	for kind, value := range d.m {
		if value == "" {
			d.bad(kind, "empty")
		}
		block := kind
		if kind == "citation" {
			block = "text"
		}
		if s.open < 0 && (block == "text" || block == "reasoningContent") {
			s.begin(e, block)
		}
		if n := e.count("contentBlockIndex"); s.open != n || s.kind != block {
			d.bad(kind, "for block %d, while %d is open and a %s", n, s.open, s.kind)
		}
		s.deltas++
	}
}
