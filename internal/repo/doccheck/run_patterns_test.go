package doccheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

var (
	runPattern = regexp.MustCompile(`go test [^\n]*-run (?:'([^'\n]+)'|([\w|]+))`)
	testFunc   = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
)

// go test passes if its -run pattern matches nothing, so a renamed test would disappear from a
// script without notice.
func TestRunPatternsMatchTests(t *testing.T) {
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, file := range files(t, "_test.go") {
		for _, m := range testFunc.FindAllStringSubmatch(read(t, filepath.FromSlash(file)), -1) {
			names = append(names, m[1])
		}
	}
	scripts, err := filepath.Glob(filepath.Join(root, ".ci", "*"))
	if err != nil {
		t.Fatal(err)
	}
	patterns := 0
	for _, file := range append(scripts, pagesIn(root, files(t, ".md"))...) {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a folder
		}
		for _, m := range runPattern.FindAllStringSubmatch(string(text), -1) {
			for _, pattern := range splitTop(m[1] + m[2]) {
				if pattern == "^$" {
					continue
				}
				re, err := regexp.Compile(pattern)
				if err != nil {
					t.Errorf("%s: -run %s: %v", file, pattern, err)
					continue
				}
				patterns++
				found := false
				for _, name := range names {
					found = found || re.MatchString(name)
				}
				if !found {
					t.Errorf("%s: -run %s matches no test", file, pattern)
				}
			}
		}
	}
	if patterns < 8 {
		t.Errorf("found only %d patterns", patterns)
	}
}

func pagesIn(root string, list []string) (pages []string) {
	for _, file := range list {
		if strings.HasPrefix(file, "docs/guides/") { // their tests are on the page
			continue
		}
		pages = append(pages, filepath.Join(root, filepath.FromSlash(file)))
	}
	return pages
}

// splitTop splits a pattern at each | outside parentheses.
func splitTop(pattern string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range pattern {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && depth == 0:
			parts = append(parts, pattern[start:i])
			start = i + 1
		}
	}
	return append(parts, strings.TrimSpace(pattern[start:]))
}
