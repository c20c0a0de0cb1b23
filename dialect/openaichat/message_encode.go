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
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// messageEncoder encodes a conversation as Chat messages.
type messageEncoder struct {
	w             jsonwire.Writer
	list          string // JSON pointer of the messages in the canonical value
	candidatePath string // JSON pointer of the current candidate; empty for the first
	reg           *interop.Registry
	limits        targets.Limits
	target        targets.Target
	o             dialect.EncodeOptions
	rep           *dragoman.Report
	// legacy is set for responses to clients that declared functions instead of tools.
	legacy bool
}

func (e *messageEncoder) instructions(parts []dragoman.Part) {
	if len(parts) == 0 {
		return
	}
	m := dragoman.Message{Role: dragoman.RoleSystem, Parts: parts}
	e.plain(&m, extra.List("/instructions"), -1)
}

// messages writes the list. Consecutive assistant messages that did not come from this dialect
// are one turn and become one message (quirk D20). Consecutive tool messages are one batch; the
// media of its results follows in one user message (quirk D13).
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

// ownElement reports whether a message was decoded from a Chat message list.
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
	return ok && e.canReplay(m)
}

// canReplay reports whether the target's capabilities require no change to a native message.
func (e *messageEncoder) canReplay(m *dragoman.Message) bool {
	c := e.target.Caps
	if c.NoDeveloperRole && m.Role == dragoman.RoleDeveloper || c.ToolResultName && m.Role == dragoman.RoleTool || c.ReasoningFieldAlways {
		return false
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Media:
			if !c.AcceptsMedia(p.Media) {
				return false
			}
		case *dragoman.Reasoning:
			if !wirekit.MayReplayReasoning(m, p, &e.limits, &e.target) || unavailable(p) {
				return false
			}
		case *dragoman.ToolCall:
			// The native message does not have an id or a name that we generated.
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
	if !ok || !e.canReplay(m) {
		return false
	}
	e.w.Raw(raw)
	return true
}

// plain writes a system, developer or user message. places are the original paths of its parts,
// if they come from other messages.
func (e *messageEncoder) plain(m *dragoman.Message, at extra.Path, pos int, places ...extra.Path) {
	role := string(m.Role)
	if m.Role == dragoman.RoleDeveloper && e.target.Caps.NoDeveloperRole {
		role = "system"
		e.rep.Add(dragoman.Lowered, dragoman.Info, at.String()+"/role", "developer message is written as a system message")
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
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "message has no content")
		return
	}
	e.extras([]dragoman.Message{*m}, pos, true)
	e.w.EndObject()
	e.reportMessageLosses(m, at, marked)
}

// fit returns the part to write in a message that did not come from this dialect. Media that the
// wire does not accept is replaced with a text note: only user messages may contain media, and
// OpenAI accepts no video and not every type (quirk D14).
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
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "Chat does not accept %s input in a message of role %s; it is replaced with a text note", m.Media, role)
	case m.Media == codes.MediaVideo && !anyMedia:
		e.rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), "OpenAI does not accept video input; it is replaced with a text note")
	case why != "":
		e.rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why+"; it is replaced with a text note")
	default:
		return p
	}
	extra.Report(e.rep, m.Extra, name, at)
	return &dragoman.Text{Text: toolwire.Placeholder(m), Cache: m.Cache}
}

