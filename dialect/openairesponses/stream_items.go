package openairesponses

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// streamItem is the state of one output item.
type streamItem struct {
	kind       itemKind
	typ        string
	id         string
	callID     string
	place      int               // position in the output
	header     *dragoman.Message // the header at its start; emitted with its first part
	headerSent bool
	added      []byte // the raw item of the added event
	// final is the item of the done event or the terminal event; nil while the item is open.
	final   *dragoman.Message
	content []contentPart // parts of a message
	part    *stream.Part  // the part of any other item
	// held has the deltas of a call whose name is not known yet.
	held        []byte
	sharedID    bool   // another call has the same id
	indexed     bool   // found by its output_index
	moved       bool   // its output_index belongs to another item
	matched     bool   // found in the terminal output
	lowered     bool   // the tool gets something other than the arguments on the wire
	freeform    bool   // such as the text inside them
	whole       bool   // its payload arrived as a JSON value
	conflicting bool   // its events contradict each other
	comparisons int    // how often its events were compared
	ended       []byte // the raw item of the end of a call
	call        *dragoman.ToolCall
	// Metadata of a message that arrived in events and that the final message should repeat.
	logprobs    bool
	annotations int
}

// contentPart is the state of one part of a message.
type contentPart struct {
	index int64
	part  *stream.Part
	final dragoman.Part
	size  int // length of the JSON of final
}

// finalHeader returns the final header of an item; nil while the item is open.
func (it *streamItem) finalHeader() *dragoman.Message {
	if it.final == nil {
		return nil
	}
	h := *it.final
	h.Parts = nil
	return &h
}

// find returns the item of an event: by output_index, otherwise by id, otherwise the latest one.
func (d *streamDecoder) find() *streamItem {
	if d.ev.hasIndex {
		if it := d.byIndex[d.ev.index]; it != nil {
			d.checkItemID(it)
			return it
		}
	}
	id := unquoted(d.ev.itemID)
	if d.ev.hasIndex {
		// An item without an index gets it from a later event.
		for _, it := range d.items {
			if !it.indexed && it.final == nil && (id != "" && it.id == id || int64(it.place) == d.ev.index) {
				it.indexed = true
				d.byIndex[d.ev.index] = it
				if int64(it.place) != d.ev.index {
					d.markConflict(it)
				}
				return it
			}
		}
		return nil
	}
	if id != "" {
		for _, it := range d.items {
			if it.id == id {
				return it
			}
		}
	}
	if len(d.items) > 0 {
		return d.items[len(d.items)-1]
	}
	return nil
}

func unquoted(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	return jsonwire.NewReader(raw).String()
}

// open returns the item of an event. It creates one of type typ if it was never added.
func (d *streamDecoder) open(typ string) (*streamItem, error) {
	if it := d.find(); it != nil {
		h := itemHead{typ: typ}
		if it.kind == h.kind() {
			return it, nil
		}
		if d.ev.hasIndex {
			return nil, nil // an event for another kind of item is ignored
		}
	}
	id := unquoted(d.ev.itemID)
	d.bound.Take(len(id))
	return d.newItem(&itemHead{typ: typ, id: id}, nil)
}

// maxPlace bounds positions from the wire.
const maxPlace = 1 << 16

func (d *streamDecoder) newItem(h *itemHead, raw []byte) (*streamItem, error) {
	if err := d.begin(nil); err != nil {
		return nil, err
	}
	if len(d.items) >= stream.MaxParts {
		return nil, fmt.Errorf("%w: more than %d output items", dragoman.ErrTooLarge, stream.MaxParts)
	}
	it := &streamItem{kind: h.kind(), typ: h.typ, id: h.id, callID: h.callID, added: raw, place: d.nextPlace()}
	if it.kind == resultItem { // a model does not produce results; one in an output is kept opaque
		it.kind = opaqueItem
	}
	if d.ev.hasIndex {
		// A second item with the same index is placed after all known items, and later events
		// with that index belong to it. Clients that use the index confuse it with the first
		// item.
		_, taken := d.byIndex[d.ev.index]
		if taken = taken || d.ev.index < 0 || d.ev.index >= maxPlace || d.wasMovedTo(int(d.ev.index)); taken {
			it.moved = true
		} else {
			it.place = int(d.ev.index)
		}
		d.byIndex[d.ev.index] = it
		it.indexed = true
	}
	d.items = append(d.items, it)
	return it, nil
}

