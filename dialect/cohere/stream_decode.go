package cohere

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamDecoder implements [dialect.Codec]. Calls end with the response,
// because before that it is unknown whether they may run (quirks C13, C34).
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	d := &streamDecoder{messageDecoder: newMessageDecoder(c, o)}
	d.inResponse = true
	d.resp.Origin = d.origin
	d.sse.Max, d.bound.Max = o.Limit(), o.Limit()
	d.parts.DeltasOnly, d.parts.Bound = o.DeltasOnly, &d.bound
	d.held.Dialect, d.held.NoFields, d.held.Rep = name, o.NoNative, d.rep
	return d
}

type streamDecoder struct {
	messageDecoder
	ev    streamEvent // the current event
	sse   sse.Parser
	parts stream.Parts
	held  stream.Held // the output events of the current event
	bound stream.Bound

	resp         dragoman.Response // the fields known so far
	usage        dragoman.Usage
	finishReason string
	plan         *stream.Part
	content      map[int64]*stream.Part // open blocks, by index
	last         *stream.Part           // the block that the wire completed last; its part ends later
	open         map[int64]*streamCall
	calls        []*streamCall
	ids          map[string]bool // ids of calls that were started
	citations    []byte          // a JSON list without its brackets
	started      bool
	hasStart     bool // message-start was read
	done         bool
	failed       error

	place         wirekit.StreamPlace
	notStream     wirekit.NotAStream
	unknown       wirekit.Unknown
	pendingLosses wirekit.UnwrittenChunks
	reportedOnce  wirekit.UnwrittenChunks
	late          wirekit.Late
}

// streamCall is an open call of a stream.
type streamCall struct{ blockwire.Incoming }

// Report implements [dialect.StreamDecoder].
func (d *streamDecoder) Report() dragoman.Report { return *d.rep }

// Feed implements [dialect.StreamDecoder].
func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	if d.failed != nil {
		return d.failed
	}
	d.parts.Use(d.held.Hold)
	d.fail(d.sse.Feed(p, func(ev sse.Event) error { return d.event(ev, emit) }))
	d.notStream.Fed(p)
	return d.failed
}

// fail records the reason why the stream cannot be decoded further.
func (d *streamDecoder) fail(err error) {
	if d.failed == nil {
		d.failed = d.place.Framing(name, err)
	}
}

// Close implements [dialect.StreamDecoder].
func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.parts.Use(d.held.Hold)
	broken := d.failed
	if broken == nil {
		// A last event without its blank line counts (quirk C18).
		d.fail(d.sse.Close(func(ev sse.Event) error { return d.event(ev, emit) }))
		broken = d.failed
	}
	if d.done {
		return broken
	}
	d.parts.Use(emit)
	d.failed = dragoman.ErrIncompleteStream
	cut := d.incompleteError(broken)
	d.endFailed(cut)
	if err := d.parts.Err(); err != nil {
		return err
	}
	return wirekit.Incomplete(cut)
}

// incompleteError returns the error for a stream without an end.
func (d *streamDecoder) incompleteError(broken error) *dragoman.APIError {
	err := fmt.Errorf("%s stream: %w", name, dragoman.ErrIncompleteStream)
	if broken != nil {
		err = fmt.Errorf("%w: %w", dragoman.ErrIncompleteStream, broken)
	} else if e := d.notStream.Failure(Codec{}.DecodeError); e != nil {
		return e
	}
	return &dragoman.APIError{Class: dragoman.ErrorServer, Message: err.Error(), Err: err}
}

// event decodes one event. Nothing counts after the last one (quirk C12).
func (d *streamDecoder) event(ev sse.Event, emit func(dragoman.Event) error) error {
	ev.Data = bytes.TrimSpace(ev.Data)
	d.place.Enter(ev)
	if ev.HasData {
		d.notStream.Event()
	}
	if d.done {
		d.late.Event(ev, d.rep)
		return nil
	}
	hasData := len(ev.Data) > 0 && string(ev.Data) != "[DONE]"
	var failed error
	if hasData {
		failed = d.ev.read(ev.Data, ev.Name)
	}
	var chunk *dragoman.Chunk
	if !d.o.NoNative {
		chunk = &dragoman.Chunk{Dialect: name, Raw: ev.Raw}
	}
	if hasData && failed == nil {
		d.unmodeled(chunk, ev.Name)
		if failed = d.handleEvent(ev.Data); failed == nil {
			failed = d.bound.Err()
		}
	}
	if err := d.held.Release(chunk, d.carrier, emit); err != nil {
		return err
	}
	if failed != nil {
		return d.place.Error(name, ev, failed)
	}
	return nil
}