// extras writes the unknown fields of a run of messages, which becomes one message. A field that
// was stored only because it was null or empty is omitted if it now has a value. content reports
// whether a content field was written.
func (e *messageEncoder) extras(ms []dragoman.Message, first int, content bool) {
	var kept *dragoman.Extra
	have := map[string][]byte{} // fields of earlier messages
	copied := 0                 // how many fields of kept are in have
	for i := range ms {
		fields := ms[i].Extra.For(name)
		filled := map[string]bool{} // computed once each: a field may occur often
		for _, f := range fields {
			full, ok := filled[f.Path]
			if !ok {
				full = f.Path == "/content" && content || e.hasNewValue(ms, &ms[i], f)
				filled[f.Path] = full
			}
			if full {
				continue
			}
			if old, dup := have[f.Path]; dup {
				if string(old) != string(f.Value) {
					e.rep.Add(dragoman.Dropped, dragoman.Warn, extra.Elem(e.list, first+i).String()+f.Path, "the messages become one, which has this field only once")
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
		for _, f := range kept.For(name)[copied:] {
			have[f.Path] = f.Value
			copied++
		}
	}
	extra.Write(&e.w, kept, name, "")
}

// hasNewValue reports whether a stored null or empty field of m now has a value, or must not be
// written.
func (e *messageEncoder) hasNewValue(ms []dragoman.Message, m *dragoman.Message, f dragoman.Field) bool {
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
		// A second field with the same reasoning may only be sent to the provider that wrote it,
		// like the first.
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

// reportMessageLosses reports the fields of a message that Chat does not have.
func (e *messageEncoder) reportMessageLosses(m *dragoman.Message, at extra.Path, marked bool) {
	extra.Report(e.rep, m.Extra, name, at)
	if m.Phase != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "Chat has no phases; %q is dropped", m.Phase)
	}
	if m.Cache != nil && !marked {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint after a message: the target caches automatically")
	}
}

// content writes the content of a message: a string for a single plain text, which compatible
// servers prefer (quirk D34), otherwise a list of parts.
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

// placeOf returns the path of part i of the message at the given path.
func placeOf(i int, at extra.Path, places []extra.Path) extra.Path {
	if i < len(places) {
		return places[i]
	}
	return at.Elem("parts", i)
}

// results writes one tool message per result, then the media that tool messages cannot contain,
// then the other parts of the messages.
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
				e.rep.Addf(dragoman.Moved, dragoman.Warn, at.Elem("parts", j).String(), "%s of a result moved to a user message after the results", textkit.Count(len(spill), "media part"))
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
			e.reportMessageLosses(m, at, false)
		}
	}
	if last := first + len(ms) - 1; len(attached.parts) > 0 {
		// fit was already applied to each part, depending on its message.
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

// spilled holds parts of result messages that move to a separate message, with their original
// paths.
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
	hasBody, err := e.assistantBody(ms, first)
	if err != nil {
		return err
	}
	if !hasBody {
		e.w.Buf = e.w.Buf[:start]
		e.rep.Add(dragoman.Dropped, dragoman.Info, extra.Elem(e.list, first).String(), "assistant message has neither content nor calls")
		return nil
	}
	e.w.EndObject()
	return nil
}

// assistantBody writes the fields of an assistant message except its role, and reports whether
// the message is not empty.
func (e *messageEncoder) assistantBody(ms []dragoman.Message, first int) (nonEmpty bool, err error) {
	var t turn
	for i := range ms {
		t.add(e, &ms[i], extra.Elem(e.list, first+i), i)
	}
	if len(ms) > 1 && len(t.texts) > 1 {
		e.rep.Addf(dragoman.Moved, dragoman.Info, extra.Elem(e.list, first).String(), "%d assistant messages are merged", len(ms))
	}
	w := &e.w
	storedContent := len(ms) == 1 && len(t.content) == 0 && hasStoredContent(&ms[0])
	if !storedContent {
		w.Key("content")
		if !t.write(e) {
			w.Null() // the default for no content (quirk B36)
		} else {
			nonEmpty = true
		}
	}
	if len(t.refusals) > 0 {
		w.StringField("refusal", strings.Join(t.refusals, "\n\n"))
		nonEmpty = true
	}
	nonEmpty = e.reasoning(&t) || nonEmpty
	switch {
	case len(t.calls) > 0 && e.legacy:
		nonEmpty = true
		if err := e.functionCall(t.calls); err != nil {
			return nonEmpty, err
		}
	case len(t.calls) > 0:
		nonEmpty = true
		w.Key("tool_calls")
		w.BeginArray()
		for _, c := range t.calls {
			if o, ok := c.part.(*dragoman.Opaque); ok {
				w.Raw(o.JSON)
				continue
			}
			if err := e.reg.WriteCall(w, c.part.(*dragoman.ToolCall), c.at, e.rep); err != nil {
				return nonEmpty, fmt.Errorf("openaichat: %s: %w", c.at, err)
			}
		}
		w.EndArray()
	}
	e.extras(ms, first, !storedContent)
	for i := range ms {
		nonEmpty = nonEmpty || extra.Has(ms[i].Extra, name, "")
		e.reportMessageLosses(&ms[i], extra.Elem(e.list, first+i), false)
	}
	return nonEmpty, nil
}

