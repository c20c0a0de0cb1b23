package openairesponses

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamEncoder implements [dialect.Codec].
//
// It writes events in the order that strict clients require: an item is added before its events
// and done after them, every event has a type and the next sequence number, and the terminal
// event has the whole response (quirk C23). Calls may be open at the same time. Unknown events,
// and unknown fields of known events, are written if they come from this dialect.
func (c Codec) NewStreamEncoder(o dialect.EncodeOptions) dialect.StreamEncoder {
	if err := wirekit.CheckEncode(name, o); err != nil {
		return wirekit.RefusedEncoder{Refused: wirekit.Refused{Err: err}}
	}
	return &streamEncoder{
		outputEncoder: outputEncoder{reg: wirekit.EncodeRegistry(nil, c.Limits(), toolCodecs, o), o: o, rep: new(dragoman.Report), seed: o.Seed},
		parts:         make(map[int]*outputPart),
		headers:       make(map[int]*dragoman.Message),
	}
}

type streamEncoder struct {
	outputEncoder
	dst    []byte
	w      jsonwire.Writer
	seq    int64
	fields wirekit.PendingFields

	resp     dragoman.Response
	id       string
	began    bool
	finished bool
	closed   bool

	items     []*streamedItem // in order of their start
	parts     map[int]*outputPart
	places    extra.Places
	headers   map[int]*dragoman.Message
	message   *streamedItem // the current message item
	unwritten wirekit.UnwrittenChunks
	others    bool // parts of other choices were dropped and reported
}

// streamedItem is the state of an item that is being written.
type streamedItem struct {
	outputItem
	index   int // output index; -1 until it is added
	message int // message index in the canonical output
	open    int // number of open content parts
	content int // number of content parts so far
	done    bool
	// spliced is set if the final call differs from the streamed one.
	spliced bool
}

// outputPart is the state of a part that is being written.
type outputPart struct {
	item  *streamedItem
	index int // content index
	kind  dragoman.Part
	sent  []byte
	ended bool
	// For reasoning: the text sent of each summary, and the open one.
	summaries [][]byte
	summary   int // the open summary, from 1; 0 if none is open
	thinking  bool
}

// Report implements [dialect.StreamEncoder].
func (e *streamEncoder) Report() dragoman.Report { return *e.rep }

// Encode implements [dialect.StreamEncoder].
func (e *streamEncoder) Encode(dst []byte, ev dragoman.Event) ([]byte, error) {
	if err := dragoman.ValidateEvent(ev); err != nil {
		return dst, err
	}
	e.dst = dst
	switch ev := ev.(type) {
	case *dragoman.Chunk:
		if raw := e.unwritten.Chunk(ev, name, e.o, e.rep); raw != nil && !e.finished {
			e.opaque(raw)
		}
	case *dragoman.ResponseStart:
		e.queueFields(ev.Extra)
		if !e.began {
			e.begin(ev.Response)
		}
	case *dragoman.PartStart:
		e.queueFields(ev.Extra)
		e.partStart(ev)
	case *dragoman.PartDelta:
		e.queueFields(ev.Extra)
		if p := e.parts[ev.Index]; p != nil && ev.Choice == 0 && !p.ended && (ev.Text != "" || ev.Extra.For(name) != nil) {
			e.delta(p, ev.Summary, ev.Text)
		}
	case *dragoman.PartEnd:
		e.queueFields(ev.Extra)
		if p := e.parts[ev.Index]; p != nil && ev.Choice == 0 && !p.ended {
			if ev.Header != nil {
				p.item.header = ev.Header
				e.headers[p.item.message] = ev.Header
			}
			e.partEnd(p, ev.Part)
		}
	case *dragoman.ResponseEnd:
		e.responseEnd(ev)
	case *dragoman.StreamError:
		e.resp.Usage = e.resp.Usage.Merge(ev.Usage)
		e.fail(ev.Err)
	}
	return e.dst, nil
}

// Close implements [dialect.StreamEncoder].
func (e *streamEncoder) Close(dst []byte) ([]byte, error) {
	e.dst = dst
	if !e.finished {
		e.fail(&dragoman.APIError{Class: dragoman.ErrorServer, Message: "the stream ended before its terminal event"})
	}
	if !e.closed {
		e.dst = sse.Append(e.dst, "", []byte("[DONE]"))
		e.closed = true
	}
	return e.dst, nil
}

