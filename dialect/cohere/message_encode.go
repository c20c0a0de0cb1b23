package cohere

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

// messageEncoder writes a conversation as Cohere messages.
type messageEncoder struct {
	w      jsonwire.Writer
	list   string // path of the messages in the canonical source
	reg    *interop.Registry
	limits targets.Limits
	target targets.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report
}

// isResponse reports whether a response is written, not a request.
func (e *messageEncoder) isResponse() bool { return e.list != "/messages" }

func (e *messageEncoder) instructions(parts []dragoman.Part) {
	if len(parts) > 0 {
		m := dragoman.Message{Role: dragoman.RoleSystem, Parts: parts}
		e.plain(&m, extra.List("/instructions"))
	}
}

// messages writes the list. Consecutive assistant messages of other dialects
// become one message (quirk D20). The media of consecutive results follows them
// in one user message (quirk D13).
func (e *messageEncoder) messages(ms []dragoman.Message) error {
	for i := 0; i < len(ms); {
		m, n := &ms[i], 1
		var err error
		switch {
		case e.replay(m):
		case m.Role == dragoman.RoleAssistant:
			for !ownElement(m) && i+n < len(ms) && ms[i+n].Role == dragoman.RoleAssistant && !ownElement(&ms[i+n]) {
				n++
			}
			err = e.assistant(ms[i:i+n], i)
		case hasResults(m):
			for i+n < len(ms) && hasResults(&ms[i+n]) {
				n++
			}
			err = e.results(ms[i:i+n], i)
		default:
			e.plain(m, extra.Elem(e.list, i))
		}
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// ownElement reports whether a message was decoded from this dialect.
func ownElement(m *dragoman.Message) bool { return m.Origin != nil && m.Origin.Dialect == name }

func isResult(p dragoman.Part) bool { return p.Kind() == codes.KindToolResult }

func hasResults(m *dragoman.Message) bool {
	return m.Role == dragoman.RoleTool || slices.ContainsFunc(m.Parts, isResult)
}

// replay writes an unchanged message byte for byte, if the target accepts it.
// It reports whether it did.
func (e *messageEncoder) replay(m *dragoman.Message) bool {
	raw, ok := wirekit.ReplayMessage(m, &e.limits, &e.target, e.o.Rebuild)
	if ok && e.canReplay(m) {
		e.w.Raw(raw)
		return true
	}
	return false
}

// canReplay reports whether the target and the registry accept a native message
// unchanged.
func (e *messageEncoder) canReplay(m *dragoman.Message) bool {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Media:
			if !e.target.Caps.AcceptsMedia(p.Media) {
				return false
			}
		case *dragoman.Reasoning:
			if e.target.Caps.NoReasoning || !wirekit.MayReplayReasoning(m, p, &e.limits, &e.target) {
				return false
			}
		case *dragoman.ToolCall:
			if p.Synthetic || e.reg.WireID(p.ID) != p.ID || e.reg.WireName(p.Namespace, p.Name) != p.Name {
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

// plain writes a system or user message. places are the paths of its parts, if
// they come from other messages.
func (e *messageEncoder) plain(m *dragoman.Message, at extra.Path, places ...extra.Path) {
	role := string(m.Role)
	switch m.Role {
	case dragoman.RoleDeveloper:
		role = "system"
		e.rep.Add(dragoman.Lowered, dragoman.Info, at.String()+"/role", "developer message written as a system message")
	case dragoman.RoleSystem, dragoman.RoleUser:
	default:
		if !ownElement(m) {
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/role", "Cohere has no role %.40q; written as a user message", role)
			role = "user"
		}
	}
	parts := m.Parts
	if role != "user" && !ownElement(m) {
		parts = e.withoutMedia(parts, role, at)
	}
	start := len(e.w.Buf)
	e.w.BeginObject()
	e.w.StringField("role", role)
	e.w.Key("content")
	if !e.content(parts, at, places) && !ownElement(m) {
		e.w.Buf = e.w.Buf[:start]
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "message without content")
		return
	}
	e.extras([]dragoman.Message{*m}, at)
	e.w.EndObject()
	e.reportMessage(m, at)
}

// withoutMedia replaces media with notes, because only user messages can
// contain it.
func (e *messageEncoder) withoutMedia(parts []dragoman.Part, role string, at extra.Path) []dragoman.Part {
	if !slices.ContainsFunc(parts, func(p dragoman.Part) bool { return p.Kind() == codes.KindMedia }) {
		return parts
	}
	parts = slices.Clone(parts)
	for i, p := range parts {
		m, ok := p.(*dragoman.Media)
		if !ok || m.Text != "" {
			continue
		}
		here := at.Elem("parts", i)
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.String(), "Cohere messages of role %s cannot contain %s; replaced by a note", role, m.Media)
		extra.Report(e.rep, m.Extra, name, here)
		parts[i] = &dragoman.Text{Text: toolwire.Placeholder(m), Cache: m.Cache}
	}
	return parts
}

// content writes a string for a single text, otherwise a list of blocks. It
// reports whether there is any content.
func (e *messageEncoder) content(parts []dragoman.Part, at extra.Path, places []extra.Path) bool {
	place := func(i int) extra.Path {
		if i < len(places) {
			return places[i]
		}
		return at.Elem("parts", i)
	}
	if len(parts) == 1 {
		if t, ok := parts[0].(*dragoman.Text); ok && t.Extra.For(name) == nil {
			reportText(t, place(0), e.rep)
			e.w.String(t.Text)
			return true
		}
	}
	n := 0
	e.w.BeginArray()
	for i, p := range parts {
		if d, ok := p.(*dragoman.Data); ok { // documents are for results
			p = &dragoman.Text{Text: string(d.JSON)}
		}
		if writePart(e.reg.View(), &e.w, p, place(i), e.rep) {
			n++
		}
	}
	e.w.EndArray()
	return n > 0
}

// extras writes the extra fields of messages that are merged into one. It omits
// fields that were already written.
func (e *messageEncoder) extras(ms []dragoman.Message, at extra.Path) {
	var kept *dragoman.Extra
	for i := range ms {
		for _, f := range ms[i].Extra.For(name) {
			if hasValue(ms, f) {
				continue
			}
			if old, again := extra.Get(kept, name, f.Path); again {
				if string(old) != string(f.Value) {
					e.rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+f.Path, "merged messages have different values of this field")
				}
				continue
			}
			if kept == nil {
				kept = &dragoman.Extra{Dialect: name}
			}
			kept.Fields = append(kept.Fields, f)
		}
	}
	extra.Write(&e.w, kept, name, "")
}

// hasValue reports whether a field that was stored because it was empty now has a
// value.
func hasValue(ms []dragoman.Message, f dragoman.Field) bool {
	has := func(like func(dragoman.Part) bool) bool {
		return slices.ContainsFunc(ms, func(m dragoman.Message) bool { return slices.ContainsFunc(m.Parts, like) })
	}
	switch f.Path {
	case "/content":
		return has(func(p dragoman.Part) bool {
			r, ok := p.(*dragoman.Reasoning)
			return p.Kind() != codes.KindToolCall && (!ok || r.Field != fieldPlan)
		})
	case "/tool_plan":
		return has(func(p dragoman.Part) bool { r, ok := p.(*dragoman.Reasoning); return ok && r.Field == fieldPlan })
	case "/tool_calls":
		return has(func(p dragoman.Part) bool {
			o, ok := p.(*dragoman.Opaque)
			return p.Kind() == codes.KindToolCall || ok && o.Type == typeCall
		})
	default:
		return false
	}
}

// reportMessage reports the fields of a message that Cohere does not have.
func (e *messageEncoder) reportMessage(m *dragoman.Message, at extra.Path) {
	extra.Report(e.rep, m.Extra, name, at)
	if m.Name != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/name", "participant name %.40q", m.Name)
	}
	if m.Phase != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %.40q", m.Phase)
	}
	if m.Cache != nil {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint after a message: Cohere caches automatically")
	}
}

