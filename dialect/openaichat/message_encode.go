package openaichat

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// messageEncoder writes a conversation as Chat messages.
type messageEncoder struct {
	w      jsonwire.Writer
	list   string // where the messages stand in the canonical source
	answer string // the pointer of the answer at hand: none, or that of an alternative
	reg    *interop.Registry
	limits targets.Limits
	target targets.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report
	// legacy: an answer for a client that knows functions, and no tools.
	legacy bool
}

func (e *messageEncoder) instructions(parts []dragoman.Part) {
	if len(parts) == 0 {
		return
	}
	m := dragoman.Message{Role: dragoman.RoleSystem, Parts: parts}
	e.plain(&m, extra.List("/instructions"), -1)
}

// messages writes the list. A run of assistant messages that did not come from
// this dialect is one turn and becomes one message (quirk D20); a run of tool
// messages is one batch, and the media of its results follows it in one user
// message (quirk D13).
func (e *messageEncoder) messages(ms []dragoman.Message) error {
	for i := 0; i < len(ms); {
		m := &ms[i]
		switch {
		case e.replay(m):
			i++
		case m.Role == dragoman.RoleAssistant:
			n := 1
			for !ownElement(m) && i+n < len(ms) && ms[i+n].Role == dragoman.RoleAssistant && !ownElement(&ms[i+n]) {
				n++
			}
			if err := e.assistant(ms[i:i+n], i); err != nil {
				return err
			}
			i += n
		case hasResults(m):
			n := 1
			for i+n < len(ms) && hasResults(&ms[i+n]) {
				n++
			}
			if err := e.results(ms[i:i+n], i); err != nil {
				return err
			}
			i += n
		default:
			e.plain(m, extra.Elem("/messages", i), i)
			i++
		}
	}
	return nil
}

// ownElement reports whether a message was an element of a Chat list already.
func ownElement(m *dragoman.Message) bool { return m.Origin != nil && m.Origin.Dialect == name }

func hasResults(m *dragoman.Message) bool {
	for _, p := range m.Parts {
		if p.Kind() == codes.KindToolResult {
			return true
		}
	}
	return m.Role == dragoman.RoleTool
}

func (e *messageEncoder) replayable(m *dragoman.Message) bool {
	_, ok := wirekit.ReplayMessage(m, &e.limits, &e.target, e.o.Rebuild)
	return ok && e.suits(m)
}

// suits reports whether the target's deviations leave a native message alone.
func (e *messageEncoder) suits(m *dragoman.Message) bool {
	c := e.target.Caps
	if c.NoDeveloperRole && m.Role == dragoman.RoleDeveloper || c.ToolResultName && m.Role == dragoman.RoleTool || c.ReasoningFieldAlways {
		return false
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Media:
			if !c.TakesMedia(p.Media) {
				return false
			}
		case *dragoman.Reasoning:
			if !wirekit.MayReplayReasoning(m, p, &e.limits, &e.target) || unavailable(p) {
				return false
			}
		case *dragoman.ToolCall:
			// Of an id or a name that we made, the native message knows nothing.
			if c.NoCustomTools && p.Payload == codes.PayloadText || p.Synthetic || e.reg.WireID(p.ID) != p.ID ||
				e.reg.WireName(p.Namespace, p.Name) != p.Name {
				return false
			}
		case *dragoman.ToolResult:
			if e.reg.WireID(p.CallID) != p.CallID {
				return false
			}
		}
	}
	return true
}

func (e *messageEncoder) replay(m *dragoman.Message) bool {
	raw, ok := wirekit.ReplayMessage(m, &e.limits, &e.target, e.o.Rebuild)
	if !ok || !e.suits(m) {
		return false
	}
	e.w.Raw(raw)
	return true
}

