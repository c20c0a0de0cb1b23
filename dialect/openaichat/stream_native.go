package openaichat

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/sse"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// shownCalls are the calls of a choice that native chunks told of. Where such a
// chunk began a call and events have to go on with it, what is written must meet
// that call on the client's side and no other.
type shownCalls struct {
	calls []*shownCall
	next  int64 // the first index that is free
}

// shownCall is what native chunks told of a call.
type shownCall struct {
	id      string
	name    []byte
	index   int64  // -1 where it has none of its own
	legacy  bool   // the older function_call, of which a choice has one
	claimed bool   // its part has started
	args    []byte // of a call whose part has not: its name may come behind them
}

// shownTo returns what the client of a choice was shown.
func (e *streamEncoder) shownTo(choice int) *shownCalls {
	s := e.shown[choice]
	if s == nil {
		s = &shownCalls{}
		if e.shown == nil {
			e.shown = map[int]*shownCalls{}
		}
		e.shown[choice] = s
	}
	return s
}

// chunk writes a native event, with the model that the caller asked for; every
// other byte stays.
func (e *streamEncoder) chunk(dst, raw []byte) []byte {
	start, end := dataLine(raw)
	doc := raw[start:end]
	// The marker is the whole of the data. A text that holds the same word is not
	// one (quirk J4).
	e.done = e.done || string(bytes.TrimSpace(doc)) == "[DONE]"
	e.last = append(e.last[:0], raw...)
	switch e.unseen = false; {
	case bytes.Contains(raw[end:], []byte("data:")):
		e.seeLines(raw)
	case beginsCall(doc):
		e.see(doc)
	default:
		e.unseen = bytes.Contains(doc, []byte(`"tool_calls"`))
	}
	if e.o.Model != "" && len(doc) > 0 {
		if out, err := jsonwire.ReplaceString(doc, e.o.Model, []string{"model"}); err == nil {
			doc = out
		}
	}
	dst = append(dst, raw[:start]...)
	dst = append(dst, doc...)
	return append(dst, raw[end:]...)
}

// seeNameless takes note of the last native chunk where no event followed it: it
// went on with a call that nobody has named yet.
func (e *streamEncoder) seeNameless() {
	if e.unseen {
		e.unseen = false
		start, end := dataLine(e.last)
		e.see(e.last[start:end])
	}
}

// dataLine finds the data of a native event that has one line of it.
func dataLine(raw []byte) (start, end int) {
	for at := 0; at < len(raw); {
		line := raw[at:]
		if i := bytes.IndexByte(line, '\n'); i >= 0 {
			line = line[:i]
		}
		if i := bytes.IndexByte(line, '\r'); i >= 0 {
			line = line[:i]
		}
		if bytes.HasPrefix(line, []byte("data:")) {
			return at + len("data:"), at + len(line)
		}
		at += len(line) + 1
	}
	return 0, 0
}

// beginsCall reports whether a chunk may begin a call. Most do not, and need not
// be read for it: one that does names the list of calls and, behind it, an id or
// a name, or the older call, or has escapes where these could be.
func beginsCall(doc []byte) bool {
	if bytes.Contains(doc, []byte(`"function_call"`)) {
		return true
	}
	if at := bytes.Index(doc, []byte(`"tool_calls"`)); at >= 0 {
		doc = doc[at:]
		if bytes.Contains(doc, []byte(`"id"`)) || bytes.Contains(doc, []byte(`"name"`)) {
			return true
		}
	}
	return bytes.Contains(doc, []byte(`\u00`))
}

// seeLines is see for an event that has its data in several lines.
func (e *streamEncoder) seeLines(raw []byte) {
	see := func(ev sse.Event) error {
		e.see(ev.Data)
		return nil
	}
	var p sse.Parser
	_ = p.Feed(raw, see)
	_ = p.Close(see)
}

// see takes note of the calls that a native chunk begins. What it cannot read is
// the decoder's to refuse.
func (e *streamEncoder) see(doc []byte) {
	r := &e.sight
	if r.Reset(doc); r.Kind() != '{' {
		return
	}
	for key := range r.Object() {
		if string(key) == "choices" && r.Kind() == '[' {
			e.seeChoices(r)
		} else {
			r.Skip()
		}
	}
}

func (e *streamEncoder) seeChoices(r *jsonwire.Reader) {
	for i := range r.Array() {
		if r.Kind() == '{' {
			e.seeChoice(r, int64(i))
		}
	}
}

func (e *streamEncoder) seeChoice(r *jsonwire.Reader, index int64) {
	e.found = e.found[:0]
	for key := range r.Object() {
		switch k := string(key); {
		case k == "index" && r.Kind() == '0':
			if n := r.Int(); n >= 0 {
				index = n
			}
		case (k == "delta" || k == "message") && r.Kind() == '{':
			e.seeDelta(r)
		default:
			r.Skip()
		}
	}
	if r.Err() == nil && index < maxChoices {
		for _, c := range e.found {
			e.shownTo(int(index)).add(c)
		}
	}
}

