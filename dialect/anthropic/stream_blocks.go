package anthropic

import (
	"bytes"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
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
			d.Rep.Add(dragoman.Dropped, dragoman.Warn, "/content", "the content of message_start is no list of blocks")
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
		d.Finish(b)
	}
	return r.Err()
}

func (d *streamDecoder) blockStart(index int64, raw []byte) error {
	d.Start()
	if raw == nil {
		if d.noBlock {
			d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Info, "/content", "block %d starts with no object", index)
		}
		return nil
	}
	if old := d.Open[index]; old != nil {
		d.Finish(old) // its end was lost
	}
	b, err := d.begin(raw)
	if err != nil {
		return err
	}
	b.Twice = d.twice
	d.OpenAt(index, b)
	return nil
}

// begin starts the part of a block.
func (d *streamDecoder) begin(raw []byte) (*streamBlock, error) {
	next, err := d.Next(raw)
	if err != nil {
		return nil, err
	}
	b := &streamBlock{Incoming: next}
	quiet := blockDecoder{d.Quiet()}
	whole := quiet.block(jsonwire.Value{Raw: b.Raw}, d.At(b.At), b.At)
	quiet.WithoutStrays(whole, d.At(b.At))
	d.Ambiguous = d.Ambiguous || quiet.Ambiguous
	switch p := whole.(type) {
	case *dragoman.Text:
		skeleton, value := *p, *p
		skeleton.Text, value.Text, skeleton.Extra = "", "", extra.Clone(p.Extra)
		b.Part = d.StartPart(&skeleton, &value)
		b.Part.Append(p.Text)
	case *dragoman.Reasoning:
		skeleton, value := *p, *p
		skeleton.Text, value.Text, skeleton.Extra = "", "", extra.Clone(p.Extra)
		b.Part = d.StartPart(&skeleton, &value)
		b.Part.Append(p.Text)
	case *dragoman.ToolCall:
		d.StartCall(b, p)
	case *dragoman.Opaque:
		skeleton := *p
		b.Part = d.StartPart(&skeleton, p)
	default:
		b.Part = d.StartPart(whole, whole)
	}
	return b, nil
}

// blockDelta applies the delta that was read. A delta of a block that never
// started opens one where its kind tells enough.
func (d *streamDecoder) blockDelta(index int64) {
	b := d.Open[index]
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
				d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, "/content", "a %.40s for block %d, which is not open", d.kind, index)
			}
			return
		}
		b = d.Open[index]
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
			d.Input(b, text, d.delta.whole, "partial_json")
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
				p.Signature = d.answer.Keep.Text(p.Signature, text)
			}
		default:
			d.setExtras(&p.Extra, b)
			d.carryDelta()
		}
	case *dragoman.Opaque:
		switch string(d.kind) {
		case "input_json_delta":
			d.Input(b, text, d.delta.whole, "partial_json")
		case "text_delta":
			d.set(b, member{name: "text", text: []byte(text), isText: true})
		case "thinking_delta":
			d.set(b, member{name: "thinking", text: []byte(text), isText: true})
		case "signature_delta":
			d.set(b, member{name: "signature", raw: jsonwire.Quote(text)})
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
	if d.delta.whole {
		d.ReportWhole(b)
		return
	}
	d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, d.At(b.At).String(), "%q of a %.40s, which is no string", d.delta.mistyped, d.kind)
}

// mismatch reports a delta of a known kind that does not fit its block.
func (d *streamDecoder) mismatch(b *streamBlock) bool {
	if !knownDelta(d.kind) {
		return false
	}
	if d.delta.text != "" || d.delta.citation != nil {
		d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, d.At(b.At).String(), "a %s does not fit the block", d.kind)
	}
	return true
}

// taken counts what is kept outside of a part.
func (d *streamDecoder) taken(raw []byte) []byte {
	d.Bound.Take(len(raw))
	return raw
}

// carryDelta carries a delta of an unknown kind, without the fields that a client
// could take for those of a known one.
func (d *streamDecoder) carryDelta() {
	if knownDelta(d.kind) || len(d.kind) == 0 {
		return
	}
	d.Held.Field("/delta", []byte("type"), jsonwire.Quote(string(d.kind)))
	for _, m := range d.delta.members {
		var seen wirekit.Members
		if !seen.Twice(deltaMembers, []byte(m.name)) && !slices.Contains(deltaMembers, m.name) {
			d.Held.Field("/delta", []byte(m.name), m.value())
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
			d.answer.Keep.Member(e, name, "", []byte(m.name), m.value())
		}
	}
}

// modelled reports whether a member is none that a delta of an unknown kind may
// set: what a block is, is not for strangers to say.
func (d *streamDecoder) modelled(b *streamBlock, member string) bool {
	switch member {
	case "text", "thinking", "signature", "data", "id", "name", "input", "cache_control":
		if b.Part != nil && b.Part.Value.Kind() == codes.KindOpaque {
			return false
		}
	case "type":
	default:
		return false
	}
	d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, d.At(b.At).String(), "a %.40s may not set %q", d.kind, member)
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
			d.Bound.Take(len(m.text))
			old.text = append(old.text, m.text...)
			return
		default:
			raw := m.value()
			d.Bound.Swap(len(old.text)+len(old.raw), len(raw))
			old.raw, old.text, old.isText = raw, nil, false
			return
		}
	}
	if len(b.members) >= maxMembers {
		if !b.full {
			b.full = true
			d.Rep.Addf(dragoman.Dropped, dragoman.Warn, d.At(b.At).String(), "member %.40q and those after it: more than %d came in deltas", m.name, maxMembers)
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
	d.Bound.Take(len(m.name) + len(m.text) + len(m.raw))
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
		return jsonwire.Quote(string(m.text))
	}
	return m.raw
}

func (d *streamDecoder) blockStop(index int64) {
	if b := d.Open[index]; b != nil && d.twice != "" {
		b.Twice = d.twice
	}
	d.Stop(index)
}

// FinishBlock implements [blockwire.BlockReader].
func (d *streamDecoder) FinishBlock(b *streamBlock) {
	switch p := b.Part.Value.(type) {
	case *dragoman.Text:
		if b.cites != nil {
			extra.Add(&p.Extra, name, "", []byte("citations"), b.citations(p.Extra))
		}
	case *dragoman.Opaque:
		p.JSON = d.assembled(b)
	}
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
			d.Rep.Addf(dragoman.Lowered, dragoman.Warn, d.At(b.At).String(), "input that is not JSON left out: %v", err)
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

// WholeCall implements [blockwire.BlockReader].
func (d *streamDecoder) WholeCall(b *streamBlock, at extra.Path) *dragoman.ToolCall {
	block := jsonwire.Value{Raw: d.assembled(b)}
	_, repeated := typeAndRepeat(block)
	if repeated == "" {
		repeated = b.Twice
	}
	return d.blocks.call(block, repeated, at)
}
