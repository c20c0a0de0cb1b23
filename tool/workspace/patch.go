package workspace

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/text/toolname"
	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// patchGrammar is the grammar of parsePatch, for providers that constrain a model to it. The
// toolbox checks it too; parsePatch checks what it cannot express.
const patchGrammar = `start: opening change+ closing
opening: "*** Begin Patch" NEWLINE
closing: "*** End Patch" NEWLINE*

change: creation | removal | revision
creation: "*** Add File: " PATH NEWLINE inserted*
removal: "*** Delete File: " PATH NEWLINE
revision: "*** Update File: " PATH NEWLINE destination? (hunk+ tail?)?
destination: "*** Move to: " PATH NEWLINE

hunk: place* body+
place: "@@" (" " TEXT)? NEWLINE
body: inserted | removed | unchanged
inserted: "+" TEXT? NEWLINE
removed: "-" TEXT? NEWLINE
unchanged: (" " TEXT?)? NEWLINE
tail: "*** End of File" NEWLINE

PATH: /[^\r\n]+/
TEXT: /[^\r\n]+/
NEWLINE: /\r?\n/
`

const patchDescription = `Changes files of the workspace by a patch, all of it or nothing. The input is the patch itself, no JSON:

*** Begin Patch
*** Update File: src/hello.go
@@ func hello() {
 	name := "world"
-	fmt.Println("hi", name)
+	fmt.Println("hello", name)
*** Add File: docs/notes.md
+# Notes
*** Delete File: old.txt
*** End Patch

Paths are relative to the workspace. "*** Move to: new/path" right after an Update File line also renames the file.
Each line of a hunk begins with a space (unchanged), - (removed) or + (added). Show about three unchanged lines before and after a change; they and the removed lines must be in the file exactly, and only once.
Where they are not unique, put "@@ " and a whole line that stands before them, such as the head of the function; a hunk without one begins with @@ alone or follows the file's name. Line numbers are not used.
"*** End of File" after a hunk says that it ends where the file does.`

// Patch returns the tool that changes files by a patch. It takes text in the patch format of
// Codex.
func (w *Workspace) Patch(opts ...tool.Option) tool.Tool {
	grammar := &dragoman.Grammar{Syntax: "lark", Definition: patchGrammar}
	opts = append([]tool.Option{tool.Set(func(s *tool.Settings) { s.SelfParsing = true })}, opts...)
	return tool.Freeform(toolname.ApplyPatch, patchDescription, grammar, func(ctx context.Context, text string) (any, error) {
		return w.patch(ctx, text)
	}, w.changes(toolname.ApplyPatch, w.checkPatch, w.previewPatch, opts)...)
}

// checkPatch refuses patches that fail whatever the files contain.
func (w *Workspace) checkPatch(_ context.Context, in tool.Input) error {
	p, err := parsePatch(in.Text)
	if err == nil {
		_, err = w.namedChanges(p)
	}
	if err != nil {
		return fmt.Errorf("%w; %w", err, errRolledBack)
	}
	return nil
}

func (w *Workspace) patch(ctx context.Context, text string) (string, error) {
	w.changing.Lock()
	defer w.changing.Unlock()
	edits, report, err := w.plan(ctx, text)
	if err != nil {
		return "", err
	}
	tx := w.begin()
	defer tx.end()
	for _, e := range edits {
		tx.put(e)
	}
	if err := tx.commit(); err != nil {
		return "", err
	}
	return plain(strings.Join(report, "\n")), nil
}

// plan computes all changes of a patch before anything is written.
func (w *Workspace) plan(ctx context.Context, text string) ([]edit, []string, error) {
	p, err := parsePatch(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; %w", err, errRolledBack)
	}
	edits, report, err := w.planChanges(ctx, p)
	if err != nil {
		return nil, nil, fmt.Errorf("%w; %w", err, errRolledBack)
	}
	return edits, report, nil
}

func (w *Workspace) planChanges(ctx context.Context, p *patch) (edits []edit, report []string, err error) {
	all, err := w.namedChanges(p)
	if err == nil {
		err = w.distinct(all)
	}
	if err != nil {
		return nil, nil, err
	}
	for _, c := range all {
		more, line, err := w.planChange(ctx, c)
		if err != nil {
			return nil, nil, err
		}
		edits = append(edits, more...)
		report = append(report, line)
	}
	return edits, report, nil
}

// namedChange is a change with the paths of its files; target is "" if it moves none.
type namedChange struct {
	change
	rel, target string
}

// files returns the files that no other change may use.
func (c namedChange) files() []string {
	if c.target == "" || c.target == c.rel {
		return []string{c.rel}
	}
	return []string{c.rel, c.target}
}

