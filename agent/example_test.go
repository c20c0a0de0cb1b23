package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

type City struct {
	Name string `json:"name" doc:"the city's name, in English"`
}

type Weather struct {
	Sky     string `json:"sky"`
	Celsius int    `json:"celsius"`
}

func lookup(_ context.Context, city string) (Weather, error) {
	return Weather{Sky: "snow in " + city, Celsius: -4}, nil
}

// The first program: a tool, an agent, a prompt.
func Example() {
	ctx := context.Background()
	weather := tool.New("get_weather", "Current weather in a city.",
		func(ctx context.Context, c City) (Weather, error) { return lookup(ctx, c.Name) })

	a := agent.Agent{
		Model: provider.MustOpen("sim/planner"), // or anthropic/…, openai/…, gemini/…, ollama/…
		Tools: []tool.Tool{weather},
	}
	res, err := a.Run(ctx, "Do I need a coat in Oslo?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Records[0].Tool, res.Records[0].Raw, res.Records[0].Plain)
	// Output: get_weather {"name":"Oslo"} {"sky":"snow in Oslo","celsius":-4}
}

// Print the events of a run as they happen.
func ExampleAgent_Stream() {
	weather := tool.New("get_weather", "Current weather in a city.",
		func(ctx context.Context, c City) (Weather, error) { return lookup(ctx, c.Name) })
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{weather}}
	for ev, err := range a.Stream(context.Background(), "What is the weather in Oslo?") {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch ev := ev.(type) {
		case *agent.ModelEvent: // reasoning and arguments are streamed too, but have no Text
			fmt.Print(ev.Text())
		case *agent.ToolCalled:
			fmt.Println("calls", ev.Call.Name, ev.Call.Arguments)
		case *agent.ToolEvent:
			if end, ok := ev.Event.(tool.CallEnded); ok {
				fmt.Println("got", end.Record.Plain)
			}
		case *agent.RunEnd:
			fmt.Println("\nturns:", ev.Result.Turns)
		}
	}
	// Output:
	// calls get_weather {"name":"Oslo"}
	// got {"sky":"snow in Oslo","celsius":-4}
	// get_weather says: {"sky":"snow in Oslo","celsius":-4}
	// turns: 2
}

// A run stops at a call that needs approval, and continues after the decision.
func ExampleAgent_Resume() {
	remove := tool.New("delete_file", "Deletes a file.", func(_ context.Context, in struct {
		Path string `json:"path"`
	},
	) (string, error) {
		return "deleted " + in.Path, nil
	}, tool.NeedsApproval())
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{remove}}

	ctx := context.Background()
	res, err := a.Run(ctx, `Delete the file "old.txt".`)
	for errors.Is(err, agent.ErrInterrupted) {
		for _, p := range res.Pending {
			fmt.Println("approve?", p.Tool(), string(p.Input.Arguments))
		}
		// res.State can be stored as JSON: another process can resume it.
		res, err = a.Resume(ctx, res.State, agent.Approve(res.Pending[0]))
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Records[0].OK, res.Turns)
	// Output:
	// approve? delete_file {"path":"old.txt"}
	// true 2
}

// Decode the answer into a Go value.
func ExampleGenerate() {
	w, _, err := agent.Generate[Weather](context.Background(), agent.Agent{Model: provider.MustOpen("sim/planner")}, "It is -4 degrees.")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(w.Celsius)
	// Output: -4
}
