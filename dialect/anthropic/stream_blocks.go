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

// streamBlock is an open block of a stream.
type streamBlock struct {
	blockwire.Incoming
	fields []field
	starts map[string]string // the string fields of Raw, set when first needed
	full   bool              // more fields arrived than are stored
	cites  []byte
}

// field is a field of a block that deltas set or extend: text for a string
// built from fragments, raw for any other value.
type field struct {
	name   string
	text   []byte
	isText bool
	raw    []byte
}

// maxFields limits the fields that deltas may add to one block.
const maxFields = 64

// startContent decodes the blocks of a message_start that includes its content,
// as programmatic tool calls do.
func (d *streamDecoder) startContent(content []byte) error {
	if len(content) == 0 || content[0] != '[' {
		if s := string(content); s != "" && s != "null" && s != `""` {
			d.Rep.Add(dragoman.Dropped, dragoman.Warn, "/content", "the content of message_start is not a list of blocks")
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
		if b.Duplicate = d.duplicate; d.response.contents > 1 {
			b.Duplicate = "content"
		}
		d.Finish(b)
	}
	return r.Err()
}

func (d *streamDecoder) blockStart(index int64, raw []byte) error {
	d.Start()
	if raw == nil {
		if d.badStart {
			d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Info, "/content", "the start of block %d is not an object", index)
		}
		return nil
	}
	if old := d.Open[index]; old != nil {
		d.Finish(old) // its end is missing
	}
	b, err := d.begin(raw)
	if err != nil {
		return err
	}
	b.Duplicate = d.duplicate
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
	quiet := blockDecoder{d.WithoutReport()}
	whole := quiet.block(jsonwire.Value{Raw: b.Raw}, d.At(b.At), b.At)
	quiet.DropUnsendable(whole, d.At(b.At))
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

// blockDelta applies the current delta. A delta for a block that was not
// started opens one if its kind is sufficient.
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
				d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, "/content", "%.40s for block %d, which is not open", d.kind, index)
			}
			return
		}
		b = d.Open[index]
	}
	if d.duplicate != "" {
		b.Duplicate = d.duplicate
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
			d.setFields(b)
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
			b.cite(d.charge(d.delta.citation))
		default:
			d.setExtras(&p.Extra, b)
			d.carryDelta()
		}
	case *dragoman.Reasoning:
		switch string(d.kind) {
		case "thinking_delta":
			b.Part.Append(text)
		case "signature_delta":
			if text != "" { // the last non-empty one counts (quirk C22)
				p.Signature = d.response.Keep.Text(p.Signature, text)
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
			d.set(b, field{name: "text", text: []byte(text), isText: true})
		case "thinking_delta":
			d.set(b, field{name: "thinking", text: []byte(text), isText: true})
		case "signature_delta":
			d.set(b, field{name: "signature", raw: jsonwire.Quote(text)})
		case "citations_delta":
			b.cite(d.charge(d.delta.citation))
		default:
			d.setFields(b)
		}
	default:
		d.mismatch(b)
	}
}

// mistyped reports a delta text that is not a string. Arguments are then used
// as the value they are; other fields are ignored.
func (d *streamDecoder) mistyped(b *streamBlock) {
	if d.delta.mistyped == "" { // the common case; avoids building the path
		return
	}
	if d.delta.whole {
		d.ReportWhole(b)
		return
	}
	d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, d.At(b.At).String(), "%q of a %.40s is not a string", d.delta.mistyped, d.kind)
}

// mismatch reports a delta of a known kind that does not fit its block.
func (d *streamDecoder) mismatch(b *streamBlock) bool {
	if !knownDelta(d.kind) {
		return false
	}
	if d.delta.text != "" || d.delta.citation != nil {
		d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, d.At(b.At).String(), "%s does not fit the block", d.kind)
	}
	return true
}

// charge charges bytes that are stored outside of a part.
func (d *streamDecoder) charge(raw []byte) []byte {
	d.Bound.Take(len(raw))
	return raw
}

// carryDelta passes through a delta of an unknown kind, without the fields that
// a client could read as those of a known kind.
func (d *streamDecoder) carryDelta() {
	if knownDelta(d.kind) || len(d.kind) == 0 {
		return
	}
	d.Held.Field("/delta", []byte("type"), jsonwire.Quote(string(d.kind)))
	for _, m := range d.delta.fields {
		var seen wirekit.KnownFields
		if !seen.IsRepeated(deltaFields, []byte(m.name)) && !slices.Contains(deltaFields, m.name) {
			d.Held.Field("/delta", []byte(m.name), m.value())
		}
	}
}

