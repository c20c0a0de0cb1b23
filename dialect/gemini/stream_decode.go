package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
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

// streamDecoder folds chunks into events. The stream has no marker of its end:
// a finish reason is one, but more may follow it, as servers finish every step
// of their own tools. So calls are complete only when the stream is.
type streamDecoder struct {
	wirekit.StreamReading
	partDecoder
	frames frames
	place  wirekit.StreamPlace
	reader jsonwire.Reader
	inner  jsonwire.Reader // reads contents
	calls  jsonwire.Reader // reads calls

	resp       dragoman.Response // id, model, … as far as known
	started    bool
	candidates []*streamed // by index; nil where none was seen
	begun      int         // parts of all candidates
	counters   counters
	blocked    string           // why the prompt was refused
	details    *dragoman.Native // in the words of the server
	none       wirekit.NotAStream
	late       wirekit.Late   // what comes behind the end
	strays     wirekit.Strays // members of the event at hand that nobody collects
	unknown    wirekit.Unknown
	untold     wirekit.Untold
	emit       func(dragoman.Event) error
	fields     []dragoman.Field // members of the candidate at hand

	repeated string          // a known field that the event at hand has twice
	touched  []*streamedCall // by the event at hand

	held stream.Held // the events of the event at hand
	hold func(dragoman.Event) error
	// bound limits what is kept of all events.
	bound stream.Bound
}

// Report implements [dialect.StreamDecoder].
func (d *streamDecoder) Report() dragoman.Report { return *d.rep }

// Feed implements [dialect.StreamDecoder].
func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	d.emit = emit
	err := d.wrap(d.frames.feed(p, d.event))
	d.none.Fed(p)
	if d.Failed == nil {
		d.Failed = err
	}
	return err
}

func (d *streamDecoder) wrap(err error) error {
	if errors.Is(err, sse.ErrTooLong) {
		return d.place.Beyond(name, fmt.Errorf("%w: %w", dragoman.ErrTooLarge, err))
	}
	return err
}

// Close implements [dialect.StreamDecoder].
func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.emit = emit
	if err := d.Drain(func() error { return d.wrap(d.frames.close(d.event)) }); err != nil {
		return err
	}
	if d.Ended {
		return nil
	}
	if d.finished() && d.Failed == nil {
		d.end()
		return d.held.Release(nil, nil, emit)
	}
	cut := d.cut()
	d.breakOff(cut)
	if err := d.held.Release(nil, nil, emit); err != nil {
		return err
	}
	return wirekit.Incomplete(cut)
}

// cut returns the error of a stream without an end.
func (d *streamDecoder) cut() *dragoman.APIError {
	if d.Failed == nil {
		if e := d.none.Failure(Codec{}.DecodeError); e != nil {
			return e
		}
	}
	return d.Cut("an event", "its finish reason")
}

// finished reports whether every candidate that began has its finish reason, or
// the prompt was refused.
func (d *streamDecoder) finished() bool {
	seen := d.blocked != ""
	for _, c := range d.candidates {
		if c == nil {
			continue
		}
		if c.word == "" && d.blocked == "" {
			return false
		}
		seen = true
	}
	return seen
}

func (d *streamDecoder) send(ev dragoman.Event) { _ = d.hold(ev) }

// keep keeps a member of the whole answer that we do not model.
func (d *streamDecoder) keep(prefix string, key, raw []byte) {
	if old, known := extra.Replaces(d.resp.Extra, prefix, key); !known || !bytes.Equal(old, raw) {
		d.held.Field(prefix, key, raw)
	}
	d.bound.Take(extra.AddCopy(&d.resp.Extra, name, prefix, key, raw))
}

// pass counts n bytes of a part that is told at once: who collects the stream
// keeps them, and we do not.
func (d *streamDecoder) pass(n int) {
	if !d.o.DeltasOnly {
		d.bound.Take(n)
	}
}

// room counts a part that begins.
func (d *streamDecoder) room() error {
	if d.begun >= stream.MaxParts {
		return errManyParts
	}
	d.begun++
	return nil
}

