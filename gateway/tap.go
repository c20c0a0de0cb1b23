package gateway

import (
	"bytes"
	"errors"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// tap watches an answer that is passed on, without a word: whether it came to its
// end, and what was counted. Each event is looked at once, as it passes: at its name, or
// for a member that says so where its dialect names none.
type tap struct {
	codec dialect.Codec
	model string // that was asked for
	// first and last are the events that count tokens, but for those of ending: the ones
	// that may end the answer, and what counts behind them.
	first, last, ending []byte
	// final is the last event, where only what came last shows that nothing is missing.
	final []byte
	// named says that an event has ended the answer by its name.
	named bool
	// head is the first event, or all of them where the last one tells them again, in
	// pieces that need not be copied when more comes; headBytes is how long it is.
	head      [][]byte
	headBytes int
	// eol is the last byte of this server's lines; 0: it is not known yet.
	eol byte
	// open says that the last event lacks its end.
	open bool
	// pieces is how many events came; unsure says that one was too long to be held back, or
	// cannot be read.
	pieces int64
	unsure bool
	// over says that nothing more is to come, failed what the server said that went wrong;
	// nil: nothing.
	over   bool
	failed error
}

func newTap(codec dialect.Codec) *tap { return &tap{codec: codec} }

// whole is how many bytes of buf are whole events.
func (t *tap) whole(buf []byte) int {
	if t.codec.Dialect() == dragoman.Ollama {
		return bytes.LastIndexByte(buf, '\n') + 1
	}
	for i := len(buf) - 1; i > 0; i-- {
		if c := buf[i]; c <= '\r' && isBlank(buf[:i+1]) {
			return i + 1
		}
	}
	return 0
}

// isBlank reports whether p ends with a blank line. Lines end with a line feed, a carriage
// return, or both.
func isBlank(p []byte) bool {
	n := len(p)
	switch before := p[n-2]; {
	case p[n-1] == '\n' && before == '\r':
		return n > 2 && (p[n-3] == '\n' || p[n-3] == '\r')
	case p[n-1] == '\n':
		return before == '\n'
	default:
		return p[n-1] == '\r' && before == '\r' // what follows a line feed is half of a line's end
	}
}

// complete reports whether what a stream ends with is nothing, or an event that only
// lacks its blank line (quirk C18).
func (t *tap) complete(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	if t.codec.Dialect() == dragoman.Ollama || len(rest) == 0 {
		return len(rest) == 0 || jsonwire.Check(rest) == nil
	}
	line := rest[bytes.LastIndexAny(rest, "\r\n")+1:]
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	data = bytes.TrimSpace(data)
	return ok && (string(data) == "[DONE]" || jsonwire.Check(data) == nil)
}

// id is that of the answer, as its first event has it.
func (t *tap) id() (id string) {
	d := t.codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, DeltasOnly: true})
	see := func(ev dragoman.Event) error {
		if e, ok := ev.(*dragoman.ResponseStart); ok {
			id = e.Response.ID
		}
		return nil
	}
	for _, p := range t.head {
		_ = d.Feed(p, see) // what cannot be read has none
	}
	return id
}

// gap is what parts an event from those before it, the last of which may lack its end.
func (t *tap) gap() []byte {
	if t.open {
		return t.blank()
	}
	return nil
}

// blank is what ends an event.
func (t *tap) blank() []byte {
	if t.codec.Dialect() == dragoman.Ollama {
		return []byte("\n")
	}
	return []byte("\n\n")
}

// broken are the events that end a stream with an error. What is open is ended, where the
// dialect's clients want that.
func (t *tap) broken(seed string, e *dragoman.APIError) (events []byte) {
	enc := t.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: seed, Model: t.model})
	d := t.codec.NewStreamDecoder(dialect.DecodeOptions{})
	write := func(ev dragoman.Event) (err error) {
		if _, ok := ev.(*dragoman.StreamError); ok {
			ev = &dragoman.StreamError{Err: e}
		}
		events, err = enc.Encode(events, ev)
		return err
	}
	for _, p := range t.head {
		_ = d.Feed(p, write) // what cannot be read was not said
	}
	if n := len(t.head) - 1; n >= 0 && t.whole(t.head[n]) != len(t.head[n]) {
		_ = d.Feed(t.blank(), write)
	}
	events = events[:0] // it has been said
	_ = d.Close(write)
	if closed, err := enc.Close(events); err == nil {
		events = closed
	}
	return events
}

