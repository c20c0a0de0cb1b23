package ollama

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// messageEncoder encodes a conversation as Ollama messages.
type messageEncoder struct {
	w      jsonwire.Writer
	list   string // JSON pointer of the messages in the canonical value
	reg    *interop.Registry
	limits targets.Limits
	target targets.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report
	// calls are the calls of the latest turn, by id. A result finds its call here (quirk D15).
	calls map[string]writtenCall
	// spilled holds media of results that is still to be written.
	spilled []dragoman.Part
	// callsBlocked is set if the stop reason of the response forbids its calls to run.
	callsBlocked bool
}

// writtenCall is a call in the form that was written.
type writtenCall struct {
	part *dragoman.ToolCall
	// bare is set if the call was written without an id.
	bare     bool
	position int
}

func (e *messageEncoder) instructions(parts []dragoman.Part) {
	if len(parts) > 0 {
		m := dragoman.Message{Role: dragoman.RoleSystem, Parts: parts}
		e.plain(&m, extra.List("/instructions"))
	}
}

// messages writes the list. Consecutive assistant messages that did not come from this dialect
// are one turn and become one message (quirk D20).
func (e *messageEncoder) messages(ms []dragoman.Message) error {
	for i := 0; i < len(ms); {
		n := 1
		var err error
		switch m := &ms[i]; {
		case m.Role == dragoman.RoleAssistant:
			if i == 0 || ms[i-1].Role != dragoman.RoleAssistant {
				e.calls = nil
			}
			if e.replay(m) {
				break
			}
			for !ownElement(m) && i+n < len(ms) && ms[i+n].Role == dragoman.RoleAssistant && !ownElement(&ms[i+n]) {
				n++
			}
			err = e.assistant(ms[i:i+n], i)
		case hasResults(m):
			for i+n < len(ms) && hasResults(&ms[i+n]) {
				n++
			}
			err = e.results(ms[i:i+n], i)
		case !e.replay(m):
			e.plain(m, extra.Elem(e.list, i))
		}
		if err != nil {
			return err
		}
		i += n
	}
	return nil
}

// ownElement reports whether a message was decoded from an Ollama message list.
func ownElement(m *dragoman.Message) bool { return m.Origin != nil && m.Origin.Dialect == name }

func hasResults(m *dragoman.Message) bool {
	return m.Role == dragoman.RoleTool || slices.ContainsFunc(m.Parts, isResult)
}

func isResult(p dragoman.Part) bool { return p.Kind() == codes.KindToolResult }

// replay writes the native bytes of a message, if it is unchanged and the target accepts them.
func (e *messageEncoder) replay(m *dragoman.Message) bool {
	raw, ok := wirekit.ReplayMessage(m, &e.limits, &e.target, e.o.Rebuild)
	if !ok || !e.canReplay(m) {
		return false
	}
	for _, c := range m.ToolCalls() {
		e.recordCall(c, c.Synthetic)
	}
	e.w.Raw(raw)
	return true
}

// canReplay reports whether the target's capabilities and the registry require no change to a
// native message.
func (e *messageEncoder) canReplay(m *dragoman.Message) bool {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Media:
			if !e.target.Caps.AcceptsMedia(p.Media) {
				return false
			}
		case *dragoman.Reasoning:
			if !e.takesReasoning(m, p) {
				return false
			}
		case *dragoman.ToolCall:
			if !p.Synthetic && (e.target.Caps.NoCallIDs || e.reg.WireID(p.ID) != p.ID) || e.reg.WireName(p.Namespace, p.Name) != p.Name {
				return false
			}
		case *dragoman.ToolResult:
			if e.target.Caps.NoResultMedia && slices.ContainsFunc(p.Content, isMedia) || wirekit.RefusesAny(&e.target.Caps, p.Content) || e.reg.WireID(p.CallID) != p.CallID {
				return false
			}
			// The native result does not match if we added or removed the id of its call.
			if c, known := e.calls[p.CallID]; known && c.bare != c.part.Synthetic {
				return false
			}
		}
	}
	return true
}

func isMedia(p dragoman.Part) bool { return p.Kind() == codes.KindMedia }