// plain writes a system, developer or user message. places are those of its
// parts, where they come from elsewhere.
func (e *messageEncoder) plain(m *dragoman.Message, at extra.Path, pos int, places ...extra.Path) {
	role := string(m.Role)
	if m.Role == dragoman.RoleDeveloper && e.target.Caps.NoDeveloperRole {
		role = "system"
		e.rep.Add(dragoman.Lowered, dragoman.Info, at.String()+"/role", "developer message written as a system message")
	}
	start := len(e.w.Buf)
	e.w.BeginObject()
	e.w.StringField("role", role)
	e.w.StringFieldIf("name", m.Name)
	e.w.Key("content")
	parts := m.Parts
	marked := false
	if m.Cache != nil && e.target.Caps.CacheBreakpoints {
		parts, marked = wirekit.WithCache(parts, m.Cache)
	}
	if !ownElement(m) && slices.ContainsFunc(parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindMedia }) {
		parts = slices.Clone(parts)
		for i, p := range parts {
			parts[i] = e.fit(p, m.Role, placeOf(i, at, places))
		}
	}
	if !e.content(parts, at, places) {
		e.w.Buf = e.w.Buf[:start]
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "a message without content")
		return
	}
	e.extras([]dragoman.Message{*m}, pos, true)
	e.w.EndObject()
	e.unsaid(m, at, marked)
}

// fit returns what stands for a part in a message that did not come from this
// dialect: the wire takes media from the user only, and OpenAI no film and not
// every type (quirk D14).
func (e *messageEncoder) fit(p dragoman.Part, role dragoman.Role, at extra.Path) dragoman.Part {
	m, ok := p.(*dragoman.Media)
	if !ok || m.Text != "" {
		return p
	}
	anyMedia := e.target.Caps.AnyMedia
	why := ""
	if !anyMedia {
		why = toolwire.OpenAIRefuses(m)
	}
	switch {
	case role != dragoman.RoleUser:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Chat takes no %s in a message of role %s; a note stands in for it", m.Media, role)
	case m.Media == codes.MediaVideo && !anyMedia:
		e.rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), "OpenAI takes no video; a note stands in for it")
	case why != "":
		e.rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why+"; a note stands in for it")
	default:
		return p
	}
	extra.Report(e.rep, m.Extra, name, at)
	return &dragoman.Text{Text: toolwire.Placeholder(m), Cache: m.Cache}
}

// extras writes the members of a run of messages, which becomes one, that are
// not modelled. What was kept to say that a member was null or empty is left
// out once it is not; content says that there is a content member.
func (e *messageEncoder) extras(ms []dragoman.Message, first int, content bool) {
	var kept *dragoman.Extra
	have := map[string][]byte{} // what earlier messages said
	told := 0                   // how much of kept is in it
	for i := range ms {
		fields := ms[i].Extra.For(name)
		filled := map[string]bool{} // asked once each: a member may stand here often
		for _, f := range fields {
			full, asked := filled[f.Path]
			if !asked {
				full = f.Path == "/content" && content || e.filled(ms, &ms[i], f)
				filled[f.Path] = full
			}
			if full {
				continue
			}
			if old, dup := have[f.Path]; dup {
				if string(old) != string(f.Value) {
					e.rep.Add(dragoman.Dropped, dragoman.Warn, extra.Elem(e.list, first+i).String()+f.Path, "one message has such a member once")
				}
				continue
			}
			if kept == nil {
				kept = &dragoman.Extra{Dialect: name}
			}
			kept.Fields = append(kept.Fields, f)
		}
		if i+1 == len(ms) {
			break
		}
		for _, f := range kept.For(name)[told:] {
			have[f.Path] = f.Value
			told++
		}
	}
	extra.Write(&e.w, kept, name, "")
}

// filled reports whether a member that was put aside of m is written by now,
// or must not be.
func (e *messageEncoder) filled(ms []dragoman.Message, m *dragoman.Message, f dragoman.Field) bool {
	any := func(has func(dragoman.Part) bool) bool {
		return slices.ContainsFunc(ms, func(m dragoman.Message) bool { return slices.ContainsFunc(m.Parts, has) })
	}
	kind := func(k string) bool {
		return any(func(p dragoman.Part) bool { return p.Kind() == k })
	}
	switch f.Path {
	case "/name":
		return ms[0].Name != ""
	case "/refusal":
		return kind(codes.KindRefusal)
	case "/tool_calls":
		return kind(codes.KindToolCall)
	case "/function_call":
		return e.legacy && kind(codes.KindToolCall)
	case "/reasoning", "/reasoning_content", "/reasoning_text", "/reasoning_details":
		// The same thinking in a second member is no more anybody else's than
		// in the first.
		c := e.target.Caps
		return !wirekit.MayReplayReasoning(m, nil, &e.limits, &e.target) || c.ReasoningFieldAlways && f.Path[1:] == c.ReasoningField ||
			any(func(p dragoman.Part) bool {
				r, ok := p.(*dragoman.Reasoning)
				return ok && (r.Field == f.Path[1:] || f.Path == "/reasoning_details" && r.Details != nil)
			})
	default:
		return false
	}
}

