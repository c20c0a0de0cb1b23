package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamDecoder implements [dialect.Codec].
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	d := &streamDecoder{partDecoder: newPartDecoder(c, o)}
	d.frames.max, d.bound.Max = o.Limit(), o.Limit()
	d.counters.bound = &d.bound
	d.hold = d.held.Hold
	d.held.Dialect, d.held.NoFields, d.held.Rep = name, o.NoNative, d.rep
	d.resp.Origin = d.origin
	return d
}

// streamDecoder converts chunks to events. The stream has no end marker. A
// finish reason is one only if nothing follows it, and servers send one after
// every step of their own tools. So calls are complete only at the end of the
// stream.
type streamDecoder struct {
	wirekit.StreamReading
	partDecoder
	frames frames
	place  wirekit.StreamPlace
	reader jsonwire.Reader
	inner  jsonwire.Reader // reads contents
	calls  jsonwire.Reader // reads calls

	resp          dragoman.Response // id, model, … if already known
	started       bool
	candidates    []*streamCandidate // by index; nil if not seen
	partCount     int                // number of parts of all candidates
	counters      counters
	blocked       string           // why the prompt was blocked
	details       *dragoman.Native // the prompt feedback
	notStream     wirekit.NotAStream
	late          wirekit.Late        // events after the end
	unknownFields wirekit.UnknownKeys // unknown fields of the current event that no part stores
	unknown       wirekit.Unknown
	pendingLosses wirekit.UnwrittenChunks
	emit          func(dragoman.Event) error
	fields        []dragoman.Field // unknown fields of the current candidate

	repeated string          // a known field that occurs twice in the current event
	touched  []*streamedCall // calls that the current event changed

	held stream.Held // output events of the current event
	hold func(dragoman.Event) error
	// bound limits the bytes stored for the whole stream.
	bound stream.Bound
}

// Report implements [dialect.StreamDecoder].
func (d *streamDecoder) Report() dragoman.Report { return *d.rep }

// Feed implements [dialect.StreamDecoder].
func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	d.emit = emit
	err := d.place.Framing(name, d.frames.feed(p, d.event))
	d.notStream.Fed(p)
	if d.Failed == nil {
		d.Failed = err
	}
	return err
}

// Close implements [dialect.StreamDecoder].
func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.emit = emit
	if err := d.Drain(func() error { return d.place.Framing(name, d.frames.close(d.event)) }); err != nil {
		return err
	}
	if d.Ended {
		return nil
	}
	if d.finished() && d.Failed == nil {
		d.end()
		return d.held.Release(nil, nil, emit)
	}
	cut := d.incompleteError()
	d.endFailed(cut)
	if err := d.held.Release(nil, nil, emit); err != nil {
		return err
	}
	return wirekit.Incomplete(cut)
}

// incompleteError returns the error for a stream without an end.
func (d *streamDecoder) incompleteError() *dragoman.APIError {
	if d.Failed == nil {
		if e := d.notStream.Failure(Codec{}.DecodeError); e != nil {
			return e
		}
	}
	return d.Cut("an event", "its finish reason")
}

// finished reports whether every candidate has its finish reason, or the prompt
// was blocked.
func (d *streamDecoder) finished() bool {
	seen := d.blocked != ""
	for _, c := range d.candidates {
		if c == nil {
			continue
		}
		if c.finishReason == "" && d.blocked == "" {
			return false
		}
		seen = true
	}
	return seen
}

func (d *streamDecoder) send(ev dragoman.Event) { _ = d.hold(ev) }

// keep stores an unknown field of the response.
func (d *streamDecoder) keep(prefix string, key, raw []byte) {
	if old, known := extra.Replaces(d.resp.Extra, prefix, key); !known || !bytes.Equal(old, raw) {
		d.held.Field(prefix, key, raw)
	}
	d.bound.Take(extra.AddCopy(&d.resp.Extra, name, prefix, key, raw))
}

// charge charges n bytes of a part that is emitted at once. The decoder does not
// store them, but a collector of the stream does.
func (d *streamDecoder) charge(n int) {
	if !d.o.DeltasOnly {
		d.bound.Take(n)
	}
}

// addPart counts a new part.
func (d *streamDecoder) addPart() error {
	if d.partCount >= stream.MaxParts {
		return errManyParts
	}
	d.partCount++
	return nil
}

