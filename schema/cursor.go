package schema

import "bytes"

// cursor walks JSON that jsonwire.Check has accepted. It reads only the bytes it needs to find
// the ends of values, so it cannot detect invalid JSON. The scan of schemas that need no change
// uses it.
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

// next moves to the next field or element. At the end it leaves the value and returns false.
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

// key reads the name of a field, without its quotes and still escaped.
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

// str skips a string.
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
