package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dragoman-go/dragoman/internal/textkit"
)

// checkGlob refuses characters that have a meaning in other globs but not here.
func checkGlob(pattern string) error {
	if pattern == "" {
		return errors.New("the pattern is empty")
	}
	if i := strings.IndexAny(pattern, `[]{}\`); i >= 0 {
		return fmt.Errorf("glob %q: %q is not supported; * matches any characters, ? matches one", pattern, pattern[i])
	}
	return nil
}

// isExact reports whether a glob matches only one name.
func isExact(pattern string) bool { return !strings.ContainsAny(pattern, "*?") }

func matchAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if textkit.MatchGlob(p, s) {
			return true
		}
	}
	return false
}
