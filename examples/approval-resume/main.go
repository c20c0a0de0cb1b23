// Approval-resume stops a run at a call that needs approval and stores its state in a file.
// Another process reads the file, approves the call, and continues the run.
//
//	$ go run ./examples/approval-resume
//	waiting for approval: delete_file {"path":"old.txt"}
//	$ go run ./examples/approval-resume -approve
//	delete_file says: deleted old.txt
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

type File struct {
	Path string `json:"path"`
}

func newAgent() agent.Agent {
	remove := tool.New("delete_file", "Deletes a file.",
		func(_ context.Context, f File) (string, error) { return "deleted " + f.Path, nil }, tool.NeedsApproval())
	return agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{remove}}
}

func start(ctx context.Context, name string) error {
	res, err := newAgent().Run(ctx, `Delete the file "old.txt".`)
	if !errors.Is(err, agent.ErrInterrupted) {
		return err // nil if no call needed approval
	}
	for _, p := range res.Pending {
		fmt.Println("waiting for approval:", p.Tool(), string(p.Input.Arguments))
	}
	data, err := json.Marshal(res.State)
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o600)
}

func resume(ctx context.Context, name string) error {
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var state agent.State
	if err := json.Unmarshal(data, &state); err != nil {
		return err
	}
	// A state that is resumed twice runs its calls twice. With agent.In, the session refuses that.
	if err := os.Remove(name); err != nil {
		return err
	}
	res, err := newAgent().Resume(ctx, &state, agent.ApproveAll(state.Pending()))
	fmt.Println(res.Output) // empty after an error
	return err
}

func main() {
	approve := flag.Bool("approve", false, "approve the call and continue the run")
	flag.Parse()
	step := start
	if *approve {
		step = resume
	}
	if err := step(context.Background(), filepath.Join(os.TempDir(), "approval-resume.json")); err != nil {
		log.Fatal(err)
	}
}
