package provider

import (
	"iter"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
)

// thinkTags is the way in which a server marks thinking within its text (quirk G7).
type thinkTags string

// The values of thinkTags. The zero value leaves texts unchanged.
const (
	thinkTagsOff = ""
	// thinkTagsMarked: the response begins with <think>.
	thinkTagsMarked = "marked"
	// thinkTagsOpen: the response begins within thinking, because the model's template has
	// opened it.
	thinkTagsOpen = "open"
)

// The marks at the beginning and end of thinking. A call also ends it, and stays in the text.
var (
	thinkBegins = []string{"<think>", "<thinking>"}
	thinkEnds   = []string{"</think>", "</thinking>"}
	thinkCall   = "<tool_call>"
)

// maxLeadingSpace limits the white space before thinking: after more of it, no thinking begins.
const maxLeadingSpace = 64

// cutOpening removes the opening mark from a text. thinks reports whether the text is thinking.
// sure is false if more text may change the result.
func (t thinkTags) cutOpening(text string) (rest string, thinks, sure bool) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	lead := len(text) - len(trimmed)
	for _, tag := range thinkBegins {
		if rest, ok := strings.CutPrefix(trimmed, tag); ok && lead <= maxLeadingSpace {
			return rest, true, true
		}
	}
	sure = lead > maxLeadingSpace || !isPrefixOf(trimmed, thinkBegins)
	if t == thinkTagsOpen { // some models write the mark nevertheless
		return trimmed, true, sure
	}
	return text, false, sure
}

// isPrefixOf reports whether a text is empty or a prefix of one of the strings.
func isPrefixOf(text string, of []string) bool {
	for _, s := range of {
		if strings.HasPrefix(s, text) {
			return true
		}
	}
	return false
}

// endOfThinking finds the end of thinking: before is thinking, behind is text. If it is not
// found, held is the number of bytes at the end that may be the beginning of a mark.
func endOfThinking(text string) (before, behind string, found bool, held int) {
	at, next := len(text), len(text)
	for _, tag := range thinkEnds {
		if i := strings.Index(text, tag); i >= 0 && i < at {
			at, next = i, i+len(tag)
		}
	}
	if i := strings.Index(text, thinkCall); i >= 0 && i < at {
		at, next = i, i
	}
	if at < len(text) {
		return text[:at], text[next:], true, 0
	}
	for _, tag := range append([]string{thinkCall}, thinkEnds...) {
		for n := min(len(tag)-1, len(text)); n > held; n-- {
			if strings.HasSuffix(text, tag[:n]) {
				held = n
				break
			}
		}
	}
	return text, "", false, held
}

// separate separates the thinking of a complete text from the rest.
func (t thinkTags) separate(text string) (thought, rest string, thinks bool) {
	inner, thinks, _ := t.cutOpening(text)
	if !thinks {
		return "", text, false
	}
	thought, rest, _, _ = endOfThinking(inner)
	return thought, strings.TrimLeft(rest, "\r\n"), true
}

// splitResponse moves the thinking in a complete response into reasoning parts.
func (t thinkTags) splitResponse(resp *dragoman.Response) {
	if t == thinkTagsOff {
		return
	}
	t.splitMessages(resp.Output)
	for i := range resp.Alternatives {
		t.splitMessages(resp.Alternatives[i].Output)
	}
}

// splitMessages splits the first text of a response.
func (t thinkTags) splitMessages(output []dragoman.Message) {
	for i := range output {
		for j, p := range output[i].Parts {
			text, ok := p.(*dragoman.Text)
			if !ok {
				continue
			}
			thought, rest, thinks := t.separate(text.Text)
			if !thinks {
				return
			}
			parts := append([]dragoman.Part(nil), output[i].Parts[:j]...)
			parts = append(parts, &dragoman.Reasoning{Text: thought})
			if rest != "" {
				own := *text
				own.Text = rest
				parts = append(parts, &own)
			}
			output[i].Parts = append(parts, output[i].Parts[j+1:]...)
			output[i].Native = nil // it no longer matches
			return
		}
	}
}

// split does the same for the events of a stream.
func (t thinkTags) split(events iter.Seq2[dragoman.Event, error]) iter.Seq2[dragoman.Event, error] {
	if t == thinkTagsOff {
		return events
	}
	return func(yield func(dragoman.Event, error) bool) {
		choices := map[int]*splitChoice{}
		emit := func(ev dragoman.Event) bool { return yield(ev, nil) }
		for ev, err := range events {
			if err != nil {
				yield(nil, err)
				return
			}
			of := choiceOf(ev)
			if of < 0 {
				if !yield(ev, nil) {
					return
				}
				continue
			}
			c := choices[of]
			if c == nil {
				c = &splitChoice{tags: t, places: map[int]int{}, firstText: -1}
				choices[of] = c
			}
			if !c.handle(ev, emit) {
				return
			}
		}
	}
}

// choiceOf returns the choice of a part event; -1 for other events.
func choiceOf(ev dragoman.Event) int {
	switch ev := ev.(type) {
	case *dragoman.PartStart:
		return ev.Choice
	case *dragoman.PartDelta:
		return ev.Choice
	case *dragoman.PartEnd:
		return ev.Choice
	default:
		return -1
	}
}

