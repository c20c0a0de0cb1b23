package openairesponses

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// A client that is passed the bytes of a stream must not find another call in
// them than the one we tell of, nor run one that we say must not run. An event
// that could make it do so is not passed on: an empty chunk takes its place, and
// the rest of the stream is written from what we read.

// eventMembers are the members of an event that say which call runs.
var eventMembers = []string{
	"type", "output_index", "item_id", "delta", "content_index", "item", "response", "part", "arguments", "input", "text", "refusal", "error",
}

// doubts is what two readers could take differently in the event at hand.
type doubts struct {
	twice     bool // a member stands twice
	unsettled bool // it does not fit what came before it
	anew      bool // it was reported that an event is not passed on
	renamed   bool // there was a call that clients know by another name
}

// again takes note of the member i of an event.
func (d *doubts) again(seen *wirekit.Members, i int) {
	if seen.Again(i) {
		d.twice = true
	}
}

// doubtful reports whether the event that was handled must not be passed on.
func (d *streamDecoder) doubtful() bool {
	doubtful := d.twice || d.unsettled || d.muddled || d.doubled()
	if (doubtful || d.renamed) && !d.anew {
		d.anew = true
		wirekit.ReportAnew(d.rep, doubtful)
	}
	return doubtful || d.renamed
}

// doubled finds out whether the response or the part that an event brings says
// something twice.
func (d *streamDecoder) doubled() bool {
	return wirekit.Doubled(&d.peeked, d.ev.response, responseMembers) || wirekit.Doubled(&d.peeked, d.ev.part, partMembers)
}

// muddles reports whether a message item has a content part that says something
// twice.
func (d *streamDecoder) muddles(raw []byte) bool {
	r := &d.scan
	if r.Reset(raw); r.Kind() != '{' {
		return false
	}
	muddled := false
	for key := range r.Object() {
		if string(key) != "content" || r.Kind() != '[' {
			r.Skip()
			continue
		}
		for range r.Array() {
			muddled = wirekit.Doubled(&d.peeked, r.Raw(), partMembers) || muddled
		}
	}
	return muddled
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

// dispute says that a call must not run, as readers could disagree on what it
// is; of any other item, its event is only not passed on.
func (d *streamDecoder) dispute(it *streamItem) {
	d.unsettled, it.disputed = true, true
	if it.call != nil && it.call.Problem == nil {
		it.call.Problem = disagree()
	}
}

// clear returns an item that every reader takes alike, and what it is. A call
// says by itself that it is ambiguous; of any other item, what stands twice is
// left out, as a reader could find a call in it.
func (d *streamDecoder) clear(raw []byte) ([]byte, itemHead) {
	h := d.head(raw)
	d.unsettled = d.unsettled || h.astray
	if !h.twice {
		return raw, h
	}
	d.unsettled = true
	if h.kind() == callItem {
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

// unsure takes what a terminal event says of itself in two ways: calls is what
// would run after it. said is the status that its response has, word the one in
// its type.
func (d *streamDecoder) unsure(word, said string, twice bool, calls []*dragoman.ToolCall) {
	d.twice = d.twice || twice
	if word == "completed" && said != "" && said != word {
		d.unsettled = true
	}
	if !d.twice {
		return
	}
	for _, c := range calls {
		if c.Problem == nil {
			c.Problem = disagree()
		}
	}
}

// forbidden finds the calls that must not run after an event that would make a
// client run them.
func (d *streamDecoder) forbidden(word string, calls []*dragoman.ToolCall) {
	for _, c := range calls {
		if p := c.Problem; word == "completed" && p != nil && (p.Code == dragoman.ProblemStopped || p.Code == dragoman.ProblemDuplicateKey) {
			d.unsettled = true
		}
	}
}
