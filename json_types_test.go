package dragoman_test

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	dragoman "github.com/dragoman-go/dragoman"
)

// The package comment lists the structs that are not stored. This test checks the list, so
// that a new type is either stored or listed.
func TestEveryStructIsStoredUnlessDocumented(t *testing.T) {
	structs, methods, comment := sources(t)
	_, after, _ := strings.Cut(comment, "Every struct of this package")
	exceptions, _, found := strings.Cut(after, "[MarshalPart]")
	if !found {
		t.Fatal("the package comment no longer says what is stored")
	}
	golden := map[string]bool{}
	visitTypes(reflect.ValueOf(richValue()), golden)
	for name := range structs {
		stores := methods[name+".MarshalJSON"] && methods["*"+name+".UnmarshalJSON"]
		switch named := strings.Contains(exceptions, "["+name+"]"); {
		case named && (stores || golden[name]):
			t.Errorf("%s is stored, but the package comment says that it is not", name)
		case !named && !stores:
			t.Errorf("%s does not implement json.Marshaler and json.Unmarshaler, and the package comment does not say so", name)
		case !named && !golden[name]:
			t.Errorf("%s is not in the golden value, which shows that it comes back", name)
		}
	}
	if len(structs) < 40 {
		t.Errorf("only %d structs were found", len(structs))
	}
}

// sources reads the files of the package: its exported structs, the methods of its types, and
// the package comment.
func sources(t *testing.T) (structs, methods map[string]bool, comment string) {
	t.Helper()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	structs, methods = map[string]bool{}, map[string]bool{}
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file.Name(), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		comment += f.Doc.Text()
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
						if _, ok := s.Type.(*ast.StructType); ok {
							structs[s.Name.Name] = true
						}
					}
				}
			case *ast.FuncDecl:
				if d.Recv != nil {
					methods[receiver(d.Recv.List[0].Type)+"."+d.Name.Name] = true
				}
			}
		}
	}
	return structs, methods, comment
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return "*" + receiver(e.X)
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}

// visitTypes collects the names of the structs in a value.
func visitTypes(v reflect.Value, seen map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() && v.Type() != reflect.TypeFor[error]() {
			visitTypes(v.Elem(), seen)
		}
	case reflect.Slice:
		for i := range v.Len() {
			visitTypes(v.Index(i), seen)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		seen[v.Type().Name()] = true
		for i := range v.NumField() {
			visitTypes(v.Field(i), seen)
		}
	}
}

func TestR11_StoredReportRoundTrips(t *testing.T) {
	for _, rep := range []dragoman.Report{
		{},
		{Losses: []dragoman.Loss{}},
		{Losses: []dragoman.Loss{{}}},
		{Losses: []dragoman.Loss{
			{Kind: dragoman.Dropped, Severity: dragoman.Serious, Path: "/output/0/parts/1", Detail: "a <b> & \"c\""},
			{Kind: dragoman.Synthesized, Severity: dragoman.Info, Path: "", Detail: "the whole"},
			{Kind: "of a newer version", Severity: dragoman.Warn, Path: "/a~1b"},
		}},
	} {
		roundTrip(t, rep)
	}
	stored, err := json.Marshal(dragoman.Report{Losses: []dragoman.Loss{{Kind: dragoman.Moved}}})
	if want := `{"v":2,"losses":[{"kind":"moved","severity":"info","path":"","detail":""}]}`; err != nil || string(stored) != want {
		t.Errorf("got  %s, %v\nwant %s", stored, err, want)
	}
}

func TestLossWithUnknownSeverityIsAnError(t *testing.T) {
	if stored, err := json.Marshal(dragoman.Loss{Severity: 7}); err == nil {
		t.Errorf("stored as %s", stored)
	}
	kept := dragoman.Loss{Detail: "before"}
	if err := json.Unmarshal([]byte(`{"kind":"dropped","severity":"dire","path":"/x"}`), &kept); err == nil || kept.Detail != "before" {
		t.Errorf("read as %v, %v", kept, err)
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	if _, err := dragoman.UnmarshalPart([]byte(`{"v":2,"type":"text","text":"x"}`)); !errors.Is(err, dragoman.ErrVersion) {
		t.Errorf("a part: %v", err)
	}
	for _, v := range []any{new(dragoman.Usage), new(dragoman.ToolCall), new(dragoman.Stop), new(dragoman.APIError), new(dragoman.ToolChoice)} {
		if err := json.Unmarshal([]byte(`{"v":99}`), v); !errors.Is(err, dragoman.ErrVersion) {
			t.Errorf("%T: %v", v, err)
		}
		if err := json.Unmarshal([]byte(`{"v":1}`), v); errors.Is(err, dragoman.ErrVersion) {
			t.Errorf("%T: %v", v, err)
		}
	}
}
