package ollama

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/ndjson"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamDecoder implements [dialect.Codec].
//
// A call is complete within one line, but its end is held back until the line with "done". Only
// then is it known that the calls of this response may run (quirks C13, C32, C34).
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	d := &streamDecoder{messageDecoder: newMessageDecoder(c, o), seen: map[string]*dragoman.ToolCall{}}
	d.lines.Max, d.bound.Max = o.Limit(), o.Limit()
	d.parts.Bound = &d.bound
	d.resp.Origin = d.origin
	d.parts.Use(d.held.Hold)
	d.parts.DeltasOnly = o.DeltasOnly
	d.held.Dialect, d.held.NoFields, d.held.Rep = name, o.NoNative, d.rep
	return d
}

type streamDecoder struct {
	wirekit.StreamReading
	messageDecoder
	lines  ndjson.Parser
	pos    linePosition
	late   wirekit.Late // data after the end
	reader jsonwire.Reader
	emit   func(dragoman.Event) error

	held   stream.Held // the events of the current line
	parts  stream.Parts
	fields stream.Fields
	line   lineState

	resp           dragoman.Response // model, time, … known so far
	usage          dragoman.Usage
	word           string // the done_reason so far
	text, thinking *stream.Part
	calls          []*dragoman.ToolCall
	seen           map[string]*dragoman.ToolCall // by id
	again          map[*dragoman.ToolCall]bool   // reported as repeated
	elements       int                           // of lists of calls
	lost           map[string]bool               // fields reported as not collected
	started        bool
	bound          stream.Bound
}

// lineState collects what the current line states about the whole response.
type lineState struct {
	done   bool
	failed *dragoman.APIError
	// duplicate is set if the line has a duplicate field.
	duplicate bool
}

// Report implements [dialect.StreamDecoder].
func (d *streamDecoder) Report() dragoman.Report { return *d.rep }

// Feed implements [dialect.StreamDecoder].
func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	if d.Failed != nil {
		return d.Failed
	}
	d.emit = emit
	d.Failed = d.wrap(d.lines.Feed(p, d.decodeLine))
	return d.Failed
}

func (d *streamDecoder) wrap(err error) error {
	if errors.Is(err, ndjson.ErrTooLong) {
		return d.pos.nextLineError(fmt.Errorf("%w: %w", dragoman.ErrTooLarge, err))
	}
	return err
}

// Close implements [dialect.StreamDecoder].
func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.emit = emit
	if err := d.Drain(func() error { return d.wrap(d.lines.Close(d.decodeLine)) }); err != nil {
		return err
	}
	if d.Ended {
		return nil
	}
	cut := d.Cut("a line", `the line with "done": true`)
	d.endFailed(cut)
	if err := d.held.Release(nil, nil, emit); err != nil {
		return err
	}
	return wirekit.Incomplete(cut)
}

func (d *streamDecoder) decodeLine(l ndjson.Line) error {
	d.pos.enter(l)
	if d.Ended { // everything after the end is ignored (quirk C12)
		if len(l.Data) > 0 {
			d.late.Bytes(d.rep)
			return nil
		}
		if d.o.NoNative {
			return nil
		}
		return d.emit(&dragoman.Chunk{Dialect: name, Raw: l.Raw})
	}
	d.line = lineState{}
	var chunk *dragoman.Chunk
	if truncated := d.Closing && len(l.Data) > 0 && !json.Valid(l.Data); !truncated && !d.o.NoNative {
		chunk = &dragoman.Chunk{Dialect: name, Raw: l.Raw}
	}
	var err error
	if len(l.Data) > 0 {
		err = d.read(l.Data)
	}
	if err == nil {
		err = d.bound.Err()
	}
	if refused := d.held.Release(chunk, d.parts.Carrier, d.emit); refused != nil {
		return refused
	}
	if err != nil {
		return d.pos.error(l, err)
	}
	return nil
}

// countStreamed counts n bytes of a part that is emitted at once. We do not keep them, but a
// caller that collects the stream does.
func (d *streamDecoder) countStreamed(n int) {
	if !d.o.DeltasOnly {
		d.bound.Take(n)
	}
}

// read decodes the JSON of a line.
func (d *streamDecoder) read(data []byte) error {
	if err := wirekit.CheckValues(data); err != nil {
		return err
	}
	r := &d.reader
	r.Reset(data)
	if r.Kind() != '{' && r.Err() == nil {
		return &jsonwire.Error{Err: wirekit.ErrNotObject}
	}
	var msg []byte // decoded after ResponseStart, which needs the model
	var at int64
	var seen wirekit.KnownFields
	for key := range r.Object() {
		duplicate := seen.IsRepeated(responseKeys, key)
		d.line.duplicate = d.line.duplicate || duplicate
		if string(key) == "message" {
			msg = r.Raw()
			at = r.Offset() - int64(len(msg))
			continue
		}
		d.decodeField(key, duplicate)
	}
	if err := r.End(); err != nil {
		return err
	}
	if msg != nil {
		d.start()
		r.Reset(msg)
		d.message(r)
		if err := r.Err(); err != nil {
			return jsonwire.PlaceAt("/message", at, err)
		}
	}
	switch {
	case d.line.failed != nil: // an error in a response with status 200 (quirks C14, C32)
		d.line.failed.Class = classOf(d.line.failed)
		d.line.failed.Native = &dragoman.Native{Format: formatError, JSON: bytes.Clone(data)}
		d.endFailed(d.line.failed)
	case d.line.done:
		d.end()
	}
	return nil
}

