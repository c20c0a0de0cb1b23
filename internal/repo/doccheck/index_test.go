package doccheck

import (
	"strings"
	"testing"
)

// docs/README.md is the index: a page that it does not list is hard to find.
func TestIndexListsEveryPage(t *testing.T) {
	index, listed := read(t, "docs", "README.md"), 0
	for _, file := range files(t, ".md") {
		page, ok := strings.CutPrefix(file, "docs/")
		if !ok || page == "README.md" {
			continue
		}
		if listed++; !strings.Contains(index, "]("+page+")") {
			t.Errorf("docs/README.md does not list docs/%s: add a line that says what it is for", page)
		}
	}
	if listed < 20 {
		t.Errorf("only %d pages in docs: the test finds too few", listed)
	}
}