// unmodeled stores the unknown fields of the current event, or the whole event
// if it is unknown (quirk J7). Without a chunk the loss is reported.
func (d *streamDecoder) unmodeled(chunk *dragoman.Chunk, eventName []byte) {
	var loss *dragoman.Loss
	v := &d.ev
	switch v.typ {
	case eventStart, eventContent, eventText, eventTextEnd, eventPlan, eventCall, eventArguments, eventCallEnd, eventEnd:
		loss = d.unknown.Fields([]byte(v.typ), &v.unknownFields)
		for _, f := range v.unread {
			d.held.Field(f.place, f.name, f.raw)
		}
	default:
		if v.typ == "" && v.message { // an error
			return
		}
		// The extra fields of the message also hold the citations. Other
		// dialects report their loss there.
		if loss = d.unknown.Of([]byte(v.typ)); v.typ == eventCitation || v.typ == eventCited {
			loss = nil
		}
		if chunk != nil {
			chunk.Opaque = v.duplicate == "" && (len(eventName) == 0 || string(eventName) == v.typ)
		}
	}
	if chunk == nil {
		d.pendingLosses.Drop(loss, d.rep)
	} else {
		chunk.Loss = loss
	}
}

// carrier returns a delta for the unknown fields of an event that emits nothing
// else.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	switch d.ev.typ {
	case eventText:
		return d.content[d.ev.index].Carrier()
	case eventArguments:
		if b := d.open[d.ev.index]; b != nil {
			return b.Part.Carrier()
		}
	case eventPlan:
		return d.plan.Carrier()
	}
	return nil
}

// handleEvent handles the current event.
func (d *streamDecoder) handleEvent(data []byte) error {
	v := &d.ev
	if v.typ == "" && v.message {
		d.endFailed(Codec{}.DecodeError(0, nil, bytes.Clone(data)))
		return nil
	}
	if v.mistyped != "" {
		d.reportedOnce.Addf(d.rep, dragoman.Dropped, dragoman.Warn, "/message", "%q of a %.40s is not a string", v.mistyped, v.typ)
	}
	switch v.typ {
	case eventStart:
		return d.start(v.id)
	case eventContent:
		d.contentStart()
	case eventText:
		d.contentDelta()
	case eventTextEnd:
		d.contentEnd()
	case eventPlan:
		d.planDelta()
	case eventCall:
		return d.callStart()
	case eventArguments:
		d.callDelta()
	case eventCallEnd:
		d.callEnd()
	case eventCitation:
		d.cite(v.citation)
	case eventEnd:
		return d.end()
	}
	return d.tooMany()
}

func (d *streamDecoder) tooMany() error {
	if d.parts.Count() > stream.MaxParts {
		return fmt.Errorf("%w: more than %d parts", dragoman.ErrTooLarge, stream.MaxParts)
	}
	return nil
}

var errSpliced = errors.New("a second message starts inside the first: two responses are spliced")

func (d *streamDecoder) start(id string) error {
	if d.started {
		if d.resp.ID == id {
			return nil
		}
		if d.hasStart || d.parts.Count() > 0 { // two responses (quirk C37)
			return errSpliced
		}
		d.hasStart = true
		d.rep.Add(dragoman.Dropped, dragoman.Info, "/id", "the id arrived after other events")
		return nil
	}
	d.resp.ID, d.hasStart = id, true
	if d.ev.nonEmptyList != "" {
		d.rep.Addf(dragoman.Dropped, dragoman.Warn, "/message", "non-empty %s in message-start", d.ev.nonEmptyList)
	}
	d.begin()
	return nil
}

// begin emits ResponseStart once, even for a stream without message-start.
func (d *streamDecoder) begin() {
	if !d.started {
		d.started = true
		d.parts.Send(&dragoman.ResponseStart{Response: d.resp})
	}
}

// header returns the message header for the first part, and nil after that.
func (d *streamDecoder) header() *dragoman.Message {
	if d.parts.Count() > 0 {
		return nil
	}
	return &dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.origin}
}

