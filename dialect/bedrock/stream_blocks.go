package bedrock

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// streamBlock is an open block of a stream.
type streamBlock struct {
	// Input also holds the signature of thinking and the source of an image.
	blockwire.Incoming
	index     int64
	kind      blockKind
	items     []byte // citations, or the blocks of a result, separated by commas
	fragments []string
}

type blockKind int

const (
	blockText blockKind = iota
	blockThinking
	blockRedacted
	blockCall
	blockHosted // a call of a hosted tool
	blockResult // the result of a hosted tool
	blockImage
	blockUnknown
)

// startKey returns the block key of a start, or an empty string.
func startKey(opening []byte) string { return blockKey(opening) }

func (d *streamDecoder) blockStart() error {
	d.Start()
	if old := d.Open[d.index]; old != nil {
		d.Finish(old) // its end is missing
		delete(d.Open, d.index)
	}
	raw := d.opening
	if raw == nil {
		if d.badStart {
			d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Info, d.Content, "the start of block %d is not an object", d.index)
		}
		return nil
	}
	switch key := startKey(raw); key {
	case "": // text and thinking have an empty start or none; the first delta has the kind
		return nil
	case keyCall:
		return d.beginCall(raw)
	case keyResult:
		return d.beginOpaque(blockResult, raw, key)
	case "image":
		return d.beginImage(raw)
	default:
		return d.beginOpaque(blockUnknown, raw, key)
	}
}

// begin opens the next block.
func (d *streamDecoder) begin(kind blockKind, raw []byte) (*streamBlock, error) {
	next, err := d.Next(raw)
	if err != nil {
		return nil, err
	}
	next.Duplicate = d.duplicate
	b := &streamBlock{Incoming: next, index: d.index, kind: kind}
	d.OpenAt(d.index, b)
	d.lastBlock = b
	return b, nil
}

func (d *streamDecoder) beginOpaque(kind blockKind, raw []byte, key string) error {
	b, err := d.begin(kind, raw)
	if err != nil {
		return err
	}
	skeleton := opaque(b.Raw, key)
	skeleton.Hosted = kind == blockHosted || kind == blockResult
	value := *skeleton
	b.Part = d.StartPart(skeleton, &value)
	return nil
}

func (d *streamDecoder) beginCall(raw []byte) error {
	q := blockDecoder{Decoder: d.WithoutReport()}
	c := q.call(d.Clone(raw), extra.At(""))
	if c.Hosted && c.Problem == nil {
		return d.beginOpaque(blockHosted, raw, keyCall)
	}
	b, err := d.begin(blockCall, raw)
	if err != nil {
		return err
	}
	d.Ambiguous = d.Ambiguous || q.Ambiguous
	q.DropUnsendable(c, extra.At(""))
	q.Identify(c, extra.At(""), 0, b.At)
	d.StartCall(b, c)
	return nil
}

func (d *streamDecoder) beginImage(raw []byte) error {
	b, err := d.begin(blockImage, raw)
	if err != nil {
		return err
	}
	b.Part = d.StartPart(&dragoman.Media{Media: codes.MediaImage}, &dragoman.Media{Media: codes.MediaImage})
	return nil
}

// blockDelta applies the current delta. Text and thinking deltas open their
// block (quirk C33). A delta that does not fit the open block ends it; the end
// of that block is missing.
func (d *streamDecoder) blockDelta() error {
	d.Start()
	if d.wireEvent.name != "" {
		d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, "", "delta %.60q has no canonical form", d.wireEvent.name)
	}
	kind, ok := d.blockOf()
	if !ok {
		return nil
	}
	b := d.Open[d.index]
	if b == nil && !d.hasIndex && d.lastBlock != nil && !d.lastBlock.Stopped {
		b = d.lastBlock
	}
	if b != nil && !fits(b.kind, kind) {
		d.Finish(b)
		delete(d.Open, b.index)
		b = nil
	}
	if b == nil {
		var err error
		if b, err = d.openFor(kind); b == nil || err != nil {
			return err
		}
	}
	if d.duplicate != "" {
		b.Duplicate = d.duplicate
	}
	d.apply(b)
	return nil
}

