package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// shape is the way in which values of a type are stored.
type shape int

const (
	text    shape = iota // a string, or a type of that kind
	flag                 // a bool
	number               // an int or an int64
	native               // bytes
	object               // a stored struct
	part                 // the interface Part
	special              // a type with functions written by hand
	pointer              // a pointer to one of the above
	list                 // a slice of one of the above
)

// goType is the type of a field.
type goType struct {
	shape shape
	name  string // in Go
	elem  *goType
}

// specialType names the functions for a type that is stored in its own way.
type specialType struct {
	store  string // method of storer
	load   string // function
	hash   string // method of hasher; empty if no fingerprint covers the type
	always bool   // stored even if zero
}

var specials = map[string]specialType{
	"Count":         {store: "count", load: "loadCount", hash: "count"},
	"Fingerprint":   {store: "fingerprint", load: "loadFingerprint"},
	"LossKind":      {store: "lossKind", load: "loadLossKind", always: true},
	"Severity":      {store: "severity", load: "loadSeverity", always: true},
	"error":         {store: "cause", load: "loadCause"},
	"time.Duration": {store: "duration", load: "loadDuration"},
	// A time is stored as two fields, so the code that loads it is generated.
	timeType: {store: "time", hash: "time"},
}

const timeType = "time.Time"

type field struct {
	name string
	typ  goType
	json string // the name in the JSON; empty if the field is not stored
	omit bool   // left out if zero
	cond string // the method that reports whether to store it
	hash hashRule
}

// hashRule is the effect of a field on fingerprints.
type hashRule struct {
	skip  bool
	ifset bool
	nils  bool   // nil differs from empty
	cond  string // the method that reports whether to hash it
	after string // the field to hash before it
}

// structType is a stored struct.
type structType struct {
	name   string
	label  string // its name in errors
	top    bool   // stored by itself, with a version
	union  *union // the interface that it implements, or nil
	tag    string // the constant for its "type" in the union
	fields []field
	hashed bool // a fingerprint covers it
	inside bool // another stored struct holds it
}

// union is an interface with a fixed set of implementations.
type union struct {
	iface    string // Part
	seal     string // the method that its members have
	tag      string // the method that returns the "type"
	reserved []string
	members  []*structType
}

type model struct {
	fset    *token.FileSet
	structs []*structType // in order of files and positions
	byName  map[string]*structType
	specs   map[string]ast.Expr // every type of the package
	// methods holds "Type.Name" for every method, with its constant result if
	// it returns one.
	methods map[string]string
	unions  []*union
	errs    []error
}

// load reads the structs of the package in dir.
func load(dir string) (*model, error) {
	m := &model{
		fset: token.NewFileSet(), byName: map[string]*structType{}, specs: map[string]ast.Expr{}, methods: map[string]string{},
		unions: []*union{
			{iface: "Part", seal: "sealedPart", tag: "Kind", reserved: []string{"type"}},
			{iface: "Event", seal: "sealedEvent", tag: "Type", reserved: []string{"v", "type"}},
		},
	}
	files, err := m.parse(dir)
	if err != nil {
		return nil, err
	}
	defs := map[*structType]*ast.StructType{}
	for _, f := range files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok {
				for _, spec := range d.Specs {
					if spec, ok := spec.(*ast.TypeSpec); ok {
						m.declare(spec, d, defs)
					}
				}
			}
		}
	}
	for _, s := range m.structs {
		m.fields(s, defs[s])
	}
	m.checkUnions()
	m.markHashed()
	return m, errors.Join(m.errs...)
}

// parse reads the files of the package, and the names of its methods.
func (m *model) parse(dir string) ([]*ast.File, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") || filepath.Base(name) == output {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(m.fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv != nil {
				m.methods[strings.TrimPrefix(spell(d.Recv.List[0].Type), "*")+"."+d.Name.Name] = constantResult(d)
			}
		}
	}
	return files, nil
}

