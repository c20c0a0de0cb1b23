package jsonwire

// Value is a value of a document, with the results of an earlier scan, so that it need
// not be scanned again. A Value with only Raw set is valid.
type Value struct {
	Raw []byte
	// long are long values of the document in which Raw begins at base. They may
	// include values before Raw.
	long []span
	base int
	// clear means that the value is known to pass Check.
	clear bool
}

// Reader returns a reader for the value. The caller may call Return on it.
func (v Value) Reader() *Reader {
	r := Borrow(v.Raw)
	r.clear = v.clear
	r.dec.long, r.dec.base = v.long, v.base
	return r
}

// Clear reports whether the value is known to pass Check.
func (v Value) Clear() bool { return v.clear }
