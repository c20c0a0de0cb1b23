package sim

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/dialect/gemini"
	"github.com/dragoman-go/dragoman/internal/eventstream"
	"github.com/dragoman-go/dragoman/internal/ndjson"
	"github.com/dragoman-go/dragoman/internal/sse"
)

// frame is one event of an encoded stream, open to be changed.
type frame struct {
	// name is the event's, where the wire names it.
	name string
	// data is the payload; text is one that is no JSON, such as [DONE].
	data any
	text string
	// raw is written as it stands, in place of all other.
	raw []byte
}

// has reports whether the payload is of a type, as two dialects write it.
func (f *frame) has(typ string) bool { return at(f.data, "type") == typ }

// wireStream is an encoded stream, taken apart so that it can be made hostile.
type wireStream struct {
	dialect dragoman.Dialect
	// array writes Gemini's stream as one JSON array.
	array  bool
	frames []frame
	// crlf ends lines with CR LF; open leaves the last event without its end;
	// bytewise flushes each byte by itself; nameless leaves out the names of events.
	crlf, open, bytewise, nameless bool
}

// takeApart encodes events and splits what comes of it.
func takeApart(codec dialect.Codec, o dialect.EncodeOptions, events []dragoman.Event) (*wireStream, error) {
	s := &wireStream{dialect: codec.Dialect()}
	if g, ok := codec.(gemini.Codec); ok {
		s.array = g.Array
		codec = gemini.Codec{} // whose events are the elements of the array
	}
	enc := codec.NewStreamEncoder(o)
	var wire []byte
	var err error
	for _, ev := range events {
		if wire, err = enc.Encode(wire, ev); err != nil {
			return nil, err
		}
	}
	if wire, err = enc.Close(wire); err != nil {
		return nil, err
	}
	return s, s.split(wire)
}

func (s *wireStream) split(wire []byte) error {
	add := func(name string, data []byte) {
		f := frame{name: name}
		if tree, err := parseTree(data); err == nil {
			f.data = tree
		} else {
			f.text = string(data)
		}
		s.frames = append(s.frames, f)
	}
	switch s.dialect {
	case dragoman.Bedrock:
		var p eventstream.Parser
		return p.Feed(wire, func(f eventstream.Frame) error {
			typ := f.Text(":event-type")
			if typ == nil {
				s.frames = append(s.frames, frame{raw: bytes.Clone(f.Raw)}) // an exception
				return nil
			}
			add(string(typ), f.Payload)
			return nil
		})
	case dragoman.Ollama:
		var p ndjson.Parser
		return p.Feed(wire, func(l ndjson.Line) error { add("", l.Data); return nil })
	default:
		var p sse.Parser
		return p.Feed(wire, func(ev sse.Event) error { add(string(ev.Name), ev.Data); return nil })
	}
}

// chunks are the bytes of the stream, those of each event by themselves.
func (s *wireStream) chunks() [][]byte {
	var out [][]byte
	for i := range s.frames {
		out = append(out, s.write(i))
	}
	if s.array {
		out = append(out, []byte("]"))
	}
	if s.open && len(out) > 0 {
		last := &out[len(out)-1]
		*last = bytes.TrimRight(*last, "\r\n")
	}
	if !s.bytewise {
		return out
	}
	var single [][]byte
	for _, chunk := range out {
		for i := range chunk {
			single = append(single, chunk[i:i+1])
		}
	}
	return single
}

// write is one event as it stands on the wire.
func (s *wireStream) write(i int) []byte {
	f := &s.frames[i]
	if f.raw != nil {
		return f.raw
	}
	payload := []byte(f.text)
	if f.data != nil {
		payload = appendTree(nil, f.data)
	}
	switch {
	case s.dialect == dragoman.Bedrock:
		out, err := eventstream.Append(nil, []eventstream.Header{
			{Name: ":event-type", Value: eventstream.Text(f.name)},
			{Name: ":content-type", Value: eventstream.Text("application/json")},
			{Name: ":message-type", Value: eventstream.Text("event")},
		}, payload)
		if err != nil {
			return nil
		}
		return out
	case s.dialect == dragoman.Ollama:
		return s.lines(ndjson.Append(nil, payload))
	case s.array:
		begin := ","
		if i == 0 {
			begin = "["
		}
		return append([]byte(begin), payload...)
	case s.nameless:
		return s.lines(sse.Append(nil, "", payload))
	default:
		return s.lines(sse.Append(nil, f.name, payload))
	}
}

func (s *wireStream) lines(b []byte) []byte {
	if s.crlf {
		return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
	}
	return b
}

// insert puts frames before the i-th.
func (s *wireStream) insert(i int, more ...frame) {
	s.frames = append(s.frames[:i:i], append(more, s.frames[i:]...)...)
}

// keep leaves out the frames that are not wanted.
func (s *wireStream) keep(wanted func(f *frame) bool) {
	var out []frame
	for i := range s.frames {
		if wanted(&s.frames[i]) {
			out = append(out, s.frames[i])
		}
	}
	s.frames = out
}

// isSSE reports whether the stream is one of server-sent events.
func (s *wireStream) isSSE() bool {
	return s.dialect != dragoman.Bedrock && s.dialect != dragoman.Ollama && !s.array
}
