package dragoman

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// Fingerprint identifies the content of a canonical value. It is the same in every process and
// version. It covers everything that can appear on a wire, except the sidecar whose validity it
// checks. The zero Fingerprint matches no value.
type Fingerprint [16]byte

// hasher writes a canonical value in an injective form: every field is prefixed with its
// length, so that no two values have the same bytes.
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
		h.str("") // not a kind of part; encoders reject it
		return
	}
	h.str(p.Kind())
	hashPartMembers(p, h)
}

// Fingerprint returns the fingerprint of the message without its origin and sidecar.
func (m *Message) Fingerprint() Fingerprint {
	if m == nil {
		m = &Message{}
	}
	return fingerprint(m.hash)
}

// Fingerprint returns the fingerprint of the tool definition.
func (s *ToolSpec) Fingerprint() Fingerprint {
	if s == nil {
		s = &ToolSpec{}
	}
	return fingerprint(s.hash)
}

// Fingerprint returns the fingerprint of the request without its model, so that changing only
// the model keeps all other bytes.
func (r *Request) Fingerprint() Fingerprint {
	if r == nil {
		r = &Request{}
	}
	return fingerprint(r.hash)
}

// Fingerprint returns the fingerprint of the response without its model.
func (r *Response) Fingerprint() Fingerprint {
	if r == nil {
		r = &Response{}
	}
	return fingerprint(r.hash)
}

// Current reports whether the sidecar belongs to dialect d and f returns the fingerprint that
// it was recorded with.
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
