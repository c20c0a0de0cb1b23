package bedrock

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/stream"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// streamBlock is a block that is being streamed.
type streamBlock struct {
	// Input is also the signature of thinking, and the source of an image.
	blockwire.Incoming
	index  int64
	kind   blockKind
	items  []byte // citations, or the blocks of a result, with commas between
	pieces []string
}

type blockKind int

const (
	blockText blockKind = iota
	blockThinking
	blockRedacted
	blockCall
	blockHosted // a call that the provider runs
	blockResult // of such a call
	blockImage
	blockUnknown
)

// startKey is what a start says the block is; empty where it says nothing.
func startKey(opening []byte) string { return blockKey(opening) }

func (d *streamDecoder) blockStart() error {
	d.start()
	if old := d.open[d.index]; old != nil {
		d.finish(old) // its end was lost
		delete(d.open, d.index)
	}
	raw := d.opening
	if raw == nil {
		if d.noBlock {
			d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Info, "/output/message/content", "block %d starts with no object", d.index)
		}
		return nil
	}
	switch key := startKey(raw); key {
	case "": // text, and thinking, start so or not at all: the first delta tells
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

// begin takes the next block. The bound is on blocks, never on what an index
// says (quirk C4).
func (d *streamDecoder) begin(kind blockKind, raw []byte) (*streamBlock, error) {
	if d.blocks >= stream.MaxParts {
		return nil, fmt.Errorf("%w: more than %d content blocks", dragoman.ErrTooLarge, stream.MaxParts)
	}
	b := &streamBlock{
		Incoming: blockwire.Incoming{At: d.blocks, Raw: d.clone(raw), Call: kind == blockCall, Twice: d.twice},
		index:    d.index, kind: kind,
	}
	d.blocks++
	if d.open == nil {
		d.open = make(map[int64]*streamBlock)
	}
	d.open[d.index], d.last = b, b
	return b, nil
}

// header is that of the message, for its first part.
func (d *streamDecoder) header() *dragoman.Message {
	if d.parts.Count() > 0 {
		return nil
	}
	return &dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.origin}
}

func (d *streamDecoder) beginOpaque(kind blockKind, raw []byte, key string) error {
	b, err := d.begin(kind, raw)
	if err != nil {
		return err
	}
	skeleton := opaque(b.Raw, key)
	skeleton.Hosted = kind == blockHosted || kind == blockResult
	value := *skeleton
	b.Part = d.parts.Start(0, d.header(), skeleton, &value)
	return nil
}

func (d *streamDecoder) beginCall(raw []byte) error {
	q := d.quiet()
	c := q.call(d.clone(raw), extra.At(""))
	if c.Hosted && c.Problem == nil {
		return d.beginOpaque(blockHosted, raw, keyCall)
	}
	b, err := d.begin(blockCall, raw)
	if err != nil {
		return err
	}
	d.ambiguous = d.ambiguous || q.ambiguous
	withoutStrays(c, extra.At(""), q.rep)
	q.identify(c, extra.At(""), 0, b.At)
	d.calls = append(d.calls, b)
	b.Hidden = c.Payload == dragoman.PayloadText || d.reg.Translates(c.Namespace, c.Name)
	if d.ids[c.ID] {
		return nil
	}
	if d.ids == nil {
		d.ids = make(map[string]bool)
	}
	d.ids[c.ID] = true
	skeleton := *c
	skeleton.Arguments, skeleton.Problem = "", nil
	b.Part = d.parts.Start(0, d.header(), &skeleton, c)
	return nil
}

func (d *streamDecoder) beginImage(raw []byte) error {
	b, err := d.begin(blockImage, raw)
	if err != nil {
		return err
	}
	b.Part = d.parts.Start(0, d.header(), &dragoman.Media{Media: dragoman.MediaImage}, &dragoman.Media{Media: dragoman.MediaImage})
	return nil
}

// blockDelta applies the delta that was read. Text and thinking open their
// block by themselves (quirk C33); a delta that does not fit the open block
// ends it, as one whose end was lost.
func (d *streamDecoder) blockDelta() error {
	d.start()
	if d.wireEvent.name != "" {
		d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Warn, "", "deltas of %.60q, which have no canonical form", d.wireEvent.name)
	}
	kind, ok := d.blockOf()
	if !ok {
		return nil
	}
	b := d.open[d.index]
	if b == nil && !d.hasIndex && d.last != nil && !d.last.Stopped {
		b = d.last
	}
	if b != nil && !fits(b.kind, kind) {
		d.finish(b)
		delete(d.open, b.index)
		b = nil
	}
	if b == nil {
		var err error
		if b, err = d.openFor(kind); b == nil || err != nil {
			return err
		}
	}
	if d.twice != "" {
		b.Twice = d.twice
	}
	d.apply(b)
	return nil
}

// blockOf says which kind of block the delta at hand belongs to; ok is false
// for one that says nothing we know.
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

// openFor opens the block of a delta that came without a start. Empty
// fragments open none: servers send them between blocks.
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
		b.Part = d.parts.Start(0, d.header(), skeleton, value)
		return b, nil
	case blockCall: // of a tool nobody named: an invalid call, not a lost one
		err := d.beginCall([]byte(`{"toolUse":{}}`))
		return d.open[d.index], err
	case blockResult:
		d.lost.Addf(d.rep, dragoman.Dropped, dragoman.Warn, "/output/message/content", "what came of a result for block %d, which is not open", d.index)
		return nil, nil
	default:
		err := d.beginImage([]byte(`{"image":{}}`))
		return d.open[d.index], err
	}
}

