package archtest

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

const whereToAdd = "add a line to layers in internal/repo/archtest/layers_test.go"

// layerOf returns the index of a package's layer, or -1. A line with the exact path takes
// precedence over a pattern.
func layerOf(pkg string) int {
	if i := slices.IndexFunc(layers, func(r layer) bool { return r.path == pkg }); i >= 0 {
		return i
	}
	return slices.IndexFunc(layers, func(r layer) bool {
		ok, _ := path.Match(r.path, pkg)
		return ok
	})
}

func ours(importPath string) (string, bool) {
	if importPath == testkit.Module {
		return "", true
	}
	return strings.CutPrefix(importPath, testkit.Module+"/")
}

func title(pkg string) string {
	if pkg == "" {
		return "the root package"
	}
	return pkg
}

// source holds the parsed non-test files of a package, with resolved names.
type source struct {
	path  string
	layer layer
	rank  int
	fset  *token.FileSet
	files []*ast.File
	info  *types.Info
	scope *types.Scope
}

// tree parses every package of the module that has non-test files; the others cannot be
// imported.
func tree(t *testing.T) []*source {
	t.Helper()
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	pkgs, err := testkit.RepoPackages(root)
	if err != nil {
		t.Fatal(err)
	}
	var all []*source
	for _, p := range pkgs {
		if len(p.Files) == 0 {
			continue
		}
		if layerOf(p.Path) < 0 {
			t.Errorf("%s is in no layer: %s", title(p.Path), whereToAdd)
			continue
		}
		s := newSource(p.Path)
		for _, name := range p.Files {
			s.parse(t, filepath.Join(root, filepath.FromSlash(p.Path), name), nil)
		}
		s.resolve()
		all = append(all, s)
	}
	return all
}

func newSource(pkg string) *source {
	rank := layerOf(pkg)
	return &source{path: pkg, layer: layers[rank], rank: rank, fset: token.NewFileSet()}
}

func (s *source) parse(t *testing.T, file string, src any) {
	t.Helper()
	f, err := parser.ParseFile(s.fset, file, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	s.files = append(s.files, f)
}

// resolve resolves names. It does not follow imports, so it needs neither network nor
// compiled packages, and errors are expected.
func (s *source) resolve() {
	s.info = &types.Info{Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := conf.Check(s.path, s.fset, s.files, s.info)
	s.scope = pkg.Scope()
}

var majorVersion = regexp.MustCompile(`/v[0-9]+$`)

// noImports returns every import as an empty package.
type noImports struct{}

func (noImports) Import(path string) (*types.Package, error) {
	name := majorVersion.ReplaceAllString(path, "")
	pkg := types.NewPackage(path, name[strings.LastIndexByte(name, '/')+1:])
	pkg.MarkComplete()
	return pkg, nil
}

// imports calls visit for each import of the package.
func (s *source) imports(visit func(pos token.Position, path string)) {
	for _, f := range s.files {
		for _, spec := range f.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err == nil {
				visit(s.fset.Position(spec.Pos()), p)
			}
		}
	}
}

// selectors calls visit for each use of a name of an imported package.
func (s *source) selectors(n ast.Node, visit func(pos token.Position, pkg, name string)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				if pkg, ok := s.info.Uses[id].(*types.PkgName); ok {
					visit(s.fset.Position(sel.Pos()), pkg.Imported().Path(), sel.Sel.Name)
				}
			}
		}
		return true
	})
}

// A rule checks one package and reports violations.
type (
	rule     func(s *source, report reporter)
	reporter func(pos token.Position, format string, args ...any)
)

var rules = []struct {
	name  string
	check rule
}{
	{"imports point downward", importsPointDownward},
	{"other modules are imported only where allowed", otherModulesOnlyWhereAllowed},
	{"exported declarations use no foreign types", exportedDeclarationsUseNoForeignTypes},
	{"libraries have no hidden state", librariesHaveNoHiddenState},
	{"libraries do not print or exit", librariesDoNotPrintOrExit},
	{"pure packages do no I/O", purePackagesDoNoIO},
	{"dialect names stay in their packages", vendorsStayAtHome},
	{"interop and schema name no format of a dialect", sharedEnginesNameNoFormat},
}

