package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dragoman-go/dragoman/internal/text/glob"
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

func matchAny(patterns []string, s string) bool {
	for _, p := range patterns {
		if glob.Match(p, s) {
			return true
		}
	}
	return false
}