// hasStoredContent reports whether the original, empty content field was stored.
func hasStoredContent(m *dragoman.Message) bool {
	_, ok := extra.Get(m.Extra, name, "/content")
	return ok
}

// turn is a run of assistant messages, sorted by Chat field.
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
				e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.at.String(), "call of %q was run by its provider; Chat has no hosted calls", p.Name)
				continue
			}
			t.calls = append(t.calls, here)
		case *dragoman.Opaque:
			switch {
			case p.Dialect == name && p.Type == "tool_call" && e.list != "/messages":
				// A client might find a call in it and run it.
				e.rep.Add(dragoman.Dropped, dragoman.Serious, here.at.String(), "a malformed call is not forwarded")
			case p.Dialect == name && p.Type == "tool_call":
				t.calls = append(t.calls, here)
			case p.Dialect == name:
				t.content = append(t.content, here)
			default:
				e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.at.String(), "Chat cannot contain %s of %s", extra.TypedNoun(p.Type, "block"), p.Dialect)
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

// addReasoning keeps reasoning that the target may get: its own reasoning, or the visible text if
// the target names a field for it.
func (t *turn) addReasoning(e *messageEncoder, m *dragoman.Message, p *dragoman.Reasoning, here placed) {
	own := wirekit.MayReplayReasoning(m, p, &e.limits, &e.target)
	switch {
	case unavailable(p):
		e.rep.Add(dragoman.Dropped, dragoman.Info, here.at.String(), "a placeholder for unavailable reasoning is not sent")
	case own && p.Field == fieldThinking:
		t.content = append(t.content, here)
	case own && (p.Field != "" || p.Details != nil):
		t.reasoning = append(t.reasoning, p)
	case e.target.Caps.ReasoningField != "" && wirekit.VisibleReasoning(p) != "":
		t.reasoning = append(t.reasoning, &dragoman.Reasoning{Text: wirekit.VisibleReasoning(p), Field: e.target.Caps.ReasoningField})
		if p.Signature != "" || p.Encrypted != "" {
			extra.ReportOpaque(e.rep, here.at.String())
		}
		e.reportReasoningLosses(p, here.at)
	default:
		e.rep.Add(dragoman.Dropped, dragoman.Warn, here.at.String(), "Chat has no field for reasoning")
	}
}

// unavailable reports whether reasoning is a placeholder for missing reasoning, which some
// servers send and no model should read (quirk G4).
func unavailable(p *dragoman.Reasoning) bool {
	return strings.TrimSpace(p.Text) == "[reasoning unavailable]" && p.Details == nil
}

// reportReasoningLosses reports the other fields of reasoning whose text is written.
func (e *messageEncoder) reportReasoningLosses(p *dragoman.Reasoning, at extra.Path) {
	extra.ReportItem(e.rep, p.ID, at, "/id")
	extra.Report(e.rep, p.Extra, name, at)
}

// write writes the content of the turn and reports whether there was any. If all parts are text,
// it is one string: parts of one message are concatenated, messages are separated by blank lines.
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
				e.rep.Add(dragoman.Dropped, dragoman.Info, c.at.String(), "cache breakpoint: the target caches automatically")
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

// reasoning writes reasoning in the fields it came from (quirk G2).
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
		e.w.QuotedKey(f) // the name comes from a server or a caller
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