func TestLayers(t *testing.T) {
	all := tree(t)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, s := range all {
				r.check(s, func(pos token.Position, format string, args ...any) {
					t.Errorf("%v: %s", pos, fmt.Sprintf(format, args...))
				})
			}
		})
	}
}

// Each rule must detect a violation.
func TestRulesDetectViolations(t *testing.T) {
	for _, tc := range []struct {
		name, pkg, src string
		want           string // part of the only report; empty means no report
	}{
		{"root imports a dialect", "", `import _ "MODULE/dialect"`, "above it or in the same layer"},
		{"root imports more than it may", "", `import _ "MODULE/internal/framing/sse"`, "may import only"},
		{"a dialect imports its sibling", "dialect/anthropic", `import _ "MODULE/dialect/openaichat"`, "above it or in the same layer"},
		{"a dialect imports interop", "dialect/anthropic", `import _ "MODULE/interop"`, ""},
		{"an unknown package", "agent", `import _ "MODULE/utils"`, "in no layer"},
		{"framing imports the model", "internal/framing/sse", `import _ "MODULE"`, "above it or in the same layer"},
		{"a test imports testkit", "internal/repo/apicheck", `import _ "MODULE/internal/testkit"`, ""},
		{"a program imports testkit", "examples/loss-report", `import _ "MODULE/internal/testkit/gen"`, "above it or in the same layer"},
		{"an unlisted dependency", "dialect/anthropic", `import _ "github.com/tidwall/gjson"`, "may not import"},
		{"a dependency in the wrong package", "interop", `import _ "github.com/invopop/jsonschema"`, "may not import"},
		{"a foreign type in a field", "schema", "import \"github.com/invopop/jsonschema\"\ntype T struct { S *jsonschema.Schema }", "exported declaration uses"},
		{"a foreign type of a major version", "schema", "import \"github.com/santhosh-tekuri/jsonschema/v6\"\nfunc F(*jsonschema.Schema) {}", "exported declaration uses"},
		{"a foreign type in an unexported field", "schema", "import \"github.com/invopop/jsonschema\"\ntype T struct { s *jsonschema.Schema }", ""},
		{"an init function", "interop", `func init() {}`, "init function"},
		{"a counter", "interop", "var n int\nfunc F() { n++ }", "changes the package variable n"},
		{"a cache", "interop", "var m = map[string]int{}\nfunc F(k string) { m[k] = 1 }", "changes the package variable m"},
		{"a local variable of the same name", "interop", "var n int\nfunc F() int { n := 1; n++; return n }", ""},
		{"a package-level lock", "interop", "import \"sync\"\nvar mu sync.Mutex", "guarded by sync.Mutex"},
		{"printing", "agent", "import \"fmt\"\nfunc F() { fmt.Println() }", "uses fmt.Println"},
		{"printing under another name", "agent", "import f \"fmt\"\nfunc F() { f.Println() }", "uses fmt.Println"},
		{"the print builtin", "agent", "func F() { println() }", "uses println"},
		{"the old logger", "agent", `import _ "log"`, "imports log"},
		{"exiting", "provider", "import \"os\"\nfunc F() { os.Exit(1) }", "uses os.Exit"},
		{"reading the environment", "provider", "import \"os\"\nfunc F() string { return os.Getenv(\"X\") }", ""},
		{"printing in a program", "examples/loss-report", "import (\n\"fmt\"\n\"os\"\n)\nfunc F() { fmt.Fprintln(os.Stderr) }", ""},
		{"the clock", "dialect/anthropic", "import \"time\"\nfunc F() time.Time { return time.Now() }", "may not use time.Now"},
		{"the clock where it is allowed", "schema", "import \"time\"\nfunc F() time.Time { return time.Now() }", ""},
		{"the network", "dialect/anthropic", `import _ "net"`, "may not import net"},
		{"an HTTP client", "dialect/anthropic", "import \"net/http\"\nvar C = http.DefaultClient", "may not use net/http.DefaultClient"},
		{"a dialect's name", "gateway", "import (\n\"MODULE\"\n\"MODULE/internal/codec/dialectname\"\n)\nfunc F(d dragoman.Dialect) bool { return d == dialectname.Bedrock }", "uses dialectname.Bedrock"},
		{"a dialect's name in a string", "gateway", `const d = "bedrock.converse"`, "names bedrock.converse"},
		{"a dialect's package", "gateway", `import _ "MODULE/dialect/anthropic"`, "imports dialect/anthropic"},
		{"a dialect's name in its package", "dialect/anthropic", "import \"MODULE/internal/codec/dialectname\"\nconst name = dialectname.Anthropic", ""},
		{"a dialect in the registry", "interop", "import \"MODULE/internal/codec/dialectname\"\nvar d = dialectname.Bedrock", "uses dialectname.Bedrock"},
		{"a dialect's format in the registry", "interop", "import \"MODULE/internal/codec/toolformat\"\nvar f = toolformat.GeminiResult", "names toolformat.GeminiResult"},
		{"a neutral format in the registry", "interop", "import \"MODULE/internal/codec/toolformat\"\nvar f = toolformat.MCPTool", ""},
		{"an HTTP header", "dialect/anthropic", "import \"net/http\"\nfunc F(http.Header) {}", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSource(tc.pkg)
			s.parse(t, "x.go", "package x\n"+strings.ReplaceAll(tc.src, "MODULE", testkit.Module))
			s.resolve()
			var got []string
			for _, r := range rules {
				r.check(s, func(_ token.Position, format string, args ...any) {
					got = append(got, fmt.Sprintf(format, args...))
				})
			}
			switch {
			case tc.want == "" && len(got) > 0:
				t.Errorf("reported %q", got)
			case tc.want != "" && !(len(got) == 1 && strings.Contains(got[0], tc.want)):
				t.Errorf("reported %q, want one report with %q", got, tc.want)
			}
		})
	}
}

