package openairesponses

import (
	"bytes"
	"encoding/json"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// A stream tells a call several times: as it is added, in fragments, as it is
// done, in the terminal output. The later word counts (quirk C11), but clients
// of the same stream may have taken an earlier one. A call whose words disagree
// must not run: who approved the one could run the other.

func disagree() *dragoman.CallProblem {
	return stopped("what was streamed and what was finished disagree; make the call again")
}

// wireCall is what a call item says to run, as it stands on the wire.
type wireCall struct {
	typ, namespace, name, payload string
	id, callID                    string
	// astray: the payload stands under the name that the other kind of call has
	// for it. Readers that go by the item find none.
	astray bool
}

func readWireCall(raw []byte) (c wireCall) {
	r := jsonwire.NewReader(raw)
	if r.Kind() != '{' {
		return c
	}
	var arguments, input bool // where the payload stands
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
	c.astray = c.typ == "function_call" && input || c.typ == "custom_tool_call" && arguments
	return c
}

// payloadText is the text of a payload in whatever shape it came (quirk B4).
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

// maxLooks is how often the whole of a call is compared with what a later event
// says of it in other words. Servers say it once or twice; a look costs as much
// as the call is long, however short the event.
const maxLooks = 8

// compares reports whether a call is to be compared with the event at hand. One
// in dispute stays so, and one that is told in ever new words gets into it.
func (d *streamDecoder) compares(it *streamItem) bool {
	if it.looks++; it.disputed || it.looks > maxLooks {
		d.dispute(it)
		return false
	}
	return true
}

// disputeEnd compares the end of a call with what was told of it before.
func (d *streamDecoder) disputeEnd(it *streamItem, raw []byte) {
	end := readWireCall(raw)
	it.ended = raw
	if it.added != nil && !bytes.Equal(it.added, raw) {
		begin := readWireCall(it.added)
		if begin.name != "" && (begin.name != end.name || begin.namespace != "" && begin.namespace != end.namespace) || begin.typ != end.typ {
			it.disputed = true
		}
	}
	have := d.streamed(it)
	if nothing(end.payload, it.freeform) {
		return // nothing never erases something
	}
	if !extends(string(have), end.payload) || end.astray && !sameJSON(string(have), end.payload) {
		it.disputed = true // what is astray may only say again what was streamed
	}
}

// disputeWhole takes note of a delta before it is added: one that is a JSON value
// is all of the payload (quirk C7), so with anything else beside it nobody knows
// which counts.
func (d *streamDecoder) disputeWhole(it *streamItem, text string) {
	it.whole = it.whole || d.ev.whole
	if it.whole && !it.disputed && !blank(text) && !blank(string(d.streamed(it))) {
		d.dispute(it)
	}
}

// strayEnd takes a payload that is told under the name that the other kind of
// call has for it: readers find none there, or this one. It may only say again
// what was streamed.
func (d *streamDecoder) strayEnd(it *streamItem, streamed []byte) {
	if whole := payloadText(d.ev.value); strings.TrimSpace(whole) != "" && whole != string(streamed) && d.compares(it) && !sameJSON(string(streamed), whole) {
		d.dispute(it)
	}
}

// nothing reports whether a payload leaves the one that deltas brought.
func nothing(payload string, freeform bool) bool {
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

// disputeAdded compares a call that is added again with what it was added as.
func (d *streamDecoder) disputeAdded(it *streamItem, raw []byte) {
	if it.kind != callItem || bytes.Equal(it.added, raw) || !d.compares(it) {
		return
	}
	before, again := readWireCall(it.added), readWireCall(raw)
	before.id, before.callID = again.id, again.callID
	if before != again {
		d.dispute(it)
	}
}

// disputeLate compares a payload that is told after the end of its call with
// that end.
func (d *streamDecoder) disputeLate(it *streamItem) {
	late := payloadText(d.ev.value)
	if it.call == nil || it.ended == nil || strings.TrimSpace(late) == "" || !d.compares(it) {
		return
	}
	if !sameJSON(readWireCall(it.ended).payload, late) {
		d.dispute(it)
	}
}

// disputeFinal compares a call that ended with what a later event says it is. One
// that leaves out its arguments or has another id does not make it another call.
func (d *streamDecoder) disputeFinal(it *streamItem, raw []byte) {
	if it.call == nil || it.ended == nil || bytes.Equal(it.ended, raw) || !d.compares(it) {
		return
	}
	end, final := readWireCall(it.ended), readWireCall(raw)
	told := end.payload
	if nothing(told, it.freeform) {
		told = string(d.streamed(it))
	}
	switch {
	case end.name != final.name || end.namespace != final.namespace || end.typ != final.typ:
		d.dispute(it)
	case strings.TrimSpace(final.payload) == "" || nothing(final.payload, it.freeform):
	case !sameJSON(told, final.payload) && !quotes(told, final.payload) && !(blank(told) && blank(final.payload)):
		d.dispute(it)
	}
}

// streamed is what deltas brought of a call's payload.
func (d *streamDecoder) streamed(it *streamItem) []byte {
	if it.part != nil && !it.lowered {
		return it.part.Text
	}
	return it.held
}

// blank reports whether a payload is one of the spellings of no arguments.
func blank(payload string) bool {
	switch strings.TrimSpace(payload) {
	case "", "null", `""`, "{}":
		return true
	default:
		return false
	}
}

// extends reports whether a payload begins with the fragments that were
// streamed of it, or says the same in another spelling.
func extends(streamed, final string) bool {
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
	return quotes(streamed, final)
}

// quotes reports whether a payload came as JSON inside a JSON string, which is
// unwrapped (quirk B3).
func quotes(streamed, final string) bool {
	return strings.HasPrefix(streamed, `"`) && json.Valid([]byte(streamed)) && unquoted([]byte(streamed)) == final
}

// sameJSON reports whether two texts are equal but for the blanks of JSON.
func sameJSON(a, b string) bool {
	if a == b {
		return true
	}
	var x, y bytes.Buffer
	return json.Compact(&x, []byte(a)) == nil && json.Compact(&y, []byte(b)) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// eventMembers are the fields of an event that say which call runs.
var eventMembers = []string{
	"type", "output_index", "item_id", "delta", "content_index", "item", "response", "part", "arguments", "input", "text", "refusal", "error",
}

// again takes note of the field i of an event.
func (d *streamDecoder) again(seen *wirekit.Members, i int) {
	d.twice = seen.Again(i) || d.twice
}

// saidTwice disputes the call that an event says something of twice.
func (d *streamDecoder) saidTwice() {
	if !d.twice {
		return
	}
	switch string(d.ev.typ) {
	case "response.output_item.added", "response.output_item.done",
		"response.function_call_arguments.delta", "response.function_call_arguments.done",
		"response.custom_tool_call_input.delta", "response.custom_tool_call_input.done":
		if it := d.find(); it != nil {
			d.dispute(it)
		}
	}
}

// dispute says that a call must not run, as readers could disagree on what it is.
func (d *streamDecoder) dispute(it *streamItem) {
	it.disputed = true
	if it.call != nil && it.call.Problem == nil {
		it.call.Problem = disagree()
	}
}

// clear returns an item that every reader takes alike, and what it is. A call
// says by itself that it is ambiguous; of any other item, what stands twice is
// left out, as a reader could find a call in it.
func (d *streamDecoder) clear(raw []byte) ([]byte, itemHead) {
	h := d.head(raw)
	if !h.twice || h.kind() == callItem {
		return raw, h
	}
	raw = once(raw)
	h = d.head(raw)
	return raw, h
}

// once returns an object without the members that stand in it twice, in whatever
// letters: the last one counts.
func once(raw []byte) []byte {
	r := jsonwire.NewReader(raw)
	type member struct{ key, value []byte }
	var members []member
	at := map[string]int{}
	for key := range r.Object() {
		var seen wirekit.Members
		if key = bytes.Clone(key); seen.Twice(itemMembers, key) {
			r.Skip()
			continue
		}
		if i, again := at[string(key)]; again {
			members[i].value = r.Raw()
			continue
		}
		at[string(key)] = len(members)
		members = append(members, member{key, r.Raw()})
	}
	var w jsonwire.Writer
	w.BeginObject()
	for _, m := range members {
		w.QuotedKey(string(m.key))
		w.Raw(m.value)
	}
	w.EndObject()
	return w.Buf
}

// crossed finds out whether an event that has the index of an item has the id of
// another: clients go by the one or by the other. An id that nobody knows is no
// other item's, as some proxies make one for every event.
func (d *streamDecoder) crossed(it *streamItem) {
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
		d.dispute(it)
		d.dispute(other)
	}
}

// fewItems is how many items are looked through without an index of their ids.
const fewItems = 16

// known returns the first item that was told under an id; nil if none was.
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
