package anthropic

import (
	"bytes"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/stream"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// streamBlock is a block that is being streamed.
type streamBlock struct {
	blockwire.Incoming
	members []member
	starts  map[string]string // the string members of Raw, once they are needed
	full    bool              // more members came than are kept
	cites   []byte
}

// member is a member of a block that a delta set or lengthened: text where
// fragments of a string are joined, raw for any value.
type member struct {
	name   string
	text   []byte
	isText bool
	raw    []byte
}

// maxMembers bounds how many members deltas may add to one block.
const maxMembers = 64

// startContent takes the blocks of a message_start that brings its content
// along, as programmatic tool calls do.
func (d *streamDecoder) startContent(content []byte) error {
	if len(content) == 0 || content[0] != '[' {
		if s := string(content); s != "" && s != "null" && s != `""` {
			d.rep.Add(dragoman.Dropped, dragoman.Warn, "/content", "the content of message_start is no list of blocks")
		}
		return nil
	}
	r := jsonwire.NewReader(content)
	for range r.Array() {
		raw := r.Raw()
		if r.Err() != nil {
			break
		}
		b, err := d.begin(raw)
		if err != nil {
			return err
		}
		if b.Twice = d.twice; d.answer.contents > 1 {
			b.Twice = "content"
		}
		d.finish(b)
	}
	return r.Err()
}

func (d *streamDecoder) blockStart(index int64, raw []byte) error {
	d.start()
	if raw == nil {
		if d.noBlock {
			d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Info, "/content", "block %d starts with no object", index)
		}
		return nil
	}
	if old := d.open[index]; old != nil {
		d.finish(old) // its end was lost
	}
	b, err := d.begin(raw)
	if err != nil {
		return err
	}
	b.Twice = d.twice
	if d.open == nil {
		d.open = make(map[int64]*streamBlock)
	}
	d.open[index] = b
	return nil
}

// begin starts the part of a block. The bound is on blocks, never on what an
// index says (quirk C4).
func (d *streamDecoder) begin(raw []byte) (*streamBlock, error) {
	if d.blocks >= stream.MaxParts {
		return nil, fmt.Errorf("%w: more than %d content blocks", dragoman.ErrTooLarge, stream.MaxParts)
	}
	b := &streamBlock{Incoming: blockwire.Incoming{At: d.blocks, Raw: d.clone(raw)}}
	d.blocks++
	quiet := d.quiet()
	whole := quiet.block(jsonwire.Value{Raw: b.Raw}, extra.Elem("/content", b.At), b.At)
	withoutStrays(whole, extra.Elem("/content", b.At), quiet.rep)
	d.ambiguous = d.ambiguous || quiet.ambiguous
	switch p := whole.(type) {
	case *dragoman.Text:
		skeleton, value := *p, *p
		skeleton.Text, value.Text, skeleton.Extra = "", "", clone(p.Extra)
		b.Part = d.parts.Start(0, d.header(), &skeleton, &value)
		b.Part.Append(p.Text)
	case *dragoman.Reasoning:
		skeleton, value := *p, *p
		skeleton.Text, value.Text, skeleton.Extra = "", "", clone(p.Extra)
		b.Part = d.parts.Start(0, d.header(), &skeleton, &value)
		b.Part.Append(p.Text)
	case *dragoman.ToolCall:
		b.Call = true
		d.calls = append(d.calls, b)
		b.Hidden = p.Payload == dragoman.PayloadText || d.reg.Translates(p.Namespace, p.Name)
		if d.ids[p.ID] {
			break
		}
		if d.ids == nil {
			d.ids = make(map[string]bool)
		}
		d.ids[p.ID] = true
		skeleton := *p
		skeleton.Arguments, skeleton.Problem = "", nil
		b.Part = d.parts.Start(0, d.header(), &skeleton, p)
	case *dragoman.Opaque:
		skeleton := *p
		b.Part = d.parts.Start(0, d.header(), &skeleton, p)
	default:
		b.Part = d.parts.Start(0, d.header(), whole, whole)
	}
	return b, nil
}

// header is that of the message, for its first part.
func (d *streamDecoder) header() *dragoman.Message {
	if d.parts.Count() > 0 {
		return nil
	}
	return &dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.origin}
}

