package openairesponses

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamDecoder implements [dialect.Codec].
//
// The end of a call is emitted only with the end of the response. An earlier end would let the
// caller run it before it is known whether calls may run (quirk C34).
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	d := &streamDecoder{responseDecoder: responseDecoder{newItemDecoder(c, o, true)}}
	d.parser.Max = o.Limit()
	d.bound.Max = 3 * o.Limit() // the wire sends everything three times: in deltas, in items, in the response
	d.parts.Bound = &d.bound
	d.hold = d.held.Hold
	d.held.Dialect, d.held.NoFields, d.held.Rep = name, o.NoNative, d.rep
	d.parts.Use(d.hold)
	d.ids.d = &d.itemDecoder
	d.byIndex = make(map[int64]*streamItem)
	return d
}

type streamDecoder struct {
	responseDecoder
	parser sse.Parser
	place  wirekit.StreamPlace
	r      jsonwire.Reader
	ev     wireEvent
	at     valuePlace
	emit   func(dragoman.Event) error
	parts  stream.Parts
	bound  stream.Bound

	held stream.Held // the events of the current wire event
	hold func(dragoman.Event) error

	duplicate bool            // the current event has a duplicate known field
	unknown   wirekit.Unknown // unknown events
	unwritten wirekit.UnwrittenChunks
	loss      *dragoman.Loss // the loss if the current event is encoded in another dialect
	opaque    bool           // the current event has no canonical form

	began bool // ResponseStart was emitted
	// id is the response id of the last snapshot before the first item; firstID is the id in
	// ResponseStart.
	id, firstID string
	ended       bool // ResponseEnd or StreamError was emitted
	last        bool // the current event may be incomplete
	// pending is the error of an error event. Only a response.failed event may follow it.
	pending *dragoman.APIError
	// failed is the error that stopped decoding; nil if there is none.
	failed error
	notSSE wirekit.NotAStream
	late   wirekit.Late // data after the end
	items  []*streamItem
	// byIndex finds items by output_index, the only stable key: some proxies generate a new
	// item_id for every event.
	byIndex map[int64]*streamItem
	// byID finds items by id, if there are many. It contains the first indexedIDs items.
	byID       map[string]*streamItem
	indexedIDs int
	ids        callIDs
}

// wireEvent is one decoded event. Its slices are valid while the event is handled.
type wireEvent struct {
	typ      []byte
	index    int64
	hasIndex bool
	itemID   []byte // quoted
	content  int64
	summary  int64
	delta    string
	whole    bool // delta is a JSON value, not a fragment of a string
	// value is the complete value in a done event: a quoted string, or JSON (quirk B4).
	value []byte
	// The field of value, if it is the payload of a call.
	arguments, input bool
	item             []byte
	part             []byte
	response         []byte
	err              bool
	logprobs         bool           // it has logprobs
	unknownLoss      *dragoman.Loss // its unknown fields, if it is a delta
	unread           []unknownField // its unknown fields
	// The offsets of item and response in the event.
	itemAt, responseAt int64
}

// unknownField is an unknown field of an event.
type unknownField struct {
	name string
	raw  []byte
}

// valuePlace is the position of the current value in the current event.
type valuePlace struct {
	pointer string
	start   int64
}

// Feed implements [dialect.StreamDecoder].
func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	if d.failed != nil {
		return d.failed
	}
	d.emit = emit
	d.failed = d.framing(d.parser.Feed(p, d.event))
	d.notSSE.Fed(p)
	return d.failed
}

func (d *streamDecoder) framing(err error) error {
	if errors.Is(err, sse.ErrTooLong) {
		return d.place.Beyond(name, fmt.Errorf("%w: more than %d bytes", dragoman.ErrTooLarge, d.o.Limit()))
	}
	return err
}

// Report implements [dialect.StreamDecoder].
func (d *streamDecoder) Report() dragoman.Report { return *d.rep }

// Close implements [dialect.StreamDecoder].
func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.emit = emit
	if d.failed == nil { // data after an error must have no effect
		// A last event without its blank line still counts (quirk C18).
		d.last = true
		d.failed = d.framing(d.parser.Close(d.event))
	}
	if d.ended {
		return d.failed
	}
	if d.pending != nil {
		d.fail(d.pending, dragoman.Usage{})
		if err := d.held.Release(nil, nil, emit); err != nil {
			return err
		}
		return d.failed
	}
	apiErr, err := d.incomplete(d.failed)
	d.failed = err
	d.fail(apiErr, dragoman.Usage{})
	if e := d.held.Release(nil, nil, emit); e != nil {
		return e
	}
	return err
}

