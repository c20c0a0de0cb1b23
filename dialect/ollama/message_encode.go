package ollama

import (
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/resultorder"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
	"github.com/dragoman-go/dragoman/targets"
)

// messageEncoder writes a conversation as Ollama messages.
type messageEncoder struct {
	w      jsonwire.Writer
	list   string // where the messages stand in the canonical source
	reg    *interop.Registry
	limits targets.Limits
	target targets.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report
	// calls are those of the latest turn, by id: what a result says of the call
	// it answers is looked up here (quirk D15).
	calls map[string]writtenCall
	// spilled is media of results that is still to be written.
	spilled []dragoman.Part
	// halted: an answer ended in a way after which none of its calls may run.
	halted bool
}

// writtenCall is a call as it stands on the wire.
type writtenCall struct {
	part *dragoman.ToolCall
	// bare: it has no id there.
	bare     bool
	position int
}

func (e *messageEncoder) instructions(parts []dragoman.Part) {
	if len(parts) > 0 {
		m := dragoman.Message{Role: dragoman.RoleSystem, Parts: parts}
		e.plain(&m, extra.List("/instructions"))
	}
}

// messages writes the list. A run of assistant messages that did not come from
// this dialect is one turn and becomes one message (quirk D20).
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

// ownElement reports whether a message was an element of an Ollama list
// already.
func ownElement(m *dragoman.Message) bool { return m.Origin != nil && m.Origin.Dialect == name }

func hasResults(m *dragoman.Message) bool {
	return m.Role == dragoman.RoleTool || slices.ContainsFunc(m.Parts, isResult)
}

func isResult(p dragoman.Part) bool { return p.Kind() == codes.KindToolResult }

// replay writes a message as it came, where it was not changed and the target
// may see it.
func (e *messageEncoder) replay(m *dragoman.Message) bool {
	raw, ok := wirekit.ReplayMessage(m, &e.limits, &e.target, e.o.Rebuild)
	if !ok || !e.suits(m) {
		return false
	}
	for _, c := range m.ToolCalls() {
		e.note(c, c.Synthetic)
	}
	e.w.Raw(raw)
	return true
}

// suits reports whether the target's deviations and the registry leave a native
// message alone.
func (e *messageEncoder) suits(m *dragoman.Message) bool {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.Media:
			if !e.target.Caps.TakesMedia(p.Media) {
				return false
			}
		case *dragoman.Reasoning:
			if !e.thinks(m, p) {
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
			// Of an id that we wrote or left out, the native result knows nothing.
			if c, known := e.calls[p.CallID]; known && c.bare != c.part.Synthetic {
				return false
			}
		}
	}
	return true
}

func isMedia(p dragoman.Part) bool { return p.Kind() == codes.KindMedia }

// thinks reports whether the target takes a message's thinking back.
func (e *messageEncoder) thinks(m *dragoman.Message, p *dragoman.Reasoning) bool {
	return !e.target.Caps.NoReasoning && wirekit.MayReplayReasoning(m, p, &e.limits, &e.target)
}

// note remembers a call that was written.
func (e *messageEncoder) note(c *dragoman.ToolCall, bare bool) {
	if e.calls == nil {
		e.calls = map[string]writtenCall{}
	}
	e.calls[c.ID] = writtenCall{part: c, bare: bare, position: len(e.calls)}
}

// plain writes a message that holds neither calls nor results.
func (e *messageEncoder) plain(m *dragoman.Message, at extra.Path) {
	role := string(m.Role)
	switch m.Role {
	case dragoman.RoleDeveloper:
		role = string(dragoman.RoleSystem)
		e.rep.Add(dragoman.Lowered, dragoman.Info, at.String()+"/role", "a developer message written as a system message")
	case dragoman.RoleSystem, dragoman.RoleUser, dragoman.RoleAssistant, dragoman.RoleTool:
	default:
		if !ownElement(m) {
			e.rep.Addf(dragoman.Lowered, dragoman.Warn, at.String()+"/role", "Ollama has no role %.40q; written as a user message", role)
			role = string(dragoman.RoleUser)
		}
	}
	var content messageContent
	for i, p := range m.Parts {
		content.add(e.reg.View(), p, at.Elem("parts", i), e.rep)
	}
	if content.empty() && !ownElement(m) {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "a message without content")
		return
	}
	e.w.BeginObject()
	e.w.StringField("role", role)
	content.write(&e.w, blankLine, at, e.rep)
	e.extras([]dragoman.Message{*m}, len(content.images) > 0)
	e.w.EndObject()
	e.unsaidOf(m, at)
}