// sharedEnginesNameNoFormat keeps facts about one vendor's tools and schemas in the package
// of its dialect: the registry and the lowering engine get them as data.
func sharedEnginesNameNoFormat(s *source, report reporter) {
	if s.path != "interop" && s.path != "schema" {
		return
	}
	for _, f := range s.files {
		s.selectors(f, func(pos token.Position, pkg, name string) {
			if pkg == testkit.Module+"/internal/codec/toolformat" && name != "MCPTool" {
				report(pos, "%s names toolformat.%s: move the fact to the codec of the dialect", s.path, name)
			}
		})
	}
}

func importsPointDownward(s *source, report reporter) {
	s.imports(func(pos token.Position, imp string) {
		pkg, ok := ours(imp)
		if !ok {
			return
		}
		switch to := layerOf(pkg); {
		case to < 0:
			report(pos, "%s imports %s, which is in no layer: %s", title(s.path), title(pkg), whereToAdd)
		case to >= s.rank:
			report(pos, "%s imports %s, which is above it or in the same layer", title(s.path), title(pkg))
		case s.layer.only != nil && !slices.Contains(s.layer.only, pkg):
			report(pos, "%s may import only %q of this module, not %s", title(s.path), s.layer.only, title(pkg))
		case layers[to].program:
			report(pos, "%s imports the program %s", title(s.path), pkg)
		}
	})
}

func isStd(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".")
}

func (r layer) allows(importPath string) bool {
	return slices.ContainsFunc(r.third, func(p string) bool {
		return p == importPath || strings.HasSuffix(p, "/") && strings.HasPrefix(importPath, p)
	})
}