// unsaid reports what a message says that Chat has no member for.
func (e *messageEncoder) unsaid(m *dragoman.Message, at extra.Path, marked bool) {
	extra.Report(e.rep, m.Extra, name, at)
	if m.Phase != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %q", m.Phase)
	}
	if m.Cache != nil && !marked {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint after a message: the target caches by itself")
	}
}

// content writes the content of a message: a string for one plain text, as
// compatible servers want it (quirk D34), else a list of parts.
func (e *messageEncoder) content(parts []dragoman.Part, at extra.Path, places []extra.Path) bool {
	if text, ok := contentString(e.reg.View(), parts, placeOf(0, at, places), e.rep); ok {
		e.w.String(text)
		return true
	}
	e.w.BeginArray()
	n := 0
	for i, p := range parts {
		if writePart(e.reg.View(), &e.w, p, placeOf(i, at, places), e.rep) {
			n++
		}
	}
	e.w.EndArray()
	return n > 0
}

// placeOf is the place of part i of the message at a place.
func placeOf(i int, at extra.Path, places []extra.Path) extra.Path {
	if i < len(places) {
		return places[i]
	}
	return at.Elem("parts", i)
}

// results writes one tool message per result, then what else the messages
// held, then the media that tool messages cannot carry.
func (e *messageEncoder) results(ms []dragoman.Message, first int) error {
	var attached spilled
	for i := range ms {
		m := &ms[i]
		if e.replay(m) {
			continue
		}
		at := extra.Elem(e.list, first+i)
		for j, p := range m.Parts {
			res, ok := p.(*dragoman.ToolResult)
			if !ok {
				continue
			}
			spill, err := e.reg.WriteResult(&e.w, res, at.Elem("parts", j), e.rep)
			if err != nil {
				return fmt.Errorf("openaichat: %s: %w", at, err)
			}
			if len(spill) > 0 {
				e.rep.Addf(dragoman.Moved, dragoman.Warn, at.Elem("parts", j).String(), "%d media part(s) of a result moved to a user message after the batch", len(spill))
				attached.add(&dragoman.Text{Text: "Attached to the result of call " + e.reg.WireID(res.CallID) + ":"}, at.Elem("parts", j))
				for _, p := range spill {
					place := at.Elem("parts", j).Elem("content", slices.Index(res.Content, p))
					if !ownElement(m) {
						p = e.fit(p, dragoman.RoleUser, place)
					}
					attached.add(p, place)
				}
			}
		}
		if !slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() != codes.KindToolResult }) {
			e.unsaid(m, at, false)
		}
	}
	if last := first + len(ms) - 1; len(attached.parts) > 0 {
		// Each part was fitted by where it came from.
		m := dragoman.Message{Role: dragoman.RoleUser, Parts: attached.parts, Origin: &dragoman.Origin{Dialect: name}}
		e.plain(&m, extra.Elem("/messages", last), last, attached.places...)
	}
	for i := range ms {
		at := extra.Elem("/messages", first+i)
		var rest spilled
		for j, p := range ms[i].Parts {
			if p.Kind() != codes.KindToolResult {
				rest.add(p, at.Elem("parts", j))
			}
		}
		if len(rest.parts) > 0 && !e.replayable(&ms[i]) {
			m := ms[i]
			m.Role, m.Parts = dragoman.RoleUser, rest.parts
			e.plain(&m, at, first+i, rest.places...)
		}
	}
	return nil
}

// spilled are parts of messages of results that go into a message of their own,
// with the places they come from.
type spilled struct {
	parts  []dragoman.Part
	places []extra.Path
}

func (s *spilled) add(p dragoman.Part, at extra.Path) {
	s.parts, s.places = append(s.parts, p), append(s.places, at)
}

// assistant writes a run of assistant messages as one.
func (e *messageEncoder) assistant(ms []dragoman.Message, first int) error {
	start := len(e.w.Buf)
	e.w.BeginObject()
	e.w.StringField("role", "assistant")
	e.w.StringFieldIf("name", ms[0].Name)
	said, err := e.assistantBody(ms, first)
	if err != nil {
		return err
	}
	if !said {
		e.w.Buf = e.w.Buf[:start]
		e.rep.Add(dragoman.Dropped, dragoman.Info, extra.Elem(e.list, first).String(), "an assistant message with neither content nor calls")
		return nil
	}
	e.w.EndObject()
	return nil
}