func (d *streamDecoder) planDelta() {
	d.begin()
	if d.ev.plan == "" {
		return
	}
	if d.plan.Ended() {
		d.last.End()
		d.plan = d.parts.Start(0, d.header(), &dragoman.Reasoning{Field: fieldPlan}, &dragoman.Reasoning{Field: fieldPlan})
	}
	d.plan.Append(d.ev.plan)
}

func (d *streamDecoder) contentStart() {
	d.begin()
	d.plan.End()
	d.last.End()
	v := &d.ev
	d.content[v.index].End() // its end is missing
	delete(d.content, v.index)
	var skeleton, value dragoman.Part
	switch v.content.typ {
	case "text", "":
		skeleton, value = &dragoman.Text{}, &dragoman.Text{}
	case "thinking":
		skeleton, value = &dragoman.Reasoning{}, &dragoman.Reasoning{}
	default:
		d.reportedOnce.Addf(d.rep, dragoman.Dropped, dragoman.Warn, "/message/content", "block of type %.60q", v.content.typ)
		return
	}
	if d.content == nil {
		d.content = map[int64]*stream.Part{}
	}
	part := d.parts.Start(0, d.header(), skeleton, value)
	d.content[v.index] = part
	part.Append(v.content.text)
}

// contentDelta appends to a block. It opens a block that was not started.
func (d *streamDecoder) contentDelta() {
	v := &d.ev
	if d.begin(); !v.content.found {
		return
	}
	part := d.content[v.index]
	if kind := kindOf(v.content.typ); part == nil || kind != "" && part.Value.Kind() != kind && v.content.text != "" {
		if v.content.text == "" {
			return
		}
		d.contentStart()
		return
	}
	part.Append(v.content.text)
}

func kindOf(typ string) string {
	switch typ {
	case "text":
		return codes.KindText
	case "thinking":
		return codes.KindReasoning
	default:
		return ""
	}
}

// contentEnd completes a block. Its part ends when another one starts or the
// response ends: citations may follow, and the last part to end carries them
// for the message.
func (d *streamDecoder) contentEnd() {
	part := d.content[d.ev.index]
	if part == nil {
		return
	}
	delete(d.content, d.ev.index)
	part.Extra = d.held.TakeFields()
	d.last.End()
	d.last = part
}

// openContent returns the open blocks, in the order of their starts.
func (d *streamDecoder) openContent() []*stream.Part {
	return slices.SortedFunc(maps.Values(d.content), func(a, b *stream.Part) int { return a.Index - b.Index })
}

func (d *streamDecoder) callStart() error {
	d.begin()
	d.plan.End()
	d.last.End()
	v := &d.ev
	if old := d.open[v.index]; old != nil {
		d.finishCall(old) // its end is missing
	}
	if v.call == nil {
		d.reportedOnce.Addf(d.rep, dragoman.Dropped, dragoman.Warn, "/message/tool_calls", "tool-call-start without a call")
		return nil
	}
	if len(d.calls) >= stream.MaxParts {
		return fmt.Errorf("%w: more than %d calls", dragoman.ErrTooLarge, stream.MaxParts)
	}
	b := &streamCall{blockwire.Incoming{At: len(d.calls), Raw: bytes.Clone(v.call), Call: true, Duplicate: v.duplicate}}
	d.bound.Take(len(v.call))
	d.calls = append(d.calls, b)
	if d.open == nil {
		d.open = map[int64]*streamCall{}
	}
	d.open[v.index] = b
	// The losses are reported at the end of the call.
	rep := d.rep
	d.rep = new(dragoman.Report)
	c := d.readCall(b.Raw, b.At)
	d.rep = rep
	b.Hidden = d.reg.Translates(c.Namespace, c.Name) || c.Payload == codes.PayloadText
	if d.ids[c.ID] {
		return d.tooMany() // its end shows whether it is another call
	}
	if d.ids == nil {
		d.ids = map[string]bool{}
	}
	d.ids[c.ID] = true
	skeleton := *c
	skeleton.Arguments, skeleton.Problem = "", nil
	b.Part = d.parts.Start(0, d.header(), &skeleton, c)
	if first := argumentsOf(b.Raw); first != "" {
		b.Joins(first, false, "arguments")
		d.appendArguments(b, first)
	}
	return d.tooMany()
}

