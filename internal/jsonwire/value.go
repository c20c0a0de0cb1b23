package jsonwire

// Value is a value of a document, with what is known of it because the document was
// gone over before, so that nobody need go over it again. One of which nothing is known
// but its text is one too.
type Value struct {
	Raw []byte
	// long are long values of the document, in which Raw begins at base; those before
	// it may be among them.
	long []span
	base int
	// clear says that Check would find nothing.
	clear bool
}

// Reader returns a reader of the value, which may be returned.
func (v Value) Reader() *Reader {
	r := Borrow(v.Raw)
	r.clear = v.clear
	r.dec.long, r.dec.base = v.long, v.base
	return r
}

// Clear reports whether it is known that Check would find nothing.
func (v Value) Clear() bool { return v.clear }
