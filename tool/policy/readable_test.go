package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-go/dragoman/internal/testkit/toolopt"
	"github.com/dragoman-go/dragoman/tool"
)

func TestPromptShowsArgumentsAsReadableLines(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{`{"path":"a.txt","content":"one\ntwo\n","parents":true}`, "path: \"a.txt\"\ncontent: (2 lines)\n  > one\n  > two\nparents: true"},
		{`{"content":"one\ntwo"}`, "content: (2 lines, no newline at the end)\n  > one\n  > two"},
		{
			`{"edits":[{"old":"a\nb\n","new":"<c>"},7],"n":1.50,"none":null,"o":{},"l":[]}`,
			"edits:\n  -\n    old: (2 lines)\n      > a\n      > b\n    new: \"<c>\"\n  - 7\nn: 1.50\nnone: null\no: {}\nl: []",
		},
		{`{"a\npath: \"b\"":1,"> x":2}`, "\"a\\npath: \\\"b\\\"\": 1\n\"> x\": 2"},
		{`{}`, "{}"},
		{`not JSON`, "not JSON"},
	} {
		if got := readable(json.RawMessage(tc.args)); got != tc.want {
			t.Errorf("%s:\n%s\nwant\n%s", tc.args, got, tc.want)
		}
	}
}

func TestPromptShowsThePreviewOfTheTool(t *testing.T) {
	ask := func(preview func(context.Context) (string, error)) string {
		var out bytes.Buffer
		_, err := NewPrompt(strings.NewReader("n\n"), &out).Approve(context.Background(), &tool.ApprovalRequest{
			Binding: tool.Binding{Key: toolopt.Bare("write_file")}, Input: tool.Input{Arguments: json.RawMessage(`{"path":"a.txt"}`)}, Preview: preview,
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	if got := ask(func(context.Context) (string, error) { return "Change a.txt:\n-old\n+new\x1b[2J", nil }); !strings.Contains(got, "  | -old\n  | +new\\x1b[2J\n") || strings.Contains(got, "path:") {
		t.Errorf("preview not shown, or not escaped:\n%s", got)
	}
	got := ask(func(context.Context) (string, error) { return "", errors.New("a.txt is a folder\n> ") })
	if !strings.Contains(got, "  | path: \"a.txt\"\n") || !strings.Contains(got, `No preview: a.txt is a folder\n> `) {
		t.Errorf("failed preview:\n%s", got)
	}
}

// Deep arguments with one level per line would fill thousands of screens.
func TestPromptShowsDeepArgumentsOnOneLine(t *testing.T) {
	const depth = 9000
	deep := strings.Repeat("[ ", depth) + `"x\ny"` + strings.Repeat(" ]", depth)
	got := readable(json.RawMessage(`{"deep":` + deep + `,"command":"rm"}`))
	if len(got) > 3*len(deep) || !strings.HasSuffix(got, "]\ncommand: \"rm\"") || !strings.Contains(got, `["x\ny"]`) {
		t.Errorf("%d bytes: %.300s", len(got), got)
	}
}
