package jsonwire

import "bytes"

// Known are the fields of an object that are read. Each maps to the known fields of its
// value, or of the objects in its value if that is a list.
type Known map[string]Known

// caseVariant reports whether name differs from a known field only in case, which many readers
// ignore.
func (k Known) caseVariant(name []byte) bool {
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

// anyCaseVariant reports whether a valid document may have a case variant of a known field.
// It allocates nothing and looks only at the names.
func anyCaseVariant(doc []byte, k Known) bool {
	g := nameScan{doc: doc}
	g.value(k)
	return g.found
}

// nameScan scans the names of a document that is known to be valid JSON.
type nameScan struct {
	doc   []byte
	found bool
}

// next consumes the next byte that is not white space; it returns 0 at the end.
func (g *nameScan) next() byte {
	for i, c := range g.doc {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			g.doc = g.doc[i+1:]
			return c
		}
	}
	g.doc = nil
	return 0
}

func (g *nameScan) value(k Known) {
	g.after(g.next(), k)
}

// after skips a value whose first byte was consumed.
func (g *nameScan) after(c byte, k Known) {
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
	default: // a number or a literal
		if i := bytes.IndexAny(g.doc, ",]} \t\r\n"); i >= 0 {
			g.doc = g.doc[i:]
		} else {
			g.doc = nil
		}
	}
}

func (g *nameScan) object(k Known) {
	for c := g.next(); c != '}' && c != 0; c = g.next() {
		if c != '"' { // a comma
			continue
		}
		name := g.text()
		if bytes.IndexByte(name, '\\') >= 0 || k.caseVariant(name) {
			g.found = true // otherwise a full read of the name decides
		}
		g.next() // the colon
		g.value(k[string(name)])
	}
}

// text skips a string whose first quote was consumed, and returns its content.
func (g *nameScan) text() []byte {
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

// skip skips an object or a list whose first byte was consumed.
func (g *nameScan) skip() {
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