// blockOf returns the kind of block that the current delta belongs to. ok is
// false for an unknown delta.
func (d *streamDecoder) blockOf() (kind blockKind, ok bool) {
	switch d.kind {
	case deltaText, deltaCitation:
		return blockText, true
	case deltaThinking, deltaSignature:
		return blockThinking, true
	case deltaRedacted:
		return blockRedacted, true
	case deltaInput:
		return blockCall, true
	case deltaResult:
		return blockResult, true
	case deltaImage:
		return blockImage, true
	default:
		return 0, false
	}
}

func fits(open, delta blockKind) bool {
	return open == delta || open == blockHosted && delta == blockCall
}

// openFor opens the block of a delta that has no start. Empty fragments do not
// open a block, because servers send them between blocks.
func (d *streamDecoder) openFor(kind blockKind) (*streamBlock, error) {
	if d.text == "" && d.raw == nil {
		return nil, nil
	}
	switch kind {
	case blockText, blockThinking, blockRedacted:
		b, err := d.begin(kind, nil)
		if err != nil {
			return nil, err
		}
		var skeleton, value dragoman.Part = &dragoman.Text{}, &dragoman.Text{}
		if kind != blockText {
			skeleton = &dragoman.Reasoning{Redacted: kind == blockRedacted}
			value = &dragoman.Reasoning{Redacted: kind == blockRedacted}
		}
		b.Part = d.StartPart(skeleton, value)
		return b, nil
	case blockCall: // a call without a name: an invalid call, not a lost one
		err := d.beginCall([]byte(`{"toolUse":{}}`))
		return d.Open[d.index], err
	case blockResult:
		d.Lost.Addf(d.Rep, dragoman.Dropped, dragoman.Warn, d.Content, "result delta for block %d, which is not open", d.index)
		return nil, nil
	default:
		err := d.beginImage([]byte(`{"image":{}}`))
		return d.Open[d.index], err
	}
}

// apply adds the current delta to its block.
func (d *streamDecoder) apply(b *streamBlock) {
	switch d.kind {
	case deltaText, deltaThinking:
		b.Part.Append(d.text)
	case deltaSignature:
		b.Input = append(b.Input, d.Take(d.text)...) // never erased (quirk C22)
	case deltaRedacted:
		d.addFragment(b, d.text)
	case deltaInput:
		if d.whole {
			d.ReportWhole(b)
		}
		d.Input(b, d.text, d.whole, "input")
	case deltaCitation:
		d.add(b, d.raw)
	case deltaResult:
		d.addResult(b)
	case deltaImage:
		d.addImage(b, d.raw)
	}
}

// fragmentOverhead is the overhead of a stored fragment in bytes.
const fragmentOverhead = 16

// addFragment stores a fragment of base64. An empty one counts only as the first.
func (d *streamDecoder) addFragment(b *streamBlock, piece string) {
	if piece == "" && len(b.fragments) > 0 {
		return
	}
	d.Bound.Take(fragmentOverhead + len(piece))
	b.fragments = append(b.fragments, piece)
}

// add appends an element to the items of a block.
func (d *streamDecoder) add(b *streamBlock, raw []byte) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	d.Bound.Take(len(raw) + len(","))
	if len(b.items) > 0 {
		b.items = append(b.items, ',')
	}
	b.items = append(b.items, raw...)
}

// addResult adds the blocks of a result: a list or a single block.
func (d *streamDecoder) addResult(b *streamBlock) {
	raw := bytes.TrimSpace(d.raw)
	if len(raw) >= 2 && raw[0] == '[' {
		raw = bytes.TrimSpace(raw[1 : len(raw)-1])
	}
	d.add(b, raw)
}

// addImage adds the source of an image: its bytes, possibly in fragments, or
// its location.
func (d *streamDecoder) addImage(b *streamBlock, raw []byte) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return
	}
	for key := range r.Object() {
		if string(key) != "source" || r.Kind() != '{' {
			r.Skip()
			continue
		}
		source := r.Raw()
		in := jsonwire.NewReader(source)
		piece := false
		for key := range in.Object() {
			if string(key) == "bytes" && in.Kind() == '"' {
				d.addFragment(b, in.String())
				piece = true
			} else {
				in.Skip()
			}
		}
		if !piece {
			d.Bound.Swap(len(b.Input), len(source))
			b.Input = append(b.Input[:0], source...)
		}
	}
}

