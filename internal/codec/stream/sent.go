package stream

import (
	"hash/maphash"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
)

// Sent is what an encoder sent of a part, to find what is missing when its end
// comes. Of a call it keeps every byte, or a digest that nobody can forge, since
// clients run it; of anything else a digest, so that a long text takes no memory.
// The zero value is ready, and keeps every byte.
type Sent struct {
	n      int
	text   []byte
	digest bool
	sum    uint64
	// keyed: of a call a digest under a key of its own is kept, and no byte,
	// unless the arguments begin like a text in quotes (quirk B3). begun: it is
	// known how they begin; hashed: only the digest is kept.
	keyed, begun, hashed bool
	key                  maphash.Hash
}

// SentOf is for a part of which nothing was sent yet.
func SentOf(p dragoman.Part) Sent {
	_, call := p.(*dragoman.ToolCall)
	return Sent{digest: !call}
}

// DigestOf is SentOf for an encoder that asks for no more than Rest: long
// arguments of many calls are not kept.
func DigestOf(p dragoman.Part) Sent {
	s := SentOf(p)
	s.keyed = !s.digest
	return s
}

// begin looks how the arguments of a call begin, in whatever pieces they come:
// what is no text in quotes is from then on kept as a digest.
func (s *Sent) begin(text string) {
	first := strings.TrimLeft(text, " \t\r\n")
	if s.begun = first != ""; !s.begun || first[0] == '"' {
		return
	}
	_, _ = s.key.Write(s.text)
	s.text, s.hashed = nil, true
}

// Add takes what was sent.
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

// Forget frees what was sent: nobody asks for it any more.
func (s *Sent) Forget() { s.text = nil }

// Len returns how many bytes were sent.
func (s *Sent) Len() int { return s.n }

// String returns what was sent of a call, and nothing of another part, or of a
// call of which a digest is kept.
func (s *Sent) String() string { return string(s.text) }

// Bytes is String without the copy.
func (s *Sent) Bytes() []byte { return s.text }

// Rest returns what of a part's final text was not sent yet; ok is false where
// the text does not go on from what was sent. The end of a part other than a
// call may leave out its text (dialect.DecodeOptions.DeltasOnly): then nothing
// is missing.
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

// digest goes on with the sum of a text: FNV-1a, which takes strings as they
// are.
func digest(sum uint64, text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	sum ^= offset
	for i := range len(text) {
		sum = (sum ^ uint64(text[i])) * prime
	}
	return sum ^ offset
}