// takesReasoning reports whether the target accepts the reasoning of an earlier message.
func (e *messageEncoder) takesReasoning(m *dragoman.Message, p *dragoman.Reasoning) bool {
	return !e.target.Caps.NoReasoning && wirekit.MayReplayReasoning(m, p, &e.limits, &e.target)
}

// recordCall records a call that was written.
func (e *messageEncoder) recordCall(c *dragoman.ToolCall, bare bool) {
	if e.calls == nil {
		e.calls = map[string]writtenCall{}
	}
	e.calls[c.ID] = writtenCall{part: c, bare: bare, position: len(e.calls)}
}

// plain writes a message that has neither calls nor results.
func (e *messageEncoder) plain(m *dragoman.Message, at extra.Path) {
	role := string(m.Role)
	switch m.Role {
	case dragoman.RoleDeveloper:
		role = string(dragoman.RoleSystem)
		e.rep.Add(dragoman.Lowered, dragoman.Info, at.String()+"/role", "developer message is written as a system message")
	case dragoman.RoleSystem, dragoman.RoleUser, dragoman.RoleAssistant, dragoman.RoleTool:
	default:
		if !ownElement(m) {
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/role", "Ollama has no role %.40q; it is written as a user message", role)
			role = string(dragoman.RoleUser)
		}
	}
	var content messageContent
	for i, p := range m.Parts {
		content.add(e.reg.View(), p, at.Elem("parts", i), e.rep)
	}
	if content.empty() && !ownElement(m) {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "message has no content")
		return
	}
	e.w.BeginObject()
	e.w.StringField("role", role)
	content.write(&e.w, blankLine, at, e.rep)
	e.extras([]dragoman.Message{*m}, len(content.images) > 0)
	e.w.EndObject()
	e.reportMessageLosses(m, at)
}

// reportMessageLosses reports the fields of a message that Ollama does not have.
func (e *messageEncoder) reportMessageLosses(m *dragoman.Message, at extra.Path) {
	extra.Report(e.rep, m.Extra, name, at)
	if m.Name != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/name", "Ollama has no participant names; %.40q is dropped", m.Name)
	}
	if m.Phase != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "Ollama has no phases; %.40q is dropped", m.Phase)
	}
	if m.Cache != nil {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint after a message: Ollama caches automatically")
	}
}

// extras writes the unknown fields of a run of messages, which becomes one message. A field that
// was stored only because it was null or empty is omitted if it now has a value.
func (e *messageEncoder) extras(ms []dragoman.Message, images bool) {
	var kept *dragoman.Extra
	have := map[string]bool{}
	for i := range ms {
		for _, f := range ms[i].Extra.For(name) {
			if have[f.Path] && i > 0 || hasNewValue(ms, f, images) {
				continue
			}
			have[f.Path] = true
			if kept == nil {
				kept = &dragoman.Extra{Dialect: name}
			}
			kept.Fields = append(kept.Fields, f)
		}
	}
	extra.Write(&e.w, kept, name, "")
}

// hasNewValue reports whether a stored null or empty field now has a value.
func hasNewValue(ms []dragoman.Message, f dragoman.Field, images bool) bool {
	has := func(k string) bool {
		return slices.ContainsFunc(ms, func(m dragoman.Message) bool {
			return slices.ContainsFunc(m.Parts, func(p dragoman.Part) bool { return p.Kind() == k })
		})
	}
	switch f.Path {
	case "/thinking":
		return has(codes.KindReasoning)
	case "/images":
		return images
	case "/tool_calls":
		return has(codes.KindToolCall) || has(codes.KindOpaque)
	default:
		return false
	}
}

