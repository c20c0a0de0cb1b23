// Streaming prints what happens in a run while it happens: text as the model writes it, tool
// calls, and their results.
//
//	$ go run ./examples/streaming
//	calling get_weather {"name":"Oslo"}
//	get_weather returned "It snows in Oslo, at -4 °C."
//	get_weather says: It snows in Oslo, at -4 °C.
//	2 turns, 1 call
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

type City struct {
	Name string `json:"name" doc:"the city's name, in English"`
}

func main() {
	weather := tool.New("get_weather", "Current weather in a city.",
		func(_ context.Context, c City) (string, error) { return "It snows in " + c.Name + ", at -4 °C.", nil })
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{weather}}

	// To stop early, leave the loop or cancel the context: the run ends, and its goroutines too.
	for ev, err := range a.Stream(context.Background(), "What is the weather in Oslo?") {
		if err != nil {
			log.Fatal(err)
		}
		switch ev := ev.(type) {
		case *agent.ModelEvent:
			fmt.Print(ev.Text()) // empty for events that are not text
		case *agent.ToolCalled:
			fmt.Println("calling", ev.Call.Name, ev.Call.Arguments)
		case *agent.ToolEvent:
			if end, ok := ev.Event.(tool.CallEnded); ok {
				fmt.Printf("%s returned %q\n", end.Record.Tool, end.Record.Plain)
			}
		case *agent.RunEnd:
			fmt.Printf("\n%d turns, %d call\n", ev.Result.Turns, len(ev.Result.Records))
		}
	}
}
