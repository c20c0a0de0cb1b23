package schema

import "bytes"

// cursor walks JSON that jsonwire.Check has accepted, and only that: it looks
// at no more bytes than it needs to find where values end, and so cannot tell
// what is not JSON. The scan of schemas that need no change lives on it.
type cursor struct {
	b []byte
	i int
}

func (c *cursor) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\r', '\n':
			c.i++
		default:
			return
		}
	}
}

// kind returns the first byte of the next value.
func (c *cursor) kind() byte {
	c.space()
	if c.i >= len(c.b) {
		return 0
	}
	return c.b[c.i]
}

// open enters an object or array.
func (c *cursor) open() {
	c.space()
	c.i++
}

// next goes to the next member or element; false at the end, which it leaves.
func (c *cursor) next() bool {
	switch c.kind() {
	case '}', ']', 0:
		c.i++
		return false
	case ',':
		c.i++
		c.space()
	}
	return true
}

// key reads a member's name, as it stands between its quotes.
func (c *cursor) key() []byte {
	q := c.raw()
	c.space()
	c.i++ // the colon
	return q[1 : len(q)-1]
}

// raw reads the next value and returns its text.
func (c *cursor) raw() []byte {
	c.space()
	start := c.i
	switch c.b[c.i] {
	case '"':
		c.str()
	case '{', '[':
		for depth := 0; ; {
			switch c.b[c.i] {
			case '"':
				c.str()
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			c.i++
			if depth == 0 {
				return c.b[start:c.i]
			}
		}
	default:
		for c.i < len(c.b) {
			switch c.b[c.i] {
			case ',', '}', ']', ' ', '\t', '\r', '\n':
				return c.b[start:c.i]
			}
			c.i++
		}
	}
	return c.b[start:c.i]
}

// str goes past a string.
func (c *cursor) str() {
	for {
		c.i++
		c.i += bytes.IndexByte(c.b[c.i:], '"')
		slashes := 0
		for c.b[c.i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			c.i++
			return
		}
	}
}
