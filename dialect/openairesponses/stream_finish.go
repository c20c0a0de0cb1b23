package openairesponses

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// done handles the final form of an item.
func (d *streamDecoder) done() error {
	if len(d.ev.item) == 0 {
		return nil
	}
	d.at = valuePlace{"/item", d.ev.itemAt}
	raw, h := d.clear(d.clone(d.ev.item))
	it := d.find()
	if it != nil && it.final != nil && d.ev.hasIndex && it.typ == h.typ && it.callID == h.callID {
		d.checkFinal(it, raw)
		return nil // a duplicate
	}
	if it == nil || it.final != nil || it.typ != h.typ && it.kind != h.kind() {
		var err error
		if it, err = d.newItem(&h, raw); err != nil {
			return err
		}
	}
	it.conflicting = it.conflicting || h.duplicate
	return d.finish(it, raw)
}

// finalItem handles an item of the terminal event. It is new only if there was no done event for
// it (quirk C24).
func (d *streamDecoder) finalItem(raw []byte, i int) error {
	raw, h := d.clear(raw)
	it := d.match(&h, i)
	if it == nil {
		d.ev.hasIndex = false
		var err error
		if it, err = d.newItem(&h, raw); err != nil {
			return err
		}
		if at := d.byIndex[int64(i)]; at == nil {
			d.byIndex[int64(i)] = it
		}
	}
	it.matched = true
	if h.duplicate {
		d.markConflict(it)
	}
	if it.final != nil {
		d.checkFinal(it, raw)
		return nil
	}
	return d.finish(it, raw)
}

// match finds the streamed item of item i of the terminal output: by call id, by id, by position.
// Ids may change and positions may have gaps, so each is tried.
func (d *streamDecoder) match(h *itemHead, i int) *streamItem {
	try := func(same func(n int, it *streamItem) bool) *streamItem {
		for n, it := range d.items {
			if !it.matched && it.typ == h.typ && same(n, it) {
				return it
			}
		}
		return nil
	}
	if h.callID != "" {
		if it := try(func(_ int, it *streamItem) bool { return it.callID == h.callID && it.id == h.id }); it != nil {
			return it
		}
		if it := try(func(_ int, it *streamItem) bool { return it.callID == h.callID }); it != nil {
			return it
		}
	}
	if h.id != "" {
		if it := try(func(_ int, it *streamItem) bool { return it.id == h.id }); it != nil {
			return it
		}
	}
	if it := try(func(_ int, it *streamItem) bool { return it.place == i }); it != nil {
		return it
	}
	return try(func(n int, it *streamItem) bool { return n == i })
}

// finish ends an item with its final form. Calls end with the response.
func (d *streamDecoder) finish(it *streamItem, raw []byte) error {
	m, err := d.item(raw, extra.Elem("/output", it.place), it.place)
	if err != nil {
		return d.itemError(err)
	}
	if len(m.Parts) > stream.MaxParts {
		return fmt.Errorf("%w: more than %d parts", dragoman.ErrTooLarge, stream.MaxParts)
	}
	if it.header == nil {
		h := m
		h.Parts, h.Native = nil, nil
		it.header = &h
	}
	if h := d.head(raw); h.callID != "" {
		it.callID = h.callID
	}
	d.withNative(&m, raw)
	it.final = &m
	switch it.kind {
	case messageItem:
		d.loseMetadata(it, raw)
		d.finishContent(it)
	case callItem:
		c, ok := m.Parts[0].(*dragoman.ToolCall)
		if !ok {
			return nil
		}
		it.call = c
		d.markLowered(it, c)
		d.checkEnd(it, raw)
		if c.Arguments == "" {
			d.keepPayload(it)
		}
		invalid := c.Problem != nil && c.Problem.Code == codes.ProblemInvalidJSON && c.Status != codes.StatusIncomplete // a client would run it (quirk B9)
		if it.conflicting || invalid || ambiguous([]*dragoman.ToolCall{c}) {
			d.markConflict(it)
			m.Native = nil
		}
		if it.part == nil {
			it.sharedID = d.isDuplicateID(it)
			if !it.sharedID {
				d.startCall(it, c)
			}
		}
	default:
		if it.part == nil {
			it.part = d.parts.Start(it.place, it.header, skeletonOf(m.Parts[0]), m.Parts[0])
		}
		it.part.Value, it.part.Header = m.Parts[0], it.finalHeader()
		if r, ok := m.Parts[0].(*dragoman.Reasoning); ok {
			d.finishThinking(it, r)
		}
		it.part.End()
	}
	return nil
}

