package openairesponses

import (
	"bytes"
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// A stream contains a call several times: when it is added, in fragments, when it is done, and in
// the terminal output. The last one counts (quirk C11), but clients of the same stream may have
// used an earlier one. A call whose events disagree must not run: a user could approve one and
// the client run the other.

func conflictProblem() *dragoman.CallProblem {
	return stopped("the streamed call and the final call differ; make the call again")
}

// wireCall holds the fields of a call item that determine what runs.
type wireCall struct {
	typ, namespace, name, payload string
	id, callID                    string
	// misplacedPayload is set if the payload is in the field of the other kind of call, where
	// readers do not look.
	misplacedPayload bool
}

func readWireCall(raw []byte) (c wireCall) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return c
	}
	var arguments, input bool // the field of the payload
	for key := range r.Object() {
		switch k := string(key); {
		case k == "type" && r.Kind() == '"':
			c.typ = r.String()
		case k == "name" && r.Kind() == '"':
			c.name = r.String()
		case k == "id" && r.Kind() == '"':
			c.id = r.String()
		case k == "call_id" && r.Kind() == '"':
			c.callID = r.String()
		case k == "namespace" && r.Kind() == '"':
			c.namespace = r.String()
		case k == "arguments" || k == "input":
			if text := payloadText(r.Raw()); text != "" {
				c.payload, arguments, input = text, k == "arguments", k == "input"
			}
		default:
			r.Skip()
		}
	}
	c.misplacedPayload = c.typ == "function_call" && input || c.typ == "custom_tool_call" && arguments
	return c
}

// payloadText returns the text of a payload in any form (quirk B4).
func payloadText(raw []byte) string {
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return ""
	case raw[0] == '"':
		return unquoted(raw)
	default:
		return string(raw)
	}
}

// maxComparisons bounds how often a whole call is compared with a later event that represents it
// differently. Servers send one or two such events. The cost of a comparison depends on the
// length of the call, however short the event is.
const maxComparisons = 8

// compares reports whether a call is to be compared with the current event. A conflicting call stays
// conflicting, and a call that changes too often becomes conflicting.
func (d *streamDecoder) compares(it *streamItem) bool {
	if it.comparisons++; it.conflicting || it.comparisons > maxComparisons {
		d.markConflict(it)
		return false
	}
	return true
}

// checkEnd compares the final form of a call with its earlier events.
func (d *streamDecoder) checkEnd(it *streamItem, raw []byte) {
	end := readWireCall(raw)
	it.ended = raw
	if it.added != nil && !bytes.Equal(it.added, raw) {
		begin := readWireCall(it.added)
		if begin.name != "" && (begin.name != end.name || begin.namespace != "" && begin.namespace != end.namespace) || begin.typ != end.typ {
			it.conflicting = true
		}
	}
	have := d.streamed(it)
	if isEmptyPayload(end.payload, it.freeform) {
		return // an empty payload does not overwrite the streamed one
	}
	if !continuesStream(string(have), end.payload) || end.misplacedPayload && !sameJSON(string(have), end.payload) {
		it.conflicting = true // a misplaced payload may only repeat the streamed one
	}
}

// checkWhole checks a delta before it is added. A delta that is a JSON value is the complete
// payload (quirk C7), so any other payload contradicts it.
func (d *streamDecoder) checkWhole(it *streamItem, text string) {
	it.whole = it.whole || d.ev.whole
	if it.whole && !it.conflicting && !blank(text) && !blank(string(d.streamed(it))) {
		d.markConflict(it)
	}
}

// misplacedEnd handles a final payload in the field of the other kind of call. Some readers
// ignore it and some do not, so it may only repeat the streamed payload.
func (d *streamDecoder) misplacedEnd(it *streamItem, streamed []byte) {
	if whole := payloadText(d.ev.value); strings.TrimSpace(whole) != "" && whole != string(streamed) && d.compares(it) && !sameJSON(string(streamed), whole) {
		d.markConflict(it)
	}
}

// isEmptyPayload reports whether a final payload is empty, so that the streamed payload is kept.
func isEmptyPayload(payload string, freeform bool) bool {
	if !freeform {
		return payload == ""
	}
	switch strings.TrimSpace(payload) {
	case "", "null", "{}":
		return true
	default:
		return false
	}
}

// checkAdded compares a call that is added again with the first one.
func (d *streamDecoder) checkAdded(it *streamItem, raw []byte) {
	if it.kind != callItem || bytes.Equal(it.added, raw) || !d.compares(it) {
		return
	}
	before, again := readWireCall(it.added), readWireCall(raw)
	before.id, before.callID = again.id, again.callID
	if before != again {
		d.markConflict(it)
	}
}

// checkLate compares a payload that arrives after the end of its call with that end.
func (d *streamDecoder) checkLate(it *streamItem) {
	late := payloadText(d.ev.value)
	if it.call == nil || it.ended == nil || strings.TrimSpace(late) == "" || !d.compares(it) {
		return
	}
	if !sameJSON(readWireCall(it.ended).payload, late) {
		d.markConflict(it)
	}
}

// checkFinal compares a call that has ended with a later event. Missing arguments and another
// id are not a conflict.
func (d *streamDecoder) checkFinal(it *streamItem, raw []byte) {
	if it.call == nil || it.ended == nil || bytes.Equal(it.ended, raw) || !d.compares(it) {
		return
	}
	end, final := readWireCall(it.ended), readWireCall(raw)
	payload := end.payload
	if isEmptyPayload(payload, it.freeform) {
		payload = string(d.streamed(it))
	}
	switch {
	case end.name != final.name || end.namespace != final.namespace || end.typ != final.typ:
		d.markConflict(it)
	case strings.TrimSpace(final.payload) == "" || isEmptyPayload(final.payload, it.freeform):
	case !sameJSON(payload, final.payload) && !isQuoted(payload, final.payload) && !(blank(payload) && blank(final.payload)):
		d.markConflict(it)
	}
}

