package doccheck

import (
	"path"
	"path/filepath"
	"slices"
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

func TestLinksToHeadingsResolve(t *testing.T) {
	all, checked := files(t, ".md"), 0
	for _, file := range all {
		for _, f := range Fragments(read(t, filepath.FromSlash(file))) {
			to := file
			if f[0] != "" {
				to = path.Join(path.Dir(file), f[0])
			}
			if !slices.Contains(all, to) {
				continue // TestLinksResolve reports missing files
			}
			if checked++; !slices.Contains(Anchors(read(t, filepath.FromSlash(to))), f[1]) {
				t.Errorf("%s links to %s#%s, and %s has no such heading", file, f[0], f[1], to)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d links to headings: the test finds too few", checked)
	}
}

func TestLinksSkipCodeBlocks(t *testing.T) {
	page := "# The `x` file!\n\n[a](b.md#c-d) [e](#the-x-file) [f](https://g.example#h)\n\n```go\nGenerate[T](ctx#i)\n# no heading\n```\n"
	if got := Links(page); !slices.Equal(got, []string{"b.md"}) {
		t.Errorf("links %q", got)
	}
	if got := Fragments(page); !slices.Equal(got, [][2]string{{"b.md", "c-d"}, {"", "the-x-file"}}) {
		t.Errorf("fragments %q", got)
	}
	if got := Anchors(page); !slices.Equal(got, []string{"the-x-file"}) {
		t.Errorf("anchors %q", got)
	}
}
