package sim

import (
	"bytes"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/dialect"
	"github.com/dragoman-go/dragoman/internal/codec/wire"
	"github.com/dragoman-go/dragoman/internal/framing"
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
	wire    *wire.Wire
	framing framing.Framing
	frames  []frame
	// crlf ends lines with CR LF; open leaves the last event without its end;
	// bytewise flushes each byte by itself; nameless leaves out the names of events.
	crlf, open, bytewise, nameless bool
}

// takeApart encodes events and splits what comes of it.
func takeApart(codec dialect.Codec, o dialect.EncodeOptions, events []dragoman.Event) (*wireStream, error) {
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

// chunks are the bytes of the stream, those of each event by themselves.
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
func (s *wireStream) isSSE() bool { return s.framing == framing.Framing(framing.SSE) }