// namedChanges returns the files of a patch, from its text alone: earlier calls of the same turn may
// change the files.
func (w *Workspace) namedChanges(p *patch) ([]namedChange, error) {
	all := make([]namedChange, len(p.changes))
	var claims fileClaims
	for i, c := range p.changes {
		named := namedChange{change: c}
		var err error
		if named.rel, err = w.resolveChange(c.path); err == nil && c.moveTo != "" {
			named.target, err = w.resolveChange(c.moveTo)
		}
		for _, rel := range named.files() {
			if err == nil {
				err = claims.add(rel, c.line)
			}
		}
		if err != nil {
			return nil, patchError{c.line, err.Error()}
		}
		all[i] = named
	}
	return all, nil
}

// fileClaims makes sure that a patch names each file once: otherwise the order of the changes would
// be unclear.
type fileClaims struct {
	files map[string]int // the lines of the patch that name the files
	// folders holds the parent directories of the files, with the line that first uses each.
	folders map[string]claim
}

type claim struct {
	rel  string
	line int
}

func (c *fileClaims) add(rel string, line int) error {
	if other, twice := c.files[rel]; twice {
		return fmt.Errorf("%s is named twice, first in line %d: put all changes of a file into one section", quoteShort(rel), other)
	}
	both := func(other claim) error {
		return fmt.Errorf("%s and %s (line %d) cannot both be files", quoteShort(rel), quoteShort(other.rel), other.line)
	}
	if other, is := c.folders[rel]; is {
		return both(other)
	}
	if c.files == nil {
		c.files, c.folders = map[string]int{}, map[string]claim{}
	}
	for end := strings.LastIndexByte(rel, '/'); end > 0; end = strings.LastIndexByte(rel[:end], '/') {
		dir := rel[:end]
		if other, is := c.files[dir]; is {
			return both(claim{dir, other})
		}
		if _, known := c.folders[dir]; !known {
			c.folders[dir] = claim{rel, line}
		}
	}
	c.files[rel] = line
	return nil
}

// distinct refuses a patch that names one file by two names, through links or file systems that
// fold names.
func (w *Workspace) distinct(all []namedChange) error {
	type there struct {
		claim
		info fs.FileInfo
	}
	var before []there
	for _, c := range all {
		for _, rel := range c.files() {
			info, err := w.root.Lstat(rel)
			if err != nil {
				continue // it is not there, or planChange says why
			}
			for _, other := range before {
				if os.SameFile(info, other.info) {
					return patchError{c.line, fmt.Sprintf("%s is the same file as %s (line %d)", quoteShort(rel), quoteShort(other.rel), other.line)}
				}
			}
			before = append(before, there{claim{rel, c.line}, info})
		}
	}
	return nil
}

// planChange computes the new content of one file, or of two for a move.
func (w *Workspace) planChange(ctx context.Context, c namedChange) ([]edit, string, error) {
	rel, target := c.rel, c.target
	bad := func(format string, args ...any) ([]edit, string, error) {
		return nil, "", patchError{c.line, fmt.Sprintf(format, args...)}
	}
	now, err := w.current(rel)
	switch {
	case err != nil:
		return bad("%v", err)
	case c.kind == addFile && now != nil:
		return bad("%s exists already: use *** Update File", quoteShort(rel))
	case c.kind != addFile && now == nil:
		return bad("%s does not exist in the workspace", quoteShort(rel))
	}
	switch c.kind {
	case addFile:
		after := joinAdded(c.content)
		if int64(len(after)) > w.options.MaxFile {
			return bad("%s %v: %s", quoteShort(rel), errTooLarge, textkit.Count(len(after), "byte"))
		}
		return []edit{{rel: rel, after: after, parents: true}}, "added " + shown(rel), nil
	case deleteFile:
		return []edit{{rel: rel, before: now, remove: true}}, "deleted " + shown(rel), nil
	}
	if len(c.hunks) > 0 && isBinary(now.data) {
		return bad("%s is a binary file", quoteShort(rel))
	}
	after, err := applyHunks(ctx, rel, now.data, c.hunks)
	if err != nil {
		return nil, "", err
	}
	if int64(len(after)) > w.options.MaxFile {
		return bad("%s would be too large: %s", quoteShort(rel), textkit.Count(len(after), "byte"))
	}
	if target == "" || target == rel {
		if bytes.Equal(after, now.data) {
			return bad("the hunks of %s change nothing", quoteShort(rel))
		}
		return []edit{{rel: rel, before: now, after: after}}, fmt.Sprintf("updated %s; version %s", shown(rel), versionOf(after)), nil
	}
	if there, err := w.current(target); err != nil {
		return bad("%v", err)
	} else if there != nil {
		return bad("%s cannot be moved to %s, which exists already", quoteShort(rel), quoteShort(target))
	}
	return []edit{
		{rel: target, after: after, mode: now.mode, parents: true},
		{rel: rel, before: now, remove: true},
	}, fmt.Sprintf("moved %s to %s; version %s", shown(rel), shown(target), versionOf(after)), nil
}

func joinAdded(lines []string) []byte {
	var b bytes.Buffer
	for _, l := range lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	return b.Bytes()
}