// results writes one tool message per result, then the other parts of the messages.
func (e *messageEncoder) results(ms []dragoman.Message, first int) error {
	type placed struct {
		m    *dragoman.Message
		res  *dragoman.ToolResult
		at   extra.Path
		rank int // the position of its call
	}
	var all []placed
	answered := map[string]bool{}
	for i := range ms {
		for j, p := range ms[i].Parts {
			if res, ok := p.(*dragoman.ToolResult); ok {
				here := placed{&ms[i], res, extra.Elem(e.list, first+i).Elem("parts", j), len(e.calls)}
				// A result that matches no call, or a call that has a result already, stays where
				// it was appended.
				if c, ok := e.calls[res.CallID]; ok && !answered[res.CallID] {
					here.rank = c.position
				}
				answered[res.CallID] = true
				all = append(all, here)
			}
		}
	}
	if e.mayReorder(ms) && turnrules.Sort(all, func(p placed) int { return p.rank }) {
		e.rep.Add(dragoman.Moved, dragoman.Info, extra.Elem(e.list, first).String(), "results are reordered to match their calls")
	}
	for _, p := range all {
		if len(p.m.Parts) == 1 && e.replay(p.m) {
			continue
		}
		if err := e.result(p.res, p.at); err != nil {
			return err
		}
	}
	if len(e.spilled) > 0 {
		e.plain(&dragoman.Message{Role: dragoman.RoleUser, Parts: e.spilled}, extra.Elem(e.list, first+len(ms)-1))
		e.spilled = nil
	}
	for i := range ms {
		rest := slices.DeleteFunc(slices.Clone(ms[i].Parts), isResult)
		at := extra.Elem(e.list, first+i)
		if len(rest) == 0 {
			e.reportMessageLosses(&ms[i], at)
			continue
		}
		m := ms[i]
		m.Role, m.Parts = dragoman.RoleUser, rest
		e.plain(&m, at)
	}
	return nil
}

// mayReorder reports whether results are written in the order of their calls, which models expect
// (quirk D4). Results from this dialect keep their order, unless only the order determines which
// call they belong to.
func (e *messageEncoder) mayReorder(ms []dragoman.Message) bool {
	if !slices.ContainsFunc(ms, func(m dragoman.Message) bool { return ownElement(&m) }) {
		return true
	}
	for _, c := range e.calls {
		if c.bare {
			return true
		}
	}
	return false
}

func (e *messageEncoder) result(res *dragoman.ToolResult, at extra.Path) error {
	call, known := e.calls[res.CallID]
	if known && (call.bare || res.Name == "") {
		named := *res
		if call.bare {
			named.CallID = ""
		}
		if res.Name == "" {
			named.Name, named.Namespace = call.part.Name, call.part.Namespace
		}
		res = &named
	}
	if res.Name == "" {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/name", "the result does not name its tool; the model can only infer it from the order")
	}
	if e.target.Caps.NoResultMedia {
		res = e.moveMedia(res, at)
	}
	if _, err := e.reg.WriteResult(&e.w, res, at, e.rep); err != nil {
		return fmt.Errorf("ollama: %s: %w", at, err)
	}
	return nil
}

// moveMedia returns a result without its media, which moves to a user message after the results
// (quirk D13).
func (e *messageEncoder) moveMedia(res *dragoman.ToolResult, at extra.Path) *dragoman.ToolResult {
	if !slices.ContainsFunc(res.Content, isMedia) {
		return res
	}
	e.spilled = append(e.spilled, &dragoman.Text{Text: "Attached to the result of " + e.reg.WireName(res.Namespace, res.Name) + ":"})
	rest := *res
	rest.Content = nil
	for _, p := range res.Content {
		if isMedia(p) {
			e.spilled = append(e.spilled, p)
		} else {
			rest.Content = append(rest.Content, p)
		}
	}
	rest.Content = append(rest.Content, &dragoman.Text{Text: "(see what is attached below)"})
	e.rep.Add(dragoman.Moved, dragoman.Warn, at.String(), "media of a result is moved to a user message after the results")
	return &rest
}

// assistant writes a run of assistant messages as one.
func (e *messageEncoder) assistant(ms []dragoman.Message, first int) error {
	var t assistantContent
	for i := range ms {
		t.add(e, &ms[i], extra.Elem(e.list, first+i), i)
	}
	if t.empty() && !ownElement(&ms[0]) {
		e.rep.Add(dragoman.Dropped, dragoman.Info, extra.Elem(e.list, first).String(), "assistant message has neither content nor calls")
		return nil
	}
	e.w.BeginObject()
	e.w.StringField("role", "assistant")
	if err := t.write(e, ms, first); err != nil {
		return err
	}
	e.w.EndObject()
	return nil
}

// assistantContent is a run of assistant messages, sorted by Ollama field.
type assistantContent struct {
	content  messageContent
	thinking []string
	calls    []placedPart
}

type placedPart struct {
	part dragoman.Part
	m    *dragoman.Message
	at   extra.Path
}

