package targets

import dragoman "github.com/dragoman-go/dragoman"

// Match says which fields of an origin must agree before something minted by
// it may be replayed.
type Match uint8

// The fields a Match can ask for; combine them with |.
const (
	MatchDialect Match = 1 << iota
	MatchProvider
	MatchScope
	MatchModel
)

// Allows reports whether what o minted may be replayed to target: whether the fields in m
// agree. A nil origin was authored here and is never allowed.
func (m Match) Allows(o *dragoman.Origin, target dragoman.Origin) bool {
	if o == nil {
		return false
	}
	agree := func(bit Match, a, b string) bool { return m&bit == 0 || a == "" || b == "" || a == b }
	// The dialect is never unknown when it matters: an empty one is no match.
	if m&MatchDialect != 0 && o.Dialect != target.Dialect {
		return false
	}
	return agree(MatchProvider, o.Provider, target.Provider) &&
		agree(MatchScope, o.Scope, target.Scope) &&
		agree(MatchModel, o.Model, target.Model)
}