// constantResult returns the name of the constant if a method only returns one.
func constantResult(d *ast.FuncDecl) string {
	if d.Body == nil || len(d.Body.List) != 1 {
		return ""
	}
	if ret, ok := d.Body.List[0].(*ast.ReturnStmt); ok && len(ret.Results) == 1 {
		if id, ok := ret.Results[0].(*ast.Ident); ok {
			return id.Name
		}
	}
	return ""
}

func (m *model) has(typ, method string) bool {
	_, ok := m.methods[typ+"."+method]
	return ok
}

// declare adds a type to the model, as a stored struct if it is one.
func (m *model) declare(spec *ast.TypeSpec, d *ast.GenDecl, defs map[*structType]*ast.StructType) {
	name := spec.Name.Name
	m.specs[name] = spec.Type
	def, ok := spec.Type.(*ast.StructType)
	if !ok {
		return
	}
	s := &structType{name: name}
	for _, u := range m.unions {
		if m.has(name, u.seal) {
			s.union, s.tag = u, m.methods[name+"."+u.tag]
			u.members = append(u.members, s)
			if s.tag == "" {
				m.failf(spec, "method %s.%s must only return a constant", name, u.tag)
			}
		}
	}
	doc := spec.Doc
	if doc == nil {
		doc = d.Doc
	}
	if doc != nil {
		for _, c := range doc.List {
			directive, ok := strings.CutPrefix(c.Text, "//stored:")
			if !ok {
				continue
			}
			form, label, _ := strings.Cut(directive, " ")
			if form != "value" && form != "top" || label == "" || s.union != nil {
				m.failf(spec, "%s: write //stored:value or //stored:top and a name for errors, on a struct that is neither a part nor an event", c.Text)
			}
			s.top, s.label = form == "top", label
		}
	}
	if s.label == "" && s.union == nil {
		return
	}
	m.structs = append(m.structs, s)
	m.byName[name] = s
	defs[s] = def
}

func (m *model) failf(at ast.Node, format string, args ...any) {
	pos := m.fset.Position(at.Pos())
	m.errs = append(m.errs, fmt.Errorf("%s:%d: %s", filepath.Base(pos.Filename), pos.Line, fmt.Sprintf(format, args...)))
}

// fields reads the fields of a struct and their tags.
func (m *model) fields(s *structType, def *ast.StructType) {
	seen := map[string]bool{}
	if s.top {
		seen["v"] = true
	}
	if s.union != nil {
		for _, name := range s.union.reserved {
			seen[name] = true
		}
	}
	for _, f := range def.Fields.List {
		if len(f.Names) != 1 || !f.Names[0].IsExported() {
			m.failf(f, "write each field of a stored struct on its own line, with an exported name")
			continue
		}
		out := field{name: f.Names[0].Name}
		tags := reflect.StructTag("")
		if f.Tag != nil {
			text, err := strconv.Unquote(f.Tag.Value)
			if err != nil {
				m.failf(f, "%s: %v", f.Tag.Value, err)
			}
			tags = reflect.StructTag(text)
		}
		if err := m.tags(&out, s, tags); err != nil {
			m.failf(f, "%s.%s: %v", s.name, out.name, err)
			continue
		}
		if out.json == "" {
			continue
		}
		if seen[out.json] {
			m.failf(f, "%s.%s: another field has the name %q", s.name, out.name, out.json)
		}
		seen[out.json] = true
		if err := m.typeOf(f.Type, &out.typ); err != nil {
			m.failf(f, "%s.%s: %v", s.name, out.name, err)
			continue
		}
		if err := out.check(s); err != nil {
			m.failf(f, "%s.%s: %v", s.name, out.name, err)
		}
		s.fields = append(s.fields, out)
		if held := m.byName[strings.TrimLeft(out.typ.name, "*[]")]; held != nil {
			held.inside = true
		}
	}
	if _, err := s.hashOrder(); err != nil {
		m.failf(def, "%s: %v", s.name, err)
	}
}

