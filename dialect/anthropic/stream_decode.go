package anthropic

import (
	"bytes"
	"errors"
	"fmt"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/blockwire"
	"github.com/dragoman-go/dragoman/internal/codec/extra"
	"github.com/dragoman-go/dragoman/internal/codec/wirekit"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// NewStreamDecoder implements [dialect.Codec].
//
// The end of a call is held back until message_stop: only then is it known
// that the calls of this response may run (quirks C13, C34).
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	blocks := blockDecoder{blockwire.NewDecoder(format, o)}
	d := &streamDecoder{answer: newAnswer(blocks), blocks: blocks}
	d.Init(blocks.Decoder, &d.answer.Answer, d)
	d.sse.Max = o.Limit()
	return d
}

type streamDecoder struct {
	blockwire.StreamDecoder[*streamBlock]
	wireEvent // the one at hand
	sse       sse.Parser
	blocks    blockDecoder
	answer    answer

	named bool // message_start was seen
	place wirekit.StreamPlace
	late  wirekit.Late
}

func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	if d.Failed != nil {
		return d.Failed
	}
	d.Parts.Use(d.Held.Hold)
	d.fail(d.sse.Feed(p, func(ev sse.Event) error { return d.event(ev, emit) }))
	d.None.Fed(p)
	return d.Failed
}

// fail makes err the reason why the stream cannot be read on.
func (d *streamDecoder) fail(err error) {
	if err == nil || d.Failed != nil {
		return
	}
	if errors.Is(err, sse.ErrTooLong) {
		err = d.place.Beyond(name, fmt.Errorf("%w: %w", dragoman.ErrTooLarge, err))
	}
	d.Failed = err
}

func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.Parts.Use(d.Held.Hold)
	broken := d.Failed
	if broken == nil {
		// A last event without its blank line still counts (quirk C18).
		d.fail(d.sse.Close(func(ev sse.Event) error { return d.event(ev, emit) }))
		broken = d.Failed
	}
	if d.Done {
		return broken
	}
	d.Parts.Use(emit)
	return d.Cut(broken)
}

// event takes one event of the wire. Nothing follows the terminal one: what
// comes behind it is not passed on either.
func (d *streamDecoder) event(ev sse.Event, emit func(dragoman.Event) error) error {
	ev.Data = bytes.TrimSpace(ev.Data)
	d.place.Enter(ev)
	if ev.HasData {
		d.None.Event()
	}
	if d.Done {
		d.late.Event(ev, d.Rep)
		return nil
	}
	says := len(ev.Data) > 0 && string(ev.Data) != "[DONE]"
	var failed error
	if says {
		failed = d.read(ev.Data, ev.Name)
	}
	chunk := d.Chunk(ev.Raw)
	if says && failed == nil {
		d.unmodelled(chunk, ev.Name)
		if failed = d.frame(ev.Data); failed == nil {
			failed = d.Bound.Err()
		}
	}
	if err := d.Held.Release(chunk, d.carrier, emit); err != nil {
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
	var fields []blockwire.UnknownField
	switch {
	case d.failure:
	case !knownEvent(d.typ), string(d.typ) == "ping":
		if loss = d.UnknownEvent(d.typ); chunk != nil {
			chunk.Opaque = d.twice == "" && (len(event) == 0 || bytes.Equal(event, d.typ))
		}
	default:
		loss, fields = d.UnknownFields(d.typ, &d.strays), d.unread
	}
	d.Unmodelled(chunk, loss, fields)
}

// carrier returns a delta for the unknown fields of a delta that has no event.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	if b := d.Open[d.index]; string(d.typ) == "content_block_delta" && b != nil && b.Part != nil {
		return b.Part.Carrier()
	}
	return nil
}

// frame acts on the event that was read.
func (d *streamDecoder) frame(data []byte) error {
	if d.failure { // the server ends the stream with an error (quirk C14)
		d.Break(d.DecodeError(0, nil, bytes.Clone(data)))
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
		d.End()
	}
	return nil
}

// Usage implements [blockwire.BlockReader].
func (d *streamDecoder) Usage() dragoman.Usage {
	usage := d.answer.counters.usage()
	usage.Extra = extra.Clone(usage.Extra)
	return usage
}

func (d *streamDecoder) messageStart(raw []byte) error {
	if raw == nil {
		d.Start()
		return nil
	}
	r := jsonwire.NewReader(raw)
	if d.named {
		// The same message again is a gateway's stutter; another one would be
		// merged into the first (quirk C37).
		second := newAnswer(blockDecoder{d.Quiet()})
		second.read(r)
		if second.Resp.ID != d.answer.Resp.ID {
			return blockwire.ErrSpliced
		}
		return nil
	}
	d.named = true
	content := d.answer.read(r)
	if err := r.Err(); err != nil {
		return jsonwire.PlaceAt("/message", d.messageAt, err)
	}
	d.Start()
	return d.startContent(content.Raw)
}

func (d *streamDecoder) messageDelta(change, usage []byte, rest []member) error {
	d.Start()
	a := &d.answer
	if change != nil {
		r := jsonwire.NewReader(change)
		for key := range r.Object() {
			switch k := string(key); k {
			case "stop_reason", "stop_sequence", "stop_details":
				a.readStop(r, k)
			default:
				d.remember(key, r.Raw())
			}
		}
		if err := r.Err(); err != nil {
			return jsonwire.PlaceAt("/delta", d.changeAt, err)
		}
	}
	for _, m := range rest {
		d.remember([]byte(m.name), m.raw)
	}
	if usage != nil {
		r := jsonwire.NewReader(usage)
		a.counters.read(r, a.Keep, d.Rep)
		a.Resp.ServiceTier = a.counters.tier
		if err := r.Err(); err != nil {
			return jsonwire.PlaceAt("/usage", d.usageAt, err)
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
		if e := d.answer.Resp.Extra; e != nil && len(e.Fields) >= maxMembers {
			return
		}
		if _, known := extra.Get(d.answer.Resp.Extra, name, "/"+extra.Escape(string(key))); known {
			return
		}
	}
	d.answer.Keep.Member(&d.answer.Resp.Extra, name, "", key, raw)
}
