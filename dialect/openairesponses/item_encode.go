package openairesponses

import (
	"encoding/json"
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

// itemEncoder encodes the messages of a conversation as input items. Each message is encoded
// independently, so that appending messages does not change earlier items.
type itemEncoder struct {
	w      jsonwire.Writer
	reg    *interop.Registry
	limits targets.Limits
	target targets.Target
	o      dialect.EncodeOptions
	rep    *dragoman.Report
	tools  []dragoman.ToolSpec
	// native is set if the request came from this dialect: its items are those of the client,
	// including ids.
	native bool
	// stored is set if the server stores the items of this conversation.
	stored bool
	called map[string]*dragoman.ToolCall // by id; the latest one counts
}

func (e *itemEncoder) messages(ms []dragoman.Message) error {
	e.called = make(map[string]*dragoman.ToolCall)
	for i := range ms {
		if err := e.message(&ms[i], extra.Elem("/messages", i)); err != nil {
			return err
		}
	}
	return nil
}

// breakpoints counts the cache breakpoints that can be written: those on content that is not from
// the assistant, and on the content of results.
func (e *itemEncoder) breakpoints(ms []dragoman.Message) int {
	n := 0
	count := func(parts []dragoman.Part) {
		for _, p := range parts {
			switch p := p.(type) {
			case *dragoman.Text:
				if p.Cache != nil {
					n++
				}
			case *dragoman.Media:
				if p.Cache != nil && e.target.Caps.AcceptsMedia(p.Media) {
					n++
				}
			}
		}
	}
	for i := range ms {
		m := &ms[i]
		last := 0 // where the content at the end of the message begins
		for j, p := range m.Parts {
			if res, ok := p.(*dragoman.ToolResult); ok && res.Envelope == nil {
				count(res.Content)
			}
			if !isContent(m, p) {
				last = j + 1
			}
		}
		if m.Role == dragoman.RoleAssistant {
			continue
		}
		count(m.Parts[:last])
		parts := m.Parts[last:]
		if m.Cache != nil {
			parts, _ = wirekit.WithCache(parts, m.Cache)
		}
		count(parts)
	}
	return n
}

// verbatim reports whether a message was sent by the client in this dialect and has no other
// known origin.
func (e *itemEncoder) verbatim(m *dragoman.Message) bool {
	o := m.Origin
	return e.native && o != nil && o.Dialect == name && o.Provider == "" && o.Scope == ""
}

// keepsIDs reports whether the item ids of a message may be sent: to the account that stores the
// items, or in messages of the client itself (quirks B28, D28). An unknown account does not
// match, because an id that the server does not know fails the request.
func (e *itemEncoder) keepsIDs(m *dragoman.Message) bool {
	if e.verbatim(m) {
		return true
	}
	o, t := m.Origin, e.target.Origin()
	return e.stored && o != nil && o.Provider != "" && o.Scope != "" && t.Provider != "" && t.Scope != "" &&
		e.limits.Replay.ItemIDs.Allows(o, t)
}

// replay returns the native form of a message if it may be sent unchanged.
func (e *itemEncoder) replay(m *dragoman.Message) ([]byte, bool) {
	raw, ok := wirekit.ReplayMessage(m, &e.limits, &e.target, e.o.Rebuild)
	if !ok {
		return nil, false
	}
	if e.verbatim(m) {
		return raw, true
	}
	if e.keepsIDs(m) {
		for _, p := range m.Parts {
			if r, ok := p.(*dragoman.Reasoning); ok && !e.maySend(m, r) {
				return nil, false
			}
		}
		return raw, true
	}
	// If its id and status may not be sent, only an item without them can be replayed.
	if hasOwnField(m.Extra, "/id") || hasOwnField(m.Extra, "/status") {
		return nil, false
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case *dragoman.ToolCall:
			if p.ItemID != "" || hasOwnField(p.Extra, "/status") {
				return nil, false
			}
		case *dragoman.ToolResult:
			if p.ItemID != "" || hasOwnField(p.Extra, "/status") {
				return nil, false
			}
		case *dragoman.Reasoning, *dragoman.Opaque:
			return nil, false
		}
	}
	return raw, true
}

func hasOwnField(x *dragoman.Extra, path string) bool {
	_, ok := extra.Get(x, name, path)
	return ok
}