// decodeField decodes a field of a line except its message.
func (d *streamDecoder) decodeField(key []byte, duplicate bool) {
	r := &d.reader
	switch string(key) {
	case "model":
		if s := r.StringLike(d.resp.Model); s != "" {
			d.resp.Model = s
		}
	case "created_at":
		if raw := r.Raw(); d.resp.Created.IsZero() { // ResponseStart has the first one
			d.resp.Created = readTime(raw)
		}
	case "done":
		d.line.done = r.Bool() || d.line.done
	case "done_reason":
		d.word = combineReasons(d.word, r.String())
	case "error":
		if r.Null() {
			return
		}
		d.line.failed = &dragoman.APIError{}
		readError(r, d.line.failed)
	case "logprobs":
		if !r.Null() {
			d.reportUncollected("logprobs")
			d.held.Field("", key, r.Raw())
		}
	default:
		switch {
		case readUsage(r, key, &d.usage, d.rep):
		case duplicate, r.Kind() == 'n':
			r.Skip()
		default:
			raw := r.Raw()
			if old, known := extra.Replaces(d.resp.Extra, "", key); !known || !bytes.Equal(old, raw) {
				d.held.Field("", key, raw)
			}
			d.bound.Take(extra.AddCopy(&d.resp.Extra, name, "", key, raw))
		}
	}
}

// reportReplaced reports, once, that a message field lost its earlier value.
func (d *streamDecoder) reportReplaced(field string) {
	key := "replaced/" + field
	if d.lost[key] || len(d.lost) > 64 {
		return
	}
	if d.lost == nil {
		d.lost = map[string]bool{}
	}
	d.lost[key] = true
	d.rep.Addf(dragoman.Dropped, dragoman.Info, "/message", "field %.60q of a streamed message changed; its last value is collected", field)
}

// reportUncollected reports, once, a field that is not collected.
func (d *streamDecoder) reportUncollected(field string) {
	if d.lost[field] || len(d.lost) > 64 {
		return
	}
	if d.lost == nil {
		d.lost = map[string]bool{}
	}
	d.lost[field] = true
	d.rep.Addf(dragoman.Dropped, dragoman.Info, "", "field %.60q of a stream is not collected", field)
}

// start emits ResponseStart, once, with the first line.
func (d *streamDecoder) start() {
	if d.started {
		return
	}
	d.started = true
	resp := d.resp
	resp.Extra = nil
	d.parts.Send(&dragoman.ResponseStart{Response: resp})
}

// message decodes the part of the message in one line. Within a line, thinking comes before text,
// and text before calls (quirk C38).
func (d *streamDecoder) message(r *jsonwire.Reader) {
	var content, thinking string
	var images []string
	var calls [][]byte
	var seen wirekit.KnownFields
	for key := range r.Object() {
		duplicate := seen.IsRepeated(messageKeys, key)
		d.line.duplicate = duplicate || d.line.duplicate
		switch string(key) {
		case "role":
			r.Skip()
		case "content":
			content = r.String()
		case "thinking":
			thinking = r.String()
		case "images":
			for range r.Array() {
				images = append(images, r.String())
			}
		case "tool_calls":
			for range r.Array() {
				calls = append(calls, r.Raw())
			}
		default:
			if r.Kind() == 'n' {
				r.Skip()
				continue
			}
			if d.fields.Replaced == nil {
				d.fields.Replaced = d.reportReplaced
			}
			raw := r.Raw()
			if !duplicate {
				d.held.Field("/message", key, raw)
			}
			if !d.fields.Add(key, raw, &d.bound) {
				d.reportUncollected("message/" + string(key[:min(len(key), 60)]))
			}
		}
	}
	if r.Err() != nil {
		return
	}
	if n := len(images) + len(calls) + 2; d.parts.Count()+n > stream.MaxParts {
		r.Fail(fmt.Errorf("%w: more than %d parts", dragoman.ErrTooLarge, stream.MaxParts))
		return
	}
	d.addThinking(thinking)
	d.addText(content)
	for _, s := range images {
		d.countStreamed(len(s))
		d.parts.Whole(0, d.header(), readImage(s))
	}
	for _, raw := range calls {
		d.streamCall(raw)
	}
}

