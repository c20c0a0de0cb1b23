// Handoff lets one agent hand the conversation to another, which has its own instructions and
// tools.
//
//	$ go run ./examples/handoff
//	front -> billing
//	billing responds:
//	transfer_to_billing says: The conversation is handed over to billing.
//	refund says: refunded invoice 17
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

type Refund struct {
	Invoice int `json:"invoice" doc:"number of the invoice"`
}

func main() {
	model := provider.MustOpen("sim/planner")
	refund := tool.New("refund", "Refunds an invoice.",
		func(_ context.Context, r Refund) (string, error) {
			return fmt.Sprintf("refunded invoice %d", r.Invoice), nil
		})
	billing := &agent.Agent{
		Name:        "billing",
		Description: "Answers questions about invoices.",
		Model:       model, // may differ from that of the other agent
		Tools:       []tool.Tool{refund},
	}
	front := agent.Agent{
		Name:         "front",
		Instructions: "Hand over to the agent that can help.",
		Model:        model,
		Handoffs:     []agent.Handoff{{To: billing}},
	}
	for ev, err := range front.Stream(context.Background(), "Transfer me to billing. Refund invoice 17.") {
		if err != nil {
			log.Fatal(err)
		}
		switch ev := ev.(type) {
		case *agent.HandedOff:
			fmt.Println(ev.From, "->", ev.To)
		case *agent.RunEnd:
			fmt.Printf("%s responds:\n%s\n", ev.Result.Agent, ev.Result.Output)
		}
	}
}
