package workspace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/dragoman-go/dragoman/internal/textkit"
	"github.com/dragoman-go/dragoman/tool"
)

// previewWrite shows a write as a diff, or as the content of a new file.
func (w *Workspace) previewWrite(_ context.Context, in tool.Input) (string, error) {
	var args writeInput
	if err := json.Unmarshal(in.Arguments, &args); err != nil {
		return "", err
	}
	rel, now, err := w.planWrite(args)
	if err != nil {
		return "", err
	}
	text := previewEdit(edit{rel: rel, before: now, after: []byte(args.Content)})
	if now == nil && args.Parents {
		text += "\nMissing folders of the path are created."
	}
	return text, nil
}

// previewPatch shows the changes of a patch as diffs of its files, in its order.
func (w *Workspace) previewPatch(ctx context.Context, in tool.Input) (string, error) {
	edits, _, err := w.plan(ctx, in.Text)
	if err != nil {
		return "", err
	}
	parts := make([]string, len(edits))
	for i, e := range edits {
		parts[i] = previewEdit(e)
	}
	return strings.Join(parts, "\n"), nil
}

// previewShell shows a command as one would type it.
func (w *Workspace) previewShell(_ context.Context, in tool.Input) (string, error) {
	var args shellInput
	if err := json.Unmarshal(in.Arguments, &args); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("Run")
	if args.Folder != "" {
		fmt.Fprintf(&b, " in %s", shown(args.Folder))
	}
	if args.Seconds > 0 {
		fmt.Fprintf(&b, ", for at most %d s", args.Seconds)
	}
	b.WriteString(":\n" + strings.TrimSuffix("$ "+args.Command, "\n"))
	return b.String(), nil
}

// previewEdit shows the change to one file. It always shows new content, even with NUL bytes:
// a script that has one still runs.
func previewEdit(e edit) string {
	name := shown(e.rel)
	switch {
	case e.remove && isBinary(e.before.data):
		return fmt.Sprintf("Delete %s (%s, binary).", name, textkit.Count(len(e.before.data), "byte"))
	case e.remove:
		return fmt.Sprintf("Delete %s (%s):\n%s", name, measure(e.before.data), marked("-", e.before.data))
	case e.before == nil && len(e.after) == 0:
		return fmt.Sprintf("Create %s, empty.", name)
	case e.before == nil:
		return fmt.Sprintf("Create %s (%s):\n%s", name, measure(e.after), marked("+", e.after))
	case bytes.Equal(e.before.data, e.after):
		return fmt.Sprintf("Write %s with the content that it already has.", name)
	case isBinary(e.before.data) && len(e.after) == 0:
		return fmt.Sprintf("Empty %s, a binary file of %s.", name, textkit.Count(len(e.before.data), "byte"))
	case isBinary(e.before.data):
		return fmt.Sprintf("Replace %s, a binary file of %s, with %s:\n%s", name, textkit.Count(len(e.before.data), "byte"), measure(e.after), marked("+", e.after))
	default:
		return fmt.Sprintf("Change %s:\n%s", name, unified(name, e.before.data, e.after))
	}
}

// unified returns a unified diff without the line that names the command.
func unified(name string, before, after []byte) string {
	text := string(diff.Diff(name, before, name, after))
	_, text, _ = strings.Cut(text, "\n")
	return strings.TrimSuffix(text, "\n")
}

// marked returns content with a mark before each line.
func marked(mark string, data []byte) string {
	text, ended := strings.CutSuffix(string(data), "\n")
	text = mark + strings.ReplaceAll(text, "\n", "\n"+mark)
	if !ended && len(data) > 0 {
		text += "\n\\ No newline at end of file"
	}
	return text
}

func measure(data []byte) string {
	lines := bytes.Count(data, []byte{'\n'})
	if len(data) > 0 && data[len(data)-1] != '\n' {
		lines++
	}
	return textkit.Count(lines, "line") + ", " + textkit.Count(len(data), "byte")
}
