package main

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// writeProxy writes the module of the working tree as a file proxy has it, so that
// "go install MODULE/cmd/dragoman@VERSION" can be tried before a tag is pushed.
func writeProxy(o options, made time.Time) error {
	dir := filepath.Join(o.out, "proxy", filepath.FromSlash(modulePath), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(o.root, "go.mod"))
	if err != nil {
		return err
	}
	info := fmt.Sprintf(`{"Version":%q,"Time":%q}`, o.version, made.Format(time.RFC3339))
	for name, body := range map[string][]byte{"list": []byte(o.version + "\n"), o.version + ".info": []byte(info), o.version + ".mod": mod} {
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o644); err != nil {
			return err
		}
	}
	files, err := moduleFiles(o.root)
	if err != nil {
		return err
	}
	return create(filepath.Join(dir, o.version+".zip"), func(w io.Writer) error {
		archive := zip.NewWriter(w)
		for _, name := range files {
			body, err := os.ReadFile(filepath.Join(o.root, filepath.FromSlash(name)))
			if err != nil {
				return err
			}
			to, err := archive.Create(modulePath + "@" + o.version + "/" + name)
			if err != nil {
				return err
			}
			if _, err := to.Write(body); err != nil {
				return err
			}
		}
		return archive.Close()
	})
}

// moduleFiles returns the files of the module that Git tracks, without those of nested
// modules.
func moduleFiles(root string) ([]string, error) {
	text, err := git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	names := strings.Split(strings.TrimRight(text, "\x00"), "\x00")
	nested := map[string]bool{}
	for _, name := range names {
		if dir := path.Dir(name); path.Base(name) == "go.mod" && dir != "." {
			nested[dir] = true
		}
	}
	var files []string
	for _, name := range names {
		inside := false
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			inside = inside || nested[dir]
		}
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(name))); !inside && err == nil {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	return files, nil
}
