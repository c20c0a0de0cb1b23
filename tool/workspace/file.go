package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"unicode/utf8"
)

// open opens a regular file for reading. It follows symlinks within the root. It does not open
// devices, pipes and sockets, because reading them may never end.
func (w *Workspace) open(rel string) (*os.File, fs.FileInfo, error) {
	info, err := w.root.Stat(rel)
	if err != nil {
		return nil, nil, explain(rel, err)
	}
	if err := wantRegular(rel, info); err != nil {
		return nil, nil, err
	}
	// The file may have been replaced since: opening must not wait for the other end of a pipe,
	// and the opened file is checked again.
	f, err := w.root.OpenFile(rel, os.O_RDONLY|openWithoutWaiting, 0)
	if err != nil {
		return nil, nil, explain(rel, err)
	}
	info, err = f.Stat()
	if err == nil {
		err = wantRegular(rel, info)
	}
	if err != nil {
		closeQuietly(f)
		return nil, nil, explain(rel, err)
	}
	return f, info, nil
}

func wantRegular(rel string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return refuse(rel, "is %s, not a file", kindOf(info.Mode()))
}

// kindOf names the kind of a file that is not regular.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode&fs.ModeSymlink != 0:
		return "a symlink"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "something special"
	}
}

// load reads a whole file, up to the maximum size of the options.
func (w *Workspace) load(rel string) ([]byte, fs.FileInfo, error) {
	f, info, err := w.open(rel)
	if err != nil {
		return nil, nil, err
	}
	defer closeQuietly(f)
	data, err := w.readAll(f, rel)
	return data, info, err
}

var errTooLarge = errors.New("is too large")

func (w *Workspace) readAll(f *os.File, rel string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, w.options.MaxFile+1))
	switch {
	case err != nil:
		return nil, explain(rel, err)
	case int64(len(data)) > w.options.MaxFile:
		return nil, fmt.Errorf("%s %w: more than %d bytes", quoteShort(rel), errTooLarge, w.options.MaxFile)
	}
	return data, nil
}

// isBinary reports whether a content is not text, by its beginning.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0
}

// versionOf identifies a content, so that a change can require exactly that content.
func versionOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// plain makes text valid UTF-8.
func plain(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// cutText cuts a text to at most n bytes, on a whole character.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// folder opens the directory of a file that is to be changed. It descends step by step and
// follows no symlink, so that neither the name of a link nor a link that is created meanwhile
// leads into a protected directory. If made is not nil, it creates missing directories and
// calls made for each.
func (w *Workspace) folder(rel string, made func(rel string)) (*os.Root, string, error) {
	dir, err := w.root.OpenRoot(".")
	if err != nil {
		return nil, "", explain(".", err)
	}
	elements := strings.Split(rel, "/")
	last := len(elements) - 1
	for i, name := range elements {
		here := strings.Join(elements[:i+1], "/")
		if p := w.protected.sameAs(dir, name); p != "" {
			closeQuietly(dir)
			return nil, "", refuse(here, "is %s, which is write-protected", p)
		}
		if i == last {
			break
		}
		next, err := enter(dir, name, here, made)
		closeQuietly(dir)
		if err != nil {
			return nil, "", err
		}
		dir = next
	}
	return dir, elements[last], nil
}

// errNoFolder reports a missing directory that the call does not create.
var errNoFolder = errors.New("does not exist")

// enter opens a directory in another, and makes sure that it is the one that was checked not to
// be a symlink.
func enter(dir *os.Root, name, here string, made func(string)) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) && made != nil {
		if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, explain(here, err)
		} else if err == nil {
			made(here)
		}
		info, err = dir.Lstat(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the folder %s %w", quoteShort(here), errNoFolder)
	case err != nil:
		return nil, explain(here, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, refuse(here, "is a symlink, which changes do not follow: use the path of its target")
	case !info.IsDir():
		return nil, refuse(here, "is %s, not a folder", notFolder(info))
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, explain(here, err)
	}
	opened, err := next.Stat(".")
	if err != nil || !os.SameFile(info, opened) {
		closeQuietly(next)
		return nil, refuse(here, "was replaced meanwhile")
	}
	return next, nil
}

func notFolder(info fs.FileInfo) string {
	if info.Mode().IsRegular() {
		return "a file"
	}
	return kindOf(info.Mode())
}

// openFolder opens a folder. Symlinks within the root are followed.
func (w *Workspace) openFolder(rel string) (*os.File, error) {
	info, err := w.root.Stat(rel)
	if err != nil {
		return nil, explain(rel, err)
	}
	if !info.IsDir() {
		return nil, refuse(rel, "is %s, not a folder", notFolder(info))
	}
	f, err := w.root.OpenFile(rel, os.O_RDONLY|openWithoutWaiting, 0)
	if err != nil {
		return nil, explain(rel, err)
	}
	if info, err = f.Stat(); err != nil || !info.IsDir() {
		closeQuietly(f)
		return nil, refuse(rel, "was replaced meanwhile")
	}
	return f, nil
}

// closeQuietly closes a file for which the error does not matter: it was only read, or is known to be
// written.
func closeQuietly(c io.Closer) { _ = c.Close() }