// wasMovedTo reports whether an item was moved to a position because its index belonged to another
// item.
func (d *streamDecoder) wasMovedTo(place int) bool {
	return slices.ContainsFunc(d.items, func(it *streamItem) bool { return it.moved && it.place == place })
}

// nextPlace returns the position after all known items.
func (d *streamDecoder) nextPlace() int {
	next := 0
	for _, it := range d.items {
		next = max(next, it.place+1)
	}
	return next
}

// added starts an item with its skeleton.
func (d *streamDecoder) added() error {
	if len(d.ev.item) == 0 {
		return nil
	}
	d.at = valuePlace{"/item", d.ev.itemAt}
	raw, h := d.clear(d.clone(d.ev.item))
	if it := d.find(); it != nil && d.ev.hasIndex && it.final == nil && it.typ == h.typ && it.callID == h.callID {
		d.checkAdded(it, raw)
		return nil // a duplicate
	}
	it, err := d.newItem(&h, raw)
	if err != nil {
		return err
	}
	it.conflicting = h.duplicate
	return d.start(it)
}

// start emits an item if its skeleton is sufficient.
func (d *streamDecoder) start(it *streamItem) error {
	m := dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.origin}
	switch it.kind {
	case messageItem:
		if it.added != nil {
			if err := d.message(it.added, &m); err != nil {
				return d.itemError(err)
			}
		}
		m.Parts = nil
		it.header = &m
	case reasoningItem:
		it.header = &m
		it.part = d.parts.Start(it.place, it.header, &dragoman.Reasoning{ID: it.id}, &dragoman.Reasoning{ID: it.id})
	case callItem:
		it.header = &m
		if it.added == nil {
			return nil
		}
		c, err := d.skeleton(it)
		if err != nil {
			return err
		}
		it.sharedID = it.callID == "" || d.isDuplicateID(it)
		if c.Name != "" && !it.sharedID {
			d.startCall(it, c)
		}
	default:
		it.header = &m
		h := itemHead{typ: it.typ, id: it.id, callID: it.callID}
		o := opaque(&h, it.added)
		skeleton := *o
		it.part = d.parts.Start(it.place, it.header, &skeleton, o)
	}
	return nil
}

// clone copies data that outlives the current event, and counts it against the bound.
func (d *streamDecoder) clone(b []byte) []byte {
	d.bound.Take(len(b))
	return clone(b)
}

// itemError adds the position of the current item to an error.
func (d *streamDecoder) itemError(err error) error {
	if d.at.start < 0 { // the item comes from several events
		var at *jsonwire.Error
		if errors.As(err, &at) {
			err = at.Err
		}
		return err
	}
	return jsonwire.PlaceAt(d.at.pointer, d.at.start, err)
}

// skeleton decodes the call of an added item; its arguments come later. It reports no losses,
// because the final call does.
func (d *streamDecoder) skeleton(it *streamItem) (*dragoman.ToolCall, error) {
	var unreported dragoman.Report
	c, err := d.reg.ReadCall(it.added, extra.At(""), &unreported)
	if err != nil {
		return nil, d.itemError(err)
	}
	if c.Namespace == c.Name {
		if _, _, spec := d.reg.PublicName(c.Namespace, c.Name); spec == nil {
			if _, _, bare := d.reg.PublicName("", c.Name); bare != nil {
				c.Namespace = ""
			}
		}
	}
	if d.markLowered(it, c); it.freeform {
		c.Payload = codes.PayloadText
	}
	return &dragoman.ToolCall{ID: c.ID, ItemID: c.ItemID, Name: c.Name, Namespace: c.Namespace, Payload: c.Payload}, nil
}