// unsaidOf reports what a message says that Ollama has no member for.
func (e *messageEncoder) unsaidOf(m *dragoman.Message, at extra.Path) {
	extra.Report(e.rep, m.Extra, name, at)
	if m.Name != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/name", "the participant's name %.40q", m.Name)
	}
	if m.Phase != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %.40q", m.Phase)
	}
	if m.Cache != nil {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint after a message: Ollama caches by itself")
	}
}

// extras writes the members of a run of messages, which becomes one, that are
// not modelled. What was kept to say that a member was null or empty is left
// out once it is not.
func (e *messageEncoder) extras(ms []dragoman.Message, images bool) {
	var kept *dragoman.Extra
	have := map[string]bool{}
	for i := range ms {
		for _, f := range ms[i].Extra.For(name) {
			if have[f.Path] && i > 0 || filled(ms, f, images) {
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

// filled reports whether a member that was put aside is written by now.
func filled(ms []dragoman.Message, f dragoman.Field, images bool) bool {
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

// results writes one tool message per result, then what else the messages held.
func (e *messageEncoder) results(ms []dragoman.Message, first int) error {
	type placed struct {
		m    *dragoman.Message
		res  *dragoman.ToolResult
		at   extra.Path
		rank int // the position of the call that it answers
	}
	var all []placed
	answered := map[string]bool{}
	for i := range ms {
		for j, p := range ms[i].Parts {
			if res, ok := p.(*dragoman.ToolResult); ok {
				here := placed{&ms[i], res, extra.Elem(e.list, first+i).Elem("parts", j), len(e.calls)}
				// One that answers no call, or a call again, stays where it was
				// appended.
				if c, ok := e.calls[res.CallID]; ok && !answered[res.CallID] {
					here.rank = c.position
				}
				answered[res.CallID] = true
				all = append(all, here)
			}
		}
	}
	if e.mayArrange(ms) && resultorder.Sort(all, func(p placed) int { return p.rank }) {
		e.rep.Add(dragoman.Moved, dragoman.Info, extra.Elem(e.list, first).String(), "results stand in the order of their calls")
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
			e.unsaidOf(&ms[i], at)
			continue
		}
		m := ms[i]
		m.Role, m.Parts = dragoman.RoleUser, rest
		e.plain(&m, at)
	}
	return nil
}

// mayArrange reports whether results are put in the order of their calls, which
// is what models are used to (quirk D4). Those that came from this dialect stay
// as they came, unless nothing but the order says which call they answer.
func (e *messageEncoder) mayArrange(ms []dragoman.Message) bool {
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
		e.rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/name", "nothing says which tool a result came from; models read it by its place")
	}
	if e.target.Caps.NoResultMedia {
		res = e.spill(res, at)
	}
	if _, err := e.reg.WriteResult(&e.w, res, at, e.rep); err != nil {
		return fmt.Errorf("ollama: %s: %w", at, err)
	}
	return nil
}

// spill returns a result without its media, which goes to a user message behind
// the results (quirk D13).
func (e *messageEncoder) spill(res *dragoman.ToolResult, at extra.Path) *dragoman.ToolResult {
	if !slices.ContainsFunc(res.Content, isMedia) {
		return res
	}
	e.spilled = append(e.spilled, &dragoman.Text{Text: "Attached to the result of " + e.reg.WireName(res.Namespace, res.Name) + ":"})
	words := *res
	words.Content = nil
	for _, p := range res.Content {
		if isMedia(p) {
			e.spilled = append(e.spilled, p)
		} else {
			words.Content = append(words.Content, p)
		}
	}
	words.Content = append(words.Content, &dragoman.Text{Text: "(see what is attached below)"})
	e.rep.Add(dragoman.Moved, dragoman.Warn, at.String(), "media of a result moved to a user message behind the results")
	return &words
}

// assistant writes a run of assistant messages as one.
func (e *messageEncoder) assistant(ms []dragoman.Message, first int) error {
	var t speech
	for i := range ms {
		t.add(e, &ms[i], extra.Elem(e.list, first+i), i)
	}
	if t.silent() && !ownElement(&ms[0]) {
		e.rep.Add(dragoman.Dropped, dragoman.Info, extra.Elem(e.list, first).String(), "an assistant message with neither content nor calls")
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

// speech is a run of assistant messages, sorted by where Ollama wants things.
type speech struct {
	content  messageContent
	thinking []string
	calls    []placedPart
}

type placedPart struct {
	part dragoman.Part
	m    *dragoman.Message
	at   extra.Path
}

func (t *speech) silent() bool {
	return t.content.empty() && len(t.thinking) == 0 && len(t.calls) == 0
}

func (t *speech) add(e *messageEncoder, m *dragoman.Message, at extra.Path, n int) {
	if n > 0 && !t.content.empty() && slices.ContainsFunc(m.Parts, speaks) {
		// Parts of one message run on, messages are set apart.
		t.content.add(e.reg.View(), &dragoman.Text{Text: blankLine}, at, e.rep)
		e.rep.Add(dragoman.Moved, dragoman.Info, at.String(), "written as one with the assistant message before it")
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
				// A client could find a call in it to run.
				e.rep.Add(dragoman.Dropped, dragoman.Serious, here.at.String(), "a call that cannot be read is not passed on")
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

// speaks reports whether a part becomes text of the content.
func speaks(p dragoman.Part) bool {
	switch p.Kind() {
	case codes.KindText, codes.KindRefusal, codes.KindData:
		return true
	default:
		return false
	}
}

func (t *speech) addCall(e *messageEncoder, c *dragoman.ToolCall, here placedPart) {
	switch {
	case c.Hosted:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.at.String(), "call of %.80q was run by its provider", c.Name)
	case e.list == "/output" && (e.halted || barred(c)):
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, here.at.String(), "call of %.80q must not run, and clients of Ollama run every call they get", c.Name)
	default:
		t.calls = append(t.calls, here)
	}
}

// addThinking takes the visible text of reasoning: the wire has a member for
// it, which nobody signs. What is opaque belongs to its own provider.
func (t *speech) addThinking(e *messageEncoder, p *dragoman.Reasoning, at extra.Path) {
	if e.list == "/messages" && e.target.Caps.NoReasoning {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, at.String(), "the target takes no reasoning back")
		return
	}
	e.unsaidOfThinking(p, at)
	if text := visible(p); text != "" {
		t.thinking = append(t.thinking, text)
	}
}

func (e *messageEncoder) unsaidOfThinking(p *dragoman.Reasoning, at extra.Path) {
	extra.ReportItem(e.rep, p.ID, at, "/id")
	extra.Report(e.rep, p.Extra, name, at)
	if p.Signature != "" || p.Encrypted != "" || len(p.Details) > 0 {
		extra.ReportOpaque(e.rep, at.String())
	}
}

func visible(p *dragoman.Reasoning) string {
	if p.Text != "" {
		return p.Text
	}
	return strings.Join(p.Summary, blankLine)
}

// write writes the members of an assistant message but its role.
func (t *speech) write(e *messageEncoder, ms []dragoman.Message, first int) error {
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
		e.unsaidOf(&ms[i], extra.Elem(e.list, first+i))
	}
	return nil
}

// call writes one call. An id that we made for a call of an older server, which
// had none, is nothing that such a server wants to see.
func (e *messageEncoder) call(p placedPart) error {
	if o, ok := p.part.(*dragoman.Opaque); ok {
		e.w.Raw(o.JSON)
		return nil
	}
	c := p.part.(*dragoman.ToolCall)
	bare := c.Synthetic && ownElement(p.m) || e.target.Caps.NoCallIDs
	e.note(c, bare)
	if bare {
		anonymous := *c
		anonymous.ID = ""
		c = &anonymous
	}
	if err := e.reg.WriteCall(&e.w, c, p.at, e.rep); err != nil {
		return fmt.Errorf("ollama: %s: %w", p.at, err)
	}
	return nil
}