func (t *assistantContent) empty() bool {
	return t.content.empty() && len(t.thinking) == 0 && len(t.calls) == 0
}

func (t *assistantContent) add(e *messageEncoder, m *dragoman.Message, at extra.Path, n int) {
	if n > 0 && !t.content.empty() && slices.ContainsFunc(m.Parts, becomesText) {
		// Parts of one message are concatenated; messages are separated.
		t.content.add(e.reg.View(), &dragoman.Text{Text: blankLine}, at, e.rep)
		e.rep.Add(dragoman.Moved, dragoman.Info, at.String(), "merged with the previous assistant message")
	}
	for i, p := range m.Parts {
		here := placedPart{p, m, at.Elem("parts", i)}
		switch p := p.(type) {
		case *dragoman.ToolCall:
			t.addCall(e, p, here)
		case *dragoman.Opaque:
			switch {
			case p.Dialect == name && p.Type == typeCall && e.list == "/messages":
				t.calls = append(t.calls, here)
			case p.Dialect == name && p.Type == typeCall:
				// A client might find a call in it and run it.
				e.rep.Add(dragoman.Dropped, dragoman.Serious, here.at.String(), "a malformed call is not forwarded")
			default:
				t.content.add(e.reg.View(), p, here.at, e.rep)
			}
		case *dragoman.Reasoning:
			t.addThinking(e, p, here.at)
		default:
			t.content.add(e.reg.View(), p, here.at, e.rep)
		}
	}
}

// becomesText reports whether a part is written to the content string.
func becomesText(p dragoman.Part) bool {
	switch p.Kind() {
	case codes.KindText, codes.KindRefusal, codes.KindData:
		return true
	default:
		return false
	}
}

func (t *assistantContent) addCall(e *messageEncoder, c *dragoman.ToolCall, here placedPart) {
	switch {
	case c.Hosted:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.at.String(), "call of %.80q was run by its provider; Ollama has no hosted calls", c.Name)
	case e.list == "/output" && (e.callsBlocked || blocked(c)):
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.at.String(), "call of %.80q must not run; it is not sent because Ollama clients run every call", c.Name)
	default:
		t.calls = append(t.calls, here)
	}
}

// addThinking adds the visible text of reasoning. The wire has an unsigned field for it. Opaque
// reasoning is only valid for its own provider.
func (t *assistantContent) addThinking(e *messageEncoder, p *dragoman.Reasoning, at extra.Path) {
	if e.list == "/messages" && e.target.Caps.NoReasoning {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, at.String(), "the target does not accept earlier reasoning")
		return
	}
	wirekit.ReportReasoning(e.rep, name, p, at)
	if text := wirekit.VisibleReasoning(p); text != "" {
		t.thinking = append(t.thinking, text)
	}
}

// write writes the fields of an assistant message except its role.
func (t *assistantContent) write(e *messageEncoder, ms []dragoman.Message, first int) error {
	t.content.write(&e.w, "", extra.Elem(e.list, first), e.rep)
	if len(t.thinking) > 0 {
		e.w.StringField("thinking", strings.Join(t.thinking, blankLine))
	}
	if len(t.calls) > 0 {
		e.w.Key("tool_calls")
		e.w.BeginArray()
		for _, c := range t.calls {
			if err := e.call(c); err != nil {
				return err
			}
		}
		e.w.EndArray()
	}
	e.extras(ms, len(t.content.images) > 0)
	for i := range ms {
		e.reportMessageLosses(&ms[i], extra.Elem(e.list, first+i))
	}
	return nil
}

// call writes one call. An id that we generated for a call of an older server is omitted, because
// such servers do not expect ids.
func (e *messageEncoder) call(p placedPart) error {
	if o, ok := p.part.(*dragoman.Opaque); ok {
		e.w.Raw(o.JSON)
		return nil
	}
	c := p.part.(*dragoman.ToolCall)
	bare := c.Synthetic && ownElement(p.m) || e.target.Caps.NoCallIDs
	e.recordCall(c, bare)
	if bare {
		withoutID := *c
		withoutID.ID = ""
		c = &withoutID
	}
	if err := e.reg.WriteCall(&e.w, c, p.at, e.rep); err != nil {
		return fmt.Errorf("ollama: %s: %w", p.at, err)
	}
	return nil
}
