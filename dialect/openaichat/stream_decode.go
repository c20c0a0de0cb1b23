package openaichat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/stream"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/interop"
)

// maxCalls bounds the calls of one choice (quirk C4).
const maxCalls = 1024

// NewStreamDecoder implements [dialect.Codec].
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	d := &streamDecoder{o: o, reg: wirekit.DecodeRegistry(c.Limits(), toolCodecs, o)}
	d.parser.Max, d.bound.Max = o.Limit(), o.Limit()
	d.hold = d.held.Hold
	d.held.Dialect, d.held.NoFields = name, o.NoNative // lose reports the fields
	d.resp.Origin = wirekit.Origin(name, o)
	return d
}

// streamDecoder converts chunks to events. Calls are complete only at the end of the stream,
// because deltas may follow a finish reason, and because arguments that parse may still continue
// (quirks C10, C12).
type streamDecoder struct {
	wirekit.StreamReading
	o      dialect.DecodeOptions
	reg    *interop.Registry
	parser sse.Parser
	place  wirekit.StreamPlace
	reader jsonwire.Reader
	ahead  jsonwire.Reader // looks ahead to later fields
	rep    dragoman.Report

	resp        dragoman.Response // id, model, … known so far
	started     bool
	choices     []*choice // by index; nil if not seen
	usage       dragoman.Usage
	uncollected map[string]bool    // fields reported as not collected
	refused     *dragoman.APIError // the error of a choice of this chunk
	scanned     bool               // mixed is known for the current chunk
	mixed       bool               // the rest of the chunk may have text together with reasoning or calls
	bound       stream.Bound
	notSSE      wirekit.NotAStream
	late        wirekit.Late // data after the end
	unwritten   wirekit.UnwrittenChunks
	splice      splice
	template    chunkTemplate
	emit        func(dragoman.Event) error

	held stream.Held // the events of the current chunk
	hold func(dragoman.Event) error

	duplicate  bool    // the current chunk has a duplicate known field
	touched    []*call // by the current chunk
	fieldError error   // has a better position than the error of the reader
}

// Report implements [dialect.StreamDecoder].
func (d *streamDecoder) Report() dragoman.Report { return d.rep }

// Feed implements [dialect.StreamDecoder].
func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	d.emit = emit
	err := d.place.Framing(name, d.parser.Feed(p, d.event))
	d.notSSE.Fed(p)
	if d.Failed == nil {
		d.Failed = err
	}
	return err
}

// Close implements [dialect.StreamDecoder].
func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.emit = emit
	if err := d.Drain(func() error { return d.place.Framing(name, d.parser.Close(d.event)) }); err != nil {
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

// incompleteError returns the error of a stream without an end.
func (d *streamDecoder) incompleteError() *dragoman.APIError {
	if d.Failed == nil {
		if e := d.notSSE.Failure(Codec{}.DecodeError); e != nil {
			return e
		}
	}
	if slices.ContainsFunc(d.choices, func(c *choice) bool { return c != nil && c.finish != "" }) {
		return d.Cut("an event", "every choice had its finish reason")
	}
	return d.Cut("an event", "its finish reason")
}

// finished reports whether every choice that started has its finish reason.
func (d *streamDecoder) finished() bool {
	seen := false
	for _, c := range d.choices {
		if c == nil {
			continue
		}
		if c.finish == "" {
			return false
		}
		seen = true
	}
	return seen
}

func (d *streamDecoder) send(ev dragoman.Event) { _ = d.hold(ev) }

// clone copies data that outlives the current event, and counts it against the bound.
func (d *streamDecoder) clone(b []byte) []byte {
	d.bound.Take(len(b))
	return clone(b)
}

func (d *streamDecoder) event(ev sse.Event) error {
	ev.Data = bytes.TrimSpace(ev.Data)
	d.place.Enter(ev)
	if ev.HasData {
		d.notSSE.Event()
	}
	if d.Ended { // everything after the end is ignored (quirk C12)
		d.late.Event(ev, &d.rep)
		if d.o.NoNative || !wirekit.IsKeepAlive(ev) {
			return nil
		}
		return d.emit(&dragoman.Chunk{Dialect: name, Raw: ev.Raw})
	}
	d.duplicate, d.fieldError = false, nil
	clear(d.touched)
	d.touched = d.touched[:0]
	var chunk *dragoman.Chunk
	if !d.o.NoNative && !d.isTruncated(ev) {
		chunk = &dragoman.Chunk{Dialect: name, Raw: ev.Raw}
	}
	err := d.readData(ev)
	if err == nil {
		err = d.bound.Err()
	}
	if d.duplicate { // readers could see different calls
		for _, k := range d.touched {
			k.unclear = true
		}
	}
	if refused := d.held.Release(chunk, d.carrier, d.emit); refused != nil {
		return refused
	}
	if err != nil {
		return d.place.Error(name, ev, err)
	}
	return nil
}

// carrier returns a delta for the unknown fields of a chunk that has no event.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	for _, c := range slices.Backward(d.choices) {
		if c != nil {
			if ev := c.parts.Carrier(); ev != nil {
				return ev
			}
		}
	}
	return nil
}

