package recall

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"unicode"
	"unicode/utf8"

	dragoman "github.com/dragoman-go/dragoman"
)

// sum is a hash that identifies a value.
type sum = [sha256.Size]byte

// identity is the running hash of a conversation: the content of all messages so far. It hashes
// every message once.
type identity struct {
	hash   sum
	text   hash.Hash // hash of the current text
	inText bool      // text has content
}

// The kinds of content.
const (
	kindText   = 't'
	kindData   = 'd'
	kindMedia  = 'm'
	kindResult = 'r'
	kindCall   = 'c'
	kindOpaque = 'o'
	kindTurn   = 'a'
)

// sum returns the hash of the conversation so far.
func (c *identity) sum() sum {
	c.endText()
	return c.hash
}

func (c *identity) add(kind byte, s sum) {
	c.endText()
	c.mix(kind, s)
}

func (c *identity) mix(kind byte, s sum) {
	var b [2*sha256.Size + 1]byte
	b[0] = kind
	copy(b[1:], c.hash[:])
	copy(b[1+sha256.Size:], s[:])
	c.hash = sha256.Sum256(b[:])
}

// writeText continues the current text. The splitting of texts does not change the hash.
func (c *identity) writeText(text string) {
	if text == "" {
		return
	}
	if c.text == nil {
		c.text = sha256.New()
	}
	if !c.inText {
		c.text.Reset()
		c.inText = true
	}
	c.text.Write([]byte(text))
}

// endText ends the current text.
func (c *identity) endText() {
	if c.inText {
		c.inText = false
		c.mix(kindText, sum(c.text.Sum(nil)))
	}
}

// addParts adds the content of a message that is not the model's.
func (c *identity) addParts(parts []dragoman.Part) {
	for _, p := range parts {
		switch p := p.(type) {
		case *dragoman.Text:
			c.writeText(p.Text)
		case *dragoman.Refusal:
			c.writeText(p.Text)
		case *dragoman.Data:
			c.add(kindData, hashJSON(p.JSON))
		case *dragoman.Media:
			c.add(kindMedia, hashMedia(p))
		case *dragoman.ToolResult:
			var inner identity
			inner.addParts(p.Content)
			c.add(kindResult, inner.sum())
		case *dragoman.ToolCall:
			c.add(kindCall, hashCall(p))
		case *dragoman.Opaque:
			c.add(kindOpaque, hashBlock(p.JSON))
		}
	}
}

// addTurn adds the content of a turn of the model, unless it is empty.
func (c *identity) addTurn(s *visible) {
	if !s.empty() {
		c.add(kindTurn, s.sum())
	}
}

// visible is the content of a turn that a client sees: a run of assistant messages.
type visible struct {
	text    hash.Hash // ignores white space
	hasText bool
	calls   []*dragoman.ToolCall // calls that the client runs
}

func visibleOf(turn []dragoman.Message) *visible {
	s := &visible{text: sha256.New()}
	for i := range turn {
		for _, p := range turn[i].Parts {
			if c, ok := p.(*dragoman.ToolCall); ok && !c.Hosted {
				s.calls = append(s.calls, c)
			} else if text, ok := visibleText(p); ok {
				s.write(text)
			}
		}
	}
	return s
}

// visibleText returns the text of a part that a client sees as text.
func visibleText(p dragoman.Part) (string, bool) {
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
func (s *visible) write(text string) {
	var block [1024]byte // a few large writes instead of one for each word
	n := 0
	for i := 0; i < len(text); {
		size := 1
		space := false
		if c := text[i]; c < utf8.RuneSelf {
			space = c == ' ' || c >= '\t' && c <= '\r'
		} else {
			var r rune
			r, size = utf8.DecodeRuneInString(text[i:])
			space = unicode.IsSpace(r)
		}
		if !space {
			if n+size > len(block) {
				s.text.Write(block[:n])
				n = 0
			}
			n += copy(block[n:], text[i:i+size])
			s.hasText = true
		}
		i += size
	}
	s.text.Write(block[:n])
}

func (s *visible) empty() bool { return !s.hasText && len(s.calls) == 0 }

// sum identifies the turn: calls count by position, tool and arguments, because some dialects have
// no ids.
func (s *visible) sum() sum {
	h := sha256.New()
	h.Write(s.text.Sum(nil))
	for _, c := range s.calls {
		one := hashCall(c)
		h.Write(one[:])
	}
	return sum(h.Sum(nil))
}

// hashTexts identifies a list of texts.
func hashTexts(list ...string) sum {
	h := sha256.New()
	var n [binary.MaxVarintLen64]byte
	for _, s := range list {
		h.Write(n[:binary.PutUvarint(n[:], uint64(len(s)))])
		h.Write([]byte(s))
	}
	return sum(h.Sum(nil))
}

// hashCall identifies a call without its id. Arguments count in the form that every client can
// read: a client that gets a text as an object returns the object.
func hashCall(c *dragoman.ToolCall) sum {
	object, _ := c.Object()
	arguments := hashJSON(object)
	return hashTexts(c.Namespace, c.Name, string(arguments[:]))
}

func hashMedia(m *dragoman.Media) sum {
	return hashTexts(m.Media, m.Base64, m.Text, m.URL, m.FileID)
}
