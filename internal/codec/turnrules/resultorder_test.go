package turnrules_test

import (
	"slices"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/turnrules"
)

func TestResultsComeFirstInCallOrder(t *testing.T) {
	calls := turnrules.Ranks[string]{}
	for _, id := range []string{"a", "b", "a", "c"} {
		calls.Add(id)
	}
	for _, tc := range []struct {
		came, want string
		moved      bool
	}{
		{"abc", "abc", false},
		{"cab", "abc", true},
		{"xab", "abx", true},
		{"axyb", "abxy", true},
		{"xy", "xy", false},
		{"bxx", "bxx", false},
	} {
		items := []byte(tc.came)
		moved := turnrules.Sort(items, func(b byte) int { return calls.Of(string(b)) })
		if string(items) != tc.want || moved != tc.moved {
			t.Errorf("%s: %s, moved %v", tc.came, items, moved)
		}
	}
}

func TestSortIsStable(t *testing.T) {
	items := [][2]int{{1, 0}, {0, 1}, {1, 2}, {0, 3}}
	turnrules.Sort(items, func(i [2]int) int { return i[0] })
	if want := [][2]int{{0, 1}, {0, 3}, {1, 0}, {1, 2}}; !slices.Equal(items, want) {
		t.Errorf("%v", items)
	}
}

func TestQuirkD6_LastResultCountsUnlessSynthetic(t *testing.T) {
	given, made := &dragoman.ToolResult{}, &dragoman.ToolResult{Synthetic: true}
	for _, tc := range []struct {
		earlier, later *dragoman.ToolResult
		want           bool
	}{{given, given, true}, {made, given, true}, {made, made, true}, {given, made, false}} {
		if got := turnrules.Replaces(tc.earlier, tc.later); got != tc.want {
			t.Errorf("synthetic %v, then %v: %v", tc.earlier.Synthetic, tc.later.Synthetic, got)
		}
	}
}
