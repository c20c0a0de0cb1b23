package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"strings"

	dragoman "github.com/dragoman-go/dragoman"
	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/session"
	"github.com/dragoman-go/dragoman/sim"
	"github.com/dragoman-go/dragoman/tool"
)

// In a test, a scripted model makes the call under test, and responds to its result.
func Example_scriptedModel() {
	model, err := sim.ParseScenario("coat", `
turn the user asks
  match turn 1
  match user coat
  say Let me look.
  call get_weather {"name": "Oslo"}

turn the weather came
  match result snow
  say Take a coat.
`)
	if err != nil {
		log.Fatal(err)
	}
	weather := tool.New("get_weather", "Current weather in a city.",
		func(ctx context.Context, c City) (Weather, error) { return lookup(ctx, c.Name) })
	res, err := agent.Agent{Model: model, Tools: []tool.Tool{weather}}.Run(context.Background(), "Do I need a coat?")
	fmt.Println(res.Records[0].Raw, res.Output, err)
	// Output: {"name": "Oslo"} Take a coat. <nil>
}

// If a model of a chain fails, the next one is called. The result names the model that
// responded, and why the models before it failed. provider.Open makes such a chain from
// "openai/gpt-5,anthropic/claude-opus-5-5".
func ExampleResult_failovers() {
	down, err := sim.ParseScenario("down", "turn\n  match any\n  error overloaded status=529 try again later\n")
	if err != nil {
		log.Fatal(err)
	}
	a := agent.Agent{Model: &provider.Chain{Links: []provider.Link{
		{Name: "first", Model: down},
		{Name: "second", Model: provider.MustOpen("sim/echo")},
	}}}
	res, err := a.Run(context.Background(), "Good morning.")
	fmt.Println(res.Model, "says", res.Output, err)
	for _, f := range res.Failovers {
		fmt.Println(f.Model, "failed:", f.Err)
	}
	// Output:
	// second says Good morning. <nil>
	// first failed: 529 try again later
}

// The model reads only that a tool failed. The developer finds the panic and its stack in
// the record of the call, and in the log.
func Example_toolPanics() {
	broken := tool.New("get_weather", "Current weather in a city.", func(context.Context, City) (Weather, error) {
		var forecast map[string][]Weather
		return forecast["Oslo"][0], nil
	})
	a := agent.Agent{
		Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{broken},
		Log: slog.New(slog.DiscardHandler), // nil would log the stack with slog.Default
	}
	res, err := a.Run(context.Background(), "What is the weather in Oslo?")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("model:", res.Records[0].Error)
	var panicked *tool.PanicError
	if errors.As(res.Records[0].Cause, &panicked) {
		fmt.Println("developer:", panicked.Text)
		fmt.Println("the stack has this file:", strings.Contains(string(panicked.Stack), "example_develop_test.go"))
	}
	// Output:
	// model: get_weather failed with an internal error. The details are in the log.
	// developer: runtime error: index out of range [0] with length 0
	// the stack has this file: true
}

// The model gets the output of a tool between two lines that mark it as data. PlainText returns
// the output without them.
func Example_plainText() {
	weather := tool.New("get_weather", "Current weather in a city.",
		func(ctx context.Context, c City) (Weather, error) { return lookup(ctx, c.Name) })
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{weather}}
	res, err := a.Run(context.Background(), "What is the weather in Oslo?")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range res.Messages {
		for _, p := range m.Parts {
			if r, ok := p.(*dragoman.ToolResult); ok {
				fmt.Println(r.PlainText())
			}
		}
	}
	// Output: {"sky":"snow in Oslo","celsius":-4}
}

// Approve all pending calls of a run in a session.
func ExampleApproveAll() {
	ctx := context.Background()
	s, err := session.OpenOrCreate(ctx, new(session.Memory), "order-4711") // use SQLite or PostgreSQL to outlive the process
	if err != nil {
		log.Fatal(err)
	}
	a := agent.Agent{Model: provider.MustOpen("sim/planner"), Tools: []tool.Tool{refund}}
	if _, err := a.Run(ctx, "Refund order 4711.", agent.In(s)); !errors.Is(err, agent.ErrInterrupted) {
		log.Fatal(err)
	}
	state, err := agent.LoadState(ctx, s)
	if err != nil {
		log.Fatal(err)
	}
	res, err := a.Resume(ctx, state, agent.In(s), agent.ApproveAll(state.Pending()))
	fmt.Println(res.Records[0].Plain, err)
	// Output: order 4711 is refunded <nil>
}