// message writes the items of one message. An assistant message from a dialect with one message
// per turn becomes several items, in the same order.
func (e *itemEncoder) message(m *dragoman.Message, at extra.Path) error {
	for _, p := range m.Parts {
		if c, ok := p.(*dragoman.ToolCall); ok {
			e.called[c.ID] = c
		}
	}
	if raw, ok := e.replay(m); ok {
		e.w.Raw(raw)
		return nil
	}
	if m.Name != "" {
		e.rep.Add(dragoman.Dropped, dragoman.Warn, at.String()+"/name", "Responses has no participant names")
	}
	extra.Report(e.rep, m.Extra, name, at)
	if len(m.Parts) == 0 {
		if m.Role == dragoman.RoleAssistant && (m.Origin == nil || m.Origin.Dialect != name) {
			e.rep.Add(dragoman.Dropped, dragoman.Info, at.String(), "assistant message has no content") // quirk B36
			return nil
		}
		e.content(m, 0, 0, at)
		return nil
	}
	start := 0
	for i, p := range m.Parts {
		if isContent(m, p) {
			continue
		}
		if i > start {
			e.content(m, start, i, at)
		}
		start = i + 1
		if err := e.item(m, p, at.Elem("parts", i)); err != nil {
			return err
		}
	}
	if start < len(m.Parts) {
		e.content(m, start, len(m.Parts), at)
	} else if m.Cache != nil {
		e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: not possible after this type of item")
	}
	return nil
}

// isContent reports whether a part is content of a message item, not a separate item.
func isContent(m *dragoman.Message, p dragoman.Part) bool {
	switch p := p.(type) {
	case *dragoman.Reasoning, *dragoman.ToolCall, *dragoman.ToolResult:
		return false
	case *dragoman.Opaque:
		return p.Dialect == name && (contentType(p.Type) || hasOwnField(m.Extra, "/content"))
	default:
		return true
	}
}

// content writes parts start to end of a message as one message item.
func (e *itemEncoder) content(m *dragoman.Message, start, end int, at extra.Path) {
	w := &e.w
	before := len(w.Buf)
	w.BeginObject()
	w.StringField("type", "message")
	w.StringField("role", e.role(m, at))
	assistant := m.Role == dragoman.RoleAssistant
	w.Key("content")
	w.BeginArray()
	wrote := start == end
	parts := m.Parts[start:end]
	if m.Cache != nil && end == len(m.Parts) {
		marked := false
		if parts, marked = wirekit.WithCache(parts, m.Cache); !marked {
			e.rep.Add(dragoman.Dropped, dragoman.Info, at.String()+"/cache", "cache breakpoint: not possible after such a message")
		}
	}
	for i := start; i < end; i++ {
		p := e.fit(m, parts[i-start], at.Elem("parts", i))
		if t, ok := p.(*dragoman.Text); ok {
			extra.ReportState(e.rep, t.Signature, at.Elem("parts", i))
		}
		if writePart(e.reg.View(), w, p, assistant, at.Elem("parts", i), e.rep) {
			wrote = true
		}
	}
	w.EndArray()
	w.StringFieldIf("phase", m.Phase)
	if start == 0 {
		e.extras(m.Extra, e.keepsIDs(m), "content")
	}
	w.EndObject()
	if !wrote {
		w.Buf = w.Buf[:before] // all content was dropped and reported
	}
}

func (e *itemEncoder) role(m *dragoman.Message, at extra.Path) string {
	switch {
	case m.Role == dragoman.RoleDeveloper && e.target.Caps.NoDeveloperRole:
		e.rep.Add(dragoman.Lowered, dragoman.Info, at.String()+"/role", "developer message is written as a system message")
		return string(dragoman.RoleSystem)
	case m.Role == dragoman.RoleTool:
		e.rep.Add(dragoman.Moved, dragoman.Warn, at.String()+"/role", "text of a tool message is written as a user message")
		return string(dragoman.RoleUser)
	case m.Role == "":
		return string(dragoman.RoleUser)
	default:
		return string(m.Role)
	}
}

