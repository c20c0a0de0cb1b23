package dragoman

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// Fingerprint identifies the content of a canonical value, the same in every
// process and version. It covers everything a wire could show, and leaves out
// the sidecar it guards. The zero Fingerprint equals no value's.
type Fingerprint [16]byte

// hasher writes a canonical value in an injective form: every field is
// prefixed with its length, so that no two values share their bytes.
type hasher struct{ b []byte }

var hashers = sync.Pool{New: func() any { return &hasher{b: make([]byte, 0, 4096)} }}

func fingerprint(write func(*hasher)) Fingerprint {
	h := hashers.Get().(*hasher)
	h.b = h.b[:0]
	write(h)
	sum := sha256.Sum256(h.b)
	if cap(h.b) <= 1<<20 {
		hashers.Put(h)
	}
	return Fingerprint(sum[:16])
}

func (h *hasher) num(n int64)    { h.b = binary.AppendVarint(h.b, n) }
func (h *hasher) str(s string)   { h.num(int64(len(s))); h.b = append(h.b, s...) }
func (h *hasher) bytes(s []byte) { h.num(int64(len(s))); h.b = append(h.b, s...) }
func (h *hasher) bool(v bool) {
	if v {
		h.b = append(h.b, 1)
	} else {
		h.b = append(h.b, 0)
	}
}
func (h *hasher) present(v bool) bool { h.bool(v); return v }

func (h *hasher) time(t time.Time) { h.num(t.Unix()) }
func (h *hasher) count(c Count)    { h.bool(c.Known); h.num(c.N) }

func (h *hasher) part(p Part) {
	if isNilPart(p) {
		h.str("") // no kind of part; encoders refuse it
		return
	}
	h.str(p.Kind())
	hashPartMembers(p, h)
}

// Fingerprint identifies the message. Its origin and sidecar do not count.
func (m *Message) Fingerprint() Fingerprint {
	if m == nil {
		m = &Message{}
	}
	return fingerprint(m.hash)
}

// Fingerprint identifies the tool's definition.
func (s *ToolSpec) Fingerprint() Fingerprint {
	if s == nil {
		s = &ToolSpec{}
	}
	return fingerprint(s.hash)
}

// Fingerprint identifies all of the request but its model, so that a request
// whose model alone changed can keep every other byte.
func (r *Request) Fingerprint() Fingerprint {
	if r == nil {
		r = &Request{}
	}
	return fingerprint(r.hash)
}

// Fingerprint identifies all of the response but its model.
func (r *Response) Fingerprint() Fingerprint {
	if r == nil {
		r = &Response{}
	}
	return fingerprint(r.hash)
}

// Current reports whether the sidecar is of dialect d and still mirrors a
// value with fingerprint f.
func (s *Sidecar) Current(d Dialect, f func() Fingerprint) bool {
	return s != nil && s.Dialect == d && s.Raw != nil && s.Mirror == f()
}

// String returns the fingerprint in hexadecimal.
func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// MarshalText writes the fingerprint in hexadecimal.
func (f Fingerprint) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads 32 hexadecimal digits.
func (f *Fingerprint) UnmarshalText(b []byte) error {
	var g Fingerprint
	if n, err := hex.Decode(g[:], b[:min(len(b), 2*len(g))]); err != nil || n != len(g) || len(b) != 2*len(g) {
		return fmt.Errorf("dragoman: %.40q is not a fingerprint: want %d hexadecimal digits", b, 2*len(g))
	}
	*f = g
	return nil
}