func (d *streamDecoder) readData(ev sse.Event) error {
	switch {
	case !ev.HasData, len(ev.Data) == 0: // keep-alives
		return nil
	case string(ev.Data) == "[DONE]":
		d.end()
		return nil
	}
	return d.chunk(ev.Data, string(ev.Name) == "error")
}

// isTruncated reports whether an event is incomplete because the stream was cut.
func (d *streamDecoder) isTruncated(ev sse.Event) bool {
	return d.Closing && len(ev.Data) > 0 && string(ev.Data) != "[DONE]" && !json.Valid(ev.Data)
}

// chunk decodes the data of one event. flat is set if the event is an error without an envelope.
func (d *streamDecoder) chunk(data []byte, flat bool) error {
	if err := wirekit.CheckValues(data); err != nil {
		return err
	}
	if !flat && d.readFast(data) {
		return d.splice.enter(d.template.id)
	}
	d.template.ready = false
	kept := d.storedFields()
	r := &d.reader
	r.Reset(data)
	d.scanned = false
	if r.Kind() != '{' && r.Err() == nil {
		return &jsonwire.Error{Err: errNotObject}
	}
	if !d.started {
		d.peekHead(data)
	}
	var failure *dragoman.APIError
	var seen wirekit.KnownFields
	id := ""
	for key := range r.Object() {
		switch string(key) {
		case "choices":
			d.markSeen(&seen, 0)
			for i := range r.Array() {
				d.choice(i)
			}
		case "id":
			// The first id counts: ResponseStart has it, and some proxies give every chunk
			// another id.
			if id = r.StringLike(cmp.Or(d.splice.id, d.resp.ID)); d.resp.ID == "" {
				d.resp.ID = id
			}
		case "model":
			if s := r.StringLike(d.resp.Model); s != "" {
				d.resp.Model = s
			}
		case "created":
			if n := r.Int(); n != 0 && d.resp.Created.IsZero() {
				d.resp.Created = unix(n)
			}
		case "object":
			d.markSeen(&seen, 1)
			if r.Kind() == '"' {
				flat = r.StringLike("chat.completion.chunk") == "error" || flat
			} else {
				r.Skip()
			}
		case "obfuscation":
			r.Skip()
		case "service_tier":
			if r.Kind() == '"' {
				d.resp.ServiceTier = r.StringLike(d.resp.ServiceTier)
			} else {
				r.Skip()
			}
		case "usage":
			d.addUsage(readUsage(r, &d.rep))
		case "x_groq":
			raw := d.clone(r.Raw())
			d.addUsage(groqUsage(raw, &d.rep))
			d.held.Field("", []byte("x_groq"), raw)
			extra.Add(&d.resp.Extra, name, "", []byte("x_groq"), raw)
		case "error":
			d.markSeen(&seen, 2)
			if r.Kind() == 'n' { // some servers always send it
				r.Skip()
				continue
			}
			failure = &dragoman.APIError{}
			readErrorObject(r, failure)
		default:
			if r.Kind() == 'n' || d.caseVariant(chunkKeys, key) {
				r.Skip()
				continue
			}
			d.field(key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return cmp.Or(d.fieldError, err)
	}
	if err := d.splice.enter(id); err != nil {
		return err
	}
	if d.refused != nil && failure == nil {
		failure, d.refused = d.refused, nil
	}
	if flat && failure == nil {
		failure = &dragoman.APIError{}
		readErrorEnvelope(jsonwire.NewReader(data), failure)
		if failure.Message == "" {
			failure.Message = wirekit.PlainMessage(0, data)
		}
	}
	if failure != nil { // an error in a response with status 200 (quirk C14)
		failure.Class = classOf(failure)
		failure.Native = &dragoman.Native{Format: dragoman.Format(name), JSON: clone(data)}
		d.endFailed(failure)
	} else {
		d.makeTemplate(data, id, kept)
	}
	return nil
}

// field collects an unknown field of a chunk. Most servers repeat it in every chunk.
func (d *streamDecoder) field(key, raw []byte) {
	if old, known := extra.Replaces(d.resp.Extra, "", key); !known || !bytes.Equal(old, raw) {
		d.held.Field("", key, raw)
	}
	d.bound.Take(extra.AddCopy(&d.resp.Extra, name, "", key, raw))
}

// addUsage records usage, wherever a server sends it. Zero placeholders do not overwrite (quirk
// C9).
func (d *streamDecoder) addUsage(u dragoman.Usage) {
	if hasUsage(u) || !hasUsage(d.usage) && u.Input.Known {
		d.usage = u
	}
}

// start emits ResponseStart, once, with the first choice.
func (d *streamDecoder) start() {
	if d.started {
		return
	}
	d.started = true
	d.send(&dragoman.ResponseStart{Response: d.resp})
}

func (d *streamDecoder) choice(pos int) {
	r := &d.reader
	if r.Null() {
		return
	}
	index, first, peeked, incremental, finishes := -1, true, false, false, false
	start := r.Offset()
	var c *choice
	at := func() *choice {
		if c == nil {
			if index < 0 {
				index = pos
			}
			if index >= maxChoices {
				r.Fail(errManyChoices)
				return nil
			}
			c = d.choiceAt(index)
		}
		return c
	}
	place := func() string {
		if index < 0 {
			return choicePath(pos)
		}
		return choicePath(index)
	}
	var seen wirekit.KnownFields
	for key := range r.Object() {
		if first && string(key) != "index" {
			// Servers that sort their keys send the delta before its index.
			index, incremental = d.peekChoice(r.RestFrom(start))
			peeked = true
		}
		first = false
		switch string(key) {
		case "index":
			d.markSeen(&seen, 0)
			n := r.Int()
			switch {
			case n < -1 || n >= maxChoices:
				r.Fail(fmt.Errorf("choice index %d is out of range", n))
				return
			case n >= 0:
				index = int(n)
			}
		case "message":
			d.markSeen(&seen, 1)
			// Some servers send the whole message so far, in addition to the delta.
			if !peeked {
				_, incremental = d.peekChoice(r.RestFrom(start))
				peeked = true
			}
			if c := at(); c != nil && !incremental {
				c.delta()
			} else {
				r.Skip()
			}
		case "delta":
			d.markSeen(&seen, 2)
			if c := at(); c != nil {
				c.delta()
			} else {
				r.Skip()
			}
		case "finish_reason":
			d.markSeen(&seen, 3)
			word := r.String()                     // a value that is not a string is an error: it is unknown what may run
			if c := at(); c != nil && word != "" { // "" means no reason (quirk C12)
				finishes = true
				c.finished(word)
			}
		case "native_finish_reason":
			d.markSeen(&seen, 4)
			raw := r.Raw()
			word := ""
			if len(raw) > 0 && raw[0] == '"' {
				word = jsonwire.NewReader(raw).String()
			}
			if c := at(); c != nil && word != "" {
				c.route(word, raw)
			}
		case "error": // OpenRouter
			d.markSeen(&seen, 5)
			if r.Kind() == 'n' {
				r.Skip()
				continue
			}
			d.refused = &dragoman.APIError{}
			readErrorObject(r, d.refused)
		case "usage": // Moonshot
			d.addUsage(readUsage(r, &d.rep))
		case "logprobs":
			if !r.Null() {
				d.reportUncollected("logprobs", "logprobs of a stream are not collected")
				d.held.Field(place(), []byte("logprobs"), r.Raw())
			}
		default:
			if d.caseVariant(choiceKeys, key) || r.Kind() == 'n' {
				r.Skip()
				continue
			}
			k := shortName(string(key))
			d.reportUncollected("choices."+k, "field "+k+" of a streamed choice is not collected")
			d.held.Field(place(), key, r.Raw())
		}
	}
	if c != nil {
		c.opens(finishes)
	}
}

// peekHead reads the fields for ResponseStart from the first chunk. They may come after the
// choices.
func (d *streamDecoder) peekHead(data []byte) {
	r := &d.ahead
	r.Reset(data)
	for key := range r.Object() {
		switch {
		case string(key) == "id" && r.Kind() == '"':
			d.resp.ID = r.String()
		case string(key) == "model" && r.Kind() == '"':
			d.resp.Model = r.String()
		case string(key) == "created" && r.Kind() == '0':
			d.resp.Created = unix(r.Int())
		default:
			r.Skip()
		}
	}
}

// peekChoice finds the index of a choice, or -1 if it has no valid one, and whether it has a
// delta.
func (d *streamDecoder) peekChoice(ahead []byte) (index int, incremental bool) {
	index = -1
	r := &d.ahead
	r.Reset(ahead)
	for key := range r.Object() {
		switch {
		case string(key) == "index" && r.Kind() == '0':
			if n := r.Int(); n >= 0 && n < maxChoices {
				index = int(n)
			}
		case string(key) == "delta" && r.Kind() == '{':
			incremental = true
			r.Skip()
		default:
			r.Skip()
		}
	}
	return index, incremental
}

// countGrowth counts the growth when a stored value of length have is replaced by one of length
// next.
func (d *streamDecoder) countGrowth(have, next int) { d.bound.Take(max(0, next-have)) }

// shortName shortens a name from the wire for a report.
func shortName(name string) string {
	const most = 60
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// reportUncollected reports, once, a field that is not collected.
func (d *streamDecoder) reportUncollected(key, detail string) {
	d.reportUncollectedAs(dragoman.Info, key, detail)
}

func (d *streamDecoder) reportUncollectedAs(sev dragoman.Severity, key, detail string) {
	if d.uncollected[key] || len(d.uncollected) > wirekit.MaxUnwritten {
		return
	}
	if d.uncollected == nil {
		d.uncollected = map[string]bool{}
	}
	d.uncollected[key] = true
	d.unwritten.Drop(&dragoman.Loss{Kind: dragoman.Dropped, Severity: sev, Path: "/choices", Detail: detail}, &d.rep)
}

func (d *streamDecoder) choiceAt(index int) *choice {
	for len(d.choices) <= index {
		d.choices = append(d.choices, nil)
	}
	if d.choices[index] == nil {
		d.start()
		c := &choice{d: d, index: index, parts: stream.Parts{Choice: index, DeltasOnly: d.o.DeltasOnly, Bound: &d.bound}}
		c.parts.Use(d.hold)
		d.choices[index] = c
	}
	return d.choices[index]
}

// end ends a stream that had its terminal marker.
func (d *streamDecoder) end() {
	d.Ended = true
	d.start()
	var stops []dragoman.Stop
	for _, c := range d.choices {
		stop := dragoman.Stop{Reason: dragoman.StopEnd}
		if c != nil {
			stop = c.end(true)
		}
		stops = append(stops, stop)
	}
	ev := &dragoman.ResponseEnd{Stop: dragoman.Stop{Reason: dragoman.StopEnd}, Usage: d.usage, Response: d.resp}
	if len(stops) > 0 {
		ev.Stop = stops[0]
	}
	if len(stops) > 1 {
		ev.Stops = stops[1:]
	}
	d.send(ev)
}

// endFailed ends a failed stream: open parts end with the content that arrived, and none of its
// calls may run.
func (d *streamDecoder) endFailed(failure *dragoman.APIError) {
	d.Ended = true
	d.start()
	for _, c := range d.choices {
		if c != nil {
			c.end(false)
		}
	}
	d.send(&dragoman.StreamError{Err: failure, Usage: d.usage})
}
