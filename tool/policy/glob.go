package policy

import (
	"errors"
	"fmt"
	"strings"
)

// checkGlob refuses what other globs give a meaning and these do not.
func checkGlob(pattern string) error {
	if pattern == "" {
		return errors.New("a glob is empty")
	}
	if i := strings.IndexAny(pattern, `[]{}\`); i >= 0 {
		return fmt.Errorf("glob %q: %q has no meaning here; * stands for any characters, ? for one", pattern, pattern[i])
	}
	return nil
}

// isExact reports whether a glob stands for one name only.
func isExact(pattern string) bool { return !strings.ContainsAny(pattern, "*?") }

// matchGlob reports whether pattern matches all of s. It takes at most
// len(pattern)·len(s) steps.
func matchGlob(pattern, s string) bool {
	star, from := -1, 0
	p, i := 0, 0
	for i < len(s) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, from = p, i
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			i += runeLen(s[i:])
		case p < len(pattern) && pattern[p] == s[i]:
			p++
			i++
		case star >= 0:
			from++
			p, i = star+1, from
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// runeLen is the length of the first character of s.
func runeLen(s string) int {
	for i := range s {
		if i > 0 {
			return i
		}
	}
	return len(s)
}

func matchAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if matchGlob(p, s) {
			return true
		}
	}
	return false
}
