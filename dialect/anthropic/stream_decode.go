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
	d := &streamDecoder{blockDecoder: newBlockDecoder(c, o)}
	d.answer = answer{decoder: &d.blockDecoder, keep: bytes.Clone}
	d.answer.resp.Origin = d.origin
	d.sse.Max = o.Limit()
	return d
}

type streamDecoder struct {
	blockDecoder
	sse    sse.Parser
	r      jsonwire.Reader
	parts  stream.Parts
	answer answer

	open    map[int64]*streamBlock // by index of the wire
	calls   []*streamBlock         // in order of start, until they are settled
	ids     map[string]bool        // of calls that were started
	blocks  int                    // blocks seen
	started bool
	named   bool // message_start was seen
	done    bool // a terminal event was seen
	failed  error

	// Scratch for one event.
	typ, kind []byte
	delta     delta
}

// delta is the delta of a content block, whatever its kind.
type delta struct {
	text     string
	member   string // that brought the text
	citation []byte
	members  []member
}

func (d *streamDecoder) Report() dragoman.Report { return *d.rep }

func (d *streamDecoder) Feed(p []byte, emit func(dragoman.Event) error) error {
	if d.failed != nil {
		return d.failed
	}
	d.parts.Use(emit)
	d.fail(d.sse.Feed(p, func(ev sse.Event) error { return d.event(ev, emit) }))
	return d.failed
}

// fail makes err the reason why the stream cannot be read on.
func (d *streamDecoder) fail(err error) {
	if err == nil || d.failed != nil {
		return
	}
	if errors.Is(err, sse.ErrTooLong) {
		err = wirekit.DecodeError(name, "stream", fmt.Errorf("%w: %v", dragoman.ErrTooLarge, err))
	}
	d.failed = err
}

func (d *streamDecoder) Close(emit func(dragoman.Event) error) error {
	d.parts.Use(emit)
	broken := d.failed
	if broken == nil {
		// A last event without its blank line still counts (quirk C18).
		d.fail(d.sse.Close(func(ev sse.Event) error { return d.event(ev, emit) }))
		broken = d.failed
	}
	if d.done {
		return broken
	}
	d.failed = dragoman.ErrIncompleteStream
	d.start()
	d.settle(false)
	err := fmt.Errorf("%s stream: %w", name, dragoman.ErrIncompleteStream)
	if broken != nil {
		err = fmt.Errorf("%w: %w", err, broken)
	}
	d.send(&dragoman.StreamError{Err: &dragoman.APIError{Class: dragoman.ErrorServer, Message: err.Error(), Err: err}})
	d.done = true
	if e := d.parts.Err(); e != nil {
		return e
	}
	return err
}

// send emits an event that is no part's.
func (d *streamDecoder) send(ev dragoman.Event) { d.parts.Send(ev) }

// event takes one event of the wire.
func (d *streamDecoder) event(ev sse.Event, emit func(dragoman.Event) error) error {
	if !d.o.NoNative {
		if err := emit(&dragoman.Chunk{Dialect: name, Raw: ev.Raw}); err != nil {
			return err
		}
	}
	data := bytes.TrimSpace(ev.Data)
	if d.done || len(data) == 0 || string(data) == "[DONE]" {
		return nil
	}
	if err := d.frame(data, ev.Name); err != nil {
		return wirekit.DecodeError(name, "stream", err)
	}
	return d.parts.Err()
}

// frame reads the JSON of an event and acts on it.
func (d *streamDecoder) frame(data, event []byte) error {
	r := &d.r
	r.Reset(data)
	d.typ = append(d.typ[:0], event...)
	index := int64(0)
	var message, block, change, usage, failure []byte
	inline := false // the delta was read on the way
	typed := false
	var rest []member
	for key := range r.Object() {
		switch string(key) {
		case "type":
			if r.Kind() == '"' && !typed {
				d.typ, typed = r.AppendString(d.typ[:0]), true
			} else {
				r.Skip()
			}
		case "index":
			index = readIndex(r)
		case "delta":
			if string(d.typ) == "content_block_delta" && !inline {
				d.readDelta(r)
				inline = true
				continue
			}
			change = r.Raw()
		case "message":
			message = r.Raw()
		case "content_block":
			block = r.Raw()
		case "usage":
			usage = r.Raw()
		case "error":
			failure = r.Raw()
		default:
			raw := r.Raw()
			if len(d.typ) == 0 || string(d.typ) == "message_delta" {
				rest = append(rest, member{name: string(key), raw: raw})
			}
		}
	}
	if err := r.End(); err != nil {
		return err
	}
	if failure != nil && string(failure) != "null" {
		d.error(data)
		return nil
	}
	switch string(d.typ) {
	case "message_start":
		return d.messageStart(message)
	case "content_block_start":
		return d.blockStart(index, block)
	case "content_block_delta":
		if !inline && change == nil {
			return nil
		}
		if !inline {
			in := jsonwire.NewReader(change)
			d.readDelta(in)
			if err := in.Err(); err != nil {
				return placeAt("/delta", -1, err)
			}
		}
		d.inferKind()
		d.blockDelta(index)
	case "content_block_stop":
		d.blockStop(index)
	case "message_delta":
		return d.messageDelta(change, usage, rest)
	case "message_stop":
		d.messageStop()
	}
	return nil
}

