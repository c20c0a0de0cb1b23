package openairesponses

import (
	"errors"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// itemDecoder reads single items, of an input or of an output.
type itemDecoder struct {
	reg    *interop.Registry
	o      dialect.DecodeOptions
	origin *dragoman.Origin
	rep    *dragoman.Report
	// output says that the items are a model's: all of them are the
	// assistant's, and a call among them may run.
	output bool
	// sound says that no object of the body repeats a member.
	sound bool
	// rewritten says that the item at hand is a call of another tool, or with
	// other arguments, than its bytes say.
	rewritten bool
	// muddled: a content part was read that two readers could take for two.
	muddled bool
	// astray: the item read last is a call with its payload in the wrong place.
	astray bool
	// nameless: the item read last is one whose name or call_id is no string.
	nameless bool
	peeked   jsonwire.Reader
}

func newItemDecoder(c Codec, o dialect.DecodeOptions, output bool) itemDecoder {
	return itemDecoder{
		reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o, origin: wirekit.Origin(name, o),
		rep: new(dragoman.Report), output: output,
	}
}

// itemKind says how an item is modelled.
type itemKind int

const (
	opaqueItem itemKind = iota
	messageItem
	callItem
	resultItem
	reasoningItem
)

// itemHead is what identifies an item.
type itemHead struct {
	typ, id, callID     string
	approval, execution string
	// twice: two readers could take it for two items.
	twice bool
	// astray: it is a call whose payload stands under the name that the other kind
	// of call has for it, where most readers do not look.
	astray bool
	// nameless: it is a call or a result whose name or call_id is no string.
	nameless bool
	roled    bool // it has a role, readable or not
}

// itemMembers say what an item is and what it runs.
var itemMembers = []string{"type", "id", "call_id", "name", "namespace", "arguments", "input", "status", "role", "content"}

func (h *itemHead) kind() itemKind {
	switch h.typ {
	case "message":
		return messageItem
	case "function_call", "custom_tool_call":
		return callItem
	case "function_call_output", "custom_tool_call_output":
		return resultItem
	case "reasoning":
		return reasoningItem
	case "":
		// Only messages may leave their type out.
		if h.roled {
			return messageItem
		}
	}
	return opaqueItem
}

// head reads what identifies an item; anything that is no object has nothing.
func (d *itemDecoder) head(raw []byte) (h itemHead) {
	r := &d.peeked
	r.Reset(raw)
	if r.Kind() != '{' {
		return h
	}
	var seen wirekit.Members
	var arguments, input, nameless bool
	for key := range r.Object() {
		h.twice = seen.Twice(itemMembers, key) || h.twice
		var into *string
		switch string(key) {
		case "arguments":
			arguments = r.Kind() != 'n'
		case "input":
			input = r.Kind() != 'n'
		case "type":
			into = &h.typ
		case "role":
			h.roled = r.Kind() != 'n'
		case "id":
			into = &h.id
		case "name":
			nameless = nameless || r.Kind() != '"' && r.Kind() != 'n'
		case "call_id":
			nameless = nameless || r.Kind() != '"' && r.Kind() != 'n'
			into = &h.callID
		case "approval_request_id":
			into = &h.approval
		case "execution":
			into = &h.execution
		}
		if into != nil && r.Kind() == '"' {
			*into = r.String()
		} else {
			r.Skip()
		}
	}
	h.nameless = nameless && (h.kind() == callItem || h.kind() == resultItem)
	h.astray = h.typ == "function_call" && input || h.typ == "custom_tool_call" && arguments
	return h
}

// partMembers say what a content part is and what it holds.
var partMembers = []string{"type", "text", "refusal"}

// contentPart reads a part of a message. What a reader that ignores case would
// take for another member of it is dropped.
func (d *itemDecoder) contentPart(raw []byte) dragoman.Part {
	p := readPart(raw)
	if !wirekit.Doubled(&d.peeked, raw, partMembers) {
		return p
	}
	d.muddled = true
	switch p := p.(type) {
	case *dragoman.Text:
		wirekit.DropTwins(&p.Extra, "", partMembers)
	case *dragoman.Refusal:
		wirekit.DropTwins(&p.Extra, "", partMembers)
	}
	return p
}

// item reads one item into one message, without its sidecar. at is the item's
// place for reports, place the one for ids that must be made.
func (d *itemDecoder) item(raw []byte, at extra.Path, place int) (dragoman.Message, error) {
	h := d.head(raw)
	d.astray, d.nameless = h.astray, h.nameless
	m := dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.origin}
	before := d.reg.Rewritten()
	var err error
	switch h.kind() {
	case messageItem:
		err = d.message(raw, &m)
	case callItem:
		m.Parts, err = d.call(raw, at, place)
	case resultItem:
		m.Role = dragoman.RoleTool
		var res *dragoman.ToolResult
		if res, err = d.reg.ReadResult(raw, d.o.LiftErrors, at, d.rep); err == nil {
			m.Parts = []dragoman.Part{res}
		}
	case reasoningItem:
		m.Parts, err = d.reasoning(raw)
	default:
		if !d.output {
			m.Role = roleOf(&h)
		}
		m.Parts = []dragoman.Part{opaque(&h, raw)}
	}
	d.rewritten = d.reg.Rewritten() != before
	return m, err
}

