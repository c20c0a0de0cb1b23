// Package blockwire implements wire formats whose messages are a role and a list of
// blocks. A [Plan] arranges the conversation of a request as such messages, an
// [Emitter] streams a response as blocks.
//
// In some dialects one part is one block. A [Format] describes such a dialect, and
// [Decoder], [RequestDecoder], [Response], [StreamDecoder], [RequestEncoder],
// [ResponseEncoder] and [StreamEncoder] read and write it. The dialect embeds them, and
// reads and writes single blocks, events and settings.
//
// A turn is one message on the wire: consecutive canonical messages of one role. A plan
// is complete before anything is written. It guarantees:
//
//   - System messages before the first turn are the system prompt.
//   - Neighboring turns of known roles have different roles.
//   - The results for a turn's calls come first in the next turn, in the order of the
//     calls, one for each call.
//   - The conversation starts with a user turn, unless it came from this dialect.
//   - A message in the native form of the wire keeps its bytes, even if others are
//     merged into it. What was sent once must not change when the conversation
//     continues.
//
// Only the [Wire] knows what a part becomes on the wire and what may be sent back in
// native form.
package blockwire

import (
	"slices"
	"strings"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// The roles that all these wire formats share. The role of the model differs.
const (
	User   = "user"
	System = "system"
)

// openingText is the user message for a conversation that does not start with one.
const openingText = "(conversation continues)"

// Rules are the fixed differences between the wire formats.
type Rules struct {
	Dialect dragoman.Dialect
	// Assistant is the role of the model.
	Assistant string
	// List is the message field that holds the blocks.
	List string
	// Turn and Prompt are the names in reports for a turn and for the place of the
	// system prompt.
	Turn, Prompt string
	// SystemTurns means that the wire has system messages inside a conversation;
	// MidSystem, that the target accepts them from any origin.
	SystemTurns, MidSystem bool
	// NoCache means that the wire has no cache breakpoints.
	NoCache bool
	// CachePoint reports whether a block is a cache point, for wire formats whose cache
	// points are blocks that follow the block they belong to. Nil for others.
	CachePoint func(raw []byte) bool
}

// Wire implements what differs between the dialects.
type Wire interface {
	// Add appends the block for a part, or reports that there is none. m is nil for the
	// instructions of the request.
	Add(out []Block, m *dragoman.Message, p dragoman.Part, at extra.Path, role string, rep *dragoman.Report) []Block
	// Complete finishes the blocks that were added for one message.
	Complete(blocks []Block, m *dragoman.Message, at extra.Path, role string, rep *dragoman.Report) []Block
	// Replay returns the native form of a message, if the message did not change and
	// the target may receive it. It is called for the messages in order.
	Replay(m *dragoman.Message) ([]byte, bool)
	// FinishTurn finishes a turn of the model that is not a single message in native form.
	FinishTurn(t *Turn)
}

// Block is one part at its position in a turn.
type Block struct {
	Part dragoman.Part
	At   extra.Path
	// Cache is the cache hint to write on the block, or after it.
	Cache *dragoman.CacheHint
	// Raw is the block in native form; nil if it is written from its part. Mark is the
	// native cache point that follows it.
	Raw, Mark []byte
	// Signature is the signature to write, on a wire where any block can have one.
	Signature string
}

// Is reports whether the part of a block has kind k.
func (b *Block) Is(k string) bool { return b.Part.Kind() == k }

// Turn is one message on the wire: consecutive messages of one role.
type Turn struct {
	Role   string
	Blocks []Block
	// Messages are the messages in the turn; none for a turn that the plan added.
	Messages []*dragoman.Message
	// frame is the native form of the first message, or zero.
	frame frame
}

// Plan is a conversation in the arrangement that the wire requires.
type Plan struct {
	Rules
	// Threaded means that the server stores the earlier conversation.
	Threaded bool

	System []Block
	Turns  []Turn

	wire Wire
	rep  *dragoman.Report
	// after is the index of the first message after the current run of system messages,
	// once it was searched for.
	after int
	// in reads native messages, one after another.
	in jsonwire.Reader
}

// Arrange plans the conversation of a request, except for its ends, which TrimPrefill
// and Open handle.
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
	p.Turns = make([]Turn, 0, len(ms)-first+1) // Open may insert one
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
			wire.FinishTurn(t)
		}
	}
}

// leading adds a message before the first turn to the system prompt.
func (p *Plan) leading(m *dragoman.Message, i int) {
	at := extra.Elem("/messages", i)
	if p.SystemTurns && p.Own(m) || m.Role == dragoman.RoleDeveloper {
		p.rep.Addf(dragoman.Moved, dragoman.Info, at.String(), "a leading %s message written into the %s", m.Role, p.Prompt)
	}
	p.System = append(p.System, p.blocks(m, at, System, p.rep)...)
	p.reportLost(m, at)
	for _, f := range m.Extra.For(p.Dialect) {
		p.rep.Addf(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "a field of a message that became part of the %s", p.Prompt)
	}
}

// message adds one message to the plan: to the previous turn if the roles are equal.
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
	p.reportLost(m, at)
	last := len(p.Turns) - 1
	if last < 0 || p.Turns[last].Role != role || role != User && role != p.Assistant && role != System {
		p.Turns = append(p.Turns, next)
		return
	}
	t := &p.Turns[last]
	t.Blocks = append(t.Blocks, next.Blocks...)
	t.Messages = append(t.Messages, m)
}

// blocks returns the blocks of a message that the wire accepts.
func (p *Plan) blocks(m *dragoman.Message, at extra.Path, role string, rep *dragoman.Report) []Block {
	out := make([]Block, 0, len(m.Parts))
	for i, part := range m.Parts {
		out = p.wire.Add(out, m, part, at.Elem("parts", i), role, rep)
	}
	return p.wire.Complete(out, m, at, role, rep)
}

// reportLost reports the fields of a message that the wire lacks.
func (p *Plan) reportLost(m *dragoman.Message, at extra.Path) {
	extra.Report(p.rep, m.Extra, p.Dialect, at)
	if m.Name != "" {
		p.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/name", "the name %q of the speaker", m.Name)
	}
	if m.Phase != "" {
		p.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %q", m.Phase)
	}
	if m.Cache != nil && p.NoCache {
		p.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: the target caches automatically")
	}
}

// TrimPrefill cuts white space from the end of a response that the model is to
// continue, for an API that rejects it there. Blocks in native form are not changed:
// they are the client's responsibility.
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
	case cut == "": // blank texts are kept next to thinking, but not here
		p.rep.Add(dragoman.Dropped, dragoman.Info, b.At.String(), "a blank text at the end of the last assistant message")
		t.Blocks = t.Blocks[:last]
		p.TrimPrefill()
		return
	}
	p.rep.Add(dragoman.Lowered, dragoman.Info, b.At.String(), "white space cut from the end of the last assistant message")
	trimmed := *text
	trimmed.Text = cut
	b.Part = &trimmed
}

// Open makes a conversation start with a user turn (quirks D17, D38). A conversation
// that came from this dialect is not changed: APIs accept more than their documents
// say, and a compacted or threaded conversation starts with what the server sent.
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
