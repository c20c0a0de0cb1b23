package dragoman

import (
	"errors"
	"fmt"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// MarshalEvent writes an event as stored JSON, with its version and "type".
func MarshalEvent(ev Event) ([]byte, error) {
	return store("event", func(out *storer) { storeEvent(ev, out) })
}

// UnmarshalEvent reads a stored event.
func UnmarshalEvent(data []byte) (Event, error) {
	var ev Event
	if err := loadTop(data, "event", &ev, loadEvent); err != nil {
		return nil, err
	}
	if ev == nil {
		return nil, errors.New("dragoman: stored event: it is null")
	}
	return ev, nil
}

func storeEvent(ev Event, out *storer) {
	if isNil(ev) {
		out.fail(errors.New("the event is nil"))
		return
	}
	out.top()
	out.w.StringField("type", string(ev.Type()))
	switch ev := ev.(type) {
	case *ResponseStart:
		out.w.Key("response")
		ev.Response.store(out)
	case *PartStart:
		out.num("choice", int64(ev.Choice))
		out.num("index", int64(ev.Index))
		out.num("message", int64(ev.Message))
		out.part(ev.Part)
		storeOpt(out, "header", ev.Header, (*Message).store)
	case *PartDelta:
		out.num("choice", int64(ev.Choice))
		out.num("index", int64(ev.Index))
		out.str("kind", string(ev.Kind))
		out.str("text", ev.Text)
		out.num("summary", int64(ev.Summary))
	case *PartEnd:
		out.num("choice", int64(ev.Choice))
		out.num("index", int64(ev.Index))
		out.part(ev.Part)
		storeOpt(out, "header", ev.Header, (*Message).store)
	case *ResponseEnd:
		if ev.Stop != (Stop{}) {
			out.w.Key("stop")
			ev.Stop.store(out)
		}
		storeList(out, "stops", ev.Stops, (*Stop).store)
		if ev.Usage != (Usage{}) {
			out.w.Key("usage")
			ev.Usage.store(out)
		}
		out.w.Key("response")
		ev.Response.store(out)
	case *StreamError:
		storeOpt(out, "error", ev.Err, (*APIError).store)
		if ev.Usage != (Usage{}) {
			out.w.Key("usage")
			ev.Usage.store(out)
		}
	case *Chunk:
		out.str("dialect", string(ev.Dialect))
		out.bytes("raw", ev.Raw)
		storeOpt(out, "loss", ev.Loss, (*Loss).store)
	default:
		out.fail(fmt.Errorf("a %T has no stored form", ev))
	}
	out.w.EndObject()
}

// part writes the part of an event, which may have none.
func (s *storer) part(p Part) {
	if p != nil {
		s.w.Key("part")
		storePart(&p, s)
	}
}

// anyEvent has room for the members of every event, as anyPart has for parts:
// one name has one JSON type in all events.
type anyEvent struct {
	typ      EventType
	response Response
	choice   int
	index    int
	message  int
	part     Part
	header   *Message
	kind     PartKind
	text     string
	summary  int
	stop     Stop
	stops    []Stop
	usage    Usage
	err      *APIError
	dialect  Dialect
	raw      []byte
	loss     *Loss
}

func loadEvent(r *jsonwire.Reader) Event {
	a := loadAnyEvent(r)
	if r.Err() != nil {
		return nil
	}
	switch a.typ {
	case EventResponseStart:
		return &ResponseStart{Response: a.response}
	case EventPartStart:
		return &PartStart{Choice: a.choice, Index: a.index, Message: a.message, Part: a.part, Header: a.header}
	case EventPartDelta:
		return &PartDelta{Choice: a.choice, Index: a.index, Kind: a.kind, Text: a.text, Summary: a.summary}
	case EventPartEnd:
		return &PartEnd{Choice: a.choice, Index: a.index, Part: a.part, Header: a.header}
	case EventResponseEnd:
		return &ResponseEnd{Stop: a.stop, Stops: a.stops, Usage: a.usage, Response: a.response}
	case EventStreamError:
		return &StreamError{Err: a.err, Usage: a.usage}
	case EventChunk:
		return &Chunk{Dialect: a.dialect, Raw: a.raw, Loss: a.loss}
	case "":
		r.Fail(errors.New(`the event has no "type"`))
		return nil
	default:
		r.Fail(fmt.Errorf("the event has the unknown type %.80q", string(a.typ)))
		return nil
	}
}

func loadAnyEvent(r *jsonwire.Reader) (a anyEvent) {
	for key := range r.Object() {
		switch string(key) {
		case "type":
			a.typ = loadWord[EventType](r)
		case "response":
			a.response = loadResponse(r)
		case "choice":
			a.choice = int(r.Int())
		case "index":
			a.index = int(r.Int())
		case "message":
			a.message = int(r.Int())
		case "part":
			a.part = nil
			if !r.Null() {
				a.part = loadPart(r)
			}
		case "header":
			a.header = loadOpt(r, loadMessage)
		case "kind":
			a.kind = PartKind(r.String())
		case "text":
			a.text = r.String()
		case "summary":
			a.summary = int(r.Int())
		case "stop":
			a.stop = loadStop(r)
		case "stops":
			a.stops = loadList(r, loadStop)
		case "usage":
			a.usage = loadUsage(r)
		case "error":
			a.err = loadOpt(r, loadAPIError)
		case "dialect":
			a.dialect = loadWord[Dialect](r)
		case "raw":
			a.raw = loadNative[[]byte](r)
		case "loss":
			a.loss = loadOpt(r, loadLoss)
		default:
			r.Skip()
		}
	}
	return a
}

// loadEventInto reads a stored event of one known type.
func loadEventInto[T any, P interface {
	*T
	Event
}](data []byte, dst P) error {
	return loadTop(data, string(dst.Type()), (*T)(dst), func(r *jsonwire.Reader) (v T) {
		switch ev := loadEvent(r).(type) {
		case P:
			v = *ev
		case nil:
		default:
			r.Fail(fmt.Errorf("it is of type %q, want %q", ev.Type(), dst.Type()))
		}
		return v
	})
}

// MarshalJSON writes the event as [MarshalEvent] does, UnmarshalJSON reads it.
func (e ResponseStart) MarshalJSON() ([]byte, error)  { return MarshalEvent(&e) }
func (e *ResponseStart) UnmarshalJSON(b []byte) error { return loadEventInto(b, e) } // UnmarshalJSON reads a stored event.
func (e PartStart) MarshalJSON() ([]byte, error)      { return MarshalEvent(&e) }    // MarshalJSON is [MarshalEvent].
func (e *PartStart) UnmarshalJSON(b []byte) error     { return loadEventInto(b, e) } // UnmarshalJSON reads a stored event.
func (e PartDelta) MarshalJSON() ([]byte, error)      { return MarshalEvent(&e) }    // MarshalJSON is [MarshalEvent].
func (e *PartDelta) UnmarshalJSON(b []byte) error     { return loadEventInto(b, e) } // UnmarshalJSON reads a stored event.
func (e PartEnd) MarshalJSON() ([]byte, error)        { return MarshalEvent(&e) }    // MarshalJSON is [MarshalEvent].
func (e *PartEnd) UnmarshalJSON(b []byte) error       { return loadEventInto(b, e) } // UnmarshalJSON reads a stored event.
func (e ResponseEnd) MarshalJSON() ([]byte, error)    { return MarshalEvent(&e) }    // MarshalJSON is [MarshalEvent].
func (e *ResponseEnd) UnmarshalJSON(b []byte) error   { return loadEventInto(b, e) } // UnmarshalJSON reads a stored event.
func (e StreamError) MarshalJSON() ([]byte, error)    { return MarshalEvent(&e) }    // MarshalJSON is [MarshalEvent].
func (e *StreamError) UnmarshalJSON(b []byte) error   { return loadEventInto(b, e) } // UnmarshalJSON reads a stored event.
func (e Chunk) MarshalJSON() ([]byte, error)          { return MarshalEvent(&e) }    // MarshalJSON is [MarshalEvent].
func (e *Chunk) UnmarshalJSON(b []byte) error         { return loadEventInto(b, e) } // UnmarshalJSON reads a stored event.
