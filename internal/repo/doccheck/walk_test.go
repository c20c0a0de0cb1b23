package doccheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

// reference matches a reference to a function in docs/architecture.md: a package, and after the first
// dot a function, type, constant or method, such as `internal/codec/stream.Part.Append`.
var reference = regexp.MustCompile("`((?:[a-z]+/)*[a-z]+)\\.([A-Za-z]+(?:\\.[A-Za-z]+)?)`")

func TestArchitectureNamesFunctionsThatExist(t *testing.T) {
	doc := read(t, "docs", "architecture.md")
	begin := strings.Index(doc, "## Where is …")
	end := strings.Index(doc, "## One home per vendor")
	if begin < 0 || end < begin {
		t.Fatal("docs/architecture.md lacks the sections with references")
	}
	refs := reference.FindAllStringSubmatch(doc[begin:end], -1)
	if len(refs) < 60 {
		t.Errorf("%d references to functions: the pattern misses most of them", len(refs))
	}
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	declared := map[string]map[string]bool{}
	for _, r := range refs {
		pkg, name := r[1], r[2]
		if declared[pkg] == nil {
			declared[pkg] = declarations(t, filepath.Join(root, filepath.FromSlash(pkg)))
		}
		if !declared[pkg][name] {
			t.Errorf("docs/architecture.md names %s.%s, which does not exist", pkg, name)
		}
	}
}

// declarations returns the names of the functions, methods, types, constants and variables
// of a package. A method is Type.Method.
func declarations(t *testing.T, dir string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			declare(names, d)
		}
	}
	return names
}

func declare(names map[string]bool, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		names[name] = true
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names[s.Name.Name] = true
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names[n.Name] = true
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}