func otherModulesOnlyWhereAllowed(s *source, report reporter) {
	s.imports(func(pos token.Position, imp string) {
		if _, ok := ours(imp); !ok && !isStd(imp) && !s.layer.allows(imp) {
			report(pos, "%s may not import %s: if it must, add it to third of its layer", title(s.path), imp)
		}
	})
}

// exportedDeclarationsUseNoForeignTypes forbids types of other modules in exported declarations:
// the version of their module would be part of our contract.
func exportedDeclarationsUseNoForeignTypes(s *source, report reporter) {
	if s.layer.program || strings.HasPrefix(s.path, "internal/") {
		return
	}
	check := func(n ast.Node) {
		s.selectors(n, func(pos token.Position, pkg, name string) {
			if _, ok := ours(pkg); !ok && !isStd(pkg) {
				report(pos, "an exported declaration uses %s.%s", pkg, name)
			}
		})
	}
	for _, f := range s.files {
		for _, d := range f.Decls {
			exportedTypes(d, check)
		}
	}
}

// exportedTypes calls visit for the type expressions that users of the package
// see.
func exportedTypes(d ast.Decl, visit func(ast.Node)) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || exportedReceiver(d.Recv)) {
			visit(d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				if spec.Type != nil && slices.ContainsFunc(spec.Names, (*ast.Ident).IsExported) {
					visit(spec.Type)
				}
			case *ast.TypeSpec:
				if !spec.Name.IsExported() {
					continue
				}
				st, ok := spec.Type.(*ast.StructType)
				if !ok {
					visit(spec.Type)
					continue
				}
				for _, field := range st.Fields.List {
					if len(field.Names) == 0 || slices.ContainsFunc(field.Names, (*ast.Ident).IsExported) {
						visit(field.Type)
					}
				}
			}
		}
	}
}

func exportedReceiver(recv *ast.FieldList) bool {
	exported := false
	ast.Inspect(recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			exported = exported || id.IsExported()
			return false
		}
		return true
	})
	return exported
}

func librariesHaveNoHiddenState(s *source, report reporter) {
	if s.layer.program || s.layer.tests {
		return
	}
	for _, f := range s.files {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil && d.Name.Name == "init" {
					report(s.fset.Position(d.Pos()), "%s has an init function", title(s.path))
				}
				if d.Body != nil {
					s.assignments(d.Body, func(pos token.Position, name string) {
						report(pos, "%s changes the package variable %s", title(s.path), name)
					})
				}
			case *ast.GenDecl:
				if d.Tok != token.VAR {
					continue
				}
				s.selectors(d, func(pos token.Position, pkg, name string) {
					if pkg == "sync" && (name == "Map" || name == "Mutex" || name == "RWMutex") {
						report(pos, "%s has a package variable guarded by sync.%s", title(s.path), name)
					}
				})
			}
		}
	}
}

// assignments calls visit for each assignment to a package variable or into it.
func (s *source) assignments(body ast.Node, visit func(pos token.Position, name string)) {
	target := func(e ast.Expr) {
		for {
			switch x := e.(type) {
			case *ast.IndexExpr:
				e = x.X
				continue
			case *ast.SelectorExpr:
				e = x.X
				continue
			case *ast.ParenExpr:
				e = x.X
				continue
			case *ast.StarExpr:
				e = x.X
				continue
			case *ast.Ident:
				if v, ok := s.info.Uses[x].(*types.Var); ok && v.Parent() == s.scope {
					visit(s.fset.Position(x.Pos()), x.Name)
				}
			}
			return
		}
	}
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for _, e := range n.Lhs {
				target(e)
			}
		case *ast.IncDecStmt:
			target(n.X)
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") && len(n.Args) > 0 {
				target(n.Args[0])
			}
		}
		return true
	})
}

