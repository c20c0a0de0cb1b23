package textkit

import (
	"strings"
	"unicode/utf8"
)

// MatchGlob reports whether a pattern matches all of s: * matches any characters, ? matches
// one.
func MatchGlob(pattern, s string) bool { return matchGlob(pattern, s, true) }

// MatchStars reports whether a pattern matches all of s: * matches any characters;
// every other character, including ?, is literal.
func MatchStars(pattern, s string) bool { return matchGlob(pattern, s, false) }

// GlobsOverlap reports whether some text matches both patterns, in the sense of
// [MatchStars].
func GlobsOverlap(a, b string) bool {
	starA, starB := strings.IndexByte(a, '*'), strings.IndexByte(b, '*')
	switch {
	case starA < 0:
		return MatchStars(b, a)
	case starB < 0:
		return MatchStars(a, b)
	}
	// Between its first and last star, each pattern can match all of the other.
	beginA, beginB := a[:starA], b[:starB]
	endA, endB := a[strings.LastIndexByte(a, '*')+1:], b[strings.LastIndexByte(b, '*')+1:]
	return (strings.HasPrefix(beginA, beginB) || strings.HasPrefix(beginB, beginA)) &&
		(strings.HasSuffix(endA, endB) || strings.HasSuffix(endB, endA))
}

// matchGlob takes at most len(pattern)·len(s) steps, and allocates nothing.
func matchGlob(pattern, s string, marks bool) bool {
	star, from := -1, 0 // the last star, and the position at which to retry what follows it
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && marks && pattern[p] == '?':
			p++
			i += firstChar(s[i:])
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			from += firstChar(s[from:])
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// firstChar returns the length of the first character of s, or 1 for an invalid byte.
func firstChar(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