// assistantBody writes the members of an assistant message but its role, and
// reports whether they say anything.
func (e *messageEncoder) assistantBody(ms []dragoman.Message, first int) (said bool, err error) {
	var t turn
	for i := range ms {
		t.add(e, &ms[i], extra.Elem(e.list, first+i), i)
	}
	if len(ms) > 1 && len(t.texts) > 1 {
		e.rep.Addf(dragoman.Moved, dragoman.Info, extra.Elem(e.list, first).String(), "%d assistant messages written as one", len(ms))
	}
	w := &e.w
	spelled := len(ms) == 1 && len(t.content) == 0 && hasContentSpelling(&ms[0])
	if !spelled {
		w.Key("content")
		if !t.write(e) {
			w.Null() // default spelling of no content (quirk B36)
		} else {
			said = true
		}
	}
	if len(t.refusals) > 0 {
		w.StringField("refusal", strings.Join(t.refusals, "\n\n"))
		said = true
	}
	said = e.reasoning(&t) || said
	switch {
	case len(t.calls) > 0 && e.legacy:
		said = true
		if err := e.functionCall(t.calls); err != nil {
			return said, err
		}
	case len(t.calls) > 0:
		said = true
		w.Key("tool_calls")
		w.BeginArray()
		for _, c := range t.calls {
			if o, ok := c.part.(*dragoman.Opaque); ok {
				w.Raw(o.JSON)
				continue
			}
			if err := e.reg.WriteCall(w, c.part.(*dragoman.ToolCall), c.at, e.rep); err != nil {
				return said, fmt.Errorf("openaichat: %s: %w", c.at, err)
			}
		}
		w.EndArray()
	}
	e.extras(ms, first, !spelled)
	for i := range ms {
		said = said || extra.Has(ms[i].Extra, name, "")
		e.unsaid(&ms[i], extra.Elem(e.list, first+i), false)
	}
	return said, nil
}

func hasContentSpelling(m *dragoman.Message) bool {
	_, ok := extra.Get(m.Extra, name, "/content")
	return ok
}

// turn is a run of assistant messages, sorted by where Chat wants things.
type turn struct {
	content   []placed
	texts     []int // message of each text in content
	refusals  []string
	reasoning []*dragoman.Reasoning
	calls     []placed
	messages  int
}

type placed struct {
	part    dragoman.Part
	message int
	at      extra.Path
}

func (t *turn) add(e *messageEncoder, m *dragoman.Message, at extra.Path, n int) {
	t.messages = n + 1
	for i, p := range m.Parts {
		here := placed{p, n, at.Elem("parts", i)}
		switch p := p.(type) {
		case *dragoman.ToolCall:
			if p.Hosted {
				e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.at.String(), "call of %q was run by its provider", p.Name)
				continue
			}
			t.calls = append(t.calls, here)
		case *dragoman.Opaque:
			switch {
			case p.Dialect == name && p.Type == "tool_call" && e.list != "/messages":
				// A client could find a call in it to run.
				e.rep.Add(dragoman.Dropped, dragoman.Serious, here.at.String(), "a call that cannot be read is not passed on")
			case p.Dialect == name && p.Type == "tool_call":
				t.calls = append(t.calls, here)
			case p.Dialect == name:
				t.content = append(t.content, here)
			default:
				e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.at.String(), "%s of %s has no place in Chat", extra.AType(p.Type, "block"), p.Dialect)
			}
		case *dragoman.Refusal:
			extra.Report(e.rep, p.Extra, name, here.at)
			t.refusals = append(t.refusals, p.Text)
		case *dragoman.Reasoning:
			t.addReasoning(e, m, p, here)
		case *dragoman.Text:
			t.texts = append(t.texts, n)
			t.content = append(t.content, here)
		default:
			if !ownElement(m) {
				here.part = e.fit(p, dragoman.RoleAssistant, here.at)
			}
			if here.part.Kind() == codes.KindText {
				t.texts = append(t.texts, n)
			}
			t.content = append(t.content, here)
		}
	}
}