// queueFields queues unknown fields for the next event of their type.
func (e *streamEncoder) queueFields(fields *dragoman.Extra) {
	for _, f := range fields.For(name) {
		if !e.fields.Has(f.Path) {
			e.fields.Add(f)
		}
	}
}

// opaque writes an event that has no canonical form, with the sequence number and output index of
// this stream.
func (e *streamEncoder) opaque(raw []byte) {
	for _, ev := range sse.Events(raw) {
		e.dst = sse.Append(e.dst, cmp.Or(string(ev.Name), wirekit.EventType(ev.Data)), e.renumbered(ev.Data))
	}
}

// renumbered returns the data of an event with the next sequence number and the output index of
// its item in this stream.
func (e *streamEncoder) renumbered(data []byte) []byte {
	r := jsonwire.NewReader(data)
	if r.Kind() != '{' {
		return data
	}
	var edits []jsonwire.Edit
	set := func(n int64) {
		old := r.Raw()
		edits = append(edits, jsonwire.Edit{Start: r.Offset() - int64(len(old)), End: r.Offset(), New: strconv.AppendInt(nil, n, 10)})
	}
	for key := range r.Object() {
		switch k := string(key); {
		case k == "sequence_number" && r.Kind() == '0':
			set(e.seq)
			e.seq++
		case k == "output_index" && r.Kind() == '0':
			ahead := jsonwire.NewReader(r.Rest())
			set(e.indexOf(ahead.Int()))
		default:
			r.Skip()
		}
	}
	if r.Err() != nil {
		return data
	}
	return jsonwire.Splice(data, edits...)
}

// indexOf returns the output index of the item of canonical message n; n if there is none.
func (e *streamEncoder) indexOf(n int64) int64 {
	for _, it := range e.items {
		if int64(it.message) == n {
			return int64(it.index)
		}
	}
	return n
}

// event starts an event; send ends it.
func (e *streamEncoder) event(typ string) *jsonwire.Writer {
	e.w.Buf = e.w.Buf[:0]
	e.w.BeginObject()
	e.w.StringField("type", typ)
	e.w.IntField("sequence_number", e.seq)
	return &e.w
}

func (e *streamEncoder) send(typ string) {
	if e.fields.Any() {
		e.fields.Write(&e.w, fieldPrefix(typ))
		if e.finished {
			e.fields.WriteRest(&e.w)
		}
	}
	e.w.EndObject()
	e.seq++
	e.dst = sse.Append(e.dst, typ, e.w.Buf)
}

// itemEvent starts an event about a part of an item.
func (e *streamEncoder) itemEvent(typ string, it *streamedItem) *jsonwire.Writer {
	w := e.event(typ)
	w.StringField("item_id", it.id)
	w.IntField("output_index", int64(it.index))
	return w
}

func (e *streamEncoder) begin(r dragoman.Response) {
	e.began = true
	e.resp = r
	e.resp.Output = nil
	if e.seed == "" {
		e.seed = r.ID
	}
	e.id = e.responseID(&r)
	e.progress("response.created")
	e.progress("response.in_progress")
}

// progress writes an event with a snapshot of the response in progress.
func (e *streamEncoder) progress(typ string) {
	w := e.event(typ)
	w.Key("response")
	e.snapshot(w)
	e.send(typ)
}

// snapshot writes the response object at its start.
func (e *streamEncoder) snapshot(w *jsonwire.Writer) {
	w.BeginObject()
	e.writeHead(w, &e.resp, e.id, "in_progress")
	w.NullField("error")
	w.NullField("incomplete_details")
	w.RawField("output", []byte("[]"))
	w.NullField("usage")
	reports := e.rep
	e.rep = new(dragoman.Report) // the terminal event reports these losses
	e.writeEcho(w, &e.resp, "in_progress")
	e.rep = reports
	w.EndObject()
}

