package emitcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/codec/dialectname"
	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
)

func bedrockWhole(r object) {
	m := r.obj("output").obj("message")
	m.is("role", "assistant")
	var uses ids
	for _, b := range m.objects("content") {
		if b.has("toolUse") {
			u := b.obj("toolUse")
			uses.add(u, "toolUseId")
			u.called()
			u.obj("input")
		}
	}
	r.nonEmptyText("stopReason")
	bedrockUsage(r)
	r.obj("metrics").count("latencyMs")
}

func bedrockUsage(r object) {
	u := r.obj("usage")
	u.tokens("inputTokens")
	u.tokens("outputTokens")
	u.tokens("totalTokens")
}

// frames is the binary framing. A judge gets the type of the event as its name, or the type
// of an exception after an exclamation mark.
type frames struct {
	checker frameChecker
	parser  eventstream.Parser
	n       int
}

func (f *frames) feed(p []byte) error {
	return f.parser.Feed(p, func(fr eventstream.Frame) error {
		n := f.n
		f.n++
		if string(fr.Text(":content-type")) != "application/json" {
			return fmt.Errorf("frame %d: missing content type", n)
		}
		switch string(fr.Text(":message-type")) {
		case "event":
			return f.checker.next(n, string(fr.Text(":event-type")), fr.Payload)
		case "exception":
			return f.checker.next(n, "!"+string(fr.Text(":exception-type")), fr.Payload)
		default:
			return fmt.Errorf("frame %d: neither an event nor an exception", n)
		}
	})
}

func (f *frames) end() error {
	if err := f.parser.Close(); err != nil {
		return err
	}
	return f.checker.end()
}

// bedrockStream checks that a stream has the form that Bedrock sends:
//
//   - one messageStart;
//   - blocks in order with dense indexes, one open at a time;
//   - a start event only for calls, results and images;
//   - deltas of the kind of their block, never empty;
//   - a stop event for every block;
//   - messageStop, then metadata; or an exception and nothing after it.
type bedrockStream struct {
	base
	state  string
	open   int // index of the open block
	kind   string
	blocks int
	deltas int
}

func (s *bedrockStream) end() error { return s.closed() }

func (s *bedrockStream) next(n int, name string, data []byte) error {
	c := s.check("frame", n, name)
	s.base.open(c)
	e := c.root(data)
	if exception, ok := strings.CutPrefix(name, "!"); ok && c.err == nil {
		s.finished = "an exception"
		if !slices.Contains(bedrockExceptions, exception) {
			e.bad("", "unknown exception")
		}
		e.str("message")
	} else if c.err == nil {
		s.event(e, name)
	}
	return c.err
}

var bedrockExceptions = []string{"internalServerException", "modelStreamErrorException", "serviceUnavailableException", "throttlingException", "validationException"}

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
			e.bad("", "the block is empty")
		}
		s.open = -1
	case "messageStop":
		e.nonEmptyText("stopReason")
		if s.open >= 0 {
			e.bad("", "while a block is open")
		}
		s.step(e, "message", "stopped")
	case "metadata":
		bedrockUsage(e)
		e.obj("metrics")
		s.step(e, "stopped", "ended")
		s.finished = "metadata"
	default:
		e.bad("", "unknown event")
	}
}

// step moves from one state to the next.
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

// start checks the start of a block, which has exactly one known kind. Unknown fields are
// allowed.
func (s *bedrockStream) start(e object) {
	start := e.obj("start")
	kind := ""
	for _, k := range []string{"toolUse", "toolResult", "image"} {
		if start.has(k) {
			if kind != "" {
				start.bad(k, "together with %s", kind)
			}
			kind = k
		}
	}
	switch kind {
	case "":
		start.bad("", "no kind of block that has a start event")
	case "toolUse":
		u := start.obj(kind)
		u.nonEmptyText("toolUseId")
		u.called()
		if u.has("input") {
			u.bad("input", "not allowed at the start")
		}
	}
	s.begin(e, kind)
}

func (s *bedrockStream) delta(e object) {
	d := e.obj("delta")
	if len(d.m) != 1 {
		d.bad("", "%d fields in a delta, want 1", len(d.m))
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
			d.bad(kind, "for block %d, but block %d (%s) is open", n, s.open, s.kind)
		}
		s.deltas++
	}
}

// converseCall returns the expectation for the path after /model/.
func converseCall(rest string) expectation {
	a := expectation{dialect: dialectname.Bedrock}
	if model, ok := strings.CutSuffix(rest, "/converse"); ok {
		a.form, a.model = whole, model
	} else if model, ok := strings.CutSuffix(rest, "/converse-stream"); ok {
		a.form, a.model = streamed, model
	}
	return a
}