func skeletonOf(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Reasoning:
		return &dragoman.Reasoning{ID: p.ID}
	case *dragoman.Opaque:
		skeleton := *p
		return &skeleton
	default:
		return &dragoman.Text{}
	}
}

// finishThinking emits the text that no delta contained.
func (d *streamDecoder) finishThinking(it *streamItem, r *dragoman.Reasoning) {
	for i, s := range r.Summary {
		var have []byte
		if i < len(it.part.Summary) {
			have = it.part.Summary[i]
		}
		it.part.AppendSummary(i, missingEnd(have, s))
	}
	it.part.Append(missingEnd(it.part.Text, r.Text))
}

// keepPayload keeps the streamed arguments if the final item has no arguments, because an
// empty value never overwrites.
func (d *streamDecoder) keepPayload(it *streamItem) {
	text := string(it.held)
	if it.part != nil && len(it.part.Text) > 0 {
		text = string(it.part.Text)
	}
	if text == "" {
		return
	}
	d.setPayload(it, text)
	it.final.Native = nil
}

// setPayload sets the payload of a call to text, as if it had been part of the item.
func (d *streamDecoder) setPayload(it *streamItem, text string) {
	c := it.call
	c.Arguments = text
	if !it.lowered {
		if c.Payload == codes.PayloadObject && c.Problem == nil {
			c.Problem = dragoman.CheckArguments(text)
		}
		return
	}
	// The text is not what the tool gets, such as the JSON around a freeform input. It is settled
	// like any other call, so truncated or ambiguous text gets its problem.
	id, ns, public := c.ID, c.Namespace, c.Name
	c.Payload, c.Namespace, c.Name = codes.PayloadObject, "", d.reg.WireName(ns, public)
	d.reg.ResolveCall(c, extra.Elem("/output", it.place), d.rep)
	c.ID, c.Namespace, c.Name = id, ns, public
}

// finishContent ends the parts of a message. The last one has the final header.
func (d *streamDecoder) finishContent(it *streamItem) {
	it.renumber()
	for i, p := range it.final.Parts {
		cp := it.at(int64(i))
		if cp == nil {
			header := it.header
			if it.headerSent {
				header = nil
			}
			it.headerSent = true
			part := d.parts.Start(it.place, header, emptyOf(p), p)
			it.content = append(it.content, contentPart{index: int64(i), part: part})
			cp = &it.content[len(it.content)-1]
		}
		if cp.part.Ended() {
			continue
		}
		cp.part.Value = p
		cp.part.Append(missingEnd(cp.part.Text, textOf(p)))
	}
	d.endContent(it)
}

func (d *streamDecoder) endContent(it *streamItem) {
	for i := range it.content {
		cp := &it.content[i]
		if i == len(it.content)-1 {
			cp.part.Header = it.finalHeader()
		}
		cp.part.End()
	}
}

// renumber gives streamed parts their positions in the final item. Some servers number the parts
// of a message from 1, or leave gaps. If the numbers do not match parts that begin with the
// streamed text, the order is used.
func (it *streamItem) renumber() {
	if it.fits(func(i int) int64 { return it.content[i].index }) {
		return
	}
	order := make([]int, len(it.content))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(it.content[a].index, it.content[b].index) })
	rank := make([]int64, len(order))
	for n, i := range order {
		rank[i] = int64(n)
	}
	beyond := slices.ContainsFunc(it.content, func(cp contentPart) bool { return cp.index >= int64(len(it.final.Parts)) })
	if beyond || it.fits(func(i int) int64 { return rank[i] }) {
		for i := range it.content {
			it.content[i].index = rank[i]
		}
	}
}

