package workspace

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

type listInput struct {
	Path  string `json:"path,omitempty" doc:"the folder, relative to the workspace; the workspace itself if left out"`
	Depth int    `json:"depth,omitempty" doc:"how many levels of folders to show; 1 is the folder alone, and the default" jsonschema:"minimum=1,maximum=20"`
	All   bool   `json:"all,omitempty" doc:"also show what .gitignore leaves out, and folders such as .git"`
	Limit int    `json:"limit,omitempty" doc:"show at most so many entries; 500 by default" jsonschema:"minimum=1,maximum=5000"`
}

const defaultListed = 500

// List returns the tool that lists directories.
func (w *Workspace) List(opts ...tool.Option) tool.Tool {
	return tool.New(toolname.ListFiles, "Lists the files and folders of a folder of the workspace, with sizes in bytes. "+
		"Folders end in /, symlinks show where they lead and are not followed. "+
		"Files that .gitignore files of the workspace exclude are omitted.", w.list, reads(opts)...)
}

func (w *Workspace) list(ctx context.Context, in listInput) (string, error) {
	if in.Path == "" {
		in.Path = "."
	}
	rel, err := w.resolve(in.Path)
	if err != nil {
		return "", err
	}
	limit := in.Limit
	if limit <= 0 {
		limit = defaultListed
	}
	var lines strings.Builder
	shownEntries, more := 0, false
	v := walker{w: w, depth: max(in.Depth, 1), all: in.All, visit: func(rel string, info fs.FileInfo) error {
		if shownEntries == limit {
			more = true
			return errStop
		}
		shownEntries++
		lines.WriteString(w.listed(rel, info) + "\n")
		return nil
	}}
	if err := v.walk(ctx, rel); err != nil {
		return "", err
	}
	head := fmt.Sprintf("[%s: %s", shown(rel), textkit.Count(shownEntries, "entry"))
	if more {
		head += ", and more: list a folder of it, or raise limit"
	}
	if note := v.note(); note != "" {
		head += "; " + note
	}
	return plain(head + "]\n" + lines.String()), nil
}

// listed returns the line for an entry.
func (w *Workspace) listed(rel string, info fs.FileInfo) string {
	mode := info.Mode()
	switch {
	case mode.IsDir():
		return shown(rel) + "/"
	case mode.IsRegular():
		return fmt.Sprintf("%s  %d", shown(rel), info.Size())
	case mode&fs.ModeSymlink != 0:
		target, err := w.root.Readlink(rel)
		if err != nil {
			target = "?"
		}
		return shown(rel) + " -> " + shown(target)
	default:
		return shown(rel) + "  (" + kindOf(mode) + ")"
	}
}
