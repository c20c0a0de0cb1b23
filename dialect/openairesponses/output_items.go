package openairesponses

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/toolwire"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// outputEncoder writes the items of a response, whole or streamed.
type outputEncoder struct {
	reg    *interop.Registry
	o      dialect.EncodeOptions
	rep    *dragoman.Report
	seed   string // of the ids that must be made
	minted int
	used   map[string]bool // ids of items, which must differ
	// paramTold says that an event told the param of the error that a stream ended
	// with.
	paramTold bool
}

// outputItem is one item of the output being written.
type outputItem struct {
	kind itemKind
	// freeform says that a call is a custom_tool_call.
	freeform bool
	id       string
	at       extra.Path
	header   *dragoman.Message
	// parts of a message, or the one part that is the item; places are those of
	// the parts of a message, whose own is at.
	parts  []dragoman.Part
	places []extra.Path
	status string
	json   []byte // set once the item is final
	// payload is that of a call which was settled before it is written.
	payload *payload
}

// payload is the text a call carries. doubtful says that two clients could
// understand the call differently.
type payload struct {
	text     string
	doubtful bool
}

// mint makes an id in the shape of OpenAI's own, because clients keep it and
// may send it there.
func (e *outputEncoder) mint(prefix string) string {
	sum := sha256.Sum256([]byte(e.seed + "\x00" + prefix + "\x00" + strconv.Itoa(e.minted)))
	e.minted++
	return prefix + hex.EncodeToString(sum[:20])
}

// idOf is the id an item had on this wire, whoever minted it, or a new one.
func (e *outputEncoder) idOf(id, prefix string, m *dragoman.Message) string {
	if id == "" || m.Origin == nil || m.Origin.Dialect != name || e.used[id] {
		id = e.mint(prefix)
	}
	if e.used == nil {
		e.used = make(map[string]bool)
	}
	e.used[id] = true
	return id
}

// headerID is the id of a message item that came from this dialect.
func headerID(m *dragoman.Message) string {
	raw, ok := extra.Get(m.Extra, name, "/id")
	if !ok || len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return jsonwire.NewReader(raw).String()
}

// opaqueID is the id of an item that is not modelled.
func opaqueID(raw []byte) string {
	var d itemDecoder
	return d.head(raw).id
}

// open makes the item that a part opens: a message for content, an item of its
// own for the rest. It returns nil, with a report, for what has no place in an
// output.
func (e *outputEncoder) open(p dragoman.Part, m *dragoman.Message, at extra.Path) *outputItem {
	it := &outputItem{at: at, header: m, parts: []dragoman.Part{p}, status: "completed"}
	switch p := p.(type) {
	case *dragoman.Text, *dragoman.Refusal, *dragoman.Data:
		it.kind, it.id, it.parts = messageItem, e.idOf(headerID(m), "msg_", m), nil
	case *dragoman.Reasoning:
		it.kind, it.id = reasoningItem, e.idOf(p.ID, "rs_", m)
	case *dragoman.ToolCall:
		if p.Hosted {
			// As a call it would ask the client to run it.
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "call of %q, which another provider ran itself", p.Name)
			return nil
		}
		// Every text is an input that a freeform tool runs, so a call that
		// nobody can say the meaning of is not written as one.
		it.kind, it.freeform = callItem, p.Payload == codes.PayloadText && !unclear(p)
		prefix := "fc_"
		if it.freeform {
			prefix = "ctc_"
		}
		it.id = e.idOf(p.ItemID, prefix, m)
	case *dragoman.Opaque:
		if p.Dialect != name {
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s", extra.AType(p.Type, "block"), p.Dialect)
			return nil
		}
		it.kind, it.id = opaqueItem, opaqueID(p.JSON)
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s part has no place in an output", extra.A(p.Kind()))
		return nil
	}
	return it
}

// close writes the item in its final form.
func (e *outputEncoder) close(it *outputItem) []byte {
	if it.json != nil {
		return it.json
	}
	var w jsonwire.Writer
	switch it.kind {
	case messageItem:
		e.writeMessage(&w, it)
	case reasoningItem:
		e.writeReasoning(&w, it)
	case callItem:
		e.writeCall(&w, it)
	default:
		w.Raw(it.parts[0].(*dragoman.Opaque).JSON)
	}
	it.json = w.Buf
	return it.json
}

func (e *outputEncoder) writeMessage(w *jsonwire.Writer, it *outputItem) {
	w.BeginObject()
	w.StringField("id", it.id)
	w.StringField("type", "message")
	w.StringField("status", it.status)
	w.StringField("role", string(dragoman.RoleAssistant))
	w.StringFieldIf("phase", it.header.Phase)
	w.Key("content")
	w.BeginArray()
	for i, p := range it.parts {
		e.writePart(w, p, it.places[i])
	}
	w.EndArray()
	extra.Write(w, without(it.header.Extra, "id", "status", "content"), name, "")
	w.EndObject()
	extra.Report(e.rep, it.header.Extra, name, it.at)
}

// unsaid reports what a message of the output says beside its content that is
// not written. A message of which only calls or reasoning stay has no item of
// its own to say it in.
func (e *outputEncoder) unsaid(m *dragoman.Message, written bool, at extra.Path) {
	wirekit.ReportSpeaker(e.rep, m, at)
	if written {
		return
	}
	extra.Report(e.rep, m.Extra, name, at)
	if m.Phase != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %.40q: no text is left to say it of", m.Phase)
	}
}

