package targets

import dragoman "github.com/dragoman-go/dragoman"

// Match selects the fields of an origin that must agree before state from that origin may be
// replayed.
type Match uint8

// The fields of a [Match]. Combine them with |.
const (
	MatchDialect Match = 1 << iota
	MatchProvider
	MatchScope
	MatchModel
)

// Allows reports whether state from o may be replayed to target: whether the fields in m agree. An
// empty provider, scope or model agrees with any. A nil origin means that the state was authored
// here; it is never allowed.
func (m Match) Allows(o *dragoman.Origin, target dragoman.Origin) bool {
	if o == nil {
		return false
	}
	agree := func(bit Match, a, b string) bool { return m&bit == 0 || a == "" || b == "" || a == b }
	// An empty dialect does not match, because the dialect is always known when it matters.
	if m&MatchDialect != 0 && o.Dialect != target.Dialect {
		return false
	}
	return agree(MatchProvider, o.Provider, target.Provider) &&
		agree(MatchScope, o.Scope, target.Scope) &&
		agree(MatchModel, o.Model, target.Model)
}