// blockDelta applies the delta that was read. A delta of a block that never
// started opens one where its kind tells enough.
func (d *streamDecoder) blockDelta(index int64) {
	b := d.open[index]
	if b == nil {
		opening := ""
		switch string(d.kind) {
		case "text_delta":
			opening = `{"type":"text","text":""}`
		case "thinking_delta":
			opening = `{"type":"thinking","thinking":"","signature":""}`
		}
		if opening == "" || d.delta.text == "" || d.blockStart(index, []byte(opening)) != nil {
			if d.delta.text != "" {
				d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Warn, "/content", "a %.40s for block %d, which is not open", d.kind, index)
			}
			return
		}
		b = d.open[index]
	}
	if d.twice != "" {
		b.Twice = d.twice
	}
	d.mistyped(b)
	text := d.delta.text
	var value dragoman.Part
	if b.Part != nil {
		value = b.Part.Value
	}
	if b.Call {
		switch string(d.kind) {
		case "input_json_delta":
			b.Joins(text, d.delta.whole, "partial_json")
			if b.Part != nil && !b.Hidden {
				b.Part.Append(text)
			} else {
				b.Input = append(b.Input, d.take(text)...)
			}
		default:
			d.setMembers(b)
			d.carryDelta()
		}
		return
	}
	switch p := value.(type) {
	case *dragoman.Text:
		switch string(d.kind) {
		case "text_delta":
			b.Part.Append(text)
		case "citations_delta":
			b.cite(d.taken(d.delta.citation))
		default:
			d.setExtras(&p.Extra, b)
			d.carryDelta()
		}
	case *dragoman.Reasoning:
		switch string(d.kind) {
		case "thinking_delta":
			b.Part.Append(text)
		case "signature_delta":
			if text != "" { // the last one counts, and nothing erases it (quirk C22)
				p.Signature = d.answer.keep.Text(p.Signature, text)
			}
		default:
			d.setExtras(&p.Extra, b)
			d.carryDelta()
		}
	case *dragoman.Opaque:
		switch string(d.kind) {
		case "input_json_delta":
			b.Input = append(b.Input, d.take(text)...)
		case "text_delta":
			d.set(b, member{name: "text", text: []byte(text), isText: true})
		case "thinking_delta":
			d.set(b, member{name: "thinking", text: []byte(text), isText: true})
		case "signature_delta":
			d.set(b, member{name: "signature", raw: quote(text)})
		case "citations_delta":
			b.cite(d.taken(d.delta.citation))
		default:
			d.setMembers(b)
		}
	default:
		d.mismatch(b)
	}
}

// mistyped reports a text of a delta that is no string: arguments are read as the
// value they are, and the rest is not read.
func (d *streamDecoder) mistyped(b *streamBlock) {
	if d.delta.mistyped == "" { // as in every fragment of a sound stream: no place is made for it
		return
	}
	at := extra.Elem("/content", b.At).String()
	if d.delta.whole {
		d.lost.Addf(d.rep, dragoman.Lowered, dragoman.Info, at, "arguments that came as a value, where fragments of their text belong")
		return
	}
	d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Warn, at, "%q of a %.40s, which is no string", d.delta.mistyped, d.kind)
}

// mismatch reports a delta of a known kind that does not fit its block.
func (d *streamDecoder) mismatch(b *streamBlock) bool {
	if !knownDelta(d.kind) {
		return false
	}
	if d.delta.text != "" || d.delta.citation != nil {
		d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Warn, extra.Elem("/content", b.At).String(), "a %s does not fit the block", d.kind)
	}
	return true
}

// take counts a text that is kept outside of a part.
func (d *streamDecoder) take(text string) string {
	d.bound.Take(len(text))
	return text
}

// taken is take for what is no text.
func (d *streamDecoder) taken(raw []byte) []byte {
	d.bound.Take(len(raw))
	return raw
}

// carryDelta carries a delta of an unknown kind, without the fields that a client
// could take for those of a known one.
func (d *streamDecoder) carryDelta() {
	if knownDelta(d.kind) || len(d.kind) == 0 {
		return
	}
	d.held.Field("/delta", []byte("type"), quote(string(d.kind)))
	for _, m := range d.delta.members {
		var seen wirekit.Members
		if !seen.Twice(deltaMembers, []byte(m.name)) && !slices.Contains(deltaMembers, m.name) {
			d.held.Field("/delta", []byte(m.name), m.value())
		}
	}
}

