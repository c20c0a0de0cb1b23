// Package glob matches texts against patterns with wildcards. It is the one place
// for that: what stands for what differs from use to use, how it is matched does
// not.
//
// It is not the place for paths: no character is special here, a slash included.
package glob

import (
	"strings"
	"unicode/utf8"
)

// Match reports whether a pattern matches all of s: * stands for any characters, ?
// for one.
func Match(pattern, s string) bool { return match(pattern, s, true) }

// MatchStars reports whether a pattern matches all of s: * stands for any
// characters, and all else, ? too, for itself.
func MatchStars(pattern, s string) bool { return match(pattern, s, false) }

// Overlap reports whether some text fits two patterns of [MatchStars].
func Overlap(a, b string) bool {
	starA, starB := strings.IndexByte(a, '*'), strings.IndexByte(b, '*')
	switch {
	case starA < 0:
		return MatchStars(b, a)
	case starB < 0:
		return MatchStars(a, b)
	}
	// Between the first and the last star of each, all of the other has room.
	beginA, beginB := a[:starA], b[:starB]
	endA, endB := a[strings.LastIndexByte(a, '*')+1:], b[strings.LastIndexByte(b, '*')+1:]
	return (strings.HasPrefix(beginA, beginB) || strings.HasPrefix(beginB, beginA)) &&
		(strings.HasSuffix(endA, endB) || strings.HasSuffix(endB, endA))
}

// match takes at most len(pattern)·len(s) steps, and allocates nothing.
func match(pattern, s string, marks bool) bool {
	star, from := -1, 0 // the last star, and where what follows it is tried
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

// first is the length of the first character of s, or of a byte that is none.
func first(s string) int {
	_, n := utf8.DecodeRuneInString(s)
	return n
}