func (d *streamDecoder) event(ev sse.Event) error {
	ev.Data = bytes.TrimSpace(ev.Data)
	d.place.Enter(ev)
	if ev.HasData {
		d.notStream.Event()
	}
	if d.Ended { // nothing counts after the end (quirk C12)
		d.late.Event(ev, d.rep)
		if d.o.NoNative || !wirekit.IsKeepAlive(ev) {
			return nil
		}
		return d.emit(&dragoman.Chunk{Dialect: name, Raw: ev.Raw})
	}
	d.repeated, d.ambiguous, d.touched = "", false, d.touched[:0]
	d.unknownFields.Reset()
	err := d.decode(ev)
	if err == nil {
		err = d.bound.Err()
	}
	if d.repeated != "" { // two readers could see different calls
		for _, k := range d.touched {
			k.problem = wirekit.RepeatedField(d.repeated)
		}
	}
	loss := d.unknown.Fields([]byte("candidates"), &d.unknownFields)
	var chunk *dragoman.Chunk
	if torn := d.Closing && len(ev.Data) > 0 && string(ev.Data) != "[DONE]" && !json.Valid(ev.Data); d.o.NoNative || torn {
		d.pendingLosses.Drop(loss, d.rep)
	} else {
		chunk = &dragoman.Chunk{Dialect: name, Raw: ev.Raw, Loss: loss}
	}
	if refused := d.held.Release(chunk, d.carrier, d.emit); refused != nil {
		return refused
	}
	if err != nil {
		return d.place.Error(name, ev, err)
	}
	return nil
}

// carrier returns a delta for the unknown fields of an event that emits nothing
// else.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	for _, c := range slices.Backward(d.candidates) {
		if c != nil {
			if ev := c.parts.Carrier(); ev != nil {
				return ev
			}
		}
	}
	return nil
}

// checkDuplicate records the next key of an object, in camel case. It reports whether the
// key is a duplicate.
func (d *streamDecoder) checkDuplicate(seen *seenFields, known []string, camel []byte) (again bool) {
	again = seen.duplicate(known, camel)
	if again && d.repeated == "" {
		d.repeated = string(camel)
	}
	return again
}

// decode decodes the data of an event.
func (d *streamDecoder) decode(ev sse.Event) error {
	switch {
	case !ev.HasData, len(ev.Data) == 0: // keep-alives
		return nil
	case string(ev.Data) == "[DONE]": // from other APIs; some servers send it
		if d.finished() {
			d.end()
		}
		return nil
	}
	if err := wirekit.CheckValues(ev.Data); err != nil {
		return err
	}
	return d.chunk(ev.Data)
}

