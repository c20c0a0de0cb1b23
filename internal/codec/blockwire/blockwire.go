// Package blockwire is for the wires on which a message is a role and a list of
// blocks. A [Plan] arranges a request's
// conversation as their messages, an [Emitter] streams an answer as their blocks.
//
// Some share more: one part is one block. A [Format] describes such
// a dialect, and [Decoder], [RequestDecoder], [Answer], [StreamDecoder],
// [RequestEncoder], [AnswerEncoder] and [StreamEncoder] read and write it. The dialect
// embeds them, and reads and writes single blocks, events and settings.
//
// A turn is one message of such a wire: the canonical messages of one role that
// follow each other. What is promised of the turns: what stands before the
// first is the system prompt; no two neighbours of a known role have the same;
// the results that answer a turn come first in the one after it, in the order
// of its calls and one for each; the conversation opens with a user's turn,
// unless it came from this wire; and a message that came in the wire's own form
// keeps it byte for byte, also when others are merged into it, because what was
// sent once must not change when the conversation goes on. The plan is all of
// that before anything is written. What a part becomes, and what may go back in
// the form it came in, only the [Wire] knows.
package blockwire

import (
	"slices"
	"strings"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The roles that all these wires have. What the model said has a role of its
// own on each of them.
const (
	User   = "user"
	System = "system"
)

// openingText is said by the user in a conversation that would not start with
// one.
const openingText = "(conversation continues)"

// Rules are the fixed differences between the wires.
type Rules struct {
	Dialect dragoman.Dialect
	// Assistant is the role of what the model said.
	Assistant string
	// List is the member of a message that holds its blocks.
	List string
	// Turn and Prompt are what the wire calls a turn and the place of what
	// stands before the first, for reports.
	Turn, Prompt string
	// SystemTurns says that the wire has system messages inside a conversation;
	// MidSystem, that the target takes them from anybody.
	SystemTurns, MidSystem bool
	// NoCache says that the wire has no cache breakpoints.
	NoCache bool
	// CachePoint reports whether a block of the wire is a cache point, where
	// these are blocks behind the ones they belong to; nil where they are not.
	CachePoint func(raw []byte) bool
}

// Wire is what a wire decides itself.
type Wire interface {
	// Add appends a part in the form the wire has for it, or reports that there
	// is none. m is nil for the request's instructions.
	Add(out []Block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []Block
	// Complete settles the blocks that were added for one message.
	Complete(blocks []Block, m *dragoman.Message, at extra.Path, role string, rep *dragoman.Report) []Block
	// Replay returns a message of a turn in its native form, if it was not
	// changed and the target may see it again as it is. Messages come in order.
	Replay(m *dragoman.Message) ([]byte, bool)
	// Said settles a turn of the model that is not one message as it came.
	Said(t *Turn)
}

// Block is one part in its place.
type Block struct {
	Part dragoman.Part
	At   extra.Path
	// Cache is the cache hint that belongs on the block, or behind it.
	Cache *dragoman.CacheHint
	// Raw is the block as it came; nil for one that is written from its part.
	// Mark is the cache point behind it as it came.
	Raw, Mark []byte
	// Signature is the one to write, on a wire where any block can have one.
	Signature string
}

// Is reports whether the part of a block is of a kind.
func (b *Block) Is(k string) bool { return b.Part.Kind() == k }

// Turn is one message of the wire: messages of one role that follow each other.
type Turn struct {
	Role   string
	Blocks []Block
	// Messages are those it was made of; none for one that we put in.
	Messages []*dragoman.Message
	// frame is the first of the messages as it came, or nothing.
	frame frame
}

// Plan is a conversation as the wire wants it.
type Plan struct {
	Rules
	// Threaded says that the server holds what was said before.
	Threaded bool

	System []Block
	Turns  []Turn

	wire Wire
	rep  *dragoman.Report
	// after is the message that follows the run of system messages at hand,
	// once it was looked for.
	after int
	// in reads native messages, one after the other.
	in jsonwire.Reader
}

// Arrange plans the whole of a request's conversation but its ends, which
// TrimPrefill and Open see to.
func (p *Plan) Arrange(req *dragoman.Request, wire Wire, rep *dragoman.Report) {
	p.wire, p.rep = wire, rep
	for i, part := range req.Instructions {
		p.System = wire.Add(p.System, nil, part, extra.Elem("/instructions", i), System, rep)
	}
	ms := req.Messages
	first := 0
	for first < len(ms) && systemRole(ms[first].Role) {
		p.leading(&ms[first], first)
		first++
	}
	p.Turns = make([]Turn, 0, len(ms)-first+1) // one may be put in
	for i := first; i < len(ms); i++ {
		p.message(ms, i)
	}
	for i := range p.Turns {
		t := &p.Turns[i]
		switch {
		case t.Untouched():
		case t.Role == User:
			p.orderResults(t, i)
		case t.Role == p.Assistant:
			wire.Said(t)
		}
	}
}

// leading puts a message that stands before the first turn into the system
// prompt.
func (p *Plan) leading(m *dragoman.Message, i int) {
	at := extra.Elem("/messages", i)
	if p.SystemTurns && p.Own(m) || m.Role == dragoman.RoleDeveloper {
		p.rep.Addf(dragoman.Moved, dragoman.Info, at.String(), "a leading %s message written into the %s", m.Role, p.Prompt)
	}
	p.System = append(p.System, p.blocks(m, at, System, p.rep)...)
	p.unsaid(m, at)
	for _, f := range m.Extra.For(p.Dialect) {
		p.rep.Addf(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "a member of a message that became part of the %s", p.Prompt)
	}
}

// message adds one message to the plan, to the turn before it where the roles
// agree.
func (p *Plan) message(ms []dragoman.Message, i int) {
	m := &ms[i]
	at := extra.Elem("/messages", i)
	role := p.role(ms, i, at)
	next := Turn{Role: role, Messages: []*dragoman.Message{m}}
	next.frame, next.Blocks = p.replay(m, at)
	if next.frame.raw == nil {
		next.Blocks = p.blocks(m, at, role, p.rep)
	}
	if len(next.Blocks) == 0 {
		p.rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "a message without content")
		return
	}
	p.unsaid(m, at)
	last := len(p.Turns) - 1
	if last < 0 || p.Turns[last].Role != role || role != User && role != p.Assistant && role != System {
		p.Turns = append(p.Turns, next)
		return
	}
	t := &p.Turns[last]
	t.Blocks = append(t.Blocks, next.Blocks...)
	t.Messages = append(t.Messages, m)
}

// blocks lists the parts of a message that the wire takes.
func (p *Plan) blocks(m *dragoman.Message, at extra.Path, role string, rep *dragoman.Report) []Block {
	out := make([]Block, 0, len(m.Parts))
	for i, part := range m.Parts {
		out = p.wire.Add(out, m, part, at.Elem("parts", i), role, rep)
	}
	return p.wire.Complete(out, m, at, role, rep)
}

// unsaid reports what a message says that the wire has no member for.
func (p *Plan) unsaid(m *dragoman.Message, at extra.Path) {
	extra.Report(p.rep, m.Extra, p.Dialect, at)
	if m.Name != "" {
		p.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/name", "the name %q of the speaker", m.Name)
	}
	if m.Phase != "" {
		p.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %q", m.Phase)
	}
	if m.Cache != nil && p.NoCache {
		p.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches by itself")
	}
}

// TrimPrefill cuts white space at the end of an answer that the model is to
// continue, for an API that rejects it there. A block in the form it came in is
// its client's own affair.
func (p *Plan) TrimPrefill() {
	if len(p.Turns) == 0 {
		return
	}
	t := &p.Turns[len(p.Turns)-1]
	if t.Role != p.Assistant || len(t.Blocks) == 0 {
		return
	}
	b := &t.Blocks[len(t.Blocks)-1]
	text, ok := b.Part.(*dragoman.Text)
	if !ok || b.Raw != nil {
		return
	}
	cut := strings.TrimRightFunc(text.Text, unicode.IsSpace)
	last := len(t.Blocks) - 1
	switch {
	case cut == text.Text:
		return
	case cut == "" && (last == 0 || isThinking(t.Blocks[last-1])):
		return
	case cut == "": // beside thinking blank texts stay, but not here
		p.rep.Add(dragoman.Dropped, dragoman.Info, b.At.String(), "a text that says nothing at the end of the assistant's last message")
		t.Blocks = t.Blocks[:last]
		p.TrimPrefill()
		return
	}
	p.rep.Add(dragoman.Lowered, dragoman.Info, b.At.String(), "white space cut from the end of the assistant's last message")
	trimmed := *text
	trimmed.Text = cut
	b.Part = &trimmed
}

// Open makes a conversation start with a user's turn (quirks D17, D38). One
// that came from this dialect starts as it likes: APIs take more than their
// manuals say, and a compacted or threaded conversation starts with what the
// server gave.
func (p *Plan) Open() {
	if len(p.Turns) > 0 {
		if p.Turns[0].Role == User || p.Own(p.Turns[0].Messages[0]) {
			return
		}
	} else if p.Threaded || len(p.System) == 0 {
		return // without instructions, the request has no content
	}
	p.rep.Addf(dragoman.Synthesized, dragoman.Warn, "/messages", "the API requires a user %s first; one is added", p.Turn)
	opening := Turn{Role: User, Blocks: []Block{{Part: &dragoman.Text{Text: openingText}, At: extra.At("/messages")}}}
	p.Turns = slices.Insert(p.Turns, 0, opening)
}