// results writes one tool message per result, then their media, then the other
// parts of the messages.
func (e *messageEncoder) results(ms []dragoman.Message, first int) error {
	var media []dragoman.Part
	var places []extra.Path
	replayed := make([]bool, len(ms))
	for i := range ms {
		m := &ms[i]
		if replayed[i] = e.replay(m); replayed[i] {
			continue
		}
		at := extra.Elem(e.list, first+i)
		for j, p := range m.Parts {
			res, ok := p.(*dragoman.ToolResult)
			if !ok {
				continue
			}
			here := at.Elem("parts", j)
			spill, err := e.reg.WriteResult(&e.w, res, here, e.rep)
			if err != nil {
				return fmt.Errorf("cohere: %s: %w", at, err)
			}
			if len(spill) == 0 {
				continue
			}
			e.rep.Addf(dragoman.Moved, dragoman.Warn, here.String(), "%s of a result moved to a user message after the results", textkit.Count(len(spill), "media part"))
			media, places = append(media, &dragoman.Text{Text: "Attached to the result of call " + e.reg.WireID(res.CallID) + ":"}), append(places, here)
			for _, p := range spill {
				media, places = append(media, p), append(places, here.Elem("content", slices.Index(res.Content, p)))
			}
		}
	}
	if len(media) > 0 {
		e.plain(&dragoman.Message{Role: dragoman.RoleUser, Parts: media}, extra.Elem(e.list, first+len(ms)-1), places...)
	}
	for i := range ms {
		if replayed[i] {
			continue
		}
		at := extra.Elem(e.list, first+i)
		var rest []dragoman.Part
		var places []extra.Path
		for j, p := range ms[i].Parts {
			if !isResult(p) {
				rest, places = append(rest, p), append(places, at.Elem("parts", j))
			}
		}
		if len(rest) == 0 {
			e.reportMessage(&ms[i], at)
			continue
		}
		m := ms[i]
		m.Role, m.Parts = dragoman.RoleUser, rest
		e.plain(&m, at, places...)
	}
	return nil
}

