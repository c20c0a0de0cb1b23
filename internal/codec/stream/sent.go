package stream

import (
	"hash/maphash"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// Sent records what an encoder sent of a part, to determine what is missing when the
// part ends. For a call it keeps every byte, or a digest that cannot be forged, because
// clients run the call. For anything else it keeps a digest, so that a long text takes
// no memory. The zero value is ready to use and keeps every byte.
type Sent struct {
	n      int
	text   []byte
	digest bool
	sum    uint64
	// keyed means that a call is kept as a digest with its own key instead of its
	// bytes, unless the arguments begin with a quote (quirk B3). begun means that the
	// beginning of the arguments is known; hashed, that only the digest is kept.
	keyed, begun, hashed bool
	key                  maphash.Hash
}

// SentOf returns the record for a part of which nothing was sent yet.
func SentOf(p dragoman.Part) Sent {
	_, call := p.(*dragoman.ToolCall)
	return Sent{digest: !call}
}

// DigestOf is like SentOf, for an encoder that calls only Rest: it does not keep the
// arguments of calls.
func DigestOf(p dragoman.Part) Sent {
	s := SentOf(p)
	s.keyed = !s.digest
	return s
}

// begin checks how the arguments of a call begin, however they are split. Arguments
// that do not begin with a quote are kept as a digest from then on.
func (s *Sent) begin(text string) {
	first := strings.TrimLeft(text, " \t\r\n")
	if s.begun = first != ""; !s.begun || first[0] == '"' {
		return
	}
	_, _ = s.key.Write(s.text)
	s.text, s.hashed = nil, true
}

// Add records text that was sent.
func (s *Sent) Add(text string) {
	s.n += len(text)
	if s.keyed && !s.begun {
		s.begin(text)
	}
	switch {
	case s.hashed:
		_, _ = s.key.WriteString(text)
	case s.digest:
		s.sum = digest(s.sum, text)
	default:
		s.text = Grow(s.text, text)
	}
}

// Free frees the bytes that were sent, once they are no longer needed.
func (s *Sent) Free() { s.text = nil }

// Len returns the number of bytes that were sent.
func (s *Sent) Len() int { return s.n }

// String returns the bytes that were sent of a call. It returns "" for another part,
// and for a call that is kept as a digest.
func (s *Sent) String() string { return string(s.text) }

// Bytes is like String, without a copy.
func (s *Sent) Bytes() []byte { return s.text }

// Rest returns the rest of a part's final text that was not sent yet. ok is false if
// the text does not continue what was sent. The end of a part other than a call may
// have no text (dialect.DecodeOptions.DeltasOnly); nothing is missing then.
func (s *Sent) Rest(final string) (rest string, ok bool) {
	switch {
	case final == "" && s.digest:
		return "", true
	case len(final) < s.n:
		return "", false
	case s.hashed:
		return final[s.n:], maphash.String(s.key.Seed(), final[:s.n]) == s.key.Sum64()
	case s.digest:
		return final[s.n:], digest(0, final[:s.n]) == s.sum
	default:
		return final[s.n:], final[:s.n] == string(s.text)
	}
}

// digest continues the sum of a text. It is FNV-1a, inlined to accept strings without a
// copy.
func digest(sum uint64, text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	sum ^= offset
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * prime
	}
	return sum ^ offset
}
