package jsonwire

import "bytes"

// Known are the members of an object that are read, each with those of the object
// that is its value, or of the objects in the list that is.
type Known map[string]Known

// twin reports whether name is one of the known members but for the case of its
// letters, which many readers ignore.
func (k Known) twin(name []byte) bool {
	if _, exact := k[string(name)]; exact {
		return false
	}
	for known := range k {
		// A letter folds to itself or to one of at most three bytes.
		if len(known) <= len(name) && len(name) <= 3*len(known) && bytes.EqualFold(name, []byte(known)) {
			return true
		}
	}
	return false
}

// anyTwin reports whether a valid document may have a twin of a known member
// anywhere. It costs no memory, and no more than a glance at the names.
func anyTwin(doc []byte, k Known) bool {
	g := glance{doc: doc}
	g.value(k)
	return g.found
}

// glance looks at the names of a document that is known to be JSON.
type glance struct {
	doc   []byte
	found bool
}

// next takes the next byte that is no space, zero at the end.
func (g *glance) next() byte {
	for i, c := range g.doc {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			g.doc = g.doc[i+1:]
			return c
		}
	}
	g.doc = nil
	return 0
}

func (g *glance) value(k Known) {
	g.after(g.next(), k)
}

// after passes a value by its first byte, which was taken.
func (g *glance) after(c byte, k Known) {
	switch {
	case c == '"':
		g.text()
	case c == '{' && k != nil:
		g.object(k)
	case c == '[' && k != nil:
		for c = g.next(); c != ']' && c != 0; c = g.next() {
			if c != ',' {
				g.after(c, k)
			}
		}
	case c == '{', c == '[':
		g.skip()
	default: // a number or a word
		if i := bytes.IndexAny(g.doc, ",]} \t\r\n"); i >= 0 {
			g.doc = g.doc[i:]
		} else {
			g.doc = nil
		}
	}
}

func (g *glance) object(k Known) {
	for c := g.next(); c != '}' && c != 0; c = g.next() {
		if c != '"' { // the comma
			continue
		}
		name := g.text()
		if bytes.IndexByte(name, '\\') >= 0 || k.twin(name) {
			g.found = true // or else whoever reads the name in full will see
		}
		g.next() // the colon
		g.value(k[string(name)])
	}
}

// text passes a string, whose quote was taken, and returns what it holds.
func (g *glance) text() []byte {
	for i := 0; ; i++ {
		n := bytes.IndexByte(g.doc[min(i, len(g.doc)):], '"')
		if n < 0 {
			g.doc = nil
			return nil
		}
		i += n
		escapes := 0
		for i-escapes > 0 && g.doc[i-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			text := g.doc[:i]
			g.doc = g.doc[i+1:]
			return text
		}
	}
}

// skip passes an object or a list, whose first byte was taken.
func (g *glance) skip() {
	for depth := 1; depth > 0; {
		i := bytes.IndexAny(g.doc, `"{}[]`)
		if i < 0 {
			g.doc = nil
			return
		}
		c := g.doc[i]
		g.doc = g.doc[i+1:]
		switch c {
		case '"':
			g.text()
		case '{', '[':
			depth++
		default:
			depth--
		}
	}
}