// tags reads the tags of a field.
func (m *model) tags(f *field, s *structType, tags reflect.StructTag) error {
	name, rest, _ := strings.Cut(tags.Get("json"), ",")
	stored, hasStored := tags.Lookup("stored")
	hash, hasHash := tags.Lookup("hash")
	switch {
	case name == "":
		return errors.New(`the json tag has no name; use json:"-" to leave the field out`)
	case name == "-":
		if rest != "" || hasStored || hasHash {
			return errors.New(`json:"-" excludes other options`)
		}
		return nil
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "":
		return fmt.Errorf("the name %q is not in snake_case", name)
	case rest != "" && rest != "omitzero":
		return fmt.Errorf("json: unknown option %q", rest)
	}
	f.json, f.omit = name, rest == "omitzero"
	if hasStored {
		cond, ok := strings.CutPrefix(stored, "if=")
		if !ok {
			return fmt.Errorf("stored: unknown option %q", stored)
		}
		f.cond = cond
	}
	if hasHash {
		for option := range strings.SplitSeq(hash, ",") {
			key, value, _ := strings.Cut(option, "=")
			switch {
			case option == "-":
				f.hash.skip = true
			case option == "ifset":
				f.hash.ifset = true
			case option == "nil":
				f.hash.nils = true
			case key == "if" && value != "":
				f.hash.cond = value
			case key == "after" && value != "":
				f.hash.after = value
			default:
				return fmt.Errorf("hash: unknown option %q", option)
			}
		}
	}
	if f.hash.skip && f.hash != (hashRule{skip: true}) {
		return errors.New(`hash:"-" excludes other options`)
	}
	for _, cond := range []string{f.cond, f.hash.cond} {
		if cond != "" && !m.has(s.name, cond) {
			return fmt.Errorf("%s has no method %s", s.name, cond)
		}
	}
	return nil
}

// typeOf finds the shape of a type.
func (m *model) typeOf(e ast.Expr, t *goType) error {
	t.name = spell(e)
	if _, ok := specials[t.name]; ok {
		t.shape = special
		return nil
	}
	switch e := e.(type) {
	case *ast.StarExpr:
		t.shape, t.elem = pointer, new(goType)
		return m.elemOf(e.X, t)
	case *ast.ArrayType:
		if t.name == "[]byte" {
			t.shape = native
			return nil
		}
		if e.Len == nil {
			t.shape, t.elem = list, new(goType)
			return m.elemOf(e.Elt, t)
		}
	case *ast.SelectorExpr:
		if t.name == "json.RawMessage" {
			t.shape = native
			return nil
		}
	case *ast.Ident:
		switch e.Name {
		case "string":
			t.shape = text
			return nil
		case "bool":
			t.shape = flag
			return nil
		case "int", "int64":
			t.shape = number
			return nil
		case "Part":
			t.shape = part
			return nil
		}
		if s := m.byName[e.Name]; s != nil && s.union == nil {
			t.shape = object
			return nil
		}
		if spec := m.specs[e.Name]; spec != nil && spell(spec) == "string" {
			t.shape = text
			return nil
		}
	}
	return fmt.Errorf("a %s cannot be stored: make it a stored type, or add it to the specials of internal/repo/storedgen", t.name)
}

func (m *model) elemOf(e ast.Expr, t *goType) error {
	if err := m.typeOf(e, t.elem); err != nil {
		return err
	}
	switch t.elem.shape {
	case pointer, list, special:
		return fmt.Errorf("a %s cannot be stored", t.name)
	case number:
		if t.elem.name != "int64" {
			return fmt.Errorf("a %s cannot be stored, an int64 can", t.name)
		}
	case part, native:
		if t.shape == pointer {
			return fmt.Errorf("a %s cannot be stored", t.name)
		}
	}
	return nil
}