// incomplete returns the errors for a stream without its terminal event: one for the StreamError
// event, and one for the caller of Close. cause is the error that stopped decoding; nil if the
// stream just ended.
func (d *streamDecoder) incomplete(cause error) (apiErr *dragoman.APIError, err error) {
	apiErr = &dragoman.APIError{
		Class:   dragoman.ErrorServer,
		Message: "the stream ended before response.completed, response.incomplete or response.failed",
	}
	why := dragoman.ErrIncompleteStream
	if cause != nil {
		apiErr.Message = "the stream broke: " + cause.Error()
		why = fmt.Errorf("%w: %w", why, cause)
	} else if other := d.notSSE.Failure(Codec{}.DecodeError); other != nil {
		apiErr, why = other, wirekit.Incomplete(other)
	}
	err = &dragoman.DecodeError{Dialect: name, What: "stream", Offset: -1, Err: why}
	if apiErr.Err == nil && apiErr.Native == nil { // otherwise the server sent the cause
		apiErr.Err = err
	}
	return apiErr, err
}

func (d *streamDecoder) event(ev sse.Event) error {
	d.place.Enter(ev)
	if ev.HasData {
		d.notSSE.Event()
	}
	d.duplicate, d.ambiguousPart, d.loss, d.opaque = false, false, nil, false
	if d.pending != nil && !d.ended {
		if last, err := d.afterError(ev); last || err != nil {
			return err
		}
	}
	if d.ended { // everything after the terminal event is ignored
		d.late.Event(ev, d.rep)
		if d.o.NoNative || !wirekit.IsKeepAlive(ev) {
			return nil
		}
		return d.emit(&dragoman.Chunk{Dialect: name, Raw: ev.Raw})
	}
	var err error
	truncated := false
	if hasEventData(ev) {
		if err = d.read(ev); err == nil {
			if err = d.handle(ev.Data); err == nil {
				err = d.bound.Err()
			}
			d.checkDuplicate()
			d.carryFields()
		} else {
			truncated = d.last // an incomplete event is not emitted, because nothing could follow it
		}
	}
	var chunk *dragoman.Chunk
	if !truncated {
		chunk = d.chunk(ev)
	}
	if refused := d.held.Release(chunk, d.carrier, d.emit); refused != nil {
		return refused
	}
	if err != nil {
		return d.place.Error(name, ev, err)
	}
	return nil
}

// chunk returns the raw form of the current event; nil with NoNative.
func (d *streamDecoder) chunk(ev sse.Event) *dragoman.Chunk {
	if d.o.NoNative {
		d.unwritten.Drop(d.loss, d.rep)
		return nil
	}
	return &dragoman.Chunk{Dialect: name, Raw: ev.Raw, Opaque: d.opaque && !d.duplicate, Loss: d.loss}
}

// carryFields attaches the unknown fields of the current event to the emitted events. Their path
// contains the type of the event, because several wire events end one part.
func (d *streamDecoder) carryFields() {
	if d.opaque || len(d.ev.unread) == 0 {
		return
	}
	prefix := fieldPrefix(string(d.ev.typ))
	for _, f := range d.ev.unread {
		d.held.Field(prefix, []byte(f.name), f.raw)
	}
}

// fieldPrefix returns the path of the unknown fields of an event type.
func fieldPrefix(typ string) string { return "/" + extra.Escape(typ) }

// carrier returns a delta for the unknown fields of a delta that has no event.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	if !wholeDelta(d.ev.typ) {
		return nil
	}
	it := d.find()
	if it == nil {
		return nil
	}
	for i := range it.content {
		if it.content[i].index == d.ev.content {
			return it.content[i].part.Carrier()
		}
	}
	return it.part.Carrier()
}

// afterError handles the event after an error. If it is the terminal event, its usage is still
// read.
func (d *streamDecoder) afterError(ev sse.Event) (last bool, err error) {
	last = hasEventData(ev) && d.read(ev) == nil && terminalType(d.ev.typ)
	var usage dragoman.Usage
	if last { // only its usage is new
		var resp dragoman.Response
		d.decodeFields(jsonwire.NewReader(d.ev.response), &resp)
		usage = resp.Usage
	}
	d.fail(d.pending, usage)
	var chunk *dragoman.Chunk
	if last {
		chunk = d.chunk(ev)
	}
	return last, d.held.Release(chunk, nil, d.emit)
}

