package workspace_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/shell"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

// A model lists and patches files of a folder. Without NoApproval the patch would
// wait for a human.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	err = os.WriteFile(filepath.Join(dir, "hello.txt"), []byte("hello\nworld\n"), 0o644)
	if err != nil {
		panic(err)
	}

	ws, err := workspace.Open(dir, workspace.Options{NoApproval: []string{workspace.PatchName}})
	if err != nil {
		panic(err)
	}
	defer ws.Close()
	box, err := tool.NewBox(ws.Tools()...)
	if err != nil {
		panic(err)
	}
	batch, err := (&tool.Runner{}).Start("run-1").Do(context.Background(), box, tool.Turn{Calls: []*dragoman.ToolCall{
		{ID: "1", Name: workspace.PatchName, Payload: dragoman.PayloadText, Arguments: `*** Begin Patch
*** Update File: hello.txt
@@
 hello
-world
+everybody
*** End Patch`},
		{ID: "2", Name: workspace.ReadName, Arguments: `{"path":"hello.txt"}`},
		{ID: "3", Name: workspace.ReadName, Arguments: `{"path":"../secret"}`},
	}})
	if err != nil {
		panic(err)
	}
	for _, r := range batch.Results {
		fmt.Println(strings.Split(r.Text(), "\n")[2]) // within the fence
	}

	// Output:
	// updated hello.txt; version 0001d28d644976f8
	// [hello.txt: lines 1 to 2 of 2; version 0001d28d644976f8]
	// this path cannot be used: "../secret" is outside the workspace: .. must not lead above its root
}

// The first thing that a program does, so that its commands can be confined.
func ExampleMain() {
	sandbox, err := workspace.Main()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(126)
	}
	allow, err := shell.Allow("go test ...")
	if err != nil {
		panic(err)
	}
	options := workspace.Options{Shell: &workspace.Shell{
		Allow:       allow.Allows,
		Sandbox:     sandbox,
		DenyNetwork: true,
	}}
	fmt.Println(options.Shell.Sandbox != nil)

	// Output:
	// true
}
