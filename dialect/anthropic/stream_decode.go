package anthropic

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/extra"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
	"github.com/dragoman-go/dragoman/internal/sse"
	"github.com/dragoman-go/dragoman/internal/stream"
	"github.com/dragoman-go/dragoman/internal/wirekit"
)

// NewStreamDecoder implements [dialect.Codec].
//
// The end of a call is held back until message_stop: only then is it known
// that the calls of this response may run (quirks C13, C34).
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	d := &streamDecoder{blockDecoder: newBlockDecoder(c, o)}
	d.answer = answer{decoder: &d.blockDecoder, keep: wirekit.Keeper{Bound: &d.bound}}
	d.answer.resp.Origin = d.origin
	d.bound.Max = o.Limit()
	d.parts.DeltasOnly, d.parts.Bound = o.DeltasOnly, &d.bound
	d.sse.Max = o.Limit()
	d.held.Dialect, d.held.NoFields, d.held.Rep = name, o.NoNative, d.rep
	return d
}

type streamDecoder struct {
	blockDecoder
	wireEvent // the one at hand
	sse       sse.Parser
	parts     stream.Parts
	answer    answer

	open    map[int64]*streamBlock // by index of the wire
	calls   []*streamBlock         // in order of start, until they are settled
	ids     map[string]bool        // of calls that were started
	blocks  int                    // blocks seen
	started bool
	named   bool // message_start was seen
	done    bool // a terminal event was seen
	failed  error
	none    wirekit.NotAStream
	place   wirekit.StreamPlace
	held    stream.Held // the events of the wire event at hand
	bound   stream.Bound
	unknown wirekit.Unknown // events
	untold  wirekit.Untold
	late    wirekit.Late
}

func (d *streamDecoder) Report() dragoman.Report { return *d.rep }

func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	if d.failed != nil {
		return d.failed
	}
	d.parts.Use(d.held.Hold)
	d.fail(d.sse.Feed(p, func(ev sse.Event) error { return d.event(ev, emit) }))
	d.none.Fed(p)
	return d.failed
}

// clone copies what outlives the event at hand, within the bound.
func (d *streamDecoder) clone(b []byte) []byte {
	d.bound.Take(len(b))
	return bytes.Clone(b)
}

// fail makes err the reason why the stream cannot be read on.
func (d *streamDecoder) fail(err error) {
	if err == nil || d.failed != nil {
		return
	}
	if errors.Is(err, sse.ErrTooLong) {
		err = d.place.Beyond(name, fmt.Errorf("%w: %w", dragoman.ErrTooLarge, err))
	}
	d.failed = err
}

func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.parts.Use(d.held.Hold)
	broken := d.failed
	if broken == nil {
		// A last event without its blank line still counts (quirk C18).
		d.fail(d.sse.Close(func(ev sse.Event) error { return d.event(ev, emit) }))
		broken = d.failed
	}
	if d.done {
		return broken
	}
	d.parts.Use(emit)
	d.failed = dragoman.ErrIncompleteStream
	d.start()
	d.settle(false)
	cut := d.cut(broken)
	d.send(&dragoman.StreamError{Err: cut, Usage: d.counted()})
	d.done = true
	if e := d.parts.Err(); e != nil {
		return e
	}
	return wirekit.Incomplete(cut)
}

// cut is the error of a stream without an end. It says what is known of why.
func (d *streamDecoder) cut(broken error) *dragoman.APIError {
	err := fmt.Errorf("%s stream: %w", name, dragoman.ErrIncompleteStream)
	if broken != nil {
		err = fmt.Errorf("%w: %w", dragoman.ErrIncompleteStream, broken) // which names the dialect
	} else if e := d.none.Failure(Codec{}.DecodeError); e != nil {
		return e
	}
	return &dragoman.APIError{Class: dragoman.ErrorServer, Message: err.Error(), Err: err}
}

// send emits an event that is no part's.
func (d *streamDecoder) send(ev dragoman.Event) { d.parts.Send(ev) }

