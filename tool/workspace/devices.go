package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// maxDeviceWalk bounds the number of files that the search for device nodes visits.
const maxDeviceWalk = 2_000_000

// deviceCheck is the result of looking for device nodes in a workspace. Confined
// commands cannot make any, so looking once is enough.
type deviceCheck struct {
	mu   sync.Mutex
	done bool
	// found is the first device and its folder; partial is the reason why not every
	// file was checked.
	found, partial string
}

// errDevices ends the walk of a workspace early.
var errDevices = errors.New("the walk is over")

// devices looks for device nodes in the workspace and the folders of
// [Shell.WritePaths]. Landlock does not distinguish them from
// other files: a command that may write a file of the workspace may write to the disk
// behind a node in it.
func (w *Workspace) devices(ctx context.Context) (found, partial string, err error) {
	c := &w.deviceCheck
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return c.found, c.partial, nil
	}
	c.found, c.partial = "", ""
	n := 0
	for _, root := range w.writable() {
		if err = w.walkDevices(ctx, root, &n); err != nil {
			break
		}
	}
	if err != nil && !errors.Is(err, errDevices) {
		return "", "", err
	}
	c.done = c.found == "" // one that is found may be removed
	return c.found, c.partial, nil
}

// writable returns the directories that confined commands may write: the workspace, and those
// of [Shell.WritePaths]. A device that is itself named there is meant to be used.
func (w *Workspace) writable() []string {
	out := []string{w.real}
	if w.options.Shell == nil {
		return out
	}
	for _, p := range w.options.Shell.WritePaths {
		real, err := filepath.EvalSymlinks(p)
		if err != nil { // it does not exist
			continue
		}
		if info, err := os.Stat(real); err == nil && info.IsDir() {
			out = append(out, real)
		}
	}
	return out
}

// walkDevices looks for device nodes in a folder. n counts files.
func (w *Workspace) walkDevices(ctx context.Context, root string, n *int) error {
	c := &w.deviceCheck
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		switch *n++; {
		case *n > w.deviceWalk():
			c.partial = fmt.Sprintf("it has more than %d files", w.deviceWalk())
			return errDevices
		case err != nil && d != nil && d.IsDir():
			c.partial = fmt.Sprintf("cannot read the folder %q", filepath.Base(path))
			return fs.SkipDir
		case err != nil:
			return nil //nolint:nilerr // the file is gone
		case d.Type()&fs.ModeDevice != 0: // character devices included
			c.found = quoteShort(path) + " in Shell.WritePaths"
			if rel, err := filepath.Rel(w.real, path); err == nil && root == w.real {
				c.found = quoteShort(filepath.ToSlash(rel)) + " in the workspace"
			}
			return errDevices
		}
		return nil
	})
}

func (w *Workspace) deviceWalk() int {
	if w.maxDeviceWalk > 0 {
		return w.maxDeviceWalk
	}
	return maxDeviceWalk
}
