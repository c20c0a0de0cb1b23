package interop

import (
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"strconv"
	"unicode/utf8"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/targets"
)

// ids replaces call ids that a target would reject with aliases, the same way for a call and
// its result, and reverses it. A valid id is unchanged (quirks B13, B14), unless it is already
// the alias of another one: no two ids are ever written alike.
type ids struct {
	rule     targets.IDRule
	origins  map[string]string // maps what was written to the original id
	aliases  map[string]string // maps an id to what was written for it; unchanged ids may be missing
	seen     map[string]idMark // the marks of ids that occur in the request
	numbered int               // the number of calls that were numbered
}

// idMark holds the facts known about an id before it is written.
type idMark uint8

const (
	// announced: the id occurs in the request; it must not be used as an alias.
	inRequest idMark = 1 << iota
	// kept: the target generated the id itself.
	ownID
)

func (s *ids) mark(id string, m idMark) {
	if known := s.seen[id]; known&m == 0 {
		put(&s.seen, id, known|m)
	}
}

// number assigns the next number to a call. It skips numbers that are taken.
func (s *ids) number(id, name string) {
	if s.aliases[id] != "" {
		return
	}
	a := id
	for ; s.seen[id]&ownID == 0; s.numbered++ {
		a = "functions." + name + ":" + strconv.Itoa(s.numbered)
		if a == id || s.seen[a] == 0 && !s.takenFrom(id, a) {
			break
		}
	}
	s.numbered++
	put(&s.aliases, id, a)
	put(&s.origins, a, id)
}

func (s *ids) alias(id string) string {
	if id == "" { // an empty id stays empty: callers that need one have generated it before
		return id
	}
	if a, ok := s.aliases[id]; ok {
		return a
	}
	known := s.seen[id]
	if (known&ownID != 0 || s.rule.Allows(id)) && !s.takenFrom(id, id) {
		if known == 0 { // an alias may equal the id, unless the id is known to be taken
			put(&s.origins, id, id)
		}
		return id
	}
	a := s.free(id)
	put(&s.aliases, id, a)
	put(&s.origins, a, id)
	return a
}

// takenFrom reports whether a is the alias of another id.
func (s *ids) takenFrom(id, a string) bool {
	owner, ok := s.origins[a]
	return ok && owner != id
}

// free returns an unused alias of id. If the hash is taken, because an attacker predicted it,
// free tries another one. Each failed try needs another id, so there are at most as many tries
// as ids, unless the rule has too few possible aliases.
func (s *ids) free(id string) string {
	tries := len(s.origins) + len(s.seen) + 8
	for try := 0; ; try++ {
		a := aliasID(id, s.rule, try)
		if !s.takenFrom(id, a) && (a == id || s.seen[a] == 0) || try == tries {
			return a
		}
	}
}

// base62 is the alphabet of ids of a fixed length.
const base62 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

func (s *ids) restore(alias string) string {
	if id, ok := s.origins[alias]; ok {
		return id
	}
	return alias
}

const hashedIDPrefix = 15

// aliasID returns the alias of an id; each try returns another one.
func aliasID(id string, rule targets.IDRule, try int) string {
	salted := id
	if try > 0 {
		salted += "\x00" + strconv.Itoa(try)
	}
	sum := sha256.Sum256([]byte(salted))
	if rule.Exact > 0 {
		// The hash uses the characters that the wire allows: truncating the id itself would
		// cause collisions.
		alphabet := make([]byte, 0, len(base62))
		for i := range len(base62) {
			if textkit.InSet(rule.Chars, base62[i]) {
				alphabet = append(alphabet, base62[i])
			}
		}
		if len(alphabet) == 0 {
			alphabet = []byte(base62)
		}
		out := make([]byte, rule.Exact)
		n, base, digit := new(big.Int).SetBytes(sum[:]), big.NewInt(int64(len(alphabet))), new(big.Int)
		for i := range out {
			n.QuoRem(n, base, digit)
			out[i] = alphabet[digit.Int64()]
		}
		return string(out)
	}
	out := make([]byte, 0, hashedIDPrefix+17)
	gap := separator(rule.Chars)
	for i := 0; i < len(id) && len(out) < hashedIDPrefix; i++ {
		// A truncated multi-byte character would be decoded as another one.
		if textkit.InSet(rule.Chars, id[i]) && id[i] < utf8.RuneSelf {
			out = append(out, id[i])
		} else {
			out = append(out, gap...)
		}
	}
	out = append(out, gap...)
	out = hex.AppendEncode(out, sum[:8])
	if rule.Max > 0 && len(out) > rule.Max {
		out = out[len(out)-rule.Max:]
	}
	return string(out)
}
