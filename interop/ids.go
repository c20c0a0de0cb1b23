package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"math/big"

	dragoman "github.com/dragoman-go/dragoman"
)

// ids aliases call ids that a target would reject, the same way on a call and
// on its result, and reverses it. An id that is legal passes (quirks B13, B14).
type ids struct {
	rule    dragoman.IDRule
	origins map[string]string // alias to id
	kept    map[string]bool   // minted by the target itself
}

func (s *ids) alias(id string) string {
	if id == "" || s.kept[id] || LegalID(id, s.rule) {
		return id // no id is none: whoever needs one has made it before
	}
	a := aliasID(id, s.rule)
	if s.origins == nil {
		s.origins = make(map[string]string)
	}
	s.origins[a] = id
	return a
}

func (s *ids) restore(alias string) string {
	if id, ok := s.origins[alias]; ok {
		return id
	}
	return alias
}

// LegalID reports whether a wire accepts a call id as it is.
func LegalID(id string, rule dragoman.IDRule) bool {
	if id == "" || (rule.Max > 0 && len(id) > rule.Max) || (rule.Exact > 0 && len(id) != rule.Exact) {
		return false
	}
	for i := 0; i < len(id); i++ {
		if !allowed(id[i], rule.Chars) {
			return false
		}
	}
	return true
}

const hashedIDPrefix = 15

func aliasID(id string, rule dragoman.IDRule) string {
	sum := sha256.Sum256([]byte(id))
	if rule.Exact > 0 {
		// Base 62 of the hash: truncating the id itself would collide.
		s := new(big.Int).SetBytes(sum[:]).Text(62)
		for len(s) < rule.Exact {
			s += "0"
		}
		return s[:rule.Exact]
	}
	out := make([]byte, 0, hashedIDPrefix+17)
	for i := 0; i < len(id) && len(out) < hashedIDPrefix; i++ {
		if allowed(id[i], rule.Chars) {
			out = append(out, id[i])
		} else {
			out = append(out, '_')
		}
	}
	out = append(out, '_')
	out = hex.AppendEncode(out, sum[:8])
	if rule.Max > 0 && len(out) > rule.Max {
		out = out[len(out)-rule.Max:]
	}
	return string(out)
}
