package jsonwire

import (
	"bytes"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// cursor is a fast jsontext.Decoder for a complete document. It reads the document
// itself as long as it is valid JSON. From the first byte that it does not understand,
// a jsontext.Decoder takes over, so that errors come from jsontext.
type cursor struct {
	doc []byte
	// pos is the offset after the last token, next the offset of the next token, or 0
	// if it was not searched for.
	pos, next int
	// open are the enclosing objects and lists, the document first.
	open []level
	few  [8]level
	// long are long values of the document in which this one begins at base. They may
	// include values before next.
	long []span
	base int
	slow *jsontext.Decoder
}

// level is an object or a list that is being read.
type level struct {
	// n counts the values, and the names of an object as well.
	n int
	// name and end delimit the name of the last field, including its quotes.
	name, end int
	object    bool
}

// wantsName reports whether the next value is a field name.
func (l *level) wantsName() bool { return l.object && l.n%2 == 0 }

// deepCursor is the maximum depth for which a cursor keeps its memory for reuse.
const deepCursor = 1 << 10

func (c *cursor) reset(doc []byte) {
	if c.open == nil || cap(c.open) > deepCursor {
		c.open = c.few[:]
	}
	c.open = append(c.open[:0], level{})
	c.doc, c.pos, c.next, c.slow = doc, 0, 0, nil
	c.long, c.base = nil, 0
}

// asDecoder makes a jsontext.Decoder continue at the position of the cursor.
func (c *cursor) asDecoder() *jsontext.Decoder {
	c.slow = jsontext.NewDecoder(bytes.NewBuffer(c.doc), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for c.slow.InputOffset() < int64(c.pos) {
		if _, err := c.slow.ReadToken(); err != nil {
			break // cannot happen: the cursor has read this
		}
	}
	return c.slow
}

// findToken finds the next token, and reports whether a token may be there.
func (c *cursor) findToken() bool {
	if c.next > 0 {
		return true
	}
	i := space(c.doc, c.pos)
	if i >= len(c.doc) {
		return false
	}
	b, between := c.doc[i], byte(0)
	if b == ',' || b == ':' {
		if i = space(c.doc, i+1); i >= len(c.doc) {
			return false
		}
		b, between = c.doc[i], b
	}
	want, top := byte(0), &c.open[len(c.open)-1]
	switch {
	case top.object && top.n%2 == 1:
		want = ':'
	case top.n > 0 && b != '}' && b != ']' && len(c.open) > 1:
		want = ','
	}
	c.next = i
	if want != between {
		c.next = 0
		return false
	}
	return true
}

// kindOf holds the kind of a value by its first byte.
var kindOf = [256]jsontext.Kind{
	'n': 'n', 't': 't', 'f': 'f', '"': '"', '{': '{', '}': '}', '[': '[', ']': ']',
	'-': '0', '0': '0', '1': '0', '2': '0', '3': '0', '4': '0', '5': '0', '6': '0', '7': '0', '8': '0', '9': '0',
}

// PeekKind implements the method of jsontext.Decoder, like the methods below.
func (c *cursor) PeekKind() jsontext.Kind {
	if c.slow != nil {
		return c.slow.PeekKind()
	}
	if !c.findToken() {
		return 0
	}
	return kindOf[c.doc[c.next]]
}

// readBracket is ReadToken for a bracket.
func (c *cursor) readBracket() error {
	if c.slow != nil || !c.findToken() || !c.bracket(c.doc[c.next]) {
		if c.slow == nil {
			c.asDecoder()
		}
		_, err := c.slow.ReadToken()
		return err
	}
	c.pos, c.next = c.next+1, 0
	return nil
}

// bracket opens or closes an object or a list, and reports whether that is valid here.
func (c *cursor) bracket(b byte) bool {
	last := len(c.open) - 1
	top := &c.open[last]
	switch b {
	case '{', '[':
		if top.wantsName() || last >= maxDepth {
			return false
		}
		top.n++
		c.open = append(c.open, level{object: b == '{'})
	case '}':
		if !top.wantsName() {
			return false
		}
		c.open = c.open[:last]
	case ']':
		if top.object || last == 0 {
			return false
		}
		c.open = c.open[:last]
	default:
		return false
	}
	return true
}

// ReadValue reads a value or a field name.
func (c *cursor) ReadValue() ([]byte, error) {
	if c.slow == nil && c.advance() {
		return c.doc[c.next:c.pos:c.pos], c.valueRead()
	}
	if c.slow == nil {
		c.asDecoder()
	}
	return c.slow.ReadValue()
}

// SkipValue is ReadValue without the value.
func (c *cursor) SkipValue() error {
	if c.slow == nil && c.advance() {
		return c.valueRead()
	}
	if c.slow == nil {
		c.asDecoder()
	}
	return c.slow.SkipValue()
}

// valueRead records that the value at next was read.
func (c *cursor) valueRead() error {
	c.next = 0
	return nil
}

// advance moves pos over the value at next, and reports whether there is one.
func (c *cursor) advance() bool {
	if !c.findToken() {
		return false
	}
	top := &c.open[len(c.open)-1]
	end := none
	switch {
	case len(c.long) > 0 && !top.wantsName() && c.knownEnd(&end):
	case c.doc[c.next] == '"':
		end, _ = textEnd(c.doc, c.next+1)
		if top.wantsName() {
			top.name, top.end = c.next, end
		}
	case !top.wantsName():
		s := scan[[]byte]{doc: c.doc}
		end = s.value(c.next, len(c.open)-1, nil)
	}
	if end == none {
		return false
	}
	top.n++
	c.pos = end
	return true
}

// knownEnd reports whether the end of the value at next is known, and sets it.
func (c *cursor) knownEnd(end *int) bool {
	at := c.base + c.next
	for len(c.long) > 0 && c.long[0].start < at {
		c.long = c.long[1:]
	}
	if len(c.long) == 0 || c.long[0].start > at {
		return false
	}
	*end = c.long[0].end - c.base
	return true
}

// InputOffset returns the offset after the last token.
func (c *cursor) InputOffset() int64 {
	if c.slow != nil {
		return c.slow.InputOffset()
	}
	return int64(c.pos)
}

// StackPointer returns the pointer of the last token.
func (c *cursor) StackPointer() jsontext.Pointer {
	if c.slow != nil {
		return c.slow.StackPointer()
	}
	var p []byte
	for i := 1; i < len(c.open); i++ {
		switch l := &c.open[i]; {
		case l.n == 0:
		case l.object:
			name := appendUnquote(nil, c.doc[l.name:l.end])
			p = append(p, jsontext.Pointer("").AppendToken(string(name))...)
		default:
			p = strconv.AppendInt(append(p, '/'), int64(l.n-1), 10)
		}
	}
	return jsontext.Pointer(p)
}