// setExtras stores the fields of a delta of an unknown kind in a known block.
func (d *streamDecoder) setExtras(e **dragoman.Extra, b *streamBlock) {
	if d.mismatch(b) {
		return
	}
	for _, m := range d.delta.fields {
		if !d.isProtected(b, m.name) {
			d.response.Keep.Field(e, name, "", []byte(m.name), m.value())
		}
	}
}

// isProtected reports whether a delta of an unknown kind must not set a field:
// only known deltas decide what a block is. It reports the loss.
func (d *streamDecoder) isProtected(b *streamBlock, name string) bool {
	switch name {
	case "text", "thinking", "signature", "data", "id", "name", "input", "cache_control":
		if b.Part != nil && b.Part.Value.Kind() == codes.KindOpaque {
			return false
		}
	case "type":
	default:
		return false
	}
	d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, d.At(b.At).String(), "%.40s must not set %q", d.kind, name)
	return true
}

func (d *streamDecoder) setFields(b *streamBlock) {
	if d.mismatch(b) {
		return
	}
	for _, m := range d.delta.fields {
		if !d.isProtected(b, m.name) {
			d.set(b, m)
		}
	}
}

// set extends a field that started as a string. Any other value is replaced by
// the later one.
func (d *streamDecoder) set(b *streamBlock, m field) {
	for i := range b.fields {
		old := &b.fields[i]
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
	if len(b.fields) >= maxFields {
		if !b.full {
			b.full = true
			d.Rep.Addf(dragoman.Dropped, dragoman.Warn, d.At(b.At).String(), "field %.40q and later ones: more than %d fields in deltas", m.name, maxFields)
		}
		return
	}
	if b.starts == nil {
		b.starts = stringFields(b.Raw)
	}
	if start, ok := b.starts[m.name]; m.isText && ok {
		m.text, m.raw = append([]byte(start), m.text...), nil
	} else if m.isText {
		m.raw, m.text, m.isText = m.value(), nil, false
	}
	d.Bound.Take(len(m.name) + len(m.text) + len(m.raw))
	b.fields = append(b.fields, m)
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

func (m *field) value() []byte {
	if m.isText {
		return jsonwire.Quote(string(m.text))
	}
	return m.raw
}

func (d *streamDecoder) blockStop(index int64) {
	if b := d.Open[index]; b != nil && d.duplicate != "" {
		b.Duplicate = d.duplicate
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

// citations returns the complete list: those in the start of the block, then
// those of the deltas.
func (b *streamBlock) citations(e *dragoman.Extra) []byte {
	out := []byte{'['}
	if first, ok := extra.Get(e, name, "/citations"); ok && len(first) > 2 && first[0] == '[' {
		if inner := bytes.TrimSpace(first[1 : len(first)-1]); len(inner) > 0 {
			out = append(append(out, inner...), ',')
		}
	}
	return append(append(out, b.cites...), ']')
}

// assembled returns the block as a response would contain it.
func (d *streamDecoder) assembled(b *streamBlock) []byte {
	input := b.Fragments()
	var set []field
	if len(bytes.TrimSpace(input)) > 0 {
		switch err := jsonwire.Check(input); {
		case err == nil:
			set = append(set, field{name: "input", raw: input})
		case b.Call:
			set = append(set, field{name: "input", text: input, isText: true}) // decoded as a string
		default:
			d.Rep.Addf(dragoman.Lowered, dragoman.Warn, d.At(b.At).String(), "input dropped, not valid JSON: %v", err)
		}
	}
	set = append(set, b.fields...)
	if b.cites != nil {
		set = append(set, field{name: "citations", raw: slices.Concat([]byte{'['}, b.cites, []byte{']'})})
	}
	return withFields(b.Raw, set...)
}

// stringFields returns the fields of an object that hold a string.
func stringFields(raw []byte) map[string]string {
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

// withFields returns an object with the given fields set. If a name repeats,
// the last one counts.
func withFields(raw []byte, set ...field) []byte {
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
	_, repeated := typeAndDuplicate(block)
	if repeated == "" {
		repeated = b.Duplicate
	}
	return d.blocks.call(block, repeated, at)
}