func (e *streamEncoder) partStart(ev *dragoman.PartStart) {
	if ev.Choice != 0 {
		if !e.others {
			e.rep.Add(dragoman.Dropped, dragoman.Serious, "/alternatives", "Responses returns one candidate; the others are dropped")
			e.others = true
		}
		return
	}
	if e.finished || e.parts[ev.Index] != nil {
		return
	}
	if !e.began {
		e.begin(dragoman.Response{})
	}
	header := ev.Header
	if header == nil {
		header = e.headers[ev.Message]
	}
	if header == nil {
		header = &dragoman.Message{Role: dragoman.RoleAssistant, Origin: e.resp.Origin}
	}
	e.headers[ev.Message] = header
	at, message := e.places.Next(ev)
	switch ev.Part.(type) {
	case *dragoman.Text, *dragoman.Refusal, *dragoman.Data:
		e.startContent(ev, header, at, message)
		return
	}
	opened := e.open(ev.Part, header, at)
	if opened == nil {
		return
	}
	e.leaveMessage()
	it := &streamedItem{outputItem: *opened, index: -1, message: ev.Message}
	e.parts[ev.Index] = &outputPart{item: it, kind: ev.Part}
	if o, ok := ev.Part.(*dragoman.Opaque); !ok || len(o.JSON) > 0 { // otherwise it is known only at its end
		e.add(it)
	}
}

// startContent starts a part of a message. It uses the open message item if that belongs to the
// same message.
func (e *streamEncoder) startContent(ev *dragoman.PartStart, header *dragoman.Message, at, message extra.Path) {
	it := e.message
	if it == nil || it.message != ev.Message || it.done {
		e.leaveMessage()
		it = &streamedItem{outputItem: *e.outputEncoder.open(ev.Part, header, message), index: -1, message: ev.Message}
		e.add(it)
		e.message = it
	}
	p := &outputPart{item: it, index: it.content, kind: ev.Part}
	it.parts, it.places = append(it.parts, nil), append(it.places, at)
	it.content++
	it.open++
	e.parts[ev.Index] = p
	w := e.contentEvent("response.content_part.added", p)
	w.Key("part")
	e.contentSkeleton(w, p)
	e.send("response.content_part.added")
}

func (e *streamEncoder) contentEvent(typ string, p *outputPart) *jsonwire.Writer {
	w := e.itemEvent(typ, p.item)
	w.IntField("content_index", int64(p.index))
	return w
}

func (p *outputPart) refusal() bool { _, ok := p.kind.(*dragoman.Refusal); return ok }

func (e *streamEncoder) contentSkeleton(w *jsonwire.Writer, p *outputPart) {
	w.BeginObject()
	if p.refusal() {
		w.StringField("type", "refusal")
		w.StringField("refusal", "")
	} else {
		w.StringField("type", "output_text")
		w.StringField("text", "")
		w.RawField("annotations", []byte("[]"))
		w.RawField("logprobs", []byte("[]"))
	}
	w.EndObject()
}

// leaveMessage closes the open message item to further content. The item is done when its parts
// are.
func (e *streamEncoder) leaveMessage() {
	it := e.message
	e.message = nil
	if it != nil && it.open == 0 {
		e.finish(it)
	}
}

// add writes the skeleton of an item and assigns its output index.
func (e *streamEncoder) add(it *streamedItem) {
	const typ = "response.output_item.added"
	it.index = len(e.items)
	e.items = append(e.items, it)
	w := e.event(typ)
	w.IntField("output_index", int64(it.index))
	w.Key("item")
	switch it.kind {
	case messageItem:
		w.BeginObject()
		w.StringField("id", it.id)
		w.StringField("type", "message")
		w.StringField("status", "in_progress")
		w.StringField("role", string(dragoman.RoleAssistant))
		w.StringFieldIf("phase", it.header.Phase)
		w.RawField("content", []byte("[]"))
		w.EndObject()
	case reasoningItem:
		w.BeginObject()
		w.StringField("id", it.id)
		w.StringField("type", "reasoning")
		w.RawField("summary", []byte("[]"))
		w.EndObject()
	case callItem:
		c := it.parts[0].(*dragoman.ToolCall)
		it.outputItem.parts = []dragoman.Part{&dragoman.ToolCall{ID: c.ID, Name: c.Name, Namespace: c.Namespace, Payload: c.Payload, Async: c.Async}}
		it.status = "in_progress"
		reports := e.rep
		e.rep = new(dragoman.Report) // the final form reports
		e.close(&it.outputItem)
		e.rep = reports
		it.status = "completed"
		// The skeleton has no arguments.
		key := "arguments"
		if it.freeform {
			key = "input"
		}
		skeleton, _ := jsonwire.ReplaceString(it.json, "", []string{key})
		it.json = nil
		w.Raw(skeleton)
	default:
		w.Raw(it.parts[0].(*dragoman.Opaque).JSON)
	}
	e.send(typ)
}