// setExtras keeps what a delta of an unknown kind says of a known block.
func (d *streamDecoder) setExtras(e **dragoman.Extra, b *streamBlock) {
	if d.mismatch(b) {
		return
	}
	for _, m := range d.delta.members {
		if !d.modelled(b, m.name) {
			d.answer.keep.Member(e, name, "", []byte(m.name), m.value())
		}
	}
}

// modelled reports whether a member is none that a delta of an unknown kind may
// set: what a block is, is not for strangers to say.
func (d *streamDecoder) modelled(b *streamBlock, member string) bool {
	switch member {
	case "text", "thinking", "signature", "data", "id", "name", "input", "cache_control":
		if b.Part != nil && b.Part.Value.Kind() == dragoman.KindOpaque {
			return false
		}
	case "type":
	default:
		return false
	}
	d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Warn, extra.Elem("/content", b.At).String(), "a %.40s may not set %q", d.kind, member)
	return true
}

func (d *streamDecoder) setMembers(b *streamBlock) {
	if d.mismatch(b) {
		return
	}
	for _, m := range d.delta.members {
		if !d.modelled(b, m.name) {
			d.set(b, m)
		}
	}
}

// set lengthens a member that the block started as a string; any other value
// is replaced by the later one.
func (d *streamDecoder) set(b *streamBlock, m member) {
	for i := range b.members {
		old := &b.members[i]
		switch {
		case old.name != m.name:
		case old.isText && m.isText:
			d.bound.Take(len(m.text))
			old.text = append(old.text, m.text...)
			return
		default:
			raw := m.value()
			d.bound.Swap(len(old.text)+len(old.raw), len(raw))
			old.raw, old.text, old.isText = raw, nil, false
			return
		}
	}
	if len(b.members) >= maxMembers {
		if !b.full {
			b.full = true
			d.rep.Addf(dragoman.Dropped, dragoman.Warn, extra.Elem("/content", b.At).String(), "member %.40q and those after it: more than %d came in deltas", m.name, maxMembers)
		}
		return
	}
	if b.starts == nil {
		b.starts = stringMembers(b.Raw)
	}
	if start, ok := b.starts[m.name]; m.isText && ok {
		m.text, m.raw = append([]byte(start), m.text...), nil
	} else if m.isText {
		m.raw, m.text, m.isText = m.value(), nil, false
	}
	d.bound.Take(len(m.name) + len(m.text) + len(m.raw))
	b.members = append(b.members, m)
}

func (b *streamBlock) cite(citation []byte) {
	if citation == nil {
		return
	}
	if b.cites != nil {
		b.cites = append(b.cites, ',')
	}
	b.cites = append(b.cites, citation...)
}

func (m *member) value() []byte {
	if m.isText {
		return quote(string(m.text))
	}
	return m.raw
}

func quote(s string) []byte {
	var w jsonwire.Writer
	w.String(s)
	return w.Buf
}

func (d *streamDecoder) blockStop(index int64) {
	b := d.open[index]
	if b == nil {
		return
	}
	if d.twice != "" {
		b.Twice = d.twice
	}
	delete(d.open, index)
	if b.Call && b.Part != nil { // which ends later
		b.Part.Extra = d.held.TakeFields()
	}
	d.finish(b)
}

// finish ends a block. A call stays open: nothing runs before the response is
// known to be whole.
func (d *streamDecoder) finish(b *streamBlock) {
	if b.Stopped {
		return
	}
	b.Stopped = true
	if b.Call {
		b.ShowWhole()
		b.Part.Complete()
		return
	}
	switch p := b.Part.Value.(type) {
	case *dragoman.Text:
		if b.cites != nil {
			extra.Add(&p.Extra, name, "", []byte("citations"), b.citations(p.Extra))
		}
	case *dragoman.Opaque:
		p.JSON = d.assembled(b)
	}
	b.Part.End()
}

// citations is the whole list: what the block started with, then the deltas.
func (b *streamBlock) citations(e *dragoman.Extra) []byte {
	out := []byte{'['}
	if first, ok := extra.Get(e, name, "/citations"); ok && len(first) > 2 && first[0] == '[' {
		if inner := bytes.TrimSpace(first[1 : len(first)-1]); len(inner) > 0 {
			out = append(append(out, inner...), ',')
		}
	}
	return append(append(out, b.cites...), ']')
}

