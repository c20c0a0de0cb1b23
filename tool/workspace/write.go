package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

type writeInput struct {
	Path    string `json:"path" doc:"the file, relative to the workspace"`
	Content string `json:"content" doc:"all that the file shall hold"`
	Version string `json:"version,omitempty" doc:"write only if the file still has the version that read_file gave, or, with new, only if there is none"`
	Parents bool   `json:"parents,omitempty" doc:"make the folders of the path that do not exist"`
}

// versionNew is the version of a file that does not exist.
const versionNew = "new"

// Write returns the tool that creates files and replaces whole files.
func (w *Workspace) Write(opts ...tool.Option) tool.Tool {
	more := append([]tool.Option{tool.Idempotent()}, opts...)
	return tool.New(toolname.WriteFile, "Writes a whole file of the workspace: creates it, or replaces all of its content. "+
		"To change parts of a file use apply_patch. Folders must exist unless parents is set.",
		w.write, w.changes(toolname.WriteFile, w.checkWrite, w.previewWrite, more)...)
}

// checkWrite refuses calls that fail whatever the files contain.
func (w *Workspace) checkWrite(_ context.Context, in tool.Input) error {
	var args writeInput
	if err := json.Unmarshal(in.Arguments, &args); err != nil {
		return err
	}
	_, err := w.nameWrite(args)
	return err
}

// nameWrite returns the file to write, from the arguments alone: earlier calls of the same turn
// may change the files.
func (w *Workspace) nameWrite(in writeInput) (string, error) {
	rel, err := w.resolveChange(in.Path)
	if err == nil && int64(len(in.Content)) > w.options.MaxFile {
		err = fmt.Errorf("the content %w: %s, at most %d may be written", errTooLarge, textkit.Count(len(in.Content), "byte"), w.options.MaxFile)
	}
	return rel, err
}

// planWrite returns the file to write and its current content.
func (w *Workspace) planWrite(in writeInput) (string, *content, error) {
	rel, err := w.nameWrite(in)
	if err != nil {
		return "", nil, err
	}
	now, err := w.current(rel)
	if err != nil {
		return "", nil, err
	}
	return rel, now, checkVersion(in, now)
}

func (w *Workspace) write(_ context.Context, in writeInput) (string, error) {
	w.changing.Lock()
	defer w.changing.Unlock()
	rel, now, err := w.planWrite(in)
	if err != nil {
		return "", err
	}
	tx := w.begin()
	defer tx.end()
	tx.put(edit{rel: rel, before: now, after: []byte(in.Content), parents: in.Parents})
	switch err := tx.commit(); {
	case errors.Is(err, errNoFolder):
		return "", fmt.Errorf("%w; with parents: true it is created", err)
	case err != nil:
		return "", err
	}
	did := "replaced"
	if now == nil {
		did = "created"
	}
	return fmt.Sprintf("[%s %s: %s; version %s]", did, shown(rel), textkit.Count(len(in.Content), "byte"), versionOf([]byte(in.Content))), nil
}

// checkVersion refuses to overwrite a version that the model has not seen, if the call requires
// that.
func checkVersion(in writeInput, now *content) error {
	want := strings.TrimSpace(in.Version)
	switch {
	case want == "":
		return nil
	case want == versionNew && now != nil:
		return fmt.Errorf("%s exists already; nothing was written", quoteShort(in.Path))
	case want == versionNew:
		return nil
	case now == nil:
		return fmt.Errorf("%s does not exist, so it does not have version %s; nothing was written", quoteShort(in.Path), quoteShort(want))
	case want != versionOf(now.data):
		return fmt.Errorf("%s has changed: its version is %s, not %s; nothing was written. Read it again", quoteShort(in.Path), versionOf(now.data), quoteShort(want))
	}
	return nil
}

// content is the content of a file.
type content struct {
	data []byte
	mode fs.FileMode
}

// current returns the content of a file that is to be changed; nil if it does not exist.
func (w *Workspace) current(rel string) (*content, error) {
	info, err := w.root.Lstat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, explain(rel, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, refuse(rel, "is a symlink, which changes do not follow: use the path of its target")
	}
	if err := wantRegular(rel, info); err != nil {
		return nil, err
	}
	data, info, err := w.load(rel)
	if err != nil {
		return nil, err
	}
	return &content{data: data, mode: info.Mode().Perm()}, nil
}
