package workspace_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/internal/codec/codes"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

// previewed runs one call whose approver reads the preview and rejects the call.
func previewed(t *testing.T, dir, name string, in tool.Input) (text string, err error) {
	t.Helper()
	ws, bad := workspace.Open(dir, workspace.Options{Shell: &workspace.Shell{AllowAny: true, Scripts: true}})
	if bad != nil {
		t.Fatal(bad)
	}
	defer ws.Close()
	box, bad := tool.NewBox(ws.Tools()...)
	if bad != nil {
		t.Fatal(bad)
	}
	asked := false
	runner := &tool.Runner{Approver: policy.ApproverFunc(func(ctx context.Context, req *tool.ApprovalRequest) (tool.Answer, error) {
		asked = true
		text, err = req.Preview(ctx)
		return tool.Answer{Verdict: tool.Rejected}, nil
	})}
	call := dragoman.ToolCall{ID: "c1", Name: name, Arguments: string(in.Arguments)}
	if in.Text != "" {
		call = dragoman.ToolCall{ID: "c1", Name: name, Payload: codes.PayloadText, Arguments: in.Text}
	}
	if _, bad := runner.Start("run").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{&call}}); bad != nil {
		t.Fatal(bad)
	}
	if !asked {
		t.Fatalf("%s: the approver was not asked", name)
	}
	return text, err
}

func TestApprovalPreviewShowsTheChange(t *testing.T) {
	dir := t.TempDir()
	put := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("old.txt", "one\ntwo\nthree\n")
	put("same.txt", "same\n")
	put("image.bin", "\x00\x01")
	args := func(v any) tool.Input {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return tool.Input{Arguments: b}
	}
	type m = map[string]any
	for _, tc := range []struct {
		name, tool string
		in         tool.Input
		want       string
	}{
		{
			"a write to an existing file is a diff", "write_file", args(m{"path": "old.txt", "content": "one\n2\nthree\n"}),
			"Change old.txt:\n--- old.txt\n+++ old.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three",
		},
		{
			"a new file is its content", "write_file", args(m{"path": "new.txt", "content": "a \"quoted\"\nline"}),
			"Create new.txt (2 lines, 15 bytes):\n+a \"quoted\"\n+line\n\\ No newline at end of file",
		},
		{
			"new folders are named", "write_file", args(m{"path": "deep/new.txt", "content": "x\n", "parents": true}),
			"Create deep/new.txt (1 line, 2 bytes):\n+x\nMissing folders of the path are created.",
		},
		{"an empty file", "write_file", args(m{"path": "empty.txt", "content": ""}), "Create empty.txt, empty."},
		{"nothing changes", "write_file", args(m{"path": "same.txt", "content": "same\n"}), "Write same.txt with the content that it already has."},
		{"a binary file", "write_file", args(m{"path": "image.bin", "content": "text"}), "Replace image.bin, a binary file of 2 bytes, with 1 line, 4 bytes:\n+text\n\\ No newline at end of file"},
		{"a binary file is emptied", "write_file", args(m{"path": "image.bin", "content": ""}), "Empty image.bin, a binary file of 2 bytes."},
		{
			"a NUL byte hides no change", "write_file", args(m{"path": "same.txt", "content": "rm -rf /\n#\x00\n"}),
			"Change same.txt:\n--- same.txt\n+++ same.txt\n@@ -1,1 +1,2 @@\n-same\n+rm -rf /\n+#\x00",
		},
		{"a NUL byte hides no new file", "write_file", args(m{"path": "new.sh", "content": "rm -rf /\n#\x00\n"}), "Create new.sh (2 lines, 12 bytes):\n+rm -rf /\n+#\x00"},
		{
			"a patch is a diff of each file", "apply_patch",
			tool.Input{Text: "*** Begin Patch\n*** Update File: old.txt\n@@\n one\n-two\n+2\n*** Delete File: same.txt\n*** Add File: added.txt\n+hello\n*** End Patch\n"},
			"Change old.txt:\n--- old.txt\n+++ old.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\nDelete same.txt (1 line, 5 bytes):\n-same\nCreate added.txt (1 line, 6 bytes):\n+hello",
		},
		{"a command is as it would be typed", "shell", args(m{"command": `grep "a b" old.txt | wc -l`, "seconds": 5}), "Run, for at most 5 s:\n$ grep \"a b\" old.txt | wc -l"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := previewed(t, dir, tc.tool, tc.in)
			if err != nil || got != tc.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, tc.want)
			}
		})
	}
	for name, in := range map[string]tool.Input{
		"write_file":  args(m{"path": "old.txt", "content": "x", "version": "new"}),
		"apply_patch": {Text: "*** Begin Patch\n*** Update File: old.txt\n@@\n-nowhere\n+x\n*** End Patch\n"},
	} {
		if got, err := previewed(t, dir, name, in); err == nil || got != "" {
			t.Errorf("%s: a call that cannot succeed has the preview %q, %v", name, got, err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "old.txt")); err != nil || string(b) != "one\ntwo\nthree\n" {
		t.Errorf("a preview changed the file: %q, %v", b, err)
	}
}
