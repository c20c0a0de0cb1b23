// Weather is the smallest agent: a model, a tool and a prompt. Without an argument it uses
// the simulator, which needs no network and no key. An argument selects another model, such
// as anthropic/claude-opus-5-5.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

// City is the input of the tool.
type City struct {
	Name string `json:"name" doc:"the city's name, in English"`
}

func main() {
	model := "sim/planner"
	if len(os.Args) > 1 {
		model = os.Args[1]
	}
	if err := run(context.Background(), os.Stdout, model); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer, name string) error {
	model, err := provider.Open(name)
	if err != nil {
		return err
	}
	weather := tool.New("get_weather", "Current weather in a city.",
		func(_ context.Context, c City) (string, error) { return "It snows in " + c.Name + ", at -4 °C.", nil })
	a := agent.Agent{Model: model, Tools: []tool.Tool{weather}}
	res, err := a.Run(ctx, "What is the weather in Oslo? Do I need a coat?")
	if err != nil {
		return err
	}
	for _, r := range res.Records {
		fmt.Fprintf(out, "%s %s\n", r.Tool, r.Raw)
	}
	_, err = fmt.Fprintln(out, res.Output)
	return err
}
