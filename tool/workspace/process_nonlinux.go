//go:build !linux

package workspace

import "path/filepath"

// waitWithoutReaping is not there everywhere.
func waitWithoutReaping(int) bool { return false }

// killMarked needs a list of all processes with their environment.
func killMarked(string) {}

// workFolder is a folder of the workspace, to run a command in.
func (w *Workspace) workFolder(rel string) (string, func(), error) {
	f, err := w.openFolder(rel)
	if err != nil {
		return "", nil, err
	}
	shut(f)
	return filepath.Join(w.real, filepath.FromSlash(rel)), func() {}, nil
}