func librariesDoNotPrintOrExit(s *source, report reporter) {
	if s.layer.program || s.layer.tests {
		return
	}
	s.imports(func(pos token.Position, imp string) {
		if imp == "log" || imp == "os" && !s.layer.files {
			report(pos, "%s imports %s", title(s.path), imp)
		}
	})
	for _, f := range s.files {
		s.selectors(f, func(pos token.Position, pkg, name string) {
			switch pkg + "." + name {
			case "fmt.Print", "fmt.Printf", "fmt.Println", "os.Stdout", "os.Stderr", "os.Exit":
				if name != "Stdout" || !s.layer.stdout {
					report(pos, "%s uses %s.%s", title(s.path), pkg, name)
				}
			}
		})
		ast.Inspect(f, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				if _, ok := s.info.Uses[id].(*types.Builtin); ok {
					report(s.fset.Position(id.Pos()), "%s uses %s", title(s.path), id.Name)
				}
			}
			return true
		})
	}
}

// purePackagesDoNoIO checks that pure packages only convert bytes to values and back: the same input
// gives the same output at any time, on any machine.
func purePackagesDoNoIO(s *source, report reporter) {
	impure := []string{
		"crypto/rand", "log/slog", "math/rand", "math/rand/v2", "net", "os", "os/exec", "os/signal", "os/user",
		"path/filepath", "plugin", "runtime/debug", "syscall", "testing", "unsafe",
	}
	if !s.layer.pure {
		return
	}
	s.imports(func(pos token.Position, imp string) {
		switch {
		case imp == "net/http" || imp == "net/url": // only names are used; see below
		case slices.Contains(impure, imp), strings.HasPrefix(imp, "net/"):
			report(pos, "%s is pure and may not import %s", title(s.path), imp)
		}
	})
	for _, f := range s.files {
		s.selectors(f, func(pos token.Position, pkg, name string) {
			switch pkg {
			case "net/http":
				if name == "Header" || name == "ParseTime" || name == "CanonicalHeaderKey" || strings.HasPrefix(name, "Status") {
					return
				}
			case "time":
				if s.layer.clock || !slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}, name) {
					return
				}
			default:
				return
			}
			report(pos, "%s is pure and may not use %s.%s", title(s.path), pkg, name)
		})
	}
}

func TestLayersAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for i, r := range layers {
		if seen[r.path] {
			t.Errorf("layer %q is a duplicate", r.path)
		}
		seen[r.path] = true
		for _, o := range r.only {
			if to := layerOf(o); to < 0 || to >= i {
				t.Errorf("layer %q names %q, which is not below it", r.path, o)
			}
		}
	}
	for pkg, want := range map[string]string{"": "", "dialect/anthropic": "dialect/*", "dialect": "dialect", "examples/loss-report": "examples/*"} {
		if i := layerOf(pkg); i < 0 || layers[i].path != want {
			t.Errorf("%s should be in layer %q", title(pkg), want)
		}
	}
	for _, pkg := range []string{"utils", "dialect/anthropic/extra", "internal"} {
		if layerOf(pkg) >= 0 {
			t.Errorf("%s should be in no layer", pkg)
		}
	}
}

// A property that fails once in a hundred runs blocks unrelated work. Random seeds run
// separately, when there is time to look at what they find.
func TestPropertiesUseAFixedSeed(t *testing.T) {
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	files, err := testkit.RepoFiles(root, "_test.go")
	if err != nil {
		t.Fatal(err)
	}
	properties, steady := map[string]bool{}, map[string]bool{}
	for _, name := range files {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		steady[path.Dir(name)] = steady[path.Dir(name)] || bytes.Contains(src, []byte("testkit.Main(m)"))
		for _, imp := range f.Imports {
			if imp.Path.Value == strconv.Quote("pgregory.net/rapid") {
				properties[path.Dir(name)] = true
			}
		}
	}
	if len(properties) == 0 {
		t.Error("no package with properties found: the test looks in the wrong place")
	}
	for dir := range properties {
		if !steady[dir] && dir != "internal/testkit" {
			t.Errorf("%s: its tests import rapid; add func TestMain(m *testing.M) { testkit.Main(m) }", dir)
		}
	}
}
