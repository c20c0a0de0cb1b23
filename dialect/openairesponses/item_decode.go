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

// itemDecoder decodes single items of an input or an output.
type itemDecoder struct {
	reg    *interop.Registry
	o      dialect.DecodeOptions
	origin *dragoman.Origin
	rep    *dragoman.Report
	// output is set for items of a response: all of them are from the assistant, and a call among
	// them may run.
	output bool
	// unambiguous is set if no object of the body has a duplicate field.
	unambiguous bool
	// rewritten is set if the decoded call of the current item differs from its bytes in tool or
	// arguments.
	rewritten bool
	// ambiguousPart is set after a content part that readers could interpret in different ways.
	ambiguousPart bool
	// misplacedPayload is set if the last item is a call with its payload in the wrong field.
	misplacedPayload bool
	// nonStringID is set if the last item has a name or call_id that is not a string.
	nonStringID bool
	peeked      jsonwire.Reader
}

func newItemDecoder(c Codec, o dialect.DecodeOptions, output bool) itemDecoder {
	return itemDecoder{
		reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o), o: o, origin: wirekit.Origin(name, o),
		rep: new(dragoman.Report), output: output,
	}
}

// itemKind is the canonical form of an item.
type itemKind int

const (
	opaqueItem itemKind = iota
	messageItem
	callItem
	resultItem
	reasoningItem
)

// itemHead holds the fields that identify an item.
type itemHead struct {
	typ, id, callID     string
	approval, execution string
	// duplicate is set if readers could interpret it as different items.
	duplicate bool
	// misplacedPayload is set for a call whose payload is in the field of the other kind of call,
	// where most readers do not look.
	misplacedPayload bool
	// nonStringID is set for a call or result whose name or call_id is not a string.
	nonStringID bool
	hasRole     bool // it has a role, valid or not
}

// itemKeys are the fields that determine what an item is and what it runs.
var itemKeys = []string{"type", "id", "call_id", "name", "namespace", "arguments", "input", "status", "role", "content"}

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
		// Only messages may omit their type.
		if h.hasRole {
			return messageItem
		}
	}
	return opaqueItem
}

// head reads the fields that identify an item. It returns an empty head for a value that is not
// an object.
func (d *itemDecoder) head(raw []byte) (h itemHead) {
	r := &d.peeked
	r.Reset(raw)
	if r.Kind() != '{' {
		return h
	}
	var seen wirekit.KnownFields
	var arguments, input, nonStringID bool
	for key := range r.Object() {
		h.duplicate = seen.IsRepeated(itemKeys, key) || h.duplicate
		var into *string
		switch string(key) {
		case "arguments":
			arguments = r.Kind() != 'n'
		case "input":
			input = r.Kind() != 'n'
		case "type":
			into = &h.typ
		case "role":
			h.hasRole = r.Kind() != 'n'
		case "id":
			into = &h.id
		case "name":
			nonStringID = nonStringID || r.Kind() != '"' && r.Kind() != 'n'
		case "call_id":
			nonStringID = nonStringID || r.Kind() != '"' && r.Kind() != 'n'
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
	h.nonStringID = nonStringID && (h.kind() == callItem || h.kind() == resultItem)
	h.misplacedPayload = h.typ == "function_call" && input || h.typ == "custom_tool_call" && arguments
	return h
}

// partKeys are the fields that determine the kind and the content of a part.
var partKeys = []string{"type", "text", "refusal"}

// contentPart decodes a part of a message. It drops fields that a reader that ignores case would
// confuse with known ones.
func (d *itemDecoder) contentPart(raw []byte) dragoman.Part {
	p := readPart(raw)
	if !wirekit.HasDuplicates(&d.peeked, raw, partKeys) {
		return p
	}
	d.ambiguousPart = true
	switch p := p.(type) {
	case *dragoman.Text:
		wirekit.DropCaseVariants(&p.Extra, "", partKeys)
	case *dragoman.Refusal:
		wirekit.DropCaseVariants(&p.Extra, "", partKeys)
	}
	return p
}

// item decodes one item into one message, without its sidecar. at is the path of the item for
// reports; place determines generated ids.
func (d *itemDecoder) item(raw []byte, at extra.Path, place int) (dragoman.Message, error) {
	h := d.head(raw)
	d.misplacedPayload, d.nonStringID = h.misplacedPayload, h.nonStringID
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

// withNative attaches the sidecar to a decoded message. It attaches none if the message got a
// generated id, because it then differs from its native form. It also attaches none to a response
// that is ambiguous, or that contains names or ids only valid for the provider.
func (d *itemDecoder) withNative(m *dragoman.Message, raw []byte) {
	if d.o.NoNative || d.output && d.rewritten {
		return
	}
	for _, p := range m.Parts {
		if c, ok := p.(*dragoman.ToolCall); ok && (c.Synthetic || d.output && ambiguous([]*dragoman.ToolCall{c})) {
			return
		}
	}
	if d.output && (d.ambiguousPart || d.misplacedPayload || !d.unambiguous && !jsonwire.Unambiguous(raw)) {
		return
	}
	m.Native = &dragoman.Sidecar{Dialect: name, Raw: raw, Mirror: m.Fingerprint()}
}

// ambiguous reports whether readers could interpret one of the calls in different ways.
func ambiguous(calls []*dragoman.ToolCall) bool {
	for _, c := range calls {
		if c.Problem != nil && (c.Problem.Code == codes.ProblemDuplicateKey || c.Problem.Code == codes.ProblemUnreadable) {
			return true
		}
	}
	return false
}

// message decodes a message item in any of its three forms (easy, input, output).
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
		if !d.output && r.Err() == nil { // requests must have a role
			return &jsonwire.Error{Err: errNoRole}
		}
	}
	if d.output && len(m.Parts) == 0 {
		// A stream cannot express a message without parts.
		m.Parts = []dragoman.Part{&dragoman.Text{}}
	}
	for _, p := range m.Parts {
		if o, ok := p.(*dragoman.Opaque); ok && !contentType(o.Type) {
			// Marks the part as content, not as a separate item.
			extra.Add(&m.Extra, name, "", []byte("content"), []byte("null"))
		}
	}
	return r.End()
}

var errNoRole = errors.New("message has no role")

// contentType reports whether an opaque part can only be content of a message.
func contentType(typ string) bool {
	return strings.HasPrefix(typ, "input_") || strings.HasPrefix(typ, "output_")
}

// readStatus reads the status of an item. The original value is stored, because it is sent back
// with the id of the item.
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
		d.makeID(c, at, place, "the call has no call_id")
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

// unqualify removes the namespace from a call of a deferred top-level tool, for which this API
// uses a namespace that equals the name of the tool. The caller checks that such a tool is
// declared.
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

// reasoning decodes a reasoning item. An item with content that is not text stays opaque, so that
// nothing is lost.
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

// reasoningBreak separates the texts of one reasoning item.
const reasoningBreak = "\n\n"

// typedText reads a part that has only a type and a text.
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

// roleOf returns the role of an unknown item, according to its type.
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