// assistant writes consecutive assistant messages as one.
func (e *messageEncoder) assistant(ms []dragoman.Message, first int) error {
	start := len(e.w.Buf)
	e.w.BeginObject()
	e.w.StringField("role", "assistant")
	written, err := e.assistantBody(ms, first)
	if err != nil {
		return err
	}
	if !written && !ownElement(&ms[0]) {
		e.w.Buf = e.w.Buf[:start]
		e.rep.Add(dragoman.Dropped, dragoman.Info, extra.Elem(e.list, first).String(), "assistant message without content and calls")
		return nil
	}
	e.w.EndObject()
	return nil
}

// turn holds the parts of consecutive assistant messages, by the fields of a
// Cohere message.
type turn struct {
	plan    []string
	content []placed
	calls   []placed
	texts   bool // all of content is text without extra fields
}

type placed struct {
	part dragoman.Part
	at   extra.Path
}

// assistantBody writes the fields of an assistant message except its role. It
// reports whether there are any.
func (e *messageEncoder) assistantBody(ms []dragoman.Message, first int) (written bool, err error) {
	t := turn{texts: true}
	for i := range ms {
		e.addToTurn(&t, &ms[i], extra.Elem(e.list, first+i))
	}
	if len(ms) > 1 && len(t.content) > 1 {
		e.rep.Addf(dragoman.Moved, dragoman.Info, extra.Elem(e.list, first).String(), "%d assistant messages written as one", len(ms))
	}
	w := &e.w
	if len(t.plan) > 0 {
		w.StringField("tool_plan", strings.Join(t.plan, "\n\n"))
	}
	blocks := e.turnContent(&t)
	if len(t.calls) > 0 {
		w.Key("tool_calls")
		w.BeginArray()
		for _, c := range t.calls {
			if o, ok := c.part.(*dragoman.Opaque); ok {
				w.Raw(o.JSON)
			} else if err := e.reg.WriteCall(w, c.part.(*dragoman.ToolCall), c.at, e.rep); err != nil {
				return written, fmt.Errorf("cohere: %s: %w", c.at, err)
			}
		}
		w.EndArray()
	}
	written = blocks || len(t.plan) > 0 || len(t.calls) > 0
	e.extras(ms, extra.Elem(e.list, first))
	for i := range ms {
		written = written || extra.Has(ms[i].Extra, name, "")
		e.reportMessage(&ms[i], extra.Elem(e.list, first+i))
	}
	return written, nil
}

