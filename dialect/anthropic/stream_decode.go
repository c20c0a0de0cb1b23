package anthropic

import (
	"bytes"

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
// The end of a call is held back until message_stop, because only then is it
// known that the calls of the response may run (quirks C13, C34).
func (c Codec) NewStreamDecoder(o dialect.DecodeOptions) dialect.StreamDecoder {
	if err := wirekit.CheckDecode(name, o); err != nil {
		return wirekit.RefusedDecoder{Refused: wirekit.Refused{Err: err}}
	}
	blocks := blockDecoder{blockwire.NewDecoder(format, o)}
	d := &streamDecoder{response: newResponseDecoder(blocks), blocks: blocks}
	d.Init(blocks.Decoder, &d.response.Response, d)
	d.sse.Max = o.Limit()
	return d
}

type streamDecoder struct {
	blockwire.StreamDecoder[*streamBlock]
	wireEvent // the current event
	sse       sse.Parser
	blocks    blockDecoder
	response  responseDecoder

	started bool // message_start was seen
	place   wirekit.StreamPlace
	late    wirekit.Late
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

// fail records err as the reason why the stream cannot be decoded further.
func (d *streamDecoder) fail(err error) {
	if d.Failed == nil {
		d.Failed = d.place.Framing(name, err)
	}
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

// event decodes one event. Nothing is passed through after the terminal event.
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
	hasData := len(ev.Data) > 0 && string(ev.Data) != "[DONE]"
	var failed error
	if hasData {
		failed = d.read(ev.Data, ev.Name)
	}
	chunk := d.Chunk(ev.Raw)
	if hasData && failed == nil {
		d.unmodeled(chunk, ev.Name)
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

// unmodeled stores the unknown fields of the current event, or the whole event
// if it is unknown (quirk J7). With a nil chunk both are dropped, and the loss
// is reported. An event whose name or fields a client could read as those of a
// known event is not passed through.
func (d *streamDecoder) unmodeled(chunk *dragoman.Chunk, event []byte) {
	var loss *dragoman.Loss
	var fields []blockwire.UnknownField
	switch {
	case d.failure:
	case !knownEvent(d.typ), string(d.typ) == "ping":
		if loss = d.UnknownEvent(d.typ); chunk != nil {
			chunk.Opaque = d.duplicate == "" && (len(event) == 0 || bytes.Equal(event, d.typ))
		}
	default:
		loss, fields = d.UnknownFields(d.typ, &d.unknownFields), d.unread
	}
	d.AddUnknown(chunk, loss, fields)
}

// carrier returns a delta for the unknown fields of a delta that emits nothing
// else.
func (d *streamDecoder) carrier() *dragoman.PartDelta {
	if b := d.Open[d.index]; string(d.typ) == "content_block_delta" && b != nil && b.Part != nil {
		return b.Part.Carrier()
	}
	return nil
}

// frame handles the current event.
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
		return d.messageDelta(d.change, d.usage, d.otherFields)
	case "message_stop":
		d.End()
	}
	return nil
}

// Usage implements [blockwire.BlockReader].
func (d *streamDecoder) Usage() dragoman.Usage {
	usage := d.response.counters.usage()
	usage.Extra = extra.Clone(usage.Extra)
	return usage
}

func (d *streamDecoder) messageStart(raw []byte) error {
	if raw == nil {
		d.Start()
		return nil
	}
	r := jsonwire.NewReader(raw)
	if d.started {
		// A gateway may repeat the same message_start. Another message would be
		// merged into the first (quirk C37).
		second := newResponseDecoder(blockDecoder{d.WithoutReport()})
		second.read(r)
		if second.Resp.ID != d.response.Resp.ID {
			return blockwire.ErrSpliced
		}
		return nil
	}
	d.started = true
	content := d.response.read(r)
	if err := r.Err(); err != nil {
		return jsonwire.PlaceAt("/message", d.messageAt, err)
	}
	d.Start()
	return d.startContent(content.Raw)
}

func (d *streamDecoder) messageDelta(change, usage []byte, rest []field) error {
	d.Start()
	a := &d.response
	if change != nil {
		r := jsonwire.NewReader(change)
		for key := range r.Object() {
			switch k := string(key); k {
			case "stop_reason", "stop_sequence", "stop_details":
				a.readStop(r, k)
			default:
				d.storeField(key, r.Raw())
			}
		}
		if err := r.Err(); err != nil {
			return jsonwire.PlaceAt("/delta", d.changeAt, err)
		}
	}
	for _, m := range rest {
		d.storeField([]byte(m.name), m.raw)
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

// storeField stores an unknown field of the response. Null does not replace a
// value; if there are many fields, null is not stored at all, to avoid the
// search.
func (d *streamDecoder) storeField(key, raw []byte) {
	switch string(key) {
	case "id", "type", "role", "model", "content", "usage", "delta":
		return // known fields, written elsewhere; storing them would duplicate them
	}
	if wirekit.Folds(responseFields, key) {
		return // a reader that ignores case would confuse it with a known field
	}
	if string(raw) == "null" {
		if e := d.response.Resp.Extra; e != nil && len(e.Fields) >= maxFields {
			return
		}
		if _, known := extra.Get(d.response.Resp.Extra, name, "/"+extra.Escape(string(key))); known {
			return
		}
	}
	d.response.Keep.Field(&d.response.Resp.Extra, name, "", key, raw)
}
