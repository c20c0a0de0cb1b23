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

// maxFolder is the maximum number of names of one directory that are read.
const maxFolder = 20_000

// errStop ends a walk early, without an error.
var errStop = errors.New("stop")

// walker visits the files of a directory in the order of their names. It does not follow
// symlinks.
type walker struct {
	w *Workspace
	// depth is the number of levels that are entered; 1 is the directory itself.
	depth int
	// all includes ignored and protected files.
	all   bool
	visit func(rel string, info fs.FileInfo) error

	// skipped counts ignored files; cut counts directories with too many names.
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
			continue // deleted meanwhile
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
		// A directory that cannot be read is skipped: the others are still useful.
	}
	return nil
}

// names returns the names in a directory, sorted.
func (v *walker) names(rel string) ([]string, error) {
	f, err := v.w.openFolder(rel)
	if err != nil {
		return nil, err
	}
	defer closeQuietly(f)
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

// note describes what a walk left out, or returns "".
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

// shown quotes a name if it would not stay on its line.
func shown(name string) string {
	if q := strconv.Quote(name); len(q) != len(name)+2 {
		return q
	}
	return name
}