// markLowered marks a call whose payload on the wire is not what its tool gets: a freeform tool
// was sent as a function, so its text is inside the payload, or the schema of the tool was
// lowered.
func (d *streamDecoder) markLowered(it *streamItem, c *dragoman.ToolCall) {
	if it.typ != "function_call" || !d.reg.Translates(c.Namespace, c.Name) {
		return
	}
	_, _, spec := d.reg.PublicName(c.Namespace, d.reg.WireName(c.Namespace, c.Name))
	it.lowered, it.freeform = true, spec != nil && spec.Kind == codes.ToolFreeform
}

// isDuplicateID reports whether another call has the same id.
func (d *streamDecoder) isDuplicateID(call *streamItem) bool {
	if call.callID == "" {
		return false
	}
	for _, it := range d.items {
		if it != call && it.kind == callItem && it.callID == call.callID {
			return true
		}
	}
	return false
}

// startCall starts a call whose name is known, and emits the deltas that were held back.
func (d *streamDecoder) startCall(it *streamItem, c *dragoman.ToolCall) {
	it.part = d.parts.Start(it.place, it.header, &dragoman.ToolCall{
		ID: c.ID, Synthetic: c.Synthetic, ItemID: c.ItemID, Name: c.Name, Namespace: c.Namespace, Payload: c.Payload,
	}, c)
	if len(it.held) > 0 && !it.lowered {
		it.part.Append(string(it.held))
		it.held = nil
	}
}

// partAdded starts a part of a message. Parts of a reasoning item start with their text.
func (d *streamDecoder) partAdded() error {
	if it := d.find(); it != nil && it.kind == reasoningItem {
		return nil
	}
	var p dragoman.Part = &dragoman.Text{}
	if d.head(d.ev.part).typ == "refusal" {
		p = &dragoman.Refusal{}
	}
	_, err := d.contentPart(p)
	return err
}

// contentPart returns the part of a message that an event belongs to. It starts one of the given
// kind if it was never added.
func (d *streamDecoder) contentPart(kind dragoman.Part) (*contentPart, error) {
	it, err := d.open("message")
	if err != nil || it == nil || it.final != nil {
		return nil, err
	}
	for i := range it.content {
		if it.content[i].index == d.ev.content {
			return &it.content[i], nil
		}
	}
	if d.parts.Count() >= stream.MaxParts {
		return nil, fmt.Errorf("%w: more than %d parts", dragoman.ErrTooLarge, stream.MaxParts)
	}
	if it.header == nil {
		if err := d.start(it); err != nil {
			return nil, err
		}
	}
	// An earlier part is not the last one, so it can end now.
	for i := range it.content {
		if cp := &it.content[i]; cp.final != nil && !cp.part.Ended() {
			cp.part.Value = cp.final
			cp.part.End()
		}
	}
	it.content = append(it.content, contentPart{index: d.ev.content, part: d.startContent(it, kind)})
	return &it.content[len(it.content)-1], nil
}

// startContent starts a part of a message; the first one has the header.
func (d *streamDecoder) startContent(it *streamItem, kind dragoman.Part) *stream.Part {
	header := it.header
	if it.headerSent {
		header = nil
	}
	it.headerSent = true
	var skeleton, value dragoman.Part = &dragoman.Text{}, &dragoman.Text{}
	if _, ok := kind.(*dragoman.Refusal); ok {
		skeleton, value = &dragoman.Refusal{}, &dragoman.Refusal{}
	}
	return d.parts.Start(it.place, header, skeleton, value)
}

func (d *streamDecoder) contentDelta(kind dragoman.Part, text string) error {
	cp, err := d.contentPart(kind)
	if err == nil && cp != nil {
		cp.part.Append(text)
	}
	return err
}

// contentRest handles the whole text of a part. Text that the deltas did not contain becomes one
// more delta. The part ends with its item (quirk C11).
func (d *streamDecoder) contentRest(kind dragoman.Part) error {
	cp, err := d.contentPart(kind)
	if err != nil || cp == nil || cp.part.Ended() {
		return err
	}
	cp.part.Append(restOf(cp.part.Text, d.ev.value))
	return nil
}