func (d *streamDecoder) appendArguments(b *streamCall, text string) {
	if b.Part != nil && !b.Hidden {
		b.Part.Append(text)
		return
	}
	d.bound.Take(len(text))
	b.Input = append(b.Input, text...)
}

func (d *streamDecoder) callDelta() {
	v := &d.ev
	d.begin()
	b := d.open[v.index]
	if b == nil {
		if v.arguments != "" {
			d.reportedOnce.Addf(d.rep, dragoman.Dropped, dragoman.Warn, "/message/tool_calls", "tool-call-delta for call %d, which is not open", v.index)
		}
		return
	}
	if v.duplicate != "" {
		b.Duplicate = v.duplicate
	}
	b.Joins(v.arguments, v.whole, "arguments")
	d.appendArguments(b, v.arguments)
}

func (d *streamDecoder) callEnd() {
	d.begin()
	b := d.open[d.ev.index]
	if b == nil {
		return
	}
	if d.ev.duplicate != "" {
		b.Duplicate = d.ev.duplicate
	}
	delete(d.open, d.ev.index)
	if b.Part != nil { // it ends later
		b.Part.Extra = d.held.TakeFields()
	}
	d.finishCall(b)
}

func (d *streamDecoder) finishCall(b *streamCall) {
	b.Stopped = true
	b.Part.Complete()
}

// cite stores a citation for the list in the message.
func (d *streamDecoder) cite(raw []byte) {
	if raw == nil || !d.bound.Take(len(raw)+1) {
		return
	}
	if d.citations != nil {
		d.citations = append(d.citations, ',')
	}
	d.citations = append(d.citations, raw...)
}

// readCall decodes the object of a call.
func (d *streamDecoder) readCall(obj []byte, at int) *dragoman.ToolCall {
	place := extra.At("/message").Elem("tool_calls", at)
	c, err := d.reg.ReadCall(obj, place, d.rep)
	if err != nil {
		c = &dragoman.ToolCall{Problem: &dragoman.CallProblem{
			Code: codes.ProblemUnreadable, Offset: -1, Message: "the call cannot be decoded: " + err.Error(),
		}}
	}
	d.identify(c, place, 0, at)
	return c
}

// wholeCall decodes a call with the arguments of its deltas.
func (d *streamDecoder) wholeCall(b *streamCall) *dragoman.ToolCall {
	c := d.readCall(withArguments(b.Raw, string(b.Fragments())), b.At)
	if b.Duplicate != "" {
		c.Problem = wirekit.RepeatedField(b.Duplicate)
	}
	return c
}

// settle ends all parts, the calls last, and returns why the response ended.
func (d *streamDecoder) settle(terminal bool) dragoman.Stop {
	broken := map[*streamCall]bool{}
	for _, b := range d.calls {
		broken[b] = !terminal && !b.Stopped
	}
	d.finishMessage()
	d.plan.End()
	d.last.End()
	for _, p := range d.openContent() {
		p.End()
	}
	for _, b := range d.open {
		d.finishCall(b)
	}
	d.open = nil
	calls, ending := d.settleCalls(broken)
	d.calls = nil
	stop := settleStop(d.reg, d.finishReason, terminal, calls)
	for _, p := range ending {
		p.End()
	}
	d.parts.EndAll()
	if d.parts.Unfinished() {
		d.rep.Add(dragoman.Dropped, dragoman.Info, "/message/citations", "citations of a message without content")
	}
	return stop
}

// settleCalls decodes the calls. It returns them with their parts, which the
// caller must end. broken contains the calls that the end of the stream cut
// off.
func (d *streamDecoder) settleCalls(broken map[*streamCall]bool) (calls []*dragoman.ToolCall, ending []*stream.Part) {
	var ids wirekit.CallIDs
	for _, b := range d.calls {
		c := d.wholeCall(b)
		if broken[b] && (c.Problem == nil || c.Problem.Code == codes.ProblemInvalidJSON) {
			c.Problem = &dragoman.CallProblem{Code: codes.ProblemTruncated, Message: "the stream ended inside the call", Offset: -1}
		}
		fresh, _ := ids.Settle(c, extra.At("/message").Elem("tool_calls", b.At), d.rep, func(old string) string {
			return wirekit.SyntheticID("call_", d.o.Seed+old, 0, b.At)
		})
		switch {
		case b.Part == nil && !fresh:
			continue
		case b.Part == nil:
			skeleton := *c
			skeleton.Arguments, skeleton.Problem = "", nil
			b.Part = d.parts.Start(0, d.header(), &skeleton, c)
			b.Part.Append(c.Arguments)
		case b.Hidden:
			b.Part.Append(c.Arguments)
		}
		b.Part.Value, b.Part.Text, b.Input, b.Raw = c, nil, nil, nil // the call holds them now
		calls, ending = append(calls, c), append(ending, b.Part)
	}
	return calls, ending
}