// turnContent writes the content of a turn, if it has any. A request may have a
// string; a response has a list.
func (e *messageEncoder) turnContent(t *turn) bool {
	if len(t.content) == 0 {
		return false
	}
	w := &e.w
	if c := t.content[0]; len(t.content) == 1 && t.texts && !e.isResponse() {
		text := c.part.(*dragoman.Text)
		reportText(text, c.at, e.rep)
		w.StringField("content", text.Text)
		return true
	}
	start, n := len(w.Buf), 0
	w.Key("content")
	w.BeginArray()
	for _, c := range t.content {
		if e.block(c.part, c.at) {
			n++
		}
	}
	w.EndArray()
	if n == 0 {
		w.Buf = w.Buf[:start]
	}
	return n > 0
}

// block writes one block of an assistant message.
func (e *messageEncoder) block(p dragoman.Part, at extra.Path) bool {
	r, ok := p.(*dragoman.Reasoning)
	if !ok {
		return writePart(e.reg.View(), &e.w, p, at, e.rep)
	}
	e.w.BeginObject()
	e.w.StringField("type", "thinking")
	e.w.StringField("thinking", wirekit.VisibleReasoning(r))
	extra.Write(&e.w, r.Extra, name, "")
	e.w.EndObject()
	return true
}

// addToTurn adds a message to a turn.
func (e *messageEncoder) addToTurn(t *turn, m *dragoman.Message, at extra.Path) {
	parts := m.Parts
	if !ownElement(m) {
		parts = e.withoutMedia(parts, "assistant", at)
	}
	for i, p := range parts {
		here := placed{p, at.Elem("parts", i)}
		switch p := p.(type) {
		case *dragoman.ToolCall:
			if p.Hosted {
				e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.at.String(), "call of %.80q was executed by its provider", p.Name)
				continue
			}
			t.calls = append(t.calls, here)
		case *dragoman.Opaque:
			switch {
			case p.Dialect == name && p.Type == typeCall && e.isResponse(): // a client could run it
				e.rep.Add(dragoman.Dropped, dragoman.Serious, here.at.String(), "a call that cannot be decoded is not passed through")
			case p.Dialect == name && p.Type == typeCall:
				t.calls = append(t.calls, here)
			case p.Dialect != name:
				reportForeign(p, here.at, e.rep)
			default:
				t.texts = false
				t.content = append(t.content, here)
			}
		case *dragoman.Reasoning:
			e.sortReasoning(t, m, p, here)
		case *dragoman.Refusal:
			reportRefusal(p, here.at, e.rep)
			here.part = &dragoman.Text{Text: p.Text}
			t.content = append(t.content, here)
		case *dragoman.Data:
			here.part = &dragoman.Text{Text: string(p.JSON)}
			t.content = append(t.content, here)
		default:
			text, ok := p.(*dragoman.Text)
			t.texts = t.texts && ok && text.Extra.For(name) == nil
			t.content = append(t.content, here)
		}
	}
}

// sortReasoning adds reasoning to a turn: a plan of this dialect, or otherwise
// its visible text.
func (e *messageEncoder) sortReasoning(t *turn, m *dragoman.Message, p *dragoman.Reasoning, here placed) {
	if !e.isResponse() && e.target.Caps.NoReasoning {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, here.at.String(), "the target does not accept reasoning")
		return
	}
	wirekit.ReportReasoning(e.rep, name, p, here.at)
	text := wirekit.VisibleReasoning(p)
	switch {
	case text == "" && !ownElement(m):
	case p.Field == fieldPlan:
		t.plan = append(t.plan, text)
	default:
		t.texts = false
		t.content = append(t.content, here)
	}
}