// withNative attaches the sidecar of a complete message. A message that got an
// id of our own is not what its native form says, and gets none; nor does an
// answer that two readers could read as two, or that names what only the
// provider knows.
func (d *itemDecoder) withNative(m *dragoman.Message, raw []byte) {
	if d.o.NoNative || d.output && d.rewritten {
		return
	}
	for _, p := range m.Parts {
		if c, ok := p.(*dragoman.ToolCall); ok && (c.Synthetic || d.output && ambiguous([]*dragoman.ToolCall{c})) {
			return
		}
	}
	if d.output && (d.muddled || d.astray || !d.sound && !jsonwire.ReadsOneWay(raw)) {
		return
	}
	m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
}

// ambiguous reports whether two readers could read one of the calls as two.
func ambiguous(calls []*dragoman.ToolCall) bool {
	for _, c := range calls {
		if c.Problem != nil && (c.Problem.Code == codes.ProblemDuplicateKey || c.Problem.Code == codes.ProblemUnreadable) {
			return true
		}
	}
	return false
}

// message reads a message item in any of its three forms (easy, input,
// output).
func (d *itemDecoder) message(raw []byte, m *dragoman.Message) error {
	r := jsonwire.NewReader(raw)
	m.Role = ""
	for key := range r.Object() {
		switch k := string(key); {
		case k == "type":
			r.Skip()
		case r.Kind() == 'n':
			extra.Add(&m.Extra, name, "", key, r.Raw())
		case k == "role":
			m.Role = dragoman.Role(r.String())
		case k == "content":
			m.Parts = nil
			if r.Kind() == '"' {
				m.Parts = []dragoman.Part{&dragoman.Text{Text: r.String()}}
				continue
			}
			for range r.Array() {
				part := r.Raw()
				if r.Err() != nil {
					break
				}
				m.Parts = append(m.Parts, d.contentPart(part))
			}
		case k == "phase":
			m.Phase = r.String()
		case k == "status":
			m.Status = readStatus(r, &m.Extra)
		default:
			extra.Add(&m.Extra, name, "", key, r.Raw())
		}
	}
	if m.Role == "" {
		m.Role = dragoman.RoleAssistant
		if !d.output && r.Err() == nil { // a client must say who speaks
			return &jsonwire.Error{Err: errNoRole}
		}
	}
	if d.output && len(m.Parts) == 0 {
		// A stream could not show a message without a part.
		m.Parts = []dragoman.Part{&dragoman.Text{}}
	}
	for _, p := range m.Parts {
		if o, ok := p.(*dragoman.Opaque); ok && !contentType(o.Type) {
			// Says that the part is content, not an item of its own.
			extra.Add(&m.Extra, name, "", []byte("content"), []byte("null"))
		}
	}
	return r.End()
}

var errNoRole = errors.New("a message needs a role")

// contentType reports whether an opaque part can only be content of a message.
func contentType(typ string) bool {
	return strings.HasPrefix(typ, "input_") || strings.HasPrefix(typ, "output_")
}

// readStatus reads the status of an item. The word is kept, because it goes
// back with the item's id.
func readStatus(r *jsonwire.Reader, e **dragoman.Extra) string {
	raw := r.Raw()
	extra.Add(e, name, "", []byte("status"), raw)
	switch string(raw) {
	case `"incomplete"`:
		return codes.StatusIncomplete
	case `"in_progress"`:
		return codes.StatusInProgress
	default:
		return codes.StatusComplete
	}
}

func (d *itemDecoder) call(raw []byte, at extra.Path, place int) ([]dragoman.Part, error) {
	c, err := d.reg.ReadCall(raw, at, d.rep)
	if err != nil {
		return nil, err
	}
	if c.ID == "" {
		d.makeID(c, at, place, "the call came without a call_id")
	}
	if d.output {
		if _, _, spec := d.reg.PublicName(c.Namespace, c.Name); spec == nil {
			if _, _, bare := d.reg.PublicName("", c.Name); bare != nil {
				unqualify(c)
			}
		}
		if c.Status == codes.StatusIncomplete && c.Problem == nil {
			c.Problem = truncated("the model did not finish the call; make it again") // quirk C26
		}
	}
	return []dragoman.Part{c}, nil
}

