// Package stream implements what every stream decoder guarantees about its events:
// parts have increasing indexes, every start has one end, deltas come in between, and
// text is accumulated in linear time.
package stream

import (
	"bytes"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// MaxParts limits the parts of one response (quirk C4).
const MaxParts = 4096

// partCost is the approximate memory of a part in addition to its text, including that
// of event consumers. Without it, parts of one byte would be practically unlimited. The
// first freeParts, more than most responses have, do not count.
const (
	partCost  = 256
	freeParts = 64
)

// Parts creates the parts of one choice in order of their start.
type Parts struct {
	Choice int
	emit   func(dragoman.Event) error
	err    error
	next   int
	open   []*Part
	// DeltasOnly stores no text of parts other than calls: their ends have no text.
	DeltasOnly bool
	// Bound is charged before text is stored. Text that it refuses is not emitted
	// either.
	Bound *Bound
	sums  int // number of summaries of all parts
	// final is the header for parts that end later without a header of their own, or nil.
	// finalSent is set once a part ended with it.
	final     *dragoman.Message
	finalSent bool
}

// Part is a part that is being streamed.
type Part struct {
	// Value is the part itself. Its owner fills in everything except the streamed text
	// before End.
	Value dragoman.Part
	Index int
	// Text is the text of the deltas so far.
	Text []byte
	// Summary collects reasoning summaries, by position.
	Summary [][]byte
	// Header, if set before End, replaces the header of the message's start.
	Header *dragoman.Message
	// Extra, if set before End, is the Extra of the end event.
	Extra  *dragoman.Extra
	owner  *Parts
	ended  bool
	begins byte // first byte of call arguments; 0 while only white space came
}

// Use sets the destination of events until the next call, because emit functions are
// valid for one Feed only. It clears the error.
func (p *Parts) Use(emit func(dragoman.Event) error) { p.emit, p.err = emit, nil }

// Err returns the first error of emit.
func (p *Parts) Err() error { return p.err }

// Send emits an event of the whole response, after the events of its parts so far.
func (p *Parts) Send(ev dragoman.Event) { p.send(ev) }

func (p *Parts) send(ev dragoman.Event) {
	if p.err == nil {
		p.err = p.emit(ev)
	}
}

// Start opens a part. Consumers see skeleton first; End completes and sends value. The
// two must be different values.
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

// Count returns the number of parts that were started.
func (p *Parts) Count() int { return p.next }

// Whole opens and ends a part.
func (p *Parts) Whole(message int, header *dragoman.Message, part dragoman.Part) {
	p.Start(message, header, part, part).End()
}

// Append adds a fragment; an empty one is not emitted. Call arguments are emitted only
// once they begin an object: servers also send null, an empty text or a quoted object,
// whose final text differs from what they sent (quirks B2, B3).
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

// begin determines the first byte of the arguments from the last fragment.
func (p *Part) begin(text string) {
	if text = strings.TrimLeft(text, " \t\r\n"); p.begins == 0 && text != "" {
		p.begins = text[0]
	}
}

// Emit emits a fragment without storing it: the owner stores and counts it itself.
func (p *Part) Emit(text string) {
	if p == nil || p.ended || text == "" || p.owner.Bound.Err() != nil {
		return
	}
	p.owner.send(&dragoman.PartDelta{Choice: p.owner.Choice, Index: p.Index, Kind: p.Value.Kind(), Text: text})
}

// Hold adds a fragment without an event, for text that has another meaning on the wire
// than in the canonical part. The end of the part supplies text that the deltas lack.
func (p *Part) Hold(text string) {
	if p != nil && !p.ended && p.owner.Bound.Take(len(text)) {
		p.Text = Grow(p.Text, text)
	}
}

// Complete declares that no fragment follows, although the part does not end yet. It
// frees the spare capacity of the text.
func (p *Part) Complete() {
	if p != nil && cap(p.Text)-len(p.Text) > 1<<10 {
		p.Text = bytes.Clone(p.Text)
	}
}

// Grow appends text. It doubles a full buffer, because append would grow a long text by
// only a quarter and copy it too often.
func Grow(b []byte, text string) []byte {
	if need := len(b) + len(text); need > cap(b) {
		b = append(make([]byte, 0, max(need, 2*cap(b), 64)), b...)
	}
	return append(b, text...)
}

// AppendSummary adds a fragment to the n-th summary, counted from 0. MaxParts limits
// the summaries of all parts together; anything beyond is ignored.
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

// Carrier returns a delta without text, to carry unknown fields. It returns nil if the
// part has ended.
func (p *Part) Carrier() *dragoman.PartDelta {
	if p.Ended() {
		return nil
	}
	return &dragoman.PartDelta{Choice: p.owner.Choice, Index: p.Index, Kind: p.Value.Kind()}
}

// Carrier is [Part.Carrier] for the open part that was started last.
func (p *Parts) Carrier() *dragoman.PartDelta {
	if len(p.open) == 0 {
		return nil
	}
	return p.open[len(p.open)-1].Carrier()
}

// Ended reports whether the part has ended.
func (p *Part) Ended() bool { return p == nil || p.ended }

// End ends the part with Value; a second call does nothing.
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

// Finish sets unknown fields of the message. All parts that end later carry them in
// their header.
func (p *Parts) Finish(fields *dragoman.Extra, origin *dragoman.Origin) {
	if fields != nil {
		p.final = &dragoman.Message{Role: dragoman.RoleAssistant, Origin: origin, Extra: fields}
	}
}

// Unfinished reports whether no part has carried the fields of Finish.
func (p *Parts) Unfinished() bool { return p.final != nil && !p.finalSent }

// EndAll ends the open parts in order of start (quirk C39).
func (p *Parts) EndAll() {
	for len(p.open) > 0 {
		p.open[0].End()
	}
}