// hasEventData reports whether an event is neither a keep-alive nor the [DONE] marker of other
// APIs.
func hasEventData(ev sse.Event) bool {
	data := bytes.TrimSpace(ev.Data)
	return ev.HasData && len(data) > 0 && string(data) != "[DONE]"
}

func (d *streamDecoder) read(ev sse.Event) error {
	if err := wirekit.CheckValues(ev.Data); err != nil {
		return err
	}
	r, e := &d.r, &d.ev
	r.Reset(ev.Data)
	*e = wireEvent{unread: e.unread[:0]}
	var seen wirekit.KnownFields
	if r.Kind() != '{' {
		if r.Err() != nil {
			return r.Err()
		}
		return &jsonwire.Error{Err: errNotObject}
	}
	for key := range r.Object() {
		switch string(key) {
		case "type":
			d.markSeen(&seen, 0)
			if raw := r.Raw(); len(raw) >= 2 && raw[0] == '"' {
				if e.typ = raw[1 : len(raw)-1]; bytes.IndexByte(e.typ, '\\') >= 0 {
					e.typ = []byte(unquoted(raw)) // clients unescape it
				}
			}
		case "output_index":
			d.markSeen(&seen, 1)
			if r.Kind() == '0' {
				e.index, e.hasIndex = r.Int(), true
			} else {
				r.Skip()
			}
		case "content_index":
			d.markSeen(&seen, 2)
			e.content = r.Int()
		case "summary_index":
			e.summary = r.Int()
		case "item_id":
			d.markSeen(&seen, 4)
			e.itemID = r.Raw()
		case "delta":
			d.markSeen(&seen, 5)
			if r.Kind() == '"' {
				e.delta = r.String()
			} else if raw := r.Raw(); string(raw) != "null" {
				e.delta, e.whole = string(raw), true // quirks B4, C7
			}
		case "text", "arguments", "input", "refusal":
			d.markSeen(&seen, 6) // an event has at most one of them
			e.arguments, e.input = key[0] == 'a', key[0] == 'i'
			e.value = r.Raw()
		case "item":
			d.markSeen(&seen, 7)
			e.item = r.Raw()
			e.itemAt = r.Offset() - int64(len(e.item))
		case "part":
			d.markSeen(&seen, 8)
			e.part = r.Raw()
		case "response":
			d.markSeen(&seen, 9)
			e.response = r.Raw()
			e.responseAt = r.Offset() - int64(len(e.response))
		case "error":
			d.markSeen(&seen, 10)
			e.err = r.Kind() != 'n'
			r.Skip()
		case "logprobs":
			e.logprobs = r.Kind() != 'n' && !bytes.HasPrefix(r.Rest(), []byte("[]"))
			if raw := r.Raw(); e.logprobs {
				e.unread = append(e.unread, unknownField{"logprobs", raw})
			}
		case "sequence_number", "obfuscation":
			r.Skip()
		default:
			if wirekit.Folds(eventKeys, key) {
				d.duplicate = true
				r.Skip()
				continue
			}
			if r.Kind() != 'n' && (e.typ == nil || wholeDelta(e.typ)) {
				e.unknownLoss = d.unknown.Field(e.unknownLoss, key)
			}
			if member := string(key); !r.Null() {
				e.unread = append(e.unread, unknownField{member, r.Raw()})
			}
		}
	}
	if e.typ == nil {
		e.typ = ev.Name
	} else if !bytes.Equal(e.typ, ev.Name) && isType(ev.Name) {
		d.duplicate = true // some clients use one of them, some the other
	}
	return r.End()
}

// isType reports whether the name of an event is an event type of this API, and not a name that a
// proxy gives to all events.
func isType(name []byte) bool {
	return bytes.HasPrefix(name, []byte("response.")) || string(name) == "error"
}