// event takes one event of the wire. Nothing follows the terminal one: what
// comes behind it is not passed on either.
func (d *streamDecoder) event(ev sse.Event, emit func(dragoman.Event) error) error {
	ev.Data = bytes.TrimSpace(ev.Data)
	d.place.Enter(ev)
	if ev.HasData {
		d.none.Event()
	}
	if d.done {
		d.late.Event(ev, d.rep)
		return nil
	}
	says := len(ev.Data) > 0 && string(ev.Data) != "[DONE]"
	var failed error
	if says {
		failed = d.read(ev.Data, ev.Name)
	}
	var chunk *dragoman.Chunk
	if !d.o.NoNative {
		chunk = &dragoman.Chunk{Dialect: name, Raw: ev.Raw}
	}
	if says && failed == nil {
		d.unmodelled(chunk, ev.Name)
		if failed = d.frame(ev.Data); failed == nil {
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

// unmodelled takes what the event at hand says that has no canonical form (quirk
// J7): its unknown fields, or the whole of an unknown event. A nil chunk leaves
// both out, which is reported. An event whose name or fields a client could take
// for those of a known event is not passed on.
func (d *streamDecoder) unmodelled(chunk *dragoman.Chunk, event []byte) {
	var loss *dragoman.Loss
	switch {
	case d.failure:
	case !knownEvent(d.typ), string(d.typ) == "ping":
		if loss = d.unknown.Of(d.typ); chunk != nil {
			chunk.Opaque = d.twice == "" && (len(event) == 0 || bytes.Equal(event, d.typ))
		}
	default:
		loss = d.unknown.Members(d.typ, &d.strays)
		for _, f := range d.unread {
			d.held.Field(f.place, []byte(f.name), f.raw)
		}
	}
	if chunk == nil {
		d.untold.Lose(loss, d.rep)
	} else {
		chunk.Loss = loss
	}
}

// carrier returns a delta for the unknown fields of a delta that has no event.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	if b := d.open[d.index]; string(d.typ) == "content_block_delta" && b != nil && b.Part != nil {
		return b.Part.Carrier()
	}
	return nil
}

// frame acts on the event that was read.
func (d *streamDecoder) frame(data []byte) error {
	if d.failure {
		d.error(data)
		return nil
	}
	switch string(d.typ) {
	case "message_start":
		return d.messageStart(d.message)
	case "content_block_start":
		return d.blockStart(d.index, d.opening)
	case "content_block_delta":
		if d.hasDelta {
			d.blockDelta(d.index)
		}
	case "content_block_stop":
		d.blockStop(d.index)
	case "message_delta":
		return d.messageDelta(d.change, d.usage, d.rest)
	case "message_stop":
		d.messageStop()
	}
	return nil
}

// start emits the first event, also for a stream that lacks message_start.
func (d *streamDecoder) start() {
	if d.started {
		return
	}
	d.started = true
	resp := d.answer.resp
	resp.Extra, resp.Usage = clone(resp.Extra), d.counted()
	d.send(&dragoman.ResponseStart{Response: resp})
}

// counted is the usage that was told so far.
func (d *streamDecoder) counted() dragoman.Usage {
	usage := d.answer.counters.usage()
	usage.Extra = clone(usage.Extra)
	return usage
}

// clone copies extras that go on changing.
func clone(e *dragoman.Extra) *dragoman.Extra {
	if e == nil {
		return nil
	}
	return &dragoman.Extra{Dialect: e.Dialect, Fields: slices.Clone(e.Fields)}
}

var errSpliced = errors.New("a second message starts inside the first: two answers were spliced together")

func (d *streamDecoder) messageStart(raw []byte) error {
	if raw == nil {
		d.start()
		return nil
	}
	r := jsonwire.NewReader(raw)
	if d.named {
		// The same message again is a gateway's stutter; another one would be
		// merged into the first (quirk C37).
		quiet := d.quiet()
		second := answer{decoder: &quiet}
		second.read(r)
		if second.resp.ID != d.answer.resp.ID {
			return errSpliced
		}
		return nil
	}
	d.named = true
	content := d.answer.read(r)
	if err := r.Err(); err != nil {
		return placeAt("/message", d.messageAt, err)
	}
	d.start()
	return d.startContent(content.Raw)
}

func (d *streamDecoder) messageDelta(change, usage []byte, rest []member) error {
	d.start()
	a := &d.answer
	if change != nil {
		r := jsonwire.NewReader(change)
		for key := range r.Object() {
			switch k := string(key); k {
			case "stop_reason", "stop_sequence", "stop_details":
				a.stop(r, k)
			default:
				d.remember(key, r.Raw())
			}
		}
		if err := r.Err(); err != nil {
			return placeAt("/delta", d.changeAt, err)
		}
	}
	for _, m := range rest {
		d.remember([]byte(m.name), m.raw)
	}
	if usage != nil {
		r := jsonwire.NewReader(usage)
		a.counters.read(r, a.keep, a.decoder.rep)
		a.resp.ServiceTier = a.counters.tier
		if err := r.Err(); err != nil {
			return placeAt("/usage", d.usageAt, err)
		}
	}
	return nil
}

// remember keeps a member of the response that is not modelled. Null erases
// nothing; after many members it is not worth a search through them.
func (d *streamDecoder) remember(key, raw []byte) {
	switch string(key) {
	case "id", "type", "role", "model", "content", "usage", "delta":
		return // modelled elsewhere; here they would be said twice
	}
	if wirekit.Folds(answerMembers, key) {
		return // a reader that ignores case would take it for another
	}
	if string(raw) == "null" {
		if e := d.answer.resp.Extra; e != nil && len(e.Fields) >= maxMembers {
			return
		}
		if _, known := extra.Get(d.answer.resp.Extra, name, "/"+extra.Escape(string(key))); known {
			return
		}
	}
	d.answer.keep.Member(&d.answer.resp.Extra, name, "", key, raw)
}

func (d *streamDecoder) messageStop() {
	d.start()
	stop := d.settle(true)
	resp := d.answer.resp
	resp.Extra = clone(resp.Extra)
	d.send(&dragoman.ResponseEnd{Stop: stop, Usage: d.counted(), Response: resp})
	d.done = true
}

// error ends the stream with an error that the server told (quirk C14).
func (d *streamDecoder) error(data []byte) {
	d.start()
	d.settle(false)
	d.send(&dragoman.StreamError{Err: Codec{}.DecodeError(0, nil, bytes.Clone(data)), Usage: d.counted()})
	d.done = true
}
