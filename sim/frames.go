package sim

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/framing"
)

// frame is one event of an encoded stream, in a form that can be modified.
type frame struct {
	// name is the event name, if the wire format has one.
	name string
	// data is the JSON payload; text is a payload that is not JSON, such as [DONE].
	data any
	text string
	// raw, if set, is written instead of the other fields.
	raw []byte
}

// has reports whether the payload has the given "type" field.
func (f *frame) has(typ string) bool { return at(f.data, "type") == typ }

// wireStream is an encoded stream, split into frames so that faults can change it.
type wireStream struct {
	wire    *wire.Wire
	framing framing.Framing
	frames  []frame
	// crlf ends lines with CR LF; open leaves the last event unterminated; bytewise flushes
	// each byte separately; nameless omits event names.
	crlf, open, bytewise, nameless bool
}

// splitStream encodes events and splits the result into frames.
func splitStream(codec dialect.Codec, o dialect.EncodeOptions, events []dragoman.Event) (*wireStream, error) {
	w := wire.Of(codec)
	s := &wireStream{wire: w, framing: w.Stream.Framing}
	enc := codec.NewStreamEncoder(o)
	var out []byte
	var err error
	for _, ev := range events {
		if out, err = enc.Encode(out, ev); err != nil {
			return nil, err
		}
	}
	if out, err = enc.Close(out); err != nil {
		return nil, err
	}
	return s, s.split(out)
}

func (s *wireStream) split(stream []byte) error {
	add := func(name string, data []byte) {
		f := frame{name: name}
		if tree, err := parseTree(data); err == nil {
			f.data = tree
		} else {
			f.text = string(data)
		}
		s.frames = append(s.frames, f)
	}
	return s.framing.Split(stream, func(e framing.Event) error {
		if e.Exception {
			s.frames = append(s.frames, frame{raw: bytes.Clone(e.Raw)})
			return nil
		}
		add(string(e.Name), e.Data)
		return nil
	})
}

// chunks returns the bytes of the stream, one chunk per event.
func (s *wireStream) chunks() [][]byte {
	var out [][]byte
	for i := range s.frames {
		out = append(out, s.write(i))
	}
	if end := s.framing.Trailer(); end != nil {
		out = append(out, end)
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

// write returns the bytes of one event.
func (s *wireStream) write(i int) []byte {
	f := &s.frames[i]
	if f.raw != nil {
		return f.raw
	}
	payload := []byte(f.text)
	if f.data != nil {
		payload = appendTree(nil, f.data)
	}
	name := f.name
	if s.nameless {
		name = ""
	}
	return s.lines(s.framing.Append(nil, i, name, payload))
}

func (s *wireStream) lines(b []byte) []byte {
	if _, lines := s.framing.(framing.Lines); lines && s.crlf {
		return bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))
	}
	return b
}

// insert inserts frames before frame i.
func (s *wireStream) insert(i int, more ...frame) {
	s.frames = append(s.frames[:i:i], append(more, s.frames[i:]...)...)
}

// keep removes the frames for which wanted returns false.
func (s *wireStream) keep(wanted func(f *frame) bool) {
	var out []frame
	for i := range s.frames {
		if wanted(&s.frames[i]) {
			out = append(out, s.frames[i])
		}
	}
	s.frames = out
}

// isSSE reports whether the stream uses server-sent events.
func (s *wireStream) isSSE() bool { return s.framing == framing.Framing(framing.SSE) }
