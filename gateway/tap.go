package gateway

import (
	"bytes"
	"errors"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// tap watches an answer that is passed on, without a word: whether it came to its
// end, and what was counted. It looks at few bytes more than once.
type tap struct {
	codec dialect.Codec
	// first and last are the events that count tokens, tail are the last bytes.
	first, last, tail []byte
	// head is the first event, or all of them where the last one tells them again, in
	// pieces that need not be copied when more comes; headBytes is how long it is.
	head      [][]byte
	headBytes int
	// pieces is how many events came; unsure says that one was too long to be held back, or
	// cannot be read.
	pieces int64
	unsure bool
}

func newTap(codec dialect.Codec) *tap { return &tap{codec: codec} }

// whole is how many bytes of buf are whole events.
func (t *tap) whole(buf []byte) int {
	switch {
	case t.codec.Dialect() == dragoman.Ollama:
		return bytes.LastIndexByte(buf, '\n') + 1
	case bytes.HasSuffix(buf, []byte("\n\n")), bytes.HasSuffix(buf, []byte("\r\n\r\n")):
		return len(buf)
	}
	if i := bytes.LastIndex(buf, []byte("\n\n")); i >= 0 {
		return i + 2
	}
	if i := bytes.LastIndex(buf, []byte("\r\n\r\n")); i >= 0 {
		return i + 4
	}
	return 0
}

// complete reports whether what a stream ends with is nothing, or an event that only
// lacks its blank line (quirk C18).
func (t *tap) complete(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	if t.codec.Dialect() == dragoman.Ollama || len(rest) == 0 {
		return len(rest) == 0 || jsonwire.Check(rest) == nil
	}
	line := rest[bytes.LastIndexByte(rest, '\n')+1:]
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
func (t *tap) gap(before []byte) []byte {
	end := []byte("\n\n")
	if t.codec.Dialect() == dragoman.Ollama {
		end = end[:1]
	}
	if t.whole(before) == len(before) {
		return nil
	}
	return end
}

// broken are the events that end a stream with an error. What is open is ended, where the
// dialect's clients want that.
func (t *tap) broken(seed string, e *dragoman.APIError) (events []byte) {
	enc := t.codec.NewStreamEncoder(dialect.EncodeOptions{Seed: seed})
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
	if n := len(t.head); n > 0 {
		_ = d.Feed(t.gap(t.head[n-1]), write)
	}
	events = events[:0] // it has been said
	_ = d.Close(write)
	if closed, err := enc.Close(events); err == nil {
		events = closed
	}
	return events
}

const (
	// tailSize is how much of the end of an answer is looked at, maxHead how much is kept
	// of its beginning.
	tailSize = 4 << 10
	maxHead  = 2 << 20
	// pieceSize is the least piece of the head.
	pieceSize = 4 << 10
)

// see takes note of whole events.
func (t *tap) see(p []byte) {
	if t.codec.Dialect() == dragoman.Ollama {
		t.pieces += int64(bytes.Count(p, []byte("\n")))
	} else {
		t.pieces += int64(bytes.Count(p, []byte("data:")))
	}
	switch {
	case t.codec.Dialect() == dragoman.OpenAIResponses:
		t.keep(p)
	case t.head == nil:
		first := p
		if i := bytes.Index(p, []byte("\n\n")); i >= 0 {
			first = p[:i+2]
		}
		if t.codec.Dialect() != dragoman.Ollama && !bytes.Contains(first, []byte("data:")) {
			break // a comment
		}
		t.head = [][]byte{bytes.Clone(first[:min(len(first), maxHead)])}
	}
	if len(p) >= tailSize {
		t.tail = append(t.tail[:0], p[len(p)-tailSize:]...)
	} else {
		if len(t.tail)+len(p) > 2*tailSize {
			t.tail = append(t.tail[:0], t.tail[len(t.tail)-tailSize:]...)
		}
		t.tail = append(t.tail, p...)
	}
	for rest := p; counts(t.codec.Dialect(), rest); {
		event, more := t.eventWith(rest)
		if t.last = append(t.last[:0], event...); t.first == nil {
			t.first = bytes.Clone(event)
		}
		rest = more
	}
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
func counts(d dragoman.Dialect, p []byte) bool { return counterAt(d, p) >= 0 }

func counterAt(d dragoman.Dialect, p []byte) int {
	name := counter(d)
	for at := 0; ; {
		i := bytes.Index(p[at:], name)
		if i < 0 {
			return -1
		}
		begins := at + i
		at = begins + len(name)
		if begins == 0 || p[begins-1] != '"' {
			continue
		}
		if rest := bytes.TrimLeft(p[at:min(len(p), at+8)], ": "); len(rest) > 0 && rest[0] != 'n' {
			return at
		}
	}
}

// eventWith is the first event of p that counts tokens, and what stands behind it.
func (t *tap) eventWith(p []byte) (event, rest []byte) {
	at := counterAt(t.codec.Dialect(), p)
	end := []byte("\n\n")
	if t.codec.Dialect() == dragoman.Ollama {
		end = end[:1]
	} else if bytes.Contains(p, []byte("\r\n\r\n")) {
		end = []byte("\r\n\r\n")
	}
	from := max(0, bytes.LastIndex(p[:at], end)+len(end))
	if bytes.LastIndex(p[:at], end) < 0 {
		from = 0
	}
	to := len(p)
	if i := bytes.Index(p[at:], end); i >= 0 {
		to = at + i + len(end)
	}
	return p[from:to], p[to:]
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
				ended = true // the server said what went wrong
			}
		}
		return nil
	}
	tail := t.terminal()
	pieces := [][]byte{t.first, t.last, tail}
	if bytes.Equal(t.first, t.last) || bytes.Contains(tail, t.last) {
		pieces[1] = nil
	}
	if bytes.Contains(tail, t.first) {
		pieces[0] = nil
	}
	for _, p := range pieces {
		if err := d.Feed(p, see); err != nil {
			t.unsure = true
			return false, usage
		}
	}
	_ = d.Close(see) // it says what see has heard
	return ended, usage
}

// terminal are the whole events of the tail that end answers; of dialects that name
// their events the others would not be understood without those before.
func (t *tap) terminal() []byte {
	tail := t.tail
	if t.codec.Dialect() == dragoman.Ollama {
		if i := bytes.IndexByte(tail, '\n'); i >= 0 && len(tail) > tailSize/2 {
			tail = tail[i+1:]
		}
		return tail
	}
	var out []byte
	for event := range bytes.SplitAfterSeq(bytes.ReplaceAll(tail, []byte("\r\n"), []byte("\n")), []byte("\n\n")) {
		if terminates(t.codec.Dialect(), event) {
			out = append(out, event...)
		}
	}
	return out
}

// terminates reports whether an event may end an answer. Servers leave out its name, or
// put an id or a comment before it.
func terminates(d dragoman.Dialect, event []byte) bool {
	has := func(s string) bool { return bytes.HasPrefix(event, []byte(s)) || bytes.Contains(event, []byte("\n"+s)) }
	name := func(s string) bool {
		if !bytes.Contains(event, []byte(s)) { // nearly all of them: the rest costs more
			return false
		}
		return has("event: "+s) || has("event:"+s) || bytes.Contains(event, []byte(`"type":"`+s+`"`)) || bytes.Contains(event, []byte(`"type": "`+s+`"`))
	}
	switch d {
	case dragoman.Anthropic:
		return name("message_delta") || name("message_stop") || name("error")
	case dragoman.OpenAIResponses:
		return name("response.completed") || name("response.incomplete") || name("response.failed") || name("error")
	default:
		return has("data:")
	}
}
