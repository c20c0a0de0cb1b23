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

// outputEncoder encodes the items of a response, whole or streamed.
type outputEncoder struct {
	reg       *interop.Registry
	o         dialect.EncodeOptions
	rep       *dragoman.Report
	seed      string // seed of generated ids
	generated int
	used      map[string]bool // item ids, which must be unique
	// paramSent is set if an event already contained the param of the final error of a stream.
	paramSent bool
}

// outputItem is one item of the output.
type outputItem struct {
	kind itemKind
	// freeform is set for a call that is a custom_tool_call.
	freeform bool
	id       string
	at       extra.Path
	header   *dragoman.Message
	// parts are the parts of a message, or the single part of any other item. places are the
	// paths of the parts of a message; at is the path of the message.
	parts  []dragoman.Part
	places []extra.Path
	status string
	json   []byte // set once the item is final
	// payload is set for a call whose payload is computed before it is written.
	payload *payload
}

// payload is the text of the arguments or the input of a call. ambiguousText is set if clients
// could interpret the call in different ways.
type payload struct {
	text          string
	ambiguousText bool
}

// generateID generates an id in the format of OpenAI, because clients store it and may send it to
// OpenAI.
func (e *outputEncoder) generateID(prefix string) string {
	sum := sha256.Sum256([]byte(e.seed + "\x00" + prefix + "\x00" + strconv.Itoa(e.generated)))
	e.generated++
	return prefix + hex.EncodeToString(sum[:20])
}

// idOf returns the original id of an item of this dialect, or a new one.
func (e *outputEncoder) idOf(id, prefix string, m *dragoman.Message) string {
	if id == "" || m.Origin == nil || m.Origin.Dialect != name || e.used[id] {
		id = e.generateID(prefix)
	}
	if e.used == nil {
		e.used = make(map[string]bool)
	}
	e.used[id] = true
	return id
}

// headerID returns the id of a message item that came from this dialect.
func headerID(m *dragoman.Message) string {
	raw, ok := extra.Get(m.Extra, name, "/id")
	if !ok || len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return jsonwire.NewReader(raw).String()
}

// opaqueID returns the id of an unknown item.
func opaqueID(raw []byte) string {
	var d itemDecoder
	return d.head(raw).id
}

// open creates the item for a part: a message for content, a separate item for any other part. It
// returns nil, and reports a loss, if an output cannot contain the part.
func (e *outputEncoder) open(p dragoman.Part, m *dragoman.Message, at extra.Path) *outputItem {
	it := &outputItem{at: at, header: m, parts: []dragoman.Part{p}, status: "completed"}
	switch p := p.(type) {
	case *dragoman.Text, *dragoman.Refusal, *dragoman.Data:
		it.kind, it.id, it.parts = messageItem, e.idOf(headerID(m), "msg_", m), nil
	case *dragoman.Reasoning:
		it.kind, it.id = reasoningItem, e.idOf(p.ID, "rs_", m)
	case *dragoman.ToolCall:
		if p.Hosted {
			// The client would run it.
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "call of %q was run by another provider", p.Name)
			return nil
		}
		// A freeform tool accepts every text, so an ambiguous call is not written as a freeform
		// call.
		it.kind, it.freeform = callItem, p.Payload == codes.PayloadText && !unclear(p)
		prefix := "fc_"
		if it.freeform {
			prefix = "ctc_"
		}
		it.id = e.idOf(p.ItemID, prefix, m)
	case *dragoman.Opaque:
		if p.Dialect != name {
			e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "%s of %s is not valid in this dialect", extra.TypedNoun(p.Type, "block"), p.Dialect)
			return nil
		}
		it.kind, it.id = opaqueItem, opaqueID(p.JSON)
	default:
		e.rep.Addf(dragoman.Dropped, dragoman.Serious, at.String(), "an output cannot contain %s part", extra.WithArticle(p.Kind()))
		return nil
	}
	return it
}

// close writes the final form of the item.
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
	extra.Write(w, withoutFields(it.header.Extra, "id", "status", "content"), name, "")
	w.EndObject()
	extra.Report(e.rep, it.header.Extra, name, it.at)
}