func (e *streamEncoder) seeDelta(r *jsonwire.Reader) {
	for key := range r.Object() {
		switch k := string(key); {
		case k == "tool_calls" && r.Kind() == '[':
			e.seeCalls(r)
		case k == "function_call" && r.Kind() == '{':
			e.found = append(e.found, shownCall{index: -1, legacy: true, name: seeNamed(r).name})
		default:
			r.Skip()
		}
	}
}

func (e *streamEncoder) seeCalls(r *jsonwire.Reader) {
	for range r.Array() {
		if r.Kind() == '{' {
			e.found = append(e.found, seeCall(r))
		}
	}
}

func seeCall(r *jsonwire.Reader) shownCall {
	c := shownCall{index: -1}
	for key := range r.Object() {
		switch k := string(key); {
		case k == "index" && r.Kind() == '0':
			c.index = max(r.Int(), -1)
		case k == "id" && r.Kind() == '"':
			c.id, _ = wirekit.SplitID(r.String()) // as events tell of it (quirk B17)
		case (k == "function" || k == "custom") && r.Kind() == '{':
			named := seeNamed(r)
			c.name, c.args = append(c.name, named.name...), append(c.args, named.args...)
		default:
			r.Skip()
		}
	}
	return c
}

// seeNamed reads the name and the arguments of a fragment.
func seeNamed(r *jsonwire.Reader) (c shownCall) {
	for key := range r.Object() {
		switch k := string(key); {
		case k == "name" && r.Kind() == '"':
			c.name = []byte(r.String())
		case (k == "arguments" || k == "input") && r.Kind() == '"':
			c.args = []byte(r.String())
		default:
			r.Skip()
		}
	}
	return c
}

// add takes note of a fragment, if it begins a call or goes on with its name.
func (s *shownCalls) add(c shownCall) {
	nameless := c.id == "" && len(c.name) == 0
	if nameless && (len(c.args) == 0 || c.index < 0) || len(s.calls) >= maxCalls {
		return
	}
	s.next = max(s.next, c.index+1)
	for _, old := range s.calls {
		switch {
		case c.legacy && old.legacy:
			old.name = append(old.name, c.name...)
			return
		case c.index < 0 || old.index != c.index:
		case c.id == "" || old.id == "" || c.id == old.id || len(c.name) == 0: // it goes on
			if old.id == "" {
				old.id = c.id
			}
			if !bytes.Equal(old.name, c.name) { // a name in pieces (quirk C5)
				old.name = append(old.name, c.name...)
			}
			if !old.claimed {
				old.args = append(old.args, c.args...)
			}
			return
		default: // another call on the same index (quirk C2)
			old.index, c.index = -1, -1
		}
	}
	s.calls = append(s.calls, &c)
}

// claim finds the call of an id that a client was shown, nil if it was not: the
// one that has the id, else the only one that has none.
func (s *shownCalls) claim(id string) *shownCall {
	var found *shownCall
	same := 0
	for _, want := range []string{id, ""} {
		for _, c := range s.calls {
			if c.id == want && !c.claimed {
				found = c
				same++
			}
		}
		if same > 0 {
			break
		}
	}
	if same != 1 {
		return nil
	}
	found.claimed = true
	return found
}

// again takes from the arguments of a call what native chunks showed of them
// before its part started; ok is false where they showed others.
func (p *sentPart) again(text string) (rest string, ok bool) {
	n := min(len(text), len(p.shown))
	if text[:n] != p.shown[:n] {
		return "", false
	}
	p.shown = p.shown[n:]
	return text[n:], true
}

// unclaimed reports whether a client was shown a call that has no part.
func (s *shownCalls) unclaimed() bool {
	if s != nil {
		for _, c := range s.calls {
			if !c.claimed {
				return true
			}
		}
	}
	return false
}

// place is the index on which a client has the call; -1 where that is not known.
func (c *shownCall) place() int64 {
	if c == nil {
		return -1
	}
	return c.index
}

// lost reports that nothing more can be said of a call, because nobody knows
// which of its calls a client would take it for.
func (e *streamEncoder) lost(choice int, p *sentPart) bool {
	if e.native || p.part.Kind() != dragoman.KindToolCall || p.index >= 0 || p.legacy {
		return false
	}
	if !p.mute {
		p.mute = true
		e.spoil(choice, p.at.String(), "native chunks began a call that has no index of its own")
	}
	return true
}

// headDelta writes what native chunks left out of the id and the name of a call.
func (e *streamEncoder) headDelta(w *jsonwire.Writer, p *sentPart, c *dragoman.ToolCall, known *shownCall, rest string) {
	kind := "function"
	if c.Payload == dragoman.PayloadText && !p.wrapped {
		kind = "custom"
	}
	if p.legacy {
		legacyDelta(w, "name", rest)
		return
	}
	w.Key("tool_calls")
	w.BeginArray()
	w.BeginObject()
	w.IntField("index", p.index)
	if known.id == "" {
		w.StringField("id", e.reg.WireID(c.ID))
	}
	w.Key(kind)
	w.BeginObject()
	w.StringFieldIf("name", rest)
	w.EndObject()
	w.EndObject()
	w.EndArray()
}

// legacyDelta writes one member of the older function_call, for a client that was
// shown the beginning of one.
func legacyDelta(w *jsonwire.Writer, member, text string) {
	w.Key("function_call")
	w.BeginObject()
	w.StringField(member, text)
	w.EndObject()
}
