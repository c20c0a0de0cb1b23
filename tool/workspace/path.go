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

// refuse says why a path cannot be used.
func refuse(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s %s", errPath, quoteShort(name), fmt.Sprintf(format, args...))
}

// quoteShort quotes what a model wrote, without repeating kilobytes of it.
func quoteShort(s string) string {
	const most = 200
	if len(s) <= most {
		return strconv.Quote(s)
	}
	return strconv.Quote(cutText(s, most)) + "…"
}

// resolve turns what a model wrote into a path relative to the root, with forward
// slashes, cleaned; "." is the root. It looks at the text alone: symlinks are
// os.Root's to contain. What would leave the root, and what other systems might
// take for something else, is refused and never guessed.
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

// inside makes an absolute path within the root relative.
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

// resolveChange is resolve for a file that is to be changed: no folder, and
// nothing protected.
func (w *Workspace) resolveChange(name string) (string, error) {
	rel, err := w.resolve(name)
	switch {
	case err != nil:
		return "", err
	case rel == "." || strings.HasSuffix(name, "/"):
		return "", refuse(name, "is a folder")
	}
	if p := w.protected.in(rel); p != "" {
		return "", refuse(name, "is in %s, which is write-protected", p)
	}
	return rel, nil
}

// explain turns an error of the file system into one that a model can act on.
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
	if strings.Contains(err.Error(), "escapes from parent") { // os.Root's error has no name
		return refuse(name, "leads outside the workspace")
	}
	return fmt.Errorf("%s: %w", quoteShort(name), err)
}