func (d *streamDecoder) partDone() error {
	it := d.find()
	if it == nil || it.kind != messageItem || it.final != nil || d.ev.part == nil {
		return nil
	}
	p := d.itemDecoder.contentPart(clone(d.ev.part))
	cp, err := d.contentPart(p)
	if err == nil && cp != nil {
		d.bound.Take(max(0, len(d.ev.part)-cp.size))
		cp.final, cp.size = p, len(d.ev.part)
	}
	return err
}

// callDelta adds a fragment to the payload of a call.
func (d *streamDecoder) callDelta(typ, text string) error {
	it, err := d.open(typ)
	if err != nil || it == nil {
		return err
	}
	if it.final != nil {
		if text != "" {
			d.markConflict(it) // the call has already ended
		}
		return nil
	}
	if it.header == nil {
		it.header = &dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.origin}
	}
	d.checkWhole(it, text)
	if it.part == nil || it.lowered {
		if d.bound.Take(len(text)) {
			it.held = append(it.held, text...)
		}
		return nil
	}
	it.part.Append(text)
	return nil
}

func (d *streamDecoder) callRest(typ string) error {
	it, err := d.open(typ)
	if err != nil || it == nil {
		return err
	}
	if it.final != nil {
		d.checkLate(it)
		return nil
	}
	have := it.held
	if it.part != nil && !it.lowered {
		have = it.part.Text
	}
	if typ == "function_call" && d.ev.input || typ == "custom_tool_call" && d.ev.arguments {
		d.misplacedEnd(it, have)
		return nil
	}
	whole := payloadText(d.ev.value)
	if text := missingEnd(have, whole); text != "" {
		return d.callDelta(typ, text)
	}
	if strings.TrimSpace(whole) != "" && whole != string(have) && d.compares(it) && !continuesStream(string(have), whole) {
		d.markConflict(it)
	}
	return nil
}

func (d *streamDecoder) thinking() (*stream.Part, error) {
	it, err := d.open("reasoning")
	if err != nil || it == nil {
		return nil, err
	}
	if it.header == nil {
		err = d.start(it)
	}
	return it.part, err
}

func (d *streamDecoder) summaryDelta(text string) error {
	p, err := d.thinking()
	if err == nil && p != nil && d.ev.summary >= 0 && d.ev.summary < stream.MaxParts {
		p.AppendSummary(int(d.ev.summary), text)
	}
	return err
}

func (d *streamDecoder) summaryRest() error {
	p, err := d.thinking()
	if err != nil || p == nil {
		return err
	}
	var have []byte
	if n := d.ev.summary; n >= 0 && n < int64(len(p.Summary)) {
		have = p.Summary[n]
	}
	return d.summaryDelta(restOf(have, d.ev.value))
}

func (d *streamDecoder) thinkingDelta(text string) error {
	p, err := d.thinking()
	if err == nil && p != nil {
		p.Append(text)
	}
	return err
}

func (d *streamDecoder) thinkingRest() error {
	p, err := d.thinking()
	if err != nil || p == nil || d.ev.content > 0 {
		return err
	}
	p.Append(restOf(p.Text, d.ev.value))
	return nil
}

// restOf returns the part of a done value that the deltas did not contain. It is empty if they
// differ, because the final item decides.
func restOf(have, value []byte) string {
	if len(value) == 0 {
		return ""
	}
	if value[0] != '"' {
		if string(value) == "null" {
			return ""
		}
		return missingEnd(have, string(value))
	}
	// The deltas usually contain all of it: compare before copying.
	if inner := value[1 : len(value)-1]; bytes.Equal(inner, have) {
		return ""
	}
	return missingEnd(have, unquoted(value))
}

func missingEnd(have []byte, whole string) string {
	if len(whole) > len(have) && strings.HasPrefix(whole, string(have)) {
		return whole[len(have):]
	}
	return ""
}