// writePart writes content of the assistant's, with the members that clients
// demand.
func (e *outputEncoder) writePart(w *jsonwire.Writer, p dragoman.Part, at extra.Path) {
	switch t := p.(type) {
	case *dragoman.Data:
		p = &dragoman.Text{Text: string(t.JSON)}
	case *dragoman.Text:
		extra.ReportState(e.rep, t.Signature, at)
	}
	if t, ok := p.(*dragoman.Text); ok {
		full := *t
		full.Extra, full.Cache = &dragoman.Extra{Dialect: name, Fields: append([]dragoman.Field(nil), t.Extra.For(name)...)}, nil
		for _, member := range []string{"annotations", "logprobs"} {
			if !own(t.Extra, "/"+member) {
				full.Extra.Fields = append(full.Extra.Fields, dragoman.Field{Path: "/" + member, Value: []byte("[]")})
			}
		}
		extra.Report(e.rep, t.Extra, name, at)
		p = &full
	}
	writePart(e.reg.View(), w, p, true, at, e.rep)
}

func (e *outputEncoder) writeReasoning(w *jsonwire.Writer, it *outputItem) {
	p := it.parts[0].(*dragoman.Reasoning)
	w.BeginObject()
	w.StringField("id", it.id)
	w.StringField("type", "reasoning")
	writeThinking(w, p)
	skip := append(thinkingMembers(p), "id")
	if e.readable(p, it.header) {
		w.StringFieldIf("encrypted_content", p.Encrypted)
	} else {
		skip = append(skip, "encrypted_content")
		if p.Encrypted != "" || p.Signature != "" || p.Details != nil {
			extra.ReportOpaque(e.rep, it.at.String())
		}
	}
	extra.Write(w, without(p.Extra, skip...), name, "")
	w.EndObject()
	extra.Report(e.rep, p.Extra, name, it.at)
}

// readable reports whether encrypted reasoning was made by this dialect.
func (e *outputEncoder) readable(p *dragoman.Reasoning, m *dragoman.Message) bool {
	origin := m.Origin
	if p.Origin != nil {
		origin = p.Origin
	}
	return origin != nil && origin.Dialect == name
}

func (e *outputEncoder) writeCall(w *jsonwire.Writer, it *outputItem) {
	c := *it.parts[0].(*dragoman.ToolCall)
	carries := it.payload
	if carries == nil {
		carries = payloadOf(&c, it.freeform)
	}
	arguments := carries.text
	if carries.doubtful {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, it.at.String()+"/arguments", "arguments written as %.40s: clients could understand them differently", arguments)
	}
	c.ItemID = it.id
	c.Payload = codes.PayloadObject
	if it.freeform {
		c.Payload = codes.PayloadText
	}
	status := it.status
	if raw, ok := extra.Get(c.Extra, name, "/status"); ok && status == "completed" {
		status = strings.Trim(string(raw), `"`)
	}
	report := c.Extra
	c.Extra = without(c.Extra, "status", "id")
	if c.Extra == nil {
		c.Extra = &dragoman.Extra{Dialect: name}
	}
	c.Extra.Fields = append(c.Extra.Fields, dragoman.Field{Path: "/status", Value: []byte(`"` + status + `"`)})
	extra.Report(e.rep, report, name, it.at)

	// A client must see arguments as they are, or it would run the tool with
	// none (quirk B9); an item and the event that ends its payload must say the
	// same. Both write payloadOf.
	c.Arguments, c.Problem = "", nil
	if err := e.reg.WriteCall(w, &c, it.at, e.rep); err != nil {
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, it.at.String(), "%v", err)
		return
	}
	key := "arguments"
	if it.freeform {
		key = "input"
	}
	if out, err := jsonwire.ReplaceString(w.Buf, arguments, []string{key}); err == nil {
		w.Buf = out
	}
}

// unclear reports whether two clients could understand a call differently.
func unclear(c *dragoman.ToolCall) bool {
	_, why := toolwire.AnswerText(c)
	return why != nil
}

// payloadOf is the text a call carries: its input where it is freeform, else
// its arguments, {} where the model gave none (quirk C23). Arguments that clients
// would understand differently are only told.
// Long arguments are looked at once for all of it.
func payloadOf(c *dragoman.ToolCall, freeform bool) *payload {
	told, why := toolwire.AnswerText(c)
	p := &payload{text: told, doubtful: why != nil}
	switch {
	case freeform:
		p.text = c.Arguments
	case why != nil, c.Payload == codes.PayloadText:
	case c.Problem != nil && c.Arguments == "":
		p.text = "" // it was cut off before the first, and {} would run
	default:
		switch strings.TrimSpace(c.Arguments) {
		case "", "null", `""`: // the spellings of none
			p.text = "{}"
		}
	}
	return p
}

// callStatus is the status of a call item.
func callStatus(c *dragoman.ToolCall) string {
	if _, barred := wirekit.Barred(c); barred || c.Status == codes.StatusIncomplete {
		return "incomplete"
	}
	return "completed"
}

// itemStatus is the status of a message item.
func itemStatus(m *dragoman.Message) string {
	if m.Status == codes.StatusIncomplete {
		return "incomplete"
	}
	return "completed"
}
