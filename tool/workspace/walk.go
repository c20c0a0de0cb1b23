package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxFolder is how many names of one folder are looked at.
const maxFolder = 20_000

// errStop ends a walk early, without an error.
var errStop = errors.New("stop")

// walker goes through a folder in the order of names. It follows no symlinks.
type walker struct {
	w *Workspace
	// depth is how many levels of folders are entered; 1 is the folder itself.
	depth int
	// all includes what is ignored and protected.
	all   bool
	visit func(rel string, info fs.FileInfo) error

	// skipped counts what was ignored, cut the folders that had too many names.
	skipped, cut int
}

func (v *walker) walk(ctx context.Context, rel string) error {
	var rules []ignoreRule
	if !v.all {
		rules = v.w.ignoreRules(rel)
	}
	err := v.folder(ctx, rel, v.depth, rules)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

func (v *walker) folder(ctx context.Context, rel string, depth int, rules []ignoreRule) error {
	names, err := v.names(rel)
	if err != nil {
		return err
	}
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		child := path.Join(rel, name)
		info, err := v.w.root.Lstat(child)
		if err != nil {
			continue // gone meanwhile
		}
		if !v.all && (v.w.protected.covers(name) || ignored(rules, child, info.IsDir())) {
			v.skipped++
			continue
		}
		if err := v.visit(child, info); err != nil {
			return err
		}
		if !info.IsDir() || depth <= 1 {
			continue
		}
		below := rules
		if !v.all {
			below = v.w.withIgnoreFile(rules, child)
		}
		if err := v.folder(ctx, child, depth-1, below); errors.Is(err, errStop) || ctx.Err() != nil {
			return err
		}
		// A folder that cannot be read is passed over: the rest is worth seeing.
	}
	return nil
}

// names are those in a folder, sorted.
func (v *walker) names(rel string) ([]string, error) {
	f, err := v.w.openFolder(rel)
	if err != nil {
		return nil, err
	}
	defer shut(f)
	names, err := f.Readdirnames(maxFolder + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, explain(rel, err)
	}
	if len(names) > maxFolder {
		names = names[:maxFolder]
		v.cut++
	}
	slices.Sort(names)
	return names, nil
}

// note says what a walk left out, or "".
func (v *walker) note() string {
	var notes []string
	if v.skipped > 0 {
		notes = append(notes, fmt.Sprintf("%d ignored, not shown", v.skipped))
	}
	if v.cut > 0 {
		notes = append(notes, fmt.Sprintf("%d folders have more than %d names, the rest is not shown", v.cut, maxFolder))
	}
	return strings.Join(notes, "; ")
}

// shown writes a name so that it stays on its line.
func shown(name string) string {
	if q := strconv.Quote(name); len(q) != len(name)+2 {
		return q
	}
	return name
}