// handle converts one wire event to canonical events. The progress of a hosted tool and unknown
// events are opaque. Only terminal events end the stream (quirks J20, C40).
func (d *streamDecoder) handle(data []byte) error {
	e := &d.ev
	d.at = valuePlace{start: -1}
	if wholeDelta(e.typ) {
		d.loss = e.unknownLoss
	}
	switch string(e.typ) {
	case "response.created", "response.queued", "response.in_progress":
		if d.began {
			return d.beginAgain(string(e.typ) == "response.created")
		}
		return d.begin(e.response)
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return d.terminal(string(e.typ[len("response."):]))
	case "error":
		d.pending = decodeErrorEvent(clone(data))
		return nil
	case "response.output_item.added":
		return d.added()
	case "response.output_item.done":
		return d.done()
	case "response.content_part.added":
		return d.partAdded()
	case "response.content_part.done":
		return d.partDone()
	case "response.output_text.delta":
		err := d.contentDelta(&dragoman.Text{}, e.delta)
		if e.logprobs && err == nil {
			d.recordMetadata(func(it *streamItem) { it.logprobs = true })
		}
		return err
	case "response.refusal.delta":
		return d.contentDelta(&dragoman.Refusal{}, e.delta)
	case "response.output_text.done":
		return d.contentRest(&dragoman.Text{})
	case "response.refusal.done":
		return d.contentRest(&dragoman.Refusal{})
	case "response.function_call_arguments.delta":
		return d.callDelta("function_call", e.delta)
	case "response.custom_tool_call_input.delta":
		return d.callDelta("custom_tool_call", e.delta)
	case "response.function_call_arguments.done":
		return d.callRest("function_call")
	case "response.custom_tool_call_input.done":
		return d.callRest("custom_tool_call")
	case "response.reasoning_summary_text.delta":
		return d.summaryDelta(e.delta)
	case "response.reasoning_summary_text.done":
		return d.summaryRest()
	case "response.reasoning_text.delta", "response.reasoning.delta":
		return d.thinkingDelta(e.delta)
	case "response.reasoning_text.done", "response.reasoning.done":
		return d.thinkingRest()
	default:
		if len(e.typ) == 0 && e.err {
			d.pending = decodeErrorEvent(clone(data)) // quirk C14
		} else if string(e.typ) == "response.output_text.annotation.added" {
			d.opaque = true
			d.recordMetadata(func(it *streamItem) { it.annotations++ })
		} else if repeatedByItems(e.typ) {
			d.opaque = !bytes.HasPrefix(e.typ, []byte("response.reasoning_summary_part."))
		} else {
			d.loss = d.unknown.Of(e.typ)
			d.opaque = len(e.typ) > 0
		}
		return nil
	}
}

// wholeDelta reports whether an event type is a delta that is decoded, so that all its fields are
// known.
func wholeDelta(typ []byte) bool {
	switch string(typ) {
	case "response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta",
		"response.custom_tool_call_input.delta", "response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.reasoning.delta":
		return true
	default:
		return false
	}
}

