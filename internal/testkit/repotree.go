package testkit

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the module path.
const Module = "github.com/dragoman-go/dragoman"

// RepoRoot returns the module's directory. It searches upward from the working
// directory.
func RepoRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module "+Module+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("repotree: not inside " + Module)
		}
		dir = parent
	}
}

// RepoPackage is a directory with Go files.
type RepoPackage struct {
	// Path is relative to the module, with forward slashes; empty for the root
	// package.
	Path string
	// Files and Tests are the names of its source and test files, sorted.
	Files, Tests []string
}

// RepoPackages lists the packages of the module below root, sorted by path.
func RepoPackages(root string) ([]RepoPackage, error) {
	byPath := map[string]*RepoPackage{}
	err := walk(root, false, func(rel string) error {
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		dir, name := "", rel
		if i := strings.LastIndexByte(rel, '/'); i >= 0 {
			dir, name = rel[:i], rel[i+1:]
		}
		p := byPath[dir]
		if p == nil {
			p = &RepoPackage{Path: dir}
			byPath[dir] = p
		}
		if strings.HasSuffix(name, "_test.go") {
			p.Tests = append(p.Tests, name)
		} else {
			p.Files = append(p.Files, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	pkgs := make([]RepoPackage, 0, len(byPath))
	for _, p := range byPath {
		slices.Sort(p.Files)
		slices.Sort(p.Tests)
		pkgs = append(pkgs, *p)
	}
	slices.SortFunc(pkgs, func(a, b RepoPackage) int { return strings.Compare(a.Path, b.Path) })
	return pkgs, nil
}

// RepoFiles lists the files below root whose names end in one of the suffixes, including
// nested modules and testdata, as sorted paths with forward slashes.
func RepoFiles(root string, suffixes ...string) ([]string, error) {
	var files []string
	err := walk(root, true, func(rel string) error {
		for _, s := range suffixes {
			if strings.HasSuffix(rel, s) {
				files = append(files, rel)
				break
			}
		}
		return nil
	})
	slices.Sort(files)
	return files, err
}

func walk(root string, everything bool, visit func(rel string) error) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if !d.IsDir() {
			return visit(rel)
		}
		name := d.Name()
		if rel == "." {
			return nil
		}
		if strings.HasPrefix(name, ".") || name == "node_modules" {
			return fs.SkipDir
		}
		if everything {
			return nil
		}
		if strings.HasPrefix(name, "_") || name == "testdata" {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
			return fs.SkipDir
		}
		return nil
	})
}
