// Weather is a loop around a model that calls tools: the smallest agent. Without
// an argument it asks the simulator, which needs no network and no key; with one it
// asks that model, such as anthropic/claude-opus-5-5.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

// City is what the tool is asked about.
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
	box, err := tool.NewBox(tool.New("get_weather", "Current weather in a city.",
		func(_ context.Context, c City) (string, error) { return "It snows in " + c.Name + ", at -4 °C.", nil }))
	if err != nil {
		return err
	}
	req := &dragoman.Request{
		Messages: []dragoman.Message{dragoman.UserText("What is the weather in Oslo? Do I need a coat?")},
		Tools:    box.Specs(),
	}
	calls := (&tool.Runner{}).Start("run-1")
	for turn := range 5 {
		resp, err := model.Generate(ctx, req)
		if err != nil {
			return err
		}
		req.Messages = append(req.Messages, resp.Output...)
		if len(resp.ToolCalls()) == 0 {
			_, err := fmt.Fprintln(out, resp.Text())
			return err
		}
		batch, err := calls.Do(ctx, box, tool.Turn{Number: turn, Calls: resp.ToolCalls()})
		if err != nil {
			return err
		}
		for _, r := range batch.Records {
			fmt.Fprintf(out, "%s %s\n", r.Tool, r.Raw)
		}
		req.Messages = append(req.Messages, dragoman.ToolResults(batch.Results...))
	}
	return fmt.Errorf("%s still calls tools after five turns", name)
}