// unqualify takes the namespace off a deferred top-level tool, which this API
// calls by a namespace that equals its own name. The
// caller knows that such a tool is declared.
func unqualify(c *dragoman.ToolCall) {
	if c.Namespace != c.Name || c.Name == "" {
		return
	}
	var w jsonwire.Writer
	w.String(c.Namespace)
	extra.Add(&c.Extra, name, "", []byte("namespace"), w.Buf)
	c.Namespace = ""
}

func (d *itemDecoder) makeID(c *dragoman.ToolCall, at extra.Path, place int, why string) {
	c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed, place), true
	d.rep.Addf(dragoman.Synthesized, dragoman.Warn, at.String(), "%s; the call gets the id %s", why, c.ID)
}

// reasoning reads a reasoning item. One with content that is not text stays
// opaque, so that nothing of it is lost.
func (d *itemDecoder) reasoning(raw []byte) ([]dragoman.Part, error) {
	p := &dragoman.Reasoning{}
	odd := false
	texts := func(r *jsonwire.Reader, typ string) (out []string) {
		for range r.Array() {
			text, ok := typedText(r, typ)
			odd = odd || !ok
			out = append(out, text)
		}
		return out
	}
	r := jsonwire.NewReader(raw)
	for key := range r.Object() {
		switch k := string(key); {
		case k == "type":
			r.Skip()
		case r.Kind() == 'n':
			extra.Add(&p.Extra, name, "", key, r.Raw())
		case k == "id":
			p.ID = r.String()
		case k == "summary":
			p.Summary = texts(r, "summary_text")
		case k == "content":
			if parts := texts(r, "reasoning_text"); parts == nil {
				extra.Add(&p.Extra, name, "", key, []byte("[]"))
			} else {
				p.Text = strings.Join(parts, reasoningBreak)
			}
		case k == "encrypted_content":
			p.Encrypted = r.String()
		case k == "status":
			p.Status = readStatus(r, &p.Extra)
		default:
			extra.Add(&p.Extra, name, "", key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	if odd {
		h := d.head(raw)
		return []dragoman.Part{opaque(&h, raw)}, nil
	}
	return []dragoman.Part{p}, nil
}

// reasoningBreak stands between the texts of one reasoning item.
const reasoningBreak = "\n\n"

// typedText reads a part that is nothing but a type and a text.
func typedText(r *jsonwire.Reader, typ string) (text string, ok bool) {
	if r.Kind() != '{' {
		r.Skip()
		return "", false
	}
	ok = true
	for key := range r.Object() {
		switch {
		case string(key) == "text" && r.Kind() == '"':
			text = r.String()
		case string(key) == "type" && r.Kind() == '"':
			ok = r.String() == typ && ok
		default:
			r.Skip()
			ok = false
		}
	}
	return text, ok
}

func opaque(h *itemHead, raw []byte) *dragoman.Opaque {
	o := &dragoman.Opaque{Dialect: name, Type: h.typ, JSON: raw, CallID: h.callID, Hosted: h.hosted()}
	switch h.typ {
	case "":
		if h.id != "" {
			o.Type = "item_reference"
		}
	case "mcp_approval_request":
		o.CallID = h.id
	case "mcp_approval_response":
		o.CallID = h.approval
	}
	return o
}

// hosted reports whether an item is the call or the result of a tool that the provider ran.
// Items that wait for the client (computer_call, shell_call, an approval) are not hosted.
// Neither is a generated image, which is output.
func (h *itemHead) hosted() bool {
	switch h.typ {
	case "web_search_call", "file_search_call", "code_interpreter_call", "mcp_call", "mcp_list_tools", "program", "program_output":
		return true
	case "tool_search_call", "tool_search_output":
		return h.execution == "server"
	default:
		return false
	}
}

// roleOf is who sends an item that is not modelled, as the type tells it.
func roleOf(h *itemHead) dragoman.Role {
	switch h.typ {
	case "additional_tools", "configuration_update":
		return dragoman.RoleDeveloper
	case "mcp_approval_response":
		return dragoman.RoleTool
	case "mcp_list_tools", "mcp_approval_request", "compaction", "program", "program_output":
		return dragoman.RoleAssistant
	case "tool_search_output":
		if h.execution == "server" {
			return dragoman.RoleAssistant
		}
		return dragoman.RoleTool
	}
	switch {
	case strings.HasSuffix(h.typ, "_call"):
		return dragoman.RoleAssistant
	case strings.HasSuffix(h.typ, "_output"):
		return dragoman.RoleTool
	default:
		return dragoman.RoleUser
	}
}