// addReasoning keeps reasoning that the target may see: what it wrote itself,
// or the visible text where it says in which member it takes some.
func (t *turn) addReasoning(e *messageEncoder, m *dragoman.Message, p *dragoman.Reasoning, here placed) {
	own := wirekit.MayReplayReasoning(m, p, &e.limits, &e.target)
	switch {
	case unavailable(p):
		e.rep.Add(dragoman.Dropped, dragoman.Info, here.at.String(), "a remark that there is no reasoning is none")
	case own && p.Field == fieldThinking:
		t.content = append(t.content, here)
	case own && (p.Field != "" || p.Details != nil):
		t.reasoning = append(t.reasoning, p)
	case e.target.Caps.ReasoningField != "" && visible(p) != "":
		t.reasoning = append(t.reasoning, &dragoman.Reasoning{Text: visible(p), Field: e.target.Caps.ReasoningField})
		if p.Signature != "" || p.Encrypted != "" {
			extra.ReportOpaque(e.rep, here.at.String())
		}
		e.unsaidOfReasoning(p, here.at)
	default:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, here.at.String(), "reasoning has no place in Chat")
	}
}

// unavailable reports reasoning that only says that it is missing, which some
// servers put in its place and no model is to read (quirk G4).
func unavailable(p *dragoman.Reasoning) bool {
	return strings.TrimSpace(p.Text) == "[reasoning unavailable]" && p.Details == nil
}

// unsaidOfReasoning reports what reasoning that is shown says besides.
func (e *messageEncoder) unsaidOfReasoning(p *dragoman.Reasoning, at extra.Path) {
	extra.ReportItem(e.rep, p.ID, at, "/id")
	extra.Report(e.rep, p.Extra, name, at)
}

func visible(p *dragoman.Reasoning) string {
	if p.Text != "" {
		return p.Text
	}
	return strings.Join(p.Summary, "\n\n")
}

// write writes the content of the turn and reports whether there was any. Text
// alone is one string: parts of one message run on, messages are set apart.
func (t *turn) write(e *messageEncoder) bool {
	if len(t.content) == 0 {
		return false
	}
	plain := true
	for _, c := range t.content {
		text, ok := c.part.(*dragoman.Text)
		plain = plain && ok && text.Extra.For(name) == nil
	}
	if plain {
		var b strings.Builder
		for i, c := range t.content {
			if i > 0 && t.content[i-1].message != c.message && b.Len() > 0 {
				b.WriteString("\n\n")
			}
			text := c.part.(*dragoman.Text)
			b.WriteString(text.Text)
			extra.Report(e.rep, text.Extra, name, c.at)
			extra.ReportState(e.rep, text.Signature, c.at)
			if text.Cache != nil {
				e.rep.Add(dragoman.Dropped, dragoman.Info, c.at.String(), "cache breakpoint: the target caches by itself")
			}
		}
		e.w.String(b.String())
		return true
	}
	e.w.BeginArray()
	n := 0
	for _, c := range t.content {
		if r, ok := c.part.(*dragoman.Reasoning); ok {
			if len(r.Details) == 1 && len(r.Details[0]) > 0 {
				e.w.Raw(r.Details[0])
			} else {
				e.w.Raw(thinkingRecord(r.Text))
			}
			n++
			continue
		}
		if writePart(e.reg.View(), &e.w, c.part, c.at, e.rep) {
			n++
		}
	}
	e.w.EndArray()
	if n == 0 {
		e.w.Buf = e.w.Buf[:len(e.w.Buf)-2]
	}
	return n > 0
}

// reasoning writes the reasoning members, each in the member it came in
// (quirk G2).
func (e *messageEncoder) reasoning(t *turn) bool {
	var fields []string
	texts := map[string]string{}
	var details [][]byte
	for _, r := range t.reasoning {
		if r.Field != "" {
			if _, ok := texts[r.Field]; !ok {
				fields = append(fields, r.Field)
			}
			texts[r.Field] += r.Text
		}
		for _, d := range r.Details {
			if len(d) > 0 {
				details = append(details, d)
			}
		}
	}
	if f := e.target.Caps.ReasoningField; f != "" && e.target.Caps.ReasoningFieldAlways && len(t.calls) > 0 && !slices.Contains(fields, f) {
		fields = append(fields, f) // present even when empty (quirk G3)
	}
	for _, f := range fields {
		e.w.QuotedKey(f) // from a server or a caller, not ours
		e.w.String(texts[f])
	}
	if len(details) > 0 {
		e.w.Key("reasoning_details")
		e.w.BeginArray()
		for _, d := range details {
			e.w.Raw(d)
		}
		e.w.EndArray()
	}
	return len(fields) > 0 || len(details) > 0
}