// extras writes the unknown fields of an item. Its id and status are written only if they may be
// sent (Limits.StrippedOnReplay). skip names fields that are already written.
func (e *itemEncoder) extras(x *dragoman.Extra, keepIDs bool, skip ...string) {
	if !keepIDs {
		skip = append(skip, e.limits.StrippedOnReplay...)
	}
	extra.Write(&e.w, withoutFields(x, skip...), name, "")
}

// withoutFields returns the extras of this dialect except those named.
func withoutFields(x *dragoman.Extra, names ...string) *dragoman.Extra {
	fields := x.For(name)
	if len(fields) == 0 {
		return nil
	}
	out := &dragoman.Extra{Dialect: name}
	for _, f := range fields {
		skip := false
		for _, n := range names {
			skip = skip || f.Path == "/"+n
		}
		if !skip {
			out.Fields = append(out.Fields, f)
		}
	}
	return out
}

// item writes a part that is a separate item.
func (e *itemEncoder) item(m *dragoman.Message, p dragoman.Part, at extra.Path) error {
	switch p := p.(type) {
	case *dragoman.ToolCall:
		return e.call(m, p, at)
	case *dragoman.ToolResult:
		return e.result(m, p, at)
	case *dragoman.Reasoning:
		e.reasoning(m, p, at)
	case *dragoman.Opaque:
		return e.opaque(m, p, at)
	}
	return nil
}

func (e *itemEncoder) call(m *dragoman.Message, c *dragoman.ToolCall, at extra.Path) error {
	if c.Hosted {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "call of %q was run by another provider", c.Name)
		return nil
	}
	if !e.keepsIDs(m) && (c.ItemID != "" || hasOwnField(c.Extra, "/status")) {
		bare := *c
		bare.ItemID, bare.Extra = "", withoutFields(c.Extra, e.limits.StrippedOnReplay...)
		c = &bare
	}
	return e.reg.WriteCall(&e.w, c, at, e.rep)
}

func (e *itemEncoder) result(m *dragoman.Message, res *dragoman.ToolResult, at extra.Path) error {
	out := *res
	call := e.called[res.CallID]
	if call != nil && out.Payload == "" {
		// The type of an output depends on its call.
		out.Payload = call.Payload
	}
	if call != nil && out.Caller == nil && hasOwnField(call.Extra, "/caller") {
		out.Caller = call.Caller
	}
	if !e.keepsIDs(m) && (out.ItemID != "" || hasOwnField(out.Extra, "/status")) {
		out.ItemID, out.Extra = "", withoutFields(out.Extra, e.limits.StrippedOnReplay...)
	}
	if call != nil && out.Envelope == nil && e.declaresOutput(call) {
		quoteOutput(&out, at, e.rep)
	}
	for i, p := range out.Content {
		if fitting := e.fit(m, p, at.Elem("content", i)); fitting != p {
			if &out.Content[0] == &res.Content[0] {
				out.Content = slices.Clone(res.Content)
			}
			out.Content[i] = fitting
		}
	}
	_, err := e.reg.WriteResult(&e.w, &out, at, e.rep)
	return err
}

// fit returns the part to write. Media of a type that OpenAI does not accept (quirk D14) is
// replaced with a text note, unless it came from this dialect.
func (e *itemEncoder) fit(m *dragoman.Message, p dragoman.Part, at extra.Path) dragoman.Part {
	media, ok := p.(*dragoman.Media)
	if !ok || media.Media != codes.MediaImage || media.Text != "" ||
		m.Origin != nil && m.Origin.Dialect == name || e.target.Caps.AnyMedia {
		return p
	}
	why := toolwire.OpenAIRefuses(media)
	if why == "" {
		return p
	}
	e.rep.Add(dragoman.Dropped, dragoman.Serious, at.String(), why+"; it is replaced with a text note")
	extra.Report(e.rep, media.Extra, name, at)
	return &dragoman.Text{Text: toolwire.Placeholder(media), Cache: media.Cache}
}

func (e *itemEncoder) declaresOutput(c *dragoman.ToolCall) bool {
	for i := range e.tools {
		if t := &e.tools[i]; t.Name == c.Name && t.Namespace == c.Namespace {
			return t.OutputSchema != nil
		}
	}
	return false
}