// repeatedByItems reports whether the items of the response repeat the content of an event type:
// the progress of a tool that the provider runs, or the start and end of a summary.
func repeatedByItems(typ []byte) bool {
	for _, prefix := range []string{
		"response.web_search_call.", "response.file_search_call.", "response.code_interpreter_call", "response.image_generation_call.",
		"response.mcp_", "response.reasoning_summary_part.",
	} {
		if len(typ) >= len(prefix) && string(typ[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

// terminalType reports whether an event type ends a stream.
func terminalType(typ []byte) bool {
	switch string(typ) {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return true
	default:
		return false
	}
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// begin emits ResponseStart, once. The first snapshots repeat the whole request; only the id,
// model and time are read.
func (d *streamDecoder) begin(raw []byte) error {
	if d.began {
		return nil
	}
	start := &dragoman.ResponseStart{Response: dragoman.Response{Origin: d.origin}}
	if raw != nil {
		r := jsonwire.NewReader(raw)
		if r.Kind() == '{' {
			for key := range r.Object() {
				switch k := string(key); {
				case k == "id" && r.Kind() == '"':
					start.Response.ID = r.String()
				case k == "model" && r.Kind() == '"':
					start.Response.Model = r.String()
				case k == "created_at" && r.Kind() == '0':
					start.Response.Created = unixTime(r.Number())
				default:
					r.Skip()
				}
			}
		}
		if r.Err() != nil {
			return jsonwire.PlaceAt("/response", d.ev.responseAt, r.Err())
		}
	}
	d.began = true
	d.id, d.firstID = start.Response.ID, start.Response.ID
	return d.hold(start)
}

var errSpliced = errors.New("a second response starts inside the first: two responses were spliced together")

// beginAgain handles a further snapshot at the start. A snapshot of another response would be
// merged into the first (quirk C37), so it is an error. A recorder or a proxy may generate a new
// id for each event, so a new id in a snapshot other than response.created, before the first
// item, is accepted.
func (d *streamDecoder) beginAgain(created bool) error {
	r := jsonwire.NewReader(d.ev.response)
	id := ""
	if len(d.ev.response) > 0 && r.Kind() == '{' {
		for key := range r.Object() {
			if string(key) == "id" && r.Kind() == '"' {
				id = r.String()
			} else {
				r.Skip()
			}
		}
	}
	switch {
	case id == "" || id == d.id || id == d.firstID:
	case d.id != "" && (created || len(d.items) > 0):
		return errSpliced
	default:
		d.id = id
	}
	return nil
}

// terminal ends the response: it emits content that only the terminal event has, ends open items,
// derives the stop and ends the calls.
func (d *streamDecoder) terminal(word string) error {
	raw := d.clone(d.ev.response)
	if err := d.begin(raw); err != nil {
		return err
	}
	resp := dragoman.Response{Origin: d.origin}
	var end ending
	if len(raw) > 0 {
		r := jsonwire.NewReader(raw)
		end = d.decodeFields(r, &resp)
		if err := r.End(); err != nil {
			return jsonwire.PlaceAt("/response", d.ev.responseAt, err)
		}
	}
	if end.status == "" || (word != "completed" && end.status == "completed") {
		end.status = word // from the type of the event
	}
	for i, item := range end.output {
		d.at = valuePlace{"/response/output/" + strconv.Itoa(i), d.ev.responseAt + end.offsets[i]}
		if err := d.finalItem(item, i); err != nil {
			return err
		}
	}
	d.at = valuePlace{start: -1}
	for _, it := range d.items {
		if err := d.settle(it); err != nil {
			return err
		}
	}
	calls := d.calls()
	if d.duplicate || end.duplicate { // the event is ambiguous
		for _, c := range calls {
			if c.Problem == nil {
				c.Problem = conflictProblem()
			}
		}
	}
	stop := settleStop(d.reg, end.status, end.reason, resp.Error != nil, end.details, calls)
	end.compacted(&stop)
	d.release()
	d.ended = true
	if word == "failed" {
		if resp.Error == nil {
			resp.Error = &dragoman.APIError{Class: dragoman.ErrorServer, Message: "the response failed; the server gave no reason"}
		}
		return d.hold(&dragoman.StreamError{Err: resp.Error, Usage: resp.Usage})
	}
	return d.hold(&dragoman.ResponseEnd{Stop: stop, Usage: resp.Usage, Response: resp})
}

// fail ends the stream with an error: open items end with the content that arrived, and none of
// its calls may run (quirks C13, C39).
func (d *streamDecoder) fail(err *dragoman.APIError, usage dragoman.Usage) {
	_ = d.begin(nil) // cannot fail without input
	for _, it := range d.items {
		open := it.final == nil
		if d.settle(it) != nil {
			d.abandon(it) // this item broke the stream
		}
		switch {
		case it.call == nil:
		case open: // other problems of the call follow from this one
			it.call.Problem = truncated("the stream broke before the call was complete; make it again")
		case it.call.Problem == nil:
			it.call.Problem = stopped("the stream broke before the response was complete; its calls must not run")
		}
	}
	d.calls()
	d.release()
	d.ended = true
	_ = d.hold(&dragoman.StreamError{Err: err, Usage: usage})
}

// calls makes the ids of all calls unique, in the order of the output, and returns the calls
// except exact repeats.
func (d *streamDecoder) calls() []*dragoman.ToolCall {
	var calls []*dragoman.ToolCall
	for _, it := range d.items {
		if it.call == nil {
			continue
		}
		if it.part != nil && !it.sharedID {
			// Already emitted under its id; no earlier call has the same id.
			if d.ids.seen == nil {
				d.ids.seen = make(map[string]*dragoman.ToolCall)
			}
			if _, taken := d.ids.seen[it.call.ID]; !taken {
				d.ids.seen[it.call.ID] = it.call
				calls = append(calls, it.call)
				continue
			}
		}
		at := extra.Elem("/output", it.place)
		if !d.ids.settle(it.call, at, it.place) && it.part == nil {
			it.call = nil // an exact repeat that was not emitted
			continue
		}
		if it.call.Synthetic && it.final != nil {
			it.final.Native = nil
		}
		calls = append(calls, it.call)
	}
	return calls
}

// release emits the end of the calls.
func (d *streamDecoder) release() {
	for _, it := range d.items {
		if it.call == nil {
			continue
		}
		if it.part == nil {
			d.startCall(it, it.call)
		}
		if !it.lowered {
			it.part.Append(missingEnd(it.part.Text, it.call.Arguments))
		}
		it.part.Value, it.part.Header = it.call, it.finalHeader()
		it.part.End()
	}
	d.parts.EndAll()
}