// event takes one event.
func (d *streamDecoder) event(ev sse.Event) error {
	ev.Data = bytes.TrimSpace(ev.Data)
	d.place.Enter(ev)
	if ev.HasData {
		d.none.Event()
	}
	if d.Ended { // nothing counts after the end (quirk C12)
		d.late.Event(ev, d.rep)
		if d.o.NoNative || !wirekit.SaysNothing(ev) {
			return nil
		}
		return d.emit(&dragoman.Chunk{Dialect: name, Raw: ev.Raw})
	}
	d.repeated, d.ambiguous, d.touched = "", false, d.touched[:0]
	d.strays.Reset()
	err := d.says(ev)
	if err == nil {
		err = d.bound.Err()
	}
	if d.repeated != "" { // two readers could see two calls
		for _, k := range d.touched {
			k.problem = wirekit.RepeatedMember(d.repeated)
		}
	}
	loss := d.unknown.Members([]byte("candidates"), &d.strays)
	var chunk *dragoman.Chunk
	if torn := d.Closing && len(ev.Data) > 0 && string(ev.Data) != "[DONE]" && !json.Valid(ev.Data); d.o.NoNative || torn {
		d.untold.Lose(loss, d.rep)
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

// carrier returns a delta for the unknown fields of an event that has no other.
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

// once takes the next key of an object, in camel case, and reports whether it
// stands there again.
func (d *streamDecoder) once(seen *members, known []string, camel []byte) (again bool) {
	again = seen.twice(known, camel)
	if again && d.repeated == "" {
		d.repeated = string(camel)
	}
	return again
}

// says takes what an event says.
func (d *streamDecoder) says(ev sse.Event) error {
	switch {
	case !ev.HasData, len(ev.Data) == 0: // keep-alives
		return nil
	case string(ev.Data) == "[DONE]": // of other APIs, but some servers send it
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
	var seen members
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		again := d.once(&seen, responseMembers, camel)
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
			if s := r.Again(d.resp.Model); s != "" {
				d.resp.Model = s
			}
		case "responseId":
			if s := r.Again(d.resp.ID); d.resp.ID == "" {
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
			if again { // in other letters: it is not kept
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
	if failed { // an error inside a 200 (quirk C14)
		d.breakOff(Codec{}.DecodeError(0, nil, bytes.Clone(data)))
	}
	return nil
}

// feedback takes what was said of the prompt.
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

// start announces the response when anything of it shows.
func (d *streamDecoder) start() {
	if d.started {
		return
	}
	d.started = true
	d.send(&dragoman.ResponseStart{Response: d.resp})
}

// peekHead reads what ResponseStart tells from the first chunk: the members
// stand behind the candidates.
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

// candidate takes what a chunk says of one candidate. Its index stands behind
// the content.
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
	var seen members
	for key := range r.Object() {
		camel := jsonwire.Camel(key)
		again := d.once(&seen, candidateMembers, camel)
		switch string(camel) {
		case "content":
			content = r.Raw()
			start = r.Offset() - int64(len(content))
		case "finishReason":
			finish = laterWord(finish, word(r))
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

func (d *streamDecoder) at(index int) *streamed {
	for len(d.candidates) <= index {
		d.candidates = append(d.candidates, nil)
	}
	if d.candidates[index] == nil {
		d.start()
		c := &streamed{d: d, index: index, parts: stream.Parts{Choice: index, DeltasOnly: d.o.DeltasOnly, Bound: &d.bound}}
		c.parts.Use(d.hold)
		d.candidates[index] = c
	}
	return d.candidates[index]
}

// end closes a stream that came to its end.
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

// breakOff closes a stream that failed: open parts end with what arrived, and
// no call of it may run.
func (d *streamDecoder) breakOff(failure *dragoman.APIError) {
	d.Ended = true
	d.start()
	for _, c := range d.candidates {
		if c != nil {
			c.end(false)
		}
	}
	d.send(&dragoman.StreamError{Err: failure, Usage: d.counters.usage()})
}