const (
	// maxHead is how much is kept of the beginning of an answer, maxFinal of its last event
	// and maxEnding of those that may end it, unless one alone is longer: servers that say of
	// every event that it is the last are not remembered for ever.
	maxHead   = 2 << 20
	maxFinal  = 4 << 10
	maxEnding = 64 << 10
	// pieceSize is the least piece of the head.
	pieceSize = 4 << 10
)

// see takes note of whole events.
func (t *tap) see(p []byte) {
	if t.codec.Dialect() == dragoman.OpenAIResponses {
		t.keep(p)
	}
	if t.eol == 0 {
		t.eol = eolOf(p)
	}
	for len(p) > 0 {
		n := t.next(p)
		t.note(p[:n])
		p = p[n:]
	}
}

// eolOf is how the lines of a server end: its own, as no JSON has one within a text.
func eolOf(p []byte) byte {
	if bytes.IndexByte(p, '\n') < 0 && bytes.IndexByte(p, '\r') >= 0 {
		return '\r'
	}
	return '\n'
}

// next is how long the first event of p is.
func (t *tap) next(p []byte) int {
	for at := 0; ; {
		i := bytes.IndexByte(p[at:], t.eol)
		if i < 0 {
			t.open = true
			return len(p)
		}
		at += i + 1
		switch {
		case t.codec.Dialect() == dragoman.Ollama:
		case at < len(p) && p[at] == t.eol:
			at++
		case at+1 < len(p) && p[at] == '\r' && p[at+1] == '\n':
			at += 2
		default:
			continue
		}
		t.open = false
		return at
	}
}

// note takes note of one event.
func (t *tap) note(event []byte) {
	d := t.codec.Dialect()
	name, data := t.parts(event)
	if len(data) == 0 { // a comment, or a blank
		return
	}
	t.pieces++
	if t.head == nil {
		t.head = [][]byte{bytes.Clone(event[:min(len(event), maxHead)])}
	}
	ends, counting := terminates(d, name, data), counts(d, data)
	t.over = t.over || ends && isLast(d, name, data)
	switch {
	case ends && d == dragoman.OpenAIResponses && !counting: // it may be as long as all of the others
		t.named = true
	case ends || counting && len(t.ending) > 0:
		t.named = t.named || d == dragoman.OpenAIResponses
		if len(t.ending)+len(event) > maxEnding {
			t.ending = t.ending[:0]
		}
		t.ending = append(append(t.ending, t.final...), event...)
	case counting && t.first == nil:
		t.first = bytes.Clone(event)
	case counting:
		t.last = append(t.last[:0], event...)
	}
	t.final = t.final[:0]
	if !ends && !counting && !named(d) && len(event) <= maxFinal {
		t.final = append(t.final, event...)
	}
}

// named reports whether a dialect names its events.
func named(d dragoman.Dialect) bool {
	return d == dragoman.Anthropic || d == dragoman.OpenAIResponses
}

// parts are the name of an event, and its data, on as many lines as it has.
func (t *tap) parts(event []byte) (name, data []byte) {
	if t.codec.Dialect() == dragoman.Ollama {
		return nil, bytes.TrimSpace(event)
	}
	for len(event) > 0 {
		if data, ok := bytes.CutPrefix(event, []byte("data:")); ok {
			return name, data
		}
		n := bytes.IndexByte(event, t.eol) + 1
		if n == 0 {
			n = len(event)
		}
		if value, ok := bytes.CutPrefix(event[:n], []byte("event:")); ok {
			name = bytes.TrimSpace(value)
		}
		event = event[n:]
	}
	return name, nil
}

// keep adds events to the head.
func (t *tap) keep(p []byte) {
	p = p[:min(len(p), maxHead-t.headBytes)]
	t.headBytes += len(p)
	for len(p) > 0 {
		last := len(t.head) - 1
		if last < 0 || len(t.head[last]) == cap(t.head[last]) {
			size := min(max(pieceSize, t.headBytes/4), 16*pieceSize)
			t.head, last = append(t.head, make([]byte, 0, size)), last+1
		}
		piece := t.head[last]
		n := min(len(p), cap(piece)-len(piece))
		t.head[last], p = append(piece, p[:n]...), p[n:]
	}
}

