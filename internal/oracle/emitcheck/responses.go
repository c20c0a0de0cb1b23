package emitcheck

import (
	"bytes"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// responseRequired lists fields that the official clients require in every response object,
// null if there is no value. Typed fields are checked below.
var responseRequired = []string{"error", "incomplete_details", "instructions", "metadata", "parallel_tool_calls", "temperature", "tool_choice", "tools", "top_p", "usage"}

func responsesWhole(r object) {
	status := responseObject(r)
	stage := finished
	switch status {
	case "completed", "incomplete", "failed", "cancelled", "":
	default:
		if stage = underway; r.m["background"] != true {
			r.bad("status", "%q in a response that ended", status)
		}
	}
	var seen, calls ids
	for _, item := range r.objects("output") {
		seen.add(item, "id")
		responseItem(item, &calls, stage)
	}
	responseEnd(r, status)
	completeItems(r, status)
}

// completeItems checks the items of a response against its status: a completed response has no
// incomplete item.
func completeItems(r object, status string) {
	for _, item := range r.objects("output") {
		if status == "completed" && item.m["status"] == "incomplete" {
			item.value("status", "incomplete in a completed response")
		}
	}
}

// responseObject checks the fields that every response object has, and returns its status.
func responseObject(r object) string {
	if id := r.nonEmptyText("id"); !responseID.MatchString(id) || len(id) > 64 {
		r.value("id", "%q does not match %s, or has more than 64 bytes", id, responseID)
	}
	r.is("object", "response")
	r.tokens("created_at")
	r.named("model")
	for _, k := range responseRequired {
		r.need(k)
	}
	r.obj("metadata")
	r.flag("parallel_tool_calls")
	r.numberOrNull("temperature")
	r.numberOrNull("top_p")
	r.list("tools")
	if _, named := r.m["tool_choice"].(string); !named {
		r.obj("tool_choice").nonEmptyText("type")
	}
	r.list("output")
	return r.oneOf("status", "completed", "failed", "in_progress", "cancelled", "queued", "incomplete")
}

// responseEnd checks a response that ended: its status, and the fields that depend on it.
func responseEnd(r object, status string) {
	e, failed := r.objOrNull("error")
	if failed != (status == "failed") {
		r.value("error", "does not match status %q", status)
	}
	if failed {
		if !e.c.passThrough {
			e.nonEmptyText("code")
			e.nonEmptyText("message")
		}
	}
	d, incomplete := r.objOrNull("incomplete_details")
	if incomplete != (status == "incomplete") {
		r.value("incomplete_details", "does not match status %q", status)
	}
	if incomplete {
		d.word("reason", "max_output_tokens", "content_filter", "max_messages", "steered")
	}
	r.wordOrNull("service_tier", append([]string{"ultrafast"}, openaiTiers...)...)
	if u, ok := r.objOrNull("usage"); ok {
		in, out, total := u.tokens("input_tokens"), u.tokens("output_tokens"), u.tokens("total_tokens")
		if total != in+out {
			u.bad("total_tokens", "%d, want %d + %d", total, in, out)
		}
		cached, reasoned := u.obj("input_tokens_details"), u.obj("output_tokens_details")
		cached.tokens("cached_tokens")
		cached.partOf("cached_tokens", in, "input")
		reasoned.tokens("reasoning_tokens")
		reasoned.partOf("reasoning_tokens", out, "output")
	}
}

// itemPrefixes lists the prefixes of item ids. Clients store the ids and may send them back to
// OpenAI, which checks them.
var itemPrefixes = map[string]string{"message": "msg_", "reasoning": "rs_", "function_call": "fc_", "custom_tool_call": "ctc_"}

// stage is the stage of an item in a stream or response.
type stage int

const (
	added    stage = iota // added and still empty
	underway              // in a background response that is in progress
	finished              // complete
)

// responseID and itemID are the patterns of ids.
var (
	responseID = regexp.MustCompile(`^resp_[a-zA-Z0-9_-]+$`)
	itemID     = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// responseItem checks an item.
func responseItem(item object, calls *ids, at stage) {
	typ := item.nonEmptyText("type")
	if id, _ := item.m["id"].(string); !strings.HasPrefix(id, itemPrefixes[typ]) || len(id) > 64 {
		item.value("id", "%q does not begin with %q, or has more than 64 bytes", id, itemPrefixes[typ])
	} else if itemPrefixes[typ] != "" && !itemID.MatchString(id) {
		item.value("id", "%q does not match %s", id, itemID)
	}
	switch typ {
	case "message":
		item.is("role", "assistant")
		itemStatus(item, at)
		for _, p := range item.objects("content") {
			contentPart(p, "output_text", "refusal")
		}
	case "function_call":
		calls.add(item, "call_id")
		item.called()
		status := itemStatus(item, at)
		if s := item.str("arguments"); at == finished && status != "incomplete" && !isObject(s) {
			item.value("arguments", "%.80q is not a JSON object", s)
		}
	case "custom_tool_call":
		calls.add(item, "call_id")
		item.called()
		item.str("input")
	case "reasoning":
		for _, p := range item.objects("summary") {
			contentPart(p, "summary_text")
		}
		if item.m["content"] != nil {
			for _, p := range item.objects("content") {
				contentPart(p, "reasoning_text")
			}
		}
		if s, ok := item.maybe("encrypted_content"); ok && s == "" {
			item.bad("encrypted_content", "empty")
		}
	}
}

func itemStatus(item object, at stage) string {
	switch {
	case at == added:
		return item.oneOf("status", "in_progress")
	case at == underway, ofProgram(item):
		return item.word("status", "completed", "incomplete", "in_progress")
	default:
		return item.word("status", "completed", "incomplete")
	}
}

// ofProgram reports whether a program that the server runs made a call. Such a call stays in
// progress until it has a result, although nothing is added to it.
func ofProgram(item object) bool {
	caller, _ := item.m["caller"].(map[string]any)
	return item.m["type"] == "function_call" && caller["type"] == "program"
}

// contentPart checks a part and returns its type and text.
func contentPart(p object, types ...string) (typ, text string) {
	switch typ = p.oneOf("type", types...); typ {
	case "output_text":
		p.list("annotations")
		p.list("logprobs")
		return typ, p.str("text")
	case "refusal":
		return typ, p.str("refusal")
	default:
		return typ, p.str("text")
	}
}

// responsesStream is the state of a stream (quirk C23).
type responsesStream struct {
	base
	began   string // the last of created, queued and in_progress
	failed  bool   // an error event was sent
	marked  bool   // [DONE] was sent
	seq     int
	id      string
	items   []*streamedItem
	itemIDs ids
	calls   ids
	last    []byte // the event that ended the stream
	// document checks events against the Open Responses schema. Nil means no check.
	document *Document
}

// streamedItem is an item that was added to the stream.
type streamedItem struct {
	id, typ  string
	callID   string
	name     string          // name of a call
	parts    []*streamedPart // parts of the content
	sums     []*streamedPart // parts of the summary
	payload  strings.Builder // payload of a call
	done     bool
	payloads *string // the complete payload, once it is done
	item     any     // the item in output_item.done
}

type streamedPart struct {
	typ      string
	text     strings.Builder
	textDone bool
	done     bool
}

func (s *responsesStream) next(n int, name string, data []byte) error {
	c := s.check("event", n, name)
	if string(data) == "[DONE]" {
		if s.finished == "" {
			c.bad("", "[DONE] before response.completed, .incomplete or .failed")
		}
		if s.marked {
			c.bad("", "a second [DONE]")
		}
		s.marked = true
		return c.err
	}
	if s.open(c); c.err != nil {
		return c.err
	}
	e := c.root(data)
	if typ := e.nonEmptyText("type"); typ != name {
		e.bad("type", "%q under the name %q", typ, name)
	}
	if seq := e.count("sequence_number"); seq != s.seq {
		e.bad("sequence_number", "%d, want %d", seq, s.seq)
	}
	s.seq++
	if e.has("error") {
		e.bad("error", "clients stop if the field is present at all")
	}
	if c.err == nil {
		s.event(e, name)
	}
	if s.finished != "" {
		s.last = bytes.Clone(data)
	}
	if c.err == nil && s.document != nil {
		return s.document.event(name, data)
	}
	return c.err
}

func (s *responsesStream) end() error {
	if err := s.closed(); err != nil {
		return err
	}
	if !s.marked {
		return errors.New("the stream ends without [DONE]")
	}
	return nil
}

func (s *responsesStream) event(e object, name string) {
	switch name {
	case "response.created", "response.queued", "response.in_progress":
		s.begins(e, name)
		return
	case "error":
		e.nonEmptyText("message")
		e.textOrNull("code")
		e.textOrNull("param")
		if s.failed {
			e.bad("", "a second error")
		}
		s.failed = true
		return
	case "response.completed", "response.incomplete", "response.failed":
		s.terminal(e, name)
		return
	}
	if s.began != "response.in_progress" || s.failed {
		e.bad("", "before response.in_progress, or after an error")
		return
	}
	switch name {
	case "response.output_item.added":
		s.added(e)
	case "response.output_item.done":
		s.itemDone(e)
	case "response.audio.delta", "response.audio.transcript.delta":
		e.nonEmptyText("delta") // belongs to no item
	case "response.audio.done", "response.audio.transcript.done":
	default:
		if it := s.item(e); it != nil {
			it.event(e, name)
		}
	}
}

// beginnings lists the events at the start, in order.
var beginnings = []string{"", "response.created", "response.queued", "response.in_progress"}

// begins checks the events at the start: created or queued or both, then in_progress. Only a
// background response is queued.
func (s *responsesStream) begins(e object, name string) {
	if slices.Index(beginnings, name) <= slices.Index(beginnings, s.began) || name == "response.in_progress" && s.began == "" {
		e.bad("", "out of order: want created, then in_progress, then items")
	}
	s.began = name
	r := e.obj("response")
	if status := responseObject(r); status != "in_progress" && status != "queued" {
		r.bad("status", "%q at the start", status)
	}
	if name == "response.queued" && (r.m["status"] != "queued" || r.m["background"] != true) {
		r.bad("status", "not queued, or not in the background")
	}
	if len(r.list("output")) > 0 {
		r.bad("output", "not empty at the start")
	}
	s.sameID(r)
}

func (s *responsesStream) sameID(r object) {
	id := r.nonEmptyText("id")
	if s.id == "" {
		s.id = id
	}
	if id != s.id {
		r.bad("id", "%q, but the response started with %q", id, s.id)
	}
}

// terminal checks the event that ends the response. It must agree with the streamed items.
func (s *responsesStream) terminal(e object, name string) {
	s.finished = name
	if name != "response.failed" && (s.failed || s.began != "response.in_progress") {
		e.bad("", "after an error, or before response.in_progress")
	}
	r := e.obj("response")
	status := responseObject(r)
	// There is no event for a canceled response.
	if want := strings.TrimPrefix(name, "response."); status != want && !(status == "cancelled" && want == "incomplete") {
		r.value("status", "%q in %s", status, name)
	}
	s.sameID(r)
	responseEnd(r, status)
	completeItems(r, status)
	output := r.list("output")
	if len(output) != len(s.items) {
		r.bad("output", "%d items, %d were streamed", len(output), len(s.items))
		return
	}
	for i, it := range s.items {
		if name == "response.failed" { // an item may be incomplete
			continue
		}
		if !it.done {
			r.bad("output", "item %d was never done", i)
		} else if !sameItem(output[i], it.item) {
			r.bad("output", "item %d differs from its output_item.done", i)
		}
	}
}

// sameItem compares items. Encrypted content may differ each time.
func sameItem(a, b any) bool {
	x, _ := a.(map[string]any)
	y, _ := b.(map[string]any)
	if x == nil || len(x) != len(y) {
		return false
	}
	for k, v := range x {
		w, ok := y[k]
		if !ok || k != "encrypted_content" && !reflect.DeepEqual(v, w) {
			return false
		}
	}
	return true
}

func (s *responsesStream) added(e object) {
	if n := e.count("output_index"); n != len(s.items) {
		e.bad("output_index", "%d, want %d", n, len(s.items))
	}
	item := e.obj("item")
	it := &streamedItem{id: s.itemIDs.add(item, "id"), typ: item.nonEmptyText("type")}
	it.callID, _ = item.maybe("call_id")
	it.name, _ = item.m["name"].(string)
	s.items = append(s.items, it)
	responseItem(item, &s.calls, added)
	for key, kinds := range map[string]string{"content": "message", "arguments": "function_call", "input": "custom_tool_call", "summary": "reasoning"} {
		if it.typ != kinds {
			continue
		}
		switch v := item.m[key].(type) {
		case string:
			if v != "" {
				item.bad(key, "not empty when it is added")
			}
		case []any:
			if len(v) > 0 {
				item.bad(key, "not empty when it is added")
			}
		}
	}
}

// item returns the open item of an event.
func (s *responsesStream) item(e object) *streamedItem {
	n := e.count("output_index")
	if n >= len(s.items) {
		e.bad("output_index", "item %d was never added", n)
		return nil
	}
	it := s.items[n]
	if it.done {
		e.bad("output_index", "item %d is done", n)
		return nil
	}
	if id, ok := e.text("item_id"); ok && id != it.id {
		e.bad("item_id", "%q, but the item was added as %q", id, it.id)
	}
	return it
}

func (s *responsesStream) itemDone(e object) {
	it := s.item(e)
	if it == nil {
		return
	}
	item := e.obj("item")
	if id, _ := item.m["id"].(string); id != it.id || item.nonEmptyText("type") != it.typ {
		item.bad("", "the item was added as %s %q", it.typ, it.id)
	}
	// The call_id of a tool search is generated again each time.
	if id, _ := item.maybe("call_id"); id != it.callID && it.typ != "tool_search_call" {
		item.value("call_id", "%q, but the item was added with %q", id, it.callID)
	}
	if name, _ := item.m["name"].(string); name != it.name && (it.typ == "function_call" || it.typ == "custom_tool_call") {
		item.value("name", "%q, but the item was added as %q", name, it.name)
	}
	var calls ids
	responseItem(item, &calls, finished)
	it.done, it.item = true, any(item.m)
	switch it.typ {
	case "message":
		it.compareParts(item, "content", it.parts)
	case "reasoning":
		it.compareParts(item, "summary", it.sums)
		if item.m["content"] != nil || len(it.parts) > 0 {
			it.compareParts(item, "content", it.parts)
		}
	case "function_call":
		it.payloadDone(item, "arguments")
	case "custom_tool_call":
		it.payloadDone(item, "input")
	}
}

// compareParts compares the parts of a done item with the streamed parts.
func (it *streamedItem) compareParts(item object, key string, streamed []*streamedPart) {
	parts := item.objects(key)
	if len(parts) != len(streamed) {
		item.bad(key, "%d parts, %d were streamed", len(parts), len(streamed))
		return
	}
	for i, p := range parts {
		typ, text := contentPart(p, streamed[i].typ)
		if !streamed[i].done {
			p.bad("", "the part was never done")
		}
		if text != streamed[i].text.String() {
			p.value("", "the %s differs from its deltas", typ)
		}
	}
}

// payloadDone compares the payload of a done call with the streamed payload.
func (it *streamedItem) payloadDone(item object, key string) {
	if it.payloads == nil {
		item.bad(key, "missing its done event")
		return
	}
	if *it.payloads != item.str(key) {
		item.bad(key, "differs from its done event")
	}
}

// textEvents maps the name of a text event, between "response." and ".delta", to the type of
// its part.
var textEvents = map[string]string{"output_text": "output_text", "refusal": "refusal", "reasoning_text": "reasoning_text", "reasoning_summary_text": "summary_text"}

// event checks an event of an open item.
func (it *streamedItem) event(e object, name string) {
	what, step := cutLast(strings.TrimPrefix(name, "response."))
	if what == "shell_call_command" { // identifies its item only by index
		e.count("command_index")
	} else {
		e.nonEmptyText("item_id")
	}
	if typ, ok := textEvents[what]; ok {
		it.text(e, typ, step)
		return
	}
	switch what {
	case "content_part", "reasoning_summary_part":
		it.part(e, what, step)
	case "function_call_arguments":
		it.payloadEvent(e, "function_call", "arguments", step)
	case "custom_tool_call_input":
		it.payloadEvent(e, "custom_tool_call", "input", step)
	case "output_text.annotation":
		if p := it.open(e, "output_text"); p != nil {
			e.count("annotation_index")
			e.obj("annotation").nonEmptyText("type")
		}
	default:
		it.serverToolEvent(e, what)
	}
}

// serverToolEvent checks the events of hosted tools, whose names start with the type of the item.
func (it *streamedItem) serverToolEvent(e object, what string) {
	if !strings.HasPrefix(what, strings.TrimSuffix(it.typ, "_call")) {
		e.bad("type", "unknown event of a %s", it.typ)
	}
}

// cutLast splits a name at its last dot.
func cutLast(name string) (what, step string) {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return "", name
	}
	return name[:i], name[i+1:]
}

// hasParts returns the parts that an event is about, and the field with its index.
func (it *streamedItem) hasParts(summary bool) (parts *[]*streamedPart, key string) {
	if summary {
		return &it.sums, "summary_index"
	}
	return &it.parts, "content_index"
}

func (it *streamedItem) part(e object, what, step string) {
	summary := what == "reasoning_summary_part"
	parts, key := it.hasParts(summary)
	p := e.obj("part")
	types := []string{"output_text", "refusal"}
	if it.typ == "reasoning" {
		types = []string{"reasoning_text"}
	}
	if summary {
		types = []string{"summary_text"}
	}
	if it.typ != "message" && it.typ != "reasoning" || summary && it.typ != "reasoning" {
		e.bad("type", "not allowed in a %s", it.typ)
		return
	}
	typ, text := contentPart(p, types...)
	if step == "added" {
		if n := e.count(key); n != len(*parts) {
			e.bad(key, "%d, want %d", n, len(*parts))
		}
		if text != "" {
			p.bad("", "not empty when it is added")
		}
		*parts = append(*parts, &streamedPart{typ: typ})
		return
	}
	open := it.open(e, typ)
	if open == nil {
		return
	}
	if !open.textDone {
		e.bad("", "done before its text")
	}
	if text != open.text.String() {
		p.value("", "differs from its deltas")
	}
	open.done = true
}

// open returns the open part that an event is about.
func (it *streamedItem) open(e object, typ string) *streamedPart {
	parts, key := it.hasParts(typ == "summary_text")
	n := e.count(key)
	if n >= len(*parts) || (*parts)[n].done {
		e.bad(key, "part %d is not open", n)
		return nil
	}
	p := (*parts)[n]
	if p.typ != typ {
		e.bad("type", "not allowed in a part of type %s", p.typ)
		return nil
	}
	return p
}

func (it *streamedItem) text(e object, typ, step string) {
	p := it.open(e, typ)
	if p == nil {
		return
	}
	if p.textDone {
		e.bad("", "the text of the part is done")
	}
	if typ == "output_text" {
		e.list("logprobs")
	}
	if step == "delta" {
		p.text.WriteString(e.nonEmptyText("delta"))
		return
	}
	p.textDone = true
	key := "text"
	if typ == "refusal" {
		key = "refusal"
	}
	if e.str(key) != p.text.String() {
		e.value(key, "differs from its deltas")
	}
}

func (it *streamedItem) payloadEvent(e object, typ, key, step string) {
	if it.typ != typ {
		e.bad("type", "not allowed in a %s", it.typ)
	}
	if it.payloads != nil {
		e.bad("", "the %s is done", key)
	}
	if step == "delta" {
		it.payload.WriteString(e.nonEmptyText("delta"))
		return
	}
	s := e.str(key)
	if s != it.payload.String() {
		e.value(key, "differs from its deltas")
	}
	it.payloads = &s
}
