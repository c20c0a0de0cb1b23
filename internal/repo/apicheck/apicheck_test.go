package apicheck

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/dragoman-go/dragoman/internal/testkit"
)

var update = flag.Bool("update", false, "rewrite api/v0.txt")

const golden = "api/v0.txt"

// The exported API must not change by accident: see docs/stability.md.
func TestExportedAPI(t *testing.T) {
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	got, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, filepath.FromSlash(golden))
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := difference(string(want), got); diff != "" {
		t.Errorf("the exported API differs from %s:\n%s\nIf this is intended, run\n\n\tgo test ./internal/repo/apicheck -update\n\nand add a line to CHANGELOG.md that states what users have to do.", golden, diff)
	}
}

// The API has what users call. What only our packages need is in internal/. bounds are the
// maximum numbers of identifiers of a package, with the packages below it that have no bound of
// their own; "" is the root package.
var bounds = map[string]int{
	"":        130,
	"mcp":     130,
	"skill":   15,
	"...rest": 480,
}

func TestAPIStaysSmall(t *testing.T) {
	root, err := testkit.RepoRoot()
	if err != nil {
		t.Fatal(err)
	}
	listing, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	counts := identifiers(listing)
	for area, most := range bounds {
		if n := counts[area]; n > most {
			t.Errorf("%s: %d exported package-level identifiers, at most %d are allowed: move what users do not call to internal/", area, n, most)
		} else if n < most/2 {
			t.Errorf("%s: %d identifiers of at most %d: the count misses most of them, or the bound can be lower", area, n, most)
		}
	}
}

// identifiers counts the package-level identifiers of a listing by the areas of bounds. A type is
// one identifier, whatever it has.
func identifiers(listing string) map[string]int {
	counts := map[string]int{}
	seen := map[string]bool{}
	pkg := ""
	for line := range strings.Lines(listing) {
		decl, ok := strings.CutPrefix(line, "\t")
		if !ok {
			pkg = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(line, "package ")), testkit.Module)
			pkg = strings.TrimPrefix(pkg, "/")
			continue
		}
		kind, rest, _ := strings.Cut(decl, " ")
		end := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if id := pkg + "." + rest[:max(end, 0)]; slices.Contains([]string{"const", "var", "func", "type"}, kind) && !seen[id] {
			seen[id] = true
			area, _, _ := strings.Cut(pkg, "/")
			if _, ok := bounds[area]; !ok {
				area = "...rest"
			}
			counts[area]++
		}
	}
	return counts
}

// difference lists the lines that only one of two listings has, each with its
// package.
func difference(before, after string) string {
	old, cur := lines(before), lines(after)
	has := func(list []string) map[string]bool {
		m := map[string]bool{}
		for _, l := range list {
			m[l] = true
		}
		return m
	}
	inOld, inNew := has(old), has(cur)
	var b strings.Builder
	for _, l := range old {
		if !inNew[l] {
			b.WriteString("  - " + l + "\n")
		}
	}
	for _, l := range cur {
		if !inOld[l] {
			b.WriteString("  + " + l + "\n")
		}
	}
	return b.String()
}

func lines(listing string) []string {
	var out []string
	pkg := ""
	for line := range strings.Lines(listing) {
		line = strings.TrimSuffix(line, "\n")
		if decl, ok := strings.CutPrefix(line, "\t"); ok {
			out = append(out, pkg+": "+decl)
			continue
		}
		pkg = strings.TrimPrefix(line, "package ")
		out = append(out, line)
	}
	return out
}

func TestListing(t *testing.T) {
	root := t.TempDir()
	write := func(name, src string) {
		t.Helper()
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(src), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.go", `package a

import "encoding/json"

const (
	A Kind = 1 << iota
	B
	hidden
)

const Name = "x"

var ErrX = fail()
var Y, z int

type Kind uint8

type T[K comparable] struct {
	json.Number
	K    K `+"`json:\"k\"`"+`
	F, g func(name string, rest ...int) (n int, err error)
}

func (t *T[K]) Get(key, other K) map[string][]*Kind { return nil }
func (t *T[K]) get()                               {}
func (h hiddenType) Get()                          {}

type hiddenType int

type I interface {
	json.Marshaler
	Do(what string) error
	sealed()
}

type Alias = I

func New[K comparable](k K) *T[K] { return nil }
func private()                     {}
`)
	write("a_windows.go", "package a\n\nfunc OnlyThere() {}\n")
	write("a_test.go", "package a\n\nfunc Helper() {}\n")
	write("sub/internal/b.go", "package b\n\nfunc Inside() {}\n")
	write("cmd/x/main.go", "package main\n\nfunc Main() {}\n")
	write("nested/go.mod", "module nested\n")
	write("nested/n.go", "package n\n\nfunc Elsewhere() {}\n")

	got, err := List(root)
	if err != nil {
		t.Fatal(err)
	}
	want := `package github.com/dragoman-go/dragoman
	const A Kind = 1 << iota (iota 0)
	const B Kind = 1 << iota (iota 1)
	const Name = "x"
	func New[K comparable](K) *T[K]
	method (*T[K]) Get(K, K) map[string][]*Kind
	type Alias = I
	type I interface
	type I interface, Do(string) error
	type I interface, embedded json.Marshaler
	type I interface, sealed
	type Kind uint8
	type T[K comparable] struct
	type T struct, F func(string, ...int) (int, error)
	type T struct, K K ` + "`json:\"k\"`" + `
	type T struct, embedded json.Number
	var ErrX
	var Y int
`
	wantLines, gotLines := lines(want), lines(got)
	if len(wantLines) != len(gotLines) || difference(want, got) != "" {
		t.Errorf("listing:\n%s\ndifference:\n%s", got, difference(want, got))
	}
}
