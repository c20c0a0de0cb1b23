// Package glob matches texts against patterns with wildcards.
//
// It is not for paths: no character is special, not even a slash.
package glob

import (
	"strings"
	"unicode/utf8"
)

// Match reports whether a pattern matches all of s: * matches any characters, ? matches
// one.
func Match(pattern, s string) bool { return match(pattern, s, true) }

// MatchStars reports whether a pattern matches all of s: * matches any characters;
// every other character, including ?, is literal.
func MatchStars(pattern, s string) bool { return match(pattern, s, false) }

// Overlap reports whether some text matches both patterns, in the sense of
// [MatchStars].
func Overlap(a, b string) bool {
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

// match takes at most len(pattern)·len(s) steps, and allocates nothing.
func match(pattern, s string, marks bool) bool {
	star, from := -1, 0 // the last star, and the position at which to retry what follows it
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && marks && pattern[p] == '?':
			p++
			i += first(s[i:])
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			from += first(s[from:])
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// first returns the length of the first character of s, or 1 for an invalid byte.
func first(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
