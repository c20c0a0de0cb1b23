// Package stream keeps the promises that every stream decoder makes about its
// events: parts get growing indexes, every start gets one end, deltas come in
// between, text is accumulated in linear time.
package stream

import (
	"bytes"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// MaxParts bounds the parts of one response (quirk C4).
const MaxParts = 4096

// partCost is about what a part takes beside its text, with those who read the
// events: without it, parts of one byte would have no bound to speak of. The
// first freeParts, which are more than most answers have, do not count.
const (
	partCost  = 256
	freeParts = 64
)

// Parts hands out parts of one choice in order of their start.
type Parts struct {
	Choice int
	emit   func(dragoman.Event) error
	err    error
	next   int
	open   []*Part
	// DeltasOnly keeps no text of parts other than calls: their ends have none.
	DeltasOnly bool
	// Bound is asked before text is kept. What it refuses is no event either.
	Bound *Bound
	sums  int // summaries, over all parts
	// final is the header for parts that end later without a header of their own, or nil.
	// finalSent is set once a part ended with it.
	final     *dragoman.Message
	finalSent bool
}

// Part is a part that is being streamed.
type Part struct {
	// Value is the part itself; its owner fills in all but the streamed text
	// before End.
	Value dragoman.Part
	Index int
	// Text is what the deltas brought so far.
	Text []byte
	// Summary collects reasoning summaries, by position.
	Summary [][]byte
	// Header, when set before End, replaces that of the message's start.
	Header *dragoman.Message
	// Extra, when set before End, is that of the event.
	Extra  *dragoman.Extra
	owner  *Parts
	ended  bool
	begins byte // the first of the arguments of a call; 0: only blanks came
}

// Use sets where events go until the next call, as emit functions live for one
// Feed only. It clears the error.
func (p *Parts) Use(emit func(dragoman.Event) error) { p.emit, p.err = emit, nil }

// Err returns the first error of emit.
func (p *Parts) Err() error { return p.err }

// Send emits an event of the whole response, after those of its parts so far.
func (p *Parts) Send(ev dragoman.Event) { p.send(ev) }

func (p *Parts) send(ev dragoman.Event) {
	if p.err == nil {
		p.err = p.emit(ev)
	}
}

// Start opens a part. skeleton is what consumers see first, value what End
// will complete and send; they must be different values.
func (p *Parts) Start(message int, header *dragoman.Message, skeleton, value dragoman.Part) *Part {
	part := &Part{Value: value, Index: p.next, owner: p}
	p.next++
	if p.next > freeParts && (!p.DeltasOnly || value.Kind() == codes.KindToolCall) {
		p.Bound.Take(partCost)
	}
	p.open = append(p.open, part)
	p.send(&dragoman.PartStart{Choice: p.Choice, Index: part.Index, Message: message, Part: skeleton, Header: header})
	return part
}

// Count returns how many parts were started.
func (p *Parts) Count() int { return p.next }

// Whole opens and ends a part at once.
func (p *Parts) Whole(message int, header *dragoman.Message, part dragoman.Part) {
	p.Start(message, header, part, part).End()
}

// Append adds a fragment; an empty one is not an event. Arguments of a call are events from
// where they begin an object: servers also send null, an empty text or an object that is
// quoted, which end as another text than they came (quirks B2, B3).
func (p *Part) Append(text string) {
	if p == nil || p.ended || text == "" {
		return
	}
	kind := p.Value.Kind()
	if !p.owner.DeltasOnly || kind == codes.KindToolCall {
		if !p.owner.Bound.Take(len(text)) {
			return
		}
		p.Text = Grow(p.Text, text)
	}
	if call, ok := p.Value.(*dragoman.ToolCall); ok && p.begins != '{' && call.Payload == codes.PayloadObject {
		if p.begin(text); p.begins != '{' {
			return
		}
		text = string(p.Text)
	}
	p.owner.send(&dragoman.PartDelta{Choice: p.owner.Choice, Index: p.Index, Kind: kind, Text: text})
}

// begin finds out what arguments begin with, in the fragment that was added last.
func (p *Part) begin(text string) {
	if text = strings.TrimLeft(text, " \t\r\n"); p.begins == 0 && text != "" {
		p.begins = text[0]
	}
}

// Tell adds a fragment that its owner keeps, and counts, by itself: it is only
// an event.
func (p *Part) Tell(text string) {
	if p == nil || p.ended || text == "" || p.owner.Bound.Err() != nil {
		return
	}
	p.owner.send(&dragoman.PartDelta{Choice: p.owner.Choice, Index: p.Index, Kind: p.Value.Kind(), Text: text})
}

// Hold adds a fragment without an event, for text that means something else on
// the wire than in the canonical part. What the deltas leave out comes with
// the end.
func (p *Part) Hold(text string) {
	if p != nil && !p.ended && p.owner.Bound.Take(len(text)) {
		p.Text = Grow(p.Text, text)
	}
}

// Complete says that no fragment follows, though the end does not come yet: what
// was taken for more of the text is given back.
func (p *Part) Complete() {
	if p != nil && cap(p.Text)-len(p.Text) > 1<<10 {
		p.Text = bytes.Clone(p.Text)
	}
}

// Grow appends. A buffer that is full is doubled, where append would enlarge a
// long text by a quarter at a time and copy it over and over.
func Grow(b []byte, text string) []byte {
	if need := len(b) + len(text); need > cap(b) {
		b = append(make([]byte, 0, max(need, 2*cap(b), 64)), b...)
	}
	return append(b, text...)
}

// AppendSummary adds a fragment to the n-th summary, counted from 0. MaxParts
// bounds the summaries of all parts together; what goes beyond is ignored.
func (p *Part) AppendSummary(n int, text string) {
	if p == nil || p.ended || text == "" || n < 0 || n-len(p.Summary) >= MaxParts-p.owner.sums {
		return
	}
	for len(p.Summary) <= n {
		p.Summary = append(p.Summary, nil)
		p.owner.sums++
	}
	if !p.owner.DeltasOnly {
		if !p.owner.Bound.Take(len(text)) {
			return
		}
		p.Summary[n] = Grow(p.Summary[n], text)
	}
	p.owner.send(&dragoman.PartDelta{Choice: p.owner.Choice, Index: p.Index, Kind: p.Value.Kind(), Text: text, Summary: n + 1})
}

// Carrier returns a delta without text, which carries unknown fields; nil if the
// part was closed.
func (p *Part) Carrier() *dragoman.PartDelta {
	if p.Ended() {
		return nil
	}
	return &dragoman.PartDelta{Choice: p.owner.Choice, Index: p.Index, Kind: p.Value.Kind()}
}

// Carrier is [Part.Carrier] of the part that was started last and is open.
func (p *Parts) Carrier() *dragoman.PartDelta {
	if len(p.open) == 0 {
		return nil
	}
	return p.open[len(p.open)-1].Carrier()
}

// Ended reports whether the part was closed.
func (p *Part) Ended() bool { return p == nil || p.ended }

// End closes the part with Value; a second call does nothing.
func (p *Part) End() {
	if p == nil || p.ended {
		return
	}
	p.ended = true
	switch v := p.Value.(type) {
	case *dragoman.Text:
		if v.Text == "" {
			v.Text = string(p.Text)
		}
	case *dragoman.Refusal:
		if v.Text == "" {
			v.Text = string(p.Text)
		}
	case *dragoman.Reasoning:
		if v.Text == "" {
			v.Text = string(p.Text)
		}
		if v.Summary == nil {
			for _, s := range p.Summary {
				v.Summary = append(v.Summary, string(s))
			}
		}
	}
	for i, o := range p.owner.open {
		if o == p {
			p.owner.open = append(p.owner.open[:i], p.owner.open[i+1:]...)
			break
		}
	}
	p.Text, p.Summary = nil, nil // Value has them
	header := p.Header
	if header == nil && p.owner.final != nil {
		header, p.owner.finalSent = p.owner.final, true
	}
	p.owner.send(&dragoman.PartEnd{Choice: p.owner.Choice, Index: p.Index, Part: p.Value, Header: header, Extra: p.Extra})
}

// Finish sets unknown fields of the message that all parts ending later carry in their
// header.
func (p *Parts) Finish(fields *dragoman.Extra, origin *dragoman.Origin) {
	if fields != nil {
		p.final = &dragoman.Message{Role: dragoman.RoleAssistant, Origin: origin, Extra: fields}
	}
}

// Unfinished reports whether no part has carried the fields of Finish.
func (p *Parts) Unfinished() bool { return p.final != nil && !p.finalSent }

// EndAll closes what is open, in order of start (quirk C39).
func (p *Parts) EndAll() {
	for len(p.open) > 0 {
		p.open[0].End()
	}
}