// assembled is the block as the API would have sent it whole.
func (d *streamDecoder) assembled(b *streamBlock) []byte {
	input := b.Fragments()
	var set []member
	if len(bytes.TrimSpace(input)) > 0 {
		switch err := jsonwire.Check(input); {
		case err == nil:
			set = append(set, member{name: "input", raw: input})
		case b.Call:
			set = append(set, member{name: "input", text: input, isText: true}) // read back as the text it is
		default:
			d.rep.Addf(dragoman.Lowered, dragoman.Warn, extra.Elem("/content", b.At).String(), "input that is not JSON left out: %v", err)
		}
	}
	set = append(set, b.members...)
	if b.cites != nil {
		set = append(set, member{name: "citations", raw: slices.Concat([]byte{'['}, b.cites, []byte{']'})})
	}
	return withMembers(b.Raw, set...)
}

// stringMembers returns the members of an object that hold a string.
func stringMembers(raw []byte) map[string]string {
	out := make(map[string]string)
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return out
	}
	for k := range r.Object() {
		if r.Kind() == '"' {
			name := string(k)
			out[name] = r.String()
		} else {
			r.Skip()
		}
	}
	return out
}

// withMembers returns an object with members set; of a repeated name the last
// counts.
func withMembers(raw []byte, set ...member) []byte {
	r := jsonwire.NewReader(raw)
	if len(set) == 0 || r.Kind() != '{' {
		return raw
	}
	byName := make(map[string]jsonwire.Edit, len(set))
	for i := range set {
		byName[set[i].name] = jsonwire.Edit{New: set[i].value()}
	}
	var tail jsonwire.Writer
	for k := range r.Object() {
		tail.Buf = append(tail.Buf[:0], ',')
		edit, ours := byName[string(k)]
		if !ours {
			r.Skip()
			continue
		}
		name := string(k)
		old := r.Raw()
		edit.Start, edit.End = r.Offset()-int64(len(old)), r.Offset()
		byName[name] = edit
	}
	if r.Err() != nil {
		return raw
	}
	end := r.Offset() - 1
	var edits []jsonwire.Edit
	for _, m := range set {
		edit, ok := byName[m.name]
		delete(byName, m.name)
		switch {
		case !ok: // done
		case edit.End > 0:
			edits = append(edits, edit)
		default:
			tail.QuotedKey(m.name)
			tail.Raw(edit.New)
		}
	}
	if len(tail.Buf) > 1 {
		edits = append(edits, jsonwire.Edit{Start: end, End: end, New: tail.Buf})
	}
	return jsonwire.Splice(raw, edits...)
}

// settle ends what is open and then the calls, with the verdict of the whole
// response.
func (d *streamDecoder) settle(terminal bool) dragoman.Stop {
	var broken map[*blockwire.Incoming]bool
	if !terminal {
		broken = blockwire.BrokenOff(d.calls)
	}
	for _, b := range blockwire.InOrder(d.open) {
		d.finish(b)
	}
	d.open = nil
	var ids callIDs
	calls, ending := blockwire.Settling[*streamBlock]{
		Parts: &d.parts, Header: d.header, Broken: broken, Whole: d.wholeCall,
		Fresh: func(c *dragoman.ToolCall, at int) bool {
			fresh, _ := ids.settle(&d.blockDecoder, c, at)
			return fresh
		},
	}.Settle(d.calls)
	stop := d.answer.settledStop(terminal, calls)
	d.calls = nil
	for _, p := range ending {
		p.End()
	}
	d.parts.EndAll()
	return stop
}

// wholeCall reads a call from its block as the API would have sent it whole.
func (d *streamDecoder) wholeCall(b *streamBlock) *dragoman.ToolCall {
	at := extra.Elem("/content", b.At)
	block := jsonwire.Value{Raw: d.assembled(b)}
	_, repeated := typeAndRepeat(block)
	if repeated == "" {
		repeated = b.Twice
	}
	c := d.call(block, repeated, at)
	withoutStrays(c, at, d.rep)
	d.identify(c, at, b.At)
	return c
}
