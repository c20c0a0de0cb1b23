package doccheck

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

func TestCitedDecisionsStand(t *testing.T) {
	d := ReadDecisions(read(t, "docs", "decisions.md"))
	cited := 0
	for _, file := range files(t, ".go", ".md", ".txtar") {
		for _, c := range DecisionCitations(read(t, filepath.FromSlash(file))) {
			cited++
			if by, ok := d.Superseded[c.Number]; ok {
				t.Errorf("%s:%d: decision %d no longer holds: cite %d, which replaced it", file, c.Line, c.Number, by)
			} else if !d.Has(c.Number) {
				t.Errorf("%s:%d: decision %d has no entry in docs/decisions.md", file, c.Line, c.Number)
			}
		}
	}
	if cited < 40 {
		t.Errorf("found %d citations: the patterns miss most of them", cited)
	}
}

func TestDecisionsAreListedOnce(t *testing.T) {
	d := ReadDecisions(read(t, "docs", "decisions.md"))
	seen := map[int]bool{}
	for _, topic := range d.Topics {
		if got := d.Contents[topic.Name]; !slices.Equal(got, topic.Numbers) {
			t.Errorf("the table of topics lists %v for %q, but the section has %v", got, topic.Name, topic.Numbers)
		}
		for _, n := range topic.Numbers {
			if seen[n] {
				t.Errorf("decision %d has two entries", n)
			}
			seen[n] = true
		}
	}
	if len(d.Topics) != len(d.Contents) {
		t.Errorf("the table has %d topics, the page has %d", len(d.Contents), len(d.Topics))
	}
	for n, by := range d.Superseded {
		if seen[n] || !seen[by] {
			t.Errorf("decision %d is superseded by %d: has an entry: %v, its replacement has one: %v", n, by, seen[n], seen[by])
		}
	}
}

// Every decision says what was chosen, why, and what it costs.
func TestDecisionsAreComplete(t *testing.T) {
	for _, e := range strings.Split(read(t, "docs", "decisions.md"), "\n### ")[1:] {
		e, _, _ = strings.Cut(e, "\n## ")
		title, body, _ := strings.Cut(e, "\n")
		for _, label := range []string{"\n- Choice: ", "\n- Why: ", "\n- Cost: "} {
			if strings.Count(body, label) != 1 {
				t.Errorf("decision %q needs exactly one line %q", title, strings.TrimSpace(label))
			}
		}
		if context, _, _ := strings.Cut(body, "\n- Choice: "); strings.TrimSpace(context) == "" {
			t.Errorf("decision %q begins without its context", title)
		}
	}
}

var (
	code       = regexp.MustCompile("`([^`\n]+)`")
	repoPath   = regexp.MustCompile(`^(\.?[a-z][\w-]*)(?:/[\w.-]+)+/?$`)
	declared   = regexp.MustCompile(`\.([A-Z]\w*)$`)
	qualified  = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9]*)\.([A-Za-z][A-Za-z0-9]*(?:\.[A-Z][A-Za-z0-9]*)?)$`)
	identifier = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$`)
)

// standardPackages are the packages of the standard library that the decisions name.
var standardPackages = map[string]bool{"http": true, "json": true, "os": true}