// finish writes the final form of an item.
func (e *streamEncoder) finish(it *streamedItem) {
	const typ = "response.output_item.done"
	if it.done {
		return
	}
	it.done = true
	if it.kind == messageItem && it.header.Status == codes.StatusIncomplete {
		it.status = "incomplete"
	}
	w := e.event(typ)
	w.IntField("output_index", int64(it.index))
	w.RawField("item", e.close(&it.outputItem))
	e.send(typ)
}

func (e *streamEncoder) responseEnd(ev *dragoman.ResponseEnd) {
	if e.finished {
		return
	}
	if !e.began {
		e.begin(ev.Response)
	}
	if it := e.message; it != nil && cut(ev.Stop) && it.index == len(e.items)-1 {
		it.status = "incomplete"
	}
	e.endAll()
	e.merge(ev)
	e.queueFields(ev.Extra)
	status, _, _ := e.ending(&e.resp, e.calls())
	switch status {
	case "completed", "failed":
		e.terminal("response." + status)
	default: // the other statuses have no event, and no call runs after them
		e.terminal("response.incomplete")
	}
}

// calls returns the written calls, for the end of the response.
func (e *streamEncoder) calls() (calls []*dragoman.ToolCall) {
	for _, it := range e.items {
		if it.kind != callItem {
			continue
		}
		c, ok := it.parts[0].(*dragoman.ToolCall)
		if !ok {
			continue
		}
		if it.spliced {
			stop := *c
			stop.Problem = stopped("the streamed call and the final call differ")
			c = &stop
		}
		calls = append(calls, c)
	}
	return calls
}

// merge combines the response of the end with that of the start. Values of the end have priority.
func (e *streamEncoder) merge(ev *dragoman.ResponseEnd) {
	start := e.resp
	e.resp = ev.Response
	e.resp.ID, e.resp.Output, e.resp.Stop = start.ID, nil, ev.Stop
	e.resp.Usage = start.Usage.Merge(ev.Usage)
	if e.resp.Model == "" {
		e.resp.Model = start.Model
	}
	if e.resp.Created.IsZero() {
		e.resp.Created = start.Created
	}
	if e.resp.ServiceTier == "" {
		e.resp.ServiceTier = start.ServiceTier
	}
	if e.resp.Origin == nil {
		e.resp.Origin = start.Origin
	}
	if e.resp.Extra == nil {
		e.resp.Extra = start.Extra
	}
}

// endAll ends open parts and items, in output order.
func (e *streamEncoder) endAll() {
	for _, p := range e.unended() {
		e.partEnd(p, nil)
	}
	e.leaveMessage()
	for _, it := range e.items {
		e.finish(it)
	}
}

// incomplete marks open items as incomplete.
func (e *streamEncoder) incomplete() {
	for _, it := range e.items {
		if !it.done && it.status == "completed" {
			it.status = "incomplete"
		}
	}
}

func (e *streamEncoder) terminal(typ string) {
	e.finished = true
	w := e.event(typ)
	items := make([]*outputItem, len(e.items))
	for i, it := range e.items {
		e.close(&it.outputItem)
		items[i] = &it.outputItem
	}
	e.reportHeaderLosses()
	w.Key("response")
	e.writeResponse(w, &e.resp, e.id, items, e.calls())
	e.send(typ)
}

// reportHeaderLosses reports the fields of the messages that are not written.
func (e *streamEncoder) reportHeaderLosses() {
	written := make(map[int]bool, len(e.headers))
	for _, it := range e.items {
		written[it.message] = written[it.message] || it.kind == messageItem
	}
	for _, i := range slices.Sorted(maps.Keys(e.headers)) {
		e.reportMessageLosses(e.headers[i], written[i], extra.Elem("/output", i))
	}
}

// fail ends the stream with an error. It writes the flat error event, because some clients stop
// at a nested one, and the failed response, because other clients read only that.
func (e *streamEncoder) fail(err *dragoman.APIError) {
	if e.finished {
		return
	}
	if err == nil {
		err = &dragoman.APIError{Class: dragoman.ErrorServer, Message: "the stream broke"}
	}
	if !e.began {
		e.began = true
		e.id = e.responseID(&e.resp)
	}
	e.incomplete()
	e.endAll()
	w := e.event("error")
	w.StringField("code", failureCode(err))
	w.StringField("message", messageOf(err))
	optional(w, "param", err.Param)
	e.paramSent = true
	e.send("error")
	e.resp.Error = err
	e.resp.Stop = dragoman.Stop{Reason: dragoman.StopError}
	e.terminal("response.failed")
}
