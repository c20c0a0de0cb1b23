// Package apicheck lists the exported API of the module as text, one line per declaration, so
// that a change shows up as a difference between two files.
//
// The listing uses only syntax. It ignores parameter names, comments and source order. It
// includes names, types, field tags and the values of constants.
package apicheck

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/build"
	"go/format"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

// List returns the API of all packages in the module at root that others can import, sorted
// within each package.
func List(root string) (string, error) {
	pkgs, err := testkit.RepoPackages(root)
	if err != nil {
		return "", err
	}
	// Use one platform, so that every machine makes the same listing.
	ctx := build.Default
	ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled = "linux", "amd64", false

	var out strings.Builder
	for _, p := range pkgs {
		if private(p.Path) {
			continue
		}
		dir := filepath.Join(root, filepath.FromSlash(p.Path))
		var l listing
		name := ""
		for _, file := range p.Files {
			if ok, err := ctx.MatchFile(dir, file); err != nil {
				return "", err
			} else if !ok {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, parser.SkipObjectResolution)
			if err != nil {
				return "", err
			}
			name = f.Name.Name
			l.file(f)
		}
		if name == "" || name == "main" {
			continue
		}
		path := testkit.Module
		if p.Path != "" {
			path += "/" + p.Path
		}
		fmt.Fprintf(&out, "package %s\n", path)
		slices.Sort(l.lines)
		for _, line := range l.lines {
			fmt.Fprintf(&out, "\t%s\n", line)
		}
	}
	return out.String(), nil
}

func private(path string) bool {
	elems := strings.Split(path, "/")
	return slices.Contains(elems, "internal") || elems[0] == "examples"
}

type listing struct{ lines []string }

func (l *listing) addf(f string, args ...any) { l.lines = append(l.lines, fmt.Sprintf(f, args...)) }

func (l *listing) file(f *ast.File) {
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			l.function(d)
		case *ast.GenDecl:
			switch d.Tok {
			case token.CONST:
				l.constants(d)
			case token.VAR:
				l.variables(d)
			case token.TYPE:
				for _, spec := range d.Specs {
					l.typeSpec(spec.(*ast.TypeSpec))
				}
			}
		}
	}
}

func (l *listing) function(d *ast.FuncDecl) {
	if !d.Name.IsExported() {
		return
	}
	if d.Recv == nil {
		l.addf("func %s%s%s", d.Name.Name, typeParams(d.Type.TypeParams), signature(d.Type))
		return
	}
	recv := d.Recv.List[0].Type
	if !ast.IsExported(baseName(recv)) {
		return
	}
	l.addf("method (%s) %s%s", text(recv), d.Name.Name, signature(d.Type))
}

func baseName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// constants lists the constants of one declaration. A constant without a value repeats the
// previous one; its position replaces iota.
func (l *listing) constants(d *ast.GenDecl) {
	var typ ast.Expr
	var values []ast.Expr
	for i, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		if s.Type != nil || s.Values != nil {
			typ, values = s.Type, s.Values
		}
		for j, name := range s.Names {
			if !name.IsExported() {
				continue
			}
			line := "const " + name.Name
			if typ != nil {
				line += " " + text(typ)
			}
			if j < len(values) {
				value := text(values[j])
				line += " = " + value
				if strings.Contains(value, "iota") {
					line += fmt.Sprintf(" (iota %d)", i)
				}
			}
			l.addf("%s", line)
		}
	}
}

// variables lists variables without their values, which are not part of the contract.
func (l *listing) variables(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		for _, name := range s.Names {
			switch {
			case !name.IsExported():
			case s.Type != nil:
				l.addf("var %s %s", name.Name, text(s.Type))
			default:
				l.addf("var %s", name.Name)
			}
		}
	}
}

func (l *listing) typeSpec(s *ast.TypeSpec) {
	if !s.Name.IsExported() {
		return
	}
	name := s.Name.Name
	head := "type " + name + typeParams(s.TypeParams)
	if s.Assign.IsValid() {
		l.addf("%s = %s", head, text(s.Type))
		return
	}
	switch t := s.Type.(type) {
	case *ast.StructType:
		l.addf("%s struct", head)
		l.fields(name, t)
	case *ast.InterfaceType:
		l.addf("%s interface", head)
		l.methods(name, t)
	default:
		l.addf("%s %s", head, text(t))
	}
}

func (l *listing) fields(name string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		tag := ""
		if f.Tag != nil {
			tag = " " + f.Tag.Value
		}
		if f.Names == nil {
			if ast.IsExported(baseName(f.Type)) || isSelector(f.Type) {
				l.addf("type %s struct, embedded %s%s", name, text(f.Type), tag)
			}
			continue
		}
		for _, n := range f.Names {
			if n.IsExported() {
				l.addf("type %s struct, %s %s%s", name, n.Name, text(f.Type), tag)
			}
		}
	}
}

func isSelector(e ast.Expr) bool {
	if s, ok := e.(*ast.StarExpr); ok {
		e = s.X
	}
	_, ok := e.(*ast.SelectorExpr)
	return ok
}

func (l *listing) methods(name string, t *ast.InterfaceType) {
	sealed := false
	for _, m := range t.Methods.List {
		if m.Names == nil {
			l.addf("type %s interface, embedded %s", name, text(m.Type))
			continue
		}
		for _, n := range m.Names {
			if !n.IsExported() {
				sealed = true
				continue
			}
			l.addf("type %s interface, %s%s", name, n.Name, signature(m.Type.(*ast.FuncType)))
		}
	}
	if sealed {
		l.addf("type %s interface, sealed", name)
	}
}

// signature returns the types of parameters and results, without names.
func signature(t *ast.FuncType) string {
	s := "(" + strings.Join(fieldTypes(t.Params), ", ") + ")"
	switch results := fieldTypes(t.Results); len(results) {
	case 0:
		return s
	case 1:
		return s + " " + results[0]
	default:
		return s + " (" + strings.Join(results, ", ") + ")"
	}
}

func fieldTypes(list *ast.FieldList) []string {
	if list == nil {
		return nil
	}
	var types []string
	for _, f := range list.List {
		for range max(1, len(f.Names)) {
			types = append(types, text(f.Type))
		}
	}
	return types
}

func typeParams(list *ast.FieldList) string {
	if list == nil {
		return ""
	}
	var params []string
	for _, f := range list.List {
		for _, n := range f.Names {
			params = append(params, n.Name+" "+text(f.Type))
		}
	}
	return "[" + strings.Join(params, ", ") + "]"
}

// text returns an expression on one line, with function types without parameter
// names.
func text(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.FuncType:
		return "func" + signature(e)
	case *ast.StarExpr:
		return "*" + text(e.X)
	case *ast.Ellipsis:
		return "..." + text(e.Elt)
	case *ast.ArrayType:
		if e.Len == nil {
			return "[]" + text(e.Elt)
		}
		return "[" + text(e.Len) + "]" + text(e.Elt)
	case *ast.MapType:
		return "map[" + text(e.Key) + "]" + text(e.Value)
	}
	var b bytes.Buffer
	if err := format.Node(&b, token.NewFileSet(), e); err != nil {
		return fmt.Sprintf("?(%v)", err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}