func (d *streamDecoder) chunk(data []byte) error {
	r := &d.reader
	r.Reset(data)
	if r.Kind() != '{' && r.Err() == nil {
		return &jsonwire.Error{Err: wirekit.ErrNotObject}
	}
	if !d.started {
		d.peekHead(data)
	}
	failed := false
	var wrong error
	var seen seenFields
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		again := d.checkDuplicate(&seen, responseFields, camel)
		switch string(camel) {
		case "candidates":
			for i := range r.Array() {
				if err := d.candidate(i); err != nil && wrong == nil {
					wrong = err
				}
			}
		case "usageMetadata":
			d.counters.read(r, d.rep)
		case "modelVersion":
			if s := r.StringLike(d.resp.Model); s != "" {
				d.resp.Model = s
			}
		case "responseId":
			if s := r.StringLike(d.resp.ID); d.resp.ID == "" {
				d.resp.ID = s
			}
		case "createTime":
			raw := r.Raw()
			if d.resp.Created.IsZero() {
				d.resp.Created = timeOf(raw)
			}
			if d.resp.Created.IsZero() {
				d.keep("", key, raw)
			}
		case "promptFeedback":
			d.feedback(r.Raw())
		case "error":
			failed = r.Kind() != 'n' || failed
			r.Skip()
		default:
			if again { // another letter case: not stored
				r.Skip()
				continue
			}
			d.keep("", key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return err
	}
	if wrong != nil {
		return wrong
	}
	if failed { // an error in a response with status 200 (quirk C14)
		d.endFailed(Codec{}.DecodeError(0, nil, bytes.Clone(data)))
	}
	return nil
}

// feedback decodes the prompt feedback.
func (d *streamDecoder) feedback(raw []byte) {
	reason := blockReason(raw)
	if reason == "" {
		d.keep("", []byte("promptFeedback"), raw)
		return
	}
	d.start()
	d.bound.Take(len(raw))
	if d.details != nil {
		d.bound.Take(-len(d.details.JSON))
	}
	d.blocked, d.details = reason, &dragoman.Native{Format: formatFeedback, JSON: bytes.Clone(raw)}
}

// start emits ResponseStart once.
func (d *streamDecoder) start() {
	if d.started {
		return
	}
	d.started = true
	d.send(&dragoman.ResponseStart{Response: d.resp})
}

// peekHead reads the fields of ResponseStart from the first chunk, because they
// follow the candidates.
func (d *streamDecoder) peekHead(data []byte) {
	r := &d.inner
	r.Reset(data)
	for key := range r.Object() {
		switch camel := string(jsonwire.Camel(key)); {
		case camel == "responseId" && r.Kind() == '"' && d.resp.ID == "":
			d.resp.ID = r.String()
		case camel == "modelVersion" && r.Kind() == '"':
			d.resp.Model = r.String()
		case camel == "createTime" && r.Kind() == '"':
			d.resp.Created = timeOf(r.Raw())
		default:
			r.Skip()
		}
	}
}

// candidate decodes one candidate of a chunk. Its index follows its content.
func (d *streamDecoder) candidate(pos int) error {
	r := &d.reader
	if r.Null() {
		return nil
	}
	index := int64(pos)
	var content []byte
	var start int64
	finish := ""
	d.fields = d.fields[:0]
	var seen seenFields
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		again := d.checkDuplicate(&seen, candidateFields, camel)
		switch string(camel) {
		case "content":
			content = r.Raw()
			start = r.Offset() - int64(len(content))
		case "finishReason":
			finish = mergeFinishReasons(finish, enumName(r))
		case "index":
			if r.Kind() == 'n' {
				r.Skip()
				continue
			}
			index = r.Int()
		default:
			if again {
				r.Skip()
				continue
			}
			d.fields = append(d.fields, dragoman.Field{Path: string(key), Value: r.Raw()})
		}
	}
	if err := r.Err(); err != nil {
		return err
	}
	if index < 0 || index >= maxCandidates {
		return fmt.Errorf("candidate index %d is out of range", index)
	}
	c := d.at(int(index))
	prefix := candidatePath(c.index)
	for _, f := range d.fields {
		d.keep(prefix, []byte(f.Path), f.Value)
	}
	var err error
	if content != nil {
		err = c.content(content)
	}
	if finish != "" {
		c.finish(finish)
	}
	if err != nil {
		return jsonwire.PlaceAt(extra.Elem("/candidates", pos).String()+"/content", start, err)
	}
	return nil
}

func (d *streamDecoder) at(index int) *streamCandidate {
	for len(d.candidates) <= index {
		d.candidates = append(d.candidates, nil)
	}
	if d.candidates[index] == nil {
		d.start()
		c := &streamCandidate{d: d, index: index, parts: stream.Parts{Choice: index, DeltasOnly: d.o.DeltasOnly, Bound: &d.bound}}
		c.parts.Use(d.hold)
		d.candidates[index] = c
	}
	return d.candidates[index]
}

// end finishes a stream that is complete.
func (d *streamDecoder) end() {
	d.Ended = true
	d.start()
	stops := []dragoman.Stop{{Reason: dragoman.StopEnd}}
	if len(d.candidates) > 1 {
		stops = slices.Grow(stops, len(d.candidates))
	}
	for i, c := range d.candidates {
		stop := dragoman.Stop{Reason: dragoman.StopEnd}
		if c != nil {
			stop = c.end(true)
		}
		if i == 0 {
			stops[0] = stop
		} else {
			stops = append(stops, stop)
		}
	}
	if d.blocked != "" {
		stops[0].Reason, stops[0].Details = dragoman.StopContentFilter, d.details
		if stops[0].Native == "" {
			stops[0].Native = d.blocked
		}
	}
	d.resp.ServiceTier = d.counters.tier
	ev := &dragoman.ResponseEnd{Stop: stops[0], Usage: d.counters.usage(), Response: d.resp}
	if len(stops) > 1 {
		ev.Stops = stops[1:]
	}
	d.send(ev)
}

// endFailed finishes a stream that failed. Open parts end with what arrived, and
// no call may run.
func (d *streamDecoder) endFailed(failure *dragoman.APIError) {
	d.Ended = true
	d.start()
	for _, c := range d.candidates {
		if c != nil {
			c.end(false)
		}
	}
	d.send(&dragoman.StreamError{Err: failure, Usage: d.counters.usage()})
}