// joinBase64 joins fragments of base64.
func joinBase64(pieces []string) string {
	if len(pieces) == 1 {
		return pieces[0]
	}
	var all []byte
	for _, p := range pieces {
		raw, err := base64.StdEncoding.DecodeString(p)
		if err != nil {
			return strings.Join(pieces, "")
		}
		all = append(all, raw...)
	}
	return base64.StdEncoding.EncodeToString(all)
}

func (d *streamDecoder) blockStop() {
	d.Start()
	d.Stop(d.index)
}

// FinishBlock implements [blockwire.BlockReader].
func (d *streamDecoder) FinishBlock(b *streamBlock) {
	switch b.kind {
	case blockText:
		if b.items != nil {
			p := b.Part.Value.(*dragoman.Text)
			extra.Add(&p.Extra, name, "/citationsContent", []byte("citations"), slices.Concat([]byte{'['}, b.items, []byte{']'}))
		}
	case blockThinking:
		b.Part.Value.(*dragoman.Reasoning).Signature = string(b.Input)
	case blockRedacted:
		b.Part.Value.(*dragoman.Reasoning).Encrypted = joinBase64(b.fragments)
	case blockHosted:
		p := b.Part.Value.(*dragoman.Opaque)
		p.JSON = d.assembled(b)
	case blockResult:
		p := b.Part.Value.(*dragoman.Opaque)
		if b.items != nil {
			p.JSON = withInner(b.Raw, keyResult, "content", slices.Concat([]byte{'['}, b.items, []byte{']'}))
		}
	case blockImage:
		b.Part.Value = b.image()
	}
}

// image returns the part for an image that is complete.
func (b *streamBlock) image() dragoman.Part {
	source := b.Input
	if len(b.fragments) > 0 {
		var w jsonwire.Writer
		w.BeginObject()
		w.StringField("bytes", joinBase64(b.fragments))
		w.EndObject()
		source = w.Buf
	}
	raw := b.Raw
	if len(source) > 0 {
		raw = withInner(raw, "image", "source", source)
	}
	return readPart(raw)
}

// assembled returns the block of a call as a response would contain it.
func (d *streamDecoder) assembled(b *streamBlock) []byte {
	input := b.Fragments()
	if len(bytes.TrimSpace(input)) == 0 {
		return b.Raw
	}
	switch err := jsonwire.Check(input); {
	case err == nil:
		return withInner(b.Raw, keyCall, "input", input)
	case b.kind == blockCall:
		return withInner(b.Raw, keyCall, "input", jsonwire.Quote(string(input))) // decoded as a string
	default:
		d.Rep.Addf(dragoman.Lowered, dragoman.Warn, d.At(b.At).String(), "input dropped, not valid JSON: %v", err)
		return b.Raw
	}
}

// withInner returns a block with one field of its inner object set, or without it
// if value is nil. All other fields stay, including duplicates.
func withInner(raw []byte, key, inner string, value []byte) []byte {
	var w jsonwire.Writer
	r := jsonwire.NewReader(raw)
	w.BeginObject()
	for k := range r.Object() {
		w.QuotedKey(string(k))
		if string(k) != key || r.Kind() != '{' {
			w.Known(r.Raw())
			continue
		}
		w.BeginObject()
		for k := range r.Object() {
			if string(k) == inner {
				r.Skip()
				continue
			}
			w.QuotedKey(string(k))
			w.Known(r.Raw())
		}
		if value != nil {
			w.Key(inner)
			w.Known(value)
		}
		w.EndObject()
	}
	w.EndObject()
	if r.Err() != nil {
		return raw
	}
	return w.Buf
}

// WholeCall implements [blockwire.BlockReader].
func (d *streamDecoder) WholeCall(b *streamBlock, at extra.Path) *dragoman.ToolCall {
	return d.Called(d.blocks.call(d.assembled(b), at), b.Duplicate)
}
