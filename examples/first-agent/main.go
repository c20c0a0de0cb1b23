// First-agent is the smallest agent: a model, a tool and a prompt.
//
//	$ go run ./examples/first-agent
//	get_weather {"name":"Oslo"}
//	get_weather says: It snows in Oslo, at -4 °C.
//
// The model is a simulator, which needs no key. To use another one, set its key and name it:
//
//	ANTHROPIC_API_KEY=… go run ./examples/first-agent -model anthropic/claude-opus-5-5
package main

import (
	"context"
	"flag"
	"fmt"
	"log"

	"github.com/dragoman-go/dragoman/agent"
	"github.com/dragoman-go/dragoman/provider"
	"github.com/dragoman-go/dragoman/tool"
)

// City is the input of the tool. Its schema is sent to the model.
type City struct {
	Name string `json:"name" doc:"the city's name, in English"`
}

func getWeather(_ context.Context, c City) (string, error) {
	return "It snows in " + c.Name + ", at -4 °C.", nil
}

func main() {
	name := flag.String("model", "sim/planner", "the model, as provider/model")
	flag.Parse()
	model, err := provider.Open(*name)
	if err != nil {
		log.Fatal(err)
	}
	a := agent.Agent{
		Model: model,
		Tools: []tool.Tool{tool.New("get_weather", "Current weather in a city.", getWeather)},
	}
	res, err := a.Run(context.Background(), "What is the weather in Oslo? Do I need a coat?")
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range res.Records {
		fmt.Println(r.Tool, r.Raw)
	}
	fmt.Println(res.Output)
}