// apply adds what a delta brings to its block.
func (d *streamDecoder) apply(b *streamBlock) {
	switch d.kind {
	case deltaText, deltaThinking:
		b.Part.Append(d.text)
	case deltaSignature:
		d.hide(b, d.text) // nothing erases it (quirk C22)
	case deltaRedacted:
		d.addPiece(b, d.text)
	case deltaInput:
		if b.Joins(d.text, d.whole, "input"); d.whole {
			d.lost.Addf(d.rep, dragoman.Lowered, dragoman.Info, extra.Elem("/output/message/content", b.At).String(), "arguments that came as a value, where fragments of their text belong")
		}
		if b.Part != nil && b.kind == blockCall && !b.Hidden {
			b.Part.Append(d.text)
		} else {
			d.hide(b, d.text)
		}
	case deltaCitation:
		d.add(b, d.raw)
	case deltaResult:
		d.addResult(b)
	case deltaImage:
		d.addImage(b, d.raw)
	}
}

// hide keeps a fragment that is not shown.
func (d *streamDecoder) hide(b *streamBlock, text string) {
	d.bound.Take(len(text))
	b.Input = append(b.Input, text...)
}

// pieceSize is what a piece costs beside its bytes.
const pieceSize = 16

// addPiece keeps a piece of base64. An empty one says something only as the
// first.
func (d *streamDecoder) addPiece(b *streamBlock, piece string) {
	if piece == "" && len(b.pieces) > 0 {
		return
	}
	d.bound.Take(pieceSize + len(piece))
	b.pieces = append(b.pieces, piece)
}

// add appends an element to the list of a block.
func (d *streamDecoder) add(b *streamBlock, raw []byte) {
	if len(raw) == 0 || string(raw) == "null" {
		return
	}
	d.bound.Take(len(raw) + len(","))
	if len(b.items) > 0 {
		b.items = append(b.items, ',')
	}
	b.items = append(b.items, raw...)
}

// addResult takes the blocks of a result: a list, or one.
func (d *streamDecoder) addResult(b *streamBlock) {
	raw := bytes.TrimSpace(d.raw)
	if len(raw) >= 2 && raw[0] == '[' {
		raw = bytes.TrimSpace(raw[1 : len(raw)-1])
	}
	d.add(b, raw)
}

// addImage takes the source of an image: its bytes, maybe in pieces, or where
// it is.
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
				d.addPiece(b, in.String())
				piece = true
			} else {
				in.Skip()
			}
		}
		if !piece {
			d.bound.Swap(len(b.Input), len(source))
			b.Input = append(b.Input[:0], source...)
		}
	}
}

// joined are pieces of base64 as one.
func joined(pieces []string) string {
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
	d.start()
	b := d.open[d.index]
	if b == nil {
		return
	}
	delete(d.open, d.index)
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
	switch b.kind {
	case blockCall:
		b.ShowWhole()
		b.Part.Complete()
		return
	case blockText:
		if b.items != nil {
			p := b.Part.Value.(*dragoman.Text)
			extra.Add(&p.Extra, name, "/citationsContent", []byte("citations"), slices.Concat([]byte{'['}, b.items, []byte{']'}))
		}
	case blockThinking:
		b.Part.Value.(*dragoman.Reasoning).Signature = string(b.Input)
	case blockRedacted:
		b.Part.Value.(*dragoman.Reasoning).Encrypted = joined(b.pieces)
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
	b.Part.End()
}

// image is the part of an image that has arrived.
func (b *streamBlock) image() dragoman.Part {
	source := b.Input
	if len(b.pieces) > 0 {
		var w jsonwire.Writer
		w.BeginObject()
		w.StringField("bytes", joined(b.pieces))
		w.EndObject()
		source = w.Buf
	}
	raw := b.Raw
	if len(source) > 0 {
		raw = withInner(raw, "image", "source", source)
	}
	return readPart(raw)
}

// assembled is the block of a call as the API would have sent it whole.
func (d *streamDecoder) assembled(b *streamBlock) []byte {
	input := b.Fragments()
	if len(bytes.TrimSpace(input)) == 0 {
		return b.Raw
	}
	switch err := jsonwire.Check(input); {
	case err == nil:
		return withInner(b.Raw, keyCall, "input", input)
	case b.kind == blockCall:
		return withInner(b.Raw, keyCall, "input", quote(string(input))) // read back as the text it is
	default:
		d.rep.Addf(dragoman.Lowered, dragoman.Warn, extra.Elem("/output/message/content", b.At).String(), "input that is not JSON left out: %v", err)
		return b.Raw
	}
}

func quote(s string) []byte {
	var w jsonwire.Writer
	w.String(s)
	return w.Buf
}

// withInner returns a block with a member of the object in it set; every other
// member stays, also one that is there twice.
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
		w.Key(inner)
		w.Known(value)
		w.EndObject()
	}
	w.EndObject()
	if r.Err() != nil {
		return raw
	}
	return w.Buf
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
	at := extra.Elem("/output/message/content", b.At)
	c := d.call(d.assembled(b), at)
	if b.Twice != "" {
		c.Problem, d.ambiguous = wirekit.RepeatedMember(b.Twice), true
	}
	withoutStrays(c, at, d.rep)
	d.identify(c, at, 0, b.At)
	return c
}
