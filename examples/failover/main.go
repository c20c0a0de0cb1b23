// Failover tries models in order until one responds. The first model of this program is a
// simulator that fails on purpose.
//
//	$ go run ./examples/failover
//	sim/planner?fault=500 failed: 500 server_error: the simulator was asked for this error
//	sim/echo responded: Hello.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
)

func main() {
	// Usually: provider.Open("anthropic/claude-opus-5-5, openai/gpt-5"). Each model is retried
	// first. A model that fails repeatedly is skipped for a while. An error in the request itself
	// is returned at once, because the next model would return it, too.
	model, err := provider.Open("sim/planner?fault=500, sim/echo")
	if err != nil {
		log.Fatal(err)
	}
	a := agent.Agent{Model: model}
	res, err := a.Run(context.Background(), "Hello.")
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range res.Failovers {
		fmt.Println(f.Model, "failed:", f.Err)
	}
	fmt.Println(res.Model, "responded:", res.Output)
}