// readIndex reads a small number without a copy of its text.
func readIndex(r *jsonwire.Reader) int64 {
	if r.Kind() != '0' {
		return r.Int()
	}
	raw := r.Raw()
	n := int64(0)
	for _, c := range raw {
		if c < '0' || c > '9' || len(raw) > 18 {
			return jsonwire.NewReader(raw).Int()
		}
		n = n*10 + int64(c-'0')
	}
	return n
}

// readDelta reads the delta of a block in one pass, before its kind is known.
func (d *streamDecoder) readDelta(r *jsonwire.Reader) {
	d.kind = d.kind[:0]
	d.delta = delta{members: d.delta.members[:0]}
	for key := range r.Object() {
		switch string(key) { // no copy of the key: this runs for every fragment
		case "type":
			if r.Kind() == '"' {
				d.kind = r.AppendString(d.kind[:0])
			} else {
				r.Skip()
			}
		case "text", "partial_json", "thinking", "signature":
			if r.Kind() == '"' {
				var k string
				if !knownDelta(d.kind) {
					k = string(key)
				}
				s := r.String()
				d.delta.text = s
				if k != "" {
					d.delta.member = k
					d.delta.members = append(d.delta.members, member{name: k, text: []byte(s), isText: true})
				}
				continue
			}
			r.Skip()
		case "citation":
			d.delta.citation = r.Raw()
		default:
			raw := r.Raw()
			if !knownDelta(d.kind) {
				m := member{name: string(key), raw: bytes.Clone(raw)}
				if len(raw) > 0 && raw[0] == '"' {
					m.text, m.isText = []byte(unquote(raw)), true
				}
				d.delta.members = append(d.delta.members, m)
			}
		}
	}
}

// inferKind names a delta that came without a type by the member it has.
func (d *streamDecoder) inferKind() {
	if len(d.kind) > 0 || len(d.delta.members) > 1 {
		return
	}
	switch d.delta.member {
	case "text":
		d.kind = append(d.kind, "text_delta"...)
	case "thinking":
		d.kind = append(d.kind, "thinking_delta"...)
	case "signature":
		d.kind = append(d.kind, "signature_delta"...)
	case "partial_json":
		d.kind = append(d.kind, "input_json_delta"...)
	}
}

func knownDelta(kind []byte) bool {
	switch string(kind) {
	case "text_delta", "input_json_delta", "thinking_delta", "signature_delta", "citations_delta":
		return true
	default:
		return false
	}
}

// start emits the first event, also for a stream that lacks message_start.
func (d *streamDecoder) start() {
	if d.started {
		return
	}
	d.started = true
	resp := d.answer.resp
	resp.Usage = d.answer.counters.usage()
	resp.Extra, resp.Usage.Extra = clone(resp.Extra), clone(resp.Usage.Extra)
	d.send(&dragoman.ResponseStart{Response: resp})
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
		var second answer
		second.keep = func(b []byte) []byte { return b }
		second.read(r)
		if second.resp.ID != d.answer.resp.ID {
			return errSpliced
		}
		return nil
	}
	d.named = true
	content := d.answer.read(r)
	if err := r.Err(); err != nil {
		return placeAt("/message", -1, err)
	}
	d.start()
	return d.startContent(content)
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
			return placeAt("/delta", -1, err)
		}
	}
	for _, m := range rest {
		d.remember([]byte(m.name), m.raw)
	}
	if usage != nil {
		r := jsonwire.NewReader(usage)
		a.counters.read(r, a.keep)
		a.resp.ServiceTier = a.counters.tier
		if err := r.Err(); err != nil {
			return placeAt("/usage", -1, err)
		}
	}
	return nil
}

// remember keeps a member of the response that is not modelled. Null erases
// nothing.
func (d *streamDecoder) remember(key, raw []byte) {
	switch string(key) {
	case "id", "type", "role", "model", "content", "usage", "delta":
		return // modelled elsewhere; here they would be said twice
	}
	if string(raw) == "null" {
		if _, known := extra.Get(d.answer.resp.Extra, name, "/"+extra.Escape(string(key))); known {
			return
		}
	}
	extra.Add(&d.answer.resp.Extra, name, "", key, bytes.Clone(raw))
}

func (d *streamDecoder) messageStop() {
	d.start()
	stop := d.settle(true)
	resp := d.answer.resp
	resp.Extra = clone(resp.Extra)
	usage := d.answer.counters.usage()
	usage.Extra = clone(usage.Extra)
	d.send(&dragoman.ResponseEnd{Stop: stop, Usage: usage, Response: resp})
	d.done = true
}

// error ends the stream with an error that the server told (quirk C14).
func (d *streamDecoder) error(data []byte) {
	d.start()
	d.settle(false)
	d.send(&dragoman.StreamError{Err: Codec{}.DecodeError(0, nil, bytes.Clone(data))})
	d.done = true
}
