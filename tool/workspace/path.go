package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// errPath is wrapped by every refusal of a path.
var errPath = errors.New("this path cannot be used")

const (
	maxPath = 4096
	maxName = 255
)

// refuse returns an error about a path that cannot be used.
func refuse(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", errPath, quoteShort(name), fmt.Sprintf(format, args...))
}

// quoteShort quotes the text of a model, truncated.
func quoteShort(s string) string {
	const most = 200
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(cutText(s, most)) + "…"
}

// resolve converts the path of a model to a clean path relative to the root, with forward
// slashes; "." is the root. It looks only at the text: os.Root contains symlinks. Paths that
// leave the root, and paths that other systems might interpret differently, are refused.
func (w *Workspace) resolve(name string) (string, error) {
	switch {
	case name == "":
		return "", refuse(name, "is empty: give a path relative to the workspace, such as \"src/main.go\"")
	case len(name) > maxPath:
		return "", refuse(name, "is longer than %d bytes", maxPath)
	case !utf8.ValidString(name):
		return "", refuse(name, "is not valid UTF-8")
	case strings.ContainsFunc(name, unicode.IsControl):
		return "", refuse(name, "has a control character")
	}
	if filepath.IsAbs(name) {
		rel, ok := w.inside(name)
		if !ok {
			return "", refuse(name, "is outside the workspace: give a path relative to it, such as \"src/main.go\"")
		}
		name = rel
	}
	clean := path.Clean(name)
	switch {
	case strings.Contains(clean, `\`):
		return "", refuse(name, "has a backslash: separate folders by /")
	case len(clean) >= 2 && clean[1] == ':' && unicode.IsLetter(rune(clean[0])):
		return "", refuse(name, "names a drive: give a path relative to the workspace")
	case clean == "~" || strings.HasPrefix(clean, "~/"):
		return "", refuse(name, "is a home folder, which is outside the workspace")
	case clean == ".." || strings.HasPrefix(clean, "../") || path.IsAbs(clean):
		return "", refuse(name, "is outside the workspace: .. must not lead above its root")
	}
	for element := range strings.SplitSeq(clean, "/") {
		if len(element) > maxName {
			return "", refuse(name, "has a name longer than %d bytes", maxName)
		}
	}
	if _, err := filepath.Localize(clean); err != nil {
		return "", refuse(name, "is not a valid file name on this system")
	}
	return clean, nil
}

// inside returns an absolute path within the root as a relative one.
func (w *Workspace) inside(name string) (string, bool) {
	name = filepath.Clean(name)
	for _, root := range [...]string{w.dir, w.real} {
		rel, err := filepath.Rel(root, name)
		if err == nil && filepath.IsLocal(rel) {
			return filepath.ToSlash(rel), true
		}
	}
	return "", false
}

// resolveChange is resolve for a file to be changed: it refuses the root and protected names.
func (w *Workspace) resolveChange(name string) (string, error) {
	rel, err := w.resolve(name)
	switch {
	case err != nil:
		return "", err
	case rel == "." || strings.HasSuffix(name, "/"):
		return "", refuse(name, "is a folder")
	}
	if p := w.protected.protectedElement(rel); p != "" {
		return "", refuse(name, "is in %s, which is write-protected", p)
	}
	return rel, nil
}

// explain converts an error of the file system to one that a model can act on.
func explain(name string, err error) error {
	var p *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist in the workspace", quoteShort(name))
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied", quoteShort(name))
	case errors.As(err, &p) && p.Err != nil:
		err = p.Err
	}
	if strings.Contains(err.Error(), "escapes from parent") { // the error of os.Root has no name
		return refuse(name, "leads outside the workspace")
	}
	return fmt.Errorf("%s: %w", quoteShort(name), err)
}