// splitChoice is one choice of a stream whose first text may begin with thinking.
type splitChoice struct {
	tags thinkTags
	// places maps old part indexes to new ones; next is the next new index.
	places map[int]int
	next   int
	// firstText is the old index of the first text; -1 if there was none yet.
	firstText int
	start     *dragoman.PartStart
	phase     splitPhase
	// held is text that is not yet known to be thinking or text. thinking is the new index of
	// the thinking.
	held     string
	thinking int
	// fields are unknown fields of fragments, to be added to the next text events.
	fields []*dragoman.Extra
}

type splitPhase int

const (
	phaseUndecided splitPhase = iota
	inThinking
	afterThinking // the text has not begun
	inText
)

// assignIndex returns the new index of a part.
func (c *splitChoice) assignIndex(old int) int {
	c.places[old] = c.next
	c.next++
	return c.places[old]
}

func (c *splitChoice) handle(ev dragoman.Event, emit func(dragoman.Event) bool) bool {
	switch ev := ev.(type) {
	case *dragoman.PartStart:
		if _, isText := ev.Part.(*dragoman.Text); isText && c.firstText < 0 {
			c.firstText, c.start = ev.Index, ev
			return true // until its kind is known
		}
		own := *ev
		own.Index = c.assignIndex(ev.Index)
		return emit(&own)
	case *dragoman.PartDelta:
		if ev.Index == c.firstText {
			if ev.Extra != nil {
				c.fields = append(c.fields, ev.Extra)
			}
			return c.feed(ev.Text, ev.Choice, emit)
		}
		own := *ev
		own.Index = c.places[ev.Index]
		return emit(&own)
	case *dragoman.PartEnd:
		if ev.Index == c.firstText {
			return c.finish(ev, emit)
		}
		own := *ev
		own.Index = c.places[ev.Index]
		return emit(&own)
	}
	return true
}

// feed adds a fragment of the text.
func (c *splitChoice) feed(text string, choice int, emit func(dragoman.Event) bool) bool {
	if c.phase == phaseUndecided {
		c.held += text
		rest, thinks, sure := c.tags.cutOpening(c.held)
		if !sure {
			return true
		}
		c.held, text = "", rest
		if !thinks {
			return c.startText(emit) && c.emitText(choice, text, emit)
		}
		if !c.startThinking(choice, emit) {
			return false
		}
	}
	if c.phase == inThinking {
		before, behind, found, held := endOfThinking(c.held + text)
		c.held = before[len(before)-held:]
		if !c.emitDelta(choice, c.thinking, codes.KindReasoning, before[:len(before)-held], emit) {
			return false
		}
		if !found {
			return true
		}
		c.phase, text = afterThinking, behind
	}
	return c.emitText(choice, text, emit)
}

// emitText emits text, without the line breaks after thinking.
func (c *splitChoice) emitText(choice int, text string, emit func(dragoman.Event) bool) bool {
	if c.phase == afterThinking {
		if text = strings.TrimLeft(text, "\r\n"); text == "" {
			return true
		}
		if !c.startText(emit) {
			return false
		}
	}
	return c.emitDelta(choice, c.places[c.firstText], codes.KindText, text, emit)
}

func (c *splitChoice) emitDelta(choice, index int, kind string, text string, emit func(dragoman.Event) bool) bool {
	if text == "" {
		return true
	}
	ev := &dragoman.PartDelta{Choice: choice, Index: index, Kind: kind, Text: text}
	if len(c.fields) > 0 {
		ev.Extra, c.fields = c.fields[0], c.fields[1:]
	}
	return emit(ev)
}

// startThinking starts the thinking part, at the index of the text.
func (c *splitChoice) startThinking(choice int, emit func(dragoman.Event) bool) bool {
	c.phase, c.thinking = inThinking, c.next
	c.next++
	start := &dragoman.PartStart{Choice: choice, Index: c.thinking, Message: c.start.Message, Part: &dragoman.Reasoning{}, Header: c.start.Header}
	c.start.Header = nil
	return emit(start)
}

// startText starts the text part.
func (c *splitChoice) startText(emit func(dragoman.Event) bool) bool {
	c.phase = inText
	own := *c.start
	own.Index = c.assignIndex(c.firstText)
	return emit(&own)
}

// finish ends the text part and the thinking before it.
func (c *splitChoice) finish(ev *dragoman.PartEnd, emit func(dragoman.Event) bool) bool {
	own := *ev
	text, ok := ev.Part.(*dragoman.Text)
	if !ok { // there was no text
		text = &dragoman.Text{}
	}
	thought, rest, thinks := c.tags.separate(text.Text)
	if c.phase == phaseUndecided { // all of the text was held
		if thinks && !c.startThinking(ev.Choice, emit) {
			return false
		}
		if !thinks && (!c.startText(emit) || !c.emitText(ev.Choice, text.Text, emit)) {
			return false
		}
		if thinks && !c.emitDelta(ev.Choice, c.thinking, codes.KindReasoning, thought, emit) {
			return false
		}
		c.held = ""
	}
	if c.phase == inThinking && !c.emitDelta(ev.Choice, c.thinking, codes.KindReasoning, c.held, emit) {
		return false
	}
	if thinks {
		end := &dragoman.PartEnd{Choice: ev.Choice, Index: c.thinking, Part: &dragoman.Reasoning{Text: thought}}
		if c.phase != inText {
			end.Header = ev.Header
		}
		if !emit(end) {
			return false
		}
		if c.phase != inText {
			return true
		}
		seen := *text
		seen.Text = rest
		own.Part = &seen
	}
	own.Index = c.places[c.firstText]
	return emit(&own)
}