// check returns an error for tags that the generated code does not support.
func (f *field) check(s *structType) error {
	switch {
	case f.cond != "" && f.omit:
		return errors.New("omitzero and stored:\"if=\" exclude each other")
	case f.typ.shape == special && specials[f.typ.name].always && f.omit:
		return fmt.Errorf("a %s is always stored: remove omitzero", f.typ.name)
	case f.typ.shape == special && !specials[f.typ.name].always && !f.omit:
		return fmt.Errorf("the json tag of a %s must have omitzero", f.typ.name)
	case f.typ.shape == special && f.cond != "":
		return fmt.Errorf("a %s cannot be stored under a condition", f.typ.name)
	case f.typ.name == timeType && s.union != nil:
		return errors.New("a part or an event cannot store a time")
	case f.hash.nils && f.typ.shape != list:
		return errors.New(`hash:"nil" applies only to lists`)
	case f.hash.ifset && (f.typ.shape == object || f.typ.shape == special):
		return fmt.Errorf(`hash:"ifset" is not supported for a %s`, f.typ.name)
	}
	return nil
}

// hashOrder returns the fields of a fingerprint, in order.
func (s *structType) hashOrder() ([]field, error) {
	var order, moved []field
	for _, f := range s.fields {
		switch {
		case f.hash.skip:
		case f.hash.after != "":
			moved = append(moved, f)
		default:
			order = append(order, f)
		}
	}
	for len(moved) > 0 {
		rest := moved[:0:0]
		for _, f := range moved {
			at := slices.IndexFunc(order, func(o field) bool { return o.name == f.hash.after })
			if at < 0 {
				rest = append(rest, f)
				continue
			}
			order = slices.Insert(order, at+1, f)
		}
		if len(rest) == len(moved) {
			return nil, fmt.Errorf(`%s: hash:"after=%s" names a field that is not in the fingerprint`, rest[0].name, rest[0].hash.after)
		}
		moved = rest
	}
	return order, nil
}

// checkUnions checks that a field name has the same type in all structs of a union.
func (m *model) checkUnions() {
	for _, u := range m.unions {
		if len(u.members) == 0 {
			continue
		}
		types := map[string]string{}
		for _, s := range u.members {
			for _, f := range s.fields {
				if have, ok := types[f.json]; ok && have != f.typ.name {
					m.errs = append(m.errs, fmt.Errorf("%s.%s: the field %q has type %s here and type %s in another %s", s.name, f.name, f.json, f.typ.name, have, u.iface))
				}
				types[f.json] = f.typ.name
			}
		}
	}
}

// markHashed finds the types that a fingerprint covers.
func (m *model) markHashed() {
	var visit func(s *structType)
	visitType := func(t *goType) {
		if t.elem != nil {
			t = t.elem
		}
		switch t.shape {
		case object:
			visit(m.byName[t.name])
		case part:
			for _, s := range m.unions[0].members {
				visit(s)
			}
		case special:
			if specials[t.name].hash == "" {
				m.errs = append(m.errs, fmt.Errorf("a %s cannot be fingerprinted: add hash:\"-\"", t.name))
			}
		}
	}
	visit = func(s *structType) {
		if s.hashed {
			return
		}
		s.hashed = true
		for _, f := range s.fields {
			if !f.hash.skip {
				visitType(&f.typ)
			}
		}
	}
	for _, s := range m.structs {
		if m.has(s.name, "Fingerprint") {
			visit(s)
		}
	}
}

// comparable reports whether == works for a struct.
func (m *model) comparable(s *structType) bool {
	return !slices.ContainsFunc(s.fields, func(f field) bool {
		switch f.typ.shape {
		case native, list:
			return true
		case object:
			return !m.comparable(m.byName[f.typ.name])
		default:
			return false
		}
	})
}

// anyFields returns the fields of all structs of a union, by name.
func (u *union) anyFields() []field {
	var all []field
	for _, s := range u.members {
		for _, f := range s.fields {
			if !slices.ContainsFunc(all, func(o field) bool { return o.json == f.json }) {
				all = append(all, f)
			}
		}
	}
	slices.SortFunc(all, func(a, b field) int { return cmp.Compare(a.json, b.json) })
	return all
}

// spell returns a type in Go syntax.
func spell(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return "*" + spell(e.X)
	case *ast.SelectorExpr:
		return spell(e.X) + "." + e.Sel.Name
	case *ast.ArrayType:
		if e.Len == nil {
			return "[]" + spell(e.Elt)
		}
		return "[…]" + spell(e.Elt)
	default:
		return fmt.Sprintf("%T", e)
	}
}
