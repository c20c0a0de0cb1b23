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
	look    jsonwire.Reader // looks at parts of the event at hand
	anew    bool            // it was reported that an event is not passed on
	renamed bool            // there was a call that clients know by another name
	held    stream.Held     // what the event at hand means
	bound   stream.Bound
	ends    wirekit.Look    // at the calls, where they end
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
	var loss *dragoman.Loss
	if says && failed == nil && !d.failure {
		loss = d.unsaid()
	}
	unread := failed != nil
	doubtful := says && !unread && !d.o.NoNative && d.doubtful(ev.Name)
	if says && !unread {
		if failed = d.frame(ev.Data); failed == nil {
			failed = d.bound.Err()
		}
	}
	var chunk *dragoman.Chunk
	switch {
	case d.o.NoNative:
		d.untold.Lose(loss, d.rep)
	case unread, doubtful, says && d.anewFrom(false):
		chunk = &dragoman.Chunk{Loss: loss}
	default:
		chunk = &dragoman.Chunk{Dialect: name, Raw: ev.Raw, Loss: loss}
	}
	if err := d.held.Release(chunk, emit); err != nil {
		return err
	}
	if failed != nil {
		return d.place.Error(name, ev, failed)
	}
	return nil
}

// unsaid is what of the event at hand only its bytes say (quirk J7); nil for
// nothing.
func (d *streamDecoder) unsaid() *dragoman.Loss {
	if !knownEvent(d.typ) {
		return d.unknown.Of(d.typ)
	}
	return d.unknown.Members(d.typ, &d.strays)
}

// doubtful reports whether the event at hand, which came under a name, must not
// be passed on.
func (d *streamDecoder) doubtful(name []byte) bool {
	return d.anewFrom(d.readsTwoWays() || misnamed(name, d.typ))
}

// anewFrom reports whether the event at hand is written anew: because it is
// doubtful, or since a call was renamed.
func (d *streamDecoder) anewFrom(doubtful bool) bool {
	if (doubtful || d.renamed) && !d.anew {
		d.anew = true
		wirekit.ReportAnew(d.rep, doubtful)
	}
	return doubtful || d.renamed
}

// misnamed reports whether an event is called otherwise than its type: some
// clients go by the one, some by the other.
func misnamed(name, typ []byte) bool {
	return len(name) > 0 && len(typ) > 0 && !bytes.Equal(name, typ) && string(name) != "message"
}

// readsTwoWays reports whether a client could see another call, or another
// reason to run one, in the event at hand than we do. Its bytes are not passed
// on then: it is written anew from what we read.
func (d *streamDecoder) readsTwoWays() bool {
	if d.twice != "" {
		return true
	}
	repeats := func(raw []byte) bool {
		_, repeated := typeAndRepeat(jsonwire.Value{Raw: raw})
		return repeated != ""
	}
	switch string(d.typ) {
	case "content_block_start":
		if wirekit.Doubled(&d.look, d.opening, blockMembers) {
			return true
		}
		opening := jsonwire.Value{Raw: d.opening}
		typ, repeated := typeAndRepeat(opening)
		if typ != typeCall {
			return false
		}
		quiet := d.quiet()
		quiet.call(opening, repeated, extra.At(""))
		return quiet.ambiguous
	case "content_block_delta":
		// Who goes by the index adds it to a call that was closed, and who joins
		// texts joins none.
		return (d.open[d.index] == nil || d.delta.whole) && string(d.kind) == "input_json_delta"
	case "message_start":
		return repeats(d.message) || wirekit.Doubled(&d.look, d.message, answerMembers) || d.bringsDoubt()
	case "message_delta":
		return repeats(d.change) || wirekit.Doubled(&d.look, d.change, changeMembers) || d.endsDoubtfully()
	case "message_stop":
		return d.runsUnnoticed()
	default:
		return false
	}
}

// bringsDoubt reports whether a message_start brings a block along that two
// readers could take for two.
func (d *streamDecoder) bringsDoubt() bool {
	r := &d.look
	if len(d.message) == 0 {
		return false
	}
	if r.Reset(d.message); r.Kind() != '{' {
		return false
	}
	var content []byte
	for key := range r.Object() {
		if string(key) == "content" {
			content = r.Raw()
		} else {
			r.Skip()
		}
	}
	if len(content) <= len("[]") {
		return false
	}
	quiet := d.quiet()
	quiet.content(jsonwire.Value{Raw: content})
	return quiet.ambiguous
}

// runsUnnoticed reports whether a client would run a call that must not, because
// nothing in the bytes it has tells it: their end is not passed on to it.
func (d *streamDecoder) runsUnnoticed() bool {
	return !d.answer.sticks() && d.ends.Amiss(func() bool {
		return slices.ContainsFunc(d.calls, (*streamBlock).Unnoticed)
	})
}

// endsDoubtfully reports whether the message_delta at hand takes back the word
// that nothing runs, or makes a client run a call that must not. One that says no
// word does neither.
func (d *streamDecoder) endsDoubtfully() bool {
	r := &d.look
	if len(d.change) == 0 {
		return false
	}
	if r.Reset(d.change); r.Kind() != '{' {
		return false
	}
	word := ""
	for key := range r.Object() {
		if string(key) == "stop_reason" && r.Kind() == '"' {
			word = r.String()
		} else {
			r.Skip()
		}
	}
	if d.answer.sticks() {
		return word != "" && word != d.answer.word
	}
	return word != "" && d.runsUnnoticed()
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