// streamed returns the payload of a call that arrived in deltas.
func (d *streamDecoder) streamed(it *streamItem) []byte {
	if it.part != nil && !it.lowered {
		return it.part.Text
	}
	return it.held
}

// blank reports whether a payload is one of the representations of no arguments.
func blank(payload string) bool {
	switch strings.TrimSpace(payload) {
	case "", "null", `""`, "{}":
		return true
	default:
		return false
	}
}

// continuesStream reports whether a payload begins with the streamed fragments, or is equivalent to them.
func continuesStream(streamed, final string) bool {
	switch strings.TrimSpace(streamed) {
	case "":
		return true
	case "null", `""`:
		if final == "{}" || final == "" {
			return true
		}
	}
	if strings.HasPrefix(final, streamed) || sameJSON(streamed, final) {
		return true
	}
	return isQuoted(streamed, final)
}

// isQuoted reports whether the streamed payload is JSON inside a JSON string, which is unwrapped
// (quirk B3).
func isQuoted(streamed, final string) bool {
	return strings.HasPrefix(streamed, `"`) && json.Valid([]byte(streamed)) && unquoted([]byte(streamed)) == final
}

// sameJSON reports whether two JSON texts are equal except for insignificant space.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// eventKeys are the fields of an event that determine which call runs.
var eventKeys = []string{
	"type", "output_index", "item_id", "delta", "content_index", "item", "response", "part", "arguments", "input", "text", "refusal", "error",
}

// markSeen records field i of an event, and whether it is a duplicate.
func (d *streamDecoder) markSeen(seen *wirekit.KnownFields, i int) {
	d.duplicate = seen.IsRepeatedAt(i) || d.duplicate
}

// checkDuplicate marks the call of an event that has a duplicate field.
func (d *streamDecoder) checkDuplicate() {
	if !d.duplicate {
		return
	}
	switch string(d.ev.typ) {
	case "response.output_item.added", "response.output_item.done",
		"response.function_call_arguments.delta", "response.function_call_arguments.done",
		"response.custom_tool_call_input.delta", "response.custom_tool_call_input.done":
		if it := d.find(); it != nil {
			d.markConflict(it)
		}
	}
}

// markConflict marks a call that must not run, because readers could interpret it in different ways.
func (d *streamDecoder) markConflict(it *streamItem) {
	it.conflicting = true
	if it.call != nil && it.call.Problem == nil {
		it.call.Problem = conflictProblem()
	}
}

// clear returns an unambiguous item and its head. An ambiguous call is kept, because it is marked
// as ambiguous. In any other item, duplicate fields are removed, because a reader could find a
// call in them.
func (d *streamDecoder) clear(raw []byte) ([]byte, itemHead) {
	h := d.head(raw)
	if !h.duplicate || h.kind() == callItem {
		return raw, h
	}
	raw = withoutDuplicates(raw)
	h = d.head(raw)
	return raw, h
}

// withoutDuplicates returns an object without duplicate fields, ignoring case. The last value
// counts.
func withoutDuplicates(raw []byte) []byte {
	r := jsonwire.NewReader(raw)
	type field struct{ key, value []byte }
	var fields []field
	at := map[string]int{}
	for key := range r.Object() {
		var seen wirekit.KnownFields
		if key = bytes.Clone(key); seen.IsRepeated(itemKeys, key) {
			r.Skip()
			continue
		}
		if i, dup := at[string(key)]; dup {
			fields[i].value = r.Raw()
			continue
		}
		at[string(key)] = len(fields)
		fields = append(fields, field{key, r.Raw()})
	}
	var w jsonwire.Writer
	w.BeginObject()
	for _, m := range fields {
		w.QuotedKey(string(m.key))
		w.Raw(m.value)
	}
	w.EndObject()
	return w.Buf
}

// checkItemID marks a call if an event has the index of one item and the id of another: some
// clients use the index, some the id. An unknown id is not a conflict, because some proxies
// generate one for every event.
func (d *streamDecoder) checkItemID(it *streamItem) {
	id := d.ev.itemID
	if len(id) <= 2 || id[0] != '"' {
		return
	}
	if id = id[1 : len(id)-1]; bytes.IndexByte(id, '\\') >= 0 {
		id = []byte(unquoted(d.ev.itemID))
	}
	if string(id) == it.id {
		return
	}
	if other := d.known(id); other != nil && other != it && (it.kind == callItem || other.kind == callItem) {
		d.markConflict(it)
		d.markConflict(other)
	}
}

// fewItems is the number of items up to which ids are searched without an index.
const fewItems = 16

// known returns the first item with an id; nil if there is none.
func (d *streamDecoder) known(id []byte) *streamItem {
	if len(d.items) > fewItems {
		if d.byID == nil {
			d.byID = make(map[string]*streamItem)
		}
		for ; d.indexedIDs < len(d.items); d.indexedIDs++ {
			if it := d.items[d.indexedIDs]; it.id != "" && d.byID[it.id] == nil {
				d.byID[it.id] = it
			}
		}
		return d.byID[string(id)]
	}
	for _, it := range d.items {
		if it.id != "" && it.id == string(id) {
			return it
		}
	}
	return nil
}
