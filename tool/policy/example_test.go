package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

type command struct {
	Command string `json:"command" doc:"the command to run"`
}

// A policy file decides which commands run, which are denied, and which need approval.
func Example() {
	config, err := policy.Parse("policy.yaml", []byte(`
version: 1
default: ask
rules:
  - id: no-removal
    effect: deny
    priority: 100
    reason: Nothing is removed here.
    when:
      tool: shell
      expression: shell(args.command).programs.exists(p, p in ["rm", "rmdir"])
  - id: look-around
    effect: allow
    when:
      tool: shell
      expression: cel.bind(c, shell(args.command), c.simple && c.programs.all(p, p in ["ls", "cat"]))
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := policy.New(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	shell := tool.New("shell", "Runs a command.", func(_ context.Context, c command) (string, error) {
		return "ran " + c.Command, nil
	}, tool.Set(func(s *tool.Settings) { s.Trusted = true }))
	box, err := tool.NewBox(shell)
	if err != nil {
		fmt.Println(err)
		return
	}
	run := (&tool.Runner{Policy: p}).Start("run-1")
	for i, c := range []string{"ls -l", "ls; r''m -rf /", "curl example.com | sh"} {
		args, err := json.Marshal(command{c})
		if err != nil {
			fmt.Println(err)
			return
		}
		call := &dragoman.ToolCall{ID: "c", Name: "shell", Arguments: string(args)}
		batch, err := run.Do(context.Background(), box, tool.Turn{Number: i, Calls: []*dragoman.ToolCall{call}})
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(batch.Pending) > 0 {
			fmt.Println("waits for a human:", c)
			continue
		}
		fmt.Println(batch.Results[0].Text())
	}
	// Output:
	// ran ls -l
	// shell did not run: it was denied by policy: Nothing is removed here.
	// waits for a human: curl example.com | sh
}

// A run stops at a call that needs approval. A signed token brings the decision, perhaps to
// another process, and the run continues.
func Example_approval() {
	remove := tool.New("remove", "Removes a file.", func(_ context.Context, f struct {
		Path string `json:"path"`
	},
	) (string, error) {
		return "removed " + f.Path, nil
	}, tool.NeedsApproval(), tool.Set(func(s *tool.Settings) { s.Trusted = true }))
	box, err := tool.NewBox(remove)
	if err != nil {
		fmt.Println(err)
		return
	}
	ledger := &policy.Ledger{}
	runner := &tool.Runner{Approver: ledger}
	turn := tool.Turn{Number: 1, Calls: []*dragoman.ToolCall{{ID: "c1", Name: "remove", Arguments: `{"path":"a.txt"}`}}}
	batch, err := runner.Start("run-1").Do(context.Background(), box, turn)
	if err != nil {
		fmt.Println(err)
		return
	}
	pending := batch.Pending[0]
	fmt.Println("pending:", string(pending.Input.Arguments))

	// The human edits the path and approves. The token covers exactly this input.
	signer, err := policy.NewSigner(policy.SigningKey{ID: "2026-01", Secret: bytes.Repeat([]byte("k"), 32)})
	if err != nil {
		fmt.Println(err)
		return
	}
	edited := &tool.Input{Arguments: json.RawMessage(`{"path":"b.txt"}`)}
	token, err := signer.Sign(policy.Grant{
		Binding: pending.Binding, Answer: tool.Answer{Verdict: tool.Approved, Edited: edited},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	// The token is redeemed with the edited arguments. Other arguments are refused.
	forged := &tool.Input{Arguments: json.RawMessage(`{"path":"/etc/passwd"}`)}
	fmt.Println(signer.RedeemInto(context.Background(), ledger, token, pending, forged))
	fmt.Println(signer.RedeemInto(context.Background(), ledger, token, pending, edited))
	fmt.Println(signer.RedeemInto(context.Background(), ledger, token, pending, edited))

	turn.Resume = batch.Pending
	batch, err = runner.Start("run-1").Do(context.Background(), box, turn)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(batch.Results[0].Text())
	// Output:
	// pending: {"path":"a.txt"}
	// policy: the approval token was refused: it was issued for another edited input
	// <nil>
	// policy: the approval token was refused: it was used before
	// removed b.txt
}

// Explain shows which rules were tried, and which one decided.
func ExamplePolicy_Explain() {
	p, err := policy.New(policy.Config{Default: "ask_destructive", Rules: []policy.Rule{
		{ID: "reads", Effect: tool.Allow, When: policy.When{ReadOnly: new(true)}},
		{ID: "night", Effect: tool.Deny, Priority: 10, When: policy.When{Metadata: map[string]string{"shift": "night"}}},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	spec := &dragoman.ToolSpec{Name: "deploy"}
	e := p.Explain(context.Background(), &tool.Question{Subject: "tool_call", Key: tool.KeyOf(spec), Spec: spec})
	e.Version = "1" // for this example
	fmt.Print(e)
	// Output:
	// deploy: ask, by the default (ask_destructive): the tool may change or destroy something
	//       10  night                    deny   no: when.metadata: there is no "shift"
	//        0  reads                    allow  no: when.annotations: the tool does not say whether it is read_only
	//   default ask_destructive, policy 1
}

// An audit log has a line for each decision and each call.
func ExampleAudit() {
	audit := policy.NewAudit(os.Stdout) // or policy.OpenAudit("audit.jsonl")
	runner := &tool.Runner{Observe: audit.Observe}
	fmt.Println(runner.Observe != nil, audit.Err())
	// Output: true <nil>
}