// reportMessageLosses reports the fields of an output message that are not written. If only its
// calls or reasoning are written, there is no message item for its other fields.
func (e *outputEncoder) reportMessageLosses(m *dragoman.Message, written bool, at extra.Path) {
	wirekit.ReportName(e.rep, m, at)
	if written {
		return
	}
	extra.Report(e.rep, m.Extra, name, at)
	if m.Phase != "" {
		e.rep.Addf(dragoman.Dropped, dragoman.Info, at.String()+"/phase", "phase %.40q is dropped: the message has no text", m.Phase)
	}
}

// writePart writes assistant content with the fields that clients require.
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
			if !hasOwnField(t.Extra, "/"+member) {
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
	writeReasoningContent(w, p)
	skip := append(writtenFields(p), "id")
	if e.readable(p, it.header) {
		w.StringFieldIf("encrypted_content", p.Encrypted)
	} else {
		skip = append(skip, "encrypted_content")
		if p.Encrypted != "" || p.Signature != "" || p.Details != nil {
			extra.ReportOpaque(e.rep, it.at.String())
		}
	}
	extra.Write(w, withoutFields(p.Extra, skip...), name, "")
	w.EndObject()
	extra.Report(e.rep, p.Extra, name, it.at)
}

// readable reports whether encrypted reasoning was produced by this dialect.
func (e *outputEncoder) readable(p *dragoman.Reasoning, m *dragoman.Message) bool {
	origin := m.Origin
	if p.Origin != nil {
		origin = p.Origin
	}
	return origin != nil && origin.Dialect == name
}

func (e *outputEncoder) writeCall(w *jsonwire.Writer, it *outputItem) {
	c := *it.parts[0].(*dragoman.ToolCall)
	payload := it.payload
	if payload == nil {
		payload = payloadOf(&c, it.freeform)
	}
	arguments := payload.text
	if payload.ambiguousText {
		e.rep.Addf(dragoman.Lowered, dragoman.Warn, it.at.String()+"/arguments", "arguments are written as %.40s, because clients could interpret them in different ways", arguments)
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
	c.Extra = withoutFields(c.Extra, "status", "id")
	if c.Extra == nil {
		c.Extra = &dragoman.Extra{Dialect: name}
	}
	c.Extra.Fields = append(c.Extra.Fields, dragoman.Field{Path: "/status", Value: []byte(`"` + status + `"`)})
	extra.Report(e.rep, report, name, it.at)

	// A client must get the arguments unchanged, or it would run the tool without any (quirk B9).
	// The item and the event that ends its payload must have the same arguments, so both use
	// payloadOf.
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

// unclear reports whether clients could interpret a call in different ways.
func unclear(c *dragoman.ToolCall) bool {
	_, why := toolwire.ResponseArguments(c)
	return why != nil
}

// payloadOf returns the text of a call: its input if it is freeform, otherwise its arguments, or
// {} if the model sent none (quirk C23). Arguments that clients could interpret in different ways
// are wrapped in an error text. Long arguments are checked only once.
func payloadOf(c *dragoman.ToolCall, freeform bool) *payload {
	text, why := toolwire.ResponseArguments(c)
	p := &payload{text: text, ambiguousText: why != nil}
	switch {
	case freeform:
		p.text = c.Arguments
	case why != nil, c.Payload == codes.PayloadText:
	case c.Problem != nil && strings.TrimSpace(c.Arguments) == "":
		p.text = c.Arguments // truncated before the first argument; a client would run {}
	default:
		switch strings.TrimSpace(c.Arguments) {
		case "", "null", `""`: // the representations of no arguments
			p.text = "{}"
		}
	}
	return p
}

func callStatus(c *dragoman.ToolCall) string {
	if _, blocked := wirekit.BlockedReason(c); blocked || c.Status == codes.StatusIncomplete {
		return "incomplete"
	}
	return "completed"
}

func itemStatus(m *dragoman.Message) string {
	if m.Status == codes.StatusIncomplete {
		return "incomplete"
	}
	return "completed"
}