func TestDecisionsNameWhatExists(t *testing.T) {
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	names := index(t, root)
	checked := 0
	for _, m := range code.FindAllStringSubmatch(read(t, "docs", "decisions.md"), -1) {
		what := m[1]
		if p := repoPath.FindStringSubmatch(what); p != nil {
			if _, err := os.Stat(filepath.Join(root, p[1])); err != nil {
				continue // not a path of this repository, such as net/http
			}
			checked++
			dir, name := what, ""
			if m := declared.FindStringSubmatch(what); m != nil {
				dir, name = strings.TrimSuffix(what, m[0]), m[1]
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(dir))); err != nil {
				t.Errorf("docs/decisions.md names `%s`, which does not exist", what)
			} else if name != "" && !names.packages[dir][name] {
				t.Errorf("docs/decisions.md names `%s`, but package %s does not declare it", what, dir)
			}
			continue
		}
		if q := qualified.FindStringSubmatch(what); q != nil {
			known, isPackage := names.lookup(q[1], q[2])
			if !isPackage && token.IsExported(q[2]) && !token.IsExported(q[1]) && !standardPackages[q[1]] {
				t.Errorf("docs/decisions.md names `%s`, but there is no package %s", what, q[1])
			}
			if isPackage || token.IsExported(q[1]) {
				checked++
				if !known && !names.members[what] {
					t.Errorf("docs/decisions.md names `%s`, which does not exist", what)
				}
			}
			continue
		}
		if identifier.MatchString(what) {
			checked++
			if !names.words[what] {
				t.Errorf("docs/decisions.md names `%s`, which no package declares", what)
			}
		}
	}
	if checked < 100 {
		t.Errorf("checked %d names: the patterns miss most of them", checked)
	}
}

// nameIndex holds what the packages of the repository declare.
type nameIndex struct {
	// packages maps a folder to its declarations. A field or a method is Type.Name.
	packages map[string]map[string]bool
	// members holds every Type.Name, words every last element of a name.
	members, words map[string]bool
}

// lookup reports whether a package with this name declares name, and whether there is such
// a package.
func (x nameIndex) lookup(pkg, name string) (known, isPackage bool) {
	for dir, names := range x.packages {
		if path.Base(dir) == pkg {
			isPackage = true
			known = known || names[name]
		}
	}
	return known, isPackage
}

func index(t *testing.T, root string) nameIndex {
	t.Helper()
	x := nameIndex{packages: map[string]map[string]bool{}, members: map[string]bool{}, words: map[string]bool{}}
	for _, name := range files(t, ".go") {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, filepath.FromSlash(name)), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(name)
		if x.packages[dir] == nil {
			x.packages[dir] = map[string]bool{}
		}
		for _, d := range file.Decls {
			declare(x.packages[dir], d)
			declareFields(x.packages[dir], d)
		}
	}
	for _, names := range x.packages {
		for n := range names {
			member := strings.LastIndexByte(n, '.')
			x.words[n[member+1:]] = true
			if member >= 0 {
				x.members[n] = true
			}
		}
	}
	return x
}

// declareFields adds the fields of structs and the methods of interfaces as Type.Name.
func declareFields(names map[string]bool, d ast.Decl) {
	g, ok := d.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, s := range g.Specs {
		ts, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		var list *ast.FieldList
		switch typ := ts.Type.(type) {
		case *ast.StructType:
			list = typ.Fields
		case *ast.InterfaceType:
			list = typ.Methods
		default:
			continue
		}
		for _, f := range list.List {
			for _, n := range f.Names {
				names[ts.Name.Name+"."+n.Name] = true
			}
		}
	}
}

func TestDecisionCitations(t *testing.T) {
	// The word is split here, because this file would otherwise cite these numbers.
	w := "deci" + "sion"
	for _, tc := range []struct {
		text string
		want string
	}{
		{"see " + w + " 74.", "74@1"},
		{"(" + w + "s 45, 132)", "45@1 132@1"},
		{"some " + w + "\n\t// 5, 6 and\n\t// 7 apply", "5@2 6@2 7@3"},
		{"De" + w[2:] + " 126: it grows", "126@1"},
		{"func Test" + "De" + w[2:] + "85_Altered(", "85@1"},
		{"func Test" + "QuirkI18_De" + w[2:] + "27_Open(", "27@1"},
		{"a " + w + " of 3 people, " + w + "s", ""},
	} {
		var got []string
		for _, c := range DecisionCitations(tc.text) {
			got = append(got, fmt.Sprintf("%d@%d", c.Number, c.Line))
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%q cites %q, want %q", tc.text, s, tc.want)
		}
	}
}
