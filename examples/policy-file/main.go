// Policy-file lets the rules of a file decide which tool calls run, which are denied, and which
// wait for a human. The rules are in policy.yaml.
//
//	$ go run ./examples/policy-file
//	Show the balance of Ada. -> get_balance says: Ada has 250 euros
//	Refund 500 to customer Ada. -> refund failed: refund did not run: it was denied by policy: Refunds above 100 are made by the finance team.
//	Refund 20 to customer Ada. -> waits for approval: refund
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
	"github.com/dragoman-go/dragoman/tool/policy"
)

//go:embed policy.yaml
var rules []byte

type Customer struct {
	Name string `json:"name"`
}

type Refund struct {
	Customer string `json:"customer"`
	Amount   int    `json:"amount"`
}

func run(ctx context.Context) error {
	config, err := policy.Parse("policy.yaml", rules) // policy.Load reads a file
	if err != nil {
		return err
	}
	p, err := policy.New(config)
	if err != nil {
		return err
	}
	balance := tool.New("get_balance", "Balance of a customer.",
		func(_ context.Context, c Customer) (string, error) { return c.Name + " has 250 euros", nil }, tool.ReadOnly())
	refund := tool.New("refund", "Refunds an amount to a customer.",
		func(_ context.Context, r Refund) (string, error) { return fmt.Sprint("refunded ", r.Amount), nil })
	a := agent.Agent{
		Model:  provider.MustOpen("sim/planner"),
		Tools:  []tool.Tool{balance, refund},
		Runner: &tool.Runner{Policy: p},
	}
	for _, prompt := range []string{
		"Show the balance of Ada.",
		"Refund 500 to customer Ada.",
		"Refund 20 to customer Ada.",
	} {
		res, err := a.Run(ctx, prompt)
		switch {
		case errors.Is(err, agent.ErrInterrupted):
			fmt.Println(prompt, "-> waits for approval:", res.Pending[0].Tool())
		case err != nil:
			return err
		default:
			fmt.Println(prompt, "->", res.Output)
		}
	}
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}