// quoteOutput converts a text result to a JSON string. A tool that declares the schema of its
// output must return JSON even if it fails (quirk D36).
func quoteOutput(res *dragoman.ToolResult, at extra.Path, rep *dragoman.Report) {
	for _, p := range res.Content {
		switch p.(type) {
		case *dragoman.Text, *dragoman.Data:
		default:
			return
		}
	}
	text := res.Text()
	if res.Outcome == codes.OutcomeError && !strings.HasPrefix(text, toolwire.ErrorPrefix) {
		text = toolwire.ErrorPrefix + text
	} else if json.Valid([]byte(text)) {
		return
	}
	var w jsonwire.Writer
	w.String(text)
	res.Content, res.Outcome = []dragoman.Part{&dragoman.Text{Text: string(w.Buf)}}, codes.OutcomeUnknown
	rep.Add(dragoman.Lowered, dragoman.Info, at.String(), "text is written as a JSON string, because the tool declares an output schema")
}

// maySend reports whether a reasoning item can be replayed: only to its origin, and only if the
// server stores it or can decrypt it (quirk D28).
func (e *itemEncoder) maySend(m *dragoman.Message, p *dragoman.Reasoning) bool {
	if !wirekit.MayReplayReasoning(m, p, &e.limits, &e.target) {
		return false
	}
	return e.verbatim(m) || p.Encrypted != "" || p.ID != "" && e.keepsIDs(m)
}

// reasoning writes a reasoning item, or reports why it cannot. The item keeps its id, which the
// schema requires. Items are never reordered, so it is followed by the same item as before (quirk
// D27).
func (e *itemEncoder) reasoning(m *dragoman.Message, p *dragoman.Reasoning, at extra.Path) {
	if !e.maySend(m, p) {
		why := "reasoning of another model or account cannot be replayed"
		if wirekit.MayReplayReasoning(m, p, &e.limits, &e.target) {
			why = "the server neither stores this reasoning nor can decrypt it"
		}
		e.rep.Add(dragoman.Dropped, dragoman.Warn, at.String(), why)
		return
	}
	w := &e.w
	w.BeginObject()
	w.StringField("type", "reasoning")
	w.StringFieldIf("id", p.ID)
	writeReasoningContent(w, p)
	w.StringFieldIf("encrypted_content", p.Encrypted)
	e.extras(p.Extra, e.keepsIDs(m), writtenFields(p)...)
	w.EndObject()
	extra.Report(e.rep, p.Extra, name, at)
}

// writeReasoningContent writes the visible fields of a reasoning item.
func writeReasoningContent(w *jsonwire.Writer, p *dragoman.Reasoning) {
	w.Key("summary")
	w.BeginArray()
	for _, s := range p.Summary {
		writeTyped(w, "summary_text", s)
	}
	w.EndArray()
	if p.Text != "" {
		w.Key("content")
		w.BeginArray()
		writeTyped(w, "reasoning_text", p.Text)
		w.EndArray()
	}
}

// writtenFields names the fields of a reasoning item that are written, so that its extras do not
// repeat them.
func writtenFields(p *dragoman.Reasoning) []string {
	names := []string{"summary"}
	if p.ID != "" {
		names = append(names, "id")
	}
	if p.Text != "" {
		names = append(names, "content")
	}
	if p.Encrypted != "" {
		names = append(names, "encrypted_content")
	}
	return names
}

func writeTyped(w *jsonwire.Writer, typ, text string) {
	w.BeginObject()
	w.StringField("type", typ)
	w.StringField("text", text)
	w.EndObject()
}

// opaque writes an unknown item. A reference to an item that the server has not stored is an
// error, because the conversation would lose the item.
func (e *itemEncoder) opaque(m *dragoman.Message, p *dragoman.Opaque, at extra.Path) error {
	replay := wirekit.MayReplayOpaque(m, p, &e.limits, &e.target)
	if p.Dialect == name && p.Type == "item_reference" && (!replay || !e.stored && !e.verbatim(m)) {
		return wirekit.UnresolvedItem(name, at.String(), p)
	}
	switch {
	case p.Dialect != name:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s is not valid in this dialect", extra.TypedNoun(p.Type, "block"), p.Dialect)
	case !replay:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of another provider cannot be replayed", extra.TypedNoun(p.Type, "item"))
	default:
		e.w.Raw(p.JSON)
	}
	return nil
}
