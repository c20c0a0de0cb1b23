package doccheck

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

func read(t *testing.T, elem ...string) string {
	t.Helper()
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(append([]string{root}, elem...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func files(t *testing.T, suffixes ...string) []string {
	t.Helper()
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	list, err := testkit.RepoFiles(root, suffixes...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestCitedIDsHaveALine(t *testing.T) {
	quirks, requirements := Entries(read(t, "docs", "quirks.md")), Entries(read(t, "docs", "requirements.md"))
	for _, file := range files(t, ".go", ".md", ".txtar") {
		for _, c := range Citations(read(t, filepath.FromSlash(file))) {
			if c.Quirk && !slices.Contains(quirks, c.ID) {
				t.Errorf("%s:%d: %s has no line in docs/quirks.md", file, c.Line, c.ID)
			}
			if !c.Quirk && !slices.Contains(requirements, c.ID) {
				t.Errorf("%s:%d: %s has no line in docs/requirements.md", file, c.Line, c.ID)
			}
		}
	}
}

// Ids count up from 1 without gaps or duplicates, so that no id is reused.
func TestListsAreComplete(t *testing.T) {
	for _, tc := range []struct {
		doc  string
		want map[string]int // letter to last number
	}{
		{"quirks.md", map[string]int{"A": 48, "B": 37, "C": 41, "D": 39, "E": 12, "F": 10, "G": 12, "H": 18, "I": 18, "J": 20, "K": 40}},
		{"requirements.md", map[string]int{"R": 11, "X": 15, "T": 16, "I": 9, "P": 7, "A": 7, "L": 14, "S": 5, "M": 9, "O": 4, "G": 11, "C": 5, "Z": 4, "D": 4}},
	} {
		got := map[string]int{}
		for _, id := range Entries(read(t, "docs", tc.doc)) {
			got[id[:1]]++
			if want := fmt.Sprintf("%s%d", id[:1], got[id[:1]]); id != want {
				t.Errorf("docs/%s: found %s, want %s", tc.doc, id, want)
			}
		}
		for letter, n := range tc.want {
			if got[letter] < n {
				t.Errorf("docs/%s: %s ends at %d, not %d", tc.doc, letter, got[letter], n)
			}
		}
	}
}

// untested begins the sentence that says why a line has no test.
const untested = "No test names this line: "

func TestEveryQuirkHasATestOrAReason(t *testing.T) {
	named := map[string]bool{}
	for _, file := range files(t, "_test.go") {
		for _, f := range testFunc.FindAllStringSubmatch(read(t, filepath.FromSlash(file)), -1) {
			for _, m := range quirkInName.FindAllStringSubmatch(f[1], -1) {
				named[m[2]] = true
				if pitfall := m[2][0] == 'K'; pitfall != (m[1] == "Pitfall") {
					t.Errorf("%s: %s: want TestPitfall for K, TestQuirk for other letters", file, f[1])
				}
			}
		}
	}
	texts := EntryTexts(read(t, "docs", "quirks.md"))
	if len(texts) < 250 {
		t.Errorf("only %d lines: the pattern misses most of them", len(texts))
	}
	for id, text := range texts {
		reason := strings.Contains(strings.Join(strings.Fields(text), " "), untested)
		switch {
		case !named[id] && !reason:
			t.Errorf("docs/quirks.md: %s has no test with its id in the name, and does not say why (%q)", id, untested)
		case named[id] && reason:
			t.Errorf("docs/quirks.md: %s has a test: remove the sentence %q", id, untested)
		}
	}
}

var quirkInName = regexp.MustCompile(`(Quirk|Pitfall)([A-Z]\d+)`)

func TestLinksResolve(t *testing.T) {
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files(t, ".md") {
		for _, target := range Links(read(t, filepath.FromSlash(file))) {
			to := path.Join(path.Dir(file), target)
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(to))); err != nil {
				t.Errorf("%s links to %s, which does not exist", file, target)
			}
		}
	}
}

func TestCitations(t *testing.T) {
	// The words are split here, because this file would otherwise cite these ids.
	q, r := "qui"+"rk", "require"+"ment"
	for _, tc := range []struct {
		text string
		want string
	}{
		{"see " + q + " C2.", "q:C2@1"},
		{"(" + q + "s B13, B14)", "q:B13@1 q:B14@1"},
		{q + "s B18-B21, C34 and\n// D7 apply", "q:B18@1 q:B21@1 q:C34@1 q:D7@2"},
		{"some " + q + "\n\t// C5 here", "q:C5@2"},
		{"func Test" + "QuirkC2_IndexZero(", "q:C2@1"},
		{"pit" + "fall K14, func Test" + "PitfallK8_Lost(", "q:K14@1 q:K8@1"},
		{r + " I8", "r:I8@1"},
		{"func Test" + "R7_Sanitise(", "r:R7@1"},
		{"TestUTF8_Split TestB64_X a " + q + " of C code, SHA256, HTTP2", ""},
	} {
		var got []string
		for _, c := range Citations(tc.text) {
			list := "r"
			if c.Quirk {
				list = "q"
			}
			got = append(got, fmt.Sprintf("%s:%s@%d", list, c.ID, c.Line))
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%q cites %q, want %q", tc.text, s, tc.want)
		}
	}
}
