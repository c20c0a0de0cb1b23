package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// documents are the files that every archive has next to the program.
var documents = []string{"LICENSE", "README.md"}

// archiveFile is one file of an archive.
type archiveFile struct {
	name string
	mode os.FileMode
	path string
}

// buildArchive builds the command for one system and returns the path of its archive: zip for
// Windows, else tar.gz.
func buildArchive(o options, goos, goarch string, made time.Time) (string, error) {
	program, err := build(o, goos, goarch)
	if err != nil {
		return "", err
	}
	files := []archiveFile{{filepath.Base(program), 0o755, program}}
	for _, name := range documents {
		files = append(files, archiveFile{name, 0o644, filepath.Join(o.root, name)})
	}
	file := filepath.Join(o.out, strings.Join([]string{command, o.version, goos, goarch}, "_"))
	write, file := writeTar, file+".tar.gz"
	if goos == "windows" {
		write, file = writeZip, strings.TrimSuffix(file, ".tar.gz")+".zip"
	}
	return file, create(file, func(w io.Writer) error { return write(w, files, made) })
}

// create writes a file and reports errors of closing it.
func create(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

func writeTar(w io.Writer, files []archiveFile, made time.Time) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, m := range files {
		body, err := os.ReadFile(m.path)
		if err != nil {
			return err
		}
		head := &tar.Header{Name: m.name, Mode: int64(m.mode), Size: int64(len(body)), ModTime: made, Format: tar.FormatPAX}
		if err := archive.WriteHeader(head); err != nil {
			return err
		}
		if _, err := archive.Write(body); err != nil {
			return err
		}
	}
	if err := archive.Close(); err != nil {
		return err
	}
	return zipped.Close()
}

func writeZip(w io.Writer, files []archiveFile, made time.Time) error {
	archive := zip.NewWriter(w)
	for _, m := range files {
		head := &zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: made}
		head.SetMode(m.mode)
		to, err := archive.CreateHeader(head)
		if err != nil {
			return err
		}
		body, err := os.ReadFile(m.path)
		if err != nil {
			return err
		}
		if _, err := to.Write(body); err != nil {
			return err
		}
	}
	return archive.Close()
}

// writeChecksums writes checksums.txt in the form of sha256sum, sorted by name.
func writeChecksums(dir string, files []string) error {
	var lines []string
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(body), filepath.Base(file)))
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[64:], b[64:]) })
	return os.WriteFile(filepath.Join(dir, "checksums.txt"), []byte(strings.Join(lines, "")), 0o644)
}
