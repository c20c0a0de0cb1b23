package recall

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"unicode"

	dragoman "github.com/dragoman-go/dragoman"
)

// sum is a hash that identifies a value.
type sum = [sha256.Size]byte

// identity is the running hash of a conversation: what its participants said so far. Every
// message is hashed once.
type identity struct {
	so   sum
	text hash.Hash // of the current text
	says bool      // there is a current text
}

// The kinds of content.
const (
	saidText   = 't'
	saidData   = 'd'
	saidMedia  = 'm'
	saidResult = 'r'
	saidCall   = 'c'
	saidOpaque = 'o'
	saidTurn   = 'a'
)

// now returns the identity so far.
func (c *identity) now() sum {
	c.stop()
	return c.so
}

func (c *identity) add(kind byte, s sum) {
	c.stop()
	c.mix(kind, s)
}

func (c *identity) mix(kind byte, s sum) {
	var b [2*sha256.Size + 1]byte
	b[0] = kind
	copy(b[1:], c.so[:])
	copy(b[1+sha256.Size:], s[:])
	c.so = sha256.Sum256(b[:])
}

// say continues the current text: how it is split does not count.
func (c *identity) say(text string) {
	if text == "" {
		return
	}
	if c.text == nil {
		c.text = sha256.New()
	}
	if !c.says {
		c.text.Reset()
		c.says = true
	}
	c.text.Write([]byte(text))
}

// stop ends the current text.
func (c *identity) stop() {
	if c.says {
		c.says = false
		c.mix(saidText, sum(c.text.Sum(nil)))
	}
}

// parts adds the content of a message that is not the model's.
func (c *identity) parts(parts []dragoman.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			c.say(p.Text)
		case *dragoman.Refusal:
			c.say(p.Text)
		case *dragoman.Data:
			c.add(saidData, sameJSON(p.JSON))
		case *dragoman.Media:
			c.add(saidMedia, media(p))
		case *dragoman.ToolResult:
			var inner identity
			inner.parts(p.Content)
			c.add(saidResult, inner.now())
		case *dragoman.ToolCall:
			c.add(saidCall, call(p))
		case *dragoman.Opaque:
			c.add(saidOpaque, sameBlock(p.JSON))
		}
	}
}

// turn adds the content of a turn of the model, unless it is empty.
func (c *identity) turn(s *seen) {
	if !s.empty() {
		c.add(saidTurn, s.sum())
	}
}

// seen is the part of an answer that a client sees: a run of assistant messages.
type seen struct {
	text  hash.Hash // without white space
	said  bool
	calls []*dragoman.ToolCall // that a client runs
}

func look(turn []dragoman.Message) *seen {
	s := &seen{text: sha256.New()}
	for i := range turn {
		for _, p := range turn[i].Parts {
			if c, ok := p.(*dragoman.ToolCall); ok && !c.Hosted {
				s.calls = append(s.calls, c)
			} else if text, ok := words(p); ok {
				s.write(text)
			}
		}
	}
	return s
}

// words returns the text of a part that a client sees as text.
func words(p dragoman.Part) (string, bool) {
	switch p := p.(type) {
	case *dragoman.Text:
		return p.Text, true
	case *dragoman.Refusal:
		return p.Text, true
	case *dragoman.Data:
		return string(p.JSON), true
	default:
		return "", false
	}
}

// write adds a text without its white space.
func (s *seen) write(text string) {
	start := -1
	for i, r := range text {
		space := unicode.IsSpace(r)
		if !space && start < 0 {
			start = i
		}
		if space && start >= 0 {
			s.text.Write([]byte(text[start:i]))
			start = -1
		}
		s.said = s.said || !space
	}
	if start >= 0 {
		s.text.Write([]byte(text[start:]))
	}
}

func (s *seen) empty() bool { return !s.said && len(s.calls) == 0 }

// sum identifies the answer: calls by their position, tool and arguments, because some dialects
// have no ids.
func (s *seen) sum() sum {
	h := sha256.New()
	h.Write(s.text.Sum(nil))
	for _, c := range s.calls {
		one := call(c)
		h.Write(one[:])
	}
	return sum(h.Sum(nil))
}

// texts identifies a list of texts.
func texts(list ...string) sum {
	h := sha256.New()
	var n [binary.MaxVarintLen64]byte
	for _, s := range list {
		h.Write(n[:binary.PutUvarint(n[:], uint64(len(s)))])
		h.Write([]byte(s))
	}
	return sum(h.Sum(nil))
}

// call identifies a call without its id. Arguments count in the form that every client can
// read: a client that gets a text as an object returns the object.
func call(c *dragoman.ToolCall) sum {
	object, _ := c.Object()
	arguments := sameJSON(object)
	return texts(c.Namespace, c.Name, string(arguments[:]))
}

func media(m *dragoman.Media) sum {
	return texts(m.Media, m.Base64, m.Text, m.URL, m.FileID)
}
