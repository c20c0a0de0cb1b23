package bedrock

import (
	"math"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/blockwire"
	"github.com/dragoman-go/dragoman/internal/eventstream"
)

// chunk writes a native frame as it is; the events up to the next chunk are
// then only noted. One chunk that is not ours ends this for good: from there on
// all is written from events, after what was shown so far.
func (e *streamEncoder) chunk(dst []byte, c *dragoman.Chunk) []byte {
	if e.done {
		return dst // nothing follows the terminal event
	}
	if e.Rebuild || c.Dialect != name || len(c.Raw) == 0 {
		e.untold.Lose(c.Loss, e.rep)
		e.LeaveNative()
		return dst
	}
	e.Native, e.Last = true, nil
	frames(c.Raw, e.see)
	return append(dst, c.Raw...)
}

// frames calls see for the frames of a chunk.
func frames(raw []byte, see func(eventstream.Frame)) {
	p := eventstream.Parser{Max: math.MaxInt}
	_ = p.Feed(raw, func(f eventstream.Frame) error { // the decoder will say what is wrong with it
		see(f)
		return nil
	})
}

// see takes from a native frame what no canonical event tells in time: the
// block it opens or closes, what it adds to one, the end.
func (e *streamEncoder) see(f eventstream.Frame) {
	kind := string(f.Text(":message-type"))
	if kind == "exception" || kind == "error" || f.Text(":exception-type") != nil {
		e.done = true
		return
	}
	typ := f.Text(":event-type")
	if !knownEvent(typ) || string(typ) == "initial-response" {
		return
	}
	ev := &e.event
	if ev.read(f.Payload, typ) != nil {
		return // the decoder will say so
	}
	switch string(typ) {
	case eventStart:
		e.started = true
	case eventBlockStart:
		e.Hide(ev.index) // its end was lost
		if ev.opening != nil && startKey(ev.opening) != "" {
			e.Last = &blockwire.Out{Index: ev.index}
			e.Show(e.Last)
		}
	case eventDelta:
		e.seeDelta(ev)
	case eventBlockStop:
		e.Hide(ev.index)
	case eventStop:
		e.Sealed = true
	case eventMetadata:
		e.counted = true
	}
	e.done = e.done || e.Sealed && e.counted
}

// seeDelta takes note of a delta. The part of one that opens its block by
// itself starts with the events behind it.
func (e *streamEncoder) seeDelta(ev *wireEvent) {
	p := e.Shown(ev.index)
	if p == nil || p.Skeleton != nil && !takes(p, ev.kind) {
		e.Last = &blockwire.Out{Index: ev.index}
		p = e.Last
	}
	switch ev.kind {
	case deltaSignature:
		p.Signed.Add(ev.text)
	case deltaCitation:
		p.Cited++
	case deltaRedacted, deltaImage, deltaResult:
		p.Whole = true
	case deltaInput:
		if p.Skeleton != nil && !p.Grows() {
			p.Sent.Add(ev.text)
		}
	}
}

// takes reports whether a delta goes on with the part; one that does not makes
// the decoder end it and start another.
func takes(p *blockwire.Out, kind deltaKind) bool {
	switch part := p.Skeleton.(type) {
	case *dragoman.Text:
		return kind == deltaText || kind == deltaCitation
	case *dragoman.Reasoning:
		return part.Redacted == (kind == deltaRedacted) && (kind == deltaRedacted || kind == deltaThinking || kind == deltaSignature)
	case *dragoman.ToolCall:
		return kind == deltaInput
	case *dragoman.Media:
		return kind == deltaImage
	case *dragoman.Opaque:
		return kind == deltaInput || kind == deltaResult
	default:
		return false
	}
}

// note keeps the state in step with an event that a chunk has written. It is
// false for an end that no chunk told: that one is left to write.
func (e *streamEncoder) note(ev dragoman.Event) bool {
	switch ev := ev.(type) {
	case *dragoman.ResponseStart:
		// A stream may lack its messageStart; none is written behind its content.
		e.started, e.first = true, ev.Response
	case *dragoman.ResponseEnd:
		if !e.Sealed {
			return false
		}
		e.done = true // as it came: the end without its numbers
	case *dragoman.StreamError:
		return false
	default:
		e.Note(ev)
	}
	return true
}