// finishMessage attaches the citations to the parts that end from now on.
func (d *streamDecoder) finishMessage() {
	if d.citations != nil {
		list := slices.Concat([]byte{'['}, d.citations, []byte{']'})
		d.parts.Finish(&dragoman.Extra{Dialect: name, Fields: []dragoman.Field{{Path: "/citations", Value: list}}}, d.origin)
	}
}

func (d *streamDecoder) end() error {
	d.begin()
	v := &d.ev
	d.finishReason = mergeFinishReasons(d.finishReason, v.finish)
	d.resp.ID = cmp.Or(d.resp.ID, v.id)
	if v.usage != nil {
		r := jsonwire.NewReader(v.usage)
		d.usage = readUsage(r, d.rep)
		if err := r.Err(); err != nil {
			return jsonwire.PlaceAt("/delta/usage", v.usageAt, err)
		}
	}
	if v.failed {
		d.endFailed(&dragoman.APIError{Class: dragoman.ErrorServer, Message: v.failure})
		return nil
	}
	stop := d.settle(true)
	d.parts.Send(&dragoman.ResponseEnd{Stop: stop, Usage: d.usage, Response: d.resp})
	d.done = true
	return nil
}

// endFailed ends a stream that failed. None of its calls may run.
func (d *streamDecoder) endFailed(failure *dragoman.APIError) {
	d.begin()
	d.settle(false)
	failure.Message = cmp.Or(failure.Message, "the server reported an error without a message")
	d.parts.Send(&dragoman.StreamError{Err: failure, Usage: d.usage})
	d.done = true
}

// argumentsOf returns the arguments in the object of a call.
func argumentsOf(call []byte) (arguments string) {
	eachArgument(call, func(r *jsonwire.Reader) {
		switch r.Kind() {
		case '"':
			arguments = r.String()
		case 'n':
			r.Skip()
		default:
			arguments = string(r.Raw())
		}
	})
	return arguments
}

// withArguments returns the object of a call with its arguments replaced.
func withArguments(call []byte, arguments string) []byte {
	var edits []jsonwire.Edit
	eachArgument(call, func(r *jsonwire.Reader) {
		raw := r.Raw()
		var w jsonwire.Writer
		w.String(arguments)
		edits = append(edits, jsonwire.Edit{Start: r.Offset() - int64(len(raw)), End: r.Offset(), New: w.Buf})
	})
	if len(edits) > 0 {
		return jsonwire.Splice(call, edits...)
	}
	if arguments == "" {
		return call
	}
	return addArguments(call, arguments)
}

// addArguments adds arguments to the object of a call without any.
func addArguments(call []byte, arguments string) []byte {
	r := jsonwire.NewReader(call)
	if r.Kind() != '{' {
		return call
	}
	var w jsonwire.Writer
	w.BeginObject()
	function := []byte(nil)
	for key := range r.Object() {
		field := string(key)
		raw := r.Raw()
		if field == "function" && len(raw) > 0 && raw[0] == '{' {
			function = raw
			continue
		}
		w.QuotedKey(field)
		w.Raw(raw)
	}
	w.Key("function")
	w.BeginObject()
	if function != nil {
		in := jsonwire.NewReader(function)
		for key := range in.Object() {
			w.QuotedKey(string(key))
			w.Raw(in.Raw())
		}
	}
	w.StringField("arguments", arguments)
	w.EndObject()
	w.EndObject()
	return w.Buf
}

// eachArgument calls read at each arguments field of a call. read consumes the value.
func eachArgument(call []byte, read func(*jsonwire.Reader)) {
	r := jsonwire.NewReader(call)
	if r.Kind() != '{' {
		return
	}
	for key := range r.Object() {
		if string(key) != "function" || r.Kind() != '{' {
			r.Skip()
			continue
		}
		for key := range r.Object() {
			if string(key) == "arguments" {
				read(r)
			} else {
				r.Skip()
			}
		}
	}
}