// counter is the name of the member that counts tokens, without the quote before it:
// quotes are everywhere, and what begins with one is not found quickly.
func counter(d dragoman.Dialect) []byte {
	switch d {
	case dragoman.Gemini:
		return []byte(`usageMetadata"`)
	case dragoman.Ollama:
		return []byte(`eval_count"`)
	default:
		return []byte(`usage"`)
	}
}

// counts reports whether an event counts tokens. "usage":null does not.
func counts(d dragoman.Dialect, p []byte) bool { return says(p, counter(d)) }

// says reports whether a member of a name, without the quote before it, has a value: not
// null, false or an empty text. Within a text the quote behind a name has a backslash.
func says(p, name []byte) bool {
	for {
		i := bytes.Index(p, name)
		if i < 0 {
			return false
		}
		isName := i > 0 && p[i-1] == '"'
		p = p[i+len(name):]
		if value := bytes.TrimLeft(p[:min(len(p), 8)], ": "); isName && len(value) > 0 && value[0] != 'n' && value[0] != 'f' && !bytes.HasPrefix(value, []byte(`""`)) {
			return true
		}
	}
}

// end reports whether the answer came to its end, and what was counted.
func (t *tap) end() (ended bool, usage dragoman.Usage) {
	// The dialect's own decoder reads what was kept: the arithmetic of counts is its.
	d := t.codec.NewStreamDecoder(dialect.DecodeOptions{NoNative: true, DeltasOnly: true})
	see := func(ev dragoman.Event) error {
		switch ev := ev.(type) {
		case *dragoman.ResponseStart:
			usage = usage.Merge(ev.Response.Usage)
		case *dragoman.ResponseEnd:
			ended, usage = true, usage.Merge(ev.Usage)
		case *dragoman.StreamError:
			usage = usage.Merge(ev.Usage)
			if ev.Err != nil && !errors.Is(ev.Err, dragoman.ErrIncompleteStream) {
				ended, t.failed = true, ev.Err // the server said what went wrong
			}
		}
		return nil
	}
	for _, p := range [][]byte{t.first, t.last, t.ending, t.final} {
		if err := d.Feed(p, see); err != nil {
			t.unsure = true
			return t.named, usage
		}
	}
	_ = d.Close(see) // it says what see has heard
	return ended || t.named, usage
}

// terminates reports whether an event may end an answer.
func terminates(d dragoman.Dialect, name, data []byte) bool {
	switch d {
	case dragoman.Anthropic:
		return isNamed(name, data, "message_delta", "message_stop", "error")
	case dragoman.OpenAIResponses:
		return isNamed(name, data, "response.completed", "response.incomplete", "response.failed", "error")
	case dragoman.Gemini:
		return says(data, []byte(`finishReason"`))
	case dragoman.Ollama:
		return says(data, []byte(`done"`))
	default:
		return says(data, []byte(`finish_reason"`)) || bytes.HasPrefix(bytes.TrimLeft(data[:min(len(data), 16)], " "), []byte("[DONE]"))
	}
}

// isLast reports whether nothing comes behind an event that may end an answer. Gemini's
// servers do not say so.
func isLast(d dragoman.Dialect, name, data []byte) bool {
	switch d {
	case dragoman.Anthropic:
		return isNamed(name, data, "message_stop", "error")
	case dragoman.OpenAIChat:
		return bytes.Contains(data[:min(len(data), 16)], []byte("[DONE]"))
	default:
		return d != dragoman.Gemini
	}
}

// isNamed reports whether an event has one of some names. Servers leave out the line that
// has it, or write the same in all: then the data says it, at its beginning unless a server
// sorts its members.
func isNamed(name, data []byte, names ...string) bool {
	if len(name) == 0 || string(name) == "message" {
		begins := bytes.TrimLeft(data[:min(len(data), 64)], " {")
		typ, ok := bytes.CutPrefix(begins, []byte(`"type"`))
		if !ok {
			return slices.ContainsFunc(names, func(n string) bool {
				return bytes.Contains(data, []byte(`"type":"`+n+`"`)) || bytes.Contains(data, []byte(`"type": "`+n+`"`))
			})
		}
		name, _, _ = bytes.Cut(bytes.TrimLeft(typ, `: "`), []byte{'"'})
	}
	return slices.ContainsFunc(names, func(n string) bool { return string(name) == n })
}