// header returns the message header for the first part; nil for later parts.
func (d *streamDecoder) header() *dragoman.Message {
	if d.parts.Count() > 0 {
		return nil
	}
	return &dragoman.Message{Role: dragoman.RoleAssistant, Origin: d.origin}
}

// addThinking appends to the thinking. Thinking after text is a new part.
func (d *streamDecoder) addThinking(text string) {
	if text == "" {
		return
	}
	if d.thinking.Ended() {
		d.thinking = d.parts.Start(0, d.header(), &dragoman.Reasoning{}, &dragoman.Reasoning{})
	}
	d.thinking.Append(text)
}

func (d *streamDecoder) addText(text string) {
	if text == "" {
		return
	}
	d.thinking.End()
	if d.text == nil {
		d.text = d.parts.Start(0, d.header(), &dragoman.Text{}, &dragoman.Text{})
	}
	d.text.Append(text)
}

// streamCall decodes a call, which arrives complete (quirks C7, C32). An exact repeat of an
// earlier call is the same call (quirk B11).
func (d *streamDecoder) streamCall(raw []byte) {
	pos := d.elements
	d.elements++
	at := extra.At("/message").Elem("tool_calls", pos)
	rep, losses := d.rep, new(dragoman.Report)
	d.rep = losses
	part := d.call(bytes.Clone(raw), at, 0, pos)
	d.rep = rep
	if p, ok := part.(*dragoman.ToolCall); ok && d.repeats(p, at) {
		return // its losses were reported with the first one
	}
	rep.Merge("", *losses)
	switch p := part.(type) {
	case *dragoman.Opaque:
		d.countStreamed(len(raw))
		d.thinking.End()
		d.parts.Whole(0, d.header(), p)
	case *dragoman.ToolCall:
		d.bound.Take(len(raw))
		d.makeIDUnique(p, at)
		if d.line.duplicate && p.Problem == nil {
			p.Problem = &dragoman.CallProblem{
				Code: codes.ProblemDuplicateKey, Offset: -1,
				Message: "the line with the call has a duplicate field, so its meaning is ambiguous",
			}
		}
		if !ambiguousCall(p) {
			d.reg.Forbid(p)
		}
		d.thinking.End()
		begin := &dragoman.ToolCall{ID: p.ID, Synthetic: p.Synthetic, Name: p.Name, Namespace: p.Namespace, Payload: p.Payload}
		d.parts.Start(0, d.header(), begin, p).Emit(p.Arguments)
		d.calls = append(d.calls, p)
	}
}

// repeats reports whether a call exactly repeats an earlier one. It adds one loss per repeated
// call.
func (d *streamDecoder) repeats(c *dragoman.ToolCall, at extra.Path) bool {
	first := d.seen[c.ID]
	if first == nil || !sameCall(first, c) {
		return false
	}
	if !d.again[first] {
		if d.again == nil {
			d.again = map[*dragoman.ToolCall]bool{}
		}
		d.again[first] = true
		d.rep.Addf(dragoman.Dropped, dragoman.Info, at.String(), "exact repeat of call %.64q", c.ID)
	}
	return true
}

// makeIDUnique gives a call a new id if an earlier call has the same one.
func (d *streamDecoder) makeIDUnique(c *dragoman.ToolCall, at extra.Path) {
	if d.seen[c.ID] != nil {
		wire := c.ID
		c.ID, c.Synthetic = wirekit.SyntheticID("call_", d.o.Seed+wire, 0, len(d.calls)), true
		d.rep.Addf(dragoman.Renamed, dragoman.Warn, at.String(), "call id %.64q occurs twice; the later call gets the id %q", wire, c.ID)
	}
	d.seen[c.ID] = c
}

// end closes a stream after its terminal line.
func (d *streamDecoder) end() {
	d.Ended = true
	d.start()
	stop := settleStop(d.reg, d.word, true, d.calls)
	d.endParts()
	d.parts.Send(&dragoman.ResponseEnd{Stop: stop, Usage: d.usage, Response: d.resp})
}

// endParts ends the open parts. The last ones carry the unknown fields of the message.
func (d *streamDecoder) endParts() {
	fields := d.fields.Extra(name)
	wirekit.DropCaseVariants(&fields, "", messageKeys)
	d.parts.Finish(fields, d.origin)
	d.parts.EndAll()
	if d.parts.Unfinished() {
		for _, f := range fields.Fields {
			d.reportUncollected("message/" + string(extra.Name(f.Path)))
		}
	}
}

// endFailed closes a failed stream: open parts end with the content that arrived, and none of its
// calls may run.
func (d *streamDecoder) endFailed(failure *dragoman.APIError) {
	d.Ended = true
	d.start()
	settleStop(d.reg, d.word, false, d.calls)
	d.endParts()
	failure.Message = cmp.Or(failure.Message, "the server reported an error without a message")
	d.parts.Send(&dragoman.StreamError{Err: failure, Usage: d.usage})
}
