//go:build !linux

package workspace

import "path/filepath"

// waitWithoutReaping is not available on this system.
func waitWithoutReaping(int) bool { return false }

// killMarked does nothing: it would need a list of all processes with their environment.
func killMarked(string) {}

// workFolder returns a directory of the workspace to run a command in.
func (w *Workspace) workFolder(rel string) (string, func(), error) {
	f, err := w.openFolder(rel)
	if err != nil {
		return "", nil, err
	}
	closeQuietly(f)
	return filepath.Join(w.real, filepath.FromSlash(rel)), func() {}, nil
}
