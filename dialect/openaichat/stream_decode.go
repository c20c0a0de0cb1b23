package openaichat

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
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

// streamDecoder folds chunks into events. Calls are complete only at the end
// of the stream, because deltas may still follow a finish reason, and because
// a buffer that parses is no proof of an end (quirks C10, C12).
type streamDecoder struct {
	wirekit.StreamReading
	o      dialect.DecodeOptions
	reg    *interop.Registry
	parser sse.Parser
	place  wirekit.StreamPlace
	reader jsonwire.Reader
	ahead  jsonwire.Reader // looks at members that stand behind others
	rep    dragoman.Report

	resp    dragoman.Response // id, model, … as far as known
	started bool
	choices []*choice // by index; nil where none was seen
	usage   dragoman.Usage
	lost    map[string]bool    // members reported as not collected
	refused *dragoman.APIError // the error of a choice of this chunk
	scanned bool               // mixed is known: this chunk was scanned from its first delta on
	mixed   bool               // what follows may have text beside something that comes before or after it
	bound   stream.Bound
	none    wirekit.NotAStream
	late    wirekit.Late // what comes behind the end
	untold  wirekit.Untold
	splice  splice
	mould   mould
	emit    func(dragoman.Event) error

	held stream.Held // the events of the chunk at hand
	hold func(dragoman.Event) error

	twice   bool    // the chunk at hand has a known field twice
	touched []*call // by the chunk at hand
	misread error   // better placed than the reader's
}

// Report implements [dialect.StreamDecoder].
func (d *streamDecoder) Report() dragoman.Report { return d.rep }

// Feed implements [dialect.StreamDecoder].
func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	d.emit = emit
	err := d.wrap(d.parser.Feed(p, d.event))
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
	if err := d.Drain(func() error { return d.wrap(d.parser.Close(d.event)) }); err != nil {
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
	if slices.ContainsFunc(d.choices, func(c *choice) bool { return c != nil && c.finish != "" }) {
		return d.Cut("an event", "every choice had its finish reason")
	}
	return d.Cut("an event", "its finish reason")
}

// finished reports whether every choice that began has its finish reason.
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

// clone copies what outlives the event at hand, within the bound.
func (d *streamDecoder) clone(b []byte) []byte {
	d.bound.Take(len(b))
	return clone(b)
}

