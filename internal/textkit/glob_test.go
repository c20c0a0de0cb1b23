package textkit

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// byDefinition is a slow implementation of the definition of a pattern.
func byDefinition(pattern, s []rune, marks bool) bool {
	switch {
	case len(pattern) == 0:
		return len(s) == 0
	case pattern[0] == '*':
		return byDefinition(pattern[1:], s, marks) || len(s) > 0 && byDefinition(pattern, s[1:], marks)
	case len(s) == 0:
		return false
	default:
		return (marks && pattern[0] == '?' || pattern[0] == s[0]) && byDefinition(pattern[1:], s[1:], marks)
	}
}

func TestMatch(t *testing.T) {
	texts := rapid.StringOfN(rapid.RuneFrom([]rune("ab.é?*/")), 0, 8, -1)
	patterns := rapid.StringOfN(rapid.RuneFrom([]rune("ab.é**??/")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		p, s := patterns.Draw(t, "pattern"), texts.Draw(t, "text")
		if got, want := MatchGlob(p, s), byDefinition([]rune(p), []rune(s), true); got != want {
			t.Fatalf("Match(%q, %q) is %t, want %t", p, s, got, want)
		}
		if got, want := MatchStars(p, s), byDefinition([]rune(p), []rune(s), false); got != want {
			t.Fatalf("MatchStars(%q, %q) is %t, want %t", p, s, got, want)
		}
	})
}

// overlapByDefinition tries all relevant texts.
func overlapByDefinition(a, b []rune) bool {
	switch {
	case len(a) > 0 && a[0] == '*':
		return overlapByDefinition(a[1:], b) || len(b) > 0 && overlapByDefinition(a, b[1:])
	case len(b) > 0 && b[0] == '*':
		return overlapByDefinition(b, a)
	case len(a) == 0 || len(b) == 0:
		return len(a) == len(b)
	default:
		return a[0] == b[0] && overlapByDefinition(a[1:], b[1:])
	}
}

func TestOverlap(t *testing.T) {
	patterns := rapid.StringOfN(rapid.RuneFrom([]rune("abé?**")), 0, 6, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := patterns.Draw(t, "a"), patterns.Draw(t, "b")
		if got, want := GlobsOverlap(a, b), overlapByDefinition([]rune(a), []rune(b)); got != want {
			t.Fatalf("Overlap(%q, %q) is %t, want %t", a, b, got, want)
		}
	})
}

func TestQuestionMark(t *testing.T) {
	for _, tc := range []struct {
		pattern, s   string
		match, stars bool
	}{
		{"a?c", "aéc", true, false},
		{"a?c", "a?c", true, true},
		{"a??c", "aéc", false, false},
		{"*?c", "\xffc", true, false},
		{"", "", true, true},
		{"***", "", true, true},
		{"a", "", false, false},
		{"", "a", false, false},
	} {
		if m, s := MatchGlob(tc.pattern, tc.s), MatchStars(tc.pattern, tc.s); m != tc.match || s != tc.stars {
			t.Errorf("%q on %q: %t and %t, want %t and %t", tc.pattern, tc.s, m, s, tc.match, tc.stars)
		}
	}
}

// An attacker who chooses both the pattern and the text must not be able to make
// matching take forever.
func TestMatchTimeIsBounded(t *testing.T) {
	if MatchGlob(strings.Repeat("*a", 500)+"b", strings.Repeat("a", 20_000)) {
		t.Error("matched a text without b")
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b?c", "aéb?c")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if len(pattern) > 12 || len(s) > 24 || !utf8.ValidString(pattern) || !utf8.ValidString(s) {
			_, _ = MatchGlob(pattern, s), MatchStars(pattern, s)
			return
		}
		if got, want := MatchGlob(pattern, s), byDefinition([]rune(pattern), []rune(s), true); got != want {
			t.Fatalf("%q on %q: %t, want %t", pattern, s, got, want)
		}
	})
}
