package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
)

// The envelope of an output must not have what a hook removed.
func TestAHookThatChangesTheContentDropsTheEnvelope(t *testing.T) {
	text := func(s string) []dragoman.Part { return []dragoman.Part{&dragoman.Text{Text: s}} }
	raw := &dragoman.Native{Format: "mcp", JSON: json.RawMessage(`{"content":"raw"}`)}
	for name, test := range map[string]struct {
		hook tool.PostHook
		want string
	}{
		"no change": {func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) { return out, nil }, `{"content":"raw"}`},
		"new content": {func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
			out.Content = text("clean")
			return out, nil
		}, ""},
		"changed in place": {func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
			out.Content[0].(*dragoman.Text).Text = "clean"
			return out, nil
		}, ""},
		"failed": {func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
			out.Failed = true
			return out, nil
		}, ""},
		"own envelope": {func(_ context.Context, _ tool.Input, out tool.Output) (tool.Output, error) {
			out.Content, out.Envelope = text("clean"), &dragoman.Native{Format: "mcp", JSON: json.RawMessage(`{"content":"clean"}`)}
			return out, nil
		}, `{"content":"clean"}`},
	} {
		spec := dragoman.ToolSpec{Name: "read", Parameters: json.RawMessage(`{"type":"object"}`)}
		remote := tool.Remote(spec, func(context.Context, tool.Input) (tool.Output, error) {
			return tool.Output{Content: text("secret"), Envelope: raw}, nil
		})
		box, err := tool.Config{Hooks: tool.Hooks{Post: []tool.PostHook{test.hook}}}.Box(remote)
		if err != nil {
			t.Fatal(err)
		}
		b, err := (&tool.Runner{}).Start("r").Do(t.Context(), box, tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "c", Name: "read", Arguments: "{}"}}})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if e := b.Results[0].Envelope; e != nil {
			got = string(e.JSON)
		}
		if got != test.want {
			t.Errorf("%s: the envelope is %q, want %q", name, got, test.want)
		}
	}
}
