package openaichat

import (
	"bytes"

	"github.com/dragoman-go/dragoman/internal/jsonwire"
)

// chunkTemplate is the shape of the last chunk that was decoded in full, if it had only a
// fragment of text, or of the arguments of one call. Most chunks of a stream differ from the
// previous one only in that fragment. Their other fields are already known and have no further
// effect.
type chunkTemplate struct {
	ready bool
	// idle counts consecutive templates that no chunk matched. From maxIdle on, none is made.
	idle int
	// head is the data before the fragment, including its opening quote. middle is the data after
	// it, including its closing quote, up to the padding or the end. tail is the data after the
	// padding.
	head, middle, tail []byte
	// padded is set if there is a meaningless string between middle and tail.
	padded bool
	id     string // id of the chunk
	choice int
	// call is the index of the call whose arguments the fragment belongs to; -1 for text.
	call int64
	text []byte // the last fragment; its memory is reused
}

// maxTemplate bounds the length of a chunk that becomes a template.
const maxTemplate = 4 << 10

// maxIdle is the number of unused templates after which a server is assumed to send chunks that
// all differ.
const maxIdle = 16

// storedFields counts the stored unknown fields of chunks. If the count does not change while a
// chunk is decoded, the chunk has no new field. It returns -1 if there are many, because then
// repeated fields are expensive to find.
func (d *streamDecoder) storedFields() int {
	const few = 8
	if d.resp.Extra == nil {
		return 0
	}
	if n := len(d.resp.Extra.Fields); n <= few {
		return n
	}
	return -1
}

// readFast decodes a chunk that matches the template, and reports whether it did. Any other chunk
// must be decoded in full.
func (d *streamDecoder) readFast(data []byte) bool {
	m := &d.template
	if !m.ready {
		return false
	}
	piece, ok := m.piece(data)
	if !ok {
		return false
	}
	c := d.choices[m.choice]
	if m.call >= 0 && c.byIndex[m.call] == nil {
		return false
	}
	m.text = jsonwire.AppendUnquote(m.text[:0], piece)
	if text := string(m.text); m.call < 0 {
		c.appendText(text)
	} else {
		c.fragment(fragment{index: m.call, indexed: true, args: text})
	}
	c.opening.delta(false, true)
	c.opens(false)
	m.idle = 0
	return true
}

// piece returns the fragment of a chunk that matches the template, with its quotes.
func (m *chunkTemplate) piece(data []byte) (piece []byte, ok bool) {
	if !bytes.HasPrefix(data, m.head) {
		return nil, false
	}
	piece, rest, ok := jsonwire.CutString(data[len(m.head)-1:])
	if !ok || len(piece) <= len(`""`) {
		return nil, false
	}
	if rest, ok = bytes.CutPrefix(rest, m.middle[1:]); !ok || !m.padded {
		return piece, ok && len(rest) == 0
	}
	if _, rest, ok = jsonwire.CutString(rest); !ok {
		return nil, false
	}
	return piece, bytes.Equal(rest, m.tail)
}

// makeTemplate makes a template of a chunk that was decoded in full, if it has the right shape. kept is
// the number of stored fields before it.
func (d *streamDecoder) makeTemplate(data []byte, id string, kept int) {
	m := &d.template
	if len(data) > maxTemplate || m.idle >= maxIdle || d.duplicate || kept < 0 || d.storedFields() != kept {
		return
	}
	s := shape{r: &d.ahead, call: -1}
	s.r.Reset(data)
	if !s.chunk() || s.r.End() != nil || s.piece.end == 0 || s.padding.end > 0 && s.padding.start < s.piece.end {
		return
	}
	m.head = append(m.head[:0], data[:s.piece.start+1]...)
	m.padded = s.padding.end > 0
	if m.padded {
		m.middle = append(m.middle[:0], data[s.piece.end-1:s.padding.start]...)
		m.tail = append(m.tail[:0], data[s.padding.end:]...)
	} else {
		m.middle = append(m.middle[:0], data[s.piece.end-1:]...)
	}
	m.ready, m.id, m.choice, m.call = true, id, s.choice, s.call
	m.idle++
}

// shape finds the fragment of a chunk.
type shape struct {
	r              *jsonwire.Reader
	piece, padding place
	choice         int
	call           int64
}

// text consumes a non-empty string and records its position. It fails if there is a second one.
func (s *shape) text(at *place) (ok bool) {
	if s.r.Kind() != '"' || at.end > 0 {
		return false
	}
	raw := s.r.Raw()
	*at = place{s.r.Offset() - int64(len(raw)), s.r.Offset()}
	return len(raw) > len(`""`)
}

// place is the position of a string, including its quotes.
type place struct{ start, end int64 }

// index consumes a small number.
func (s *shape) index() (n int64, ok bool) {
	if s.r.Kind() != '0' {
		return 0, false
	}
	n = s.r.Int()
	return n, n >= 0 && n < maxChoices
}

func (s *shape) chunk() bool {
	for key := range s.r.Object() {
		switch string(key) {
		case "choices":
			n := 0
			if s.r.Kind() != '[' {
				return false
			}
			for range s.r.Array() {
				if n++; n > 1 || s.r.Kind() != '{' || !s.element() {
					return false
				}
			}
		case "obfuscation":
			if !s.text(&s.padding) {
				return false
			}
		case "usage", "error":
			if !s.r.Null() {
				return false
			}
		case "x_groq": // contains usage
			return false
		default:
			s.r.Skip()
		}
	}
	return true
}

// element reads an element of choices.
func (s *shape) element() bool {
	indexed := false
	for key := range s.r.Object() {
		switch string(key) {
		case "index":
			n, small := s.index()
			if !small {
				return false
			}
			s.choice, indexed = int(n), true
		case "delta":
			if s.r.Kind() != '{' || !s.delta() {
				return false
			}
		case "logprobs", "finish_reason":
			if !s.r.Null() {
				return false
			}
		default:
			return false
		}
	}
	return indexed
}

func (s *shape) delta() bool {
	for key := range s.r.Object() {
		switch k := string(key); {
		case k == "content" && s.r.Kind() == '"':
			if !s.text(&s.piece) {
				return false
			}
		case k == "tool_calls" && s.r.Kind() == '[':
			n := 0
			for range s.r.Array() {
				if n++; n > 1 || s.r.Kind() != '{' || !s.toolCall() {
					return false
				}
			}
		case k == "content", k == "tool_calls", k == "role", k == "refusal", k == "reasoning", k == "reasoning_content":
			if !s.r.Null() {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// toolCall reads an element of tool_calls.
func (s *shape) toolCall() (ok bool) {
	for key := range s.r.Object() {
		switch k := string(key); {
		case k == "index":
			if s.call, ok = s.index(); !ok {
				return false
			}
		case k == "function" && s.r.Kind() == '{':
			if !s.function() {
				return false
			}
		case k == "type" && s.r.Kind() == '"':
			if s.r.String() != "function" {
				return false
			}
		case k == "id", k == "type":
			if !s.r.Null() {
				return false
			}
		default:
			return false
		}
	}
	return s.call >= 0
}

func (s *shape) function() bool {
	for key := range s.r.Object() {
		switch k := string(key); {
		case k == "arguments":
			if !s.text(&s.piece) {
				return false
			}
		case k == "name":
			if !s.r.Null() {
				return false
			}
		default:
			return false
		}
	}
	return true
}