// event takes one SSE event.
func (d *streamDecoder) event(ev sse.Event) error {
	ev.Data = bytes.TrimSpace(ev.Data)
	d.place.Enter(ev)
	if ev.HasData {
		d.none.Event()
	}
	if d.Ended { // nothing counts after the end (quirk C12)
		d.late.Event(ev, &d.rep)
		if d.o.NoNative || !wirekit.SaysNothing(ev) {
			return nil
		}
		return d.emit(&dragoman.Chunk{Dialect: name, Raw: ev.Raw})
	}
	d.twice, d.misread = false, nil
	clear(d.touched)
	d.touched = d.touched[:0]
	var chunk *dragoman.Chunk
	if !d.o.NoNative && !d.torn(ev) {
		chunk = &dragoman.Chunk{Dialect: name, Raw: ev.Raw}
	}
	err := d.says(ev)
	if err == nil {
		err = d.bound.Err()
	}
	if d.twice { // two readers could see two calls
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

// says takes what an event says.
func (d *streamDecoder) says(ev sse.Event) error {
	switch {
	case !ev.HasData, len(ev.Data) == 0: // keep-alives
		return nil
	case string(ev.Data) == "[DONE]":
		d.end()
		return nil
	}
	return d.chunk(ev.Data, string(ev.Name) == "error")
}

// torn reports whether an event is half of one.
func (d *streamDecoder) torn(ev sse.Event) bool {
	return d.Closing && len(ev.Data) > 0 && string(ev.Data) != "[DONE]" && !json.Valid(ev.Data)
}

// chunk takes the data of one event; flat says that it is an error without the
// envelope of one.
func (d *streamDecoder) chunk(data []byte, flat bool) error {
	if err := wirekit.CheckValues(data); err != nil {
		return err
	}
	if !flat && d.quick(data) {
		return d.splice.enter(d.mould.id)
	}
	d.mould.ready = false
	kept := d.keptMembers()
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
	var seen wirekit.Members
	id := ""
	for key := range r.Object() {
		switch string(key) {
		case "choices":
			d.again(&seen, 0)
			for i := range r.Array() {
				d.choice(i)
			}
		case "id":
			// The first one counts: it was announced, and some proxies give
			// every chunk another.
			if id = r.Again(cmp.Or(d.splice.id, d.resp.ID)); d.resp.ID == "" {
				d.resp.ID = id
			}
		case "model":
			if s := r.Again(d.resp.Model); s != "" {
				d.resp.Model = s
			}
		case "created":
			if n := r.Int(); n != 0 && d.resp.Created.IsZero() {
				d.resp.Created = unix(n)
			}
		case "object":
			d.again(&seen, 1)
			if r.Kind() == '"' {
				flat = r.Again("chat.completion.chunk") == "error" || flat
			} else {
				r.Skip()
			}
		case "obfuscation":
			r.Skip()
		case "service_tier":
			if r.Kind() == '"' {
				d.resp.ServiceTier = r.Again(d.resp.ServiceTier)
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
			d.again(&seen, 2)
			if r.Kind() == 'n' { // some servers write it always
				r.Skip()
				continue
			}
			failure = &dragoman.APIError{}
			readErrorObject(r, failure)
		default:
			if r.Kind() == 'n' || d.twin(chunkMembers, key) {
				r.Skip()
				continue
			}
			d.field(key, r.Raw())
		}
	}
	if err := r.End(); err != nil {
		return cmp.Or(d.misread, err)
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
	if failure != nil { // an error inside a 200 (quirk C14)
		failure.Class = classOf(failure)
		failure.Native = &dragoman.Native{Format: dragoman.Format(name), JSON: clone(data)}
		d.breakOff(failure)
	} else {
		d.learn(data, id, kept)
	}
	return nil
}

// field takes an unknown field of a chunk. Most servers repeat theirs in every
// chunk.
func (d *streamDecoder) field(key, raw []byte) {
	if old, known := extra.Replaces(d.resp.Extra, "", key); !known || !bytes.Equal(old, raw) {
		d.held.Field("", key, raw)
	}
	d.bound.Take(extra.AddCopy(&d.resp.Extra, name, "", key, raw))
}

// addUsage takes usage wherever a server puts it. Zero placeholders do not
// overwrite (quirk C9).
func (d *streamDecoder) addUsage(u dragoman.Usage) {
	if hasUsage(u) || !hasUsage(d.usage) && u.Input.Known {
		d.usage = u
	}
}

// start announces the response when its first choice shows.
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
	var seen wirekit.Members
	for key := range r.Object() {
		if first && string(key) != "index" {
			// Servers that sort their keys put the delta before its index.
			index, incremental = d.peekChoice(r.From(start))
			peeked = true
		}
		first = false
		switch string(key) {
		case "index":
			d.again(&seen, 0)
			n := r.Int()
			switch {
			case n < -1 || n >= maxChoices:
				r.Fail(fmt.Errorf("choice index %d is out of range", n))
				return
			case n >= 0:
				index = int(n)
			}
		case "message":
			d.again(&seen, 1)
			// The whole so far, on servers that send it beside the delta.
			if !peeked {
				_, incremental = d.peekChoice(r.From(start))
				peeked = true
			}
			if c := at(); c != nil && !incremental {
				c.delta()
			} else {
				r.Skip()
			}
		case "delta":
			d.again(&seen, 2)
			if c := at(); c != nil {
				c.delta()
			} else {
				r.Skip()
			}
		case "finish_reason":
			d.again(&seen, 3)
			word := r.String()                     // after anything else nobody knows what may run
			if c := at(); c != nil && word != "" { // "" is none (quirk C12)
				finishes = true
				c.finished(word)
			}
		case "native_finish_reason":
			d.again(&seen, 4)
			raw := r.Raw()
			word := ""
			if len(raw) > 0 && raw[0] == '"' {
				word = jsonwire.NewReader(raw).String()
			}
			if c := at(); c != nil && word != "" {
				c.route(word, raw)
			}
		case "error": // OpenRouter
			d.again(&seen, 5)
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
				d.lose("logprobs", "logprobs of a stream are not collected")
				d.held.Field(place(), []byte("logprobs"), r.Raw())
			}
		default:
			if d.twin(choiceMembers, key) || r.Kind() == 'n' {
				r.Skip()
				continue
			}
			k := brief(string(key))
			d.lose("choices."+k, "member "+k+" of a streamed choice is not collected")
			d.held.Field(place(), key, r.Raw())
		}
	}
	if c != nil {
		c.opens(finishes)
	}
}

// peekHead reads what ResponseStart tells from the first chunk: the members
// may stand behind the choices.
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

// peekChoice looks for the index of a choice, -1 if it has none in range, and
// whether it has a delta.
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

// replaced counts what is kept more than before, now that next takes the place
// of have.
func (d *streamDecoder) replaced(have, next int) { d.bound.Take(max(0, next-have)) }

// brief is a name that the wire chose, as far as a report tells it.
func brief(name string) string {
	const most = 60
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// lose reports a member that only the chunks themselves keep, once.
func (d *streamDecoder) lose(key, detail string) { d.loseAs(dragoman.Info, key, detail) }

func (d *streamDecoder) loseAs(sev dragoman.Severity, key, detail string) {
	if d.lost[key] || len(d.lost) > wirekit.MaxUntold {
		return
	}
	if d.lost == nil {
		d.lost = map[string]bool{}
	}
	d.lost[key] = true
	d.untold.Lose(&dragoman.Loss{Kind: dragoman.Dropped, Severity: sev, Path: "/choices", Detail: detail}, &d.rep)
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

// end closes a stream that had its terminal marker.
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

// breakOff closes a stream that failed: open parts end with what arrived, and
// no call of it may run.
func (d *streamDecoder) breakOff(failure *dragoman.APIError) {
	d.Ended = true
	d.start()
	for _, c := range d.choices {
		if c != nil {
			c.end(false)
		}
	}
	d.send(&dragoman.StreamError{Err: failure, Usage: d.usage})
}