// fits reports whether each streamed part is a prefix of the final part at its position.
func (it *streamItem) fits(position func(i int) int64) bool {
	for i := range it.content {
		at := position(i)
		if at < 0 || at >= int64(len(it.final.Parts)) || !strings.HasPrefix(textOf(it.final.Parts[at]), string(it.content[i].part.Text)) {
			return false
		}
	}
	return true
}

func (it *streamItem) at(index int64) *contentPart {
	for i := range it.content {
		if it.content[i].index == index {
			return &it.content[i]
		}
	}
	return nil
}

func emptyOf(p dragoman.Part) dragoman.Part {
	switch p := p.(type) {
	case *dragoman.Refusal:
		return &dragoman.Refusal{}
	case *dragoman.Opaque:
		return &dragoman.Opaque{Dialect: p.Dialect, Type: p.Type, CallID: p.CallID, Hosted: p.Hosted}
	case *dragoman.Media:
		return &dragoman.Media{Media: p.Media, MIME: p.MIME}
	default:
		return &dragoman.Text{}
	}
}

func textOf(p dragoman.Part) string {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Text
	case *dragoman.Refusal:
		return p.Text
	default:
		return ""
	}
}

// settle ends an open item with the content that arrived.
func (d *streamDecoder) settle(it *streamItem) error {
	if it.final != nil {
		return nil
	}
	switch it.kind {
	case messageItem:
		d.loseMetadata(it, nil)
		for i := range it.content {
			if cp := &it.content[i]; cp.final != nil && !cp.part.Ended() {
				cp.part.Value = cp.final
			}
		}
		if len(it.content) == 0 && it.header != nil {
			it.content = append(it.content, contentPart{part: d.startContent(it, &dragoman.Text{})})
		}
		d.endContent(it)
	case callItem:
		return d.settleCall(it)
	default:
		if it.part != nil {
			it.part.End()
		}
	}
	return nil
}

// abandon builds a call from the known parts of an item that cannot be decoded. The caller sets
// the problem.
func (d *streamDecoder) abandon(it *streamItem) {
	it.call = nil
	if it.kind != callItem {
		return
	}
	c := dragoman.ToolCall{ID: it.callID, ItemID: it.id, Arguments: string(it.held)}
	if it.part != nil {
		if shown, ok := it.part.Value.(*dragoman.ToolCall); ok {
			c = *shown
		}
		c.Arguments = string(it.part.Text)
	}
	if it.header == nil {
		it.header = &dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.origin}
	}
	if c.ID == "" {
		d.makeID(&c, extra.Elem("/output", it.place), it.place, "the call is malformed")
	}
	it.call = &c
}

// settleCall builds a call from the added item and its deltas.
func (d *streamDecoder) settleCall(it *streamItem) error {
	text := string(it.held)
	if it.part != nil && len(it.part.Text) > 0 {
		text = string(it.part.Text)
	}
	raw := it.added
	if raw == nil {
		var w jsonwire.Writer
		w.BeginObject()
		w.StringField("type", it.typ)
		w.StringFieldIf("id", it.id)
		w.StringFieldIf("call_id", it.callID)
		w.StringField("arguments", "")
		w.EndObject()
		raw = w.Buf
	}
	if text != "" {
		replaced, err := jsonwire.ReplaceString(raw, text, []string{"arguments"}, []string{"input"})
		if err != nil {
			return d.itemError(err)
		}
		raw = replaced
	}
	m, err := d.item(raw, extra.Elem("/output", it.place), it.place)
	if err != nil {
		return d.itemError(err)
	}
	it.call, _ = m.Parts[0].(*dragoman.ToolCall)
	if it.call == nil {
		return nil
	}
	d.markLowered(it, it.call)
	if it.call.Arguments == "" && text != "" {
		d.setPayload(it, text)
	}
	if it.conflicting && it.call.Problem == nil {
		it.call.Problem = conflictProblem()
	}
	it.call.Extra = withoutFields(it.call.Extra, "status") // the status of the added item
	return nil
}
