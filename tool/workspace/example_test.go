package workspace_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
	"github.com/dragoman-go/dragoman/tool/workspace"
)

// A model patches and reads files of a folder. Without NoApproval, the patch needs approval.
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

	ws, err := workspace.Open(dir, workspace.Options{NoApproval: []string{"apply_patch"}})
	if err != nil {
		panic(err)
	}
	defer ws.Close()
	box, err := tool.NewBox(ws.Tools()...)
	if err != nil {
		panic(err)
	}
	batch, err := (&tool.Runner{}).Start("run-1").Do(context.Background(), box, tool.Turn{Calls: []*dragoman.ToolCall{
		{ID: "1", Name: "apply_patch", Payload: "text", Arguments: `*** Begin Patch
*** Update File: hello.txt
@@
 hello
-world
+everybody
*** End Patch`},
		{ID: "2", Name: "read_file", Arguments: `{"path":"hello.txt"}`},
		{ID: "3", Name: "read_file", Arguments: `{"path":"../secret"}`},
	}})
	if err != nil {
		panic(err)
	}
	for _, r := range batch.Results {
		fmt.Println(strings.Split(r.Text(), "\n")[2]) // inside the fence
	}

	// Output:
	// updated hello.txt; version 0001d28d644976f8
	// [hello.txt: lines 1 to 2 of 2; version 0001d28d644976f8]
	// this path cannot be used: "../secret" is outside the workspace: .. must not lead above its root
}

// A policy file for a workspace: reading is allowed, commands other than ls are denied, and
// everything else needs approval.
func Example_policy() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for name, content := range map[string]string{
		"project/hello.txt": "hello\n",
		"policy.yaml": `version: 1
default: ask
rules:
  - id: reads
    effect: allow
    when:
      annotations: {read_only: true}
  - id: changes
    effect: ask
    reason: It changes files.
    when:
      tool: [write_file, apply_patch]
  - id: commands
    effect: deny
    priority: 10
    reason: Only ls runs here.
    when:
      tool: shell
      expression: '!shell(args.command).simple || shell(args.command).programs != ["ls"]'
`,
	} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(content), 0o644)); err != nil {
			panic(err)
		}
	}

	rules, err := policy.Load(filepath.Join(dir, "policy.yaml"))
	if err != nil {
		panic(err)
	}
	ws, err := workspace.Open(filepath.Join(dir, "project"), workspace.Options{Shell: &workspace.Shell{AllowAny: true}})
	if err != nil {
		panic(err)
	}
	defer ws.Close()
	box, err := tool.NewBox(ws.Tools()...)
	if err != nil {
		panic(err)
	}
	ledger := &policy.Ledger{}
	run := (&tool.Runner{Policy: rules, Approver: ledger}).Start("run-1")
	turn := tool.Turn{Calls: []*dragoman.ToolCall{
		{ID: "1", Name: "read_file", Arguments: `{"path":"hello.txt"}`},
		{ID: "2", Name: "shell", Arguments: `{"command":"rm -rf ."}`},
		{ID: "3", Name: "write_file", Arguments: `{"path":"hello.txt","content":"bye\n"}`},
	}}
	batch, err := run.Do(context.Background(), box, turn)
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Split(batch.Results[0].Text(), "\n")[2]) // inside the fence
	fmt.Println(batch.Results[1].Text())
	for _, p := range batch.Pending {
		fmt.Println(p.Binding.Key.Name, "waits:", p.Reason)
		if err := ledger.Decide(p.Binding, tool.Answer{Verdict: tool.Approved}); err != nil {
			panic(err)
		}
	}

	turn.Resume = batch.Pending
	batch, err = run.Do(context.Background(), box, turn)
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Split(batch.Results[2].Text(), "\n")[2])

	// Output:
	// [hello.txt: lines 1 to 1 of 1; version 5891b5b522d5df08]
	// shell did not run: it was denied by policy: Only ls runs here.
	// write_file waits: It changes files.
	// [replaced hello.txt: 4 bytes; version abc6fd595fc079d3]
}

// A program whose commands run in a sandbox calls Main first.
func ExampleMain() {
	sandbox, err := workspace.Main()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(126)
	}
	options := workspace.Options{Shell: &workspace.Shell{
		Allow:       []string{"go test ..."},
		Sandbox:     sandbox,
		DenyNetwork: true,
	}}
	fmt.Println(options.Shell.Sandbox != nil)

	// Output:
	// true
}
