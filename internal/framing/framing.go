// Package framing puts the stream framings behind one interface, so that packages that
// pass streams through, split them or write them need not know which dialect has which
// framing. The parsers are in the packages sse, ndjson and eventstream.
package framing

import (
	"bytes"
	"encoding/json"

	"github.com/dragoman-go/dragoman/internal/framing/eventstream"
	"github.com/dragoman-go/dragoman/internal/framing/ndjson"
	"github.com/dragoman-go/dragoman/internal/framing/sse"
	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// Event is one event of a stream. Its slices are valid until the callback returns.
type Event struct {
	// Name is the name of the event; empty if the framing or the server does not name it.
	Name []byte
	// Data is the payload: JSON, or a marker such as [DONE].
	Data []byte
	// Raw is the whole event in wire format.
	Raw []byte
	// Exception marks an event that the framing itself declares to be an error.
	Exception bool
}

// Framing splits and writes the streams of a dialect. Implementations have no state.
type Framing interface {
	// ContentType returns the content type of a stream.
	ContentType() string
	// Begins reports whether a stream can begin with c. White space and a byte order mark
	// before it do not count.
	Begins(c byte) bool
	// Split calls emit for each event of a stream that has data.
	Split(stream []byte, emit func(Event) error) error
	// Append appends the i-th event of a stream to dst. An empty name is left out.
	Append(dst []byte, i int, name string, data []byte) []byte
	// Trailer returns the bytes after the last event.
	Trailer() []byte
}

// Lines is a text framing whose events can be found in a buffer without copying it.
type Lines interface {
	Framing
	// Whole returns how many bytes at the start of buf are complete events.
	Whole(buf []byte) int
	// Next returns the length of the first event of p, whose lines end with eol, and
	// whether the end of the event is part of p.
	Next(p []byte, eol byte) (n int, whole bool)
	// Parts returns the name and the data of one event whose lines end with eol. Data that
	// has several lines has their prefixes.
	Parts(event []byte, eol byte) (name, data []byte)
	// End returns the bytes that end an event.
	End() []byte
	// Complete reports whether the rest of a stream is empty, or an event that lacks only
	// its end (quirk C18).
	Complete(rest []byte) bool
}

// The framings.
var (
	SSE         Lines   = serverSentEvents{}
	NDJSON      Lines   = jsonLines{}
	EventStream Framing = awsFrames{}
	JSONArray   Framing = jsonArray{}
)

// LineEnd returns the byte that ends the lines of a stream that begins with p. JSON has no
// line end within a string.
func LineEnd(p []byte) byte {
	if bytes.IndexByte(p, '\n') < 0 && bytes.IndexByte(p, '\r') >= 0 {
		return '\r'
	}
	return '\n'
}

type serverSentEvents struct{}

func (serverSentEvents) ContentType() string { return "text/event-stream" }
func (serverSentEvents) Trailer() []byte     { return nil }
func (serverSentEvents) End() []byte         { return []byte("\n\n") }

// Begins implements [Framing]: data, event, id, retry, or a comment.
func (serverSentEvents) Begins(c byte) bool { return bytes.IndexByte([]byte("deir:"), c) >= 0 }

func (serverSentEvents) Split(stream []byte, emit func(Event) error) error {
	take := func(ev sse.Event) error {
		if !ev.HasData {
			return nil
		}
		return emit(Event{Name: ev.Name, Data: ev.Data, Raw: ev.Raw})
	}
	var p sse.Parser
	if err := p.Feed(stream, take); err != nil {
		return err
	}
	return p.Close(take)
}

func (serverSentEvents) Append(dst []byte, _ int, name string, data []byte) []byte {
	return sse.Append(dst, name, data)
}

func (serverSentEvents) Whole(buf []byte) int { return sse.Whole(buf) }

func (serverSentEvents) Next(p []byte, eol byte) (int, bool) { return sse.Next(p, eol) }

func (serverSentEvents) Parts(event []byte, eol byte) (name, data []byte) {
	return sse.Parts(event, eol)
}

func (serverSentEvents) Complete(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	if len(rest) == 0 {
		return true
	}
	line := rest[bytes.LastIndexAny(rest, "\r\n")+1:]
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	data = bytes.TrimSpace(data)
	return ok && (string(data) == "[DONE]" || jsonwire.Check(data) == nil)
}

type jsonLines struct{}

func (jsonLines) ContentType() string { return "application/x-ndjson" }
func (jsonLines) Trailer() []byte     { return nil }
func (jsonLines) End() []byte         { return []byte("\n") }
func (jsonLines) Begins(c byte) bool  { return c == '{' }

func (jsonLines) Split(stream []byte, emit func(Event) error) error {
	take := func(l ndjson.Line) error {
		if len(l.Data) == 0 {
			return nil
		}
		return emit(Event{Data: l.Data, Raw: l.Raw})
	}
	var p ndjson.Parser
	if err := p.Feed(stream, take); err != nil {
		return err
	}
	return p.Close(take)
}

func (jsonLines) Append(dst []byte, _ int, _ string, data []byte) []byte {
	return ndjson.Append(dst, data)
}

func (jsonLines) Whole(buf []byte) int { return ndjson.Whole(buf) }

func (jsonLines) Next(p []byte, _ byte) (int, bool) { return ndjson.Next(p) }

func (jsonLines) Parts(event []byte, _ byte) (name, data []byte) { return nil, bytes.TrimSpace(event) }

func (jsonLines) Complete(rest []byte) bool {
	rest = bytes.TrimSpace(rest)
	return len(rest) == 0 || jsonwire.Check(rest) == nil
}

type awsFrames struct{}

func (awsFrames) ContentType() string { return "application/vnd.amazon.eventstream" }
func (awsFrames) Trailer() []byte     { return nil }

// Begins implements [Framing]: the first byte of the length of a frame.
func (awsFrames) Begins(c byte) bool { return c < '\t' }

func (awsFrames) Split(stream []byte, emit func(Event) error) error {
	var p eventstream.Parser
	return p.Feed(stream, func(f eventstream.Frame) error {
		name := f.Text(":event-type")
		return emit(Event{Name: name, Data: f.Payload, Raw: f.Raw, Exception: name == nil})
	})
}

func (awsFrames) Append(dst []byte, _ int, name string, data []byte) []byte {
	out, err := eventstream.Append(dst, []eventstream.Header{
		{Name: ":event-type", Value: eventstream.Text(name)},
		{Name: ":content-type", Value: eventstream.Text("application/json")},
		{Name: ":message-type", Value: eventstream.Text("event")},
	}, data)
	if err != nil { // the name is too long for a header
		return dst
	}
	return out
}

type jsonArray struct{}

func (jsonArray) ContentType() string { return "application/json" }
func (jsonArray) Trailer() []byte     { return []byte("]") }
func (jsonArray) Begins(c byte) bool  { return c == '[' }

func (jsonArray) Split(stream []byte, emit func(Event) error) error {
	var all []json.RawMessage
	if err := json.Unmarshal(stream, &all); err != nil {
		return err
	}
	for _, data := range all {
		if err := emit(Event{Data: data, Raw: data}); err != nil {
			return err
		}
	}
	return nil
}

func (jsonArray) Append(dst []byte, i int, _ string, data []byte) []byte {
	if i == 0 {
		dst = append(dst, '[')
	} else {
		dst = append(dst, ',')
	}
	return append(dst, data...)
}
